"""`retrieve`: the candidates with the highest scores of each query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfrankmetrics.arguments import CatalogueArguments
from tfrankmetrics.engine.calls import require_eager
from tfrankmetrics.options import Cutoff
from tfrankmetrics.ranking.items import lowest_score
from tfrankmetrics.retrieval.blocks import Depth
from tfrankmetrics.retrieval.candidates import in_memory
from tfrankmetrics.retrieval.counting import count_ranks
from tfrankmetrics.retrieval.evaluation import (
    RetrievalSettings,
    library_of_scores,
    read_candidates,
)
from tfrankmetrics.retrieval.inputs import size_of, with_aligned_rows
from tfrankmetrics.retrieval.top import Top
from tfrankmetrics.retrieval.truth import PADDING, no_truth
from tfrankmetrics.rules import check_option
from tfrankmetrics.signatures import split, takes

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Retrieved(NamedTuple):
    """The candidates with the highest scores, the best first.

    Args:
        ids: Their positions `[B, k]`, or their ids if `candidate_ids` were passed. If k
            is larger than V, there are V columns. If fewer candidates were retrieved,
            the remaining ids are -1, or None.
        scores: Their scores `[B, k]`; -inf, or the lowest integer, for the rest.

    >>> from tfrankmetrics import retrieve
    >>> retrieve([[1.0, 0.0]], [[0.2, 0.5], [0.9, 0.1], [0.5, 0.5]], k=2)
    Retrieved(ids=array([[1, 2]]), scores=array([[0.9, 0.5]]))
    """

    ids: np.ndarray
    scores: np.ndarray


@takes(CatalogueArguments)
def retrieve(
    queries: Any, candidates: Any, k: int, **arguments: Unpack[CatalogueArguments]
) -> Retrieved:
    """Returns the k candidates with the highest scores of each query.

    They are exact: `evaluate_retrieval` with ties="stable" uses the same candidates. Of
    tied candidates, the one that comes first ranks higher.

    >>> retrieve([[1.0, 0.0]], [[0.2, 0.5], [0.9, 0.1]], k=1, candidate_ids=["a", "b"])
    Retrieved(ids=array([['b']], dtype='<U1'), scores=array([[0.9]]))

    Args:
        queries: As in `evaluate_retrieval`.
        candidates: As in `evaluate_retrieval`.
        k: The number of candidates, an int of at least 1.

    Returns:
        A `Retrieved`, the pair of the arrays `ids` and `scores`.

    Raises:
        ValueError: A shape, id or argument is not one of those above; a dataset is
            empty, endless or changes its order.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("retrieve")
    check_option("retrieve", "k", k, Cutoff)
    check_option("retrieve", "k", k, int)
    given, _ = split(CatalogueArguments, arguments)
    given = with_aligned_rows({**given, "queries": queries, "candidates": candidates})
    settings = RetrievalSettings.of(given)
    vectors = in_memory(
        "queries", given["queries"], settings.query_tower, settings.batch_size
    )
    number = size_of("queries", vectors)
    truth = no_truth(number, given["exclude"], given["candidate_ids"])
    truth.require_queries(number)
    found = read_candidates(settings, truth, given["candidates"])
    depth = min(k, found.number)
    ranks, top = count_ranks(
        vectors,
        found,
        truth.items(),
        settings.score,
        [],
        settings.batch_size,
        lambda number: None,
        library=library_of_scores(settings.score, vectors, found),
        depth=Depth(depth, is_stable=True),
    )
    assert top is not None  # since there is a depth
    ranks.score_counts().warn()
    return _as_rows(top, number, depth, given["candidate_ids"])


def _as_rows(top: Top, number: int, k: int, candidate_ids: Any) -> Retrieved:
    lengths = np.bincount(top.rows, minlength=number)
    starts = np.cumsum(lengths) - lengths
    columns = np.arange(len(top.rows)) - starts[top.rows]
    ids = np.full((number, k), PADDING, np.int64)
    ids[top.rows, columns] = top.ids
    scores = np.full((number, k), lowest_score(top.scores), top.scores.dtype)
    scores[top.rows, columns] = top.scores
    if candidate_ids is None:
        return Retrieved(ids, scores)
    named = np.asarray(candidate_ids)[ids]
    if (ids == PADDING).any():
        named = named.astype(object)
        named[ids == PADDING] = None
    return Retrieved(named, scores)
