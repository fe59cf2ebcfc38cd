"""The command `tfrankmetrics qrels.txt run.txt -m ndcg@10`.

Only a run imports NumPy: help and wrong arguments must not wait for it. Errors and
warnings of the library name its arguments; `_with_flags` names the flags instead.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import tfrankmetrics as tfr
from tfrankmetrics.conventions import CONVENTIONS, IN_ORDER_OF_TREC_EVAL

DESCRIPTION = """\
Computes ranking metrics of runs (predictions) by qrels (relevance judgments). With one
run it prints lines like those of trec_eval, and with several runs it compares them.
Instead of qrels and a run, one table may hold both labels and scores.
"""
EPILOG = """\
Files are in the formats of TREC. Files that end in .csv, .tsv or .parquet, and folders
of Parquet files, are tables with named columns, which pandas reads (Parquet with
pyarrow); a .tsv file without names is in a format of TREC. Files that end in .json are
dicts of dicts. Text files may be compressed (.gz, .bz2 or .xz), as in
run.txt.gz and run.csv.gz.
"""
_HELP = {
    "qrels": "the file of the judgments, or one table with labels and scores",
    "metric": "a metric, such as ndcg@10, recip_rank or 'AP(rel=2)@100'; may be "
    "repeated",
    "by": "slices: a file of lines with a query and a slice, or a column of the table "
    "of judgments",
    "missing_queries": "judged queries without predictions; zero by default, and skip "
    "with --convention trec_eval, as trec_eval does without -c",
    "model": "the column of model names, in a table with runs of several models; the "
    "model of the first row is the one that the others are compared with",
    "unpaired": "queries that occur in only some of the runs",
    "gate": "exit with the status 1 unless every other run passes in the first metric: "
    "its loss against the first run is below the margin (not_worse), or it is better",
    "format": "json and csv contain all digits; of a comparison, csv contains the "
    "differences",
}
_COLUMNS = dict(query="query_id", item="item_id", label="label", score="score")
# Flags that are options of metrics: the convention, and those that warnings propose.
_OF_METRICS = ("convention", "gain", "relevance_threshold")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command, and returns its exit status.

    It is 0, or 1 if a run does not pass a gate, or 2 for an error, as argparse exits
    for a wrong flag. It is known before the result is printed, so that `... | head`
    does not change it.
    """
    options = _parser().parse_args(arguments)

    def show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, tfr.RankingWarning):
            _print(f"warning: {_with_flags(message, options)}", sys.stderr)

    warnings.showwarning = show_warning
    try:
        text, status = _run(options)
    except (ValueError, TypeError, ImportError, OSError) as error:
        text, status = "", 2
        _print(f"error: {_with_flags(error, options)}", sys.stderr)
    except Exception:  # must not look like a failed gate, with the status 1
        text, status = "", 2
        _print(traceback.format_exc(), sys.stderr)
    try:
        _print(text, sys.stdout)
    except OSError as error:  # such as a full disk
        _print(f"error: {error}", sys.stderr)
        return status or 2
    return status


def _print(text: str, stream: Any) -> None:
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "tfrankmetrics",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    version = f"tfrankmetrics {tfr.__version__}"
    add("--version", action="version", version=version)
    add("qrels", type=_path, help=_HELP["qrels"])
    run = "the file of a run, or - for the standard input"
    add("runs", type=_path, nargs="*", metavar="run", help=run)
    add("-m", "--metric", action="append", required=True, help=_HELP["metric"])
    add("--convention", choices=[*CONVENTIONS], help="the settings of another tool")
    add("--gain", choices=["exponential", "linear"], help="the gain of NDCG and DCG")
    add("--relevance-threshold", type=float, help="the lowest label of relevant items")
    add("--lower-is-better", action="store_true", help="the lowest score ranks first")
    add("-q", "--per-query", action="store_true", help="also print each query")
    add("--by", metavar="FILE|COLUMN", help=_HELP["by"])
    missing = ["zero", "skip", "error"]
    add("--missing-queries", choices=missing, help=_HELP["missing_queries"])
    add("--model", help=_HELP["model"])
    tests = ["randomization", "t", "bootstrap", "wilcoxon"]
    add("--test", choices=tests, default="randomization", help="the test of runs")
    corrections = ["holm", "bonferroni", "bh"]
    add("--correction", choices=corrections, default="holm", help="of its p-values")
    unpaired = {"choices": ["error", "drop"], "default": "error"}
    add("--unpaired", **unpaired, help=_HELP["unpaired"])
    add("--gate", choices=["not_worse", "better"], help=_HELP["gate"])
    add("--margin", type=float, help="the margin of --gate")
    add("--in-slices", action="store_true", help="apply --gate to each slice, too")
    formats = ["text", "json", "csv", "markdown", "latex"]
    add("--format", choices=formats, default="text", help=_HELP["format"])
    for column, default in _COLUMNS.items():
        add(f"--{column}", default=default, help=f"a column, {default} by default")
    return parser


def _path(argument: str) -> str:
    """The path of a file, or of the standard input for -."""
    return "/dev/stdin" if argument == "-" else argument


def _with_flags(message: Any, options: argparse.Namespace) -> str:
    """A text of the library with flags and files instead of its arguments.

    "`metrics` must be" becomes "--metric must be", and "pass missing_queries='skip'"
    becomes "pass --missing-queries skip".
    """
    run = getattr(options, "run", None) or options.qrels
    names = {each: f"--{each.replace('_', '-')}" for each in vars(options)}
    names |= {"metrics": "--metric", "policy": "--gate", "query_ids": "--query"}
    names |= {"qrels": repr(options.qrels), "run": repr(run)}
    names["labels"] = f"--label in {options.qrels!r}"
    names["scores"] = f"--score in {run!r}"

    def named(match: re.Match) -> str:
        name = names.get(match["argument"] or match["keyword"])
        value = (match["value"] or "").strip("'\"")
        if name is None:
            return match[0]
        return name if value in ("", "True", "...") else f"{name} {value}"

    # Not within a path, which may contain a sign of equality, too, or within a name
    # with parameters.
    call = r"[\w@]+\([^()]*\)"
    value = r"'[^']*'|\"[^\"]*\"|\w(?:[\w.]*\w)?|\.{3}"
    keyword = rf"(?<![\w/'\"-])(?P<keyword>\w+)=(?P<value>{value})"
    pattern = rf"{call}|`(?P<argument>\w+)`|{keyword}"
    text = re.sub(r"call \w+\((\w+=[^()]+)\)", r"pass \1", str(message))
    text = re.sub(pattern, named, text.replace(" of the frame", " of the table"))
    without_flag = {*tfr.Options.__annotations__, "object"} - {*_OF_METRICS}
    words = re.findall(r"\w+(?=[=`])|(?<=metric )object|(?<=an )object", text)
    if not without_flag.isdisjoint(words):
        text += " Write options without a flag in a name, as in -m 'map(ties=stable)'."
        text += " Metric objects are for Python's tfrankmetrics.evaluate_run."
    return text


def _run(options: argparse.Namespace) -> tuple[str, int]:
    """The requested result as text, and the exit status."""
    are_several = len(options.runs) > 1 or bool(options.model)
    _check_flags(options, are_several)
    from tfrankmetrics.evaluation.join import PairColumns, read_tables

    default = "skip" if options.convention == "trec_eval" else "zero"
    columns = PairColumns(*(getattr(options, name) for name in _COLUMNS))
    qrels, runs = options.qrels, options.runs
    by = _slices(options) if options.by else None
    if not runs:
        qrels, run = _one_table(options, by)
        runs = [run]
    arguments: dict[str, Any] = {
        "metrics": options.metric,
        "missing_queries": options.missing_queries or default,
        "lower_is_better": options.lower_is_better,
        "by": by,
        **{name: getattr(options, name) for name in (*_COLUMNS, *_OF_METRICS)},
    }

    def read(run: Any) -> Any:
        """A run. Each file is read once, since it may be a pipe."""
        nonlocal qrels
        options.run = run if isinstance(run, str) else options.qrels  # for errors
        qrels, run = read_tables(qrels, run, columns)
        return run

    def evaluate(run: Any, **more: Any) -> Any:
        return tfr.evaluate_run(qrels, run, **arguments, **more)

    if not are_several:
        return _one_run(evaluate, read(runs[0]), options), 0
    if options.model:
        values = evaluate(read(runs[0]), model=options.model, per_query=True)
    else:
        names = _names(runs)
        values = {
            name: evaluate(read(path), per_query=True)
            for name, path in zip(names, runs, strict=True)
        }
    return _comparison(values, options)


def _check_flags(options: argparse.Namespace, are_several: bool) -> None:
    """Raises ValueError for flags that contradict each other."""
    gate, by, in_slices = options.gate, options.by, options.in_slices
    needs_gate = options.margin is not None or in_slices
    margin = options.margin or 0.0
    mistakes = [
        (
            needs_gate and not gate,
            "--margin and --in-slices need --gate. Received: no --gate.",
        ),
        (in_slices and not by, "--in-slices needs slices. Received: no --by."),
        (
            gate == "not_worse" and margin <= 0,
            "--gate not_worse needs a margin above 0, the largest loss that does not "
            f"matter. Received: --margin {margin:g}.",
        ),
        (
            options.model and len(options.runs) > 1,
            "--model is for one table of runs. Received: several files.",
        ),
        (
            gate and not are_several,
            "--gate compares the first run with the others. Received: one run.",
        ),
        (
            options.per_query and (are_several or by),
            "-q prints the queries of one run. Received: several runs, or --by.",
        ),
    ]
    for is_made, mistake in mistakes:
        if is_made:
            raise ValueError(mistake)


def _one_run(evaluate: Any, run: Any, options: argparse.Namespace) -> str:
    """The values of one run: of all queries, of each query, or of slices."""
    import numpy as np

    from tfrankmetrics.compute.sums import means_of
    from tfrankmetrics.results.metric_values import described
    from tfrankmetrics.results.text_tables import Cell, Table

    values = evaluate(run, per_query=options.per_query)
    if not options.by or options.format in ("json", "csv"):
        _print(described(values.counts), sys.stderr)
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


def _comparison(
    values: Mapping[str, Any], options: argparse.Namespace
) -> tuple[str, int]:
    """The comparison of several runs, and 1 if one does not pass a gate."""
    from tfrankmetrics.results.metric_values import counts_by_name
    from tfrankmetrics.results.text_tables import in_latex, in_markdown

    by = [*next(iter(values.values())).by] or None
    chosen = {name: getattr(options, name) for name in ("test", "correction")}
    compared = tfr.compare(values, by=by, unpaired=options.unpaired, **chosen)
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
    parts = {each: compared.to_dicts(each) for each in ("differences", "means")}
    parts["decisions"] = [
        {"model": name, **each._asdict()} for name, each in decisions.items()
    ]
    text = _formatted(compared, parts, options.format)
    escape = {"markdown": in_markdown, "latex": in_latex}.get(options.format, str)
    lines = [escape(str(each)) for each in decisions.values()]
    if options.format in ("json", "csv"):
        notes = counts_by_name(values) + (lines if options.format == "csv" else [])
        _print("\n".join(notes), sys.stderr)
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
    rows = next(iter(tables.values()))
    lines = io.StringIO()
    writer = csv.DictWriter(lines, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return lines.getvalue().rstrip("\n")


def _one_table(options: argparse.Namespace, by: Any) -> tuple[Any, Any]:
    """The judgments and the run in one table with labels and scores."""
    from tfrankmetrics.evaluation import files

    path, query, item = options.qrels, options.query, options.item
    if not files.is_table(path):
        raise ValueError(
            "One file must be a table with labels and scores, and its name must end in "
            f".csv, .tsv or .parquet. Received: {path!r}. Add the file of a run."
        )
    frame = files.read_frame(path, [query, item])
    names = ["query", "label", "score"]
    if options.model or options.convention in IN_ORDER_OF_TREC_EVAL:
        names.append("item")
    if isinstance(by, str):
        names.append("by")
    files.require_columns(frame, {name: getattr(options, name) for name in names}, path)
    if item not in frame:
        frame[item] = [*map(str, range(len(frame)))]
    if options.model:  # each of which repeats the judgments
        return frame.drop_duplicates([query, item, options.label]), frame
    return frame, frame


def _slices(options: argparse.Namespace) -> Any:
    """The slice of each query: a dict, a frame, or a column of the judgments."""
    from tfrankmetrics.evaluation import files

    path = options.by
    if not os.path.exists(path) and not files.is_table(path):
        if files.is_table(options.qrels):
            return path
        raise ValueError(
            "--by must be a file, or a column of the judgments if these are a table. "
            f"Received: {path!r}, which is no file, and judgments in {options.qrels!r}."
        )
    if files.is_table(path) and files.has_names(path, [options.query]):
        return files.read_frame(path, [options.query])
    slices: dict[str, str] = {}
    for number, fields in files.fields_of(path):
        where = f"Received in {path!r}, line {number}: "
        if len(fields) != 2:
            raise ValueError(
                "A line of slices must contain a query and a slice. "
                f"{where}{' '.join(fields)!r:.200}."
            )
        query, name = fields
        if slices.setdefault(query, name) != name:
            raise ValueError(
                f"A query must have one slice. {where}{query!r:.200} with "
                f"{name!r:.200}, after {slices[query]!r:.200}."
            )
    return slices


def _names(paths: Sequence[str]) -> list[str]:
    """A name for each run: that of its file or, if two are the same, its path."""
    from tfrankmetrics.evaluation.files import without_compression

    names = [without_compression(path).stem for path in paths]
    if len(set(names)) == len(names):
        return names
    if len(set(paths)) < len(paths):
        raise ValueError(f"Each run must be a different file. Received: {list(paths)}.")
    return list(paths)


if __name__ == "__main__":
    sys.exit(main())
