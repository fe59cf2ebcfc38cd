"""Ids of queries, items, slices and models as numbers: the one place that compares ids.

Equal ids of one or of several columns have the same number. Integers are numbered by
sorting, text of Arrow by Arrow, and others by hashing. A text takes the memory of its
characters.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import importlib.util
import itertools
import numbers
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.read_column import (
    as_objects,
    as_values,
    from_pytorch,
    is_null,
    numbers_of_arrow,
    refuse_masked_arrays,
    without_dictionary,
)
from tfrankmetrics.rules import shortened

TEXT_OF_ARROW = ("string", "large_string")
# Types of ids that are not missing.
PRESENT = {str, np.str_, bytes, int, bool}


class Groups(NamedTuple):
    """The rows of each number n: `order[starts[n] : starts[n] + lengths[n]]`."""

    order: np.ndarray  # [rows]
    starts: np.ndarray  # [numbers]
    lengths: np.ndarray  # [numbers]

    @classmethod
    def of(cls, codes: np.ndarray, size: int) -> Groups:
        """The rows with the numbers 0, 1, ..., size - 1."""
        lengths = np.bincount(codes, minlength=size)
        return cls(stable_order(codes), np.cumsum(lengths) - lengths, lengths)


class Ids:
    """The ids of rows, numbered in the order of their appearance.

    Attributes:
        distinct: The id of each number: a list, or an array of NumPy or Arrow.
        codes: The number of each row's id, `[rows]`.
        groups: The rows of each number.
        categories: The values of a column of ordered categories, in their order.
    """

    def __init__(
        self,
        distinct: Any,
        codes: np.ndarray | None = None,
        groups: Groups | None = None,
        categories: Sequence[Any] = (),
    ) -> None:
        """One of `codes` and `groups` may be None."""
        self.distinct, self._codes, self._groups = distinct, codes, groups
        self.categories = categories

    @functools.cached_property
    def codes(self) -> np.ndarray:
        """The number of each row's id."""
        if self._codes is not None:
            return self._codes
        order, starts, lengths = self.groups
        by_start, codes = np.argsort(starts), np.empty(len(order), np.int64)
        codes[order] = np.repeat(by_start, lengths[by_start])
        return codes

    @functools.cached_property
    def groups(self) -> Groups:
        """The rows of each number."""
        return self._groups or Groups.of(self.codes, len(self.distinct))

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.groups.order if self._codes is None else self._codes)

    def of(self, rows: Any) -> Ids:
        """The ids of some rows, with the same numbers."""
        return Ids(self.distinct, self.codes[rows], categories=self.categories)

    def at(self, chosen: Any = slice(None)) -> list[Any]:
        """The ids of some numbers, or of all, as values of Python."""
        if hasattr(self.distinct, "to_pylist"):
            if isinstance(chosen, slice):
                return self.distinct[chosen].to_pylist()
            import pyarrow  # loaded already

            chosen = np.array(chosen, np.int64)
            numbers = _from_buffers(pyarrow.int64(), len(chosen), chosen)
            return self.distinct.take(numbers).to_pylist()
        chosen = np.arange(len(self.distinct))[chosen]
        if isinstance(self.distinct, np.ndarray):
            return self.distinct[chosen].tolist()
        ids = [self.distinct[number] for number in chosen.tolist()]
        return [
            # A date in nanoseconds would become an integer.
            each.item()
            if isinstance(each, np.generic) and each.dtype.kind not in "mM"
            else each
            for each in ids
        ]

    def array(self, chosen: Any = slice(None)) -> np.ndarray:
        """The ids of some numbers, or of all, for a result: integers or objects."""
        if isinstance(self.distinct, np.ndarray):
            return self.distinct[chosen]
        ids = self.at(chosen)
        has_floats = {float}.issuperset(map(type, ids))
        return np.array(ids) if has_floats else as_objects(ids)


def number_ids(
    what: str, columns: Sequence[Any], places: Sequence[str] = ("row {}",)
) -> Ids:
    """The ids of all rows of some columns, one column after the other.

    Args:
        what: What the ids are, as in "query ids".
        columns: The columns.
        places: For errors, where a row of each column is, as in "row {} of `run`".

    Raises:
        ValueError: An id is missing, not hashable, or of another type than others.
    """
    parts = [_as_part(what, column) for column in columns]
    ids = _numbered(what, parts)
    if isinstance(ids.distinct, np.ndarray):
        return ids  # integers, none of which is missing

    def place(number: int) -> str:
        """The first row with a number, and its column."""
        row = int(np.argmax(ids.codes == number))
        ends = np.cumsum([*map(len, parts)])
        part = int(np.searchsorted(ends, row, side="right"))
        return places[part].format(row - ends[part] + len(parts[part]))

    if len(missing := _missing(ids.distinct)):
        raise ValueError(
            f"The {what} must not be missing. Received: a missing one in "
            f"{place(missing[0])}. Remove it."
        )
    if len(firsts := _first_of_each_kind(ids.distinct)) > 1:
        examples = [f"{shortened(ids.at([n])[0])} in {place(n)}" for n in firsts[:2]]
        raise ValueError(
            f"The {what} must all have the same type, or they never match. Received: "
            f"{' and '.join(examples)}. Convert them."
        )
    return ids


def number_values(what: str, column: Any) -> Ids:
    """The values of a column, of any types; all kinds of missing ones are None."""
    ids = _numbered(what, [_as_part(what, column)])
    categories, missing = ordered_categories(column), _missing(ids.distinct)
    if not len(missing):
        return Ids(ids.distinct, ids.codes, categories=categories)
    values = ids.at()
    for number in missing:
        values[number] = None
    merged = _by_hashing(what, values)
    return Ids(merged.distinct, merged.codes[ids.codes], categories=categories)


def ordered_categories(column: Any) -> Sequence[Any]:
    """The values of ordered categories of pandas, or of an Enum of polars."""
    of_pandas = getattr(column, "cat", column)
    if getattr(of_pandas, "ordered", False):
        return of_pandas.categories.tolist()
    dtype: Any = getattr(column, "dtype", None)
    return dtype.categories.to_list() if type(dtype).__name__ == "Enum" else ()


def refuse_missing_lists(name: str, data: Iterable[Any]) -> None:
    """Raises ValueError for a query without a list, such as NaN after a left join."""
    for row, each in enumerate(data):
        if not hasattr(each, "__len__") and is_missing(each):
            raise ValueError(
                f"{name} must hold a list for each query. Received: {each} in row "
                f"{row}. Pass [] for a query without ids. Leave out one without "
                "labels, and pass scores of -inf for one without predictions."
            )


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT or pandas.NA, which compares as unknown.

    A tuple is missing if a part of it is.
    """
    if isinstance(value, tuple):
        return any(map(is_missing, value))
    return is_null(value) or bool(np.all(value != value))


def stable_order(keys: np.ndarray) -> np.ndarray:
    """An order that groups equal keys and keeps the order of their rows."""
    is_wide = keys.dtype.kind in "iu" and keys.dtype.itemsize > 2 and len(keys) > 0
    if is_wide and int(keys.max()) - int(keys.min()) < 2**32:
        # By the low and then the high 16 bits, for which NumPy has a radix sort.
        low = (keys - keys.min()).astype(np.uint32)
        high = (low >> 16).astype(np.uint16)
        order = np.argsort(low.astype(np.uint16), kind="stable")
        return order[np.argsort(high[order], kind="stable")]
    return np.argsort(keys, kind="stable")


def _as_part(what: str, column: Any) -> Any:
    """A column as integers, text of Arrow or a list; numbered ids are unchanged."""
    refuse_masked_arrays(f"The column of the {what}", column)
    column = _text_as_arrow(without_dictionary(from_pytorch(column)))
    if isinstance(column, Ids) or str(getattr(column, "type", "")) in TEXT_OF_ARROW:
        return column
    if isinstance(column, Sequence) and not isinstance(column, (str, bytes)):
        column = [*column]
    else:
        array = np.asarray(column)
        if array.ndim != 1:
            raise ValueError(
                f"The {what} must be one column, with a value for each row. Received: "
                f"shape {array.shape}."
            )
        if array.dtype.kind in "iu":
            return array
        column = as_values(column)
    types = {*map(type, column)} or {str}
    if all(issubclass(each, (int, np.integer)) and each is not bool for each in types):
        array = np.asarray(column)
        return array if array.dtype.kind in "iu" else column  # if it has 64 bits
    return column


def _text_as_arrow(column: Any) -> Any:
    """Text of polars and of pandas as Arrow, if it is installed: twice as fast."""
    is_text = str(getattr(column, "dtype", "")) in ("String", "str", "string")
    if not is_text or importlib.util.find_spec("pyarrow") is None:
        return column
    import pyarrow

    try:
        of_polars = hasattr(column, "to_arrow")
        return column.to_arrow() if of_polars else pyarrow.array(column)
    except UnicodeEncodeError:  # half of a surrogate pair, which Python allows in text
        return column


def _numbered(what: str, parts: Sequence[Any]) -> Ids:
    """The ids of all parts, one after the other."""
    parts = [part for part in parts if len(part)] or parts[:1]
    if len(parts) == 1 and isinstance(parts[0], Ids):
        return parts[0]
    if all(isinstance(part, list) for part in parts):
        return _by_hashing(what, [*itertools.chain.from_iterable(parts)])
    if all(isinstance(part, np.ndarray) for part in parts):
        integers = np.concatenate(parts)
        if integers.dtype.kind in "iu":  # float64, of int64 and uint64, is rounded
            return _by_sorting(integers)
    types = {part.type for part in parts if hasattr(part, "type")}
    are_text = (
        hasattr(part, "type")
        or (isinstance(part, list) and {*map(type, part)} == {str})
        for part in parts
    )
    if len(types) == 1 and all(are_text):
        with contextlib.suppress(UnicodeEncodeError):  # of text that Arrow cannot hold
            return _by_arrow(parts, *types)
    # Columns of several kinds are numbered one by one.
    each = [_numbered(what, [part]) for part in parts]
    merged = _by_hashing(what, [*itertools.chain(*(ids.at() for ids in each))])
    sizes = [len(ids.distinct) for ids in each]
    of_each = np.split(merged.codes, np.cumsum(sizes)[:-1])
    codes = [new[ids.codes] for new, ids in zip(of_each, each, strict=True)]
    return Ids(merged.distinct, np.concatenate(codes))


def _by_sorting(integers: np.ndarray) -> Ids:
    order = stable_order(integers)
    in_order = integers[order]
    starts = np.flatnonzero(np.append(True, np.diff(in_order) != 0)[: len(order)])
    by_appearance = np.argsort(order[starts], kind="stable")
    lengths = np.diff(starts, append=len(order))[by_appearance]
    starts = starts[by_appearance]
    return Ids(in_order[starts], groups=Groups(order, starts, lengths))


def _by_arrow(parts: Sequence[Any], text: Any) -> Ids:
    import pyarrow.compute  # loaded already, since a column is Arrow's

    arrays = (
        _text_of_arrow(part, text) if isinstance(part, list) else part for part in parts
    )
    chunks = [chunk for array in arrays for chunk in getattr(array, "chunks", [array])]
    column = pyarrow.chunked_array(chunks, text)
    coded = pyarrow.compute.call_function(
        "dictionary_encode",
        [column],
        pyarrow.compute.DictionaryEncodeOptions(null_encoding="encode"),
        pyarrow.system_memory_pool(),
    ).combine_chunks()
    codes = numbers_of_arrow(coded.indices, np.int32).astype(np.int64)
    return Ids(coded.dictionary, codes)


def _text_of_arrow(texts: list[str], text: Any) -> Any:
    encoded = [each.encode() for each in texts]
    offsets = np.cumsum([0, *map(len, encoded)])
    dtype = np.int64 if "large" in str(text) else np.int32
    return _from_buffers(text, len(texts), offsets.astype(dtype), b"".join(encoded))


def _from_buffers(type_of_arrow: Any, length: int, *buffers: Any) -> Any:
    """An array of Arrow; pyarrow.array would import pandas, in 0.2 s."""
    import pyarrow

    of_arrow = [None, *map(pyarrow.py_buffer, buffers)]
    return pyarrow.Array.from_buffers(type_of_arrow, length, of_arrow)


def _by_hashing(what: str, values: list[Any]) -> Ids:
    # The number of a new id is the next one.
    number_of: dict[Any, int] = defaultdict(itertools.count().__next__)
    try:
        codes = np.fromiter(map(number_of.__getitem__, values), np.int64, len(values))
    except TypeError as error:
        raise ValueError(
            f"The {what} must be hashable. Received: {error}. Convert them to text."
        ) from None
    return Ids([*number_of], codes)


def _missing(distinct: Any) -> np.ndarray:
    """The numbers of missing ids."""
    none = np.zeros(0, np.int64)
    if hasattr(distinct, "null_count"):  # of Arrow
        return np.flatnonzero(distinct.is_null()) if distinct.null_count else none
    if isinstance(distinct, np.ndarray) or PRESENT.issuperset(map(type, distinct)):
        return none
    return np.flatnonzero([*map(is_missing, distinct)])


def _first_of_each_kind(distinct: Any) -> list[int]:
    """The number of the first id of each kind; ids of two kinds never match."""
    if not isinstance(distinct, list):
        return [0]
    if len(kinds_of({*map(type, distinct)}, distinct)) < 2:
        return [0]
    of_ids = [*map(kind_of, distinct)]
    return [of_ids.index(kind) for kind in dict.fromkeys(of_ids)]


def kinds_of(types: Iterable[type], ids: Iterable[Any]) -> dict[Any, None]:
    """The kinds of ids that have these types; the ids are read if some are tuples."""
    if any(issubclass(each, tuple) for each in types):
        return dict.fromkeys(map(kind_of, ids))
    return dict.fromkeys(map(kind_of_type, types))


def kind_of(item: Any) -> Any:
    """The kind of an id; ids of two kinds never match."""
    if isinstance(item, tuple):
        return tuple(map(kind_of, item))
    return kind_of_type(type(item))


def kind_of_type(of_type: type) -> Any:
    """What stands for all types whose ids may be equal, or else the type."""
    bases = (numbers.Number, str, bytes, datetime.datetime)
    return next((base for base in bases if issubclass(of_type, base)), of_type)
