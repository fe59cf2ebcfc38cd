"""Measures what comes before the first number: imports, tracing, the first epoch.

All first epochs run in this process and take turns: a small model is made, compiled and
fit for one epoch, with the ten metrics of `SUITE` and without any. The first calls of
`evaluate` each run in a new process. Run it with:

    python benchmarks/startup.py
"""

import os
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's start-up messages

import numpy as np
import tensorflow as tf
from report import Target, plot_bars, publish
from timing import median_and_spread
from training import KINDS_AND_CUTOFFS, SUITE, batch, is_installed, keras_tools

import tfrankmetrics as trm
from tfrankmetrics.metrics.measure import declarations

ROUNDS, SHAPE = 5, (640, 20)
NONE, ONE, TEN = "no metrics", "one RankingMetrics", "ten objects"
# Prints the milliseconds of the import and of the first calls.
FIRST_CALLS = """
import sys, time
import numpy as np
import tensorflow as tf
tf.keras.metrics.Metric  # loads Keras
start = time.perf_counter()
import tfrankmetrics as trm
times = [time.perf_counter() - start]
grades, scores = np.eye(32, 20), np.random.default_rng(0).normal(size=(32, 20))
for names in (sys.argv[1:], sys.argv[1:], ["map@7", "rbp"], ["ndcg@9"]):
    start = time.perf_counter()
    trm.evaluate(grades, scores, names)
    times.append(time.perf_counter() - start)
print(*(1000 * each for each in times))
"""


def ten_objects():
    """The suite as separate metrics."""
    return [declarations()[kind].cls(k=cutoff) for kind, cutoff in KINDS_AND_CUTOFFS]


def first_epoch(metrics, jit_compile):
    """The seconds of the first epoch of a new model."""
    grades, features = batch(SHAPE, rounded=False)
    inputs = tf.keras.Input((SHAPE[1], 1))
    hidden = tf.keras.layers.Dense(8, activation="relu")(inputs)
    outputs = tf.keras.layers.Reshape(SHAPE[1:])(tf.keras.layers.Dense(1)(hidden))
    model = tf.keras.Model(inputs, outputs)
    model.compile("adam", "mse", metrics=metrics, jit_compile=jit_compile)
    start = time.perf_counter()
    model.fit(features[..., np.newaxis], grades, batch_size=32, verbose=0)
    return time.perf_counter() - start


def first_epochs():
    """The seconds that metrics add to a first epoch, by tool and mode."""
    makers = {NONE: list, ONE: lambda: [trm.RankingMetrics(SUITE)], TEN: ten_objects}
    if is_installed("keras-rs"):
        makers["keras-rs"] = lambda: keras_tools()["keras-rs"]
    added = {}
    for mode in ("graph", "XLA"):
        seconds = {name: [] for name in makers}
        for _ in range(ROUNDS + 1):
            for name, make in makers.items():
                seconds[name].append(first_epoch(make(), mode == "XLA"))
                tf.keras.backend.clear_session()
        without = np.array(seconds.pop(NONE)[1:])  # the first round loads libraries
        for name, of_tool in seconds.items():
            added[name, mode] = np.array(of_tool[1:]) - without
            print(mode, name, median_and_spread(added[name, mode]), flush=True)
    return added


def first_calls(names):
    """The milliseconds of the import and of four calls in a new process."""
    runs = [
        subprocess.run(
            [sys.executable, "-c", FIRST_CALLS, *names],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for _ in range(ROUNDS)
    ]
    return np.array(runs, float).T


def nodes(metrics):
    """The nodes of an update's graph, and those of its branches and loops."""

    def update(*arguments):
        for metric in metrics:
            metric.update_state(*arguments)

    spec = tf.TensorSpec([None, SHAPE[1]])
    graph = tf.function(update).get_concrete_function(spec, spec).graph
    definition = graph.as_graph_def()
    inner = sum(len(branch.node_def) for branch in definition.library.function)
    return [len(definition.node), inner, len(definition.library.function)]


def plot(epochs):
    """The seconds that metrics add to a first epoch."""
    return plot_bars(epochs, "seconds added to the first epoch", (7, 3))


def main():
    """Measures everything and publishes the results."""
    added = first_epochs()
    tools = list(dict.fromkeys(name for name, _ in added))
    epochs = [["", "graph", "XLA"]]
    epochs += [
        [name, *(median_and_spread(added[name, mode]) for mode in ("graph", "XLA"))]
        for name in tools
    ]
    median = {key: float(np.median(seconds)) for key, seconds in added.items()}
    of_one, of_ten = first_calls(["ndcg@10"]), first_calls(SUITE)
    calls = [["", "milliseconds"], ["import", median_and_spread(of_one[0])]]
    calls += [["one metric, first call", median_and_spread(of_one[1])]]
    calls += [["ten metrics, first call", median_and_spread(of_ten[1])]]
    calls += [["ten metrics, second call", median_and_spread(of_ten[2])]]
    calls += [["two metrics with other options", median_and_spread(of_ten[3])]]
    graphs = [["", "nodes", "in branches", "branches"]]
    graphs += [["one metric", *nodes([trm.NDCG(k=10)])]]
    graphs += [[ONE, *nodes([trm.RankingMetrics(SUITE)])], [TEN, *nodes(ten_objects())]]
    added_by = "added to the first epoch"
    targets = [
        Target.at_most(0.7, f"{ONE}: seconds {added_by}, graph", median[ONE, "graph"]),
        Target.at_most(2.5, f"{ONE}: seconds {added_by}, XLA", median[ONE, "XLA"]),
    ]
    for mode in ("graph", "XLA"):
        share = median[TEN, mode] / median[ONE, mode]
        targets += [Target.at_most(2, f"{TEN} / {ONE}, {mode}", share)]
        if "keras-rs" in tools:
            for name, limit in ((ONE, 0.2 if mode == "graph" else 1), (TEN, 1)):
                share = median[name, mode] / median["keras-rs", mode]
                targets += [Target.at_most(limit, f"{name} / keras-rs, {mode}", share)]
    targets += [
        Target.at_most(50, "import, milliseconds", float(np.median(of_one[0]))),
        Target.at_most(
            150, "first evaluate of one metric", float(np.median(of_one[1]))
        ),
        Target.at_most(300, "first evaluate of ten", float(np.median(of_ten[1]))),
        Target.at_most(150, "other options later", float(np.median(of_ten[3]))),
    ]
    packages = ["tensorflow", "keras"]
    packages += ["keras-rs"] if "keras-rs" in tools else []
    publish(
        "startup",
        "The first epoch and the first number",
        packages,
        {
            "Seconds that ten metrics add to the first epoch of a small model": epochs,
            "First calls of `evaluate` on [32, 20], each in a new process": calls,
            "Nodes of the graph of an update": graphs,
        },
        targets,
        plot(epochs),
    )


if __name__ == "__main__":
    main()
