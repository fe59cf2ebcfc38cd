"""Measures the cost of more metrics, cutoffs, items and queries.

It covers whole lists, many metrics, separate metrics, catalogs and `fit`. It compares
most of them with a lower bound. It also measures how the time of an update grows with
the batch and with the lists. Run it with:

    python benchmarks/cost.py
"""

import functools
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's start-up messages

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from report import Target, publish
from timing import median_and_spread, ratio, timed
from training import SUITE, batch, keras_tools, two_top_k, updater

from tfrankmetrics import RankingMetrics

LARGE = (1024, 200)
KINDS = ["ndcg", "map", "mrr", "precision", "recall"]
AT_TEN = [*KINDS, "dcg", "hit_rate", "f1", "r_precision", "rbp"]
FIFTY = [f"{kind}@{k}" for kind in AT_TEN for k in (1, 3, 5, 8, 10)]
CATALOGUE = (128, 100_000)
STEPS = 40
# For each size that grows: its name, axis, reference for the time, and values.
GROWTH = [
    ("queries of 100 items", 0, "the batch", [32 * 2**power for power in range(10)]),
    ("items in each of 128 lists", 1, "top_k", [25 * 2**power for power in range(11)]),
]


def distinct(shape):
    """Grades, and scores without ties in a list."""
    rng = np.random.default_rng(0)
    grades, _ = batch(shape, rounded=False)
    scores = rng.permuted(np.tile(np.arange(shape[1]), (shape[0], 1)), axis=1)
    return tf.constant(grades), tf.constant(scores, tf.float32)


def measured(of, rows, calls, tensors):
    """Adds a row that compares two calls. Returns the ratio of their medians."""
    above, below = calls
    times = timed(
        {name: functools.partial(call, *tensors) for name, call in calls.items()}
    )
    found = ratio(times, above, below)
    rows.append([of, above, median_and_spread(times[above])])
    rows[-1] += [below, median_and_spread(times[below]), f"{found:.3g}"]
    print(*rows[-1], sep="  ", flush=True)
    return found


def of_more_metrics(rows):
    """Compares whole lists, separate metrics and many metrics with simpler updates."""
    for shape in (LARGE, (256, 1000)):
        for mode in ("graph", "XLA"):
            calls = {
                "five metrics": updater([RankingMetrics(KINDS)], mode),
                "two full top_k": two_top_k(mode, shape[1]),
            }
            what = f"whole lists, {list(shape)}, {mode}"
            yield Target.at_most(
                1.5,
                f"{what}: five metrics / two full top_k",
                measured(what, rows, calls, distinct(shape)),
            )
    for mode in ("graph", "XLA"):
        names = [f"{kind}@10" for kind in AT_TEN]
        calls = {
            "ten objects": updater([RankingMetrics([name]) for name in names], mode),
            "one object": updater([RankingMetrics(names)], mode),
        }
        what = f"ten metrics at cutoff 10, {list(LARGE)}, {mode}"
        yield Target.at_most(
            1.3,
            f"{what}: ten objects / one RankingMetrics",
            measured(what, rows, calls, distinct(LARGE)),
        )
        if mode == "graph":
            yield from of_separate_metrics(rows)
        calls = {
            "fifty metrics": updater([RankingMetrics(FIFTY)], mode),
            "the suite": updater([RankingMetrics(SUITE)], mode),
        }
        what = f"more metrics and cutoffs, {list(LARGE)}, {mode}"
        yield Target.at_most(
            2,
            f"{what}: fifty metrics / the suite",
            measured(what, rows, calls, distinct(LARGE)),
        )


def of_separate_metrics(rows):
    """Compares the suite as ten objects with one object, in a graph."""
    for ties, limit in (("untied", 1.2), ("heavily tied", 1.5)):
        calls = {
            "ten objects": updater([RankingMetrics([name]) for name in SUITE], "graph"),
            "one object": updater([RankingMetrics(SUITE)], "graph"),
        }
        what = f"the suite, {list(LARGE)}, graph, {ties}"
        arrays = map(tf.constant, batch(LARGE, rounded=ties == "heavily tied"))
        yield Target.at_most(
            limit,
            f"{what}: ten objects / one RankingMetrics",
            measured(what, rows, calls, [*arrays]),
        )


def of_ties(rows):
    """Measures what heavy ties add to the suite, with each gain."""
    for shape in (LARGE, (256, 1000)):
        for gain in ("exponential", "linear"):
            update = updater([RankingMetrics(SUITE, gain=gain)], "graph")
            calls = {
                name: functools.partial(update, *map(tf.constant, batch(shape, tied)))
                for name, tied in (("heavily tied", True), ("untied", False))
            }
            measured(f"{gain} gain, {list(shape)}, graph", rows, calls, ())


def of_catalogs(rows):
    """Measures catalogs with one and with ten relevant items per query."""
    rng = np.random.default_rng(0)
    scores = tf.constant(rng.normal(size=CATALOGUE), tf.float32)
    one = tf.constant(rng.integers(0, CATALOGUE[1], CATALOGUE[0]))
    ten = tf.constant(rng.integers(0, CATALOGUE[1], (CATALOGUE[0], 10)))

    @tf.function
    def count_once(relevant, scores):
        own = tf.gather(scores, relevant[:, tf.newaxis], batch_dims=1)
        return tf.reduce_sum(tf.cast(scores > own, tf.float32), axis=1)

    @tf.function
    def top_ten(relevant, scores):
        return tf.math.top_k(scores, 10)[1]

    @tf.function
    def count_once_in_bytes(relevant, scores):
        own = tf.gather(scores, relevant[:, tf.newaxis], batch_dims=1)
        is_above = tf.reshape(tf.cast(scores > own, tf.uint8), [len(scores), -1, 250])
        sums = tf.reduce_sum(is_above, axis=2)
        return tf.reduce_sum(tf.cast(sums, tf.float32), axis=1)

    ours = updater([RankingMetrics(SUITE, inputs="catalog")], "graph")
    what = f"catalog, {list(CATALOGUE)}"
    yield Target.at_most(
        2,
        f"{what}, one relevant item: the suite / counting higher scores",
        measured(
            f"{what}, one relevant item",
            rows,
            {"the suite": ours, "counting higher scores": count_once},
            (one, scores),
        ),
    )
    calls = {"the suite": ours, "counting higher scores in bytes": count_once_in_bytes}
    measured(f"{what}, one relevant item", rows, calls, (one, scores))
    yield Target.at_most(
        1.2,
        f"{what}, ten relevant items: the suite / top_k(10)",
        measured(
            f"{what}, ten relevant items",
            rows,
            {"the suite": ours, "top_k(10)": top_ten},
            (ten, scores),
        ),
    )
    theirs = keras_tools().get("tensorflow-ranking")
    if theirs is None:
        return
    one_hot = tf.one_hot(one, CATALOGUE[1])
    with_labels = updater(theirs, "graph")
    calls = {
        "TensorFlow Ranking": lambda _, scores: with_labels(one_hot, scores),
        "ours": ours,
    }
    yield Target.at_least(
        50,
        f"{what}, one relevant item: TensorFlow Ranking, one-hot labels / ours",
        measured(f"{what}, one relevant item", rows, calls, (one, scores)),
    )


def of_fit(rows):
    """Compares the time that the suite adds to a step of `fit` with a graph update."""
    shape, features = (256, 100), 8
    grades, scores = batch(shape, rounded=False)
    inputs = np.random.default_rng(0).normal(size=(*shape, features)).astype("float32")
    steps = tf.data.Dataset.from_tensors((inputs, grades)).repeat(STEPS).cache()

    def model(metrics):
        made = tf.keras.Sequential(
            [
                tf.keras.layers.Input((None, features)),
                tf.keras.layers.Dense(16, activation="relu"),
                tf.keras.layers.Dense(1),
                tf.keras.layers.Reshape((-1,)),
            ]
        )
        made.compile(loss="mse", metrics=metrics)
        return lambda: made.fit(steps, verbose=0)

    update = updater([RankingMetrics(SUITE)], "graph")
    tensors = tf.constant(grades), tf.constant(scores)

    def update_often():
        for _ in range(STEPS):
            update(*tensors)

    times = timed(
        {
            "with": model([RankingMetrics(SUITE)]),
            "without": model([]),
            "suite": update_often,
        },
        seconds=20,
    )
    times = {name: of / STEPS for name, of in times.items()}
    added = times["with"] - times["without"]  # the runs alternate
    found = float(np.median(added) / np.median(times["suite"]))
    what = f"one step of fit, small model, {list(shape)}"
    rows.append([what, "added by the suite", median_and_spread(added)])
    rows[-1] += ["the suite alone", median_and_spread(times["suite"]), f"{found:.3g}"]
    print(*rows[-1], sep="  ", flush=True)
    yield Target.at_most(1.5, f"{what}: time added / the suite alone", found)


def of_state(rows):
    """Measures the size of a metric's state after a thousand and a million queries."""
    metric = RankingMetrics(SUITE)
    tensors = distinct((1000, 20))
    for updates in (1, 999):
        for _ in range(updates):
            metric.update_state(*tensors)
        rows.append(sum(int(np.prod(kept.shape)) for kept in metric.variables))
    few, many = rows
    yield Target.at_most(
        1, "values in the state: after 1,000,000 queries / after 1000", many / few
    )


def growth(shapes, rows):
    """Medians for batches of growing size, by mode and by function."""
    medians = {}
    for mode in ("graph", "XLA"):
        calls = {
            "the suite": updater([RankingMetrics(SUITE)], mode),
            "two top_k(10)": two_top_k(mode),
        }
        medians[mode] = {name: [] for name in calls}
        for shape in shapes:
            tensors = distinct(shape)
            times = timed(
                {
                    name: functools.partial(call, *tensors)
                    for name, call in calls.items()
                },
                seconds=1,
            )
            for name in calls:
                medians[mode][name].append(float(np.median(times[name])))
            rows.append([list(shape), mode, *map(median_and_spread, times.values())])
            rows[-1].append(f"{ratio(times, *calls):.3g}")
            print(*rows[-1], sep="  ", flush=True)
    return medians


def growth_targets(what, sizes, medians, reference):
    """Targets for the growth from the fifth size on, where fixed costs are small."""
    for mode, of_mode in medians.items():
        of_suite, of_top_k = (values[-1] / values[4] for values in of_mode.values())
        expected = of_top_k if reference == "top_k" else sizes[-1] / sizes[4]
        yield Target.at_most(
            1.25,
            f"{what}, {sizes[-1]} / {sizes[4]}, {mode}: growth of the time / growth of "
            f"{reference}",
            of_suite / expected,
        )


def plot_growth(axis, what, sizes, medians):
    """Plots time against size, for both modes."""
    for number, (mode, of_mode) in enumerate(medians.items()):
        for (name, values), style in zip(of_mode.items(), ("-o", "--x"), strict=True):
            label = f"{name}, {mode}"
            axis.plot(sizes, values, style, color=f"C{number}", label=label)
    axis.set(xscale="log", yscale="log", xlabel=what, ylabel="ms per update")
    axis.grid(alpha=0.3)
    axis.legend()


def main():
    """Runs all measurements and publishes the results."""
    tools = list(keras_tools())
    rows = [["case", "A", "ms", "B", "ms", "A / B"]]
    kept = []
    of_ties(rows)
    targets = [
        target
        for part in (of_more_metrics, of_catalogs, of_fit)
        for target in part(rows)
    ]
    targets += of_state(kept)
    tables = {
        "Added cost": rows,
        "Values in the state of ten metrics": [
            ["after 1000 queries", "after 1,000,000 queries"],
            kept,
        ],
    }
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for what, axis, reference, sizes in GROWTH:
        shapes = [(size, 100) if axis == 0 else (128, size) for size in sizes]
        head = ["batch", "mode", "the suite", "two top_k(10)", "ratio"]
        of_growth = tables[f"Growth with the number of {what}, milliseconds"] = [head]
        medians = growth(shapes, of_growth)
        plot_growth(axes[axis], what, sizes, medians)
        targets += growth_targets(what, sizes, medians, reference)
    on_tf = f"TensorFlow {tf.__version__}"
    publish(
        "-".join(["cost", *tools]),
        f"Cost of more metrics, items and queries, on {on_tf}",
        ["tensorflow", *tools],
        tables,
        [target._replace(what=f"{target.what}, {on_tf}") for target in targets],
        figure,
    )


if __name__ == "__main__":
    main()
