"""The exposure of items and checks of the data about them.

The value of a metric over all queries follows from the exposure of each item, which
adds up over queries. The formulas are in `metrics/`, and what is recommended in
`ranking/`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.compute.values import ranked_for
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.ranking.recommended import exposure


def exposures(
    measures: Sequence[Measure],
    lists: Lists,
    segments: np.ndarray | None = None,
    num_segments: int = 1,
) -> list[Array]:
    """The exposure of each item over the queries of each segment, float64 `[S, V]`.

    One array for each metric with one value over all queries.

    Args:
        measures: Metrics; those over all queries with a number of items.
        lists: The queries.
        segments: The segment of each query, `[B]`; None if there is only one.
        num_segments: S.
    """
    measures = [each for each in measures if each.declaration.value is not None]
    by_measure: dict[Measure, Array] = {}
    by_key: dict[Hashable, list[Array]] = {}  # shared by metrics with the same key
    for measure, recommended in ranked_for(measures, lists):
        key = recommended, measure.exposure_key
        if key not in by_key:
            of_queries = xp.zeros_like(recommended.num_retrieved, xp.int64)
            if segments is not None:
                of_queries = xp.asarray(segments, xp.int64, like=of_queries)
            by_key[key] = exposure(
                recommended,
                measure["num_items"],
                measure.attention(recommended),
                of_queries,
                num_segments,
            )
        for k, of_items in zip(recommended.cutoffs, by_key[key], strict=True):
            by_measure[dataclasses.replace(measure, k=k)] = of_items
    return [by_measure[measure] for measure in measures]


def with_num_items(
    named: Mapping[str, Measure], number: int | None
) -> dict[str, Measure]:
    """The metrics, those that need a number of items with it.

    Raises:
        ValueError: Neither the option `num_items` nor the data contain the number.
    """
    complete = {}
    for name, measure in named.items():
        if measure.declaration.value is not None and measure["num_items"] is None:
            if number is None:
                raise ValueError(
                    f"{name!r} requires the number of items in the catalog, which "
                    "recommended ids do not contain, nor does a sum of a batch. "
                    "Received: num_items=None. Pass num_items=V."
                )
            measure = measure.with_options({"num_items": number})
        complete[name] = measure
    return complete


def require_known_items(measures: Iterable[Measure], lists: Any) -> None:
    """Raises ValueError for recommended items without data, in eager code.

    Also if the data of two metrics are of different numbers of items.
    """
    sizes = {
        size: measure.declaration.name
        for measure in measures
        if measure.declaration.reads_items
        for size in measure.numbers_of_items
    }
    if len(sizes) > 1:
        raise ValueError(
            "All data about items must be for the same number of items. Received: data "
            f"for {' and '.join(map(str, sorted(sizes)))} items."
        )
    for size, name in sizes.items():
        lists.require_items(size, name)


def require_data_in_order(measures: Iterable[Measure]) -> None:
    """Raises ValueError for data about items by id, where ids are positions."""
    for measure in measures:
        if measure.declaration.reads_items and measure.ids_of_items:
            raise ValueError(
                "A Keras metric requires data about items in the order of their ids. "
                f"Received: a dict by id, in `{measure.name}`. Pass an array with the "
                "value of item 0 first."
            )
