"""From the rows of a PCollection to pairs of a query id and checked values.

`table_combiners.py` groups them and computes metrics.
"""

from __future__ import annotations

import dataclasses
import decimal
import math
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrankmetrics.columns.numbered_ids import is_missing
from tfrankmetrics.columns.read_column import (
    FIRST_INEXACT,
    LABEL_REMEDY,
    LABEL_RULE,
    WEIGHT_RULE,
)
from tfrankmetrics.rules import did_you_mean, listed, shortened


@dataclasses.dataclass(frozen=True)
class Columns:
    """Splits each row into its query id and a tuple of the values of the other columns.

    The tuple contains the item id, the label, the subtopic and the score, as far as
    they are columns.
    If there are weights or slices, its last value is a tuple of the weight and the
    slices.
    """

    table: str  # how errors name the table
    query: str
    item: str | None = None
    label: str | None = None
    score: str | None = None
    weight: str | None = None
    by: tuple[str, ...] = ()
    subtopic: str | None = None

    def split(self, row: Any) -> tuple[Any, tuple]:
        """The query id and the values of a row. Raises ValueError for a wrong one."""
        query = _as_id("query", _cell(row, self.query), self.table)
        values = []
        if self.item is not None:
            values.append(_as_id("item", _cell(row, self.item), self.table))
        if self.label is not None:
            values.append(_as_label(_cell(row, self.label), query))
        if self.subtopic is not None:
            subtopic = _cell(row, self.subtopic)
            values.append(_as_id("subtopic", subtopic, self.table))
        if self.score is not None:
            values.append(_as_score(_cell(row, self.score), query))
        if self.weight is not None or self.by:
            weight = 1.0
            if self.weight is not None:
                weight = _as_weight(_cell(row, self.weight), query)
            values.append((weight, *(_as_slice(name, row) for name in self.by)))
        return query, tuple(values)


def require_names(columns: Mapping[str, Any], sample_weight: Any = None) -> None:
    """Raises ValueError for an argument that is not the name of a column."""
    weight = {} if sample_weight is None else {"sample_weight": sample_weight}
    for argument, name in {**columns, **weight}.items():
        if not isinstance(name, str) or not name:
            raise ValueError(
                f"`{argument}` must be the name of a column of the rows. Received: "
                f"{shortened(name)}."
            )


def names_of_slices(by: Any) -> tuple[str, ...]:
    """The columns that `by` names: none, one or several."""
    is_list = isinstance(by, (list, tuple))
    names = () if by is None else tuple(by) if is_list else (by,)
    for name in names:
        require_names({"by": name})
    return names


def _cell(row: Any, name: str) -> Any:
    try:
        value = row[name] if isinstance(row, Mapping) else getattr(row, name)
    except (KeyError, AttributeError):
        is_dict = isinstance(row, Mapping)
        of_object = getattr(row, "_fields", getattr(row, "__dict__", ()))
        columns = [*map(str, row if is_dict else of_object)]
        with_columns = f" with the columns {listed(columns)}" if columns else ""
        raise ValueError(
            "Each row must be a dict, a beam.Row or a NamedTuple with all columns. "
            f"Received: a {type(row).__name__}{with_columns}, without {name!r}."
            f"{did_you_mean(name, columns)}"
        ) from None
    return value.item() if isinstance(value, np.generic) else value


def _as_id(name: str, value: Any, table: str) -> Any:
    if isinstance(value, np.generic):  # in a tuple
        value = value.item()
    if isinstance(value, bool):  # workers encode True and 1 differently
        return int(value)
    if isinstance(value, (str, bytes, int)):
        return value
    if is_missing(value):
        raise ValueError(
            f"Every row must contain an id of its {name}. Received: {value!r} in a row "
            f"of {table}."
        )
    if isinstance(value, float):  # workers encode 1.0 and 1 differently
        return int(value) if value.is_integer() else value
    if isinstance(value, tuple):
        return tuple(_as_id(name, each, table) for each in value)
    raise ValueError(
        "Ids must be text, bytes, numbers, or tuples of these, which all workers "
        f"encode alike. Received: the {name} {shortened(value)} in a row of {table}. "
        "Convert it to text."
    )


def _as_label(value: Any, query: Any) -> float:
    label = _as_number("labels", value, query)
    limit = FIRST_INEXACT if isinstance(label, int) else math.inf
    if not label < limit:  # also NaN
        raise ValueError(
            f"{LABEL_RULE} Received: {label!r} for the query {shortened(query)}. "
            f"{LABEL_REMEDY}"
        )
    return label


def _as_score(value: Any, query: Any) -> float:
    score = _as_number("scores", value, query)
    if isinstance(score, int) and not -(2**63) <= score < 2**63:
        raise ValueError(
            "`scores` must hold floats, or integers of at most 64 bits. Received: "
            f"{score} for the query {shortened(query)}. Convert it to a float."
        )
    return score


def _as_weight(value: Any, query: Any) -> float:
    weight = _as_number("sample_weight", value, query)
    if not 0 <= weight < math.inf:
        raise ValueError(
            f"{WEIGHT_RULE} Received: {weight!r} for the query {shortened(query)}. "
            "Drop such rows."
        )
    return weight


def _as_number(name: str, value: Any, query: Any) -> float:
    if type(value) is float or type(value) is int:
        return value
    if not isinstance(value, (numbers.Real, decimal.Decimal)):
        raise ValueError(
            f"`{name}` must hold numbers. Received: {shortened(value)} for the query "
            f"{shortened(query)}. Replace text by numbers, and drop rows with missing "
            "values."
        )
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def _as_slice(name: str, row: Any) -> Any:
    value = _cell(row, name)
    try:
        hash(value)
    except TypeError as error:
        raise ValueError(
            f"`by` must hold hashable values. Received: {error} in {shortened(name)}."
        ) from None
    return None if is_missing(value) else value
