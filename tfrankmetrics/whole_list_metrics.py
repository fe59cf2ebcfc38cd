"""Metrics of the whole list, as Keras classes: they take no cutoff.

ARP, OPA and AUC are about the places of all items: what was not retrieved shares
the places below everything that was. To BPref it is missed.
"""

from __future__ import annotations

from typing import Literal

import tensorflow as tf

from tfrankmetrics.base_metric import SingleMetric
from tfrankmetrics.metrics import Empty, Ties


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class AverageRelevancePosition(SingleMetric):
    """Average relevance position: the mean rank of what is relevant. Lower is better.

    ARP = sum of label * rank / sum of labels

    The value is at least 1. Source: Pasumarthi et al., "TF-Ranking: scalable
    TensorFlow library for learning-to-rank", KDD 2019.

    >>> arp = AverageRelevancePosition()
    >>> arp.update_state(y_true=[[1, 0, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(arp.result())  # the mean of ranks 1 and 3
    2.0

    Args:
        average: "micro" (default): all units of label of all queries count alike; or
            "macro": all queries do.
        ties: "expected" (default), "stable" or "random": how equal scores count.
        seed: An int, with ties="random" only; None is 0.
        empty: "skip" (default), the only choice: a list with labels of 0 alone has no
            such position, and does not count.
        convention: Another tool's name, as in `CONVENTIONS`: its choices instead of
            the defaults. An option given beside it comes first.
        inputs: "labels" (default) or "catalogue": what `update_state` takes.
        name: Name of the result. Defaults to `arp`.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: An option is not one of the above, or the convention has
            no such metric.
    """

    formula = "arp"

    def __init__(
        self,
        *,
        average: Literal["micro", "macro"] | None = None,
        ties: Ties | None = None,
        seed: int | None = None,
        empty: Literal["skip"] | None = None,
        convention: str | None = None,
        inputs: Literal["labels", "catalogue"] | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(locals())


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class OrderedPairAccuracy(SingleMetric):
    """Ordered pair accuracy: the part of the pairs that is in the right order.

    OPA = pairs with the item of higher label on top / pairs of unequal labels

    The value is between 0 and 1; a tied pair is worth a half. The pairs are
    counted in O(N log N) time and O(N) memory for each list of N items. Source:
    Pasumarthi et al., "TF-Ranking: scalable TensorFlow library for
    learning-to-rank", KDD 2019.

    >>> opa = OrderedPairAccuracy()
    >>> opa.update_state(y_true=[[2, 0, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(opa.result())  # 2 above 1 and 2 above 0, but 0 above 1
    0.666...

    Args:
        average: "micro" (default): all pairs of all queries count alike; or
            "macro": all queries do.
        ties: "expected" (default), "stable" or "random": how equal scores count.
        seed: An int, with ties="random" only; None is 0.
        empty: "skip" (default), or with average="macro" also "zero" or "one": what
            a list counts as in which all labels are equal.
        convention: Another tool's name, as in `CONVENTIONS`: its choices instead of
            the defaults. An option given beside it comes first.
        inputs: "labels" (default), the only ones that tell what this is about.
        name: Name of the result. Defaults to `opa`.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: An option is not one of the above, or the convention has
            no such metric.
    """

    formula = "opa"

    def __init__(
        self,
        *,
        average: Literal["micro", "macro"] | None = None,
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
class PerQueryAUC(SingleMetric):
    """Area under the ROC curve of each list, averaged over the queries.

    AUC = pairs with the relevant item on top / pairs of a relevant item and another

    The value is between 0 and 1; a tied pair is worth a half. Unlike one AUC of all
    items together, it does not compare scores of different queries. With the number
    of impressions as `sample_weight` of each query it is GAUC. Source: Hanley and
    McNeil, "The meaning and use of the area under a receiver operating characteristic
    (ROC) curve", Radiology 143(1), 1982.

    >>> auc = PerQueryAUC()
    >>> auc.update_state(y_true=[[1, 0, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(auc.result())  # the first relevant item is above the other, not the last
    0.5

    Args:
        relevance_threshold: The lowest label that is relevant, above 0; 1.0 (default).
        ties: "expected" (default), "stable" or "random": how equal scores count.
        seed: An int, with ties="random" only; None is 0.
        empty: "skip" (default), "zero" or "one": what a list counts as in which
            everything or nothing is relevant.
        convention: Another tool's name, as in `CONVENTIONS`: its choices instead of
            the defaults. An option given beside it comes first.
        inputs: "labels" (default) or "catalogue": what `update_state` takes.
        name: Name of the result. Defaults to `auc`.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: An option is not one of the above, or the convention has
            no such metric.
    """

    formula = "auc"

    def __init__(
        self,
        *,
        relevance_threshold: float | None = None,
        ties: Ties | None = None,
        seed: int | None = None,
        empty: Empty | None = None,
        convention: str | None = None,
        inputs: Literal["labels", "catalogue"] | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(locals())


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class BPref(SingleMetric):
    """Binary preference: how seldom judged irrelevant items are above relevant ones.

    BPref = sum over the relevant items that were retrieved of
            (1 - min(irrelevant items above it, R) / denominator) / R

    R is the number of relevant items. Items that nobody judged do not count: give
    them a label below 0. The value is between 0 and 1. Source: Buckley and
    Voorhees, "Retrieval evaluation with incomplete information", SIGIR 2004; the
    default denominator is that of trec_eval since 2005.

    >>> bpref = BPref()
    >>> bpref.update_state(y_true=[[1, 0, -1, 1, 0]], y_pred=[[5, 4, 3, 2, 1]])
    >>> float(bpref.result())  # (1 + (1 - 1/2)) / 2
    0.75

    Args:
        relevance_threshold: The lowest label that is relevant, above 0; 1.0 (default).
        denominator: "min(relevant, irrelevant)" (default): the number of relevant
            items or of irrelevant ones, if those are fewer; "relevant": the former.
        ties: "expected" (default), "stable" or "random": how equal scores count.
        seed: An int, with ties="random" only; None is 0.
        empty: "zero" (default), "one" or "skip": what a list counts as in which
            nothing is relevant.
        convention: Another tool's name, as in `CONVENTIONS`: its choices instead of
            the defaults. An option given beside it comes first.
        inputs: "labels" (default), the only ones that tell what this is about.
        name: Name of the result. Defaults to `bpref`.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: An option is not one of the above, or the convention has
            no such metric.
    """

    formula = "bpref"

    def __init__(
        self,
        *,
        relevance_threshold: float | None = None,
        denominator: Literal["min(relevant, irrelevant)", "relevant"] | None = None,
        ties: Ties | None = None,
        seed: int | None = None,
        empty: Empty | None = None,
        convention: str | None = None,
        inputs: Literal["labels"] | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(locals())
