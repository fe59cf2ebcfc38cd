"""`by=`: the slice that each query belongs to, such as its language or its market."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.read_column import (
    as_objects,
    column,
    column_names,
    is_frame,
)
from tfrankmetrics.columns.read_ids import are_missing, exact_values, factorize
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
        return {"slice" if name is None else str(name): by}
    where = "a frame's column" if data is None else "a column of `data`"
    raise ValueError(
        f"`by` must be {where}, or a dict of columns. Received: {shortened(by)}."
    )


@dataclasses.dataclass(frozen=True)
class CodedColumn:
    """A column with a value for each query: the distinct ones, and a code for each."""

    distinct: list[Any]
    codes: np.ndarray  # the position of each query's value in `distinct`, [queries]

    @classmethod
    def read(cls, argument: str, name: str, values: Any) -> CodedColumn:
        """A column, with its distinct values in the order of appearance."""
        what = f"The values of {shortened(name)} in `{argument}`"
        of_rows = None
        if hasattr(values, "factorize"):  # pandas numbers text without objects for it
            try:
                of_rows, values = values.factorize(use_na_sentinel=False)
            except (TypeError, NotImplementedError) as error:  # the latter of Arrow
                raise ValueError(
                    f"{what} must be hashable. Received: {error}."
                ) from None
        array = exact_values(values, argument, name)
        first_rows, codes = factorize(what, array)
        distinct = as_objects(array[first_rows].tolist())
        # Missing values of several kinds, such as NaN and None, get one code.
        distinct[are_missing(distinct)] = None
        first, merged_codes = factorize(what, distinct)
        codes = merged_codes[codes]
        codes = codes if of_rows is None else codes[of_rows]
        return cls(distinct[first].tolist(), codes)

    def of(self, which: np.ndarray) -> CodedColumn:
        """The column of some queries."""
        return CodedColumn(self.distinct, self.codes[which])

    def values(self) -> np.ndarray:
        """The value of each query, as objects."""
        return as_objects(self.distinct)[self.codes]


def columns_by_query(
    columns: Mapping[str, Any], num_queries: int | None
) -> dict[str, CodedColumn]:
    """Columns with a value for each query; their number may not be known yet."""
    found = {
        name: CodedColumn.read("by", name, values) for name, values in columns.items()
    }
    for name, each in found.items():
        num_queries = len(each.codes) if num_queries is None else num_queries
        if len(each.codes) != num_queries:
            raise ValueError(
                "`by` must have a value for each query. Received: "
                f"{len(each.codes)} values of {shortened(name)} for {num_queries} "
                "queries."
            )
    return found


def slices_of(columns: Mapping[str, CodedColumn]) -> Slices:
    """The slices of queries, from columns with a value for each query.

    With several columns, each combination of values that occurs is a slice.
    """
    keys: list[tuple] = [()]
    numbers: Any = 0  # of the slice of each query, by the columns so far
    for each in columns.values():
        # A number for each pair of a slice so far and a value of the next column.
        size = len(each.distinct)
        pairs = numbers * size + each.codes
        first, numbers = factorize("Slices", pairs)
        keys = [
            (*keys[pair // size], each.distinct[pair % size])
            for pair in pairs[first].tolist()
        ]
    order = in_order(keys)
    place_of = np.argsort(np.array(order, int))
    keys = [keys[number] for number in order]
    return Slices(tuple(columns), keys, place_of[numbers])


def in_order(keys: Sequence[tuple]) -> list[int]:
    """The numbers of slices in their order: sorted, missing values last."""
    try:
        missing_last = [[(value is None, value) for value in key] for key in keys]
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
