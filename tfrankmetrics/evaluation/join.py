"""Judgments and predictions as two tables of pairs, their join, and its rows.

A pair is a query and an item. Judged pairs have a label, and predicted pairs a score.
`files.py` reads such tables from files, and `evaluate_run.py` evaluates their join.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Number
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.arguments import Names
from tfrankmetrics.arrays.numpy import without_denormals
from tfrankmetrics.columns.numbered_ids import Ids, number_ids
from tfrankmetrics.columns.read_column import (
    as_numbers,
    as_objects,
    as_row,
    by_index,
    collected,
    column,
    exact_scores,
    from_pytorch,
    is_frame,
    negated,
    require_labels,
    without_objects,
)
from tfrankmetrics.evaluation.subtopic_labels import (
    SubtopicLabels,
    read_subtopics,
)
from tfrankmetrics.evaluation.trec_files import (
    QRELS,
    RUN,
    SUBTOPIC_QRELS,
    FileColumns,
    read_file,
)
from tfrankmetrics.inputs.mistakes import warn
from tfrankmetrics.rules import shortened

ROW_OF_FRAME = "row {}".format  # for errors
LOWEST_SCORE = float(np.finfo(np.float32).min)


class PairColumns(NamedTuple):
    """The names of the columns of two tables of pairs."""

    query: str
    item: Names
    label: str
    score: str
    subtopic: str | None = None  # None if a pair is judged once


class PairTable(NamedTuple):
    """Pairs as columns; those to exclude have no numbers."""

    name: str  # of the argument: "qrels", "run" or "exclude"
    queries: Any
    items: Any
    numbers: Any = ()  # labels or scores
    rounded: Any = ()  # scores as trec_eval reads them
    place: Callable[[int], str] | None = None  # of a row, for errors
    has_ranks: bool = False  # whether scores follow from ranks or ranked lists
    subtopics: Any = None  # if a row judges an item for one of them

    @property
    def place_of_ids(self) -> str:
        """Where a row is, for errors about ids."""
        return (
            f"row {{}} of `{self.name}`"
            if self.place is ROW_OF_FRAME
            else f"`{self.name}`"
        )

    def place_of_number(self, row: int) -> str:
        """Where a label or a score is, for errors."""
        if self.place is not None:
            return f"in {self.place_of_ids.format(row)}"
        (query,) = self.queries.at(self.queries.codes[[row]])  # of a dict
        return f"for the query {shortened(query)}"


class Join(NamedTuple):
    """Judged pairs, and predicted pairs of judged queries, which have codes from 0."""

    query_ids: Ids
    item_ids: Ids
    ids: np.ndarray  # of the judged queries, by their codes
    judged_codes: np.ndarray  # int [judged pairs], of their queries
    predicted_codes: np.ndarray  # int [predicted pairs], of their queries
    item_codes: np.ndarray  # int [all pairs of both tables], the judged ones first
    labels: np.ndarray  # [judged pairs]
    scores: np.ndarray  # [predicted pairs]
    rounded: np.ndarray  # the scores as trec_eval reads them
    pairs: np.ndarray  # for each predicted pair, its number among all pairs
    match: np.ndarray  # for each predicted pair, its judged pair, or -1
    first_rows: np.ndarray  # for each judged query, its first judged pair
    has_predictions: np.ndarray  # for each judged query
    is_excluded: np.ndarray  # whether each judged pair is among those to exclude
    of_run: np.ndarray  # the numbers of predicted pairs, including queries not judged
    unjudged_queries: np.ndarray  # the codes of predicted queries that were not judged
    # The labels of the judged pairs, if rows of the judgments have subtopics.
    by_subtopic: SubtopicLabels | None = None

    @property
    def query_of_rows(self) -> np.ndarray:
        """The code of the query in each row of the judgments."""
        if self.by_subtopic is None:  # each row is a pair
            return self.judged_codes
        return self.judged_codes[self.by_subtopic.pairs]

    def rows(self, *, is_trec_eval: bool) -> dict[str, np.ndarray]:
        """The predicted items in their order, then the missed ones, as columns.

        The columns are "labels", "scores", "query", which is the code of each row's
        query, and "pair", which numbers the judged pairs first and then the predicted.
        With subtopics, "judgment" is the number of the judged pair, or -1.

        A label below 0 means that the item was not judged. A query with such labels
        only gets one more item, of label 0 and not retrieved. It then counts as a query
        without relevant items, as in trec_eval, even where unjudged items are excluded.

        With `is_trec_eval`, scores are rounded, and tied rows are in the descending
        order of their item ids, as text.
        """
        if not is_trec_eval:
            return self._rows(self.scores)
        rows = self._rows(self.rounded)
        tied = _tied_rows(rows["query"], rows["scores"])
        texts = [*map(str, self.item_ids.at(self.item_codes[rows["pair"][tied]]))]
        # Python sorts text by its code points, which is the order of its bytes.
        descending = sorted(range(len(tied)), key=texts.__getitem__, reverse=True)
        for values in rows.values():
            values[tied] = values[tied[descending]]
        return rows

    def _rows(self, scores: np.ndarray) -> dict[str, np.ndarray]:
        labels, match = self.labels, self.match
        of_predicted = np.where(match >= 0, labels[match], -1)
        is_missed = labels >= 0  # what is neither judged nor predicted is in no list
        is_missed[match[match >= 0]] = False
        of_judged = self.judged_codes[labels >= 0]
        has_labels = np.bincount(of_judged, minlength=len(self.ids)) > 0
        # The additional items stand for the first pairs of the queries without labels.
        added = np.append(np.flatnonzero(is_missed), self.first_rows[~has_labels])
        not_retrieved = np.full(len(added), -np.inf, np.float32)
        rows = {
            "query": np.append(self.predicted_codes, self.judged_codes[added]),
            "labels": np.append(of_predicted, np.maximum(labels[added], 0)),
            "scores": np.append(scores, not_retrieved),
            "pair": np.append(self.pairs, added),
        }
        if self.by_subtopic is not None:
            rows["judgment"] = np.append(match, added)
            rows["id_ranks"] = self.by_subtopic.id_ranks[rows["judgment"]]
        return rows


def _tied_rows(queries: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The rows whose score, a float32, is that of another row of the query.

    Items that were not retrieved, whose score is -inf, are not tied.
    """
    # A query and a score as one integer; adding 0 makes 0 of -0.
    keys = queries.astype(np.int64) << 32 | (scores + np.float32(0)).view(np.uint32)
    order = np.argsort(keys)
    is_next = np.diff(keys[order]) == 0
    is_tied = np.zeros(len(order), bool)
    is_tied[order[1:]] |= is_next
    is_tied[order[:-1]] |= is_next
    return np.flatnonzero(is_tied & (scores != -np.inf))


def read_tables(qrels: Any, run: Any, names: PairColumns) -> tuple[Any, Any]:
    """Judgments and predictions, from files where these are paths."""
    ids = ids_of_qrels = {"query": names.query, "item": names.item}
    if isinstance(qrels, (str, os.PathLike)):
        layout = QRELS
        if names.subtopic is not None:
            layout, ids_of_qrels = SUBTOPIC_QRELS, {**ids, "subtopic": names.subtopic}
        qrels = read_file(qrels, layout, {**ids_of_qrels, "label": names.label})
    if isinstance(run, (str, os.PathLike)):
        run = read_file(run, RUN, {**ids, "score": names.score})
    return collected(qrels), collected(run)


def join_tables(
    qrels: Any, run: Any, names: PairColumns, exclude: Any, *, lower_is_better: bool
) -> Join:
    """Reads, checks and joins two tables.

    Both are frames or dicts. `evaluate_run` describes the other arguments.

    Raises:
        ValueError: A value is wrong, `match_pairs` raises it, or no query is in both.
    """
    ids = {"query": names.query, "item": names.item}
    judged = _read_labels(_read_pairs("qrels", qrels, {**ids, "label": names.label}))
    if names.subtopic is not None:
        judged = judged._replace(subtopics=_subtopics_of(qrels, names.subtopic))
    predicted = _read_scores(_read_pairs("run", run, {**ids, "score": names.score}))
    if lower_is_better and predicted.has_ranks:
        raise ValueError(
            "`lower_is_better` is for scores. Received: ranked lists, or a file of "
            "ranks, of which rank 1 is the best in any case. Omit `lower_is_better`."
        )
    if lower_is_better:
        scores, rounded = map(negated, (predicted.numbers, predicted.rounded))
        predicted = predicted._replace(numbers=scores, rounded=rounded)
    joined = match_pairs(judged, predicted, _pairs_to_exclude(exclude, predicted, ids))
    if not len(joined.pairs):
        of_tables = (joined.judged_codes, joined.unjudged_queries)
        of_qrels, of_run = (_examples(joined.query_ids, each) for each in of_tables)
        raise ValueError(
            "`qrels` and `run` must have queries in common. Received: "
            f"{of_qrels} in `qrels`, and {of_run} in `run`."
        )
    return joined


def _read_labels(judged: PairTable) -> PairTable:
    """The judgments with checked labels."""
    name = "qrels" if judged.place is None else "labels"
    labels = as_numbers(name, judged.numbers, judged.place_of_number)
    require_labels(labels, judged.place_of_number)
    labels = labels.astype(np.int64) if labels.dtype.kind == "u" else labels
    return judged._replace(numbers=labels)


def _subtopics_of(qrels: Any, name: str) -> Any:
    """The subtopic of each row of the judgments."""
    if is_frame(qrels):
        return column(qrels, name, "subtopic")
    subtopics = getattr(qrels, "subtopics", None)
    if subtopics is None:
        received = qrels.path if isinstance(qrels, FileColumns) else qrels
        raise ValueError(
            "Judgments of subtopics must be a frame with a column of subtopics, or a "
            "file of lines with a query, a subtopic, an item and a label. Received: "
            f"{shortened(received)}."
        )
    return subtopics


def _read_scores(predicted: PairTable) -> PairTable:
    """The predictions with checked scores, and with these as trec_eval reads them."""
    name = "run" if predicted.place is None else "scores"
    given = predicted.numbers
    if predicted.place is ROW_OF_FRAME:
        given = as_numbers(name, given, predicted.place_of_number)
    scores = as_numbers(name, exact_scores(given), predicted.place_of_number)
    rounded = as_in_trec_eval(without_objects(np.asarray(given)))
    return predicted._replace(numbers=scores, rounded=rounded)


def as_in_trec_eval(scores: Any) -> np.ndarray:
    """Scores rounded to float32, where denormal numbers are 0.

    -inf still means that an item was not retrieved.
    """
    scores = np.asarray(scores, float)
    with np.errstate(over="ignore"):  # above the highest float32 is infinity
        rounded = np.maximum(scores, LOWEST_SCORE).astype(np.float32)
    rounded = without_denormals(rounded)
    return np.where(scores == -np.inf, np.float32(-np.inf), rounded)


def _pairs_to_exclude(
    exclude: Any, predicted: PairTable, columns: dict[str, str]
) -> PairTable | None:
    """The pairs that `exclude` of `evaluate_run` names."""
    exclude = by_index("exclude", collected(exclude))
    if exclude is None:
        return None
    if isinstance(exclude, str) and exclude == "identical_ids":
        return PairTable("exclude", predicted.queries, predicted.queries)
    if not isinstance(exclude, Mapping) and not is_frame(exclude):
        raise ValueError(
            "`exclude` must be a dict from queries to lists of items, a frame of both, "
            f"or 'identical_ids'. Received: {shortened(exclude)}."
        )
    return _read_pairs("exclude", exclude, columns)


def _read_pairs(name: str, data: Any, columns: dict[str, str]) -> PairTable:
    """The pairs of a frame with these columns, or of a dict of queries."""
    if isinstance(data, FileColumns):
        ids_and_numbers = data.queries, data.items, data.numbers
        return PairTable(
            name, *ids_and_numbers, place=data.place, has_ranks=data.has_ranks
        )
    data = by_index(name, data)
    if is_frame(data):
        given = [column(data, of_column, each) for each, of_column in columns.items()]
        return PairTable(name, *given, place=ROW_OF_FRAME)
    if not isinstance(data, Mapping):
        raise ValueError(
            f"`{name}` must be a frame with the columns "
            f"{', '.join(map(repr, columns.values()))}, a dict of queries, or the path "
            f"of a file. Received: {shortened(data)}."
        )
    of_queries = [_items_of(name, *of_query) for of_query in data.items()]
    items, values = zip(*of_queries, strict=True) if of_queries else ((), ())
    codes = np.repeat(np.arange(len(items)), [*map(len, items)])
    has_ranks = range in {*map(type, values)}
    items, values = ([*itertools.chain.from_iterable(each)] for each in (items, values))
    if not all(issubclass(each, Number) for each in {*map(type, values)}):
        # Of lists, NumPy would make a second axis.
        values = as_objects([*map(_number_of_scalar, values)])
    return PairTable(name, Ids([*data], codes), items, values, has_ranks=has_ranks)


def _items_of(name: str, query: Any, of_query: Any) -> tuple[Sequence[Any], Iterable]:
    """The items of a query, and the label or score of each."""
    if isinstance(of_query, Mapping):
        items, values = [*of_query], of_query.values()
    elif isinstance(items := as_row(of_query), list):
        if name == "run" and isinstance(of_query, (set, frozenset)):
            raise ValueError(
                "A ranked list must be ordered, best first. Received: a set for the "
                f"query {shortened(query)}."
            )
        if name == "run" and items and all(map(_has_score, items)):
            raise ValueError(
                "A ranked list of `run` must contain the ids of items. Received: pairs "
                f"of an item and a score for the query {shortened(query)}, such as "
                f"{shortened(items[0])}. Pass a dict from items to scores: "
                "dict(pairs)."
            )
        values = [1] * len(items) if name == "qrels" else range(0, -len(items), -1)
    else:
        kinds = "list" if name == "exclude" else "dict or a list"
        raise ValueError(
            f"A dict of `{name}` must contain a {kinds} of items for each query. "
            f"Received: {shortened(of_query)} for the query {shortened(query)}. Leave "
            "out a query without any."
        )
    if name == "qrels" and not items:
        raise ValueError(
            "Each query of `qrels` must have an item. Received: none for the query "
            f"{shortened(query)}. Remove the query, or add an item of label 0."
        )
    return items, values


def _number_of_scalar(value: Any) -> Any:
    """A number of Python for a scalar of an array library; other values unchanged."""
    if hasattr(value, "as_py"):  # of Arrow
        return value.as_py()
    is_scalar = getattr(value, "shape", None) == ()
    return np.asarray(from_pytorch(value)).item() if is_scalar else value


def _has_score(item: Any) -> bool:
    """Whether an item is a pair of an id and its score."""
    is_pair = isinstance(item, tuple) and len(item) == 2
    return is_pair and isinstance(item[1], float)


def match_pairs(
    judged: PairTable, predicted: PairTable, excluded: PairTable | None = None
) -> Join:
    """The join of any two tables, even without a common query.

    Raises:
        ValueError: A table contains a pair twice, an id is missing, or the ids of the
            tables are of different types.
    """
    tables = [table for table in (judged, predicted, excluded) if table]
    queries, items = (
        number_ids(
            f"ids of {of}",
            [getattr(table, of) for table in tables],
            [table.place_of_ids for table in tables],
        )
        for of in ("queries", "items")
    )
    judged, queries, items, by_subtopic = _with_pairs_once(judged, queries, items)
    keys = queries.codes * (items.codes.max(initial=0) + 1) + items.codes
    num_judged = len(judged.numbers)
    keys, to_exclude = np.split(keys, [num_judged + len(predicted.numbers)])
    match, twice = _matches(keys, num_judged)
    if twice is not None:
        query, item = (ids.at(ids.codes[[twice]])[0] for ids in (queries, items))
        raise ValueError(_pair_twice(judged, predicted, query, item, twice))
    of_run = np.arange(num_judged, len(keys))
    if len(to_exclude):
        of_run = of_run[~np.isin(keys[of_run], to_exclude)]
        _check_excluded(queries, items, num_judged, len(keys), len(of_run))
    judged_codes = queries.codes[:num_judged]
    codes_of_first, first_rows = np.unique(judged_codes, return_index=True)
    num_queries = len(codes_of_first)  # judged queries have the lowest codes
    predicted_codes = queries.codes[of_run]
    is_judged = predicted_codes < num_queries
    pairs = of_run[is_judged]
    of_queries = np.bincount(predicted_codes[is_judged], minlength=num_queries)
    return Join(
        query_ids=queries,
        item_ids=items,
        ids=queries.array(slice(num_queries)),
        judged_codes=judged_codes,
        predicted_codes=predicted_codes[is_judged],
        item_codes=items.codes[: len(keys)],
        labels=judged.numbers,
        scores=predicted.numbers[pairs - num_judged],
        rounded=predicted.rounded[pairs - num_judged],
        pairs=pairs,
        match=match[pairs],
        first_rows=first_rows,
        has_predictions=of_queries > 0,
        is_excluded=np.isin(keys[:num_judged], to_exclude),
        of_run=of_run,
        unjudged_queries=np.unique(predicted_codes[~is_judged]),
        by_subtopic=by_subtopic,
    )


def _with_pairs_once(
    judged: PairTable, queries: Ids, items: Ids
) -> tuple[PairTable, Ids, Ids, SubtopicLabels | None]:
    """The judgments with the highest label of each pair, if rows judge subtopics.

    The ids cover all tables.
    """
    if judged.subtopics is None:
        return judged, queries, items, None
    rows, where = slice(len(judged.numbers)), [judged.place_of_ids]
    subtopics = number_ids("subtopics", [judged.subtopics], where)
    given = queries.of(rows), items.of(rows), subtopics, judged.numbers
    by_subtopic = read_subtopics(*given, judged.place)
    is_kept = np.arange(len(queries)) >= len(judged.numbers)
    is_kept[by_subtopic.first_rows] = True
    judged = judged._replace(numbers=by_subtopic.highest, subtopics=None)
    return judged, queries.of(is_kept), items.of(is_kept), by_subtopic


def _matches(keys: np.ndarray, num_judged: int) -> tuple[np.ndarray, int | None]:
    """For each pair, the judged pair that it repeats, or -1.

    Also returns the first pair that its own table repeats, if there is one.
    """
    order = np.argsort(keys, kind="stable")  # a judged pair before its prediction
    first, second = order[:-1], order[1:]
    is_equal = keys[first] == keys[second]
    is_twice = is_equal & ((first < num_judged) == (second < num_judged))
    match = np.full(len(keys), -1)
    match[second[is_equal]] = first[is_equal]
    return match, second[is_twice].min() if is_twice.any() else None


def _pair_twice(
    judged: PairTable, predicted: PairTable, query: Any, item: Any, number: int
) -> str:
    """The error for a pair that its table repeats, with its number among all pairs."""
    num_judged = len(judged.numbers)
    table, row = judged, number
    if number >= num_judged:
        table, row = predicted, number - num_judged
    if table.place is None:
        return error_of_pair_twice(table.name, query, item)
    where = f", the second time in {table.place(row)}"
    error = error_of_pair_twice(table.name, query, item, where)
    if table.place is ROW_OF_FRAME and table.name == "run":
        error += " If the rows are of several models, name their column: model='...'."
    if table.name == "qrels":
        error += " If each row judges a subtopic, name their column: subtopic='...'."
    return error


def _check_excluded(
    queries: Ids, items: Ids, num_judged: int, num_pairs: int, num_left: int
) -> None:
    """Warns if no prediction is excluded. Raises ValueError if all are."""
    num_predicted = num_pairs - num_judged
    if not num_predicted:
        return
    if num_left == num_predicted:
        (query,) = queries.at(queries.codes[[num_judged]])
        (item,) = items.at(items.codes[[num_judged]])
        warn(
            "`exclude` removes predictions from the run. Received: pairs of a query "
            "and an item none of which is in the run, whose first pair is the query "
            f"{shortened(query)} and the item {shortened(item)}."
        )
    if num_left == 0:
        raise ValueError(
            "`exclude` must leave predictions in the run. Received: all "
            f"{num_predicted} predictions are excluded."
        )


def error_of_pair_twice(table: str, query: Any, item: Any, where: str = "") -> str:
    """The error for a pair that occurs twice in a table."""
    return (
        f"A pair of a query and an item must be in `{table}` only once. Received: the "
        f"query {shortened(query)} with the item {shortened(item)} twice{where}."
    )


def _examples(ids: Ids, codes: np.ndarray) -> str:
    some = dict.fromkeys(codes[:100].tolist())
    return ", ".join(map(shortened, ids.at([*some][:3]))) or "none"
