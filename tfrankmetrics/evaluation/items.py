"""Items as positions, which metrics of recommended items read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrankmetrics.columns.values import Codes, as_column, exact_array, factorize
from tfrankmetrics.engine.items import with_num_items
from tfrankmetrics.inputs.ids import as_positions
from tfrankmetrics.results.request import Request
from tfrankmetrics.rules import shortened


def with_items_by_position(
    request: Request, y_true: Any, y_pred: Any
) -> tuple[Request, Any, Any]:
    """The same ids as positions, if the data about items are by id."""
    items = _ids_of(request)
    if items is None:
        return request, y_true, y_pred
    if request.data.inputs != "ids":
        raise ValueError(
            "Data about items by id require inputs='ids', or a table with item ids. "
            f"Received: a dict by id with inputs={request.data.inputs!r}. Pass the "
            "data in the order of the items."
        )
    rows = _rows_of(items)
    is_dict = isinstance(y_true, Mapping)
    ids = as_positions(y_true["ids"] if is_dict else y_true, rows)
    y_true = {**y_true, "ids": ids} if is_dict else ids
    y_pred = as_positions(y_pred, rows)
    _require_data(rows, len(items), _largest(y_pred))
    return _by_position(request, [*items]), y_true, y_pred


def items_of_rows(request: Request, items: Any) -> tuple[Request, np.ndarray]:
    """The position of the item in each row of a table, int64 `[rows]`.

    Raises:
        ValueError: A metric has no data about an item.
    """
    column = as_column("items", exact_array(items))
    ids = _ids_of(request)
    has_data = any(each.item_data for each in request.measures)
    if ids is None and column.dtype.kind in "iu":
        return request.with_measures(with_num_items(request.named, None)), column
    if ids is None and has_data:
        raise ValueError(
            "Data about items must be by id, in a dict or a Series, unless ids are "
            "the integers 0, 1, ... Received: data in some order, for items such as "
            f"{shortened(column[:1].tolist())}."
        )
    first, codes = factorize("Item ids", column)
    if ids is None:
        return request.with_measures(with_num_items(request.named, None)), codes
    rows = _rows_of(ids)
    distinct = column[first].tolist()
    positions = np.array([rows[item] for item in distinct], np.int64)
    _require_data(rows, len(ids), positions.max(initial=-1))
    request = _by_position(request, [*ids])
    named = with_num_items(request.named, None)
    return request.with_measures(named), positions[codes]


def _largest(positions: Any) -> int:
    """The largest number in nested lists."""
    if isinstance(positions, list):
        return max(map(_largest, positions), default=-1)
    return positions


def _require_data(rows: Codes, number: int, largest: int) -> None:
    """Raises ValueError if the largest position is not below the number of items."""
    if largest >= number:
        raise ValueError(
            "Data about items must include each recommended item. Received: none for "
            f"the item {shortened([*rows][largest])}."
        )


def _ids_of(request: Request) -> tuple | None:
    """The ids of the items, if data about items are by id."""
    found = [ids for each in request.measures for ids in each.ids_of_items]
    return found[0] if found else None


def _rows_of(items: tuple) -> Codes:
    return Codes({item: row for row, item in enumerate(items)})


def _by_position(request: Request, items: list) -> Request:
    named = {name: each.by_position(items) for name, each in request.named.items()}
    return request.with_measures(named)
