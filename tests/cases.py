"""Every metric with every option it has, read off the declarations.

A new metric or option needs no line here, and is then held to everything that
`test_properties.py`, `test_ties.py`, `test_graph.py` and others check. It needs its
definition in `oracle.py`.
"""

import dataclasses
import typing

import numpy as np
import tensorflow as tf

import tfrankmetrics as tfr
from tfrankmetrics.measure import DECLARATIONS
from tfrankmetrics.metrics.dcg import DISCOUNTS
from tfrankmetrics.metrics.gains import GAINS

# The metrics of this library; tests declare others.
METRICS = {
    name: declaration
    for name, declaration in DECLARATIONS.items()
    if declaration.cls.__module__.startswith(tfr.__name__)
}
CLASSES = {name: declaration.cls for name, declaration in METRICS.items()}


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

    @property
    def has_number(self):
        """Whether an option is a number: it changes values, not what is computed."""
        return any(isinstance(value, float) for _, value in self.options)

    def metric(self, k=None, **more):
        return make_metric(self.name, k, **dict(self.options), **more)


def make_metric(name, k=None, /, **options):
    """The metric at a cutoff; metrics of the whole list have none."""
    cutoff = {"k": k} if METRICS[name].has_cutoff else {}
    return CLASSES[name](**cutoff, **options)


def spelled(name, k=None):
    """The metric's name at a cutoff; metrics of the whole list have none."""
    return f"{name}@{k}" if k and METRICS[name].has_cutoff else name


def with_cutoffs(names, cutoffs):
    """Each of these names (or cases) with each of these cutoffs that it may have."""
    for name in names:
        has_cutoff = METRICS[getattr(name, "name", name)].has_cutoff
        yield from ((name, k) for k in (cutoffs if has_cutoff else (None,)))


def choices_of_empty(name):
    """The options that set the value of an empty list, each in turn."""
    types = METRICS[name].types
    average = {"average": "macro"} if "average" in types else {}
    return [{"empty": choice, **average} for choice in typing.get_args(types["empty"])]


def labels_for(name, labels):
    """Labels as this metric takes them: of two subtopics if it is about subtopics.

    Relevance to the second subtopic takes one grade more.
    """
    if not METRICS[name].has_subtopics:
        return labels
    second = np.where(np.less(labels, 0), labels, np.maximum(labels, 1) - 1)
    return np.stack([labels, second], axis=-1)


# The values to try of options whose type does not list its choices.
VALUES = {
    "gain": (*GAINS, plus_one),
    "discount": (*DISCOUNTS, inverse_rank),
    "relevance_threshold": (1.0, 2.0),
    "persistence": (0.8, 0.5),
    "max_label": (4.0, 5.5),
    "alpha": (0.5, 0.2, 1.0),
}
# These have their own place in the tests.
ELSEWHERE = {"ties", "seed", "empty"}


def cases_of(name):
    """A metric with its defaults, and with each other choice of each option."""
    yield Case(name)
    for option, annotation in METRICS[name].types.items():
        if option not in ELSEWHERE:
            for value in VALUES.get(option) or typing.get_args(annotation):
                if value != METRICS[name].defaults[option]:
                    yield Case(name, ((option, value),))


CASES = [case for name in METRICS for case in cases_of(name)]
CASES += [
    Case("ndcg", (("gain", plus_one), ("discount", inverse_rank))),
    Case("ndcg", (("gain", "linear"), ("discount", "jarvelin"))),
    Case("alpha_dcg", (("alpha", 0.2), ("discount", "jarvelin"))),
    Case("recall", (("relevance_threshold", 0.5),)),
]

# By what they read: one label per item, or one for each subtopic.
OF_LABELS = [name for name in METRICS if not METRICS[name].has_subtopics]
OF_SUBTOPICS = [name for name in METRICS if METRICS[name].has_subtopics]


def cases_for(names):
    """The cases of these metrics."""
    return [case for case in CASES if case.name in names]


def reading(inputs):
    """The names of the metrics that have a meaning for an input format."""
    return [name for name in METRICS if inputs in METRICS[name].inputs]


def random_lists(seed, queries=12, size=8, *, ties=False):
    """Labels, with padding at random places, and scores; float64."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, size=(queries, size)).astype(float)
    labels[rng.random(labels.shape) < 0.2] = -1.0
    scores = rng.normal(size=labels.shape)
    return labels, np.round(scores) if ties else scores
