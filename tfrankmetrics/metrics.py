"""The metrics as Keras classes, one for each row of the registry.

Use them in `model.compile(metrics=[...])`, or by hand with `update_state` and
`result`. `SingleMetric` says what `update_state` takes. Options after `k` are
keywords; ties, empty lists and weights mean the same in every class:

*   `ties`: what equal scores are worth. "expected" is the exact mean over all
    orders of the tied items; "stable" leaves them in the order of the list;
    "random" shuffles them by `seed`, and repeats.
*   `empty`: what a list without any relevant item counts as: "zero", "one", or
    "skip" (not at all). A list that is all padding never counts.
*   `sample_weight` of one weight a query weighs the mean over the queries. One
    weight an item gives the query the weight sum(weight * worth) / sum(worth), where
    worth is the gain or relevance, and weighs within the list the gains of DCG, NDCG
    and alpha-DCG, the hits of MAP, the labels of ARP and the pairs of OPA.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import tensorflow as tf

from tfrankmetrics.base_metric import SingleMetric

Ties = Literal["expected", "stable", "random"]
Empty = Literal["zero", "one", "skip"]
Inputs = Literal["labels", "ids", "catalogue"]
Duplicates = Literal["first", "all"]


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class NDCG(SingleMetric):
    """Normalised discounted cumulative gain: how close the order is to the ideal one.

    NDCG@k = DCG@k / ideal DCG@k
    DCG@k  = sum over ranks 1..k of gain(label) * discount(rank)

    The ideal DCG@k is the largest DCG@k that any order of the items has. The
    value is between 0 and 1. Source: Järvelin and Kekäläinen, "Cumulated
    gain-based evaluation of IR techniques", ACM TOIS 20(4), 2002; the default
    gain and discount are those of Burges et al., "Learning to rank using
    gradient descent", ICML 2005.

    >>> ndcg = NDCG(k=2)
    >>> ndcg.update_state(y_true=[[0, 1, 2]], y_pred=[[0.1, 0.8, 0.3]])
    >>> float(ndcg.result())  # (1 + 3 / log2(3)) / (3 + 1 / log2(3))
    0.796...

    Args:
        k: The cutoff, an int of at least 1, or None (default) for the whole list.
        gain: "exponential" (default; 2^label - 1), "linear" (the label), or a
            function from a float64 tensor of labels to gains of its shape, not
            negative. Register a function with Keras to save models with it.
        discount: "log2" (default; 1 / log2(1 + rank)), "jarvelin" (1 for ranks
            1 and 2, then 1 / log2(rank)), or a function from a float64 tensor of
            ranks, from 1, to discounts of its shape that do not grow with the rank.
        ideal: "judged" (default): the ideal order is that of all items with a label;
            or "retrieved": of those alone whose score is not -inf.
        ties: "expected" (default), "stable" or "random": how equal scores count.
        seed: An int, with ties="random" only; None is 0.
        empty: "zero" (default), "one" or "skip": what a list counts as in which
            every gain is 0.
        convention: Another tool's name, as in `CONVENTIONS`: its choices instead of
            the defaults. An option given beside it comes first.
        inputs: "labels" (default), "ids" or "catalogue": what `update_state` takes.
        duplicates: "first" (default) or "all": how repeated ids count, with
            inputs="ids" only.
        name: Name of the result. Defaults to `ndcg@k`, or `ndcg` without k.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: `k` or an option is not one of the above, or the convention has
            no such metric.
    """

    formula = "ndcg"

    def __init__(
        self,
        k: int | None = None,
        *,
        gain: str | Callable | None = None,
        discount: str | Callable | None = None,
        ideal: Literal["judged", "retrieved"] | None = None,
        ties: Ties | None = None,
        seed: int | None = None,
        empty: Empty | None = None,
        convention: str | None = None,
        inputs: Inputs | None = None,
        duplicates: Duplicates | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(locals())


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class DCG(SingleMetric):
    """Discounted cumulative gain: the gains found, worth less further down.

    DCG@k = sum over ranks 1..k of gain(label) * discount(rank)

    The value is at least 0 and has no upper bound. Source: Järvelin and
    Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS
    20(4), 2002.

    >>> dcg = DCG(k=2, gain="linear")
    >>> dcg.update_state(y_true=[[0, 1, 2]], y_pred=[[0.1, 0.8, 0.3]])
    >>> float(dcg.result())  # 1 + 2 / log2(3)
    2.261...

    Args:
        k: The cutoff, an int of at least 1, or None (default) for the whole list.
        gain: "exponential" (default; 2^label - 1), "linear" (the label), or a
            function from a float64 tensor of labels to gains of its shape, not
            negative. Register a function with Keras to save models with it.
        discount: "log2" (default; 1 / log2(1 + rank)), "jarvelin" (1 for ranks
            1 and 2, then 1 / log2(rank)), or a function from a float64 tensor of
            ranks, from 1, to discounts of its shape that do not grow with the rank.
        ties: "expected" (default), "stable" or "random": how equal scores count.
        seed: An int, with ties="random" only; None is 0.
        empty: "zero" (default) or "skip": what a list counts as in which every
            gain is 0.
        convention: Another tool's name, as in `CONVENTIONS`: its choices instead of
            the defaults. An option given beside it comes first.
        inputs: "labels" (default), "ids" or "catalogue": what `update_state` takes.
        duplicates: "first" (default) or "all": how repeated ids count, with
            inputs="ids" only.
        name: Name of the result. Defaults to `dcg@k`, or `dcg` without k.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: `k` or an option is not one of the above, or the convention has
            no such metric.
    """

    formula = "dcg"

    def __init__(
        self,
        k: int | None = None,
        *,
        gain: str | Callable | None = None,
        discount: str | Callable | None = None,
        ties: Ties | None = None,
        seed: int | None = None,
        empty: Literal["zero", "skip"] | None = None,
        convention: str | None = None,
        inputs: Inputs | None = None,
        duplicates: Duplicates | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(locals())


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class MeanAveragePrecision(SingleMetric):
    """Mean average precision: the precision at each relevant item, averaged.

    AP@k = sum over ranks 1..k of precision@rank * relevance / denominator

    The value is between 0 and 1. Source: Buckley and Voorhees, "Evaluating
    evaluation measure stability", SIGIR 2000.

    >>> mean_ap = MeanAveragePrecision(k=3)
    >>> mean_ap.update_state(y_true=[[1, 0, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(mean_ap.result())  # (1/1 + 2/3) / 2
    0.833...

    Args:
        k: The cutoff, an int of at least 1, or None (default) for the whole list.
        relevance_threshold: The lowest label that is relevant, above 0; 1.0 (default).
        denominator: "relevant" (default): all relevant items of the list;
            "min(k, relevant)": no more of them than fit above the cutoff; "hits":
            the relevant items found above the cutoff.
        ties: "expected" (default), "stable" or "random": how equal scores count.
        seed: An int, with ties="random" only; None is 0.
        empty: "zero" (default), "one" or "skip": what a list counts as in which
            nothing is relevant.
        convention: Another tool's name, as in `CONVENTIONS`: its choices instead of
            the defaults. An option given beside it comes first.
        inputs: "labels" (default), "ids" or "catalogue": what `update_state` takes.
        duplicates: "first" (default) or "all": how repeated ids count, with
            inputs="ids" only.
        name: Name of the result. Defaults to `map@k`, or `map` without k.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: `k` or an option is not one of the above, or the convention has
            no such metric.
    """

    formula = "map"

    def __init__(
        self,
        k: int | None = None,
        *,
        relevance_threshold: float | None = None,
        denominator: Literal["relevant", "min(k, relevant)", "hits"] | None = None,
        ties: Ties | None = None,
        seed: int | None = None,
        empty: Empty | None = None,
        convention: str | None = None,
        inputs: Inputs | None = None,
        duplicates: Duplicates | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(locals())


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class MeanReciprocalRank(SingleMetric):
    """Mean reciprocal rank: how far down the first relevant item is.

    RR@k = 1 / rank of the first relevant item, or 0 if that is below rank k

    The value is between 0 and 1. Source: Voorhees, "The TREC-8 Question
    Answering Track Report", TREC 1999.

    >>> mrr = MeanReciprocalRank()
    >>> mrr.update_state(y_true=[[0, 1, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(mrr.result())  # the first relevant item has rank 2
    0.5

    Args:
        k: The cutoff, an int of at least 1, or None (default) for the whole list.
        relevance_threshold: The lowest label that is relevant, above 0; 1.0 (default).
        ties: "expected" (default), "stable" or "random": how equal scores count.
        seed: An int, with ties="random" only; None is 0.
        empty: "zero" (default), "one" or "skip": what a list counts as in which
            nothing is relevant.
        convention: Another tool's name, as in `CONVENTIONS`: its choices instead of
            the defaults. An option given beside it comes first.
        inputs: "labels" (default), "ids" or "catalogue": what `update_state` takes.
        duplicates: "first" (default) or "all": how repeated ids count, with
            inputs="ids" only.
        name: Name of the result. Defaults to `mrr@k`, or `mrr` without k.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: `k` or an option is not one of the above, or the convention has
            no such metric.
    """

    formula = "mrr"

    def __init__(
        self,
        k: int | None = None,
        *,
        relevance_threshold: float | None = None,
        ties: Ties | None = None,
        seed: int | None = None,
        empty: Empty | None = None,
        convention: str | None = None,
        inputs: Inputs | None = None,
        duplicates: Duplicates | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(locals())


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class PrecisionAtK(SingleMetric):
    """Precision: the part of the top items that is relevant.

    P@k = number of relevant items at ranks 1..k / min(k, length of the list)

    The value is between 0 and 1. Without k it is the part of the whole list
    that is relevant.

    >>> precision = PrecisionAtK(k=2)
    >>> precision.update_state(y_true=[[0, 1, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(precision.result())  # one of two
    0.5

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
        inputs: "labels" (default), "ids" or "catalogue": what `update_state` takes.
        duplicates: "first" (default) or "all": how repeated ids count, with
            inputs="ids" only.
        name: Name of the result. Defaults to `precision@k`, or `precision` without k.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: `k` or an option is not one of the above, or the convention has
            no such metric.
    """

    formula = "precision"

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
        inputs: Inputs | None = None,
        duplicates: Duplicates | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(locals())


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class RecallAtK(SingleMetric):
    """Recall: the part of the relevant items that is among the top.

    R@k = number of relevant items at ranks 1..k / number of relevant items

    The value is between 0 and 1. Without k it is 1 wherever anything is relevant.

    >>> recall = RecallAtK(k=2)
    >>> recall.update_state(y_true=[[0, 1, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(recall.result())  # one of two
    0.5

    Args:
        k: The cutoff, an int of at least 1, or None (default) for the whole list.
        relevance_threshold: The lowest label that is relevant, above 0; 1.0 (default).
        ties: "expected" (default), "stable" or "random": how equal scores count.
        seed: An int, with ties="random" only; None is 0.
        empty: "zero" (default), "one" or "skip": what a list counts as in which
            nothing is relevant.
        convention: Another tool's name, as in `CONVENTIONS`: its choices instead of
            the defaults. An option given beside it comes first.
        inputs: "labels" (default), "ids" or "catalogue": what `update_state` takes.
        duplicates: "first" (default) or "all": how repeated ids count, with
            inputs="ids" only.
        name: Name of the result. Defaults to `recall@k`, or `recall` without k.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: `k` or an option is not one of the above, or the convention has
            no such metric.
    """

    formula = "recall"

    def __init__(
        self,
        k: int | None = None,
        *,
        relevance_threshold: float | None = None,
        ties: Ties | None = None,
        seed: int | None = None,
        empty: Empty | None = None,
        convention: str | None = None,
        inputs: Inputs | None = None,
        duplicates: Duplicates | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(locals())


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class HitRateAtK(SingleMetric):
    """Hit rate, or success: whether anything relevant is among the top items.

    HR@k = 1 if any of the items at ranks 1..k is relevant, else 0

    The value of a query is 0 or 1, and between them where tied items straddle
    the cutoff. Without k it is 1 wherever anything is relevant.

    >>> hit_rate = HitRateAtK(k=2)
    >>> hit_rate.update_state(y_true=[[0, 1, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(hit_rate.result())
    1.0

    Args:
        k: The cutoff, an int of at least 1, or None (default) for the whole list.
        relevance_threshold: The lowest label that is relevant, above 0; 1.0 (default).
        ties: "expected" (default), "stable" or "random": how equal scores count.
        seed: An int, with ties="random" only; None is 0.
        empty: "zero" (default), "one" or "skip": what a list counts as in which
            nothing is relevant.
        convention: Another tool's name, as in `CONVENTIONS`: its choices instead of
            the defaults. An option given beside it comes first.
        inputs: "labels" (default), "ids" or "catalogue": what `update_state` takes.
        duplicates: "first" (default) or "all": how repeated ids count, with
            inputs="ids" only.
        name: Name of the result. Defaults to `hit_rate@k`, or `hit_rate` without k.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: `k` or an option is not one of the above, or the convention has
            no such metric.
    """

    formula = "hit_rate"

    def __init__(
        self,
        k: int | None = None,
        *,
        relevance_threshold: float | None = None,
        ties: Ties | None = None,
        seed: int | None = None,
        empty: Empty | None = None,
        convention: str | None = None,
        inputs: Inputs | None = None,
        duplicates: Duplicates | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(locals())


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class F1AtK(SingleMetric):
    """F1: the harmonic mean of precision and recall.

    F1@k = 2 * P@k * R@k / (P@k + R@k)
         = 2 * relevant items at ranks 1..k / (min(k, length) + relevant items)

    The value is between 0 and 1. Source: van Rijsbergen, "Information
    Retrieval", 1979.

    >>> f1 = F1AtK(k=2)
    >>> f1.update_state(y_true=[[0, 1, 1, 1]], y_pred=[[0.9, 0.5, 0.1, 0.0]])
    >>> float(f1.result())  # 2 * 1 / (2 + 3)
    0.4...

    Args:
        k: The cutoff, an int of at least 1, or None (default) for the whole list.
        relevance_threshold: The lowest label that is relevant, above 0; 1.0 (default).
        denominator: What precision is divided by: "list" (default), min(k, length of
            the list); or "k", k even where the list is shorter.
        ties: "expected" (default), "stable" or "random": how equal scores count.
        seed: An int, with ties="random" only; None is 0.
        empty: "zero" (default), "one" or "skip": what a list counts as in which
            nothing is relevant.
        convention: Another tool's name, as in `CONVENTIONS`: its choices instead of
            the defaults. An option given beside it comes first.
        inputs: "labels" (default), "ids" or "catalogue": what `update_state` takes.
        duplicates: "first" (default) or "all": how repeated ids count, with
            inputs="ids" only.
        name: Name of the result. Defaults to `f1@k`, or `f1` without k.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: `k` or an option is not one of the above, or the convention has
            no such metric.
    """

    formula = "f1"

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
        inputs: Inputs | None = None,
        duplicates: Duplicates | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(locals())


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class RPrecision(SingleMetric):
    """R-precision: precision at the rank where a perfect ranking would be done.

    R-precision = number of relevant items at ranks 1..R / R,
    where R is the number of relevant items. With a cutoff k below R only ranks
    1..k are looked at.

    The value is between 0 and 1. Source: Buckley and Voorhees, "Retrieval System
    Evaluation", in "TREC: Experiment and Evaluation in Information Retrieval", 2005.

    >>> r_precision = RPrecision()
    >>> r_precision.update_state(y_true=[[1, 0, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(r_precision.result())  # one of the top two
    0.5

    Args:
        k: The cutoff, an int of at least 1, or None (default) for the whole list.
        relevance_threshold: The lowest label that is relevant, above 0; 1.0 (default).
        ties: "expected" (default), "stable" or "random": how equal scores count.
        seed: An int, with ties="random" only; None is 0.
        empty: "zero" (default), "one" or "skip": what a list counts as in which
            nothing is relevant.
        convention: Another tool's name, as in `CONVENTIONS`: its choices instead of
            the defaults. An option given beside it comes first.
        inputs: "labels" (default), "ids" or "catalogue": what `update_state` takes.
        duplicates: "first" (default) or "all": how repeated ids count, with
            inputs="ids" only.
        name: Name of the result. Defaults to `r_precision@k`, or `r_precision`
            without k.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: `k` or an option is not one of the above, or the convention has
            no such metric.
    """

    formula = "r_precision"

    def __init__(
        self,
        k: int | None = None,
        *,
        relevance_threshold: float | None = None,
        ties: Ties | None = None,
        seed: int | None = None,
        empty: Empty | None = None,
        convention: str | None = None,
        inputs: Inputs | None = None,
        duplicates: Duplicates | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(locals())


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class RankBiasedPrecision(SingleMetric):
    """Rank-biased precision: what a user finds who looks on with a fixed chance.

    RBP@k = (1 - persistence) * sum over ranks 1..k of
            relevance * persistence^(rank - 1)

    The value is between 0 and 1, and reaches 1 only where everything in an endless
    list is relevant. Source: Moffat and Zobel, "Rank-biased precision for
    measurement of retrieval effectiveness", ACM TOIS 27(1), 2008.

    >>> rbp = RankBiasedPrecision(persistence=0.5)
    >>> rbp.update_state(y_true=[[1, 0, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(rbp.result())  # 0.5 * (1 + 0.25)
    0.625

    Args:
        k: The cutoff, an int of at least 1, or None (default) for the whole list.
        relevance_threshold: The lowest label that is relevant, above 0; 1.0 (default).
        persistence: The chance that the user goes on from one item to the next,
            between 0 and 1; 0.8 (default).
        ties: "expected" (default), "stable" or "random": how equal scores count.
        seed: An int, with ties="random" only; None is 0.
        empty: "zero" (default) or "skip": what a list counts as in which nothing is
            relevant.
        convention: Another tool's name, as in `CONVENTIONS`: its choices instead of
            the defaults. An option given beside it comes first.
        inputs: "labels" (default), "ids" or "catalogue": what `update_state` takes.
        duplicates: "first" (default) or "all": how repeated ids count, with
            inputs="ids" only.
        name: Name of the result. Defaults to `rbp@k`, or `rbp` without k.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: `k` or an option is not one of the above, or the convention has
            no such metric.
    """

    formula = "rbp"

    def __init__(
        self,
        k: int | None = None,
        *,
        relevance_threshold: float | None = None,
        persistence: float | None = None,
        ties: Ties | None = None,
        seed: int | None = None,
        empty: Literal["zero", "skip"] | None = None,
        convention: str | None = None,
        inputs: Inputs | None = None,
        duplicates: Duplicates | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(locals())


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class ExpectedReciprocalRank(SingleMetric):
    """Expected reciprocal rank: how far down a user is satisfied, on average.

    ERR@k = sum over ranks 1..k of 1/rank * chance(rank)
            * product over the ranks above it of (1 - chance)
    chance = (2^label - 1) / 2^max_label, that the item satisfies the user

    The value is between 0 and 1. Source: Chapelle, Metzler, Zhang and Grinspan,
    "Expected reciprocal rank for graded relevance", CIKM 2009.

    >>> err = ExpectedReciprocalRank(max_label=1)
    >>> err.update_state(y_true=[[1, 0, 1]], y_pred=[[0.9, 0.5, 0.1]])
    >>> float(err.result())  # 1/2 + 1/3 * 1/2 * 1/2
    0.583...

    Args:
        k: The cutoff, an int of at least 1, or None (default) for the whole list.
        max_label: The highest label that there is, above 0; 4.0 (default). A label
            above it makes the result NaN.
        ties: "expected" (default), "stable" or "random": how equal scores count.
        seed: An int, with ties="random" only; None is 0.
        empty: "zero" (default) or "skip": what a list counts as in which every
            label is 0.
        convention: Another tool's name, as in `CONVENTIONS`: its choices instead of
            the defaults. An option given beside it comes first.
        inputs: "labels" (default), "ids" or "catalogue": what `update_state` takes.
        duplicates: "first" (default) or "all": how repeated ids count, with
            inputs="ids" only.
        name: Name of the result. Defaults to `err@k`, or `err` without k.
        dtype: Dtype of the result, by default Keras's floatx. The state is
            float64 in any case.

    Raises:
        ValueError: `k` or an option is not one of the above, or the convention has
            no such metric.
    """

    formula = "err"

    def __init__(
        self,
        k: int | None = None,
        *,
        max_label: float | None = None,
        ties: Ties | None = None,
        seed: int | None = None,
        empty: Literal["zero", "skip"] | None = None,
        convention: str | None = None,
        inputs: Inputs | None = None,
        duplicates: Duplicates | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        super().__init__(locals())
