"""Metrics of subtopics: how diverse the items at the top are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.metrics.base import SubtopicMetric
from tfrankmetrics.metrics.binary import PrecisionDenominator, depths
from tfrankmetrics.metrics.dcg import discounts
from tfrankmetrics.metrics.declared import metric
from tfrankmetrics.metrics.gains import SubtopicGain
from tfrankmetrics.options import Alpha, Discount, RelevanceThreshold
from tfrankmetrics.ranking.items import DerivedGain, ItemGain, Items, count
from tfrankmetrics.ranking.ranked_lists import RankedLists

# Gains that are compared are whole multiples of 1 / FINENESS, whose sums are exact.
FINENESS = 2.0**40
BITS = 52  # of a whole number that float64 holds exactly


def intent_aware_precision(
    lists: RankedLists, relevance: SubtopicGain, *, denominator: PrecisionDenominator
) -> Array:
    """P-IA@k = mean of P@k over the subtopics with any relevant item."""
    all_hits = lists.sum_to_cutoffs(lists.expected(relevance.num_subtopics))
    number = num_to_cover(lists, relevance)
    return xp.divide_no_nan(all_hits, depths(lists, denominator) * number)


def num_to_cover(lists: RankedLists, relevance: SubtopicGain) -> Array:
    """The number of subtopics with any relevant item, `[B, 1]`."""
    has_relevant = xp.any(relevance.by_subtopic(lists.listed) > 0, axis=1)
    return count(has_relevant)[:, xp.newaxis]


def subtopic_recall(lists: RankedLists, relevance: SubtopicGain) -> Array:
    """S-recall@k = subtopics with a relevant item in the top k / their number."""
    covered = lists.sum_to_cutoffs(newly_covered(lists, relevance))
    return xp.divide_no_nan(covered, num_to_cover(lists, relevance))


def newly_covered(lists: RankedLists, relevance: SubtopicGain) -> Array:
    """The number of subtopics whose first relevant item is at each rank, `[B, D]`."""
    return sum_over_subtopics(lists, relevance, lists.first_relevant)


def sum_over_subtopics(
    lists: RankedLists,
    relevance: SubtopicGain,
    of_subtopic: Callable[[ItemGain], Array],
) -> Array:
    """The sum of `[B, D]` numbers, which follow from the relevance to a subtopic."""

    def add_subtopic(subtopic, total):
        return subtopic + 1, total + of_subtopic(relevance.for_subtopic(subtopic))

    number = xp.shape(lists.ranked.labels)[2]
    nothing = xp.zeros_like(lists.ranked.valid, xp.float64)
    return xp.while_loop(lambda i, _: i < number, add_subtopic, [0, nothing])[1]


def alpha_dcg(
    lists: RankedLists, relevance: SubtopicGain, *, alpha: float, discount: Discount
) -> Array:
    """Alpha-DCG@k = sum over ranks 1..k of novelty * discount(rank)."""
    return lists.sum_to_cutoffs(
        discounted_novelty(lists, relevance, alpha=alpha, discount=discount)
    )


def discounted_novelty(
    lists: RankedLists, relevance: SubtopicGain, *, alpha: float, discount: Discount
) -> Array:
    """The contribution of each rank to alpha-DCG."""
    novelty = novelty_at_ranks(lists, relevance, alpha=alpha)
    return novelty * discounts(lists, discount=discount)


def novelty_at_ranks(
    lists: RankedLists, relevance: SubtopicGain, *, alpha: float
) -> Array:
    """The novelty of the item at each rank, with its weight, `[B, D]`.

    It is the sum over the item's subtopics of (1 - alpha)^(items above it that are
    relevant to the subtopic).
    """

    def of_subtopic(on_topic):
        # (1 - alpha)^(relevant items above) is the probability of reaching an item if
        # the user stops at each relevant item with the probability alpha.
        stop = DerivedGain(lambda items: alpha * on_topic(items))
        # All relevant items of a tie have the same mean novelty, but their own weights.
        weighted = lists.expected(lists.weighted(on_topic, relevance))
        weight = xp.divide_no_nan(weighted, lists.expected(on_topic))
        return lists.first_stop(stop) * (weight / alpha)

    return sum_over_subtopics(lists, relevance, of_subtopic)


def alpha_ndcg(
    lists: RankedLists, relevance: SubtopicGain, *, alpha: float, discount: Discount
) -> Array:
    """Alpha-NDCG@k = alpha-DCG@k / alpha-DCG@k of the greedy ideal."""
    dcg = alpha_dcg(lists, relevance, alpha=alpha, discount=discount)
    ideal = greedy_alpha_dcg(lists, relevance, alpha=alpha, discount=discount)
    return xp.divide_no_nan(dcg, ideal)


def share_of_ideal(
    lists: RankedLists, relevance: SubtopicGain, *, alpha: float, discount: Discount
) -> Array:
    """The contribution of each rank to alpha-NDCG at the last cutoff."""
    gains = discounted_novelty(lists, relevance, alpha=alpha, discount=discount)
    ideal = greedy_alpha_dcg(lists, relevance, alpha=alpha, discount=discount)
    return xp.divide_no_nan(gains, ideal[:, -1:])


def greedy_alpha_dcg(
    lists: RankedLists, relevance: SubtopicGain, *, alpha: float, discount: Discount
) -> Array:
    """The alpha-DCG@k of the greedy ideal."""
    ideal = in_greedy_order(lists, relevance, alpha=alpha)
    return alpha_dcg(ideal, relevance, alpha=alpha, discount=discount)


def in_greedy_order(
    lists: RankedLists, relevance: SubtopicGain, *, alpha: float
) -> RankedLists:
    """The listed items, of which each rank takes the one with the highest gain.

    The gain is the item's weight times the sum of (1 - alpha)^(items above it that are
    relevant to the subtopic) over its subtopics. Of equal gains, the first one in
    `order_of_equals` is taken.
    """
    items, number = lists.listed, lists.total(relevance)
    topics = relevance.by_subtopic(items)
    order = order_of_equals(items, topics)
    topics, is_left = xp.gather(topics, order), xp.gather(items.valid, order)
    weights = xp.ones_like(is_left, xp.float64)
    if items.weights is not None:
        weights = xp.gather(items.weights, order)
    positions = xp.arange(xp.shape(is_left)[1], like=is_left)

    def take_next(rank, times, is_left):
        # A gain is a whole number: it does not depend on the order of the subtopics,
        # and equal gains are equal.
        gains = xp.matvec(topics, xp.round((1 - alpha) ** times * FINENESS))
        best = xp.argmax(xp.where(is_left, gains * weights, -1), axis=1)
        chosen = best[:, xp.newaxis]
        is_left = is_left & xp.not_equal(positions, xp.astype(chosen, xp.int32))
        times = times + xp.gather(topics, chosen)[:, 0]
        return (times, is_left), xp.astype(best, xp.float64)

    state = xp.zeros_like(xp.max(topics, axis=1)), is_left
    steps = xp.clip(xp.max(number), 0, xp.astype(lists.depth, xp.float64, like=number))
    taken = xp.unfold(take_next, state, steps, lists.depth, number)
    chosen = xp.gather(order, xp.astype(xp.matrix_transpose(taken), xp.int32))
    is_ranked = lists.positions <= number[:, xp.newaxis]
    labels, weights = (
        None if values is None else xp.gather(values, chosen)
        for values in (items.labels, items.weights)
    )
    return RankedLists(
        ranked=Items(labels, is_ranked, is_ranked, weights).only(is_ranked),
        listed=items,
        deepest=lists.deepest,
        ties=None,
        query_weights=lists.query_weights,
        num_retrieved=number,
        num_listed=lists.num_listed,
        num_weighted=lists.num_weighted,
        cutoffs=lists.cutoffs,
    )


def order_of_equals(items: Items, topics: Array) -> Array:
    """The order in which the greedy ideal takes items with equal gains, `[B, J]`.

    The item with the greatest id comes first. Without ids, it is the one that is
    relevant to the first subtopic in which they differ.

    Args:
        items: The items.
        topics: 1 for each subtopic that an item is relevant to, `[B, J, T]`.
    """
    if items.ids is not None:
        return xp.argsort(items.ids, descending=True)
    number = xp.shape(topics)[2]
    subtopics = xp.arange(xp.astype(number, xp.float64, like=topics), like=topics)

    def by_some(first, order):
        """Sorts by the subtopics from `first` on, as many as one number holds."""
        place = subtopics - xp.astype(first, xp.float64, like=topics)
        digits = xp.where((place >= 0) & (place < BITS), 0.5**place, 0)
        keys = xp.gather(xp.sum(topics * digits, axis=2), order)
        by_keys = xp.argsort(keys, descending=True)
        return first - BITS, xp.gather(order, by_keys)

    positions = xp.arange(xp.shape(items.valid)[1], like=items.valid)
    order = xp.zeros_like(items.valid, xp.int32) + positions
    last = (number - 1) // BITS * BITS
    return xp.while_loop(lambda first, _: first >= 0, by_some, [last, order])[1]


@metric(
    "precision_ia",
    formula=intent_aware_precision,
    gain=SubtopicGain,
    aliases=("P_IA", "P-IA"),
)
class PrecisionIA(SubtopicMetric):
    """Intent-aware precision: the mean precision over the subtopics of a query.

    P-IA@k = hits@k / (number of subtopics * min(k, length of the list))
    hits@k = sum over ranks 1..k of the number of subtopics that the item is relevant to

    Subtopics without any relevant item in the list are excluded. The value is between 0
    and 1. Source: Agrawal, Gollapudi, Halverson and Ieong, "Diversifying search
    results", WSDM 2009; Clarke, Craswell and Soboroff, "Overview of the TREC 2009 Web
    Track".

    >>> precision_ia = PrecisionIA(k=2)
    >>> labels = [[[1, 0], [0, 0], [1, 1]]]  # three items, two subtopics
    >>> precision_ia.update_state(y_true=labels, y_pred=[[0.9, 0.5, 0.1]])
    >>> float(precision_ia.result())  # 1 / (2 * 2)
    0.25

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        denominator: "list" (min(k, length of the list); the default), or "k", even for
            shorter lists.
        ties: For equal scores: "expected" (the default) or "stable".
        empty: For a list without relevant items: "zero" (the default), "one" or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: "labels", the only choice.
        name: The name of the result, by default such as "precision_ia@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0
    denominator: PrecisionDenominator = "list"


@metric(
    "subtopic_recall",
    formula=subtopic_recall,
    gain=SubtopicGain,
    aliases=("strec", "s_recall", "nugget_recall"),
    by_rank={"new subtopics": newly_covered},
)
class SubtopicRecall(SubtopicMetric):
    """Subtopic recall: the share of the subtopics that the top k items cover.

    S-recall@k = subtopics with a relevant item in the top k / number of subtopics

    Subtopics without any relevant item in the list are excluded. The value is between 0
    and 1. Source: Zhai, Cohen and Lafferty, "Beyond independent relevance: methods and
    evaluation metrics for subtopic retrieval", SIGIR 2003.

    >>> subtopic_recall = SubtopicRecall(k=2)
    >>> labels = [[[1, 0], [0, 0], [1, 1]]]  # three items, two subtopics
    >>> subtopic_recall.update_state(y_true=labels, y_pred=[[0.9, 0.5, 0.1]])
    >>> float(subtopic_recall.result())  # 1 / 2
    0.5

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        ties: For equal scores: "expected" (the default) or "stable".
        empty: For a list without relevant items: "zero" (the default), "one" or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: "labels", the only choice.
        name: The name of the result, by default such as "subtopic_recall@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0


@metric(
    "alpha_dcg",
    formula=alpha_dcg,
    gain=SubtopicGain,
    range=(0, math.inf),
    by_rank={
        "novelty": novelty_at_ranks,
        "discount": discounts,
        "contribution": discounted_novelty,
    },
)
class AlphaDCG(SubtopicMetric):
    """Alpha-DCG: discounted gains that shrink each time a subtopic is repeated.

    alpha-DCG@k = sum over ranks 1..k of discount(rank) * novelty
    novelty     = sum over the subtopics that the item is relevant to of
                  (1 - alpha)^(items above it that are relevant to the subtopic)

    The value is at least 0 and has no upper bound. Source: Clarke et al., "Novelty and
    diversity in information retrieval evaluation", SIGIR 2008.

    >>> alpha_dcg = AlphaDCG()
    >>> labels = [[[1, 0], [0, 0], [1, 1]]]  # three items, two subtopics
    >>> alpha_dcg.update_state(y_true=labels, y_pred=[[0.9, 0.5, 0.1]])
    >>> float(alpha_dcg.result())  # 1 + (1/2 + 1) / log2(4)
    1.75

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        alpha: How much of its gain a subtopic loses each time it is repeated, from
            0.001 to 1. Default 0.5.
        discount: The discount of a rank: "log2" (1 / log2(1 + rank)), "jarvelin" (1 for
            ranks 1 and 2, then 1 / log2(rank)), or a function from a float64 tensor of
            ranks, starting at 1, to a tensor of discounts. Default "log2".
        ties: For equal scores: "expected" (the default) or "stable".
        empty: For a list without relevant items: "zero" (the default) or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: "labels", the only choice.
        name: The name of the result, by default such as "alpha_dcg@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0
    alpha: Alpha = 0.5
    discount: Discount = "log2"
    empty: Literal["zero", "skip"] = "zero"


@metric(
    "alpha_ndcg",
    formula=alpha_ndcg,
    gain=SubtopicGain,
    aliases=("alpha-nDCG",),
    range=(0, math.inf),
    by_rank={
        "novelty": novelty_at_ranks,
        "discount": discounts,
        "contribution": share_of_ideal,
    },
)
class AlphaNDCG(SubtopicMetric):
    """Alpha-NDCG: alpha-DCG, divided by that of a greedy ideal order.

    alpha-NDCG@k = alpha-DCG@k / alpha-DCG@k of the greedy ideal

    The greedy ideal takes the item with the highest gain for each rank. Of equal gains,
    it takes the item with the greatest id, as text, in tables, as TREC's ndeval does.
    In arrays, it takes the item that is relevant to the first subtopic in which they
    differ. The greedy ideal is not always the best order, and the value may be a little
    above 1. Source: Clarke et al., "Novelty and diversity in information retrieval
    evaluation", SIGIR 2008.

    >>> alpha_ndcg = AlphaNDCG()
    >>> labels = [[[1, 0], [0, 0], [1, 1]]]  # three items, two subtopics
    >>> alpha_ndcg.update_state(y_true=labels, y_pred=[[0.9, 0.5, 0.1]])
    >>> float(alpha_ndcg.result())  # (1 + (1/2 + 1) / log2(4)) / (2 + (1/2) / log2(3))
    0.755...

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        alpha: How much of its gain a subtopic loses each time it is repeated, from
            0.001 to 1. Default 0.5.
        discount: The discount of a rank: "log2" (1 / log2(1 + rank)), "jarvelin" (1 for
            ranks 1 and 2, then 1 / log2(rank)), or a function from a float64 tensor of
            ranks, starting at 1, to a tensor of discounts. Default "log2".
        ties: For equal scores: "expected" (the default) or "stable".
        empty: For a list without relevant items: "zero" (the default) or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: "labels", the only choice.
        name: The name of the result, by default such as "alpha_ndcg@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0
    alpha: Alpha = 0.5
    discount: Discount = "log2"
    empty: Literal["zero", "skip"] = "zero"
