"""`explain` for lists, tables and runs: how the value of one query is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.slices import rows_of
from tfrankmetrics.columns.values import exact_scores
from tfrankmetrics.compute.calls import require_eager
from tfrankmetrics.compute.values import without_one_subtopic
from tfrankmetrics.conventions import CONVENTION_OF, CONVENTIONS
from tfrankmetrics.evaluation.join import (
    join,
    read_judgments,
    read_predictions,
)
from tfrankmetrics.evaluation.queries import Queries, queries_of_codes
from tfrankmetrics.evaluation.rows import (
    by_query,
    columns_of,
    drops_unjudged,
    lists_of_rows,
    read_table,
)
from tfrankmetrics.evaluation.runs import (
    Excluded,
    PairColumns,
    Unjudged,
    by_descending_item,
    count_pairs,
    in_precision_of_trec_eval,
    read_tables,
    refuse_missing_queries,
    rows_of_join,
)
from tfrankmetrics.explanation.one_list import list_of_query
from tfrankmetrics.explanation.result import Explanation
from tfrankmetrics.explanation.working import (
    ItemsByRank,
    OneList,
    work_out,
)
from tfrankmetrics.inputs.alignment import aligned, aligned_lists
from tfrankmetrics.inputs.ids import IdNumbers, as_integer_ids
from tfrankmetrics.inputs.mistakes import LabelRules
from tfrankmetrics.inputs.unequal import Batch, batch_of, lengths_if_unequal
from tfrankmetrics.metrics.measure import Measure, require_relevance
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.options import Duplicates, Inputs, Options
from tfrankmetrics.results.request import Request, read_request
from tfrankmetrics.rules import check_option, check_query, did_you_mean, shortened

if TYPE_CHECKING:
    from typing_extensions import Unpack


def explain(
    y_true: Any,
    y_pred: Any,
    metric: str | MetricObject,
    query: int = 0,
    *,
    versus: str | MetricObject | None = None,
    mask: Any = None,
    sample_weight: Any = None,
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
            in which `metric` is computed again, or a metric object with other options.
        mask: As in `evaluate`.
        sample_weight: As in `evaluate`.
        inputs: As in `evaluate`.
        duplicates: As in `evaluate`.
        lower_is_better: As in `evaluate`. Scores are shown as negative ones.
        **options: Options for a metric passed by name, such as `gain="linear"` or
            `convention="trec_eval"`. See `tfrankmetrics.Options`.

    Returns:
        An `Explanation`, whose `value` is exactly the value of `evaluate` with
        `per_query=True`. It prints as a table, and provides `to_pandas()`,
        `to_markdown()` and `to_latex()`.

    Raises:
        ValueError: There is no such query, or `evaluate` would raise an error.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("explain")
    asked = asked_metrics(metric, versus, options, inputs=inputs, duplicates=duplicates)
    request, numbers = asked[0].request, IdNumbers()
    data = request.data
    data.refuse_mistakes(y_true, y_pred)
    y_true, y_pred, mask, sample_weight = aligned_lists(
        data.inputs,
        {
            "y_true": y_true,
            "y_pred": y_pred,
            "mask": mask,
            "sample_weight": sample_weight,
        },
    ).values()
    if data.inputs == "ids":
        y_true, y_pred = as_integer_ids(y_true, y_pred, numbers)
    lengths = lengths_if_unequal(y_true, y_pred)
    batch, place = Batch(y_true, y_pred, sample_weight, mask), query
    if lengths is not None:  # padding all lists to the longest would waste memory
        check_query("explain", query, len(lengths))
        batch, place = batch_of(batch, np.array([query])), 0
    lists = request.read(*batch[:4])
    lists.require_valid_values()
    lists = without_one_subtopic([each.measure for each in asked], lists)
    check_query("explain", place, int(lists.num_queries))
    one = list_of_query(lists, place, query, numbers.ids())
    return explanation_of(query, asked, lambda each: one)


def explain_rows(
    query_ids: Any,
    labels: Any,
    scores: Any,
    metric: str | MetricObject,
    query: Any,
    *,
    item_ids: Any = None,
    data: Any = None,
    groups: Any = None,
    versus: str | MetricObject | None = None,
    sample_weight: Any = None,
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
        versus: A second metric to show side by side, as in `explain`.
        sample_weight: One weight per row.
        lower_is_better: As in `evaluate_rows`. Scores are shown as negative ones.
        **options: Options for a metric passed by name. See `tfrankmetrics.Options`.

    Returns:
        An `Explanation`, as from `explain`.

    Raises:
        ValueError: There is no such query, or `evaluate_rows` would raise an error.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("explain_rows")
    asked = asked_metrics(metric, versus, options, lower_is_better=lower_is_better)
    given = {"query_ids": query_ids, "labels": labels, "scores": scores}
    given |= {"sample_weight": sample_weight, "item_ids": item_ids}
    given = aligned(columns_of(data, given))
    names = given.pop("item_ids")
    table = read_table(given, groups, LabelRules(), lower_is_better)
    names = range(len(table)) if names is None else np.asarray(names).tolist()
    if len(names) != len(table):
        raise ValueError(
            f"`item_ids` must have an item for each of {len(table)} rows. Received: "
            f"{len(names)}."
        )
    number = _number_of(query, table.ids.tolist())

    def list_for(each: AskedMetric) -> OneList:
        return _of_rows(
            table.queries, table.columns, number, each.measure, names, drop=True
        )

    return explanation_of(query, asked, list_for)


def _of_rows(
    queries: Queries,
    columns: dict[str, np.ndarray],
    number: int,
    measure: Measure,
    names: Sequence[Any],
    *,
    drop: bool,
    keys: np.ndarray | None = None,
) -> OneList:
    """The list of a query of a table, with these names and keys of its rows."""
    chosen = np.array([number])
    rows = queries.rows(chosen)[0][0]
    lists = lists_of_rows(queries, chosen, columns, drops_unjudged(measure, drop))

    def compute(measure: Measure) -> tuple[np.ndarray, np.ndarray]:
        values, weights = by_query(
            {"": measure}, queries, columns, drop_unjudged=drop, only=number
        )
        return values[:, chosen], weights[:, chosen]

    named = [names[row] for row in rows]
    keys = np.arange(len(rows)) if keys is None else keys[rows]
    return OneList(compute, lists, named, keys.tolist(), number)


def explain_run(
    qrels: Any,
    run: Any,
    metric: str | MetricObject,
    query_id: Any,
    *,
    versus: str | MetricObject | None = None,
    query: str = "query_id",
    item: str = "item_id",
    label: str = "label",
    score: str = "score",
    unjudged: Unjudged = "irrelevant",
    exclude: Excluded | None = None,
    lower_is_better: bool = False,
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
        query: As in `evaluate_run`.
        item: As in `evaluate_run`.
        label: As in `evaluate_run`.
        score: As in `evaluate_run`.
        unjudged: As in `evaluate_run`.
        exclude: As in `evaluate_run`.
        lower_is_better: As in `evaluate_run`. Scores are shown as negative ones.
        **options: Options for a metric passed by name. See `tfrankmetrics.Options`.

    Returns:
        An `Explanation`, as from `explain`.

    Raises:
        ValueError: The query has no judgments, or `evaluate_run` would raise an error.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("explain_run")
    asked = asked_metrics(metric, versus, options, lower_is_better=lower_is_better)
    check_option("explain_run", "unjudged", unjudged, Unjudged)
    qrels, run = read_tables(qrels, run, PairColumns(query, item, label, score))
    judged = read_judgments(qrels, query, item, label)

    def list_for(each: AskedMetric) -> OneList:
        is_trec_eval = each.convention == "trec_eval"
        convert = in_precision_of_trec_eval if is_trec_eval else exact_scores
        predicted = read_predictions(
            run, query, item, score, convert, exclude, lower_is_better
        )
        joined = join(judged, predicted)
        ids = rows_of("query", "query", judged.queries, joined.first_rows).tolist()
        number = _number_of(query_id, ids)
        columns = rows_of_join(joined, judged.numbers, predicted.numbers)
        if is_trec_eval:
            columns = by_descending_item(columns, judged.items, predicted.items)
        items = [*judged.items, *predicted.items]
        names = [items[pair] for pair in columns["pair"]]
        queries = queries_of_codes(columns["query"], len(ids))
        drop = unjudged == "drop"
        if not joined.has_predictions[number]:
            counts = count_pairs(joined, judged.numbers, predicted.numbers, "zero")
            refuse_missing_queries({each.name: each.measure}, counts)
        return _of_rows(
            queries,
            columns,
            number,
            each.measure,
            names,
            drop=drop,
            keys=columns["pair"],
        )

    return explanation_of(query_id, asked, list_for)


class AskedMetric(NamedTuple):
    """A metric to explain."""

    name: str
    label: str | None  # in the columns of a second metric
    convention: str | None
    measure: Measure
    request: Request


def asked_metrics(
    metric: str | MetricObject,
    versus: str | MetricObject | None,
    options: Mapping[str, Any],
    **of_data: Any,
) -> list[AskedMetric]:
    """The metric and, if there is one, the other metric or convention."""
    if isinstance(metric, (list, tuple)):
        raise ValueError(
            "`metric` must be one name or one metric object. Received: "
            f"{shortened(metric)}. To show two, pass the other one as `versus`."
        )
    request = read_request([metric], options, **of_data)
    require_relevance(request.named, "`explain`")
    ((name, measure),) = request.named.items()
    convention = options.get("convention")
    asked = [AskedMetric(name, None, convention, measure, request)]
    if versus is None:
        return asked
    if isinstance(versus, str):
        if not isinstance(metric, str):
            raise ValueError(
                "`versus` may be a convention if `metric` is a name. Received: "
                f"versus={versus!r}, metric={shortened(metric)}. Pass two metric "
                "objects."
            )
        if versus not in CONVENTIONS:
            hint = did_you_mean(versus, CONVENTIONS, CONVENTION_OF)
            raise ValueError(
                "`versus` must be the name of a convention, or a metric object. "
                f"Received: {versus!r}.{hint}"
            )
        convention = versus
        options = {**options, "convention": versus}
        request = read_request([metric], options, **of_data)
    else:
        convention = None
        request = read_request([versus], {}, **of_data)
    ((other, measure),) = request.named.items()
    label = convention or other
    if other == name:
        label = convention or "versus"
        other = f"{other} ({label})"
    return [*asked, AskedMetric(other, label, convention, measure, request)]


def explanation_of(
    query: Any, asked: Sequence[AskedMetric], list_for: Callable[[AskedMetric], OneList]
) -> Explanation:
    """The explanation of each metric for the list of a query."""
    lists = [list_for(each).read_by(each.measure) for each in asked]
    items = [
        ItemsByRank(each.measure, one) for each, one in zip(asked, lists, strict=True)
    ]
    ranks = sorted({rank for each in items for rank in each.ranks.tolist()})
    missed = dict.fromkeys(key for each in items for key in each.missed)
    for each in items:
        each.show(ranks, [*missed])
    workings = [
        work_out(each.name, each.measure, one, shown, each.label)
        for each, one, shown in zip(asked, lists, items, strict=True)
    ]
    return Explanation(query, workings)


def _number_of(query: Any, ids: Sequence[Any]) -> int:
    """The number of a query."""
    try:
        is_known = query in set(ids)
    except TypeError:  # an array or a list: not hashable
        is_known = False
    if not is_known or isinstance(query, bool):
        such = f", such as {shortened(ids[0])}" if ids else ", and there is none"
        raise ValueError(
            f"The query must be the id of an evaluated query{such}. Received: "
            f"{shortened(query)}."
        )
    return ids.index(query)
