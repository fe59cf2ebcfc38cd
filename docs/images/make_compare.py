"""Draws docs/images/compare.png: the plot of the comparison on docs/guide/compare.md.

python docs/images/make_compare.py
"""

import pathlib
import re

import matplotlib

matplotlib.use("Agg")

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parent / "guide" / "compare.md"


def draw(path):
    """Runs the first block of the page, and plots its comparison."""
    names = {}
    exec(re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)[1], names)
    figure = names["compare"](names["values"]).plot()[0].figure
    figure.savefig(path, dpi=120, bbox_inches="tight")


if __name__ == "__main__":
    draw(HERE / "compare.png")
