"""Tests the cost of an update by counting ops, tensor sizes and memory."""

import math
import re
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from cases import LABEL_METRICS, METRICS
from helpers import SUITE, count_optimized_ops, update_function
from tensorflow.python.framework import kernels

import tfrankmetrics as trm

QUERIES, ITEMS = 32, 80
# Metrics of recommended items that need no data about these.
WITHOUT_DATA = trm.CatalogCoverage, trm.ExposureEntropy, trm.ExposureGini
# Prints the peak memory of updates, without the scores [128, 100000]. It needs a new
# process, because updates can reuse memory that earlier code freed.
PEAK = f"""
import resource
import tensorflow as tf
import tfrankmetrics as trm

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000

metric = trm.RankingMetrics({SUITE}, inputs="catalog")

@tf.function(autograph=False)
def update(*arguments):
    metric.update_state(*arguments)

one = tf.random.uniform([128, 1], maxval=100_000, dtype=tf.int64)
ten = tf.random.uniform([128, 10], maxval=100_000, dtype=tf.int64)
for relevant in (one, ten):  # a small catalog loads libraries first
    update(relevant % 20, tf.random.normal([128, 20]))
scores = tf.random.normal([128, 100_000])
before = peak()
for relevant in (one, ten):
    update(relevant, scores)
print(peak() - before)
"""


def lists():
    return tf.ones((QUERIES, ITEMS)), tf.ones((QUERIES, ITEMS))


def nodes_of(function, *arguments):
    """The operations of a graph and of its inner graphs."""
    graph = tf.function(function).get_concrete_function(*arguments).graph
    definition = graph.as_graph_def(add_shapes=True)
    nodes = list(definition.node)
    for inner in definition.library.function:
        nodes += inner.node_def
    return nodes


def test_ten_metrics_sort_twice_and_gather_little():
    ops = count_optimized_ops(update_function(trm.RankingMetrics(SUITE)), *lists())
    assert ops["TopKV2"] == 2
    # One for the labels by rank, and five that run only with ties.
    assert ops["GatherV2"] <= 6
    # TensorFlow would turn exp(x) - 1 into this op, for whole lists if there are ties.
    assert ops["Expm1"] == 0


@pytest.mark.slow("compiles a program with XLA")
def test_xla_does_not_sort_whole_lists():
    update = tf.function(update_function(trm.RankingMetrics(SUITE)), jit_compile=True)
    program = update.experimental_get_compiler_ir(*lists())(stage="optimized_hlo")
    # One for labels, one for scores, and one for scores that may contain NaN.
    assert program.count('custom_call_target="TopK"') == 3
    assert not re.search(r"\bsort\(", program)


def has_gpu_kernel(node):
    """Whether an operation runs on a GPU: TensorFlow's build for CPUs lists that, too.

    None for an operation without kernels, such as the call of a function, and for the
    text of an error.
    """
    if node.attr["dtype"].type == tf.string.as_datatype_enum:
        return None
    found = kernels.get_registered_kernels_for_op(node.op).kernel

    def fits(kernel):
        for constraint in kernel.constraint:
            of_node = node.attr[constraint.name]
            dtype = of_node.type or next(iter(of_node.list.type), 0)
            if dtype and dtype not in constraint.allowed_values.list.type:
                return False
        return kernel.device_type in ("GPU", "DEFAULT")

    return any(map(fits, found)) if found else None


@pytest.mark.parametrize(
    ("inputs", "data"),
    [
        ("labels", (np.zeros((4, 30), "float32"), np.zeros((4, 30), "float32"))),
        ("ids", (np.zeros((4, 3), "int64"), np.zeros((4, 9), "int64"))),
        ("catalog", (np.zeros((4, 3), "int64"), np.zeros((4, 30), "float32"))),
        ("subtopics", (np.zeros((4, 30, 2), "float32"), np.zeros((4, 30), "float32"))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_operation_has_a_kernel_for_gpus(inputs, data, monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
    has_subtopics = inputs == "subtopics"
    form = "labels" if has_subtopics else inputs
    metrics = [
        declaration.cls(name=name, inputs=form)
        for name, declaration in METRICS.items()
        if declaration.has_subtopics == has_subtopics and form in declaration.inputs
    ]
    if form in ("ids", "catalog"):
        metrics += [cls(num_items=30, inputs=form) for cls in WITHOUT_DATA]
    metric = trm.RankingMetrics(metrics, inputs=form)
    nodes = nodes_of(update_function(metric), *data)
    lacking = {node.op for node in nodes if has_gpu_kernel(node) is False}
    assert len(nodes) > 300
    assert lacking == set()


def tensor_sizes(function, *arguments):
    """The number of elements of each tensor in a graph and in its inner graphs."""
    return [
        math.prod(dimension.size for dimension in shape.dim)
        for node in nodes_of(function, *arguments)
        for shape in node.attr["_output_shapes"].list.shape
    ]


@pytest.mark.parametrize("k", [None, 10])
def test_no_tensor_has_an_element_for_each_pair_of_ranks(k):
    names = [
        name if k is None else f"{name}@{k}"
        for name in LABEL_METRICS
        if k is None or METRICS[name].has_cutoff
    ]
    sizes = tensor_sizes(update_function(trm.RankingMetrics(names)), *lists())
    assert len(sizes) > 100
    assert min(sizes) >= 0  # all sizes are known
    # The largest tensor stacks the facts about the first 24 items of 24 lists.
    assert max(sizes) <= 3 * QUERIES * (ITEMS + 1)


@pytest.mark.slow("starts a process to measure its memory")
def test_peak_memory_of_a_catalog():
    """The scores take 51 MB. One-hot labels or sort keys would take as much again."""
    process = subprocess.run(
        [sys.executable, "-c", PEAK], capture_output=True, text=True, check=True
    )
    assert float(process.stdout) < 40
