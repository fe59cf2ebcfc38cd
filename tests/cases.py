"""Test cases for every metric with every option, generated from the declarations.

A new metric or option is included automatically. `test_properties.py`, `test_ties.py`,
`test_graph.py` and other modules then test it. Only `oracle.py` needs a definition.
"""

import dataclasses
import typing

import numpy as np
from keras_backend import register

import tfrankmetrics as trm
from tfrankmetrics.metrics.measure import declarations
from tfrankmetrics.options import Ties

# Only the metrics of tfrankmetrics, because some tests declare other metrics.
OWN_METRICS = {
    name: declaration
    for name, declaration in declarations().items()
    if declaration.cls.__module__.startswith(trm.__name__)
}
# The metrics of relevance; `test_items.py` tests those of recommended items.
METRICS = {n: each for n, each in OWN_METRICS.items() if not each.reads_items}
ITEM_METRICS = {n: each for n, each in OWN_METRICS.items() if each.reads_items}
CLASSES = {name: declaration.cls for name, declaration in METRICS.items()}


@register
def plus_one(labels):
    """A gain that is 1 for label 0. Padding must still add nothing."""
    return labels + 1.0


@register
def inverse_rank(ranks):
    """A discount that falls faster than the logarithmic one."""
    return 1.0 / ranks


@dataclasses.dataclass(frozen=True)
class Case:
    """A metric's name with values of its options."""

    name: str
    options: tuple = ()

    def __str__(self):
        parts = (
            f"{name}={getattr(value, '__name__', value)}"
            for name, value in self.options
        )
        return "-".join((self.name, *parts))

    @property
    def has_float_option(self):
        """Whether an option is a float. It changes values, but not the code that runs."""
        return any(isinstance(value, float) for _, value in self.options)

    def metric(self, k=None, **more):
        return make_metric(self.name, k, **dict(self.options), **more)


def make_metric(name, k=None, /, **options):
    """Creates a metric. `k` is ignored if the metric takes no cutoff."""
    cutoff = {"k": k} if METRICS[name].has_cutoff else {}
    return CLASSES[name](**cutoff, **options)


def metric_name(name, k=None):
    """A name such as `ndcg@3`. `k` is ignored if the metric takes no cutoff."""
    return f"{name}@{k}" if k and METRICS[name].has_cutoff else name


def with_cutoffs(names, cutoffs):
    """Pairs each name or case with each cutoff, or with None if it takes no cutoff."""
    for name in names:
        has_cutoff = METRICS[getattr(name, "name", name)].has_cutoff
        yield from ((name, k) for k in (cutoffs if has_cutoff else (None,)))


def empty_list_options(name):
    """The options for each possible value of a list without relevant items."""
    types = METRICS[name].types
    average = {"average": "macro"} if "average" in types else {}
    return [{"empty": choice, **average} for choice in typing.get_args(types["empty"])]


def labels_for(name, labels):
    """The labels for this metric. Metrics of subtopics get labels of two subtopics.

    For the second subtopic, each label is one lower, but not below 0.
    """
    if not METRICS[name].has_subtopics:
        return labels
    second = np.where(np.less(labels, 0), labels, np.maximum(labels, 1) - 1)
    return np.stack([labels, second], axis=-1)


# Functions to test in addition to the choices of an option.
FUNCTIONS = {"gain": plus_one, "discount": inverse_rank}
# Options that have their own tests.
TESTED_ELSEWHERE = {"ties", "empty", "zero_weight"}


def values_of(option, annotation, default):
    """Every choice of an option; for a number, a second value that the rule allows."""
    parts = typing.get_args(annotation)
    if option in FUNCTIONS:
        return (*typing.get_args(parts[0]), FUNCTIONS[option])
    if isinstance(default, bool):
        return (not default, *typing.get_args(typing.get_args(annotation)[-1]))
    if isinstance(default, float):
        second = 2 * default or 0.5
        is_valid = all(rule.holds(second) for rule in parts[1:])
        return (second if is_valid else default / 2,)
    return parts


def cases_of_metric(name):
    """Yields a metric with its defaults, then with each other value of each option."""
    yield Case(name)
    for option, annotation in METRICS[name].types.items():
        if option not in TESTED_ELSEWHERE:
            default = METRICS[name].defaults[option]
            for value in values_of(option, annotation, default):
                if value != default:
                    yield Case(name, ((option, value),))


# The gains of all grades of the tests. The gain of 0 is 0, as in formats with ids.
GRADES = ((0, 0), (0.25, 0.5), (0.5, 1), (1, 1), (1.5, 2), (2, 2.5), (3, 7), (4, 9))
CASES = [case for name in METRICS for case in cases_of_metric(name)]
CASES += [
    Case("ndcg", (("gain", plus_one), ("discount", inverse_rank))),
    Case("ndcg", (("gain", "linear"), ("discount", "jarvelin"))),
    Case("ndcg", (("gain", GRADES), ("ideal", "retrieved"))),
    Case("dcg", (("gain", GRADES),)),
    Case("alpha_dcg", (("alpha", 0.2), ("discount", "jarvelin"))),
    Case("alpha_dcg", (("alpha", 0.2),)),
    Case("recall", (("relevance_threshold", 0.5),)),
    Case("pfound", (("decay", 0.0),)),
    Case("err", (("max_label", 5.5),)),
]

# Metrics of judged items, whatever their labels.
JUDGMENT_METRICS = [name for name in METRICS if METRICS[name].unjudged == "keep"]
# Metrics that read one label per item, and metrics that read one per subtopic.
LABEL_METRICS = [name for name in METRICS if not METRICS[name].has_subtopics]
SUBTOPIC_METRICS = [name for name in METRICS if METRICS[name].has_subtopics]


def cases_of_metrics(names):
    """The cases of these metrics."""
    return [case for case in CASES if case.name in names]


def metrics_supporting(inputs):
    """The names of the metrics that support an input format."""
    return [name for name in METRICS if inputs in METRICS[name].inputs]


TIES = typing.get_args(Ties)
DATA_OF_ITEMS = {"num_items", "popularity", "vectors", "categories"}


def metrics_with(inputs, ties, cutoffs, has_subtopics=False, **options):
    """Every metric for an input format that can break ties so, at each cutoff.

    It gets the options that it has. Metrics of recommended items need their data among
    the options; labels have no ids of items here.
    """
    data = set() if inputs == "labels" else {*options}
    for name, declaration in OWN_METRICS.items():
        types = declaration.types
        if (
            inputs in declaration.inputs
            and ties in typing.get_args(types["ties"])
            and declaration.has_subtopics == has_subtopics
            and DATA_OF_ITEMS & {*types} <= data
        ):
            given = {n: value for n, value in options.items() if n in types}
            for k in cutoffs if declaration.has_cutoff else (None,):
                cutoff = {"k": k} if declaration.has_cutoff else {}
                given |= {"ties": ties, "inputs": inputs, "name": f"{name}_{k}_{ties}"}
                yield declaration.cls(**cutoff, **given)


def random_lists(seed, queries=12, size=8, *, ties=False):
    """Random labels and scores in float64, with padding at random positions."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, size=(queries, size)).astype(float)
    labels[rng.random(labels.shape) < 0.2] = -1.0
    scores = rng.normal(size=labels.shape)
    return labels, np.round(scores) if ties else scores
