"""Relevant ids and their grades, which inputs="ids" and inputs="catalogue" share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfrankmetrics.inputs.tensors import (
    Dense,
    as_float64,
    as_ragged,
    dense,
    first_value,
    require_keys,
    with_shape_of,
)

PADDING = -1
# Up to so many ids, the comparison of all pairs is faster than a sort.
MOST_COMPARED = 64


def from_dict(y_true: Any, may_have: set[str]) -> tuple[Any, Any, Any]:
    """The `ids`, `relevance` and `exclude` of `y_true`, which may be the ids alone."""
    if not isinstance(y_true, Mapping):
        return y_true, None, None
    require_keys(y_true, "ids", may_have)
    return y_true["ids"], y_true.get("relevance"), y_true.get("exclude")


def as_ids(name: str, data: Any) -> Dense:
    """Ids as int64; rows of unequal length are padded with -1."""

    def convert(ids: Any) -> Any:
        if not ids.dtype.is_integer or ids.dtype == tf.uint64:
            if ids.shape.num_elements() == 0:  # an empty list has no dtype
                return tf.cast(ids, tf.int64)
            hint = " Cast them to int64." if ids.dtype == tf.uint64 else ""
            raise ValueError(
                f"{name} must hold ids: integers of at least 0, with -1 for padding. "
                f"Received dtype: {ids.dtype.name}.{hint}"
            )
        return tf.cast(ids, tf.int64)

    return dense(name, data, convert, padding=PADDING)


def as_relevance(relevance: Any, ids: Dense) -> tf.Tensor:
    """The grades of ids, float64; a negative grade is 0, not relevant."""

    def convert(grades: Any) -> Any:
        if not (grades.dtype.is_floating or grades.dtype.is_integer):
            raise ValueError(
                f"'relevance' must hold real numbers. Received: {grades.dtype.name}."
            )
        return as_float64(grades)

    given = dense("'relevance'", relevance, convert, padding=0)
    error = (
        f"'relevance' must be of the shape of 'ids', {ids.tensor.shape}. "
        f"Received: shape {given.tensor.shape}."
    )
    if given.tensor.shape.rank != ids.tensor.shape.rank:
        raise ValueError(error)
    if ids.row_lengths is not None and given.row_lengths is None:
        given = as_ragged(given)
    grades = with_shape_of(ids, given, "ids", error)
    return tf.where(grades < 0, tf.zeros_like(grades), grades)


def relevance_of(relevant: tf.Tensor, relevance: tf.Tensor | None) -> tf.Tensor:
    """The relevance of each id: its grade, or 1 without grades; 0 for padding."""
    if relevance is None:
        return tf.cast(relevant != PADDING, tf.float64)
    relevance = tf.reshape(relevance, tf.shape(relevant))
    return tf.where(relevant != PADDING, relevance, 0)


def is_repeated(ids: tf.Tensor) -> tf.Tensor:
    """True where the same id stands earlier in the row `[B, M]`."""
    if ids.shape[1] == 1:
        return tf.zeros_like(ids, tf.bool)
    if ids.shape[1] is None or ids.shape[1] > MOST_COMPARED:
        order = tf.argsort(ids, axis=1, stable=True)
        in_order = tf.gather(ids, order, batch_dims=1)
        is_same = tf.equal(in_order[:, 1:], in_order[:, :-1])
        is_same = tf.pad(is_same, [[0, 0], [1, 0]])
        return tf.gather(is_same, tf.argsort(order, axis=1), batch_dims=1)
    positions = tf.range(tf.shape(ids)[1])
    is_earlier = positions[tf.newaxis, :] < positions[:, tf.newaxis]
    is_same = tf.equal(ids[:, :, tf.newaxis], ids[:, tf.newaxis, :])
    return tf.reduce_any(is_same & is_earlier, axis=2)


def require_finite_relevance(relevance: tf.Tensor) -> None:
    """Raises ValueError for a grade that is NaN or infinite."""
    invalid = ~np.isfinite(relevance.numpy())
    if invalid.any():
        raise ValueError(
            "'relevance' must hold finite numbers, and integers below 2^53. "
            f"Received: {first_value(invalid, relevance)}."
        )
