"""Calls with tensors from eager code, compiled to graphs if they are frequent.

Only calls with tensors import this module.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrankmetrics.arrays import Array
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.metrics.measure import Measure

# Tracing a graph takes as long as some 20 calls without one.
_CALLS_WITHOUT_GRAPH = 8


def call_with_tensors(
    function: Callable,
    measures: tuple[Measure, ...],
    lists: Lists,
    first_query: Array | int,
) -> Any:
    """`function(measures, lists, first_query)`, run as a graph if it is called often.

    Running op by op is many times slower, but starts at once. The results are bitwise
    identical.
    """
    tensors = {n: tf.convert_to_tensor(array) for n, array in lists.arrays.items()}
    lists = lists.with_arrays(tensors)
    if any(callable(value) for measure in measures for _, value in measure.options):
        # A cached graph would not notice that a user's function behaves differently.
        return function(measures, lists, first_query)
    signature = tuple((name, _spec(tensor)) for name, tensor in tensors.items())
    others = tuple((n, v) for n, v in vars(lists).items() if n not in tensors)
    calls = _calls(function, tuple(measures), type(lists), others, signature)
    return calls(lists, tensors, first_query)


def _spec(tensor: tf.Tensor) -> tf.TensorSpec:
    """The tensor's type, with all sizes unknown except a last dimension of 1.

    A graph that knows this dimension is faster.
    """
    shape = [None] * tensor.shape.rank
    if len(shape) > 1 and tensor.shape[-1] == 1:
        shape[-1] = 1
    return tf.TensorSpec(shape, tensor.dtype)


class _Calls:
    """All calls with the same measures and dtypes: one graph serves all shapes.

    Only a last dimension of 1 requires a separate graph.
    """

    def __init__(self, function, measures, lists_type, others, signature):
        self.number = 0
        self.run = functools.partial(function, measures)
        self.make = functools.partial(lists_type, **dict(others))
        self.signature = dict(signature)

    def __call__(self, lists, tensors, first_query):
        self.number += 1
        run_eagerly = tf.config.functions_run_eagerly()  # as for any tf.function
        if run_eagerly or self.number <= _CALLS_WITHOUT_GRAPH:
            return self.run(lists, first_query)
        outputs = tf.raw_ops.PartitionedCall(
            args=[*tf.nest.flatten(tensors), tf.cast(first_query, tf.int64)],
            Tout=[tensor.dtype for tensor in self.graph.outputs],
            f=self.graph,
            config_proto=_AS_WRITTEN,
        )
        return tf.nest.pack_sequence_as(self.graph.structured_outputs, outputs)

    @functools.cached_property
    def graph(self):
        """The function for tensors of these types."""

        def ranking_metrics(tensors, first_query):
            return self.run(self.make(**tensors), first_query)

        return tf.function(ranking_metrics, autograph=False).get_concrete_function(
            self.signature, tf.TensorSpec([], tf.int64, name="first_query")
        )


_calls = functools.lru_cache(maxsize=64)(_Calls)


def _without_rewriting() -> bytes:
    """Options to run a graph as it is written.

    TensorFlow would rewrite some formulas, such as x / 3 to x * (1 / 3). The results
    would then differ in their last bits from the ops run one by one, and would not be
    faster.
    """
    config = tf.compat.v1.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config.SerializeToString()


_AS_WRITTEN = _without_rewriting()
