"""One column of ids as an array, unchanged by NumPy; missing ids, and ids as codes.

`read_column.py` reads columns of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tfrankmetrics.columns.read_column import (
    as_objects,
    from_pytorch,
    is_null,
    refuse_masked_arrays,
)
from tfrankmetrics.rules import shortened


def values_at(values: Any, rows: Any) -> np.ndarray:
    """The ids of a column in some rows, unchanged by NumPy."""
    values = from_pytorch(values)
    if hasattr(values, "iloc"):
        return exact_values(values.iloc[rows])
    if hasattr(values, "gather"):
        return exact_values(values.gather(rows))
    return exact_values(values)[rows]


def exact_values(values: Any, argument: str = "ids", name: str = "") -> np.ndarray:
    """A column of any library as an array: of objects, if NumPy would change values.

    Errors name the column by `argument` and `name`.
    """
    refuse_masked_arrays(f"`{argument}`", values)
    values = from_pytorch(values)
    if hasattr(values, "isna") and not isinstance(values.dtype, np.dtype):
        array = values.to_numpy(dtype=object, na_value=None)
    elif hasattr(values, "null_count") and hasattr(values, "to_list"):  # of polars
        array = as_objects(values.to_list()) if values.null_count() else values
    else:
        array = exact_array(values)
    array = np.asarray(array)
    if array.dtype.kind in "mM":
        # Dates become those of Python if microseconds are exact for all, and otherwise
        # stay those of NumPy, whose tolist() would make integers of nanoseconds.
        in_microseconds = array.astype(array.dtype.str[1] + "8[us]")
        is_exact = in_microseconds.astype(array.dtype) == array
        is_exact |= np.isnat(array)
        array = as_objects([*array]) if not is_exact.all() else in_microseconds
        array = array.astype(object)
    if array.ndim != 1:
        raise ValueError(
            f"`{argument}` must hold columns. Received: {shortened(name)} of shape "
            f"{array.shape}."
        )
    return array


def exact_array(values: Any) -> Any:
    """A list as an array: of objects, if NumPy would change its values.

    NumPy turns [1, "1"] and [NaN, "a"] into text, rounds large integers in lists with
    floats, drops zeros at the end of text, and makes two dimensions of tuples. Other
    data are unchanged.
    """
    if not isinstance(values, (list, tuple)):
        return values
    try:
        array = np.asarray(values)
    except ValueError:  # tuples of different lengths
        array = np.empty(0)
    is_unchanged = array.ndim == 1 and array.tolist() == list(values)
    return array if is_unchanged else as_objects(values)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas.NA, which compares as unknown."""
    return is_null(value) or bool(np.all(value != value))


def are_missing(values: np.ndarray) -> np.ndarray:
    """Whether each value of a column is missing."""
    if values.dtype != object:
        return np.not_equal(values, values)
    # Text and integers, which most ids are, need no comparison by NumPy.
    present = (str, bytes, int)
    missing = [
        not isinstance(each, present) and is_missing(each) for each in values.tolist()
    ]
    return np.array(missing, bool)


def refuse_missing(rule: str, column: np.ndarray) -> None:
    """Raises ValueError for a missing value."""
    missing = are_missing(column)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"{rule} Received: a missing one in row {row}.")


def refuse_missing_lists(name: str, data: Iterable[Any]) -> None:
    """Raises ValueError for a query without a list, such as NaN after a left join."""
    for row, each in enumerate(data):
        if not hasattr(each, "__len__") and is_missing(each):
            raise ValueError(
                f"{name} must hold a list for each query. Received: {each} in row "
                f"{row}. Pass an empty list, [], for a query without any."
            )


class Codes(dict):
    """The code of each value: 0, 1, ... in the order of appearance."""

    def __missing__(self, value: Any) -> int:
        """The next code, for a new value."""
        self[value] = len(self)
        return self[value]


def factorize(what: str, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each distinct value appears first, and the code of each value.

    Codes are 0, 1, ... in the order of appearance. `what` names the values in the error
    for one that is not hashable.
    """
    if values.dtype == object:
        try:
            codes = np.fromiter(
                map(Codes().__getitem__, values.tolist()), int, len(values)
            )
        except TypeError as error:
            raise ValueError(f"{what} must be hashable. Received: {error}.") from None
        # A code that is higher than all codes before it is a new one.
        highest = np.maximum.accumulate(codes)
        return np.flatnonzero(np.diff(highest, prepend=-1)), codes
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse]
