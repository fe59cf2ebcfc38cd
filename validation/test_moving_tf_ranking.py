"""Compares the migration pages with TF-Ranking and TensorFlow Recommenders."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_ranking
import tensorflow_recommenders as tfrs
from moving_pages import (
    assert_calls_are_true,
    assert_options_are_true,
    assert_pairs_agree,
    assert_weighted_values_are_true,
    run_page,
)

import tfrankmetrics as trm


def test_page_of_tf_ranking():
    page = run_page("moving/tf-ranking")
    assert_pairs_agree(page.pairs, 1e-6)

    def arrays(call, names, labels=None):
        if "ragged" in call:
            return names["ragged_labels"], names["ragged_scores"]
        labels = np.array(names["labels"] if labels is None else labels, "f4")
        if call.startswith(("AlphaDCG", "PrecisionIA", "alpha_dcg", "precision_ia")):
            labels = np.stack([labels > 0, labels > 1], axis=2).astype("f4")
        return labels, names["scores"].numpy()

    def theirs(call, names, tool):
        found = eval(call, {**vars(tensorflow_ranking.keras.metrics), **names})
        if not hasattr(found, "update_state"):
            return found
        found.update_state(*arrays(call, names))
        return found.result()

    def ours(metric, names, call, has_convention):
        options = {"convention": "tf_ranking"} if has_convention else {}
        return trm.evaluate(*arrays(call, names), [metric], **options)

    def their_weighted(call, labels, names, weights):
        metric = eval(call, {**vars(tensorflow_ranking.keras.metrics), **names})
        metric.update_state(*arrays(call, names, labels), tf.constant(weights))
        return metric.result()

    def our_weighted(metric, labels, names, weights, has_convention):
        options = {"convention": "tf_ranking"} if has_convention else {}
        lists = arrays(metric, names, labels)
        return trm.evaluate(*lists, [metric], sample_weight=weights, **options)

    assert_calls_are_true(page, theirs, ours, 1e-6)
    assert_options_are_true(page, theirs, ours, 1e-6)
    assert_weighted_values_are_true(page, their_weighted, our_weighted)


@pytest.mark.parametrize("key", ["precision_ia", "alpha_dcg"])
def test_get_of_tf_ranking_refuses_metrics_of_subtopics(key):
    with pytest.raises(ValueError, match="Unsupported metric"):
        tensorflow_ranking.keras.metrics.get(key)


def test_page_of_tensorflow_recommenders():
    page = run_page("moving/keras-rs-tfrs", "TensorFlow Recommenders")
    assert_pairs_agree(page.pairs, 1e-6)
    names = page.names
    queries, candidates, relevant = (
        names[name] for name in ["queries", "candidates", "relevant"]
    )
    layers = tfrs.layers.factorized_top_k
    weights = np.arange(100.0)
    metric = tfrs.metrics.FactorizedTopK(
        layers.Streaming().index_from_dataset(names["dataset"]), ks=[10]
    )
    metric.update_state(queries, candidates[relevant], sample_weight=weights)
    seen = np.tile(np.arange(200, 600, dtype="i4"), (100, 1))
    index = layers.BruteForce(k=10).index(candidates)
    _, found = index.query_with_exclusions(queries, exclusions=seen)
    is_hit = np.any(found.numpy() == relevant[:, np.newaxis], axis=1)
    theirs = [float(metric.result()[0]), is_hit.mean()]
    ours = [
        trm.evaluate_retrieval(
            queries, candidates, relevant, ["hit_rate@10"], convention="tfrs", **options
        )["hit_rate@10"]
        for options in [{}, {"sample_weight": weights}, {"exclude": seen}]
    ]
    assert len({*ours}) == 3
    assert ours[1:] == pytest.approx(theirs, rel=1e-6)


def test_names_in_the_logs_of_tensorflow_recommenders():
    candidates = tf.data.Dataset.from_tensor_slices(np.eye(12, dtype="f4")).batch(4)
    metric = tfrs.metrics.FactorizedTopK(candidates, ks=[10])
    (mean,) = metric.metrics
    assert mean.name == "factorized_top_k/top_10_categorical_accuracy"


def test_batch_metrics_of_tensorflow_recommenders():
    random = np.random.default_rng(0)
    queries = random.normal(size=(40, 4)).astype("f4")
    candidates = queries + random.normal(size=(40, 4)).astype("f4")
    theirs = tf.keras.metrics.TopKCategoricalAccuracy(k=5)
    tfrs.tasks.Retrieval(batch_metrics=[theirs])(queries, candidates)
    ours = trm.evaluate(
        np.arange(40), queries @ candidates.T, ["hit_rate@5"], inputs="catalog"
    )
    assert 0 < ours["hit_rate@5"] < 1
    assert ours["hit_rate@5"] == pytest.approx(float(theirs.result()))
