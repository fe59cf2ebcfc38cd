"""The order of scores of lists that are all in memory; `retrieval/` reads chunks.

Metrics that break ties alike share a sort, and lists are sorted a second time only in a
batch with NaN. All operations are deterministic and plain TensorFlow ops, so the graph
optimizer merges equal rankings within one graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.ranking import ties
from tfrankmetrics.ranking.items import (
    ItemGain,
    is_retrieved,
    lowest_score,
    without_negative_zero,
)
from tfrankmetrics.ranking.ties import TieBreaking, TieGroups, TiePolicy, TiesOfBatch


def rank_by_score(
    scores: Array,
    depth: Array | int,
    tie_breaking: TieBreaking,
    gain_of: Callable[[ItemGain], Array],
    retrieved: Array,
    at_judged: Callable[[Array], Array] = lambda where: where,
) -> tuple[Array, TiesOfBatch | None]:
    """The positions of the items at ranks 1 ... D, `[B, D]`, and their ties, if any.

    NaN ranks below every number, and items that were not retrieved rank below NaN.

    Args:
        scores: `[B, N]`; `lowest_score` for items that were not retrieved.
        depth: D.
        tie_breaking: How equal scores are ordered.
        gain_of: A function from a gain to the gain of each item, `[B, N]`.
        retrieved: Which judged items were retrieved, bool `[B, J]`.
        at_judged: A function from a boolean for each item, `[B, N]`, to a boolean for
            each judged item, `[B, J]`.
    """
    order_of_ties = _order_of_ties(tie_breaking, gain_of)

    def sort(keys):
        """The keys, the positions of the D largest, and these in descending order."""
        if tie_breaking.is_exact:
            return keys, *_top_items(keys, depth)
        keys = without_negative_zero(keys)
        if order_of_ties is None:  # tied items keep the order of the list
            return keys, *_top_items(keys, depth)
        order, sorted_keys = _top_items(xp.gather(keys, order_of_ties), depth)
        return keys, xp.gather(order_of_ties, order), sorted_keys

    (_, order, sorted_keys), may_have_nan, sort_with_nan = _sorts(sort, scores)
    if not tie_breaking.is_exact or scores.shape[1] == 0:
        return sort_with_nan()[1], None
    may_exist = xp.any(ties.are_tied(sorted_keys))
    if may_have_nan is not None:
        may_exist |= may_have_nan
    if isinstance(may_exist, np.bool_) and not may_exist:
        return order, None  # NumPy knows it
    size = xp.known_size(scores)
    is_cut = size is None or size != depth  # the last group may go on below

    def with_groups():
        keys, order, sorted_keys = sort_with_nan()
        groups = ties.groups_of(keys, sorted_keys, at_judged if is_cut else None)
        return order, groups

    def without_groups():
        """Both branches return the same structure. Nothing reads these groups."""
        if not is_cut:
            return order, TieGroups(order, order, None, None)
        size = xp.zeros(xp.shape(order)[:1], xp.float64, like=order)
        return order, TieGroups(order, order, retrieved, size)

    order_and_groups = xp.cond(may_exist, with_groups, without_groups)
    return order_and_groups[0], TiesOfBatch(may_exist, order_and_groups[1])


def _order_of_ties(
    tie_breaking: TieBreaking, gain_of: Callable[[ItemGain], Array]
) -> Array | None:
    """The order that tied items keep, `[B, N]`; None for that of the list."""
    match tie_breaking.policy:
        case TiePolicy.EXPECTED | TiePolicy.STABLE:
            return None
        case TiePolicy.BEST | TiePolicy.WORST as policy:
            assert tie_breaking.gain is not None
            highest_first = policy is TiePolicy.BEST
            return xp.argsort(gain_of(tie_breaking.gain), descending=highest_first)


def _sorts(
    sort: Callable[[Array], Any], scores: Array
) -> tuple[Any, Array | None, Callable[[], Any]]:
    """A sort of the scores, whether they may have NaN, and the sort that is right then.

    Replacing NaN in each list would be slow. On PyTorch, one sort replaces it, since
    `xp.cond` would always sort a second time; integers have none.
    """
    if not xp.is_floating(scores) or xp.library_of(scores) == "torch":
        only_sort = sort(_nan_as_number(scores))
        return only_sort, None, lambda: only_sort
    first_sort = sort(scores)
    # The sum is also NaN for infinity minus infinity: then the second sort is
    # unnecessary, but changes nothing.
    may_have_nan = xp.any(xp.isnan(xp.sum(scores, axis=1)))

    def sort_with_nan():
        return xp.cond(
            may_have_nan,
            lambda: sort(_nan_as_number(scores)),
            lambda: first_sort,
            name="again_if_nan",
        )

    return first_sort, may_have_nan, sort_with_nan


def _nan_as_number(scores: Array) -> Array:
    """Scores with NaN replaced with a number below all others.

    That number is the lowest of the dtype. Lists with NaN treat it as equal to the
    second lowest.
    """
    if not xp.is_floating(scores):
        return scores
    lowest = np.finfo(xp.dtype_of(scores)).min
    second = np.nextafter(lowest, np.zeros_like(lowest))
    is_nan = xp.isnan(scores)
    has_nan = xp.any(is_nan, axis=1, keepdims=True)
    numbers = xp.where(has_nan & xp.equal(scores, lowest), second, scores)
    return xp.where(is_nan, lowest, numbers)


def _top_items(keys: Array, depth: Array | int) -> tuple[Array, Array]:
    """The positions of the D largest keys, and these keys, both `[B, D]`."""
    sorted_keys, order = xp.top_k(keys, depth)
    if keys.shape[1] is None or keys.shape[1] != depth:
        # This changes no value. But if the values of a top_k are sliced, as in
        # `ties.are_tied`, XLA turns it back into a full sort, unless there is an op in
        # between. This op is cheaper than gathering the keys.
        lowest = lowest_score(keys)
        sorted_keys = xp.select(is_retrieved(sorted_keys), sorted_keys, lowest)
    return order, sorted_keys
