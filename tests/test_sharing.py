"""Tests what the metrics of one graph share, and that they share nothing else."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf
from cases import make_metric, random_lists
from helpers import SUITE, XLA, assert_same, results, run_as

import tfrankmetrics as trm


def separate_metrics():
    """The suite as ten metric objects."""
    return [
        make_metric(kind, int(k), dtype="float64")
        for kind, k in (name.split("@") for name in SUITE)
    ]


def traced(metrics, *specs):
    """A function that updates all metrics, traced."""

    def update(*arguments):
        for metric in metrics:
            metric.update_state(*arguments)

    return tf.function(update, autograph=False).get_concrete_function(*specs)


def number_of_nodes(function):
    """The nodes of a graph and of its branches."""
    definition = function.graph.as_graph_def()
    inner = (len(branch.node_def) for branch in definition.library.function)
    return len(definition.node) + sum(inner)


@pytest.mark.parametrize("size", [20, None])
def test_separate_metrics_trace_little_more_than_one_object(size):
    specs = [tf.TensorSpec([None, size])] * 2
    separate = number_of_nodes(traced(separate_metrics(), *specs))
    together = number_of_nodes(traced([trm.RankingMetrics(SUITE)], *specs))
    assert separate <= 1.5 * together


def test_the_graph_of_the_suite_stays_small():
    """Each node takes some 0.3 ms of the first epoch, and each branch some 5 ms."""
    function = traced([trm.RankingMetrics(SUITE)], *[tf.TensorSpec([None, 20])] * 2)
    assert number_of_nodes(function) <= 740
    # Two branches for NaN, for the groups of ties, and for each of four kinds of means.
    assert len(function.graph.as_graph_def().library.function) <= 12


@pytest.mark.parametrize("way", ["graph", XLA])
@pytest.mark.parametrize("ties", [False, True])
def test_separate_metrics_have_the_values_of_one_object(ties, way):
    labels, scores = random_lists(2, queries=20, size=20, ties=ties)
    metrics = separate_metrics()

    def update(labels, scores):
        for metric in metrics:
            metric.update_state(labels, scores)

    run_as(way, update)(labels, scores)
    expected = trm.evaluate(labels, scores, SUITE)
    found = {n: float(m.result()) for n, m in zip(SUITE, metrics, strict=True)}
    assert found == pytest.approx(expected, rel=1e-12)


def test_other_tensors_are_ranked_again():
    labels, scores = random_lists(5, queries=10, size=6)
    first, second, weighted = (trm.MeanReciprocalRank(dtype="float64") for _ in "123")
    weights = np.arange(1.0, 11.0)

    @tf.function
    def update(labels, scores, weights):
        first.update_state(labels, scores)
        second.update_state(labels, -scores)
        weighted.update_state(labels, scores, weights)

    update(labels, scores, weights)
    for metric, scores_of, weights_of in (
        (first, scores, None),
        (second, -scores, None),
        (weighted, scores, weights),
    ):
        value = trm.evaluate(labels, scores_of, ["mrr"], sample_weight=weights_of)
        assert float(metric.result()) == pytest.approx(value["mrr"], rel=1e-12)


def test_other_input_formats_are_read_again():
    """Labels, ids and the scores of a catalog may be the same two tensors."""
    relevant, ranked = tf.constant([[0, 1], [1, -1]]), tf.constant([[1, 1], [1, 3]])
    forms = [{}, {"inputs": "ids"}, {"inputs": "ids", "duplicates": "all"}]
    forms.append({"inputs": "catalog"})
    metrics = [trm.RankingMetrics(["mrr", "precision"], **form) for form in forms]

    @tf.function
    def update(relevant, ranked):
        for metric in metrics:
            metric.update_state(relevant, ranked)

    update(relevant, ranked)
    for form, metric in zip(forms, metrics, strict=True):
        assert results(metric) == pytest.approx(
            trm.evaluate(relevant, ranked, ["mrr", "precision"], **form), rel=1e-6
        )


@pytest.mark.parametrize("with_tensor", [False, True])
def test_a_changed_array_is_read_again(with_tensor):
    """A graph is traced with the content that an array has at that time."""
    labels = np.array([[1.0, 0.0]])
    y_true = {"labels": labels, "mask": tf.constant([[True, True]])}
    y_true = y_true if with_tensor else labels
    first, second = trm.MeanReciprocalRank(), trm.MeanReciprocalRank()

    @tf.function
    def update(scores):
        labels[:] = [[1.0, 0.0]]
        first.update_state(y_true, scores)
        labels[:] = [[0.0, 1.0]]
        second.update_state(y_true, scores)

    update(tf.constant([[2.0, 1.0]]))
    assert (first.result(), second.result()) == (1.0, 0.5)


def test_branches_and_loops_share_nothing_with_the_outside():
    labels, scores = random_lists(6, queries=4, size=5)
    names = ["before", "in_branch", "in_other_branch", "in_loop", "after"]
    metrics = {name: trm.RankingMetrics(["ndcg@3", "map"]) for name in names}

    @tf.function
    def update(labels, scores, which):
        if which:
            metrics["in_branch"].update_state(labels, scores)
        else:
            metrics["in_other_branch"].update_state(labels, scores)
        metrics["before"].update_state(labels, scores)
        for _ in tf.range(3):
            metrics["in_loop"].update_state(labels, scores)
            scores = -scores
        metrics["after"].update_state(labels, scores)

    update(labels, scores, tf.constant(True))
    update(labels, scores, tf.constant(False))
    ascending, descending = (
        trm.evaluate(labels, each, ["ndcg@3", "map"]) for each in (-scores, scores)
    )
    assert_same(results(metrics["before"]), descending)
    assert_same(results(metrics["in_branch"]), descending)
    assert_same(results(metrics["in_other_branch"]), descending)
    assert_same(results(metrics["after"]), ascending)
    in_loop = {n: (2 * descending[n] + ascending[n]) / 3 for n in descending}
    assert_same(results(metrics["in_loop"]), in_loop)


def test_replicas_share_nothing():
    labels, scores = random_lists(7, queries=8, size=5)
    devices = tf.config.list_logical_devices("CPU")
    strategy = tf.distribute.MirroredStrategy([devices[0].name])
    with strategy.scope():
        metrics = [trm.NDCG(k=3, dtype="float64"), trm.NDCG(k=2, dtype="float64")]

    def update(labels, scores):
        for metric in metrics:
            metric.update_state(labels, scores)

    tf.function(lambda *batch: strategy.run(update, batch))(labels, scores)
    found = [float(metric.result()) for metric in metrics]
    expected = trm.evaluate(labels, scores, ["ndcg@3", "ndcg@2"])
    assert found == pytest.approx([*expected.values()], rel=1e-12)


def test_a_graph_is_freed():
    specs = [tf.TensorSpec([None, 20])] * 2
    metric = trm.RankingMetrics(SUITE)
    function = traced([metric], *specs)
    graph = weakref.ref(function.graph)
    del function
    gc.collect()
    assert graph() is None


@pytest.mark.slow("measures the memory of four hundred calls")
def test_hundreds_of_option_sets_take_little_memory():
    """Each set is used twice. Graphs of all sets would take some 1 GB."""
    import resource

    labels, scores = tf.constant([[1.0, 0.0]]), tf.constant([[1.0, 2.0]])

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000

    def evaluate(number):
        for _ in range(2):
            trm.evaluate(labels, scores, ["rbp"], persistence=0.1 + number / 1e4)

    for number in range(10):
        evaluate(number)
    before = peak()
    for number in range(200):
        evaluate(number)
    assert peak() - before < 100
