"""Files of judgments and runs: in the formats of TREC, or tables with named columns.

`evaluate_run` reads them, and `read_trec` returns those of TREC as rows.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import errno
import importlib
import itertools
import math
import os
import pathlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.read_column import (
    FIRST_INEXACT,
    column,
)
from tfrankmetrics.installation import require
from tfrankmetrics.rules import check_option, listed

SEPARATORS = {".csv": ",", ".tsv": "\t"}
# The modules that open compressed files, by the ends of their names.
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}
LOWEST_SCORE = float(np.finfo(np.float32).min)
# The array of query ids reserves the space of the longest id for each row.
LONGEST_QUERY_ID = 1000


class TrecRows(NamedTuple):
    """The columns that `read_trec` returns, for `evaluate_rows(*rows, metrics=[...])`.

    They contain one entry per row.
    """

    query_ids: np.ndarray
    labels: np.ndarray
    scores: np.ndarray


def read_trec(
    qrels: str | os.PathLike,
    run: str | os.PathLike,
    *,
    complete: bool = False,
    judged_only: bool = False,
) -> TrecRows:
    r"""Reads judgments (qrels) and results (a run) as trec_eval does.

    A line of the judgments is `query 0 document relevance`. A line of the results is
    `query Q0 document rank score tag`; the rank and everything after the tag are
    ignored. Lines that start with `#` are comments. A document that was not judged is
    not relevant. A judged document that is not in the results has the score -inf,
    because it was not retrieved.

    The rows of a query are sorted by document name in descending order, and scores are
    rounded to float32, so that `convention="trec_eval"` breaks ties as in trec_eval.

    >>> import pathlib, tempfile
    >>> from tfrankmetrics import evaluate_rows
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> qrels, run = folder / "qrels.txt", folder / "run.txt"
    >>> _ = qrels.write_text("q1 0 a 1\nq1 0 b 0\nq1 0 c 2\n")
    >>> _ = run.write_text("q1 Q0 b 1 9.5 mine\nq1 Q0 a 2 8.1 mine\n")
    >>> rows = read_trec(qrels, run)
    >>> evaluate_rows(*rows, metrics=["AP", "R@5"], convention="trec_eval")
    {'map': 0.25, 'recall@5': 0.5}

    Args:
        qrels: The path of the judgments. Files that end in .gz, .bz2 or .xz are
            decompressed.
        run: The path of the results.
        complete: Whether judged queries without results are included as empty results
            (trec_eval's `-c`). By default they are excluded.
        judged_only: Whether unjudged results are removed from the lists, as BPref
            requires. Negative judgments are then treated as unjudged.

    Returns:
        The columns query_ids, labels and scores.

    Raises:
        ValueError: A line is malformed, a document occurs twice in a query, or a query
            id has more than 1000 characters.
    """
    for name, value in (("complete", complete), ("judged_only", judged_only)):
        check_option("read_trec", name, value, bool)
    judged, found = read_lines(qrels, QRELS), read_lines(run, RUN)
    queries = [query for query in judged if complete or found.get(query)]
    numbers, labels, scores, are_found = [], [], [], []
    for query in queries:
        of_judged, of_found = judged[query], found.get(query, {})
        documents = {name for name, label in of_judged.items() if label >= 0}
        if not judged_only:
            documents |= of_found.keys()
        # Without any, one that does not exist, so that the query is still counted.
        documents = sorted(documents, reverse=True) or [""]
        numbers.append(len(documents))
        # Negative judgments mark documents outside the pool that was judged.
        labels += map(of_judged.get, documents, itertools.repeat(-1.0))
        scores += map(of_found.get, documents, itertools.repeat(0.0))
        are_found += map(of_found.__contains__, documents)
    rows = TrecRows(
        np.repeat(np.array(queries, str), numbers),
        np.array(labels, float),
        np.where(np.array(are_found, bool), in_float32(scores), np.float32(-np.inf)),
    )
    return rows._replace(labels=np.maximum(rows.labels, 0))


def in_float32(scores: Any) -> np.ndarray:
    """Scores in the precision of trec_eval; the lowest one is finite."""
    with np.errstate(over="ignore"):  # above the highest float32 is infinity
        return np.maximum(np.asarray(scores, float), LOWEST_SCORE).astype(np.float32)


class Layout(NamedTuple):
    """The fields of a line, separated by ASCII white space as trec_eval does."""

    columns: int
    may_go_on: bool  # whether more fields may follow
    value: int  # the number of the field that holds it
    must_be_finite: bool

    def fits(self, fields: Sequence[bytes]) -> bool:
        """Whether a line may have these fields."""
        number = len(fields)
        if number < self.columns or (number > self.columns and not self.may_go_on):
            return False
        try:
            _number(fields[self.value])
        except ValueError:
            return False
        return True


QRELS = Layout(columns=4, may_go_on=False, value=3, must_be_finite=True)
RUN = Layout(columns=6, may_go_on=True, value=4, must_be_finite=False)


@contextlib.contextmanager
def reading(path: str | os.PathLike) -> Iterator[None]:
    """Turns what libraries raise for a damaged file into an error with its name."""
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # each library has its own
        if isinstance(error, OSError) and error.filename is not None:
            raise  # the file cannot be opened, and the error has its name
        text = str(error).rstrip(".") or type(error).__name__
        raise ValueError(
            "A file must be complete, and in the format that its name states. "
            f"Received in {os.fspath(path)!r}: {text}."
        ) from None


def read_lines(path: str | os.PathLike, layout: Layout) -> dict[str, dict[str, float]]:
    """The value of each document of each query."""
    values: dict[str, dict[str, float]] = {}
    for number, line in enumerate(lines_of(path), 1):
        # Files that were joined may have a byte order mark in the middle.
        fields = line.removeprefix(codecs.BOM_UTF8).split()
        if not fields or fields[0].startswith(b"#"):
            continue
        try:
            query, document, value = _entry(fields, layout)
            of_query = values.setdefault(query, {})
            if document in of_query:
                raise ValueError("A document must occur only once in a query.")
        except ValueError as error:
            text = b" ".join(fields).decode(errors="backslashreplace")
            raise ValueError(
                f"{error} Received in {os.fspath(path)!r}, line {number}: "
                f"{text!r:.200}."
            ) from None
        of_query[document] = value
    return values


def lines_of(path: str | os.PathLike) -> Iterator[bytes]:
    r"""The lines of a text file, which end in \n, \r\n or \r.

    Files that end in .gz, .bz2 and .xz are decompressed.
    """
    end = os.path.splitext(os.fspath(path))[1].lower()
    module: Any = importlib.import_module(COMPRESSED.get(end, "builtins"))
    with reading(path), module.open(path, "rb") as lines:
        for line in lines:
            yield from line.splitlines() if b"\r" in line else [line]


def _number(text: bytes) -> float:
    """A number; an integer that float64 may round stays an integer."""
    if b"_" in text:  # which Python allows in numbers
        raise ValueError
    value = float(text)
    if abs(value) < FIRST_INEXACT or not math.isfinite(value):
        return value
    try:
        return int(text)
    except ValueError:  # such as 1e20
        return value


def _entry(fields: Sequence[bytes], layout: Layout) -> tuple[str, str, float]:
    """The query, the document and the value of a line."""
    columns = layout.columns
    if len(fields) < columns or (len(fields) > columns and not layout.may_go_on):
        raise ValueError(f"A line must have {columns} fields.")
    try:
        query, document = fields[0].decode(), fields[2].decode()
    except UnicodeDecodeError:
        raise ValueError("A file must be UTF-8.") from None
    if len(query) > LONGEST_QUERY_ID:
        raise ValueError(f"A query id must have at most {LONGEST_QUERY_ID} characters.")
    try:
        value = _number(fields[layout.value])
    except ValueError:
        raise ValueError(
            f"Field {layout.value + 1} of a line must be a number."
        ) from None
    if layout.must_be_finite and not math.isfinite(value):
        raise ValueError("A relevance must be a finite number.")
    return query, document, value


def read_file(
    path: str | os.PathLike, layout: Layout, columns: Mapping[str, str]
) -> Any:
    """The judgments or the run in a file: a dict of dicts, or a frame of pandas.

    Files that end in .csv, .tsv or .parquet are tables with named columns, and all
    others are in a format of TREC. So are .tsv files without names of columns. The ids
    in files are text.

    Args:
        path: The file, which may be compressed.
        layout: The format of TREC.
        columns: The names of the columns of a table, by the arguments that state them;
            the last one holds numbers, and the others ids.
    """
    if not is_table(path):
        return read_lines(path, layout)
    if _suffix(path) == ".tsv" and not has_names(path, columns.values()):
        lines = (each.removeprefix(codecs.BOM_UTF8).split() for each in lines_of(path))
        first = next((each for each in lines if each and each[0][:1] != b"#"), [])
        if layout.fits(first):
            return read_lines(path, layout)
    *ids, _ = columns.values()
    frame = read_frame(path, ids)
    require_columns(frame, columns, path)
    return frame


def require_columns(
    frame: Any, columns: Mapping[str, str], path: str | os.PathLike
) -> None:
    """Raises ValueError unless a table has the columns that arguments name."""
    for argument, name in columns.items():
        try:
            column(frame, name, argument)
        except ValueError as error:
            raise ValueError(f"{error} The table is {os.fspath(path)!r}.") from None


def has_names(path: str | os.PathLike, names: Iterable[str]) -> bool:
    """Whether a table has a first line that contains one of these names at least."""
    if _suffix(path) not in SEPARATORS:
        return True
    _, fields = next(fields_of(path), (1, []))
    return not {*names}.isdisjoint(fields)


def fields_of(path: str | os.PathLike) -> Iterator[tuple[int, list[str]]]:
    """The number and the fields of each line that has any.

    White space separates the first field from the rest of the line, unless the name of
    the file states a separator.
    """
    separator = SEPARATORS.get(_suffix(path))
    for number, line in enumerate(lines_of(path), 1):
        # As in TREC files, only ASCII white space separates fields.
        line = line.removeprefix(codecs.BOM_UTF8).strip(b"\r\n" if separator else None)
        parts = [line] if separator else line.split(maxsplit=1)
        try:
            fields = [part.decode() for part in parts]
        except UnicodeDecodeError:
            raise ValueError(
                f"A file must be UTF-8. Received in {os.fspath(path)!r}, line "
                f"{number}: {line!r:.200}."
            ) from None
        if separator:
            with reading(path):
                fields = next(csv.reader(fields, delimiter=separator), [])
        if fields:
            yield number, fields


def is_table(path: str | os.PathLike) -> bool:
    """Whether a file is a table with named columns, by the end of its name."""
    return _suffix(path) in (*SEPARATORS, ".parquet")


def _suffix(path: str | os.PathLike) -> str:
    """The end of the name of a file that may be compressed, such as ".csv"."""
    return without_compression(path).suffix.lower()


def without_compression(path: str | os.PathLike) -> pathlib.Path:
    """The path without the suffix of a compressed file."""
    plain = pathlib.Path(path)
    return plain.with_suffix("") if plain.suffix.lower() in COMPRESSED else plain


def read_frame(path: str | os.PathLike, ids: Iterable[str]) -> Any:
    """A table as a frame of pandas, with these columns as text, if it has them."""
    pandas = require("pandas", "A table")
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    separator = SEPARATORS.get(_suffix(path))
    with reading(path):
        if separator is None:
            frame = pandas.read_parquet(path)
        else:
            frame = _delimited(pandas, path, separator, ids)
    for name in {*ids} & {*frame.columns}:
        frame[name] = frame[name].astype(str).where(frame[name].notna())
    return frame


def _delimited(pandas: Any, path: Any, separator: str, ids: Iterable[str]) -> Any:
    """A text file of columns, of which each line has as many as the first one."""
    # Only an empty cell is missing: the id NA is text.
    options: dict[str, Any] = {"keep_default_na": False, "na_values": [""]}
    options |= {"sep": separator, "index_col": False}
    first = pandas.read_csv(path, header=None, nrows=1, dtype=str, **options)
    names = first.iloc[0].tolist()
    if twice := sorted({str(name) for name in names if names.count(name) > 1}):
        raise ValueError(
            "The columns of a table must have different names. Received: "
            f"{listed(twice)} twice."
        )
    with warnings.catch_warnings():
        # Of lines with more fields than the first one.
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        try:
            return pandas.read_csv(path, dtype=dict.fromkeys(ids, str), **options)
        except pandas.errors.ParserWarning:
            raise ValueError(
                f"Each line must have as many fields as the first one, {len(names)}. "
                "Received: lines with more."
            ) from None
