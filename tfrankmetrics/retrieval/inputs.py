"""Inputs of products and towers: arrays, tensors, or structures of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Library
from tfrankmetrics.columns.values import from_pytorch, refuse_masked_arrays
from tfrankmetrics.inputs.alignment import aligned
from tfrankmetrics.inputs.structures import flattened, map_arrays
from tfrankmetrics.keras.backends import other_backend
from tfrankmetrics.rules import shortened
from tfrankmetrics.tensorflow_version import is_installed

# In products of one shape, whose sizes are multiples of this number, TensorFlow
# computes every row and column in the same way, so that equal vectors have equal
# scores. A remainder or a narrower product is summed in a different order, so that the
# last bits differ.
ALIGNMENT = 64


def as_arrays(name: str, data: Any) -> Any:
    """A tensor or an array, or a dict of these."""
    if isinstance(data, Mapping):
        return {key: as_arrays(name, values) for key, values in data.items()}
    if xp.is_tensor(data):
        return data
    refuse_masked_arrays(f"`{name}`", data)
    rule = f"`{name}` must be arrays with a row for each."
    if hasattr(data, "__next__"):
        raise ValueError(
            f"{rule} Received: {shortened(data)}, which can be read only once. Pass "
            "np.stack([*generator]), or a tf.data.Dataset of batches."
        )
    data = from_pytorch(data)
    try:
        array = np.asarray(data)
    except ValueError:
        raise ValueError(f"{rule} Received: rows of different lengths.") from None
    vectors = (np.ndarray, list, tuple)
    if array.dtype == object and array.ndim > 1:
        raise ValueError(
            f"{rule} Received: an array of dtype object. Convert it to float."
        )
    if array.dtype == object and any(isinstance(each, vectors) for each in array):
        raise ValueError(
            f"{rule} Received: a column of vectors. Pass np.stack(column)."
        )
    return array


def with_aligned_rows(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with the rows of queries, and those of candidates, in one order."""
    of_queries = ("queries", "relevant", "exclude", "sample_weight", "by")
    found = dict(given)
    for names in (of_queries, ("candidates", "candidate_ids")):
        found |= aligned({name: given[name] for name in names if name in given})
    return found


def number_of(name: str, data: Any) -> int:
    """The number of rows of data in memory."""
    return size_of(name, as_arrays(name, data))


def rows_of(inputs: Any, which: slice | np.ndarray) -> Any:
    """Some rows of each array."""

    def rows(array: Any) -> Any:
        if isinstance(which, np.ndarray) and xp.is_tensor(array):
            return xp.take(array, which)
        return array[which]

    return map_arrays(rows, inputs)


def concatenated(parts: list[Any]) -> Any:
    """The rows of all parts."""
    return map_arrays(lambda *rows: xp.concat(rows, axis=0), *parts)


def library_of_functions() -> Library:
    """The library of the arrays that towers and `score` receive."""
    is_tensorflow = is_installed() and other_backend() is None
    return "tensorflow" if is_tensorflow else "numpy"


def padded(
    inputs: Any, library: Library, width: int = 0, not_to: int | None = None
) -> Any:
    """Inputs with the last row repeated, to a multiple of `ALIGNMENT` from `width` on.

    They become arrays of the library. The multiple is not `not_to`. Therefore, the
    numbers of candidates and queries differ, and a transposed score is detected.
    """

    def pad(rows: Any) -> Any:
        rows = xp.in_library(library, rows)
        size = rows.shape[0]
        least = max(size, width)
        number = least + -least % ALIGNMENT
        if number == not_to:
            number += ALIGNMENT
        if number == size:
            return rows
        return xp.take(rows, np.minimum(np.arange(number), size - 1))

    return map_arrays(pad, inputs)


def size_of(name: str, arrays: Any) -> int:
    """The number of rows, the same in all arrays."""
    shapes = [tuple(array.shape) for array in flattened(arrays)]
    if not shapes or () in shapes or len({shape[0] for shape in shapes}) > 1:
        raise ValueError(
            f"`{name}` must be arrays with a row for each, all with the same number of "
            f"rows. Received: {shapes or 'none'} as their shapes."
        )
    return shapes[0][0]


def require_some(name: str, number: int) -> None:
    """Raises ValueError if the number is 0."""
    if number == 0:
        raise ValueError(f"`{name}` must not be empty. Received: none.")
