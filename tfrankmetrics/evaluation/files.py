"""Files as lines, as fields, and as tables with named columns."""

from __future__ import annotations

import codecs
import contextlib
import csv
import errno
import importlib
import itertools
import os
import pathlib
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tfrankmetrics.columns.read_column import FIRST_INEXACT, column
from tfrankmetrics.installation import require
from tfrankmetrics.rules import listed

SEPARATORS = {".csv": ",", ".tsv": "\t"}
# The modules that open compressed files, by the ends of their names.
COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}


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


def opened(path: str | os.PathLike) -> Any:
    """A file to read bytes from; .gz, .bz2 and .xz are decompressed."""
    end = os.path.splitext(os.fspath(path))[1].lower()
    module: Any = importlib.import_module(COMPRESSED.get(end, "builtins"))
    return module.open(path, "rb")


def lines_of(path: str | os.PathLike) -> Iterator[bytes]:
    r"""The lines of a text file, which end in \n, \r\n or \r."""
    with reading(path), opened(path) as lines:
        for line in lines:
            if b"\r" in line:
                yield from line.splitlines()
            else:
                yield line


def require_columns(
    frame: Any, columns: Mapping[str, str], path: str | os.PathLike
) -> None:
    """Raises ValueError unless a table has the columns that arguments name."""
    for argument, name in columns.items():
        try:
            column(frame, name, argument)
        except ValueError as error:
            raise ValueError(f"{error} The table is {os.fspath(path)!r}.") from None


def has_names(path: str | os.PathLike, names: Iterable[str | Sequence[str]]) -> bool:
    """Whether a table has a first line that contains one of these names at least."""
    if suffix(path) not in SEPARATORS:
        return True
    _, fields = next(fields_of(path), (1, []))
    return not {*_flat_names(names)}.isdisjoint(fields)


def _flat_names(names: Iterable[str | Sequence[str]]) -> list[str]:
    """The names of all columns; several columns may identify an item."""
    lists = ([name] if isinstance(name, str) else name for name in names)
    return [*itertools.chain.from_iterable(lists)]


def fields_of(path: str | os.PathLike) -> Iterator[tuple[int, list[str]]]:
    """The number and the fields of each line that has any.

    White space separates the first field from the rest of the line, unless the name of
    the file states a separator.
    """
    separator = SEPARATORS.get(suffix(path))
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
    """Whether a file is a table with named columns, by the end of its name.

    A folder is one of Parquet files.
    """
    return suffix(path) in (*SEPARATORS, ".parquet") or os.path.isdir(path)


def suffix(path: str | os.PathLike) -> str:
    """The end of the name of a file that may be compressed, such as ".csv"."""
    return without_compression(path).suffix.lower()


def without_compression(path: str | os.PathLike) -> pathlib.Path:
    """The path without the suffix of a compressed file."""
    plain = pathlib.Path(path)
    return plain.with_suffix("") if plain.suffix.lower() in COMPRESSED else plain


def read_frame(path: str | os.PathLike, ids: Iterable[str | Sequence[str]]) -> Any:
    """A table as a frame of pandas, with these columns as text, if it has them.

    Integers beside missing values, which pandas makes floats, become text of integers.
    """
    ids, pandas = _flat_names(ids), require("pandas", "A table")
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    separator = SEPARATORS.get(suffix(path))
    with reading(path):
        if separator is None:
            frame = pandas.read_parquet(path)
        else:
            frame = _delimited(pandas, path, separator, ids)
        for name in {*ids} & {*frame.columns}:
            frame[name] = _as_text(frame[name])
    return frame


def _as_text(given: Any) -> Any:
    """A column of ids as text; missing ones stay missing."""
    if given.dtype.kind == "f":
        some = given.dropna()
        if (some % 1 == 0).all() and (some.abs() < FIRST_INEXACT).all():
            given = given.astype("Int64")
    text = given.astype(str).where(given.notna())
    is_decimal = str(text.iloc[:1].squeeze()).endswith(".0")
    if is_decimal and text.dropna().str.fullmatch(r"-?\d+\.0").all():
        return text.str.removesuffix(".0")  # a file that pandas wrote
    return text


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
