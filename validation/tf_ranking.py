"""TensorFlow Ranking as it is published, and the file of values it gives.

It needs the environment of `requirements-tf-ranking.txt`.

    python validation/tf_ranking.py    writes tests/tf_ranking_values.json anew
"""

import importlib.metadata
import json
import pathlib

import numpy as np
import tensorflow as tf
import tensorflow_ranking
from queries import CUTOFFS, GRADES, WEIGHTS, name_of, random_batch

VALUES = pathlib.Path(__file__).parent.parent / "tests" / "tf_ranking_values.json"

METRICS = {
    "ndcg": tensorflow_ranking.keras.metrics.NDCGMetric,
    "dcg": tensorflow_ranking.keras.metrics.DCGMetric,
    "map": tensorflow_ranking.keras.metrics.MeanAveragePrecisionMetric,
    "mrr": tensorflow_ranking.keras.metrics.MRRMetric,
    "precision": tensorflow_ranking.keras.metrics.PrecisionMetric,
    "recall": tensorflow_ranking.keras.metrics.RecallMetric,
    "hit_rate": tensorflow_ranking.keras.metrics.HitsMetric,
}


def value(metric, k, labels, scores, weights=None, batches=1, **options):
    """The metric's value after updates with this many equal parts of the lists."""
    theirs = METRICS[metric](topn=k, **options)
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
            batch["values"] = {
                name_of(metric, k): value(metric, k, *arguments)
                for metric in METRICS
                for k in CUTOFFS
            }
            batches.append(batch)
    packages = ("tensorflow-ranking", "tensorflow", "keras", "numpy")
    versions = {name: importlib.metadata.version(name) for name in packages}
    return {"versions": versions, "batches": batches}


if __name__ == "__main__":
    VALUES.write_text(json.dumps(recorded_values(), indent=1) + "\n", encoding="utf-8")
    print(f"Wrote {VALUES}.")
