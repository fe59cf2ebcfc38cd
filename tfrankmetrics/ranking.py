"""The ranking step: padded lists in, relevance in ranked order with its ties out.

Everything that needs a sort happens here, once, whatever the number of metrics.
`rank` turns `PaddedLists` into `RankedLists`; the formulas in `measures.py`
only read from those. All of it is deterministic and made of plain TensorFlow
ops, so equal rankings within one graph are merged by the graph optimiser.

Shapes: B queries, N items in a (padded) list, and D columns: a curve has one for
each rank down to the deepest cutoff (see `Columns`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import tensorflow as tf


class PaddedLists(NamedTuple):
    """What the user passed, checked and made canonical by `inputs.py`.

    `labels` are 0 where an item is padding or its label is negative, so that
    no formula has to look at `valid` to keep padding out of a sum.
    """

    labels: tf.Tensor  # [B, N] float32 or float64, >= 0
    scores: tf.Tensor  # [B, N] float32, float64 or int64
    valid: tf.Tensor  # [B, N] bool, False for padding
    query_weights: tf.Tensor | None = None  # [B] float64
    item_weights: tf.Tensor | None = None  # [B, N] float64, 0 in padding


class Items(NamedTuple):
    """Some of the items of each query: all of them, or those at ranks 1..D."""

    labels: tf.Tensor  # 0 where not valid
    valid: tf.Tensor  # bool, False for padding
    retrieved: tf.Tensor  # bool, False also where a score of -inf says it was not found
    weights: tf.Tensor | None


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
        """Fills up the ranks `[B, top]` to the columns `[B, D]`."""
        if not self.beyond:
            return by_rank
        value = tf.cast(value, by_rank.dtype)
        return tf.pad(by_rank, [[0, 0], [0, len(self.beyond)]], constant_values=value)


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
    cut_items: tf.Tensor | None  # [B, N] bool


class RankedLists(NamedTuple):
    """Lists ranked by score down to the deepest cutoff, ready for the formulas.

    `ranked` holds what was retrieved, by rank; `judged` everything that has a
    label, in any order, also what was not retrieved: it has no rank, and is
    missed in whatever counts all relevant items. `groups` is None where ties were
    broken one by one.
    """

    ranked: Items  # [B, D]
    judged: Items  # [B, N]
    groups: TieGroups | None
    query_weights: tf.Tensor | None  # [B]
    columns: Columns

    @property
    def ranks(self) -> tf.Tensor:
        """The rank of each column, float64 `[D]`."""
        return self.columns.ranks

    @property
    def sizes(self) -> tf.Tensor:
        """Number of items that are not padding, float64 `[B]`."""
        return tf.reduce_sum(tf.cast(self.judged.valid, tf.float64), axis=1)

    @property
    def lengths(self) -> tf.Tensor:
        """Number of items that were retrieved, float64 `[B]`."""
        return tf.reduce_sum(tf.cast(self.judged.retrieved, tf.float64), axis=1)

    @property
    def group_sizes(self) -> tf.Tensor:
        """Number of items that share the score of the item at each rank, `[B, D]`."""
        if self.groups is None:
            return tf.ones_like(self.ranked.labels, tf.float64)
        return self.groups.size

    @property
    def places(self) -> tf.Tensor:
        """Place of each rank within its group of tied items, from 1, `[B, D]`."""
        if self.groups is None:
            return tf.ones_like(self.ranked.labels, tf.float64)
        return self.ranks - tf.cast(self.groups.start, tf.float64)

    def group_sums(self, worth: Worth) -> tf.Tensor:
        """Sum of `worth` over the tied items of each rank's group, `[B, D]`."""
        values = worth(self.ranked)
        if self.groups is None:
            return values
        above = tf.pad(tf.cumsum(values, axis=1), [[0, 0], [1, 0]])
        sums = tf.gather(above, self.groups.end, batch_dims=1) - tf.gather(
            above, self.groups.start, batch_dims=1
        )
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

    def total(self, worth: Worth) -> tf.Tensor:
        """Sum of `worth` over everything judged, `[B]`."""
        return tf.reduce_sum(worth(self.judged), axis=1)

    def best(self, worth: Worth) -> tf.Tensor:
        """The D largest values of `worth` in descending order, `[B, D]`."""
        values = worth(self.judged)
        # float32 is enough to order by, and XLA has a fast top_k for it alone;
        # relative to the largest, no value overflows.
        largest = tf.reduce_max(values, axis=1, keepdims=True)
        keys = tf.cast(tf.math.divide_no_nan(values, largest), tf.float32)
        _, order = tf.math.top_k(keys, self.columns.top)
        return self.columns.fill(tf.gather(values, order, batch_dims=1))

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

    def weighted(self, worth: Worth) -> Worth:
        """`worth` times the item's weight, relative to the query's weight.

        The query's weight is the mean of the item weights, weighted by
        `worth`; dividing by it leaves the sum of `worth` over a list as it was.
        """
        if self.judged.weights is None:
            return worth
        query_weights = self.weights(worth)[:, tf.newaxis]
        return lambda items: tf.math.divide_no_nan(
            worth(items) * items.weights, query_weights
        )


def rank(
    lists: PaddedLists,
    cutoffs: Iterable[int | None],
    ties: str = "expected",
    seed: int | None = None,
    first_query: tf.Tensor | int = 0,
) -> RankedLists:
    """Ranks each list by descending score, down to the deepest of the cutoffs.

    Args:
        lists: The lists to rank.
        cutoffs: The cutoffs that will be read; None is the whole list.
        ties: "expected", "stable" or "random".
        seed: Of the random order of tied items.
        first_query: Number of queries ranked before these; with "random" ties it
            keeps the result the same however the queries are split in batches.
    """
    retrieved = lists.valid
    if lists.scores.dtype.is_floating:
        retrieved &= tf.not_equal(lists.scores, -float("inf"))
    keys = _sort_keys(lists.scores, retrieved)
    columns = _columns(cutoffs, keys)
    if ties == "expected":
        _, order = tf.math.top_k(keys, columns.top)
        # Not top_k's own values: XLA turns a top_k whose values are sliced, as
        # `_tie_groups` does, back into a full sort (ten times slower on CPU).
        groups = _tie_groups(keys, tf.gather(keys, order, batch_dims=1), columns)
    else:
        # Equal numbers must look equal to the sort: XLA's puts -0.0 below 0.0.
        keys = tf.where(tf.equal(keys, 0), tf.zeros_like(keys), keys)
        if ties == "random":
            shuffle = _random_order(tf.shape(keys), seed or 0, first_query)
            keys = tf.gather(keys, shuffle, batch_dims=1)
        _, order = tf.math.top_k(keys, columns.top)
        if ties == "random":
            order = tf.gather(shuffle, order, batch_dims=1)
        groups = None

    def by_rank(of_items: tf.Tensor) -> tf.Tensor:
        return columns.fill(tf.gather(of_items, order, batch_dims=1))

    judged = Items(lists.labels, lists.valid, retrieved, lists.item_weights)
    is_ranked = by_rank(retrieved)
    labels = by_rank(lists.labels)
    weights = None if lists.item_weights is None else by_rank(lists.item_weights)
    ranked = Items(
        tf.where(is_ranked, labels, tf.zeros_like(labels)),
        is_ranked,
        is_ranked,
        weights,
    )
    return RankedLists(ranked, judged, groups, lists.query_weights, columns)


def _sort_keys(scores: tf.Tensor, retrieved: tf.Tensor) -> tf.Tensor:
    """Scores as numbers that sort alike on CPU, GPU and XLA.

    NaN goes below every number, and below NaN what is padding or was not
    retrieved, each as a number that no score has. The one for NaN is taken from
    the scores: the two lowest numbers of a dtype count as equal.
    """
    if scores.dtype.is_integer:
        last = scores.dtype.min
        keys = tf.maximum(scores, last + 1)
    else:
        last = -float("inf")
        lowest = scores.dtype.as_numpy_dtype(scores.dtype.min)
        keys = tf.where(
            tf.math.is_nan(scores),
            lowest,
            tf.maximum(scores, np.nextafter(lowest, np.zeros_like(lowest))),
        )
    return tf.where(retrieved, keys, last)


def _tie_groups(keys: tf.Tensor, sorted_keys: tf.Tensor, columns: Columns) -> TieGroups:
    """Finds the runs of equal keys among `sorted_keys` `[B, top]`."""
    depth = tf.shape(sorted_keys)[1]
    differs = tf.not_equal(sorted_keys[:, 1:], sorted_keys[:, :-1])
    is_first = tf.pad(differs, [[0, 0], [1, 0]], constant_values=True)
    is_last = tf.pad(differs, [[0, 0], [0, 1]], constant_values=True)
    # The start of a rank's group is the last place at or before it where a
    # group starts; its end is the same thing, seen from the other side.
    places = tf.range(depth)
    starts, reversed_starts = tf.unstack(
        _running_maximum(
            tf.stack(
                [
                    tf.where(is_first, places, 0),
                    tf.where(tf.reverse(is_last, axis=[1]), places, 0),
                ]
            )
        )
    )
    ends = depth - tf.reverse(reversed_starts, axis=[1])
    sizes = tf.cast(ends - starts, tf.float64)
    is_cut = tf.equal(ends, depth)
    cut_items = None
    if keys.shape[1] is None or keys.shape[1] != sorted_keys.shape[1]:
        cut_items = tf.equal(keys, tf.reduce_min(sorted_keys, axis=1, keepdims=True))
        number = tf.reduce_sum(tf.cast(cut_items, tf.float64), axis=1, keepdims=True)
        sizes = tf.where(is_cut, number, sizes)
    # The columns past the top are one group more, of nothing.
    beyond_top = columns.ranks - tf.cast(depth, tf.float64)
    return TieGroups(
        start=columns.fill(starts, depth),
        end=columns.fill(ends, depth),
        size=tf.maximum(columns.fill(sizes), beyond_top),
        is_cut=columns.fill(is_cut),
        cut_items=cut_items,
    )


def _running_maximum(values: tf.Tensor) -> tf.Tensor:
    """Maximum of each value and all before it along the last axis.

    TensorFlow has no cumulative maximum. This takes log2(D) shifted comparisons.
    """
    places = tf.range(tf.shape(values)[-1])

    def widen(shift, values):
        shifted = tf.roll(values, shift, axis=-1)
        values = tf.where(places >= shift, tf.maximum(values, shifted), values)
        return 2 * shift, values

    if values.shape[-1] is None:
        return tf.while_loop(
            lambda shift, _: shift < tf.shape(values)[-1], widen, [1, values]
        )[1]
    shift = 1
    while shift < values.shape[-1]:
        shift, values = widen(shift, values)
    return values


def _random_order(shape: tf.Tensor, seed: int, first_query: tf.Tensor | int):
    """A random order of the N items of each query, int32 `[B, N]`.

    Each item's number is hashed from the seed, the query's number and its
    place in the list: unlike TensorFlow's random ops this gives one order in
    every mode and on every device, whatever the padding and the batch size.
    """

    def scramble(bits):  # the 32-bit finaliser of Austin Appleby's MurmurHash3
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            bits = tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, shift))
            bits *= factor
        return tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, 16))

    queries = tf.cast(first_query, tf.int64) + tf.range(tf.cast(shape[0], tf.int64))
    seed = scramble(tf.constant(seed % 2**32, tf.uint32))
    queries = scramble(scramble(tf.cast(queries, tf.uint32)) + seed)
    items = tf.cast(tf.range(shape[1]), tf.uint32)
    numbers = scramble(queries[:, tf.newaxis] + scramble(items))
    return tf.argsort(tf.bitcast(numbers, tf.int32), axis=1, stable=True)


def _columns(cutoffs: Iterable[int | None], keys: tf.Tensor) -> Columns:
    """The columns for these cutoffs, at least one; None is the end of the lists."""
    cutoffs = set(cutoffs)
    known = sorted(cutoffs - {None})
    list_size = keys.shape[1]
    if list_size is None:
        list_size = tf.shape(keys)[1]
        top = list_size if None in cutoffs else tf.minimum(known[-1], list_size)
        return Columns(top, tuple(known) or (1,))
    top = list_size if None in cutoffs else min(known[-1], list_size)
    beyond = tuple(k for k in known if k > top)
    return Columns(top, beyond if top or beyond else (1,))
