"""Sums over queries, which add up, and the weighted means that follow from them.

The sums are one array `[measures, 2]`: those of weight * value and those of the
weights. They are added like any arrays: over batches, replicas and workers. A Keras
metric holds float64, or three numbers of float32 for each; Beam's workers hold numbers
whose sum is exact (`combiner.py`).

The state of a Keras metric, `[rows, 2]`, has more rows (`weighted_sums`): the exposure
of the items, two items a row, for each metric with one value over all queries.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.columns.slices import Slices
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
    return xp.concat([sums, _number_of_queries(weights)], axis=0)


def sums_by_slice(
    values: Array,
    weights: Array,
    of_items: Sequence[Array],
    slices: Slices | None,
) -> dict[tuple, Array]:
    """The sums over the queries of each slice, `weighted_sums_and_queries` of each.

    Args:
        values: The values of queries, `[measures, B]`.
        weights: Their weights.
        of_items: What `exposures` returns for these slices.
        slices: The slices of the queries. None for one slice, whose key is `()`.
    """
    pairs = [*map(_in_pairs, of_items)]
    keys, places = [()], [slice(None)]
    if slices is not None:
        keys = slices.keys
        order, places = slices.grouped()
        values, weights = (xp.take(each, order, axis=1) for each in (values, weights))
    sums = {}
    for number, (key, place) in enumerate(zip(keys, places, strict=True)):
        rows = [sums_of(values[:, place], weights[:, place])]
        for each in pairs:
            size = each.shape[0] // len(keys)
            rows.append(each[number * size : (number + 1) * size])
        rows.append(_number_of_queries(weights[:, place]))
        sums[key] = xp.concat(rows, axis=0)
    return sums


def _sums_and_weights(measures: Sequence[Measure], lists: Lists) -> tuple[Array, Array]:
    values, weights = map(xp.barrier, values_and_weights(measures, lists))
    sums = sums_of(values, weights)
    if of_items := [*map(_in_pairs, exposures(measures, lists))]:
        sums = xp.concat([sums, *of_items], axis=0)
    return sums, weights


def _number_of_queries(weights: Array) -> Array:
    """The number of queries included in any measure, twice, `[1, 2]`."""
    is_counted = xp.any(xp.not_equal(weights, 0), axis=0)
    return xp.full([1, 2], xp.sum(xp.astype(is_counted, xp.float64)))


def _in_pairs(exposure: Array) -> Array:
    """The exposure of the items in each segment, `[S, V]`, with two items a row."""
    padded = xp.pad(exposure, [[0, 0], [0, exposure.shape[1] % 2]])
    return xp.reshape(padded, [-1, 2])


def with_items_at(
    positions: Sequence[int], measures: Sequence[Measure], sums: np.ndarray
) -> np.ndarray:
    """The sums `[rows, 2]`, with the exposure of the item i at `positions[i]`."""
    moved, start = sums.copy(), len(measures)
    for measure in measures:
        if measure.declaration.value is None:
            continue
        rows = slice(start, start + _rows_of_items(measure))
        exposure = np.zeros(sums[rows].size)
        exposure[[*positions]] = np.ravel(sums[rows])[: len(positions)]
        moved[rows] = exposure.reshape(-1, 2)
        start = rows.stop
    return moved


def in_float32_parts(numbers: Array) -> list[Array]:
    """Three arrays of float32, whose sum is float64 numbers of up to 3.4e38."""
    rest, parts = numbers, []
    for _ in range(3):  # float32 has 24 bits, and float64 53
        part = rest
        if xp.library_of(rest) == "jax":
            # XLA may drop a pair of casts, but not this operation.
            part = sys.modules["jax"].lax.reduce_precision(rest, 8, 23)
        parts.append(xp.astype(part, xp.float32))
        rest = rest - xp.astype(parts[-1], xp.float64)
    return parts


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
