"""Ids that are not integers, such as text, as integers.

`as_integer_ids` numbers the ids of two lists, so that those of one can be looked up in
the other. `as_positions` replaces ids by their positions in data about items.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.columns.read_column import as_list
from tfrankmetrics.columns.read_ids import Codes, is_missing, refuse_missing_lists
from tfrankmetrics.inputs.relevant_ids import PADDING

# The number of the first relevant id that was not recommended, among ids such as text.
FIRST_OTHER = 2**62


class IdNumbers:
    """Numbers for ids that are not integers, such as strings.

    Recommended ids become 0, 1, ..., since metrics such as `coverage` require ids below
    `num_items`. Relevant ids that were not recommended start at `FIRST_OTHER`.
    """

    def __init__(self) -> None:
        self._recommended, self._others = Codes(), Codes()

    def of_recommended(self, item: Any) -> int:
        """The number of a recommended item."""
        return self._recommended[item]

    def of_relevant(self, item: Any) -> int:
        """The number of a relevant item, once all recommended ones have theirs."""
        if item in self._recommended:
            return self._recommended[item]
        return FIRST_OTHER + self._others[item]

    def ids(self) -> dict[int, Any]:
        """The ids by their numbers."""
        recommended = {number: item for item, number in self._recommended.items()}
        others = self._others.items()
        return recommended | {FIRST_OTHER + number: item for item, number in others}


def as_integer_ids(
    y_true: Any,
    y_pred: Any,
    id_numbers: IdNumbers | None = None,
    names: str = "Relevant and recommended ids",
) -> tuple[Any, Any]:
    """Replaces ids that are not integers, such as strings, by numbers.

    `id_numbers` keeps the numbers of earlier batches. `names` states in an error what
    both are.
    """
    is_dict = isinstance(y_true, Mapping)
    if is_dict and "ids" not in y_true:
        return y_true, y_pred  # `from_dict` raises the error
    ids = _as_nested(y_true["ids"] if is_dict else y_true)
    if isinstance(ids, (list, tuple)):
        ids = [[*row] if _is_set(row) else row for row in ids]
    y_pred = _as_nested(y_pred)
    require_ordered(y_pred)
    for data in (ids, y_pred):
        if isinstance(data, (list, tuple)):
            refuse_missing_lists(names, data)
    kinds = [kind for data in (ids, y_pred) if (kind := _kind_of(data)) is not None]
    if len({*kinds}) > 1:
        raise ValueError(
            f"{names} must have the same type, or none match. Received: "
            f"{' and '.join(kind.__name__ for kind in kinds)}."
        )
    kind = kinds[0] if kinds else int
    if kind is not int:
        id_numbers = IdNumbers() if id_numbers is None else id_numbers
        y_pred = _map_ids(id_numbers.of_recommended, y_pred, kind)
        ids = _map_ids(id_numbers.of_relevant, ids, kind)
    return ({**y_true, "ids": ids} if is_dict else ids), y_pred


def require_ordered(y_pred: Any) -> None:
    """Raises ValueError for recommended ids in sets."""
    if isinstance(y_pred, (list, tuple)) and any(map(_is_set, y_pred)):
        raise ValueError(
            "Recommended ids must be in order, the best first. Received: a set, which "
            "is unordered."
        )


def as_positions(data: Any, positions: Codes) -> Any:
    """Nested lists of ids as their positions, and -1 for padding.

    An id that is not among `positions` is added to them.
    """

    def position_of(item: Any) -> int:
        is_padding = isinstance(item, numbers.Number) and item == PADDING
        return PADDING if is_padding else positions[item]

    return _map_ids(position_of, data)


def _map_ids(function: Callable[[Any], int], data: Any, kind: type = object) -> Any:
    """A function of each id in nested lists, which must all be of the type `kind`."""
    if not isinstance(data, str):  # as most ids are
        data = _as_nested(data)
        if _is_nested(data) or _is_set(data):
            return [_map_ids(function, item, kind) for item in data]
    if not isinstance(data, kind):
        hint = " Remove missing ids from their lists." if is_missing(data) else ""
        raise ValueError(
            f"Ids must all have the same type. Received: {data!r} and others.{hint}"
        )
    if not isinstance(data, Hashable):
        raise ValueError(
            "Ids must be integers, strings or of another hashable type. "
            f"Received: {data!s:.200}."
        )
    return function(data)


def _is_nested(data: Any) -> bool:
    """Whether data are several ids, rather than one."""
    is_sequence = isinstance(data, (Sequence, np.ndarray))
    return is_sequence and not isinstance(data, (str, bytes))


def _is_set(data: Any) -> bool:
    return isinstance(data, (set, frozenset))


def _as_nested(data: Any) -> Any:
    """Data as nested lists or an array, also columns of a table and tensors of text."""
    data = as_list(data)
    if xp.is_of_tensorflow(data) and data.dtype.name == "string":
        return _decoded(data.to_list() if hasattr(data, "to_list") else data.numpy())
    if hasattr(data, "to_numpy"):
        data = np.asarray(data)
    if isinstance(data, np.ndarray) and data.dtype.kind == "O":
        return data.tolist()
    return data


def _decoded(data: Any) -> Any:
    """Nested lists of text for nested lists, or an array, of bytes."""
    if isinstance(data, bytes):
        return data.decode("utf-8")
    return [_decoded(item) for item in data]


def _kind_of(data: Any) -> type | None:
    """The type of the first id: `int`, `str` or another; None without any id."""
    if data is None:
        return None
    if hasattr(data, "dtype") and data.dtype != object:
        is_text = getattr(data.dtype, "kind", "") == "U"
        return str if is_text else int  # `as_ids` checks for floats
    if _is_nested(data):
        kinds = (_kind_of(item) for item in data)
        return next((kind for kind in kinds if kind is not None), None)
    if isinstance(data, numbers.Number):
        return int
    return str if isinstance(data, str) else type(data)
