"""Tensors and ragged tensors as dense tensors of TensorFlow, and checks in graphs.

A dimension that is known while tracing is checked then, and otherwise when the graph
runs. Only calls with tensors import this module.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import tensorflow as tf

from tfrankmetrics.inputs.read_arrays import Dense

identity = tf.identity


def read_tensor(
    name: str, data: Any, convert: Callable, padding: float | bool
) -> Dense:
    """A tensor in the dtype of `convert`; rows of unequal length are padded."""
    if isinstance(data, tf.SparseTensor):
        raise ValueError(
            f"{name} must be dense or ragged. Received a SparseTensor: convert it with "
            "tf.sparse.to_dense(), and mark padding by labels below 0."
        )
    if isinstance(data, tf.RaggedTensor):
        if data.ragged_rank != 1:
            raise ValueError(
                f"If ragged, {name} must have one ragged dimension, as in [B, (N)]. "
                f"Received: shape {data.shape}, ragged rank {data.ragged_rank}."
            )
        rows = data.with_flat_values(convert(data.flat_values))
        tensor = rows.to_tensor(tf.cast(padding, rows.dtype))
        return Dense(name, tensor, padding, rows.row_lengths())
    tensor = tf.convert_to_tensor(data)
    if tensor.shape.rank is None:
        raise ValueError(
            f"{name} must have a known number of dimensions, as set by "
            "tf.ensure_shape(). Received: a tensor of unknown rank."
        )
    return Dense(name, convert(tensor), padding)


def require_shape(tensor: Any, known: Any, shape: Any, error: str) -> tf.Tensor:
    """The tensor, if it has this shape; sizes known to the graph were checked."""
    known = tf.TensorShape(known)
    if tensor.shape.is_fully_defined() and known.is_fully_defined():
        return tensor
    return tf.ensure_shape(reshaped_if_same(tensor, shape, error), known)


def reshaped_if_same(tensor: tf.Tensor, shape: Any, error: str) -> tf.Tensor:
    """`tensor`, if it has this shape when the graph runs; otherwise an error."""
    received = tf.shape(tensor)
    same = tf.equal(received, shape)
    with required(tf.reduce_all(same), error, received, "for", shape):
        # XLA drops assertions; there the impossible size -2 is the error.
        return tf.reshape(tensor, tf.where(same, shape, -2))


def weights_of_items(weights: tf.Tensor, labels: tf.Tensor, error: str) -> tf.Tensor:
    """Weights of unknown width as weights of items.

    `[B, 1]` and `[B, N]` look alike until the graph runs. As weights of items, both
    yield the same values.
    """
    shape = tf.shape(labels)
    width = tf.where(tf.shape(weights)[1] == 1, 1, shape[1])
    weights = reshaped_if_same(weights, tf.stack([shape[0], width]), error)
    return weights * tf.ones_like(labels, tf.float64)


def required_same_lengths(
    one: tf.Tensor, other: tf.Tensor, error: str
) -> AbstractContextManager:
    """Requires in a graph that two ragged tensors have the same row lengths."""
    with required(tf.equal(tf.size(one), tf.size(other)), error, one, other):
        same_lengths = tf.equal(one, other)
    return required(tf.reduce_all(same_lengths), error, one, other)


def required(
    condition: tf.Tensor, error: str, *at_run_time: Any
) -> AbstractContextManager:
    """Raises ValueError now; in a graph, delays the operations within until the check.

    The graph raises InvalidArgumentError with the same message when it runs, and
    with the values that are only known then.
    """
    if not tf.executing_eagerly():
        check = tf.debugging.Assert(condition, [error, "At run time:", *at_run_time])
        return tf.control_dependencies([check])
    if not condition:
        raise ValueError(error)
    return nullcontext()
