"""Labels and weights of items that are probably a mistake, in data and in batches."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tfrankmetrics.inputs.mistakes import MANY, MOST_VALUES, warn

# The exponential gains of higher labels are far from those of grades. LightGBM, too,
# raises an error for them by default.
HIGHEST_GRADE = 30
OVERFLOW = 1024  # the lowest label with an infinite gain, which is an error
GRADES_RULE = "Pass `relevance_threshold`, or use a metric of grades, such as ndcg."
POWERS_RULE = (
    "The exponential gain 2^label - 1 requires grades of relevance, usually 0 to 4."
)
POWERS_REMEDY = (
    "Of each list, only the highest labels would affect the value. If labels are "
    "counts or percentages, pass gain='linear'. If they are ids, pass 1 for relevant "
    "items and 0 for others."
)
ZERO_WEIGHT_RULE = "A weight of 0 does not mask an item: it keeps its rank."
ZERO_WEIGHT_REMEDY = (
    "To exclude these items, pass a mask or labels below 0; or zero_weight='mask', as "
    "the conventions of keras-rs and TensorFlow Ranking do, where such items still "
    "count in the weight of a list without relevant items."
)


def warn_of_zero_weights(
    queries: np.ndarray, labels: np.ndarray, weights: np.ndarray
) -> None:
    """Warns if weights of 0 for items look like a mask.

    All arrays hold one number for each judged item: the number of its query, its label
    and its weight.
    """
    is_zero = weights == 0
    if is_zero.all() or not is_zero.any():
        return
    number = queries.max() + 1

    def has_any(items: np.ndarray) -> np.ndarray:
        return np.bincount(queries[items], minlength=number) > 0

    highest = np.zeros(number)
    np.maximum.at(highest, queries, weights)
    mixed = has_any(is_zero) & (highest > 0)
    differs = has_any(~is_zero & (weights != highest[queries]))
    # Weights of clicks only, such as inverse propensities, are not a mask.
    are_of_others = (~is_zero & mixed[queries] & (labels <= 0)).any()
    is_mask = mixed.any() and (are_of_others or (highest[mixed] == 1).all())
    if is_mask and not differs[mixed].any():
        warn(
            f"{ZERO_WEIGHT_RULE} Received: items with a weight of 0 "
            f"({np.count_nonzero(is_zero & mixed[queries]):,} in all), in lists whose "
            f"other items all have the same weight. {ZERO_WEIGHT_REMEDY}"
        )


class LabelRules(NamedTuple):
    """What some metrics make of labels."""

    thresholds: tuple[float, ...]  # the lowest label of a relevant item
    are_powers: bool  # whether a gain is 2^label - 1


class Labels(NamedTuple):
    """Facts about labels, to find those that the metrics are not made for.

    The labels of batches add up by `merged`. A label below 0 was not judged.
    """

    number: int = 0  # of judged items
    below_0: int = 0
    lowest: float = math.inf  # of judged items
    grades: tuple[float, ...] = ()  # the ten highest, of those looked at

    @classmethod
    def of(cls, labels: np.ndarray) -> Labels:
        """The facts about an array of finite labels."""
        judged = labels[labels >= 0]
        below_0 = labels.size - judged.size
        if not judged.size:
            return cls(below_0=below_0)
        lowest, highest = float(judged.min()), float(judged.max())
        grades = np.unique(judged[:MOST_VALUES]) if lowest > 0 else np.empty(0)
        grades = _highest([*grades.tolist(), highest])
        return cls(judged.size, below_0, lowest, grades)

    def merged(self, other: Labels) -> Labels:
        """The facts about both."""
        return Labels(
            self.number + other.number,
            self.below_0 + other.below_0,
            min(self.lowest, other.lowest),
            _highest([*self.grades, *other.grades]),
        )

    def warn(
        self, rules: LabelRules, least: int = MANY, may_be_all: bool = False
    ) -> None:
        """Warns if all items are relevant, or none although they have labels.

        It does not warn of fewer labels than `least`. With `may_be_all`, items without
        labels are not relevant; therefore, all labeled items may be relevant. It also
        warns of labels that are too high for exponential gains.
        """
        if not self.grades:
            return
        grades = [*self.grades]
        if rules.are_powers and HIGHEST_GRADE < grades[-1] < OVERFLOW:
            received = f"Received: labels up to {grades[-1]:g}."
            warn(f"{POWERS_RULE} {received} {POWERS_REMEDY}")
        if self.number < least:
            return
        for threshold in rules.thresholds:
            if 0 < grades[-1] < min(1, threshold):
                warn(
                    f"{threshold_rule(threshold)} Received: labels above 0, but none "
                    f"above {grades[-1]:g}, so that no item is relevant. "
                    f"{GRADES_RULE}"
                )
            elif self.lowest >= threshold and len(grades) > 1 and not may_be_all:
                warn(
                    f"{threshold_rule(threshold)} Received: labels from "
                    f"{self.lowest:g} to {grades[-1]:g}, so that each item is "
                    "relevant. Pass `relevance_threshold`, such as "
                    f"{grades[-2]:g}, or use a metric of grades, such as ndcg."
                )

    def warn_if_signed(self, least: int = MANY) -> None:
        """Warns of labels that are only 1 and below 0, where -1 would be padding."""
        are_ones = self.lowest == 1 == max(self.grades, default=0)
        if are_ones and self.below_0 > 0 and self.number + self.below_0 >= least:
            warn(
                "A label below 0 marks padding. Received: only labels that are 1 or "
                "below 0, so that nothing but relevant items is left, and every order "
                "is perfect. If -1 means not relevant, pass 0 instead."
            )


def _highest(grades: Iterable[float]) -> tuple[float, ...]:
    return tuple(sorted({*grades})[-10:])


def threshold_rule(threshold: float) -> str:
    """Which items are relevant."""
    return f"An item is relevant if its label is at least {threshold:g}."
