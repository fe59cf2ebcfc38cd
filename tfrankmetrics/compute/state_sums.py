"""The state of a Keras metric: sums over the queries, and the values that follow.

The state is one array of pairs, float64 `[rows, 2]`, which adds up over batches,
replicas and workers. It has a row for each measure: the sums of weight * value and of
weight. Rows for the exposure of the items follow, two items a row, for each metric with
one value over all queries.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.compute.exposures import exposures
from tfrankmetrics.compute.values import values_and_weights
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.metrics.measure import Measure


def num_rows(measures: Sequence[Measure]) -> int:
    """The number of rows of the sums of some measures."""
    return len(measures) + sum(_rows_of_items(measure) for measure in measures)


def _rows_of_items(measure: Measure) -> int:
    if measure.declaration.value is None:
        return 0
    if measure["num_items"] is None:
        raise ValueError(
            f"`{measure.declaration.name}` requires the number of items in the catalog "
            "to be a Keras metric. Received: num_items=None. Pass num_items=V."
        )
    return (measure["num_items"] + 1) // 2


def weighted_sums(
    measures: Sequence[Measure],
    lists: Lists,
    first_query: Array | int = 0,
) -> Array:
    """The sums over some queries, `[rows, 2]`."""
    values, weights = values_and_weights(measures, lists, first_query)
    return _sums(measures, lists, first_query, values, weights)


def weighted_sums_and_queries(
    measures: Sequence[Measure],
    lists: Lists,
    first_query: Array | int = 0,
) -> Array:
    """`weighted_sums`, and a last row with the number of queries, twice.

    `[rows + 1, 2]`. A query is counted if it is included in any of the measures.
    """
    values, weights = values_and_weights(measures, lists, first_query)
    is_counted = xp.any(xp.not_equal(weights, 0), axis=0)
    number = xp.sum(xp.astype(is_counted, xp.float64))
    sums = _sums(measures, lists, first_query, values, weights)
    return xp.concat([sums, xp.full([1, 2], number)], axis=0)


def _sums(
    measures: Sequence[Measure],
    lists: Lists,
    first_query: Array | int,
    values: Array,
    weights: Array,
) -> Array:
    sums = xp.stack(
        [xp.sum(weights * values, axis=1), xp.sum(weights, axis=1)],
        axis=1,
    )
    if num_rows(measures) == len(measures):
        return sums
    parts = [
        xp.reshape(xp.pad(each, [[0, 0], [0, each.shape[1] % 2]]), [-1, 2])
        for each in exposures(measures, lists, first_query)
    ]
    return xp.concat([sums, *parts], axis=0)


def results(measures: Sequence[Measure], sums: Array) -> Array:
    """The measures' values `[measures]` from their sums, `[rows, 2]`.

    NaN if no query is included, or if a sum overflowed.
    """
    rows = sums[: len(measures)]
    is_finite = xp.all(xp.isfinite(rows), axis=1)
    means = xp.where(is_finite, rows[:, 0] / rows[:, 1], float("nan"))
    if num_rows(measures) == len(measures):
        return means
    values, start = [*xp.unstack(means)], len(measures)
    for number, measure in enumerate(measures):
        if size := _rows_of_items(measure):
            exposure = xp.reshape(sums[start : start + size], [1, -1])
            value = measure.value_of(exposure[:, : measure["num_items"]])[0]
            # The mean is 0, or NaN as above.
            values[number] = values[number] + value
            start += size
    return xp.stack(values)
