"""Columns of numbers as arrays: checked, and not changed by NumPy.

From top to bottom, the functions take a column from a frame of pandas, polars or Arrow,
bring data of any library into a form that NumPy can read, make an array of numbers, and
check labels and weights. `numbered_ids.py` reads columns of ids, and `slices.py` those
of `by`.
"""

from __future__ import annotations

import decimal
import fractions
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfrankmetrics.rules import did_you_mean, listed, shortened

MOST_NAMES = 20  # how many columns of a frame an error lists

# Frames that are computed later, and the methods that compute them.
LAZY = {"LazyFrame": "collect", "DuckDBPyRelation": "df"}

# From here on, float64 does not hold every integer.
FIRST_INEXACT = 2**53
LABEL_RULE = "Labels must be finite numbers, and integers below 2^53."
LABEL_REMEDY = (
    "Pass 0 for an item that is not relevant, or -1 for one that was not judged; "
    "dropping rows would change the ranking."
)
WEIGHT_RULE = "Weights must be finite numbers of at least 0."
IN_ROW = "in row {}".format  # the place of a row, for errors


def is_frame(data: Any) -> bool:
    """Whether an object is a frame of pandas or polars, an Arrow table or the like."""
    if isinstance(data, (np.ndarray, Mapping)):
        return False
    return hasattr(type(data), "columns") or hasattr(type(data), "column_names")


def collected(data: Any) -> Any:
    """The frame that a frame computes, once; other data are unchanged."""
    method = LAZY.get(type(data).__name__)
    return data if method is None else getattr(data, method)()


def by_index(name: str, data: Any) -> Any:
    """A dict for a Series of pandas, by its index; other data are unchanged."""
    if not hasattr(data, "iloc") or is_frame(data):
        return data
    if not data.index.is_unique:
        twice = data.index[data.index.duplicated()].tolist()[0]
        raise ValueError(
            f"`{name}` must have one entry for each query. Received: the index "
            f"{shortened(twice)} twice."
        )
    return dict(zip(data.index.tolist(), data.tolist(), strict=True))


def column_names(data: Any) -> list[Any]:
    """The names of the columns of a frame or of a dict of columns."""
    if isinstance(data, Mapping):
        return [*data]
    return [*(data.column_names if hasattr(data, "column_names") else data.columns)]


def rows_at(frame: Any, rows: np.ndarray) -> Any:
    """Some rows of a frame of pandas, polars or Arrow, by their positions."""
    if hasattr(frame, "iloc"):
        return frame.iloc[rows]
    return frame.take(rows) if hasattr(frame, "take") else frame[rows]


def column(data: Any, name: Any, argument: str) -> Any:
    """The column of a frame that an argument names, or of tuples of several columns."""
    if isinstance(name, (list, tuple)):
        if not name:
            raise ValueError(f"`{argument}` must name a column. Received: none.")
        parts = (as_values(column(data, each, argument)) for each in name)
        return [*zip(*parts, strict=True)]
    names = column_names(data)
    if names.count(name) == 1:
        return data[name]
    if name in names:
        problem = "two columns of this name"
    else:
        more = f", and {len(names) - MOST_NAMES} more" * (len(names) > MOST_NAMES)
        problem = f"the columns {listed(names[:MOST_NAMES])}{more}"
    hint = did_you_mean(name, map(str, names)) if isinstance(name, str) else ""
    if name in getattr(getattr(data, "index", None), "names", ()):
        hint = " It is in the index: pass frame.reset_index()."
    raise ValueError(
        f"`{argument}` must name one column of the frame. Received: "
        f"{argument}={shortened(name)}, for {problem}.{hint}"
    )


def from_pytorch(data: Any) -> Any:
    """Tensors of PyTorch, or a list of them, as NumPy arrays; other data unchanged.

    NumPy cannot convert tensors that require a gradient, are on a GPU or are bfloat16.
    Nested tensors become lists of arrays.

    Raises:
        ValueError: The tensor is sparse.
        RuntimeError: An array of JAX has no values yet.
    """
    if isinstance(data, (list, tuple)):
        has_some = any(hasattr(kind, "detach") for kind in {*map(type, data)})
        return [*map(from_pytorch, data)] if has_some else data
    if type(data).__name__.endswith("Tracer"):
        raise RuntimeError(
            "Functions need arrays with values. Received: an array that JAX traces. "
            "Call the function outside of jax.jit. There, call `batch_sums` of an "
            "Accumulator, or `stateless_update_state` of a metric object."
        )
    if not hasattr(data, "detach"):
        return data
    tensor = data.detach().cpu()
    if getattr(tensor, "is_nested", False):
        return [from_pytorch(each) for each in tensor.unbind()]
    if "sparse" in str(tensor.layout):
        raise ValueError(
            "Tensors of PyTorch must be dense or nested. Received: a tensor with the "
            f"layout {tensor.layout}. Pass tensor.to_dense(), and mark padding by "
            "labels below 0."
        )
    return (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy()


def without_dictionary(column: Any) -> Any:
    """A column without Arrow's dictionary, whose nulls NumPy would lose."""
    has_dictionary = "dictionary" in str(getattr(column, "type", ""))
    return column.cast(column.type.value_type) if has_dictionary else column


def as_list(data: Any) -> Any:
    """A list for a column of lists, and for a sequence that is not a list.

    A column of Hugging Face's datasets is such a sequence. Sparse matrices become
    arrays, and other data are unchanged.
    """
    if isinstance(data, (list, tuple, str, bytes)):
        return data
    if hasattr(data, "tocsr"):  # a sparse matrix of SciPy
        return data.toarray()
    if hasattr(data, "to_pylist") and "list" in str(data.type):
        return data.to_pylist()
    dtype = getattr(data, "dtype", "")
    if isinstance(dtype, np.dtype) and dtype.kind != "O":
        return data
    dtype = str(dtype).lower()  # of polars: List, Array or Object
    is_column = dtype.startswith(("object", "list", "array")) and len(data.shape) == 1
    if is_column:
        return data.to_list() if hasattr(data, "to_list") else data.tolist()
    return [*data] if isinstance(data, Sequence) else data


def as_values(column: Any) -> list[Any]:
    """A column as values of Python."""
    for method in ("to_pylist", "to_list"):  # of Arrow, and of pandas and polars
        if hasattr(column, method):
            return getattr(column, method)()
    array = np.asarray(column)
    if array.dtype.kind not in "mM" or np.datetime_data(array.dtype)[0] in "YMWD":
        return array.tolist()
    # Times become those of Python if microseconds are exact for all, and otherwise stay
    # those of NumPy, whose tolist() would make integers of nanoseconds.
    in_microseconds = array.astype(array.dtype.str[1] + "8[us]")
    is_exact = (in_microseconds.astype(array.dtype) == array) | np.isnat(array)
    return in_microseconds.tolist() if is_exact.all() else [*array]


def as_row(data: Any) -> Any:
    """The ids of one query as a list, in their order, or its only id."""
    # Nearly all rows. The checks below would slow `evaluate` of ids down by a third.
    if isinstance(data, (list, tuple)):
        return [*data]
    data = data.as_py() if hasattr(data, "as_py") else data  # a scalar of Arrow
    if isinstance(data, (str, bytes, np.datetime64, np.timedelta64)):
        return data
    refuse_masked_arrays("A list of ids", data)
    if isinstance(data, Mapping) or is_frame(data):
        raise ValueError(
            "The ids of a query must be a list. Received: a "
            f"{type(data).__name__}. Pass its ids, best first."
        )
    if hasattr(data, "dtype") or hasattr(data, "to_pylist"):
        return as_values(from_pytorch(data))
    return [*data] if isinstance(data, Iterable) else data


def numbers_of_arrow(array: Any, dtype: Any) -> np.ndarray:
    """Numbers of Arrow without nulls; its own conversion would import pandas."""
    buffer = array.buffers()[1]
    numbers = np.frombuffer(buffer or b"", dtype)
    return numbers[array.offset : array.offset + len(array)]


def as_objects(values: Sequence[Any]) -> np.ndarray:
    """Values as an array `[values]`, each unchanged: NumPy would convert some."""
    return np.fromiter(values, object, len(values))


def refuse_masked_arrays(name: str, data: Any) -> None:
    """Raises ValueError for an array whose mask NumPy would drop."""
    if isinstance(data, np.ma.MaskedArray):
        raise ValueError(
            f"{name} must not be a masked array, whose mask would be lost. Received: a "
            "numpy.ma.MaskedArray. Pass array.data, and in evaluate also "
            "mask=~array.mask; in evaluate_rows, drop the masked rows."
        )


def as_array(name: str, data: Any) -> np.ndarray:
    """Data of any library as an array of NumPy: the one reader of numbers.

    The dtype is object if rows have different lengths, and for other data that are no
    numbers of at most 64 bits.

    Raises:
        ValueError: NumPy would round a number, or drop a mask.
    """
    refuse_masked_arrays(name, data)
    data = without_dictionary(from_pytorch(data))
    try:
        array = np.asarray(data)
    except ValueError:  # rows of unequal length
        return as_objects(data)
    if array.dtype.kind == "V" and array.dtype.type is not np.void:
        array = array.astype(np.float32)  # bfloat16 and shorter, not NumPy's own
    if array.dtype == object:
        data, array = array.tolist(), without_objects(array)
    is_list = isinstance(data, (list, tuple)) and array.dtype == np.float64
    if is_list and _has_large(array):
        _refuse_rounded_integers(name, data, array)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        raise ValueError(
            f"{name} must hold real numbers of at most 64 bits. Received: dtype "
            f"{array.dtype}. Cast them to float64."
        )
    return array


def as_numbers(
    name: str, values: Any, place: Callable[[int], str] = IN_ROW
) -> np.ndarray:
    """A column of numbers as an array `[rows]`; an error states the place of a row."""
    array = as_array(f"`{name}`", values)
    if array.ndim == 2 and array.shape[1] == 1:  # as model.predict returns
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"`{name}` must be one column, with a value for each row. Received: shape "
            f"{array.shape}."
        )
    if array.dtype.kind not in "biuf":
        row, value = _first_that_is_no_number(array)
        words = "numbers"
        remedy = "Replace text by numbers, and drop rows with missing values."
        if isinstance(value, numbers.Real):
            words, remedy = "numbers of at most 64 bits", "Convert them to float."
        elif name == "labels":
            remedy += " If these are the query ids, swap `query_ids` and `labels`."
        raise ValueError(
            f"`{name}` must hold {words}. Received: {shortened(value)} {place(row)}. "
            f"{remedy}"
        )
    return array


def _first_that_is_no_number(array: np.ndarray) -> tuple[int, Any]:
    """The row and the value that an error names.

    Text that is no number, or NaN, comes first: it explains why the whole column is
    text. If all values are numbers, the error names row 0 and the dtype.
    """
    others = [
        (row, value)
        for row, value in enumerate(array.tolist())
        if not isinstance(value, numbers.Real)
        or (isinstance(value, int) and value.bit_length() > 63)
    ]
    words = (each for each in others if not _is_number_as_text(each[1]))
    return next(words, others[0] if others else (0, array.dtype))


def _is_number_as_text(value: Any) -> bool:
    try:
        return isinstance(value, str) and not math.isnan(float(value))
    except ValueError:
        return False


def _refuse_rounded_integers(name: str, data: Any, array: np.ndarray) -> None:
    """Raises ValueError for a list in which NumPy has rounded integers to float64."""
    for number, rounded in zip(_flat(data), array.flat, strict=True):
        if isinstance(number, int) and number != int(rounded):
            raise ValueError(
                f"{name} must not mix integers that float64 rounds with other numbers. "
                f"Received: {number}, which became {rounded}. Pass an array of int64."
            )


def _flat(data: Any) -> Iterator[Any]:
    if np.ndim(data):  # including tensors and columns of a table
        for each in data:
            yield from _flat(each)
    else:
        yield data


def without_objects(array: np.ndarray) -> np.ndarray:
    """Numbers of several types as an array of one dtype, if NumPy has one for them.

    Decimals, as of a database, and fractions become floats. Missing values, such as
    None, become NaN. Other arrays are unchanged.

    Raises:
        ValueError: Two different numbers are the same float.
    """
    kinds = (decimal.Decimal, fractions.Fraction)
    given = array.ravel().tolist() if array.dtype == object else []
    are_numbers = (isinstance(v, (*kinds, numbers.Real)) or is_null(v) for v in given)
    if not given:
        return array.astype(float) if array.dtype == object else array
    if not all(are_numbers):
        return array
    if not any(isinstance(v, kinds) or is_null(v) for v in given):
        return np.asarray(given).reshape(array.shape)
    values = [math.nan if is_null(each) else each for each in given]
    floats = np.array(values, np.float64).reshape(array.shape)
    distinct = {each for each in values if each == each}
    if len({*map(float, distinct)}) < len(distinct):
        raise ValueError(
            "Decimals and fractions must be different floats, or they would be tied. "
            "Received: numbers that differ by less than a float64 holds. Pass their "
            "ranks, or scale them."
        )
    return floats


def is_null(value: Any) -> bool:
    """Whether a value is None or pandas.NA; NaN is a number."""
    return value is None or type(value).__name__ == "NAType"


def exact_scores(scores: Any) -> np.ndarray:
    """The scores or, if float64 would round some of them, ranks in the same order.

    -inf, of items that were not retrieved, and NaN stay as they are.
    """
    array = np.asarray(scores)
    if array.dtype.kind in "iu":
        is_exact = not _has_large(array)
        return array if is_exact else np.unique(array, return_inverse=True)[1]
    # Other numbers may be integers only in a list, where NumPy makes them float64.
    is_list = array.dtype == np.float64 and not isinstance(scores, np.ndarray)
    may_be_integers = array.dtype == object or (is_list and _has_large(array))
    if not may_be_integers or not any(
        isinstance(each, int) and abs(each) >= FIRST_INEXACT for each in scores
    ):
        return array
    given = (each for each in scores if not is_null(each) and each == each)
    finite = sorted({*given} - {-math.inf})
    rank_of: dict[Any, float] = dict(zip(finite, range(len(finite)), strict=True))
    rank_of[-math.inf] = -math.inf
    return np.array([rank_of.get(each, math.nan) for each in scores])


def negated(scores: np.ndarray) -> np.ndarray:
    """Scores in the reverse order, where the lowest one is the best."""
    return -(scores.astype(np.int64) if scores.dtype.kind == "u" else scores)


def _has_large(array: np.ndarray) -> bool:
    return bool(((array >= FIRST_INEXACT) | (array <= -FIRST_INEXACT)).any())


def require_labels(labels: np.ndarray, place: Callable[[int], str] = IN_ROW) -> None:
    """Raises ValueError for an invalid label.

    A label below 0, including -inf, means that an item was not judged.
    """
    bad = ~np.isfinite(labels) & ~(labels < 0)
    if labels.dtype.kind in "iu":
        bad |= labels >= FIRST_INEXACT
    _require(LABEL_RULE, labels, bad, place, LABEL_REMEDY)


def require_weights(weights: np.ndarray, place: Callable[[int], str] = IN_ROW) -> None:
    """Raises ValueError for an invalid weight."""
    bad = ~np.isfinite(weights) | (weights < 0)
    _require(WEIGHT_RULE, weights, bad, place, "Drop such rows.")


def _require(
    rule: str,
    values: np.ndarray,
    bad: np.ndarray,
    place: Callable[[int], str],
    remedy: str,
) -> None:
    if bad.any():
        row = first_index(bad)[0]
        raise ValueError(f"{rule} Received: {values[row]} {place(row)}. {remedy}")


def first_index(where: np.ndarray) -> list[int]:
    """The index of the first True."""
    return np.argwhere(where)[0].tolist()
