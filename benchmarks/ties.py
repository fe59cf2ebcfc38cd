"""Compares the time of an update on tied scores with that on scores without ties.

Each metric reads 32 lists of 5,000 items, with a cutoff of 10 and without a cutoff. The
scores have no ties, are rounded to some 60 values, or are constant, as in a model that
has died. Run it with:

    python benchmarks/ties.py
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's start-up messages

import functools

import numpy as np
import tensorflow as tf
from report import Target, plot_bars, publish
from timing import median_and_spread, ratio, timed

import tfrankmetrics as trm

SHAPE = (32, 5000)
NO_CUTOFF = [trm.AverageRelevancePosition, trm.PerQueryAUC, trm.BPref]
NO_CUTOFF += [trm.OrderedPairAccuracy]
CUTOFF = [trm.NDCG, trm.MeanAveragePrecision, trm.MeanReciprocalRank, trm.RecallAtK]
CUTOFF += [trm.RankBiasedPrecision, trm.ExpectedReciprocalRank, trm.AlphaDCG]
HITS = functools.partial(trm.MeanAveragePrecision, denominator="hits")


def batches(has_subtopics):
    """The labels, and the scores by their ties."""
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 5, SHAPE) * (rng.random(SHAPE) < 0.3)
    if has_subtopics:
        grades = rng.random((*SHAPE, 3)) < 0.1
    scores = rng.normal(size=SHAPE)
    by_ties = {"untied": scores, "rounded": scores.round(1), "constant": 0 * scores}
    return tf.constant(grades, tf.float32), {
        ties: tf.constant(each, tf.float32) for ties, each in by_ties.items()
    }


def measure(metric):
    """The milliseconds of an update, by ties."""
    labels, by_ties = batches(isinstance(metric, trm.AlphaDCG))
    update = tf.function(metric.update_state, autograph=False)
    return timed(
        {
            ties: functools.partial(update, labels, scores)
            for ties, scores in by_ties.items()
        },
        seconds=2.0,
        least=5,
    )


def plot(rows):
    """The times of all metrics."""
    figure = plot_bars(
        rows, "milliseconds of an update, [32, 5000], in a graph", (8, 8)
    )
    figure.axes[0].set_xscale("log")
    return figure


def main():
    """Measures all metrics and publishes the results."""
    metrics = [make(k=k) for k in (10, None) for make in (*CUTOFF, HITS)]
    metrics += [make() for make in NO_CUTOFF]
    rows = [
        ["", "untied", "rounded", "constant", "rounded / untied", "constant / untied"]
    ]
    worst = {}
    for metric in metrics:
        times = measure(metric)
        name = metric.name + " over hits" * (
            metric.get_config().get("denominator") == "hits"
        )
        shares = [ratio(times, ties, "untied") for ties in ("rounded", "constant")]
        rows.append([name, *map(median_and_spread, times.values())])
        rows[-1] += [f"{share:.2g}" for share in shares]
        worst[name] = max(shares)
        print(*rows[-1], sep="  ", flush=True)
    publish(
        "ties",
        "Ties",
        ["tensorflow"],
        {"Milliseconds of an update on [32, 5000], in a graph": rows},
        [
            Target.at_most(3, f"{name}: tied / untied", share)
            for name, share in worst.items()
        ],
        plot(rows),
    )


if __name__ == "__main__":
    main()
