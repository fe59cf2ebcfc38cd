"""Sums over queries, which add up, and the weighted means that follow from them.

The sums are one array `[measures, 2]`: those of weight * value and those of the
weights. They are added like any arrays: over batches, replicas and workers. A Keras
metric holds float64, or three numbers of float32 for each; Beam's workers hold numbers
whose sum is exact (`combiner.py`).

The state of a Keras metric, `[rows, 2]`, has more rows (`weighted_sums`): the exposure
of the items, two items a row, for each metric with one value over all queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.compute.exposures import exposures
from tfrankmetrics.compute.values import values_and_weights
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.metrics.measure import Measure


def sums_of(values: Array, weights: Array) -> Array:
    """The sums of values and weights `[measures, B]`, `[measures, 2]`."""
    return xp.stack([xp.sum(weights * values, axis=1), xp.sum(weights, axis=1)], axis=1)


def means_of_sums(sums: Array) -> Array:
    """The weighted mean of each measure, `[measures]`.

    NaN if no query is included, or if the sum of the weights overflowed.
    """
    values, weights = xp.unstack(sums, axis=1)
    return xp.where(xp.isfinite(weights), values / weights, float("nan"))


def count_queries(weights: np.ndarray) -> int:
    """The number of queries included in any metric, from weights `[metrics, B]`."""
    return int((weights != 0).any(axis=0).sum())


def means_of(
    named: Mapping[str, Measure], values: np.ndarray, weights: np.ndarray
) -> dict[str, float]:
    """The mean of each metric by its name, from values and weights `[metrics, B]`.

    NaN if no query is included.
    """
    # Scaling by a power of 2 avoids overflow, and changes no bit of the mean.
    _, exponents = np.frexp(np.max(weights, axis=1, initial=0))
    scale = np.ldexp(1.0, np.clip(-exponents, -1022, 1022))  # both ends are normal
    # NumPy adds the numbers of a row in a fixed order only if they are contiguous.
    weights = np.ascontiguousarray(weights * scale[:, np.newaxis])
    # As `sums_of` and `means_of_sums`, which take twice as long for a small slice.
    sums = (weights * np.ascontiguousarray(values)).sum(axis=1)
    with np.errstate(invalid="ignore"):  # without any query: 0 / 0, NaN
        means = sums / weights.sum(axis=1)
    return dict(zip(named, means.tolist(), strict=True))


def num_rows(measures: Sequence[Measure]) -> int:
    """The number of rows of the sums of some measures."""
    over_all = [each for each in measures if each.declaration.value is not None]
    return len(measures) + sum(map(_rows_of_items, over_all))


def _rows_of_items(measure: Measure) -> int:
    if measure["num_items"] is None:
        raise ValueError(
            f"`{measure.declaration.name}` requires the number of items in the catalog "
            "to be a Keras metric. Received: num_items=None. Pass num_items=V."
        )
    return (measure["num_items"] + 1) // 2


def weighted_sums(measures: Sequence[Measure], lists: Lists) -> Array:
    """The sums over some queries, `[rows, 2]`."""
    return _sums_and_weights(measures, lists)[0]


def weighted_sums_and_queries(measures: Sequence[Measure], lists: Lists) -> Array:
    """`weighted_sums`, and a last row with the number of queries, twice.

    `[rows + 1, 2]`. A query is counted if it is included in any of the measures.
    """
    sums, weights = _sums_and_weights(measures, lists)
    is_counted = xp.any(xp.not_equal(weights, 0), axis=0)
    number = xp.sum(xp.astype(is_counted, xp.float64))
    return xp.concat([sums, xp.full([1, 2], number)], axis=0)


def _sums_and_weights(measures: Sequence[Measure], lists: Lists) -> tuple[Array, Array]:
    values, weights = map(xp.barrier, values_and_weights(measures, lists))
    sums = sums_of(values, weights)
    over_all = [each for each in measures if each.declaration.value is not None]
    if over_all:
        of_items = [
            xp.reshape(xp.pad(each, [[0, 0], [0, each.shape[1] % 2]]), [-1, 2])
            for each in exposures(over_all, lists)
        ]
        sums = xp.concat([sums, *of_items], axis=0)
    return sums, weights


def results(measures: Sequence[Measure], sums: Array) -> Array:
    """The measures' values `[measures]` from their sums, `[rows, 2]`."""
    start = len(measures)
    values = [*xp.unstack(means_of_sums(sums[:start]))]
    for number, measure in enumerate(measures):
        if measure.declaration.value is not None:
            size = _rows_of_items(measure)
            exposure = xp.reshape(sums[start : start + size], [1, -1])
            value = measure.value_of(exposure[:, : measure["num_items"]])[0]
            # The mean is 0, or NaN if no query is included.
            values[number] = values[number] + value
            start += size
    return xp.stack(values)
