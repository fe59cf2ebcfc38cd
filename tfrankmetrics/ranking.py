"""The ranking step for labels beside scores, and the order of scores for all.

Every sort by score happens here, once, whatever the number of metrics, and once more
for a batch with NaN. All of it is deterministic and made of plain TensorFlow ops, so
equal rankings within one graph are merged by the graph optimiser.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfrankmetrics.ranked_lists import (
    Items,
    RankedLists,
    TieGroups,
    Ties,
    count,
    depth_for,
    select,
)


class TieBreaking(NamedTuple):
    """How equal scores are ordered: "expected", "stable" or "random", with a seed."""

    ties: str
    seed: int | None

    @property
    def is_exact(self) -> bool:
        """Whether values are means over all orders of tied items, not of one order."""
        return self.ties == "expected"


class PaddedLists(NamedTuple):
    """Labels beside scores, checked and made canonical by `inputs.py`.

    `labels` are 0 where an item is padding or its label is negative, so that
    no formula has to look at `valid` to keep padding out of a sum.
    """

    labels: tf.Tensor  # [B, N] or [B, N, T] float32 or float64, >= 0
    scores: tf.Tensor  # [B, N] float32, float64 or int64
    valid: tf.Tensor  # [B, N] bool, False for padding
    query_weights: tf.Tensor | None = None  # [B] float64
    item_weights: tf.Tensor | None = None  # [B, N] float64, 0 in padding

    @property
    def number(self) -> tf.Tensor:
        """How many queries there are."""
        return tf.shape(self.labels, out_type=tf.int64)[0]

    @property
    def size_of_one(self) -> int:
        """Numbers to hold in memory for each query, roughly."""
        return math.prod(self.labels.shape[1:])

    @property
    def has_subtopics(self) -> bool:
        """Whether an item has a label for each subtopic."""
        return self.labels.shape.rank == 3

    def are_numbers(self) -> tf.Tensor:
        """False for a query with a label that no metric has a meaning for, `[B]`."""
        of_query = list(range(1, self.labels.shape.rank))
        return tf.math.is_finite(tf.reduce_sum(self.labels, axis=of_query))

    def rank(
        self,
        cutoffs: tuple[int | None, ...],
        tie_breaking: TieBreaking,
        first_query: tf.Tensor | int,
    ) -> RankedLists:
        """Ranks each list by descending score, down to the deepest of the cutoffs.

        Args:
            cutoffs: The cutoffs that will be read, ascending; None, the last, is the
                whole list.
            tie_breaking: How equal scores are ordered.
            first_query: Number of queries ranked before these; with "random" ties
                it keeps the result the same however queries are split in batches.
        """
        scores = self.scores
        last = last_score(scores.dtype)
        if scores.dtype.is_integer:
            scores = tf.maximum(scores, last + 1)
        scores = select(self.valid, scores, last)
        retrieved = is_retrieved(scores)
        lengths = count(retrieved)
        depth = depth_for(cutoffs, scores)
        is_ranked = tf.range(tf.cast(depth, tf.float64)) < lengths[:, tf.newaxis]

        def items_at(order):
            labels, weights = (
                None if of_items is None else tf.gather(of_items, order, batch_dims=1)
                for of_items in (self.labels, self.item_weights)
            )
            return Items(labels, is_ranked, is_ranked, weights).only(is_ranked)

        ranked, ties = rank_by_score(scores, depth, tie_breaking, first_query, items_at)
        return RankedLists(
            ranked=ranked,
            judged=Items(self.labels, self.valid, retrieved, self.item_weights),
            ties=ties,
            query_weights=self.query_weights,
            cutoffs=cutoffs,
            lengths=lengths,
            sizes=count(self.valid),
            kept={},
        )


def last_score(dtype: tf.DType) -> int | float:
    """The score that says that an item was not retrieved: -inf, or the lowest integer.

    Users may give -inf themselves. The lowest integer is none of theirs: it is raised.
    """
    return dtype.min if dtype.is_integer else -float("inf")


def is_retrieved(scores: tf.Tensor) -> tf.Tensor:
    """True but where the score says that an item was not retrieved."""
    return tf.not_equal(scores, last_score(scores.dtype))


def rank_by_score(
    scores: tf.Tensor,
    depth: tf.Tensor | int,
    tie_breaking: TieBreaking,
    first_query: tf.Tensor | int,
    items_at: Callable[[tf.Tensor], Items],
) -> tuple[Items, Ties | None]:
    """The items at ranks 1 ... D, and their ties unless these are broken.

    NaN ranks below every number, and what was not retrieved below NaN.

    Args:
        scores: `[B, N]`; `last_score` where an item was not retrieved.
        depth: D.
        tie_breaking: How equal scores are ordered.
        first_query: Number of queries ranked before these.
        items_at: From the numbers of items, `[B, D]`, to these items.
    """

    def by(keys):
        order, sorted_keys = _order_by_key(keys, depth, tie_breaking, first_query)
        return keys, sorted_keys, items_at(order)

    plain = by(scores)
    may_have_nan, again_if_nan = tf.constant(False), lambda: plain
    if scores.dtype.is_floating:
        # Infinity less infinity is NaN too: then it is sorted again for nothing.
        may_have_nan = tf.reduce_any(tf.math.is_nan(tf.reduce_sum(scores, axis=1)))

        # To replace NaN in every batch would take a tenth of the time of an update, and
        # a third with a catalogue. Separate metrics share nothing within tf.cond.
        def again_if_nan():
            return tf.cond(
                may_have_nan,
                lambda: by(_nan_as_number(scores)),
                lambda: plain,
                name="again_if_nan",
            )

    if not tie_breaking.is_exact:
        return again_if_nan()[-1], None
    _, sorted_keys, ranked = plain
    may_exist = tf.reduce_any(_are_tied(sorted_keys)) | may_have_nan

    def find_groups():
        keys, sorted_keys, ranked = again_if_nan()
        return ranked, _groups_of_ties(keys, sorted_keys)

    return ranked, Ties(may_exist, find_groups)


def _nan_as_number(scores: tf.Tensor) -> tf.Tensor:
    """Scores with a number below all others for NaN.

    There is one, the lowest of the dtype, if in lists with NaN it counts as equal to
    the second lowest.
    """
    lowest = scores.dtype.as_numpy_dtype(scores.dtype.min)
    second = np.nextafter(lowest, np.zeros_like(lowest))
    is_nan = tf.math.is_nan(scores)
    has_nan = tf.reduce_any(is_nan, axis=1, keepdims=True)
    numbers = tf.where(has_nan & tf.equal(scores, lowest), second, scores)
    return tf.where(is_nan, lowest, numbers)


def _order_by_key(
    keys: tf.Tensor,
    depth: tf.Tensor | int,
    tie_breaking: TieBreaking,
    first_query: tf.Tensor | int,
) -> tuple[tf.Tensor, tf.Tensor]:
    """The items at ranks 1 ... D and their keys, both `[B, D]`."""
    if tie_breaking.is_exact:
        return _top_items(keys, depth)
    # Equal numbers must look equal to the sort: XLA's puts -0.0 below 0.0.
    keys = tf.where(tf.not_equal(keys, 0), keys, 0)
    if tie_breaking.ties == "stable":
        return _top_items(keys, depth)
    shuffle = _random_order(tf.shape(keys), tie_breaking.seed or 0, first_query)
    order, sorted_keys = _top_items(tf.gather(keys, shuffle, batch_dims=1), depth)
    return tf.gather(shuffle, order, batch_dims=1), sorted_keys


def _top_items(keys: tf.Tensor, depth: tf.Tensor | int) -> tuple[tf.Tensor, tf.Tensor]:
    """The items of the D largest keys and these, both `[B, D]`."""
    sorted_keys, order = tf.math.top_k(keys, depth)
    if keys.shape[1] is None or keys.shape[1] != depth:
        # This changes nothing. But a top_k whose values are sliced, as in `_are_tied`,
        # XLA turns back into a full sort (ten times slower on CPU), unless something is
        # in between. To gather the keys would take five times as long.
        last = last_score(keys.dtype)
        sorted_keys = select(is_retrieved(sorted_keys), sorted_keys, last)
    return order, sorted_keys


def _are_tied(sorted_keys: tf.Tensor) -> tf.Tensor:
    """Whether each of the keys `[B, D]` is tied with the next, `[B, D - 1]`."""
    # What was not retrieved has equal keys too, but is no group.
    is_tied = tf.equal(sorted_keys[:, 1:], sorted_keys[:, :-1])
    return is_tied & is_retrieved(sorted_keys[:, 1:])


def _groups_of_ties(keys: tf.Tensor, sorted_keys: tf.Tensor) -> TieGroups:
    """The groups of equal keys among `sorted_keys` `[B, D]`, the largest of `keys`."""
    start, end = _runs(_are_tied(sorted_keys))
    size = tf.cast(end - start, tf.float64)
    is_cut = tf.equal(end, tf.shape(end)[1])
    cut_items = None
    if keys.shape[1] is None or keys.shape[1] != sorted_keys.shape[1]:
        lowest = tf.reduce_min(sorted_keys, axis=1, keepdims=True)
        cut_items = tf.equal(keys, lowest)
        size = tf.where(is_cut, count(cut_items)[:, tf.newaxis], size)
    return TieGroups(start, end, size, is_cut, cut_items)


def _runs(is_tied: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Start and end of the run of ties that each place is in, int32 `[B, D]`.

    `is_tied` `[B, D - 1]` says whether a place is tied with the next.
    """
    depth = tf.shape(is_tied)[1] + 1
    is_first = tf.pad(~is_tied, [[0, 0], [1, 0]], constant_values=True)
    is_last = tf.pad(~is_tied, [[0, 0], [0, 1]], constant_values=True)
    # The start is the last place at or before it where a run starts; the end is
    # the same thing, seen from the other side.
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
    return starts, depth - tf.reverse(reversed_starts, axis=[1])


def _running_maximum(values: tf.Tensor) -> tf.Tensor:
    """Maximum of each of the values >= 0 and all before it along the last axis.

    TensorFlow has no cumulative maximum. This takes log2(D) shifted comparisons.
    """
    depth = values.shape[-1]
    if depth is None:
        return _running_maximum_of_unknown_depth(values)
    shift = 1
    while shift < depth:
        # On [2, 1024, 11] this takes half the time of tf.roll and a mask.
        nothing = tf.zeros_like(values[..., :shift])
        shifted = tf.concat([nothing, values[..., :-shift]], axis=-1)
        values = tf.maximum(values, shifted)
        shift *= 2
    return values


def _running_maximum_of_unknown_depth(values: tf.Tensor) -> tf.Tensor:
    places = tf.range(tf.shape(values)[-1])

    def widen(shift, values):
        shifted = tf.roll(values, shift, axis=-1)  # XLA has no slices of unknown size
        values = tf.where(places >= shift, tf.maximum(values, shifted), values)
        return 2 * shift, values

    return tf.while_loop(
        lambda shift, _: shift < tf.shape(values)[-1], widen, [1, values]
    )[1]


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
