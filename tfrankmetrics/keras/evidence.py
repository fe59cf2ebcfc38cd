"""The facts about its data that a Keras metric keeps in its state.

Because a graph cannot warn, an update counts the facts of some queries and items.
`result` reads them in eager mode, as Keras does at the end of an epoch, and warns. The
counts of batches, replicas and workers add up; therefore, they can be rows of the
metric's sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.graphs import once_per_graph
from tfrankmetrics.inputs.catalog import CatalogLists
from tfrankmetrics.inputs.formats import InputFormat
from tfrankmetrics.inputs.labels import LabelLists
from tfrankmetrics.inputs.mistakes import (
    LABEL_FACTS,
    OF_EXCLUDED,
    OF_LISTS,
    OF_WEIGHTS,
    SCORE_FACTS,
    Asked,
    Facts,
    LabelRules,
    flat_lists,
    reached,
    warn_if_signed,
    warn_of,
)
from tfrankmetrics.metrics.measure import Measure, label_rules
from tfrankmetrics.ranking.items import lowest_relevant

QUERIES = slice(24)  # of a batch that are checked: few, so that it costs little
ITEMS = slice(24)  # of a query


class Evidence:
    """The facts that a metric counts, and the warnings that follow from them."""

    def __init__(self, data: InputFormat, measures: Sequence[Measure]) -> None:
        self._rules = LabelRules()
        # The functions that count facts, with the names of the facts that each returns.
        self._counts: dict[Callable[..., Array], tuple[str, ...]] = {}
        if data.inputs == "catalog":
            self._counts[_facts_of_scores] = ("scores", *SCORE_FACTS)
            self._counts[_facts_of_excluded] = OF_EXCLUDED
        elif data.inputs == "labels":
            self._rules = label_rules(measures)
            if any(each.declaration.has_subtopics for each in measures):
                # Each item may be relevant to a subtopic.
                self._rules = self._rules._replace(thresholds=())
            reaching = map(reached, self._rules.thresholds)
            of_labels = ("labels", *LABEL_FACTS, *reaching)
            self._counts[_facts_of_items] = ("scores", *SCORE_FACTS, *of_labels)
            self._counts[_facts_of_lists] = OF_LISTS
            if self._rules.rank_zero_weights:
                self._counts[_facts_of_weights] = OF_WEIGHTS
        self._names = [name for names in self._counts.values() for name in names]
        self.reset()

    def reset(self) -> None:
        """Forgets the data of an epoch, as far as they are not in the state."""
        self.warned: set[str] = set()  # the rules warned of
        self.uncounted = Facts()  # those that only eager code knows

    @property
    def num_rows(self) -> int:
        """The number of rows `[2]` that hold the facts."""
        return -(-len(self._names) // 2)

    def counted_in(self, lists: Any, is_flat: bool = False) -> Array:
        """The facts of a batch in the order of their names, float64 `[num_rows, 2]`.

        `is_flat` states that its labels have the shape `[N]`.
        """
        if lists.has_subtopics:
            lists = lists.with_arrays({"labels": xp.max(lists.labels, axis=2)})
        # Metrics share the result of a function for the same options, so that each gets
        # only those that it reads.
        options: dict[Any, tuple] = {_facts_of_lists: (is_flat,)}
        options[_facts_of_items] = (self._rules.thresholds,)
        counts = [once_per_graph(f, lists, *options.get(f, ())) for f in self._counts]
        if len(self._names) % 2:
            counts.append(xp.zeros([1], xp.float64, like=counts[0]))
        return xp.reshape(xp.concat(counts, axis=0), [self.num_rows, 2])

    def warn(self, numbers: np.ndarray, name: str) -> None:
        """Warns of the mistakes that the facts show, for the metric of this name."""
        # A last number may only fill its row.
        facts = Facts(zip(self._names, np.ravel(numbers).tolist(), strict=False))
        facts += self.uncounted
        where = f" in {name!r}, among the first items of each batch"
        asked = Asked(self._rules, where, warned=self.warned)
        warn_of(facts, asked)
        remedy = 'pass {"labels": labels, "mask": labels >= 0}'
        warn_if_signed(facts, remedy, asked)


def _facts_of_scores(lists: CatalogLists) -> Array:
    """The number of scores of a catalog, and of each of `SCORE_FACTS`."""
    scores = lists.scores[QUERIES, ITEMS]
    given = xp.ones_like(scores, xp.bool)
    return _counted([given, *(each(scores) for each in SCORE_FACTS.values())], given)


def _counted(found: list[Array], where: Array) -> Array:
    """For how many of the items `where` each fact holds, float64 `[facts]`."""
    return xp.sum(xp.astype(xp.stack(found) & where, xp.float64), axis=(1, 2))


def _facts_of_items(lists: LabelLists, thresholds: tuple[float, ...]) -> Array:
    """The facts of scores and of labels, as `Facts.of_scores` and `of_labels`."""
    labels, valid, found = once_per_graph(_found_in_items, lists)
    relevant = (labels >= lowest_relevant(each, labels) for each in thresholds)
    return _counted([*found, *relevant], valid)


def _found_in_items(lists: LabelLists) -> tuple[Array, Array, list[Array]]:
    labels, scores, valid = (
        each[QUERIES, ITEMS] for each in (lists.labels, lists.scores, lists.valid)
    )
    of_scores = (fact(scores) for fact in SCORE_FACTS.values())
    of_labels = (fact(labels) for fact in LABEL_FACTS.values())
    # `valid` counts the scores first, and then the labels.
    return labels, valid, [valid, *of_scores, valid, *of_labels]


def _facts_of_lists(lists: LabelLists, is_flat: bool) -> Array:
    """The facts `OF_LISTS`: items, lists, those with several items, and flat ones."""
    _, valid, _ = once_per_graph(_found_in_items, lists)
    # With a mask, a label below 0 is no padding, and no facts are asked of it.
    items = xp.size(valid) if lists.judged is None else 0
    num_lists = xp.shape(valid)[0]
    flat = xp.zeros([], xp.float64, like=valid)
    if is_flat:
        flat = flat_lists(lists.labels[0], lists.valid[0])
    numbers = [items, num_lists, num_lists if valid.shape[1] != 1 else 0]
    return xp.stack([*(xp.astype(n, xp.float64, like=flat) for n in numbers), flat])


def _facts_of_weights(lists: LabelLists) -> Array:
    """The facts `OF_WEIGHTS`, as `Facts.of_weights` counts them for arrays."""
    if lists.item_weights is None:
        return xp.zeros([len(OF_WEIGHTS)], xp.float64, like=lists.labels)
    labels, valid, weights = (
        each[QUERIES] for each in (lists.labels, lists.valid, lists.item_weights)
    )
    has_weight = valid & (weights > 0)
    highest = xp.max(xp.where(has_weight, weights, 0), axis=1)
    is_zero = valid & xp.equal(weights, 0)
    mixed = xp.any(is_zero, axis=1) & (highest > 0)
    differs = has_weight & xp.not_equal(weights, highest[:, xp.newaxis])
    alike = mixed & ~xp.any(differs, axis=1)
    irrelevant = mixed & xp.any(has_weight & xp.equal(labels, 0), axis=1)
    found = [mixed, alike, alike & xp.equal(highest, 1), irrelevant]
    return xp.sum(xp.astype(xp.stack(found), xp.float64), axis=1)


def _facts_of_excluded(lists: CatalogLists) -> Array:
    """The facts `OF_EXCLUDED`, as `CatalogLists.facts` counts them for arrays."""
    relevant = lists.relevant[QUERIES, ITEMS]
    if lists.exclude is None:
        return xp.zeros([len(OF_EXCLUDED)], xp.float64, like=relevant)
    exclude = lists.exclude[QUERIES]
    valid = relevant >= 0
    is_same = xp.equal(relevant[:, :, xp.newaxis], exclude[:, xp.newaxis, :])
    found = xp.stack([valid, valid & xp.any(is_same, axis=2)])
    return xp.sum(xp.astype(found, xp.float64), axis=(1, 2))
