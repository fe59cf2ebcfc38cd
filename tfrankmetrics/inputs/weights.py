"""Weights: one for each query, or one for each item."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array, Library
from tfrankmetrics.inputs.dense import Dense, dense, first_value, require_shape
from tfrankmetrics.inputs.whole_data import flat_numbers

RULE = (
    "`sample_weight` must hold finite numbers of at least 0, and none between 0 and "
    "2.3e-308, which TensorFlow treats as 0."
)


def query_or_item_weights(
    sample_weight: Any, labels: Dense, is_one_list: bool
) -> tuple[Array | None, Array | None]:
    """The weights of labels: one per query, `[B]`, or one per item, `[B, N]`."""
    given = _dense(sample_weight, xp.library_of(labels.array))
    error = (
        "`sample_weight` must be a scalar, [B] or [B, 1] (one weight per query), or of "
        f"the labels' shape (one per item), {labels.array.shape}; the latter may have "
        f"a last dimension of 1. Received: shape {given.array.shape}."
    )
    weights = _nan_if_negative(given.array)
    if weights.ndim == 3 and weights.shape[2] == 1:  # as scores may have
        weights = xp.squeeze(weights, axis=2)
    elif is_one_list and weights.ndim == 1:
        weights = weights[xp.newaxis]
    is_dense = given.row_lengths is None
    if is_dense or weights.ndim < 2:
        of_queries = _one_per_query(weights, labels.array, error)
        if of_queries is not None:
            return of_queries, None
    if is_dense and weights.ndim == 2 and weights.shape[1] is None:
        from tfrankmetrics.inputs.read_tensors import weights_of_items

        weights = weights_of_items(weights, labels.array, error)
    given = given._replace(array=weights)
    return None, given.with_shape_of(labels, "labels", error)


def query_weights(sample_weight: Any, queries: Array) -> Any:
    """The weights of `queries`, `[B, ...]`, as float64 `[B]`; None if there are none.

    They are an array of the library of `queries`.
    """
    if sample_weight is None:
        return None
    weights = dense_weights(sample_weight, library=xp.library_of(queries))
    error = (
        "`sample_weight` must be a scalar, [B] or [B, 1]: one weight per query. "
        f"Received: shape {weights.shape} for scores or ids of shape {queries.shape}."
    )
    weights = _nan_if_negative(weights)
    if weights.ndim == 2 and weights.shape[1] is None:
        shape = xp.concat([xp.shape(queries)[:1], [1]], axis=0)
        weights = require_shape(weights, (queries.shape[0], 1), shape, error)
    of_queries = _one_per_query(weights, queries, error)
    if of_queries is None:
        raise ValueError(error)
    return of_queries


def _one_per_query(weights: Array, queries: Array, error: str) -> Array | None:
    """Weights of the shape `[]`, `[B]` or `[B, 1]` as `[B]`; None for other shapes."""
    batch = xp.shape(queries)[:1]
    if weights.ndim == 0:
        return xp.full(batch, weights, like=weights)
    if weights.ndim == 2 and weights.shape[1] == 1:
        weights = xp.squeeze(weights, axis=1)
    if weights.ndim != 1:
        return None
    return require_shape(weights, queries.shape[:1], batch, error)


def _dense(sample_weight: Any, library: Library) -> Dense:
    return dense(
        "`sample_weight`", sample_weight, as_weights, padding=0, library=library
    )


def dense_weights(sample_weight: Any, *, library: Library) -> Array:
    """Weights as float64, in rows of equal length."""
    given = _dense(sample_weight, library)
    if given.row_lengths is not None:
        raise ValueError(
            "`sample_weight` must have rows of equal length, unless the labels are "
            f"also ragged. Received: rows of {given.row_lengths} weights."
        )
    return given.array


def _nan_if_negative(weights: Array) -> Array:
    nan = xp.asarray(float("nan"), xp.float64, like=weights)
    return xp.where(weights < 0, nan, weights)


def as_weights(weights: Array) -> Array:
    """Weights as float64."""
    if not (xp.is_floating(weights) or xp.dtype_of(weights).kind in "iu"):
        raise ValueError(
            "`sample_weight` must hold real numbers. To exclude items from the "
            f"ranking, use a mask. Received dtype: {xp.dtype_of(weights).name}."
        )
    return xp.astype(weights, xp.float64)


def require_valid_weights(weights: Array | None) -> None:
    """Raises ValueError for a weight that is not finite; negative ones are NaN."""
    if weights is None:
        return
    numbers = np.asarray(weights)
    is_denormal = (numbers > 0) & (numbers < np.finfo(numbers.dtype).tiny)
    bad_weights = ~np.isfinite(numbers) | is_denormal
    if bad_weights.any():
        raise ValueError(f"{RULE} Received: {first_value(bad_weights, numbers)}.")


def refuse_negative_weights(sample_weight: Any) -> None:
    """Raises ValueError for a negative weight, which reading replaces by NaN."""
    numbers = None if sample_weight is None else flat_numbers(sample_weight)
    if numbers is not None and (numbers < 0).any():
        raise ValueError(f"{RULE} Received: {first_value(numbers < 0, numbers)}.")
