"""Wilcoxon's signed-rank test of the queries of two models.

The differences of queries are ranked by their sizes, and the test compares the ranks of
the positive ones with those of the negative ones. Queries without a difference take
part in the ranking, but their ranks are not added up. Source: Pratt, "Remarks on zeros
and ties in the Wilcoxon signed rank procedures", Journal of the American Statistical
Association 54, 1959. Differences of equal size share the mean of their ranks.
"""

from __future__ import annotations

import itertools

import numpy as np

from tfrankmetrics.installation import require

# Up to this number of different queries with ties, all signs are enumerated, and beyond
# it, the sum is normal. SciPy counts the equal queries, too: where 5 of 100 differ, it
# returns p = 0.025 for what happens in 2 of 2^5 cases.
ENUMERATED = 13


def wilcoxon_test(differences: np.ndarray, rounding: float) -> tuple[float, float]:
    """The two-sided p-value, and the sum of the signed ranks.

    p is 1 if no query differs, and NaN without queries. Except for few different
    queries, it is the one of `scipy.stats.wilcoxon(differences, zero_method="pratt")`.

    >>> wilcoxon_test(np.array([0.0, 0.1, 0.2, -0.3]), 1e-12)  # the ranks 2, 3 and -4
    (1.0, 1.0)

    Args:
        differences: The difference of each query, `[queries]`.
        rounding: Sizes that differ by at most this much are equal.
    """
    stats = require("scipy.stats", "`compare`")
    if not len(differences):
        return np.nan, 0.0
    sizes = np.abs(differences)
    order = np.argsort(sizes)
    groups = np.empty(len(sizes))
    groups[order] = np.cumsum(np.diff(sizes[order], prepend=0) > rounding)
    signed = np.sign(differences) * groups
    ranks = stats.rankdata(groups)[signed != 0]
    rank_sum = float(np.sign(signed[signed != 0]) @ ranks)
    if len({*ranks.tolist()}) == len(signed) <= 50:  # neither ties nor zeros
        return float(stats.wilcoxon(signed, method="exact").pvalue), rank_sum
    if len(ranks) > ENUMERATED:
        z = abs(rank_sum) / np.sqrt(ranks @ ranks)
        return float(2 * stats.norm.sf(z)), rank_sum
    signs = np.array([*itertools.product((-1, 1), repeat=len(ranks))])
    sums = np.abs(signs @ ranks)
    return float(np.mean(sums >= abs(rank_sum))), rank_sum
