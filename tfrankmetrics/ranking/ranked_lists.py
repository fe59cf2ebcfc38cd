"""Ranked lists, which every formula reads, whatever the input format was.

The axes of all tensors: B queries, J listed items, D ranks down to the deepest cutoff
(see `depth_for`), and C cutoffs.

The D ranks are 1 ... D, with one exception: of a large catalog without a cutoff, only
some are read (see `some_ranks`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar, cast

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.graphs import current_scope
from tfrankmetrics.ranking import stops, ties
from tfrankmetrics.ranking.items import DataGain, DerivedGain, ItemGain, Items, count
from tfrankmetrics.ranking.ties import TiesOfBatch

Method = TypeVar("Method", bound=Callable[..., Any])


def cached(method: Method) -> Method:
    """Caches the result of a method for each gain, which many metrics share.

    The key includes the scope: a branch or a loop of a formula has a separate one.
    """

    @functools.wraps(method)
    def from_cache(self: RankedLists, *gain: ItemGain) -> Any:
        # NumPy's arrays, which have values, belong to no scope.
        is_array = isinstance(self.listed.labels, np.ndarray)
        key = method.__name__, *gain, None if is_array else current_scope()
        if key not in self.cache:
            self.cache[key] = method(self, *gain)
        return self.cache[key]

    return cast(Method, from_cache)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class RankedLists:
    """Lists ranked by score down to the deepest cutoff, which formulas read.

    A formula reads `k`, `cutoffs` and `ranks` and calls `expected`, `sum_to_cutoffs`,
    `at_cutoffs`, `running_sums`, `total`, `ideal`, `weighted`, `first_relevant`,
    `relevant_down_to` and `first_stop`. It may also read `ranked`, `listed`,
    `num_retrieved` and `num_listed`. The other members are internal.

    The number of ranks, D, may be larger than a cutoff. Sum over ranks with
    `sum_to_cutoffs`, which stops at each cutoff. For a gain `[B, D, T]`, `expected`
    also has this shape.

    `ranked` contains the retrieved items by rank. `listed` contains all items with a
    label, in any order; in a catalog, only the relevant items. An item that was not
    retrieved (its score is -inf) is only in `listed`: it has no rank and counts as
    missed.

    The formula of an `ItemMetric` receives lists of recommended items, without labels.
    The gain of an item is a number from the data about it: `DataGain`.

    With ties="expected", `expected`, `first_relevant`, `relevant_down_to` and
    `first_stop` return means over all permutations of tied items, as explained in
    `ranking/ties.py`. A formula that is linear in these results is also exact:

    >>> def recall(lists, relevance):
    ...     hits = lists.sum_to_cutoffs(lists.expected(relevance))  # [B, C]
    ...     return lists.xp.divide_no_nan(hits, lists.total(relevance)[:, None])

    `lists.xp` provides array operations that follow the Python array API standard, and
    `divide_no_nan`, which returns 0 where the denominator is 0. TensorFlow operations
    can also be used.
    """

    ranked: Items  # [B, D]
    listed: Items  # [B, J], in any order
    deepest: int | None  # the deepest cutoff that can be read; None is the whole list
    ties: TiesOfBatch | None  # None where ties were broken one by one, or are none
    query_weights: Array | None  # [B]
    num_retrieved: Array  # [B] float64
    # [B] float64, the retrieved and the missed items. A list with 0 is excluded.
    num_listed: Array
    num_weighted: Array | None = None  # [B] float64, as in `LabelLists`
    # Ascending and unique, at most `deepest`; None, the whole list, is the last.
    cutoffs: tuple[int | None, ...] = ()
    # The ranks that are read, ascending, float64 [B, D], if they are not 1 ... D: those
    # down to the deepest cutoff and to the number of relevant items, and below them
    # only the ranks of the relevant items and of all that are tied with these. The
    # other ranks add nothing to a sum.
    some_ranks: Array | None = None
    cache: dict[tuple, Any] = dataclasses.field(default_factory=dict)

    @property
    def xp(self) -> ModuleType:
        """The operations on arrays, for the library of the lists."""
        return xp

    @property
    def k(self) -> Array:
        """The cutoffs, float64 `[C]`; infinity is the whole list."""
        numbers = [math.inf if k is None else k for k in self.cutoffs]
        return xp.asarray(numbers, xp.float64, like=self.ranked.valid)

    @property
    @cached
    def depth(self) -> Array | int:
        """D, the number of ranks."""
        known = xp.known_size(self.ranked.valid)
        return xp.shape(self.ranked.valid)[1] if known is None else known

    @property
    def ranks(self) -> Array:
        """The ranks 1 ... D, float64 `[D]`, or `some_ranks` `[B, D]`."""
        return self.positions if self.some_ranks is None else self.some_ranks

    @property
    @cached
    def positions(self) -> Array:
        """The numbers 1 ... D, float64 `[D]`.

        They are also the ranks down to every cutoff.
        """
        if isinstance(self.depth, int):
            ranks = np.arange(1, self.depth + 1)
            return xp.asarray(ranks, xp.float64, like=self.ranked.valid)
        return xp.arange(1, xp.astype(self.depth, xp.float64) + 1, dtype=xp.float64)

    @property
    def num_to_cutoffs(self) -> Array:
        """How many items are retrieved down to each cutoff, float64 `[B, C]`."""
        return xp.minimum(self.k, self.num_retrieved[:, xp.newaxis])

    @cached
    def powers(self, base: float) -> Array:
        """base^(rank - 1) at each rank, which takes long where it underflows."""
        return base ** (self.ranks - 1)

    def sum_to_cutoffs(self, values: Array) -> Array:
        """Sum of float64 `values` `[B, D]` over ranks 1 ... k, `[B, C]`.

        `[B, C, T]` for values `[B, D, T]`.
        """
        if self._is_shallow and values.ndim == 2:
            return xp.matmul(values, self._is_down_to_each_cutoff)
        return xp.stack([xp.sum(values[:, :k], axis=1) for k in self.cutoffs], axis=1)

    def running_sums(self, values: Array) -> Array:
        """Sum of float64 `values` `[B, D]` down to each rank, of the same shape."""
        if self._is_shallow and values.ndim == 2:
            return xp.matmul(values, self._is_down_to_each_rank)
        return xp.cumulative_sum(values, axis=1)

    @property
    def _is_down_to_each_cutoff(self) -> Array:
        """1 where the row, a rank, is at most the column, a cutoff, and 0 elsewhere.

        It is not cached, since copies of these lists with other cutoffs share `cache`.
        """
        if not isinstance(self.depth, int):
            return xp.astype(self.positions[:, xp.newaxis] <= self.k, xp.float64)
        positions = np.arange(1, self.depth + 1)[:, np.newaxis]
        is_down_to = [positions <= (math.inf if k is None else k) for k in self.cutoffs]
        return xp.asarray(
            np.concatenate(is_down_to, axis=1), xp.float64, like=self.ranked.valid
        )

    @property
    @cached
    def _is_down_to_each_rank(self) -> Array:
        """1 where the row, a rank, is at most the column, a rank, and 0 elsewhere."""
        return xp.astype(self.positions[:, xp.newaxis] <= self.positions, xp.float64)

    @property
    def _is_shallow(self) -> bool:
        """Whether TensorFlow or PyTorch reads at most 64 ranks.

        In this case a product with a matrix of zeros and ones is faster than tf.cumsum,
        and than a sum for each cutoff. NumPy would compute the product with BLAS, whose
        order of summation depends on the processor.
        """
        if xp.library_of(self.ranked.valid) not in ("tensorflow", "torch"):
            return False
        if isinstance(self.depth, int):
            return self.depth <= 64
        return self.deepest is not None and self.deepest < 64

    def at_cutoffs(self, curve: Array) -> Array:
        """The value of a curve over the ranks, `[B, D]`, at each cutoff, `[B, C]`.

        Below the end of a list the curve stays constant.
        """
        curve = ties.from_rank_0(curve)  # for lists without any item
        ranks = xp.minimum(self.k, xp.astype(self.depth, xp.float64, like=curve))
        return xp.take(curve, xp.astype(ranks, xp.int32), axis=1)

    def if_tied(self, untied: Any, exact: Callable[..., Any], *arguments: Any) -> Any:
        """`exact(self, groups, *arguments)` if there may be ties, otherwise `untied`.

        `exact` is built inside an `xp.cond`. A cached method that it calls is computed
        there anew, since a tensor from inside is not valid outside.
        """
        if self.ties is None:
            return untied
        return self.ties.if_any(
            lambda groups: exact(self, groups, *arguments), lambda: untied
        )

    @cached
    def at_ranks(self, gain: ItemGain) -> Array:
        """The gain of the item at each rank, in one order of tied items, `[B, D]`."""
        return gain(self.ranked)

    @cached
    def group_sums(self, gain: ItemGain) -> tuple[Array, Array]:
        """Sum and mean of the gains of all items tied with the one at each rank."""
        gains = self.at_ranks(gain)
        sum_of = functools.partial(gain.sum, self.listed)
        return self.if_tied((gains, gains), ties.group_sums, gains, sum_of)

    def expected(self, gain: ItemGain) -> Array:
        """Mean gain at each rank, `[B, D]`."""
        return self.group_sums(gain)[1]

    def pair_sums(self, vectors: DataGain) -> Array:
        """The sum of the products of all pairs of items down to each cutoff, `[B, C]`.

        The product of two vectors is the sum of those of their numbers.
        """
        squares = DataGain(xp.sum(vectors.values * vectors.values, axis=1))
        sums, means = self.group_sums(vectors)
        square_sums, square_means = self.group_sums(squares)
        pairs = ties.products_of_pairs(
            self.sum_to_cutoffs(means), self.sum_to_cutoffs(square_means)
        )
        return self.if_tied(pairs, ties.pair_sums, sums, square_sums, pairs)

    @cached
    def first_stop(self, stop: ItemGain) -> Array:
        """Probability that a user stops at each rank, `[B, D]`.

        The user reads from the top and stops at an item with the probability `stop`.
        """
        p = xp.where(self.ranked.retrieved, self.at_ranks(stop), 0)
        untied = p * xp.cumulative_prod(1 - p, axis=1, exclusive=True)
        return self.if_tied(untied, stops.first_stop, stop, p)

    @cached
    def first_relevant(self, relevance: ItemGain) -> Array:
        """Probability that the first relevant item is at each rank, `[B, D]`."""
        relevant, sums = self.at_ranks(relevance), self.group_sums(relevance)[0]
        untied = xp.select(self.running_sums(relevant) <= 1, relevant, 0)
        return self.if_tied(untied, ties.first_relevant, sums)

    @cached
    def last_relevant(self, relevance: ItemGain) -> Array:
        """Probability that the last of all relevant items is at each rank, `[B, D]`.

        It is 0 at each rank if a relevant item was not retrieved.
        """
        relevant, sums = self.at_ranks(relevance), self.group_sums(relevance)
        total = self.total(relevance)[:, xp.newaxis]
        is_last = xp.equal(self.running_sums(relevant), total)
        untied = xp.where(is_last, relevant, 0)
        return self.if_tied(untied, ties.last_relevant, *sums, total)

    @cached
    def last_relevant_of_group(self, relevance: ItemGain) -> Array:
        """Mean rank of the last relevant item tied with the one at each rank, `[B, D]`.

        0 where none of these items is relevant. The rank may be below the cutoff.
        """
        relevant, sums = self.at_ranks(relevance), self.group_sums(relevance)[0]
        untied = xp.where(relevant > 0, self.ranks, 0)
        return self.if_tied(untied, ties.last_relevant_of_group, sums)

    @cached
    def relevant_down_to(self, relevance: ItemGain) -> Array:
        """Mean number of relevant items at ranks 1 ... p if the item at p is relevant.

        For each rank p, `[B, D]`.
        """
        relevant, sums = self.at_ranks(relevance), self.group_sums(relevance)
        untied = self.running_sums(relevant)
        return self.if_tied(untied, ties.relevant_down_to, *sums)

    def mean_over_hits(self, relevance: ItemGain, precisions: Array) -> Array:
        """(Sum of precisions down to a cutoff) / (relevant items down to it), `[B, C]`.

        `precisions` is the mean of precision * relevance at each rank, `[B, D]`.
        """
        sums = self.group_sums(relevance)
        hits = self.sum_to_cutoffs(sums[1])
        untied = xp.divide_no_nan(self.sum_to_cutoffs(precisions), hits)
        return self.if_tied(untied, ties.mean_over_hits, *sums, precisions, untied)

    def irrelevant_above(self, relevance: ItemGain, maximum: Array) -> Array:
        """Mean number of irrelevant items above a relevant item, at most `maximum`.

        For each rank, if its item is relevant, `[B, D]`; `maximum` is `[B, 1]`.
        """
        relevant, sums = self.at_ranks(relevance), self.group_sums(relevance)
        above = self.ranks - self.running_sums(relevant)
        untied = xp.minimum(above, maximum)
        return self.if_tied(untied, ties.irrelevant_above, *sums, maximum)

    @cached
    def depends_on_order(self, gain: ItemGain) -> Array:
        """1 where a rank's group of ties has unequal gains, or weights, `[B, D]`."""
        gains = self.at_ranks(gain)
        return self.if_tied(xp.zeros_like(gains), ties.depends_on_order, gain, gains)

    @cached
    def total(self, gain: ItemGain) -> Array:
        """Sum of the gains of all judged items, `[B]`."""
        return gain.sum(self.listed)

    @cached
    def largest(self, gain: ItemGain) -> Array:
        """The largest gain of a judged item, `[B]`."""
        # Without any item the maximum is -inf.
        if not gain.increases_with_label:
            return xp.maximum(xp.max(gain(self.listed), axis=1), 0)
        labels = xp.max(self.listed.labels, axis=1, keepdims=True)
        return gain(Items.retrieved_with(xp.maximum(labels, 0)))[:, 0]

    @cached
    def ideal(self, gain: ItemGain) -> Array:
        """The gains of the ideal order: the D largest, descending, `[B, D]`."""
        if gain.increases_with_label:
            return gain(Items.retrieved_with(self._largest_labels()))
        return _largest(gain(self.listed), self.depth)

    @cached
    def _largest_labels(self) -> Array:
        """The D largest labels of the judged items, `[B, D]`."""
        return _largest(self.listed.labels, self.depth)

    @cached
    def weights(self, gain: ItemGain | None = None) -> Array:
        """Weight of each query, float64 `[B]`; 0 for a list of padding.

        With one weight w for each item it is sum(w * gain) / sum(gain), or the mean of
        the weights where all gains are 0, including items that a weight of 0 masks.
        Otherwise, and without a gain, it is the weight of the query, or 1.
        """
        if gain is not None and self.listed.weights is not None:
            total = self.total(gain)
            weighted = xp.sum(gain(self.listed) * self.listed.weights, axis=1)
            number = self.num_listed if self.num_weighted is None else self.num_weighted
            mean = xp.divide_no_nan(xp.sum(self.listed.weights, axis=1), number)
            weights = xp.where(xp.equal(total, 0), mean, weighted / total)
        elif self.query_weights is not None:
            weights = self.query_weights
        else:
            weights = xp.ones_like(self.num_retrieved)
        return xp.where(self.num_listed > 0, weights, 0)

    def relative_weights(self, gain: ItemGain) -> ItemGain:
        """The item's weight divided by the query's weight; 1 without item weights.

        The query's weight is the mean of the item weights, weighted by `gain`. Dividing
        by it preserves the sum of the gains of a list.
        """
        if self.listed.weights is None:
            return DerivedGain(lambda items: xp.astype(items.valid, xp.float64))
        query_weights = self.weights(gain)[:, xp.newaxis]
        return DerivedGain(lambda items: xp.divide_no_nan(items.weights, query_weights))

    @cached
    def weighted(self, gain: ItemGain, of_query: ItemGain | None = None) -> ItemGain:
        """`gain` times the item's weight, relative to the query's weight.

        The query's weight is the mean weighted by the gain `of_query`, by default
        `gain`.
        """
        if self.listed.weights is None:
            return gain
        weight = self.relative_weights(of_query or gain)
        return DerivedGain(lambda items: gain(items) * weight(items))


def depth_for(deepest: int | None, lists: Array) -> Array | int:
    """How deep to rank lists `[B, N]` for the deepest cutoff, at most N.

    One rank deeper: if the cutoff cuts a group of ties, the last two ranks have equal
    scores.
    """
    size = xp.known_size(lists)
    if size is None:
        size = xp.shape(lists)[1]
        return size if deepest is None else xp.minimum(deepest, size - 1) + 1
    return size if deepest is None else min(deepest + 1, size)


def _largest(values: Array, depth: Array | int) -> Array:
    """The D largest of the `values` `[B, J]` in descending order, `[B, D]`.

    XLA has a fast top_k for float32 only. Rounding to float32 keeps the order, except
    among numbers that round to the same one: these few lists are sorted in float64.
    """
    # In a catalog only the relevant items are judged, and there may be few.
    number = xp.minimum(depth, xp.shape(values)[1])
    best, order = xp.top_k(xp.astype(values, xp.float32), number)
    if xp.dtype_of(values) != np.float32:
        best = xp.gather(values, order)
        lowest = xp.min(best, axis=1, keepdims=True)
        is_sorted = xp.all(best[:, 1:] <= best[:, :-1])
        is_complete = xp.all(xp.equal(count(values > lowest), count(best > lowest)))
        best = xp.cond(
            ~(is_sorted & is_complete),
            lambda: xp.top_k(values, number)[0],
            lambda: best,
        )
    return xp.pad(best, [[0, 0], [0, depth - number]])
