"""Ranks by counting: an item's rank is one plus the number of items that score higher.

The counts add up over the parts of a catalog: no sort and no scores of all items are
needed. From the counts of the relevant items, this module derives the results of a
sort.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.ranking.items import Items
from tfrankmetrics.ranking.ties import TieBreaking, TieGroups, TiePolicy, TiesOfBatch


class RankCounts(NamedTuple):
    """The counts of each judged item among all items of its query, int64 `[B, J]`."""

    above: Array  # the items with a higher score
    tied: Array  # the items with the same score, with itself
    # The tied items that come first, which ties="stable" needs.
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
    order, ranks_above = _order_and_ranks_above(counts, judged, tie_breaking)
    labels = xp.gather(judged.labels, order)
    positions = xp.arange(depth, dtype=xp.int64, like=ranks_above)
    # Each rank that is read, as the number of ranks above it.
    above_each_rank = positions + xp.zeros_like(ranks_above[:, :1])
    if some_ranks is not None:
        above_each_rank = xp.astype(some_ranks, xp.int64) - 1
    last = _last_up_to(ranks_above, above_each_rank)
    is_here = xp.equal(xp.gather(ranks_above, last), above_each_rank)
    labels = xp.where(is_here, xp.gather(labels, last), 0)
    ranked = Items(labels, is_here, is_here, None)
    if not tie_breaking.is_exact:
        return ranked, None
    is_cut = some_ranks is None
    return ranked, _ties(counts, judged, positions, above_each_rank, is_cut)


def num_listed(judged: Items, num_items: Array) -> Array:
    """The items of the list of each query, float64 `[B]`.

    `num_items` are those of the catalog that are not excluded, and the relevant ones
    that are. A query without any relevant id is a list of padding.
    """
    is_list = xp.any(judged.valid, axis=1)
    # A query whose ids all have the grade 0 is included even if all are excluded.
    return xp.where(is_list, xp.maximum(num_items, 1), 0)


def _order_and_ranks_above(
    counts: RankCounts, judged: Items, tie_breaking: TieBreaking
) -> tuple[Array, Array]:
    """The judged items by rank, and the number of ranks above each, both `[B, J]`.

    With exact ties, tied items take the first ranks of their group, in any order.
    """
    match tie_breaking.policy:
        case TiePolicy.STABLE:
            ranks_above = counts.above + counts.tied_before
            order = xp.argsort(ranks_above, axis=1)
            return order, xp.gather(ranks_above, order)
        case TiePolicy.EXPECTED:
            order = xp.argsort(counts.above, axis=1)
        case TiePolicy.BEST | TiePolicy.WORST as policy:
            assert tie_breaking.gain is not None
            gains, highest_first = tie_breaking.gain(judged), policy is TiePolicy.BEST
            by_gain = xp.argsort(gains, axis=1, descending=highest_first)
            above = xp.gather(counts.above, by_gain)
            order = xp.gather(by_gain, xp.argsort(above, axis=1))
    above = xp.gather(counts.above, order)
    tied = xp.gather(counts.tied, order)
    # The judged items of a group take the places `first` ... `end` - 1.
    first = xp.searchsorted(above, above, out_type=xp.int64)
    index = xp.arange(xp.shape(above, out_type=xp.int64)[1], like=above)
    if tie_breaking.policy is TiePolicy.WORST:  # they take the last ranks of the group
        end = xp.searchsorted(above, above, side="right", out_type=xp.int64)
        return order, above + tied - (end - index)
    return order, above + index - first


def _last_up_to(keys: Array, values: Array) -> Array:
    """For each value the place of the last of the sorted keys that is at most as high.

    It is 0 where all keys are higher.
    """
    return xp.maximum(xp.searchsorted(keys, values, side="right") - 1, 0)


def _ties(
    counts: RankCounts,
    judged: Items,
    positions: Array,
    above_each_rank: Array,
    is_cut: bool,
) -> TiesOfBatch:
    """The groups of the judged items; every other item is a group of one.

    `is_cut` is whether the last group may go on below the last rank.
    """
    order = xp.argsort(counts.above, axis=1)
    above = xp.gather(counts.above, order)
    last = _last_up_to(above, above_each_rank)
    start = xp.gather(above, last)
    tied = xp.gather(xp.gather(counts.tied, order), last)
    in_group = (above_each_rank >= start) & (above_each_rank < start + tied)
    # All ranks of a group are adjacent.
    first = xp.where(in_group, positions - (above_each_rank - start), positions)
    end = xp.where(in_group, first + tied, positions + 1)
    depth = xp.shape(positions, out_type=xp.int64)[0]
    last_items, last_size = None, None
    if is_cut:
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
