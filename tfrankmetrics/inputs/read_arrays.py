"""Arrays and Python lists as dense arrays of NumPy: one argument of a user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.arrays import Array
from tfrankmetrics.columns.values import (
    as_list,
    from_pytorch,
    refuse_masked_arrays,
    refuse_rounded_integers,
    without_decimals,
)


class Dense(NamedTuple):
    """One argument as a dense array, with its row lengths if it was ragged."""

    name: str
    tensor: Array
    padding: float | bool
    row_lengths: Array | None = None


def read_array(name: str, data: Any, convert: Callable, padding: float | bool) -> Dense:
    """Anything array-like as an array of NumPy; rows of unequal length are padded."""
    refuse_masked_arrays(name, data)
    data = as_list(from_pytorch(data))
    try:
        array = np.asarray(data)
    except ValueError:  # rows of unequal length
        array = np.empty(0, object)
    array = without_decimals(array)
    if array.dtype == object:
        return _padded(name, data, convert, padding)
    refuse_rounded_integers(name, data, array)
    is_long = array.dtype.kind == "f" and array.dtype.itemsize > 8
    if is_long or array.dtype.kind in "SUMm":
        first = f"{array.flat[:1].tolist()[0]!r}, of dtype " if array.size else ""
        are_ids = array.dtype.kind in "SU" and name in ("`y_true`", "`y_pred`")
        hint = " If they are ids of items, pass inputs='ids'." if are_ids else ""
        raise ValueError(
            f"{name} must hold real numbers of at most 64 bits. Received: {first}"
            f"{array.dtype}.{hint}"
        )
    return Dense(name, convert(array), padding)


def _padded(name: str, data: Any, convert: Callable, padding: float | bool) -> Dense:
    """Rows of unequal length as an array with padding."""
    rows, values = _rows(name, data)
    values = convert(values)
    lengths = np.array([len(row) for row in rows], np.int64)
    shape = len(lengths), lengths.max(initial=0), *values.shape[1:]
    array = np.full(shape, padding, values.dtype)
    array[np.arange(shape[1]) < lengths[:, np.newaxis]] = values
    return Dense(name, array, padding, lengths)


def _rows(name: str, data: Any) -> tuple[list[np.ndarray], np.ndarray]:
    """The rows, and the values of all of them, one after the other."""
    try:
        rows = [np.asarray(from_pytorch(row)) for row in data]
        values = np.concatenate([row for row in rows if row.size] or rows)
    except (TypeError, ValueError):
        rows, values = [], np.empty(0, object)
    values = without_decimals(values)
    if values.dtype.name == "bfloat16":  # not a dtype of NumPy itself
        values = values.astype(np.float32)
    if values.dtype.kind not in "biuf" or values.ndim not in (1, 2):
        is_array = isinstance(data, np.ndarray)
        hint = " It has the dtype object: convert it to float." if is_array else ""
        raise ValueError(
            f"{name} must be an array of numbers, or a list of lists of numbers, of at "
            f"most 64 bits each. Received: {data!s:.200}.{hint}"
        )
    return rows, values
