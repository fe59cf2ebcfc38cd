"""Judgments and predictions as two tables of pairs, their join, and its rows.

A pair is a query and an item. Judged pairs have a label, and predicted pairs a score.
`files.py` reads such tables from files, and `evaluate_run.py` evaluates their join.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.read_column import (
    LABEL_RULE,
    as_column,
    as_numbers,
    as_objects,
    column,
    exact_scores,
    from_pytorch,
    has_large_int,
    is_frame,
    negated,
    require_labels,
    without_decimals,
)
from tfrankmetrics.columns.read_ids import are_missing, factorize, is_missing, values_at
from tfrankmetrics.evaluation.files import QRELS, RUN, in_float32, read_file
from tfrankmetrics.inputs.mistakes import warn
from tfrankmetrics.rules import shortened


class PairColumns(NamedTuple):
    """The names of the columns of two tables of pairs."""

    query: str
    item: str
    label: str
    score: str


class PairTable(NamedTuple):
    """One side of the join: a column each of queries, items, and labels or scores."""

    name: str  # of the argument, "qrels" or "run"
    queries: Any
    items: Any
    numbers: Any
    is_frame: bool = False
    rounded: Any = ()  # scores as trec_eval reads them, if a metric asks for these


class Join(NamedTuple):
    """Both sides, with a code for each query. Judged queries have the lowest codes."""

    judged: PairTable
    predicted: PairTable
    judged_codes: np.ndarray  # int [judged pairs], of their queries
    predicted_codes: np.ndarray  # int [predicted pairs], of their queries
    match: np.ndarray  # for each predicted pair, its judged pair, or -1
    first_rows: np.ndarray  # for each judged query, by its code, its first judged pair
    is_excluded: np.ndarray | None = None  # whether `exclude` has each judged pair

    @property
    def is_judged_query(self) -> np.ndarray:
        """Whether the query of each predicted pair was judged."""
        return self.predicted_codes < len(self.first_rows)

    @property
    def has_predictions(self) -> np.ndarray:
        """Whether each judged query has a prediction."""
        predicted = self.predicted_codes[self.is_judged_query]
        return np.bincount(predicted, minlength=len(self.first_rows)) > 0

    @property
    def ids(self) -> np.ndarray:
        """The ids of the judged queries, by their codes."""
        return values_at(self.judged.queries, self.first_rows)

    def rows(self, *, is_trec_eval: bool) -> dict[str, np.ndarray]:
        """The predicted items in their order, then the missed ones, as columns.

        The columns are "labels", "scores", "query", which is the code of each row's
        query, and "pair", which numbers the judged pairs first and then the predicted.

        A label below 0 means that the item was not judged. A query with such labels
        only gets one more item, of label 0 and not retrieved. Therefore it is counted
        as a query without relevant items, as in trec_eval, also where unjudged items
        are excluded.

        With `is_trec_eval`, scores are rounded, and the rows are sorted by their item
        ids, as text, in descending order.
        """
        labels, scores = self.judged.numbers, self.predicted.numbers
        if is_trec_eval:
            scores = self.predicted.rounded
        kept = np.flatnonzero(self.is_judged_query)
        is_missed = labels >= 0  # what is neither judged nor predicted is in no list
        is_missed[self.match[self.match >= 0]] = False
        missed = np.flatnonzero(is_missed)
        match = self.match[kept]
        kept_labels = np.where(match >= 0, labels[match], -1) if len(labels) else match
        of_judged = self.judged_codes[labels >= 0]
        has_labels = np.bincount(of_judged, minlength=len(self.first_rows)) > 0
        # The additional items stand for the first pairs of the queries without labels.
        without_labels = self.first_rows[~has_labels]
        zeros = np.zeros(len(without_labels), labels.dtype)
        added_labels = np.append(labels[missed], zeros)
        added = np.append(missed, without_labels)
        queries = self.predicted_codes[kept], self.judged_codes[added]
        rows = {
            "query": np.append(*queries),
            "labels": np.append(kept_labels, added_labels),
            "scores": np.append(scores[kept], np.full(len(added), -np.inf)),
            "pair": np.append(kept + len(labels), added),
        }
        if not is_trec_eval:
            return rows
        items = [*map(str, self.judged.items), *map(str, self.predicted.items)]
        names = sorted(set(items), reverse=True)
        place = dict(zip(names, range(len(names)), strict=True))
        order = np.argsort([place[items[pair]] for pair in rows["pair"]], kind="stable")
        return {name: column[order] for name, column in rows.items()}


def read_tables(qrels: Any, run: Any, names: PairColumns) -> tuple[Any, Any]:
    """Judgments and predictions, from files where these are paths."""
    ids = {"query": names.query, "item": names.item}
    if isinstance(qrels, (str, os.PathLike)):
        qrels = read_file(qrels, QRELS, {**ids, "label": names.label})
    if isinstance(run, (str, os.PathLike)):
        run = read_file(run, RUN, {**ids, "score": names.score})
    return qrels, run


def join_tables(
    qrels: Any,
    run: Any,
    names: PairColumns,
    exclude: Any,
    *,
    is_trec_eval: bool,
    lower_is_better: bool,
) -> Join:
    """Reads, checks and joins two tables, with `is_trec_eval` also rounded scores.

    Both are frames or dicts. `evaluate_run` describes the other arguments.

    Raises:
        ValueError: A value is wrong, `match_pairs` raises it, or no query is in both.
    """
    ids = {"query": names.query, "item": names.item}
    judged = _read_pairs("qrels", qrels, {**ids, "label": names.label})
    labels = as_numbers("labels", judged.numbers)
    require_labels(labels, " of `qrels`")
    labels = labels.astype(np.int64) if labels.dtype.kind == "u" else labels
    judged = judged._replace(numbers=labels)

    def read_run(convert: Callable[[Any], np.ndarray]) -> PairTable:
        # Of a dict, the scores of each query are converted before NumPy joins them.
        table = _read_pairs("run", run, {**ids, "score": names.score}, convert)
        scores = convert(as_numbers("scores", table.numbers))
        return table._replace(numbers=negated(scores) if lower_is_better else scores)

    predicted = read_run(exact_scores)
    rounded = predicted
    if is_trec_eval:
        rounded = read_run(in_precision_of_trec_eval)
    predicted = predicted._replace(rounded=rounded.numbers)
    is_excluded = None
    if exclude is not None:
        predicted = _without_excluded(predicted, exclude)
        is_excluded = _are_pairs_of(judged, exclude)

    joined = match_pairs(judged, predicted)._replace(is_excluded=is_excluded)
    if not joined.is_judged_query.any():
        raise ValueError(
            "`qrels` and `run` must have queries in common. Received: "
            f"{_examples(judged.queries)} in `qrels`, and "
            f"{_examples(predicted.queries)} in `run`."
        )
    return joined


def in_precision_of_trec_eval(scores: Any) -> np.ndarray:
    """Scores rounded to float32; -inf still means that an item was not retrieved."""
    return np.where(np.equal(scores, -np.inf), -np.inf, in_float32(scores))


def _without_excluded(predicted: PairTable, exclude: Any) -> PairTable:
    """The predictions without some items, as `exclude` of `evaluate_run` names them."""
    queries, items = _pairs_of(predicted)
    is_left = ~_are_pairs_of(predicted, exclude)
    if len(items) and is_left.all():
        warn(
            "`exclude` removes predictions from the run. Received: pairs of a query "
            f"and an item none of which is in the run, such as the query "
            f"{shortened(queries[0])} and the item {shortened(items[0])}. Ids must be "
            "of the same type as those of the run."
        )
    return PairTable(
        predicted.name,
        queries[is_left],
        items[is_left],
        predicted.numbers[is_left],
        rounded=predicted.rounded[is_left],
    )


def _pairs_of(table: PairTable) -> list[np.ndarray]:
    """The queries and the items of a table, as objects."""
    columns = table.queries, table.items
    return [as_objects(np.asarray(each).tolist()) for each in columns]


def _are_pairs_of(table: PairTable, exclude: Any) -> np.ndarray:
    """Whether each pair of a table is among those that `exclude` names."""
    queries, items = _pairs_of(table)
    if isinstance(exclude, str) and exclude == "identical_ids":
        return np.asarray(queries == items, bool)
    if not isinstance(exclude, Mapping):
        raise ValueError(
            "`exclude` must be a dict from queries to lists of items, or "
            f"'identical_ids'. Received: {shortened(exclude)}."
        )
    pairs = set()
    for query, excluded in exclude.items():
        if not _is_list(excluded):
            raise ValueError(
                "A dict of `exclude` must contain a list of items for each query. "
                f"Received: {shortened(excluded)} for the query {shortened(query)}."
            )
        pairs |= {(query, item) for item in _listed(excluded)}
    found = [pair in pairs for pair in zip(queries, items, strict=True)]
    return np.array(found, bool)


def _read_pairs(
    name: str,
    data: Any,
    columns: dict[str, str],
    convert: Callable[[Any], np.ndarray] = np.asarray,
) -> PairTable:
    """The pairs of a frame with these columns, or of a dict of queries.

    `convert` converts the numbers of each query in a dict.
    """
    if is_frame(data):
        found = (column(data, name_, each) for each, name_ in columns.items())
        return PairTable(name, *found, is_frame=True)
    if not isinstance(data, Mapping):
        raise ValueError(
            f"`{name}` must be a frame with the columns "
            f"{', '.join(map(repr, columns.values()))}, a dict of queries, or the path "
            f"of a file. Received: {shortened(data)}."
        )
    queries, items, numbers_of_queries = [], [], []
    for query, of_query in data.items():
        found, values = _items_of(name, query, of_query)
        queries += [query] * len(found)
        items += found
        numbers_of_queries.append(convert(_exact_numbers(name, query, values)))
    numbers = np.concatenate(numbers_of_queries or [np.zeros(0)])
    return PairTable(name, as_objects(queries), as_objects(items), numbers)


def _items_of(name: str, query: Any, of_query: Any) -> tuple[list[Any], Any]:
    """The items of a query, and the label or score of each."""
    if isinstance(of_query, Mapping):
        items, values = [*of_query], [*of_query.values()]
    elif _is_list(of_query):
        if name == "run" and isinstance(of_query, (set, frozenset)):
            raise ValueError(
                "A ranked list must be ordered, best first. Received: a set for the "
                f"query {shortened(query)}."
            )
        items = _listed(of_query)
        if name == "run" and items and all(map(_has_score, items)):
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
            f"query. Received: {shortened(of_query)} for the query {shortened(query)}. "
            "Leave out a query without any."
        )
    if name == "qrels" and not items:
        raise ValueError(
            "Each query of `qrels` must have an item. Received: none for the query "
            f"{shortened(query)}. Remove the query, or add an item of label 0."
        )
    return items, values


def _has_score(item: Any) -> bool:
    """Whether an item is a pair of an id and its score."""
    is_pair = isinstance(item, tuple) and len(item) == 2
    return is_pair and isinstance(item[1], float)


def _listed(items: Iterable[Any]) -> list[Any]:
    """The items of a list, or of an array of any library."""
    for convert in ("to_pylist", "as_py"):  # of an array and a scalar of Arrow
        if hasattr(items, convert):
            return getattr(items, convert)()
    if hasattr(items, "dtype"):
        return np.asarray(from_pytorch(items)).tolist()
    return [*items]


def _is_list(items: Any) -> bool:
    """Whether items are a list, a set or an array of them, rather than one item."""
    is_one = isinstance(items, (str, bytes)) or getattr(items, "ndim", 1) == 0
    return isinstance(items, Iterable) and not is_one


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
        table, row = judged, int(second[is_twice][0])
        if row >= num_first:
            table, row = predicted, row - num_first
        (query,), (item,) = (
            values_at(each, [row]).tolist() for each in (table.queries, table.items)
        )
        where = f", the second time in row {row}" if table.is_frame else ""
        error = error_of_pair_twice(table.name, query, item, where)
        if table.is_frame and table.name == "run":
            error += " If the rows are of several models, name their column: "
            error += "model='...'."
        raise ValueError(error)
    match = np.full(len(keys) - num_first, -1)
    match[second[is_equal] - num_first] = first[is_equal]
    _, first_rows = np.unique(queries[:num_first], return_index=True)
    codes = queries[:num_first], queries[num_first:]
    return Join(judged, predicted, *codes, match, first_rows)


def error_of_pair_twice(table: str, query: Any, item: Any, where: str = "") -> str:
    """The error for a pair that occurs twice in a table."""
    return (
        f"A pair of a query and an item must be in `{table}` only once. Received: the "
        f"query {shortened(query)} with the item {shortened(item)} twice{where}."
    )


def _codes(name: str, judged: Any, predicted: Any) -> np.ndarray:
    """The same number for the same ids of both tables, in the order of appearance."""
    ids_of = f"The ids of {'queries' if name == 'query' else 'items'}"
    both: Any = judged, predicted
    are_pandas = all(type(each).__module__.startswith("pandas") for each in both)
    if not are_pandas or judged.dtype != predicted.dtype:  # pandas would convert ids
        both = judged, predicted = [as_column(name, each) for each in both]
        are_pandas = False
    kinds = {kind for each in both if (kind := _kind(each)) is not None}
    if len(kinds) > 1:
        raise ValueError(
            f"{ids_of} must have the same type in `qrels` and `run`. Received: "
            f"{_kind(judged)} and {_kind(predicted)}. Convert one of them."
        )
    if are_pandas:
        import pandas  # loaded already, since the user passed such columns

        try:
            codes, _ = pandas.concat(both).factorize()
        except TypeError as error:
            text = f"{ids_of} must be hashable. Received: {error}."
            raise ValueError(text) from None
        missing = codes < 0
    else:
        if judged.dtype.kind == predicted.dtype.kind and judged.dtype.kind in "iuSU":
            ids = np.concatenate(both)
        else:
            ids = as_objects([*judged.tolist(), *predicted.tolist()])
        missing = are_missing(ids)
        codes = factorize(ids_of, ids)[1]
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
    one = values_at(ids, [0]).tolist()[0] if len(ids) else None
    if isinstance(one, (str, bytes)):
        return type(one).__name__
    is_number = isinstance(one, (int, float)) and not is_missing(one)
    return "numbers" if is_number else None


def _examples(ids: Any) -> str:
    if len(ids) == 0:
        return "none"
    some = values_at(ids, [*range(min(100, len(ids)))])
    distinct = [*dict.fromkeys(map(shortened, some))]
    return ", ".join(distinct[:3])
