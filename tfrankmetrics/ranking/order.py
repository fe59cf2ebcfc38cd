"""The order of scores of lists that are all in memory; `retrieval/` reads chunks.

Metrics that break ties alike share a sort, and lists are sorted a second time only in a
batch with NaN. Because all operations are deterministic and plain TensorFlow ops, the
graph optimizer merges equal rankings within one graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.ranking import ties
from tfrankmetrics.ranking.items import (
    ItemGain,
    Items,
    is_retrieved,
    lowest_score,
    without_negative_zero,
)
from tfrankmetrics.ranking.ties import TieBreaking, TieGroups, TiePolicy, TiesOfBatch


def rank_by_score(
    scores: Array,
    depth: Array | int,
    tie_breaking: TieBreaking,
    items_at: Callable[[Array], Items],
    gain_of: Callable[[ItemGain], Array],
    retrieved: Array,
    at_judged: Callable[[Array], Array] = lambda where: where,
) -> tuple[Items, TiesOfBatch | None]:
    """The items at ranks 1 ... D, and their ties unless these are broken.

    NaN ranks below every number, and items that were not retrieved rank below NaN.

    Args:
        scores: `[B, N]`; `lowest_score` for items that were not retrieved.
        depth: D.
        tie_breaking: How equal scores are ordered.
        items_at: A function from the positions of items, `[B, D]`, to these items.
        gain_of: A function from a gain to the gain of each item, `[B, N]`.
        retrieved: Which judged items were retrieved, bool `[B, J]`.
        at_judged: A function from a boolean for each item, `[B, N]`, to a boolean for
            each judged item, `[B, J]`.
    """
    may_have_nan = _may_have_nan(scores)
    if may_have_nan is None:  # NaN, if any, is replaced before the only sort
        scores = _nan_as_number(scores)
    order_of_ties = _order_of_ties(tie_breaking, gain_of)

    def sort(keys):
        if not tie_breaking.is_exact:
            return keys, *_top_items_in_one_order(keys, depth, order_of_ties)
        return keys, *_top_items(keys, depth)

    found = sort(scores)

    def sorted_again_if_nan():
        """`found`, or a second sort for NaN: always replacing it would be slow."""
        if may_have_nan is None:
            return found
        return xp.cond(
            may_have_nan,
            lambda: sort(_nan_as_number(scores)),
            lambda: found,
            name="again_if_nan",
        )

    if not tie_breaking.is_exact or scores.shape[1] == 0:
        return items_at(sorted_again_if_nan()[1]), None
    _, order, sorted_keys = found
    ranked, size = items_at(order), xp.known_size(scores)
    is_cut = size is None or size != depth  # the last group may go on below
    may_exist = xp.any(ties.are_tied(sorted_keys))
    may_exist = may_exist if may_have_nan is None else may_exist | may_have_nan

    def with_groups():
        keys, order, sorted_keys = sorted_again_if_nan()
        groups = ties.groups_of(keys, sorted_keys, at_judged if is_cut else None)
        return items_at(order), groups

    last_items = retrieved if is_cut else None
    without_groups = functools.partial(_without_groups, ranked, order, last_items)
    ranked, groups = xp.cond(may_exist, with_groups, without_groups)
    return ranked, TiesOfBatch(may_exist, groups)


def _without_groups(
    ranked: Items, order: Array, last_items: Array | None
) -> tuple[Items, TieGroups]:
    """The items, and placeholders for the groups, which nothing reads.

    Both branches of `xp.cond` must return the same structure.
    """
    last_size = None
    if last_items is not None:
        last_size = xp.zeros(xp.shape(order)[:1], xp.float64, like=order)
    return ranked, TieGroups(order, order, last_items, last_size)


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


def _may_have_nan(scores: Array) -> Array | None:
    """Whether a score may be NaN; None if no second sort is needed.

    PyTorch replaces it, since `xp.cond` would always sort a second time.
    """
    if not xp.is_floating(scores) or xp.library_of(scores) == "torch":
        return None
    # The sum is also NaN for infinity minus infinity: then the second sort is
    # unnecessary, but changes nothing.
    return xp.any(xp.isnan(xp.sum(scores, axis=1)))


def _nan_as_number(scores: Array) -> Array:
    """Scores with NaN replaced by a number below all others.

    That number is the lowest of the dtype. Therefore, lists with NaN treat the lowest
    number as equal to the second lowest.
    """
    if not xp.is_floating(scores):
        return scores
    lowest = np.finfo(xp.dtype_of(scores)).min
    second = np.nextafter(lowest, np.zeros_like(lowest))
    is_nan = xp.isnan(scores)
    has_nan = xp.any(is_nan, axis=1, keepdims=True)
    numbers = xp.where(has_nan & xp.equal(scores, lowest), second, scores)
    return xp.where(is_nan, lowest, numbers)


def _top_items_in_one_order(
    keys: Array, depth: Array | int, order_of_ties: Array | None
) -> tuple[Array, Array]:
    """As `_top_items`, for ties that are broken one by one.

    Equal keys keep their order in the list, or in `order_of_ties` `[B, N]`.
    """
    keys = without_negative_zero(keys)
    if order_of_ties is None:
        return _top_items(keys, depth)
    order, sorted_keys = _top_items(xp.gather(keys, order_of_ties), depth)
    return xp.gather(order_of_ties, order), sorted_keys


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
