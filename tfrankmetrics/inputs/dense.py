"""Arguments as dense arrays of one library, and what their shapes must be.

`read_arrays.py` reads arrays and Python lists, and `read_tensors.py` tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import zip_longest
from types import ModuleType
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array, Library
from tfrankmetrics.columns.values import FIRST_INEXACT, first_index
from tfrankmetrics.graphs import executing_eagerly
from tfrankmetrics.inputs.read_arrays import Dense, read_array


def has_tensor(*arguments: Any) -> bool:
    """Whether TensorFlow has an argument, or a value of an argument that is a dict."""
    return any(
        has_tensor(*argument.values())
        if isinstance(argument, Mapping)
        else xp.is_tensor(argument)
        for argument in arguments
    )


def dense(
    name: str,
    data: Any,
    convert: Callable,
    padding: float | bool,
    *,
    library: Library = "tensorflow",
) -> Dense:
    """Converts anything array-like; rows of unequal length are padded.

    The result is an array of the library.
    """
    if library == "tensorflow" == xp.library_of(data):
        return _tensors().read_tensor(name, data, convert, padding)
    if library == "jax" == xp.library_of(data):
        return Dense(name, convert(data), padding)
    read = read_array(name, data, convert, padding)
    return read._replace(tensor=xp.in_library(library, read.tensor))


def _tensors() -> ModuleType:
    """The same for tensors: a module that imports TensorFlow."""
    from tfrankmetrics.inputs import read_tensors

    return read_tensors


def as_float64(numbers: Array) -> Array:
    """Numbers as float64; NaN for an integer that float64 may round: 2^53 or more."""
    converted, dtype = xp.astype(numbers, xp.float64), xp.dtype_of(numbers)
    if dtype.kind in "iu" and dtype.itemsize == 8:
        return xp.where(converted < FIRST_INEXACT, converted, float("nan"))
    return converted


def as_scores(scores: Array) -> Array:
    """Scores in a dtype that holds them exactly, so that rounding creates no ties."""
    dtype = xp.dtype_of(scores)
    if xp.is_floating(scores):
        kept = xp.float64 if dtype == xp.float64 else xp.float32
        return xp.without_denormals(xp.astype(scores, kept))
    if dtype.kind not in "iu" or dtype == np.uint64:
        hint = " Cast them to int64." if dtype == np.uint64 else ""
        raise ValueError(
            "Scores must be floats or integers. Received dtype: "
            f"{scores.dtype.name}.{hint}"
        )
    # The lowest number represents items that were not retrieved.
    lowest, is_wide = np.iinfo(np.int64).min, dtype.itemsize == 8
    if is_wide and isinstance(scores, np.ndarray) and (scores == lowest).any():
        raise ValueError(
            "Integer scores must be above the lowest integer of 64 bits, which marks "
            f"items that were not retrieved. Received: {lowest}. Pass -inf, among "
            "floats, for such items; or add 1 to all scores."
        )
    return xp.maximum(xp.astype(scores, xp.int64), lowest + 1)


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


def padded_to(argument: Dense, width: Array) -> Dense:
    """Pads a ragged array to the width of a dense one."""
    array = argument.tensor
    missing = xp.maximum(width - xp.shape(array)[1], 0)
    padding = xp.astype(argument.padding, array.dtype, like=array)
    widths = [[0, 0]] * array.ndim
    widths[1] = [0, missing]
    padded = xp.pad(array, widths, constant_values=padding)
    return argument._replace(tensor=padded)


def as_ragged(argument: Dense) -> Dense:
    """Marks rows of equal length as ragged: Python lists carry no padding."""
    size = xp.shape(argument.tensor, out_type=xp.int64)
    lengths = xp.full(size[:1], size[1], like=argument.tensor)
    return argument._replace(row_lengths=lengths)


def with_shape_of(other: Dense, argument: Dense, contents: str, error: str) -> Array:
    """The array of `argument`, which must have the shape and rows of `other`.

    `contents` names the contents of the other array in the errors about rows.
    """
    shape = xp.shape(other.tensor)
    if argument.row_lengths is None:
        return require_shape(argument.tensor, other.tensor.shape, shape, error)
    with _required_same_rows(argument, other, contents):
        tensor = padded_to(argument, shape[1]).tensor
        return require_shape(tensor, other.tensor.shape, shape, error)


def require_shape(array: Array, known: Any, shape: Any, error: str) -> Array:
    """Checks the shape of an array: known sizes now, others when the graph runs."""
    if not xp.has_shape(array, known):
        raise ValueError(error)
    if not xp.is_tensor(array):
        return array
    return _tensors().require_shape(array, known, shape, error)


def _required_same_rows(
    argument: Dense, other: Dense, contents: str
) -> AbstractContextManager:
    if other.row_lengths is None:
        raise ValueError(
            f"If ragged, {argument.name} needs ragged {contents} with rows of the same "
            f"lengths. Received: dense {contents} of shape {other.tensor.shape}."
        )
    error = (
        f"The rows of {argument.name} must be as long as the rows of the {contents}."
    )
    lengths: tuple[Any, Any] = (other.row_lengths, argument.row_lengths)
    if in_graph(*lengths):
        return _tensors().required_same_lengths(*lengths, error)
    rows = zip_longest(*map(np.asarray, lengths))
    for row, (expected, received) in enumerate(rows):
        if expected != received:
            raise ValueError(
                f"{error} Received: in row {row}, {expected} {contents} and "
                f"{received} values of {argument.name}."
            )
    return nullcontext()


def required(condition: Any, error: str) -> AbstractContextManager:
    """Raises ValueError now; in a graph, delays the operations within until the check.

    The graph raises InvalidArgumentError with the same message when it runs.
    """
    if in_graph(condition):
        return _tensors().required(condition, error)
    if not condition:
        raise ValueError(error)
    return nullcontext()


def in_graph(*arguments: Any) -> bool:
    """Whether one of the arguments is a tensor without a value yet."""
    return has_tensor(*arguments) and not executing_eagerly()


def first_value(where: np.ndarray, values: Array) -> str:
    """The value at the first True, and its index."""
    index = first_index(where)
    return f"{np.asarray(values)[tuple(index)]} at index {index}"
