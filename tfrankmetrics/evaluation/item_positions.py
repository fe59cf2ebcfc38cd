"""The ids of items as positions, which metrics of recommended items read.

`inputs/ids.py` reads the ids of lists, `compute/exposures.py` computes these metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrankmetrics.columns.numbered_ids import Ids, number_values
from tfrankmetrics.compute.exposures import with_num_items
from tfrankmetrics.inputs.ids_as_integers import Codes, as_positions, require_ordered
from tfrankmetrics.results.request import Request
from tfrankmetrics.rules import shortened


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
    request = by_position(request, [*positions])
    # Relevant items without data get further positions, which nothing recommends.
    is_dict = isinstance(y_true, Mapping)
    relevant = as_positions(y_true["ids"] if is_dict else y_true, positions)
    y_true = {**y_true, "ids": relevant} if is_dict else relevant
    return request, y_true, y_pred


def items_of_rows(request: Request, items: Ids) -> tuple[Request, np.ndarray]:
    """The position of the item in each row of a table, int64 `[rows]`.

    Integers are positions themselves, unless data about items are by id. Others get
    positions in the order of their appearance.

    Raises:
        ValueError: A metric lacks data about an item.
    """
    are_integers = isinstance(items.distinct, np.ndarray)
    occurring = number_values("items", items.codes)  # the numbers of those in the rows
    names, column = items.at(occurring.distinct), occurring.codes
    ids = _ids_of_data(request)
    if ids is not None:
        positions = Codes(zip(ids, range(len(ids)), strict=True))
        of_names = np.array([positions[name] for name in names], np.int64)
        request, column = by_position(request, [*positions]), of_names[column]
    elif are_integers:
        if min(names, default=0) < 0:
            raise ValueError(
                "Item ids that are positions must be at least 0. Received: "
                f"{min(names)}."
            )
        column = np.array(names, np.int64)[column]
    elif any(each.item_data for each in request.measures):
        raise ValueError(
            "Data about items must be by id, in a dict or a Series, unless ids are "
            "the integers 0, 1, ... Received: data in some order, for items such "
            f"as {shortened(names[:1])}."
        )
    else:
        sizes = [each.by_option.get("num_items") for each in request.measures]
        too_small = [each for each in sizes if each is not None and each < len(names)]
        if too_small:
            raise ValueError(
                "The catalog must contain all recommended items. Received: "
                f"num_items={too_small[0]}, and {len(names)} different items."
            )
    return request.with_measures(with_num_items(request.named, None)), column


def _ids_of_data(request: Request) -> list | None:
    """The ids of the items that all data by id contain, in the order of the first data.

    None if there are no data by id.
    """
    by_data = [ids for each in request.measures for ids in each.ids_of_items]
    if not by_data:
        return None
    if len(by_data) < sum(len(each.item_data) for each in request.measures):
        raise ValueError(
            "All data about items must be by id, or all in the order of the ids. "
            "Received: both, a dict and an array."
        )
    others = [{*ids} for ids in by_data[1:]]
    return [item for item in by_data[0] if all(item in other for other in others)]


def by_position(request: Request, ids: list) -> Request:
    """The request with the data in the order of these ids.

    Raises:
        ValueError: An id, to which `Codes` has given a position, has no data.
    """
    named = {name: each.by_position(ids) for name, each in request.named.items()}
    return request.with_measures(named)
