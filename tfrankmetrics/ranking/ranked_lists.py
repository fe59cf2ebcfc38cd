"""Ranked lists, which every formula reads, whatever the input format was.

`ranking/ranked_items.py` explains the axes of the tensors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.ranking import stops, ties
from tfrankmetrics.ranking.items import DerivedGain, ItemGain, Items, count
from tfrankmetrics.ranking.ranked_items import RankedItems, cached
from tfrankmetrics.ranking.ties import TieGroups, TiesOfBatch


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class RankedLists(RankedItems):
    """Lists ranked by score down to the deepest cutoff, which formulas read.

    A formula reads `k`, `cutoffs` and `ranks`, and calls `expected`, `sum_to_cutoffs`,
    `at_cutoffs`, `running_sums`, `total`, `ideal`, `weighted`, `first_relevant`,
    `relevant_down_to` and `first_stop`. It may also read `ranked`, `judged`,
    `num_retrieved` and `num_judged`. The other members are internal.

    The number of ranks, D, may be larger than a cutoff. Therefore, sum over ranks with
    `sum_to_cutoffs`, which stops at each cutoff. For a gain `[B, D, T]`, `expected` has
    this shape, too.

    `ranked` contains the retrieved items by rank. `judged` contains all items with a
    label, in any order; in a catalogue, only the relevant items. An item that was not
    retrieved (its score is -inf) is only in `judged`: it has no rank, and is treated as
    missed.

    With ties="expected", `expected`, `first_relevant`, `relevant_down_to` and
    `first_stop` return means over all permutations of tied items, as explained in
    `ranking/ties.py`. Therefore, a formula that is linear in these results is exact,
    too:

    >>> def recall(lists, relevance):
    ...     hits = lists.sum_to_cutoffs(lists.expected(relevance))  # [B, C]
    ...     return lists.xp.divide_no_nan(hits, lists.total(relevance)[:, None])

    `lists.xp` provides array operations that follow the Python array API standard, and
    `divide_no_nan`, which returns 0 where the denominator is 0. TensorFlow operations
    can also be used.
    """

    ties: TiesOfBatch | None  # None where ties were broken one by one
    query_weights: Array | None  # [B]
    num_retrieved: Array  # [B] float64
    # [B] float64, the retrieved and the missed items. A list with 0 is excluded.
    num_judged: Array
    num_weighted: Array | None = None  # [B] float64, as in `LabelLists`

    def if_tied(self, exact: Callable[[TieGroups], Any], untied: Any) -> Any:
        """`exact(groups)` if there may be ties, and otherwise `untied`.

        Because `exact` is built inside an `xp.cond`, it must not use cached methods of
        this class: a tensor from inside is not valid outside.
        """
        if self.ties is None:
            return untied
        groups = self.ties.groups
        return xp.cond(self.ties.may_exist, lambda: exact(groups), lambda: untied)

    @cached
    def at_ranks(self, gain: ItemGain) -> Array:
        """The gain of the item at each rank, in one order of tied items, `[B, D]`."""
        return gain(self.ranked)

    @cached
    def group_sums(self, gain: ItemGain) -> tuple[Array, Array]:
        """Sum and mean of the gains of all items tied with the one at each rank."""
        gains = self.at_ranks(gain)

        def sum_of(which):
            return gain.sum(self.judged, which)

        return self.if_tied(
            lambda groups: ties.group_sums(self, groups, gains, sum_of), (gains, gains)
        )

    def expected(self, gain: ItemGain) -> Array:
        """Mean gain at each rank, `[B, D]`."""
        return self.group_sums(gain)[1]

    def first_stop(self, stop: ItemGain) -> Array:
        """Probability that a user stops at each rank, `[B, D]`.

        The user reads from the top, and stops at an item with the probability `stop`.
        """
        p = xp.where(self.ranked.retrieved, self.at_ranks(stop), 0)
        return self.if_tied(
            lambda groups: stops.first_stop(self, groups, stop, p),
            p * xp.cumulative_prod(1 - p, axis=1, exclusive=True),
        )

    @cached
    def first_relevant(self, relevance: ItemGain) -> Array:
        """Probability that the first relevant item is at each rank, `[B, D]`."""
        relevant, sums = self.at_ranks(relevance), self.group_sums(relevance)[0]
        return self.if_tied(
            lambda groups: ties.first_relevant(self, groups, sums),
            xp.select(self.running_sums(relevant) <= 1, relevant, 0),
        )

    @cached
    def last_relevant(self, relevance: ItemGain) -> Array:
        """Mean rank of the last relevant item tied with the one at each rank, `[B, D]`.

        0 where none of these items is relevant.
        """
        relevant, sums = self.at_ranks(relevance), self.group_sums(relevance)[0]
        return self.if_tied(
            lambda groups: ties.last_relevant(self, groups, sums),
            xp.where(relevant > 0, self.ranks, 0),
        )

    @cached
    def relevant_down_to(self, relevance: ItemGain) -> Array:
        """Mean number of relevant items at ranks 1 ... p if the item at p is relevant.

        For each rank p, `[B, D]`.
        """
        relevant, sums = self.at_ranks(relevance), self.group_sums(relevance)
        return self.if_tied(
            lambda groups: ties.relevant_down_to(self, groups, *sums),
            self.running_sums(relevant),
        )

    def mean_over_hits(self, relevance: ItemGain, precisions: Array) -> Array:
        """(Sum of precisions down to a cutoff) / (relevant items down to it), `[B, C]`.

        `precisions` is the mean of precision * relevance at each rank, `[B, D]`.
        """
        sums = self.group_sums(relevance)
        hits = self.sum_to_cutoffs(sums[1])
        untied = xp.divide_no_nan(self.sum_to_cutoffs(precisions), hits)
        return self.if_tied(
            lambda groups: ties.mean_over_hits(self, groups, *sums, precisions, untied),
            untied,
        )

    def irrelevant_above(self, relevance: ItemGain, maximum: Array) -> Array:
        """Mean number of irrelevant items above a relevant item, at most `maximum`.

        For each rank, if its item is relevant, `[B, D]`; `maximum` is `[B, 1]`.
        """
        relevant, sums = self.at_ranks(relevance), self.group_sums(relevance)
        above = self.ranks - self.running_sums(relevant)
        return self.if_tied(
            lambda groups: ties.irrelevant_above(self, groups, *sums, maximum),
            xp.minimum(above, maximum),
        )

    @cached
    def depends_on_order(self, gain: ItemGain) -> Array:
        """1 where a rank's group of ties has unequal gains, or weights, `[B, D]`."""
        gains, untied = self.at_ranks(gain), xp.zeros_like(self.at_ranks(gain))
        return self.if_tied(
            lambda groups: ties.depends_on_order(
                self, groups, gains, gain(self.judged)
            ),
            untied,
        )

    @cached
    def total(self, gain: ItemGain) -> Array:
        """Sum of the gains of all judged items, `[B]`."""
        return gain.sum(self.judged)

    @cached
    def largest(self, gain: ItemGain) -> Array:
        """The largest gain of a judged item, `[B]`."""
        # Without any item the maximum is -inf.
        if not gain.increases_with_label:
            return xp.maximum(xp.max(gain(self.judged), axis=1), 0)
        labels = xp.max(self.judged.labels, axis=1, keepdims=True)
        return gain(Items.retrieved_with(xp.maximum(labels, 0)))[:, 0]

    @cached
    def ideal(self, gain: ItemGain) -> Array:
        """The gains of the ideal order: the D largest, descending, `[B, D]`."""
        if gain.increases_with_label:
            return gain(Items.retrieved_with(self._largest_labels()))
        return self._largest(gain(self.judged))

    @cached
    def _largest_labels(self) -> Array:
        """The D largest labels of the judged items, `[B, D]`."""
        return self._largest(self.judged.labels)

    def _largest(self, values: Array) -> Array:
        """The D largest of the judged items' `values` in descending order, `[B, D]`."""
        # In a catalogue only the relevant items are judged, and there may be few.
        number = xp.minimum(self.depth, xp.shape(values)[1])
        if values.dtype == xp.float32:
            best, _ = xp.top_k(values, number)
        else:
            best = _top_float64(values, number)
        return xp.pad(best, [[0, 0], [0, self.depth - number]])

    @cached
    def weights(self, gain: ItemGain) -> Array:
        """Weight of each query, float64 `[B]`; 0 for a list of padding.

        With one weight w for each item it is sum(w * gain) / sum(gain), or the mean of
        the weights where all gains are 0, also of items that a weight of 0 masks.
        Otherwise it is the weight of the query, or 1.
        """
        if self.judged.weights is not None:
            total = self.total(gain)
            weighted = xp.sum(gain(self.judged) * self.judged.weights, axis=1)
            number = self.num_judged if self.num_weighted is None else self.num_weighted
            mean = xp.divide_no_nan(xp.sum(self.judged.weights, axis=1), number)
            weights = xp.where(xp.equal(total, 0), mean, weighted / total)
        elif self.query_weights is not None:
            weights = self.query_weights
        else:
            weights = xp.ones_like(self.num_retrieved)
        return xp.where(self.num_judged > 0, weights, 0)

    def relative_weights(self, gain: ItemGain) -> ItemGain:
        """The item's weight divided by the query's weight; 1 without item weights.

        The query's weight is the mean of the item weights, weighted by `gain`. Dividing
        by it preserves the sum of the gains of a list.
        """
        if self.judged.weights is None:
            return DerivedGain(lambda items: xp.astype(items.valid, xp.float64))
        query_weights = self.weights(gain)[:, xp.newaxis]
        return DerivedGain(lambda items: xp.divide_no_nan(items.weights, query_weights))

    @cached
    def weighted(self, gain: ItemGain, of_query: ItemGain | None = None) -> ItemGain:
        """`gain` times the item's weight, relative to the query's weight.

        The query's weight is the mean weighted by the gain `of_query`, by default
        `gain`.
        """
        if self.judged.weights is None:
            return gain
        weight = self.relative_weights(of_query or gain)
        return DerivedGain(lambda items: gain(items) * weight(items))


def _top_float64(values: Array, number: Array) -> Array:
    """The largest float64 `values` `[B, J]` in descending order, `[B, number]`.

    XLA has a fast top_k for float32 only. Rounding to float32 keeps the order, except
    among numbers that round to the same one: these few lists are sorted in float64.
    """
    _, order = xp.top_k(xp.astype(values, xp.float32), number)
    best = xp.gather(values, order)
    lowest = xp.min(best, axis=1, keepdims=True)
    is_sorted = xp.all(best[:, 1:] <= best[:, :-1])
    is_complete = xp.all(xp.equal(count(values > lowest), count(best > lowest)))
    return xp.cond(
        is_sorted & is_complete,
        lambda: best,
        lambda: xp.top_k(values, number)[0],
    )
