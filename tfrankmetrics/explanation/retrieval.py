"""`explain_retrieval`: how the value of one query among all candidates is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tfrankmetrics.arguments import ExplainRetrievalArguments
from tfrankmetrics.engine.calls import require_eager
from tfrankmetrics.engine.names import MetricObject
from tfrankmetrics.explanation.functions import asked_metrics, explanation_of
from tfrankmetrics.explanation.one_list import labels_of_catalogue
from tfrankmetrics.explanation.result import Explanation
from tfrankmetrics.explanation.working import OneList
from tfrankmetrics.retrieval.evaluation import RetrievalSettings
from tfrankmetrics.retrieval.inputs import with_aligned_rows
from tfrankmetrics.retrieval.one_query import OneQuery
from tfrankmetrics.retrieval.truth import read_truth
from tfrankmetrics.signatures import split, takes

if TYPE_CHECKING:
    from typing_extensions import Unpack


@takes(ExplainRetrievalArguments)
def explain_retrieval(
    queries: Any,
    candidates: Any,
    relevant: Any,
    metric: str | MetricObject,
    query: int = 0,
    *,
    versus: str | MetricObject | None = None,
    **arguments: Unpack[ExplainRetrievalArguments],
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
        **arguments: Options for a metric passed by name. See `tfrankmetrics.Options`.

    Returns:
        An `Explanation`, as from `explain`. Its items are the ids or the positions of
        the candidates.

    Raises:
        ValueError: There is no such query, or `evaluate_retrieval` would raise an
            error.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("explain_retrieval")
    asked = asked_metrics(
        ExplainRetrievalArguments, metric, versus, arguments, inputs="catalogue"
    )
    for each in asked:
        if each.measure["ties"] == "random":
            raise ValueError(
                "explain_retrieval() supports only ties='expected', 'stable', 'best' "
                "and 'worst'. Received: ties='random'."
            )
    given, _ = split(ExplainRetrievalArguments, arguments)
    given = with_aligned_rows(
        {**given, "queries": queries, "candidates": candidates, "relevant": relevant}
    )
    settings = RetrievalSettings.of(given)
    truth = read_truth(given["relevant"], given["exclude"], given["candidate_ids"])
    one = OneQuery.of(settings, truth, given["queries"], given["candidates"], query)
    items = one.items
    is_relevant = items.is_valid[0]
    labels = labels_of_catalogue(
        one.scores(),
        items.ids[0][is_relevant],
        items.relevance[0][is_relevant],
        items.exclude[0],
    )
    names: Any = range(one.candidates.number)
    positions = names
    if given["candidate_ids"] is not None:
        names = np.asarray(given["candidate_ids"]).tolist()
    one_list = OneList(one.value_and_weight, labels, names, positions)
    return explanation_of(query, asked, lambda each: one_list)
