"""Exact sums, which metrics on several workers add up in any order.

The metric of TensorFlow Model Analysis and the transforms for Apache Beam use it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from tfrankmetrics.metrics.measure import Measure

# Every float is a multiple of the smallest one, 1 / UNITS.
UNITS = 2**1074


class Sums(NamedTuple):
    """Sums over some queries, for each metric.

    They are whole numbers of units. Therefore, results are bitwise identical whatever
    the order in which workers add up queries.
    """

    totals: np.ndarray  # of int, [2, metrics]: sums of weight * value and of weight
    num_queries: int  # included in any of the metrics


def sums_of(values: np.ndarray, weights: np.ndarray) -> Sums:
    """The sums of values and weights `[metrics, B]`."""
    with np.errstate(over="ignore"):
        numbers = np.stack([weights * values, weights])
    if np.isinf(numbers).any():
        raise _overflow()
    totals = [[sum(map(_in_units, each)) for each in of] for of in numbers.tolist()]
    number = int((weights != 0).any(axis=0).sum())
    return added([Sums(np.array(totals, object), number)])


def added(sums: Iterable[Sums]) -> Sums:
    """The total of some sums, of which there must be at least one."""
    totals, numbers = zip(*sums, strict=True)
    total = Sums(np.sum(totals, axis=0), sum(numbers))
    try:
        means_of_sums(total)
    except OverflowError:
        raise _overflow() from None
    return total


def no_sums(num_metrics: int) -> Sums:
    """The sums without any query."""
    return sums_of(*np.zeros((2, num_metrics, 0)))


def means_of_sums(sums: Sums) -> list[float]:
    """The mean of each metric; NaN if no query is included."""
    totals = (sums.totals / UNITS).T.tolist()
    return [value / weight if weight else math.nan for value, weight in totals]


def _in_units(number: float) -> int:
    numerator, denominator = number.as_integer_ratio()
    return numerator * (UNITS // denominator)


def _overflow() -> ValueError:
    return ValueError(
        "The weights of all queries, and weights times values, must have finite "
        "sums. Received: sums above 1.8e308. Divide the weights by a number."
    )


def require_no_order(measures: Mapping[str, Measure]) -> None:
    """Raises ValueError for metrics that need an order of queries, or subtopics."""
    for measure in measures.values():
        if measure.declaration.has_subtopics:
            raise ValueError(
                "Labels of subtopics are not supported on Beam. Received: "
                f"{measure.name!r}, which needs labels of subtopics. Use "
                "tfrankmetrics.evaluate."
            )
        if measure.tie_policy.is_random:
            raise ValueError(
                "ties='random' depends on the number of the query, and queries are "
                f"unordered on Beam. Received: {measure.name!r} with ties='random'. "
                "Use 'expected'."
            )
