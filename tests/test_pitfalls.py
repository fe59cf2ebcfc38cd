"""Tests this library on inputs for which other metrics libraries give wrong results.

Each test names the tools that have the problem. Other modules test problems that need
more than one input: float32 sums that stop counting, repeated sorts and growing memory
(`test_graph.py`), lost names and keys, ragged inputs, replicas (`test_keras.py`,
`test_inputs.py`) and padding that changes the value (`docs/conventions.md`).
"""

import math

import numpy as np
import pytest
import tensorflow as tf
from helpers import XLA, run_as, update_function, value

import tfrankmetrics as trm


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
        metric = trm.NDCG()
        for start in range(0, 4, size):
            part = slice(start, start + size)
            metric.update_state(labels[part], scores[part], weights[part])
        assert float(metric.result()) == pytest.approx(expected, rel=1e-6)


def test_a_list_with_only_padding_does_not_count():
    """TF-Ranking: the list counts as 0, so the mean with a perfect list is 0.5."""
    assert value("ndcg", [[1, 0], [-1, -1]], [[2, 1], [2, 1]]) == 1.0


def test_a_short_list_does_not_shorten_the_ideal():
    """In MLflow, the ideal order is as short as the list, and one hit is perfect."""
    qrels = {"q": dict.fromkeys("abcde", 1)}
    values = trm.evaluate_run(qrels, {"q": ["a"]}, ["ndcg@5"])
    ideal = sum(1 / math.log2(1 + rank) for rank in range(1, 6))
    assert values["ndcg@5"] == pytest.approx(1 / ideal)
    assert f"{1 / ideal:.4f}" == "0.3392"


@pytest.mark.parametrize("way", ["graph", XLA])
def test_nan_and_signed_zeros_rank_the_same_with_xla(way):
    """TF-Ranking, keras-rs, TFMA: `top_k` gives different orders on CPU and XLA."""
    metric = trm.MeanReciprocalRank()
    update = run_as(way, update_function(metric))
    of_a_tie = (1 + 1 / 2 + 1 / 3) / 3
    for scores, expected in (
        ([3.0, float("nan"), 2.0], [1, 1 / 3, 1 / 2]),
        ([0.0, -0.0, 0.0], [of_a_tie] * 3),
    ):
        for item in range(3):
            metric.reset_state()
            update(tf.constant(np.eye(3)[[item]]), tf.constant([scores]))
            assert float(metric.result()) == pytest.approx(expected[item], rel=1e-6)
