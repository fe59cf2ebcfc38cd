"""TensorFlow Ranking as it is published, and the file of values it gives.

It needs the environment of `requirements/tf-ranking.txt`.

    python validation/tf_ranking.py    writes tests/tf_ranking_values.json anew
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
    """Its BPref in the form of its Keras metrics, among which it is missing."""

    def __init__(self, topn=None):
        super().__init__()
        self.metric = metrics_impl.BPrefMetric("bpref", topn)

    def update_state(self, *batch):
        """As its Keras metrics do."""
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
OF_SUBTOPICS = ("precision_ia", "alpha_dcg")
NO_CUTOFF = ("arp", "opa", "bpref")  # its BPref has one, which ours has not


def cutoffs_of(metric):
    """The cutoffs to compare at."""
    return (None,) if metric in NO_CUTOFF else CUTOFFS


def groups(metrics):
    """These metrics by what they read, which is what a batch calls it."""
    return {
        "labels": [metric for metric in metrics if metric not in OF_SUBTOPICS],
        "subtopics": [metric for metric in metrics if metric in OF_SUBTOPICS],
    }


def value(metric, k, labels, scores, weights=None, batches=1, **options):
    """The metric's value after updates with this many equal parts of the lists."""
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
    """What the file holds: versions, and a few batches with every metric's value."""
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
