"""What an update costs, counted rather than timed: ops, sizes of tensors, memory."""

import math
import re
import subprocess
import sys

import pytest
import tensorflow as tf
from cases import METRICS, OF_LABELS
from helpers import SUITE, optimised_ops, updater

import tfrankmetrics as tfr

QUERIES, ITEMS = 32, 30
# How much memory updates take at their peak, beside scores [128, 100000]. In a process
# of its own: elsewhere they would take what others have left.
PEAK = f"""
import resource
import tensorflow as tf
import tfrankmetrics as tfr

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000

metric = tfr.RankingMetrics({SUITE}, inputs="catalogue")

@tf.function(autograph=False)
def update(*arguments):
    metric.update_state(*arguments)

one = tf.random.uniform([128, 1], maxval=100_000, dtype=tf.int64)
ten = tf.random.uniform([128, 10], maxval=100_000, dtype=tf.int64)
for relevant in (one, ten):  # a small catalogue, to load all that it takes
    update(relevant % 20, tf.random.normal([128, 20]))
scores = tf.random.normal([128, 100_000])
before = peak()
for relevant in (one, ten):
    update(relevant, scores)
print(peak() - before)
"""


def lists():
    return tf.ones((QUERIES, ITEMS)), tf.ones((QUERIES, ITEMS))


def test_the_suite_sorts_twice_and_gathers_little():
    ops = optimised_ops(updater(tfr.RankingMetrics(SUITE)), *lists())
    assert ops["TopKV2"] == 2
    # Labels by rank; four more where there are ties.
    assert ops["GatherV2"] <= 5
    # The optimiser's own idea for exp(x) - 1, on whole lists where there are ties.
    assert ops["Expm1"] == 0


def test_xla_sorts_no_list_to_the_end():
    update = tf.function(updater(tfr.RankingMetrics(SUITE)), jit_compile=True)
    program = update.experimental_get_compiler_ir(*lists())(stage="optimized_hlo")
    # Labels, scores, and scores where there may be NaN.
    assert program.count('custom_call_target="TopK"') == 3
    assert not re.search(r"\bsort\(", program)


def sizes_of_tensors(function, *arguments):
    """The number of elements of each tensor in a graph and in all graphs within it."""
    graph = tf.function(function).get_concrete_function(*arguments).graph
    definition = graph.as_graph_def(add_shapes=True)
    nodes = list(definition.node)
    for inner in definition.library.function:
        nodes += inner.node_def
    return [
        math.prod(dimension.size for dimension in shape.dim)
        for node in nodes
        for shape in node.attr["_output_shapes"].list.shape
    ]


@pytest.mark.parametrize("k", [None, 10])
def test_no_tensor_is_of_pairs_of_ranks(k):
    names = [
        name if k is None else f"{name}@{k}"
        for name in OF_LABELS
        if k is None or METRICS[name].has_cutoff
    ]
    sizes = sizes_of_tensors(updater(tfr.RankingMetrics(names)), *lists())
    assert len(sizes) > 100
    assert min(sizes) >= 0  # all are known
    assert max(sizes) <= 2 * QUERIES * (ITEMS + 1)


def test_peak_memory_of_a_catalogue():
    """The scores are 51 MB; one-hot labels would be as much, and so would sort keys."""
    process = subprocess.run(
        [sys.executable, "-c", PEAK], capture_output=True, text=True, check=True
    )
    assert float(process.stdout) < 40
