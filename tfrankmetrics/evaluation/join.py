"""Judgments and predictions as two tables of pairs, and their join.

A pair is a query and an item. Judged pairs have a label, and predicted pairs a score.
`files.py` reads such tables from files, and `evaluate_run.py` evaluates their join.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.frames import column, is_frame
from tfrankmetrics.columns.read_column import (
    LABEL_RULE,
    are_missing,
    as_column,
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
from tfrankmetrics.columns.slices import values_at
from tfrankmetrics.inputs.mistakes import warn
from tfrankmetrics.rules import shortened

Conversion = Callable[[Any], np.ndarray]


class PairTable(NamedTuple):
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


def read_judgments(qrels: Any, query: str, item: str, label: str) -> PairTable:
    """Judged pairs, from a frame, or a dict of dicts or of relevant items."""
    pairs = _read_pairs("qrels", qrels, {"query": query, "item": item, "label": label})
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
) -> PairTable:
    """Predicted pairs, from a frame, or a dict of dicts or of ranked lists.

    `convert` converts the scores of a query in a dict, or of a column, to floats.
    `exclude` and `lower_is_better` are arguments of `evaluate_run`.
    """
    pairs = _read_pairs(
        "run", run, {"query": query, "item": item, "score": score}, convert
    )
    scores = convert(as_numbers("scores", pairs.numbers))
    pairs = pairs._replace(numbers=negated(scores) if lower_is_better else scores)
    return pairs if exclude is None else _without_excluded(pairs, exclude)


def _without_excluded(predicted: PairTable, exclude: Any) -> PairTable:
    """The predictions without some items, as `exclude` of `evaluate_run` names them."""
    queries = as_objects(np.asarray(predicted.queries).tolist())
    items = as_objects(np.asarray(predicted.items).tolist())
    if isinstance(exclude, str) and exclude == "identical_ids":
        is_excluded = np.asarray(queries == items, bool)
    elif isinstance(exclude, Mapping):
        pairs = set()
        for query, excluded in exclude.items():
            if isinstance(excluded, (str, bytes)) or not isinstance(excluded, Iterable):
                raise ValueError(
                    "A dict of `exclude` must contain a list of items for each query. "
                    f"Received: {shortened(excluded)} for the query {shortened(query)}."
                )
            pairs |= {(query, item) for item in _listed(excluded)}
        found = [pair in pairs for pair in zip(queries, items, strict=True)]
        is_excluded = np.array(found, bool)
    else:
        raise ValueError(
            "`exclude` must be a dict from queries to lists of items, or "
            f"'identical_ids'. Received: {shortened(exclude)}."
        )
    if len(items) and not is_excluded.any():
        warn(
            "`exclude` removes predictions from the run. Received: pairs of a query "
            f"and an item none of which is in the run, such as the query "
            f"{shortened(queries[0])} and the item {shortened(items[0])}. Ids must be "
            "of the same type as those of the run."
        )
    numbers = np.asarray(predicted.numbers)[~is_excluded]
    return PairTable(
        predicted.name, queries[~is_excluded], items[~is_excluded], numbers
    )


def _read_pairs(
    name: str, data: Any, columns: dict[str, str], convert: Conversion = np.asarray
) -> PairTable:
    """The pairs of a frame with these columns, or of a dict of queries."""
    if is_frame(data):
        return PairTable(name, *(column(data, n, each) for each, n in columns.items()))
    if not isinstance(data, Mapping):
        raise ValueError(
            f"`{name}` must be a frame with the columns "
            f"{', '.join(map(repr, columns.values()))}, a dict of queries, or the path "
            f"of a file. Received: {shortened(data)}."
        )
    queries, items, values_of_queries = [], [], []
    for query, of_query in data.items():
        found, values = _items_of(name, query, of_query)
        queries += [query] * len(found)
        items += found
        values = _exact_numbers(name, query, values)
        values_of_queries.append(convert(values))
    return PairTable(
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
        if (
            name == "run"
            and items
            and all(
                isinstance(each, tuple)
                and len(each) == 2
                and isinstance(each[1], float)
                for each in items
            )
        ):
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


def _exact_numbers(name: str, query: Any, values: Any) -> Any:
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


def join(judged: PairTable, predicted: PairTable) -> Join:
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


def match_pairs(judged: PairTable, predicted: PairTable) -> Join:
    """The join of any two tables, even without a common query.

    Raises:
        ValueError: A table contains a pair twice, an id is missing, or the ids of the
            tables are of different types.
    """
    queries = _codes("query", judged.queries, predicted.queries)
    items = _codes("item", judged.items, predicted.items)
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


def _refuse_pair(judged: PairTable, predicted: PairTable, row: int) -> None:
    table = judged
    if row >= len(judged.queries):
        table, row = predicted, row - len(judged.queries)
    query = values_at("query", "query", table.queries, [row]).tolist()[0]
    item = values_at("item", "item", table.items, [row]).tolist()[0]
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


PLURAL = {"query": "queries", "item": "items"}


def _codes(name: str, judged: Any, predicted: Any) -> np.ndarray:
    """The same number for the same ids of both tables, in the order of appearance."""
    rule = f"The ids of {PLURAL[name]} must"
    both: Any = judged, predicted
    are_pandas = all(type(each).__module__.startswith("pandas") for each in both)
    if not are_pandas or judged.dtype != predicted.dtype:  # pandas would convert ids
        both = judged, predicted = [as_column(name, each) for each in both]
        are_pandas = False
    kinds = {kind for each in both if (kind := _kind(each)) is not None}
    if len(kinds) > 1:
        raise ValueError(
            f"{rule} have the same type in `qrels` and `run`. Received: "
            f"{_kind(judged)} and {_kind(predicted)}. Convert one of them."
        )
    if are_pandas:
        import pandas  # loaded already, since the user passed such columns

        try:
            codes, _ = pandas.concat(both).factorize()
        except TypeError as error:
            raise ValueError(f"{rule} be hashable. Received: {error}.") from None
        missing = codes < 0
    else:
        if judged.dtype.kind == predicted.dtype.kind and judged.dtype.kind in "iuSU":
            ids = np.concatenate(both)
        else:
            ids = as_objects([*judged.tolist(), *predicted.tolist()])
        missing = are_missing(ids)
        codes = factorize(f"The ids of {PLURAL[name]}", ids)[1]
    if missing.any():
        row, table = int(np.argmax(missing)), "qrels"
        if row >= len(judged):
            row, table = row - len(judged), "run"
        raise ValueError(
            f"Every row must contain an id of its {name}. Received: a missing one in "
            f"row {row} of `{table}`."
        )
    return codes


def _kind(ids: Any) -> str | None:
    """Whether ids are numbers or text, by the first of them; None if it is missing."""
    one = values_at("id", "id", ids, [0]).tolist()[0] if len(ids) else None
    if isinstance(one, (str, bytes)):
        return type(one).__name__
    is_number = isinstance(one, (int, float)) and not is_missing(one)
    return "numbers" if is_number else None


def _examples(ids: Any) -> str:
    if len(ids) == 0:
        return "none"
    some = values_at("id", "id", ids, [*range(min(100, len(ids)))])
    distinct = [*dict.fromkeys(map(shortened, some))]
    return ", ".join(distinct[:3])
