"""Scores that look like ranks, of which the lowest would be the best.

Honest scores may be whole numbers from 0 or 1, too, such as n - rank, or 0 and 1 for
two items. They rank relevant items better than chance.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tfrankmetrics.inputs.mistakes import MOST_VALUES, Facts

SHORTEST = 4  # of shorter lists, the scores may be such numbers by chance


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
        if facts["no ranks"] or facts["no permutation"]:
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
    if not (_may_be_ranks(scores[:MOST_VALUES]) and _may_be_ranks(scores)):
        return Facts({"no ranks": 1.0})
    words = {*re.findall(r"[a-z]+", str(name).lower())}
    is_rank = not words.isdisjoint(("rank", "ranks", "ranking", "position"))
    facts = Facts({"called ranks": float(is_rank and len(scores) > 1)})
    retrieved = scores > -np.inf
    queries, labels, scores = (each[retrieved] for each in (*lists(), scores))
    sizes = np.bincount(queries)
    is_long = sizes >= SHORTEST
    order = np.lexsort((scores, queries))
    queries, labels, scores = queries[order], labels[order], scores[order]
    starts = (np.cumsum(sizes) - sizes)[queries]
    first, places = scores[starts], np.arange(len(scores)) - starts
    is_other = (first > 1) | (scores != first + places)
    if (is_other & is_long[queries]).any():
        return facts + {"no permutation": 1.0}
    auc = _auc(queries, labels, places)[is_long]
    return facts + {
        "in permutations": float(sizes[is_long].sum()),
        "AUC above 0.5": float(np.nansum(auc - 0.5)),
    }


def _may_be_ranks(scores: np.ndarray) -> bool:
    """Whether all scores are whole numbers of at least 0, or -inf."""
    with np.errstate(invalid="ignore"):
        are_whole = (scores >= 0) & (scores == np.floor(scores))
    return bool((are_whole | np.equal(scores, -np.inf)).all())


def _auc(queries: np.ndarray, labels: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The AUC of each list, whose scores are 0, 1, ..., n - 1 in some order.

    An item is relevant if its label is above the mean of its list. NaN if none is.
    """
    sizes = np.bincount(queries)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.bincount(queries, labels) / sizes
        relevant = labels > means[queries]
        of_relevant, of_others = (
            np.bincount(queries, places * which) / np.bincount(queries, which)
            for which in (relevant, ~relevant)
        )
        return 0.5 + (of_relevant - of_others) / sizes
