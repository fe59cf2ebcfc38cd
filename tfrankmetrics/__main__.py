"""The command `tfrankmetrics qrels.txt run.txt -m ndcg@10`.

Only a run imports NumPy: help and wrong arguments must not wait for it. Errors and
warnings of the library name its arguments; `_with_flags` names the flags instead.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import tfrankmetrics as trm
from tfrankmetrics import printed
from tfrankmetrics.conventions import CONVENTIONS, IN_ORDER_OF_TREC_EVAL
from tfrankmetrics.printed import print_text

DESCRIPTION = """\
Computes ranking metrics from qrels (relevance judgments) and runs (predictions). With
one run it prints lines like those of trec_eval; with several runs it compares them. You
can also pass one table with both labels and scores.
"""
EPILOG = """\
Files are in the formats of TREC. Files that end in .csv, .tsv or .parquet, and folders
of Parquet files, are tables with named columns, which pandas reads (Parquet with
pyarrow). A .tsv file without names is in a format of TREC. Files that end in .json are
dicts of dicts. Text files may be compressed (.gz, .bz2 or .xz): run.txt.gz.
"""
_HELP = {
    "qrels": "the file of the judgments, or one table with labels and scores",
    "metric": "a metric, such as ndcg@10, recip_rank or 'AP(rel=2)@100'; may be "
    "repeated",
    "by": "slices: a file of lines with a query and a slice, or a column of the table "
    "of judgments",
    "missing_queries": "judged queries without predictions; zero by default, and skip "
    "with --convention trec_eval, as trec_eval does without -c",
    "people": "judgments by people of some queries, which correct those of a judge, "
    "such as a language model, in qrels",
    "model": "the column of model names, in a table with runs of several models; the "
    "model of the first row is the one that the others are compared with",
    "subtopic": "the column of the subtopics in the judgments, or any name for the "
    "second column of a TREC file; by default subtopic if a metric reads subtopics",
    "unpaired": "queries that occur in only some of the runs",
    "gain": "the gain of NDCG and DCG: exponential, linear, or that of each grade, as "
    "in 0,1,3 or '{0: 0, 1: 0.1, 3: 1}'",
    "num_items": "the number of items in the catalog, for coverage and gini",
    "popularity": "the popularity of each item, for novelty: a file of lines with an "
    "item and a number, or a table of both columns",
    "pairs": "compare all pairs of runs, or only the first run with each other one",
    "worst": "print the worst N queries of each run in the first metric",
    "explain": "print how the first metric is computed for this query of each run",
    "gate": "exit with the status 1 unless every other run passes in the first metric: "
    "its loss against the first run is below the margin (not_worse), or it is better",
    "sql": "print a SQL statement instead: qrels and run name tables of a database",
    "format": "json and csv contain all digits; csv of a comparison contains the "
    "differences",
}
_COLUMNS = dict(query="query_id", item="item_id", label="label", score="score")
# Flags that are options of metrics: the convention, and those that warnings propose.
_OF_METRICS = ("convention", "gain", "relevance_threshold", "num_items", "popularity")
# Flags whose results an SQL statement does not have.
_FLAGS_WITHOUT_SQL = (
    *("model", "lower_is_better", "subtopic", "people"),
    *("worst", "explain", "gate", "margin", "in_slices"),
)
_DIALECTS = ["duckdb", "spark", "bigquery", "snowflake", "postgres"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status.

    It is 0, or 1 if a run does not pass a gate, or 2 for an error, as argparse exits
    for a wrong flag. It is known before the result is printed: `... | head` does not
    change it.
    """
    options = _parser().parse_args(arguments)

    def show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, trm.RankingWarning):
            print_text(f"warning: {_with_flags(message, options)}", sys.stderr)

    warnings.showwarning = show_warning
    try:
        text, status = _statement(options) if options.sql else _run(options)
    except (ValueError, TypeError, ImportError, OSError) as error:
        text, status = "", 2
        print_text(f"error: {_with_flags(error, options)}", sys.stderr)
    except Exception:  # must not look like a failed gate, with the status 1
        text, status = "", 2
        print_text(traceback.format_exc(), sys.stderr)
    try:
        print_text(text, sys.stdout)
    except OSError as error:  # such as a full disk
        print_text(f"error: {error}", sys.stderr)
        return status or 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "tfrankmetrics",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    version = f"tfrankmetrics {trm.__version__}"
    add("--version", action="version", version=version)
    add("qrels", type=_path, help=_HELP["qrels"])
    run = "the file of a run, or - for the standard input"
    add("runs", type=_path, nargs="*", metavar="run", help=run)
    add("-m", "--metric", action="append", required=True, help=_HELP["metric"])
    add("--convention", choices=[*CONVENTIONS], help="the settings of another tool")
    add("--gain", type=_gain, help=_HELP["gain"])
    add("--relevance-threshold", type=float, help="the lowest label of relevant items")
    add("--num-items", type=int, metavar="N", help=_HELP["num_items"])
    add("--popularity", metavar="FILE", help=_HELP["popularity"])
    add("--lower-is-better", action="store_true", help="the lowest score ranks first")
    add("-q", "--per-query", action="store_true", help="also print each query")
    add("--worst", type=int, metavar="N", help=_HELP["worst"])
    add("--explain", metavar="QUERY", help=_HELP["explain"])
    add("--by", metavar="FILE|COLUMN", help=_HELP["by"])
    missing = ["zero", "skip", "error"]
    add("--missing-queries", choices=missing, help=_HELP["missing_queries"])
    add("--people", type=_path, metavar="FILE", help=_HELP["people"])
    add("--model", help=_HELP["model"])
    tests = ["randomization", "t", "bootstrap", "wilcoxon"]
    add("--test", choices=tests, help="the test, randomization by default")
    corrections = ["holm", "bonferroni", "bh"]
    add("--correction", choices=corrections, default="holm", help="of its p-values")
    pairs = ["first", "all"]
    add("--pairs", choices=pairs, default="all", help=_HELP["pairs"])
    unpaired = {"choices": ["error", "drop"], "default": "error"}
    add("--unpaired", **unpaired, help=_HELP["unpaired"])
    add("--gate", choices=["not_worse", "better"], help=_HELP["gate"])
    add("--margin", type=float, help="the margin of --gate")
    add("--in-slices", action="store_true", help="also apply --gate to each slice")
    add("--sql", choices=_DIALECTS, help=_HELP["sql"])
    formats = ["text", "json", "csv", "markdown", "latex"]
    add("--format", choices=formats, default="text", help=_HELP["format"])
    for column, default in _COLUMNS.items():
        add(f"--{column}", default=default, help=f"a column, {default} by default")
    add("--subtopic", metavar="COLUMN", help=_HELP["subtopic"])
    return parser


def _path(argument: str) -> str:
    """The path of a file, or of the standard input for -."""
    return "/dev/stdin" if argument == "-" else argument


def _gain(argument: str) -> Any:
    """A list or a dict of gains as Python writes them, or else a name."""
    try:
        return ast.literal_eval(argument)
    except (SyntaxError, ValueError):
        return argument


def _with_flags(message: Any, options: argparse.Namespace) -> str:
    """A text of the library with flags and files instead of its arguments.

    "`metrics` must be" becomes "--metric must be", and "pass missing_queries='skip'"
    becomes "pass --missing-queries skip".
    """
    run = getattr(options, "run", None) or options.qrels
    names = {each: f"--{each.replace('_', '-')}" for each in vars(options)}
    names |= {"metrics": "--metric", "policy": "--gate", "query_ids": "--query"}
    names |= {"qrels": repr(options.qrels), "run": repr(run), "dialect": "--sql"}
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
    without_flag = {*trm.Options.__annotations__, "object"} - {*_OF_METRICS}
    words = re.findall(r"\w+(?=[=`])|(?<=metric )object|(?<=an )object", text)
    if not without_flag.isdisjoint(words):
        text += " Write options without a flag in a name, as in -m 'map(ties=stable)'."
        text += " Metric objects are for Python's tfrankmetrics.evaluate_run."
    return text


def _run(options: argparse.Namespace) -> tuple[str, int]:
    """The requested result as text, and the exit status."""
    are_several = len(options.runs) > 1 or bool(options.model)
    _check_flags(options, are_several)
    from tfrankmetrics.evaluation.evaluate_run import rows_by_model
    from tfrankmetrics.evaluation.join import read_tables

    if options.popularity is not None:
        options.popularity = _popularity(options)
    columns = _columns(options)
    qrels, runs = options.qrels, options.runs
    by = _slices(options) if options.by else None
    if not runs:
        qrels, run = _one_table(options, by)
        runs = [run]
    arguments = _arguments(options)

    def read(run: Any) -> Any:
        """A run. Each file is read once, since it may be a pipe."""
        nonlocal qrels
        options.run = run if isinstance(run, str) else options.qrels  # for errors
        qrels, run = read_tables(qrels, run, columns)
        return run

    def evaluate(run: Any, judged: Any = None, **more: Any) -> Any:
        given = {"metrics": options.metric, "by": by, **arguments, **more}
        return trm.evaluate_run(qrels if judged is None else judged, run, **given)

    def explain(run: Any) -> Any:
        metric, query = options.metric[0], options.explain
        return trm.explain_run(qrels, run, metric, query, **arguments)

    def named_runs() -> Iterator[tuple[str, Any]]:
        if options.model:
            yield from rows_by_model(read(runs[0]), options.model).items()
            return
        names = _names(options.runs or [options.qrels])
        for name, given in zip(names, runs, strict=True):
            yield name, read(given)

    if options.explain is not None:
        explained = {name: explain(run) for name, run in named_runs()}
        return printed.explanations(explained, options.format), 0
    if not are_several and options.worst is None and not options.people:
        return printed.one_run(evaluate, read(runs[0]), options), 0
    people, _ = read_tables(options.people, None, columns)
    values, by_people = _values_of_runs(named_runs(), evaluate, people)
    if options.worst is not None:
        return printed.worst_queries(values, options), 0
    return printed.comparison(values, by_people, options)


def _values_of_runs(
    runs: Iterator[tuple[str, Any]], evaluate: Any, people: Any
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The values of each run, and those by people's judgments if there are any."""
    values, by_people = {}, {}
    for name, run in runs:
        values[name] = evaluate(run, per_query=True)
        if people is not None:
            by_people[name] = evaluate(run, people, per_query=True, by=None)
    return values, by_people or None


def _arguments(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `evaluate_run` and `explain_run` that flags state."""
    default = "skip" if options.convention == "trec_eval" else "zero"
    return {
        "missing_queries": options.missing_queries or default,
        "lower_is_better": options.lower_is_better,
        "subtopic": options.subtopic,
        **{name: getattr(options, name) for name in (*_COLUMNS, *_OF_METRICS)},
    }


def _statement(options: argparse.Namespace) -> tuple[str, int]:
    """The SQL statement for one table or for judgments and a run, and the status."""
    arguments = _arguments(options)
    item = arguments.pop("item")
    del arguments["lower_is_better"], arguments["subtopic"]
    received = [
        f"--{name.replace('_', '-')}"
        for name in _FLAGS_WITHOUT_SQL
        if getattr(options, name)
    ]
    received += ["several runs"] * (len(options.runs) > 1)
    if received:
        raise ValueError(
            "--sql is for the values of one run, of which the highest score ranks "
            f"first. Received: {', '.join(received)}. Omit --sql or these."
        )
    if options.runs:
        arguments |= {"judgments": options.qrels, "item": item}
    statement = trm.as_sql(
        options.metric,
        options.runs[0] if options.runs else options.qrels,
        by=options.by,
        per_query=options.per_query,
        dialect=options.sql,
        separator="_" if options.sql == "bigquery" else "@",
        **arguments,
    )
    return statement, 0


def _columns(options: argparse.Namespace) -> Any:
    """The columns of the tables; a metric of subtopics has a default for theirs."""
    from tfrankmetrics.evaluation.join import PairColumns
    from tfrankmetrics.results.request import read_request

    of_metrics = {name: getattr(options, name) for name in _OF_METRICS}
    request = read_request(options.metric, of_metrics)
    options.subtopic = request.column_of_subtopics(options.subtopic)
    return PairColumns(*(getattr(options, name) for name in (*_COLUMNS, "subtopic")))


def _check_flags(options: argparse.Namespace, are_several: bool) -> None:
    """Raises ValueError for flags that contradict each other."""
    gate, by, in_slices = options.gate, options.by, options.in_slices
    needs_gate = options.margin is not None or in_slices
    margin = options.margin or 0.0
    shows_queries = options.worst is not None or options.explain is not None
    mistakes = [
        (
            shows_queries and (gate or by or options.per_query),
            "--worst and --explain replace the values. Received: --gate, --by or -q.",
        ),
        (
            shows_queries and options.people,
            "--worst and --explain show queries by the judgments of the first file "
            "alone. Received: --people. Pass its file first instead.",
        ),
        (
            options.worst is not None and options.worst < 1,
            f"--worst must be at least 1. Received: --worst {options.worst}.",
        ),
        (
            options.worst is not None and options.explain is not None,
            "Queries are listed or one is explained. Received: --worst and --explain.",
        ),
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
            options.per_query and (are_several or by or options.people),
            "-q prints the queries of one run. Received: several runs, --by or "
            "--people.",
        ),
    ]
    for is_made, mistake in mistakes:
        if is_made:
            raise ValueError(mistake)


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
    subtopic, models = options.subtopic, [options.model] * bool(options.model)
    if models or subtopic or options.convention in IN_ORDER_OF_TREC_EVAL:
        names.append("item")
    if subtopic:
        names.append("subtopic")
    if isinstance(by, str):
        names.append("by")
    files.require_columns(frame, {name: getattr(options, name) for name in names}, path)
    if item not in frame:
        frame[item] = [*map(str, range(len(frame)))]
    qrels = run = frame
    if models:  # each of which repeats the judgments
        judgment = [query, item, options.label, *[subtopic] * bool(subtopic)]
        qrels = frame.drop_duplicates(judgment)
    if subtopic:  # each of which repeats the predictions
        run = frame.drop_duplicates([query, item, options.score, *models])
    return qrels, run


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
    return _fields_by_first(path, "a query", "slice")


def _popularity(options: argparse.Namespace) -> Any:
    """The popularity of each item: a dict, or a frame of both columns."""
    from tfrankmetrics.evaluation import files

    path = options.popularity
    if files.is_table(path) and files.has_names(path, [options.item]):
        return files.read_frame(path, [options.item])
    pairs = _fields_by_first(path, "an item", "number")
    try:
        return {item: float(number) for item, number in pairs.items()}
    except ValueError:  # an error of the metric, which states the rule
        return pairs


def _fields_by_first(path: str, key: str, value: str) -> dict[str, str]:
    """The two fields of each line of a file, such as a query and its slice."""
    from tfrankmetrics.evaluation import files

    pairs: dict[str, str] = {}
    for number, fields in files.fields_of(path):
        where = f"Received in {path!r}, line {number}: "
        if len(fields) != 2:
            raise ValueError(
                f"A line of {value}s must contain {key} and a {value}. "
                f"{where}{' '.join(fields)!r:.200}."
            )
        first, second = fields
        if pairs.setdefault(first, second) != second:
            raise ValueError(
                f"{key.capitalize()} must have one {value}. {where}{first!r:.200} with "
                f"{second!r:.200}, after {pairs[first]!r:.200}."
            )
    return pairs


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
