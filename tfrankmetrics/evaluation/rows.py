"""`evaluate_rows`: ranking metrics of a table with a query, a label and a score."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.frames import column, column_names, is_frame
from tfrankmetrics.columns.slices import column_of_queries
from tfrankmetrics.columns.values import (
    as_column,
    as_numbers,
    exact_array,
    negated,
    require_labels,
    require_weights,
)
from tfrankmetrics.compute.calls import call_compiled, require_eager
from tfrankmetrics.compute.items import ExposureSums
from tfrankmetrics.compute.values import ELEMENTS_IN_CACHE, parts_of, values_and_weights
from tfrankmetrics.evaluation.items import items_of_rows
from tfrankmetrics.evaluation.queries import (
    Queries,
    queries_of_groups,
    queries_of_ids,
)
from tfrankmetrics.inputs.alignment import aligned
from tfrankmetrics.inputs.facts import Facts
from tfrankmetrics.inputs.labels import LabelLists, lists_of_arrays
from tfrankmetrics.inputs.mistakes import (
    Asked,
    LabelRules,
    refuse_signed_labels,
    warn_of,
)
from tfrankmetrics.inputs.whole_data import (
    warn_if_ids_are_fractions,
    warn_if_queries_are_labels,
    warn_if_ranks,
)
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.options import Options, Separator
from tfrankmetrics.results.request import Request, read_request
from tfrankmetrics.results.values import SlicedValues
from tfrankmetrics.rules import listed, shortened

if TYPE_CHECKING:
    from typing_extensions import Unpack


def evaluate_rows(
    query_ids: Any,
    labels: Any,
    scores: Any,
    metrics: Sequence[str | MetricObject],
    *,
    data: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    item_ids: Any = None,
    lower_is_better: bool = False,
    by: Any = None,
    per_query: bool = False,
    num_queries: bool = False,
    separator: Separator = "@",
    **options: Unpack[Options],
) -> dict[str, Any] | SlicedValues:
    """Computes ranking metrics of the rows of a table.

    >>> query_ids = ["b", "a", "b", "a", "b"]
    >>> labels, scores = [0, 1, 1, 0, 2], [0.2, 0.9, 0.3, 0.1, 0.1]
    >>> evaluate_rows(query_ids, labels, scores, ["mrr", "precision@1"])
    {'mrr': 1.0, 'precision@1': 1.0}
    >>> evaluate_rows(None, labels, scores, ["mrr"], groups=[2, 3], per_query=True)
    {'query': array([0, 1]), 'mrr': array([1., 1.])}
    >>> table = {"user": query_ids, "click": labels, "score": scores}  # or a frame
    >>> evaluate_rows("user", "click", "score", ["mrr"], data=table)
    {'mrr': 1.0}

    Rows are padded to lists a few queries at a time, grouped by length, so that memory
    beyond the rows themselves stays bounded.

    Args:
        query_ids: The query id of each row, `[rows]`, in any order: integers, strings
            or another hashable type, the same in all rows; a NumPy array, a list or a
            column of a frame. Or None, with `groups`.
        labels: The label of each row. A row with a label below 0 was not judged, and is
            excluded from all metrics but `judged`, `hole` and `rbp_residual`.
        scores: The score of each row.
        metrics: Names and metric objects, as in `evaluate`.
        data: A frame of pandas or polars, an Arrow table, or a dict of columns. Then
            `query_ids`, `labels`, `scores`, `sample_weight`, `item_ids` and `by` may be
            the names of its columns.
        groups: The number of rows of each query, for rows that are sorted by query, as
            in LightGBM and XGBoost.
        sample_weight: One weight per row. If it is the same in all rows of a query, it
            is the weight of the query.
        item_ids: The item of each row, which metrics of recommended items require, such
            as `coverage`.
        lower_is_better: If True, the lowest score ranks first: for a column of ranks or
            of distances.
        by: A slice for each row, such as the language of its query, which must be the
            same in all rows of a query. Or a dict of columns, or a list of names of
            columns of `data`, whose combinations are the slices. Returns the metrics of
            each slice, too.
        num_queries: As in `evaluate`.
        separator: As in `evaluate`.
        per_query: As in `evaluate`.
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
    return evaluate_table(request, columns, data, groups)


def evaluate_table(
    request: Request, columns: dict[str, Any], data: Any, groups: Any
) -> dict[str, Any] | SlicedValues:
    """`evaluate_rows` for a request: reads, checks, computes and shapes the result."""
    slice_columns = request.slice_columns(data, has_ids=True)
    name = columns["scores"] if isinstance(columns["scores"], str) else None
    columns = aligned({**columns_of(data, columns), "by": slice_columns})
    slice_columns = columns.pop("by")
    items = columns.pop("item_ids", None)
    rules = request.label_rules
    table = read_table(columns, groups, rules, request.lower_is_better)
    if items is not None:
        request, positions = items_of_rows(request, items)
        table.require_rows("item_ids", positions)
        table.columns["items"] = positions
    warn_if_ranks(table.numbers_of_queries, table.columns["scores"], name)
    slices = request.slices_of(
        {
            name: column_of_queries(
                "by",
                name,
                values,
                table.queries.order,
                table.queries.starts,
                len(table),
            )
            for name, values in slice_columns.items()
        }
    )
    sums = ExposureSums.of(request.named, slices)
    values, weights = by_query(request.named, table.queries, table.columns, sums=sums)
    return request.result(values, weights, slices, table.ids, totals=sums.values())


class Table(NamedTuple):
    """The columns of rows, and the rows of each query."""

    columns: dict[str, np.ndarray]
    ids: np.ndarray  # of the queries
    queries: Queries
    has_ids: bool  # rather than groups

    def __len__(self) -> int:
        return len(self.columns["labels"])

    def require_rows(self, name: str, column: np.ndarray) -> None:
        """Raises ValueError unless a column contains a value for each row."""
        if len(column) != len(self):
            raise ValueError(
                f"`{name}` must contain a value for each row. Received: {len(column)} "
                f"values for {len(self)} rows."
            )

    def facts(self, rules: LabelRules) -> Facts:
        """The facts about labels, scores, lists and weights."""
        labels, scores = self.columns["labels"], self.columns["scores"]
        judged, weights = labels >= 0, self.columns.get("sample_weight")
        facts = Facts.of_labels(labels, rules.thresholds)
        facts += Facts.of_scores(scores[judged])
        facts += Facts.of_lengths(self.queries.lengths)
        if weights is None or not rules.rank_zero_weights or not (weights == 0).any():
            return facts
        queries = self.numbers_of_queries()[judged]
        return facts + Facts.of_weights(queries, labels[judged], weights[judged])

    def numbers_of_queries(self) -> np.ndarray:
        """The number of the query of each row."""
        order, starts, lengths, _ = self.queries
        by_start = np.argsort(starts, kind="stable")
        numbers = np.repeat(by_start, lengths[by_start])
        if order is None:
            return numbers
        of_rows = np.empty(len(order), np.int64)
        of_rows[order] = numbers
        return of_rows


def read_table(
    given: dict[str, Any], groups: Any, rules: LabelRules, lower_is_better: bool
) -> Table:
    """Checked columns of numbers, and the queries by their ids or by groups."""
    query_ids = given.pop("query_ids")
    if given["sample_weight"] is None:
        del given["sample_weight"]
    columns = {name: as_numbers(name, values) for name, values in given.items()}
    if (query_ids is None) == (groups is None):
        raise ValueError(
            "Pass either `query_ids`, one for each row, or `groups`, the number of "
            "rows of each query. Received: "
            + ("neither." if groups is None else "both.")
        )
    if groups is None:
        columns["query_ids"] = as_column("query_ids", exact_array(query_ids))
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            "All columns must contain a value for each row. Received lengths: "
            f"{lengths}."
        )
    if groups is None:
        ids, queries = queries_of_ids(columns.pop("query_ids"))
    else:
        ids, queries = queries_of_groups(groups, len(columns["labels"]))
    table = Table(columns, ids, queries, groups is None)
    _check_values(table, rules)
    if lower_is_better:
        columns["scores"] = negated(columns["scores"])
    return table


def _check_values(table: Table, rules: LabelRules) -> None:
    """Raises ValueError for invalid values, and warns of mistakes."""
    labels = table.columns["labels"]
    require_labels(labels)
    if "sample_weight" in table.columns:
        require_weights(table.columns["sample_weight"])
    facts = table.facts(rules)
    refuse_signed_labels(facts, "drop these rows")
    warn_of(facts, Asked(rules))
    if table.has_ids:
        warn_if_ids_are_fractions(table.ids)
        warn_if_queries_are_labels(table.ids, labels)


def columns_of(data: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, with the column of `data` for each name."""
    names = {name: value for name, value in arguments.items() if isinstance(value, str)}
    for name, value in arguments.items():
        if is_frame(value) and len(column_names(value)) > 1:
            raise ValueError(
                f"`{name}` must be one column. Received: a frame with the columns "
                f"{listed(column_names(value))}. Pass the names of columns and "
                "data=frame."
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


def by_query(
    named: Mapping[str, Measure],
    queries: Queries,
    columns: dict[str, np.ndarray],
    *,
    drop_unjudged: bool = True,
    sums: ExposureSums | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Values and weights of all queries, `[metrics, queries]`.

    Adds the exposure of the items to `sums`.

    An item with a label below 0 was not judged. It is excluded or treated as not
    relevant, unless the declaration of a metric decides.
    """
    values, weights = (np.zeros((len(named), len(queries.lengths))) for _ in range(2))
    drops = np.array([drops_unjudged(m, drop_unjudged) for m in named.values()])
    for drop in (True, False):
        measures = tuple(itertools.compress(named.values(), drops == drop))
        if measures:
            values[drops == drop], weights[drops == drop] = _in_lists(
                measures, queries, columns, drop, None if drop else sums
            )
    return values, weights


def drops_unjudged(measure: Measure, otherwise: bool) -> bool:
    """Whether unjudged items are excluded, by the declaration of the metric or else."""
    if measure.declaration.reads_items:
        return False  # they are recommended, too
    policies = {"drop": True, "keep": False, None: otherwise}
    return policies[measure.declaration.unjudged]


def _in_lists(
    measures: tuple[Measure, ...],
    queries: Queries,
    columns: dict[str, np.ndarray],
    drop_unjudged: bool,
    sums: ExposureSums | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Pads rows to lists, as many as fit in memory at a time, and computes these."""
    num_queries = len(queries.lengths)
    values, weights = (np.zeros((len(measures), num_queries)) for _ in range(2))
    by_length = np.argsort(queries.lengths, kind="stable")
    if any(measure.tie_policy.is_random for measure in measures):
        by_length = np.arange(num_queries)  # random ties depend on the query's number
    start = 0
    for part in parts_of(by_length, queries.lengths, ELEMENTS_IN_CACHE):
        lists = lists_of_rows(queries, part, columns, drop_unjudged)
        found = call_compiled(values_and_weights, measures, lists, start)
        values[:, part], weights[:, part] = found
        if sums is not None:
            sums.add(lists, part, start)
        start += len(part)
    return values, weights


def lists_of_rows(
    queries: Queries,
    chosen: np.ndarray,
    columns: dict[str, np.ndarray],
    drop_unjudged: bool,
) -> LabelLists:
    """The rows of some queries as lists."""
    rows, exists = queries.rows(chosen)
    labels = columns["labels"][rows]
    lists = lists_of_arrays(
        labels,
        columns["scores"][rows],
        exists & ~(drop_unjudged & (labels < 0)),
        _weights_of(columns["sample_weight"][rows], exists)
        if "sample_weight" in columns
        else None,
    )
    if "items" in columns:
        lists = dataclasses.replace(lists, item_ids=columns["items"][rows])
    return dataclasses.replace(lists, judged=None) if drop_unjudged else lists


def _weights_of(weights: np.ndarray, exists: np.ndarray) -> np.ndarray:
    """Weights `[B, N]`; `[B]` if all rows of each query have the same weight."""
    of_queries = weights[:, :1]
    is_same = (weights == of_queries) | ~exists
    return of_queries[:, 0] if is_same.all() and weights.shape[1] else weights
