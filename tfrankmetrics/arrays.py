"""Anything array-like as dense tensors, and shapes checked as early as they are known.

That is while tracing where the graph knows a dimension, and at run time where it
does not.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf


class Dense(NamedTuple):
    """One argument as a dense tensor, with its row lengths if it was ragged."""

    name: str
    tensor: tf.Tensor
    padding: float | bool
    row_lengths: tf.Tensor | None = None


def dense(name: str, data: Any, convert: Callable, padding: float | bool) -> Dense:
    """Converts anything array-like; rows of unequal length are padded."""
    if not tf.is_tensor(data):
        data = _array_or_rows(name, data)
    if isinstance(data, tf.SparseTensor):
        raise ValueError(
            f"{name} must be dense or ragged. Received a SparseTensor: pass "
            "tf.sparse.todense() of it, with padding marked by labels below 0."
        )
    if isinstance(data, tf.RaggedTensor):
        if data.ragged_rank != 1:
            raise ValueError(
                f"If ragged, {name} must have one ragged dimension, as in [B, (N)]. "
                f"Received: shape {data.shape}, ragged rank {data.ragged_rank}."
            )
        rows = convert(data)
        tensor = rows.to_tensor(tf.cast(padding, rows.dtype))
        return Dense(name, tensor, padding, rows.row_lengths())
    tensor = tf.convert_to_tensor(data)
    if tensor.shape.rank is None:
        raise ValueError(
            f"{name} must have a known number of dimensions, as set by "
            "tf.ensure_shape(). Received: a tensor of unknown rank."
        )
    return Dense(name, convert(tensor), padding)


def _array_or_rows(name: str, data: Any) -> np.ndarray | tf.RaggedTensor:
    """Array-like data as an array, or ragged if its rows are of unequal length."""
    if isinstance(data, np.ma.MaskedArray):
        raise ValueError(
            f"{name} must not be a masked array, whose mask says what to leave out: "
            "pass array.data, and mask=~array.mask."
        )
    try:
        array = np.asarray(data)
    except ValueError:  # rows of unequal length
        array = np.empty(0, object)
    if array.dtype != object:
        if array.dtype.kind in "SUMm":
            raise ValueError(f"{name} must hold numbers. Received: {array.dtype}.")
        return array
    try:
        rows = [np.asarray(row) for row in data]
        values = np.concatenate([row for row in rows if row.size] or rows)
        if values.dtype.kind not in "biuf" or values.ndim not in (1, 2):
            raise ValueError
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be an array, or a list of lists of numbers. "
            f"Received: {data!s:.200}."
        ) from None
    return tf.RaggedTensor.from_row_lengths(values, [len(row) for row in rows])


def widened(given: Dense, width: tf.Tensor) -> Dense:
    """Pads what was ragged to a width that a dense tensor beside it has."""
    missing = tf.maximum(width - tf.shape(given.tensor)[1], 0)
    padding = tf.cast(given.padding, given.tensor.dtype)
    paddings = [[0, 0]] * given.tensor.shape.rank
    paddings[1] = [0, missing]
    padded = tf.pad(given.tensor, paddings, constant_values=padding)
    return given._replace(tensor=padded)


def row_by_row(given: Dense) -> Dense:
    """Rows that happen to be as long as each other, as meant one by one.

    So Python lists are, where padding comes in arrays.
    """
    size = tf.shape(given.tensor, out_type=tf.int64)
    return given._replace(row_lengths=tf.fill(size[:1], size[1]))


def like(given: Dense, other: Dense, of: str, error: str) -> tf.Tensor:
    """The tensor of `given`, which must have the shape and rows of the other.

    `of` is what the other holds, for the errors about rows.
    """
    shape = tf.shape(other.tensor)
    if given.row_lengths is None:
        return of_shape(given.tensor, other.tensor.shape, shape, error)
    with _required_same_rows(given, other, of):
        tensor = widened(given, shape[1]).tensor
        return of_shape(tensor, other.tensor.shape, shape, error)


def of_shape(
    tensor: tf.Tensor, known: tf.TensorShape, shape: tf.Tensor, error: str
) -> tf.Tensor:
    """`tensor`, which must have this shape: checked now as far as it is known."""
    if not tensor.shape.is_compatible_with(known):
        raise ValueError(error)
    if tensor.shape.is_fully_defined() and known.is_fully_defined():
        return tensor
    return tf.ensure_shape(reshaped_if_same(tensor, shape, error), known)


def reshaped_if_same(tensor: tf.Tensor, shape: tf.Tensor, error: str) -> tf.Tensor:
    """`tensor`, if this is its shape when the graph runs; else that is an error."""
    received = tf.shape(tensor)
    same = tf.equal(received, shape)
    with required(tf.reduce_all(same), error, received, "for", shape):
        # XLA drops assertions; there the impossible size -2 is the error.
        return tf.reshape(tensor, tf.where(same, shape, -2))


def _required_same_rows(given: Dense, other: Dense, of: str) -> AbstractContextManager:
    if other.row_lengths is None:
        raise ValueError(
            f"If ragged, {given.name} needs ragged {of} with rows of the same "
            f"lengths. Received: dense {of} of shape {other.tensor.shape}."
        )
    error = f"The rows of {given.name} must be as long as those of the {of}."
    lengths = (other.row_lengths, given.row_lengths)
    if tf.executing_eagerly():
        rows = zip_longest(*(each.numpy() for each in lengths))
        for row, (expected, received) in enumerate(rows):
            if expected != received:
                raise ValueError(
                    f"{error} Received: in row {row}, {expected} {of} and {received} "
                    f"values of {given.name}."
                )
    with required(tf.equal(*map(tf.size, lengths)), error, *lengths):
        same_lengths = tf.equal(*lengths)
    return required(tf.reduce_all(same_lengths), error, *lengths)


def required(
    condition: tf.Tensor, error: str, *at_run_time: Any
) -> AbstractContextManager:
    """Raises ValueError now; in a graph, what is built within waits for the check.

    The graph raises InvalidArgumentError with the same message when it runs, and
    with the values that are only known then.
    """
    if not tf.executing_eagerly():
        check = tf.debugging.Assert(condition, [error, "At run time:", *at_run_time])
        return tf.control_dependencies([check])
    if not condition:
        raise ValueError(error)
    return nullcontext()


def first_index(where: np.ndarray) -> list[int]:
    """The index of the first True."""
    return np.argwhere(where)[0].tolist()


def first(where: np.ndarray, values: tf.Tensor) -> str:
    """The value at the first True, and its index."""
    index = first_index(where)
    return f"{values.numpy()[tuple(index)]} at index {index}"
