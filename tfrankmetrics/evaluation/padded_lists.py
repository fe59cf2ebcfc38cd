"""The rows of a table as padded lists, which Keras models and their metrics read."""

from __future__ import annotations

import numpy as np

from tfrankmetrics.arguments import ArrayLike
from tfrankmetrics.columns.numbered_ids import number_ids
from tfrankmetrics.columns.read_column import as_array
from tfrankmetrics.evaluation.rows_by_query import Queries
from tfrankmetrics.inputs.mistakes import warn
from tfrankmetrics.rules import check_option, shortened

MOST_PADDING = 10  # a result that has more elements for each row causes a warning


def to_lists(
    values: ArrayLike, query_ids: ArrayLike, padding: float, length: int | None = None
) -> np.ndarray:
    """Turns rows into padded lists, one for each query.

    The rows of a query need not be adjacent. They keep their order. The lists are in
    the order of the first row of each query, so labels and features of the same rows
    match:

    >>> import tfrankmetrics as trm
    >>> query_ids = ["tea", "milk", "tea"]
    >>> trm.to_lists([1, 0, 2], query_ids, padding=-1)
    array([[ 1,  2],
           [ 0, -1]])
    >>> trm.to_lists([[0.5, 1.0], [0.0, 2.0], [0.1, 0.2]], query_ids, padding=0).shape
    (2, 2, 2)

    Args:
        values: A value of each row, `[rows]`, or its features, `[rows, F]`.
        query_ids: The id of the query of each row, integers or text.
        padding: The number after the last row of a query: -1 for labels, and any finite
            number for features, such as 0.
        length: The length of the lists, by default that of the longest one.

    Returns:
        An array `[queries, length]` or `[queries, length, F]` of the dtype of `values`.

    Raises:
        ValueError: The shapes do not fit, an id is missing, a query has more rows than
            `length`, or the dtype of `values` does not include `padding`.
    """
    array = as_array("`values`", values)
    numbered = number_ids("query ids", [query_ids])
    is_table = array.ndim in (1, 2) and len(array) == len(numbered)
    if not is_table or array.dtype.kind not in "biuf":
        raise ValueError(
            "`values` must be numbers [rows] or [rows, F], with a row for each query "
            f"id. Received: {array.dtype} of shape {array.shape}, and "
            f"{len(numbered)} query ids."
        )
    filler = np.asarray(padding).astype(array.dtype)
    if array.dtype.kind != "f" and filler != padding:
        raise ValueError(
            "`padding` must be a number of the dtype of `values`. Received: "
            f"padding={padding} for {array.dtype}. Cast the values, as to int32."
        )
    ids, queries = numbered.array(), Queries(*numbered.groups)
    if length is not None:
        _require_length(length, ids, queries)
    rows, exists = queries.rows(np.arange(len(ids)), length or 0)
    if length is None and rows.size > MOST_PADDING * len(array):
        warn(
            f"Of the padded lists, {1 - len(array) / rows.size:.0%} are padding: the "
            f"longest of {len(ids):,} lists has {rows.shape[1]:,} rows, and half of "
            f"them have at most {np.median(queries.lengths):.0f}. Pass `length` and "
            "leave out the longer queries, or evaluate rows with `evaluate_rows`."
        )
    exists = exists.reshape(*exists.shape, *[1] * (array.ndim - 1))
    return np.where(exists, array[rows], filler)


def _require_length(length: int, ids: np.ndarray, queries: Queries) -> None:
    """Raises ValueError for a list that is longer than `length`."""
    check_option("to_lists", "length", length, int)
    longest = int(np.argmax(queries.lengths)) if len(ids) else None
    if longest is not None and queries.lengths[longest] > length:
        raise ValueError(
            "`length` must be at least the number of rows of each query. Received: "
            f"length={length}, and {queries.lengths[longest]} rows of the query "
            f"{shortened(ids.tolist()[longest])}. Pass a larger length, or drop rows "
            "first."
        )
