"""Tests the state of a metric: threads, copies, merges, checkpoints and backups.

Like `test_keras.py`, these tests run on Keras 2 and on each backend of Keras 3.
"""

import concurrent.futures
import copy
import multiprocessing
import pickle

import numpy as np
import pytest
from cases import CASES, labels_for, random_lists
from keras_backend import (
    DTYPE,
    IS_KERAS_3,
    IS_TENSORFLOW,
    ONLY_TENSORFLOW,
    PRECISION,
    keras,
    results,
)

import tfrankmetrics as trm
from tfrankmetrics.inputs import mistakes

if IS_TENSORFLOW:
    import tensorflow as tf

NAMES = ["ndcg@3", "map", "mrr"]
LABELS, SCORES = random_lists(0)
WEIGHTS = np.random.default_rng(0).uniform(size=len(LABELS))
FIRST, SECOND = slice(0, 5), slice(5, None)


def in_threads(function, arguments):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(pool.map(function, arguments))


def sums(metric):
    """The sums of weight * value and of weight of the first metric, in float64."""
    (variable,) = metric.variables[:1]
    if IS_TENSORFLOW:
        return np.asarray(variable)[0]
    # Three float32 numbers for each.
    return keras.ops.convert_to_numpy(variable)[0].astype("float64").sum(axis=-1)


def part(labels, queries):
    return labels[queries], SCORES[queries], WEIGHTS[queries]


# Threads and processes


@pytest.mark.parametrize("way", ["eager", pytest.param("graph", marks=ONLY_TENSORFLOW)])
def test_threads_that_share_a_metric_lose_no_updates(way):
    """In Keras 3, `keras.metrics.Mean` loses up to half of these updates."""
    metric = trm.RankingMetrics(NAMES, dtype=DTYPE)

    def update():
        metric.update_state(LABELS, SCORES, WEIGHTS)

    if way == "graph":
        update = tf.function(update)
    update()
    in_threads(lambda _: [update() for _ in range(100)], range(8))
    _, weight = sums(metric)
    assert weight == pytest.approx(801 * WEIGHTS.sum(), rel=1e-12)
    assert results(metric) == pytest.approx(
        trm.evaluate(LABELS, SCORES, NAMES, sample_weight=WEIGHTS), rel=PRECISION
    )


def test_threads_with_metrics_of_their_own():
    def run(seed):
        metric = trm.RankingMetrics(["ndcg@4", "map", "mrr"], dtype=DTYPE)
        for _ in range(20):  # the first of them compile, in all threads at once
            metric.update_state(*random_lists(seed))
        return results(metric)

    for seed, found in enumerate(in_threads(run, range(8))):
        reference = trm.evaluate(*random_lists(seed), [*found])
        assert found == pytest.approx(reference, rel=PRECISION)


def test_evaluate_in_threads():
    def run(seed):
        labels, scores = random_lists(seed, queries=seed % 5 + 1, size=seed % 7 + 1)
        return trm.evaluate(labels, scores, NAMES, mask=labels >= 0)

    found = in_threads(run, range(160))
    assert found == [run(seed) for seed in range(160)]


@ONLY_TENSORFLOW
@pytest.mark.slow("starts a process that imports TensorFlow")
def test_evaluate_in_a_process_that_was_spawned():
    """In a process that was forked after TensorFlow ran a graph, it waits forever."""
    with concurrent.futures.ProcessPoolExecutor(
        1, mp_context=multiprocessing.get_context("spawn")
    ) as pool:
        found = pool.submit(trm.evaluate, LABELS, SCORES, NAMES).result(timeout=120)
    assert found == trm.evaluate(LABELS, SCORES, NAMES)


# Copies and merges


@pytest.mark.parametrize("ties", ["expected", "stable"])
@pytest.mark.parametrize(
    "make_copy",
    [copy.deepcopy, lambda metric: pickle.loads(pickle.dumps(metric))],
    ids=["deepcopy", "pickle"],
)
def test_a_copy_in_mid_epoch_goes_on_by_itself(make_copy, ties):
    labels, scores = random_lists(0, ties=True)
    metric = trm.RankingMetrics(NAMES, ties=ties)
    metric.update_state(labels[FIRST], scores[FIRST])
    before = results(metric)
    duplicate = make_copy(metric)
    metric.update_state(labels[SECOND], scores[SECOND])
    assert results(duplicate) == before != results(metric)
    duplicate.update_state(labels[SECOND], scores[SECOND])
    assert results(duplicate) == results(metric)


def test_a_state_is_loaded_by_a_version_that_counts_more_facts(monkeypatch):
    metric = trm.RankingMetrics(NAMES)
    metric.update_state(LABELS[FIRST], SCORES[FIRST])
    pickled, value = pickle.dumps(metric), results(metric)
    stored = {}
    if not IS_KERAS_3:  # it saves the state of metrics with a model
        metric.save_own_variables(stored)

    monkeypatch.setitem(mistakes.LABEL_FACTS, "twos", lambda labels: labels == 2)
    monkeypatch.setitem(mistakes.LABEL_FACTS, "threes", lambda labels: labels == 3)
    newer = trm.RankingMetrics(NAMES)
    assert newer.variables[0].shape != metric.variables[0].shape
    assert results(pickle.loads(pickled)) == value
    if not IS_KERAS_3:
        newer.load_own_variables(stored)
        assert results(newer) == value


def test_a_pickle_is_loaded_with_every_backend():
    """It holds the sums as float64 `[rows, 2]`, whatever the variables are."""
    metric = trm.RankingMetrics(["mrr"], num_queries=True)
    metric.update_state([[1, 0], [0, 1]], [[2, 1], [2, 1]], [0.1, 0.2])
    restore, (cls, config, state), *_ = metric.__reduce__()
    assert state.dtype == np.float64
    np.testing.assert_array_equal(state, [[0.1 + 0.1, 0.1 + 0.2], [2, 2]])
    again = restore(cls, config, state)
    np.testing.assert_array_equal(again.__reduce__()[1][2], state)


@pytest.mark.usefixtures("run_eagerly")
def test_merged_parts_equal_the_whole():
    for case in CASES:
        labels = labels_for(case.name, LABELS)
        whole, first, second, third = (case.metric(k=3, dtype=DTYPE) for _ in "1234")
        whole.update_state(labels, SCORES, WEIGHTS)
        first.update_state(*part(labels, FIRST))
        second.update_state(*part(labels, SECOND))
        first.merge_state([second, third])
        value = float(whole.result())
        assert float(first.result()) == pytest.approx(value, rel=PRECISION), case
    first.reset_state()
    assert np.isnan(float(first.result()))


def test_the_state_stays_exact_over_many_updates():
    metric = trm.MeanReciprocalRank()
    metric.update_state([[1, 0]], [[2.0, 1.0]], sample_weight=1e8)
    expected = np.array([1e8, 1e8])
    for _ in range(100):
        metric.update_state([[0, 1]], [[2.0, 1.0]], sample_weight=0.1)
        expected += [0.05, 0.1]
    assert sums(metric).tolist() == expected.tolist()


def test_a_result_that_overflows_the_dtype_of_the_metric_is_nan():
    metric = trm.DCG(dtype="float16", gain="exponential")
    metric.update_state([[20, 1]], [[2.0, 1.0]])
    assert "float16" in str(metric.result().dtype)
    assert np.isnan(float(metric.result()))  # 2^20 is more than a float16 holds


def test_merged_ranking_metrics_may_have_other_prefixes():
    first = trm.RankingMetrics(NAMES, prefix="a_", dtype=DTYPE)
    second = trm.RankingMetrics(NAMES, prefix="b_", dtype=DTYPE)
    first.update_state(*part(LABELS, FIRST))
    second.update_state(*part(LABELS, SECOND))
    first.merge_state([second])
    reference = trm.evaluate(LABELS, SCORES, NAMES, sample_weight=WEIGHTS)
    assert results(first) == pytest.approx(
        {f"a_{name}": value for name, value in reference.items()}, rel=PRECISION
    )


@pytest.mark.parametrize(
    ("into", "other", "difference"),
    [
        (trm.NDCG(), trm.DCG(), r"Received: dcg \(.* into ndcg \("),
        (trm.NDCG(k=3), trm.NDCG(k=5), r"Received: ndcg@5 \(.* into ndcg@3 \("),
        (trm.NDCG(), trm.NDCG(gain="linear"), "gain='linear'.*gain='exponential'"),
        (trm.NDCG(), trm.NDCG(inputs="ids"), "inputs='ids'.* into inputs='labels'"),
        (trm.RankingMetrics(["map", "mrr"]), trm.RankingMetrics(["mrr", "map"]), r"Received: mrr \(.* into map \("),
        (trm.RankingMetrics(["map"]), trm.RankingMetrics(["map", "mrr"]), r"Received: mrr \(.* into nothing"),
        (trm.NDCG(), keras.metrics.Mean(), "metrics of tfrankmetrics"),
        (
            trm.NDCG(),
            trm.NDCG(gain=np.sqrt),  # without its address
            r"functions .* the same object\. Received: ndcg \(gain=sqrt, ",
        ),
    ],
)  # fmt: skip
def test_metrics_that_compute_something_else_are_not_merged(into, other, difference):
    equal = type(into).from_config(into.get_config())
    equal.update_state([[1, 0]], [[2, 1]])
    with pytest.raises(ValueError, match=difference):
        into.merge_state([equal, other])
    assert not sums(into).any()


@pytest.mark.skipif(not IS_KERAS_3, reason="Keras 2 has no stateless calls")
def test_stateless_calls_leave_the_state_alone():
    metric = trm.MeanReciprocalRank()
    state = [variable.value + 0 for variable in metric.variables]
    for _ in range(2):
        state = metric.stateless_update_state(state, [[0, 1]], [[2.0, 1.0]])
    assert float(metric.stateless_result(state)) == 1 / 2
    assert not sums(metric).any()


# Checkpoints and backups


@ONLY_TENSORFLOW
def test_a_checkpoint_of_the_variables_restores_a_metric(tmp_path):
    metric, restored = trm.RankingMetrics(NAMES), trm.RankingMetrics(NAMES)
    metric.update_state(LABELS, SCORES)
    path = tf.train.Checkpoint(state=list(metric.variables)).save(tmp_path / "state")
    checkpoint = tf.train.Checkpoint(state=list(restored.variables))
    checkpoint.restore(path).assert_consumed()
    assert results(restored) == results(metric)


def reciprocal_rank(labels, scores):
    """Of lists with one relevant item, the last one, without ties."""
    is_above = scores >= scores[:, -1:]
    if not IS_KERAS_3:
        return 1 / tf.reduce_sum(tf.cast(is_above, DTYPE), axis=1)
    return 1 / keras.ops.sum(keras.ops.cast(is_above, DTYPE), axis=1)


class Interruption(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == 4:
            raise KeyboardInterrupt


def train(*callbacks):
    """Trains for an epoch of 8 batches. Returns the MRR by this library and by Keras."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(32, 6)).astype("float32")
    labels = np.eye(6, dtype="float32")[np.full(32, 5)]
    keras.utils.set_random_seed(1)
    inputs = keras.Input((6,))
    model = keras.Model(inputs, keras.layers.Dense(6)(inputs))
    control = keras.metrics.MeanMetricWrapper(
        reciprocal_rank, name="control", dtype=DTYPE
    )
    model.compile(
        loss="mse",
        optimizer=keras.optimizers.SGD(0.3),
        metrics=[trm.MeanReciprocalRank(dtype=DTYPE), control],
    )
    options = {"batch_size": 4, "shuffle": False, "verbose": 0}
    history = model.fit(features, labels, callbacks=list(callbacks), **options).history
    return history["mrr"][0], history["control"][0]


@pytest.mark.parametrize("save_freq", ["epoch", 2])
def test_an_epoch_that_was_resumed_has_the_value_of_keras(tmp_path, save_freq):
    def backup():
        return keras.callbacks.BackupAndRestore(tmp_path, save_freq=save_freq)

    with pytest.raises(KeyboardInterrupt):
        train(backup(), Interruption())
    ours, control = train(backup())
    assert ours == pytest.approx(control, rel=PRECISION)
    uninterrupted, _ = train()
    if save_freq == "epoch":
        assert ours == pytest.approx(uninterrupted, rel=PRECISION)
    else:
        # Keras repeats batches with later weights, or forgets those before the backup.
        assert abs(ours - uninterrupted) > 1e-3
