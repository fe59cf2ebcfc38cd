"""Compares the cost of ranking metrics in a training step with other tools.

The script updates ten metrics (`SUITE`) with a batch. It times this library and the
installed tools among TensorFlow Ranking, keras-rs, torchmetrics and rax in one process.
As a lower bound, it also times two `top_k(10)` calls on the same tensors: one ranks the
scores, the other finds the ideal order. Run it with:

    python benchmarks/training.py
"""

import functools
import importlib
import importlib.util
import operator
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's start-up messages

import numpy as np
import tensorflow as tf
from report import Target, publish
from timing import median_and_spread, ratio, timed

from tfrankmetrics import RankingMetrics

SUITE = ["ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map@10", "mrr@10"]
SUITE += ["precision@1", "precision@5", "precision@10", "recall@10"]
KINDS_AND_CUTOFFS = [
    (kind, int(cutoff)) for kind, cutoff in (name.split("@") for name in SUITE)
]
SHAPES = [(32, 20), (256, 100), (1024, 200), (256, 1000)]
MODES = ["graph", "eager", "XLA"]
OURS, BARE = "tfrankmetrics", "two top_k(10)"
# By package: the module of the Keras metrics, its name for the cutoff, its classes.
KERAS_TOOLS = {
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
COLORS = {BARE: "lightgrey", OURS: "C0", "keras-rs": "C1", "tensorflow-ranking": "C2"}
COLORS |= {"torchmetrics": "C3", "rax": "C4"}
# The targets for package time / our time at [1024, 200], in a graph and with XLA.
AIMS = {"tensorflow-ranking": (20, 20), "keras-rs": (15, 100)}


def is_installed(package):
    """Whether a PyPI package is installed."""
    return importlib.util.find_spec(package.replace("-", "_")) is not None


def batch(shape, rounded):
    """Grades 0 to 4, mostly 0, and scores. Rounded scores have many ties."""
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 5, shape) * (rng.random(shape) < 0.3)
    scores = rng.normal(size=shape)
    scores = scores.round(1) if rounded else scores
    return grades.astype("float32"), scores.astype("float32")


def updater(metrics, mode):
    """A function that updates the metrics with a batch."""

    def update(grades, scores):
        for metric in metrics:
            metric.update_state(grades, scores)

    if mode == "eager":
        return update
    return tf.function(update, jit_compile=mode == "XLA")


def two_top_k(mode, k=10):
    """A function that finds the top k scores and the top k grades, and nothing else."""

    def rank(grades, scores):
        return tf.math.top_k(scores, k)[1], tf.math.top_k(grades, k)[1]

    return rank if mode == "eager" else tf.function(rank, jit_compile=mode == "XLA")


def keras_tools():
    """The suite's metrics from each installed Keras tool, by package.

    Exits with a message if none is installed.
    """
    suites = {}
    for package, (module, cutoff_name, classes) in KERAS_TOOLS.items():
        if not is_installed(package):
            continue
        top, _, path = module.partition(".")
        found = operator.attrgetter(path)(importlib.import_module(top))
        suites[package] = [
            getattr(found, classes[kind])(**{cutoff_name: cutoff})
            for kind, cutoff in KINDS_AND_CUTOFFS
        ]
    if not suites:
        raise SystemExit(f"Install one of these packages: {', '.join(KERAS_TOOLS)}.")
    return suites


def rax_suite(grades, scores):
    """The suite in rax, compiled by JAX."""
    import jax
    import rax

    @jax.jit
    def suite(grades, scores):
        return [
            getattr(rax, f"{ {'map': 'ap'}.get(kind, kind) }_metric")(
                scores, grades if kind == "ndcg" else grades >= 1, topn=cutoff
            )
            for kind, cutoff in KINDS_AND_CUTOFFS
        ]

    on_device = jax.device_put((grades, scores))
    return lambda: jax.block_until_ready(suite(*on_device))


def torchmetrics_suite(grades, scores):
    """The suite in torchmetrics, which computes one query after another."""
    import torch
    from torchmetrics import retrieval

    names = {
        "ndcg": "NormalizedDCG",
        "map": "MAP",
        "mrr": "MRR",
        "precision": "Precision",
        "recall": "Recall",
    }
    metrics = [
        getattr(retrieval, f"Retrieval{names[kind]}")(top_k=cutoff)
        for kind, cutoff in KINDS_AND_CUTOFFS
    ]
    queries = torch.arange(len(grades)).repeat_interleave(grades.shape[1])
    grades = torch.tensor(grades.ravel()).long()
    scores = torch.tensor(scores.ravel())

    def update_and_compute():
        for metric, (kind, _) in zip(metrics, KINDS_AND_CUTOFFS, strict=True):
            metric.reset()
            target = grades if kind == "ndcg" else grades >= 1
            metric.update(scores, target, indexes=queries)
            metric.compute()

    return update_and_compute


def calls(shape, mode, suites):
    """The calls to time, by tool and ties: ours with top_k, then with other tools."""
    functions = {BARE: two_top_k(mode), OURS: updater([RankingMetrics(SUITE)], mode)}
    functions |= {package: updater(suite, mode) for package, suite in suites.items()}
    others = {"XLA": {"rax": rax_suite}, "eager": {"torchmetrics": torchmetrics_suite}}
    found = {}
    for is_tied in (False, True):
        arrays = batch(shape, is_tied)
        tensors = [tf.constant(array) for array in arrays]
        for name, function in functions.items():
            found[name, is_tied] = functools.partial(function, *tensors)
        for package, suite in others.get(mode, {}).items():
            if is_installed(package):
                found[package, is_tied] = suite(*arrays)
    beside_top_k = {key: call for key, call in found.items() if key[0] in (BARE, OURS)}
    beside_tools = {key: call for key, call in found.items() if key[0] != BARE}
    return beside_top_k, beside_tools


def measure(mode, suites):
    """Times and tables for one mode.

    The times are in milliseconds, by shape. Each shape has two dicts, by tool and ties:
    ours with top_k, and ours with other tools.
    """
    times, tables = {}, {}
    for shape in SHAPES:
        times[shape] = [timed(of) for of in calls(shape, mode, suites)]
        for of_shape in times[shape]:
            names = [name for name, is_tied in of_shape if not is_tied]
            below, *above = names
            head = ["batch", *names, *(f"{name} / {below}" for name in above)]
            other = "" if below == BARE else "compared with other tools, "
            rows = tables.setdefault(f"{mode}, {other}milliseconds", [head])
            for is_tied in (False, True):
                row = [f"{list(shape)}{', ties' if is_tied else ''}"]
                row += [median_and_spread(of_shape[name, is_tied]) for name in names]
                row += [
                    f"{ratio(of_shape, (name, is_tied), (below, is_tied)):.3g}"
                    for name in above
                ]
                rows.append(row)
                print(mode, *row, sep="  ", flush=True)
    return times, tables


def targets(times, suites):
    """The targets and the measured ratios."""

    def of(mode, shape, above, below):
        beside_top_k, beside_tools = times[mode][shape]
        of_both = beside_top_k if below == BARE else beside_tools
        return ratio(of_both, (above, False), (below, False))

    large = (1024, 200)
    on_tf = f"TensorFlow {tf.__version__}"
    for shape in (large, (256, 1000)):
        yield Target.at_most(
            1.5,
            f"suite in a graph, {list(shape)}: ours / two top_k(10), {on_tf}",
            of("graph", shape, OURS, BARE),
        )
    yield Target.at_most(
        2,
        f"suite with XLA, all sizes: ours / two top_k(10), {on_tf}",
        max(of("XLA", shape, OURS, BARE) for shape in SHAPES),
    )
    yield Target.at_most(
        1.5,
        f"suite in a graph, all sizes: heavily tied / untied, {on_tf}",
        max(
            ratio(times["graph"][shape][0], (OURS, True), (OURS, False))
            for shape in SHAPES
        ),
    )
    for package in suites:
        in_graph, under_xla = AIMS[package]
        yield Target.at_least(
            in_graph,
            f"suite in a graph, {list(large)}: {package} / ours",
            of("graph", large, package, OURS),
        )
        for shape in SHAPES:
            yield Target.at_least(
                2.5,
                f"suite in a graph, {list(shape)}: {package} / ours",
                of("graph", shape, package, OURS),
            )
        yield Target.at_least(
            40,
            f"suite run eagerly, all sizes: {package} / ours",
            min(of("eager", shape, package, OURS) for shape in SHAPES),
        )
        yield Target.at_least(
            under_xla,
            f"suite with XLA, {list(large)}: {package} / ours",
            of("XLA", large, package, OURS),
        )


def plot(times):
    """Plots each tool's time relative to ours, without ties, by mode and batch.

    Each ratio uses our time from the same run. The two runs of a mode and batch leave
    different data in the processor's caches, so their times are not comparable.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(MODES), figsize=(13, 4.4), sharey=True, layout="constrained"
    )
    shown = {}
    for axis, mode in zip(axes, MODES, strict=True):
        ratios = {}
        for shape in SHAPES:
            for of_shape in times[mode][shape]:
                for name, is_tied in of_shape:
                    if name != OURS and not is_tied:
                        found = ratio(of_shape, (name, False), (OURS, False))
                        ratios.setdefault(name, []).append(found)
        for name in sorted(ratios, key=list(COLORS).index):
            (dots,) = axis.plot(ratios[name], "o", color=COLORS[name], markersize=8)
            shown.setdefault(name, dots)
        shown.setdefault(OURS, axis.axhline(1, color=COLORS[OURS]))
        axis.set_xticks(range(len(SHAPES)), map(str, map(list, SHAPES)))
        axis.set(title=mode, yscale="log", xlim=(-0.4, len(SHAPES) - 0.6))
        axis.grid(axis="y", alpha=0.3)
        axis.set_axisbelow(True)
    figure.legend(shown.values(), shown, loc="outside lower center", ncols=len(shown))
    axes[0].set_ylabel("time relative to tfrankmetrics")
    return figure


def main():
    """Measures all shapes and modes, and publishes the results."""
    suites = keras_tools()
    times, tables = {}, {}
    for mode in MODES:
        times[mode], of_mode = measure(mode, suites)
        tables |= of_mode
    others = [*suites, *filter(is_installed, ("rax", "torchmetrics"))]
    publish(
        "-".join(["training", *suites]),
        f"One update of ten metrics, compared with {', '.join(others)}",
        ["tensorflow", *others],
        tables,
        list(targets(times, suites)),
        plot(times),
    )


if __name__ == "__main__":
    main()
