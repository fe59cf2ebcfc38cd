"""Tests what docs/guide/backends.md and docs/guide/pitfalls.md do not show."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import results

import tfrankmetrics as trm

RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(24, 6, 3)).astype("float32")
LABELS = RNG.integers(0, 3, (24, 6))
NAMES = ["ndcg@3", "mrr"]


class Training:
    """A training loop that keeps all of its state in one checkpoint."""

    def __init__(self):
        tf.keras.utils.set_random_seed(0)
        self.model = tf.keras.Sequential(
            [tf.keras.layers.Input((6, 3)), tf.keras.layers.Dense(1)]
        )
        self.optimizer = tf.keras.optimizers.Adam(0.1)
        self.optimizer.build(self.model.trainable_variables)
        self.metric = trm.RankingMetrics(NAMES, dtype="float64")
        dataset = tf.data.Dataset.from_tensor_slices((FEATURES, LABELS))
        self.batches = iter(dataset.shuffle(24, seed=1).batch(4))
        self.checkpoint = tf.train.Checkpoint(
            model=self.model,
            optimizer=self.optimizer,
            state=list(self.metric.variables),
            iterator=self.batches,
        )

    def go_on(self, number):
        for _, (x, labels) in zip(range(number), self.batches):
            with tf.GradientTape() as tape:
                scores = self.model(x, training=True)[..., 0]
                loss = tf.reduce_mean((tf.cast(labels, tf.float32) - scores) ** 2)
            variables = self.model.trainable_variables
            gradients = tape.gradient(loss, variables)
            self.optimizer.apply_gradients(zip(gradients, variables))
            self.metric.update_state(labels, scores)
        return self


def test_a_training_goes_on_in_the_middle_of_an_epoch(tmp_path):
    expected = results(Training().go_on(6).metric)
    path = Training().go_on(2).checkpoint.save(str(tmp_path / "state"))
    resumed = Training()
    resumed.checkpoint.restore(path)
    assert results(resumed.go_on(4).metric) == pytest.approx(expected, rel=1e-6)
    without_the_state = Training()
    assert results(without_the_state.go_on(4).metric) != pytest.approx(expected)


@pytest.mark.parametrize("seed", range(5))
def test_sampled_candidates_swap_the_order_of_two_models(seed):
    rng = np.random.default_rng(seed)
    ranks = {
        "sharp": np.where(np.arange(400) < 100, 4, 5000),
        "blunt": rng.integers(100, 200, 400),
    }

    def ndcg(rank):
        return np.mean(np.where(rank <= 10, 1 / np.log2(1 + rank), 0))

    def sampled(rank):
        return 1 + rng.binomial(100, (rank - 1) / 9999)

    assert ndcg(ranks["sharp"]) > ndcg(ranks["blunt"]) + 0.1
    assert ndcg(sampled(ranks["sharp"])) < ndcg(sampled(ranks["blunt"])) - 0.3
