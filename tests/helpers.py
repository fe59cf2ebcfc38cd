"""What several test modules use: values by object and array, graphs, made-up lists."""

import collections
import ctypes
import gc
from unittest import mock

import hypothesis.strategies as st
import numpy as np
import pytest
import tensorflow as tf
from cases import CASES, METRICS, OF_LABELS, OF_SUBTOPICS, labels_for, with_cutoffs
from cases import make_metric as make
from hypothesis import settings
from hypothesis.extra import numpy as hnp
from tensorflow.python.eager import context

import tfrankmetrics as tfr
from tfrankmetrics import compiled

SUITE = ["ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map@10", "mrr@10"]
SUITE += ["precision@1", "precision@5", "precision@10", "recall@10"]


def value(name, labels, scores=None, k=None, **arguments):
    """One metric by a Keras object, op by op, and by `evaluate`, which must agree.

    Without scores, the items are in the order of the list.
    """
    data = {key: arguments.pop(key) for key in ("sample_weight",) if key in arguments}
    made = make(name, k, **arguments)
    if scores is None:
        scores = [-float(position) for position in range(len(labels))]
    if METRICS[name].has_subtopics and np.ndim(scores) == 1:
        labels, scores = [labels], [scores]
    if np.ndim(labels) == 2:
        labels = labels_for(name, labels)
    with op_by_op():
        made.update_state(labels, scores, **data)
    (from_arrays,) = tfr.evaluate(labels, scores, [made], **data).values()
    assert float(made.result()) == pytest.approx(from_arrays, rel=1e-6, nan_ok=True)
    return from_arrays


def op_by_op():
    """A context in which nothing is compiled: then a single call is a lot faster."""

    def uncompiled(function, measures, lists_type, others, signature):
        def call(tensors, first_query):
            lists = lists_type(**dict(others), **tensors)
            return function(measures, lists, first_query)

        return call

    return mock.patch.object(compiled, "_compiled", uncompiled)


def clear_caches():
    """Frees compiled graphs, and gives their memory back where that can be done."""
    compiled._compiled.cache_clear()
    tf.keras.backend.clear_session()
    gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def assert_same(logs, expected, prefix=""):
    """Whether results, such as the logs of a model, have the expected values."""
    for name, number in expected.items():
        np.testing.assert_allclose(
            float(logs[prefix + name]), number, rtol=1e-6, err_msg=name
        )


def results(metric):
    """The results of a `RankingMetrics` as floats."""
    return {name: float(number) for name, number in metric.result().items()}


def updater(metric):
    """`update_state` as a function without a result; in Keras 2 it has one."""

    def update(*arguments):
        metric.update_state(*arguments)

    return update


def optimised_ops(function, *arguments):
    """How many ops of each type TensorFlow runs, after its graph optimiser.

    Without the ops that run only for a batch with NaN.
    """
    context.context().enable_run_metadata()
    try:
        # Once enabled, TensorFlow 2.15 goes on collecting: this forgets other tests.
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


# Each case at each of these cutoffs, by name. Functions among the options keep a call
# from being compiled: `test_ties.py` has those.
CUTOFFS = (1, 3, None)
MEASURES = {
    f"{case}@{k}": (case, k)
    for case, k in with_cutoffs(CASES, CUTOFFS)
    if not any(callable(choice) for _, choice in case.options)
}


def objects(names, *, without_numbers=False):
    """All cases and cutoffs of these metrics, as metric objects.

    Without numbers among the options, which change values, but not what is computed.
    """
    return [
        case.metric(k, name=name)
        for name, (case, k) in MEASURES.items()
        if case.name in names and not (without_numbers and case.has_number)
    ]


OBJECTS, SUBTOPIC_OBJECTS = objects(OF_LABELS), objects(OF_SUBTOPICS)
# Pairs of the metrics of labels and of those of subtopics.
ALL = (OBJECTS, SUBTOPIC_OBJECTS)
WITHOUT_NUMBERS = [objects(n, without_numbers=True) for n in (OF_LABELS, OF_SUBTOPICS)]

few = settings(max_examples=60, deadline=None, derandomize=True)

# Few different scores make ties likely; the others are those that break sorts.
SCORES = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 1.5, np.nan, np.inf, -np.inf]),
    st.floats(-1e6, 1e6, allow_subnormal=False),
)
LABELS = st.sampled_from([-1.0, 0.0, 0.0, 0.5, 1.0, 2.0, 3.0])


@st.composite
def batches(draw, max_items=6):
    """Labels and scores of a few padded lists."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, max_items)))
    labels = draw(hnp.arrays(np.float64, shape, elements=LABELS))
    return labels, draw(hnp.arrays(np.float64, shape, elements=SCORES))
