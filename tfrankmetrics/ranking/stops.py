"""Where a user stops in tied items: the exact means for ERR and alpha-DCG.

The user reads from the top and stops at each item with a probability p that depends on
the item. In a group of n tied items, all permutations are equally likely. There are two
ways to compute the probability of a stop at each rank of a group:

Item by item
    for any group; a step for each item with p > 0.
Rank by rank
    for the first half of the ranks of a group; a step for each rank. It is used where
    that half suffices and takes fewer steps, as in large groups, such as the list of a
    model with constant scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.ranking.items import ItemGain, count
from tfrankmetrics.ranking.ties import TieGroups, group_sums

if TYPE_CHECKING:
    from tfrankmetrics.ranking.ranked_lists import RankedLists

NEGLIGIBLE = 1e-24  # a probability that changes no digit of a sum


class Stops(NamedTuple):
    """The probabilities of a stop at the items of tied groups."""

    at_ranks: Array  # [B, D], of the item at each rank
    # Of the items of the last group, [B, J], and the largest of them, in descending
    # order, [B, at most 2 * D]. None if the ranking is as deep as the lists.
    of_last: Array | None
    largest_of_last: Array | None
    number: Array  # [B, D], how many items of each rank's group have a p above 0


def first_stop(
    lists: RankedLists, groups: TieGroups, stop: ItemGain, at_ranks: Array
) -> Array:
    """Probability that a user stops at each rank, `[B, D]`.

    Args:
        lists: The ranked lists.
        groups: Their groups of tied items.
        stop: The probability that the user stops at each item.
        at_ranks: `stop` of the item at each rank, 0 below the end of a list.
    """
    reaches = xp.cumulative_prod(1 - at_ranks, axis=1, exclusive=True)
    reaches_group = xp.gather(reaches, groups.start)
    stops = _stops_of(lists, groups, stop, at_ranks)
    is_read = (reaches_group > NEGLIGIBLE) & (stops.number > 0)
    is_done, by_rank = _rank_by_rank(lists, groups, stops, is_read)
    number = xp.where(is_read & ~is_done, stops.number, 0)
    in_group = xp.cond(
        xp.any(number > 0),
        lambda: xp.where(is_done, by_rank, _item_by_item(lists, groups, stops, number)),
        lambda: by_rank,
    )
    return reaches_group * in_group


def _stops_of(
    lists: RankedLists, groups: TieGroups, stop: ItemGain, at_ranks: Array
) -> Stops:
    of_last = largest_of_last = number_of_last = None
    if groups.last_items is not None:
        of_last = xp.select(groups.last_items, stop(lists.listed), 0)
        most = xp.minimum(2 * lists.depth, xp.shape(of_last)[1])
        largest_of_last, _ = xp.top_k(of_last, most)
        number_of_last = count(of_last > 0)
    may_stop = xp.astype(at_ranks > 0, xp.float64)
    number, _ = group_sums(lists, groups, may_stop, lambda _: number_of_last)
    return Stops(at_ranks, of_last, largest_of_last, number)


def _item_by_item(
    lists: RankedLists, groups: TieGroups, stops: Stops, number: Array
) -> Array:
    """The probability of a stop at each rank if the user reaches its group, `[B, D]`.

    c(s) is the probability that the user stops at one of s of the n items drawn at
    random. It is computed for all s at once, an item at a time: with the m-th item it
    becomes c(s) * (m - s) / m + (p + c(s - 1) * (1 - p)) * s / m. For items with p = 0,
    c(s) is 0, and the loop starts after them. `number` is the number of the others,
    `[B, D]`, and 0 for a group to skip.
    """
    s = groups.rank_in_group(lists.positions)
    has_one_less, others = s > 1, groups.sizes - number
    stop_of = _stops_by_group(groups, stops)

    def one_less(c):
        return xp.where(has_one_less, xp.roll(c, 1, axis=1), 0)

    def add_item(j, c):
        p = stop_of(j)
        # s / m, where m = others + j. As long as there are fewer than s items, c(s) has
        # no meaning and no effect.
        share = xp.where(j <= number, xp.minimum(s / (others + j), 1), 0)
        return j + 1, c + share * (p + one_less(c) * (1 - p) - c)

    _, c = xp.while_loop(
        lambda j, _: j <= xp.max(number),
        add_item,
        [xp.ones([], xp.float64, like=number), xp.zeros_like(number)],
    )
    return c - one_less(c)


def _stops_by_group(groups: TieGroups, stops: Stops) -> Callable[[Array], Array]:
    """A function of j: the j-th p above 0 of each rank's group, `[B, D]`."""
    at_ranks = stops.at_ranks
    by_group = 2 * groups.start + xp.astype(xp.equal(at_ranks, 0), xp.int32)
    order = xp.argsort(by_group, axis=1)
    at_ranks = xp.gather(at_ranks, order)
    final = xp.shape(at_ranks)[1] - 1

    def of_ranked(j):
        position = xp.minimum(groups.start + xp.astype(j, xp.int32) - 1, final)
        return xp.gather(at_ranks, position)

    if stops.largest_of_last is None:
        return of_ranked
    # `_rank_by_rank` computes a last group with more items with p > 0 than these.
    of_last = xp.pad(stops.largest_of_last, [[0, 0], [0, 1]])
    final_last = xp.shape(of_last)[1] - 1

    def of_ranked_or_last(j):
        p = of_last[:, xp.minimum(xp.astype(j, xp.int32) - 1, final_last)]
        return xp.where(groups.is_last, p[:, xp.newaxis], of_ranked(j))

    return of_ranked_or_last


def _rank_by_rank(
    lists: RankedLists, groups: TieGroups, stops: Stops, is_read: Array
) -> tuple[Array, Array]:
    """Which ranks are computed, and the probability of a stop there, given the group.

    The probability is 0 at the other ranks.

    It computes one group of each list: the one at the last rank or, if the ranking is
    as deep as the lists, the largest of those that the user may reach. With a mean p of
    the items, a user continues beyond s ranks with a probability of at most
    (1 - mean p)^s (Maclaurin's inequality). Few ranks may suffice.
    """
    if stops.of_last is None:
        sizes = xp.where(is_read, groups.sizes, 0)
        largest = xp.argmax(sizes, axis=1)[:, xp.newaxis]
        is_here = xp.equal(groups.start, xp.gather(groups.start, largest))
        p = xp.where(is_here, stops.at_ranks, 0)
    else:
        is_here, p = groups.is_last, stops.of_last
    is_here &= is_read
    n = xp.max(xp.where(is_here, groups.sizes, 1), axis=1)
    mean = xp.sum(p, axis=1) / n
    # The s at which (1 - mean)^s is NEGLIGIBLE.
    steps = xp.ceil(math.log(NEGLIGIBLE) / xp.log1p(-mean))
    steps = xp.minimum(xp.maximum(steps, 1), count(is_here))
    items = xp.max(xp.where(is_here, stops.number, 0), axis=1)
    # A step by rank reads each item, and a step by item writes each rank. Per number,
    # a step by rank takes a quarter of the time.
    width, depth = (
        xp.astype(xp.shape(each)[1], xp.float64, like=p) for each in (p, is_here)
    )
    is_faster = (steps * width < 4 * items * depth) | (items > 2 * depth)
    is_chosen = (2 * steps <= n) & is_faster
    steps = xp.where(is_chosen, steps, 0)

    chances = _stops_in_order(steps, n, p, lists.depth)
    i = groups.rank_in_group(lists.positions)
    chances = xp.gather(chances, xp.astype(i, xp.int32) - 1)
    is_done = is_here & is_chosen[:, xp.newaxis]
    return is_done, xp.where(is_done & (i <= steps[:, xp.newaxis]), chances, 0)


def _stops_in_order(steps: Array, n: Array, p: Array, depth: Array | int) -> Array:
    """The probability of a stop at ranks 1 ... `steps` of n items, `[B, D]`; 0 below.

    At rank s each item is unread with the probability v, if the user has not stopped
    before. The sum of all v is n - s + 1, so the user stops at rank s with the
    probability sum(p * v) / (n - s + 1). Otherwise, v becomes 1 - s * (1 - p) * v /
    sum((1 - p) * v). This is a recursion of Chen and Liu, "Statistical applications of
    the Poisson-binomial and conditional Bernoulli distributions", Statistica Sinica 7,
    1997. Rounding errors shrink in it as long as s is at most n / 2.

    Args:
        steps: `[B]`, at most n / 2.
        n: `[B]`.
        p: `[B, X]`.
        depth: D.
    """
    goes_on = 1 - p

    def next_rank(s, v, reaches):
        unread, stopped = n - s + 1, xp.matvec(p[:, xp.newaxis], v)[:, 0]
        stops_here = reaches * stopped / unread
        factor = xp.divide_no_nan(s, unread - stopped)[:, xp.newaxis]
        v = 1 - factor * (goes_on * v)
        return (v, reaches * (1 - stopped / unread)), stops_here

    state = xp.ones_like(p), xp.ones_like(n)
    by_rank = xp.unfold(next_rank, state, xp.max(steps), depth, n)
    return xp.matrix_transpose(by_rank)
