"""`evaluate_rows`: ranking metrics from a table with a query, a label and a score.

`rows_by_query.py` groups the rows. `RowData` answer as padded lists, including the rows
of runs, retrieval and Beam.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfrankmetrics.arguments import ColumnLike, SlicesLike, TableLike
from tfrankmetrics.columns.numbered_ids import Ids, number_ids
from tfrankmetrics.columns.read_column import (
    LAZY,
    as_numbers,
    collected,
    column,
    column_names,
    is_frame,
    negated,
    require_labels,
    require_weights,
)
from tfrankmetrics.columns.slices import Slices
from tfrankmetrics.compute.calls import require_eager
from tfrankmetrics.compute.computed import Computed, Part
from tfrankmetrics.evaluation.item_positions import items_of_rows
from tfrankmetrics.evaluation.join import error_of_pair_twice
from tfrankmetrics.evaluation.rows_by_query import (
    Queries,
    number_of_query,
    queries_of_codes,
    queries_of_groups,
)
from tfrankmetrics.evaluation.subtopic_labels import (
    SubtopicLabels,
    first_repeated,
    read_subtopics,
)
from tfrankmetrics.inputs.alignment import aligned
from tfrankmetrics.inputs.labels import LabelLists, lists_of_arrays
from tfrankmetrics.inputs.mistakes import (
    SCORE_FACTS,
    Asked,
    Facts,
    LabelRules,
    refuse_signed_labels,
    warn_of,
)
from tfrankmetrics.inputs.one_list import OneList
from tfrankmetrics.inputs.ranks_as_scores import facts_of_ranks
from tfrankmetrics.inputs.whole_data import (
    warn_if_ids_are_fractions,
    warn_if_queries_are_labels,
)
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.options import Options, Separator
from tfrankmetrics.results.metric_values import SlicedValues
from tfrankmetrics.results.request import Request, read_request
from tfrankmetrics.rules import listed, shortened

if TYPE_CHECKING:
    from typing_extensions import Unpack


def evaluate_rows(
    query_ids: ColumnLike,
    labels: ColumnLike,
    scores: ColumnLike,
    metrics: Sequence[str | MetricObject],
    *,
    data: TableLike | None = None,
    groups: ColumnLike | None = None,
    sample_weight: ColumnLike | None = None,
    item_ids: ColumnLike | None = None,
    subtopic: ColumnLike | None = None,
    lower_is_better: bool = False,
    by: SlicesLike | None = None,
    per_query: bool = False,
    num_queries: bool = False,
    separator: Separator = "@",
    **options: Unpack[Options],
) -> dict[str, Any] | SlicedValues:
    """Computes ranking metrics from the rows of a table.

    >>> query_ids = ["b", "a", "b", "a", "b"]
    >>> labels, scores = [0, 1, 1, 0, 2], [0.2, 0.9, 0.3, 0.1, 0.1]
    >>> evaluate_rows(query_ids, labels, scores, ["mrr", "precision@1"])
    {'mrr': 1.0, 'precision@1': 1.0}
    >>> evaluate_rows(None, labels, scores, ["mrr"], groups=[2, 3], per_query=True)
    {'query': array([0, 1]), 'mrr': array([1., 1.])}
    >>> table = {"user": query_ids, "click": labels, "score": scores}  # or a frame
    >>> evaluate_rows("user", "click", "score", ["mrr"], data=table)
    {'mrr': 1.0}

    Rows are padded to lists a few queries at a time, grouped by length, which bounds
    the memory beyond the rows themselves.

    Args:
        query_ids: The query id of each row, `[rows]`, in any order: integers, strings
            or another hashable type, the same in all rows; a NumPy array, a list or a
            column of a frame. Or None, with `groups`.
        labels: The label of each row. A row with a label below 0 was not judged and is
            excluded from all metrics but `judged`, `hole` and `rbp_residual`.
        scores: The score of each row.
        metrics: Names and metric objects, as in `evaluate`.
        data: A frame of pandas or polars, an Arrow table, a relation of DuckDB, a
            `Dataset` of Hugging Face, or a dict of columns. Then `query_ids`, `labels`,
            `scores`, `sample_weight`, `item_ids`, `subtopic` and `by` may be the names
            of its columns.
        groups: The number of rows of each query, for rows that are sorted by query, as
            in LightGBM and XGBoost.
        sample_weight: One weight per row. If it is the same in all rows of a query, it
            is the weight of the query.
        item_ids: The item of each row, once in a query, which metrics of recommended
            items require, such as `coverage`.
        subtopic: The subtopic that each row judges, for metrics of subtopics, such as
            `subtopic_recall`. An item then has a row for each of its subtopics, and all
            of them have the same score. Other metrics take its highest label.
        lower_is_better: If True, the lowest score ranks first: for a column of ranks or
            of distances.
        by: A slice for each row, such as the language of its query, which must be the
            same in all rows of a query. Or a dict of columns, or a list of names of
            columns of `data`, whose combinations are the slices. Also returns the
            metrics of each slice.
        num_queries: If True, adds the number of included queries, under the key
            "num_queries".
        separator: "@" (the default): keys as passed; "_": keys such as "ndcg_10".
        per_query: If True, returns the value of each query instead of the mean.
        **options: Options for the metrics passed by name, such as `gain="linear"` or
            `convention="trec_eval"`. See `tfrankmetrics.Options`.

    Returns:
        As in `evaluate`. With `per_query`, the first key, `query`, contains the id of
        each query, or its number in `groups`, in the order of their first rows.

    Raises:
        ValueError: The columns have different lengths, the groups do not add up to the
            number of rows, a query id is missing, or `evaluate` would raise an error.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("evaluate_rows")
    request = read_request(
        metrics,
        options,
        lower_is_better=lower_is_better,
        by=by,
        per_query=per_query,
        num_queries=num_queries,
        separator=separator,
    )
    columns = {"query_ids": query_ids, "labels": labels, "scores": scores}
    columns |= {"sample_weight": sample_weight, "item_ids": item_ids}
    columns["subtopic"] = subtopic
    return evaluate_table(request, RowData.of_table(request, columns, data, groups))


def evaluate_table(request: Request, data: RowData) -> dict[str, Any] | SlicedValues:
    """`evaluate_rows` for a request: computes and shapes the result."""
    computed = compute_rows(*data.with_items(request))
    of_queries = computed.by_query(len(data.ids))
    return request.result(computed, *of_queries, data.slices, data.ids)


def compute_rows(request: Request, data: RowData) -> Computed:
    """The metrics of the rows of all queries."""
    computed = Computed(request.named, data.slices)
    for part in data.parts(request.named):
        computed.add(*part)
    return computed


class RowData(NamedTuple):
    """Rows with a label and a score, grouped by query.

    Rows of a run have the column "pair", which numbers them whatever their order is.
    """

    columns: dict[str, np.ndarray]
    ids: np.ndarray  # of the queries
    queries: Queries
    items: Ids | None = None  # of the rows
    slices: Slices | None = None
    drops_unjudged: bool = True  # unless the declaration of a metric decides
    # The labels of subtopics; the column "judgment" is the number of a row's pair.
    by_subtopic: SubtopicLabels | None = None

    @classmethod
    def of_table(
        cls, request: Request, columns: dict[str, Any], data: Any, groups: Any
    ) -> RowData:
        """Checked columns of numbers, and the queries by their ids or by groups."""
        table, facts = cls.with_facts(request, columns, data, groups)
        refuse_signed_labels(facts, "drop these rows")
        warn_of(facts, Asked(request.label_rules))
        return table

    @classmethod
    def with_facts(
        cls, request: Request, columns: dict[str, Any], data: Any, groups: Any
    ) -> tuple[RowData, Facts]:
        """The same data, and the facts that show mistakes in them."""
        name = columns["scores"]
        score_name = name if isinstance(name, str) else getattr(name, "name", None)
        given = columns_of_rows(request, data, columns)
        query_ids, slice_columns = given.pop("query_ids"), given.pop("by")
        items, subtopics = given.pop("item_ids"), given.pop("subtopic", None)
        if given["sample_weight"] is None:
            del given["sample_weight"]
        columns = {name: as_numbers(name, values) for name, values in given.items()}
        if (query_ids is None) == (groups is None):
            raise ValueError(
                "Pass either `query_ids`, one for each row, or `groups`, the number of "
                "rows of each query. Received: "
                + ("neither." if groups is None else "both.")
            )
        lengths = {name: len(column) for name, column in columns.items()}
        numbered = None
        if groups is None:
            numbered = number_ids("query ids", [query_ids])
            lengths["query_ids"] = len(numbered)
        if len(set(lengths.values())) > 1:
            raise ValueError(
                "All columns must contain a value for each row. Received lengths: "
                f"{lengths}."
            )
        if numbered is not None:
            ids, queries = numbered.array(), Queries(*numbered.groups)
        else:
            ids, queries = queries_of_groups(groups, len(columns["labels"]))
        slices = request.slices_of(
            {n: queries.column("by", n, values) for n, values in slice_columns.items()}
        )
        if items is not None:
            items = number_ids("item ids", [items])
        table = cls(columns, ids, queries, items, slices)
        table = table.with_items_once(request, subtopics)
        facts = table.checked_facts(request, score_name)
        if groups is None:
            warn_if_ids_are_fractions(ids)
            warn_if_queries_are_labels(ids, columns["labels"])
        if request.lower_is_better:
            table.columns["scores"] = negated(table.columns["scores"])
        table.require_items_once()
        return table, facts

    def with_items(self, request: Request) -> tuple[Request, RowData]:
        """The request and the data with items by position, if the rows have items."""
        if self.items is None:
            return request, self
        request, positions = items_of_rows(request, self.items)
        return request, self._replace(columns={**self.columns, "items": positions})

    def parts(self, named: Mapping[str, Measure]) -> Iterator[Part]:
        """The metrics, lists for them, and the numbers of their queries.

        An item with a label below 0 was not judged. It is excluded or treated as not
        relevant, unless the declaration of a metric decides.
        """
        drops = {n: drops_unjudged(m, self.drops_unjudged) for n, m in named.items()}
        kinds = {n: (drops[n], m.declaration.has_subtopics) for n, m in named.items()}
        for kind in sorted({*kinds.values()}, reverse=True):
            chosen = {n: measure for n, measure in named.items() if kinds[n] == kind}
            reads_items = any(m.declaration.reads_items for m in chosen.values())
            drop, by_subtopic = kind[0], self.by_subtopic if kind[1] else None
            for part in self.queries.parts(by_subtopic.most if by_subtopic else 1):
                for some in self._weighted_alike(part) if reads_items else [part]:
                    given = self.columns, drop, by_subtopic
                    yield chosen, lists_of_rows(self.queries, some, *given), some

    def _weighted_alike(self, part: np.ndarray) -> list[np.ndarray]:
        """The queries with one weight, and those with different weights of their rows.

        Metrics of recommended items read only weights of queries.
        """
        weights = self.columns.get("sample_weight")
        rows, exists = self.queries.rows(part)
        if weights is None or not rows.size:
            return [part]
        is_same = have_one_weight(weights[rows], exists)
        return [some for some in (part[is_same], part[~is_same]) if len(some)]

    def list_of(self, query: Any, measure: Measure) -> OneList:
        """The list of the query with this id that a metric reads."""
        number = number_of_query(query, self.ids.tolist())
        chosen = np.array([number])
        drop = drops_unjudged(measure, self.drops_unjudged)
        by_subtopic = self.by_subtopic if measure.declaration.has_subtopics else None
        given = self.columns, drop, by_subtopic
        lists = lists_of_rows(self.queries, chosen, *given)
        rows = self.queries.rows(chosen)[0][0]
        keys = self.columns["pair"][rows] if "pair" in self.columns else rows
        items = self.items.at(self.items.codes[rows]) if self.items else rows.tolist()
        return OneList(lists, items, number, keys.tolist())

    def facts(
        self, rules: LabelRules, score_name: Any, *, may_be_ranks: bool = True
    ) -> Facts:
        """The facts of labels, of scores in a column of this name, and of lengths."""
        labels, scores = self.columns["labels"], self.columns["scores"]

        def lists() -> tuple[np.ndarray, np.ndarray]:
            return self.queries.numbers_of_rows(), labels

        facts = Facts.of_labels(labels, rules.thresholds)
        facts += Facts.of(SCORE_FACTS, scores[labels >= 0])
        if may_be_ranks:
            facts += facts_of_ranks(scores, lists, score_name)
        if self.by_subtopic is not None:
            facts += self.by_subtopic.facts
        return facts + Facts.of_lengths(self.queries.lengths)

    def checked_facts(self, request: Request, score_name: Any) -> Facts:
        """The facts of all rows. Raises ValueError for invalid values."""
        rules = request.label_rules
        labels, weights = self.columns["labels"], self.columns.get("sample_weight")
        require_labels(labels)
        is_reversed = request.lower_is_better
        facts = self.facts(rules, score_name, may_be_ranks=not is_reversed)
        if weights is not None:
            require_weights(weights)
            if rules.rank_zero_weights and (weights == 0).any():
                for part in self.queries.parts():
                    rows, exists = self.queries.rows(part)
                    of_part = labels[rows]
                    judged = exists & (of_part >= 0)
                    facts += Facts.of_weights(of_part, weights[rows], judged)
        return facts

    def with_items_once(self, request: Request, given: Any) -> RowData:
        """A row for each item, if rows judge its subtopics, which are `given`."""
        if given is None and not request.label_rules.read_subtopics:
            return self
        if given is None or self.items is None:
            lacking = "subtopic" if given is None else "item_ids"
            raise ValueError(
                "Rows with subtopics, which metrics of subtopics require, must have "
                f"`subtopic` and `item_ids`. Received: no `{lacking}`."
            )
        subtopics = number_ids("subtopics", [given])
        labels = self.columns["labels"]
        require_labels(labels)
        self._require_length("item_ids", self.items)
        self._require_length("subtopic", subtopics)
        queries = Ids(self.ids, self.queries.numbers_of_rows())
        of_rows = queries, self.items, subtopics, labels
        by_subtopic = read_subtopics(*of_rows, place="row {}".format)
        rows = by_subtopic.first_rows
        for name in self.columns.keys() - {"labels"}:
            require_same_in_pairs(name, self.columns[name], rows[by_subtopic.pairs])
        columns = {name: values[rows] for name, values in self.columns.items()}
        columns["labels"] = by_subtopic.highest
        columns["judgment"] = np.arange(len(rows))
        columns["id_ranks"] = by_subtopic.id_ranks[:-1]
        return self._replace(
            columns=columns,
            queries=queries_of_codes(queries.codes[rows], len(self.ids)),
            items=self.items.of(rows),
            by_subtopic=by_subtopic,
        )

    def _require_length(self, argument: str, column: Ids) -> None:
        num_rows = len(self.columns["labels"])
        if len(column) != num_rows:
            raise ValueError(
                f"`{argument}` must contain a value for each row. Received: "
                f"{len(column)} values for {num_rows} rows."
            )

    def require_items_once(self) -> None:
        """Raises ValueError unless each row has an item, once in a query."""
        items = self.items
        if items is None:
            return
        self._require_length("item_ids", items)
        queries = self.queries.numbers_of_rows()
        row = first_repeated(queries * (items.codes.max(initial=0) + 1) + items.codes)
        if row is not None:
            (query,) = self.ids[queries[[row]]].tolist()
            (item,) = items.at(items.codes[[row]])
            where = f", the second time in row {row}"
            hint = " If each row judges a subtopic, pass `subtopic`."
            error = error_of_pair_twice("item_ids", query, item, where)
            raise ValueError(error + hint)


def require_same_in_pairs(name: str, values: np.ndarray, first: np.ndarray) -> None:
    """Raises ValueError if rows of an item differ; `first` is the first row of each."""
    differs = (values != values[first]) & (values == values)  # NaN equals NaN
    if differs.any():
        row = int(np.argmax(differs))
        raise ValueError(
            f"`{name}` must have the same value in all rows of an item. Received: "
            f"{values[first[row]]} in row {first[row]}, and {values[row]} in row {row} "
            "of the same item."
        )


def columns_of_rows(
    request: Request, data: Any, columns: dict[str, Any], **others: Any
) -> dict[str, Any]:
    """The columns that arguments and `by` hold or name, in the order of one index.

    `others` have a row for each row, too.
    """
    data = collected(data)
    slice_columns = request.slice_columns(data, has_ids=True)
    return aligned({**others, **columns_of(data, columns), "by": slice_columns})


def columns_of(data: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, with the column of `data` for each name."""
    names = {name: value for name, value in arguments.items() if isinstance(value, str)}
    for name, value in arguments.items():
        # The rows of two lazy frames may be in different orders.
        is_lazy = type(value).__name__ in LAZY
        if is_lazy or (is_frame(value) and len(column_names(value)) > 1):
            raise ValueError(
                f"`{name}` must be one column. Received: a frame with the columns "
                f"{listed(column_names(collected(value)))}. Pass the names of columns "
                "and data=frame."
            )
    if data is None:
        if names:
            raise ValueError(
                "Columns can be passed by name if `data` is a frame. Received: "
                f"{names}, without `data`. Pass data=frame."
            )
        return arguments
    if not is_frame(data) and not isinstance(data, Mapping):
        raise ValueError(
            "`data` must be a frame, or a dict of columns. Received: "
            f"{shortened(data)}."
        )
    return arguments | {n: column(data, named, n) for n, named in names.items()}


def drops_unjudged(measure: Measure, otherwise: bool) -> bool:
    """Whether unjudged items are excluded, by the declaration of the metric or else."""
    if measure.declaration.reads_items:
        return False  # they are recommended, too
    policies = {"drop": True, "keep": False, None: otherwise}
    return policies[measure.declaration.unjudged]


def have_one_weight(weights: np.ndarray, exists: np.ndarray) -> np.ndarray:
    """Which queries have the same weight in all their rows, `[B]`."""
    return ((weights == weights[:, :1]) | ~exists).all(axis=1)


def lists_of_rows(
    queries: Queries,
    chosen: np.ndarray,
    columns: dict[str, np.ndarray],
    drop_unjudged: bool,
    by_subtopic: SubtopicLabels | None = None,
) -> LabelLists:
    """The rows of some queries as lists, with labels by subtopic if they are given."""
    rows, exists = queries.rows(chosen)
    names = {"labels", "scores", "sample_weight", "items", "id_ranks"} & columns.keys()
    given = {name: columns[name][rows] for name in names}
    labels, weights = given["labels"], given.get("sample_weight")
    if weights is not None and weights.shape[1]:
        is_same = have_one_weight(weights, exists)
        weights = weights[:, 0] if is_same.all() else weights
    valid = exists & ~(drop_unjudged & (labels < 0))
    subtopics = None
    if by_subtopic is not None:
        subtopics = by_subtopic.of(np.where(exists, columns["judgment"][rows], -1))
    lists = lists_of_arrays(labels, given["scores"], valid, weights, subtopics)
    judged = None if drop_unjudged else lists.judged
    of_items = {"item_ids": given.get("items"), "id_ranks": given.get("id_ranks")}
    return dataclasses.replace(lists, judged=judged, **of_items)
