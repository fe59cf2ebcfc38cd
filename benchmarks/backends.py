"""Compares the cost of ranking metrics on Keras's backends with that of keras-rs.

For each backend, a new process evaluates a model of [1024, 200] scores: without any
metric, with ten metrics as one `RankingMetrics`, as ten objects, and with those of
keras-rs. Another one trains a small model for one epoch, compilation included. Run it
with:

    python benchmarks/backends.py
"""

import json
import os
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's start-up messages

import numpy as np

BACKENDS = ["tensorflow", "jax", "torch"]
SHAPE, EPOCH_SHAPE, EPOCHS = (1024, 200), (640, 20), 3
SUITE = ["ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map@10", "mrr@10"]
SUITE += ["precision@1", "precision@5", "precision@10", "recall@10"]
NONE, ONE, TEN, RS = "no metrics", "one RankingMetrics", "ten objects", "keras-rs"


def suites():
    """Functions that make the metrics, by what is compared."""
    import keras_rs

    import tfrankmetrics as trm

    pairs = [(kind, int(k)) for kind, k in (name.split("@") for name in SUITE)]
    ours, theirs = (
        {
            "ndcg": classes.NDCG,
            "map": classes.MeanAveragePrecision,
            "mrr": classes.MeanReciprocalRank,
            "precision": classes.PrecisionAtK,
            "recall": classes.RecallAtK,
        }
        for classes in (trm, keras_rs.metrics)
    )
    return {
        NONE: list,
        ONE: lambda: [trm.RankingMetrics(SUITE)],
        TEN: lambda: [ours[kind](k=k) for kind, k in pairs],
        RS: lambda: [theirs[kind](k=k, name=f"{kind}@{k}") for kind, k in pairs],
    }


def data(shape):
    """Grades and scores."""
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 5, shape) * (rng.random(shape) < 0.3)
    return grades.astype("float32"), rng.normal(size=shape).astype("float32")


def steps():
    """The milliseconds of an evaluation step, by what is compared."""
    import keras
    from timing import timed

    grades, scores = data(SHAPE)
    calls = {}
    for name, metrics in suites().items():
        inputs = keras.Input(SHAPE[1:])
        model = keras.Model(inputs, keras.layers.Activation("linear")(inputs))
        model.compile(loss="mse", metrics=metrics())
        calls[name] = lambda model=model: model.test_on_batch(scores, grades)
    return {name: times.tolist() for name, times in timed(calls, seconds=8).items()}


def epochs():
    """The milliseconds of the first epoch of new models, by what is compared."""
    import keras

    grades, features = data(EPOCH_SHAPE)
    times = {name: [] for name in suites()}
    for number in range(EPOCHS + 1):
        for name, metrics in suites().items():
            inputs = keras.Input((EPOCH_SHAPE[1], 1))
            scores = keras.layers.Dense(1)(inputs)
            model = keras.Model(inputs, keras.layers.Reshape(EPOCH_SHAPE[1:])(scores))
            model.compile("sgd", "mse", metrics=metrics())
            start = time.perf_counter()
            model.fit(features[..., np.newaxis], grades, batch_size=32, verbose=0)
            if number > 0:  # the first model also loads libraries
                times[name].append(1000 * (time.perf_counter() - start))
    return times


def measure(backend, what):
    """What a new process with this backend measures."""
    found = subprocess.run(
        [sys.executable, __file__, what],
        env={**os.environ, "KERAS_BACKEND": backend},
        capture_output=True,
        text=True,
        check=True,
    )
    return {name: np.array(of) for name, of in json.loads(found.stdout).items()}


def main():
    """Measures all backends, and publishes the results."""
    from report import Target, publish
    from timing import median_and_spread

    tables, targets = {}, []
    for what, title in (
        ("steps", f"one evaluation step of {list(SHAPE)}, milliseconds"),
        ("epochs", "the first epoch of a small model, milliseconds"),
    ):
        rows = tables.setdefault(title, [["backend", NONE, ONE, TEN, RS]])
        for backend in BACKENDS:
            times = measure(backend, what)
            rows.append([backend, *map(median_and_spread, times.values())])
            print(*rows[-1], sep="  ", flush=True)
            none, one, _, theirs = map(np.median, times.values())
            if what == "steps":
                limit = {"jax": 0.1, "torch": 1}.get(backend)
            else:
                limit = {"jax": 1}.get(backend)
            if limit is not None:
                share = f"ours / {RS}, both without what the model itself takes"
                name = f"{what[:-1]} on {backend}: {share}"
                targets.append(
                    Target.at_most(limit, name, (one - none) / (theirs - none))
                )
    packages = ["keras", "keras-rs", "tensorflow", "jax", "torch"]
    publish("backends", "Ten metrics on Keras's backends", packages, tables, targets)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps({"steps": steps, "epochs": epochs}[sys.argv[1]]()))
    else:
        main()
