"""How workers add up queries: the part that Beam and TensorFlow Model Analysis share.

Apache Beam calls the five methods of a combiner, and its state an accumulator. Each
worker collects queries, computes their metrics in batches, and sends only sums to other
workers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from tfrankmetrics.compute.exact_sums import Sums, added, no_sums, sums_of
from tfrankmetrics.compute.values import require_finite
from tfrankmetrics.metrics.measure import Measure

# Enough queries to make the cost of a call small, and few enough to keep in memory.
QUERIES_AT_A_TIME = 512
ITEMS_AT_A_TIME = 2**18


class Evaluated(NamedTuple):
    """The metrics of some queries."""

    ids: Sequence[Any] | None
    slices: Sequence[tuple]  # of each query
    values: np.ndarray  # [metrics, B]
    weights: np.ndarray  # [metrics, B]


@dataclasses.dataclass
class Accumulator:
    """The sums of each slice, and the queries that are not added yet.

    Only queries of one worker wait: others receive the rest.
    """

    waiting: list[Any] = dataclasses.field(default_factory=list)
    num_items: int = 0  # of the queries that wait
    sums: dict[tuple, Sums] = dataclasses.field(default_factory=dict)

    def add(self, key: tuple, sums: Sums) -> None:
        """Adds sums of queries of one slice."""
        self.sums[key] = added([self.sums[key], sums]) if key in self.sums else sums


State = TypeVar("State", bound=Accumulator)


class Combiner(Generic[State]):
    """Adds up the queries of each slice.

    Subclasses are also a `beam.CombineFn`. They read a query (`query`), compute the
    metrics of those that wait (`evaluated`), and return the result (`output`).
    """

    @property
    def named(self) -> Mapping[str, Measure]:
        """The metrics by their names in the result."""
        raise NotImplementedError

    def create_accumulator(self) -> State:
        """No queries yet."""
        raise NotImplementedError

    def query(self, element: Any) -> tuple[Any, int]:
        """A query that Beam passes, and the number of its items."""
        raise NotImplementedError

    def evaluated(self, accumulator: State) -> Evaluated:
        """The metrics of the queries that wait."""
        raise NotImplementedError

    def output(self, accumulator: State) -> Any:
        """The result, when all queries are added up."""
        raise NotImplementedError

    def add_input(self, accumulator: State, element: Any) -> State:
        """Adds one query."""
        query, num_items = self.query(element)
        accumulator.waiting.append(query)
        accumulator.num_items += num_items
        is_many = len(accumulator.waiting) >= QUERIES_AT_A_TIME
        if is_many or accumulator.num_items >= ITEMS_AT_A_TIME:
            self._add_up(accumulator)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[State]) -> State:
        """The sums of several workers as one."""
        merged = self.create_accumulator()
        for each in accumulators:
            self._add_up(each)
            self.merge(merged, each)
        return merged

    def merge(self, merged: State, other: State) -> None:
        """Adds the sums of a different worker."""
        for key, sums in other.sums.items():
            merged.add(key, sums)

    def compact(self, accumulator: State) -> State:
        """Only sums are sent to other workers, no queries."""
        self._add_up(accumulator)
        return accumulator

    def extract_output(self, accumulator: State) -> Any:
        """The result. Raises ValueError for data that show a mistake."""
        self._add_up(accumulator)
        return self.output(accumulator)

    def sums_of_all(self, accumulator: State) -> Sums:
        """The sums of all queries."""
        return added([*accumulator.sums.values(), no_sums(len(self.named))])

    def _add_up(self, accumulator: State) -> None:
        if not accumulator.waiting:
            return
        ids, slices, values, weights = self.evaluated(accumulator)
        require_finite(self.named, values, weights, ids)
        numbers: dict[tuple, list[int]] = {}
        for number, key in enumerate(slices):
            numbers.setdefault(key, []).append(number)
        for key, which in numbers.items():
            accumulator.add(key, sums_of(values[:, which], weights[:, which]))
        accumulator.waiting, accumulator.num_items = [], 0
