"""Tests this library on inputs for which other metrics libraries give wrong results.

Each test names the tools that have the problem. Other modules test problems that need
more than one input: float32 sums that stop counting, repeated sorts and growing memory
(`test_graph.py`), lost names and keys, ragged inputs, replicas (`test_keras.py`,
`test_inputs.py`) and padding that changes the value (`docs/conventions.md`).
"""

import math
from typing import get_args

import numpy as np
import pytest
import tensorflow as tf
from cases import LABEL_METRICS, METRICS, SUBTOPIC_METRICS, labels_for, make_metric
from helpers import (
    XLA,
    judged_without_mask,
    results,
    run_as,
    update_function,
    value,
)

import tfrankmetrics as tfr


@pytest.mark.parametrize("names", [LABEL_METRICS, SUBTOPIC_METRICS])
@pytest.mark.usefixtures("run_eagerly")
def test_tied_scores_always_give_the_same_value(names):
    """TF-Ranking, keras-rs: NDCG@1 of constant scores is 0 or 1 at random."""
    labels, scores = labels_for(names[0], [[1, 0, 0, 0, 0]]), [[0.5] * 5]
    metrics = [
        make_metric(name, 1, ties=ties, name=f"{name}, ties={ties}")
        for name in names
        for ties in get_args(METRICS[name].types["ties"])
    ]
    collection, values = tfr.RankingMetrics(metrics), []
    for _ in range(12):
        collection.reset_state()
        collection.update_state(labels, scores)
        values.append(results(collection))
    for name in values[0]:
        assert len({each[name] for each in values}) == 1, name


@pytest.mark.parametrize("name", ["hit_rate", "precision", "recall", "mrr", "ndcg"])
@pytest.mark.parametrize("place", [0, 3, 4])
def test_constant_scores_are_not_perfect(name, place):
    """Keras's TopK metrics, TFRS, sorted lists: up to 1. TFMA favors the last item."""
    labels = np.eye(5)[[place]]
    for score in (0.0, 1.0, float("nan")):
        assert value(name, labels, np.full((1, 5), score), k=1) == pytest.approx(1 / 5)


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_cutoff_inside_a_tie_gives_the_mean_over_all_orders(place):
    """keras-rs: 0 or 1/2 at random. torchmetrics, sorted lists: by place in the list."""
    labels = np.eye(4)[[place]]
    result = value("precision", labels, [[3.0, 2.0, 2.0, 2.0]], k=2)
    assert result == pytest.approx((1 / 2 + 0 + 0) / 3)


WEIGHTED = ([[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]], [[10.0], [1.0], [1.0], [3.0]])


def test_batch_size_does_not_change_weights():
    """TF-Ranking, keras-rs: lists without relevant items get the batch's mean weight."""
    labels, weights = map(np.array, WEIGHTED)
    scores = np.tile([3.0, 2.0, 1.0], (4, 1))
    expected = (10 * 1 + 1 / math.log2(3) + 1 * 0 + 3 / math.log2(4)) / 15
    for size in (4, 2, 1):
        metric = tfr.NDCG()
        for start in range(0, 4, size):
            part = slice(start, start + size)
            metric.update_state(labels[part], scores[part], weights[part])
        assert float(metric.result()) == pytest.approx(expected, rel=1e-6)


def test_number_of_replicas_does_not_change_weights():
    labels, weights = map(np.array, WEIGHTED)
    scores = np.tile([3.0, 2.0, 1.0], (4, 1))
    devices = [device.name for device in tf.config.list_logical_devices("CPU")][:2]
    values = []
    for names in (devices[:1], devices):
        strategy = tf.distribute.MirroredStrategy(names)
        with strategy.scope():
            metric = tfr.NDCG()
        size = 4 // len(names)

        def part(array, size=size, strategy=strategy):
            return strategy.experimental_distribute_values_from_function(
                lambda context: tf.constant(
                    array[context.replica_id_in_sync_group * size :][:size]
                )
            )

        @tf.function
        def update(*parts, strategy=strategy, metric=metric):
            strategy.run(metric.update_state, parts)

        update(part(labels), part(scores), part(weights))
        values.append(float(metric.result()))
    assert len(devices) == 2
    assert values[0] == values[1]


def test_a_list_with_only_padding_does_not_count():
    """TF-Ranking: the list counts as 0, so the mean with a perfect list is 0.5."""
    assert value("ndcg", [[1, 0], [-1, -1]], [[2, 1], [2, 1]]) == 1.0


def test_padding_has_no_gain():
    """TF-Ranking, TFMA: padding adds gain(0) or gain(-1)."""
    options = {"gain": lambda labels: labels + 1}
    alone = value("ndcg", [[1, 0, 2]], [[3, 2, 1]], **options)
    padded = [[1, 0, 2, -1, -1, -1]], [[3, 2, 1, 4, 0, 0]]
    assert value("ndcg", *padded, **options) == pytest.approx(alone)


def test_query_weights_are_not_broadcast_over_items():
    """TF-Ranking: silently wrong if there are as many items as queries."""
    labels, scores = np.eye(3), np.tile([3.0, 2.0, 1.0], (3, 1))
    expected = (3 * 1 + 1 / 2 + 2 / 3) / 6
    for weights in ([3, 1, 2], [[3], [1], [2]]):
        assert value("mrr", labels, scores, sample_weight=weights) == pytest.approx(
            expected
        )


def test_weights_of_another_shape_raise():
    """keras-rs: weights of shape (1, 3) are accepted for lists of shape (2, 3)."""
    with pytest.raises(ValueError, match="sample_weight"):
        value("mrr", np.eye(2, 3), np.eye(2, 3), sample_weight=np.ones((1, 3)))


@pytest.mark.filterwarnings("ignore:A weight of 0 does not mask")
def test_items_with_weight_0_keep_their_ranks():
    """TF-Ranking, keras-rs: the value is 1.0 for weight 0, but 1/3 for weight 1e-6."""
    for weight in (0.0, 1e-6, 1.0):
        weights = [[weight, weight, 1.0]]
        assert value(
            "mrr", [[0, 0, 1]], [[3, 2, 1]], sample_weight=weights
        ) == pytest.approx(1 / 3)


@pytest.mark.parametrize("way", ["graph", XLA])
@pytest.mark.parametrize(
    ("scores", "ranks"),
    [([3.0, float("nan"), 2.0], [1, 3, 2]), ([0.0, -0.0, 0.0], None)],
)
def test_nan_and_signed_zeros_rank_the_same_with_xla(scores, ranks, way):
    """TF-Ranking, keras-rs, TFMA: `top_k` gives different orders on CPU and XLA."""
    for item in range(3):
        metric = tfr.MeanReciprocalRank()
        update = run_as(way, update_function(metric))
        update(tf.constant(np.eye(3)[[item]]), tf.constant([scores]))
        expected = 1 / ranks[item] if ranks else (1 + 1 / 2 + 1 / 3) / 3
        assert float(metric.result()) == pytest.approx(expected, rel=1e-6)


def test_scores_are_not_rounded():
    """TF-Ranking, trec_eval and others: scores are compared as float32."""
    assert value("mrr", [[0, 1]], np.array([[1.0, 1.0 + 1e-9]])) == 1.0
    assert value("mrr", [[0, 1]], np.array([[2**24, 2**24 + 1]])) == 1.0


@pytest.mark.usefixtures("run_eagerly")
@judged_without_mask
def test_negative_scores_are_valid():
    """torchmetrics: a score of 0 or less means that the item was not retrieved."""
    labels = [[1, 0, 2], [0, 1, 1]]
    scores = np.array([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0]])
    for name in METRICS:
        assert value(name, labels, scores - 9) == value(name, labels, scores)


def test_cutoffs_may_exceed_the_list_length():
    """Keras's `Precision(top_k=5)`: an error for three items."""
    assert value("precision", [[1, 0, 1]], [[3, 2, 1]], k=5) == pytest.approx(2 / 3)


def test_labels_may_be_fractions():
    """trec_eval, LightGBM: integers only."""
    dcg = value("dcg", [[0.5, 0.25]], [[2, 1]], gain="linear")
    assert dcg == pytest.approx(0.5 + 0.25 / math.log2(3))


def test_results_may_have_any_float_dtype():
    """TF-Ranking: float16 and float64 raise an error."""
    for dtype in ("float16", "float64"):
        metric = tfr.NDCG(dtype=dtype)
        metric.update_state(np.eye(2, dtype=dtype), np.eye(2, dtype=dtype))
        assert metric.result().dtype == dtype


def test_default_names_are_distinct():
    """keras-rs: three metrics are named `mean`, `mean_1` and `mean_2`."""
    metrics = [tfr.NDCG(k=3), tfr.MeanReciprocalRank(), tfr.PrecisionAtK(k=1)]
    assert [metric.name for metric in metrics] == ["ndcg@3", "mrr", "precision@1"]
