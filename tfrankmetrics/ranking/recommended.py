"""Which items are recommended, rather than whether they are relevant.

The metrics of coverage, popularity, novelty, diversity and fairness ask how often, and
how high, each item is shown. Under ties an item is shown at a rank with a probability:
if t tied items share the ranks a + 1 ... a + t, each of them is at each of these ranks
with the probability 1 / t. Therefore, a sum over the items shown is exact if each of
the t items receives the mean over these ranks.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.item_data import ItemCategories, ItemData
from tfrankmetrics.ranking.items import is_retrieved
from tfrankmetrics.ranking.order import rank_by_score
from tfrankmetrics.ranking.ranked_lists import depth_for
from tfrankmetrics.ranking.ties import TieBreaking, TieGroups, TiesOfBatch


class Shown(NamedTuple):
    """How much of each item is shown down to each cutoff, from 0 to its attention.

    Not all items of the tied group at the last rank have a rank. Therefore, `at_ranks`
    is 0 in this group, and `last` is how much each of its items is shown.
    """

    at_ranks: Array  # [B, C, D]
    last: Array  # [B, C]

    def times(self, weights: Array) -> Shown:
        """The same, weighted by query, `[B]`."""
        weights = weights[:, xp.newaxis]
        return Shown(self.at_ranks * weights[..., xp.newaxis], self.last * weights)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Recommended:
    """The recommended items of each query, which formulas of an `ItemMetric` read.

    The axes of arrays: B queries, C cutoffs, D ranks down to the deepest cutoff, and V
    items in the catalog. The formula reads `k`, `ranks` and `number`, and calls `sum`
    and `pair_sums`, which are exact means under ties.

    >>> import tfrankmetrics as tfr
    >>> def mean_price(recommended, *, popularity):
    ...     total = recommended.sum(popularity)
    ...     return recommended.xp.divide_no_nan(total, recommended.number)

    `recommended.xp` provides array operations that follow the Python array API
    standard, and `divide_no_nan`, which returns 0 where the denominator is 0.
    """

    at_ranks: Array  # [B, D] int, the item at each rank: a position in `ids`, or an id
    exists: Array  # [B, D] bool, False below the last recommended item
    ties: TiesOfBatch | None = None  # None without ties, or if they were broken
    ids: Array | None = None  # [B, N] int, the item at each position; None: itself
    query_weights: Array | None = None  # [B] float64
    cutoffs: tuple[int | None, ...] = ()

    @property
    def xp(self) -> ModuleType:
        """The operations on arrays, for the library of the items."""
        return xp

    @property
    def k(self) -> Array:
        """The cutoffs, float64 `[C]`; infinity is the whole list."""
        numbers = [math.inf if k is None else k for k in self.cutoffs]
        return xp.asarray(numbers, xp.float64, like=self.exists)

    @property
    def ranks(self) -> Array:
        """The ranks 1 ... D, float64 `[D]`."""
        depth = xp.astype(xp.shape(self.exists)[1], xp.float64, like=self.exists)
        return xp.arange(1, depth + 1, dtype=xp.float64, like=self.exists)

    @functools.cached_property
    def number(self) -> Array:
        """How many items are recommended down to each cutoff, float64 `[B, C]`."""
        exists = xp.astype(self.exists, xp.float64)
        return xp.stack([xp.sum(exists[:, :k], axis=1) for k in self.cutoffs], axis=1)

    @property
    def weights(self) -> Array:
        """The weight of each query, float64 `[B]`; 0 without recommendations."""
        weights = self.query_weights
        if weights is None:
            weights = xp.ones_like(xp.any(self.exists, axis=1), xp.float64)
        return xp.where(xp.any(self.exists, axis=1), weights, 0)

    @functools.cached_property
    def items(self) -> Array:
        """The id of the item at each rank, `[B, D]`; 0 below the last item."""
        items = self.at_ranks
        if self.ids is not None:
            items = xp.gather(self.ids, items)
        return xp.where(self.exists, xp.astype(items, xp.int64), 0)

    def are_known(self, num_items: int) -> Array:
        """Whether the ids of all recommended items are below `num_items`, `[B]`."""
        return xp.all((self.items >= 0) & (self.items < num_items), axis=1)

    def sum(self, data: ItemData | Array, attention: Array | None = None) -> Array:
        """The sum of the data of the items down to each cutoff; the mean under ties.

        Args:
            data: A number for each item, or a vector: an option, or an array that is
                computed from the `values` of an option, such as `price.values < 10`.
                For categories, the number of items of each category is summed up.
            attention: A weight for each rank, `[D]`; 1 by default.

        Returns:
            Float64 `[B, C]`, or `[B, C, G]` for vectors of length G or G categories.
        """
        shown = self._shown(attention)
        if isinstance(data, ItemCategories):
            return self._sum_by_category(data, shown)
        return self._sum(self._values(data), shown)

    def pair_sums(self, vectors: ItemData) -> Array:
        """The sum of the products of all pairs of items down to each cutoff, `[B, C]`.

        Under ties the mean: if a cutoff keeps m of t tied items, it keeps a pair of
        them with the probability m (m - 1) / (t (t - 1)).
        """
        values = self._values(vectors)
        squares = xp.sum(values * values, axis=1)
        pairs = self._pairs(values, squares, self._shown())
        if self.ties is None:
            return pairs

        def mean():
            cut, kept, size = self._cut_groups()
            share = kept / size
            of_group = self._pairs(values, squares, cut)
            # `pairs` includes both items of the group with the probability share^2, and
            # subtracts the product of an item with itself only share times.
            own = self._sum(squares, cut) * share * (1 - share) / 2
            both = xp.divide_no_nan(kept * (kept - 1), size * (size - 1))
            return pairs + (both - share * share) * of_group + own

        return xp.cond(self.ties.may_exist, mean, lambda: pairs)

    def exposure(
        self, num_items: int, attention: Array, segments: Array, num_segments: int
    ) -> Array:
        """The attention to each item, over all queries of a segment, `[C, S, V]`.

        Args:
            num_items: V.
            attention: The attention to each rank, `[D]`.
            segments: The segment of each query, int64 `[B]`.
            num_segments: S.
        """
        starts = (segments * num_items)[:, xp.newaxis]
        total = self._sum_by_index(
            self._shown(attention).times(self.weights),
            num_items,
            lambda items: starts + items,
            num_segments * num_items,
        )
        return xp.reshape(total, [len(self.cutoffs), num_segments, num_items])

    def _sum_by_category(self, categories: ItemCategories, shown: Shown) -> Array:
        """How much of each category is shown down to each cutoff, `[B, C, G]`."""
        number, queries = len(categories.names), xp.shape(self.exists)[0]
        starts = xp.arange(queries, dtype=xp.int64, like=self.exists) * number
        of_items = xp.asarray(categories.values, xp.int64, like=self.exists)
        total = self._sum_by_index(
            shown,
            len(categories),
            lambda items: starts[:, xp.newaxis] + xp.take(of_items, items, axis=0),
            queries * number,
        )
        total = xp.reshape(total, [len(self.cutoffs), queries, number])
        return self._at_cutoffs(lambda c: total[c])

    def _sum_by_index(
        self,
        shown: Shown,
        num_items: int,
        index_of: Callable[[Array], Array],
        size: Array | int,
    ) -> Array:
        """The shown parts of the items, added up by an index of each, `[C, size]`.

        Args:
            shown: How much of each item is shown.
            num_items: The number of items, V.
            index_of: Returns the index of items of each query, int64 `[B, X]`.
            size: The number of indexes.
        """

        def added_up(amounts, index):
            index = xp.reshape(index, [-1])
            return self._at_cutoffs(
                lambda c: xp.segment_sum(xp.reshape(amounts[:, c], [-1]), index, size),
                axis=0,
            )

        total = added_up(shown.at_ranks, index_of(self._clipped(num_items)))
        if self.ties is None or self.ties.groups.last_items is None:
            return total

        def with_last():
            is_here: Any = self._groups.last_items
            items = self.ids
            if items is None:
                items = xp.arange(xp.shape(is_here)[1], like=is_here)[xp.newaxis]
            items = xp.where(is_here, xp.astype(items, xp.int64), 0)
            amounts = xp.where(is_here[:, xp.newaxis], shown.last[..., xp.newaxis], 0)
            return total + added_up(amounts, index_of(items))

        return xp.cond(self.ties.may_exist, with_last, lambda: total)

    def _at_cutoffs(self, function: Callable[[int], Array], axis: int = 1) -> Array:
        """A function of the number of each cutoff, stacked along an axis."""
        return xp.stack([*map(function, range(len(self.cutoffs)))], axis=axis)

    def _values(self, data: ItemData | Array) -> Array:
        values = data.values if isinstance(data, ItemData) else data
        return xp.asarray(values, xp.float64, like=self.exists)

    def _clipped(self, num_items: int) -> Array:
        """Ids with data; an id without data makes the weight of the query NaN."""
        return xp.clip(self.items, 0, num_items - 1)

    def _shown(self, attention: Array | None = None) -> Shown:
        """How much of each item is shown down to each cutoff."""
        if attention is None:
            attention = xp.ones_like(self.ranks)
        exists = xp.astype(self.exists, xp.float64)
        is_above = self.ranks <= self.k[:, xp.newaxis]  # [C, D]
        weights = xp.where(is_above, attention, 0)
        untied = weights * exists[:, xp.newaxis]
        no_last = xp.zeros_like(xp.sum(untied, axis=2))
        if self.ties is None:
            return Shown(untied, no_last)

        def mean():
            groups = self._groups
            sizes, start = groups.sizes, groups.start
            depth = xp.shape(weights)[1]
            end = xp.minimum(start + xp.astype(sizes, xp.int32), depth)
            sums = xp.pad(xp.cumulative_sum(weights, axis=1), [[0, 0], [1, 0]])

            def sum_of_group(c):
                """The sum of the weights of all ranks of each rank's group."""
                row = sums[c]
                return xp.take(row, end, axis=0) - xp.take(row, start, axis=0)

            means = self._at_cutoffs(sum_of_group) / sizes[:, xp.newaxis]  # [B, C, D]
            means = means * exists[:, xp.newaxis]
            if groups.last_items is None:
                return means, no_last
            is_last = groups.is_last[:, xp.newaxis]
            return xp.where(is_last, xp.zeros_like(means), means), means[:, :, -1]

        return Shown(*xp.cond(self.ties.may_exist, mean, lambda: (untied, no_last)))

    def _cut_groups(self) -> tuple[Shown, Array, Array]:
        """The tied items at each cutoff, how many it keeps, and how many there are.

        The first result is 1 for each of these items, and 0 for all others.
        """
        groups = self._groups
        depth = xp.shape(self.exists)[1]
        at_ranks, last, kept, size = [], [], [], []
        for cutoff in self.cutoffs:
            k = depth if cutoff is None else xp.minimum(cutoff, depth)
            start = groups.start[:, k - 1, xp.newaxis]
            is_here = xp.equal(groups.start, start) & self.exists
            is_last = is_here & groups.is_last
            if groups.last_items is None:
                is_last = xp.zeros_like(is_last)
            at_ranks.append(xp.astype(is_here & ~is_last, xp.float64))
            last.append(xp.astype(xp.any(is_last, axis=1), xp.float64))
            kept.append(xp.astype(k - start[:, 0], xp.float64))
            size.append(groups.sizes[:, k - 1])
        shown = Shown(xp.stack(at_ranks, axis=1), xp.stack(last, axis=1))
        return shown, xp.stack(kept, axis=1), xp.stack(size, axis=1)

    def _sum(self, values: Array, shown: Shown) -> Array:
        """The sum of the shown parts of items, `[B, C]` or `[B, C, G]`."""
        here = xp.take(values, self._clipped(values.shape[0]), axis=0)
        has_vectors = here.ndim == 3

        def sum_to_cutoff(c):
            amounts = shown.at_ranks[:, c]
            amounts = amounts[:, :, xp.newaxis] if has_vectors else amounts
            return xp.sum(amounts * here, axis=1)

        total = self._at_cutoffs(sum_to_cutoff)
        if self.ties is None or self.ties.groups.last_items is None:
            return total
        last = shown.last[:, :, xp.newaxis] if has_vectors else shown.last

        def with_last():
            of_group = xp.sum_chosen(self._groups.last_items, values, self.ids)
            return total + last * of_group[:, xp.newaxis]

        return xp.cond(self.ties.may_exist, with_last, lambda: total)

    def _pairs(self, values: Array, squares: Array, shown: Shown) -> Array:
        """(|sum|^2 - sum of squares) / 2, `[B, C]`."""
        sums = self._sum(values, shown)
        return (xp.sum(sums * sums, axis=2) - self._sum(squares, shown)) / 2

    @property
    def _groups(self) -> TieGroups:
        """The groups of tied items; `ties` must not be None."""
        return self.ties.groups  # type: ignore[union-attr]


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
) -> Recommended:
    """The items with the highest scores, by their positions."""
    depth = depth_for(deepest, scores)
    retrieved = is_retrieved(scores)
    at_ranks, ties = rank_by_score(
        scores,
        depth,
        tie_breaking,
        lambda order: order,
        lambda gain: scores,
        retrieved,
    )
    number = xp.count_nonzero(retrieved)[:, xp.newaxis]
    exists = xp.arange(depth, dtype=xp.float64, like=scores) < number
    return Recommended(at_ranks=at_ranks, exists=exists, ties=ties)
