"""Which items are recommended, rather than whether they are relevant.

Metrics of coverage, popularity, novelty, diversity and fairness read ranked lists, as
all metrics do. The gain of an item is a number from the data about it (`DataGain`), or
the items receive the attention to their ranks: `sums_by_category` and `exposure`.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.item_data import ItemCategories
from tfrankmetrics.ranking.items import Items, is_retrieved
from tfrankmetrics.ranking.order import rank_by_score
from tfrankmetrics.ranking.ranked_lists import RankedLists, depth_for
from tfrankmetrics.ranking.ties import TieBreaking, TieGroups


class Exposure(NamedTuple):
    """The exposure of each item, summed over the queries."""

    of_items: Array  # [..., V] float64

    @property
    def xp(self) -> ModuleType:
        """The operations on arrays, for the library of the exposure."""
        return xp


def recommend_by_score(
    scores: Array,
    deepest: int | None,
    tie_breaking: TieBreaking,
    ids: Array | None,
    query_weights: Array | None,
) -> RankedLists:
    """The items with the highest scores; `ids` as in `Items`."""
    depth = depth_for(deepest, scores)
    retrieved = is_retrieved(scores)
    at_ranks, ties = rank_by_score(
        scores, depth, tie_breaking, lambda gain: scores, retrieved
    )
    number = xp.count_nonzero(retrieved)
    exists = xp.arange(depth, dtype=xp.float64, like=scores) < number[:, xp.newaxis]
    if ids is not None:
        at_ranks = xp.gather(ids, at_ranks)
    return RankedLists(
        ranked=Items.recommended(at_ranks, exists),
        listed=Items.recommended(ids, retrieved),
        ties=ties,
        query_weights=query_weights,
        deepest=deepest,
        num_retrieved=number,
        num_listed=number,
    )


def sums_by_category(
    lists: RankedLists, categories: ItemCategories, attention: Array
) -> Array:
    """The attention to each category down to each cutoff, `[B, C, G]`.

    `attention` is that to each rank, `[D]`.
    """
    number, queries = len(categories.names), xp.shape(lists.ranked.valid)[0]
    starts = xp.arange(queries, dtype=xp.int64, like=lists.ranked.valid) * number
    of_items = xp.asarray(categories.values, xp.int64, like=starts)

    def index_of(items):
        here = xp.take(of_items, items.positions(len(categories)), axis=0)
        return starts[:, xp.newaxis] + here

    total = _attention_by_index(lists, attention, index_of, queries * number)
    return xp.stack([xp.reshape(each, [queries, number]) for each in total], axis=1)


def exposure(
    lists: RankedLists,
    num_items: int,
    attention: Array,
    segments: Array,
    num_segments: int,
) -> list[Array]:
    """The attention to each item, over all queries of a segment, `[S, V]`.

    One array for each cutoff.

    Args:
        lists: The recommended items.
        num_items: V.
        attention: The attention to each rank, `[D]`.
        segments: The segment of each query, int64 `[B]`.
        num_segments: S.
    """
    starts = (segments * num_items)[:, xp.newaxis]
    total = _attention_by_index(
        lists,
        attention,
        lambda items: starts + items.positions(num_items),
        num_segments * num_items,
        lists.weights(),
    )
    return [xp.reshape(each, [num_segments, num_items]) for each in total]


def _attention_by_index(
    lists: RankedLists,
    attention: Array,
    index_of: Callable[[Items], Array],
    size: Array | int,
    weights: Array | None = None,
) -> list[Array]:
    """The attention to the items, added up by an index of each, `[size]`.

    One array for each cutoff. Under ties, each item receives the mean attention to the
    ranks of its group.

    Args:
        lists: The recommended items.
        attention: The attention to each rank, `[D]`.
        index_of: Returns the index of each item, int64 `[B, D]`.
        size: The number of indexes.
        weights: The weight of each query, `[B]`; None is 1.
    """
    is_above = lists.ranks[:, xp.newaxis] <= lists.k  # [D, C]
    by_cutoff = xp.where(is_above, attention[:, xp.newaxis], 0)
    exists = lists.ranked.valid[..., xp.newaxis]

    def added_up(amounts: Array, items: Items) -> list[Array]:
        if weights is not None:
            amounts = amounts * weights[:, xp.newaxis, xp.newaxis]
        index = xp.reshape(index_of(items), [-1])
        return [
            xp.segment_sum(xp.reshape(amounts[..., c], [-1]), index, size)
            for c in range(len(lists.cutoffs))
        ]

    def mean(groups: TieGroups) -> list[Array]:
        sums = xp.pad(xp.cumulative_sum(by_cutoff, axis=0), [[1, 0], [0, 0]])
        of_groups = xp.take(sums, groups.end, axis=0)
        of_groups = of_groups - xp.take(sums, groups.start, axis=0)
        shown = xp.where(exists, of_groups / groups.sizes[..., xp.newaxis], 0)
        if groups.last_items is None:
            return added_up(shown, lists.ranked)
        above = xp.where(groups.is_last[..., xp.newaxis], 0, shown)
        last = xp.where(groups.last_items[..., xp.newaxis], shown[:, -1:], 0)
        parts = added_up(above, lists.ranked), added_up(last, lists.listed)
        return [of_above + of_last for of_above, of_last in zip(*parts, strict=True)]

    def untied() -> list[Array]:
        return added_up(xp.where(exists, by_cutoff, 0), lists.ranked)

    if lists.ties is None:
        return untied()
    return lists.ties.if_any(mean, untied)
