"""Where a user stops in tied items: the exact means for ERR and alpha-DCG.

The user reads from the top and stops at each item with its own probability p. In a
group of n tied items, all orders are equally likely. There are two ways to compute the
chance to stop at each rank of a group:

Item by item
    for any group; a step for each item with p > 0.
Rank by rank
    for the first half of the ranks of a group; a step for each rank. It is used where
    that half suffices and takes fewer steps. This is so in large groups, such as the
    list of a model whose scores are constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import tensorflow as tf

from tfrankmetrics.ranking.items import ItemGain, count, select
from tfrankmetrics.ranking.ranked_items import RankedItems
from tfrankmetrics.ranking.ties import TieGroups, group_sums

NEGLIGIBLE = 1e-24  # a probability that changes no digit of a sum
MOST_CLASSES = 64


class Stops(NamedTuple):
    """The chances to stop at the items of tied groups."""

    at_ranks: tf.Tensor  # [B, D], of the item at each rank
    # Of the items of the last group, [B, J], and the largest of them, in descending
    # order, [B, at most 2 * D]. None if the ranking is as deep as the lists.
    of_last: tf.Tensor | None
    largest_of_last: tf.Tensor | None
    number: tf.Tensor  # [B, D], how many items of each rank's group have a p above 0


def first_stop(
    lists: RankedItems, groups: TieGroups, stop: ItemGain, at_ranks: tf.Tensor
) -> tf.Tensor:
    """Probability that a user stops at each rank, `[B, D]`.

    Args:
        lists: The ranked lists.
        groups: Their groups of tied items.
        stop: The probability that the user stops at each item.
        at_ranks: `stop` of the item at each rank, 0 below the end of a list.
    """
    reaches = tf.math.cumprod(1 - at_ranks, axis=1, exclusive=True)
    reaches_group = tf.gather(reaches, groups.start, batch_dims=1)
    stops = _stops_of(lists, groups, stop, at_ranks)
    is_read = (reaches_group > NEGLIGIBLE) & (stops.number > 0)
    is_done, by_rank = _rank_by_rank(lists, groups, stops, is_read)
    number = tf.where(is_read & ~is_done, stops.number, 0)
    in_group = tf.cond(
        tf.reduce_any(number > 0),
        lambda: tf.where(is_done, by_rank, _item_by_item(lists, groups, stops, number)),
        lambda: by_rank,
    )
    return reaches_group * in_group


def _stops_of(
    lists: RankedItems, groups: TieGroups, stop: ItemGain, at_ranks: tf.Tensor
) -> Stops:
    of_last = largest_of_last = number_of_last = None
    if groups.last_items is not None:
        of_last = select(groups.last_items, stop(lists.judged), 0)
        most = tf.minimum(2 * lists.depth, tf.shape(of_last)[1])
        largest_of_last, _ = tf.math.top_k(of_last, most)
        number_of_last = count(of_last > 0)
    may_stop = tf.cast(at_ranks > 0, tf.float64)
    number, _ = group_sums(lists, groups, may_stop, lambda _: number_of_last)
    return Stops(at_ranks, of_last, largest_of_last, number)


def _item_by_item(
    lists: RankedItems, groups: TieGroups, stops: Stops, number: tf.Tensor
) -> tf.Tensor:
    """The chance to stop at each rank if the user reaches its group, `[B, D]`.

    c(s) is the probability that the user stops at one of s of the n items drawn at
    random. It is computed for all s at once, an item at a time: with the m-th item it
    becomes c(s) * (m - s) / m + (p + c(s - 1) * (1 - p)) * s / m. Of items with p = 0,
    c(s) is 0. So the loop starts behind them. `number` counts the others, `[B, D]`, and
    is 0 for a group to leave out.
    """
    s = groups.rank_in_group(lists.positions)
    has_one_less, others = s > 1, groups.sizes - number
    stop_of = _stops_by_group(groups, stops)

    def one_less(c):
        return tf.where(has_one_less, tf.roll(c, 1, axis=1), 0)

    def add_item(j, c):
        p = stop_of(j)
        # c(s) has no meaning, and no effect, as long as there are less than s items.
        share = tf.where(j <= number, tf.minimum(s / (others + j), 1), 0)
        return j + 1, c + share * (p + one_less(c) * (1 - p) - c)

    _, c = tf.while_loop(
        lambda j, _: j <= tf.reduce_max(number),
        add_item,
        [tf.ones([], tf.float64), tf.zeros_like(number)],
    )
    return c - one_less(c)


def _stops_by_group(
    groups: TieGroups, stops: Stops
) -> Callable[[tf.Tensor], tf.Tensor]:
    """A function of j: the j-th p above 0 of each rank's group, `[B, D]`."""
    at_ranks = stops.at_ranks
    by_group = 2 * groups.start + tf.cast(tf.equal(at_ranks, 0), tf.int32)
    order = tf.argsort(by_group, axis=1, stable=True)
    at_ranks = tf.gather(at_ranks, order, batch_dims=1)
    final = tf.shape(at_ranks)[1] - 1

    def of_ranked(j):
        position = tf.minimum(groups.start + tf.cast(j, tf.int32) - 1, final)
        return tf.gather(at_ranks, position, batch_dims=1)

    if stops.largest_of_last is None:
        return of_ranked
    # `_rank_by_rank` does a last group with more items with p > 0 than these.
    of_last = tf.pad(stops.largest_of_last, [[0, 0], [0, 1]])
    final_last = tf.shape(of_last)[1] - 1

    def of_ranked_or_last(j):
        p = of_last[:, tf.minimum(tf.cast(j, tf.int32) - 1, final_last)]
        return tf.where(groups.is_last, p[:, tf.newaxis], of_ranked(j))

    return of_ranked_or_last


def _rank_by_rank(
    lists: RankedItems, groups: TieGroups, stops: Stops, is_read: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Which ranks are done, and the chance to stop there if the user reaches the group.

    The chance is 0 at the other ranks.

    Does one group of each list: the one at the last rank or, if the ranking is as deep
    as the lists, the largest. With a mean p of the items, a user gets beyond s ranks
    with a probability of at most (1 - mean p)^s (Maclaurin's inequality), so few ranks
    may suffice.
    """
    if stops.of_last is None:
        largest = tf.argmax(groups.sizes, axis=1)[:, tf.newaxis]
        is_here = tf.equal(groups.start, tf.gather(groups.start, largest, batch_dims=1))
        p = tf.where(is_here, stops.at_ranks, 0)
    else:
        is_here, p = groups.is_last, stops.of_last
    is_here &= is_read
    n = tf.reduce_max(tf.where(is_here, groups.sizes, 1), axis=1)
    mean = tf.reduce_sum(p, axis=1) / n
    steps = tf.math.ceil(math.log(NEGLIGIBLE) / tf.math.log1p(-mean))
    steps = tf.minimum(tf.maximum(steps, 1), count(is_here))
    items = tf.reduce_max(tf.where(is_here, stops.number, 0), axis=1)
    # A step by rank reads each item, and a step by item writes each rank. Per number,
    # a step by rank takes a quarter of the time.
    width, depth = (tf.cast(tf.shape(x)[1], tf.float64) for x in (p, is_here))
    is_faster = (steps * width < 4 * items * depth) | (items > 2 * depth)
    is_done = (2 * steps <= n) & is_faster
    steps = tf.where(is_done, steps, 0)

    def of_items():
        return _walk(steps, n, p, tf.ones_like(p), lists.depth)

    # To find a class takes as long as a step.
    most = tf.minimum(tf.cast(tf.reduce_max(steps) / 2, tf.int32), MOST_CLASSES)
    values, numbers, are_all = _classes(p, most)
    chances = tf.cond(
        are_all,
        lambda: _walk(steps, n, values, numbers, lists.depth),
        lambda: _walk(steps, n, p, tf.ones_like(p), lists.depth),
    )
    i = groups.rank_in_group(lists.positions)
    chances = tf.gather(chances, tf.cast(i, tf.int32) - 1, batch_dims=1)
    is_done = is_here & is_done[:, tf.newaxis]
    return is_done, tf.where(is_done & (i <= steps[:, tf.newaxis]), chances, 0)


def _walk(
    steps: tf.Tensor,
    n: tf.Tensor,
    p: tf.Tensor,
    numbers: tf.Tensor,
    depth: tf.Tensor | int,
) -> tf.Tensor:
    """The chance to stop at the ranks 1 ... `steps` of n items, `[B, D]`; 0 below.

    At rank s each item is unread with the probability v, if the user has not stopped
    before. All v have the sum n - s + 1, so the user stops here with the probability
    sum(p * v) / (n - s + 1). If not, v becomes 1 - s * (1 - p) * v / sum((1 - p) * v).
    This is a recursion of Chen and Liu, "Statistical applications of the
    Poisson-binomial and conditional Bernoulli distributions", Statistica Sinica 7,
    1997. Rounding errors shrink in it as long as s is at most n / 2.

    Args:
        steps: `[B]`, at most n / 2.
        n: `[B]`.
        p: `[B, X]`.
        numbers: How many items have this p, `[B, X]`.
        depth: D.
    """
    weights, goes_on = p * numbers, 1 - p

    def next_rank(s, v, reaches, found):
        unread, stopped = n - s + 1, tf.linalg.matvec(weights[:, tf.newaxis], v)[:, 0]
        found = found.write(tf.cast(s, tf.int32) - 1, reaches * stopped / unread)
        factor = tf.math.divide_no_nan(s, unread - stopped)[:, tf.newaxis]
        v = 1 - factor * (goes_on * v)
        return s + 1, v, reaches * (1 - stopped / unread), found

    found = tf.TensorArray(tf.float64, depth, element_shape=n.shape)
    found = found.unstack(tf.zeros([depth, tf.shape(n)[0]], tf.float64))
    *_, found = tf.while_loop(
        lambda s, *_: s <= tf.reduce_max(steps),
        next_rank,
        [tf.ones([], tf.float64), tf.ones_like(p), tf.ones_like(n), found],
    )
    return tf.transpose(found.stack())


def _classes(p: tf.Tensor, most: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The distinct p above 0 of each list and their numbers, both `[B, MOST_CLASSES]`.

    Grades make few different p. The search ends after `most` of them, an int32 of at
    most `MOST_CLASSES`. The last result says whether these are all.
    """

    def find(j, value, rest, values, numbers):
        is_lower = p < value
        lower = count(is_lower)[:, tf.newaxis]
        is_here = tf.equal(tf.range(MOST_CLASSES), j)
        values = tf.where(is_here, value, values)
        numbers = tf.where(is_here, rest - lower, numbers)
        value = tf.reduce_max(select(is_lower, p, 0), axis=1, keepdims=True)
        return j + 1, value, lower, values, numbers

    largest = tf.reduce_max(p, axis=1, keepdims=True)
    all_items = tf.cast(tf.shape(p)[1], tf.float64) * tf.ones_like(largest)
    none = tf.zeros([tf.shape(p)[0], MOST_CLASSES], tf.float64)
    _, rest, _, values, numbers = tf.while_loop(
        lambda j, value, *_: (j < most) & tf.reduce_any(value > 0),
        find,
        [0, largest, all_items, none, none],
    )
    return values, numbers, tf.reduce_all(rest <= 0)
