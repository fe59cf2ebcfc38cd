"""Tied scores: everything this library knows about them.

The problem
    Items with equal scores have no order, so the value of a metric depends on the order
    that the sort happens to choose. With ties="expected", the default, every value is
    the exact mean over all orders of the tied items, without going through them.
    ties="stable" keeps tied items in the order of the list, and ties="random" draws
    one order from a seed.

Groups
    After the sort, items with equal scores are neighbors: a group. A group of n items
    takes the ranks start + 1 ... start + n, and in the mean over all orders each of its
    items is equally often at each of these ranks. In what follows r of the n items are
    relevant, and i is the rank within the group:

        rank     1    2    3    4    5    6
        score   0.9  0.7  0.7  0.7  0.2  0.2
        start    0    1    1    1    4    4
        n        1    3    3    3    2    2
        i        1    1    2    3    1    2

What the metrics need of them
    Sums of gains (DCG, precision, recall, RBP, ARP, ...)
        The mean of a sum is the sum of the means. The mean gain at each rank of a group
        is the sum of the group's gains / n: `RankedLists.expected`. A metric that is
        linear in the gains needs nothing else.
    The first relevant item (MRR, hit rate)
        If no rank above has a relevant item, all r are among the n - i + 1 ranks that
        are left: `first_relevant`.
    Relevant items above a relevant item (average precision)
        It has above it all relevant items of the groups above, and its share of the
        r - 1 others in its own group: `relevant_down_to`.
    A divisor that depends on the order, too (average precision over hits)
        Where a cutoff is inside a group, the number of hits above it is
        hypergeometric: `mean_over_hits`.
    A user who stops at an item with some probability (ERR, alpha-DCG)
        The probability to stop at one of s of the n items, drawn at random:
        `first_stop`.
    Irrelevant items above a relevant item, up to a maximum (BPref)
        Each number of irrelevant items above it is equally likely: `irrelevant_above`.
    Pairs (OPA, AUC)
        A tied pair counts one half. OPA takes the mean of the best and the worst order:
        `order_within_groups`. AUC is a sum of ranks.

Groups that go on below the last rank
    The ranking ends one rank below the deepest cutoff. The last group may have more
    items than that: it is cut. Its size, and the sums over its items, still include
    the items that have no rank here.

When groups are computed
    Most batches have no tie above a cutoff, and the groups take half of the operations
    of an update. So the formulas run without groups first, and inside a `tf.cond` with
    groups only if a batch has ties: `LazyTieGroups`.

The method comes from McSherry and Najork, "Computing Information Retrieval Performance
Measures Efficiently in the Presence of Tied Scores", ECIR 2008. They give the formulas
of precision, recall, F1, average precision, reciprocal rank and DCG.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import tensorflow as tf

from tfrankmetrics.ranking.items import ItemGain, Items, count, is_retrieved

if TYPE_CHECKING:
    from tfrankmetrics.ranking.ranked_lists import RankedLists


class TieBreaking(NamedTuple):
    """How equal scores are ordered."""

    ties: str  # "expected", "stable" or "random"
    seed: int | None

    @property
    def is_exact(self) -> bool:
        """Whether values are means over all orders, rather than of one order."""
        return self.ties == "expected"


class TieGroups(NamedTuple):
    """For each rank, the group of tied items that its item belongs to."""

    start: tf.Tensor  # [B, D] int32, the number of ranks above the group
    end: tf.Tensor  # [B, D] int32, the last rank of the group that was ranked
    size: tf.Tensor  # [B, D] float64, n: also counts items below the last rank
    is_cut: tf.Tensor  # [B, D] bool, whether the group goes on below the last rank
    # [B, J] bool, which judged items are in the group that is cut. None if the ranking
    # is as deep as the lists.
    cut_items: tf.Tensor | None


class LazyTieGroups(NamedTuple):
    """Whether the lists of a batch may have ties, and how to find the groups.

    Lists with NaN scores are ranked again when the groups are found, so `find` returns
    the ranked items, too.
    """

    may_exist: tf.Tensor  # bool
    find: Callable[[], tuple[Items, TieGroups]]


def are_tied(sorted_keys: tf.Tensor) -> tf.Tensor:
    """Whether each of the sorted keys `[B, D]` is tied with the next, `[B, D - 1]`."""
    is_tied = tf.equal(sorted_keys[:, 1:], sorted_keys[:, :-1])
    # Items that were not retrieved have equal keys, but are not tied.
    return is_tied & is_retrieved(sorted_keys[:, 1:])


def groups_of(keys: tf.Tensor, sorted_keys: tf.Tensor) -> TieGroups:
    """The groups of equal keys among `sorted_keys` `[B, D]`, the largest of `keys`."""
    start, end = _runs(are_tied(sorted_keys))
    size = tf.cast(end - start, tf.float64)
    is_cut = tf.equal(end, tf.shape(end)[1])
    cut_items = None
    if keys.shape[1] is None or keys.shape[1] != sorted_keys.shape[1]:
        lowest = tf.reduce_min(sorted_keys, axis=1, keepdims=True)
        cut_items = tf.equal(keys, lowest)
        size = tf.where(is_cut, count(cut_items)[:, tf.newaxis], size)
    return TieGroups(start, end, size, is_cut, cut_items)


def _runs(is_tied: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Start and end of the run of ties that each rank is in, int32 `[B, D]`.

    `is_tied` is the result of `are_tied`.
    """
    depth = tf.shape(is_tied)[1] + 1
    is_first = tf.pad(~is_tied, [[0, 0], [1, 0]], constant_values=True)
    is_last = tf.pad(~is_tied, [[0, 0], [0, 1]], constant_values=True)
    # The start is the last position, up to this one, where a run starts. The end is
    # the same in the reversed list.
    positions = tf.range(depth)
    starts, reversed_starts = tf.unstack(
        _running_maximum(
            tf.stack(
                [
                    tf.where(is_first, positions, 0),
                    tf.where(tf.reverse(is_last, axis=[1]), positions, 0),
                ]
            )
        )
    )
    return starts, depth - tf.reverse(reversed_starts, axis=[1])


def _running_maximum(values: tf.Tensor) -> tf.Tensor:
    """Maximum of each value >= 0 and all values before it, along the last axis.

    TensorFlow has no cumulative maximum. This takes log2(D) shifted comparisons.
    """
    depth = values.shape[-1]
    if depth is None:
        return _running_maximum_of_unknown_depth(values)
    shift = 1
    while shift < depth:
        # Faster than tf.roll with a mask.
        nothing = tf.zeros_like(values[..., :shift])
        shifted = tf.concat([nothing, values[..., :-shift]], axis=-1)
        values = tf.maximum(values, shifted)
        shift *= 2
    return values


def _running_maximum_of_unknown_depth(values: tf.Tensor) -> tf.Tensor:
    positions = tf.range(tf.shape(values)[-1])

    def widen(shift, values):
        shifted = tf.roll(values, shift, axis=-1)  # XLA has no slices of unknown size
        values = tf.where(positions >= shift, tf.maximum(values, shifted), values)
        return 2 * shift, values

    return tf.while_loop(
        lambda shift, _: shift < tf.shape(values)[-1], widen, [1, values]
    )[1]


def random_order(
    retrieved: tf.Tensor, seed: int, first_query: tf.Tensor | int
) -> tf.Tensor:
    """A random order of the N items of each query, int32 `[B, N]`.

    Each item's number is a hash of the seed, the query's number and the item's position
    among the retrieved items. Unlike TensorFlow's random ops, this gives the same order
    in every mode and on every device, whatever the padding and the batch size.
    """

    def scramble(bits):  # the 32-bit finalizer of Austin Appleby's MurmurHash3
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            bits = tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, shift))
            bits *= factor
        return tf.bitwise.bitwise_xor(bits, tf.bitwise.right_shift(bits, 16))

    batch = tf.shape(retrieved, out_type=tf.int64)[0]
    queries = tf.cast(first_query, tf.int64) + tf.range(batch)
    seed = scramble(tf.constant(seed % 2**32, tf.uint32))
    queries = scramble(scramble(tf.cast(queries, tf.uint32)) + seed)
    items = tf.cumsum(tf.cast(retrieved, tf.int32), axis=1, exclusive=True)
    items = tf.cast(items, tf.uint32)
    numbers = scramble(queries[:, tf.newaxis] + scramble(items))
    return tf.argsort(tf.bitcast(numbers, tf.int32), axis=1, stable=True)


def group_sums(lists: RankedLists, groups: TieGroups, gain: ItemGain) -> tf.Tensor:
    """Sum of the gains of all items tied with the one at each rank, `[B, D]`."""
    gains = gain(lists.ranked)
    above = tf.pad(lists.running_sums(gains), [[0, 0], [1, 0]])
    sums = tf.gather(above, groups.end, batch_dims=1) - tf.gather(
        above, groups.start, batch_dims=1
    )
    # A group of one has its own gain, without the rounding errors of a difference, so
    # that ties in one list do not change another.
    sums = tf.where(groups.size > 1, sums, gains)
    if lists.cut is None:
        return sums
    return tf.where(groups.is_cut, gain.sum(lists.cut)[:, tf.newaxis], sums)


def first_relevant(lists: RankedLists, relevance: ItemGain) -> tf.Tensor:
    """Probability that the first relevant item is at each rank, `[B, D]`."""
    n, i, r = lists.group_sizes, lists.rank_in_group, lists.group_sums(relevance)
    # If no rank above has a relevant item, all r are among the n - i + 1 ranks left.
    relevant_here = tf.minimum(tf.math.divide_no_nan(r, n - i + 1), 1)
    none_above = tf.math.cumprod(1 - relevant_here, axis=1, exclusive=True)
    return none_above * relevant_here


def _relevant_above_group(lists: RankedLists, relevant: tf.Tensor) -> tf.Tensor:
    """Number of relevant items in all groups above that of each rank, `[B, D]`."""
    above = lists.running_sums(relevant) - relevant * lists.rank_in_group
    return tf.round(above)  # a whole number, so rounding removes errors


def relevant_down_to(lists: RankedLists, relevance: ItemGain) -> tf.Tensor:
    """Mean number of relevant items at ranks 1 ... p if the item at p is relevant."""
    n, i, r = lists.group_sizes, lists.rank_in_group, lists.group_sums(relevance)
    above_group = _relevant_above_group(lists, lists.expected(relevance))
    # i - 1 of the n - 1 other ranks of the group are above it.
    others_above = tf.math.divide_no_nan((i - 1) * (r - 1), n - 1)
    return above_group + 1 + others_above


def mean_over_hits(
    lists: RankedLists, relevance: ItemGain, precision_here: tf.Tensor
) -> tf.Tensor:
    """(Sum of precisions down to each rank) / (relevant items down to it), `[B, D]`.

    Inside a group the divisor depends on the order, too. Of the r relevant items, h are
    at the first i ranks of the group with the hypergeometric probability
    C(r, h) C(n-r, i-h) / C(n, i). Given h, they are spread evenly over these ranks.

    Args:
        lists: The ranked lists.
        relevance: 1 for relevant items, 0 for others.
        precision_here: Mean of precision * relevance at each rank, `[B, D]`.
    """
    relevant = lists.expected(relevance)
    precisions = lists.running_sums(precision_here)
    untied = tf.math.divide_no_nan(precisions, lists.running_sums(relevant))
    if lists.groups is None:
        return untied
    n, i, r = lists.group_sizes, lists.rank_in_group, lists.group_sums(relevance)
    above, start = _relevant_above_group(lists, relevant), lists.groups.start
    mean_weight = tf.math.divide_no_nan(lists.group_sums(lists.weighted(relevance)), r)
    # Over the group's first i ranks: the sum of 1 / rank, and of (i - 1) / rank.
    harmonic = tf.pad(tf.cumsum(1 / lists.ranks), [[1, 0]])
    sum_1 = harmonic[1:] - tf.gather(harmonic, start)
    sum_ranks = i - tf.cast(start + 1, tf.float64) * sum_1

    def in_group(hits, ranks):
        """Sum of the precisions of `hits` items spread evenly over `ranks`."""
        others = tf.math.divide_no_nan(hits - 1, ranks - 1)
        density = tf.math.divide_no_nan(mean_weight * hits, ranks)
        return density * ((above + 1) * sum_1 + others * sum_ranks)

    precisions_above = precisions - in_group(r, n)

    def add_case(h, mean):
        log_chance = _log_choose(r, h) + _log_choose(n - r, i - h) - _log_choose(n, i)
        possible = (h <= r) & (h <= i) & (i - h <= n - r)
        chance = tf.where(possible, tf.exp(log_chance), 0)
        value = tf.math.divide_no_nan(precisions_above + in_group(h, i), above + h)
        return h + 1, mean + chance * value

    most_hits = tf.reduce_max(tf.minimum(r, i))
    zero = tf.zeros([], tf.float64)
    _, mean = tf.while_loop(
        lambda h, _: h <= most_hits, add_case, [zero, tf.zeros_like(precisions)]
    )
    return tf.where(n > 1, mean, untied)


def _log_choose(n: tf.Tensor, k: tf.Tensor) -> tf.Tensor:
    return tf.math.lgamma(n + 1) - tf.math.lgamma(k + 1) - tf.math.lgamma(n - k + 1)


def irrelevant_above(
    lists: RankedLists, relevance: ItemGain, maximum: tf.Tensor
) -> tf.Tensor:
    """Mean number of irrelevant items above a relevant item, at most `maximum`.

    For each rank, if its item is relevant, `[B, D]`; `maximum` is `[B, 1]`.
    """
    n, i, r = lists.group_sizes, lists.rank_in_group, lists.group_sums(relevance)
    relevant = lists.expected(relevance)
    above = lists.ranks - i - _relevant_above_group(lists, relevant)
    # Of the n - r irrelevant items tied with it, each number 0 ... n - r is equally
    # often above it; only `room` of them still count.
    room = tf.clip_by_value(maximum - above, 0, n - r)
    of_group = room * (room + 1) / 2 + (n - r - room) * room
    return tf.minimum(above, maximum) + of_group / (n - r + 1)


def first_stop(
    lists: RankedLists, groups: TieGroups, stop: ItemGain, stops: tf.Tensor
) -> tf.Tensor:
    """Probability that a user stops at each rank, `[B, D]`.

    In a group of n tied items, c(s) is the probability that the user stops at one of s
    of them drawn at random. It is computed for all s at once, an item at a time: with
    the m-th item, where the user stops with the probability p, it becomes
    c(s) * (m - s) / m + (p + c(s - 1) * (1 - p)) * s / m.

    Args:
        lists: The ranked lists.
        groups: Their groups of tied items.
        stop: The probability that the user stops at each item.
        stops: `stop` of the item at each rank, 0 below the end of a list.
    """
    is_item = lists.ranks <= lists.num_retrieved[:, tf.newaxis]
    reaches = tf.math.cumprod(1 - stops, axis=1, exclusive=True)
    reaches_group = tf.gather(reaches, groups.start, batch_dims=1)
    stop_of = _stops_by_group(groups, lists.cut, stop, stops)
    s, n = lists.rank_in_group, tf.where(is_item, lists.group_sizes, 1)

    def one_less(c):
        return tf.where(s > 1, tf.roll(c, 1, axis=1), 0)

    def add_item(m, c):
        p = stop_of(m)
        with_item = (c * (m - s) + (p + one_less(c) * (1 - p)) * s) / m
        return m + 1, tf.where(m <= n, tf.where(s <= m, with_item, 0), c)

    _, c = tf.while_loop(
        lambda m, _: m <= tf.reduce_max(n),
        add_item,
        [tf.ones([], tf.float64), tf.zeros_like(stops)],
    )
    return reaches_group * (c - one_less(c))


def _stops_by_group(
    groups: TieGroups, cut: Items | None, stop: ItemGain, stops: tf.Tensor
) -> Callable[[tf.Tensor], tf.Tensor]:
    """A function of m: `stop` of the m-th item of each rank's group, `[B, D]`."""
    last = tf.shape(stops)[1] - 1

    def of_ranked(m):
        position = tf.minimum(groups.start + tf.cast(m, tf.int32) - 1, last)
        return tf.gather(stops, position, batch_dims=1)

    if cut is None:
        return of_ranked
    cut_first = tf.argsort(tf.cast(cut.valid, tf.int32), 1, "DESCENDING", stable=True)
    cut_stops = tf.gather(tf.where(cut.valid, stop(cut), 0), cut_first, batch_dims=1)
    cut_stops = tf.pad(cut_stops, [[0, 0], [0, 1]])
    last_cut = tf.shape(cut_stops)[1] - 1

    def of_ranked_or_cut(m):
        of_cut = cut_stops[:, tf.minimum(tf.cast(m, tf.int32) - 1, last_cut)]
        return tf.where(groups.is_cut, of_cut[:, tf.newaxis], of_ranked(m))

    return of_ranked_or_cut


def order_within_groups(start: tf.Tensor, order: tf.Tensor) -> tf.Tensor:
    """The position of each rank's item if tied items follow `order`, int32 `[B, D]`.

    `start` comes from `TieGroups`; `order` `[B, D]` is a permutation of the ranks.
    """
    by_group = tf.argsort(tf.gather(start, order, batch_dims=1), axis=1, stable=True)
    return tf.argsort(tf.gather(order, by_group, batch_dims=1), axis=1)
