"""Judgments and predictions as two tables of pairs, and their join.

A pair is a query and an item. Judged pairs have a label, and predicted pairs a score.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.frames import column, is_frame
from tfrankmetrics.columns.slices import rows_of
from tfrankmetrics.columns.values import (
    LABEL_RULE,
    are_missing,
    as_numbers,
    as_objects,
    factorize,
    from_pytorch,
    has_large_int,
    is_missing,
    negated,
    require_labels,
    without_decimals,
)
from tfrankmetrics.inputs.mistakes import warn
from tfrankmetrics.rules import shortened

Conversion = Callable[[Any], np.ndarray]


class Pairs(NamedTuple):
    """One side of the join: a column each of queries, items and numbers."""

    name: str  # of the argument
    queries: Any
    items: Any
    numbers: Any


class Join(NamedTuple):
    """Both sides, with a code for each query. Judged queries have the lowest codes."""

    judged_queries: np.ndarray  # int [judged pairs]
    predicted_queries: np.ndarray  # int [predicted pairs]
    match: np.ndarray  # for each predicted pair, its judged pair, or -1
    first_rows: np.ndarray  # for each judged query, by its code, its first judged pair

    @property
    def is_judged_query(self) -> np.ndarray:
        """Whether the query of each predicted pair was judged."""
        return self.predicted_queries < len(self.first_rows)

    @property
    def has_predictions(self) -> np.ndarray:
        """Whether each judged query has a prediction."""
        predicted = self.predicted_queries[self.is_judged_query]
        return np.bincount(predicted, minlength=len(self.first_rows)) > 0


def read_judgments(qrels: Any, query: str, item: str, label: str) -> Pairs:
    """Judged pairs, from a frame, or a dict of dicts or of relevant items."""
    pairs = _read("qrels", qrels, {"query": query, "item": item, "label": label})
    labels = as_numbers("labels", pairs.numbers)
    require_labels(labels, " of `qrels`")
    return pairs._replace(
        numbers=labels.astype(np.int64) if labels.dtype.kind == "u" else labels
    )


def read_predictions(
    run: Any,
    query: str,
    item: str,
    score: str,
    convert: Conversion,
    exclude: Any = None,
    lower_is_better: bool = False,
) -> Pairs:
    """Predicted pairs, from a frame, or a dict of dicts or of ranked lists.

    `convert` converts the scores of a query in a dict, or of a column, to floats.
    `exclude` and `lower_is_better` are arguments of `evaluate_run`.
    """
    pairs = _read("run", run, {"query": query, "item": item, "score": score}, convert)
    scores = convert(as_numbers("scores", pairs.numbers))
    pairs = pairs._replace(numbers=negated(scores) if lower_is_better else scores)
    return pairs if exclude is None else _without_excluded(pairs, exclude)


def _without_excluded(predicted: Pairs, exclude: Any) -> Pairs:
    """The predictions without some items, as `exclude` of `evaluate_run` names them."""
    queries, items = (
        as_objects(np.asarray(each).tolist())
        for each in (predicted.queries, predicted.items)
    )
    if isinstance(exclude, str) and exclude == "identical_ids":
        is_excluded = queries == items
    elif isinstance(exclude, Mapping):
        pairs = {
            (query, item)
            for query, excluded in exclude.items()
            for item in _excluded_items(query, excluded)
        }
        found = [pair in pairs for pair in zip(queries, items, strict=True)]
        is_excluded = np.array(found, bool)
    else:
        raise ValueError(
            "`exclude` must be a dict from queries to lists of items, or "
            f"'identical_ids'. Received: {shortened(exclude)}."
        )
    if len(items) and not np.any(is_excluded):
        warn(
            "`exclude` removes predictions from the run. Received: pairs of a query "
            f"and an item none of which is in the run, such as the query "
            f"{shortened(queries[0])} and the item {shortened(items[0])}. Ids must be "
            "of the same type as those of the run."
        )
    kept = np.flatnonzero(~np.asarray(is_excluded, bool))
    numbers = np.asarray(predicted.numbers)[kept]
    return Pairs(predicted.name, queries[kept], items[kept], numbers)


def _is_pair(item: Any) -> bool:
    """Whether an item is a pair of an id and a score, a float."""
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], float)


def _excluded_items(query: Any, items: Any) -> list[Any]:
    if isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
        raise ValueError(
            "A dict of `exclude` must contain a list of items for each query. "
            f"Received: {shortened(items)} for the query {shortened(query)}."
        )
    return _listed(items)


def _read(
    name: str, data: Any, columns: dict[str, str], convert: Conversion = np.asarray
) -> Pairs:
    arguments, names = [*columns], [*columns.values()]
    if is_frame(data):
        return Pairs(name, *(column(data, names[i], arguments[i]) for i in range(3)))
    if not isinstance(data, Mapping):
        raise ValueError(
            f"`{name}` must be a frame with the columns {', '.join(map(repr, names))}, "
            "a dict of queries, or the path of a file. Received: "
            f"{shortened(data)}."
        )
    queries, items, values_of_queries = [], [], []
    for query, of_query in data.items():
        found, values = _items_of(name, query, of_query)
        queries += [query] * len(found)
        items += found
        values = _numbers(name, query, values)
        values_of_queries.append(convert(values))
    return Pairs(
        name,
        as_objects(queries),
        as_objects(items),
        np.concatenate(values_of_queries or [np.zeros(0)]),
    )


def _items_of(name: str, query: Any, of_query: Any) -> tuple[list[Any], Any]:
    """The items of a query, and the label or score of each."""
    if isinstance(of_query, Mapping):
        items, values = [*of_query], [*of_query.values()]
    elif isinstance(of_query, Iterable) and not isinstance(of_query, (str, bytes)):
        if name == "run" and isinstance(of_query, (set, frozenset)):
            raise ValueError(
                "A ranked list must be ordered, best first. Received: a set for the "
                f"query {shortened(query)}."
            )
        items = _listed(of_query)
        if name == "run" and items and all(map(_is_pair, items)):
            raise ValueError(
                "A ranked list of `run` must contain the ids of items. Received: pairs "
                f"of an item and a score for the query {shortened(query)}, such as "
                f"{shortened(items[0])}. Pass a dict from items to scores: "
                "dict(pairs)."
            )
        values = np.ones(len(items)) if name == "qrels" else -np.arange(len(items))
    else:
        raise ValueError(
            f"A dict of `{name}` must contain a dict or a list of items for each "
            f"query. Received: {shortened(of_query)} for the query {shortened(query)}."
        )
    if name == "qrels" and not items:
        raise ValueError(
            "Each query of `qrels` must have an item. Received: none for the query "
            f"{shortened(query)}. Remove the query, or add an item of label 0."
        )
    return items, values


def _listed(items: Iterable[Any]) -> list[Any]:
    """The items of a list, or of an array of any library."""
    if hasattr(items, "dtype"):
        return np.asarray(from_pytorch(items)).tolist()
    return [*items]


def _numbers(name: str, query: Any, values: Any) -> Any:
    """The values of a query. Raises ValueError unless they are exact numbers."""
    given = np.asarray(values)
    array = without_decimals(given)
    if array.dtype.kind in "OUS":
        others = [each for each in values if not isinstance(each, numbers.Real)]
        if others:
            raise ValueError(
                f"`{name}` must hold a number for each item. Received: "
                f"{shortened(others[0])} for the query {shortened(query)}."
            )
    if name == "qrels" and has_large_int(values, array):
        raise ValueError(
            f"{LABEL_RULE} Received: {shortened(values)} for the query "
            f"{shortened(query)}."
        )
    return values if array is given else array


def join(judged: Pairs, predicted: Pairs) -> Join:
    """Finds the pairs that are in both tables.

    Raises:
        ValueError: `match_pairs` raises it, or no query is in both tables.
    """
    joined = match_pairs(judged, predicted)
    if not joined.is_judged_query.any():
        raise ValueError(
            "`qrels` and `run` must have queries in common. Received: "
            f"{_examples(judged.queries)} in `qrels`, and "
            f"{_examples(predicted.queries)} in `run`."
        )
    return joined


def match_pairs(judged: Pairs, predicted: Pairs) -> Join:
    """The join of any two tables, even without a common query.

    Raises:
        ValueError: A table contains a pair twice, an id is missing, or the ids of the
            tables are of different types.
    """
    queries, items = (
        _codes(name, first, second)
        for name, first, second in (
            ("query", judged.queries, predicted.queries),
            ("item", judged.items, predicted.items),
        )
    )
    num_first = len(judged.queries)
    keys = queries * (items.max(initial=0) + 1) + items
    order = np.argsort(keys, kind="stable")  # a judged pair before its prediction
    first, second = order[:-1], order[1:]
    is_equal = keys[first] == keys[second]
    is_twice = is_equal & ((first < num_first) == (second < num_first))
    if is_twice.any():
        _refuse_pair(judged, predicted, int(second[is_twice][0]))
    match = np.full(len(keys) - num_first, -1)
    match[second[is_equal] - num_first] = first[is_equal]
    _, first_rows = np.unique(queries[:num_first], return_index=True)
    return Join(queries[:num_first], queries[num_first:], match, first_rows)


def _refuse_pair(judged: Pairs, predicted: Pairs, row: int) -> None:
    table = judged
    if row >= len(judged.queries):
        table, row = predicted, row - len(judged.queries)
    query, item = (
        rows_of(name, name, values, [row]).tolist()[0]
        for name, values in (("query", table.queries), ("item", table.items))
    )
    where = f", the second time in row {row}"
    hint = ""
    if table.name == "run":
        hint = " If the rows are of several models, name their column: model='...'."
    raise ValueError(pair_twice(table.name, query, item, where) + hint)


def pair_twice(table: str, query: Any, item: Any, where: str = "") -> str:
    """The error for a pair that occurs twice in a table."""
    return (
        f"A pair of a query and an item must be in `{table}` only once. Received: the "
        f"query {shortened(query)} with the item {shortened(item)} twice{where}."
    )


def _codes(name: str, first: Any, second: Any) -> np.ndarray:
    """The same number for the same ids of both tables, in the order of appearance."""
    library = type(first).__module__.partition(".")[0]
    is_pandas = type(second).__module__.partition(".")[0] == library == "pandas"
    if is_pandas and first.dtype == second.dtype:  # others would be converted
        _require_same_type(name, first, second)
        import pandas  # loaded already, since the user passed such columns

        try:
            codes, _ = pandas.concat([first, second]).factorize()
        except TypeError as error:
            raise ValueError(
                f"The ids of {_PLURAL[name]} must be hashable. Received: {error}."
            ) from None
        return _require_ids(name, codes < 0, codes, len(first))
    first, second = (_as_ids(name, each) for each in (first, second))
    _require_same_type(name, first, second)
    if first.dtype.kind == second.dtype.kind and first.dtype.kind in "iuSU":
        return factorize("Ids", np.concatenate([first, second]))[1]
    ids = as_objects([*first.tolist(), *second.tolist()])
    missing = are_missing(ids)
    _require_ids(name, missing, missing, len(first))
    return factorize(f"The ids of {_PLURAL[name]}", ids)[1]


_PLURAL = {"query": "queries", "item": "items"}


def _as_ids(name: str, ids: Any) -> np.ndarray:
    array = np.asarray(ids)
    if array.ndim != 1:
        raise ValueError(
            f"The ids of {_PLURAL[name]} must be one column. Received: shape "
            f"{array.shape}."
        )
    return array


def _require_ids(
    name: str, missing: np.ndarray, codes: np.ndarray, num_first: int
) -> np.ndarray:
    if missing.any():
        row = int(np.argmax(missing))
        table = "qrels" if row < num_first else "run"
        raise ValueError(
            f"Every row must contain an id of its {name}. Received: a missing one in "
            f"row {row if row < num_first else row - num_first} of `{table}`."
        )
    return codes


def _require_same_type(name: str, first: Any, second: Any) -> None:
    """Raises ValueError if the ids are numbers in one table and text in the other."""
    kinds = [_kind(each) for each in (first, second)]
    if None not in kinds and kinds[0] != kinds[1]:
        raise ValueError(
            f"The ids of {_PLURAL[name]} must have the same type in `qrels` and `run`. "
            f"Received: {kinds[0]} and {kinds[1]}. Convert one of them."
        )


def _kind(ids: Any) -> str | None:
    """Whether ids are numbers or text, by the first of them."""
    if len(ids) == 0:
        return None
    one = rows_of("id", "id", ids, [0]).tolist()[0]
    if is_missing(one):
        return None  # which is a separate error
    if isinstance(one, (str, bytes)):
        return type(one).__name__
    return "numbers" if isinstance(one, (int, float)) else None


def _examples(ids: Any) -> str:
    if len(ids) == 0:
        return "none"
    some = rows_of("id", "id", ids, [*range(min(100, len(ids)))])
    distinct = [*dict.fromkeys(map(shortened, some))]
    return ", ".join(distinct[:3])
