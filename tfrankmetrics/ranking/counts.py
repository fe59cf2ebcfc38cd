"""Ranks by counting: an item's rank is one plus the number of items that score higher.

The counts add up over the parts of a catalog; therefore, no sort and no scores of all
items are needed. From the counts of the relevant items, this module derives the results
of a sort.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.ranking.items import Items
from tfrankmetrics.ranking.ties import TieBreaking, TieGroups, TiesOfBatch


class RankCounts(NamedTuple):
    """The counts of each judged item among all items of its query, int64 `[B, J]`."""

    above: Array  # the items with a higher score
    tied: Array  # the items with the same score, with itself
    # The tied items that come first, which ties="stable" and "random" need.
    tied_before: Array | None = None


def rank_by_counts(
    counts: RankCounts,
    judged: Items,
    depth: Array | int,
    tie_breaking: TieBreaking,
    some_ranks: Array | None = None,
) -> tuple[Items, TiesOfBatch | None]:
    """The items at ranks 1 ... D, and their ties unless these are broken.

    Only judged items are placed at these ranks. The other ranks have the label 0.

    Args:
        counts: The counts of the judged items.
        judged: The judged items, `[B, J]`. Those that were not retrieved have no rank.
        depth: D.
        tie_breaking: How equal scores are ordered.
        some_ranks: The field of `RankedLists`.
    """
    # Items that were not retrieved are far below all others: below any rank, and still
    # small enough to be added to other counts.
    far = np.iinfo(xp.dtype_of(counts.above)).max // 2
    above = xp.where(judged.retrieved, counts.above, far)
    tied = xp.where(judged.retrieved, counts.tied, 1)
    counts = counts._replace(above=above, tied=tied)
    order, ranks = _in_order(counts, judged, tie_breaking)
    labels = xp.gather(judged.labels, order)
    positions = xp.arange(depth, dtype=xp.int64, like=ranks)
    ranks_above = positions + xp.zeros_like(ranks[:, :1])
    if some_ranks is not None:
        ranks_above = xp.astype(some_ranks, xp.int64) - 1
    at_ranks = _last_up_to(ranks, ranks_above)
    is_here = xp.equal(at_ranks(ranks), ranks_above)
    labels = xp.where(is_here, at_ranks(labels), 0)
    ranked = Items(labels, is_here, is_here, None)
    if not tie_breaking.policy.is_exact:
        return ranked, None
    return ranked, _ties(counts, judged, positions, ranks_above, some_ranks is not None)


def num_judged(judged: Items, num_items: Array) -> Array:
    """The items of the list of each query, float64 `[B]`.

    `num_items` are those of the catalog that are not excluded, and the relevant ones
    that are. A query without any relevant id is a list of padding.
    """
    is_list = xp.any(judged.valid, axis=1)
    # A query whose ids all have the grade 0 is included even if all are excluded.
    return xp.where(is_list, xp.maximum(num_items, 1), 0)


def _in_order(
    counts: RankCounts, judged: Items, tie_breaking: TieBreaking
) -> tuple[Array, Array]:
    """The judged items by rank, and the number of ranks above each, both `[B, J]`.

    With exact ties, tied items take the first ranks of their group, in any order.
    """
    policy = tie_breaking.policy
    if policy.by_position or policy.is_random:
        ranks = counts.above + counts.tied_before
        order = xp.argsort(ranks, axis=1)
        return order, xp.gather(ranks, order)
    order = xp.argsort(counts.above, axis=1)
    if tie_breaking.gain is not None:
        gains = tie_breaking.gain(judged)
        by_gain = xp.argsort(gains, axis=1, descending=policy.highest_first)
        above = xp.gather(counts.above, by_gain)
        order = xp.gather(by_gain, xp.argsort(above, axis=1))
    above = xp.gather(counts.above, order)
    tied = xp.gather(counts.tied, order)
    first = xp.searchsorted(above, above, out_type=xp.int64)
    index = xp.arange(xp.shape(above, out_type=xp.int64)[1], like=above)
    if policy.highest_first is False:  # they take the last ranks of the group
        end = xp.searchsorted(above, above, side="right", out_type=xp.int64)
        return order, above + tied - (end - index)
    return order, above + index - first


def _last_up_to(keys: Array, values: Array) -> Callable[[Array], Array]:
    """A function that gathers, for each value, from the last key that is not above it.

    `keys` `[B, J]` are sorted. Where all keys are above, it gathers from the first.
    """
    number = xp.searchsorted(keys, values, side="right")
    index = xp.maximum(number - 1, 0)
    return lambda columns: xp.gather(columns, index)


def _ties(
    counts: RankCounts,
    judged: Items,
    positions: Array,
    ranks_above: Array,
    are_complete: bool,
) -> TiesOfBatch:
    """The groups of the judged items; every other item is a group of one."""
    order = xp.argsort(counts.above, axis=1)
    above = xp.gather(counts.above, order)
    at_ranks = _last_up_to(above, ranks_above)
    start = at_ranks(above)
    tied = at_ranks(xp.gather(counts.tied, order))
    in_group = (ranks_above >= start) & (ranks_above < start + tied)
    # All ranks of a group are adjacent.
    first = xp.where(in_group, positions - (ranks_above - start), positions)
    end = xp.where(in_group, first + tied, positions + 1)
    depth = xp.shape(positions, out_type=xp.int64)[0]
    last_items, last_size = None, None
    if not are_complete:
        is_last = (counts.above < depth) & (counts.above + counts.tied >= depth)
        last_items = is_last & judged.retrieved
        size = xp.max(xp.where(last_items, counts.tied, 1), axis=1)
        last_size = xp.astype(size, xp.float64)
    groups = TieGroups(
        start=xp.astype(first, xp.int32),
        end=xp.astype(xp.minimum(end, depth), xp.int32),
        last_items=last_items,
        last_size=last_size,
    )
    return TiesOfBatch(xp.any(in_group & (tied > 1)), groups)
