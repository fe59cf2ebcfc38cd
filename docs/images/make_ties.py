"""Draws docs/images/ties.png: a tie across the cutoff, its orders and their values.

python docs/images/make_ties.py
"""

import pathlib

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

SCORES = [0.9, 0.7, 0.7, 0.7, 0.2]
CUTOFF = 3
RELEVANT, OTHER, TIED = "#2a7f62", "#d9d9d9", "#fff3cd"


def draw(path):
    """Three columns of boxes: the relevant item is at rank 2, 3 or 4."""
    figure, axes = plt.subplots(figsize=(8, 3.6))
    for column, rank in enumerate([2, 3, 4]):
        left = 2.2 * column
        axes.add_patch(plt.Rectangle((left - 0.1, -4.05), 1.7, 3.1, color=TIED))
        for place, score in enumerate(SCORES, start=1):
            color = RELEVANT if place == rank else OTHER
            box = plt.Rectangle((left, -place + 0.1), 1.5, 0.8, color=color)
            axes.add_patch(box)
            text = f"{score}, relevant" if place == rank else f"score {score}"
            ink = {"color": "white" if place == rank else "black"}
            axes.text(left + 0.75, 0.5 - place, text, ha="center", va="center", **ink)
        hit = rank <= CUTOFF
        value = f"RR@3 = 1/{rank}" if hit else "RR@3 = 0"
        axes.text(
            left + 0.75,
            -5.35,
            f"{value}\nhit rate@3 = {int(hit)}",
            ha="center",
            va="top",
        )
    axes.plot([-0.5, 6.1], [-3, -3], color="#b03030", linestyle="--")
    axes.text(6.15, -3, "cutoff 3", color="#b03030", va="center")
    axes.text(6.15, -1.9, "tied items", color="#8a6d00", va="center")
    for place in range(1, 6):
        axes.text(-0.5, -place + 0.5, f"rank {place}", ha="right", va="center")
    axes.text(
        6.6,
        -5.35,
        "Mean of the three:\nRR@3 = 0.278\nhit rate@3 = 0.667",
        va="top",
        ha="left",
        fontweight="bold",
    )
    axes.set_xlim(-1.3, 8.3)
    axes.set_ylim(-6.6, 0.2)
    axes.axis("off")
    figure.savefig(path, dpi=120, bbox_inches="tight")


if __name__ == "__main__":
    draw(pathlib.Path(__file__).parent / "ties.png")
