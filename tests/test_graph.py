"""Tests the metrics in graphs: XLA, unknown shapes, sorts, retracing, exact sums."""

import math
import typing

import numpy as np
import pytest
import tensorflow as tf
from cases import (
    LABEL_METRICS,
    SUBTOPIC_METRICS,
    labels_for,
    metric_name,
    random_lists,
    with_cutoffs,
)
from helpers import (
    OBJECTS_BY_KIND,
    SUITE,
    SWEEP,
    XLA,
    count_optimized_ops,
    judged_without_mask,
    metrics_with_formula_options,
    metrics_with_ties,
    results,
    run_as,
    update_function,
)
from tensorflow.python.eager import context

import tfrankmetrics as trm
from tfrankmetrics.options import Ties

pytestmark = judged_without_mask


# These suffice for options that change only the ranking, such as score dtypes.
FEW_METRICS = ["ndcg", "mrr", "opa"]


@pytest.mark.parametrize(
    ("dtype", "metrics"),
    [
        ("float32", metrics_with_formula_options(LABEL_METRICS)),
        ("float32", metrics_with_formula_options(SUBTOPIC_METRICS)),
        ("float32", metrics_with_ties(LABEL_METRICS, "stable")),
        ("float32", metrics_with_ties(SUBTOPIC_METRICS, "stable")),
        ("float64", metrics_with_ties(["ndcg", "mrr"], *typing.get_args(Ties))),
        ("int32", metrics_with_ties(["mrr"], *typing.get_args(Ties))),
        *(pytest.param("float32", metrics, marks=SWEEP) for metrics in OBJECTS_BY_KIND),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0].name,
)
@pytest.mark.parametrize("way", ["xla", pytest.param("graph", marks=SWEEP)])
@pytest.mark.usefixtures("clear_caches_after_test")
def test_eager_graph_and_xla_agree(dtype, metrics, way):
    labels, scores = random_lists(5, queries=9, size=7, ties=True)
    scores[0] = -0.0
    scores[1, 1:4] = 0.0
    scores = (scores * 4).astype(dtype)
    if dtype != "int32":
        scores[2, :3] = np.nan
        scores[3, :3] = -np.inf
        scores[4, 2:] = np.inf
        scores[5, ::2] = -0.0
    weights = np.random.default_rng(0).integers(1, 5, labels.shape).astype("float32")
    if any(metric.ties in ("best", "worst") for metric in metrics):
        weights = weights[:, 0]  # one for each query
    labels = labels_for(metrics[0].declaration.name, labels)
    values = {}
    for each in ("eager", way):
        metric = trm.RankingMetrics(metrics)
        update = run_as(each, update_function(metric))
        update(tf.constant(labels), tf.constant(scores), tf.constant(weights))
        values[each] = results(metric)
    assert values[way] == pytest.approx(values["eager"], rel=1e-6)


# Metrics whose formulas have a separate path for unknown sizes.
UNKNOWN_SIZE_METRICS = ["ndcg", "map", "mrr", "err", "arp", "opa"]


@pytest.mark.parametrize(
    ("metrics", "jit_compile"),
    [
        (LABEL_METRICS, False),
        pytest.param(UNKNOWN_SIZE_METRICS, True, marks=SWEEP),
        (SUBTOPIC_METRICS, False),
        pytest.param(SUBTOPIC_METRICS, True, marks=SWEEP),
    ],
    ids=["labels", "labels-xla", "subtopics", "subtopics-xla"],
)
@pytest.mark.usefixtures("clear_caches_after_test")
def test_unknown_batch_and_list_size(metrics, jit_compile):
    labels, scores = random_lists(6, queries=11, size=9, ties=True)
    labels = labels_for(metrics[0], labels)
    names = [metric_name(*pair) for pair in with_cutoffs(metrics, (None, 4))]
    metric = trm.RankingMetrics(names)
    unknown = [
        tf.TensorSpec([None] * array.ndim, tf.float64) for array in (labels, scores)
    ]

    @tf.function(input_signature=unknown, jit_compile=jit_compile)
    def update(labels, scores):
        metric.update_state(labels, scores)

    update(labels[:8], scores[:8])
    update(labels[8:, :2], scores[8:, :2])
    update(labels[:1], np.ones_like(scores[:1]))  # one list, which is a long tie
    scores = [*scores[:8], *scores[8:, :2], np.ones_like(scores[0])]
    labels = [*labels[:8], *labels[8:, :2], labels[0]]
    expected = trm.evaluate(labels, scores, names)
    assert results(metric) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("way", ["graph", XLA])
@pytest.mark.parametrize("shape", [(3, 0), (0, 3)])
@pytest.mark.usefixtures("clear_caches_after_test")
def test_empty_batches_and_lists_in_a_graph(shape, way):
    metric = trm.RankingMetrics([metric_name(name, 3) for name in UNKNOWN_SIZE_METRICS])
    empty = tf.zeros(shape)
    run_as(way, update_function(metric))(empty, empty)
    assert np.isnan(list(results(metric).values())).all()


def test_ragged_tensors_in_a_graph():
    metric = trm.RankingMetrics(["ndcg", "mrr"])
    update = tf.function(update_function(metric))
    labels = tf.ragged.constant([[0, 1], [2, 0, 1]])
    scores = tf.ragged.constant([[0.5, 0.1], [0.3, 0.2, 0.1]])
    update(labels, scores)
    expected = trm.evaluate(labels, scores, ["ndcg", "mrr"])
    assert results(metric) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="as long as the rows of"):
        update(labels, tf.ragged.constant([[0.5, 0.1, 0.3], [0.3, 0.2]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="as long as the rows of"):
        update(labels, tf.ragged.constant([[0.5, 0.1], [0.3, 0.2]]))


@pytest.fixture(scope="module", params=["graph", XLA])
def update_with_unknown_shapes(request):
    unknown = tf.TensorSpec((None, None))
    metric = trm.MeanReciprocalRank()
    update = tf.function(
        update_function(metric),
        input_signature=[unknown] * 3,
        jit_compile=request.param == "xla",
    )
    update(tf.ones((2, 3)), tf.ones((2, 3)), tf.ones((2, 3)))
    update(tf.ones((2, 3)), tf.ones((2, 3)), tf.ones((2, 1)))
    assert metric.result() == 1
    return update, request.param == "xla"


@pytest.mark.parametrize(
    ("labels", "scores", "weights", "message"),
    [
        ((4, 1), (4, 5), (4, 1), "must be of the same shape"),
        ((2, 6), (3, 4), (1, 1), "must be of the same shape"),
        ((4, 5), (4, 5), (1, 5), "a scalar, "),
        ((4, 5), (4, 5), (1, 1), "a scalar, "),
        ((4, 5), (4, 5), (5, 1), "a scalar, "),
        ((4, 5), (4, 5), (4, 2), "a scalar, "),
    ],
)
def test_unknown_shapes_are_checked_at_run_time(
    labels, scores, weights, message, update_with_unknown_shapes
):
    update, is_xla = update_with_unknown_shapes
    # XLA does not run assertions and raises its own error.
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="-2" if is_xla else message
    ):
        update(tf.ones(labels), tf.ones(scores), tf.ones(weights))


def test_weights_of_a_known_size_for_an_unknown_number_of_lists():
    metric = trm.MeanReciprocalRank()

    @tf.function(input_signature=[tf.TensorSpec([None, 2])] * 2)
    def update(labels, scores):
        metric.update_state(labels, scores, tf.constant([2.0]))

    update(tf.ones((1, 2)), tf.ones((1, 2)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="a scalar, "):
        update(tf.ones((3, 2)), tf.ones((3, 2)))


def test_known_shapes_are_checked_while_tracing():
    metric = trm.MeanReciprocalRank()
    with pytest.raises(ValueError, match="must be of the same shape"):
        tf.function(update_function(metric))(tf.ones((2, 3)), tf.ones((2, 4)))
    with pytest.raises(ValueError, match="a scalar, "):
        tf.function(update_function(metric))(*[tf.ones((2, 3))] * 2, tf.ones((2, 4)))
    with pytest.raises(ValueError, match="known number of dimensions"):
        tf.function(update_function(metric), input_signature=[tf.TensorSpec(None)] * 2)(
            tf.ones((2, 3)), tf.ones((2, 3))
        )


@pytest.mark.parametrize("way", ["graph", XLA])
@pytest.mark.parametrize(
    ("inputs", "y_true", "y_pred"),
    [
        ("ids", [[2, 5], [3, -1]], [[2, 9], [4, 3]]),
        ("catalog", [[0], [1]], [[3.0, 2.0, 1.0]] * 2),
        ("catalog", [[0], [1]], [[[3.0, 2.0, 1.0]]] * 2),
        ("catalog", [[[0]], [[1]]], [[[3.0, 2.0, 1.0]]] * 2),
    ],
)
def test_ids_catalogs_and_weights_of_unknown_shape(inputs, y_true, y_pred, way):
    metric = trm.MeanReciprocalRank(inputs=inputs)
    data = tf.constant(y_true), tf.constant(y_pred), tf.constant([[3.0], [1.0]])
    update = tf.function(
        update_function(metric),
        input_signature=[tf.TensorSpec([None] * x.shape.rank, x.dtype) for x in data],
        jit_compile=way == "xla",
    )
    update(*data)
    assert float(metric.result()) == (3 * 1 + 1 * 1 / 2) / 4
    for weights in (tf.ones((2, 2)), tf.ones((1, 1))):
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="-2" if way == "xla" else "a scalar, "
        ):
            update(*data[:2], weights)


@pytest.mark.parametrize("steps", [[], [2]])
@pytest.mark.parametrize("batch", [None, 1])
def test_a_catalog_must_have_an_item_when_the_graph_runs(batch, steps):
    metric = trm.MeanReciprocalRank(inputs="catalog")
    update = tf.function(
        update_function(metric),
        input_signature=[
            tf.TensorSpec([batch, *steps], tf.int32),
            tf.TensorSpec([batch, *steps, None]),
        ],
    )
    ids = tf.zeros([1, *steps], tf.int32)
    update(ids, tf.ones([1, *steps, 1]))
    assert metric.result() == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least one item"):
        update(ids, tf.ones([1, *steps, 0]))


@pytest.mark.parametrize(
    ("names", "sorts"),
    [
        (["map@10"], 1),
        (["ndcg@10"], 2),  # the ideal order needs a second sort
        (SUITE, 2),
        # With ties, ERR and PFound sort the items of each group.
        ([name for name in LABEL_METRICS if name != "opa"], 4),
    ],
)
def test_number_of_sorts(names, sorts):
    labels, scores = tf.ones((8, 30)), tf.ones((8, 30))
    metric = trm.RankingMetrics(names)
    assert (
        count_optimized_ops(update_function(metric), labels, scores)["TopKV2"] == sorts
    )


def graphs_of_tensorflow():
    """The names of all graphs that TensorFlow has made."""
    names = context.context().list_function_names()
    return {name for name in names if name.startswith("__inference")}


def test_frequent_calls_are_compiled_once_for_all_shapes():
    labels, scores = map(tf.constant, random_lists(0, queries=20, size=20))
    metric = trm.DCG(k=13, gain="linear")
    few, many = graphs_of_tensorflow(), None
    for number, items in enumerate(range(20, 1, -1), start=1):
        some = labels[:number, :items], scores[:number, :items]
        metric.update_state(*some)
        trm.evaluate(*some, [metric])
        if number == 5:
            assert graphs_of_tensorflow() == few  # a few calls are not worth a graph
        if number == 10:
            many = graphs_of_tensorflow()
            assert many > few
    assert graphs_of_tensorflow() == many


@pytest.mark.parametrize(
    "metrics",
    [
        metrics_with_formula_options(LABEL_METRICS),
        metrics_with_formula_options(SUBTOPIC_METRICS),
    ],
    ids=lambda metrics: f"{metrics[0].name} and {len(metrics) - 1} more",
)
@pytest.mark.usefixtures("clear_caches_after_test")
def test_the_first_calls_give_the_bits_of_compiled_ones(metrics):
    """The first calls with some options run op by op."""
    for ties in (False, True):
        labels, scores = random_lists(3, queries=30, size=15, ties=ties)
        labels = tf.constant(labels_for(metrics[0].declaration.name, labels))
        first, *_, later = (
            trm.evaluate(labels, scores, metrics, per_query=True) for _ in range(10)
        )
        for name, values in first.items():
            np.testing.assert_array_equal(values, later[name], err_msg=name)


def test_a_function_that_changes_is_called_again():
    """A compiled call would keep what the function did when it was traced."""
    labels, scores, factor = tf.constant([[1.0, 0.0]]), tf.constant([[2.0, 1.0]]), 1.0
    dcg = trm.DCG(k=7, gain=lambda labels: factor * labels)
    for factor in (1.0, 2.0):
        for _ in range(10):
            assert trm.evaluate(labels, scores, [dcg]) == {"dcg@7": factor}
        dcg.reset_state()
        dcg.update_state(labels, scores)
        assert float(dcg.result()) == factor


def test_the_state_is_two_numbers_for_each_metric_and_the_evidence():
    metric = trm.RankingMetrics(SUITE)
    for _ in range(3):
        metric.update_state(np.ones((50, 4)), np.ones((50, 4)))
    sizes = [math.prod(variable.shape) for variable in metric.variables]
    assert sizes == [2 * len(SUITE) + 18]  # 18 numbers are facts about the data
