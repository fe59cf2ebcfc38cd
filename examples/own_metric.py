"""Declares a custom metric, graded RBP, and uses it like a built-in one.

RBP in this library uses binary relevance, as in its first publication. In graded RBP,
the gain of an item is its label divided by the highest possible label (Moffat and
Zobel, "Rank-biased precision for measurement of retrieval effectiveness", ACM TOIS
27(1), 2008, section 3):

    graded RBP@k = (1 - p) * sum over ranks 1..k of label / max_label * p^(rank - 1)

The formula is linear in the gains, so it is exact for tied scores without extra code.
Run it with:

    python examples/own_metric.py
"""

import dataclasses

import numpy as np
from terminal import quiet

with quiet():
    import tensorflow as tf

import tfrankmetrics as trm
from tfrankmetrics.options import MaxLabel, Persistence


@dataclasses.dataclass(frozen=True)
class ShareOfHighestGrade(trm.ItemGain):
    """The gain of an item: its label divided by the highest possible label."""

    max_label: float

    def __call__(self, items):
        """The gain of each item, float64. Padding has label 0, so its gain is 0."""
        return tf.cast(items.labels, tf.float64) / self.max_label


def graded_rbp(lists, gain, *, persistence):
    """The value at every cutoff, [B, C], from the mean gain at each rank, [B, D]."""
    looks = persistence ** (lists.ranks - 1)
    return (1 - persistence) * lists.sum_to_cutoffs(lists.expected(gain) * looks)


@trm.metric("graded_rbp", formula=graded_rbp, gain=ShareOfHighestGrade)
class GradedRBP(trm.TopKMetric):
    """Rank-biased precision of graded labels.

    Args:
        persistence: The probability that the user moves on to the next item.
        max_label: The highest possible label.
        Other arguments: See `tfrankmetrics.TopKMetric`.
    """

    persistence: Persistence = 0.8
    max_label: MaxLabel = 4.0


def main():
    """Uses the metric by name and by class. Returns the values that it prints."""
    labels, scores = [[4, 0, 2], [0, 1, 3]], [[0.9, 0.5, 0.1], [0.7, 0.7, 0.2]]
    by_name = trm.evaluate(labels, scores, ["graded_rbp@2", "ndcg@2"], persistence=0.5)
    print("evaluate, by name:       ", by_name)

    users, grades, predicted = list("aabbb"), [4, 0, 0, 1, 3], [0.9, 0.5, 0.7, 0.7, 0.2]
    rows = trm.evaluate_rows(users, grades, predicted, ["graded_rbp"], per_query=True)
    print("evaluate_rows, per query:", dict(zip("ab", rows["graded_rbp"].tolist())))

    features = np.random.default_rng(0).normal(size=(200, 10, 3)).astype("float32")
    targets = np.digitize(features[..., 0], [0, 0.5, 1, 2]).astype("float32")
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.Input((10, 3)), tf.keras.layers.Dense(1)])
    adam = tf.keras.optimizers.Adam(0.05)
    model.compile(adam, "mse", metrics=[GradedRBP(k=5), trm.RankingMetrics(["ndcg"])])
    logs = model.fit(features, targets, epochs=5, verbose=0).history["graded_rbp@5"]
    print(f"compile and fit:          {logs[0]:.3f} -> {logs[-1]:.3f}")
    return by_name, rows, logs


if __name__ == "__main__":
    main()
