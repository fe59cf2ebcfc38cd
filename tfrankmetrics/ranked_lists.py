"""Ranked lists: what every formula works on, whichever way the data came in.

The stages of the ranking are named after the curves' axes: B queries, J items that
are judged, D columns, one for each rank down to the deepest cutoff (see `Columns`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf


class Items(NamedTuple):
    """Some of the items of each query: all of them, or those at ranks 1..D."""

    labels: tf.Tensor  # 0 where not valid; [B, D], or [B, D, T] of T subtopics
    valid: tf.Tensor  # bool, False for padding
    retrieved: tf.Tensor  # bool, False also where a score of -inf says it was not found
    weights: tf.Tensor | None

    @classmethod
    def found(cls, labels: tf.Tensor) -> Items:
        """Items that all were retrieved, without weights."""
        are_found = tf.ones_like(labels, tf.bool)
        return cls(labels, are_found, are_found, None)


# What an item is worth to a metric: its gain, or 1 if it is relevant and 0 if
# not; always float64 and 0 for padding.
Worth = Callable[[Items], tf.Tensor]


class Columns(NamedTuple):
    """The ranks that a curve has a column for: 1 ... top, then those in `beyond`.

    A cutoff may be deeper than the lists. Past the end of a list nothing changes
    but the rank itself, so one column for each such cutoff will do, however
    deep it is. Where the list size is not known yet, every cutoff has one.
    """

    top: tf.Tensor | int
    beyond: tuple[int, ...]

    @property
    def ranks(self) -> tf.Tensor:
        """The rank of each column, ascending, float64 `[D]`."""
        top = tf.cast(self.top, tf.float64)
        ranks = tf.range(1, top + 1, dtype=tf.float64)
        if not self.beyond:
            return ranks
        beyond = tf.maximum(tf.constant(self.beyond, tf.float64), top + 1)
        return tf.concat([ranks, beyond], axis=0)

    def column_of(self, k: int) -> tf.Tensor | int:
        """The index of the column for cutoff k."""
        if isinstance(self.top, int) and k <= self.top:
            return k - 1
        return tf.where(k <= self.top, k - 1, self.top + self.beyond.index(k))

    def fill(self, by_rank: tf.Tensor, value: tf.Tensor | int = 0) -> tf.Tensor:
        """Fills up the ranks `[B, top, ...]` to the columns `[B, D, ...]`."""
        if not self.beyond:
            return by_rank
        value = tf.cast(value, by_rank.dtype)
        paddings = [[0, 0]] * by_rank.shape.rank
        paddings[1] = [0, len(self.beyond)]
        return tf.pad(by_rank, paddings, constant_values=value)


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

    @classmethod
    def of_columns(
        cls,
        columns: Columns,
        *,
        start: tf.Tensor,
        end: tf.Tensor,
        size: tf.Tensor,
        is_cut: tf.Tensor,
        cut_items: tf.Tensor | None,
    ) -> TieGroups:
        """The groups at ranks 1 ... top, and past the top one more, of nothing."""
        beyond_top = columns.ranks - tf.cast(columns.top, tf.float64)
        return cls(
            start=columns.fill(start, columns.top),
            end=columns.fill(end, columns.top),
            size=tf.maximum(columns.fill(size), beyond_top),
            is_cut=columns.fill(is_cut),
            cut_items=cut_items,
        )


class Ties(NamedTuple):
    """Whether any list of the batch has a tie, and if so, how to find the groups."""

    exist: tf.Tensor  # bool
    find_groups: Callable[[], TieGroups]


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
    columns: Columns
    lengths: tf.Tensor  # [B] float64, the number of items that were retrieved
    sizes: tf.Tensor  # [B] float64, with those that were missed; 0 does not count
    kept: dict[tuple, Any]  # by `once`
    groups: TieGroups | None = None

    def with_groups(self) -> RankedLists:
        """The same lists with the groups of their ties.

        What these keep stays theirs: within a `tf.cond` it would be out of the others'
        reach.
        """
        return self._replace(groups=self.ties.find_groups(), kept=dict(self.kept))

    @property
    def ranks(self) -> tf.Tensor:
        """The rank of each column, float64 `[D]`."""
        return self.columns.ranks

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
        above = tf.pad(running_sum(values), [[0, 0], [1, 0]])
        sums = tf.gather(above, self.groups.end, batch_dims=1) - tf.gather(
            above, self.groups.start, batch_dims=1
        )
        # Free of rounding errors, so that ties of other lists change nothing here.
        sums = tf.where(self.groups.size > 1, sums, values)
        if self.groups.cut_items is None:
            return sums
        is_cut_item = self.groups.cut_items & self.judged.retrieved
        of_cut_items = tf.where(is_cut_item, worth(self.judged), 0)
        return tf.where(
            self.groups.is_cut,
            tf.reduce_sum(of_cut_items, axis=1, keepdims=True),
            sums,
        )

    def expected(self, worth: Worth) -> tf.Tensor:
        """Mean of `worth` at each rank over all orders of the tied items, `[B, D]`."""
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

        if groups.cut_items is None:
            return of_ranked
        is_cut_item = groups.cut_items & self.judged.retrieved
        first = tf.argsort(tf.cast(is_cut_item, tf.int32), 1, "DESCENDING", stable=True)
        cut_factors = tf.gather(
            tf.where(is_cut_item, factor(self.judged), 1), first, batch_dims=1
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
        return tf.reduce_sum(worth(self.judged), axis=1)

    @once
    def largest(self, worth: Worth) -> tf.Tensor:
        """The largest `worth` of anything judged, `[B]`."""
        if not getattr(worth, "grows_with_label", False):
            return tf.reduce_max(worth(self.judged), axis=1)
        labels = tf.reduce_max(self.judged.labels, axis=1, keepdims=True)
        # Of no items at all the largest is -inf.
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
        top = self.columns.top
        number = tf.minimum(top, tf.shape(keys)[1])
        _, order = tf.math.top_k(keys, number)
        best = tf.gather(values, order, batch_dims=1)
        return self.columns.fill(tf.pad(best, [[0, 0], [0, top - number]]))

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


def running_sum(values: tf.Tensor) -> tf.Tensor:
    """Sum over ranks 1 ... p of float64 `values` `[B, D]`."""
    depth = values.shape[1]
    if depth is None or depth > 64:
        return tf.cumsum(values, axis=1)
    # On [1024, 11] a product with a matrix of ones takes 40 microseconds on two cores,
    # and tf.cumsum 130, and a metric needs several.
    return tf.matmul(values, np.triu(np.ones((depth, depth))))


def count(where: tf.Tensor) -> tf.Tensor:
    """How many are True in each row, float64 `[B]`."""
    # float32 counts to 2^24, and in half the time of float64.
    number = tf.reduce_sum(tf.cast(where, tf.float32), axis=1)
    return tf.cast(number, tf.float64)


def columns_for(cutoffs: Iterable[int | None], lists: tf.Tensor) -> Columns:
    """The columns for these cutoffs of lists `[B, N]`; None is the end of the lists.

    They go one rank deeper than the cutoffs: if the deepest of these cuts a group of
    ties, its last two columns are equal.
    """
    cutoffs = set(cutoffs)
    known = sorted(cutoffs - {None})
    list_size = lists.shape[1]
    if list_size is None:
        list_size = tf.shape(lists)[1]
        top = list_size if None in cutoffs else tf.minimum(known[-1], list_size - 1) + 1
        return Columns(top, tuple(known) or (1,))
    top = list_size if None in cutoffs else min(known[-1] + 1, list_size)
    beyond = tuple(k for k in known if k > top)
    return Columns(top, beyond if top or beyond else (1,))
