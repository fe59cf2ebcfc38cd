"""Metrics of extreme classification, which favor rare labels: PSP and PSnDCG.

The gain of a relevant item is its inverse propensity, the reciprocal of the probability
that its relevance was noticed. It is passed as the item's label.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arguments import ArrayLike
from tfrankmetrics.arrays import Array
from tfrankmetrics.columns.read_column import first_index
from tfrankmetrics.metrics.base import TopKMetric
from tfrankmetrics.metrics.dcg import discounts
from tfrankmetrics.metrics.declared import metric
from tfrankmetrics.metrics.gains import label_itself
from tfrankmetrics.ranking.items import DerivedGain, ItemGain
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.rules import Rule, check_option, shortened

_NumExamples = Annotated[int, Rule("an int of at least 3", lambda n: n >= 3)]
_Parameter = Annotated[
    float, Rule("a number above 0, at most 100", lambda x: 0 < x <= 100)
]


def inverse_propensity(
    frequencies: ArrayLike, num_examples: int, a: float = 0.55, b: float = 1.5
) -> np.ndarray:
    """The inverse propensity of each item, from how often it was relevant in training.

    `1 / p = 1 + C * (frequency + b)^-a`, where
    `C = (log(num_examples) - 1) * (b + 1)^a`.

    Source: Jain, Prabhu and Varma, "Extreme multi-label loss functions for
    recommendation, tagging, ranking & other missing label applications", KDD 2016. They
    use a=0.5, b=0.4 for Wikipedia, a=0.6, b=2.6 for Amazon, and the defaults elsewhere.

    >>> inverse_propensity([100, 1], num_examples=1000).round(3)
    array([1.77..., 6.90...])

    Args:
        frequencies: For each item, in how many training examples it was relevant.
        num_examples: The number of training examples, at least 3.
        a: The exponent, above 0 and at most 100.
        b: The number that is added to the frequencies, above 0 and at most 100.

    Returns:
        A float64 array of the shape of `frequencies`; each number is above 1.

    Raises:
        ValueError: A frequency is negative or above `num_examples`, or an argument is
            not one of those above.
    """
    check_option("inverse_propensity", "num_examples", num_examples, _NumExamples)
    check_option("inverse_propensity", "a", a, _Parameter)
    check_option("inverse_propensity", "b", b, _Parameter)
    try:
        counts = np.asarray(frequencies, np.float64)
    except (TypeError, ValueError):
        counts = np.array(math.nan)
    bad = ~((counts >= 0) & (counts <= num_examples))
    if bad.any():
        received = counts[tuple(first_index(bad))] if bad.ndim else frequencies
        raise ValueError(
            "`frequencies` must hold numbers from 0 to `num_examples`. Received: "
            f"{shortened(received)}, with num_examples={num_examples}."
        )
    return 1 + (math.log(num_examples) - 1) * (b + 1) ** a * (counts + b) ** -a


def propensity_scored_precision(lists: RankedLists, gain: ItemGain) -> Array:
    """PSP@k = sum of the gains at ranks 1..k / the largest of any order."""
    gains = lists.sum_to_cutoffs(lists.expected(gain))
    return xp.divide_no_nan(gains, best_precision(lists, gain))


def best_precision(lists: RankedLists, gain: ItemGain) -> Array:
    """The largest sum of k gains, `[B, C]`."""
    return lists.sum_to_cutoffs(lists.ideal(gain))


def propensity_scored_ndcg(lists: RankedLists, gain: ItemGain) -> Array:
    """PSnDCG@k = sum of gain * discount at ranks 1..k / the largest of any order."""
    log2 = log2_discounts(lists, gain)
    dcg = lists.sum_to_cutoffs(lists.expected(gain) * log2)
    return xp.divide_no_nan(dcg, lists.sum_to_cutoffs(lists.ideal(gain) * log2))


def log2_discounts(lists: RankedLists, gain: ItemGain) -> Array:
    """1 / log2(1 + rank)."""
    return discounts(lists, discount="log2")


def best_ndcg(lists: RankedLists, gain: ItemGain) -> Array:
    """The largest DCG@k / the DCG@k of a binary list with all relevant items on top."""
    log2 = log2_discounts(lists, gain)
    best = lists.sum_to_cutoffs(lists.ideal(gain) * log2)
    is_relevant = DerivedGain(lambda items: xp.astype(gain(items) > 0, xp.float64))
    relevant = lists.total(is_relevant)[:, xp.newaxis]
    binary = lists.sum_to_cutoffs(xp.where(lists.ranks <= relevant, log2, 0))
    return xp.divide_no_nan(best, binary)


@metric(
    "psp",
    formula=propensity_scored_precision,
    gain=label_itself,
    total=best_precision,
    by_rank={"gain": RankedLists.expected},
)
class PropensityScoredPrecision(TopKMetric):
    """Propensity-scored precision, normalized by the best order.

    PSP@k = sum over the queries of (sum of the gains at ranks 1..k)
            / sum over the queries of (the largest sum of k gains)

    The gain of a relevant item is its label, which is its inverse propensity:
    `inverse_propensity` computes it. Other items have the label 0. The value is between
    0 and 1. Source: Jain, Prabhu and Varma, "Extreme multi-label loss functions for
    recommendation, tagging, ranking & other missing label applications", KDD 2016. The
    ratio of the sums is the normalization of the Extreme Classification Repository and
    of pyxclib.

    >>> psp = PropensityScoredPrecision(k=1)
    >>> psp.update_state(y_true=[[1.5, 0, 4.5]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(psp.result())  # 1.5 / 4.5
    0.333...

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        average: "micro" (the ratio of the sums; the default) or "macro" (the mean of
            the ratios of the queries).
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: Only "skip": a list without relevant items is excluded.
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "psp@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    average: Literal["micro", "macro"] = "micro"
    empty: Literal["skip"] = "skip"


@metric(
    "psndcg",
    formula=propensity_scored_ndcg,
    gain=label_itself,
    total=best_ndcg,
    by_rank={"gain": RankedLists.expected, "discount": log2_discounts},
)
class PropensityScoredNDCG(TopKMetric):
    """Propensity-scored NDCG, normalized by the best order.

    PSnDCG@k = sum over the queries of s * (sum of gain / log2(1 + rank) at ranks 1..k)
               / sum over the queries of s * (the largest such sum of any order)
    s        = 1 / (sum of 1 / log2(1 + rank) over ranks 1..min(k, relevant items))

    The gain of a relevant item is its label, which is its inverse propensity:
    `inverse_propensity` computes it. Other items have the label 0. The value is between
    0 and 1. Source: Jain, Prabhu and Varma, "Extreme multi-label loss functions for
    recommendation, tagging, ranking & other missing label applications", KDD 2016. The
    factor s and the ratio of the sums follow pyxclib. The paper divides by the sum over
    ranks 1..k, even for queries with fewer relevant items; with average="macro" the
    factor has no effect.

    >>> psndcg = PropensityScoredNDCG(k=2)
    >>> psndcg.update_state(y_true=[[1, 0, 2]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(psndcg.result())  # 1 / (2 + 1 / log2(3))
    0.380...

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        average: "micro" (the ratio of the sums; the default) or "macro" (the mean of
            the ratios of the queries).
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: Only "skip": a list without relevant items is excluded.
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "psndcg@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    average: Literal["micro", "macro"] = "micro"
    empty: Literal["skip"] = "skip"
