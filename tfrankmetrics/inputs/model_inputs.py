"""Arrays in dicts, lists and tuples, as models of several inputs take them.

`datasets.py` reads those that come in batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Library
from tfrankmetrics.columns.read_column import (
    as_list,
    from_pytorch,
    refuse_masked_arrays,
)
from tfrankmetrics.rules import shortened

# Libraries compute every row of arrays of one shape in the same way, if their sizes are
# multiples of this number. A remainder is summed in a different order.
ALIGNMENT = 64


def map_arrays(function: Callable[..., Any], *inputs: Any) -> Any:
    """`function` of each array of some inputs that have the same structure."""
    first = inputs[0]
    if isinstance(first, Mapping):
        return {
            key: map_arrays(function, *(each[key] for each in inputs)) for key in first
        }
    if isinstance(first, (list, tuple)):
        parts = [map_arrays(function, *each) for each in zip(*inputs, strict=True)]
        is_named = hasattr(first, "_fields")  # of a namedtuple
        return type(first)(*parts) if is_named else type(first)(parts)
    return function(*inputs)


def flattened(inputs: Any) -> list[Any]:
    """The arrays of inputs."""
    arrays: list[Any] = []
    map_arrays(arrays.append, inputs)
    return arrays


def rows_of(inputs: Any, which: slice | np.ndarray) -> Any:
    """Some rows of each array."""

    def rows(array: Any) -> Any:
        if isinstance(which, np.ndarray) and xp.is_of_tensorflow(array):
            return xp.take(array, which)
        return array[which]

    return map_arrays(rows, inputs)


def as_arrays(name: str, data: Any) -> Any:
    """A tensor or an array, or a dict of these."""
    if isinstance(data, Mapping):
        return {key: as_arrays(name, values) for key, values in data.items()}
    library = library_of_inputs(data)
    if library == "torch" and "strided" in str(data.layout) and not data.is_nested:
        return data.detach()
    if library in ("tensorflow", "jax"):
        return data
    refuse_masked_arrays(f"`{name}`", data)
    rule = f"`{name}` must be arrays with a row for each."
    if hasattr(data, "__next__"):
        raise ValueError(
            f"{rule} Received: {shortened(data)}, which can be read only once. Pass "
            "np.stack([*generator]), or a tf.data.Dataset of batches."
        )
    data = as_list(from_pytorch(data))
    try:
        array = np.asarray(data)
    except ValueError:
        raise ValueError(f"{rule} Received: rows of different lengths.") from None
    if array.dtype == object and array.ndim > 1:
        raise ValueError(
            f"{rule} Received: an array of dtype object. Convert it to float."
        )
    return array


def concatenated(parts: list[Any]) -> Any:
    """The rows of all parts."""
    return map_arrays(lambda *rows: xp.concat(rows, axis=0), *parts)


def size_of(name: str, arrays: Any) -> int:
    """The number of rows, the same in all arrays."""
    shapes = [tuple(array.shape) for array in flattened(arrays)]
    if not shapes or () in shapes or len({shape[0] for shape in shapes}) > 1:
        raise ValueError(
            f"`{name}` must be arrays with a row for each, all with the same number of "
            f"rows. Received: {shapes or 'none'} as their shapes."
        )
    return shapes[0][0]


def library_of_inputs(*inputs: Any) -> Library:
    """The library of the first array that is not NumPy's."""
    return xp.library_of(*flattened(inputs))


def padded(
    inputs: Any, library: Library, width: int = 0, not_to: int | None = None
) -> Any:
    """Inputs with the last row repeated, to a multiple of `ALIGNMENT` from `width` on.

    They become arrays of the library. The multiple is not `not_to`: the two axes of
    scores then differ in size, and transposed ones are an error.
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
        return rows_of(rows, np.minimum(np.arange(number), size - 1))

    return map_arrays(pad, inputs)
