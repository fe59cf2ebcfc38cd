"""How workers add up queries: the part that Beam and TensorFlow Model Analysis share.

Apache Beam calls the five methods of a combiner, and its state an accumulator. Each
worker collects queries, computes their metrics in batches and sends only sums to other
workers. The sums are exact: their order changes no bit of a mean.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.compute.sums import means_of_sums
from tfrankmetrics.compute.values import require_finite
from tfrankmetrics.inputs.mistakes import Facts
from tfrankmetrics.metrics.measure import Measure, label_rules

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
class WorkerState:
    """The sums of each slice, and the queries that are not added yet.

    Only queries of one worker wait: others receive the rest.
    """

    waiting: list[Any] = dataclasses.field(default_factory=list)
    num_items: int = 0  # of the queries that wait
    sums: dict[tuple, np.ndarray] = dataclasses.field(default_factory=dict)
    # What is checked when all queries are added.
    facts: Facts = dataclasses.field(default_factory=Facts)
    counts: Counter[str] = dataclasses.field(default_factory=Counter)  # `RunCounts`
    kinds: set[str] = dataclasses.field(default_factory=set)  # of query ids
    mistake: str | None = None  # an error to raise at the end

    def add(self, sums: Mapping[tuple, np.ndarray]) -> None:
        """Adds sums of slices."""
        for key, each in sums.items():
            self.sums[key] = self.sums[key] + each if key in self.sums else each


class Combiner:
    """Adds up the queries of each slice.

    Subclasses are also a `beam.CombineFn`. They read a query (`query`), compute the
    metrics of those that wait (`evaluated`), and return the result (`output`).
    """

    def __init__(self, named: Mapping[str, Measure]) -> None:
        """`named` has the metrics by their names in the result."""
        self.named = named
        self.rules = label_rules(named.values())

    def query(self, element: Any) -> tuple[Any, int]:
        """A query that Beam passes, and the number of its items."""
        raise NotImplementedError

    def evaluated(self, accumulator: WorkerState) -> Evaluated:
        """The metrics of the queries that wait."""
        raise NotImplementedError

    def output(self, accumulator: WorkerState) -> Any:
        """The result, when all queries are added up."""
        raise NotImplementedError

    def create_accumulator(self) -> WorkerState:
        """No queries yet."""
        return WorkerState()

    def add_input(self, accumulator: WorkerState, element: Any) -> WorkerState:
        """Adds one query."""
        query, num_items = self.query(element)
        accumulator.waiting.append(query)
        accumulator.num_items += num_items
        is_many = len(accumulator.waiting) >= QUERIES_AT_A_TIME
        if is_many or accumulator.num_items >= ITEMS_AT_A_TIME:
            self._add_up(accumulator)
        return accumulator

    def merge_accumulators(self, accumulators: Iterable[WorkerState]) -> WorkerState:
        """The sums of several workers as one."""
        merged = WorkerState()
        for each in accumulators:
            self._add_up(each)
            merged.add(each.sums)
            merged.facts += each.facts
            merged.counts.update(each.counts)
            merged.kinds |= each.kinds
            merged.mistake = merged.mistake or each.mistake
        return merged

    def compact(self, accumulator: WorkerState) -> WorkerState:
        """Only sums are sent to other workers, no queries."""
        self._add_up(accumulator)
        return accumulator

    def extract_output(self, accumulator: WorkerState) -> Any:
        """The result. Raises ValueError for data that show a mistake."""
        self._add_up(accumulator)
        return self.output(accumulator)

    def sums_of_all(self, accumulator: WorkerState) -> np.ndarray:
        """The sums of all queries."""
        none = np.zeros((len(self.named), 0))
        return sum(accumulator.sums.values(), exact_sums_of(none, none))

    def _add_up(self, accumulator: WorkerState) -> None:
        if not accumulator.waiting:
            return
        ids, slices, values, weights = self.evaluated(accumulator)
        require_finite(self.named, values, weights, ids)
        numbers: dict[tuple, list[int]] = {}
        for number, key in enumerate(slices):
            numbers.setdefault(key, []).append(number)
        for key, which in numbers.items():
            sums = exact_sums_of(values[:, which], weights[:, which])
            accumulator.add({key: sums})
        accumulator.waiting, accumulator.num_items = [], 0


class ExactSum:
    """A sum of floats, stored as a few floats that `math.fsum` adds exactly.

    Results are bitwise identical, whatever the order in which workers add up queries.
    """

    def __init__(self, numbers: Iterable[float]) -> None:
        rest, self.parts = [*numbers], []
        try:
            while total := math.fsum(rest):
                self.parts.append(total)
                rest.append(-total)
        except (OverflowError, ValueError):  # ValueError: infinity minus infinity
            raise ValueError(
                "The weights of all queries, and weights times values, must have "
                "finite sums. Received: sums above 1.8e308. Divide the weights by a "
                "number."
            ) from None

    def __add__(self, other: ExactSum) -> ExactSum:
        return ExactSum(self.parts + other.parts)

    def __float__(self) -> float:
        return math.fsum(self.parts)


def exact_sums_of(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The sums of values and weights `[metrics, B]`, of type `ExactSum`.

    `[metrics + 1, 2]`. The last row contains the number of queries, twice.
    """
    is_counted = (weights != 0).any(axis=0)
    values = np.vstack([values, np.ones(len(is_counted))])
    weights = np.vstack([weights, is_counted])
    with np.errstate(over="ignore"):  # an error of `ExactSum`
        terms = np.stack([weights * values, weights], axis=1)
    return np.array([[ExactSum(each) for each in row] for row in terms.tolist()])


def means_and_number(sums: np.ndarray) -> tuple[list[float], int]:
    """The mean of each metric, NaN if no query is included; the number of queries."""
    *rows, (number, _) = sums.astype(float)
    with np.errstate(invalid="ignore"):  # without any query: 0 / 0, NaN
        return means_of_sums(np.array(rows)).tolist(), int(number)


def require_support_of_beam(measures: Mapping[str, Measure]) -> None:
    """Raises ValueError for metrics of subtopics."""
    for measure in measures.values():
        if measure.declaration.has_subtopics:
            raise ValueError(
                "Labels of subtopics on Beam require judgments and a run. Received: "
                f"{measure.name!r}, which needs labels of subtopics. Use "
                "tfrankmetrics.beam.ComputeMetricsOfRun, or tfrankmetrics.evaluate."
            )
