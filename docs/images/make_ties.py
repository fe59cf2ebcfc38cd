"""Draws docs/images/ties.png: a tie across the cutoff, its orders and their values.

python docs/images/make_ties.py
"""

import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = pathlib.Path(__file__).parent
SCORES = [0.9, 0.7, 0.7, 0.7, 0.2]
CUTOFF = 3
RELEVANT, TIED, CUT = "#d5efdf", "#d9822b", "#d0453f"


def draw(path):
    """Three columns of boxes: the relevant item is at rank 2, 3 or 4."""
    with plt.style.context(HERE / "both_schemes.mplstyle"):
        _draw(path)


def _draw(path):
    figure, axes = plt.subplots(figsize=(6.2, 3.9), layout="none")
    axes.set_position([0, 0, 1, 1])
    ink = plt.rcParams["text.color"]
    for column, rank in enumerate([2, 3, 4]):
        left = 2.1 * column
        area = {"facecolor": TIED, "alpha": 0.1}
        axes.add_patch(plt.Rectangle((left - 0.1, -4.05), 1.8, 3.1, **area))
        for place, score in enumerate(SCORES, start=1):
            corner = (left, -place + 0.1)
            text = {"ha": "center", "va": "center"}
            if place == rank:
                box = plt.Rectangle(corner, 1.6, 0.8, color=RELEVANT)
                text |= {"color": "#1f2937", "fontweight": "bold"}
                words = f"{score}\nrelevant"
            else:
                box = plt.Rectangle(corner, 1.6, 0.8, facecolor="none", edgecolor=ink)
                words = f"{score}"
            axes.add_patch(box)
            axes.text(left + 0.8, 0.5 - place, words, **text, linespacing=1.0)
        hit = rank <= CUTOFF
        value = f"RR@3 = 1/{rank}" if hit else "RR@3 = 0"
        words = f"{value}\nhit rate@3 = {int(hit)}"
        axes.text(left + 0.8, -5.2, words, ha="center", va="top")
    axes.plot([-0.25, 6.05], [-CUTOFF, -CUTOFF], color=CUT, linestyle="--")
    axes.text(6.1, -CUTOFF, "cutoff", color=CUT, va="center")
    axes.text(6.1, -1.9, "tied", color=TIED, va="center", fontweight="bold")
    for place in range(1, len(SCORES) + 1):
        axes.text(-0.25, -place + 0.5, f"rank {place}", ha="right", va="center")
    mean = "Mean of the three orders: RR@3 = 0.278, hit rate@3 = 0.667"
    axes.text(2.9, -6.35, mean, ha="center", va="top", fontweight="bold")
    axes.set(xlim=(-1.25, 7.1), ylim=(-6.85, 0.1))
    axes.axis("off")
    figure.savefig(path)


if __name__ == "__main__":
    draw(HERE / "ties.png")
