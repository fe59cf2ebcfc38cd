"""Pairs in the right order, counted without a tensor of all pairs."""

from __future__ import annotations

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.ranking.items import ItemGain, Items, without_negative_zero
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.ranking.ties import order_within_groups


def pairs_in_order(lists: RankedLists, weight: ItemGain) -> Array:
    """Number of pairs of unequal labels with the higher label on top, float64 `[B]`.

    Each pair is weighted by the `weight` of its item with the higher label, and a tied
    pair by one half of it. Items that were not retrieved are tied below all others.
    """
    listed = lists.listed
    is_missed = listed.valid & ~listed.retrieved
    over_missed = _lower_among(is_missed, listed)
    over_missed = xp.where(is_missed, over_missed / 2, over_missed)
    ranked = xp.sum(lists.at_ranks(weight) * lower_below(lists), axis=1)
    return ranked + xp.sum(weight(listed) * over_missed, axis=1)


def lower_labels(items: Items) -> Array:
    """For each item the number of items with a lower label, float64; 0 for padding."""
    return _lower_among(items.valid, items)


def _lower_among(among: Array, items: Items) -> Array:
    labels = without_negative_zero(items.labels)
    others = xp.sort(xp.where(among, labels, float("inf")), axis=1)
    lower = xp.searchsorted(others, labels)
    return xp.where(items.valid, xp.astype(lower, xp.float64), 0)


def lower_below(lists: RankedLists) -> Array:
    """How many retrieved items of a lower label rank below that at each rank, `[B, D]`.

    Going through the items by ascending label, each one wins over all earlier items
    that rank lower. A tie is counted as one half: it is won in the best order and lost
    in the worst.
    """
    labels = without_negative_zero(lists.ranked.labels)
    labels = xp.where(lists.ranked.retrieved, labels, float("inf"))
    by_label = xp.argsort(labels, axis=1)

    def mean_of_worst_and_best(lists, groups):
        worst = order_within_groups(groups.start, by_label)
        best = xp.argsort(labels, axis=1, descending=True)
        best = order_within_groups(groups.start, best)
        positions = xp.concat([worst, best], axis=0)
        below = _inversions(xp.gather(positions, xp.tile(by_label, [2, 1])))
        both = xp.gather(below, positions)
        return xp.mean(xp.reshape(both, [2, -1, xp.shape(labels)[1]]), axis=0)

    return lists.if_tied(_inversions(by_label), mean_of_worst_and_best)


def _inversions(positions: Array) -> Array:
    """For each position, how many earlier items have a later one, float64 `[B, D]`.

    Sorts the items by the bits of their `positions` `[B, D]`, each row a permutation of
    0 ... D-1, from the highest bit: two items are separated where their bits first
    differ; they are an inversion if the earlier one has the 1. This takes log2(D) steps
    of size D.
    """
    size = xp.shape(positions)[1]
    index = xp.arange(size, like=positions)
    top_bit = xp.while_loop(
        lambda bit: 2 * bit < size, lambda bit: (2 * bit,), [1], like=positions
    )[0]

    def separate(bit, positions, numbers):
        is_one = xp.equal(positions // bit % 2, 1)
        ones = xp.cumulative_sum(xp.astype(is_one, xp.int32), axis=1, exclusive=True)
        # From this step on, items with the same higher bits are adjacent.
        start = index // (2 * bit) * (2 * bit)
        ones_before = ones - xp.take(ones, start, axis=1)
        numbers += xp.where(is_one, 0, ones_before)
        goes_to = start + xp.where(
            is_one, bit + ones_before, index - start - ones_before
        )
        order = xp.argsort(goes_to, axis=1)
        return bit // 2, xp.gather(positions, order), xp.gather(numbers, order)

    numbers = xp.while_loop(
        lambda bit, *_: bit > 0,
        separate,
        [top_bit, positions, xp.zeros_like(positions)],
    )[2]
    return xp.astype(numbers, xp.float64)
