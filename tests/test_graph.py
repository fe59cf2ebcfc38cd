"""The metrics as graphs: XLA, unknown shapes, sorts, retracing, exact sums."""

import math

import numpy as np
import pytest
import tensorflow as tf
from cases import (
    OF_LABELS,
    OF_SUBTOPICS,
    cases_for,
    labels_for,
    make_metric,
    random_lists,
    spelled,
    with_cutoffs,
)
from helpers import SUITE, optimised_ops, results, updater

import tfrankmetrics as tfr
from tfrankmetrics import compiled


def every_formula(names):
    """These metrics with every option that a formula branches on."""
    branches = {"ideal", "denominator", "average"}
    cases = (case for case in cases_for(names) if {*dict(case.options)} <= branches)
    return [case.metric(3, name=str(case)) for case in cases]


def each(names, *orders_of_ties):
    """These metrics at two cutoffs, one deeper than the lists, and with these ties."""
    return [
        make_metric(name, k, ties=ties, name=f"{name}@{k}, {ties}")
        for name, k in with_cutoffs(names, (3, 40))
        for ties in orders_of_ties
    ]


# Enough for what changes the ranking only: the dtype of scores, random ties.
FEW = ["ndcg", "mrr", "opa"]


@pytest.mark.parametrize(
    ("dtype", "metrics"),
    [
        ("float32", every_formula(OF_LABELS)),
        ("float32", every_formula(OF_SUBTOPICS)),
        ("float32", each(OF_LABELS, "stable")),
        ("float32", each(OF_SUBTOPICS, "stable")),
        ("float32", each(FEW, "random")),
        ("float64", each(FEW, "expected", "stable", "random")),
        ("int32", each(FEW, "expected", "stable", "random")),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0].name,
)
@pytest.mark.usefixtures("free_at_once")
def test_eager_graph_and_xla_agree(dtype, metrics):
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
    labels = labels_for(metrics[0].declaration.name, labels)
    values = []
    for compile_options in (None, {}, {"jit_compile": True}):
        metric = tfr.RankingMetrics(metrics)
        update = updater(metric)
        if compile_options is not None:
            update = tf.function(update, **compile_options)
        update(tf.constant(labels), tf.constant(scores), tf.constant(weights))
        values.append(results(metric))
    eager, graph, xla = values
    assert graph == pytest.approx(eager, rel=1e-6)
    assert xla == pytest.approx(eager, rel=1e-6)


# Those whose formulas have their own paths for unknown sizes.
OF_ANY_SIZE = ["ndcg", "map", "mrr", "err", "arp", "opa"]


@pytest.mark.parametrize(
    ("metrics", "jit_compile"),
    [
        (OF_LABELS, False),
        (OF_ANY_SIZE, True),
        (OF_SUBTOPICS, False),
        (OF_SUBTOPICS, True),
    ],
    ids=["labels", "labels-xla", "subtopics", "subtopics-xla"],
)
@pytest.mark.usefixtures("free_at_once")
def test_unknown_batch_and_list_size(metrics, jit_compile):
    labels, scores = random_lists(6, queries=11, size=9, ties=True)
    labels = labels_for(metrics[0], labels)
    names = [spelled(*pair) for pair in with_cutoffs(metrics, (None, 4))]
    metric = tfr.RankingMetrics(names)
    unknown = [
        tf.TensorSpec([None] * array.ndim, tf.float64) for array in (labels, scores)
    ]

    @tf.function(input_signature=unknown, jit_compile=jit_compile)
    def update(labels, scores):
        metric.update_state(labels, scores)

    update(labels[:8], scores[:8])
    update(labels[8:, :2], scores[8:, :2])
    labels, scores = ([*data[:8], *data[8:, :2]] for data in (labels, scores))
    expected = tfr.evaluate(labels, scores, names)
    assert results(metric) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("shape", [(3, 0), (0, 3)])
@pytest.mark.usefixtures("free_at_once")
def test_nothing_to_rank_in_a_graph(shape, jit_compile):
    metric = tfr.RankingMetrics([spelled(name, 3) for name in OF_ANY_SIZE])
    nothing = tf.zeros(shape)
    tf.function(updater(metric), jit_compile=jit_compile)(nothing, nothing)
    assert np.isnan(list(results(metric).values())).all()


def test_ragged_tensors_in_a_graph():
    metric = tfr.RankingMetrics(["ndcg", "mrr"])
    update = tf.function(updater(metric))
    labels = tf.ragged.constant([[0, 1], [2, 0, 1]])
    scores = tf.ragged.constant([[0.5, 0.1], [0.3, 0.2, 0.1]])
    update(labels, scores)
    expected = tfr.evaluate(labels, scores, ["ndcg", "mrr"])
    assert results(metric) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="as long as those of"):
        update(labels, tf.ragged.constant([[0.5, 0.1, 0.3], [0.3, 0.2]]))


@pytest.fixture(scope="module", params=[False, True], ids=["graph", "xla"])
def update_of_unknown_shapes(request):
    unknown = tf.TensorSpec((None, None))
    metric = tfr.MeanReciprocalRank()
    update = tf.function(
        updater(metric), input_signature=[unknown] * 3, jit_compile=request.param
    )
    update(tf.ones((2, 3)), tf.ones((2, 3)), tf.ones((2, 3)))
    update(tf.ones((2, 3)), tf.ones((2, 3)), tf.ones((2, 1)))
    return update, request.param


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
def test_shapes_that_only_the_run_shows_are_checked_then(
    labels, scores, weights, message, update_of_unknown_shapes
):
    update, is_xla = update_of_unknown_shapes
    # XLA does not run assertions, and has its own words for it.
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="-2" if is_xla else message
    ):
        update(tf.ones(labels), tf.ones(scores), tf.ones(weights))


def test_shapes_are_checked_while_tracing_where_they_are_known():
    metric = tfr.MeanReciprocalRank()
    with pytest.raises(ValueError, match="must be of the same shape"):
        tf.function(updater(metric))(tf.ones((2, 3)), tf.ones((2, 4)))
    with pytest.raises(ValueError, match="known number of dimensions"):
        tf.function(updater(metric), input_signature=[tf.TensorSpec(None)] * 2)(
            tf.ones((2, 3)), tf.ones((2, 3))
        )


@pytest.mark.parametrize(
    ("names", "sorts"),
    [
        (["map@10"], 1),
        (["ndcg@10"], 2),  # the ideal order needs one of its own
        (SUITE, 2),
        ([name for name in OF_LABELS if name != "opa"], 2),
    ],
)
def test_number_of_sorts(names, sorts):
    labels, scores = tf.ones((8, 30)), tf.ones((8, 30))
    metric = tfr.RankingMetrics(names)
    assert optimised_ops(updater(metric), labels, scores)["TopKV2"] == sorts


def test_separate_metrics_of_one_depth_share_their_sorts():
    labels, scores = tf.ones((8, 30)), tf.ones((8, 30))
    metrics = [
        tfr.NDCG(k=10),
        tfr.NDCG(k=10, gain="linear"),
        tfr.DCG(k=10),
        tfr.MeanAveragePrecision(k=10),
        tfr.MeanAveragePrecision(k=10, denominator="hits"),
        tfr.MeanReciprocalRank(k=10),
        tfr.PrecisionAtK(k=10),
        tfr.PrecisionAtK(k=10, relevance_threshold=2),
        tfr.RecallAtK(k=10),
        tfr.HitRateAtK(k=10),
    ]

    def update(labels, scores):
        for metric in metrics:
            metric.update_state(labels, scores)

    # One by score; and one by label, for the ideal order by either gain.
    assert optimised_ops(update, labels, scores)["TopKV2"] == 2


def test_changing_shapes_do_not_retrace():
    labels, scores = random_lists(0, queries=20, size=20)
    metric = tfr.DCG(k=3)
    metric.update_state(labels, scores)
    tfr.evaluate(labels, scores, [metric])
    before = compiled._compiled.cache_info().misses
    for queries, items in zip(range(1, 20), range(20, 1, -1)):
        metric.update_state(labels[:queries, :items], scores[:queries, :items])
        tfr.evaluate(labels[:queries, :items], scores[:queries, :items], [metric])
    assert before >= 2  # one graph for updates, one for evaluate
    assert compiled._compiled.cache_info().misses == before


def test_sums_stay_exact_over_many_updates():
    """From the state after 10^8 queries of value 0.1, single updates still count."""
    seen, more = 10**8, 20_000
    metric = tfr.MeanReciprocalRank()
    metric.variables[0].assign([[0.1 * seen, float(seen)]])
    labels, scores = tf.constant([[1.0, 0.0]]), tf.constant([[2.0, 1.0]])

    @tf.function
    def update_many():
        for _ in tf.range(more):
            metric.update_state(labels, scores)

    update_many()
    total, weight = tf.convert_to_tensor(metric.variables[0]).numpy()[0]
    assert weight == seen + more
    assert total == pytest.approx(0.1 * seen + more, rel=1e-12)
    exact = (0.1 * seen + more) / (seen + more)
    assert float(metric.result()) == pytest.approx(exact, rel=1e-6)
    # What a float32 state would have kept of these updates: nothing.
    assert np.float32(seen) + np.float32(1) == np.float32(seen)


def test_a_whole_metric_is_a_few_numbers():
    metric = tfr.RankingMetrics(SUITE)
    for _ in range(3):
        metric.update_state(np.ones((50, 4)), np.ones((50, 4)))
    sizes = [math.prod(variable.shape) for variable in metric.variables]
    assert sizes == [2 * len(SUITE)]
