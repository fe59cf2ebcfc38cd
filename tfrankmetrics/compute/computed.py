"""The loop from lists to values: queries come in parts, and their metrics add up."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays.numpy import quiet
from tfrankmetrics.columns.slices import Slices
from tfrankmetrics.compute.calls import call_compiled
from tfrankmetrics.compute.exposures import exposures, require_known_items
from tfrankmetrics.compute.values import (
    ranked_for,
    values_and_weights,
    with_labels_for,
)
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.metrics.measure import Measure

# Metrics, lists that they read, and the positions of their queries among all.
Part = tuple[Mapping[str, Measure], Lists, np.ndarray]


class Computed:
    """The metrics of queries that come in parts.

    Every array function makes one and adds its data part by part.

    Args:
        named: The metrics, with numbers of items.
        slices: The slices of the queries; None without any.
        counted: The queries that the slices belong to, by default all.
    """

    def __init__(
        self,
        named: Mapping[str, Measure],
        slices: Slices | None = None,
        counted: np.ndarray | None = None,
    ) -> None:
        self._named = named
        self._parts: list[tuple[list[str], np.ndarray, list[np.ndarray]]] = []
        self._segments, self._num_segments = None, 1
        if slices is not None:
            self._segments = slices.of_query.astype(np.int64)
            self._num_segments = len(slices.keys)
            if counted is not None:
                # Queries that are not counted recommend nothing: 0 is as good.
                self._segments = np.zeros(len(counted), np.int64)
                self._segments[counted] = slices.of_query
        none = np.zeros((self._num_segments, 1))
        self.exposures = {n: none for n, m in named.items() if m.declaration.value}

    def add(
        self, named: Mapping[str, Measure], lists: Lists, queries: np.ndarray
    ) -> None:
        """Computes some metrics of queries, whose positions among all are `queries`."""
        measures = tuple(named.values())
        columns = call_compiled(values_and_weights, measures, lists)
        columns = [*map(xp.to_numpy, columns)]
        if np.isnan(columns[1]).any():
            _require_gains(named, lists.on_host())
        self._parts.append(([*named], queries, columns))
        if self.exposures:
            names = [name for name in self.exposures if name in named]
            self._add_exposures(names, lists, queries)

    def _add_exposures(
        self, names: list[str], lists: Lists, queries: np.ndarray
    ) -> None:
        """Adds the exposure of each item, by slice."""
        segments, measures = None, [self._named[name] for name in names]
        if self._segments is not None:
            if queries.max(initial=-1) >= len(self._segments):
                return  # `columns_by_query` raises an error once all are counted
            segments = self._segments[queries]
        require_known_items(measures, lists)
        with quiet():
            of_part = exposures(measures, lists, segments, self._num_segments)
        for name, each in zip(names, of_part, strict=True):
            self.exposures[name] = self.exposures[name] + xp.to_numpy(each)

    def by_query(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The values and weights of all queries, of this number, `[metrics, number]`.

        Call it once: it releases each part, and memory holds the values once.
        """
        values, weights = np.zeros((2, len(self._named), number))
        rows = dict(zip(self._named, range(len(values)), strict=True))
        while self._parts:
            names, queries, columns = self._parts.pop()
            of_names = np.array([rows[name] for name in names])[:, np.newaxis]
            values[of_names, queries], weights[of_names, queries] = columns
        return values, weights

    def over_all(self, segment: int | None = None) -> dict[str, float]:
        """The metrics with one value over all queries, or over those of a slice.

        NaN without any exposure.
        """
        values = {}
        for name, exposure in self.exposures.items():
            total = exposure.sum(axis=0) if segment is None else exposure[segment]
            values[name] = math.nan
            if total.any():
                values[name] = float(self._named[name].value_of(total[np.newaxis])[0])
        return values


def _require_gains(named: Mapping[str, Measure], lists: Lists) -> None:
    """Raises ValueError for a grade without a gain, in lists of arrays of NumPy."""
    for name, measure in named.items():
        if isinstance(measure.by_option.get("gain"), tuple):
            ((_, ranked),) = ranked_for([measure], with_labels_for([measure], lists))
            items, gain = ranked.listed, measure.item_gain
            without_gain = items.valid & np.isinf(gain(items))
            if without_gain.any():
                grade = items.labels[without_gain][0]
                raise ValueError(
                    f"{gain.rule} Received: the grade {grade:g}, for {name!r}."
                )
