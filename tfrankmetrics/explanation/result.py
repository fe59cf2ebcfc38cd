"""What `explain` returns: a table by rank, for one metric or for two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrankmetrics.explanation.working import (
    ITEM,
    LABEL,
    RANK,
    RUNNING,
    SCORE,
    TIED,
    Working,
)
from tfrankmetrics.results.tables import Cell, ShownAsTable, Table, require

NOT_RETRIEVED = "-"  # in the place of a rank
UNJUDGED = "unjudged"  # in the place of a label
_TEXTS = (RANK, TIED, ITEM)


class Explanation(ShownAsTable):
    """How the value of one query came about; prints as a table with a row per item.

    >>> from tfrankmetrics import explain
    >>> explanation = explain([1, 0, 1], [0.9, 0.5, 0.1], "map")
    >>> explanation.value
    0.833...
    >>> explanation.columns["precision"].round(4)
    array([1.    , 0.5   , 0.6667])
    >>> explanation.rules
    {'map': 'contribution = gain * precision / 2'}

    Attributes:
        query: The query.
        value: Its value in the metric, as `evaluate` returns it with `per_query=True`.
        values: The value of each metric by name: of two with `versus`.
        weight: The weight of the query in the mean.
        columns: The columns of the table, a dict of arrays.
        rules: For each metric, the contribution as a product of other columns, or ""
            if it is no such product.
    """

    def __init__(self, query: Any, workings: Sequence[Working]) -> None:
        self.query = query
        self.values = {each.name: each.value for each in workings}
        self.value, self.weight = workings[0].value, workings[0].weight
        self.rules = {each.name: each.rule for each in workings}
        self.columns = _joined(workings)
        self._workings = workings

    def to_pandas(self) -> Any:
        """A pandas frame with a row for each item; NaN where a column has no value."""
        pandas = require("pandas", "compare", "`to_pandas`")
        return pandas.DataFrame(self.columns)

    def _table(self) -> Table:
        texts = {name: _texts(name, column) for name, column in self.columns.items()}
        rows = [[*map(Cell, row)] for row in zip(*texts.values(), strict=True)]
        is_text = [name.startswith(_TEXTS) for name in texts]
        num_labels = is_text.index(False)
        return Table([*texts], rows, num_labels, "\n".join(self._notes()))

    def _notes(self) -> list[str]:
        notes = []
        for each in self._workings:
            value = "no value" if math.isnan(each.value) else f"{each.value:.4f}"
            notes.append(f"{each.name} of query {self.query!r}: {value}.")
            if each.weight == 0:
                notes[-1] += (
                    " The query is not in the mean, because its list is empty, or its "
                )
                notes[-1] += "weight is 0."
            if each.rule:
                notes[-1] += f" {each.rule}."
            if not math.isclose(each.start, 0, abs_tol=1e-12):
                notes[-1] += f" The ranks add up to this from {each.start:.4f} on."
        if any(TIED in each.columns for each in self._workings):
            notes.append(
                "Items with the same score share their ranks, which together "
                "contribute the mean over all orders of these items."
            )
        return notes + [*filter(None, [_difference(*self._workings)])]


def _difference(one: Working, other: Working | None = None) -> str:
    """How two metrics differ: in which options, and from which rank on."""
    if other is None:
        return ""
    options, others = dict(one.measure.options), dict(other.measure.options)
    differ = [
        f"{name} ({options.get(name)!r} or {others.get(name)!r})"
        for name in {**options, **others}
        if options.get(name) != others.get(name)
    ]
    text = f"They differ in {', '.join(differ)}" if differ else "They do not differ"
    first, second = (each.columns[RUNNING] for each in (one, other))
    number = min(len(first), len(second))
    parts = ~np.isclose(first[:number], second[:number], rtol=1e-9, equal_nan=True)
    where = f"; the values part at rank {parts.argmax() + 1}" if parts.any() else ""
    return f"{text}{where}."


def _joined(workings: Sequence[Working]) -> dict[str, np.ndarray]:
    """The columns of all workings side by side, those that are equal only once.

    The items at the same rank are in one row, and so is an item that was not retrieved.
    """
    keys = [_keys(each) for each in workings]
    rows = sorted(set().union(*keys))
    places = [{key: row for row, key in enumerate(each)} for each in keys]
    columns: dict[str, np.ndarray] = {}
    for name in dict.fromkeys(name for each in workings for name in each.columns):
        of_each = {
            each.label: _rows_of(each.columns[name], [place.get(row) for row in rows])
            for each, place in zip(workings, places, strict=True)
            if name in each.columns
        }
        first, *others = of_each.values()
        is_same = all(_are_equal(first, other) for other in others)
        if is_same and len(of_each) == len(workings):
            columns[name] = first
        else:
            columns |= {
                name if label is None else f"{name} ({label})": column
                for label, column in of_each.items()
            }
    columns[RANK] = np.array([rank for is_missed, rank in rows], float)
    columns[RANK][[is_missed for is_missed, _ in rows]] = np.nan
    return columns


def _keys(working: Working) -> list[tuple[bool, int]]:
    """What names each row: a rank, or an item that was not retrieved."""
    ranks = working.columns[RANK]
    return [
        (True, position) if np.isnan(rank) else (False, int(rank))
        for rank, position in zip(ranks, working.positions.tolist(), strict=True)
    ]


def _rows_of(column: np.ndarray, rows: Sequence[int | None]) -> np.ndarray:
    """Some rows of a column; without a value where it has no such row."""
    otherwise: Any = "" if column.dtype == object else np.nan
    values = [otherwise if row is None else column[row] for row in rows]
    if column.dtype != object:
        return np.array(values)
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _are_equal(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype == object or other.dtype == object:
        return one.tolist() == other.tolist()
    return np.array_equal(one, other, equal_nan=True)


def _texts(name: str, column: np.ndarray) -> list[str]:
    """The values of a column as the table shows them."""
    if column.dtype == object:
        return [*map(str, column)]
    whole_numbers, missing = name.startswith((RANK, SCORE, LABEL)), ""
    if name == RANK:
        missing = NOT_RETRIEVED
    if name.startswith(LABEL):
        missing = UNJUDGED
    form = ".6g" if whole_numbers else ".4f"
    return [missing if np.isnan(each) else format(each, form) for each in column]
