"""`evaluate_run`: ranking metrics of two tables, of judgments and of predictions.

`join.py` reads and joins the tables. Here are the policies for what is in one of them
only. `evaluate_rows.py` evaluates the rows of the join.
"""

from __future__ import annotations

import itertools
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from tfrankmetrics.arguments import ArrayLike, Names, SlicesLike, TableLike
from tfrankmetrics.columns.numbered_ids import Ids, number_ids
from tfrankmetrics.columns.read_column import collected, column, is_frame, rows_at
from tfrankmetrics.columns.slices import Slices
from tfrankmetrics.compute.calls import require_eager
from tfrankmetrics.compute.computed import Computed, Part
from tfrankmetrics.evaluation.evaluate_rows import RowData
from tfrankmetrics.evaluation.item_positions import items_of_rows
from tfrankmetrics.evaluation.join import Join, PairColumns, join_tables, read_tables
from tfrankmetrics.evaluation.rows_by_query import (
    JudgedQueries,
    queries_of_codes,
)
from tfrankmetrics.inputs.mistakes import (
    OF_EXCLUDED,
    SCORE_FACTS,
    Asked,
    Facts,
    LabelRules,
    refuse_signed_labels,
    warn_of,
)
from tfrankmetrics.inputs.one_list import OneList
from tfrankmetrics.inputs.ranks_as_scores import facts_of_ranks
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.options import Options, Separator
from tfrankmetrics.results.metric_values import RunCounts, RunValues, SlicedValues
from tfrankmetrics.results.request import Request, read_request
from tfrankmetrics.rules import check_option, shortened

if TYPE_CHECKING:
    from typing_extensions import Unpack

MissingQueries = Literal["zero", "skip", "error"]
UnjudgedQueries = Literal["skip", "error"]
Unjudged = Literal["irrelevant", "drop"]
Excluded = Mapping[Any, Iterable[Any]] | Literal["identical_ids"] | None


def evaluate_run(
    qrels: TableLike,
    run: TableLike,
    metrics: Sequence[str | MetricObject],
    *,
    query: str = "query_id",
    item: Names = "item_id",
    label: str = "label",
    score: str = "score",
    subtopic: str | None = None,
    model: str | None = None,
    missing_queries: MissingQueries = "zero",
    unjudged_queries: UnjudgedQueries = "skip",
    unjudged: Unjudged = "irrelevant",
    exclude: Excluded = None,
    lower_is_better: bool = False,
    sample_weight: ArrayLike | None = None,
    by: SlicesLike | None = None,
    per_query: bool = False,
    num_queries: bool = False,
    separator: Separator = "@",
    **options: Unpack[Options],
) -> dict[str, Any] | SlicedValues:
    """Computes ranking metrics from judgments (qrels) and predictions (a run).

    >>> qrels = {"q1": {"a": 1, "b": 0, "c": 2}, "q2": {"a": 1}}
    >>> run = {"q1": {"b": 9.5, "a": 8.1, "z": 0.3}}
    >>> evaluate_run(qrels, run, ["mrr", "recall@5"])
    {'mrr': 0.25, 'recall@5': 0.25}
    1 of 2 judged queries has no predictions and is counted as an empty result.

    The tables are joined by query and item. A judged item without a prediction was not
    retrieved, and a predicted item without a judgment is not relevant. A label below 0
    means that an item was not judged.

    Args:
        qrels: The judgments: a frame of pandas, polars or Arrow, with a row for each
            query and item; a dict of dicts, `{query: {item: label}}`; a dict or a
            Series of lists of the relevant items; or the path of a file. A file that
            ends in .csv, .tsv or .parquet, or a folder, is a table with named columns,
            .json a dict of dicts, and any other a TREC file, as is a .tsv file without
            names. Its ids are text, and it may be compressed (.gz, .bz2, .xz).
        run: The predictions: a frame with scores; a dict of dicts,
            `{query: {item: score}}`; a dict or a Series of ranked lists of items, best
            first; or the path of a file.
        metrics: Names and metric objects, as in `evaluate`.
        exclude: Predictions to remove from the run: a dict from queries to lists of
            items, such as those of the training data, or a frame of both. Or
            "identical_ids": items whose id is the id of their query, as BEIR does. An
            excluded item that is relevant is treated as missed.
        lower_is_better: If True, the lowest score ranks first: for a column of ranks or
            of distances.
        sample_weight: A weight for each query: a dict, a Series with the queries as
            its index, or the name of a column of `qrels` that is the same in all rows
            of a query.
        by: A slice for each query: a dict or a Series by query; a frame with the column
            `query` and one column or more of slices; or the names of one or several
            columns of `qrels`, each the same in all rows of a query. Combinations of
            several columns are the slices.
        query: The column of the query ids, in both tables.
        item: The column of the item ids, in both tables, or a list of columns that
            identify an item together.
        label: The column of the labels, in `qrels`.
        score: The column of the scores, in `run`.
        subtopic: The column of the subtopics, in `qrels`, if each row judges an item
            for a subtopic of the query; of a TREC file the second column, under any
            name. By default "subtopic" if a metric reads subtopics, such as
            `alpha_ndcg`. Other metrics take the highest label of an item.
        unjudged: How unjudged items are treated: as "irrelevant" (the default), or
            "drop" excludes them, as for condensed lists. BPref always excludes them, by
            its definition.
        missing_queries: How to treat judged queries without predictions: as "zero", an
            empty result (the default); "skip"; or "error".
        unjudged_queries: How to treat predictions of queries that were not judged:
            "skip" (the default) or "error".
        model: The column of `run` with the model of each row, if the table holds the
            predictions of several models. The result is then a dict with the result of
            each model, which `compare` takes with `per_query=True`.
        num_queries: If True, adds the number of included queries, under the key
            "num_queries".
        separator: "@" (the default): keys as passed; "_": keys such as "ndcg_10".
        per_query: If True, returns the value of each query instead of the mean.
        **options: Options for the metrics passed by name. See `tfrankmetrics.Options`.
            With the convention "trec_eval" or "ir_measures", here, in a name or in a
            metric object, ties are broken as in trec_eval: scores are rounded to
            float32, and tied items are ordered by descending item id.

    Returns:
        A dict from each metric's name to its mean, with the `RunCounts` in `counts`.
        Printing it also reports the numbers of queries that are in one table only. With
        `per_query` or `by`, as in `evaluate_rows`, in the order of `qrels`. With
        `model`, a dict with such a result for each model.

    Raises:
        ValueError: A table contains a pair of query and item twice, an id is missing,
            the tables have no query in common, or `evaluate` would raise an error.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("evaluate_run")
    policies = Policies(missing_queries, unjudged_queries, unjudged)
    policies.check("evaluate_run")
    request = read_request(
        metrics,
        options,
        by=collected(by),
        per_query=per_query,
        num_queries=num_queries,
        separator=separator,
        lower_is_better=lower_is_better,
    )
    subtopic = request.column_of_subtopics(subtopic)
    names = PairColumns(query, item, label, score, subtopic)
    qrels, run = read_tables(qrels, run, names)
    runs = {None: run} if model is None else rows_by_model(run, model)
    results = {}
    for name, rows in runs.items():
        given = qrels, rows, names, policies, exclude, sample_weight
        results[name] = evaluate_joined(request, RunData.of_tables(request, *given))
    return results[None] if model is None else results


def evaluate_joined(request: Request, data: RunData) -> dict[str, Any] | SlicedValues:
    """`evaluate_run` for a request: checks, computes and shapes the result."""
    counts, counted = data.counts(), data.is_counted
    rules = request.label_rules
    check_facts(data.facts(rules), rules, counts, data.policies)
    refuse_missing_queries(request.named, counts)
    request, data = data.with_items(request)
    computed = Computed(request.named, data.slices, counted)
    for part in data.parts(request.named):
        computed.add(*part)
    values, weights = computed.by_query(len(counted))
    values, weights, ids = (
        values[:, counted],
        weights[:, counted],
        data.joined.ids[counted],
    )
    result = request.result(computed, values, weights, data.slices, ids, counts)
    is_plain = not request.per_query and data.slices is None
    return RunValues(result, counts) if is_plain else result  # type: ignore[arg-type]


class RunData(NamedTuple):
    """Judgments and predictions, joined, and the policies for what has no match."""

    joined: Join
    policies: Policies
    score_name: str  # the column of the scores
    query_weights: np.ndarray | None  # of the judged queries
    slices: Slices | None = None  # of the counted queries
    positions: np.ndarray | None = None  # of the item of each pair, if metrics read it

    @classmethod
    def of_tables(
        cls,
        request: Request,
        qrels: Any,
        run: Any,
        names: PairColumns,
        policies: Policies,
        exclude: Any,
        sample_weight: Any,
    ) -> RunData:
        """Joins and checks two tables. `evaluate_run` describes the arguments."""
        is_reversed = request.lower_is_better
        joined = join_tables(qrels, run, names, exclude, lower_is_better=is_reversed)
        table = JudgedQueries(joined.ids, joined.query_of_rows, qrels, names.query)
        weights = None if sample_weight is None else table.weights(sample_weight)
        data = cls(joined, policies, names.score, weights)
        data.refuse_unmatched_queries()
        columns = {} if request.by is None else table.slice_columns(request.by)
        request.require_free_keys(columns, has_ids=True)
        columns = {name: each.of(data.is_counted) for name, each in columns.items()}
        return data._replace(slices=request.slices_of(columns))

    @property
    def is_counted(self) -> np.ndarray:
        """Whether each judged query is part of the result."""
        return self.joined.has_predictions | (self.policies.missing_queries != "skip")

    def with_items(self, request: Request) -> tuple[Request, RunData]:
        """The request and the data with items by position, if a metric reads them."""
        if not request.reads_items:
            return request, self
        joined = self.joined
        items = Ids(joined.item_ids.distinct, joined.item_codes[joined.of_run])
        request, of_run = items_of_rows(request, items)
        positions = np.zeros(len(joined.item_codes), np.int64)  # missed: without a rank
        positions[joined.of_run] = of_run
        return request, self._replace(positions=positions)

    def parts(self, named: Mapping[str, Measure]) -> Iterator[Part]:
        """The metrics, lists for them, and the codes of their queries."""
        for some, rows in self.rows(named):
            yield from rows.parts(some)

    def rows(
        self, named: Mapping[str, Measure]
    ) -> Iterator[tuple[dict[str, Measure], RowData]]:
        """The metrics that read the same rows, and these rows.

        Those of trec_eval have their own order and leave that of others alone.
        """
        joined, drop = self.joined, self.policies.unjudged == "drop"
        flags = [measure.is_trec_eval for measure in named.values()]
        for is_trec_eval in sorted({*flags}):
            columns = joined.rows(is_trec_eval=is_trec_eval)
            if self.query_weights is not None:
                columns["sample_weight"] = self.query_weights[columns["query"]]
            if self.positions is not None:
                columns["items"] = self.positions[columns["pair"]]
            queries = queries_of_codes(columns["query"], len(joined.ids))
            items = Ids(joined.item_ids.distinct, joined.item_codes[columns["pair"]])
            rows = RowData(columns, joined.ids, queries, items, drops_unjudged=drop)
            rows = rows._replace(by_subtopic=joined.by_subtopic)
            chosen = [flag == is_trec_eval for flag in flags]
            yield dict(itertools.compress(named.items(), chosen)), rows

    def list_of(self, query: Any, measure: Measure) -> OneList:
        """The list of a judged query that a metric reads."""
        ((named, rows),) = self.rows({measure.name: measure})
        one = rows.list_of(query, measure)
        if not self.joined.has_predictions[one.number]:
            refuse_missing_queries(named, self.counts())
        if self.is_counted[one.number]:
            return one
        return one._replace(left_out="it has no predictions")

    def refuse_unmatched_queries(self) -> None:
        """Raises ValueError for queries in one table only, if the policy is "error"."""
        joined = self.joined
        for argument, lacks, queries in (
            ("missing_queries", "predictions", np.flatnonzero(~joined.has_predictions)),
            ("unjudged_queries", "judgments", joined.unjudged_queries),
        ):
            if getattr(self.policies, argument) == "error" and len(queries):
                examples = map(shortened, joined.query_ids.at(queries[:3]))
                raise ValueError(
                    f"With {argument}='error', every query must have {lacks}. "
                    f"Received: none for the query {', the query '.join(examples)}"
                    + (", and others." if len(queries) > 3 else ".")
                )

    def counts(self) -> RunCounts:
        """The counts of unmatched pairs, and how many scores are NaN."""
        joined, labels = self.joined, self.joined.labels
        is_judged = (joined.match >= 0) & (labels[joined.match] >= 0)
        return RunCounts(
            queries=len(joined.ids),
            without_predictions=int((~joined.has_predictions).sum()),
            without_judgments=len(joined.unjudged_queries),
            retrieved=len(joined.match),
            unjudged=int((~is_judged).sum()),
            missing_queries=self.policies.missing_queries,
            nan_scores=int(np.isnan(joined.scores).sum()),
        )

    def facts(self, rules: LabelRules) -> Facts:
        """The facts of judgments, and of predictions for judged queries."""
        joined, labels = self.joined, self.joined.labels

        def lists() -> tuple[np.ndarray, np.ndarray]:
            of_predicted = np.where(joined.match >= 0, labels[joined.match], 0)
            return joined.predicted_codes, of_predicted

        facts = Facts.of_labels(labels, rules.thresholds)
        facts += Facts.of(SCORE_FACTS, joined.scores)
        numbers = (labels > 0).sum(), (joined.is_excluded & (labels > 0)).sum()
        facts += Facts(zip(OF_EXCLUDED, numbers, strict=True))
        if joined.by_subtopic is not None:
            facts += joined.by_subtopic.facts
        return facts + facts_of_ranks(joined.scores, lists, self.score_name)


def rows_by_model(run: Any, model: str) -> dict[Any, Any]:
    """The rows of each model in a frame, in the order of their first rows.

    `model` names the column of the models.
    """
    if not is_frame(run):
        raise ValueError(
            "`model` names a column of the frame `run`. Received: a run that is "
            f"{shortened(run)}. Pass a frame, or evaluate the runs one by one."
        )
    models = number_ids("models", [column(run, model, "model")], ["row {} of `run`"])
    if not len(models):
        raise ValueError("`run` must contain a row for each model. Received: no rows.")
    order, starts, _ = models.groups
    parts = np.split(order, starts[1:])
    return {
        name: rows_at(run, rows) for name, rows in zip(models.at(), parts, strict=True)
    }


class Policies(NamedTuple):
    """The policies for queries and items that are in one of two tables only."""

    missing_queries: MissingQueries
    unjudged_queries: UnjudgedQueries
    unjudged: Unjudged

    def check(self, function: str) -> None:
        """Raises ValueError for a value that is not among the choices."""
        for name, annotation in typing.get_type_hints(Policies).items():
            check_option(function, name, getattr(self, name), annotation)


def refuse_missing_queries(named: Mapping[str, Measure], counts: RunCounts) -> None:
    """Raises ValueError for a metric without a value for an empty result.

    It is raised only if there are empty results.
    """
    if counts.missing_queries != "zero" or not counts.without_predictions:
        return
    if names := without_value_if_missing(named):
        raise ValueError(
            f"{names[0]!r} has no value for a query without results. Received: "
            f"{counts.without_predictions} judged queries without predictions. "
            "Omit this metric, or pass missing_queries='skip'."
        )


def without_value_if_missing(named: Mapping[str, Measure]) -> list[str]:
    """The metrics that have no value for a query without results."""
    return [
        name
        for name, measure in named.items()
        # Without results, a metric of recommended items has the weight 0.
        if not measure.declaration.reads_items
        and measure.declaration.without_results is None
    ]


def check_facts(
    facts: Facts, rules: LabelRules, counts: RunCounts, policies: Policies
) -> None:
    """Warns of mistakes and raises ValueError for labels that are only -1 and 1."""
    facts += {"retrieved": counts.retrieved, "unjudged": counts.unjudged}
    are_dropped = policies.unjudged == "drop"
    # If a tenth of the predictions were not judged, perhaps all judgments are positive.
    may_be_all = 10 * counts.unjudged >= counts.retrieved and not are_dropped
    warn_of(facts, Asked(rules, may_be_all=may_be_all))
    if are_dropped:
        refuse_signed_labels(facts, "drop these rows")
