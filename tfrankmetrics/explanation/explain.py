"""`explain` and its like: how the value of one query is computed, rank by rank.

Each function reads and checks the data as the function that evaluates them and passes
the list of the query to `Explanation`, which computes the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrankmetrics.arguments import (
    ArrayLike,
    ColumnLike,
    Key,
    Names,
    TableLike,
    Tower,
)
from tfrankmetrics.compute.calls import require_eager
from tfrankmetrics.evaluation.evaluate import ListData
from tfrankmetrics.evaluation.evaluate_rows import RowData
from tfrankmetrics.evaluation.evaluate_run import (
    Excluded,
    MissingQueries,
    Policies,
    RunData,
    Unjudged,
)
from tfrankmetrics.evaluation.join import PairColumns, read_tables
from tfrankmetrics.explanation.asked import asked_metrics
from tfrankmetrics.explanation.explanation import Explanation
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.options import Duplicates, Inputs, Options
from tfrankmetrics.retrieval.evaluate_retrieval import CandidateData, Score

if TYPE_CHECKING:
    from typing_extensions import Unpack


def explain(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    metric: str | MetricObject,
    query: int = 0,
    *,
    versus: str | MetricObject | None = None,
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    inputs: Inputs = "labels",
    duplicates: Duplicates | None = None,
    lower_is_better: bool = False,
    **options: Unpack[Options],
) -> Explanation:
    """Shows how the value of a metric for one query is computed, rank by rank.

    >>> explain([[1, 0, 2], [0, 1, 0]], [[0.9, 0.5, 0.1], [3, 2, 1]], "ndcg@2")
    rank  item  score  label    gain  discount  contribution  running value
    1     0       0.9      1  1.0000    1.0000        0.2754         0.2754
    2     1       0.5      0  0.0000    0.6309        0.0000         0.2754
    3     2       0.1      2  3.0000
    ndcg@2 of query 0: 0.2754. contribution = gain * discount / 3.6309.

    A contribution is the amount by which the value rises if the formula reads one more
    rank, whereas the ideal order and the number of relevant items always refer to the
    whole list. Items below the cutoff, and items that were not retrieved (whose rank is
    "-"), are shown if their gain is not 0.

    Args:
        y_true: Labels or ids, as in `evaluate`.
        y_pred: Scores or recommended ids, as in `evaluate`.
        metric: A name such as "ndcg@10", or a metric object.
        query: The number of the query, from 0.
        versus: A second metric, which is shown side by side: the name of a convention
            in which `metric` is computed again, a name with parameters such as
            "ndcg@10(gain=linear)", or a metric object.
        mask: Booleans of the labels' shape, True for valid items. The mask alone
            decides: a negative label then means not relevant.
        sample_weight: A scalar, `[B]` (one weight per query), or of the labels' shape
            (one per item).
        inputs: The format of `y_true` and `y_pred`: "labels" and scores (the default);
            relevant "ids" and recommended ids, best first; or relevant ids and the
            scores of a whole "catalog".
        duplicates: With inputs="ids", how repeated recommendations are counted: "first"
            (once, at the first position; the default) or "all" (each time).
        lower_is_better: If True, the lowest score ranks first. Scores are shown as
            negative ones.
        **options: Options for a metric passed by name, such as `gain="linear"` or
            `convention="trec_eval"`. See `tfrankmetrics.Options`.

    Returns:
        An `Explanation`. Its `value` equals that of `evaluate` with `per_query=True`,
        apart from rounding. It prints as a table and provides `to_pandas()`,
        `to_markdown()` and `to_latex()`.

    Raises:
        ValueError: There is no such query, or `evaluate` would raise an error.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("explain")
    request, asked = asked_metrics(
        metric,
        versus,
        options,
        inputs=inputs,
        duplicates=duplicates,
        lower_is_better=lower_is_better,
    )
    data = ListData.of_arrays(request, y_true, y_pred, mask, sample_weight)
    one = data.list_of(query)
    return Explanation(query, asked, [one] * len(asked))


def explain_rows(
    query_ids: ColumnLike,
    labels: ColumnLike,
    scores: ColumnLike,
    metric: str | MetricObject,
    query: Key,
    *,
    item_ids: ColumnLike | None = None,
    data: TableLike | None = None,
    groups: ColumnLike | None = None,
    subtopic: ColumnLike | None = None,
    versus: str | MetricObject | None = None,
    sample_weight: ColumnLike | None = None,
    lower_is_better: bool = False,
    **options: Unpack[Options],
) -> Explanation:
    """Shows how the value of a metric for one query of a table is computed.

    >>> table = {"user": ["b", "a", "b"], "click": [0, 1, 1], "score": [0.2, 0.9, 0.3]}
    >>> explain_rows("user", "click", "score", "mrr", "b", data=table)
    rank  item  score  label    gain  counted  1/rank  contribution  running value
    1     2       0.3      1  1.0000   1.0000  1.0000        1.0000         1.0000
    2     0       0.2      0  0.0000   0.0000  0.5000        0.0000         1.0000
    mrr of query 'b': 1.0000. contribution = counted * 1/rank.

    Args:
        query_ids: The query id of each row, as in `evaluate_rows`.
        labels: The label of each row.
        scores: The score of each row.
        metric: A name such as "ndcg@10", or a metric object.
        query: The id of the query, or its number in `groups`.
        item_ids: The item of each row, which names it in the column "item"; by default
            the number of the row, from 0.
        data: A frame or a dict of columns, as in `evaluate_rows`. Then the columns may
            be passed by name.
        groups: The number of rows of each query, as in `evaluate_rows`.
        subtopic: The subtopic that each row judges, as in `evaluate_rows`.
        versus: A second metric to show side by side, as in `explain`.
        sample_weight: One weight per row.
        lower_is_better: If True, the lowest score ranks first. Scores are shown as
            negative ones.
        **options: Options for a metric passed by name. See `tfrankmetrics.Options`.

    Returns:
        An `Explanation`, as from `explain`.

    Raises:
        ValueError: There is no such query, or `evaluate_rows` would raise an error.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("explain_rows")
    request, asked = asked_metrics(
        metric, versus, options, lower_is_better=lower_is_better
    )
    columns = {"query_ids": query_ids, "labels": labels, "scores": scores}
    columns |= {"sample_weight": sample_weight, "item_ids": item_ids}
    columns["subtopic"] = subtopic
    table = RowData.of_table(request, columns, data, groups)
    lists = [table.list_of(query, each) for each in request.measures]
    return Explanation(query, asked, lists)


def explain_run(
    qrels: TableLike,
    run: TableLike,
    metric: str | MetricObject,
    query_id: Key,
    *,
    versus: str | MetricObject | None = None,
    query: str = "query_id",
    item: Names = "item_id",
    label: str = "label",
    score: str = "score",
    subtopic: str | None = None,
    missing_queries: MissingQueries = "zero",
    unjudged: Unjudged = "irrelevant",
    exclude: Excluded = None,
    lower_is_better: bool = False,
    sample_weight: ArrayLike | None = None,
    **options: Unpack[Options],
) -> Explanation:
    """Shows how the value of a metric for one query of a run is computed.

    >>> qrels, run = {"q": {"a": 1, "c": 1}}, {"q": {"b": 9.5, "a": 8.1}}
    >>> explain_run(qrels, run, "map", "q")
    rank  item  score     label    gain  precision  contribution  running value
    1     b       9.5  unjudged  0.0000     0.0000        0.0000         0.0000
    2     a       8.1         1  1.0000     0.5000        0.2500         0.2500
    -     c      -inf         1  1.0000
    map of query 'q': 0.2500. contribution = gain * precision / 2.

    Args:
        qrels: The judgments, as in `evaluate_run`.
        run: The predictions, as in `evaluate_run`.
        metric: A name such as "ndcg@10", or a metric object.
        query_id: The id of the query.
        versus: A second metric to show side by side, as in `explain`.
        query: The column of the query ids, in both tables.
        item: The column of the item ids, in both tables, or a list of columns that
            identify an item together.
        label: The column of the labels, in `qrels`.
        score: The column of the scores, in `run`.
        subtopic: The column of the subtopics, in `qrels`, as in `evaluate_run`.
        missing_queries: A query without predictions: "zero", an empty result (the
            default). It is an error with "skip" and "error".
        unjudged: Unjudged items are treated as "irrelevant" (the default), or excluded
            by "drop".
        exclude: Predictions to remove from the run: a dict from queries to lists of
            items, a frame of both, or "identical_ids".
        lower_is_better: If True, the lowest score ranks first. Scores are shown as
            negative ones.
        sample_weight: The weight of each query, as a dict or the name of a column of
            `qrels`.
        **options: Options for a metric passed by name. See `tfrankmetrics.Options`.

    Returns:
        An `Explanation`, as from `explain`.

    Raises:
        ValueError: The query has no judgments, or `evaluate_run` would raise an error.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("explain_run")
    request, asked = asked_metrics(
        metric, versus, options, lower_is_better=lower_is_better
    )
    policies = Policies(missing_queries, "skip", unjudged)
    policies.check("explain_run")
    subtopic = request.column_of_subtopics(subtopic)
    names = PairColumns(query, item, label, score, subtopic)
    qrels, run = read_tables(qrels, run, names)
    given = qrels, run, names, policies, exclude, sample_weight
    data = RunData.of_tables(request, *given)
    lists = [data.list_of(query_id, each) for each in request.measures]
    return Explanation(query_id, asked, lists)


def explain_retrieval(
    queries: ArrayLike,
    candidates: ArrayLike,
    relevant: ArrayLike,
    metric: str | MetricObject,
    query: int = 0,
    *,
    versus: str | MetricObject | None = None,
    sample_weight: ArrayLike | None = None,
    exclude: ArrayLike | None = None,
    candidate_ids: ArrayLike | None = None,
    score: Score | None = None,
    query_tower: Tower | None = None,
    candidate_tower: Tower | None = None,
    batch_size: int | None = None,
    chunk_size: int | None = None,
    **options: Unpack[Options],
) -> Explanation:
    """Shows how the value of a metric for one query among all candidates is computed.

    >>> queries, relevant = [[1.0, 0.0], [0.0, 1.0]], [[0], [0, 2]]
    >>> candidates = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.6]]
    >>> explain_retrieval(queries, candidates, relevant, "recall@2", query=1)
    rank  item  score  label    gain  contribution  running value
    1     1       0.8      0  0.0000        0.0000         0.0000
    2     2       0.6      1  1.0000        0.5000         0.5000
    3     0       0.1      1  1.0000
    recall@2 of query 1: 0.5000. contribution = gain / 2.

    The scores of all candidates are computed for this query alone.

    Args:
        queries: Embeddings or other inputs of all queries, as in `evaluate_retrieval`.
        candidates: Embeddings or other inputs, as in `evaluate_retrieval`.
        relevant: Ids of the relevant items of all queries, as in `evaluate_retrieval`.
        metric: A name such as "ndcg@10", or a metric object.
        query: The number of the query, from 0.
        versus: A second metric to show side by side, as in `explain`.
        sample_weight: A weight for each query: a scalar, `[B]` or `[B, 1]`.
        exclude: Ids to exclude from each query's ranking, `[B, E]`, lists of unequal
            length, or a sparse matrix `[B, V]`.
        candidate_ids: The id of each candidate, `[V]`, integers or strings. By default
            its position.
        score: A function from some rows of queries and of candidates to their scores
            `[B, C]`. By default the dot product.
        query_tower: A Keras model, a layer or a function that computes `queries` from
            inputs.
        candidate_tower: The same for `candidates`.
        batch_size: The number of queries that are scored at a time.
        chunk_size: The number of candidates that are scored at a time.
        **options: Options for a metric passed by name. See `tfrankmetrics.Options`.

    Returns:
        An `Explanation`, as from `explain`. Its items are the ids or the positions of
        the candidates.

    Raises:
        ValueError: There is no such query, or `evaluate_retrieval` would raise an
            error.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("explain_retrieval")
    _, asked = asked_metrics(metric, versus, options, inputs="catalog")
    data = CandidateData(
        queries=queries,
        candidates=candidates,
        relevant=relevant,
        sample_weight=sample_weight,
        exclude=exclude,
        candidate_ids=candidate_ids,
        score=score,
        query_tower=query_tower,
        candidate_tower=candidate_tower,
        batch_size=batch_size,
        chunk_size=chunk_size,
    )
    one = data.list_of(query)
    return Explanation(query, asked, [one] * len(asked))
