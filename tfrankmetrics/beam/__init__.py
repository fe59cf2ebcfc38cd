"""Ranking metrics on Apache Beam, without TensorFlow Model Analysis.

`ComputeMetricsOfRows` and `ComputeMetricsOfRun` are the transforms for
`tfrankmetrics.evaluate_rows` and `tfrankmetrics.evaluate_run`, on any runner. The
values are the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfrankmetrics.installation import install_hint
from tfrankmetrics.metrics.names import MetricObject

try:
    import apache_beam as beam
    from apache_beam.transforms.trigger import AfterWatermark, DefaultTrigger
except ImportError as error:
    raise ImportError(
        f"tfrankmetrics.beam needs Apache Beam. {install_hint('beam')}"
    ) from error

from tfrankmetrics.beam.row_values import Columns, names_of_slices, require_names
from tfrankmetrics.beam.table_combiners import (
    OVERALL,
    RowsCombiner,
    RunCombiner,
    TableCombiner,
)
from tfrankmetrics.compute.combiner import require_support_of_beam
from tfrankmetrics.evaluation.evaluate_run import (
    MissingQueries,
    Policies,
    Unjudged,
    UnjudgedQueries,
    without_value_if_missing,
)
from tfrankmetrics.metrics.measure import require_relevance
from tfrankmetrics.options import Options, Separator
from tfrankmetrics.results.metric_values import NUM_QUERIES
from tfrankmetrics.results.request import Request, read_request
from tfrankmetrics.rules import listed, shortened

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["ComputeMetricsOfRows", "ComputeMetricsOfRun"]


class ComputeMetricsOfRows(beam.PTransform):
    """Computes ranking metrics from rows with a query, a label and a score.

    >>> import apache_beam as beam
    >>> rows = [
    ...     {"user": "a", "click": 0, "score": 0.2},
    ...     {"user": "b", "click": 1, "score": 0.9},
    ...     {"user": "a", "click": 1, "score": 0.1},
    ... ]
    >>> with beam.Pipeline() as pipeline:
    ...     _ = (
    ...         pipeline
    ...         | beam.Create(rows)
    ...         | ComputeMetricsOfRows("user", "click", "score", ["mrr", "precision@1"])
    ...         | beam.Map(print)
    ...     )
    {'num_queries': 2, 'mrr': 0.75, 'precision@1': 0.5}

    An element is a dict, a `beam.Row` or a NamedTuple. The rows of a query may be in
    any order and place. A worker keeps the rows of some 512 queries in memory and sends
    sums to the others. The sums are exact: the order of rows, bundles and workers do
    not change a value.

    Args:
        query_ids: The column of the query ids: text, bytes, numbers or tuples of these.
        labels: The column of the labels. A row with a label below 0 was not judged and
            is excluded from all metrics but `judged`, `hole` and `rbp_residual`.
        scores: The column of the scores.
        metrics: Names and metric objects, as in `tfrankmetrics.evaluate`.
        sample_weight: The column of the weight of the query, the same in all rows of
            the query; None for equal weights.
        by: The column of the slice of the query, such as its language, the same in all
            rows of the query. Or a list of columns, whose combinations are the slices.
        separator: "@" (the default): keys as passed; "_": keys such as "ndcg_10".
        **options: Options for the metrics passed by name, such as `gain="linear"` or
            `convention="tf_ranking"`. See `tfrankmetrics.Options`. ties="stable"
            is not supported, since rows are unordered on Beam.

    Returns:
        A PCollection of dicts, with `num_queries`, the number of queries that are
        included in any of the metrics, and the value of each metric, a float (NaN if no
        query is included). Without `by` it contains one element. With `by` it contains
        one for each slice, which includes the columns of `by`, and one for all queries,
        in which they are None. The latter contains `"overall": True`, the others
        `"overall": False`.

    Raises:
        ValueError: On creation: a column, metric or option is not one of those above.
            When the pipeline runs: a query id is missing, a label is NaN, the weight or
            the slice of a query differs in its rows, or `tfrankmetrics.evaluate_rows`
            would raise an error.
    """

    def __init__(
        self,
        query_ids: str,
        labels: str,
        scores: str,
        metrics: Sequence[str | MetricObject],
        *,
        sample_weight: str | None = None,
        by: str | Sequence[str] | None = None,
        separator: Separator = "@",
        **options: Unpack[Options],
    ) -> None:
        super().__init__()
        names = {"query_ids": query_ids, "labels": labels, "scores": scores}
        require_names(names, sample_weight)
        by = names_of_slices(by)
        named = _checked_request(metrics, options, separator, by).named
        self._columns = Columns(
            "the table", query_ids, None, labels, scores, sample_weight, by
        )
        self._combiner = RowsCombiner(named, by, scores)

    def expand(self, rows: Any) -> Any:
        """The PCollection of results, from one of rows."""
        _require_one_firing(rows)
        queries = (
            rows
            | "Read rows" >> beam.Map(self._columns.split)
            | "Group" >> beam.GroupByKey()
        )
        return _results(queries, self._combiner)


class ComputeMetricsOfRun(beam.PTransform):
    """Computes ranking metrics of predictions (a run) by judgments (qrels).

    >>> import apache_beam as beam
    >>> qrels = [("q1", "a", 1), ("q1", "b", 0), ("q1", "c", 2), ("q2", "a", 1)]
    >>> run = [("q1", "b", 9.5), ("q1", "a", 8.1), ("q1", "z", 0.3)]
    >>> qrels = [dict(zip(["query_id", "item_id", "label"], row)) for row in qrels]
    >>> run = [dict(zip(["query_id", "item_id", "score"], row)) for row in run]
    >>> with beam.Pipeline() as pipeline:
    ...     tables = {
    ...         "qrels": pipeline | "Read qrels" >> beam.Create(qrels),
    ...         "run": pipeline | "Read run" >> beam.Create(run),
    ...     }
    ...     _ = tables | ComputeMetricsOfRun(["mrr", "recall@5"]) | beam.Map(print)
    {'num_queries': 2, 'mrr': 0.25, 'recall@5': 0.25}

    The input is a dict of two PCollections, `qrels` and `run`, whose elements are as in
    `ComputeMetricsOfRows`. They are joined by query and item, with the rules of
    `tfrankmetrics.evaluate_run`. The counters of the pipeline in the namespace
    "tfrankmetrics" have the fields of `tfrankmetrics.RunCounts`.

    Args:
        metrics: Names and metric objects, as in `tfrankmetrics.evaluate`.
        sample_weight: The column of `qrels` with the weight of the query, the same in
            all rows of the query; None for equal weights.
        by: The column of `qrels` with the slice of the query, the same in all rows of
            the query. Or a list of columns, whose combinations are the slices.
        query: The column of the query ids, in both tables.
        item: The column of the item ids, in both tables, or a list of columns that
            identify an item together.
        label: The column of the labels, in `qrels`.
        score: The column of the scores, in `run`.
        subtopic: The column of the subtopics, in `qrels`, if each row judges an item
            for a subtopic of the query. By default "subtopic" if a metric reads them.
        missing_queries: Judged queries without predictions: "zero", an empty result
            (the default); "skip"; or "error".
        unjudged_queries: Predictions of queries that were not judged: "skip" (the
            default) or "error".
        unjudged: Unjudged items are treated as "irrelevant" (the default), or excluded
            by "drop".
        separator: "@" (the default): keys as passed; "_": keys such as "ndcg_10".
        **options: Options for the metrics passed by name. With the convention
            "trec_eval" or "ir_measures", here, in a name or in a metric object, ties
            are broken as trec_eval does.

    Returns:
        A PCollection of dicts, as in `ComputeMetricsOfRows`.

    Raises:
        ValueError: As in `ComputeMetricsOfRows`. When the pipeline runs, even if a
            table contains a pair of query and item twice, or the tables share no query.
    """

    def __init__(
        self,
        metrics: Sequence[str | MetricObject],
        *,
        query: str = "query_id",
        item: str = "item_id",
        label: str = "label",
        score: str = "score",
        subtopic: str | None = None,
        missing_queries: MissingQueries = "zero",
        unjudged_queries: UnjudgedQueries = "skip",
        unjudged: Unjudged = "irrelevant",
        sample_weight: str | None = None,
        by: str | Sequence[str] | None = None,
        separator: Separator = "@",
        **options: Unpack[Options],
    ) -> None:
        super().__init__()
        names = {"query": query, "item": item, "label": label, "score": score}
        require_names(names, sample_weight)
        by = names_of_slices(by)
        policies = Policies(missing_queries, unjudged_queries, unjudged)
        policies.check("ComputeMetricsOfRun")
        request = _checked_request(metrics, options, separator, by, have_items=True)
        subtopic = request.column_of_subtopics(subtopic)
        of_qrels = query, item, label, None, sample_weight, by, subtopic
        self._columns = {
            "qrels": Columns("`qrels`", *of_qrels),
            "run": Columns("`run`", query, item, None, score),
        }
        self._missing_queries = policies.missing_queries
        self._combiner = RunCombiner(
            request.named, by, score, policies, subtopic is not None
        )

    def expand(self, tables: Any) -> Any:
        """The PCollection of results, from one of `qrels` and one of `run`."""
        if not isinstance(tables, Mapping) or tables.keys() != self._columns.keys():
            received = [*tables] if isinstance(tables, Mapping) else tables
            raise ValueError(
                "The input must be a dict of two PCollections, {'qrels': judgments, "
                f"'run': predictions}}. Received: {shortened(received)}."
            )
        names = without_value_if_missing(self._combiner.named)
        is_zero = self._missing_queries == "zero"
        for table in tables.values():
            _require_one_firing(table)
            if names and is_zero and not table.windowing.is_default():
                raise ValueError(
                    f"{listed(names)} has no value for a query without results, which "
                    "any window may contain. Received: windows, with "
                    "missing_queries='zero'. Omit this metric, or pass "
                    "missing_queries='skip'."
                )
        queries = {
            name: tables[name] | f"Read {name}" >> beam.Map(columns.split)
            for name, columns in self._columns.items()
        } | "Group" >> beam.CoGroupByKey()
        return _results(queries, self._combiner)


def _require_one_firing(rows: Any) -> None:
    """Raises ValueError for a trigger, whose firings would each count as queries."""
    windowing = rows.windowing
    trigger = windowing.triggerfn
    at_the_end = isinstance(trigger, AfterWatermark) and not (
        trigger.early or trigger.late
    )
    is_once = isinstance(trigger, DefaultTrigger) or at_the_end
    if not is_once or windowing.allowed_lateness > 0:
        raise ValueError(
            "Each window must be evaluated once, when the watermark passes its end: "
            "at each other firing of a trigger, a query would count again. Received: "
            f"the trigger {trigger!r}, with allowed_lateness="
            f"{windowing.allowed_lateness}. Apply beam.WindowInto(window) before, "
            "without a trigger and without allowed_lateness; then late rows are "
            "dropped."
        )


def _checked_request(
    metrics: Any,
    options: Mapping[str, Any],
    separator: Separator,
    by: Sequence[str],
    *,
    have_items: bool = False,
) -> Request:
    """The metrics by their columns in the result; none may need an order of rows.

    If rows have items, trec_eval orders them by these, and subtopics are supported.
    """
    request = read_request(metrics, options, separator=separator)
    require_relevance(request.named, "Apache Beam")
    if not have_items:
        require_support_of_beam(request.named)
    columns = [*request.named, NUM_QUERIES, *by, *[OVERALL] * bool(by)]
    if taken := sorted({name for name in columns if columns.count(name) > 1}):
        raise ValueError(
            "Metrics, slices and the other columns of the result must have different "
            f"names. Received: {listed(taken)} twice. Rename the column or the metric."
        )
    for measure in request.measures:
        is_ordered = have_items and measure.is_trec_eval
        if measure.tie_breaking.keeps_order and not is_ordered:
            raise ValueError(
                "ties='stable' requires an order of rows, and rows are unordered on "
                f"Beam. Received: {measure.name!r} with ties='stable', which some "
                "conventions choose. Pass ties='expected', also together with a "
                "convention."
            )
    return request


def _results(queries: Any, combiner: TableCombiner) -> Any:
    """The PCollection of results, and the counters of unmatched queries and items."""
    if queries.windowing.is_default():
        combine = beam.CombineGlobally(combiner)
    else:  # a result for each window with queries
        combine = beam.CombineGlobally(combiner.for_windows()).without_defaults()
    return queries | "Evaluate" >> combine | "Results" >> beam.FlatMap(_counted_rows)


def _counted_rows(
    result: tuple[list[dict[str, Any]], Mapping[str, int]],
) -> list[dict[str, Any]]:
    rows, counts = result
    for name, number in counts.items():
        beam.metrics.Metrics.counter("tfrankmetrics", name).inc(number)
    return rows
