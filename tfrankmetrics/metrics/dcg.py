"""DCG and NDCG: gains, discounted by rank."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.metrics.base import TopKMetric
from tfrankmetrics.metrics.declared import metric
from tfrankmetrics.metrics.gains import LabelGain, call_function, only_retrieved
from tfrankmetrics.options import Discount, Gain, Ideal
from tfrankmetrics.ranking.items import ItemGain
from tfrankmetrics.ranking.ranked_lists import RankedLists

DISCOUNTS: dict[str, Callable] = {
    "log2": lambda ranks: math.log(2) / xp.log(1 + ranks),
    "jarvelin": lambda ranks: math.log(2) / xp.log(xp.maximum(ranks, 2)),
}


def discounts(
    lists: RankedLists,
    gain: ItemGain | None = None,
    *,
    discount: Discount,
) -> Array:
    """The discount of each rank, of the shape of `lists.ranks`, for any gain."""
    if isinstance(discount, str):
        return DISCOUNTS[discount](lists.ranks)
    values = call_function("discount", discount, lists.ranks)
    # A discount that grows with the rank is a mistake: NaN, not an NDCG above 1.
    falls = xp.all(values[..., 1:] <= values[..., :-1])
    is_valid = falls & xp.all((values >= 0) & xp.isfinite(values))
    return xp.where(is_valid, values, float("nan"))


def dcg(lists: RankedLists, gain: ItemGain, *, discount: Discount) -> Array:
    """DCG@k = sum over ranks 1..k of gain * discount(rank)."""
    gains = lists.expected(lists.weighted(gain))
    return lists.sum_to_cutoffs(gains * discounts(lists, discount=discount))


def ndcg(
    lists: RankedLists, gain: ItemGain, *, discount: Discount, ideal: Ideal
) -> Array:
    """NDCG@k = DCG@k / the largest DCG@k of any order of the items."""
    if ideal == "retrieved":
        gain = only_retrieved(gain)
    gain, by_rank = lists.weighted(gain), discounts(lists, discount=discount)
    dcg_of_lists = lists.sum_to_cutoffs(lists.expected(gain) * by_rank)
    ideal_dcg = lists.sum_to_cutoffs(lists.ideal(gain) * by_rank)
    value = xp.divide_no_nan(dcg_of_lists, ideal_dcg)
    return xp.where(xp.isfinite(ideal_dcg), value, float("nan"))


# As `total`, the largest gain identifies empty lists faster than the sum.
@metric(
    "ndcg",
    formula=ndcg,
    gain=LabelGain,
    total=RankedLists.largest,
    by_rank={"gain": RankedLists.expected, "discount": discounts},
)
class NDCG(TopKMetric):
    """Normalized discounted cumulative gain: how close the order is to the ideal one.

    NDCG@k = DCG@k / ideal DCG@k
    DCG@k  = sum over ranks 1..k of gain(label) * discount(rank)

    The ideal DCG@k is the largest DCG@k of any order of the items. The value is between
    0 and 1. Source: Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR
    techniques", ACM TOIS 20(4), 2002. Burges et al., "Learning to rank using gradient
    descent", ICML 2005, use the default gain and discount.

    >>> ndcg = NDCG(k=2)
    >>> ndcg.update_state(y_true=[[0, 1, 2]], y_pred=[[0.1, 0.8, 0.3]])
    >>> float(ndcg.result())  # (1 + 3 / log2(3)) / (3 + 1 / log2(3))
    0.796...

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        gain: The gain of a label: "exponential" (2^label - 1), "linear" (the label),
            the gain of each grade (a list of those of 0, 1, ..., or a dict; a label
            without a gain is an error, and in a graph NaN), or a function from a
            float64 tensor of labels to a tensor of gains of the same shape, finite and
            at least 0. Register a function with Keras to save models with it. Default
            "exponential".
        discount: The discount of a rank: "log2" (1 / log2(1 + rank)), "jarvelin" (1 for
            ranks 1 and 2, then 1 / log2(rank)), or a function from a float64 tensor of
            ranks, starting at 1, to a tensor of discounts that do not grow with the
            rank. Default "log2".
        ideal: The items in the ideal order: all "judged" items, which are those with a
            label, or only "retrieved" items, whose score is not -inf. Default "judged".
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "zero" (the default), "one" or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "ndcg@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    gain: Gain = "exponential"
    discount: Discount = "log2"
    ideal: Ideal = "judged"


@metric(
    "dcg",
    formula=dcg,
    gain=LabelGain,
    total=RankedLists.largest,
    range=(0, math.inf),
    by_rank={"gain": RankedLists.expected, "discount": discounts},
)
class DCG(TopKMetric):
    """Discounted cumulative gain: the gains found, discounted by rank.

    DCG@k = sum over ranks 1..k of gain(label) * discount(rank)

    The value is at least 0 and has no upper bound. Source: Järvelin and Kekäläinen,
    "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20(4), 2002.

    >>> dcg = DCG(k=2, gain="linear")
    >>> dcg.update_state(y_true=[[0, 1, 2]], y_pred=[[0.1, 0.8, 0.3]])
    >>> float(dcg.result())  # 1 + 2 / log2(3)
    2.261...

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        gain: The gain of a label: "exponential" (2^label - 1), "linear" (the label),
            the gain of each grade (a list of those of 0, 1, ..., or a dict), or a
            function from a float64 tensor of labels to a tensor of gains. Default
            "exponential".
        discount: The discount of a rank: "log2" (1 / log2(1 + rank)), "jarvelin" (1 for
            ranks 1 and 2, then 1 / log2(rank)), or a function from a float64 tensor of
            ranks, starting at 1, to a tensor of discounts. Default "log2".
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "zero" (the default) or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "dcg@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    gain: Gain = "exponential"
    discount: Discount = "log2"
    empty: Literal["zero", "skip"] = "zero"
