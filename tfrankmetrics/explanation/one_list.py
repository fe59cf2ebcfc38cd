"""The list of one query as labels and scores, whatever its input format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.inputs.catalogue import CatalogueLists
from tfrankmetrics.inputs.ids import IdLists
from tfrankmetrics.inputs.labels import LabelLists
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.inputs.relevant_ids import PADDING, is_repeated
from tfrankmetrics.ranking.items import lowest_score
from tfrankmetrics.ranking.ties import STABLE


class OneList(NamedTuple):
    """The list of one query."""

    lists: LabelLists  # one row, in arrays of NumPy
    items: Sequence[Any]  # the name of each item
    number: int  # of the query, on which ties="random" depends
    keys: Sequence[int]  # of the items, whatever their order is
    has_scores: bool = True  # rather than the order of the items


def list_of_query(
    lists: Lists, row: int, number: int, names: Mapping[int, Any]
) -> OneList:
    """One row of checked lists, which is the query of this number.

    `names` are the ids by their numbers, if they were not integers.
    """
    arrays = {n: np.asarray(each[row : row + 1]) for n, each in lists.arrays.items()}
    one: Any = lists.with_arrays(arrays)
    if isinstance(one, IdLists):
        relevant = one.ascending_relevant()[0][0].tolist()
        ids, labels = [*one.recommended[0].tolist(), *relevant], _of_ids(one)
    else:
        labels = _of_catalogue(one) if isinstance(one, CatalogueLists) else one
        ids = range(labels.scores.shape[1])
    items = [names.get(each, each) for each in ids]
    return OneList(
        labels, items, number, range(len(items)), not isinstance(one, IdLists)
    )


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
    scores: Any = lists.scores.copy()
    is_first = (lists.relevant != PADDING) & ~is_repeated(lists.relevant)
    relevant = lists.relevant[is_first]
    excluded = np.zeros(0, int) if lists.exclude is None else lists.exclude[0]
    excluded = excluded[excluded != PADDING]
    labels, is_valid = np.zeros(scores.shape), np.ones(scores.shape, bool)
    labels[0, relevant] = lists.relevance[is_first]
    scores[0, excluded] = lowest_score(scores)
    # An excluded item that is not relevant is not part of the list.
    is_valid[0, excluded] = False
    is_valid[0, relevant] = True
    return LabelLists(labels, scores, is_valid, query_weights=lists.query_weights)
