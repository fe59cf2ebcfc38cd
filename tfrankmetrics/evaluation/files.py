"""Files of judgments and runs: in the formats of TREC, or tables with named columns."""

from __future__ import annotations

import errno
import os
import pathlib
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from tfrankmetrics.columns.frames import column
from tfrankmetrics.evaluation.trec import (
    COMPRESSED,
    Layout,
    lines_of,
    read_lines,
    reading,
)
from tfrankmetrics.results.text_tables import require
from tfrankmetrics.rules import listed

SEPARATORS = {".csv": ",", ".tsv": "\t"}
TABLES = (*SEPARATORS, ".parquet")


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
    *ids, number = columns.values()
    if without_compression(path).suffix.lower() == ".tsv":
        fields = next(lines_of(path), b"").split()
        has_names = any(name.encode() in fields for name in (*ids, number))
        if not has_names and layout.fits(fields):
            return read_lines(path, layout)
    frame = read_frame(path, ids)
    for argument, name in columns.items():
        try:
            column(frame, name, argument)
        except ValueError as error:
            raise ValueError(f"{error} The table is {os.fspath(path)!r}.") from None
    return frame


def is_table(path: str | os.PathLike) -> bool:
    """Whether a file is a table with named columns, by the end of its name."""
    return without_compression(path).suffix.lower() in TABLES


def without_compression(path: str | os.PathLike) -> pathlib.Path:
    """The path without the suffix of a compressed file."""
    plain = pathlib.Path(path)
    return plain.with_suffix("") if plain.suffix.lower() in COMPRESSED else plain


def read_frame(path: str | os.PathLike, ids: Iterable[str]) -> Any:
    """A table as a frame of pandas, with these columns as text, if it has them."""
    pandas = require("pandas", "compare", "A table")
    if not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    separator = SEPARATORS.get(without_compression(path).suffix.lower())
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
