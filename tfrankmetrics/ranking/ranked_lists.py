"""Ranked lists: what every formula reads, whatever the input format was.

The axes of all tensors: B queries, J judged items, D ranks down to the deepest cutoff
(see `depth_for`), and C cutoffs.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import tensorflow as tf

from tfrankmetrics.ranking import ties
from tfrankmetrics.ranking.items import DerivedGain, ItemGain, Items, count, select

if TYPE_CHECKING:
    from tfrankmetrics.ranking.ties import LazyTieGroups, TieGroups

Method = TypeVar("Method", bound=Callable[..., Any])


def cached_per_gain(*, depends_on_ties: bool) -> Callable[[Method], Method]:
    """Caches the result of a method for each gain, since many metrics share one.

    Formulas run twice, without tie groups and with them. Both runs share the results
    that do not depend on ties.
    """

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def cached(self: RankedLists, gain: ItemGain) -> Any:
            has_groups = depends_on_ties and self.groups is not None
            key = method.__name__, gain, has_groups
            if key not in self.cache:
                self.cache[key] = method(self, gain)
            return self.cache[key]

        return cast(Method, cached)

    return decorate


@dataclasses.dataclass(frozen=True, eq=False)
class RankedLists:
    """Lists ranked by score down to the deepest cutoff: what a formula reads.

    A formula reads `k` and `ranks`, and calls `expected`, `sum_to_cutoffs`,
    `at_cutoffs`, `running_sums`, `total`, `ideal`, `weighted`, `first_relevant`,
    `relevant_down_to` and `first_stop`. It may also read `ranked`, `judged`,
    `num_retrieved` and `num_judged`. The other members are internal.

    The number of ranks, D, may be larger than a cutoff. So sum over ranks with
    `sum_to_cutoffs`, which stops at each cutoff. For a gain `[B, D, T]`, `expected` has
    this shape, too.

    `ranked` holds the retrieved items by rank. `judged` holds all items with a label,
    in any order; in a catalogue, only the relevant items. An item that was not
    retrieved (its score is -inf) is only in `judged`: it has no rank, and counts as
    missed.

    With ties="expected", `expected`, `first_relevant`, `relevant_down_to` and
    `first_stop` give means over all orders of the items that share a score.
    `ranking/ties.py` explains how. So a formula that is linear in these results is
    exact, too:

    >>> import tensorflow as tf
    >>> def recall(lists, relevance):
    ...     hits = lists.sum_to_cutoffs(lists.expected(relevance))  # [B, C]
    ...     return tf.math.divide_no_nan(hits, lists.total(relevance)[:, tf.newaxis])
    """

    ranked: Items  # [B, D]
    judged: Items  # [B, J]
    ties: LazyTieGroups | None  # None where ties were broken one by one
    query_weights: tf.Tensor | None  # [B]
    cutoffs: tuple[int | None, ...]  # ascending and unique; None is the whole list
    num_retrieved: tf.Tensor  # [B] float64
    # [B] float64, the retrieved and the missed items. A list with 0 does not count.
    num_judged: tf.Tensor
    groups: TieGroups | None = None  # None also where no list has a tie
    cut: Items | None = None  # [B, J], the judged items in a group that is cut
    cache: dict[tuple, Any] = dataclasses.field(default_factory=dict)

    def with_tie_groups(self, ranked: Items, groups: TieGroups) -> RankedLists:
        """The same lists with their groups of tied items."""
        cut = None
        if groups.cut_items is not None:
            cut = self.judged.only(groups.cut_items & self.judged.retrieved)
        # The copy has its own cache: tensors made in a branch of tf.cond cannot be
        # used outside it.
        return dataclasses.replace(
            self, ranked=ranked, groups=groups, cut=cut, cache=dict(self.cache)
        )

    @property
    def k(self) -> tf.Tensor:
        """The cutoffs, float64 `[C]`; infinity is the whole list."""
        numbers = [math.inf if k is None else k for k in self.cutoffs]
        return tf.constant(numbers, tf.float64)

    @property
    def depth(self) -> tf.Tensor | int:
        """D, the number of ranks."""
        known = self.ranked.valid.shape[1]
        return tf.shape(self.ranked.valid)[1] if known is None else known

    @property
    def ranks(self) -> tf.Tensor:
        """The numbers 1 ... D, float64 `[D]`."""
        return tf.range(1, tf.cast(self.depth, tf.float64) + 1, dtype=tf.float64)

    def sum_to_cutoffs(self, values: tf.Tensor) -> tf.Tensor:
        """Sum of float64 `values` `[B, D]` over ranks 1 ... k, `[B, C]`."""
        if self._is_shallow:
            return _sums_where(self.ranks[:, tf.newaxis] <= self.k, values)
        parts = [values if k is None else values[:, :k] for k in self.cutoffs]
        return tf.stack([tf.reduce_sum(part, axis=1) for part in parts], axis=1)

    def running_sums(self, values: tf.Tensor) -> tf.Tensor:
        """Sum of float64 `values` `[B, D]` down to each rank, `[B, D]`."""
        if self._is_shallow:
            return _sums_where(self.ranks[:, tf.newaxis] <= self.ranks, values)
        return tf.cumsum(values, axis=1)

    @property
    def _is_shallow(self) -> bool:
        """Whether at most 64 ranks are read.

        There a product with a matrix of zeros and ones is faster than tf.cumsum.
        """
        deepest = self.cutoffs[-1]
        if isinstance(self.depth, int):
            return self.depth <= 64
        return deepest is not None and deepest < 64

    def at_cutoffs(self, curve: tf.Tensor) -> tf.Tensor:
        """The value of a curve over the ranks, `[B, D]`, at each cutoff, `[B, C]`.

        Below the end of a list the curve stays constant.
        """
        curve = tf.pad(curve, [[0, 0], [1, 0]])  # for lists without any item
        ranks = tf.minimum(self.k, tf.cast(self.depth, tf.float64))
        return tf.gather(curve, tf.cast(ranks, tf.int32), axis=1)

    @property
    def group_sizes(self) -> tf.Tensor:
        """Number of items that share the score of the item at each rank, `[B, D]`."""
        if self.groups is None:
            return tf.ones_like(self.ranked.valid, tf.float64)
        return self.groups.size

    @property
    def rank_in_group(self) -> tf.Tensor:
        """Each rank's position in its group of tied items, from 1, `[B, D]`."""
        if self.groups is None:
            return tf.ones_like(self.ranked.valid, tf.float64)
        return self.ranks - tf.cast(self.groups.start, tf.float64)

    @cached_per_gain(depends_on_ties=True)
    def group_sums(self, gain: ItemGain) -> tf.Tensor:
        """Sum of the gains of all items tied with the one at each rank, `[B, D]`."""
        if self.groups is None:
            return gain(self.ranked)
        return ties.group_sums(self, self.groups, gain)

    @cached_per_gain(depends_on_ties=True)
    def expected(self, gain: ItemGain) -> tf.Tensor:
        """Mean gain at each rank, `[B, D]`."""
        if self.groups is None:
            return gain(self.ranked)
        return tf.math.divide_no_nan(self.group_sums(gain), self.group_sizes)

    def first_stop(self, stop: ItemGain) -> tf.Tensor:
        """Probability that a user stops at each rank, `[B, D]`.

        The user reads from the top, and stops at an item with the probability `stop`.
        """
        stops = tf.where(self.ranked.retrieved, stop(self.ranked), 0)
        if self.groups is None:
            return stops * tf.math.cumprod(1 - stops, axis=1, exclusive=True)
        return ties.first_stop(self, self.groups, stop, stops)

    @cached_per_gain(depends_on_ties=True)
    def first_relevant(self, relevance: ItemGain) -> tf.Tensor:
        """Probability that the first relevant item is at each rank, `[B, D]`."""
        if self.groups is None:
            relevant = relevance(self.ranked)
            return select(self.running_sums(relevant) <= 1, relevant, 0)
        return ties.first_relevant(self, relevance)

    @cached_per_gain(depends_on_ties=True)
    def relevant_down_to(self, relevance: ItemGain) -> tf.Tensor:
        """Mean number of relevant items at ranks 1 ... p if the item at p is relevant.

        For each rank p, `[B, D]`.
        """
        if self.groups is None:
            return self.running_sums(relevance(self.ranked))
        return ties.relevant_down_to(self, relevance)

    @cached_per_gain(depends_on_ties=False)
    def total(self, gain: ItemGain) -> tf.Tensor:
        """Sum of the gains of all judged items, `[B]`."""
        return gain.sum(self.judged)

    @cached_per_gain(depends_on_ties=False)
    def largest(self, gain: ItemGain) -> tf.Tensor:
        """The largest gain of a judged item, `[B]`."""
        # Without any item the maximum is -inf.
        if not gain.increases_with_label:
            return tf.maximum(tf.reduce_max(gain(self.judged), axis=1), 0)
        labels = tf.reduce_max(self.judged.labels, axis=1, keepdims=True)
        return gain(Items.retrieved_with(tf.maximum(labels, 0)))[:, 0]

    @cached_per_gain(depends_on_ties=False)
    def ideal(self, gain: ItemGain) -> tf.Tensor:
        """The gains of the ideal order: the D largest, descending, `[B, D]`."""
        if gain.increases_with_label:
            return gain(Items.retrieved_with(self._largest(self.judged.labels)))
        return self._largest(gain(self.judged))

    def _largest(self, values: tf.Tensor) -> tf.Tensor:
        """The D largest of the judged items' `values` in descending order, `[B, D]`."""
        # In a catalogue only the relevant items are judged, and there may be few.
        number = tf.minimum(self.depth, tf.shape(values)[1])
        if values.dtype == tf.float32:
            best, _ = tf.math.top_k(values, number)
        else:
            best = _top_float64(values, number)
        return tf.pad(best, [[0, 0], [0, self.depth - number]])

    @cached_per_gain(depends_on_ties=False)
    def weights(self, gain: ItemGain) -> tf.Tensor:
        """Weight of each query, float64 `[B]`; 0 for a list of padding.

        With one weight w for each item it is sum(w * gain) / sum(gain), or the mean of
        the weights where all gains are 0. Otherwise it is the query's own weight, or 1.
        """
        if self.judged.weights is not None:
            total = self.total(gain)
            weighted = tf.reduce_sum(gain(self.judged) * self.judged.weights, axis=1)
            mean = tf.math.divide_no_nan(
                tf.reduce_sum(self.judged.weights, axis=1), self.num_judged
            )
            weights = tf.where(tf.equal(total, 0), mean, weighted / total)
        elif self.query_weights is not None:
            weights = self.query_weights
        else:
            weights = tf.ones_like(self.num_retrieved)
        return tf.where(self.num_judged > 0, weights, 0)

    def relative_weights(self, gain: ItemGain) -> ItemGain:
        """The item's weight divided by the query's weight; 1 without item weights.

        The query's weight is the mean of the item weights, weighted by `gain`. Dividing
        by it leaves the sum of the gains of a list unchanged.
        """
        if self.judged.weights is None:
            return DerivedGain(lambda items: tf.cast(items.valid, tf.float64))
        query_weights = self.weights(gain)[:, tf.newaxis]
        return DerivedGain(
            lambda items: tf.math.divide_no_nan(items.weights, query_weights)
        )

    @cached_per_gain(depends_on_ties=False)
    def weighted(self, gain: ItemGain) -> ItemGain:
        """`gain` times the item's weight, relative to the query's weight."""
        if self.judged.weights is None:
            return gain
        weight = self.relative_weights(gain)
        return DerivedGain(lambda items: gain(items) * weight(items))


def _top_float64(values: tf.Tensor, number: tf.Tensor) -> tf.Tensor:
    """The largest float64 `values` `[B, J]` in descending order, `[B, number]`.

    XLA has a fast top_k for float32 only. Rounding to float32 keeps the order, except
    among numbers that round to the same one: these few lists are sorted in float64.
    """
    _, order = tf.math.top_k(tf.cast(values, tf.float32), number)
    best = tf.gather(values, order, batch_dims=1)
    lowest = tf.reduce_min(best, axis=1, keepdims=True)
    is_sorted = tf.reduce_all(best[:, 1:] <= best[:, :-1])
    is_complete = tf.reduce_all(tf.equal(count(values > lowest), count(best > lowest)))
    return tf.cond(
        is_sorted & is_complete,
        lambda: best,
        lambda: tf.math.top_k(values, number)[0],
    )


def _sums_where(steps: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Sums of `values` `[B, D]` over the ranks where `steps` `[D, C]`, `[B, C]`."""
    return tf.matmul(values, tf.cast(steps, tf.float64))


def depth_for(cutoffs: tuple[int | None, ...], lists: tf.Tensor) -> tf.Tensor | int:
    """How deep to rank lists `[B, N]` for these cutoffs, at most N.

    One rank deeper than the deepest cutoff: if that cuts a group of ties, the last two
    ranks have equal scores.
    """
    size, deepest = lists.shape[1], cutoffs[-1]
    if size is None:
        size = tf.shape(lists)[1]
        return size if deepest is None else tf.minimum(deepest, size - 1) + 1
    return size if deepest is None else min(deepest + 1, size)
