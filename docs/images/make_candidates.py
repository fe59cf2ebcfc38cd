"""Draws docs/images/candidates.png: MRR among a batch, samples and the whole catalog.

python docs/images/make_candidates.py

The three models are those of docs/guide/pitfalls.md, whose block this script runs.
"""

import contextlib
import io
import pathlib
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import binom

HERE = pathlib.Path(__file__).parent
PAGE = HERE.parent / "guide" / "pitfalls.md"
SIZES = {50: "50\n(a batch)", 100: "100", 1_000: "1,000"}


def expected(ranks, m, n):
    """The expected reciprocal rank among m sampled items, as on the page."""
    above = (np.array(ranks)[:, np.newaxis] - 1) / (n - 1)
    sampled_ranks = np.arange(1, m + 2)
    chances = binom.pmf(sampled_ranks - 1, m, above)
    return np.mean(chances @ (1 / sampled_ranks))


def draw(path):
    """A line for each model of the page."""
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    (block,) = (block for block in blocks if "binom" in block)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec("import numpy as np\n" + block, names)
    n = names["n"]
    ticks = SIZES | {n: f"{n:,}\n(all)"}
    with plt.style.context(HERE / "both_schemes.mplstyle"):
        figure, axes = plt.subplots(figsize=(6.2, 3.4))
        for number, (model, ranks) in enumerate(names["ranks"].items()):
            values = [expected(ranks, size - 1, n) for size in SIZES]
            assert f"{values[1]:.4f} among 99" in printed.getvalue()
            values.append(np.mean([1 / rank for rank in ranks]))
            style = {"color": f"C{number}", "marker": "os^"[number]}
            style["linewidth"] = [5, 2, 2][number]  # the lines of A and B meet
            axes.loglog(list(ticks), values, **style, label=f"model {model}")
        axes.set_xticks(list(ticks), list(ticks.values()))
        axes.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
        axes.minorticks_off()
        axes.set(xlabel="items that each query ranks", ylabel="MRR", ylim=(0.007, 1.2))
        axes.legend(loc="lower left")
        figure.savefig(path)


if __name__ == "__main__":
    draw(HERE / "candidates.png")
