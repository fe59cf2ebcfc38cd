"""Draws docs/images/speed.png from the saved results: updates beside other tools."""

import json
import pathlib
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = pathlib.Path(__file__).parent.parent
TABLE = "graph, compared with other tools, milliseconds"
TOOLS = {  # the benchmark's name, its name in the picture, and a color
    "tensorflow-ranking": ("TF-Ranking", "C1"),
    "keras-rs": ("keras-rs", "C4"),
}


def ratios(tool):
    """How many times our time a tool takes, by the size of a batch without ties.

    The second result is the release of TensorFlow with which both were measured.
    """
    path = ROOT / "benchmarks" / "results" / f"training-{tool}.json"
    results = json.loads(path.read_text(encoding="utf-8"))
    release = re.search(r"tensorflow (\d+\.\d+)", results["circumstances"])[1]
    rows = results["tables"][TABLE]
    values = {row[0]: float(row[-1]) for row in rows[1:] if "ties" not in row[0]}
    return values, release


def main():
    """Draws a bar for each tool and size, with its ratio."""
    images = ROOT / "docs" / "images"
    styles = [images / "both_schemes.mplstyle", images / "on_white.mplstyle"]
    with plt.style.context(styles):
        draw(images / "speed.png")


def draw(path):
    """Draws the picture in the colors of the current style."""
    figure, axis = plt.subplots(figsize=(6.2, 3.4))
    for number, (tool, (label, color)) in enumerate(TOOLS.items()):
        values, release = ratios(tool)
        places = [place + 0.36 * (number - 0.5) for place in range(len(values))]
        bars = axis.barh(places, values.values(), 0.34, color=color)
        bars.set_label(f"{label}, both on TensorFlow {release}")
        axis.bar_label(bars, fmt="{:.1f}", padding=3)
    sizes = [size.strip("[]").split(", ") for size in values]
    names = [f"{queries} lists\nof {items} items" for queries, items in sizes]
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.axvline(1, color="C0", label="tfrankmetrics")
    axis.set(xlabel="times as long as tfrankmetrics, for ten metrics")
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(loc="upper right")
    figure.savefig(path)


if __name__ == "__main__":
    main()
