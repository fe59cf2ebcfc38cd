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
from typing import TYPE_CHECKING

import tensorflow as tf

from tfrankmetrics.ranking.items import DerivedGain, ItemGain, count
from tfrankmetrics.ranking.ties import TieGroups, group_sums

if TYPE_CHECKING:
    from tfrankmetrics.ranking.ranked_lists import RankedLists

NEGLIGIBLE = 1e-18  # a probability that changes no digit of a sum
MOST_CLASSES = 64


def first_stop(
    lists: RankedLists, groups: TieGroups, stop: ItemGain, stops: tf.Tensor
) -> tf.Tensor:
    """Probability that a user stops at each rank, `[B, D]`.

    Args:
        lists: The ranked lists.
        groups: Their groups of tied items.
        stop: The probability that the user stops at each item.
        stops: `stop` of the item at each rank, 0 below the end of a list.
    """
    reaches = tf.math.cumprod(1 - stops, axis=1, exclusive=True)
    reaches_group = tf.gather(reaches, groups.start, batch_dims=1)
    may_stop = DerivedGain(lambda items: tf.cast(stop(items) > 0, tf.float64))
    number, _ = group_sums(lists, groups, may_stop, tf.cast(stops > 0, tf.float64))
    is_done, by_rank = _rank_by_rank(lists, groups, stop, stops, number)
    number = tf.where(~is_done, number, 0)
    in_group = tf.cond(
        tf.reduce_any(number > 0),
        lambda: tf.where(
            is_done, by_rank, _item_by_item(lists, groups, stop, stops, number)
        ),
        lambda: by_rank,
    )
    return reaches_group * in_group


def _item_by_item(
    lists: RankedLists,
    groups: TieGroups,
    stop: ItemGain,
    stops: tf.Tensor,
    number: tf.Tensor,
) -> tf.Tensor:
    """The chance to stop at each rank if the user reaches its group, `[B, D]`.

    c(s) is the probability that the user stops at one of s of the n items drawn at
    random. It is computed for all s at once, an item at a time: with the m-th item it
    becomes c(s) * (m - s) / m + (p + c(s - 1) * (1 - p)) * s / m. Of items with p = 0,
    c(s) is 0. So the loop starts behind them: `number` counts the others, `[B, D]`.
    """
    s, n = groups.rank_in_group(lists.ranks), groups.sizes
    stop_of = _stops_by_group(lists, groups, stop, stops)

    def one_less(c):
        return tf.where(s > 1, tf.roll(c, 1, axis=1), 0)

    def add_item(j, c):
        p, m = stop_of(j), n - number + j
        with_item = (c * (m - s) + (p + one_less(c) * (1 - p)) * s) / m
        return j + 1, tf.where(j <= number, tf.where(s <= m, with_item, 0), c)

    _, c = tf.while_loop(
        lambda j, _: j <= tf.reduce_max(number),
        add_item,
        [tf.ones([], tf.float64), tf.zeros_like(stops)],
    )
    return c - one_less(c)


def _stops_by_group(
    lists: RankedLists, groups: TieGroups, stop: ItemGain, stops: tf.Tensor
) -> Callable[[tf.Tensor], tf.Tensor]:
    """A function of j: the j-th p above 0 of each rank's group, `[B, D]`."""
    by_group = 2 * groups.start + tf.cast(tf.equal(stops, 0), tf.int32)
    stops = tf.gather(stops, tf.argsort(by_group, axis=1, stable=True), batch_dims=1)
    final = tf.shape(stops)[1] - 1

    def of_ranked(j):
        position = tf.minimum(groups.start + tf.cast(j, tf.int32) - 1, final)
        return tf.gather(stops, position, batch_dims=1)

    if groups.last_items is None:
        return of_ranked
    # `_rank_by_rank` does a last group with more items with p > 0 than 2 * D.
    last_stops = tf.where(groups.last_items, stop(lists.judged), 0)
    most = tf.minimum(2 * lists.depth, tf.shape(last_stops)[1])
    last_stops, _ = tf.math.top_k(last_stops, most)
    last_stops = tf.pad(last_stops, [[0, 0], [0, 1]])
    final_last = tf.shape(last_stops)[1] - 1

    def of_ranked_or_last(j):
        of_last = last_stops[:, tf.minimum(tf.cast(j, tf.int32) - 1, final_last)]
        return tf.where(groups.is_last, of_last[:, tf.newaxis], of_ranked(j))

    return of_ranked_or_last


def _rank_by_rank(
    lists: RankedLists,
    groups: TieGroups,
    stop: ItemGain,
    stops: tf.Tensor,
    number: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Which ranks are done, and the chance to stop there if the user reaches the group.

    Does one group of each list: the one at the last rank or, if the ranking is as deep
    as the lists, the largest. With a mean p of the items, a user gets beyond s ranks
    with a probability of at most (1 - mean p)^s (Maclaurin's inequality), so few ranks
    may suffice.
    """
    if groups.last_items is None:
        largest = tf.argmax(groups.sizes, axis=1)[:, tf.newaxis]
        is_here = tf.equal(groups.start, tf.gather(groups.start, largest, batch_dims=1))
        p = tf.where(is_here, stops, 0)
    else:
        is_here = groups.is_last
        p = tf.where(groups.last_items, stop(lists.judged), 0)
    n = tf.reduce_max(tf.where(is_here, groups.sizes, 1), axis=1)
    mean = tf.reduce_sum(p, axis=1) / n
    steps = tf.math.ceil(math.log(NEGLIGIBLE) / tf.math.log1p(-mean))
    steps = tf.minimum(tf.maximum(steps, 1), count(is_here))
    items = tf.reduce_max(tf.where(is_here, number, 0), axis=1)
    # A step by rank takes a quarter of the time of a step by item.
    is_done = (2 * steps <= n) & (steps < 4 * items)
    steps = tf.where(is_done, steps, 0)

    def of_items():
        return _walk(steps, n, p, tf.ones_like(p), lists.depth)

    def of_classes():
        values, numbers, are_all = _classes(p)
        return tf.cond(
            are_all, lambda: _walk(steps, n, values, numbers, lists.depth), of_items
        )

    # To find the classes takes as long as this many steps.
    chances = tf.cond(tf.reduce_max(steps) > 32, of_classes, of_items)
    i = groups.rank_in_group(lists.ranks)
    chances = tf.gather(chances, tf.cast(i, tf.int32) - 1, batch_dims=1)
    chances = tf.where(i <= steps[:, tf.newaxis], chances, 0)
    return is_here & is_done[:, tf.newaxis], chances


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
    weights = p * numbers

    def next_rank(s, v, reaches, found):
        unread, stopped = n - s + 1, tf.linalg.matvec(weights[:, tf.newaxis], v)[:, 0]
        found = found.write(tf.cast(s, tf.int32) - 1, reaches * stopped / unread)
        factor = tf.math.divide_no_nan(s, unread - stopped)[:, tf.newaxis]
        v = 1 - factor * ((1 - p) * v)
        return s + 1, v, reaches * (1 - stopped / unread), found

    found = tf.TensorArray(tf.float64, depth, element_shape=n.shape)
    found = found.unstack(tf.zeros([depth, tf.shape(n)[0]], tf.float64))
    *_, found = tf.while_loop(
        lambda s, *_: s <= tf.reduce_max(steps),
        next_rank,
        [tf.ones([], tf.float64), tf.ones_like(p), tf.ones_like(n), found],
    )
    return tf.transpose(found.stack())


def _classes(p: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The distinct p of each list and their numbers, both `[B, MOST_CLASSES]`.

    Grades make few different p. The last result says whether these are all.
    """
    p = tf.sort(p, axis=1)
    is_new = tf.pad(p[:, 1:] > p[:, :-1], [[0, 0], [1, 0]])
    classes = tf.cumsum(tf.cast(is_new, tf.int32), axis=1)
    are_all = tf.reduce_max(classes) < MOST_CLASSES
    rows = tf.range(tf.shape(p)[0])[:, tf.newaxis] * MOST_CLASSES
    segments = tf.minimum(classes, MOST_CLASSES - 1) + rows
    shape = [tf.shape(p)[0], MOST_CLASSES]
    values, numbers = (
        tf.reshape(
            function(
                tf.reshape(x, [-1]), tf.reshape(segments, [-1]), shape[0] * shape[1]
            ),
            shape,
        )
        for function, x in (
            (tf.math.unsorted_segment_max, p),
            (tf.math.unsorted_segment_sum, tf.ones_like(p)),
        )
    )
    return tf.where(numbers > 0, values, 0), numbers, are_all
