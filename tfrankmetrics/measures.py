"""The formulas: each metric is a sum down to the cutoffs.

A formula is one pure function of `RankedLists` that gives the metric's value
at all cutoffs at once, `[B, C]`. No formula ranks. A metric without cutoffs is of the
whole list, and its formula gives `[B]`. `worth` is what an item is worth to the metric,
its gain or its relevance; with tied scores every value is the exact mean over
all orders of the tied items.

The closed forms for ties are those of McSherry and Najork, "Computing
Information Retrieval Performance Measures Efficiently in the Presence of Tied
Scores", ECIR 2008. In their terms a group of n tied items, r of them relevant,
takes the ranks t+1 ... t+n, and i is the place of rank t+i in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import tensorflow as tf

from tfrankmetrics.pairs import pairs_in_order
from tfrankmetrics.ranked_lists import RankedLists, Worth, count, select
from tfrankmetrics.worths import Coverage, call_function

DISCOUNTS: dict[str, Callable] = {
    "log2": lambda ranks: math.log(2) / tf.math.log(1 + ranks),
    "jarvelin": lambda ranks: math.log(2) / tf.math.log(tf.maximum(ranks, 2)),
}


def _if_retrieved(worth: Worth) -> Worth:
    return lambda items: tf.where(items.retrieved, worth(items), 0)


def dcg(
    lists: RankedLists, worth: Worth, *, discount: str | Callable = "log2"
) -> tf.Tensor:
    """DCG@k = sum over ranks 1..k of gain * discount(rank)."""
    gains = lists.expected(lists.weighted(worth))
    return lists.sums(gains * _discounts(lists, discount))


def ndcg(
    lists: RankedLists,
    worth: Worth,
    *,
    discount: str | Callable = "log2",
    ideal: Literal["judged", "retrieved"] = "judged",
) -> tf.Tensor:
    """NDCG@k = DCG@k / the largest DCG@k that any order of the items has."""
    if ideal == "retrieved":
        worth = _if_retrieved(worth)
    best = lists.best(lists.weighted(worth))
    ideal_dcg = lists.sums(best * _discounts(lists, discount))
    return tf.math.divide_no_nan(dcg(lists, worth, discount=discount), ideal_dcg)


def average_precision(
    lists: RankedLists,
    worth: Worth,
    *,
    denominator: Literal["relevant", "min(k, relevant)", "hits"] = "relevant",
) -> tf.Tensor:
    """AP@k = sum over ranks 1..k of precision@rank * relevance / denominator."""
    relevant = lists.expected(worth)
    found = lists.running_sums(relevant)
    seen = found  # a relevant item sees itself and the relevant ones above
    if lists.groups is not None:
        n, i, r = lists.group_sizes, lists.places, lists.group_sums(worth)
        above_group = tf.round(found - relevant * i)  # a count, free of rounding errors
        # Of its own group it sees on average itself and its share of the r - 1 others,
        # spread evenly over the n - 1 other places.
        seen = above_group + 1 + tf.math.divide_no_nan((i - 1) * (r - 1), n - 1)
    precision_here = lists.expected(lists.weighted(worth)) * seen / lists.ranks
    if denominator == "hits":
        precisions = lists.running_sums(precision_here)
        mean = tf.math.divide_no_nan(precisions, found)
        if lists.groups is not None:
            mean = _average_over_hits(lists, worth, mean, precisions, above_group)
        return lists.at_cutoffs(mean)
    divisor = lists.total(worth)[:, tf.newaxis]
    if denominator == "min(k, relevant)":
        divisor = tf.minimum(lists.k, divisor)
    return tf.math.divide_no_nan(lists.sums(precision_here), divisor)


def precision(
    lists: RankedLists, worth: Worth, *, denominator: Literal["list", "k"] = "list"
) -> tf.Tensor:
    """P@k = number of relevant items at ranks 1..k / k (or the list's length)."""
    hits = lists.sums(lists.expected(worth))
    return tf.math.divide_no_nan(hits, _depths(lists, denominator))


def recall(lists: RankedLists, worth: Worth) -> tf.Tensor:
    """R@k = number of relevant items at ranks 1..k / number of relevant items."""
    hits = lists.sums(lists.expected(worth))
    return tf.math.divide_no_nan(hits, lists.total(worth)[:, tf.newaxis])


def f1(
    lists: RankedLists, worth: Worth, *, denominator: Literal["list", "k"] = "list"
) -> tf.Tensor:
    """F1@k = 2 P@k R@k / (P@k + R@k) = 2 * hits / (k + number of relevant items)."""
    hits = lists.sums(lists.expected(worth))
    relevant = lists.total(worth)[:, tf.newaxis]
    return tf.math.divide_no_nan(2 * hits, _depths(lists, denominator) + relevant)


def r_precision(lists: RankedLists, worth: Worth) -> tf.Tensor:
    """Precision at rank R, the number of relevant items; down to k, if k is less."""
    relevant = lists.total(worth)[:, tf.newaxis]
    hits = tf.where(lists.ranks <= relevant, lists.expected(worth), 0)
    return tf.math.divide_no_nan(lists.sums(hits), relevant)


def rank_biased_precision(
    lists: RankedLists, worth: Worth, *, persistence: float = 0.8
) -> tf.Tensor:
    """RBP@k = (1 - b) * sum over ranks 1..k of relevance * b^(rank - 1)."""
    chance_of_a_look = persistence ** (lists.ranks - 1)
    seen = lists.sums(lists.expected(worth) * chance_of_a_look)
    return (1 - persistence) * seen


def expected_reciprocal_rank(lists: RankedLists, worth: Worth) -> tf.Tensor:
    """ERR@k = sum over ranks 1..k of chance that the user stops there / rank."""
    goes_on = lists.expected_products(lambda items: 1 - worth(items))
    return lists.sums((_rank_above(goes_on) - goes_on) / lists.ranks)


def _rank_above(products: tf.Tensor) -> tf.Tensor:
    """The products down to the rank above each, `[B, D]`; 1 above the first."""
    return tf.pad(products, [[0, 0], [1, 0]], constant_values=1)[:, :-1]


def average_relevance_position(lists: RankedLists, worth: Worth) -> tf.Tensor:
    """ARP = sum of label * rank / sum of labels."""
    positions = _sum_of_positions(lists, lists.weighted(worth))
    return tf.math.divide_no_nan(positions, lists.total(worth))


def ordered_pair_accuracy(lists: RankedLists, worth: Worth) -> tf.Tensor:
    """OPA = pairs with the higher label on top / pairs of unequal labels."""
    pairs = pairs_in_order(lists, lists.relative_weights(worth))
    return tf.math.divide_no_nan(pairs, lists.total(worth))


def area_under_the_curve(lists: RankedLists, worth: Worth) -> tf.Tensor:
    """AUC = pairs with the relevant item on top / pairs of a relevant and another.

    After Mann and Whitney: R relevant items at the very top have ranks that sum to
    R (R + 1) / 2, and each item that is not relevant above one of them adds 1.
    """
    relevant, pairs = lists.total(worth), mixed_pairs(lists, worth)
    lost = _sum_of_positions(lists, worth) - relevant * (relevant + 1) / 2
    return tf.math.divide_no_nan(pairs - lost, pairs)


def mixed_pairs(lists: RankedLists, worth: Worth) -> tf.Tensor:
    """Number of pairs of a relevant item and one that is not, `[B]`."""
    relevant = lists.total(worth)
    return relevant * (lists.sizes - relevant)


def _sum_of_positions(lists: RankedLists, worth: Worth) -> tf.Tensor:
    """Sum of worth * rank. What was not retrieved shares the places below the rest."""
    found = tf.reduce_sum(lists.expected(worth) * lists.ranks, axis=1)
    missed = tf.where(~lists.judged.retrieved, worth(lists.judged), 0)
    place = lists.lengths + (lists.sizes - lists.lengths + 1) / 2
    return found + tf.reduce_sum(missed, axis=1) * place


def binary_preference(
    lists: RankedLists,
    worth: Worth,
    *,
    denominator: Literal[
        "min(relevant, irrelevant)", "relevant"
    ] = "min(relevant, irrelevant)",
) -> tf.Tensor:
    """BPref = mean over the relevant items of 1 - irrelevant above / denominator.

    No more irrelevant items are counted above an item than there are relevant ones.
    """
    n, i, r = lists.group_sizes, lists.places, lists.group_sums(worth)
    relevant = lists.expected(worth)
    total = lists.total(worth)[:, tf.newaxis]
    start = lists.ranks - i
    above = start - tf.round(lists.running_sums(relevant) - relevant * i)
    # Of the n - r irrelevant items tied with it, each number 0 ... n - r of them
    # is above an item equally often; only `room` of them count.
    room = tf.clip_by_value(total - above, 0, n - r)
    counted = room * (room + 1) / 2 + (n - r - room) * room
    counted = tf.minimum(above, total) + counted / (n - r + 1)
    divisor = total
    if denominator == "min(relevant, irrelevant)":
        divisor = tf.minimum(total, lists.sizes[:, tf.newaxis] - total)
    preference = relevant * (1 - tf.math.divide_no_nan(counted, divisor))
    return tf.math.divide_no_nan(tf.reduce_sum(preference, axis=1), total[:, 0])


def intent_aware_precision(
    lists: RankedLists, worth: Coverage, *, denominator: Literal["list", "k"] = "list"
) -> tf.Tensor:
    """P-IA@k = mean of P@k over the subtopics that anything is relevant to."""
    is_covered = tf.reduce_any(worth.by_subtopic(lists.judged) > 0, axis=1)
    subtopics = count(is_covered)[:, tf.newaxis]
    hits = lists.expected(lambda items: tf.reduce_sum(worth.by_subtopic(items), axis=2))
    depths = _depths(lists, denominator) * subtopics
    return tf.math.divide_no_nan(lists.sums(hits), depths)


def alpha_dcg(
    lists: RankedLists,
    worth: Coverage,
    *,
    alpha: float = 0.5,
    discount: str | Callable = "log2",
) -> tf.Tensor:
    """Alpha-DCG@k = sum over ranks 1..k of novelty * discount(rank).

    Novelty is the sum over the item's subtopics of (1 - alpha)^(items above it that
    are relevant to the subtopic).
    """
    weight = lists.relative_weights(worth)

    def add_subtopic(novelty, subtopic):
        relevance = worth.of_subtopic(subtopic)
        left = lists.expected_products(lambda items: 1 - alpha * relevance(items))
        found = (_rank_above(left) - left) / alpha
        # All relevant items of a tie find the same on average, but for their weights.
        weighted = lists.expected(lambda items: relevance(items) * weight(items))
        share = tf.math.divide_no_nan(weighted, lists.expected(relevance))
        return novelty + found * share

    subtopics = tf.range(tf.shape(lists.ranked.labels)[2])
    nothing = tf.zeros_like(lists.ranked.valid, tf.float64)
    novelty = tf.foldl(add_subtopic, subtopics, nothing)
    return lists.sums(novelty * _discounts(lists, discount))


def _depths(lists: RankedLists, denominator: str) -> tf.Tensor:
    """What precision is divided by: k, but no more than the list has items."""
    if denominator == "k":
        return lists.k
    return tf.minimum(lists.k, lists.lengths[:, tf.newaxis])


def hit_rate(lists: RankedLists, worth: Worth) -> tf.Tensor:
    """HR@k = 1 if any of the items at ranks 1..k is relevant, else 0."""
    return lists.sums(_first_relevant(lists, worth))


def reciprocal_rank(lists: RankedLists, worth: Worth) -> tf.Tensor:
    """RR@k = 1 / rank of the first relevant item, 0 if that is below k."""
    return lists.sums(_first_relevant(lists, worth) / lists.ranks)


def _first_relevant(lists: RankedLists, worth: Worth) -> tf.Tensor:
    """Chance that the first relevant item is at each rank, `[B, D]`."""
    if lists.groups is None:
        relevant = lists.expected(worth)
        return select(lists.running_sums(relevant) <= 1, relevant, 0)
    n, i, r = lists.group_sizes, lists.places, lists.group_sums(worth)
    # If none above is relevant, all r are among the n - i + 1 places left.
    relevant_here = tf.minimum(tf.math.divide_no_nan(r, n - i + 1), 1)
    none_above = tf.math.cumprod(1 - relevant_here, axis=1, exclusive=True)
    return none_above * relevant_here


def _average_over_hits(
    lists: RankedLists,
    worth: Worth,
    untied: tf.Tensor,
    precisions: tf.Tensor,
    above: tf.Tensor,
) -> tf.Tensor:
    """Mean of (sum of precisions down to p) / (relevant items down to p).

    Where p cuts a tie group, the divisor depends on the order too: of the r
    relevant items, h fall on the first i places with the hypergeometric chance
    C(r, h) C(n-r, i-h) / C(n, i), and given h they are spread evenly there.
    """
    n, i, r = lists.group_sizes, lists.places, lists.group_sums(worth)
    start = lists.groups.start
    mean_weight = tf.math.divide_no_nan(lists.group_sums(lists.weighted(worth)), r)
    # Over the group's first i places: sum of 1/rank and of (place - 1)/rank.
    harmonic = tf.pad(tf.cumsum(1 / lists.ranks), [[1, 0]])
    sum_1 = harmonic[1:] - tf.gather(harmonic, start)
    sum_places = i - tf.cast(start + 1, tf.float64) * sum_1

    def in_group(relevant, places):
        """Sum of precisions of `relevant` items spread evenly over `places`."""
        others = tf.math.divide_no_nan(relevant - 1, places - 1)
        density = tf.math.divide_no_nan(mean_weight * relevant, places)
        return density * ((above + 1) * sum_1 + others * sum_places)

    precisions_above = precisions - in_group(r, n)

    def add_case(h, mean):
        log_chance = _log_choose(r, h) + _log_choose(n - r, i - h) - _log_choose(n, i)
        possible = (h <= r) & (h <= i) & (i - h <= n - r)
        chance = tf.where(possible, tf.exp(log_chance), 0)
        value = tf.math.divide_no_nan(precisions_above + in_group(h, i), above + h)
        return h + 1, mean + chance * value

    most = tf.reduce_max(tf.minimum(r, i))
    zero = tf.zeros([], tf.float64)
    _, mean = tf.while_loop(
        lambda h, _: h <= most, add_case, [zero, tf.zeros_like(precisions)]
    )
    return tf.where(n > 1, mean, untied)


def _log_choose(n: tf.Tensor, k: tf.Tensor) -> tf.Tensor:
    return tf.math.lgamma(n + 1) - tf.math.lgamma(k + 1) - tf.math.lgamma(n - k + 1)


def _discounts(lists: RankedLists, discount: str | Callable) -> tf.Tensor:
    if discount in DISCOUNTS:
        return DISCOUNTS[discount](lists.ranks)
    discounts = call_function("discount", discount, lists.ranks)
    # One that grows with the rank is a mistake: NaN, rather than an NDCG above 1.
    falls = tf.reduce_all(discounts[1:] <= discounts[:-1])
    is_valid = falls & tf.reduce_all((discounts >= 0) & tf.math.is_finite(discounts))
    return tf.where(is_valid, discounts, float("nan"))
