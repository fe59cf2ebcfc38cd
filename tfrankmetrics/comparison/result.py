"""The result of `compare`: means, differences, and a verdict, as tables and a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tfrankmetrics.comparison.gate import (
    Decision,
    Policy,
    chosen_slices,
    make_rule,
    other_model,
)
from tfrankmetrics.comparison.plots import Row, plot_gains, plot_intervals
from tfrankmetrics.comparison.queries import QueryTable
from tfrankmetrics.comparison.tables import ComparisonTables, Content
from tfrankmetrics.results.tables import (
    chosen_metrics,
    require,
)
from tfrankmetrics.rules import check_option, listed


class Comparison(ComparisonTables):
    """The means of models and their differences, from `compare`.

    >>> from tfrankmetrics import compare
    >>> models = {"A": {"mrr": [1.0, 0.5, 0.2]}, "B": {"mrr": [1.0, 1.0, 0.5]}}
    >>> comparison = compare(models)
    >>> comparison.differences[0].wins
    2
    >>> print(comparison.to_markdown("means"))
    | metric | queries | A (a) | B (b) |
    | --- | ---: | ---: | ---: |
    | mrr | 3 | 0.5667 [0.0000, 1.0000] | **0.8333 [0.3333, 1.0000]** |
    <BLANKLINE>
    Mean [95% interval]. * or bold: best. a: significantly better than (a) (p < 0.05).

    It prints as two tables, and shows them as HTML in a notebook. In the first one, a
    star marks the best model of a row, and letters mark the models that a model is
    significantly better than.

    Attributes:
        means: A list of `Mean`, for each slice, model and metric.
        differences: A list of `Difference`, for each slice, pair of models and metric.
        by: The names of the slice columns, a tuple.
        dropped: The number of queries that are missing from some of the models.
    """

    def to_pandas(self, content: Content | None = None) -> Any:
        """A pandas frame of the "differences" or the "means", a row for each.

        By default the differences, or the means if there is one model. In the rows for
        all queries, the slice columns contain "all".
        """
        pandas = require("pandas", "compare", "`to_pandas`")
        check_option("Comparison", "content", content, Content | None)
        chosen = self.differences if self.differences else self.means
        if content is not None:
            chosen = self.means if content == "means" else self.differences
        rows = []
        for each in chosen:
            values: dict[str, Any] = {**each._asdict(), "queries": each.queries}
            key = values.pop("slice") or (self._whole,) * len(self.by)
            if taken := {*self.by} & {*values, "model", "than"}:
                raise ValueError(
                    "A slice must not have the name of a different column. Received: "
                    f"slices by {listed(sorted(taken))}. Rename them before `compare`."
                )
            row = dict(zip(self.by, key, strict=True))
            if "models" in values:
                row["metric"] = values.pop("metric")
                row["model"], row["than"] = reversed(values.pop("models"))
            rows.append(row | values)
        return pandas.DataFrame(rows)

    def gate(
        self,
        metric: str,
        baseline: str,
        *,
        model: str | None = None,
        margin: float = 0.0,
        policy: Policy = "not_worse",
        in_slices: bool | Sequence[Any] = False,
    ) -> Decision:
        """Decides whether a model may replace the baseline.

        >>> from tfrankmetrics import compare
        >>> old = [0.2, 0.5, 1.0, 0.5, 0.3, 0.2, 1.0, 0.5]
        >>> new = [0.5, 1.0, 1.0, 1.0, 0.5, 0.5, 1.0, 1.0]
        >>> comparison = compare({"old": {"mrr": old}, "new": {"mrr": new}})
        >>> decision = comparison.gate("mrr", "old", margin=0.05)
        >>> decision.passed
        True
        >>> print(decision)
        Passed: mrr of 'new' is not worse than that of 'old' by 0.05 or more: ...

        Args:
            metric: The metric on which the decision is based.
            baseline: The model to be replaced.
            model: The model that replaces it; may be omitted if there are two models.
            margin: A difference that is too small to matter, in units of the metric.
                "not_worse" requires one above 0.
            policy: "not_worse" (the default): by the 95% interval, the model is not
                worse by the margin or more. "better": the difference is significant
                (adjusted p < 0.05), and the mean is higher by more than the margin;
                lower, for a metric such as ARP.
            in_slices: Slices in which the rule must hold, too: a list of slices of
                `by=`, or True for all of them.

        Returns:
            A `Decision` with `passed` and the `reason`, one sentence about the decisive
            comparison.

        Raises:
            ValueError: A name is not one of those compared, or the margin is negative.
        """
        rule = make_rule(metric, baseline, model, margin, policy, self._per_query)
        known = {each.slice for each in self.differences} | {None}
        chosen = chosen_slices(in_slices, known)
        return rule.decide(
            each
            for each in self.differences
            if each.metric == metric
            and {*each.models} == {rule.baseline, rule.model}
            and each.slice in chosen
        )

    def movers(
        self,
        metric: str,
        baseline: str,
        *,
        model: str | None = None,
        number: int = 10,
        in_slice: Any = None,
    ) -> QueryTable:
        """The queries that gained most, and those that lost most.

        >>> from tfrankmetrics import compare
        >>> old = {"query": ["a", "b", "c"], "mrr": [1.0, 0.5, 0.2]}
        >>> new = {"query": ["a", "b", "c"], "mrr": [0.5, 0.5, 1.0]}
        >>> compare({"old": old, "new": new}).movers("mrr", "old")
        query     old     new     gain
        c      0.2000  1.0000  +0.8000
        a      1.0000  0.5000  -0.5000
        mrr from 'old' to 'new'; queries that gained: 1, that lost: 1.

        Args:
            metric: The metric.
            baseline: The model to start from.
            model: The other model; may be omitted if there are two.
            number: At most how many queries that gained, and that lost.
            in_slice: A slice of `by=`, whose queries to show; by default all.

        Returns:
            A `QueryTable`, which prints as a table, and provides `to_markdown` and
            `to_pandas`.

        Raises:
            ValueError: A name is not one of those compared.
        """
        model = other_model(baseline, model, self._per_query.models)
        return self._per_query.movers(metric, baseline, model, number, in_slice)

    def worst_queries(
        self, metric: str, model: str, *, number: int = 10, in_slice: Any = None
    ) -> QueryTable:
        """The queries with the worst values of a model, as a `QueryTable`.

        A query without relevant items has the value 0 with most metrics, whatever the
        model, and comes first. Values of `evaluate(..., empty="skip")` leave it out.

        Raises ValueError for a name that is not one of those compared.
        """
        return self._per_query.worst(metric, model, number, in_slice)

    def plot(self, *metrics: str) -> Any:
        """Plots the differences with their intervals, or the means of one model.

        Args:
            *metrics: The metrics to plot, side by side; by default all.

        Returns:
            The axes of Matplotlib, an array with one for each metric.
        """
        of_means = [*dict.fromkeys(each.metric for each in self.means)]
        chosen = chosen_metrics(metrics, of_means)
        everything = self.differences or self.means
        numbers = {
            each.slice: f"{each.queries:,}"
            for each in everything
            if each.metric == chosen[0]
        }
        rows = [
            Row(self._name(each.slice, numbers), self._labels(each)[-1], each)
            for each in everything
        ]
        return plot_intervals(rows, chosen)

    def plot_queries(
        self,
        metric: str,
        baseline: str,
        *,
        model: str | None = None,
        in_slice: Any = None,
    ) -> Any:
        """Plots the gain of each query from the baseline to the model, sorted.

        A gain is a rise of the value, or a fall if lower values are better.

        Args:
            metric: The metric.
            baseline: The model to start from.
            model: The other model; may be omitted if there are two.
            in_slice: A slice of `by=`, whose queries to plot; by default all.

        Returns:
            The axes of Matplotlib.

        Raises:
            ValueError: A name is not one of those compared.
        """
        model = other_model(baseline, model, self._per_query.models)
        gains = self._per_query.gains(metric, baseline, model, in_slice)
        return plot_gains(gains, metric, (baseline, model))

    def __getattr__(self, name: str) -> Any:
        """Raises AttributeError for `reliability`, which was removed."""
        if name == "reliability":
            raise AttributeError(
                "`Comparison.reliability` was removed. The last version with it is "
                "0.1.0, as of 2026-11-26. `Difference.queries_needed` returns how many "
                "queries a difference needs, and gt4ireval, a package for R, computes "
                "the coefficients of reliability."
            )
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}"
        )

    def _name(self, slice_: tuple | None, numbers: Mapping[Any, str]) -> str:
        """A slice with its number of queries, in a plot; empty without slices."""
        if not self.by:
            return ""
        labels = [self._whole] if slice_ is None else [*map(str, slice_)]
        return f"{', '.join(labels)} ({numbers[slice_]})"
