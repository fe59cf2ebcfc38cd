"""The command `python -m tfrankmetrics qrels.txt run.txt -m ndcg@10`.

Only a run imports NumPy: help and wrong arguments must not wait for it.
"""

from __future__ import annotations

import argparse
import codecs
import os
import pathlib
import re
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import tfrankmetrics as tfr
from tfrankmetrics.conventions import CONVENTIONS

DESCRIPTION = """\
Computes ranking metrics of runs (predictions) by qrels (relevance judgments). With one
run it prints lines like those of trec_eval, and with several runs it compares them.
"""
EPILOG = """\
Files are in the formats of TREC. Files that end in .csv, .tsv or .parquet are tables
with named columns, which pandas reads (Parquet with pyarrow). Text files may be
compressed (.gz, .bz2 or .xz), as in run.txt.gz and run.csv.gz.
"""
READERS = {".csv": "read_csv", ".tsv": "read_csv", ".parquet": "read_parquet"}
COMPRESSED = (".gz", ".bz2", ".xz")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command, and returns its exit status.

    It is 0, or 1 if a run does not pass a gate, or 2 for invalid input.
    """
    options = _parser().parse_args(arguments)
    warnings.showwarning = _show_warning
    try:
        status = _run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # such as `... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, TypeError, ImportError, OSError) as error:
        print(f"error: {_as_options(str(error))}", file=sys.stderr)
        return 2
    return status


def _as_options(text: str) -> str:
    """A message with arguments of functions as options of the command."""
    argument = r"\b(unpaired|missing_queries)='(\w+)'"

    def option(found: re.Match[str]) -> str:
        return f"--{found[1].replace('_', '-')} {found[2]}"

    return re.sub(argument, option, text)


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
    add(
        "-m",
        "--metric",
        action="append",
        required=True,
        help="a metric, such as ndcg@10, map, P@5 or recip_rank; may be repeated",
    )
    add("--convention", choices=[*CONVENTIONS], help="the settings of another tool")
    add("-q", "--per-query", action="store_true", help="also print each query")
    add("--by", metavar="FILE", help="slices: a file of lines with a query and a slice")
    add(
        "--missing-queries",
        choices=["zero", "skip", "error"],
        help="judged queries without predictions; zero by default, and skip with "
        "--convention trec_eval, as trec_eval does without -c",
    )
    add(
        "--model",
        help="the column of model names, in a table with runs of several models",
    )
    add("--test", choices=["randomization", "t", "bootstrap"], default="randomization")
    add(
        "--unpaired",
        choices=["error", "drop"],
        default="error",
        help="queries that occur in only some of the runs",
    )
    add(
        "--gate",
        choices=["not_worse", "better"],
        help="exit with the status 1 unless, in the first metric, all other runs are "
        "not worse than the first run by the margin or more, or are better",
    )
    add("--margin", type=float, help="the margin of --gate")
    add("--in-slices", action="store_true", help="apply --gate to each slice, too")
    add("--format", choices=["text", "markdown", "latex"], default="text")
    for column, default in (
        ("query", "query_id"),
        ("item", "item_id"),
        ("label", "label"),
        ("score", "score"),
    ):
        add(f"--{column}", default=default, help=f"a column, {default} by default")
    return parser


def _run(options: argparse.Namespace) -> int:
    """Prints the requested result, and returns the exit status."""
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
        **{
            name: getattr(options, name) for name in ("query", "item", "label", "score")
        },
    }
    qrels = _table(options.qrels, options)
    if are_several:
        return _print_comparison(qrels, options, arguments)
    run = _table(options.runs[0], options)
    if is_table:
        print(_formatted(tfr.evaluate_run(qrels, run, **arguments), options.format))
    else:
        _print_one(qrels, run, options.per_query, arguments)
    return 0


def _print_comparison(
    qrels: Any, options: argparse.Namespace, arguments: dict[str, Any]
) -> int:
    """Prints the comparison of several runs; returns 1 if one does not pass a gate."""
    arguments["per_query"] = True
    values: dict[str, Any] = {}
    if options.model:
        run = _table(options.runs[0], options)
        values = {**tfr.evaluate_run(qrels, run, model=options.model, **arguments)}
    else:
        for path, name in zip(options.runs, _names(options.runs), strict=True):
            run = _table(path, options)
            values[name] = tfr.evaluate_run(qrels, run, **arguments)
    by = [*next(iter(values.values())).by] or None
    compared = tfr.compare(values, by=by, test=options.test, unpaired=options.unpaired)
    print(_formatted(compared, options.format))
    if options.gate is None:
        return 0
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
    print("", *decisions, sep="\n")
    return 0 if all(decisions) else 1


def _print_one(
    qrels: Any, run: Any, per_query: bool, arguments: dict[str, Any]
) -> None:
    """Prints lines of a metric, a query or "all", and a value, as trec_eval does."""
    values = tfr.evaluate_run(qrels, run, **arguments)
    _note(values.counts)  # type: ignore[union-attr]
    if per_query:
        by_query: dict[str, Any] = tfr.evaluate_run(
            qrels, run, per_query=True, **arguments
        )  # type: ignore[assignment]
        for number, query in enumerate(by_query["query"]):
            for metric in values:
                print(f"{metric:<22}\t{query}\t{by_query[metric][number]:.4f}")
    for metric, value in values.items():
        print(f"{metric:<22}\tall\t{value:.4f}")


def _formatted(result: Any, form: str) -> str:
    if form == "text":
        return repr(result)
    return result.to_markdown() if form == "markdown" else result.to_latex()


def _table(path: str, options: argparse.Namespace) -> Any:
    """A path of a TREC file, or a frame; its ids are text, as in TREC files."""
    suffix = _uncompressed(path).suffix.lower()
    if suffix not in READERS:
        return path
    from tfrankmetrics.results.tables import require

    pandas = require("pandas", "compare", "A table")
    separator = {".csv": {"sep": ","}, ".tsv": {"sep": "\t"}}.get(suffix, {})
    types: dict[str, Any] = {}
    if separator:
        ids = {options.query: str, options.item: str}
        # Only an empty cell is missing: the id NA is text.
        types = {"dtype": ids, "keep_default_na": False, "na_values": [""]}
    frame = getattr(pandas, READERS[suffix])(path, **separator, **types)
    for name in {options.query, options.item} & {*frame.columns}:
        frame[name] = frame[name].astype(str).where(frame[name].notna())
    return frame


def _slices(options: argparse.Namespace) -> Any:
    if _uncompressed(options.by).suffix.lower() in READERS:
        return _table(options.by, options)
    from tfrankmetrics.evaluation.trec import open_lines

    slices = {}
    with open_lines(options.by) as lines:
        for number, line in enumerate(lines, 1):
            # As in TREC files, only ASCII white space separates the fields.
            line = line.removeprefix(codecs.BOM_UTF8)
            fields = line.strip().split(maxsplit=1)
            query, *others = [field.decode() for field in fields] or [""]
            where = f"Received in {options.by!r}, line {number}: "
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


def _uncompressed(path: str) -> pathlib.Path:
    """The path without the suffix of a compressed file."""
    plain = pathlib.Path(path)
    return plain.with_suffix("") if plain.suffix.lower() in COMPRESSED else plain


def _names(paths: Sequence[str]) -> list[str]:
    """A name for each run: that of its file or, if two are the same, its path."""
    names = [_uncompressed(path).stem for path in paths]
    if len(set(names)) == len(names):
        return names
    if len(set(paths)) < len(paths):
        raise ValueError(f"Each run must be a different file. Received: {list(paths)}.")
    return list(paths)


def _note(counts: tfr.RunCounts) -> None:
    from tfrankmetrics.results.values import described

    if text := described(counts):
        print(text, file=sys.stderr)


def _show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
    if issubclass(category, tfr.RankingWarning):
        print(f"warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
