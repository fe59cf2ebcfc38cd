"""Metrics of recommended items: their values by query, and one over all queries.

The value over all queries follows from the exposure of each item, which adds up over
queries. The formulas are in `metrics/`, and what is recommended in `ranking/`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.graphs import once_per_graph
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.metrics.measure import Measure, cutoffs_of, ranked_alike
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.ranking.recommended import exposure

# Values and weights, `[B]`.
ValuesByMeasure = dict[Measure, tuple[Array, Array]]


def columns_of_items(measures: Sequence[Measure], lists: Lists) -> ValuesByMeasure:
    """The values and weights of metrics of recommended items, by the measure.

    A metric with one value over all queries, which follows from `exposures`, has the
    value 0 per query. Its weights are those of the queries, and 0 for a query without
    recommendations.
    """
    columns: ValuesByMeasure = {}
    for alike, recommended in _recommended_alike(measures, lists):
        for measure in dict.fromkeys(each.without_cutoff for each in alike):
            weights = recommended.weights()
            if measure.declaration.value is None:
                values = xp.unstack(measure.values(recommended), axis=1)
            else:
                values = [xp.zeros_like(weights)] * len(recommended.cutoffs)
            for size in measure.numbers_of_items:
                ids: Any = recommended.ranked.ids
                is_known = xp.all((ids >= 0) & (ids < size), axis=1)
                weights = xp.where(is_known, weights, float("nan"))
            for k, value in zip(recommended.cutoffs, values, strict=True):
                columns[dataclasses.replace(measure, k=k)] = value, weights
    return columns


def _recommended_alike(
    measures: Iterable[Measure], lists: Lists
) -> Iterable[tuple[list[Measure], RankedLists]]:
    """Measures that break ties alike, and the items that they recommend."""
    for (tie_breaking, _), alike in ranked_alike(measures).items():
        cutoffs = cutoffs_of(alike)
        recommended = once_per_graph(
            type(lists).recommend, lists, cutoffs[-1], tie_breaking
        )
        yield alike, dataclasses.replace(recommended, cutoffs=cutoffs)


def exposures(
    measures: Sequence[Measure],
    lists: Lists,
    segments: np.ndarray | None = None,
    num_segments: int = 1,
) -> list[Array]:
    """The exposure of each item over the queries of each segment, float64 `[S, V]`.

    One array for each of the measures that have a value over all queries, in their
    order.

    Args:
        measures: Metrics of any kind, with a number of items.
        lists: The queries.
        segments: The segment of each query, `[B]`; None if there is only one.
        num_segments: S.
    """
    chosen = [each for each in measures if each.declaration.value is not None]
    found: dict[Measure, Array] = {}
    for alike, recommended in _recommended_alike(chosen, lists):
        numbers = xp.zeros_like(recommended.num_retrieved, xp.int64)
        if segments is not None:
            numbers = xp.asarray(segments, xp.int64, like=numbers)
        # Metrics with the same key share an exposure, which is computed at all cutoffs.
        by_key: dict[Hashable, list[Array]] = {}
        for measure in dict.fromkeys(each.without_cutoff for each in alike):
            key = measure.exposure_key
            if key not in by_key:
                by_key[key] = exposure(
                    recommended,
                    measure["num_items"],
                    measure.attention(recommended),
                    numbers,
                    num_segments,
                )
            for number, k in enumerate(recommended.cutoffs):
                found[dataclasses.replace(measure, k=k)] = by_key[key][number]
    return [found[measure] for measure in chosen]


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
                    "recommended ids do not contain. Received: num_items=None. Pass "
                    "num_items=V."
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
        if measure.ids_of_items:
            raise ValueError(
                "A Keras metric requires data about items in the order of their ids. "
                f"Received: a dict by id, in `{measure.name}`. Pass an array with the "
                "value of item 0 first."
            )
