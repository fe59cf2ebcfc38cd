"""The tables of a comparison: means with letters, and differences with p-values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from tfrankmetrics.comparison.estimates import SIGNIFICANT, Difference, Mean
from tfrankmetrics.comparison.queries import PerQuery
from tfrankmetrics.comparison.significance import adjusted
from tfrankmetrics.results.tables import Cell, Table, whole
from tfrankmetrics.rules import check_option

MOST_NAMED = 3  # comparisons in a sentence
Content = Literal["means", "differences"]


class ComparisonTables:
    """A comparison that prints as two tables; the base of `Comparison`."""

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
        adjusted_p = adjusted(np.array([each.p for each in differences]), correction)
        self.means = [*means]
        self.differences = [
            each._replace(adjusted_p=p)
            for each, p in zip(differences, adjusted_p.tolist(), strict=True)
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
    def _is_adjusted(self) -> bool:
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
            p = "adjusted p" if self._is_adjusted else "p"
            note += f" * or bold: best. a: significantly better than (a) ({p} < 0.05)."
        if self.dropped:
            are = "query is" if self.dropped == 1 else "queries are"
            note += f" {self.dropped} {are} excluded, which only some models have."
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
            text = "-" if math.isnan(each.mean) else f"{each.mean:.4f}"
            if not math.isnan(each.high):  # one query has no interval
                text += f" [{each.low:.4f}, {each.high:.4f}]"
            marks = better.get((each.slice, each.metric, each.model), ())
            cells.append(Cell(text, each.mean == best, "".join(sorted(marks))))
        return cells

    def _table_of_differences(self) -> Table:
        is_adjusted, rows = self._is_adjusted, []
        for each in self.differences:
            labels = [
                *self._slice(each),
                each.metric,
                " - ".join(reversed(each.models)),
            ]
            interval = f"[{each.low:+.4f}, {each.high:+.4f}]"
            has_value = not math.isnan(each.difference)
            numbers = [f"{each.difference:+.4f}" if has_value else "-"]
            numbers.append("-" if math.isnan(each.low) else interval)
            numbers += [_p(each.p)] + [_p(each.adjusted_p)] * is_adjusted
            numbers += [f"{n:,}" for n in (each.wins, each.losses, each.ties)]
            rows.append([Cell(text) for text in labels + numbers])
        header = [*self.by, "metric", "models", "difference", "95% interval", "p"]
        header += [f"p ({self._correction})"] * is_adjusted
        header += ["wins", "losses", "ties"]
        note = {"t": "Paired t-test"}.get(self._test, f"Paired {self._test} test")
        if is_adjusted:
            note += (
                f"; p-values adjusted for {self._num_tests} comparisons "
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


def _letter(number: int) -> str:
    """a, b, ..., z, then a1, b1, ..."""
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")


def _p(p: float) -> str:
    return "-" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"
