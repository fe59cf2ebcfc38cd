"""Judgments by subtopic: several rows of a table for a pair of a query and an item.

Metrics of subtopics read a label for each subtopic, and all others the highest one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tfrankmetrics.columns.numbered_ids import Ids, number_ids
from tfrankmetrics.inputs.mistakes import OF_SUBTOPICS, Facts
from tfrankmetrics.rules import shortened


class SubtopicLabels(NamedTuple):
    """The pairs of a query and an item in rows that judge subtopics, and their labels.

    Pair p has `lengths[p]` rows, which stand in `order` from `starts[p]`. The last
    pair, which the number -1 selects, stands for what was not judged; it has no rows.
    """

    pairs: np.ndarray  # [rows], numbered by their first rows
    order: np.ndarray  # [rows]
    starts: np.ndarray  # [pairs + 1]
    lengths: np.ndarray  # [pairs + 1]
    id_ranks: np.ndarray  # [pairs + 1], the order of the items by their ids as text
    subtopics: np.ndarray  # [rows], the number of the subtopic in its query, from 0
    labels: np.ndarray  # [rows]
    facts: Facts

    @property
    def first_rows(self) -> np.ndarray:
        """The first row of each pair, ascending."""
        return self.order[self.starts[:-1]]

    @property
    def highest(self) -> np.ndarray:
        """The highest label of each pair."""
        highest = self.labels[self.first_rows]
        np.maximum.at(highest, self.pairs, self.labels)
        return highest

    @property
    def most(self) -> int:
        """The largest number of subtopics of a query."""
        return int(self.subtopics.max(initial=0)) + 1

    def of(self, pairs: np.ndarray) -> np.ndarray:
        """The labels of pairs `[B, N]` for each subtopic, `[B, N, T]`."""
        cells = pairs.ravel()
        lengths = self.lengths[cells]
        before = np.cumsum(lengths) - lengths
        places = np.repeat(self.starts[cells] - before, lengths)
        rows = self.order[places + np.arange(len(places))]
        subtopics = self.subtopics[rows]
        number = int(subtopics.max(initial=0)) + 1
        labels = np.zeros((len(cells), number), self.labels.dtype)
        labels[np.repeat(np.arange(len(cells)), lengths), subtopics] = self.labels[rows]
        return labels.reshape(*pairs.shape, number)


def read_subtopics(
    queries: Ids,
    items: Ids,
    subtopics: Ids,
    labels: np.ndarray,
    place: Callable[[int], str] | None,
) -> SubtopicLabels:
    """The pairs in rows with a query, an item, a subtopic and a label.

    `place` says where a row is, for errors, if that is known.

    Raises:
        ValueError: A row repeats a query, an item and a subtopic.
    """
    num_items = items.codes.max(initial=0) + 1
    pairs = number_ids("pairs", [queries.codes * num_items + items.codes])
    order, starts, lengths = pairs.groups
    # Subtopics are numbered by their text: the order of rows changes no sum.
    size = len(subtopics.distinct)
    keys = queries.codes * size + _ranks_as_text(subtopics)
    of_queries, numbers = np.unique(keys, return_inverse=True)
    numbers -= np.searchsorted(of_queries, queries.codes * size)
    row = first_repeated(pairs.codes * size + subtopics.codes)
    if row is not None:
        query, item, subtopic = (
            shortened(ids.at(ids.codes[[row]])[0])
            for ids in (queries, items, subtopics)
        )
        where = "" if place is None else f", the second time in {place(row)}"
        raise ValueError(
            "An item must be judged once for each subtopic of a query. Received: the "
            f"query {query} with the item {item} and the subtopic {subtopic} twice"
            f"{where}."
        )
    several = np.unique(queries.codes[numbers > 0])
    counts = len(np.unique(queries.codes)), len(several)
    return SubtopicLabels(
        pairs=pairs.codes,
        order=order,
        starts=np.append(starts, 0),
        lengths=np.append(lengths, 0),
        id_ranks=np.append(_ranks_as_text(items)[order[starts]], -1),
        subtopics=numbers,
        labels=labels,
        facts=Facts(zip(OF_SUBTOPICS, counts, strict=True)),
    )


def first_repeated(keys: np.ndarray) -> int | None:
    """The first row whose key another row before it has, if there is one."""
    order = np.argsort(keys, kind="stable")
    is_repeated = keys[order][1:] == keys[order][:-1]
    return int(order[1:][is_repeated].min()) if is_repeated.any() else None


def _ranks_as_text(ids: Ids) -> np.ndarray:
    """The place of each row's id among all, sorted as text by its bytes."""
    occurring, numbers = np.unique(ids.codes, return_inverse=True)
    texts = [*map(str, ids.at(occurring))]
    ranks = np.empty(len(texts), np.int64)
    # Python sorts text by its code points, which is the order of its bytes.
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks[numbers]
