"""Helpers of several test modules: metric values, graphs, objects and random lists."""

import collections
import contextlib
import ctypes
import gc
import typing

import hypothesis.strategies as st
import numpy as np
import pytest
from cases import (
    CASES,
    LABEL_METRICS,
    METRICS,
    SUBTOPIC_METRICS,
    cases_of_metrics,
    labels_for,
    with_cutoffs,
)
from cases import make_metric as make
from hypothesis import Phase, settings
from hypothesis.extra import numpy as hnp
from keras_backend import IS_KERAS_3, SWEEP, XLA, assert_same, keras, results  # noqa: F401

import tfrankmetrics as trm

if keras is not None:
    import tensorflow as tf
    from tensorflow.python.eager import context

SUITE = ["ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map@10", "mrr@10"]
SUITE += ["precision@1", "precision@5", "precision@10", "recall@10"]


def value(name, labels, scores=None, k=None, **arguments):
    """Computes a metric with a Keras object and with `evaluate`, which must agree.

    Without scores, the items are ranked in list order.
    """
    data = {key: arguments.pop(key) for key in ("sample_weight",) if key in arguments}
    made = make(name, k, **arguments)
    if scores is None:
        scores = [-float(position) for position in range(len(labels))]
    if METRICS[name].has_subtopics and np.ndim(scores) == 1:
        labels, scores = [labels], [scores]
    if np.ndim(labels) == 2:
        labels = labels_for(name, labels)
    if keras is None:
        return trm.evaluate(labels, scores, [made], **data)[made.name]
    with run_eagerly():
        made.update_state(labels, scores, **data)
        (from_arrays,) = trm.evaluate(labels, scores, [made], **data).values()
    assert float(made.result()) == pytest.approx(from_arrays, rel=1e-6, nan_ok=True)
    return from_arrays


@contextlib.contextmanager
def run_eagerly(eagerly=True):
    """Disables compilation in a context. Single calls are much faster without it."""
    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(eagerly)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


# Without a mask, `judged` warns that it counts no item as unjudged.
judged_without_mask = pytest.mark.filterwarnings("ignore:`judged` requires a mask")
# For tests of values, which are compiled for every setting only in the slow tests.
EAGER_GRAPH_XLA = ["eager", pytest.param("graph", marks=SWEEP), XLA]


def metrics_with_formula_options(names):
    """These metrics with every option that selects a branch of a formula."""
    branches = {"ideal", "denominator", "average"}
    cases = (
        case for case in cases_of_metrics(names) if {*dict(case.options)} <= branches
    )
    return [case.metric(3, name=str(case)) for case in cases]


def metrics_with_ties(names, *all_ties):
    """These metrics at two cutoffs, one beyond the lists, with each way to break ties."""
    return [
        make(name, k, ties=ties, name=f"{name}@{k}, {ties}")
        for name, k in with_cutoffs(names, (3, 40))
        for ties in all_ties
        if ties in typing.get_args(METRICS[name].types["ties"])
    ]


def run_as(way, function):
    """The function itself for "eager", or the function as a "graph" or under "xla"."""
    if way == "eager":
        return function
    compiled = tf.function(function, jit_compile=way == "xla")

    def run(*arguments):
        with run_eagerly(False):
            return compiled(*arguments)

    return run


def clear_caches():
    """Frees unused graphs, and returns their memory to the system if possible."""
    tf.keras.backend.clear_session()
    gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def update_function(metric):
    """`update_state` as a function that returns None. In Keras 2 it returns a value."""

    def update(*arguments):
        metric.update_state(*arguments)

    return update


def count_optimized_ops(function, *arguments):
    """Counts the ops of each type that TensorFlow runs after it optimizes the graph.

    Ops that run only for a batch with NaN are not counted.
    """
    context.context().enable_run_metadata()
    try:
        # TensorFlow 2.15 keeps collecting once enabled. This discards other tests' ops.
        context.context().export_run_metadata()
        tf.function(function)(*arguments)
        metadata = context.context().export_run_metadata()
    finally:
        context.context().disable_run_metadata()
    return collections.Counter(
        node.op
        for graphs in metadata.function_graphs
        for node in graphs.post_optimization_graph.node
        if "again_if_nan" not in node.name
    )


# Every case at every cutoff, by name. Cases with a function as an option are left out,
# because their calls are not compiled. `test_ties.py` tests them.
CUTOFFS = (1, 3, None)
CASES_AT_CUTOFFS = {
    f"{case}@{k}": (case, k)
    for case, k in with_cutoffs(CASES, CUTOFFS)
    if not any(callable(choice) for _, choice in case.options)
}


def metric_objects(names, *, without_float_options=False):
    """Metric objects for all cases and cutoffs of these metrics.

    `without_float_options` leaves out cases that set a float option. Float options
    change values, but the same code computes them.
    """
    return [
        case.metric(k, name=name)
        for name, (case, k) in CASES_AT_CUTOFFS.items()
        if case.name in names and not (without_float_options and case.has_float_option)
    ]


LABEL_METRIC_OBJECTS = metric_objects(LABEL_METRICS)
SUBTOPIC_METRIC_OBJECTS = metric_objects(SUBTOPIC_METRICS)
# Metrics that read one label per item, then metrics that read one per subtopic.
OBJECTS_BY_KIND = (LABEL_METRIC_OBJECTS, SUBTOPIC_METRIC_OBJECTS)
OBJECTS_WITHOUT_FLOAT_OPTIONS = [
    metric_objects(n, without_float_options=True)
    for n in (LABEL_METRICS, SUBTOPIC_METRICS)
]

# One call evaluates all lists of an example, so that few examples with many lists take
# less time than many examples with few lists.
few_examples = settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    # All but `explain`, which adds lines of other packages to the failing example.
    phases=[phase for phase in settings().phases if phase is not Phase.explain],
)

# Few distinct scores make ties likely. NaN, infinities and -0.0 are hard to sort.
SCORES = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 1.5, np.nan, np.inf, -np.inf]),
    st.floats(-1e6, 1e6, allow_subnormal=False),
)
LABELS = st.sampled_from([-1.0, 0.0, 0.0, 0.5, 1.0, 2.0, 3.0])


@st.composite
def batches(draw, max_items=6, max_lists=24):
    """Draws labels and scores of some padded lists."""
    lists = st.integers(max_lists // 3, max_lists)
    shape = draw(st.tuples(lists, st.integers(1, max_items)))
    labels = draw(hnp.arrays(np.float64, shape, elements=LABELS))
    return labels, draw(hnp.arrays(np.float64, shape, elements=SCORES))
