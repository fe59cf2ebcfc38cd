"""The command `python -m tfrankmetrics qrels.txt run.txt -m ndcg@10`.

Only a run imports NumPy: help and wrong arguments must not wait for it.
"""

from __future__ import annotations

import argparse
import codecs
import os
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import tfrankmetrics as tfr
from tfrankmetrics.conventions import CONVENTIONS

DESCRIPTION = """\
Computes ranking metrics of runs (predictions) by qrels (relevance judgments). With one
run it prints lines like those of trec_eval, and with several runs it compares them.
"""
EPILOG = """\
Files are in the formats of TREC. Files that end in .csv, .tsv or .parquet are tables
with named columns, which pandas reads (Parquet with pyarrow); a .tsv file without
names is in a format of TREC. Text files may be compressed (.gz, .bz2 or .xz), as in
run.txt.gz and run.csv.gz.
"""
_HELP = {
    "metric": "a metric, such as ndcg@10, map, P@5 or recip_rank; may be repeated",
    "missing_queries": "judged queries without predictions; zero by default, and skip "
    "with --convention trec_eval, as trec_eval does without -c",
    "model": "the column of model names, in a table with runs of several models",
    "unpaired": "queries that occur in only some of the runs",
    "gate": "exit with the status 1 unless, in the first metric, all other runs are "
    "not worse than the first run by the margin or more, or are better",
}
_COLUMNS = {
    "query": "query_id",
    "item": "item_id",
    "label": "label",
    "score": "score",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command, and returns its exit status.

    It is 0, or 1 if a run does not pass a gate, or 2 for an error. It is known before
    anything is printed, so that `... | head` does not change it.
    """
    options = _parser().parse_args(arguments)
    warnings.showwarning = _show_warning
    try:
        text, status = _run(options)
    except (ValueError, TypeError, ImportError, OSError) as error:
        text, status = "", 2
        _print(f"error: {error}", sys.stderr)
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
        "python -m tfrankmetrics",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("qrels", help="the file of the judgments")
    add("runs", nargs="+", metavar="run", help="the file of a run")
    add("-m", "--metric", action="append", required=True, help=_HELP["metric"])
    add("--convention", choices=[*CONVENTIONS], help="the settings of another tool")
    add("-q", "--per-query", action="store_true", help="also print each query")
    add("--by", metavar="FILE", help="slices: a file of lines with a query and a slice")
    missing = ["zero", "skip", "error"]
    add("--missing-queries", choices=missing, help=_HELP["missing_queries"])
    add("--model", help=_HELP["model"])
    add("--test", choices=["randomization", "t", "bootstrap"], default="randomization")
    unpaired = {"choices": ["error", "drop"], "default": "error"}
    add("--unpaired", **unpaired, help=_HELP["unpaired"])
    add("--gate", choices=["not_worse", "better"], help=_HELP["gate"])
    add("--margin", type=float, help="the margin of --gate")
    add("--in-slices", action="store_true", help="apply --gate to each slice, too")
    add("--format", choices=["text", "markdown", "latex"], default="text")
    for column, default in _COLUMNS.items():
        add(f"--{column}", default=default, help=f"a column, {default} by default")
    return parser


def _run(options: argparse.Namespace) -> tuple[str, int]:
    """The requested result as text, and the exit status."""
    if options.gate is None and (options.margin is not None or options.in_slices):
        raise ValueError("--margin and --in-slices need --gate. Received: no --gate.")
    if options.in_slices and options.by is None:
        raise ValueError("--in-slices needs slices. Received: no --by.")
    options.margin = options.margin or 0.0
    if options.gate == "not_worse" and not options.margin > 0:
        raise ValueError(
            "--gate not_worse needs a margin above 0, the largest loss that does not "
            f"matter. Received: --margin {options.margin:g}."
        )
    if options.model and len(options.runs) > 1:
        raise ValueError("--model is for one table of runs. Received: several files.")
    are_several = len(options.runs) > 1 or options.model
    if options.gate and not are_several:
        raise ValueError(
            "--gate compares the first run with the others. Received: one run."
        )
    is_table = are_several or options.by
    if options.per_query and is_table:
        raise ValueError(
            "-q prints the queries of one run. Received: several runs, or --by."
        )
    if options.format != "text" and not is_table:
        raise ValueError(
            "--format is for tables. Received: one run, without --by, whose values are "
            "printed as lines."
        )
    missing = "skip" if options.convention == "trec_eval" else "zero"
    arguments: dict[str, Any] = {
        "metrics": options.metric,
        "missing_queries": options.missing_queries or missing,
        "convention": options.convention,
        "by": _slices(options) if options.by else None,
        **{column: getattr(options, column) for column in _COLUMNS},
    }
    if are_several:
        return _comparison(options, arguments)
    files = options.qrels, options.runs[0]
    if is_table:
        result = tfr.evaluate_run(*files, **arguments)
        return _formatted(result, options.format), 0
    return "\n".join(_lines(*files, options.per_query, arguments)), 0


def _comparison(
    options: argparse.Namespace, arguments: dict[str, Any]
) -> tuple[str, int]:
    """The comparison of several runs, and 1 if one does not pass a gate."""
    arguments["per_query"] = True
    if options.model:
        run, model = options.runs[0], options.model
        of_models: Any = tfr.evaluate_run(options.qrels, run, model=model, **arguments)
        values = dict(of_models)
    else:
        values = {
            name: tfr.evaluate_run(options.qrels, path, **arguments)
            for path, name in zip(options.runs, _names(options.runs), strict=True)
        }
    first: Any = next(iter(values.values()))
    by = [*first.by] or None
    compared = tfr.compare(values, by=by, test=options.test, unpaired=options.unpaired)
    text = _formatted(compared, options.format)
    if options.gate is None:
        return text, 0
    baseline, *others = values
    decisions = [
        compared.gate(
            compared.means[0].metric,
            baseline,
            model=name,
            margin=options.margin,
            policy=options.gate,
            in_slices=options.in_slices,
        )
        for name in others
    ]
    return "\n".join([text, "", *map(str, decisions)]), 0 if all(decisions) else 1


def _lines(
    qrels: str, run: str, per_query: bool, arguments: dict[str, Any]
) -> Iterator[str]:
    """Lines of a metric, a query or "all", and a value, as trec_eval prints them."""
    from tfrankmetrics.results.metric_values import described

    values: Any = tfr.evaluate_run(qrels, run, **arguments)
    _print(described(values.counts), sys.stderr)
    if per_query:
        found: Any = tfr.evaluate_run(qrels, run, per_query=True, **arguments)
        for number, query in enumerate(found["query"]):
            for metric in values:
                yield f"{metric:<22}\t{query}\t{found[metric][number]:.4f}"
    for metric, value in values.items():
        yield f"{metric:<22}\tall\t{value:.4f}"


def _formatted(result: Any, form: str) -> str:
    if form == "text":
        return repr(result)
    return result.to_markdown() if form == "markdown" else result.to_latex()


def _slices(options: argparse.Namespace) -> Any:
    """The slice of each query, as a dict or as a frame."""
    from tfrankmetrics.evaluation.files import is_table, lines_of, read_frame

    if is_table(options.by):
        return read_frame(options.by, [options.query])
    slices: dict[str, str] = {}
    for number, line in enumerate(lines_of(options.by), 1):
        # As in TREC files, only ASCII white space separates the fields.
        fields = line.removeprefix(codecs.BOM_UTF8).strip().split(maxsplit=1)
        where = f"Received in {options.by!r}, line {number}: "
        try:
            query, *others = [field.decode() for field in fields] or [""]
        except UnicodeDecodeError:
            raise ValueError(f"A file must be UTF-8. {where}{line!r:.200}.") from None
        if query and not others:
            raise ValueError(
                "A line of slices must contain a query and a slice. "
                f"{where}{query!r:.200}."
            )
        found = others[0] if others else ""
        if query and slices.setdefault(query, found) != found:
            raise ValueError(
                f"A query must have one slice. {where}{query!r:.200} with "
                f"{found!r:.200}, after {slices[query]!r:.200}."
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


def _show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, tfr.RankingWarning):
        _print(f"warning: {message}", sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
