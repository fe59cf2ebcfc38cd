"""`explain_retrieval`: how the value of one query among all candidates is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tfrankmetrics.compute.calls import require_eager
from tfrankmetrics.explanation.functions import asked_metrics, explanation_of
from tfrankmetrics.explanation.one_list import labels_of_catalogue
from tfrankmetrics.explanation.result import Explanation
from tfrankmetrics.explanation.working import OneList
from tfrankmetrics.inputs.structures import rows_of, size_of
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.options import Options
from tfrankmetrics.retrieval.all_candidates import rank_all
from tfrankmetrics.retrieval.counted_values import order_of, values_of_ranks
from tfrankmetrics.retrieval.evaluate_retrieval import Retrieval, Score
from tfrankmetrics.retrieval.highest import Depth
from tfrankmetrics.rules import check_query

if TYPE_CHECKING:
    from typing_extensions import Unpack


def explain_retrieval(
    queries: Any,
    candidates: Any,
    relevant: Any,
    metric: str | MetricObject,
    query: int = 0,
    *,
    versus: str | MetricObject | None = None,
    exclude: Any = None,
    candidate_ids: Any = None,
    score: Score | None = None,
    query_tower: Any = None,
    candidate_tower: Any = None,
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
        metric: A name such as "ndcg@10", or a metric object. Its `ties` may not be
            "random", since the order would differ from that of `evaluate_retrieval`.
        query: The number of the query, from 0.
        versus: A second metric to show side by side, as in `explain`.
        exclude: As in `evaluate_retrieval`.
        candidate_ids: As in `evaluate_retrieval`.
        score: As in `evaluate_retrieval`.
        query_tower: As in `evaluate_retrieval`.
        candidate_tower: As in `evaluate_retrieval`.
        batch_size: As in `evaluate_retrieval`.
        chunk_size: As in `evaluate_retrieval`.
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
    asked = asked_metrics(metric, versus, options, inputs="catalogue")
    for each in asked:
        if each.measure.tie_policy.is_random:
            raise ValueError(
                "explain_retrieval() supports only ties='expected', 'stable', 'best' "
                "and 'worst'. Received: ties='random'."
            )
    task = Retrieval(
        queries=queries,
        candidates=candidates,
        relevant=relevant,
        exclude=exclude,
        candidate_ids=candidate_ids,
        score=score,
        query_tower=query_tower,
        candidate_tower=candidate_tower,
        batch_size=batch_size,
        chunk_size=chunk_size,
    )
    vectors = task.queries()
    number = size_of("queries", vectors)
    task.relevant.require_queries(number)
    check_query("explain_retrieval", query, number)
    found, this = task.candidates(), np.array([query])
    items = task.relevant.of(this)
    orders = {order for each in asked if (order := order_of(each.measure))}
    ranks, highest = rank_all(
        rows_of(vectors, this),
        found,
        items,
        task.scores,
        task.batch_size,
        orders=orders,
        depth=Depth(None, is_stable=True),
    )
    # Among integers, only excluded items have no score, which are marked below.
    missed = -np.inf if highest.scores.dtype.kind == "f" else 0
    scores = np.full(found.number, missed, highest.scores.dtype)
    scores[highest.ids] = highest.scores
    is_relevant = items.is_valid[0]
    labels = labels_of_catalogue(
        scores,
        items.ids[0][is_relevant],
        items.relevance[0][is_relevant],
        items.exclude[0],
    )

    def value_and_weight(measure: Measure) -> tuple[np.ndarray, np.ndarray]:
        return values_of_ranks({"": measure}, items, ranks, None, found.number)

    names: Any = range(found.number)
    positions = names
    if task.ids is not None:
        names = np.asarray(task.ids).tolist()
    one_list = OneList(value_and_weight, labels, names, positions)
    return explanation_of(query, asked, lambda each: one_list)
