"""What an item is worth to a metric: its gain, its relevance, and so on.

Always a function of `Items` that gives float64, and 0 for padding.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import tensorflow as tf

from tfrankmetrics.pairs import lower_labels
from tfrankmetrics.ranked_lists import Items, Worth

# Both give 0 for label 0, and so for padding; a user's own gain may not. TensorFlow
# may turn exp(x) - 1, but not exp(x) + -1, into expm1(x), which takes three times as
# long: so the bits of a gain do not depend on what the optimiser knows of a shape.
GAINS: dict[str, Callable] = {
    "exponential": lambda labels: tf.exp(labels * math.log(2)) + -1,
    "linear": lambda labels: labels,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gain:
    """What an item is worth to DCG: the gain of its label."""

    gain: str | Callable = "exponential"

    @property
    def grows_with_label(self) -> bool:
        """Whether items sorted by label are sorted by gain; no one knows of others."""
        return self.gain in GAINS

    def __call__(self, items: Items) -> tf.Tensor:
        """The gains of the items."""
        labels = tf.cast(items.labels, tf.float64)
        if self.gain in GAINS:
            return GAINS[self.gain](labels)
        gains = call_function("gain", self.gain, labels)
        # What is no gain makes the query's weight, and so the result, NaN. Infinity is
        # the sign, since XLA's maximum over the items may lose NaN.
        gains = tf.where(gains >= 0, gains, float("inf"))
        return tf.where(items.valid, gains, 0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Relevance:
    """What an item is worth to a binary metric: 1 if it is relevant, else 0."""

    relevance_threshold: float = 1.0

    def holds(self, items: Items) -> tf.Tensor:
        """Whether each item is relevant."""
        return items.labels >= self.relevance_threshold

    def __call__(self, items: Items) -> tf.Tensor:
        """1 for each item that is relevant, else 0."""
        return tf.cast(self.holds(items), tf.float64)


def label_of() -> Worth:
    """What an item is worth to ARP: its label."""
    return Gain(gain="linear")


def pairs_to_win() -> Worth:
    """What an item is worth to OPA: the number of items with a lower label."""
    return lower_labels


@dataclasses.dataclass(frozen=True, kw_only=True)
class StopChance:
    """What an item is worth to ERR: the chance that it satisfies the user."""

    max_label: float = 4.0

    def __call__(self, items: Items) -> tf.Tensor:
        """The chance of each item; NaN for a label above the highest."""
        labels = tf.cast(items.labels, tf.float64)
        chances = GAINS["exponential"](labels) / 2**self.max_label
        return tf.where(labels <= self.max_label, chances, float("nan"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Coverage:
    """What an item is worth to the metrics of subtopics: 1 if it is of any, else 0."""

    relevance_threshold: float = 1.0

    def __call__(self, items: Items) -> tf.Tensor:
        """1 if an item is relevant to any subtopic, else 0, `[B, D]`."""
        return tf.reduce_max(self.by_subtopic(items), axis=2)

    def by_subtopic(self, items: Items) -> tf.Tensor:
        """1 for each subtopic that an item is relevant to, else 0, `[B, D, T]`."""
        return tf.cast(items.labels >= self.relevance_threshold, tf.float64)

    def of_subtopic(self, subtopic: tf.Tensor) -> Worth:
        """1 if an item is relevant to this subtopic, else 0."""
        return lambda items: tf.gather(self.by_subtopic(items), subtopic, axis=2)


def call_function(option: str, function: Callable, argument: tf.Tensor) -> tf.Tensor:
    """A user's function of a tensor, which must return another of its shape."""
    rule = f"`{option}` must be a function from a tensor to one of its shape"
    try:
        result = tf.cast(function(argument), tf.float64)
    except (NotImplementedError, TypeError, ValueError) as error:
        raise ValueError(
            f"{rule}, made of TensorFlow operations. Received: {function!r}, which "
            f"raised {type(error).__name__}: {error}"
        ) from error
    if not result.shape.is_compatible_with(argument.shape):
        raise ValueError(
            f"{rule}. Received: {function!r}, which returned shape {result.shape} for "
            f"an argument of shape {argument.shape}."
        )
    return result
