"""Exact sums, which metrics on several workers add up in any order.

The metric of TensorFlow Model Analysis and the transforms for Apache Beam use it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from tfrankmetrics.metrics.measure import Measure


class Sums(NamedTuple):
    """Sums over some queries, for each metric.

    Each sum is stored as a few floats that `math.fsum` adds exactly. Therefore, results
    are bitwise identical whatever the order in which workers add up queries.
    """

    values: tuple[tuple[float, ...], ...]  # of weight * value
    weights: tuple[tuple[float, ...], ...]
    num_queries: int  # included in any of the metrics


def sums_of(values: np.ndarray, weights: np.ndarray) -> Sums:
    """The sums of values and weights `[metrics, B]`."""
    with np.errstate(over="ignore"):  # an error of `_exact`
        weighted = weights * values
    return Sums(
        tuple(_exact(of_metric.tolist()) for of_metric in weighted),
        tuple(_exact(of_metric.tolist()) for of_metric in weights),
        int((weights != 0).any(axis=0).sum()),
    )


def added(sums: Iterable[Sums]) -> Sums:
    """The total of some sums, of which there must be at least one."""
    values, weights, numbers = zip(*sums, strict=True)
    return Sums(_added(values), _added(weights), sum(numbers))


def no_sums(num_metrics: int) -> Sums:
    """The sums without any query."""
    return Sums(((),) * num_metrics, ((),) * num_metrics, 0)


def means_of_sums(sums: Sums) -> list[float]:
    """The mean of each metric; NaN if no query is included."""
    totals = [
        (math.fsum(values), math.fsum(weights))
        for values, weights in zip(sums.values, sums.weights, strict=True)
    ]
    return [value / weight if weight else math.nan for value, weight in totals]


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


def _added(columns: Iterable[tuple[tuple[float, ...], ...]]) -> tuple:
    by_metric = zip(*columns, strict=True)
    return tuple(_exact(itertools.chain.from_iterable(each)) for each in by_metric)


def _exact(numbers: Iterable[float]) -> tuple[float, ...]:
    """A few floats whose exact sum is the exact sum of all numbers."""
    rest, parts = [*numbers], []
    try:
        while total := math.fsum(rest):
            parts.append(total)
            rest.append(-total)
    except (OverflowError, ValueError):  # ValueError: infinity minus infinity
        raise ValueError(
            "The weights of all queries, and weights times values, must have finite "
            "sums. Received: sums above 1.8e308. Divide the weights by a number."
        ) from None
    return tuple(parts)
