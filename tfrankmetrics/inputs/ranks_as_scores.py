"""Scores that may be ranks, of which the lowest would be the best.

Honest scores may also have the form or the name of ranks, such as n - rank, or 0 and 1
for two items. The AUC of labels by score decides: relevant items have higher scores
than others, but lower ranks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tfrankmetrics.inputs.mistakes import MOST_VALUES, Facts, have_form_of_ranks

NAMES = r"rank|position|(?<![a-z])(pos|rk)(?![a-z])"  # in lower case


def facts_of_arrays(
    scores: np.ndarray,
    valid: np.ndarray,
    labels: Callable[[slice], np.ndarray],
) -> Facts:
    """The facts of scores `[B, N]` that may be ranks.

    Args:
        scores: The score of each item.
        valid: False for padding, `[B, N]`.
        labels: A function that returns the labels of some of the queries.
    """
    facts = Facts()
    step = max(1, MOST_VALUES // max(1, scores.shape[1]))
    for start in range(0, len(scores), step):
        rows = slice(start, start + step)
        which = valid[rows]
        facts += facts_of_ranks(
            scores[rows][which],
            lambda: (np.nonzero(which)[0], labels(rows)[which]),  # noqa: B023
        )
        if not have_form_of_ranks(facts):
            break  # nearly always in the first part
    return facts


def facts_of_ranks(
    scores: np.ndarray,
    lists: Callable[[], tuple[np.ndarray, np.ndarray]],
    name: Any = None,
) -> Facts:
    """The facts of scores `[items]` that may be ranks, of whole lists.

    Args:
        scores: The score of each item.
        lists: A function that returns the number of the query of each item, and its
            label.
        name: The name of the column of scores, if it has one.
    """
    is_called = name is not None and re.search(NAMES, str(name).lower()) is not None
    some = scores[:MOST_VALUES]
    with np.errstate(all="ignore"):
        doubled = 2 * some  # the mean ranks of ties become whole numbers
        are_fractions = np.floor(doubled) < doubled
    if not is_called and np.count_nonzero(are_fractions) > some.size / 10:
        return Facts({"compared": float(some.size)})
    # Ranks of items that were not retrieved may be -1, NaN or infinite.
    are_ranks = (scores >= 0) & (scores < np.inf)
    queries, labels, scores = (each[are_ranks] for each in (*lists(), scores))
    order = np.lexsort((scores, queries))
    queries, labels, scores = queries[order], labels[order], scores[order]
    sizes = np.bincount(queries)
    differ = (np.diff(each, prepend=-1) != 0 for each in (queries, scores))
    is_new = np.logical_or(*differ)
    ties = np.cumsum(is_new) - 1
    num_tied = np.bincount(ties)[ties]
    num_lower = np.flatnonzero(is_new)[ties] - (np.cumsum(sizes) - sizes)[queries]
    num_until = num_lower + num_tied
    from_0 = (num_lower <= scores) & (scores < num_until)
    from_1 = (num_lower < scores) & (scores <= num_until)
    with np.errstate(invalid="ignore"):  # of queries without ranks
        means = np.bincount(queries, np.maximum(labels, 0)) / sizes
    is_relevant = labels > means[queries]
    num_relevant = np.bincount(queries, is_relevant)
    # Mann and Whitney's U, which is the AUC times the number of pairs, minus its mean.
    above_mean = (num_lower + num_until - sizes[queries]) / 2
    variances = num_relevant * (sizes - num_relevant) * (sizes + 1) / 12
    facts = {"called ranks": is_called, "compared": len(scores)}
    facts |= {"ranks from 0": from_0.sum(), "ranks from 1": from_1.sum()}
    facts |= {"U above its mean": above_mean[is_relevant].sum()}
    facts |= {"variance of U": variances.sum()}
    return Facts({name: float(number) for name, number in facts.items()})
