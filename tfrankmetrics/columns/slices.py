"""`by=`: the slice that each query belongs to, such as its language or its market."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.numbered_ids import Ids, number_values
from tfrankmetrics.columns.read_column import (
    as_objects,
    collected,
    column,
    column_names,
    is_frame,
)
from tfrankmetrics.rules import shortened


class Slices(NamedTuple):
    """A slice for each query."""

    names: tuple[str, ...]  # of the columns, such as ("language", "market")
    keys: list[tuple]  # sorted if they can be compared, missing values last
    of_query: np.ndarray  # the number of each query's slice, int [queries]

    def grouped(self) -> tuple[np.ndarray, list[slice]]:
        """The queries, sorted by slice, and the place of each slice among them."""
        order = np.argsort(self.of_query, kind="stable")
        ends = np.cumsum(np.bincount(self.of_query, minlength=len(self.keys)))
        starts = [0, *ends.tolist()]
        return order, [slice(*pair) for pair in itertools.pairwise(starts)]

    def columns(self) -> dict[str, np.ndarray]:
        """Each name's value for each query."""
        by_name = [*zip(*self.keys, strict=True)] or [()] * len(self.names)
        return {
            name: as_objects(values)[self.of_query]
            for name, values in zip(self.names, by_name, strict=True)
        }


def columns_of_slices(by: Any, data: Any = None) -> dict[str, Any]:
    """The columns that `by` names or contains, by their names.

    Args:
        by: The name of a column of `data`, or a list of names. Or a column itself, or
            a dict or a frame of columns.
        data: A frame, or None.
    """
    by = collected(by)
    if data is not None:
        names = [by] if isinstance(by, str) else by
        if isinstance(names, (list, tuple)):
            by = {name: column(data, name, "by") for name in names}
    if isinstance(by, Mapping) or is_frame(by):
        columns = {name: by[name] for name in column_names(by)}
        if columns and all(isinstance(name, str) for name in columns):
            return columns
    elif not isinstance(by, str):
        name = getattr(by, "name", None)
        return {"slice" if name in (None, "") else str(name): by}
    where = "a frame's column" if data is None else "a column of `data`"
    raise ValueError(
        f"`by` must be {where}, or a dict of columns. Received: {shortened(by)}."
    )


def read_slices(argument: str, name: str, values: Any) -> Ids:
    """A column with a value for each query, which may be missing."""
    return number_values(f"values of {shortened(name)} in `{argument}`", values)


def columns_by_query(
    columns: Mapping[str, Any], num_queries: int | None
) -> dict[str, Ids]:
    """Columns with a value for each query; their number may not be known yet."""
    ids_by_name = {
        name: read_slices("by", name, values) for name, values in columns.items()
    }
    for name, each in ids_by_name.items():
        num_queries = len(each.codes) if num_queries is None else num_queries
        if len(each.codes) != num_queries:
            raise ValueError(
                "`by` must have a value for each query. Received: "
                f"{len(each.codes)} values of {shortened(name)} for {num_queries} "
                "queries."
            )
    return ids_by_name


def slices_of(columns: Mapping[str, Ids]) -> Slices:
    """The slices of queries, from columns with a value for each query.

    With several columns, each combination of values that occurs is a slice.
    """
    keys: list[tuple] = [()]
    numbers: Any = 0  # of the slice of each query, by the columns so far
    for each in columns.values():
        # A number for each pair of a slice so far and a value of the next column.
        values = each.at()
        pairs = number_values("slices", numbers * len(values) + each.codes)
        keys = [
            (*keys[pair // len(values)], values[pair % len(values)])
            for pair in pairs.at()
        ]
        numbers = pairs.codes
    order = in_order(keys, [each.categories for each in columns.values()])
    place_of = np.argsort(np.array(order, int))
    keys = [keys[number] for number in order]
    return Slices(tuple(columns), keys, place_of[numbers])


def in_order(
    keys: Sequence[tuple], categories: Sequence[Sequence[Any]] = ()
) -> list[int]:
    """The numbers of slices in their order: sorted, missing values last.

    `categories` has the values of each column that has an order of its own.
    """
    places = [{value: place for place, value in enumerate(each)} for each in categories]
    try:
        missing_last = [
            [
                (value is None, of_column.get(value, value))
                for value, of_column in itertools.zip_longest(key, places, fillvalue={})
            ]
            for key in keys
        ]
        return sorted(range(len(keys)), key=missing_last.__getitem__)
    except TypeError:  # values of different types, such as numbers and text
        return [*range(len(keys))]


def values_by_id(rule: str, values: Mapping, ids: Sequence[Any]) -> np.ndarray:
    """The value of each query, from a dict by query id; an error states the rule."""
    lacking = [query for query in ids if query not in values]
    if lacking:
        raise ValueError(
            f"{rule} Received: none for the query {shortened(lacking[0])}"
            + (f", and {len(lacking) - 1} more." if len(lacking) > 1 else ".")
        )
    return as_objects([values[query] for query in ids])
