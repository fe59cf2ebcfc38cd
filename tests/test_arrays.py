"""Tests that all array libraries return the same values, and when each is used."""

import numpy as np
import pytest
import tensorflow as tf
from cases import (
    LABEL_METRICS,
    SUBTOPIC_METRICS,
    cases_of_metrics,
    labels_for,
    random_lists,
)
from helpers import XLA, metrics_with_ties, run_as, run_eagerly
from operations import CALLS, require_what_numpy_computes

import tfrankmetrics as trm
import tfrankmetrics.arrays as xp


def lists_with(kind, name):
    """Labels, scores and other arguments of lists with a kind of difficulty."""
    labels, scores = random_lists(5, queries=25, size=15, ties=kind != "no ties")
    labels, rng = labels_for(name, labels), np.random.default_rng(0)
    options = {}
    if kind == "NaN, infinity, masks":
        scores = scores.copy()
        odd = rng.random(scores.shape)
        scores[odd < 0.1], scores[odd > 0.95] = np.nan, -np.inf
        options["mask"] = rng.random(scores.shape) < 0.8
    if kind == "weights of items":
        options["sample_weight"] = rng.random(scores.shape)
    if kind == "weights of queries":
        options["sample_weight"] = rng.random(len(scores))
    return labels, scores, options


KINDS = ["no ties", "ties", "NaN, infinity, masks", "weights of items"]
KINDS += ["weights of queries"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [LABEL_METRICS, SUBTOPIC_METRICS])
@pytest.mark.filterwarnings("ignore:`judged` requires a mask")
def test_numpy_and_tensorflow_give_the_same_values(names, kind):
    objects = [case.metric(3, name=str(case)) for case in cases_of_metrics(names)]
    labels, scores, options = lists_with(kind, objects[0].declaration.name)
    with run_eagerly():
        found = trm.evaluate(labels, scores, objects, per_query=True, **options)
        expected = trm.evaluate(
            tf.constant(labels), tf.constant(scores), objects, per_query=True, **options
        )
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, 1e-13, err_msg=name)


@pytest.mark.filterwarnings("ignore:`judged` requires a mask")
@pytest.mark.parametrize("ties", ["stable", "best", "worst"])
def test_numpy_and_tensorflow_break_ties_alike(ties):
    labels, scores = random_lists(5, queries=25, size=15, ties=True)
    objects = metrics_with_ties(LABEL_METRICS, ties)
    with run_eagerly():
        found = trm.evaluate(labels, scores, objects, per_query=True)
        labels = tf.constant(labels)
        expected = trm.evaluate(labels, scores, objects, per_query=True)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, 1e-13, err_msg=name)


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float16", "float32", "float64", "int8", "int64", "uint32"]
)
def test_numpy_and_tensorflow_read_the_same_dtypes(dtype):
    dtype = tf.as_dtype(dtype)
    labels, scores = random_lists(0, queries=5, size=9, ties=True)
    labels = tf.cast(np.maximum(labels, 0), dtype)
    scores = tf.cast(9 * scores + 99, dtype)
    names = ["ndcg", "map@3", "tied@5", "arp"]
    found = trm.evaluate(labels.numpy(), scores.numpy(), names)
    assert found == pytest.approx(trm.evaluate(labels, scores, names), rel=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_denormal_numbers_are_zero_in_both_libraries(dtype):
    tiny = np.finfo(dtype).tiny
    labels = np.array([[0, tiny / 4, tiny, 1]], dtype)
    scores = np.array([[tiny, 0, tiny / 4, -tiny / 4]], dtype)
    names = ["dcg", "ndcg", "tied@4", "arp"]
    found = trm.evaluate(labels, scores, names, gain="linear")
    expected = trm.evaluate(tf.constant(labels), scores, names, gain="linear")
    assert found == pytest.approx(expected, rel=1e-13)
    assert found["tied@4"] == 1


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([[1.0, 0.0]], np.ndarray),
        (np.array([[1.0, 0.0]]), np.ndarray),
        ([[1.0, 0.0], [2.0]], np.ndarray),
        (tf.constant([[1.0, 0.0]]), tf.Tensor),
        (tf.ragged.constant([[1.0, 0.0], [2.0]]), tf.Tensor),
    ],
)
def test_the_arguments_decide_which_library_computes(labels, kind):
    received = []

    def gain(values):
        received.append(values)
        return values

    trm.evaluate(labels, labels, ["dcg"], gain=gain)
    assert received
    assert all(isinstance(values, kind) for values in received)


@pytest.mark.parametrize(
    ("relevant", "other", "inputs"),
    [([[1]], [[3, 1]], "ids"), ([[1]], [[0.5, 0.2]], "catalog")],
)
def test_numpy_computes_ids_and_catalogs(relevant, other, inputs):
    received = []

    def discount(ranks):
        received.append(type(ranks))
        return 1 / ranks

    for relevant_ids, kind in ((relevant, np.ndarray), (tf.constant(relevant), None)):
        received.clear()
        trm.evaluate(relevant_ids, other, ["dcg"], inputs=inputs, discount=discount)
        assert all((each is np.ndarray) == (kind is not None) for each in received)


def test_a_table_is_computed_by_numpy_and_a_metric_object_by_tensorflow():
    received = []

    def gain(values):
        received.append(type(values))
        return values

    trm.evaluate_rows([1, 1], [1, 0], [0.5, 0.2], ["dcg"], gain=gain)
    assert {*received} == {np.ndarray}
    received.clear()
    trm.DCG(gain=gain).update_state([[1, 0]], [[0.5, 0.2]])
    assert all(issubclass(kind, tf.Tensor) for kind in received)


def test_every_operation_has_calls():
    assert {*CALLS} == {*xp.OPERATIONS.split()}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("way", ["numpy", "eager", "graph", XLA])
def test_operations_compute_what_numpy_does(way, name):
    """`test_keras_backends.py` tests those of JAX and PyTorch."""
    if way == "numpy":
        return require_what_numpy_computes(name, np.asarray)
    require_what_numpy_computes(name, tf.constant, lambda call: run_as(way, call))


@pytest.mark.parametrize(
    ("name", "hint"),
    [("power", "Did you mean 'pow'?"), ("sqr", "'sqrt'"), ("load", ""), ("cumsum", "")],
)
def test_an_unknown_operation_names_the_list(name, hint):
    error = rf"operations of `xp`. Received: '{name}'\..*{hint}"
    with pytest.raises(AttributeError, match=error):
        getattr(xp, name)
