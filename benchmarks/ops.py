"""Measures the time of each kind of op in an update, in microseconds.

TensorFlow traces every op in a graph. The total over all ops exceeds the time of an
update, because two cores run some of the ops in parallel. Run it with:

    python benchmarks/ops.py
"""

import collections
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's start-up messages

import numpy as np
import tensorflow as tf
from cost import KINDS, distinct
from report import publish
from training import SUITE, batch

from tfrankmetrics.compute.sums import weighted_sums
from tfrankmetrics.inputs.labels import read_labels
from tfrankmetrics.metrics.names import named_measures

CASES = {
    "the suite, [32, 20]": (SUITE, (32, 20), False),
    "the suite, [1024, 200]": (SUITE, (1024, 200), False),
    "the suite, [1024, 200], ties": (SUITE, (1024, 200), True),
    "whole lists, [1024, 200]": (KINDS, (1024, 200), False),
}
NAMED = ["TopKV2", "GatherV2", "Cumsum", "Exp"]
WARM_UP, RUNS = 5, 30


def traced(names, shape, is_tied):
    """The median microseconds of each op, by name, kind and number of elements."""
    arrays = batch(shape, True) if is_tied else [t.numpy() for t in distinct(shape)]
    measures = tuple(named_measures(names, {}).values())
    trace = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE)
    times = collections.defaultdict(list)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        given = [tf.compat.v1.placeholder(tf.float32, shape) for _ in arrays]
        sums = weighted_sums(measures, read_labels(*given))
        for run in range(WARM_UP + RUNS):
            metadata = tf.compat.v1.RunMetadata()
            fed = dict(zip(given, arrays, strict=True))
            session.run(sums, fed, options=trace, run_metadata=metadata)
            for node in metadata.step_stats.dev_stats[0].node_stats:
                kind = node.timeline_label.split("=")[-1].split("(")[0].strip()
                taken = node.op_end_rel_micros - node.op_start_rel_micros
                if run >= WARM_UP:
                    times[node.node_name, kind, _elements(node)].append(taken)
    return {key: float(np.median(values)) for key, values in times.items()}


def _elements(node):
    """The number of elements in the first output of an op."""
    of = [output.tensor_description.shape.dim for output in node.output[:1]]
    return int(np.prod([dimension.size for dims in of for dimension in dims]))


def by_kind(times, shape):
    """Total times: of each named kind, of other ops on whole lists, and of the rest."""
    sums = collections.Counter()
    for (_, kind, size), taken in times.items():
        over_lists = size >= np.prod(shape) // 2
        name = kind if kind in NAMED else "other, on lists" if over_lists else "rest"
        sums[name] += taken
    return [f"{sums[name]:.0f}" for name in (*NAMED, "other, on lists", "rest")]


def main():
    """Traces all cases and publishes the results."""
    rows = [["", "ops", "total", *NAMED, "other, on lists", "rest"]]
    for name, (names, shape, is_tied) in CASES.items():
        times = traced(names, shape, is_tied)
        rows.append([name, len(times), f"{sum(times.values()):.0f}"])
        rows[-1] += by_kind(times, shape)
        print(*rows[-1], sep="  ", flush=True)
    publish(
        "ops",
        "Where an update spends its time",
        ["tensorflow"],
        {"Ops in a graph, microseconds": rows},
    )


if __name__ == "__main__":
    main()
