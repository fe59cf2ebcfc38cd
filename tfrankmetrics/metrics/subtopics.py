"""Metrics of subtopics: how diverse the items at the top are."""

from __future__ import annotations

import math
from typing import Literal

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.metrics.base import SubtopicMetric
from tfrankmetrics.metrics.binary import PrecisionDenominator, depths
from tfrankmetrics.metrics.dcg import discounts
from tfrankmetrics.metrics.declared import metric
from tfrankmetrics.metrics.gains import SubtopicGain
from tfrankmetrics.options import Alpha, Discount, RelevanceThreshold
from tfrankmetrics.ranking.items import DerivedGain, count
from tfrankmetrics.ranking.ranked_lists import RankedLists


def intent_aware_precision(
    lists: RankedLists, relevance: SubtopicGain, *, denominator: PrecisionDenominator
) -> Array:
    """P-IA@k = mean of P@k over the subtopics with any relevant item."""
    has_relevant = xp.any(relevance.by_subtopic(lists.listed) > 0, axis=1)
    subtopics = count(has_relevant)[:, xp.newaxis]
    all_hits = lists.sum_to_cutoffs(lists.expected(relevance.num_subtopics))
    return xp.divide_no_nan(all_hits, depths(lists, denominator) * subtopics)


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

    def add_subtopic(subtopic, novelty):
        on_topic = relevance.for_subtopic(subtopic)
        # (1 - alpha)^(relevant items above) is the probability of reaching an item if
        # the user stops at each relevant item with the probability alpha.
        stop = DerivedGain(lambda items: alpha * on_topic(items))
        # All relevant items of a tie have the same mean novelty, but their own weights.
        weighted = lists.expected(lists.weighted(on_topic, relevance))
        weight = xp.divide_no_nan(weighted, lists.expected(on_topic))
        return subtopic + 1, novelty + lists.first_stop(stop) * (weight / alpha)

    number = xp.shape(lists.ranked.labels)[2]
    nothing = xp.zeros_like(lists.ranked.valid, xp.float64)
    return xp.while_loop(lambda i, _: i < number, add_subtopic, [0, nothing])[1]


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
