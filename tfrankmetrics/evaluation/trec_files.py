"""Judgments and runs in files, as columns, in the formats of TREC and of others."""

from __future__ import annotations

import codecs
import collections
import importlib.util
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.read_column import (
    FIRST_INEXACT,
    LABEL_RULE,
    numbers_of_arrow,
)
from tfrankmetrics.evaluation.files import (
    has_names,
    is_table,
    lines_of,
    opened,
    read_frame,
    reading,
    require_columns,
    suffix,
)

# From this size on, in bytes, pyarrow reads a file if it is installed: 10^6 lines in
# 0.2 s instead of 1.2 s. Importing pyarrow takes as long as reading a smaller file.
LARGE = 4_000_000


class Layout(NamedTuple):
    """The fields of a line, which ASCII white space separates as in trec_eval.

    The first field is the query.
    """

    name: str
    columns: int
    item: int  # the number of the field
    value: int  # the number of the field
    may_go_on: bool = False  # whether more fields may follow
    has_subtopics: bool = False  # whether the second field is a subtopic


QRELS = Layout("judgments", columns=4, item=2, value=3)
# Of the diversity tasks of TREC.
SUBTOPIC_QRELS = QRELS._replace(has_subtopics=True)
RUN = Layout("a run", columns=6, item=2, value=4, may_go_on=True)
# Files of three columns: those of BEIR, and runs as MS MARCO has them.
BEIR_QRELS = Layout("judgments", columns=3, item=1, value=2)
RANKS = Layout("a run", columns=3, item=1, value=2)
BEIR_HEADER = [b"query-id", b"corpus-id", b"score"]


class FileColumns(NamedTuple):
    """The columns of a file, with an entry per line."""

    path: str
    queries: Any  # text: lists, or columns of Arrow
    items: Any
    numbers: Any
    other_lines: Sequence[int] = ()  # the numbers of comments and of empty lines
    has_ranks: bool = False  # whether the numbers are those of ranks: -1, -2, ...
    subtopics: Any = None  # text, if the layout has a field for it

    def place(self, row: int) -> str:
        """The line of an entry."""
        line = row + 1
        for other in self.other_lines:
            line += other <= line
        return f"line {line} of {self.path!r}"


def read_file(
    path: str | os.PathLike, layout: Layout, columns: Mapping[str, str]
) -> Any:
    """The judgments or the run in a file: columns, a dict of dicts, or a frame.

    Folders, and files that end in .csv, .tsv or .parquet, are tables with named
    columns. Files that end in .json are dicts of dicts. All others are in a format of
    TREC, and so are .tsv files without names of columns. The ids in files are text.

    Args:
        path: The file, which may be compressed.
        layout: The format of TREC.
        columns: The names of the columns of a table, by the arguments that state them;
            the last one holds numbers, and the others ids.
    """
    if suffix(path) == ".json":
        with reading(path), opened(path) as file:
            return json.load(file, object_pairs_hook=_without_repeated_keys)
    if not is_table(path):
        return _read_trec_file(path, layout)
    if suffix(path) == ".tsv" and not has_names(path, columns.values()):
        lines = (_fields(line) for line in lines_of(path))
        first = next((each for each in lines if each and each[0][:1] != b"#"), [])
        if _fits(first, layout):
            return _read_trec_file(path, layout)
    *ids, _ = columns.values()
    frame = read_frame(path, ids)
    require_columns(frame, columns, path)
    return frame


def _without_repeated_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """A dict of JSON. Raises ValueError for a query or an item that occurs twice."""
    unique = dict(pairs)
    if len(unique) < len(pairs):
        counts = collections.Counter(key for key, _ in pairs)
        [(twice, _)] = counts.most_common(1)
        raise ValueError(f"the key {twice!r:.200} occurs twice in a dict")
    return unique


def _fits(fields: Sequence[bytes], layout: Layout) -> bool:
    """Whether a file without names of columns may have this first line."""
    if len(fields) == 3:
        return layout is RUN or fields == BEIR_HEADER
    try:
        _entry(fields, layout)
    except ValueError:
        return False
    return True


def _read_trec_file(path: str | os.PathLike, layout: Layout) -> FileColumns:
    return _read_if_clean(path, layout) or _read_lines(path, layout)


def _read_if_clean(path: str | os.PathLike, layout: Layout) -> FileColumns | None:
    """The columns of a large file by pyarrow, if one character splits it into fields.

    `_read_lines` reads all other files and states what is wrong with them.
    """
    is_large = os.path.exists(path) and os.path.getsize(path) >= LARGE
    if not is_large or importlib.util.find_spec("pyarrow") is None:
        return None
    import pyarrow
    from pyarrow import csv

    with reading(path), opened(path) as file:
        data = file.read()
    separator, other = b" \t" if data.find(b" ", 0, 1000) > 0 else b"\t "
    is_space = np.frombuffer(data, np.uint8) <= ord(" ")
    other_marks = (b"\r", b"\v", b"\f", b"\n#", codecs.BOM_UTF8, bytes([other]))
    if (
        (is_space[1:] & is_space[:-1]).any()
        or data.endswith((b" ", b"\t"))
        or data.startswith((b"#", b" ", b"\t", b"\n"))
        or any(mark in data for mark in other_marks)
    ):
        return None
    names = [*map(str, range(layout.columns))]
    ids = [0, layout.item, *[1] * layout.has_subtopics]
    of_types = dict.fromkeys([names[each] for each in ids], pyarrow.string())
    of_types[names[layout.value]] = pyarrow.float64()
    try:
        table = csv.read_csv(
            pyarrow.BufferReader(data),
            csv.ReadOptions(column_names=names, use_threads=False),
            csv.ParseOptions(delimiter=chr(separator), quote_char=False),
            csv.ConvertOptions(
                column_types=of_types, include_columns=[*of_types], null_values=[]
            ),
            memory_pool=pyarrow.system_memory_pool(),
        )
    except pyarrow.ArrowInvalid:
        return None
    queries, items, *subtopics, values = table.columns
    numbers = numbers_of_arrow(values.combine_chunks(), float)
    # Arrow reads more spellings of NaN than Python.
    is_exact = np.abs(numbers) < FIRST_INEXACT
    if layout is RUN:
        is_exact |= np.isinf(numbers)
    if not is_exact.all():
        return None
    by_subtopic = {"subtopics": subtopics[0]} if subtopics else {}
    return FileColumns(os.fspath(path), queries, items, numbers, **by_subtopic)


def _read_lines(path: str | os.PathLike, layout: Layout) -> FileColumns:
    """The columns of a file, line by line."""
    queries, items, numbers, subtopics = [], [], [], []
    others: list[int] = []
    for line_number, line in enumerate(lines_of(path), 1):
        fields = _fields(line)
        if not fields or fields[0].startswith(b"#"):
            others.append(line_number)
            continue
        if not queries and len(fields) == 3:
            if layout.name == QRELS.name and fields == BEIR_HEADER:
                layout = BEIR_QRELS
                others.append(line_number)
                continue
            layout = RANKS if layout is RUN else layout
        try:
            query, item, number = _entry(fields, layout)
            if layout.has_subtopics:
                subtopics.append(_text_of_field(fields[1]))
        except ValueError as error:
            text = b" ".join(fields).decode(errors="backslashreplace")
            raise ValueError(
                f"{error} Received in {os.fspath(path)!r}, line {line_number}: "
                f"{text!r:.200}."
            ) from None
        queries.append(query)
        items.append(item)
        numbers.append(number)
    table = FileColumns(os.fspath(path), queries, items, numbers, others)
    if layout.has_subtopics:
        return table._replace(subtopics=subtopics)
    return _with_scores_of_ranks(table) if layout is RANKS else table


def _fields(line: bytes) -> list[bytes]:
    # Files that were joined may have a byte order mark in the middle.
    return line.removeprefix(codecs.BOM_UTF8).split()


def _entry(fields: Sequence[bytes], layout: Layout) -> tuple[str, str, float]:
    """The query, the item and the number of a line."""
    columns = layout.columns
    if len(fields) < columns or (len(fields) > columns and not layout.may_go_on):
        raise ValueError(f"A line of {layout.name} must have {columns} fields.")
    query, item = _text_of_field(fields[0]), _text_of_field(fields[layout.item])
    text = fields[layout.value]
    try:
        number = float(text)
    except ValueError:
        number = None
    if number is None or b"_" in text:  # which Python allows in numbers
        raise ValueError(f"Field {layout.value + 1} of a line must be a number.")
    if abs(number) < FIRST_INEXACT:
        return query, item, number
    if layout.name == QRELS.name:
        raise ValueError(LABEL_RULE)
    # An integer that float64 may round stays an integer.
    is_integer = math.isfinite(number) and text.lstrip(b"+-").isdigit()
    return query, item, int(text) if is_integer else number


def _text_of_field(field: bytes) -> str:
    try:
        return field.decode()
    except UnicodeDecodeError:
        raise ValueError("A file must be UTF-8.") from None


def _with_scores_of_ranks(table: FileColumns) -> FileColumns:
    """A run with a score for each rank. Raises ValueError for other numbers."""
    ranks: dict[str, list[float]] = {}
    for query, rank in zip(table.queries, table.numbers, strict=True):
        ranks.setdefault(query, []).append(rank)
    for query, of_query in ranks.items():
        if sorted(of_query) != [*range(1, len(of_query) + 1)]:
            raise ValueError(
                "A run of three columns must contain the query, the item and the rank: "
                "the whole numbers from 1 on, for each query. Received in "
                f"{table.path!r}: others for the query {query!r:.200}. Write scores in "
                "six columns: query Q0 item rank score tag."
            )
    scores = [-rank for rank in table.numbers]
    return table._replace(numbers=scores, has_ranks=True)
