"""The facts about its data that a Keras metric keeps in its state.

A graph cannot warn. Instead, an update counts the facts of some queries and items.
`result` reads them in eager mode, as Keras does at the end of an epoch, and warns. The
counts of batches, replicas and workers add up, as rows of the metric's sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.graphs import once_per_graph
from tfrankmetrics.inputs.catalog import CatalogLists, conditions_of_excluded
from tfrankmetrics.inputs.formats import InputFormat
from tfrankmetrics.inputs.labels import LabelLists
from tfrankmetrics.inputs.mistakes import (
    OF_EXCLUDED,
    OF_LENGTHS,
    OF_WEIGHTS,
    SCORE_FACTS,
    Asked,
    Facts,
    LabelRules,
    conditions_of_lengths,
    conditions_of_weights,
    facts_of_labels,
    flat_lists,
    warn_if_signed,
    warn_of,
)
from tfrankmetrics.metrics.measure import Measure, label_rules

QUERIES = slice(24)  # of a batch that are checked: few, which costs little
ITEMS = slice(24)  # of a query


class Evidence:
    """The facts that a metric counts, and the warnings that follow from them."""

    def __init__(self, data: InputFormat, measures: Sequence[Measure]) -> None:
        self._rules = LabelRules()
        names: list[str] = []
        if data.inputs == "catalog":
            names = [*SCORE_FACTS, *OF_EXCLUDED]
        elif data.inputs == "labels":
            self._rules = label_rules(measures)
            if any(each.declaration.has_subtopics for each in measures):
                # Each item may be relevant to a subtopic.
                self._rules = self._rules._replace(thresholds=())
            # `LABEL_FACTS` contains the default. Most metrics share all facts then.
            self._thresholds = tuple(t for t in self._rules.thresholds if t != 1)
            of_labels = facts_of_labels(self._thresholds)
            names = [*SCORE_FACTS, *of_labels, *OF_LENGTHS, "items", "flat lists"]
            if self._rules.rank_zero_weights:
                names += OF_WEIGHTS
        self._names, self._inputs = names, data.inputs
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
        if self._inputs == "catalog":
            counts = [once_per_graph(_facts_of_catalog, lists)]
        else:
            if lists.has_subtopics:
                lists = lists.with_arrays({"labels": xp.max(lists.labels, axis=2)})
            options = self._thresholds, is_flat
            counts = [once_per_graph(_facts_of_labels, lists, *options)]
            if self._rules.rank_zero_weights:
                counts.append(once_per_graph(_facts_of_weights, lists))
        if len(self._names) % 2:
            counts.append(xp.zeros([1], xp.float64, like=counts[0]))
        return xp.reshape(xp.concat(counts, axis=0), [self.num_rows, 2])

    def facts(self, numbers: np.ndarray) -> Facts:
        """The facts by name, from the numbers of `counted_in`."""
        # A last number may only fill its row.
        return Facts(zip(self._names, np.ravel(numbers).tolist(), strict=False))

    def warn(self, numbers: np.ndarray, name: str) -> None:
        """Warns of the mistakes that the facts show, for the metric of this name."""
        facts = self.facts(numbers) + self.uncounted
        where = f" in {name!r}, among the first items of each batch"
        asked = Asked(self._rules, where, warned=self.warned)
        warn_of(facts, asked)
        remedy = 'pass {"labels": labels, "mask": labels >= 0}'
        warn_if_signed(facts, remedy, asked)


def _facts_of_catalog(lists: CatalogLists) -> Array:
    """The facts of the scores of a catalog, and of excluded items."""
    scores, relevant = (each[QUERIES, ITEMS] for each in (lists.scores, lists.relevant))
    of_scores = _numbers_of([is_true(scores) for is_true in SCORE_FACTS.values()])
    if lists.exclude is None:
        of_excluded = xp.zeros([len(OF_EXCLUDED)], xp.float64, like=scores)
    else:
        conditions = conditions_of_excluded(relevant, lists.exclude[QUERIES])
        of_excluded = _numbers_of(conditions)
    return xp.concat([of_scores, of_excluded], axis=0)


def _facts_of_labels(
    lists: LabelLists, thresholds: tuple[float, ...], is_flat: bool
) -> Array:
    """The facts of scores, labels and lists, as `LabelLists.facts` of NumPy."""
    labels, scores, valid = (
        each[QUERIES, ITEMS] for each in (lists.labels, lists.scores, lists.valid)
    )
    # With a mask, a label below 0 is no padding, and no items are counted.
    judged, num_items = valid, xp.size(valid)
    if lists.judged is not None:
        judged, num_items = lists.judged[QUERIES, ITEMS], 0
    facts = {name: is_true(scores) for name, is_true in SCORE_FACTS.items()}
    for name, is_true in facts_of_labels(thresholds).items():
        facts[name] = is_true(labels)
    facts["labels"] = judged  # an item without a label has the label 0
    lengths = xp.sum(xp.astype(judged, xp.float64), axis=1)
    of_lengths = xp.astype(conditions_of_lengths(lengths), xp.float64)
    flat = xp.zeros([], xp.float64, like=valid)
    if is_flat:
        flat = flat_lists(lists.labels[0], lists.valid[0])
    of_batch = xp.stack([xp.astype(num_items, xp.float64, like=flat), flat])
    of_items = _numbers_of([*facts.values()], valid)
    return xp.concat([of_items, xp.sum(of_lengths, axis=1), of_batch], axis=0)


def _facts_of_weights(lists: LabelLists) -> Array:
    """The facts `OF_WEIGHTS`."""
    if lists.item_weights is None:
        return xp.zeros([len(OF_WEIGHTS)], xp.float64, like=lists.labels)
    judged = lists.valid if lists.judged is None else lists.judged
    arrays = lists.labels, lists.item_weights, judged
    return _numbers_of(conditions_of_weights(*(each[QUERIES] for each in arrays)))


def _numbers_of(conditions: Sequence[Array], where: Array | None = None) -> Array:
    """How often each condition is true, `where` this one is, float64 `[conditions]`."""
    are_true = xp.stack([*conditions])
    if where is not None:
        are_true &= where
    axes = tuple(range(1, are_true.ndim))
    return xp.sum(xp.astype(are_true, xp.float64), axis=axes)
