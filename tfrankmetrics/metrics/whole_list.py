"""Metrics of whole lists, without a cutoff: ARP, OPA, AUC and BPref.

ARP, OPA and AUC require the rank of every item. Items that were not retrieved share the
ranks below all others. BPref treats them as missed.
"""

from __future__ import annotations

import math
from typing import Literal

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.metrics.base import WholeListMetric
from tfrankmetrics.metrics.declared import metric
from tfrankmetrics.metrics.gains import BinaryGain, NumLowerLabels, label_itself
from tfrankmetrics.options import Average, RelevanceThreshold
from tfrankmetrics.ranking.items import ItemGain
from tfrankmetrics.ranking.pairs import lower_below, pairs_in_order
from tfrankmetrics.ranking.ranked_lists import RankedLists


def average_relevance_position(lists: RankedLists, label: ItemGain) -> Array:
    """ARP = sum of label * rank / sum of labels."""
    return xp.divide_no_nan(
        _sum_of_ranks(lists, lists.weighted(label)), lists.total(label)
    )


def rank_itself(lists: RankedLists, gain: ItemGain) -> Array:
    """The rank."""
    return lists.ranks


def ordered_pair_accuracy(lists: RankedLists, num_lower: ItemGain) -> Array:
    """OPA = pairs with the higher label on top / pairs of unequal labels."""
    pairs = pairs_in_order(lists, lists.relative_weights(num_lower))
    return xp.divide_no_nan(pairs, lists.total(num_lower))


def accuracy_at_ranks(lists: RankedLists, num_lower: ItemGain) -> Array:
    """The contribution of each rank to OPA."""
    weights = lists.at_ranks(lists.relative_weights(num_lower))
    pairs, total = weights * lower_below(lists), lists.total(num_lower)
    return xp.divide_no_nan(pairs, total[:, xp.newaxis])


def area_under_the_curve(lists: RankedLists, relevance: ItemGain) -> Array:
    """AUC = pairs with the relevant item on top / pairs of relevant and other items.

    After Mann and Whitney: R relevant items at the top have ranks that add up to
    R (R + 1) / 2. Each other item above one of them adds 1.
    """
    relevant, pairs = lists.total(relevance), mixed_pairs(lists, relevance)
    lost = _sum_of_ranks(lists, relevance) - relevant * (relevant + 1) / 2
    return xp.divide_no_nan(pairs - lost, pairs)


def pairs_at_ranks(lists: RankedLists, relevance: ItemGain) -> Array:
    """The irrelevant items below each rank, if the item there is relevant."""
    irrelevant = (lists.num_listed - lists.total(relevance))[:, xp.newaxis]
    return irrelevant - (lists.ranks - lists.relevant_down_to(relevance))


def area_at_ranks(lists: RankedLists, relevance: ItemGain) -> Array:
    """The contribution of each rank to AUC."""
    pairs = lists.expected(relevance) * pairs_at_ranks(lists, relevance)
    return xp.divide_no_nan(pairs, mixed_pairs(lists, relevance)[:, xp.newaxis])


def mixed_pairs(lists: RankedLists, relevance: ItemGain) -> Array:
    """Number of pairs of a relevant item and one that is not, `[B]`."""
    relevant = lists.total(relevance)
    return relevant * (lists.num_listed - relevant)


# The columns of an explanation of AUC and GAUC.
AUC_COLUMNS = {
    "gain": RankedLists.expected,
    "pairs in order": pairs_at_ranks,
    "contribution": area_at_ranks,
}


def _sum_of_ranks(lists: RankedLists, gain: ItemGain) -> Array:
    """Sum of gain * rank; items that were not retrieved share the last ranks."""
    retrieved = xp.sum(lists.expected(gain) * lists.ranks, axis=1)
    missed, gain_of_missed = _missed(lists, gain)
    return retrieved + gain_of_missed * (lists.num_retrieved + (missed + 1) / 2)


def first_relevant_rank(lists: RankedLists, relevance: ItemGain) -> Array:
    """The rank of the first relevant item.

    Of n tied items of which r are relevant, the first relevant one has the mean place
    (n + 1) / (r + 1). Those that were not retrieved are tied at the end.
    """
    is_first = lists.first_relevant(relevance)
    rank = xp.sum(is_first * lists.ranks, axis=1)
    missed, relevant = _missed(lists, relevance)
    at_the_end = lists.num_retrieved + (missed + 1) / (relevant + 1)
    return xp.where(xp.sum(is_first, axis=1) > 0.5, rank, at_the_end)


def coverage_error(lists: RankedLists, relevance: ItemGain) -> Array:
    """The rank of the last relevant item: how far to read to see all of them.

    Of n tied items of which r are relevant, the last relevant one has the mean place
    (n + 1) r / (r + 1). Those that were not retrieved are tied at the end.
    """
    rank = xp.max(lists.last_relevant_of_group(relevance), axis=1)
    missed, relevant = _missed(lists, relevance)
    at_the_end = lists.num_retrieved + (missed + 1) * relevant / (relevant + 1)
    return xp.where(relevant > 0, at_the_end, xp.maximum(rank, 0))


def _missed(lists: RankedLists, gain: ItemGain) -> tuple[Array, Array]:
    """How many items were not retrieved, and the sum of their gains, `[B]`."""
    missed = xp.where(~lists.listed.retrieved, gain(lists.listed), 0)
    return lists.num_listed - lists.num_retrieved, xp.sum(missed, axis=1)


BPrefDenominator = Literal["min(relevant, irrelevant)", "relevant"]


def binary_preference(
    lists: RankedLists, relevance: ItemGain, *, denominator: BPrefDenominator
) -> Array:
    """BPref = mean over the relevant items of 1 - irrelevant above / denominator.

    At most as many irrelevant items are counted above an item as there are relevant
    items.
    """
    preference = preference_at_ranks(lists, relevance, denominator=denominator)
    preferences = xp.sum(lists.expected(relevance) * preference, axis=1)
    return xp.divide_no_nan(preferences, lists.total(relevance))


def preference_at_ranks(
    lists: RankedLists, relevance: ItemGain, *, denominator: BPrefDenominator
) -> Array:
    """1 - irrelevant items above / denominator, if the item at the rank is relevant."""
    relevant = lists.total(relevance)[:, xp.newaxis]
    total = relevant
    if denominator == "min(relevant, irrelevant)":
        total = xp.minimum(relevant, lists.num_listed[:, xp.newaxis] - relevant)
    above = lists.irrelevant_above(relevance, maximum=relevant)
    return 1 - xp.divide_no_nan(above, total)


@metric(
    "arp",
    formula=average_relevance_position,
    gain=label_itself,
    lower_is_better=True,
    range=(1, math.inf),
    by_rank={"gain": RankedLists.expected, "rank": rank_itself},
    cutoff_hint="In recommendation ARP@k is the average recommendation popularity, "
    "whose name is 'mean_popularity@k'; 'arp' is the average relevance position.",
)
class AverageRelevancePosition(WholeListMetric):
    """Average relevance position: the mean rank of relevant items. Lower is better.

    ARP = sum of label * rank / sum of labels

    The value is at least 1. Source: Pasumarthi et al., "TF-Ranking: scalable TensorFlow
    library for learning-to-rank", KDD 2019.

    >>> arp = AverageRelevancePosition()
    >>> arp.update_state(y_true=[[1, 0, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(arp.result())  # the mean of ranks 1 and 3
    2.0

    Args:
        average: "micro" (all units of label are weighted equally; the default) or
            "macro" (all queries are weighted equally).
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: Only "skip": a list without relevant items is excluded.
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default) or "catalog".
        name: The name of the result, by default "arp".
        dtype: The dtype of the result, by default Keras's floatx.

    `WholeListMetric` describes the arguments from `ties` on in full.
    """

    average: Literal["micro", "macro"] = "micro"
    empty: Literal["skip"] = "skip"


# In a mean over permutations, items that were not retrieved share the last ranks:
# without results, all pairs of OPA and AUC would be tied.
@metric(
    "opa",
    formula=ordered_pair_accuracy,
    gain=NumLowerLabels,
    without_results=None,
    by_rank={
        "pairs in order": lambda lists, num_lower: lower_below(lists),
        "contribution": accuracy_at_ranks,
    },
)
class OrderedPairAccuracy(WholeListMetric):
    """Ordered pair accuracy: the share of the pairs that is in the right order.

    OPA = pairs with the item of higher label on top / pairs of unequal labels

    The value is between 0 and 1; a tied pair is counted as one half. Counting takes
    O(N log(N)^2) time and O(N) memory for a list of N items. Source: Pasumarthi et al.,
    "TF-Ranking: scalable TensorFlow library for learning-to-rank", KDD 2019.

    >>> opa = OrderedPairAccuracy()
    >>> opa.update_state(y_true=[[2, 0, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(opa.result())  # 2 above 1 and 2 above 0, but 0 above 1
    0.666...

    Args:
        average: "micro" (all pairs are weighted equally; the default) or "macro" (all
            queries are weighted equally).
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list where all labels are equal: "skip" (the default) or, with
            average="macro", also "zero" or "one".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: "labels", the only input format with items of known lower relevance.
        name: The name of the result, by default "opa".
        dtype: The dtype of the result, by default Keras's floatx.

    `WholeListMetric` describes the arguments from `ties` on in full.
    """

    average: Literal["micro", "macro"] = "micro"
    empty: Literal["zero", "one", "skip"] = "skip"
    inputs: Literal["labels"] = "labels"


@metric(
    "auc",
    formula=area_under_the_curve,
    gain=BinaryGain,
    total=mixed_pairs,
    without_results=None,
    by_rank=AUC_COLUMNS,
)
class PerQueryAUC(WholeListMetric):
    """Area under the ROC curve of each list, averaged over the queries.

    AUC = pairs with the relevant item on top / pairs of relevant and irrelevant items

    The value is between 0 and 1; a tied pair is counted as one half. Unlike one AUC of
    all items together, it does not compare scores of different queries. Source: Hanley
    and McNeil, "The meaning and use of the area under a receiver operating
    characteristic (ROC) curve", Radiology 143(1), 1982.

    `GroupAUC` is the same with weights for the queries.

    >>> auc = PerQueryAUC()
    >>> auc.update_state(y_true=[[1, 0, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(auc.result())  # the first relevant item is above the other, not the last
    0.5

    Args:
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        average: "macro" (all queries are weighted equally; the default), "micro" (all
            pairs are weighted equally), "items" (a query is weighted by its number of
            items, or impressions) or "relevant" (by its number of relevant items).
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list in which all items or no items are relevant: "skip" (the
            default) or, unless average="micro", also "zero" or "one".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default) or "catalog".
        name: The name of the result, by default "auc".
        dtype: The dtype of the result, by default Keras's floatx.

    `WholeListMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0
    average: Average = "macro"
    empty: Literal["zero", "one", "skip"] = "skip"


@metric(
    "gauc",
    formula=area_under_the_curve,
    gain=BinaryGain,
    total=mixed_pairs,
    without_results=None,
    by_rank=AUC_COLUMNS,
)
class GroupAUC(WholeListMetric):
    """GAUC: the AUC of each query, weighted by the number of its items.

    GAUC = sum over the queries of items * AUC / sum of items

    A query is usually a user, and its items are impressions. Queries in which all items
    or no items are relevant are excluded. The value is between 0 and 1; a tied pair is
    counted as one half. Source: Zhu et al., "Optimized cost per click in Taobao display
    advertising", KDD 2017, who weight users by impressions or by clicks.

    >>> gauc = GroupAUC()
    >>> labels, scores = [[1, 0, 1], [0, 1, -1]], [[3, 2, 1], [2, 1, 0]]
    >>> gauc.update_state(labels, scores)
    >>> float(gauc.result())  # (3 * 1/2 + 2 * 0) / 5
    0.3...

    Args:
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        average: "items" (a query is weighted by its number of items, or impressions;
            the default), "relevant" (by its number of relevant items, or clicks),
            "macro" (all queries are weighted equally) or "micro" (all pairs are).
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list in which all items or no items are relevant: "skip" (the
            default) or, unless average="micro", also "zero" or "one".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default) or "catalog".
        name: The name of the result, by default "gauc".
        dtype: The dtype of the result, by default Keras's floatx.

    `WholeListMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0
    average: Average = "items"
    empty: Literal["zero", "one", "skip"] = "skip"


@metric(
    "bpref",
    formula=binary_preference,
    gain=BinaryGain,
    unjudged="drop",
    by_rank={"gain": RankedLists.expected, "preference": preference_at_ranks},
)
class BPref(WholeListMetric):
    """Binary preference: how seldom judged irrelevant items rank above relevant ones.

    BPref = sum over the relevant items that were retrieved of
            (1 - min(irrelevant items above it, R) / denominator) / R

    R is the number of relevant items. Unjudged items, with labels below 0, are ignored
    even if a mask keeps them. The value is between 0 and 1. Source: Buckley and
    Voorhees, "Retrieval evaluation with incomplete information", SIGIR 2004. trec_eval
    has used the default denominator since 2005.

    >>> bpref = BPref()
    >>> bpref.update_state(y_true=[[1, 0, -1, 1, 0]], y_pred=[[5, 4, 3, 2, 1]])
    >>> float(bpref.result())  # (1 + (1 - 1/2)) / 2
    0.75

    Args:
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        denominator: "min(relevant, irrelevant)" (the number of relevant items, or of
            irrelevant items if there are fewer; the default) or "relevant".
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "zero" (the default), "one" or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: "labels", the only input format with items known to be irrelevant.
        name: The name of the result, by default "bpref".
        dtype: The dtype of the result, by default Keras's floatx.

    `WholeListMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0
    denominator: BPrefDenominator = "min(relevant, irrelevant)"
    inputs: Literal["labels"] = "labels"


@metric(
    "first_relevant_rank",
    formula=first_relevant_rank,
    gain=BinaryGain,
    lower_is_better=True,
    range=(1, math.inf),
    by_rank={"first": RankedLists.first_relevant, "rank": rank_itself},
)
class FirstRelevantRank(WholeListMetric):
    """The rank of the first relevant item. Lower is better.

    Under ties, it is the average over all orders of tied items. Items that were
    not retrieved share the last ranks. With one relevant item per query, this is the
    mean rank of knowledge graph completion (Bordes et al., NIPS 2013). The value is at
    least 1. Unlike MRR, one query with a very low rank can dominate the mean.

    >>> first = FirstRelevantRank()
    >>> first.update_state(y_true=[[0, 0, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(first.result())
    3.0

    Args:
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: Only "skip": a list without relevant items is excluded.
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default) or "catalog".
        name: The name of the result, by default "first_relevant_rank".
        dtype: The dtype of the result, by default Keras's floatx.

    `WholeListMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0
    empty: Literal["skip"] = "skip"


@metric(
    "coverage_error",
    formula=coverage_error,
    gain=BinaryGain,
    lower_is_better=True,
    range=(0, math.inf),
    without_results=None,
)
class CoverageError(WholeListMetric):
    """The rank of the last relevant item: how far to read to see all of them.

    Under ties, it is the average over all orders of tied items. scikit-learn's
    `coverage_error` uses the last of these ranks, as with ties="worst", and assigns 0
    to a list without relevant items, as with empty="zero". Items that were not
    retrieved share the last ranks. The value is at least 1; lower is better.
    Source: Tsoumakas, Katakis and Vlahavas, "Mining multi-label data", in "Data Mining
    and Knowledge Discovery Handbook", 2010.

    >>> error = CoverageError()
    >>> error.update_state(y_true=[[1, 0, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(error.result())
    3.0

    Args:
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "skip" (the default) or "zero".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default) or "catalog".
        name: The name of the result, by default "coverage_error".
        dtype: The dtype of the result, by default Keras's floatx.

    `WholeListMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0
    empty: Literal["zero", "skip"] = "skip"
