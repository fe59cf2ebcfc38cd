"""The list of one query, which `explain` shows as labels and scores in every format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.inputs.catalog import CatalogLists
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
    number: int  # of the query, for errors
    keys: Sequence[int]  # of the items, whatever their order is
    has_scores: bool = True  # rather than the order of the items
    left_out: str = ""  # why the query is left out, if the list does not show it


def list_of_query(
    lists: Lists, row: int, number: int, names: Mapping[int, Any]
) -> OneList:
    """One row of checked lists, which is the query of this number.

    `names` are the ids by their numbers, if they were not integers.
    """
    one: Any = lists.on_host(slice(row, row + 1))
    if isinstance(one, IdLists):
        # The recommended items in their order, then the relevant ones they miss.
        ids = one.recommended[0].tolist()
        ids += one.ascending_relevant()[0][0].tolist()
        listed = one.rank(None, STABLE).listed
        by_rank = -np.arange(listed.valid.shape[1], dtype=float)[np.newaxis]
        scores = np.where(listed.retrieved, by_rank, -np.inf)
        labels = LabelLists(
            listed.labels, scores, listed.valid, query_weights=one.query_weights
        )
    else:
        labels = _of_catalog(one) if isinstance(one, CatalogLists) else one
        ids = range(labels.scores.shape[1])
    items = [names.get(each, each) for each in ids]
    has_scores = not isinstance(one, IdLists)
    left_out = ""
    if isinstance(one, CatalogLists) and (one.relevant == PADDING).all():
        left_out = "it has no relevant items"
    return OneList(labels, items, number, range(len(items)), has_scores, left_out)


def _of_catalog(lists: CatalogLists) -> LabelLists:
    """A label for each item of the catalog."""
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
