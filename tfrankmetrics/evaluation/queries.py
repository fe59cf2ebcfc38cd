"""Rows of a table grouped by query."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.values import are_missing, as_numbers, factorize


class Queries(NamedTuple):
    """The rows of each query: `order[start : start + length]`."""

    order: np.ndarray | None  # None if the rows are sorted by query
    starts: np.ndarray
    lengths: np.ndarray
    width: int = 0  # the least length that lists are padded to

    def rows(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of some queries as lists `[B, N]`, and where a list has an item."""
        longest = self.lengths[queries].max(initial=0)
        positions = np.arange(max(self.width, longest))
        exists = positions < self.lengths[queries, np.newaxis]
        rows = np.where(exists, self.starts[queries, np.newaxis] + positions, 0)
        return (rows if self.order is None else self.order[rows]), exists


def queries_of_codes(codes: np.ndarray, num_queries: int) -> Queries:
    """The rows of queries that are numbered from 0."""
    lengths = np.bincount(codes, minlength=num_queries)
    return Queries(_stable_order(codes), np.cumsum(lengths) - lengths, lengths)


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


def queries_of_ids(ids: np.ndarray) -> tuple[np.ndarray, Queries]:
    """The ids of queries, in the order of their first rows, and the rows of each."""
    missing = are_missing(ids)
    if missing.any():
        raise ValueError(
            "Every row must contain a query id. Received a missing one in row "
            f"{np.flatnonzero(missing)[0]}."
        )
    if ids.dtype == object:
        _require_one_type(ids)
        first, codes = factorize("Query ids", ids)
        return ids[first], queries_of_codes(codes, len(first))
    order = _stable_order(ids)
    keys = ids[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    lengths = np.diff(starts, append=len(keys))
    first = order[starts]
    appearance = np.argsort(first, kind="stable")
    queries = Queries(order, starts[appearance], lengths[appearance])
    return ids[first[appearance]], queries


def _require_one_type(ids: np.ndarray) -> None:
    """Raises ValueError for ids of several types, which never compare equal."""
    kinds = {numbers.Number if isinstance(i, numbers.Number) else type(i) for i in ids}
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"Query ids must be of one type. Received: {names}.")


def _stable_order(keys: np.ndarray) -> np.ndarray:
    """An order that groups equal keys and keeps the order of their rows."""
    is_wide = keys.dtype.kind in "iu" and keys.dtype.itemsize > 2 and len(keys) > 0
    if is_wide and int(keys.max()) - int(keys.min()) < 2**32:
        # By the low and then the high 16 bits, for which NumPy has a radix sort.
        low = (keys - keys.min()).astype(np.uint32)
        high = (low >> 16).astype(np.uint16)
        order = np.argsort(low.astype(np.uint16), kind="stable")
        return order[np.argsort(high[order], kind="stable")]
    return np.argsort(keys, kind="stable")
