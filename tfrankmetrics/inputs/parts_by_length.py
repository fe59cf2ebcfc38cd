"""The parts in which queries are read and computed: of similar length, and few enough.

All lists that are read together are padded to the longest one. One long list among many
short ones would take the memory of as many long ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.columns.read_column import as_list

# One part, in which all lists are padded to the longest, is as fast as several if it
# has at most this many elements, or at most this many times as many as without padding.
FEW_ELEMENTS, FEW_TIMES = 2**22, 4

# How many items, or pairs of ids, TensorFlow computes at a time: enough to keep the
# cores busy, few enough to take little memory.
ELEMENTS_AT_A_TIME = 2**20
# The number for NumPy, whose arrays then fit into the cache.
ELEMENTS_IN_CACHE = 2**16


class Batch(NamedTuple):
    """The arguments of `evaluate` for some queries."""

    y_true: Any
    y_pred: Any
    sample_weight: Any = None
    mask: Any = None
    queries: np.ndarray | None = None  # their numbers; None if they are the next ones


def lengths_if_unequal(y_true: Any, y_pred: Any, inputs: str) -> np.ndarray | None:
    """The length of each list, if padding all of them would waste memory.

    `inputs` is the input format.
    """
    of_each = [*_lengths(y_true), *_lengths(y_pred)]
    if len({len(each) for each in of_each}) != 1:
        return None  # not the same number of queries, which is a separate error
    are_labels = inputs == "labels"
    if are_labels and not all(np.array_equal(each, of_each[0]) for each in of_each):
        return None  # as many labels as scores are required, or reading raises an error
    lengths = np.max(of_each, axis=0)
    elements = len(lengths) * lengths.max(initial=0)
    is_little = elements <= max(FEW_ELEMENTS, FEW_TIMES * lengths.sum())
    return None if is_little else lengths


def batch_of(whole: Batch, queries: np.ndarray) -> Batch:
    """Some queries of all."""
    rows = {
        name: _rows_of_queries(each, queries) for name, each in whole._asdict().items()
    }
    return Batch(**{**rows, "queries": queries})


def _lengths(data: Any) -> Iterator[np.ndarray]:
    """The length of each row of data; nothing for data without rows."""
    if isinstance(data, Mapping):
        for each in data.values():
            yield from _lengths(each)
    elif hasattr(data, "row_lengths"):  # a ragged tensor
        yield np.asarray(data.row_lengths())
    elif hasattr(data, "tocsr"):  # a sparse matrix of SciPy
        yield np.diff(data.tocsr().indptr)
    else:
        data = as_list(data)
        if isinstance(data, (list, tuple)) and len(data) and _is_row(data[0]):
            yield np.fromiter((len(row) if _is_row(row) else 1 for row in data), int)


def _rows_of_queries(data: Any, queries: np.ndarray) -> Any:
    """The rows of some queries; a number for all queries stays as it is."""
    if isinstance(data, Mapping):
        return {name: _rows_of_queries(each, queries) for name, each in data.items()}
    if hasattr(data, "row_lengths") or xp.is_of_tensorflow(data):
        return data if data.shape.rank == 0 else xp.take(data, queries)
    data = as_list(data)
    if isinstance(data, (list, tuple)):
        return [data[number] for number in queries]
    return data if np.ndim(data) == 0 else np.asarray(data)[queries]


def _is_row(data: Any) -> bool:
    is_array = hasattr(data, "dtype") and np.ndim(data) > 0
    is_list = isinstance(data, (Sequence, set, frozenset))
    return is_array or (is_list and not isinstance(data, (str, bytes)))


def parts_of(order: np.ndarray, lengths: np.ndarray, most: int) -> Iterator[np.ndarray]:
    """Queries in this order, with at most `most` elements at a time, if they fit.

    All of a part are padded to the longest of them. Without any query there is one
    empty part.
    """
    if len(order) == 0:
        yield order
    start = 0
    while start < len(order):
        # At most this many fit, since all are padded to the first one at least.
        first = max(1, int(lengths[order[start]]))
        part = order[start : start + max(1, most // first)]
        # For each query, the elements of a part that ends with it.
        longest = np.maximum.accumulate(lengths[part])
        elements = longest * np.arange(1, len(part) + 1)
        fit = max(1, int(np.searchsorted(elements, most, side="right")))
        yield part[:fit]
        start += fit
