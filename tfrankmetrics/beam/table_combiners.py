"""The combiners that Beam calls to add up the queries of one table or of two tables.

`row_values.py` reads the rows, and `compute/combiner.py` has what TFMA shares.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np

from tfrankmetrics.columns.numbered_ids import Ids, kind_of_type
from tfrankmetrics.columns.read_column import exact_scores
from tfrankmetrics.columns.slices import in_order
from tfrankmetrics.compute.combiner import (
    Combiner,
    Evaluated,
    WorkerState,
    means_and_number,
)
from tfrankmetrics.compute.computed import Computed
from tfrankmetrics.evaluation.evaluate_rows import RowData
from tfrankmetrics.evaluation.evaluate_run import (
    Policies,
    RunData,
    check_facts,
    refuse_missing_queries,
)
from tfrankmetrics.evaluation.join import (
    PairTable,
    as_in_trec_eval,
    match_pairs,
)
from tfrankmetrics.evaluation.rows_by_query import Queries
from tfrankmetrics.inputs.mistakes import (
    Asked,
    refuse_signed_labels,
    warn,
    warn_of,
)
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.results.metric_values import NUM_QUERIES, RunCounts
from tfrankmetrics.rules import shortened

OVERALL = "overall"  # a key of results by slice
NARROWEST = 16  # all shorter lists are padded to this length


class GroupedQuery(NamedTuple):
    """The rows of a query, as columns; a table without rows of it has no columns.

    Of one table, `judged` has labels and scores, and `predicted` is empty. Of two
    tables, `judged` has items, labels and perhaps subtopics, and `predicted` items and
    scores.
    """

    id: Any
    judged: Sequence[Sequence]
    predicted: Sequence[Sequence]
    weight: float
    slice: tuple


class TableCombiner(Combiner, beam.CombineFn):
    """Adds up the queries of tables and returns the rows of the result."""

    def __init__(
        self, named: Mapping[str, Measure], by: tuple[str, ...], score_name: str
    ) -> None:
        """`score_name` is the column of the scores."""
        super().__init__(named)
        self._by = by
        self._score_name = score_name
        self._has_windows = False

    def for_windows(self) -> TableCombiner:
        """The same for windows: a mistake that one of them shows is a warning.

        A small window may seem to hold a mistake, such as labels that are only -1 and
        1, and an error would stop the pipeline.
        """
        combiner = copy.copy(self)
        combiner._has_windows = True
        return combiner

    def evaluated(self, accumulator: WorkerState) -> Evaluated:
        """The metrics of the waiting queries that are included."""
        # For `output`, which raises an error if there are several.
        types = {type(query.id) for query in accumulator.waiting}
        accumulator.kinds |= {kind_of_type(each).__name__.lower() for each in types}
        queries, values, weights = self._values_of_waiting(accumulator)
        ids, slices = [q.id for q in queries], [q.slice for q in queries]
        return Evaluated(ids, slices, values, weights)

    def output(
        self, accumulator: WorkerState
    ) -> tuple[list[dict[str, Any]], Counter[str]]:
        """The rows of the result, of all queries first. Raises ValueError for data."""
        if len(accumulator.kinds) > 1:
            raise ValueError(
                "Query ids must be of one type. Received: "
                f"{', '.join(sorted(accumulator.kinds))}. Convert them to text."
            )
        try:
            self._report_mistakes(accumulator)
        except ValueError as error:
            if not self._has_windows:
                raise
            warn(str(error))
        no_slice, of_all = (None,) * len(self._by), self.sums_of_all(accumulator)
        rows = [self._row(no_slice, of_all, is_whole=True)]
        if self._by:
            slices = [*accumulator.sums.items()]
            in_rows = (slices[number] for number in in_order([*accumulator.sums]))
            rows += [self._row(*each, is_whole=False) for each in in_rows]
        return rows, accumulator.counts

    def _values_of_waiting(
        self, accumulator: WorkerState
    ) -> tuple[list[GroupedQuery], np.ndarray, np.ndarray]:
        """The included queries, and values and weights of each, `[metrics, B]`."""
        raise NotImplementedError

    def _report_mistakes(self, accumulator: WorkerState) -> None:
        """Raises errors and warns for mistakes that only all data together show."""
        raise NotImplementedError

    def _row(self, key: tuple, sums: np.ndarray, is_whole: bool) -> dict[str, Any]:
        """A row of the result: its slice, the number of queries, and the metrics."""
        means, number = means_and_number(sums)
        return {
            **({OVERALL: is_whole} if self._by else {}),
            **dict(zip(self._by, key, strict=True)),
            NUM_QUERIES: number,
            **dict(zip(self.named, means, strict=True)),
        }

    def _same_in_query(self, query: Any, of_query: Sequence[tuple] = ()) -> tuple:
        """The weight and the slice, which all rows of the query must share.

        `of_query` has both for each row; it is empty if the rows have neither.
        """
        if not of_query:
            return 1.0, ()
        first = of_query[0]
        if of_query.count(first) != len(of_query):
            other = next(each for each in of_query if each != first)
            columns = ["`sample_weight`", *(f"`by` ({name!r})" for name in self._by)]
            pairs = zip(columns, first, other, strict=True)
            name, *values = next(pair for pair in pairs if pair[1] != pair[2])
            raise ValueError(
                f"{name} must have the same value in all rows of a query. Received: "
                f"{shortened(values[0])} and {shortened(values[1])} for the query "
                f"{shortened(query)}."
            )
        return first[0], first[1:]


class RowsCombiner(TableCombiner):
    """Adds up queries whose rows have a label and a score."""

    def query(self, element: tuple[Any, Iterable[tuple]]) -> tuple[GroupedQuery, int]:
        """A query and the number of its rows, from its id and its rows."""
        query, rows = element
        labels, scores, *of_query = zip(*rows, strict=True)
        columns = [labels, exact_scores(scores).tolist()]
        of_query = self._same_in_query(query, *of_query)
        return GroupedQuery(query, columns, [], *of_query), len(labels)

    def _values_of_waiting(
        self, accumulator: WorkerState
    ) -> tuple[list[GroupedQuery], np.ndarray, np.ndarray]:
        waiting = accumulator.waiting
        labels, scores = (
            _chained(query.judged[i] for query in waiting) for i in (0, 1)
        )
        lengths = np.array([len(query.judged[0]) for query in waiting])
        columns = {"labels": labels, "scores": scores}
        columns["query"] = np.repeat(np.arange(len(waiting)), lengths)
        columns["sample_weight"] = np.repeat([q.weight for q in waiting], lengths)
        starts, widths = np.cumsum(lengths) - lengths, _fixed_widths(lengths)
        queries = Queries(_row_order(columns), starts, lengths, widths)
        rows = RowData(columns, np.arange(len(waiting)), queries)
        accumulator.facts += rows.facts(self.rules, self._score_name)
        computed = Computed(self.named)
        for part in rows.parts(self.named):
            computed.add(*part)
        return waiting, *computed.by_query(len(waiting))

    def _report_mistakes(self, accumulator: WorkerState) -> None:
        warn_of(accumulator.facts, Asked(self.rules))
        refuse_signed_labels(accumulator.facts, "drop these rows")


class RunCombiner(TableCombiner):
    """Adds up queries with judgments of one table, and predictions of a second one."""

    def __init__(
        self,
        named: Mapping[str, Measure],
        by: tuple[str, ...],
        score_name: str,
        policies: Policies,
        has_subtopics: bool,
    ) -> None:
        super().__init__(named, by, score_name)
        self._policies = policies
        self._num_columns = 3 if has_subtopics else 2  # of the judgments

    def query(
        self, element: tuple[Any, Mapping[str, Iterable[tuple]]]
    ) -> tuple[GroupedQuery, int]:
        """A query and the number of its rows, from its id and those of both tables."""
        query, rows = element
        # Without rows, there are no columns.
        judged: list[Sequence] = [*zip(*rows["qrels"], strict=True)]
        predicted: list[Sequence] = [*zip(*rows["run"], strict=True)]
        of_query = self._same_in_query(query, *judged[self._num_columns :])
        if predicted:
            predicted[1] = exact_scores(predicted[1]).tolist()
        number = sum(map(len, [*judged[:1], *predicted[:1]]))
        judged = judged[: self._num_columns]
        return GroupedQuery(query, judged, predicted, *of_query), number

    def _values_of_waiting(
        self, accumulator: WorkerState
    ) -> tuple[list[GroupedQuery], np.ndarray, np.ndarray]:
        waiting = accumulator.waiting
        judged = _table_of("qrels", waiting, [query.judged for query in waiting])
        predicted = _table_of("run", waiting, [query.predicted for query in waiting])
        rounded = as_in_trec_eval(predicted.numbers)
        predicted = predicted._replace(rounded=rounded)
        joined = match_pairs(judged, predicted)
        # The queries by their codes.
        known = {query.id: query for query in waiting}
        queries = [known[each] for each in joined.ids]
        of_queries = np.array([query.weight for query in queries])
        data = RunData(joined, self._policies, self._score_name, of_queries)
        data.refuse_unmatched_queries()
        counts = data.counts()._asdict()
        del counts["missing_queries"]  # a policy, which does not add up
        accumulator.counts.update(counts)
        accumulator.facts += data.facts(self.rules)
        computed = Computed(self.named)
        for named, rows in data.rows(self.named):
            of_rows = rows.queries
            of_rows = of_rows._replace(widths=_fixed_widths(of_rows.lengths))
            if not next(iter(named.values())).is_trec_eval:
                of_rows = of_rows._replace(order=_row_order(rows.columns))
            for part in rows._replace(queries=of_rows).parts(named):
                computed.add(*part)
        values, weights = computed.by_query(len(queries))
        counted = data.is_counted
        queries = [*itertools.compress(queries, counted)]
        return queries, values[:, counted], weights[:, counted]

    def _report_mistakes(self, accumulator: WorkerState) -> None:
        counts = RunCounts._make(accumulator.counts[name] for name in RunCounts._fields)
        counts = counts._replace(missing_queries=self._policies.missing_queries)
        if counts.queries == counts.without_predictions:
            raise ValueError(
                f"`qrels` and `run` must have queries in common. Received: "
                f"{counts.queries} judged queries, and {counts.without_judgments} "
                "other queries with predictions."
            )
        refuse_missing_queries(self.named, counts)
        check_facts(accumulator.facts, self.rules, counts, self._policies)


def _row_order(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """An order of rows by query that does not depend on the order of the input."""
    keys = ("id_ranks", "labels", "scores", "query")
    return np.lexsort([columns[name] for name in keys if name in columns])


def _fixed_widths(lengths: np.ndarray) -> np.ndarray:
    """The length that each list is padded to, which depends on its length alone.

    The terms of a list may be added up in a different order if its padding is longer.
    With this length, its values do not depend on the other queries.
    """
    return 2 ** np.ceil(np.log2(np.maximum(lengths, NARROWEST))).astype(int)


def _chained(columns: Iterable[Iterable[float]]) -> np.ndarray:
    return np.fromiter(itertools.chain.from_iterable(columns), float)


def _table_of(
    name: str, queries: Sequence[GroupedQuery], columns: Sequence[Sequence[Sequence]]
) -> PairTable:
    """A table of the rows of several queries."""
    with_rows = [pair for pair in zip(queries, columns, strict=True) if pair[1]]
    lengths = [len(items) for _, (items, *_) in with_rows]
    codes = np.repeat(np.arange(len(with_rows)), lengths)
    items = [*itertools.chain.from_iterable(items for _, (items, *_) in with_rows)]
    numbers = _chained(numbers for _, (_, numbers, *_) in with_rows)
    ids = Ids([query.id for query, _ in with_rows], codes)
    subtopics = [each for _, (_, _, *more) in with_rows for each in more]
    if not subtopics:
        return PairTable(name, ids, items, numbers)
    subtopics = [*itertools.chain.from_iterable(subtopics)]
    return PairTable(name, ids, items, numbers, subtopics=subtopics)
