"""The tables that the tests share: every metric, with every option it has.

A new metric enters here with one row for each way to use it, and is then held
to everything that `test_properties.py`, `test_ties.py` and others check.
"""

import dataclasses

import numpy as np
import tensorflow as tf

import tfrankmetrics as tfr

CLASSES = {
    "ndcg": tfr.NDCG,
    "dcg": tfr.DCG,
    "map": tfr.MeanAveragePrecision,
    "mrr": tfr.MeanReciprocalRank,
    "precision": tfr.PrecisionAtK,
    "recall": tfr.RecallAtK,
    "hit_rate": tfr.HitRateAtK,
}


@tf.keras.utils.register_keras_serializable(package="tests")
def plus_one(labels):
    """A gain that is not 0 for label 0: padding must still add nothing."""
    return labels + 1.0


@tf.keras.utils.register_keras_serializable(package="tests")
def inverse_rank(ranks):
    """A discount steeper than the logarithm."""
    return 1.0 / ranks


@dataclasses.dataclass(frozen=True)
class Case:
    """A metric with some options; it makes the object and asks the oracle."""

    name: str
    options: tuple = ()

    def __str__(self):
        parts = (
            f"{name}={getattr(value, '__name__', value)}"
            for name, value in self.options
        )
        return "-".join((self.name, *parts))

    def metric(self, k=None, **more):
        return CLASSES[self.name](k=k, **dict(self.options), **more)


CASES = [
    Case("ndcg"),
    Case("ndcg", (("gain", "linear"),)),
    Case("ndcg", (("gain", plus_one), ("discount", inverse_rank))),
    Case("ndcg", (("gain", "linear"), ("discount", "jarvelin"))),
    Case("ndcg", (("ideal", "retrieved"),)),
    Case("dcg"),
    Case("dcg", (("gain", "linear"), ("discount", "jarvelin"))),
    Case("map"),
    Case("map", (("denominator", "min(k, relevant)"),)),
    Case("map", (("denominator", "hits"),)),
    Case("map", (("relevance_threshold", 2.0),)),
    Case("mrr"),
    Case("precision"),
    Case("precision", (("denominator", "k"),)),
    Case("recall"),
    Case("recall", (("relevance_threshold", 0.5),)),
    Case("hit_rate"),
]


def random_lists(seed, queries=12, size=8, *, ties=False):
    """Labels, with padding at random places, and scores; float64."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, size=(queries, size)).astype(float)
    labels[rng.random(labels.shape) < 0.2] = -1.0
    scores = rng.normal(size=labels.shape)
    return labels, np.round(scores) if ties else scores
