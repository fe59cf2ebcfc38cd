"""The queries of a comparison: those that changed most, and the worst ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.arguments import DataFrame
from tfrankmetrics.columns.slices import Slices
from tfrankmetrics.comparison.models import Model
from tfrankmetrics.comparison.samples import ROUNDING
from tfrankmetrics.installation import require
from tfrankmetrics.results.text_tables import Cell, ShownAsTable, Table
from tfrankmetrics.rules import listed, shortened


class QueryTable(ShownAsTable):
    """Some queries with their values, which prints as a table.

    Attributes:
        queries: The ids of the queries, or their numbers without ids.
        columns: The values of each query, a dict of lists of floats.
    """

    def __init__(
        self,
        queries: Sequence[Any],
        columns: Mapping[str, Sequence[float]],
        note: str,
        signed: str | None = None,
    ) -> None:
        """`signed` names the column whose numbers have a sign, if there is one."""
        self.queries, self.columns, self._note = [*queries], dict(columns), note
        self._signed = signed

    def to_pandas(self) -> DataFrame:
        """A pandas frame with a row for each query."""
        pandas = require("pandas", "`to_pandas`")
        return pandas.DataFrame({"query": self.queries, **self.columns})

    def _table(self) -> Table:
        columns = [[Cell(str(query)) for query in self.queries]]
        for name, values in self.columns.items():
            form = "+.4f" if name == self._signed else ".4f"
            columns.append([Cell(format(value, form)) for value in values])
        rows = [*zip(*columns, strict=True)]
        return Table(["query", *self.columns], rows, 1, [self._note])


class PerQuery(NamedTuple):
    """The values of all models with their slices, and answers about single queries."""

    models: Sequence[Model]
    slices: Slices | None
    are_paired: bool

    def other_model(self, baseline: str, model: str | None) -> str:
        """The model to compare with the baseline: `model`, or the only other one."""
        names = [each.name for each in self.models]
        others = [name for name in names if name != baseline]
        if len(names) < 2:
            raise ValueError(
                f"A baseline requires a second model. Received: only {listed(names)}."
            )
        if baseline not in names:
            raise ValueError(
                f"`baseline` must be one of {listed(names)}. Received: "
                f"{shortened(baseline)}."
            )
        if model is None and len(others) == 1:
            return others[0]
        if model is None or model not in others:
            since = ", since there are several" if model is None else ""
            raise ValueError(
                f"`model` must be one of {listed(others)}{since}. Received: "
                f"{shortened(model)}."
            )
        return model

    def range_of(self, metric: str) -> tuple[float, float]:
        """The lowest and the highest possible value of a metric."""
        _require_compared("metric", metric, self.models[0].metrics)
        low, high = self.models[0].ranges[:, self.models[0].metrics.index(metric)]
        return low.item(), high.item()

    def sign(self, metric: str) -> int:
        """1 for a metric whose higher values are better, and otherwise -1."""
        return -1 if metric in self.models[0].lower_is_better else 1

    def column(self, model: str, metric: str, of: str = "values") -> np.ndarray:
        """The values of a model in a metric, or another array `of` the model."""
        by_name = {each.name: each for each in self.models}
        _require_compared("model", model, [*by_name])
        _require_compared("metric", metric, self.models[0].metrics)
        return getattr(by_name[model], of)[:, self.models[0].metrics.index(metric)]

    def improvements(self, metric: str, baseline: str, model: str) -> np.ndarray:
        """How much better the model is in each query, NaN without a value.

        It is 0 if the values are equal up to rounding.
        """
        if not self.are_paired:
            raise ValueError(
                "An improvement requires both models in the same query. Received: a "
                "comparison with paired=False. See `worst_queries` of each model."
            )
        old, new = (self.column(name, metric) for name in (baseline, model))
        is_equal = np.isclose(new, old, rtol=ROUNDING, atol=0)
        return np.where(is_equal, 0, self.sign(metric) * (new - old))

    def queries_of(self, in_slice: Any) -> np.ndarray:
        """The numbers of the queries of a slice, or of all."""
        if in_slice is None:
            return np.arange(self.models[0].num_queries)
        if self.slices is None:
            raise ValueError(
                f"`in_slice` needs slices. Received: {shortened(in_slice)}, with a "
                "comparison without any. Pass `by` to compare()."
            )
        keys = self.slices.keys
        key = in_slice if isinstance(in_slice, tuple) else (in_slice,)
        if key not in keys:
            names = [each[0] if len(each) == 1 else each for each in keys]
            raise ValueError(
                f"`in_slice` must be one of the slices compared: {listed(names)}. "
                f"Received: {shortened(in_slice)}."
            )
        return np.flatnonzero(self.slices.of_query == keys.index(key))

    def table(
        self,
        queries: np.ndarray,
        columns: Mapping[str, np.ndarray],
        note: str,
        signed: str | None = None,
    ) -> QueryTable:
        """Some queries by their numbers, with columns of all queries."""
        ids, numbers = self.models[0].ids, queries.tolist()
        names = [ids[number] for number in numbers] if ids else numbers
        values = {name: each[queries].tolist() for name, each in columns.items()}
        return QueryTable(names, values, note, signed)


def _require_compared(name: str, value: Any, known: Sequence[str]) -> None:
    """Raises ValueError for a metric or a model that was not compared."""
    if value not in known:
        raise ValueError(
            f"`{name}` must be one of those compared: {listed(known)}. Received: "
            f"{shortened(value)}."
        )
