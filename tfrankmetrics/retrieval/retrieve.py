"""`retrieve`: the candidates with the highest scores of each query."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfrankmetrics.arguments import ArrayLike, Tower
from tfrankmetrics.compute.calls import require_eager
from tfrankmetrics.inputs.mistakes import warn_of
from tfrankmetrics.inputs.relevant_ids import PADDING
from tfrankmetrics.ranking.items import lowest_score
from tfrankmetrics.retrieval.all_candidates import rank_all
from tfrankmetrics.retrieval.evaluate_retrieval import CandidateData, Score
from tfrankmetrics.retrieval.highest import Depth
from tfrankmetrics.rules import Positive, check_option


class Retrieved(NamedTuple):
    """The candidates with the highest scores, the best first.

    Args:
        ids: Their positions `[B, k]`, or their ids if `candidate_ids` were passed. If k
            is larger than V, there are V columns. If fewer candidates were retrieved,
            the remaining ids are -1, or None.
        scores: Their scores `[B, k]`; -inf, or the lowest integer, for the rest.

    >>> retrieve([[1.0, 0.0]], [[0.2, 0.5], [0.9, 0.1]], k=1)
    Retrieved(ids=array([[1]]), scores=array([[0.9]]))
    """

    ids: np.ndarray
    scores: np.ndarray


def retrieve(
    queries: ArrayLike,
    candidates: ArrayLike,
    k: int,
    *,
    exclude: ArrayLike | None = None,
    candidate_ids: ArrayLike | None = None,
    score: Score | None = None,
    query_tower: Tower | None = None,
    candidate_tower: Tower | None = None,
    batch_size: int | None = None,
    chunk_size: int | None = None,
) -> Retrieved:
    """Returns the k candidates with the highest scores of each query.

    They are exact: `evaluate_retrieval` with ties="stable" uses the same candidates. Of
    tied candidates, the one that comes first ranks higher.

    >>> retrieve([[1.0, 0.0]], [[0.2, 0.5], [0.9, 0.1]], k=1, candidate_ids=["a", "b"])
    Retrieved(ids=array([['b']], dtype=object), scores=array([[0.9]]))

    Args:
        queries: Embeddings `[B, d]`, or with `query_tower` or `score` other inputs with
            B rows.
        candidates: Embeddings `[V, d]`, or other inputs with V rows; or a
            `tf.data.Dataset` of batches, which is read several times.
        k: The number of candidates, an int of at least 1.
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

    Returns:
        A `Retrieved`, the pair of the arrays `ids` and `scores`.

    Raises:
        ValueError: A shape, id or argument is not one of those above; a dataset is
            empty, endless or changes its order.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("retrieve")
    check_option("retrieve", "k", k, Positive)
    data = CandidateData(
        queries=queries,
        candidates=candidates,
        exclude=exclude,
        candidate_ids=candidate_ids,
        score=score,
        query_tower=query_tower,
        candidate_tower=candidate_tower,
        batch_size=batch_size,
        chunk_size=chunk_size,
    )
    vectors, candidates = data.queries(), data.candidates()
    number = len(data.relevant.ids)
    k = min(k, candidates.number)
    how = data.scores, data.batch_size
    depth = Depth(k, is_stable=True)
    ranks, highest = rank_all(vectors, candidates, data.relevant, *how, depth=depth)
    warn_of(ranks.facts())
    rows, starts = highest.rows, highest.queries(number).starts
    columns = np.arange(len(rows)) - starts[rows]
    ids = np.full((number, k), PADDING, np.int64)
    ids[rows, columns] = highest.ids
    scores = np.full((number, k), lowest_score(highest.scores), highest.scores.dtype)
    scores[rows, columns] = highest.scores
    if data.ids is not None:
        is_padding = ids == PADDING
        ids = data.ids[ids]
        if is_padding.any():
            ids = ids.astype(object)
            ids[is_padding] = None
    return Retrieved(ids, scores)
