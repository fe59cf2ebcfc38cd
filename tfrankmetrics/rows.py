"""`evaluate_rows`: ranking metrics of a table with a query, a label and a score."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfrankmetrics.compiled import call_compiled, require_eager
from tfrankmetrics.compute import ELEMENTS_AT_A_TIME, summarize, values_and_weights
from tfrankmetrics.inputs.labels import read_labels
from tfrankmetrics.inputs.tensors import (
    first_index,
    refuse_masked_arrays,
    refuse_rounded_integers,
)
from tfrankmetrics.keras.state import StatefulMetric
from tfrankmetrics.measure import Measure, named_measures
from tfrankmetrics.options import Options, takes_options

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _Queries(NamedTuple):
    """The rows of each query: `order[start : start + length]`."""

    order: np.ndarray | None  # None if the rows are sorted by query
    starts: np.ndarray
    lengths: np.ndarray

    def rows(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of some queries as lists `[B, N]`, and where a list has an item."""
        positions = np.arange(self.lengths[queries].max(initial=0))
        exists = positions < self.lengths[queries, np.newaxis]
        rows = np.where(exists, self.starts[queries, np.newaxis] + positions, 0)
        return (rows if self.order is None else self.order[rows]), exists


@takes_options
def evaluate_rows(
    query_ids: Any,
    labels: Any,
    scores: Any,
    metrics: Sequence[str | StatefulMetric],
    *,
    groups: Any = None,
    sample_weight: Any = None,
    per_query: bool = False,
    **options: Unpack[Options],
) -> dict[str, Any]:
    """Computes ranking metrics of the rows of a table.

    >>> query_ids = ["b", "a", "b", "a", "b"]
    >>> labels, scores = [0, 1, 1, 0, 2], [0.2, 0.9, 0.3, 0.1, 0.1]
    >>> evaluate_rows(query_ids, labels, scores, ["mrr", "precision@1"])
    {'mrr': 1.0, 'precision@1': 1.0}
    >>> evaluate_rows(None, labels, scores, ["mrr"], groups=[2, 3], per_query=True)
    {'query': array([0, 1]), 'mrr': array([1., 1.])}

    Rows are padded to lists a few queries at a time, queries of similar length
    together, so that memory beyond the rows themselves stays bounded.

    Args:
        query_ids: The query id of each row, `[rows]`, in any order: integers, strings
            or another hashable type, the same in all rows; a NumPy array, a list or a
            column of a table. Or None, with `groups`.
        labels: The label of each row. A row with a label below 0 does not count.
        scores: The score of each row.
        metrics: Names and metric objects, as in `evaluate`.
        groups: The number of rows of each query, for rows that are sorted by query, as
            in LightGBM and XGBoost.
        sample_weight: One weight per row. If it is the same in all rows of a query, it
            is the weight of the query.
        per_query: If True, returns the value of each query instead of the mean.
        **options: Options for the metrics given by name, such as `gain="linear"` or
            `convention="trec_eval"`. See `tfrankmetrics.Options`.

    Returns:
        A dict like that of `evaluate`. With `per_query` its first key is `query`: the
        id of each query, or its number in `groups`, in the order of their first rows.

    Raises:
        ValueError: The columns have different lengths, the groups do not add up to the
            number of rows, a query id is missing, or `evaluate` would raise an error.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("evaluate_rows")
    named = named_measures(metrics, options)
    if per_query and "query" in named:
        raise ValueError(
            "With `per_query`, the key 'query' holds the query ids. Received: a metric "
            "with this name. Give it another one."
        )
    given = {"labels": labels, "scores": scores}
    if sample_weight is not None:
        given["sample_weight"] = sample_weight
    columns = {name: _numbers(name, column) for name, column in given.items()}
    if (query_ids is None) == (groups is None):
        raise ValueError(
            "Give either `query_ids`, one for each row, or `groups`, the number of "
            "rows of each query. Received: "
            + ("neither." if groups is None else "both.")
        )
    num_rows = len(columns["labels"])
    if groups is None:
        columns["query_ids"] = _column("query_ids", _exact_ids(query_ids))
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            f"All columns must have a value for each row. Received lengths: {lengths}."
        )
    if groups is None:
        ids, queries = _queries_of_ids(columns.pop("query_ids"))
    else:
        ids, queries = _queries_of_groups(groups, num_rows)

    _require_values(columns)
    values, weights = _by_query(named, queries, columns)
    computed = summarize(named, values, weights, per_query)
    return {"query": ids, **computed} if per_query else computed


def _by_query(
    named: Mapping[str, Measure], queries: _Queries, columns: dict[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Values and weights of all queries, `[metrics, queries]`."""
    num_queries = len(queries.lengths)
    values, weights = (np.zeros((len(named), num_queries)) for _ in range(2))
    by_length = np.argsort(queries.lengths, kind="stable")
    if any(measure["ties"] == "random" for measure in named.values()):
        by_length = np.arange(num_queries)  # random ties depend on the query's number
    measures, start = tuple(named.values()), 0
    while start < max(1, num_queries):
        # At most this many fit, since all are padded to the first one at least.
        shortest = max(1, queries.lengths[by_length[start : start + 1]].sum())
        part = by_length[start : start + max(1, ELEMENTS_AT_A_TIME // shortest)]
        part = part[: _how_many(queries.lengths[part])]
        rows, exists = queries.rows(part)
        labels = columns["labels"][rows]
        lists = read_labels(
            labels,
            columns["scores"][rows],
            columns["sample_weight"][rows] if "sample_weight" in columns else None,
            exists & ~(labels < 0),  # NaN is not padding
        )
        found = call_compiled(values_and_weights, measures, lists, start)
        values[:, part], weights[:, part] = found
        start += max(1, len(part))
    return values, weights


def _how_many(lengths: np.ndarray) -> int:
    """How many of the next queries fit in memory, padded to the longest of them."""
    numbers = np.maximum.accumulate(lengths) * np.arange(1, len(lengths) + 1)
    return max(1, int(np.searchsorted(numbers, ELEMENTS_AT_A_TIME, side="right")))


def _column(name: str, column: Any) -> np.ndarray:
    refuse_masked_arrays(f"`{name}`", column)
    rule = f"`{name}` must be one column, with a value for each row."
    try:
        array = np.asarray(column)
    except ValueError:
        raise ValueError(f"{rule} Received: values of different shapes.") from None
    if array.ndim != 1:
        raise ValueError(f"{rule} Received: shape {array.shape}.")
    return array


def _exact_ids(query_ids: Any) -> Any:
    """Ids in a list as an array: of objects, if NumPy would change them.

    It turns [1, "1"] into text, rounds large integers beside others, drops zeros at the
    end of text, and makes two dimensions of tuples.
    """
    if not isinstance(query_ids, (list, tuple)):
        return query_ids
    try:
        array = np.asarray(query_ids)
    except ValueError:  # tuples of different lengths
        array = np.empty(0)
    is_unchanged = array.ndim == 1 and array.tolist() == list(query_ids)
    return array if is_unchanged else np.fromiter(query_ids, object, len(query_ids))


def _numbers(name: str, column: Any) -> np.ndarray:
    array = _column(name, column)
    refuse_rounded_integers(f"`{name}`", column, array)
    if array.dtype.name == "bfloat16":  # not a dtype of NumPy itself
        return array.astype(np.float32)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"`{name}` must hold numbers. Received dtype: {array.dtype}.")
    return array


def _require_values(columns: dict[str, np.ndarray]) -> None:
    """Raises an error for values that would make a metric's result NaN."""
    labels, weights = columns["labels"], columns.get("sample_weight", np.zeros(1))
    bad_labels = ~np.isfinite(labels) & ~(labels < 0)
    if labels.dtype.kind in "iu":
        bad_labels |= labels >= 2**53
    for name, bad, rule in (
        ("labels", bad_labels, "finite, and integers below 2^53"),
        ("sample_weight", ~np.isfinite(weights) | (weights < 0), "finite, at least 0"),
    ):
        if bad.any():
            row = first_index(bad)[0]
            raise ValueError(
                f"`{name}` must hold numbers that are {rule}. Received: "
                f"{columns[name][row]} in row {row}."
            )


def _queries_of_groups(groups: Any, num_rows: int) -> tuple[np.ndarray, _Queries]:
    lengths = _column("groups", groups)
    if not np.issubdtype(lengths.dtype, np.integer) or (lengths < 0).any():
        raise ValueError(
            "`groups` must hold the number of rows of each query, integers of at least "
            f"0. Received dtype: {lengths.dtype}, smallest: {lengths.min(initial=0)}."
        )
    total = lengths.sum(dtype=np.float64)  # which does not wrap around, as int64 does
    if total != num_rows:
        raise ValueError(
            "`groups` must add up to the number of rows. Received: a sum of "
            f"{total:.0f} for {num_rows} rows."
        )
    lengths = lengths.astype(np.int64)
    ids = np.arange(len(lengths))
    return ids, _Queries(None, np.cumsum(lengths) - lengths, lengths)


def _queries_of_ids(ids: np.ndarray) -> tuple[np.ndarray, _Queries]:
    if ids.dtype == object:
        missing = np.array([_is_missing(each) for each in ids], bool)
    else:
        missing = ids != ids
    if np.any(missing):
        raise ValueError(
            "Every row must have a query id. Received a missing one in row "
            f"{np.flatnonzero(missing)[0]}."
        )
    keys = _numbered(ids) if ids.dtype == object else ids
    order = _stable_order(keys)
    keys = keys[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    lengths = np.diff(starts, append=len(keys))
    first = order[starts]
    appearance = np.argsort(first, kind="stable")
    queries = _Queries(order, starts[appearance], lengths[appearance])
    return ids[first[appearance]], queries


def _is_missing(query_id: Any) -> bool:
    """Whether an id is None, NaN, NaT or pandas.NA, which compares as unknown."""
    if query_id is None or type(query_id).__name__ == "NAType":
        return True
    return bool(query_id != query_id)


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


def _numbered(ids: np.ndarray) -> np.ndarray:
    """A number for each id, which may be of any type that a dict takes as a key."""
    kinds = {numbers.Number if isinstance(i, numbers.Number) else type(i) for i in ids}
    if len(kinds) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"Query ids must be of one type. Received: {names}.")
    numbered: dict[Any, int] = {}
    try:
        found = [numbered.setdefault(query, len(numbered)) for query in ids]
    except TypeError as error:
        raise ValueError(f"Query ids must be hashable. Received: {error}.") from None
    return np.array(found, int)
