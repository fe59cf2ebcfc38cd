"""Every metric with every option it has, read off the registry.

A new metric or option is in here without a line, and is then held to everything that
`test_properties.py`, `test_ties.py`, `test_graph.py` and others check. What it
needs is its definition in `oracle.py`.
"""

import dataclasses
import typing

import numpy as np
import tensorflow as tf

import tfrankmetrics as tfr
from tfrankmetrics.base_metric import SingleMetric
from tfrankmetrics.measures import DISCOUNTS, GAINS
from tfrankmetrics.registry import FORMULAS

PUBLIC = [getattr(tfr, name) for name in tfr.__all__]
CLASSES = {
    public.formula: public
    for public in PUBLIC
    if isinstance(public, type) and issubclass(public, SingleMetric)
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


# The values to try of options whose annotation does not list its choices.
VALUES = {
    "gain": (*GAINS, plus_one),
    "discount": (*DISCOUNTS, inverse_rank),
    "relevance_threshold": (1.0, 2.0, 0.5),
    "persistence": (0.8, 0.5),
    "max_label": (4.0, 5.5),
}
# These have their own place in the tests.
ELSEWHERE = {"ties", "seed", "empty"}


def cases_of(name):
    """A metric as it is by default, and with each other choice of each option."""
    yield Case(name)
    for option, parameter in FORMULAS[name].parameters().items():
        if option not in ELSEWHERE:
            for value in VALUES.get(option) or typing.get_args(parameter.annotation):
                if value != parameter.default:
                    yield Case(name, ((option, value),))


CASES = [case for name in FORMULAS for case in cases_of(name)]
CASES += [
    Case("ndcg", (("gain", plus_one), ("discount", inverse_rank))),
    Case("ndcg", (("gain", "linear"), ("discount", "jarvelin"))),
]


def random_lists(seed, queries=12, size=8, *, ties=False):
    """Labels, with padding at random places, and scores; float64."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, size=(queries, size)).astype(float)
    labels[rng.random(labels.shape) < 0.2] = -1.0
    scores = rng.normal(size=labels.shape)
    return labels, np.round(scores) if ties else scores
