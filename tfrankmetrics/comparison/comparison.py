"""`Comparison`, the result of `compare`: tables, plots, the gate and its queries."""

from __future__ import annotations

import collections
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from tfrankmetrics.arguments import Axes, DataFrame, Key
from tfrankmetrics.comparison.estimates import (
    SIGNIFICANT,
    Difference,
    JudgeBias,
    Mean,
)
from tfrankmetrics.comparison.gate import (
    Decision,
    Policy,
    check_policy,
    decide,
    slices_to_decide,
)
from tfrankmetrics.comparison.plots import Row, plot_improvements, plot_intervals
from tfrankmetrics.comparison.query_tables import PerQuery, QueryTable
from tfrankmetrics.installation import require
from tfrankmetrics.results.flat_values import flat_values, parts_of_slice
from tfrankmetrics.results.plot_axes import chosen_metrics
from tfrankmetrics.results.text_tables import Cell, Table, label_of_all
from tfrankmetrics.rules import Positive, check_option, listed, shortened

MOST_NAMED = 3  # comparisons in a sentence
WINS = ("wins", "losses", "ties")
# The name of the column: the first that is not the name of a model.
IMPROVEMENT = ("improvement", "improvement of the query", "improvement of each query")
Content = Literal["means", "differences", "judge"]


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
    Mean [95% interval]. * or bold: best. a: significantly better than (a) (p < 0.05).

    It prints two tables, or shows them as HTML in a notebook. In the first one, a star
    marks the best model of a row, and letters mark the models that a model is
    significantly better than.

    Attributes:
        means: A list of `Mean`, for each slice, model and metric.
        differences: A list of `Difference`, for each slice, pair of models and metric.
        judge: A list of `JudgeBias` with `people=`, for each slice, metric, model and
            pair of models.
        by: The names of the slice columns, a tuple.
        dropped: The number of queries that are missing from some of the models.
    """

    def __init__(
        self,
        means: Sequence[Mean],
        differences: Sequence[Difference],
        judge: Sequence[JudgeBias],
        *,
        test: str,
        correction: str | None,
        dropped: int,
        per_query: PerQuery,
        notes: Sequence[str],
    ):
        self.means, self.differences = [*means], [*differences]
        self.judge = [*judge]
        self.by = per_query.slices.names if per_query.slices else ()
        self.dropped = dropped
        self._per_query = per_query
        self._whole = label_of_all(each.slice for each in means if each.slice)
        self._test = test
        self._correction = correction
        self._notes = notes

    def __repr__(self) -> str:
        return "\n\n".join(table.abridged().to_text() for table in self._tables())

    def _repr_html_(self) -> str:
        return "\n".join(table.abridged().to_html() for table in self._tables())

    def to_markdown(self, content: Content | None = None) -> str:
        """The tables in Markdown.

        Args:
            content: "means", "differences" or "judge"; by default all.
        """
        return "\n\n".join(table.to_markdown() for table in self._tables(content))

    def to_latex(self, content: Content | None = None) -> str:
        """The tables as LaTeX tabulars.

        The best mean of a row is bold. Letters mark the models that a model is
        significantly better than.

        Args:
            content: "means", "differences" or "judge"; by default all.
        """
        return "\n\n".join(table.to_latex() for table in self._tables(content))

    def to_pandas(self, content: Content | None = None) -> DataFrame:
        """A pandas frame with a row for each difference, or for each mean.

        In the rows for all queries, the slice columns contain "all".

        Args:
            content: "differences" (the default), "means" (the default for one model),
                or "judge".
        """
        pandas = require("pandas", "`to_pandas`")
        return pandas.DataFrame(self.to_dicts(content))

    def to_dicts(self, content: Content | None = None) -> list[dict[str, Any]]:
        """The rows of `to_pandas` as dicts.

        Args:
            content: "differences" (the default), "means" (the default for one model),
                or "judge".
        """
        check_option("Comparison", "content", content, Content | None)
        content = content or ("differences" if self.differences else "means")
        chosen: list[Any] = getattr(self, content)
        hidden = {"unpaired"} if self._has_wins else {"unpaired", *WINS}
        rows: list[dict[str, Any]] = []
        for each in chosen:
            values: dict[str, Any] = {**each._asdict(), "queries": each.queries}
            values = {name: values[name] for name in values if name not in hidden}
            key = values.pop("slice") or (self._whole,) * len(self.by)
            if taken := {*self.by} & {*values, "model", "than"}:
                raise ValueError(
                    "A slice must not have the name of a different column. Received: "
                    f"slices by {listed(sorted(taken))}. Rename them before `compare`."
                )
            row: dict[str, Any] = dict(zip(self.by, key, strict=True))
            if "models" in values:
                row["metric"] = values.pop("metric")
                *than, row["model"] = values.pop("models")
                row["than"] = than[0] if than else None
            rows.append(row | values)
        return rows

    def to_flat_dict(self) -> dict[str, float]:
        """The mean of each model, metric and slice, in one dict for trackers.

        >>> from tfrankmetrics import compare
        >>> models = {"A": {"mrr": [1.0, 0.5, 0.2]}, "B": {"mrr": [1.0, 1.0, 0.5]}}
        >>> compare(models).to_flat_dict()
        {'A/mrr': 0.566..., 'B/mrr': 0.833...}

        The keys are as in `SlicedValues.to_flat_dict`, after the model.

        Raises:
            ValueError: Two keys become equal.
        """
        numbers = []
        for each in self.means:
            of_slice = parts_of_slice(self.by, each.slice) if each.slice else []
            numbers.append(([each.model, each.metric, *of_slice], each.mean))
        return flat_values(numbers)

    def gate(
        self,
        metric: str,
        baseline: str,
        *,
        model: str | None = None,
        margin: float = 0.0,
        policy: Policy = "not_worse",
        in_slices: bool | Sequence[Key] = False,
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
        low, high = self._per_query.range_of(metric)
        model = self._per_query.other_model(baseline, model)
        check_policy(policy, margin, metric, low, high)
        known = {each.slice for each in self.differences} | {None}
        chosen = slices_to_decide(in_slices, known)
        differences = [
            each
            for each in self.differences
            if each.metric == metric
            and {*each.models} == {baseline, model}
            and each.slice in chosen
        ]
        sign = self._per_query.sign(metric)
        return decide(differences, baseline, float(margin), policy, sign)

    def movers(
        self,
        metric: str,
        baseline: str,
        *,
        model: str | None = None,
        number: int = 10,
        in_slice: Key | None = None,
    ) -> QueryTable:
        """The queries that improved most, and those that worsened most.

        >>> from tfrankmetrics import compare
        >>> old = {"query": ["a", "b", "c"], "mrr": [1.0, 0.5, 0.2]}
        >>> new = {"query": ["a", "b", "c"], "mrr": [0.5, 0.5, 1.0]}
        >>> compare({"old": old, "new": new}).movers("mrr", "old")
        query     old     new  improvement
        c      0.2000  1.0000      +0.8000
        a      1.0000  0.5000      -0.5000
        mrr from 'old' to 'new'; queries that improved: 1, that worsened: 1.

        Args:
            metric: The metric.
            baseline: The model to start from.
            model: The other model; may be omitted if there are two.
            number: At most how many queries that improved, and that worsened.
            in_slice: A slice of `by=`, whose queries to show; by default all.

        Returns:
            A `QueryTable`, which prints as a table, and provides `to_markdown` and
            `to_pandas`.

        Raises:
            ValueError: A name is not one of those compared.
        """
        check_option("movers", "number", number, Positive)
        model = self._per_query.other_model(baseline, model)
        queries = self._per_query.queries_of(in_slice)
        improvements = self._per_query.improvements(metric, baseline, model)
        queries = queries[np.argsort(-improvements[queries], kind="stable")]
        improved = queries[improvements[queries] > 0]
        worsened = queries[improvements[queries] < 0]
        models = baseline, model
        columns = {name: self._per_query.column(name, metric) for name in models}
        column = next(name for name in IMPROVEMENT if name not in models)
        return self._per_query.table(
            np.append(improved[:number], worsened[-number:]),
            {**columns, column: improvements},
            f"{metric} from {baseline!r} to {model!r}{_where(in_slice)}; queries that "
            f"improved: {len(improved):,}, that worsened: {len(worsened):,}.",
            signed=column,
        )

    def worst_queries(
        self, metric: str, model: str, *, number: int = 10, in_slice: Key | None = None
    ) -> QueryTable:
        """The queries with the worst values of a model, as a table.

        Queries without relevant items, whose value 0 does not depend on the model, are
        left out. In a plain dict of values they are unknown and shown.

        Args:
            metric: The metric.
            model: The model.
            number: The number of queries, by default 10.
            in_slice: A slice of `by=`, whose queries to show; by default all.

        Raises:
            ValueError: A name is not one of those compared.
        """
        check_option("worst_queries", "number", number, Positive)
        queries = self._per_query.queries_of(in_slice)
        values = self._per_query.column(model, metric)
        without = self._per_query.column(model, metric, "without_relevant")
        note = f"{metric}: the worst queries of {model!r}{_where(in_slice)}."
        if num_without := np.count_nonzero(without[queries]):
            note += f" Queries without relevant items, left out: {num_without:,}."
        shown = queries[~(np.isnan(values) | without)[queries]]
        ascending = self._per_query.sign(metric) * values[shown]
        shown = shown[np.argsort(ascending, kind="stable")][:number]
        return self._per_query.table(shown, {model: values}, note)

    def plot(self, *metrics: str) -> np.ndarray:
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
        rows = []
        for each in everything:
            labels = self._slice_labels(each)
            labels = labels[:1] if each.slice is None else labels
            name = f"{', '.join(labels)} ({numbers[each.slice]})" if labels else ""
            rows.append(Row(name, _models(each), each))
        return plot_intervals(rows, chosen)

    def plot_queries(
        self,
        metric: str,
        baseline: str,
        *,
        model: str | None = None,
        in_slice: Key | None = None,
    ) -> Axes:
        """Plots the improvement of each query from baseline to model, sorted.

        It is the rise of the value, or the fall if lower values are better.

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
        model = self._per_query.other_model(baseline, model)
        improvements = self._per_query.improvements(metric, baseline, model)
        shown = improvements[self._per_query.queries_of(in_slice)]
        return plot_improvements(shown, metric, (baseline, model))

    def _slice_labels(self, each: Mean | Difference | JudgeBias) -> list[str]:
        """The texts in the columns of slices."""
        if not self.by:
            return []
        if each.slice is None:
            return [self._whole] + [""] * (len(self.by) - 1)
        return [*map(str, each.slice)]

    @property
    def _has_wins(self) -> bool:
        """Whether the queries of differences are compared one by one."""
        return not self.judge and not any(each.unpaired for each in self.differences)

    @property
    def _num_tests(self) -> int:
        return sum(not math.isnan(each.p) for each in self.differences)

    @property
    def _is_adjusted(self) -> bool:
        return self._correction is not None and self._num_tests > 1

    def _tables(self, content: Content | None = None) -> list[Table]:
        check_option("Comparison", "content", content, Content | None)
        tables = []
        if content in (None, "means"):
            tables.append(self._table_of_means())
        if content in (None, "differences") and self.differences:
            tables.append(self._table_of_differences())
        if content in (None, "judge") and self.judge:
            tables.append(self._table_of_judge())
        return tables

    def _table_of_means(self) -> Table:
        models = [*dict.fromkeys(each.model for each in self.means)]
        letters = {model: _letter(i) for i, model in enumerate(models)}
        marks: dict[tuple, str] = collections.defaultdict(str)
        for each in self.differences:
            if not each.is_significant:
                continue
            worse, better = each.models
            if each.difference * self._per_query.sign(each.metric) < 0:
                worse, better = better, worse
            marks[each.slice, each.metric, better] += letters[worse]
        means: dict[tuple, list[Mean]] = {}
        for each in self.means:
            means.setdefault((each.slice, each.metric), []).append(each)
        rows = [self._row_of_means(each, marks) for each in means.values()]
        names = [f"{m} ({letters[m]})" if len(models) > 1 else m for m in models]
        note = "Mean [95% interval]."
        if self.judge:
            note = "Mean by people [95% interval], estimated with the judge."
        if len(models) > 1:
            p = "adjusted p" if self._is_adjusted else "p"
            note += f" * or bold: best. a: significantly better than (a) ({p} < 0.05)."
        if self.dropped:
            are = "query is" if self.dropped == 1 else "queries are"
            note += f" {self.dropped} {are} excluded, which only some models have."
        header = [*self.by, "metric", "queries", *names]
        return Table(header, rows, len(self.by) + 1, [note, *self._notes])

    def _row_of_means(
        self, means: Sequence[Mean], letters: Mapping[tuple, str]
    ) -> list[Cell]:
        """The means of all models, each with the letters of the worse ones."""
        sign = self._per_query.sign(means[0].metric)
        signed = [sign * each.mean for each in means if not math.isnan(each.mean)]
        best = sign * max(signed) if len(means) > 1 and signed else None
        numbers = dict.fromkeys(f"{each.queries:,}" for each in means)
        texts = [*self._slice_labels(means[0]), means[0].metric, " / ".join(numbers)]
        cells = [Cell(text) for text in texts]
        for each in means:
            text = "-" if math.isnan(each.mean) else f"{each.mean:.4f}"
            if not math.isnan(each.high):  # one query has no interval
                text += f" [{each.low:.4f}, {each.high:.4f}]"
            marks = "".join(sorted(letters[each.slice, each.metric, each.model]))
            cells.append(Cell(text, each.mean == best, marks))
        return cells

    def _table_of_differences(self) -> Table:
        rows, is_adjusted = [], self._is_adjusted
        for each in self.differences:
            texts = [*self._slice_labels(each), each.metric, _models(each)]
            texts += _signed(each.difference, each)
            texts += [_p(each.p)] + [_p(each.adjusted_p)] * is_adjusted
            if self._has_wins:
                texts += [f"{n:,}" for n in (each.wins, each.losses, each.ties)]
            rows.append([Cell(text) for text in texts])
        header = [*self.by, "metric", "models", "difference", "95% interval", "p"]
        header += [f"p ({self._correction})"] * is_adjusted
        header += WINS * self._has_wins
        names = {"t": "Paired t-test", "wilcoxon": "Wilcoxon's signed-rank test"}
        note = names.get(self._test, f"Paired {self._test} test")
        if self.judge:
            note = "t-test of the differences by people, estimated with the judge"
        elif not self._has_wins:
            note = "Welch's t-test" if self._test == "t" else "Bootstrap of both means"
        if is_adjusted:
            note += (
                f"; p-values adjusted for {self._num_tests} comparisons "
                f"({self._correction})"
            )
        return Table(header, rows, len(self.by) + 2, [f"{note}.", *self._warnings()])

    def _table_of_judge(self) -> Table:
        rows = []
        for each in self.judge:
            texts = [*self._slice_labels(each), each.metric, _models(each)]
            texts += [f"{each.queries:,}", f"{each.other_queries:,}"]
            texts += _signed(each.bias, each)
            number = each.effective_queries
            texts.append("-" if math.isnan(number) else f"{number:,.0f}")
            rows.append([Cell(text) for text in texts])
        header = [*self.by, "metric", "models", "by people", "others"]
        header += ["judge overrates", "95% interval", "effective queries"]
        note = "Effective queries: this many by people alone would be as precise."
        return Table(header, rows, len(self.by) + 2, [note])

    def _warnings(self) -> Iterator[str]:
        """Lines on comparisons whose p-value or ties say less than they seem to."""
        factor = self._num_tests if self._correction == "bonferroni" else 1
        few, opposed, reweighted = [], [], []
        for each in self.differences:
            texts = [*self._slice_labels(each), _models(each), each.metric]
            name = ", ".join(filter(None, texts))  # "all" has no second label
            if each.smallest_p * factor >= SIGNIFICANT and not math.isnan(each.p):
                few.append(f"{name} ({each.differing}: p >= {each.smallest_p:.3g})")
            if each.is_opposed and each.adjusted_p < SIGNIFICANT:
                opposed.append(name)
            if each.differing > each.wins + each.losses and not each.unpaired:  # micro
                reweighted.append(name)
        for start, names in (
            ("Too few queries differ for p < 0.05 in any outcome", few),
            ("Not significant, as the ranks oppose the difference", opposed),
            ("Ties of different weights, which may change the means", reweighted),
        ):
            more = len(names) - MOST_NAMED
            if names:
                end = f"; and {more} more." if more > 0 else "."
                yield f"{start}: {'; '.join(names[:MOST_NAMED])}{end}"


def _where(in_slice: Any) -> str:
    return "" if in_slice is None else f", in the slice {shortened(in_slice)}"


def _signed(number: float, each: Difference | JudgeBias) -> list[str]:
    """A difference and its interval."""
    return [
        "-" if math.isnan(number) else f"{number:+.4f}",
        "-" if math.isnan(each.low) else f"[{each.low:+.4f}, {each.high:+.4f}]",
    ]


def _models(each: Mean | Difference | JudgeBias) -> str:
    """The model of a mean, or both models of a difference."""
    is_mean = isinstance(each, Mean)
    return each.model if is_mean else " - ".join(reversed(each.models))


def _letter(number: int) -> str:
    """a, b, ..., z, then a1, b1, ..."""
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")


def _p(p: float) -> str:
    return "-" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"
