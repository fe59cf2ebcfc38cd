"""Tied scores: the method and its formulas.

The problem
    Items with equal scores are unordered, so the value of a metric depends on the order
    that the sort happens to choose. With ties="expected", the default, every value is
    the exact mean over all permutations of the tied items, without enumerating them.
    ties="stable" keeps tied items in the order of the list, and ties="best" and
    ties="worst" sort tied items by their gains.

Groups
    After the sort, items with equal scores are neighbors: a group. A group of n items
    takes the ranks start + 1 ... start + n, and each of its items is equally often at
    each of these ranks in the mean over all permutations. In the following, r of the n
    items are relevant, and i is the rank within the group:

        rank     1    2    3    4    5    6
        score   0.9  0.7  0.7  0.7  0.2  0.2
        start    0    1    1    1    4    4
        n        1    3    3    3    2    2
        i        1    1    2    3    1    2

Formulas of the metrics
    Sums of gains (DCG, precision, recall, RBP, ARP, ...)
        The mean of a sum is the sum of the means. The mean gain at each rank of a group
        is the sum of the group's gains / n: `RankedLists.expected`. A metric that is
        linear in the gains needs no other result.
    The first relevant item (MRR, hit rate)
        If no rank above has a relevant item, all r are among the remaining n - i + 1
        ranks: `first_relevant`.
    The last relevant item (completeness)
        If no rank below has a relevant item, all r are among the first i ranks:
        `last_relevant`.
    Relevant items above a relevant item (average precision)
        These are all relevant items of the groups above, and its share of the r - 1
        others in the same group: `relevant_down_to`.
    A denominator that depends on the order, too (average precision over hits)
        Where a cutoff is inside a group, the number of hits above it is
        hypergeometric: `mean_over_hits`.
    A user who stops at an item with some probability (ERR, alpha-DCG)
        The probability of a stop at one of s of the n items, drawn at random:
        `ranking/stops.py`.
    Irrelevant items above a relevant item, up to a maximum (BPref)
        Each number of irrelevant items above it is equally likely: `irrelevant_above`.
    Products of pairs (intra-list diversity)
        A cutoff keeps both items of a tied pair with a probability that follows from
        the numbers of tied items and of those that it keeps: `pair_sums`.
    Pairs (OPA, AUC)
        A tied pair is counted as one half. OPA is the mean of the best and the worst
        order: `order_within_groups`. AUC is a sum of ranks.

Groups that continue below the last rank
    The ranking ends one rank below the deepest cutoff. The last group may have more
    items than that: it is cut. Its size, and the sums over its items, still include the
    items without a rank.

When groups are computed
    Most batches have no tie above a cutoff, and the groups take half of the operations
    of an update. An `xp.cond` computes them only if a batch has ties, and so it does
    for each function below that reads them: `TiesOfBatch`.

The method comes from McSherry and Najork, "Computing Information Retrieval Performance
Measures Efficiently in the Presence of Tied Scores", ECIR 2008. They derive the
formulas of precision, recall, F1, average precision, reciprocal rank and DCG.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.ranking.items import ItemGain, count, is_retrieved

if TYPE_CHECKING:
    from tfrankmetrics.ranking.ranked_lists import RankedLists


class TiePolicy(enum.Enum):
    """The choices of `options.Ties`. Whatever depends on one matches all of them."""

    EXPECTED = "expected"  # the mean over all permutations, rather than one order
    STABLE = "stable"  # tied items keep the order of the list
    BEST = "best"  # the highest gain first
    WORST = "worst"  # the lowest gain first


class TieBreaking(NamedTuple):
    """How equal scores are ordered."""

    policy: TiePolicy
    gain: ItemGain | None = None  # by which the policy may sort tied items

    @property
    def is_exact(self) -> bool:
        """Whether values are the mean over all permutations, rather than one order."""
        match self.policy:
            case TiePolicy.EXPECTED:
                return True
            case TiePolicy.STABLE | TiePolicy.BEST | TiePolicy.WORST:
                return False

    @property
    def keeps_order(self) -> bool:
        """Whether tied items keep the order of the list."""
        match self.policy:
            case TiePolicy.STABLE:
                return True
            case TiePolicy.EXPECTED | TiePolicy.BEST | TiePolicy.WORST:
                return False


STABLE = TieBreaking(TiePolicy.STABLE)


class TieGroups(NamedTuple):
    """For each rank, the group of tied items that its item belongs to."""

    start: Array  # [B, D] int32, the number of ranks above the group
    end: Array  # [B, D] int32, the last rank of the group that was ranked
    # The group at the last rank: which judged items are in it, [B, J] bool, and its
    # size, [B] float64. None if the ranking is as deep as the lists.
    last_items: Array | None
    last_size: Array | None

    @property
    def is_last(self) -> Array:
        """Whether the group is the one at the last rank, `[B, D]`."""
        return xp.equal(self.end, xp.shape(self.end)[1])

    @property
    def sizes(self) -> Array:
        """n, `[B, D]` float64: also includes items below the last rank."""
        size = xp.astype(self.end - self.start, xp.float64)
        if self.last_size is None:
            return size
        return xp.where(self.is_last, self.last_size[:, xp.newaxis], size)

    def rank_in_group(self, positions: Array) -> Array:
        """i, the place of each rank in its group, from 1, `[B, D]`.

        `positions` are the numbers 1 ... D.
        """
        return positions - xp.astype(self.start, xp.float64)


@dataclasses.dataclass(frozen=True)
class TiesOfBatch:
    """The groups of tied items, which are read only if a batch has ties."""

    may_exist: Array  # bool
    _groups: TieGroups  # other numbers without ties

    def if_any(
        self, exact: Callable[[TieGroups], Any], untied: Callable[[], Any]
    ) -> Any:
        """`exact(groups)` if there may be ties, and otherwise `untied()`."""
        return xp.cond(self.may_exist, lambda: exact(self._groups), untied)


def are_tied(sorted_keys: Array) -> Array:
    """Whether each of the sorted keys `[B, D]` is tied with the next, `[B, D - 1]`."""
    is_tied = xp.equal(sorted_keys[:, 1:], sorted_keys[:, :-1])
    # Items that were not retrieved have equal keys, but are not tied.
    return is_tied & is_retrieved(sorted_keys[:, 1:])


def groups_of(keys: Array, sorted_keys: Array, at_judged: Callable | None) -> TieGroups:
    """The groups of equal keys among `sorted_keys` `[B, D]`, the largest of `keys`.

    `at_judged` is an argument of `rank_by_score`, or None if all keys were sorted.
    """
    start, end = _runs(are_tied(sorted_keys))
    if at_judged is None:
        return TieGroups(start, end, None, None)
    lowest = xp.min(sorted_keys, axis=1, keepdims=True)
    is_last = xp.equal(keys, lowest) & is_retrieved(keys)
    size = xp.maximum(count(is_last), 1)  # a rank without an item is a group of one
    return TieGroups(start, end, at_judged(is_last), size)


def _runs(is_tied: Array) -> tuple[Array, Array]:
    """Start and end of the run of ties that each rank is in, int32 `[B, D]`.

    `is_tied` is the result of `are_tied`.
    """
    depth = xp.shape(is_tied)[1] + 1
    is_first = xp.pad(~is_tied, [[0, 0], [1, 0]], constant_values=True)
    is_last = xp.pad(~is_tied, [[0, 0], [0, 1]], constant_values=True)
    # The start is the last position, up to this one, at which a run starts. The end is
    # the same in the reversed list.
    positions = xp.arange(depth, like=is_tied)
    is_start = xp.stack([is_first, xp.flip(is_last, axis=1)])
    starts = _running_maximum(xp.where(is_start, positions, 0))
    starts, reversed_starts = xp.unstack(starts)
    return starts, depth - xp.flip(reversed_starts, axis=1)


def _running_maximum(values: Array) -> Array:
    """Maximum of each value >= 0 and all values before it, along the last axis.

    TensorFlow has no cumulative maximum. This takes log2(D) shifted comparisons.
    """
    depth = values.shape[-1]
    if depth is None:
        depth = xp.shape(values)[-1]
        positions = xp.arange(depth, like=values)

        def widen(shift, values):
            shifted = xp.roll(values, shift, axis=-1)  # XLA has no slices of any size
            values = xp.where(positions >= shift, xp.maximum(values, shifted), values)
            return 2 * shift, values

        return xp.while_loop(lambda shift, _: shift < depth, widen, [1, values])[1]
    shift = 1
    while shift < depth:
        # Faster than xp.roll with a mask.
        nothing = xp.zeros_like(values[..., :shift])
        shifted = xp.concat([nothing, values[..., :-shift]], axis=-1)
        values = xp.maximum(values, shifted)
        shift *= 2
    return values


def from_rank_0(curve: Array) -> Array:
    """A curve over the ranks, `[B, D]` or `[B, D, T]`, with a 0 above the first."""
    return xp.pad(curve, [[0, 0], [1, 0], [0, 0]][: curve.ndim])


def group_sums(
    lists: RankedLists,
    groups: TieGroups,
    gains: Array,
    sum_of: Callable[[Array], Array],
) -> tuple[Array, Array]:
    """Sum and mean of the gains of all items tied with the one at each rank.

    Both are `[B, D]`, or `[B, D, T]` as the gains.

    Args:
        lists: The ranked lists.
        groups: Their groups of tied items.
        gains: The gain of the item at each rank.
        sum_of: The sum of the gains of some judged items, a function of a boolean for
            each, `[B, J]`.
    """
    above = from_rank_0(lists.running_sums(gains))
    sums = xp.gather(above, groups.end) - xp.gather(above, groups.start)
    n, is_last = groups.sizes, groups.is_last
    if gains.ndim == 3:
        n, is_last = n[..., xp.newaxis], is_last[..., xp.newaxis]
    # A group of one item uses the gain of this item. A difference of sums would contain
    # rounding errors, and ties in one list would change other lists.
    sums = xp.where(n > 1, sums, gains)
    if groups.last_items is not None:
        last = sum_of(groups.last_items)[:, xp.newaxis]
        sums = xp.where(is_last, last, sums)
    return sums, sums / n


def first_relevant(lists: RankedLists, groups: TieGroups, relevant: Array) -> Array:
    """Probability that the first relevant item is at each rank, `[B, D]`.

    `relevant` is r, the number of relevant items in the group of each rank.
    """
    n, i = groups.sizes, groups.rank_in_group(lists.positions)
    # If no rank above has a relevant item, all r are among the remaining n - i + 1
    # ranks.
    relevant_here = xp.minimum(xp.divide_no_nan(relevant, n - i + 1), 1)
    none_above = xp.cumulative_prod(1 - relevant_here, axis=1, exclusive=True)
    return none_above * relevant_here


def last_relevant(
    lists: RankedLists,
    groups: TieGroups,
    relevant: Array,
    expected: Array,
    total: Array,
) -> Array:
    """Probability that the last of all relevant items is at each rank, `[B, D]`.

    Args:
        lists: The ranked lists.
        groups: Their groups of tied items.
        relevant: r, `[B, D]`.
        expected: r / n, `[B, D]`.
        total: The number of relevant items of each list, `[B, 1]`.
    """
    i = groups.rank_in_group(lists.positions)
    found = _relevant_above_group(lists, i, expected) + relevant
    is_last_group = xp.equal(found, total) & (relevant > 0)
    # If no rank below has a relevant item, all r are among the first i ranks.
    relevant_here = xp.where(is_last_group, xp.minimum(relevant / i, 1), 0)
    none_below = xp.cumulative_prod(
        1 - relevant_here, axis=1, exclusive=True, reverse=True
    )
    n, i, r = (each[:, -1:] for each in (groups.sizes, i, relevant))
    return relevant_here * none_below * _all_above_cut(lists, n, i, r)


def _all_above_cut(lists: RankedLists, n: Array, i: Array, r: Array) -> Array:
    """C(n-r, i-r) / C(n, i), the probability that i of n items include all r, `[B, 1]`.

    It is the product of (i - j) / (n - j) over j = 0 ... r - 1, and 1 where i is n.
    """
    j = lists.positions - 1
    factors = xp.where(j < r, xp.divide_no_nan(i - j, n - j), 1)
    return xp.where(r <= i, xp.prod(factors, axis=1, keepdims=True), 0)


def last_relevant_of_group(
    lists: RankedLists, groups: TieGroups, relevant: Array
) -> Array:
    """Mean rank of the last relevant item in the group of each rank, or 0, `[B, D]`.

    `relevant` is r, the number of relevant items in the group. The last of them has the
    mean place (n + 1) r / (r + 1) among the n items.
    """
    n, i = groups.sizes, groups.rank_in_group(lists.positions)
    place = (n + 1) * relevant / (relevant + 1)
    return xp.where(relevant > 0, lists.ranks - i + place, 0)


def relevant_down_to(
    lists: RankedLists, groups: TieGroups, relevant: Array, expected: Array
) -> Array:
    """Mean number of relevant items at ranks 1 ... p if the item at p is relevant.

    `relevant` is r, and `expected` is r / n, both `[B, D]`.
    """
    n, i = groups.sizes, groups.rank_in_group(lists.positions)
    # i - 1 of the n - 1 other ranks of the group are above it.
    others_above = xp.divide_no_nan((i - 1) * (relevant - 1), n - 1)
    return _relevant_above_group(lists, i, expected) + 1 + others_above


def _relevant_above_group(lists: RankedLists, i: Array, expected: Array) -> Array:
    """Number of relevant items in all groups above that of each rank, `[B, D]`."""
    above = lists.running_sums(expected) - expected * i
    return xp.round(above)  # a whole number: rounding removes errors


def mean_over_hits(
    lists: RankedLists,
    groups: TieGroups,
    relevant: Array,
    expected: Array,
    precisions: Array,
    untied: Array,
) -> Array:
    """(Sum of precisions down to a cutoff) / (relevant items down to it), `[B, C]`.

    If the cutoff is inside a group, the denominator depends on the order, too. Of the r
    relevant items, h are at the first i ranks of the group with the hypergeometric
    probability C(r, h) C(n-r, i-h) / C(n, i). Given h, they are spread evenly over
    these ranks.

    Args:
        lists: The ranked lists.
        groups: Their groups of tied items.
        relevant: r, `[B, D]`.
        expected: r / n, `[B, D]`.
        precisions: Mean of precision * relevance at each rank, `[B, D]`.
        untied: The value where no cutoff is inside a group, `[B, C]`.
    """
    i = groups.rank_in_group(lists.positions)
    # Over the ranks of the group down to each: the sum of 1 / rank, and of
    # (i - 1) / rank.
    harmonic = xp.pad(xp.cumulative_sum(1 / lists.positions), [[1, 0]])
    sum_1 = harmonic[1:] - xp.take(harmonic, groups.start)
    sum_ranks = i - xp.astype(groups.start + 1, xp.float64) * sum_1
    curves = [groups.sizes, i, relevant, _relevant_above_group(lists, i, expected)]
    curves += [sum_1, sum_ranks, lists.running_sums(precisions)]
    # All of them at the cutoffs, [B, C, 1].
    n, i, r, above, sum_1, sum_ranks, total = (
        lists.at_cutoffs(curve)[..., xp.newaxis] for curve in curves
    )

    def in_group(hits, ranks):
        """Sum of precisions down to the cutoff, with `hits` items spread evenly."""
        others = xp.divide_no_nan(hits - 1, ranks - 1)
        return xp.divide_no_nan(hits, ranks) * (
            (above + 1) * sum_1 + others * sum_ranks
        )

    # The cutoff None is never inside a group.
    deepest = max([k for k in lists.cutoffs if k is not None], default=0)
    most = xp.minimum(
        xp.astype(deepest, xp.float64, like=i),
        xp.astype(lists.depth, xp.float64, like=i),
    )
    h = xp.arange(0, most + 1, dtype=xp.float64, like=i)
    total_above = total - in_group(r, n)
    values = xp.divide_no_nan(total_above + in_group(h, i), above + h)
    mean = xp.sum(_hypergeometric(h, n, r, i) * values, axis=2)
    return xp.where((i < n)[:, :, 0], mean, untied)


def _hypergeometric(h: Array, n: Array, r: Array, i: Array) -> Array:
    """C(r, h) C(n-r, i-h) / C(n, i) for each number of hits h, `[..., H]`.

    All but h are `[..., 1]`. The probabilities are products of the ratios of neighbors,
    from the most likely number on: logarithms of factorials would lose digits.
    """
    mode = xp.floor((r + 1) * (i + 1) / (n + 2))
    above, below = (r - h) * (i - h), (h + 1) * (n - r - i + h + 1)
    up = xp.where(h >= mode, xp.divide_no_nan(above, below), 1)
    down = xp.where(h < mode, xp.divide_no_nan(below, above), 1)
    chances = xp.cumulative_prod(up, axis=-1, exclusive=True)
    chances *= xp.cumulative_prod(down, axis=-1, reverse=True)
    return chances / xp.sum(chances, axis=-1, keepdims=True)


def pair_sums(
    lists: RankedLists,
    groups: TieGroups,
    sums: Array,
    squares: Array,
    pairs: Array,
) -> Array:
    """The sum of the products of all pairs of items down to each cutoff, `[B, C]`.

    If a cutoff keeps i of n tied items, it keeps a pair of them with the probability
    i (i - 1) / (n (n - 1)).

    Args:
        lists: The ranked lists.
        groups: Their groups of tied items.
        sums: The sum of the vectors of the group of each rank, `[B, D, T]`.
        squares: The sum of their squared lengths, `[B, D]`.
        pairs: The result, if the items were drawn independently, `[B, C]`.
    """
    i = lists.at_cutoffs(groups.rank_in_group(lists.positions))
    n, squares = lists.at_cutoffs(groups.sizes), lists.at_cutoffs(squares)
    of_group = products_of_pairs(lists.at_cutoffs(sums), squares)
    share = xp.divide_no_nan(i, n)
    # `pairs` includes both items of the group with the probability share^2, and
    # subtracts the product of an item with itself only share times.
    own = squares * share * (1 - share) / 2
    both = xp.divide_no_nan(i * (i - 1), n * (n - 1))
    return pairs + (both - share * share) * of_group + own


def products_of_pairs(sums: Array, squares: Array) -> Array:
    """The sum of the products of all pairs of vectors.

    Args:
        sums: The sum of the vectors, `[..., T]`.
        squares: The sum of their squared lengths, `[...]`.
    """
    return (xp.sum(sums * sums, axis=-1) - squares) / 2


def irrelevant_above(
    lists: RankedLists,
    groups: TieGroups,
    relevant: Array,
    expected: Array,
    maximum: Array,
) -> Array:
    """Mean number of irrelevant items above a relevant item, at most `maximum`.

    For each rank, if its item is relevant, `[B, D]`. `relevant` is r, `expected` is
    r / n, and `maximum` is `[B, 1]`.
    """
    i = groups.rank_in_group(lists.positions)
    above = lists.ranks - i - _relevant_above_group(lists, i, expected)
    # Of the irrelevant items tied with it, each number is equally often above it; only
    # up to `room` of them are counted.
    irrelevant = groups.sizes - relevant
    room = xp.clip(maximum - above, 0, irrelevant)
    of_group = room * (room + 1) / 2 + (irrelevant - room) * room
    return xp.minimum(above, maximum) + of_group / (irrelevant + 1)


def depends_on_order(
    lists: RankedLists, groups: TieGroups, gain: ItemGain, gains: Array
) -> Array:
    """1 where the group of a rank has unequal gains or weights, otherwise 0, `[B, D]`.

    `gains` are those of the items at the ranks, `[B, D]`.
    """
    judged = gain(lists.listed)
    if groups.last_items is not None:  # in a catalog, it also contains repeated ids
        groups = groups._replace(last_items=groups.last_items & lists.listed.valid)
    values = [(gains, judged)]
    if lists.ranked.weights is not None:
        # The weight of an item without a gain changes no value.
        weights = lists.ranked.weights, lists.listed.weights
        values.append((gains * weights[0], judged * weights[1]))
    differs = xp.zeros_like(lists.ranked.valid)
    for by_rank, of_judged in values:
        differs |= _differs_in_group(groups, by_rank, of_judged)
    return xp.astype(differs, xp.float64)


def _differs_in_group(groups: TieGroups, by_rank: Array, judged: Array) -> Array:
    """Whether the items of each rank's group have unequal values, bool `[B, D]`."""
    changes = xp.astype(xp.not_equal(by_rank[:, 1:], by_rank[:, :-1]), xp.int32)
    # How often the value changes down to each rank: within a group, from its first
    # rank to its last.
    number = from_rank_0(xp.cumulative_sum(changes, axis=1))
    first, last = (xp.gather(number, ranks) for ranks in (groups.start, groups.end - 1))
    differs = xp.not_equal(first, last)
    if groups.last_items is None:
        return differs
    # The last group may continue below the last rank. Items that are not judged have
    # the value 0, in a catalog.
    items, size = groups.last_items, groups.last_size
    highest = xp.max(xp.where(items, judged, 0), axis=1)
    lowest = xp.min(xp.where(items, judged, float("inf")), axis=1)
    lowest = xp.where(count(items) < size, xp.zeros_like(lowest), lowest)
    return xp.where(groups.is_last, (highest > lowest)[:, xp.newaxis], differs)


def order_within_groups(start: Array, order: Array) -> Array:
    """The position of each rank's item if tied items follow `order`, int32 `[B, D]`.

    `start` comes from `TieGroups`; `order` `[B, D]` is a permutation of the ranks.
    """
    by_group = xp.argsort(xp.gather(start, order), axis=1)
    return xp.argsort(xp.gather(order, by_group), axis=1)
