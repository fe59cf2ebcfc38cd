"""Tensors and ragged tensors as dense tensors of TensorFlow, and checks in graphs.

A dimension that is known while tracing is checked then, and otherwise when the graph
runs. Only calls with tensors import this module.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf


def read_tensor(
    name: str, data: Any, convert: Callable, padding: float | bool
) -> tuple[tf.Tensor, tf.Tensor | None]:
    """A tensor in the dtype of `convert`, and the lengths of its rows if ragged."""
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
        return rows.to_tensor(tf.cast(padding, rows.dtype)), rows.row_lengths()
    tensor = tf.convert_to_tensor(data)
    if tensor.shape.rank is None:
        raise ValueError(
            f"{name} must have a known number of dimensions, as set by "
            "tf.ensure_shape(). Received: a tensor of unknown rank."
        )
    return convert(tensor), None


def with_shape(tensor: Any, known: Any, shape: Any, error: str) -> tf.Tensor:
    """The tensor, if it has this shape when the graph runs.

    `require_shape` has checked the sizes that are `known` before.
    """
    known = tf.TensorShape(known)
    if tensor.shape.is_fully_defined() and known.is_fully_defined():
        return tensor
    return tf.ensure_shape(_reshaped_if_same(tensor, shape, error), known)


def _reshaped_if_same(tensor: tf.Tensor, shape: Any, error: str) -> tf.Tensor:
    """`tensor`, if it has this shape when the graph runs; otherwise an error."""
    received = tf.shape(tensor)
    same = tf.equal(received, shape)
    with _required(tf.reduce_all(same), error, received, "for", shape):
        # XLA drops assertions; there the impossible size -2 is the error.
        return tf.reshape(tensor, tf.where(same, shape, -2))


def with_an_item(scores: tf.Tensor, error: str) -> tf.Tensor:
    """Scores of a catalog of unknown size, which must not be empty."""
    with _required(tf.shape(scores)[-1] > 0, error):
        return tf.identity(scores)


def weights_of_items(weights: tf.Tensor, labels: tf.Tensor, error: str) -> tf.Tensor:
    """Weights of unknown width as weights of items.

    `[B, 1]` and `[B, N]` look alike until the graph runs. As weights of items, both
    yield the same values.
    """
    shape = tf.shape(labels)
    width = tf.where(tf.shape(weights)[1] == 1, 1, shape[1])
    weights = _reshaped_if_same(weights, tf.stack([shape[0], width]), error)
    return weights * tf.ones_like(labels, tf.float64)


def required_same_lengths(
    one: tf.Tensor, other: tf.Tensor, error: str
) -> AbstractContextManager:
    """Requires in a graph that two ragged tensors have the same row lengths."""
    # The sizes first: tf.equal of different sizes would raise its own error.
    with _required(tf.equal(tf.size(one), tf.size(other)), error, one, other):
        same_lengths = tf.equal(one, other)
    return _required(tf.reduce_all(same_lengths), error, one, other)


def _required(
    condition: tf.Tensor, error: str, *at_run_time: Any
) -> AbstractContextManager:
    """A context whose operations wait for a check, which is made when the graph runs.

    It raises InvalidArgumentError with the error and the values `at_run_time`.
    """
    check = tf.debugging.Assert(condition, [error, "At run time:", *at_run_time])
    return tf.control_dependencies([check])
