"""Ids that are not integers, such as text, as integers.

`as_integer_ids` numbers the ids of two lists, to look up those of one in the other.
`as_positions` replaces ids with their positions in data about items.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.columns.numbered_ids import (
    PRESENT,
    kinds_of,
    number_ids,
    refuse_missing_lists,
)
from tfrankmetrics.columns.read_column import as_list, as_row, as_values, from_pytorch
from tfrankmetrics.inputs.relevant_ids import PADDING, with_relevance

# The number of the first relevant id that was not recommended, among ids such as text.
FIRST_OTHER = 2**62


class Codes(dict):
    """The number of each id: 0, 1, ... in the order of appearance."""

    def __missing__(self, item: Any) -> int:
        """The next number, for a new id."""
        self[item] = len(self)
        return self[item]


class IdNumbers:
    """Numbers for ids that are not integers, such as strings.

    Recommended ids become 0, 1, ..., since metrics such as `coverage` require ids below
    `num_items`. Relevant ids that were not recommended start at `FIRST_OTHER`.
    """

    def __init__(self) -> None:
        self.recommended, self._others = Codes(), Codes()

    def of_recommended(self, item: Any) -> int:
        """The number of a recommended item."""
        return self.recommended[item]

    def of_relevant(self, item: Any) -> int:
        """The number of a relevant item, once all recommended ones have theirs."""
        if item in self.recommended:
            return self.recommended[item]
        return FIRST_OTHER + self._others[item]

    def ids(self) -> dict[int, Any]:
        """The ids by their numbers."""
        recommended = {number: item for item, number in self.recommended.items()}
        others = self._others.items()
        return recommended | {FIRST_OTHER + number: item for item, number in others}


def as_integer_ids(
    y_true: Any,
    y_pred: Any,
    id_numbers: IdNumbers,
    names: Sequence[str] = ("`y_true`", "`y_pred`"),
) -> tuple[Any, Any]:
    """Replaces ids that are not integers, such as strings, by numbers.

    `id_numbers` keeps the numbers of earlier batches. `names` are those of the
    arguments, for errors.
    """
    y_true = with_relevance(y_true)
    is_dict = isinstance(y_true, Mapping)
    if is_dict and "ids" not in y_true:
        return y_true, y_pred  # `from_dict` raises the error
    require_ordered(as_list(y_pred))
    ids, y_pred = _as_rows(y_true["ids"] if is_dict else y_true), _as_rows(y_pred)
    types = {*map(type, _items(ids)), *map(type, _items(y_pred))}
    kinds = kinds_of(types, itertools.chain(_items(ids), _items(y_pred)))
    are_numbers = {*kinds} == {Number}
    if len(kinds) > 1 or not (are_numbers or PRESENT.issuperset(types)):
        # Raises an error if the types differ, or if an id is missing.
        number_ids("ids", [[*_items(ids)], [*_items(y_pred)]], names)
    if not are_numbers:
        y_pred = _mapped(id_numbers.of_recommended, y_pred)
        ids = _mapped(id_numbers.of_relevant, ids)
    return ({**y_true, "ids": ids} if is_dict else ids), y_pred


def require_ordered(y_pred: Any) -> None:
    """Raises ValueError for recommended ids in sets."""
    is_list = isinstance(y_pred, (list, tuple))
    if is_list and any(isinstance(row, (set, frozenset)) for row in y_pred):
        raise ValueError(
            "Recommended ids must be in order, the best first. Received: a set, which "
            "is unordered."
        )


def as_positions(data: Any, positions: Codes) -> Any:
    """Lists of ids as their positions, and -1 for padding.

    An id that is not among `positions` is added to them.
    """

    def position_of(item: Any) -> int:
        is_padding = isinstance(item, Number) and item == PADDING
        return PADDING if is_padding else positions[item]

    rows = _as_rows(data)
    return _mapped(position_of, rows if isinstance(rows, list) else rows.tolist())


def _as_rows(data: Any) -> Any:
    """A list with an id or a list of ids for each query, or an array of numbers."""
    data = from_pytorch(data) if getattr(data, "is_nested", False) else as_list(data)
    if xp.is_of_tensorflow(data) and data.dtype.name == "string":
        data = _decoded(data.to_list() if hasattr(data, "to_list") else data.numpy())
    if not isinstance(data, (list, tuple)):
        array = np.asarray(from_pytorch(data))
        if array.ndim == 0 or array.dtype.kind in "biuf":
            return data if array is data or xp.library_of(data) != "numpy" else array
        data = as_values(data)
    rows = [*map(as_row, data)]
    refuse_missing_lists("A column of ids", rows)
    return rows


def _decoded(data: Any) -> Any:
    """Nested lists of text for nested lists, or an array, of bytes."""
    if isinstance(data, bytes):
        return data.decode("utf-8")
    return [_decoded(item) for item in data]


def _items(rows: Any) -> Iterator[Any]:
    """All ids; one of them stands for those of an array of numbers."""
    if not isinstance(rows, list):
        return iter([0])
    return itertools.chain.from_iterable(
        row if isinstance(row, list) else (row,) for row in rows
    )


def _mapped(function: Callable[[Any], int], rows: Any) -> Any:
    """A function of each id."""
    try:
        return [
            [*map(function, row)] if isinstance(row, list) else function(row)
            for row in rows
        ]
    except TypeError as error:
        raise ValueError(
            f"The ids must be hashable. Received: {error}. Convert them to text."
        ) from None
