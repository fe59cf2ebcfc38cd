"""Values of the last release of TensorFlow Ranking, and the file that records some.

It needs the environment of `requirements/tf-ranking.txt`.

    python validation/tf_ranking.py    rewrites tests/tf_ranking_values.json
"""

import importlib.metadata
import json
import pathlib

import numpy as np
import tensorflow as tf
import tensorflow_ranking
from queries import CUTOFFS, GRADES, WEIGHTS, name_of, random_batch, subtopics_of
from tensorflow_ranking.python import metrics_impl

VALUES = pathlib.Path(__file__).parent.parent / "tests" / "tf_ranking_values.json"


class BPrefMetric(tf.keras.metrics.Mean):
    """TF-Ranking's BPref, which has no Keras class in the package."""

    def __init__(self, topn=None):
        super().__init__()
        self.metric = metrics_impl.BPrefMetric("bpref", topn)

    def update_state(self, *batch):
        """Updates the mean, like the Keras metrics of TF-Ranking."""
        super().update_state(*self.metric.compute(*batch))


METRICS = {
    "ndcg": tensorflow_ranking.keras.metrics.NDCGMetric,
    "dcg": tensorflow_ranking.keras.metrics.DCGMetric,
    "map": tensorflow_ranking.keras.metrics.MeanAveragePrecisionMetric,
    "mrr": tensorflow_ranking.keras.metrics.MRRMetric,
    "precision": tensorflow_ranking.keras.metrics.PrecisionMetric,
    "recall": tensorflow_ranking.keras.metrics.RecallMetric,
    "hit_rate": tensorflow_ranking.keras.metrics.HitsMetric,
    "arp": tensorflow_ranking.keras.metrics.ARPMetric,
    "opa": tensorflow_ranking.keras.metrics.OPAMetric,
    "bpref": BPrefMetric,
    "precision_ia": tensorflow_ranking.keras.metrics.PrecisionIAMetric,
    "alpha_dcg": tensorflow_ranking.keras.metrics.AlphaDCGMetric,
}
SUBTOPIC_METRICS = ("precision_ia", "alpha_dcg")
NO_CUTOFF = ("arp", "opa", "bpref")  # our BPref has no cutoff; TF-Ranking's does


def cutoffs_of(metric):
    """The cutoffs to compare at."""
    return (None,) if metric in NO_CUTOFF else CUTOFFS


def groups(metrics):
    """Groups the metrics by the kind of labels they read, named as in a batch."""
    return {
        "labels": [metric for metric in metrics if metric not in SUBTOPIC_METRICS],
        "subtopics": [metric for metric in metrics if metric in SUBTOPIC_METRICS],
    }


def value(metric, k, labels, scores, weights=None, batches=1, **options):
    """The metric's value after one update for each of `batches` equal parts."""
    theirs = METRICS[metric](**({"topn": k} if k else {}), **options)
    size = len(labels) // batches
    for start in range(0, len(labels), size):
        part = slice(start, start + size)
        theirs.update_state(
            tf.constant(labels[part], tf.float32),
            tf.constant(scores[part], tf.float32),
            None if weights is None else tf.constant(weights[part], tf.float32),
        )
    return float(theirs.result())


def recorded_values():
    """The content of the file: versions, and batches with every metric's value."""
    rng = np.random.default_rng(0)
    batches = []
    for grades in GRADES:
        for weights in WEIGHTS:
            arguments = random_batch(rng, grades, weights, queries=4, items=8)
            batch = dict(zip(("labels", "scores", "weights"), arguments, strict=True))
            batch["subtopics"] = subtopics_of(batch["labels"])
            for of, names in groups(METRICS).items():
                batch[f"values of {of}"] = {
                    name_of(metric, k): value(metric, k, batch[of], *arguments[1:])
                    for metric in names
                    for k in cutoffs_of(metric)
                }
            batches.append(batch)
    packages = ("tensorflow-ranking", "tensorflow", "keras", "numpy")
    versions = {name: importlib.metadata.version(name) for name in packages}
    return {"versions": versions, "batches": batches}


if __name__ == "__main__":
    VALUES.write_text(json.dumps(recorded_values(), indent=1) + "\n", encoding="utf-8")
    print(f"Wrote {VALUES}.")
