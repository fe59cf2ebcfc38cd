"""What the command prints: values, comparisons, and single queries.

Only functions import what needs NumPy, as in `__main__.py`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import tfrankmetrics as trm


def print_text(text: str, stream: Any) -> None:
    """Prints text, if there is any, unless nobody reads it any more."""
    if stream is None or not text:  # a stream may be closed before Python starts
        return
    encoding = stream.encoding or "utf-8"
    try:
        text = text.encode(encoding, "backslashreplace").decode(encoding)
        print(text, file=stream, flush=True)
    except OSError as error:
        # Python flushes once more at the end, which must not raise an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not isinstance(error, BrokenPipeError):  # such as of `... | head`
            raise


def one_run(evaluate: Any, run: Any, options: argparse.Namespace) -> str:
    """The values of one run: of all queries, of each query, or of slices."""
    import numpy as np

    from tfrankmetrics.compute.sums import means_of
    from tfrankmetrics.results.metric_values import described
    from tfrankmetrics.results.text_tables import Cell, Table

    values = evaluate(run, per_query=options.per_query)
    if not options.by or options.format in ("json", "csv"):
        print_text(described(values.counts), sys.stderr)
    if options.by:
        return _formatted(values, {"values": values.to_dicts()}, options.format)
    rows, means = [], values
    if options.per_query:
        names, weights = [*values.weights], np.array([*values.weights.values()])
        columns = np.array([values[name] for name in names])
        for query, of_query in zip(values["query"], columns.T.tolist(), strict=True):
            pairs = zip(names, of_query, strict=True)
            rows += [(name, query, value) for name, value in pairs]
        # Excluded queries have the weight 0 and the value NaN.
        means = means_of(values.weights, np.nan_to_num(columns), weights)
    rows += [(metric, "all", float(value)) for metric, value in means.items()]
    if options.format == "text":  # as trec_eval prints them
        return "\n".join(f"{row[0]:<22}\t{row[1]}\t{row[2]:.4f}" for row in rows)
    header = "metric", "query", "value"
    cells = [[*map(Cell, row[:2]), Cell(f"{row[2]:.4f}")] for row in rows]
    records = [dict(zip(header, row, strict=True)) for row in rows]
    return _formatted(Table(header, cells, 2), {"values": records}, options.format)


def worst_queries(values: Mapping[str, Any], options: argparse.Namespace) -> str:
    """The worst queries of each run in the first metric."""
    tables, rows = {}, []
    for name, each in values.items():
        compared = trm.compare({name: each})
        metric = compared.means[0].metric
        table = compared.worst_queries(metric, name, number=options.worst)
        pairs = zip(table.queries, table.columns[name], strict=True)
        rows += [{"run": name, "query": query, metric: value} for query, value in pairs]
        tables[name] = table
    return _of_each_run(tables, rows, options.format)


def explanations(explained: Mapping[str, Any], form: str) -> str:
    """The explanation of a query in each run."""
    rows = [
        {"run": name, **row}
        for name, each in explained.items()
        for row in each.to_dicts()
    ]
    return _of_each_run(explained, rows, form)


def _of_each_run(tables: Mapping[str, Any], rows: Sequence[Mapping], form: str) -> str:
    """The tables of the runs by their names, or the rows of all tables."""
    if form in ("json", "csv"):
        return _formatted(None, {"queries": rows}, form)
    texts = []
    for name, each in tables.items():
        texts += [f"{_escape(name, form)}:"] if len(tables) > 1 else []
        texts.append(_formatted(each, {}, form))
    return "\n\n".join(texts)


def _escape(text: str, form: str) -> str:
    """The text as it stands in a format."""
    from tfrankmetrics.results.text_tables import in_latex, in_markdown

    return {"markdown": in_markdown, "latex": in_latex}.get(form, str)(text)


def comparison(
    values: Mapping[str, Any],
    people: Mapping[str, Any] | None,
    options: argparse.Namespace,
) -> tuple[str, int]:
    """The comparison of several runs, and 1 if one does not pass a gate."""
    from tfrankmetrics.results.metric_values import counts_by_name

    by = [*next(iter(values.values())).by] or None
    names = "test", "correction", "pairs", "unpaired"
    chosen = {name: getattr(options, name) for name in names}
    compared = trm.compare(values, people=people, by=by, **chosen)
    baseline, *others = values
    if options.gate and not others:
        raise ValueError(
            "--gate compares the first model with the others. Received: one model, "
            f"{baseline!r}."
        )
    decisions = {
        name: compared.gate(
            compared.means[0].metric,
            baseline,
            model=name,
            margin=options.margin or 0.0,
            policy=options.gate,
            in_slices=options.in_slices,
        )
        for name in (others if options.gate else ())
    }
    parts = {
        each: compared.to_dicts(each) for each in ("differences", "means", "judge")
    }
    parts["decisions"] = [
        {"model": name, **each._asdict()} for name, each in decisions.items()
    ]
    text = _formatted(compared, parts, options.format)
    lines = [_escape(str(each), options.format) for each in decisions.values()]
    if options.format in ("json", "csv"):
        notes = counts_by_name(values) + (lines if options.format == "csv" else [])
        print_text("\n".join(notes), sys.stderr)
    elif lines:
        text = "\n".join([text, "", *lines])
    return text, 0 if all(decisions.values()) else 1


def _formatted(shown: Any, parts: Mapping[str, Sequence[Mapping]], form: str) -> str:
    """A result in a format. `parts` are its tables, and CSV contains the first one."""
    import csv
    import io
    import json

    def plain(value: Any) -> Any:
        """A value as JSON has it: without NaN and types of NumPy."""
        value = value.item() if hasattr(value, "item") else value
        if isinstance(value, float) and not abs(value) < float("inf"):
            return None
        is_known = isinstance(value, (str, int, float, tuple, type(None)))
        return value if is_known else str(value)

    if form in ("text", "markdown", "latex"):
        return repr(shown) if form == "text" else getattr(shown, f"to_{form}")()
    tables = {
        name: [{key: plain(value) for key, value in row.items()} for row in rows]
        for name, rows in parts.items()
        if rows
    }
    if form == "json":
        return json.dumps(tables, indent=1)
    rows = next(iter(tables.values()), [])
    columns = dict.fromkeys(column for row in rows for column in row)
    lines = io.StringIO()
    writer = csv.DictWriter(lines, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return lines.getvalue().rstrip("\n")
