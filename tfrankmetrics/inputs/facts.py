"""Facts about labels and scores: numbers that add up.

The facts of batches, of replicas, of workers and of parts of a table add up to those of
all data, in which `mistakes.py` looks for mistakes of users. Therefore, a Keras metric
keeps them in its state, and a worker of Apache Beam in its accumulator. Each fact is a
count of items, written once for the arrays of every library, of any shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array

# The exponential gains of higher labels are far from those of grades. LightGBM, too,
# raises an error for them by default.
HIGHEST_GRADE = 30
OVERFLOW = 1024  # the lowest label with an infinite gain, which is an error
MANY = 20  # items; fewer than this may all be the same by chance
LONG = 200  # items of a list that may be the rows of several queries
MANY_RELEVANT = 2 * MANY  # items of such a list

OF_LISTS = ("items", "lists", "longer lists", "flat lists")
OF_WEIGHTS = (
    "lists with some weights of 0",
    "whose other weights are alike",
    "whose other weights are 1",
    "with a weight of an irrelevant item",
)
OF_EXCLUDED = ("relevant", "excluded")


NUMBERS_IN_CACHE = 2**15
LABEL_FACTS: Mapping[str, Callable[[Array], Array]] = {
    "ones": lambda labels: xp.equal(labels, 1),
    "above 0": lambda labels: labels > 0,
    "at least 1": lambda labels: labels >= 1,
    "fractions": lambda labels: xp.not_equal(labels, xp.floor(labels)),
    "too high": lambda labels: (labels > HIGHEST_GRADE) & (labels < OVERFLOW),
}
SCORE_FACTS: Mapping[str, Callable[[Array], Array]] = {
    "NaN": lambda scores: xp.not_equal(scores, scores),
    "no grades": lambda scores: ~are_grades(scores),
    "zeros": lambda scores: xp.equal(scores, 0),
}
OF_SCORES = "scores", *SCORE_FACTS


def are_grades(scores: Array) -> Array:
    """Whether each score is 0, 1, 2, 3 or 4."""
    grades = xp.clip(xp.floor(xp.astype(scores, xp.float64)), 0, 4)
    return xp.equal(xp.astype(grades, scores.dtype), scores)


def found_in_labels(labels: Array, judged: Array) -> list[Array]:
    """Which labels are judged, and which of `LABEL_FACTS` hold for each."""
    return [judged, *(fact(labels) for fact in LABEL_FACTS.values())]


def reaching(labels: Array, thresholds: Iterable[float]) -> list[Array]:
    """Which labels reach each relevance threshold."""
    return [labels >= threshold for threshold in thresholds]


def names_of_labels(thresholds: Iterable[float]) -> tuple[str, ...]:
    """The names of `found_in_labels`, and then of `reaching`."""
    return ("labels", *LABEL_FACTS, *map(reached, thresholds))


def reached(threshold: float) -> str:
    """The name of the number of labels that reach a relevance threshold."""
    return f"at least the threshold {threshold!r}"


def found_in_scores(scores: Array, given: Array) -> list[Array]:
    """Which scores are no padding, and which facts of `OF_SCORES` hold for each."""
    return [given, *(fact(scores) for fact in SCORE_FACTS.values())]


def flat_lists(labels: Array, valid: Array) -> Array:
    """1 if a list `[N]` may be the rows of several queries, otherwise 0."""
    relevant = xp.sum(xp.astype(valid & (labels > 0), xp.float64))
    is_long = (relevant >= MANY_RELEVANT) & (xp.size(labels) >= LONG)
    return xp.astype(is_long, xp.float64)


class Facts(dict[str, float]):
    """Facts by name, which add up; a fact that is not known is 0."""

    def __missing__(self, name: str) -> float:
        return 0.0

    @classmethod
    def of_labels(cls, labels: np.ndarray, thresholds: tuple[float, ...]) -> Facts:
        """The facts of labels, of which one below 0 was not judged."""

        def found(some: np.ndarray) -> list[np.ndarray]:
            judged = some >= 0
            facts = found_in_labels(some, judged) + reaching(some, thresholds)
            return [fact & judged for fact in facts]

        counts = _count_each(labels, found)
        facts = cls(zip(names_of_labels(thresholds), counts, strict=True))
        return facts + {"items": float(labels.size)}

    @classmethod
    def of_scores(cls, scores: np.ndarray) -> Facts:
        """The facts of scores."""

        def found(some: np.ndarray) -> list[np.ndarray]:
            return found_in_scores(some, np.ones(some.shape, bool))

        return cls(zip(OF_SCORES, _count_each(scores, found), strict=True))

    @classmethod
    def of_lengths(cls, lengths: np.ndarray) -> Facts:
        """The facts of lists of these lengths."""
        lists, longer = (float(np.count_nonzero(lengths > low)) for low in (0, 1))
        return cls({"lists": lists, "longer lists": longer})

    @classmethod
    def of_weights(
        cls, queries: np.ndarray, labels: np.ndarray, weights: np.ndarray
    ) -> Facts:
        """The facts of weights of items.

        All arrays hold one number for each judged item: the number of its query, its
        label and its weight.
        """
        is_zero = weights == 0
        if not is_zero.any():
            return cls()
        number = queries.max() + 1

        def has_any(items: np.ndarray) -> np.ndarray:
            return np.bincount(queries[items], minlength=number) > 0

        highest = np.zeros(number)
        np.maximum.at(highest, queries, weights)
        mixed = has_any(is_zero) & (highest > 0)
        alike = mixed & ~has_any(~is_zero & (weights != highest[queries]))
        irrelevant = mixed & has_any(~is_zero & (labels <= 0))
        found = mixed, alike, alike & (highest == 1), irrelevant
        return cls(zip(OF_WEIGHTS, map(np.count_nonzero, found), strict=True))

    def __add__(self, other: Mapping[str, float]) -> Facts:
        names = [*dict.fromkeys([*self, *other])]
        return Facts({n: self.get(n, 0) + other.get(n, 0) for n in names})


def _count_each(
    numbers: np.ndarray, found: Callable[[np.ndarray], list[np.ndarray]]
) -> list[float]:
    """For how many numbers each fact holds.

    The parts fit in the processor's cache, which halves the time for many numbers.
    """
    numbers = numbers.ravel()
    starts = range(0, max(1, numbers.size), NUMBERS_IN_CACHE)
    parts = (found(numbers[start : start + NUMBERS_IN_CACHE]) for start in starts)
    counts = [[*map(np.count_nonzero, part)] for part in parts]
    return np.sum(counts, axis=0, dtype=float).tolist()
