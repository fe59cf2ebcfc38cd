"""What `compare` returns: means, differences, and a verdict, as tables and a plot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from tfrankmetrics.comparison.estimates import SIGNIFICANT, Difference, Mean
from tfrankmetrics.comparison.gate import (
    Decision,
    Policy,
    chosen_slices,
    make_rule,
    other_model,
)
from tfrankmetrics.comparison.queries import PerQuery, QueryTable
from tfrankmetrics.comparison.significance import adjusted
from tfrankmetrics.results.tables import (
    Cell,
    Table,
    chosen_metrics,
    panels,
    require,
    whole,
)
from tfrankmetrics.rules import check_option, listed

MOST_NAMED = 3  # comparisons in a sentence
Content = Literal["means", "differences"]


class Comparison:
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
    Mean [95% interval]. * or bold: best. Letters: better than that model (p < 0.05).

    It prints as two tables, and shows them as HTML in a notebook. In the first one, a
    star marks the best model of a row, and letters mark the models that a model is
    significantly better than.

    Attributes:
        means: A list of `Mean`, for each slice, model and metric.
        differences: A list of `Difference`, for each slice, pair of models and metric.
        by: What the slices are by, a tuple of names.
        dropped: The number of queries that only some of the models have.
    """

    def __init__(
        self,
        means: Sequence[Mean],
        differences: Sequence[Difference],
        *,
        by: tuple[str, ...],
        test: str,
        correction: str | None,
        dropped: int,
        per_query: PerQuery,
        notes: Sequence[str] = (),
    ):
        corrected = adjusted(np.array([each.p for each in differences]), correction)
        self.means = [*means]
        self.differences = [
            each._replace(corrected_p=p)
            for each, p in zip(differences, corrected.tolist(), strict=True)
        ]
        self.by, self.dropped, self._per_query = by, dropped, per_query
        self._whole = whole(each.slice for each in means if each.slice)
        self._test, self._correction, self._notes = test, correction, [*notes]

    def __repr__(self) -> str:
        return "\n\n".join(table.abridged().to_text() for table in self._tables())

    def _repr_html_(self) -> str:
        return "\n".join(table.abridged().to_html() for table in self._tables())

    def to_markdown(self, content: Content | None = None) -> str:
        """The tables in Markdown: the "means", the "differences", or both."""
        return "\n\n".join(table.to_markdown() for table in self._tables(content))

    def to_latex(self, content: Content | None = None) -> str:
        """The tables as LaTeX tabulars: the "means", the "differences", or both.

        The best mean of a row is bold. Letters mark the models that a model is
        significantly better than.
        """
        return "\n\n".join(table.to_latex() for table in self._tables(content))

    def to_pandas(self, content: Content | None = None) -> Any:
        """A pandas frame of the "differences" or the "means", a row for each.

        By default the differences, or the means if there is one model. In the rows of
        all queries the columns of the slices are "all".
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
                    "A slice must not have the name of another column. Received: "
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
            metric: The metric that decides.
            baseline: The model to be replaced.
            model: The model that replaces it; may be omitted if there are two models.
            margin: A difference that is too small to matter, in units of the metric.
                "not_worse" needs one above 0.
            policy: "not_worse" (the default): by the 95% interval, the model is not
                worse by the margin or more. "better": the difference is significant
                (corrected p < 0.05), and the mean is higher by more than the margin;
                lower, for a metric such as ARP.
            in_slices: Slices in which the rule must hold, too: a list of slices of
                `by=`, or True for all of them.

        Returns:
            A `Decision` with `passed` and the `reason`, which is one sentence about the
            comparison that decided.

        Raises:
            ValueError: A name is not one of those compared, or the margin is negative.
        """
        rule = make_rule(
            metric,
            baseline,
            model,
            margin,
            policy,
            self._per_query,
        )
        chosen = chosen_slices(in_slices, {each.slice for each in self.differences})
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
            A `QueryTable`, which prints as a table, and has `to_markdown` and
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

        Raises ValueError for a name that is not one of those compared.
        """
        return self._per_query.worst(metric, model, number, in_slice)

    def plot(self, *metrics: str) -> Any:
        """Plots the differences with their intervals, or the means of one model.

        Args:
            *metrics: The metrics to plot, each beside the other; by default all.

        Returns:
            The axes of Matplotlib, an array with one for each metric.
        """
        of_means = [*dict.fromkeys(each.metric for each in self.means)]
        chosen = chosen_metrics(metrics, of_means)
        everything = self.differences or self.means
        rows = [each for each in everything if each.metric == chosen[0]]
        names = [
            f"{', '.join(filter(None, self._labels(each)))} ({each.queries:,})"
            for each in rows
        ]
        axes = panels(chosen, names)
        for axis, metric in zip(axes, chosen, strict=True):
            _plot_intervals(axis, [e for e in everything if e.metric == metric])
            if self.differences:
                axis.axvline(0, color="black", linewidth=0.8)
        title = "Mean, 95% interval (queries)"
        if self.differences:
            title = "Difference, 95% interval (queries; filled: corrected p < 0.05)"
        axes[0].figure.suptitle(title, fontsize=10)
        return axes

    def _labels(self, each: Mean | Difference) -> list[str]:
        if isinstance(each, Mean):
            return [*self._slice(each), each.model]
        return [*self._slice(each), " - ".join(reversed(each.models))]

    def _slice(self, each: Mean | Difference) -> list[str]:
        if not self.by:
            return []
        if each.slice is None:
            return [self._whole] + [""] * (len(self.by) - 1)
        return [*map(str, each.slice)]

    @property
    def _num_tests(self) -> int:
        return sum(not math.isnan(each.p) for each in self.differences)

    @property
    def _is_corrected(self) -> bool:
        return self._correction is not None and self._num_tests > 1

    def _tables(self, content: Content | None = None) -> list[Table]:
        check_option("Comparison", "content", content, Content | None)
        tables = []
        if content in (None, "means"):
            tables.append(self._table_of_means())
        if content in (None, "differences") and self.differences:
            tables.append(self._table_of_differences())
        return tables

    def _table_of_means(self) -> Table:
        models = [*dict.fromkeys(each.model for each in self.means)]
        letters = {model: _letter(i) for i, model in enumerate(models)}
        better = self._models_that_each_beats(letters)
        by_row: dict[tuple, list[Mean]] = {}
        for each in self.means:
            by_row.setdefault((each.slice, each.metric), []).append(each)
        rows = [self._row_of_means(means, better) for means in by_row.values()]
        names = [f"{m} ({letters[m]})" if len(models) > 1 else m for m in models]
        note = "Mean [95% interval]."
        if len(models) > 1:
            p = "corrected p" if self._is_corrected else "p"
            note += f" * or bold: best. Letters: better than that model ({p} < 0.05)."
        if self.dropped:
            note += f" {self.dropped} queries that only some models have are left out."
        note = "\n".join([note, *self._notes])
        return Table(
            [*self.by, "metric", "queries", *names], rows, len(self.by) + 1, note
        )

    def _models_that_each_beats(self, letters: dict[str, str]) -> dict[tuple, set[str]]:
        """The letters of the models that a model is significantly better than."""
        better: dict[tuple, set[str]] = {}
        for each in self.differences:
            if each.is_significant:
                is_lower = each.metric in self._per_query.lower_is_better
                first, second = each.models
                if (each.difference < 0) != is_lower:
                    first, second = second, first
                key = each.slice, each.metric, second
                better.setdefault(key, set()).add(letters[first])
        return better

    def _row_of_means(
        self, means: Sequence[Mean], better: dict[tuple, set[str]]
    ) -> list[Cell]:
        first = means[0]
        choose = min if first.metric in self._per_query.lower_is_better else max
        values = [each.mean for each in means if not math.isnan(each.mean)]
        best = choose(values) if len(means) > 1 and values else None
        cells = [Cell(text) for text in (*self._slice(first), first.metric)]
        cells.append(Cell(f"{first.queries:,}"))
        for each in means:
            text = f"{each.mean:.4f}"
            if not math.isnan(each.high):  # one query has no interval
                text += f" [{each.low:.4f}, {each.high:.4f}]"
            marks = better.get((each.slice, each.metric, each.model), ())
            cells.append(Cell(text, each.mean == best, "".join(sorted(marks))))
        return cells

    def _table_of_differences(self) -> Table:
        is_corrected, rows = self._is_corrected, []
        for each in self.differences:
            labels = [
                *self._slice(each),
                each.metric,
                " - ".join(reversed(each.models)),
            ]
            interval = f"[{each.low:+.4f}, {each.high:+.4f}]"
            numbers = [f"{each.difference:+.4f}"]
            numbers.append("-" if math.isnan(each.low) else interval)
            numbers += [_p(each.p)] + [_p(each.corrected_p)] * is_corrected
            numbers += [f"{n:,}" for n in (each.wins, each.losses, each.ties)]
            rows.append([Cell(text) for text in labels + numbers])
        header = [*self.by, "metric", "models", "difference", "95% interval", "p"]
        header += [f"p ({self._correction})"] * is_corrected
        header += ["wins", "losses", "ties"]
        note = {"t": "Paired t-test"}.get(self._test, f"Paired {self._test} test")
        if is_corrected:
            note += (
                f"; p-values corrected for {self._num_tests} comparisons "
                f"({self._correction})"
            )
        note = "\n".join([f"{note}.", *self._too_few()])
        return Table(header, rows, len(self.by) + 2, note)

    def _too_few(self) -> list[str]:
        """A sentence on the comparisons that no outcome would make significant."""
        factor = self._num_tests if self._correction == "bonferroni" else 1
        few = [
            f"{', '.join(self._labels(each))}, {each.metric} "
            f"({each.wins + each.losses}: p >= {each.smallest_p:.3g})"
            for each in self.differences
            if each.smallest_p * factor >= SIGNIFICANT and not math.isnan(each.p)
        ]
        if not few:
            return []
        more = f"; and {len(few) - MOST_NAMED} more" if len(few) > MOST_NAMED else ""
        named = "; ".join(few[:MOST_NAMED])
        return [f"Too few queries differ for p < 0.05 in any outcome: {named}{more}."]


def _plot_intervals(axis: Any, rows: Sequence[Mean | Difference]) -> None:
    """A line and a dot for each row; the dot of an uncertain difference is white."""
    for row, each in enumerate(rows):
        is_clear = isinstance(each, Mean) or each.is_significant
        axis.plot([each.low, each.high], [row, row], color="C0", linewidth=2)
        fill = "C0" if is_clear else "white"
        axis.plot(each[3], row, "o", color="C0", markerfacecolor=fill)


def _letter(number: int) -> str:
    """a, b, ..., z, then a1, b1, ..."""
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
