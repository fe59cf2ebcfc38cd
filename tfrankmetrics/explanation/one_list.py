"""The list of one query as labels and scores, whatever its input format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrankmetrics.explanation.working import STABLE, OneList, computed_from
from tfrankmetrics.inputs.catalogue import CatalogueLists
from tfrankmetrics.inputs.dense import as_scores
from tfrankmetrics.inputs.ids import IdLists
from tfrankmetrics.inputs.labels import LabelLists
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.inputs.relevant_ids import PADDING, is_repeated
from tfrankmetrics.ranking.items import lowest_score


def list_of_query(
    lists: Lists, place: int, query: int, ids: Mapping[int, Any]
) -> OneList:
    """One query of checked lists: its place in them, and its number among all queries.

    `ids` are the ids by their numbers, if they were not integers.
    """
    arrays = {n: each[place : place + 1] for n, each in lists.arrays.items()}
    one = lists.with_arrays(arrays)
    compute = computed_from(one, query)
    local: Any = one.with_arrays({n: np.asarray(each) for n, each in arrays.items()})
    if isinstance(local, IdLists):
        relevant = local.ascending_relevant()[0][0].tolist()
        numbers = [*local.recommended[0].tolist(), *relevant]
        items = [ids.get(number, number) for number in numbers]
        labels, keys = _of_ids(local), range(len(items))
        return OneList(compute, labels, items, keys, query, has_scores=False)
    labels = _of_catalogue(local) if isinstance(local, CatalogueLists) else local
    positions = range(labels.scores.shape[1])
    return OneList(compute, labels, positions, positions, query)


def _of_ids(lists: IdLists) -> LabelLists:
    """The recommended items in their order, and then the relevant items they miss."""
    judged = lists.rank(None, STABLE, 0).judged
    by_rank = -np.arange(judged.valid.shape[1], dtype=float)[np.newaxis]
    scores = np.where(judged.retrieved, by_rank, -np.inf)
    return LabelLists(
        judged.labels, scores, judged.valid, query_weights=lists.query_weights
    )


def _of_catalogue(lists: CatalogueLists) -> LabelLists:
    """A label for each item of the catalogue."""
    exclude = [] if lists.exclude is None else lists.exclude[0]
    is_first = (lists.relevant != PADDING) & ~is_repeated(lists.relevant)
    return labels_of_catalogue(
        lists.scores[0],
        lists.relevant[is_first],
        lists.relevance[is_first],
        exclude,
        lists.query_weights,
    )


def labels_of_catalogue(
    scores: np.ndarray,
    relevant: np.ndarray,
    relevance: np.ndarray,
    exclude: Any,
    query_weights: np.ndarray | None = None,
) -> LabelLists:
    """Labels and scores of all items of a catalogue, `[1, V]`.

    Args:
        scores: The scores of the items, `[V]`.
        relevant: The positions of the relevant items, each once.
        relevance: Their relevance.
        exclude: The positions of the items that are excluded, or -1.
        query_weights: The weight of the query, `[1]`.
    """
    scores = as_scores(scores).copy()
    labels = np.zeros(scores.shape)
    labels[relevant] = relevance
    excluded = np.asarray(exclude, int)
    excluded = excluded[excluded != PADDING]
    scores[excluded] = lowest_score(scores)
    # An excluded item that is not relevant is not part of the list.
    is_valid = np.ones(scores.shape, bool)
    is_valid[excluded] = False
    is_valid[relevant] = True
    return LabelLists(
        labels[np.newaxis],
        scores[np.newaxis],
        is_valid[np.newaxis],
        query_weights=query_weights,
    )
