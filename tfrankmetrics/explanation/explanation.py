"""The result of `explain`: a table by rank, for one metric or for two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrankmetrics.arguments import DataFrame
from tfrankmetrics.arrays.numpy import quiet
from tfrankmetrics.explanation.asked import AskedMetric
from tfrankmetrics.explanation.working import (
    ITEM,
    LABEL,
    RANK,
    RUNNING,
    SCORE,
    TIED,
    Working,
    work_out,
)
from tfrankmetrics.inputs.one_list import OneList
from tfrankmetrics.installation import require
from tfrankmetrics.results.text_tables import Cell, ShownAsTable, Table

NOT_RETRIEVED = "-"  # in the place of a rank
UNJUDGED = "unjudged"  # in the place of a label


class Explanation(ShownAsTable):
    """How the value of one query is computed; prints as a table of ranks and items.

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
        value: Its value in the metric, as `evaluate` returns it with `per_query=True`:
            NaN if the query is left out of the mean.
        values: The value of each metric by name; of two metrics with `versus`.
        weight: The weight of the query in the mean, 0 if it is left out.
        columns: The columns of the table, a dict of arrays.
        rules: For each metric, the contribution as a product of other columns, or "" if
            it is not a product.
    """

    def __init__(
        self, query: Any, metrics: Sequence[AskedMetric], lists: Sequence[OneList]
    ) -> None:
        """`lists` contains the list of the query that each metric reads."""
        workings = [*map(work_out, metrics, lists)]
        keys = _keys_of_shown_rows(workings)
        workings = [each.with_rows(keys) for each in workings]
        self.query = query.item() if isinstance(query, np.generic) else query
        self.values = {each.metric.name: each.value for each in workings}
        self.value, self.weight = workings[0].value, workings[0].weight
        self.rules = {each.metric.name: each.rule for each in workings}
        self.columns = _joined(*workings)
        self._workings = workings

    def to_pandas(self) -> DataFrame:
        """The table as a pandas frame; NaN where a column has no value."""
        pandas = require("pandas", "`to_pandas`")
        return pandas.DataFrame(self.columns)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows of `to_pandas` as dicts."""
        rows = zip(*self.columns.values(), strict=True)
        return [dict(zip(self.columns, row, strict=True)) for row in rows]

    def _table(self) -> Table:
        texts = {n: _cell_texts(n, column) for n, column in self.columns.items()}
        for name in texts:
            if name.startswith((SCORE, LABEL)):
                texts[name] = self._where_items_are(name, texts[name])
        rows = [[*map(Cell, row)] for row in zip(*texts.values(), strict=True)]
        num_labels = sum(name.startswith((RANK, TIED, ITEM)) for name in texts)
        return Table([*texts], rows, num_labels, self._notes())

    def _where_items_are(self, name: str, texts: Sequence[str]) -> list[str]:
        """The texts of a column, empty in rows without an item.

        With `versus`, a row may be one of the other metric only.
        """
        kind = SCORE if name.startswith(SCORE) else LABEL
        of_metric = ITEM + name.removeprefix(kind)
        items = self.columns.get(of_metric, self.columns[ITEM]).tolist()
        pairs = zip(texts, items, strict=True)
        return ["" if item == "" else text for text, item in pairs]

    def _notes(self) -> list[str]:
        notes = []
        for each in self._workings:
            are_missed = np.isnan(each.columns[RANK]).tolist()
            note = f"{each.metric.name} of query {self.query!r}: {_value_text(each)}."
            if each.rule:
                note += f" {each.rule}."
            if are_missed and all(are_missed):
                note += " None of its items was retrieved."
            if not each.left_out and not math.isclose(each.start, 0, abs_tol=1e-12):
                source = ", the part of the items without a rank" * any(are_missed)
                note += f" The running value starts at {each.start:.4f}{source}."
            notes.append(note)
        if any(TIED in each.columns for each in self._workings):
            notes.append(
                "Items with the same score share their ranks, which together "
                "contribute the average over all orders of these items."
            )
        if len(self._workings) == 2:
            notes.append(_difference(*self._workings))
        return notes


def _keys_of_shown_rows(workings: Sequence[Working]) -> list[int]:
    """The keys of the rows that any metric shows: ranks first, then other items."""
    shown = [key for each in workings for key in each.row_keys[each.is_shown].tolist()]
    ranks = sorted({key for key in shown if key > 0})
    return [*ranks, *dict.fromkeys(key for key in shown if key < 0)]


def _value_text(working: Working) -> str:
    if working.left_out:
        return f"left out of the mean, since {working.left_out}"
    is_by_option = working.is_empty and working.metric.measure["empty"] == "one"
    source = ', the value of an empty list with empty="one"' * is_by_option
    return f"{working.value:.4f}{source}"


def _difference(one: Working, other: Working) -> str:
    """How two metrics differ: in which options, and from which rank on."""
    first, second = (each.metric.measure for each in (one, other))
    choices, others = ({"cutoff": each.k, **each.by_option} for each in (first, second))
    differ = [
        f"{name} ({choices.get(name)!r} or {others.get(name)!r})"
        for name in {**choices, **others}
        if choices.get(name) != others.get(name)
    ]
    text = f"They differ in {', '.join(differ)}" if differ else "They do not differ"
    if first.declaration is not second.declaration:
        text = "They are different metrics"
    running = (_continued(each.columns[RUNNING]) for each in (one, other))
    differs = ~np.isclose(*running, rtol=1e-9, equal_nan=True)
    if differs.any():
        text += f"; the values differ from rank {differs.argmax() + 1} on"
    return f"{text}."


def _continued(running: np.ndarray) -> np.ndarray:
    """A running value that stays the same below the cutoff of its metric."""
    last_known = np.maximum.accumulate(
        np.where(np.isnan(running), 0, np.arange(len(running)))
    )
    return running[last_known]


def _joined(first: Working, second: Working | None = None) -> dict[str, np.ndarray]:
    """The columns of both workings side by side, without duplicate columns."""
    if second is None:
        return first.columns
    columns: dict[str, np.ndarray] = {}
    for name in {**first.columns, **second.columns}:
        one, other = first.columns.get(name), second.columns.get(name)
        if one is not None:
            columns[name] = one
        if other is not None and (
            one is None or not np.array_equal(one, other, equal_nan=one.dtype != object)
        ):
            columns[f"{name} ({second.metric.label})"] = other
    return columns


def _cell_texts(name: str, column: np.ndarray) -> list[str]:
    """The values of a column as the table shows them."""
    if column.dtype == object:
        return [*map(str, column)]
    if name.startswith(SCORE):  # in full, since a tie depends on the last digit
        return [str(score).removesuffix(".0") for score in _shortest(column)]
    form = ".6g" if name.startswith((RANK, LABEL)) else ".4f"
    missing = {RANK: NOT_RETRIEVED, LABEL: UNJUDGED}.get(name.partition(" (")[0], "")
    return [missing if each != each else format(each, form) for each in column]


def _shortest(scores: np.ndarray) -> np.ndarray:
    """Scores as float32 if it holds all of them, since they print with fewer digits.

    From 2^24 on, it would print some whole numbers with other digits.
    """
    if scores.dtype.kind != "f":
        return scores
    with quiet():
        narrow = scores.astype(np.float32)
    is_exact = np.array_equal(narrow, scores, equal_nan=True)
    largest = np.abs(scores, where=np.isfinite(scores), out=np.zeros(scores.shape))
    return narrow if is_exact and largest.max(initial=0) < 2**24 else scores
