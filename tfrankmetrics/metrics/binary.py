"""Metrics of binary relevance, at the top of each list.

Precision, recall, completeness, F1, hit rate, R-precision, average precision and
reciprocal rank.
"""

from __future__ import annotations

from typing import Literal

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.metrics.base import TopKMetric
from tfrankmetrics.metrics.declared import metric
from tfrankmetrics.metrics.gains import BinaryGain
from tfrankmetrics.options import Over, RelevanceThreshold
from tfrankmetrics.ranking.items import ItemGain
from tfrankmetrics.ranking.ranked_lists import RankedLists

APDenominator = Literal[
    "relevant", "min(k, relevant)", "min(retrieved, relevant)", "hits"
]
PrecisionDenominator = Literal["list", "k"]
RecallDenominator = Literal["relevant", "min(k, relevant)"]


def depths(lists: RankedLists, denominator: PrecisionDenominator) -> Array:
    """The denominator of precision: min(k, length of the list) `[B, C]`, or k `[C]`."""
    if denominator == "k":
        return lists.k
    return lists.num_to_cutoffs


def precision_if_relevant(lists: RankedLists, relevance: ItemGain) -> Array:
    """The precision down to each rank, if the item there is relevant."""
    return lists.relevant_down_to(relevance) / lists.ranks


def average_precision(
    lists: RankedLists, relevance: ItemGain, *, denominator: APDenominator
) -> Array:
    """AP@k = sum over ranks 1..k of precision@rank * relevance / denominator."""
    weighted = relevance if denominator == "hits" else lists.weighted(relevance)
    hits = lists.expected(weighted)
    precision_here = hits * lists.relevant_down_to(relevance) / lists.ranks
    if denominator == "hits":
        return lists.mean_over_hits(relevance, precision_here)
    total = lists.total(relevance)[:, xp.newaxis]
    if denominator != "relevant":
        fitting = lists.ideal(weighted)
        if denominator == "min(retrieved, relevant)":
            is_rank = lists.ranks <= lists.num_retrieved[:, xp.newaxis]
            fitting = xp.where(is_rank, fitting, 0)
        total = lists.sum_to_cutoffs(fitting)
    return xp.divide_no_nan(lists.sum_to_cutoffs(precision_here), total)


def reciprocal_rank(lists: RankedLists, relevance: ItemGain, *, over: Over) -> Array:
    """RR@k = 1 / rank of the first relevant item, 0 if none is in the top k.

    With over="all", the mean of 1 / rank over all relevant items, 0 below the top k.
    """
    counted = counted_items(lists, relevance, over=over)
    reciprocals = lists.sum_to_cutoffs(counted / lists.ranks)
    if over == "first":
        return reciprocals
    return xp.divide_no_nan(reciprocals, lists.total(relevance)[:, xp.newaxis])


def counted_items(lists: RankedLists, relevance: ItemGain, *, over: Over) -> Array:
    """The probability of the first, or of any, relevant item at each rank."""
    first = over == "first"
    return lists.first_relevant(relevance) if first else lists.expected(relevance)


def reciprocal_of_rank(lists: RankedLists, relevance: ItemGain) -> Array:
    """1 / rank."""
    return 1 / lists.ranks


def precision(
    lists: RankedLists, relevance: ItemGain, *, denominator: PrecisionDenominator
) -> Array:
    """P@k = number of relevant items at ranks 1..k / denominator (see `depths`)."""
    hits = lists.sum_to_cutoffs(lists.expected(relevance))
    return xp.divide_no_nan(hits, depths(lists, denominator))


def recall(
    lists: RankedLists, relevance: ItemGain, *, denominator: RecallDenominator
) -> Array:
    """R@k = number of relevant items at ranks 1..k / denominator.

    The denominator is the number of relevant items, or min(k, that number).
    """
    hits = lists.sum_to_cutoffs(lists.expected(relevance))
    total = lists.total(relevance)[:, xp.newaxis]
    if denominator == "min(k, relevant)":
        total = xp.minimum(lists.k, total)
    return xp.divide_no_nan(hits, total)


def capped_recall(lists: RankedLists, relevance: ItemGain) -> Array:
    """The same with min(k, relevant) as the denominator."""
    return recall(lists, relevance, denominator="min(k, relevant)")


def completeness(lists: RankedLists, relevance: ItemGain) -> Array:
    """C@k = 1 if all relevant items are at ranks 1..k, otherwise 0."""
    return lists.sum_to_cutoffs(lists.last_relevant(relevance))


def hit_rate(lists: RankedLists, relevance: ItemGain) -> Array:
    """HR@k = 1 if any of the items at ranks 1..k is relevant, otherwise 0."""
    return lists.sum_to_cutoffs(lists.first_relevant(relevance))


def f1(
    lists: RankedLists, relevance: ItemGain, *, denominator: PrecisionDenominator
) -> Array:
    """F1@k = 2 P@k R@k / (P@k + R@k) = 2 * hits / (k + number of relevant items)."""
    hits = lists.sum_to_cutoffs(lists.expected(relevance))
    relevant = lists.total(relevance)[:, xp.newaxis]
    return xp.divide_no_nan(2 * hits, depths(lists, denominator) + relevant)


def r_precision(lists: RankedLists, relevance: ItemGain) -> Array:
    """R-precision@k = number of relevant items at ranks 1..min(k, R) / R."""
    relevant = lists.total(relevance)[:, xp.newaxis]
    hits = xp.where(lists.ranks <= relevant, lists.expected(relevance), 0)
    return xp.divide_no_nan(lists.sum_to_cutoffs(hits), relevant)


@metric(
    "map",
    formula=average_precision,
    gain=BinaryGain,
    aliases=("AP",),
    by_rank={"gain": RankedLists.expected, "precision": precision_if_relevant},
)
class MeanAveragePrecision(TopKMetric):
    """Mean average precision: the precision at each relevant item, averaged.

    AP@k = sum over ranks 1..k of precision@rank * relevance / denominator

    The value is between 0 and 1. Source: Buckley and Voorhees, "Evaluating evaluation
    measure stability", SIGIR 2000.

    >>> mean_ap = MeanAveragePrecision(k=3)
    >>> mean_ap.update_state(y_true=[[1, 0, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(mean_ap.result())  # (1/1 + 2/3) / 2
    0.833...

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        denominator: "relevant" (all relevant items of the list; the default), "min(k,
            relevant)" (at most as many of them as fit above the cutoff; with weights of
            items, the sum of the largest weights that fit), "min(retrieved, relevant)"
            (at most as many as there are in the list, down to the cutoff), or "hits"
            (the relevant items found above the cutoff). With "hits", weights of items
            change only the weight of the query.
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "zero" (the default), "one" or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "map@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0
    denominator: APDenominator = "relevant"


@metric(
    "mrr",
    formula=reciprocal_rank,
    gain=BinaryGain,
    aliases=("RR", "recip_rank"),
    by_rank={"counted": counted_items, "1/rank": reciprocal_of_rank},
)
class MeanReciprocalRank(TopKMetric):
    """Mean reciprocal rank: the reciprocal rank of the first relevant item.

    RR@k = 1 / rank of the first relevant item, or 0 if none is in the top k

    With over="all" it is the mean of 1 / rank over all relevant items, where items
    below the top k contribute 0. This variant is common in news recommendation, since
    the MIND dataset.

    The value is between 0 and 1. Source: Voorhees, "The TREC-8 Question Answering Track
    Report", TREC 1999.

    >>> mrr = MeanReciprocalRank()
    >>> mrr.update_state(y_true=[[0, 1, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(mrr.result())  # the first relevant item has rank 2
    0.5

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        over: The relevant items: the "first" one, or "all" of them, whose reciprocal
            ranks are averaged. Default "first".
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "zero" (the default), "one" or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "mrr@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0
    over: Over = "first"


@metric(
    "precision",
    formula=precision,
    gain=BinaryGain,
    aliases=("P",),
    by_rank={"gain": RankedLists.expected},
)
class PrecisionAtK(TopKMetric):
    """Precision: the share of the top items that is relevant.

    P@k = number of relevant items at ranks 1..k / min(k, length of the list)

    The value is between 0 and 1. Without k it is the share of the whole list.

    >>> precision = PrecisionAtK(k=2)
    >>> precision.update_state(y_true=[[0, 1, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(precision.result())  # one of two
    0.5

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        denominator: "list" (min(k, length of the list); the default), or "k", even for
            shorter lists.
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "zero" (the default), "one" or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "precision@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0
    denominator: PrecisionDenominator = "list"


@metric(
    "recall",
    formula=recall,
    gain=BinaryGain,
    aliases=("R",),
    by_rank={"gain": RankedLists.expected},
)
class RecallAtK(TopKMetric):
    """Recall: the share of the relevant items that is in the top k.

    R@k = number of relevant items at ranks 1..k / denominator

    The value is between 0 and 1. Without k it is 1 for every list with a relevant item.
    With more than k relevant items, it is below 1 even for a perfect list, unless the
    denominator is capped: `CappedRecallAtK`.

    >>> recall = RecallAtK(k=2)
    >>> recall.update_state(y_true=[[0, 1, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(recall.result())  # one of two
    0.5

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        denominator: "relevant" (all relevant items of the list; the default), or
            "min(k, relevant)" (at most as many of them as fit above the cutoff).
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "zero" (the default), "one" or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "recall@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0
    denominator: RecallDenominator = "relevant"


@metric(
    "capped_recall",
    formula=capped_recall,
    gain=BinaryGain,
    aliases=("recall_cap", "R_cap"),
    by_rank={"gain": RankedLists.expected},
)
class CappedRecallAtK(TopKMetric):
    """Capped recall: recall with the denominator capped at k.

    R_cap@k = number of relevant items at ranks 1..k / min(k, number of relevant items)

    The value is between 0 and 1, and 1 for every perfect list. It is the Recall@k of
    Liang, Krishnan, Hoffman and Jebara, "Variational autoencoders for collaborative
    filtering", WWW 2018, and of the papers that use their code; the Recall of LensKit;
    and the capped recall of Thakur et al., "BEIR: A heterogeneous benchmark for
    zero-shot evaluation of information retrieval models", NeurIPS 2021, and of MTEB. It
    equals RecallAtK(denominator="min(k, relevant)").

    >>> capped = CappedRecallAtK(k=2)
    >>> capped.update_state(y_true=[[0, 1, 1, 1]], y_pred=[[0.9, 0.5, 0.1, 0.0]])
    >>> float(capped.result())  # one of the two that fit
    0.5

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "zero" (the default), "one" or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "capped_recall@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0


@metric(
    "completeness",
    formula=completeness,
    gain=BinaryGain,
    aliases=("full_recall", "all_recall"),
    by_rank={"last": RankedLists.last_relevant},
)
class CompletenessAtK(TopKMetric):
    """Completeness: whether all relevant items are in the top k.

    C@k = 1 if all relevant items are at ranks 1..k, otherwise 0

    A query scores 0 or 1, or between them if tied items straddle the cutoff: of t tied
    items, h of them relevant, s fit above the cutoff, and all h are among these with
    the probability C(t - h, s - h) / C(t, s). With more than k relevant items the value
    is 0. Source: Qu et al., "Towards completeness-oriented tool retrieval for large
    language models", CIKM 2024.

    >>> completeness = CompletenessAtK(k=2)
    >>> completeness.update_state(y_true=[[0, 1, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(completeness.result())  # one of two
    0.0

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "zero" (the default), "one" or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "completeness@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0


@metric(
    "hit_rate",
    formula=hit_rate,
    gain=BinaryGain,
    aliases=("Success", "HR"),
    by_rank={"first": RankedLists.first_relevant},
)
class HitRateAtK(TopKMetric):
    """Hit rate, or success: whether any relevant item is in the top k.

    HR@k = 1 if any of the items at ranks 1..k is relevant, otherwise 0

    A query scores 0 or 1, or between them if tied items straddle the cutoff.
    Without k it is 1 for every list with a relevant item.

    >>> hit_rate = HitRateAtK(k=2)
    >>> hit_rate.update_state(y_true=[[0, 1, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(hit_rate.result())
    1.0

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "zero" (the default), "one" or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "hit_rate@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0


@metric(
    "f1",
    formula=f1,
    gain=BinaryGain,
    by_rank={"gain": RankedLists.expected},
)
class F1AtK(TopKMetric):
    """F1: the harmonic mean of precision and recall.

    F1@k = 2 * P@k * R@k / (P@k + R@k)
         = 2 * relevant items at ranks 1..k / (min(k, length) + relevant items)

    The value is between 0 and 1. Source: van Rijsbergen, "Information Retrieval", 1979.

    >>> f1 = F1AtK(k=2)
    >>> f1.update_state(y_true=[[0, 1, 1, 1]], y_pred=[[0.9, 0.5, 0.1, 0.0]])
    >>> float(f1.result())  # 2 * 1 / (2 + 3)
    0.4...

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        denominator: The denominator of precision: "list" (min(k, length of the list);
            the default), or "k", even for shorter lists.
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "zero" (the default), "one" or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "f1@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0
    denominator: PrecisionDenominator = "list"


@metric("r_precision", formula=r_precision, gain=BinaryGain, aliases=("Rprec",))
class RPrecision(TopKMetric):
    """R-precision: precision at the rank where a perfect ranking would be complete.

    R-precision = number of relevant items at ranks 1..R / R

    R is the number of relevant items. With a cutoff k below R, only the items at
    ranks 1..k are counted, and the denominator is still R.

    The value is between 0 and 1. Source: Buckley and Voorhees, "Retrieval System
    Evaluation", in "TREC: Experiment and Evaluation in Information Retrieval", 2005.

    >>> r_precision = RPrecision()
    >>> r_precision.update_state(y_true=[[1, 0, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(r_precision.result())  # one of the top two
    0.5

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "zero" (the default), "one" or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "r_precision@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0
