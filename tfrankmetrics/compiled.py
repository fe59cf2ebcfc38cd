"""Compiled graphs for calls from eager code, cached."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfrankmetrics.inputs.formats import Lists, tensors_of
from tfrankmetrics.measure import Measure


def call_compiled(
    function: Callable,
    measures: tuple[Measure, ...],
    lists: Lists,
    first_query: tf.Tensor | int,
) -> Any:
    """`function(measures, lists, first_query)`, run as a graph.

    Running op by op would be many times slower. For the same measures and dtypes, one
    graph serves all shapes; only a last dimension of 1 has its own.
    """
    if any(callable(value) for measure in measures for _, value in measure.options):
        # A cached graph would not notice that a user's function behaves differently.
        return function(measures, lists, first_query)
    tensors = tensors_of(lists)
    signature = tuple((name, _spec(tensor)) for name, tensor in tensors.items())
    others = tuple((n, v) for n, v in vars(lists).items() if n not in tensors)
    graph = _compiled(function, tuple(measures), type(lists), others, signature)
    return graph(tensors, tf.cast(first_query, tf.int64))


def require_eager(function: str) -> None:
    """Raises RuntimeError inside a `tf.function`."""
    if not tf.executing_eagerly():
        raise RuntimeError(
            f"{function}() must be called eagerly, since it returns numbers. Received: "
            "a call inside tf.function. Update a metric object there instead."
        )


def _spec(tensor: tf.Tensor) -> tf.TensorSpec:
    """The tensor's type, with all sizes unknown except a last dimension of 1.

    A graph that knows this dimension is faster.
    """
    shape = [None] * tensor.shape.rank
    if len(shape) > 1 and tensor.shape[-1] == 1:
        shape[-1] = 1
    return tf.TensorSpec(shape, tensor.dtype)


@functools.lru_cache(maxsize=256)
def _compiled(
    function: Callable,
    measures: tuple[Measure, ...],
    lists_type: type[Lists],
    others: tuple[tuple[str, Any], ...],
    signature: tuple[tuple[str, tf.TensorSpec], ...],
) -> Callable:
    def ranking_metrics(tensors, first_query):
        lists = lists_type(**dict(others), **tensors)
        return function(measures, lists, first_query)

    graph = tf.function(ranking_metrics, autograph=False)
    return graph.get_concrete_function(
        dict(signature), tf.TensorSpec([], tf.int64, name="first_query")
    )
