"""Draws docs/images/conventions.png: the values that tools give the same ranked lists.

python docs/images/make_conventions.py

The values are those of two tables of docs/conventions.md, which the tests compare with
tfrankmetrics, and validation/ with the tools themselves.
"""

import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
from conventions_document import choice_examples  # noqa: E402

# The first table of each metric whose call is for every tool.
METRICS = {"ndcg": "NDCG", "map": "MAP@2"}


def values_of_tools(metric):
    """The labels in ranked order, and the value of each tool."""
    example, rows = next(
        (example, rows)
        for example, rows in choice_examples()
        if example.metric == metric and example.lists_every_tool
    )
    (labels,) = example.labels
    return labels, {tool: row.values[0] for row in rows for tool in row.tools}


def draw(path):
    """A row for each tool, and a panel for each metric."""
    found = {metric: values_of_tools(metric) for metric in METRICS}
    of_ndcg, of_map = (values for _, values in found.values())
    tools = sorted(
        of_ndcg | of_map,
        key=lambda tool: (of_ndcg.get(tool, 2), of_map.get(tool, 2), tool.lower()),
    )
    with plt.style.context(HERE / "both_schemes.mplstyle"):
        figure, panels = plt.subplots(
            1, 2, figsize=(6.2, 5.2), sharey=True, width_ratios=[4, 5]
        )
        for axes, (metric, (labels, values)) in zip(panels, found.items()):
            distinct = sorted(set(values.values()))
            for tool, value in values.items():
                color = f"C{distinct.index(value)}"
                axes.plot(value, tools.index(tool), "o", color=color, markersize=8)
            for value in distinct:
                axes.axvline(value, color=f"C{distinct.index(value)}", alpha=0.3)
            ranked = ", ".join(map(str, labels))
            axes.set_title(f"{METRICS[metric]} of labels\n{ranked}")
            axes.set_xticks(distinct, [f"{value:.2f}" for value in distinct])
            axes.margins(x=0.2)
            axes.spines[["left", "bottom"]].set_visible(False)
            axes.tick_params(length=0)
            axes.grid(axis="y")
        panels[0].set_yticks(range(len(tools)), tools)
        panels[0].invert_yaxis()
        figure.savefig(path)


if __name__ == "__main__":
    draw(HERE / "conventions.png")
