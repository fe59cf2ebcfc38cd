"""The gains of items in each kind of metric and calls of users' functions.

A gain is a function of `Items` that returns float64, and 0 for padding. Its fields are
options of the metrics that use it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.options import Gain, Graded, gain_by_grade
from tfrankmetrics.ranking.items import (
    DerivedGain,
    ItemGain,
    Items,
    count,
    lowest_relevant,
)
from tfrankmetrics.ranking.pairs import lower_labels


def power_minus_one(labels: Array) -> Array:
    """2^label - 1 = tanh(x / 2) (e^x + 1), where x = label * log(2).

    e^x - 1 would lose the digits of small labels, and TensorFlow's `expm1` takes three
    times as long.
    """
    x = labels * math.log(2)
    return xp.tanh(x / 2) * (xp.exp(x) + 1)


# Both return 0 for label 0, including padding; a user's function may not.
GAINS: dict[str, Callable] = {
    "exponential": power_minus_one,
    "linear": lambda labels: labels,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelGain(ItemGain):
    """The gain of an item's label, as in DCG.

    >>> LabelGain(gain="linear") == LabelGain(gain="linear")
    True

    Args:
        gain: "exponential" (2^label - 1), "linear" (the label), a tuple of the gains of
            0, 1, ... or of pairs of a grade and its gain, or a function from a float64
            tensor of labels to gains of its shape.
    """

    gain: Gain

    @property
    def increases_with_label(self) -> bool:
        """True for the gains above; unknown for those of users."""
        return isinstance(self.gain, str)

    @property
    def rule(self) -> str:
        """The rule for the gains and the discounts of DCG."""
        if isinstance(self.gain, tuple):
            grades = ", ".join(f"{grade:g}" for grade in gain_by_grade(self.gain))
            return f"`gain` must have a gain for each grade. It has one for {grades}."
        rule = (
            "Gains must be finite numbers of at least 0, with a finite sum. Discounts "
            "must be finite numbers of at least 0 that do not grow with the rank."
        )
        if self.gain == "exponential":
            rule += " For labels above 1,023, where 2^label overflows, pass "
            rule += "gain='linear'."
        return rule

    def __call__(self, items: Items) -> Array:
        """The gain of each item."""
        labels = xp.astype(items.labels, xp.float64)
        if isinstance(self.gain, str):
            return GAINS[self.gain](labels)
        # An invalid gain makes the query's weight and the result NaN. It is marked by
        # infinity, since XLA's maximum over the items may lose NaN.
        if callable(self.gain):
            gains = call_function("gain", self.gain, labels)
            gains = xp.where(gains >= 0, gains, float("inf"))
        else:
            gains = self._of_grades(items)
        return xp.where(items.valid, gains, 0)

    def _of_grades(self, items: Items) -> Array:
        """The gain of each label, infinity without one."""
        labels = items.labels
        gains = xp.zeros_like(labels, xp.float64) + float("inf")
        # A grade such as 0.1 equals a label that was rounded to float32, too.
        dtype = np.result_type(xp.dtype_of(labels), np.float16).type
        for grade, gain in gain_by_grade(self.gain).items():
            is_other = xp.not_equal(labels, dtype(grade))
            gains = xp.select(is_other, gains, np.float64(gain))
        return gains


def label_itself() -> ItemGain:
    """The label as the gain, as in ARP."""
    return LabelGain(gain="linear")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BinaryGain(ItemGain):
    """1 for a relevant item, 0 for others.

    >>> BinaryGain(relevance_threshold=2)
    BinaryGain(relevance_threshold=2)

    Args:
        relevance_threshold: The lowest label of a relevant item.
    """

    relevance_threshold: float

    def _is_relevant(self, items: Items) -> Array:
        return items.labels >= lowest_relevant(self.relevance_threshold, items.labels)

    def __call__(self, items: Items) -> Array:
        """1 for each relevant item, 0 for others."""
        return xp.astype(self._is_relevant(items), xp.float64)

    def sum(self, items: Items, which: Array | None = None) -> Array:
        """The number of relevant items, `[B]`.

        Args:
            items: The items.
            which: Booleans, True for the items to count; by default all.
        """
        relevant = self._is_relevant(items)
        return count(relevant if which is None else relevant & which)


def binary_or_graded(*, relevance_threshold: float, graded: Graded) -> ItemGain:
    """1 for a relevant item and 0 for others, or the label if `graded`, as in RBP."""
    if graded:
        return label_itself()
    return BinaryGain(relevance_threshold=relevance_threshold)


@dataclasses.dataclass(frozen=True)
class JudgedItems(ItemGain):
    """1 for an item that was judged, 0 for others."""

    def __call__(self, items: Items) -> Array:
        """1 for each judged item, 0 for others."""
        judged = items.valid if items.judged is None else items.judged
        return xp.astype(judged, xp.float64)


@dataclasses.dataclass(frozen=True)
class NumLowerLabels(ItemGain):
    """The number of items in the list with a lower label, as in OPA."""

    def __call__(self, items: Items) -> Array:
        """The number for each item."""
        return lower_labels(items)


@dataclasses.dataclass(frozen=True, kw_only=True)
class StopProbability(ItemGain):
    """The probability that an item satisfies the user, who then stops, as in ERR."""

    max_label: float

    @property
    def increases_with_label(self) -> bool:
        """True."""
        return True

    @property
    def rule(self) -> str:
        """The rule for labels."""
        return f"Labels must be at most `max_label`, {self.max_label}."

    def __call__(self, items: Items) -> Array:
        """The probability for each item; NaN for a label above `max_label`."""
        labels = xp.astype(items.labels, xp.float64)
        is_possible = labels <= self.max_label
        return xp.where(is_possible, self.probability(labels), float("nan"))

    def probability(self, labels: Array) -> Array:
        """The probability for each label."""
        return GAINS["exponential"](labels) / 2.0**self.max_label


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShareOfMaxLabel(StopProbability):
    """The probability that an item satisfies the user, as in PFound."""

    def probability(self, labels: Array) -> Array:
        """The probability for each label."""
        return labels / self.max_label


@dataclasses.dataclass(frozen=True, kw_only=True)
class SubtopicGain(ItemGain):
    """1 for an item that is relevant to any subtopic, 0 for others."""

    relevance_threshold: float

    def __call__(self, items: Items) -> Array:
        """1 if an item is relevant to any subtopic, otherwise 0, `[B, D]`."""
        return xp.max(self.by_subtopic(items), axis=2)

    def by_subtopic(self, items: Items) -> Array:
        """1 for each subtopic that an item is relevant to, `[B, D, T]`."""
        lowest = lowest_relevant(self.relevance_threshold, items.labels)
        return xp.astype(items.labels >= lowest, xp.float64)

    @functools.cached_property
    def num_subtopics(self) -> ItemGain:
        """The number of subtopics that an item is relevant to, `[B, D]`."""
        return DerivedGain(lambda items: xp.sum(self.by_subtopic(items), axis=2))

    def for_subtopic(self, subtopic: Array) -> ItemGain:
        """1 if an item is relevant to this subtopic, otherwise 0."""
        relevance = BinaryGain(relevance_threshold=self.relevance_threshold)
        return DerivedGain(
            lambda items: relevance(items._replace(labels=items.labels[:, :, subtopic]))
        )


def only_retrieved(gain: ItemGain) -> ItemGain:
    """The same gain, but 0 for items that were not retrieved."""
    return DerivedGain(lambda items: xp.where(items.retrieved, gain(items), 0))


def call_function(option: str, function: Callable, argument: Array) -> Array:
    """Calls a user's function, which must return an array of its argument's shape."""
    rule = f"`{option}` must be a function that maps an array to one of the same shape"
    try:
        result = xp.astype(function(argument), xp.float64, like=argument)
    except Exception as error:
        raise ValueError(
            f"{rule}, by Python's operators or operations of the library of the array, "
            f"{xp.library_of(argument)}. Received: {function!r}, which raised "
            f"{type(error).__name__}: {error}"
        ) from error
    if not xp.has_shape(result, argument.shape):
        raise ValueError(
            f"{rule}. Received: {function!r}, which returned shape {result.shape} for "
            f"an argument of shape {argument.shape}."
        )
    return result
