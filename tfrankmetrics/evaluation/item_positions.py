"""The ids of items as positions, which metrics of recommended items read.

`inputs/ids.py` reads the ids of lists, `compute/exposures.py` computes these metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrankmetrics.columns.read_column import as_column
from tfrankmetrics.columns.read_ids import Codes, exact_array, factorize, refuse_missing
from tfrankmetrics.compute.exposures import with_num_items
from tfrankmetrics.inputs.ids_as_integers import as_positions, require_ordered
from tfrankmetrics.results.request import Request
from tfrankmetrics.rules import is_int, shortened


def with_items_by_position(
    request: Request, y_true: Any, y_pred: Any
) -> tuple[Request, Any, Any]:
    """The ids as positions, if the data about items are by id."""
    ids = _ids_of_data(request)
    if ids is None:
        return request, y_true, y_pred
    inputs = request.input_format.inputs
    if inputs != "ids":
        raise ValueError(
            "Data about items by id require inputs='ids', or a table with item ids. "
            f"Received: a dict by id with inputs={inputs!r}. Pass the data in the "
            "order of the items."
        )
    require_ordered(y_pred)
    positions = Codes(zip(ids, range(len(ids)), strict=True))
    y_pred = as_positions(y_pred, positions)
    _require_data(positions, ids)
    # Relevant items without data get further positions, which nothing recommends.
    is_dict = isinstance(y_true, Mapping)
    relevant = as_positions(y_true["ids"] if is_dict else y_true, positions)
    y_true = {**y_true, "ids": relevant} if is_dict else relevant
    return _by_position(request, ids), y_true, y_pred


def items_of_rows(request: Request, items: Any) -> tuple[Request, np.ndarray]:
    """The position of the item in each row of a table, int64 `[rows]`.

    Raises:
        ValueError: An id is missing, or a metric lacks data about an item.
    """
    column = as_column("items", exact_array(items))
    refuse_missing("Every row must contain an item id.", column)
    if column.dtype == object and all(map(is_int, column.tolist())):
        column = column.astype(np.int64)
    ids = _ids_of_data(request)
    if ids is not None:
        first, codes = factorize("Item ids", column)
        positions = Codes(zip(ids, range(len(ids)), strict=True))
        of_codes = np.array([positions[id] for id in column[first].tolist()], np.int64)
        _require_data(positions, ids)
        request = _by_position(request, ids)
        column = of_codes[codes]
    elif column.dtype.kind not in "iu":  # without data: numbers in order of appearance
        if any(each.item_data for each in request.measures):
            raise ValueError(
                "Data about items must be by id, in a dict or a Series, unless ids are "
                "the integers 0, 1, ... Received: data in some order, for items such "
                f"as {shortened(column[:1].tolist())}."
            )
        first, column = factorize("Item ids", column)
        sizes = [each.by_option.get("num_items") for each in request.measures]
        too_small = [each for each in sizes if each is not None and each < len(first)]
        if too_small:
            raise ValueError(
                "The catalog must contain all recommended items. Received: "
                f"num_items={too_small[0]}, and {len(first)} different items."
            )
    elif column.min(initial=0) < 0:  # integers are positions themselves
        raise ValueError(
            f"Item ids that are positions must be at least 0. Received: {column.min()}."
        )
    return request.with_measures(with_num_items(request.named, None)), column


def _ids_of_data(request: Request) -> list | None:
    """The ids of the items that all data by id contain, in the order of the first data.

    None if there are no data by id.
    """
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


def _require_data(positions: Codes, ids: list) -> None:
    """Raises ValueError for a recommended item without data.

    `Codes` has given it a new position, after those of the ids with data.
    """
    if len(positions) > len(ids):
        raise ValueError(
            "Data about items must include each recommended item. Received: none for "
            f"the item {shortened([*positions][len(ids)])}."
        )


def _by_position(request: Request, ids: list) -> Request:
    """The request with the data in the order of these ids."""
    named = {name: each.by_position(ids) for name, each in request.named.items()}
    return request.with_measures(named)
