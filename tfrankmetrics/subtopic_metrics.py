"""Metrics of subtopics, as Keras classes: how diverse what ranks high is.

A query may mean several things, its subtopics, and an item may be relevant to some of
them: labels are `[B, N, T]`, one for each of T subtopics. An item is padding if
all its labels are below 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import tensorflow as tf

from tfrankmetrics.base_metric import SingleMetric
from tfrankmetrics.metrics import Empty, Ties


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class PrecisionIA(SingleMetric):
    """Intent-aware precision: the mean precision over the subtopics of a query.

    P-IA@k = sum over ranks 1..k of the number of subtopics that the item is relevant
             to / (number of subtopics * min(k, length of the list))

    Subtopics to which no item of the list is relevant do not count. The value is
    between 0 and 1. Source: Agrawal, Gollapudi, Halverson and Ieong, "Diversifying
    search results", WSDM 2009; Clarke, Craswell and Soboroff, "Overview of the
    TREC 2009 Web Track".

    >>> precision_ia = PrecisionIA(k=2)
    >>> labels = [[[1, 0], [0, 0], [1, 1]]]  # three items, two subtopics
    >>> precision_ia.update_state(y_true=labels, y_pred=[[0.9, 0.5, 0.1]])
    >>> float(precision_ia.result())  # 1 / (2 * 2)
    0.25

    Args:
        k: The cutoff, an int of at least 1, or None (default) for the whole list.
        relevance_threshold: The lowest label that is relevant, above 0; 1.0 (default).
        denominator: "list" (default): min(k, length of the list); or "k": k even
            where the list is shorter.
        ties: "expected" (default), "stable" or "random": how equal scores count.
        seed: An int, with ties="random" only; None is 0.
        empty: "zero" (default), "one" or "skip": what a list counts as in which
            nothing is relevant.
        convention: Another tool's name, as in `CONVENTIONS`: its choices instead of
            the defaults. An option given beside it comes first.
        inputs: "labels" (default), the only ones that tell what this is about.
        name: Name of the result. Defaults to `precision_ia@k`, or without k to
            `precision_ia`.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: `k` or an option is not one of the above, or the convention has
            no such metric.
    """

    formula = "precision_ia"

    def __init__(
        self,
        k: int | None = None,
        *,
        relevance_threshold: float | None = None,
        denominator: Literal["list", "k"] | None = None,
        ties: Ties | None = None,
        seed: int | None = None,
        empty: Empty | None = None,
        convention: str | None = None,
        inputs: Literal["labels"] | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(locals())


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class AlphaDCG(SingleMetric):
    """Alpha-DCG: discounted gains that shrink for a subtopic with each item about it.

    alpha-DCG@k = sum over ranks 1..k of discount(rank) * novelty
    novelty     = sum over the subtopics that the item is relevant to of
                  (1 - alpha)^(items above it that are relevant to the subtopic)

    The value is at least 0 and has no upper bound. Source: Clarke et al., "Novelty
    and diversity in information retrieval evaluation", SIGIR 2008.

    >>> alpha_dcg = AlphaDCG()
    >>> labels = [[[1, 0], [0, 0], [1, 1]]]  # three items, two subtopics
    >>> alpha_dcg.update_state(y_true=labels, y_pred=[[0.9, 0.5, 0.1]])
    >>> float(alpha_dcg.result())  # 1 + (1/2 + 1) / log2(4)
    1.75

    Args:
        k: The cutoff, an int of at least 1, or None (default) for the whole list.
        relevance_threshold: The lowest label that is relevant, above 0; 1.0 (default).
        alpha: How much less a subtopic is worth with each item about it, from 0.001
            to 1; 0.5 (default).
        discount: "log2" (default; 1 / log2(1 + rank)), "jarvelin" (1 for ranks
            1 and 2, then 1 / log2(rank)), or a function from a float64 tensor of
            ranks, from 1, to discounts of its shape that do not grow with the rank.
        ties: "expected" (default), "stable" or "random": how equal scores count.
        seed: An int, with ties="random" only; None is 0.
        empty: "zero" (default) or "skip": what a list counts as in which
            nothing is relevant.
        convention: Another tool's name, as in `CONVENTIONS`: its choices instead of
            the defaults. An option given beside it comes first.
        inputs: "labels" (default), the only ones that tell what this is about.
        name: Name of the result. Defaults to `alpha_dcg@k`, or `alpha_dcg` without k.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: `k` or an option is not one of the above, or the convention has
            no such metric.
    """

    formula = "alpha_dcg"

    def __init__(
        self,
        k: int | None = None,
        *,
        relevance_threshold: float | None = None,
        alpha: float | None = None,
        discount: str | Callable | None = None,
        ties: Ties | None = None,
        seed: int | None = None,
        empty: Literal["zero", "skip"] | None = None,
        convention: str | None = None,
        inputs: Literal["labels"] | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(locals())
