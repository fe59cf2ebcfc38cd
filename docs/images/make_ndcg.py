"""Draws docs/images/ndcg.png: the sum behind NDCG, for an order and the ideal one.

python docs/images/make_ndcg.py
"""

import pathlib
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))
from tfrankmetrics import evaluate  # noqa: E402

LABELS = [0, 2, 0, 1, 0]  # from the top


def draw(path):
    """A bar for the gain at each rank, and how much of it the discount leaves."""
    labels = {
        "This order": np.array(LABELS),
        "The ideal order": np.sort(LABELS)[::-1],
    }
    ranks = np.arange(1, len(LABELS) + 1)
    discounts = 1 / np.log2(1 + ranks)
    sums = {name: np.sum((2.0**of - 1) * discounts) for name, of in labels.items()}
    dcg, ideal = sums.values()
    (ndcg,) = evaluate(LABELS, -ranks, ["ndcg@5"]).values()
    assert np.isclose(ndcg, dcg / ideal)
    with plt.style.context(HERE / "both_schemes.mplstyle"):
        figure, panels = plt.subplots(1, 2, figsize=(6.2, 3.3), sharey=True)
        ink = plt.rcParams["text.color"]
        for axes, (name, of), color in zip(panels, labels.items(), ["C0", "C2"]):
            gains = 2.0**of - 1
            outlines = axes.bar(ranks, gains, 0.8, facecolor="none", edgecolor=ink)
            axes.bar(ranks, gains * discounts, 0.8, color=color)
            words = [f"{value:.2f}" if value else "" for value in gains * discounts]
            axes.bar_label(outlines, words, padding=2, fontweight="bold")
            axes.set_title(f"{name}: DCG = {sums[name]:.2f}", fontweight="bold")
            axes.set_xticks(
                ranks, [f"{rank}\nlabel {label}" for rank, label in zip(ranks, of)]
            )
            axes.tick_params(axis="x", length=0, labelsize=9.5)
            axes.set_xlabel("rank")
        panels[0].set_ylabel(
            "gain, and gain \N{MULTIPLICATION SIGN} discount (filled)", fontsize=9.5
        )
        panels[0].set(yticks=[0, 1, 2, 3], ylim=(0, 3.4))
        figure.suptitle(
            f"NDCG@5 = {dcg:.2f} / {ideal:.2f} = {ndcg:.2f}", fontweight="bold"
        )
        figure.savefig(path)


if __name__ == "__main__":
    draw(HERE / "ndcg.png")
