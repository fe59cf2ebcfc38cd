"""Slices and weights of the judged queries, from a dict or a frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.frames import column, is_frame
from tfrankmetrics.columns.slices import (
    Column,
    by_columns,
    column_of,
    column_of_queries,
    values_by_id,
)
from tfrankmetrics.columns.values import WEIGHT_RULE, as_numbers
from tfrankmetrics.evaluation.join import Join
from tfrankmetrics.evaluation.queries import queries_of_codes
from tfrankmetrics.rules import shortened


class QueryTable(NamedTuple):
    """Looks up a value for each judged query, in a dict or in a frame."""

    qrels: Any
    query: str
    ids: np.ndarray
    joined: Join

    def columns(self, by: Any) -> dict[str, Column]:
        """The columns that `by` contains or names."""
        if is_frame(by):
            return self._columns_of_frame(by)
        if isinstance(by, (list, tuple)) and by:
            return {name: self.column("by", name, name) for name in by}
        return {by if isinstance(by, str) else "slice": self.column("by", "slice", by)}

    def weights(self, sample_weight: Any) -> np.ndarray:
        """The weight of each query."""
        values = self.column("sample_weight", "weight", sample_weight)
        weights = as_numbers("sample_weight", values.values().tolist())
        bad = ~np.isfinite(weights) | (weights < 0)
        if bad.any():
            query = shortened(self.ids[bad].tolist()[0])
            raise ValueError(
                f"{WEIGHT_RULE} Received: {weights[bad][0]} for the query {query}."
            )
        return weights

    def _columns_of_frame(self, by: Any) -> dict[str, Column]:
        names = [name for name in by_columns(by) if name != self.query]
        queries = np.asarray(column(by, self.query, "by")).tolist()
        if not names:
            raise ValueError(
                "`by` must contain a column of slices in addition to the queries. "
                f"Received: only {self.query!r}."
            )
        columns = {}
        for name in names:
            slices: dict[Any, Any] = {}
            values = column_of("by", name, by[name]).values()
            for query, value in zip(queries, values, strict=True):
                if slices.setdefault(query, value) != value:
                    raise ValueError(
                        "`by` must contain one slice for each query. Received: "
                        f"{shortened(slices[query])} and {shortened(value)} for the "
                        f"query {shortened(query)}."
                    )
            columns[name] = self.column("by", name, slices)
        return columns

    def column(self, argument: str, name: str, values: Any) -> Column:
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
        judged = queries_of_codes(self.joined.judged_queries, len(self.ids))
        return column_of_queries(
            argument,
            values,
            column(self.qrels, values, argument),
            judged.order,
            judged.starts,
            len(self.joined.judged_queries),
        )
