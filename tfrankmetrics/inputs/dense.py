"""The arguments of users as dense arrays of one library, and what their shapes must be.

`read_tensors.py` does the same for tensors; it is imported only for these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import zip_longest
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array, Library
from tfrankmetrics.columns.numbered_ids import refuse_missing_lists
from tfrankmetrics.columns.read_column import (
    FIRST_INEXACT,
    as_array,
    as_list,
    first_index,
    from_pytorch,
)
from tfrankmetrics.graphs import executing_eagerly
from tfrankmetrics.inputs.devices import has_tensor


class Dense(NamedTuple):
    """One argument as a dense array, with its row lengths if it was ragged."""

    name: str
    array: Array
    padding: float | bool  # the value after the end of a row
    row_lengths: Array | None = None  # [B], if the argument was ragged

    def as_batch(self) -> Dense:
        """One list, `[N]`, as the only row of an array."""
        return self._replace(array=self.array[xp.newaxis])

    def as_ragged(self) -> Dense:
        """Marks rows of equal length as ragged: Python lists carry no padding."""
        size = xp.shape(self.array, out_type=xp.int64)
        lengths = xp.full(size[:1], size[1], like=self.array)
        return self._replace(row_lengths=lengths)

    def padded_to(self, width: Array) -> Dense:
        """Pads a ragged array to the width of a dense one."""
        array = self.array
        missing = xp.maximum(width - xp.shape(array)[1], 0)
        padding = xp.astype(self.padding, array.dtype, like=array)
        widths = [[0, 0], [0, missing], *[[0, 0]] * (array.ndim - 2)]
        return self._replace(array=xp.pad(array, widths, constant_values=padding))

    def with_shape_of(self, other: Dense, contents: str, error: str) -> Array:
        """The array, which must have the shape and rows of `other`.

        `contents` names the contents of the other array in the errors about rows.
        """
        known, shape = other.array.shape, xp.shape(other.array)
        if self.row_lengths is None:
            return require_shape(self.array, known, shape, error)
        with _required_same_rows(self, other, contents):
            return require_shape(self.padded_to(shape[1]).array, known, shape, error)


def dense(
    name: str,
    data: Any,
    convert: Callable,
    padding: float | bool,
    *,
    library: Library = "tensorflow",
) -> Dense:
    """Converts anything array-like; rows of unequal length are padded.

    The result is an array of the library. `convert` checks the dtype of an array, and
    casts it.
    """
    if library != "numpy" and library == xp.library_of(data):
        if library == "jax":
            return Dense(name, convert(data), padding)
        if library == "torch":
            return Dense(name, convert(data.detach()), padding)
        tensor, row_lengths = _tensors().read_tensor(name, data, convert, padding)
        return Dense(name, tensor, padding, row_lengths)
    data = as_list(from_pytorch(data))
    array, lengths = as_array(name, data), None
    if array.dtype == object:
        array, lengths = _read_rows(name, data, convert, padding)
    elif array.dtype.kind in "SUMm":
        first = f"{array.flat[:1].tolist()[0]!r}, of dtype " if array.size else ""
        are_ids = array.dtype.kind in "SU" and name in ("`y_true`", "`y_pred`")
        hint = " If they are ids of items, pass inputs='ids'." if are_ids else ""
        raise ValueError(
            f"{name} must hold real numbers of at most 64 bits. Received: {first}"
            f"{array.dtype}.{hint}"
        )
    else:
        array = convert(array)
    if library != "numpy":
        array = xp.in_library(library, array)
    return Dense(name, array, padding, lengths)


def _read_rows(
    name: str, data: Any, convert: Callable, padding: float | bool
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of unequal length as an array with padding, and their lengths."""
    if isinstance(data, (list, tuple)):
        refuse_missing_lists(name, data)
    try:
        rows = [np.asarray(from_pytorch(row)) for row in data]
        values = np.concatenate([row for row in rows if row.size] or rows)
    except (TypeError, ValueError):
        rows, values = [], np.empty(0, object)
    values = as_array(name, values)
    if values.dtype.kind not in "biuf" or values.ndim not in (1, 2):
        is_array = isinstance(data, np.ndarray)
        hint = " It has the dtype object: convert it to float." if is_array else ""
        raise ValueError(
            f"{name} must be an array of numbers, or a list of lists of numbers, of at "
            f"most 64 bits each. Received: {data!s:.200}.{hint}"
        )
    values = convert(values)
    lengths = np.array([len(row) for row in rows], np.int64)
    shape = len(lengths), lengths.max(initial=0), *values.shape[1:]
    array = np.full(shape, padding, values.dtype)
    array[np.arange(shape[1]) < lengths[:, np.newaxis]] = values
    return array, lengths


def _tensors() -> ModuleType:
    """The functions for tensors, in a module that imports TensorFlow."""
    from tfrankmetrics.inputs import read_tensors

    return read_tensors


def is_flat(data: Any) -> bool:
    """Whether data have one axis, `[N]`."""
    try:
        return np.ndim(from_pytorch(data)) == 1
    except ValueError:  # lists of unequal length
        return False


def as_float64(numbers: Array) -> Array:
    """Numbers as float64; NaN for an integer that float64 may round: 2^53 or more."""
    converted, dtype = xp.astype(numbers, xp.float64), xp.dtype_of(numbers)
    if dtype.kind in "iu" and dtype.itemsize == 8:
        return xp.where(converted < FIRST_INEXACT, converted, float("nan"))
    return converted


def as_scores(scores: Array) -> Array:
    """Scores in a dtype that holds them exactly: rounding creates no ties."""
    dtype = xp.dtype_of(scores)
    if xp.is_floating(scores):
        exact = xp.float64 if dtype == xp.float64 else xp.float32
        return xp.without_denormals(xp.astype(scores, exact))
    if dtype.kind not in "iu" or dtype == np.uint64:
        hint = " Cast them to int64." if dtype == np.uint64 else ""
        raise ValueError(
            f"Scores must be floats or integers. Received dtype: {dtype.name}.{hint}"
        )
    # The lowest number represents items that were not retrieved.
    converted = xp.astype(scores, xp.int64)
    lowest, is_wide = np.iinfo(xp.dtype_of(converted)).min, dtype.itemsize == 8
    if is_wide and isinstance(scores, np.ndarray) and (scores == lowest).any():
        raise ValueError(
            "Integer scores must be above the lowest integer of 64 bits, which marks "
            f"items that were not retrieved. Received: {lowest}. Pass -inf, among "
            "floats, for such items; or add 1 to all scores."
        )
    return xp.maximum(converted, lowest + 1)


def require_keys(y_true: Mapping, key: str, may_have: set[str]) -> None:
    """Raises ValueError for a dict without the key, or with others than these."""
    if key not in y_true or not y_true.keys() <= {key, *may_have}:
        received = [*map(str, y_true)]
        more = f", and {len(received) - 5} more" if len(received) > 5 else ""
        raise ValueError(
            f"A dict `y_true` must contain the key {key!r}, and may contain "
            f"{', '.join(map(repr, sorted(may_have)))}, but no other. Received the "
            f"keys {', '.join(map(repr, received[:5]))}{more}. If the keys are "
            "queries, use evaluate_run."
        )


def require_shape(array: Array, known: Any, shape: Any, error: str) -> Array:
    """Checks the shape of an array: known sizes now, others when the graph runs.

    `known` has None for the others, and `shape` has all sizes, perhaps as a tensor.
    """
    if isinstance(array, np.ndarray) and array.shape == known:
        return array
    if not xp.has_shape(array, known):
        raise ValueError(error)
    if not xp.is_of_tensorflow(array):
        return array
    return _tensors().with_shape(array, known, shape, error)


def _required_same_rows(
    argument: Dense, other: Dense, contents: str
) -> AbstractContextManager:
    """Requires equal row lengths: now, or in a graph before what the context holds."""
    if other.row_lengths is None:
        raise ValueError(
            f"If ragged, {argument.name} needs ragged {contents} with rows of the same "
            f"lengths. Received: dense {contents} of shape {other.array.shape}."
        )
    error = (
        f"The rows of {argument.name} must be as long as the rows of the {contents}."
    )
    lengths: tuple[Any, Any] = (other.row_lengths, argument.row_lengths)
    if has_tensor(*lengths) and not executing_eagerly():
        return _tensors().required_same_lengths(*lengths, error)
    rows = zip_longest(*map(np.asarray, lengths))
    for row, (expected, received) in enumerate(rows):
        if expected != received:
            raise ValueError(
                f"{error} Received: in row {row}, {expected} {contents} and "
                f"{received} values of {argument.name}."
            )
    return nullcontext()


def first_value(where: np.ndarray, values: Array) -> str:
    """The value at the first True, and its index."""
    index = first_index(where)
    return f"{np.asarray(values)[tuple(index)]} at index {index}"
