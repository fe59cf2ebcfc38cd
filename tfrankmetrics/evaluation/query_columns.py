"""Slices and weights of the judged queries of a run, from a dict or a frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.frames import column, is_frame
from tfrankmetrics.columns.read_column import WEIGHT_RULE, as_numbers
from tfrankmetrics.columns.slices import (
    Column,
    by_columns,
    column_of,
    values_by_id,
)
from tfrankmetrics.evaluation.rows_by_query import queries_of_codes
from tfrankmetrics.rules import shortened


class JudgedQueries(NamedTuple):
    """The judged queries, for each of which a dict or a frame has a value."""

    ids: np.ndarray
    codes: np.ndarray  # the number of the query of each row of `qrels`
    qrels: Any
    name: str  # of the column of queries

    def weights(self, sample_weight: Any) -> np.ndarray:
        """The weight of each query."""
        values = self._column("sample_weight", "weight", sample_weight).values()
        weights = as_numbers("sample_weight", values.tolist())
        bad = ~np.isfinite(weights) | (weights < 0)
        if bad.any():
            query = shortened(self.ids[bad].tolist()[0])
            raise ValueError(
                f"{WEIGHT_RULE} Received: {weights[bad][0]} for the query {query}."
            )
        return weights

    def slice_columns(self, by: Any) -> dict[str, Column]:
        """The columns that `by` contains or names."""
        if is_frame(by):
            dicts = self._dicts_of_frame(by)
            return {n: self._column("by", n, each) for n, each in dicts.items()}
        if isinstance(by, (list, tuple)) and by:
            return {name: self._column("by", name, name) for name in by}
        name = by if isinstance(by, str) else "slice"
        return {name: self._column("by", "slice", by)}

    def _dicts_of_frame(self, by: Any) -> dict[str, dict[Any, Any]]:
        """The slice of each query in each column of a frame."""
        queries = np.asarray(column(by, self.name, "by")).tolist()
        names = [name for name in by_columns(by) if name != self.name]
        if not names:
            raise ValueError(
                "`by` must contain a column of slices in addition to the queries. "
                f"Received: only {self.name!r}."
            )
        dicts: dict[str, dict[Any, Any]] = {name: {} for name in names}
        for name, slices in dicts.items():
            values = column_of("by", name, by[name]).values()
            for query, value in zip(queries, values, strict=True):
                if slices.setdefault(query, value) != value:
                    raise ValueError(
                        "`by` must contain one slice for each query. Received: "
                        f"{shortened(slices[query])} and {shortened(value)} for the "
                        f"query {shortened(query)}."
                    )
        return dicts

    def _column(self, argument: str, name: str, values: Any) -> Column:
        """A value for each query, from a dict or from a column of `qrels`."""
        if isinstance(values, Mapping):
            rule = f"`{argument}` must contain a {name} for each query of `qrels`."
            of_ids = values_by_id(rule, values, self.ids.tolist())
            return column_of(argument, name, of_ids)
        if not isinstance(values, str) or not is_frame(self.qrels):
            raise ValueError(
                f"`{argument}` must be a dict with a {name} for each query, or name a "
                f"column of the frame `qrels`. Received: {shortened(values)}."
            )
        rows = queries_of_codes(self.codes, len(self.ids))
        found = column(self.qrels, values, argument)
        return rows.column(argument, values, found)
