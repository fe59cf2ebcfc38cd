"""Evidence of mistakes in the batches of a Keras metric, kept in its state.

Because a graph cannot warn, an update counts a few facts of some queries. `result`
reads them in eager mode, as Keras does at the end of an epoch, and warns. The counts of
batches, replicas and workers add up; therefore, they can be rows of the metric's sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.graphs import once_per_graph
from tfrankmetrics.inputs.catalogue import CatalogueLists
from tfrankmetrics.inputs.formats import InputFormat
from tfrankmetrics.inputs.label_mistakes import (
    GRADES_RULE,
    HIGHEST_GRADE,
    POWERS_REMEDY,
    POWERS_RULE,
    ZERO_WEIGHT_REMEDY,
    ZERO_WEIGHT_RULE,
    threshold_rule,
)
from tfrankmetrics.inputs.labels import LabelLists
from tfrankmetrics.inputs.mistakes import (
    FLAT_RULE,
    LONG,
    MANY,
    MANY_RELEVANT,
    SINGLE_ITEMS_REMEDY,
    ScoreCounts,
    warn,
    warn_if_relevant_are_excluded,
)
from tfrankmetrics.metrics.measure import (
    Measure,
    keep_zero_weights,
    label_rules,
)

QUERIES = slice(24)  # of a batch that are checked
ITEMS = slice(24)  # of a query


class ScoreFacts(NamedTuple):
    """How many of the checked scores were NaN."""

    scores: Any
    nan: Any


class LabelFacts(NamedTuple):
    """How many of the checked items had which labels and scores."""

    items: Any  # with padding
    single_items: Any  # of these, in lists of one item
    labels: Any
    other_than_one: Any  # labels
    fractions: Any  # labels
    no_grades: Any  # scores that are not 0, 1, 2, 3 or 4
    other_scores: Any  # than the first of the list
    nan_scores: Any

    @property
    def are_swapped(self) -> bool:
        """Whether the labels look like scores, and the scores like grades."""
        are_grades = self.no_grades == 0 and self.other_scores > 0
        return are_grades and self.fractions > self.labels / 2


class WeightFacts(NamedTuple):
    """The number of lists with weights of 0 for some items but not for all."""

    mixed: Any
    alike: Any  # of these, with the same weight of all other items
    ones: Any  # of these, in which this weight is 1
    irrelevant: Any  # with a weight of an item that is not relevant


class ThresholdFacts(NamedTuple):
    """How many labels reached a relevance threshold."""

    reached: Any


class PowerFacts(NamedTuple):
    """How many labels are too high for exponential gains."""

    too_high: Any


class FlatFacts(NamedTuple):
    """How many lists of the shape `[N]` seem to be the rows of several queries."""

    lists: Any


class ExcludedFacts(NamedTuple):
    """How many relevant items there were, and how many of them were excluded."""

    relevant: Any
    excluded: Any


class Evidence:
    """The facts that a metric counts, and the warnings that follow from them."""

    def __init__(self, data: InputFormat, measures: Sequence[Measure]) -> None:
        self._thresholds, self._kinds = (), []
        if data.inputs == "catalogue":
            self._kinds = [ScoreFacts, ExcludedFacts]
        elif data.inputs == "labels":
            self._thresholds, are_powers = label_rules(measures)
            if any(each.declaration.has_subtopics for each in measures):
                self._thresholds = ()  # each item may be relevant to a subtopic
            weights = [WeightFacts] * keep_zero_weights(measures)
            thresholds = [ThresholdFacts] * len(self._thresholds)
            powers = [PowerFacts] * are_powers
            self._kinds = [LabelFacts, *thresholds, *powers, *weights, FlatFacts]
        self._number = sum(len(kind._fields) for kind in self._kinds)

    @property
    def num_rows(self) -> int:
        """The number of rows `[2]` that hold the facts."""
        return -(-self._number // 2)

    def of(self, lists: Any, is_flat: bool = False) -> Array:
        """The facts of a batch, float64 `[num_rows, 2]`.

        `is_flat` states that its labels have the shape `[N]`.
        """
        if lists.has_subtopics:
            highest = xp.max(lists.labels, axis=2)
            lists = lists.with_arrays({"labels": highest})
        if isinstance(lists, CatalogueLists):
            counts = [once_per_graph(_scores_of_catalogue, lists)]
            counts.append(once_per_graph(_excluded, lists))
        else:
            are_powers = PowerFacts in self._kinds
            counts = [once_per_graph(_labels, lists, self._thresholds, are_powers)]
            if WeightFacts in self._kinds:
                counts.append(once_per_graph(_weights, lists))
            counts.append(_flat(lists, is_flat))
        if self._number % 2:
            counts.append(xp.zeros([1], xp.float64, like=counts[0]))
        return xp.reshape(xp.concat(counts, axis=0), [self.num_rows, 2])

    def warn(self, facts: np.ndarray, name: str) -> None:
        """Warns of the mistakes that the facts show, for the metric of this name."""
        thresholds = iter(self._thresholds)
        labels: Any = None  # the first facts, if there are any
        for each in self._read(facts):
            match each:
                case ScoreFacts():
                    _warn_of_scores(each.scores, each.nan, name)
                case ExcludedFacts():
                    warn_if_relevant_are_excluded(
                        int(each.relevant), int(each.excluded)
                    )
                case LabelFacts():
                    labels = each
                    _warn_of_labels(each, name)
                    _warn_of_scores(each.labels, each.nan_scores, name)
                case PowerFacts():
                    _warn_of_powers(each, name)
                case WeightFacts():
                    _warn_of_weights(each, name)
                case FlatFacts():
                    _warn_of_flat(each, name)
                case _:
                    _warn_of_threshold(next(thresholds), labels, each.reached, name)

    def _read(self, facts: np.ndarray) -> list[Any]:
        numbers = iter(np.ravel(facts).tolist())
        return [kind(*(next(numbers) for _ in kind._fields)) for kind in self._kinds]


def looked_at(lists: Any) -> Any:
    """Some of the queries, in arrays of NumPy."""
    arrays = lists.arrays.items()
    return lists.with_arrays({n: np.asarray(array[QUERIES]) for n, array in arrays})


def _scores_of_catalogue(lists: CatalogueLists) -> Array:
    scores = lists.scores[QUERIES, ITEMS]
    number = xp.astype(xp.size(scores), xp.float64, like=scores)
    is_nan = xp.astype(xp.not_equal(scores, scores), xp.float64)
    return xp.stack([number, xp.sum(is_nan)])


def _labels(
    lists: LabelLists, thresholds: tuple[float, ...], are_powers: bool
) -> Array:
    """The facts of labels, and those of each threshold and of exponential gains."""
    labels, valid, found = once_per_graph(_found, lists)
    found = [*found, *(labels >= threshold for threshold in thresholds)]
    if are_powers:
        found.append(labels > HIGHEST_GRADE)
    counts = xp.sum(xp.astype(xp.stack(found) & valid, xp.float64), axis=(1, 2))
    items = xp.size(valid)
    if lists.judged is not None:  # with a mask, a label below 0 is no padding
        items = counts[0]
    items = xp.astype(items, xp.float64, like=counts)
    single_items = (
        items if valid.shape[1] == 1 else xp.zeros([], xp.float64, like=items)
    )
    return xp.concat([xp.stack([items, single_items]), counts], axis=0)


def _found(lists: LabelLists) -> tuple[Array, Array, list[Array]]:
    """The checked labels, which of them are valid, and the facts about each."""
    of_lists = (lists.labels, lists.scores, lists.valid)
    labels, scores, valid = (each[QUERIES, ITEMS] for each in of_lists)
    grades = xp.clip(xp.floor(xp.astype(scores, xp.float64)), 0, 4)
    return (
        labels,
        valid,
        [
            valid,
            xp.not_equal(labels, 1),
            xp.not_equal(labels, xp.floor(labels)),
            xp.not_equal(xp.astype(grades, scores.dtype), scores),
            xp.not_equal(scores, scores[:, :1]),
            xp.not_equal(scores, scores),
        ],
    )


def _weights(lists: LabelLists) -> Array:
    if lists.item_weights is None:
        return xp.zeros([len(WeightFacts._fields)], xp.float64, like=lists.labels)
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
    return _counted([mixed, alike, alike & xp.equal(highest, 1), irrelevant])


def _flat(lists: LabelLists, is_flat: bool) -> Array:
    if not is_flat:
        return xp.zeros([1], xp.float64, like=lists.labels)
    labels = lists.labels[0]
    relevant = xp.sum(xp.astype(lists.valid[0] & (labels > 0), xp.float64))
    is_long = xp.size(labels) >= LONG
    return _counted([(is_long & (relevant >= MANY_RELEVANT))[xp.newaxis]])


def _excluded(lists: CatalogueLists) -> Array:
    relevant = lists.relevant[QUERIES, ITEMS]
    if lists.exclude is None:
        return xp.zeros([2], xp.float64, like=relevant)
    exclude = lists.exclude[QUERIES]
    valid = relevant >= 0
    is_same = xp.equal(relevant[:, :, xp.newaxis], exclude[:, xp.newaxis, :])
    found = xp.stack([valid, valid & xp.any(is_same, axis=2)])
    return xp.sum(xp.astype(found, xp.float64), axis=(1, 2))


def _counted(found: list[Array]) -> Array:
    """How often each of some arrays `[B]` is True."""
    return xp.sum(xp.astype(xp.stack(found), xp.float64), axis=1)


def _warn_of_labels(found: LabelFacts, name: str) -> None:
    """Warns of labels that are all 1, of swaps, and of lists of one item."""
    if MANY < found.items == found.single_items:
        warn(
            f"A list must contain all items of a query. Received in {name!r}: only "
            f"lists of one item, in which nothing can be ranked. {SINGLE_ITEMS_REMEDY}"
        )
    if found.labels < MANY:
        return
    if found.other_than_one == 0 and found.items > found.labels:
        warn(
            f"All labels in {name!r} are 1 or below 0, and a label below 0 marks "
            "padding: nothing but relevant items is left, and every order is perfect. "
            "If -1 means not relevant, pass labels > 0."
        )
    if found.are_swapped:
        warn(
            f"`y_true` of {name!r} must contain labels, and `y_pred` scores. Received: "
            "labels that are mostly fractions, and scores that are whole numbers from "
            "0 to 4. They are probably swapped."
        )


def _warn_of_scores(scores: float, nan: float, name: str) -> None:
    """Warns of scores that are NaN."""
    where = f" in {name!r}, among the first items of each batch"
    ScoreCounts(int(scores), int(nan)).warn(where)


def _warn_of_weights(found: WeightFacts, name: str) -> None:
    """Warns if weights of 0 for items look like a mask."""
    is_of_ones = found.ones == found.mixed or found.irrelevant > 0
    if found.mixed > 0 and found.alike == found.mixed and is_of_ones:
        warn(
            f"{ZERO_WEIGHT_RULE} Received in {name!r}: items with a weight of 0, in "
            "lists whose other items all have the same weight. "
            f"{ZERO_WEIGHT_REMEDY}"
        )


def _warn_of_flat(found: FlatFacts, name: str) -> None:
    """Warns of the rows of several queries as one list."""
    if found.lists > 0:
        warn(
            f"{FLAT_RULE} Received in {name!r}: at least {LONG} items, of which "
            f"{MANY_RELEVANT} or more have a label above 0. If they belong to several "
            "queries, pass a list for each, [B, N], with -1 as the label of padding. "
            "If all belong to one query, pass labels and scores of the shape [1, N]."
        )


def _warn_of_powers(found: PowerFacts, name: str) -> None:
    """Warns of labels that are too high for exponential gains."""
    if found.too_high > 0:
        warn(
            f"{POWERS_RULE} Received in {name!r}: labels above {HIGHEST_GRADE}. "
            f"{POWERS_REMEDY}"
        )


def _warn_of_threshold(
    threshold: float, labels: LabelFacts, reached: float, name: str
) -> None:
    """Warns if all judged items are relevant, or none although they have labels."""
    if labels.labels < MANY or labels.are_swapped:
        return
    ones = labels.labels - labels.other_than_one
    has_grades = 0 < ones < labels.labels
    if threshold <= 1 and reached == 0 < labels.fractions:
        warn(
            f"{threshold_rule(threshold)} Received in {name!r}: labels above 0, all of "
            f"which are below {threshold:g}, so that no item is relevant. {GRADES_RULE}"
        )
    elif reached == labels.labels and has_grades:
        warn(
            f"{threshold_rule(threshold)} Received in {name!r}: labels of several "
            "grades, all of which reach the threshold, so that each item is relevant. "
            f"{GRADES_RULE}"
        )
