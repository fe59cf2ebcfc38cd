"""Pairs in the right order, counted without a tensor of all pairs."""

from __future__ import annotations

import tensorflow as tf

from tfrankmetrics.ranking.items import ItemGain, Items, without_negative_zero
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.ranking.ties import order_within_groups


def pairs_in_order(lists: RankedLists, weight: ItemGain) -> tf.Tensor:
    """How many pairs of unequal labels have the higher label on top, float64 `[B]`.

    Each pair counts with the `weight` of its item with the higher label, and a tied
    pair counts one half of it. Items that were not retrieved are tied below all others.
    """
    judged = lists.judged
    is_missed = judged.valid & ~judged.retrieved
    over_missed = _lower_among(is_missed, judged)
    over_missed = tf.where(is_missed, over_missed / 2, over_missed)
    return _ranked_pairs(lists, weight(lists.ranked)) + tf.reduce_sum(
        weight(judged) * over_missed, axis=1
    )


def lower_labels(items: Items) -> tf.Tensor:
    """For each item the number of items with a lower label, float64; 0 for padding."""
    return _lower_among(items.valid, items)


def _lower_among(among: tf.Tensor, items: Items) -> tf.Tensor:
    labels = without_negative_zero(items.labels)
    others = tf.sort(tf.where(among, labels, float("inf")), axis=1)
    lower = tf.searchsorted(others, labels)
    return tf.where(items.valid, tf.cast(lower, tf.float64), 0)


def _ranked_pairs(lists: RankedLists, weights: tf.Tensor) -> tf.Tensor:
    """The pairs among the retrieved items; `weights` `[B, D]` are by rank.

    Going through the items by ascending label, each one wins over all earlier items
    that rank lower. A tie counts one half: it is won in its best order and lost in its
    worst.
    """
    labels = without_negative_zero(lists.ranked.labels)
    labels = tf.where(lists.ranked.retrieved, labels, float("inf"))
    by_label = tf.argsort(labels, axis=1, stable=True)
    weights = tf.gather(weights, by_label, batch_dims=1)

    def mean_of_worst_and_best(groups):
        worst = order_within_groups(groups.start, by_label)
        best = tf.argsort(labels, axis=1, direction="DESCENDING", stable=True)
        best = order_within_groups(groups.start, best)
        positions = [tf.gather(each, by_label, batch_dims=1) for each in (worst, best)]
        both = _inversions(tf.concat(positions, axis=0), tf.tile(weights, [2, 1]))
        return tf.reduce_mean(tf.reshape(both, [2, -1]), axis=0)

    return lists.if_tied(mean_of_worst_and_best, _inversions(by_label, weights))


def _inversions(positions: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Sum over the items of weight * number of earlier items with a later position.

    Sorts the items by the bits of their `positions` `[B, D]`, each row a permutation of
    0 ... D-1, from the highest bit: two items are separated where their bits first
    differ, and are an inversion if the earlier one has the 1. This takes log2(D) steps
    of size D.
    """
    size = tf.shape(positions)[1]
    index = tf.range(size)
    top_bit = tf.while_loop(lambda bit: 2 * bit < size, lambda bit: (2 * bit,), [1])[0]

    def separate(bit, positions, weights, total):
        is_one = tf.equal(positions // bit % 2, 1)
        ones = tf.cumsum(tf.cast(is_one, tf.int32), axis=1, exclusive=True)
        # From here on, items with the same higher bits stand together.
        start = index // (2 * bit) * (2 * bit)
        ones_before = ones - tf.gather(ones, start, axis=1)
        won = tf.where(~is_one, weights * tf.cast(ones_before, tf.float64), 0)
        goes_to = start + tf.where(
            is_one, bit + ones_before, index - start - ones_before
        )
        order = tf.argsort(goes_to, axis=1)
        return (
            bit // 2,
            tf.gather(positions, order, batch_dims=1),
            tf.gather(weights, order, batch_dims=1),
            total + tf.reduce_sum(won, axis=1),
        )

    total = tf.zeros(tf.shape(weights)[:1], tf.float64)
    return tf.while_loop(
        lambda bit, *_: bit > 0, separate, [top_bit, positions, weights, total]
    )[3]
