"""The rows of a table grouped by query, and the columns with a value for each query.

The queries of a table come from its ids, groups or codes, and `JudgedQueries` are those
of judgments. The columns are slices and weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.numbered_ids import (
    Groups,
    Ids,
    number_ids,
    ordered_categories,
)
from tfrankmetrics.columns.read_column import (
    as_numbers,
    by_index,
    column,
    is_frame,
    require_weights,
)
from tfrankmetrics.columns.slices import columns_of_slices, read_slices, values_by_id
from tfrankmetrics.inputs.parts_by_length import ELEMENTS_IN_CACHE, parts_of
from tfrankmetrics.rules import shortened


class Queries(NamedTuple):
    """The rows of each query q: `order[starts[q] : starts[q] + lengths[q]]`."""

    order: np.ndarray | None  # [rows]; None if the rows are sorted by query
    starts: np.ndarray  # [queries]
    lengths: np.ndarray  # [queries]
    # The length that the list of each query is padded to, and others that it is
    # computed with; None to pad lists to the longest of these.
    widths: np.ndarray | None = None

    def parts(self, depth: int = 1) -> Iterator[np.ndarray]:
        """The queries, as many as fit in memory at a time, by length.

        `depth` is how many numbers an item has.
        """
        by_length = np.argsort(self.lengths, kind="stable")
        of_one_width = [by_length]
        if self.widths is not None:
            ends = np.flatnonzero(np.diff(self.widths[by_length])) + 1
            of_one_width = np.split(by_length, ends)
        for order in of_one_width:
            yield from parts_of(order, self.lengths * depth, ELEMENTS_IN_CACHE)

    def rows(
        self, queries: np.ndarray, least: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rows of some queries as lists `[B, N]`, and where a list has an item.

        N is at least `least`.
        """
        widths = self.lengths if self.widths is None else self.widths
        positions = np.arange(widths[queries].max(initial=least))
        exists = positions < self.lengths[queries, np.newaxis]
        rows = np.where(exists, self.starts[queries, np.newaxis] + positions, 0)
        return (rows if self.order is None else self.order[rows]), exists

    def numbers_of_rows(self) -> np.ndarray:
        """The number of the query of each row."""
        by_start = np.argsort(self.starts, kind="stable")
        numbers = np.repeat(by_start, self.lengths[by_start])
        if self.order is None:
            return numbers
        of_rows = np.empty_like(numbers)
        of_rows[self.order] = numbers
        return of_rows

    def column(self, argument: str, name: str, values: Any) -> Ids:
        """The value of each query, which must be the same in all of its rows.

        Args:
            argument: The argument that the column was passed as.
            name: The name of the column.
            values: The column, with a value for each row.
        """
        num_rows = int(self.lengths.sum())
        of_rows = read_slices(argument, name, values)
        if len(of_rows.codes) != num_rows:
            raise ValueError(
                f"`{argument}` must have a value for each row. Received: "
                f"{len(of_rows.codes)} values of {shortened(name)} for {num_rows} rows."
            )
        order = np.arange(num_rows) if self.order is None else self.order
        if num_rows == 0:
            return of_rows
        in_order = of_rows.codes.take(order)
        differs = np.append(in_order[1:] != in_order[:-1], True)
        # The last row of each query may differ from the next row, which is in another
        # query. The index -1, of the first query, is the last row of all.
        differs[self.starts - 1] = False
        if differs.any():
            rows = order[int(np.argmax(differs)) :][:2]
            different = [*map(shortened, of_rows.at(of_rows.codes[rows]))]
            raise ValueError(
                f"`{argument}` must have the same value in all rows of a query. "
                f"Received: {shortened(name)} with the value {different[0]} in row "
                f"{rows[0]}, and {different[1]} in row {rows[1]} of the same query. If "
                "they are models, call evaluate_run(model=...)."
            )
        first_rows = np.minimum(self.starts, num_rows - 1)  # of empty groups at the end
        return of_rows.of(order[first_rows])


def queries_of_codes(codes: np.ndarray, num_queries: int) -> Queries:
    """The rows of queries that are numbered from 0."""
    return Queries(*Groups.of(codes, num_queries))


def queries_of_groups(groups: Any, num_rows: int) -> tuple[np.ndarray, Queries]:
    """The numbers of queries, and the rows of each, from its number of rows."""
    lengths = as_numbers("groups", groups)
    if not np.issubdtype(lengths.dtype, np.integer) or (lengths < 0).any():
        raise ValueError(
            "`groups` must hold the number of rows of each query, integers of at least "
            f"0. Received dtype: {lengths.dtype}, smallest: {lengths.min(initial=0)}."
        )
    total = lengths.sum(dtype=np.float64)  # which does not wrap around like int64
    if total != num_rows:
        raise ValueError(
            "`groups` must add up to the number of rows. Received: a sum of "
            f"{total:.0f} for {num_rows} rows."
        )
    lengths = lengths.astype(np.int64)
    ids = np.arange(len(lengths))
    return ids, Queries(None, np.cumsum(lengths) - lengths, lengths)


def number_of_query(query: Any, ids: Sequence[Any]) -> int:
    """The number of the query with this id. Raises ValueError if there is none."""
    try:
        is_known = query in set(ids)
    except TypeError:  # an array or a list: not hashable
        is_known = False
    if not is_known or isinstance(query, bool):
        such = f", such as {shortened(ids[0])}" if ids else ", and there is none"
        raise ValueError(
            f"The query must be the id of an evaluated query{such}. Received: "
            f"{shortened(query)}."
        )
    return ids.index(query)


class JudgedQueries(NamedTuple):
    """The judged queries, for each of which a dict or a frame has a value."""

    ids: np.ndarray
    codes: np.ndarray  # the number of the query of each row of `qrels`
    qrels: Any
    name: str  # of the column of queries

    def weights(self, sample_weight: Any) -> np.ndarray:
        """The weight of each query."""
        column = self._column("sample_weight", "weight", sample_weight)
        weights = as_numbers("sample_weight", column.at(column.codes), self._place)
        require_weights(weights, self._place)
        return weights

    def _place(self, number: int) -> str:
        return f"for the query {shortened(self.ids[[number]].tolist()[0])}"

    def slice_columns(self, by: Any) -> dict[str, Ids]:
        """The columns that `by` contains or names."""
        if isinstance(by, (list, tuple)) and by:
            return {name: self._column("by", name, name) for name in by}
        if not is_frame(by):
            name = by if isinstance(by, str) else "slice"
            slices = self._column("by", "slice", by)
            slices.categories = slices.categories or ordered_categories(by)
            return {name: slices}
        queries = column(by, self.name, "by")
        queries = number_ids("ids of queries", [queries], ["row {} of `by`"])
        given = columns_of_slices(by)
        given.pop(self.name, None)
        if not given:
            raise ValueError(
                "`by` must contain a column of slices in addition to the queries. "
                f"Received: only {self.name!r}."
            )
        columns = {}
        for name, values in given.items():
            slices = Queries(*queries.groups).column("by", name, values)
            of_ids = dict(zip(queries.at(), slices.at(slices.codes), strict=True))
            columns[name] = self._column("by", name, of_ids)
            columns[name].categories = slices.categories
        return columns

    def _column(self, argument: str, name: str, values: Any) -> Ids:
        """A value for each query, from a dict or from a column of `qrels`."""
        values = by_index(argument, values)
        if isinstance(values, Mapping):
            rule = f"`{argument}` must contain a {name} for each query of `qrels`."
            of_ids = values_by_id(rule, values, self.ids.tolist())
            return read_slices(argument, name, of_ids)
        if not isinstance(values, str) or not is_frame(self.qrels):
            raise ValueError(
                f"`{argument}` must be a dict with a {name} for each query, or name a "
                f"column of the frame `qrels`. Received: {shortened(values)}."
            )
        of_rows = column(self.qrels, values, argument)
        rows = queries_of_codes(self.codes, len(self.ids))
        return rows.column(argument, values, of_rows)
