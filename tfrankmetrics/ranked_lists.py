"""Ranked lists: what every formula works on, whichever way the data came in.

The axes of all tensors: B queries, J items that are judged, D ranks down to the deepest
cutoff (see `depth_for`), and C cutoffs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf


class Items(NamedTuple):
    """Some of the items of each query: all of them, or those at ranks 1..D."""

    labels: tf.Tensor  # 0 where not valid; [B, D], or [B, D, T] of T subtopics
    valid: tf.Tensor  # bool, False for padding
    retrieved: tf.Tensor  # bool, False also where a score of -inf says it was not found
    weights: tf.Tensor | None

    def only(self, which: tf.Tensor) -> Items:
        """Those items alone, the others being padding."""
        is_one = which
        if self.labels.shape.rank == 3:
            is_one = tf.broadcast_to(which[..., tf.newaxis], tf.shape(self.labels))
        labels = select(is_one, self.labels, 0)
        return Items(labels, which, which, self.weights)

    @classmethod
    def found(cls, labels: tf.Tensor) -> Items:
        """Items that all were retrieved, without weights."""
        are_found = tf.ones_like(labels, tf.bool)
        return cls(labels, are_found, are_found, None)


# What an item is worth to a metric: its gain, or 1 if it is relevant and 0 if
# not; always float64 and 0 for padding.
Worth = Callable[[Items], tf.Tensor]


class TieGroups(NamedTuple):
    """For each rank the group of equal scores that its item belongs to.

    A group takes the ranks `start + 1 ... start + size`. The last group may go
    on below the deepest cutoff, where the ranking ends: `size` counts those
    items too, `is_cut` says which ranks belong to it, and `cut_items` which of
    the judged items do (None where the ranking is as deep as the lists).
    """

    start: tf.Tensor  # [B, D] int32
    end: tf.Tensor  # [B, D] int32, start + size as far as it is ranked
    size: tf.Tensor  # [B, D] float64
    is_cut: tf.Tensor  # [B, D] bool
    cut_items: tf.Tensor | None  # [B, J] bool


class Ties(NamedTuple):
    """Whether lists of the batch may have ties, and if so, how to find the groups.

    Lists that may have NaN may have ties, too: they are ranked again together with
    finding the groups, which is why the ranked items come with these.
    """

    may_exist: tf.Tensor  # bool
    find_groups: Callable[[], tuple[Items, TieGroups]]


def once(of_judged: Callable) -> Callable:
    """Keeps what a method makes of all that is judged, for each worth.

    The formulas run twice, for lists with ties and without (`RankedLists.ties`), and
    this does not depend on ties.
    """

    @functools.wraps(of_judged)
    def method(self: RankedLists, worth: Worth) -> Any:
        key = of_judged.__name__, worth
        if key not in self.kept:
            self.kept[key] = of_judged(self, worth)
        return self.kept[key]

    return method


class RankedLists(NamedTuple):
    """Lists ranked by score down to the deepest cutoff, ready for the formulas.

    `ranked` holds what was retrieved, by rank; `judged` everything that has a
    label, in any order, also what was not retrieved: it has no rank, and is
    missed in whatever counts all relevant items. `ties` is None where ties were
    broken one by one; `groups` where there are none, or they were not looked for yet.
    """

    ranked: Items  # [B, D]
    judged: Items  # [B, J]
    ties: Ties | None
    query_weights: tf.Tensor | None  # [B]
    cutoffs: tuple[int | None, ...]  # ascending, each once; None is the whole list
    lengths: tf.Tensor  # [B] float64, the number of items that were retrieved
    sizes: tf.Tensor  # [B] float64, with those that were missed; 0 does not count
    kept: dict[tuple, Any]  # by `once`
    groups: TieGroups | None = None
    cut: Items | None = None  # [B, J], what of the judged is in a group that is cut

    def with_groups(self) -> RankedLists:
        """The same lists with the groups of their ties.

        What these keep stays theirs: within a `tf.cond` it would be out of the others'
        reach.
        """
        (ranked, groups), cut = self.ties.find_groups(), None
        if groups.cut_items is not None:
            cut = self.judged.only(groups.cut_items & self.judged.retrieved)
        return self._replace(
            ranked=ranked, groups=groups, cut=cut, kept=dict(self.kept)
        )

    @property
    def k(self) -> tf.Tensor:
        """The cutoffs, float64 `[C]`; infinity is the whole list."""
        of_numbers = [math.inf if k is None else k for k in self.cutoffs]
        return tf.constant(of_numbers, tf.float64)

    @property
    def depth(self) -> tf.Tensor | int:
        """D, the number of ranks."""
        known = self.ranked.valid.shape[1]
        return tf.shape(self.ranked.valid)[1] if known is None else known

    @property
    def ranks(self) -> tf.Tensor:
        """The numbers 1 ... D, float64."""
        return tf.range(1, tf.cast(self.depth, tf.float64) + 1, dtype=tf.float64)

    def sums(self, values: tf.Tensor) -> tf.Tensor:
        """Sum of float64 `values` `[B, D]` over ranks 1 ... k, `[B, C]`."""
        if self._is_shallow:
            return _sums_where(self.ranks[:, tf.newaxis] <= self.k, values)
        down_to = [values if k is None else values[:, :k] for k in self.cutoffs]
        return tf.stack([tf.reduce_sum(part, axis=1) for part in down_to], axis=1)

    def running_sums(self, values: tf.Tensor) -> tf.Tensor:
        """Sum of float64 `values` `[B, D]` down to each rank, `[B, D]`."""
        if self._is_shallow:
            return _sums_where(self.ranks[:, tf.newaxis] <= self.ranks, values)
        return tf.cumsum(values, axis=1)

    @property
    def _is_shallow(self) -> bool:
        """Whether no more than 64 ranks are read.

        There a product with a matrix of zeros and ones is faster than what adds up: on
        [1024, 11] it takes 40 microseconds on two cores, and tf.cumsum 130.
        """
        deepest = self.cutoffs[-1]
        if isinstance(self.depth, int):
            return self.depth <= 64
        return deepest is not None and deepest < 64

    def at_cutoffs(self, curve: tf.Tensor) -> tf.Tensor:
        """What a curve `[B, D]` over depth is at each cutoff, `[B, C]`.

        Past the end of a list it stays what it is there.
        """
        curve = tf.pad(curve, [[0, 0], [1, 0]])  # for lists of no items at all
        ranks = tf.minimum(self.k, tf.cast(self.depth, tf.float64))
        return tf.gather(curve, tf.cast(ranks, tf.int32), axis=1)

    @property
    def group_sizes(self) -> tf.Tensor:
        """Number of items that share the score of the item at each rank, `[B, D]`."""
        if self.groups is None:
            return tf.ones_like(self.ranked.valid, tf.float64)
        return self.groups.size

    @property
    def places(self) -> tf.Tensor:
        """Place of each rank within its group of tied items, from 1, `[B, D]`."""
        if self.groups is None:
            return tf.ones_like(self.ranked.valid, tf.float64)
        return self.ranks - tf.cast(self.groups.start, tf.float64)

    def group_sums(self, worth: Worth) -> tf.Tensor:
        """Sum of `worth` over the tied items of each rank's group, `[B, D]`."""
        values = worth(self.ranked)
        if self.groups is None:
            return values
        above = tf.pad(self.running_sums(values), [[0, 0], [1, 0]])
        sums = tf.gather(above, self.groups.end, batch_dims=1) - tf.gather(
            above, self.groups.start, batch_dims=1
        )
        # Free of rounding errors, so that ties of other lists change nothing here.
        sums = tf.where(self.groups.size > 1, sums, values)
        if self.cut is None:
            return sums
        of_cut = _sum_over(self.cut, worth)[:, tf.newaxis]
        return tf.where(self.groups.is_cut, of_cut, sums)

    def expected(self, worth: Worth) -> tf.Tensor:
        """Mean of `worth` at each rank over all orders of the tied items, `[B, D]`."""
        if self.groups is None:
            return worth(self.ranked)
        return tf.math.divide_no_nan(self.group_sums(worth), self.group_sizes)

    def expected_products(self, factor: Worth) -> tf.Tensor:
        """Mean product of `factor` over ranks 1 ... p in all orders of ties, `[B, D]`.

        Of a group of n tied items it is the mean product q(s) of s of them drawn
        at random, for every s at once: with the m-th item, of factor y, it becomes
        q(s) * (m - s) / m + q(s - 1) * y * s / m.
        """
        factors = tf.where(self.ranked.retrieved, factor(self.ranked), 1)
        if self.groups is None:
            return tf.math.cumprod(factors, axis=1)
        is_item = self.ranks <= self.lengths[:, tf.newaxis]
        above_group = tf.gather(
            tf.math.cumprod(tf.pad(factors, [[0, 0], [1, 0]], constant_values=1), 1),
            self.groups.start,
            batch_dims=1,
        )
        item_of_group = self._items_of_groups(factor, factors)
        s, n = self.places, tf.where(is_item, self.group_sizes, 1)

        def add_item(m, q):
            q_before = tf.where(s > 1, tf.roll(q, 1, axis=1), 1)
            with_item = (q * (m - s) + q_before * item_of_group(m) * s) / m
            return m + 1, tf.where(m <= n, tf.where(s <= m, with_item, 0), q)

        _, q = tf.while_loop(
            lambda m, _: m <= tf.reduce_max(n),
            add_item,
            [tf.ones([], tf.float64), tf.zeros_like(factors)],
        )
        return above_group * tf.where(is_item, q, 1)

    def _items_of_groups(self, factor: Worth, factors: tf.Tensor) -> Callable:
        """The factor of the m-th item of each rank's group, as a function of m."""
        groups = self.groups
        last = tf.shape(factors)[1] - 1

        def of_ranked(m):
            place = tf.minimum(groups.start + tf.cast(m, tf.int32) - 1, last)
            return tf.gather(factors, place, batch_dims=1)

        if self.cut is None:
            return of_ranked
        is_cut = self.cut.valid
        first = tf.argsort(tf.cast(is_cut, tf.int32), 1, "DESCENDING", stable=True)
        cut_factors = tf.gather(
            tf.where(is_cut, factor(self.cut), 1), first, batch_dims=1
        )
        cut_factors = tf.pad(cut_factors, [[0, 0], [0, 1]], constant_values=1)
        last_cut = tf.shape(cut_factors)[1] - 1

        def of_any(m):
            of_cut = cut_factors[:, tf.minimum(tf.cast(m, tf.int32) - 1, last_cut)]
            return tf.where(groups.is_cut, of_cut[:, tf.newaxis], of_ranked(m))

        return of_any

    @once
    def total(self, worth: Worth) -> tf.Tensor:
        """Sum of `worth` over everything judged, `[B]`."""
        return _sum_over(self.judged, worth)

    @once
    def largest(self, worth: Worth) -> tf.Tensor:
        """The largest `worth` of anything judged, `[B]`."""
        # Of no items at all the maximum is -inf.
        if not getattr(worth, "grows_with_label", False):
            return tf.maximum(tf.reduce_max(worth(self.judged), axis=1), 0)
        labels = tf.reduce_max(self.judged.labels, axis=1, keepdims=True)
        return worth(Items.found(tf.maximum(labels, 0)))[:, 0]

    @once
    def best(self, worth: Worth) -> tf.Tensor:
        """The D largest values of `worth` in descending order, `[B, D]`."""
        if getattr(worth, "grows_with_label", False):
            return worth(Items.found(self._largest(self.judged.labels)))
        return self._largest(worth(self.judged))

    def _largest(self, values: tf.Tensor) -> tf.Tensor:
        """The D largest of the judged items' `values` in descending order, `[B, D]`."""
        keys = values
        if values.dtype != tf.float32:
            # float32 is enough to order by, and XLA has a fast top_k for it alone;
            # relative to the largest, no value overflows.
            largest = tf.reduce_max(values, axis=1, keepdims=True)
            keys = tf.cast(tf.math.divide_no_nan(values, largest), tf.float32)
        # Of a catalogue only the relevant items are judged, and those may be few.
        number = tf.minimum(self.depth, tf.shape(keys)[1])
        best, order = tf.math.top_k(keys, number)
        if keys is not values:
            best = tf.gather(values, order, batch_dims=1)
        return tf.pad(best, [[0, 0], [0, self.depth - number]])

    @once
    def weights(self, worth: Worth) -> tf.Tensor:
        """Weight of each query, float64 `[B]`; 0 for a list that is all padding.

        Without `sample_weight` it is 1, with one weight a query it is that.
        With one weight w an item it is sum(w * worth) / sum(worth), and the
        mean of the items' weights where nothing is worth anything.
        """
        if self.judged.weights is not None:
            total = self.total(worth)
            weighted = tf.reduce_sum(worth(self.judged) * self.judged.weights, axis=1)
            mean = tf.math.divide_no_nan(
                tf.reduce_sum(self.judged.weights, axis=1), self.sizes
            )
            weights = tf.where(tf.equal(total, 0), mean, weighted / total)
        elif self.query_weights is not None:
            weights = self.query_weights
        else:
            weights = tf.ones_like(self.lengths)
        return tf.where(self.sizes > 0, weights, 0)

    def relative_weights(self, worth: Worth) -> Worth:
        """The item's weight over the query's weight; 1 where items have none.

        The query's weight is the mean of the item weights, weighted by
        `worth`; dividing by it leaves the sum of `worth` over a list as it was.
        """
        if self.judged.weights is None:
            return lambda items: tf.cast(items.valid, tf.float64)
        query_weights = self.weights(worth)[:, tf.newaxis]
        return lambda items: tf.math.divide_no_nan(items.weights, query_weights)

    @once
    def weighted(self, worth: Worth) -> Worth:
        """`worth` times the item's weight, relative to the query's weight."""
        if self.judged.weights is None:
            return worth
        weight = self.relative_weights(worth)
        return lambda items: worth(items) * weight(items)


def _sums_where(steps: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Sums of `values` `[B, D]` over the ranks that `steps` `[D, C]` says, `[B, C]`."""
    return tf.matmul(values, tf.cast(steps, tf.float64))


def _sum_over(items: Items, worth: Worth) -> tf.Tensor:
    """Sum of `worth` over these items, `[B]`."""
    # Under XLA, an update takes a tenth longer where relevant items are not counted.
    if hasattr(worth, "holds"):
        return count(worth.holds(items))
    return tf.reduce_sum(worth(items), axis=1)


def count(where: tf.Tensor) -> tf.Tensor:
    """How many are True in each row, float64 `[B]`."""
    # float32 counts to 2^24, and in half the time of float64.
    number = tf.reduce_sum(tf.cast(where, tf.float32), axis=1)
    return tf.cast(number, tf.float64)


def select(which: tf.Tensor, values: tf.Tensor, otherwise: float) -> tf.Tensor:
    """`values` where `which`, of their shape, is True, and a number elsewhere."""
    # tf.where, which may have to broadcast, takes twice the time: on [1024, 200] 119
    # microseconds of a core, and this, with the making of a tensor of the number, 50.
    others = tf.fill(tf.shape(values), tf.cast(otherwise, values.dtype))
    return tf.raw_ops.Select(condition=which, x=values, y=others)


def depth_for(cutoffs: tuple[int | None, ...], lists: tf.Tensor) -> tf.Tensor | int:
    """How deep to rank lists `[B, N]` for these cutoffs, no deeper than they are.

    It is one rank deeper than the deepest cutoff: if that cuts a group of ties, the
    last two ranks are equal.
    """
    size, deepest = lists.shape[1], cutoffs[-1]
    if size is None:
        size = tf.shape(lists)[1]
        return size if deepest is None else tf.minimum(deepest, size - 1) + 1
    return size if deepest is None else min(deepest + 1, size)
