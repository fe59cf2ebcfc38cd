"""Metrics with a model of the user: RBP, ERR and PFound."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.metrics.base import TopKMetric
from tfrankmetrics.metrics.binary import reciprocal_of_rank
from tfrankmetrics.metrics.declared import metric
from tfrankmetrics.metrics.gains import (
    ShareOfMaxLabel,
    StopProbability,
    binary_or_graded,
)
from tfrankmetrics.options import (
    Decay,
    Graded,
    MaxLabel,
    Persistence,
    RelevanceThreshold,
)
from tfrankmetrics.ranking.items import ItemGain
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.rules import Conflict


def rank_biased_precision(
    lists: RankedLists, relevance: ItemGain, *, persistence: float, graded: Graded
) -> Array:
    """RBP@k = (1 - b) * sum over ranks 1..k of relevance * b^(rank - 1)."""
    look = probability_of_look(lists, relevance, persistence=persistence)
    sums = (1 - persistence) * lists.sum_to_cutoffs(lists.expected(relevance) * look)
    if graded != "relative":
        return sums
    return sums / xp.maximum(lists.largest(relevance), 1)[:, np.newaxis]


def probability_of_look(
    lists: RankedLists, relevance: ItemGain, *, persistence: float
) -> Array:
    """b^(rank - 1), the probability that the user looks at the item."""
    return lists.powers(persistence)


def expected_reciprocal_rank(lists: RankedLists, stop: ItemGain) -> Array:
    """ERR@k = sum over ranks 1..k of P(the user stops there) / rank."""
    return lists.sum_to_cutoffs(lists.first_stop(stop) / lists.ranks)


def pfound(lists: RankedLists, stop: ItemGain, *, decay: float) -> Array:
    """PFound@k = sum over ranks 1..k of P(a stop there) * (1 - decay)^(rank - 1)."""
    look = look_with_decay(lists, stop, decay=decay)
    return lists.sum_to_cutoffs(lists.first_stop(stop) * look)


def look_with_decay(lists: RankedLists, stop: ItemGain, *, decay: float) -> Array:
    """(1 - decay)^(rank - 1), the probability that the user has not given up."""
    return probability_of_look(lists, stop, persistence=1 - decay)


GRADED_IGNORES_THRESHOLD = Conflict(
    ("relevance_threshold", "graded"),
    lambda chosen: chosen["graded"] and chosen["relevance_threshold"] != 1.0,
    "With graded=True or 'relative' the gain does not depend on the threshold.",
    "Pass graded=False, or omit the threshold.",
)


@metric(
    "rbp",
    formula=rank_biased_precision,
    gain=binary_or_graded,
    range=(0, math.inf),  # above 1 for graded labels above 1
    by_rank={"gain": RankedLists.expected, "look": probability_of_look},
    conflicts=(GRADED_IGNORES_THRESHOLD,),
)
class RankBiasedPrecision(TopKMetric):
    """Rank-biased precision: relevant items, weighted by the probability of being seen.

    RBP@k = (1 - persistence) * sum over ranks 1..k of
            relevance * persistence^(rank - 1)

    Users look at the first item and continue from each item to the next with the
    probability `persistence`. The value is between 0 and 1, unless labels above 1 are
    gains (graded=True); it is 1 only for an endless list of relevant items. Source:
    Moffat and Zobel, "Rank-biased precision for measurement of retrieval
    effectiveness", ACM TOIS 27(1), 2008.

    >>> rbp = RankBiasedPrecision(persistence=0.5)
    >>> rbp.update_state(y_true=[[1, 0, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(rbp.result())  # 0.5 * (1 + 0.25)
    0.625

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        relevance_threshold: The lowest label of a relevant item, above 0. Default 1.0.
        graded: The gain of an item: False (1 from the threshold on, otherwise 0; the
            default), True (its label, which should be between 0 and 1) or "relative"
            (its label, divided by the largest label of the query if that is above 1).
        persistence: The probability that a user continues from one item to the next,
            between 0 and 1. Default 0.8.
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "zero" (the default) or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "rbp@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    relevance_threshold: RelevanceThreshold = 1.0
    graded: Graded = False
    persistence: Persistence = 0.8
    empty: Literal["zero", "skip"] = "zero"


@metric(
    "err",
    formula=expected_reciprocal_rank,
    gain=StopProbability,
    total=RankedLists.largest,
    by_rank={"stop": RankedLists.first_stop, "1/rank": reciprocal_of_rank},
)
class ExpectedReciprocalRank(TopKMetric):
    """Expected reciprocal rank: how far down a user is satisfied, on average.

    ERR@k = sum over ranks 1..k of 1/rank * P(rank)
            * product over the ranks above it of (1 - P)
    P     = (2^label - 1) / 2^max_label, the probability that an item satisfies a user

    The value is between 0 and 1. Source: Chapelle, Metzler, Zhang and Grinspan,
    "Expected reciprocal rank for graded relevance", CIKM 2009.

    >>> err = ExpectedReciprocalRank(max_label=1)
    >>> err.update_state(y_true=[[1, 0, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(err.result())  # 1/2 + 1/3 * 1/2 * 1/2
    0.583...

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        max_label: The highest possible label, above 0. A higher label makes the
            result NaN; `evaluate` raises an error. Default 4.0.
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "zero" (the default) or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "err@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    max_label: MaxLabel = 4.0
    empty: Literal["zero", "skip"] = "zero"


@metric(
    "pfound",
    formula=pfound,
    gain=ShareOfMaxLabel,
    total=RankedLists.largest,
    by_rank={"stop": RankedLists.first_stop, "look": look_with_decay},
)
class PFound(TopKMetric):
    """PFound: the probability that a user finds what they want before they give up.

    PFound@k = sum over ranks 1..k of (1 - decay)^(rank - 1) * P(rank)
               * product over the ranks above it of (1 - P)
    P        = label / max_label, the probability that an item satisfies a user

    The value is between 0 and 1. Source: Gulin, Karpovich, Raskovalov and Segalovich,
    "Yandex at ROMIP'2009: optimization of ranking algorithms by machine learning
    methods" (in Russian), 2009. CatBoost implements it with max_label=1.

    >>> pfound = PFound(max_label=1)
    >>> pfound.update_state(y_true=[[0, 0.5, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(pfound.result())  # 0.85 * 0.5 + 0.85^2 * 0.5
    0.786...

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        max_label: The highest possible label, above 0. A higher label makes the
            result NaN; `evaluate` raises an error. Default 4.0.
        decay: The probability that a user gives up after each item, from 0 to below 1.
            Default 0.15.
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: For a list without relevant items: "zero" (the default) or "skip".
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "pfound@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    max_label: MaxLabel = 4.0
    decay: Decay = 0.15
    empty: Literal["zero", "skip"] = "zero"
