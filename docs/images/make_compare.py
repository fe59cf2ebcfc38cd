"""Draws docs/images/compare.png: the plot of the comparison on docs/guide/compare.md.

python docs/images/make_compare.py
"""

import pathlib
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parent / "guide" / "compare.md"


def draw(path):
    """Runs the first block of the page, and plots its comparison."""
    names = {}
    exec(re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)[1], names)
    comparison = names["compare"](names["values"])
    with plt.style.context(HERE / "both_schemes.mplstyle"):
        panels = comparison.plot()
        for line in [line for axis in panels for line in axis.lines]:
            if line.get_color() == "black":  # which dark pages hide
                line.set_color(plt.rcParams["axes.edgecolor"])
        panels[0].figure.savefig(path, bbox_inches="tight")


if __name__ == "__main__":
    draw(HERE / "compare.png")
