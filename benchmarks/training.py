"""What ranking metrics cost in a training step, beside other tools, in one process.

Ten metrics (`SUITE`) are updated with a batch: ours; those of TensorFlow Ranking or
keras-rs, whichever is installed; and, as the least that any of it can cost, two bare
`top_k(10)` over the same tensors, one for the order of the scores and one for the
ideal order. It writes a table to benchmarks/results. Run it with:

    python benchmarks/training.py
"""

import importlib
import importlib.util
import operator
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's start-up messages

import numpy as np
import tensorflow as tf
from timing import circumstances, median_and_spread, table, timed

from tfrankmetrics import RankingMetrics

SUITE = ["ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map@10", "mrr@10"]
SUITE += ["precision@1", "precision@5", "precision@10", "recall@10"]
SHAPES = [(32, 20), (256, 100), (1024, 200), (256, 1000)]
MODES = ["graph", "eager", "XLA"]
# By package: the module, its name for the cutoff, and its classes by our names.
OTHERS = {
    "tensorflow-ranking": (
        "tensorflow_ranking.keras.metrics",
        "topn",
        {
            "ndcg": "NDCGMetric",
            "map": "MeanAveragePrecisionMetric",
            "mrr": "MRRMetric",
            "precision": "PrecisionMetric",
            "recall": "RecallMetric",
        },
    ),
    "keras-rs": (
        "keras_rs.metrics",
        "k",
        {
            "ndcg": "NDCG",
            "map": "MeanAveragePrecision",
            "mrr": "MeanReciprocalRank",
            "precision": "PrecisionAtK",
            "recall": "RecallAtK",
        },
    ),
}


def batch(shape, rounded):
    """Grades 0 to 4, most of them 0, and scores; rounded ones tie heavily."""
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 5, shape) * (rng.random(shape) < 0.3)
    scores = rng.normal(size=shape)
    scores = scores.round(1) if rounded else scores
    return tf.constant(grades, tf.float32), tf.constant(scores, tf.float32)


def other_tools():
    """The suites of the other tools that are installed, as metrics by package."""
    tools = {}
    for package, (module, cutoff_name, classes) in OTHERS.items():
        top, _, path = module.partition(".")
        if importlib.util.find_spec(top) is None:
            continue
        found = operator.attrgetter(path)(importlib.import_module(top))
        tools[package] = [
            getattr(found, classes[kind])(**{cutoff_name: int(cutoff)})
            for kind, cutoff in (name.split("@") for name in SUITE)
        ]
    return tools


def updater(metrics, mode):
    """A function that updates the metrics with a batch."""

    def update(grades, scores):
        for metric in metrics:
            metric.update_state(grades, scores)

    if mode == "eager":
        return update
    return tf.function(update, jit_compile=mode == "XLA")


def two_top_k(mode):
    """The order of the scores and of the grades down to rank 10, and no more."""

    def rank(grades, scores):
        return tf.math.top_k(scores, 10)[1], tf.math.top_k(grades, 10)[1]

    return rank if mode == "eager" else tf.function(rank, jit_compile=mode == "XLA")


def measure(shape, mode, rounded, tools):
    """Milliseconds of each tool on a batch."""
    grades, scores = batch(shape, rounded)
    functions = {
        "two top_k(10)": two_top_k(mode),
        "tfrankmetrics": updater([RankingMetrics(SUITE)], mode),
        **{name: updater(metrics, mode) for name, metrics in tools.items()},
    }
    calls = {
        name: lambda function=function: function(grades, scores)
        for name, function in functions.items()
    }
    return timed(calls)


def main():
    """Measures all shapes and modes, prints the table and writes it."""
    tools = other_tools()
    names = ["two top_k(10)", "tfrankmetrics", *tools]
    rows = [["batch", "mode", *names, *(f"ours / {name}" for name in names[:1])]]
    rows[0] += [f"{name} / ours" for name in tools]
    for mode in MODES:
        for rounded in (False, True):
            for shape in SHAPES:
                times = measure(shape, mode, rounded, tools)
                medians = {name: np.median(of) for name, of in times.items()}
                ours = medians["tfrankmetrics"]
                row = [f"{list(shape)}{', ties' if rounded else ''}", mode]
                row += [median_and_spread(times[name]) for name in names]
                row += [f"{ours / medians[names[0]]:.2f}"]
                row += [f"{medians[name] / ours:.1f}" for name in tools]
                rows.append(row)
                print(*row, sep="  ", flush=True)
    packages = ["tensorflow", *tools]
    text = "\n".join(
        [
            f"Milliseconds of an update with {len(SUITE)} metrics, median and spread.",
            circumstances(*packages),
            "",
            table(rows),
            "",
        ]
    )
    name = "-".join(["training", *tools])
    path = pathlib.Path(__file__).parent / "results" / f"{name}.md"
    path.write_text(text, encoding="utf-8")
    print(f"\nWritten to {path}")


if __name__ == "__main__":
    main()
