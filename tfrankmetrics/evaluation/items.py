"""Items as positions, which metrics of recommended items read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrankmetrics.columns.values import (
    Codes,
    are_missing,
    as_column,
    exact_array,
    factorize,
)
from tfrankmetrics.compute.items import with_num_items
from tfrankmetrics.inputs.ids import as_positions, require_ordered
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.results.request import Request
from tfrankmetrics.rules import is_int, shortened


def with_items_by_position(
    request: Request, y_true: Any, y_pred: Any
) -> tuple[Request, Any, Any]:
    """The ids as positions, if the data about items are by id."""
    items = _ids_of(request)
    if items is None:
        return request, y_true, y_pred
    if request.data.inputs != "ids":
        raise ValueError(
            "Data about items by id require inputs='ids', or a table with item ids. "
            f"Received: a dict by id with inputs={request.data.inputs!r}. Pass the "
            "data in the order of the items."
        )
    require_ordered(y_pred)
    rows = _rows_of(items)
    is_dict = isinstance(y_true, Mapping)
    ids = as_positions(y_true["ids"] if is_dict else y_true, rows)
    y_true = {**y_true, "ids": ids} if is_dict else ids
    y_pred = as_positions(y_pred, rows)
    _require_data(rows, len(items), _largest(y_pred))
    return _by_position(request, items), y_true, y_pred


def items_of_rows(request: Request, items: Any) -> tuple[Request, np.ndarray]:
    """The position of the item in each row of a table, int64 `[rows]`.

    Raises:
        ValueError: An id is missing, or a metric lacks data about an item.
    """
    column = _item_ids(items)
    ids = _ids_of(request)
    if ids is None and column.dtype.kind in "iu":
        if column.min(initial=0) < 0:
            raise ValueError(
                "Item ids that are positions must be at least 0. Received: "
                f"{column.min()}."
            )
        return request.with_measures(with_num_items(request.named, None)), column
    if ids is None and any(each.item_data for each in request.measures):
        raise ValueError(
            "Data about items must be by id, in a dict or a Series, unless ids are "
            "the integers 0, 1, ... Received: data in some order, for items such as "
            f"{shortened(column[:1].tolist())}."
        )
    first, codes = factorize("Item ids", column)
    if ids is None:
        named = with_num_items(request.named, None)
        _require_enough(named, len(first))
        return request.with_measures(named), codes
    rows = _rows_of(ids)
    distinct = column[first].tolist()
    positions = np.array([rows[item] for item in distinct], np.int64)
    _require_data(rows, len(ids), positions.max(initial=-1))
    request = _by_position(request, ids)
    named = with_num_items(request.named, None)
    return request.with_measures(named), positions[codes]


def _item_ids(items: Any) -> np.ndarray:
    """A column of ids, as integers if all of them are."""
    column = as_column("items", exact_array(items))
    missing = are_missing(column)
    if missing.any():
        raise ValueError(
            "Every row must contain an item id. Received: a missing one in row "
            f"{np.flatnonzero(missing)[0]}."
        )
    if column.dtype == object and all(map(is_int, column.tolist())):
        return column.astype(np.int64)
    return column


def _require_enough(named: Mapping[str, Measure], number: int) -> None:
    """Raises ValueError for more distinct items than there are in the catalog."""
    for measure in named.values():
        size = measure.by_option.get("num_items")
        if size is not None and size < number:
            raise ValueError(
                "The catalog must contain all recommended items. Received: "
                f"num_items={size}, and {number} different items."
            )


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


def _ids_of(request: Request) -> list | None:
    """The ids of the items in all data by id; None if there are no such data."""
    found = [ids for each in request.measures for ids in each.ids_of_items]
    if not found:
        return None
    if len(found) < sum(len(each.item_data) for each in request.measures):
        raise ValueError(
            "All data about items must be by id, or all in the order of the ids. "
            "Received: both, a dict and an array."
        )
    others = [{*ids} for ids in found[1:]]
    return [item for item in found[0] if all(item in other for other in others)]


def _rows_of(items: list) -> Codes:
    return Codes({item: row for row, item in enumerate(items)})


def _by_position(request: Request, items: list) -> Request:
    named = {name: each.by_position(items) for name, each in request.named.items()}
    return request.with_measures(named)
