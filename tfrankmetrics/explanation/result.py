"""The result of `explain`: a table by rank, for one metric or for two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrankmetrics.arrays.numpy import quiet
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
    """How the value of one query is computed; prints as a table with a row per item.

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
        values: The value of each metric by name; of two metrics with `versus`.
        weight: The weight of the query in the mean.
        columns: The columns of the table, a dict of arrays.
        rules: For each metric, the contribution as a product of other columns, or "" if
            it is not a product.
    """

    def __init__(self, query: Any, workings: Sequence[Working]) -> None:
        self.query = query.item() if isinstance(query, np.generic) else query
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
        texts = {}
        for name, column in self.columns.items():
            of_items = name.replace(LABEL, ITEM).replace(SCORE, ITEM)
            items = self.columns.get(of_items, self.columns[ITEM])
            texts[name] = _texts(name, column, items)
        rows = [[*map(Cell, row)] for row in zip(*texts.values(), strict=True)]
        is_text = [name.startswith(_TEXTS) for name in texts]
        num_labels = is_text.index(False)
        return Table([*texts], rows, num_labels, "\n".join(self._notes()))

    def _notes(self) -> list[str]:
        notes = []
        for each in self._workings:
            notes.append(f"{each.name} of query {self.query!r}: {_text_of(each)}.")
            if each.rule:
                notes[-1] += f" {each.rule}."
            if np.isnan(each.columns[RANK]).all():
                notes[-1] += " None of its items was retrieved."
            if not math.isclose(each.start, 0, abs_tol=1e-12):
                of_missed = any(np.isnan(each.columns[RANK]))
                source = ", the part of the items without a rank" * of_missed
                notes[-1] += f" The running value starts at {each.start:.4f}{source}."
        if any(TIED in each.columns for each in self._workings):
            notes.append(
                "Items with the same score share their ranks, which together "
                "contribute the average over all permutations of these items."
            )
        return notes + [*filter(None, [_difference(*self._workings)])]


def _text_of(working: Working) -> str:
    if not math.isnan(working.value):
        value = f"{working.value:.4f}"
        if working.is_empty and working.measure["empty"] == "one":
            return f'{value}, the value of an empty list with empty="one"'
        return value
    if working.measure["empty"] == "skip":
        return "excluded from the mean, since the list is empty or the weight is 0"
    return "excluded from the mean, since the weight is 0"


def _difference(one: Working, other: Working | None = None) -> str:
    """How two metrics differ: in which options, and from which rank on."""
    if other is None:
        return ""
    choices, others = (
        {"cutoff": each.measure.k, **each.measure.by_option} for each in (one, other)
    )
    differ = [
        f"{name} ({choices.get(name)!r} or {others.get(name)!r})"
        for name in {**choices, **others}
        if choices.get(name) != others.get(name)
    ]
    text = f"They differ in {', '.join(differ)}" if differ else "They do not differ"
    if one.measure.declaration is not other.measure.declaration:
        text = "They are different metrics"
    parts = ~np.isclose(*_running(one, other), rtol=1e-9, equal_nan=True)
    where = (
        f"; the values differ from rank {parts.argmax() + 1} on" if parts.any() else ""
    )
    return f"{text}{where}."


def _running(*workings: Working) -> list[np.ndarray]:
    return [each.columns[RUNNING] for each in workings]


def _joined(workings: Sequence[Working]) -> dict[str, np.ndarray]:
    """The columns of all workings side by side, without duplicate columns."""
    columns: dict[str, np.ndarray] = {}
    for name in dict.fromkeys(name for each in workings for name in each.columns):
        of_each = {e.label: e.columns[name] for e in workings if name in e.columns}
        first, *others = of_each.values()
        if len(of_each) == len(workings) and all(_equal(first, o) for o in others):
            columns[name] = first
            continue
        for label, column in of_each.items():
            columns[name if label is None else f"{name} ({label})"] = column
    return columns


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype == object or other.dtype == object:
        return one.tolist() == other.tolist()
    return np.array_equal(one, other, equal_nan=True)


def _shortest(scores: np.ndarray) -> np.ndarray:
    """Scores that were rounded to float32 in this dtype, which needs fewer digits."""
    if scores.dtype.kind != "f":
        return scores
    with quiet():
        narrow = scores.astype(np.float32)
    is_exact = np.array_equal(narrow, scores, equal_nan=True)
    largest = np.abs(scores, where=np.isfinite(scores), out=np.zeros(scores.shape))
    return narrow if is_exact and largest.max(initial=0) < 2**24 else scores


def _texts(name: str, column: np.ndarray, items: np.ndarray) -> list[str]:
    """The values of a column as the table shows them; `items` are in its rows."""
    if column.dtype == object:
        return [*map(str, column)]
    if name.startswith(SCORE):  # in full, since a tie depends on the last digit
        return [
            str(score).removesuffix(".0") if item != "" else ""
            for score, item in zip(_shortest(column), items.tolist(), strict=True)
        ]
    missing = NOT_RETRIEVED if name == RANK else ""
    form = ".6g" if name.startswith((RANK, LABEL)) else ".4f"
    texts = [missing if np.isnan(each) else format(each, form) for each in column]
    if name.startswith(LABEL):
        texts = [
            UNJUDGED if not text and item != "" else text
            for text, item in zip(texts, items.tolist(), strict=True)
        ]
    return texts
