"""The working of the value of a metric for one query: the contribution of each rank."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.arrays.numpy import quiet
from tfrankmetrics.compute.calls import call_compiled
from tfrankmetrics.compute.values import lists_of, values_and_weights
from tfrankmetrics.explanation.reading import ReadDownTo
from tfrankmetrics.inputs.labels import LabelLists
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.ranking.items import Items
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.ranking.ties import STABLE

RANK, TIED, ITEM, SCORE, LABEL, GAIN = (
    "rank",
    "tied ranks",
    "item",
    "score",
    "label",
    "gain",
)
WEIGHT, EXPECTED, CONTRIBUTION, RUNNING = (
    "relative weight",
    "expected gain",
    "contribution",
    "running value",
)


@dataclasses.dataclass(frozen=True)
class OneList:
    """The list of one query.

    Attributes:
        compute: Computes the value and the weight of the query, float64 `[1, 1]` each,
            like a function that evaluates metrics.
        labels: Its items as labels and scores, in arrays of NumPy.
        items: The name of each item.
        has_scores: Whether the scores were passed, rather than the order of the items.
        keys: Unique keys of the items, whatever their order is.
        number: The number of the query, on which ties="random" depends.
    """

    compute: Callable[[Measure], tuple[Array, Array]]
    labels: LabelLists
    items: Sequence[Any]
    keys: Sequence[Any]
    number: int = 0
    has_scores: bool = True

    def read_by(self, measure: Measure) -> OneList:
        """The list that a metric ranks, perhaps without items of weight 0."""
        labels = lists_of(measure["zero_weight"], self.labels)
        return dataclasses.replace(self, labels=labels)


@dataclasses.dataclass(frozen=True)
class Working:
    """The value of one query in one metric, and how it is computed.

    Attributes:
        name: The name of the metric.
        label: The text in brackets after the names of its columns, which distinguishes
            them from the columns of a second metric; None without a second metric.
        measure: The metric with its options.
        value: The value of the query; NaN if it is excluded.
        weight: The weight of the query in the mean.
        columns: Arrays with an element for each item: by rank, and then of the items
            with a gain that were not retrieved. An item below the cutoff is among them
            only if it has a gain.
        start: The part that no rank contributes, such as that of the items not
            retrieved in ARP.
        is_empty: Whether the list has no relevant items, so that `empty` decides.
    """

    name: str
    label: str | None
    measure: Measure
    value: float
    weight: float
    columns: dict[str, np.ndarray]
    start: float
    is_empty: bool

    @property
    def rule(self) -> str:
        """The contribution as a product of other columns; empty without factors."""
        factors: list[str] = []
        for column in self.measure.declaration.by_rank:
            if column == GAIN:
                factors.append(EXPECTED if EXPECTED in self.columns else GAIN)
                factors += [WEIGHT] * (WEIGHT in self.columns)
            elif column != CONTRIBUTION:
                factors.append(column)
        return self._as_product(factors) if factors else ""

    def _as_product(self, factors: Sequence[str]) -> str:
        product = np.prod([self.columns[each] for each in factors], axis=0)
        contributions = self.columns[CONTRIBUTION]
        is_known = ~np.isnan(product) & ~np.isnan(contributions)
        product, contributions = product[is_known], contributions[is_known]
        if not contributions.sum() > 0:
            return ""
        denominator = product.sum() / contributions.sum()
        expected = contributions * denominator
        if not np.allclose(product, expected, rtol=1e-9, atol=1e-12):
            return ""
        over = "" if np.isclose(denominator, 1, rtol=1e-9) else f" / {denominator:.5g}"
        return f"{CONTRIBUTION} = {' * '.join(factors)}{over}"


def computed_from(lists: Lists, number: int) -> Callable[[Measure], Any]:
    """Computes the value and the weight of the only query of some lists."""
    return lambda measure: call_compiled(values_and_weights, (measure,), lists, number)


class ItemsByRank:
    """The items of a list by rank, and then those with a gain but without a rank."""

    def __init__(self, measure: Measure, one: OneList) -> None:
        self._one, self._judged = one, one.labels.rank(1, STABLE, 0).judged
        with quiet():
            self._gains = np.asarray(measure.gain(self._judged))[0]
            self._order = _positions(measure, one.labels, self._judged, one.number)
        number = len(self._order)
        self.depth = min(number, measure.k or number)
        has_gain = self._gains != 0
        is_shown = (np.arange(number) < self.depth) | has_gain[self._order]
        self.ranks = np.flatnonzero(is_shown) + 1
        missed = self._judged.valid[0] & ~self._judged.retrieved[0] & has_gain
        self.missed = [
            one.keys[position] for position in np.flatnonzero(missed).tolist()
        ]
        self._tied = np.full(number, "", object)
        if measure.tie_breaking.is_exact:
            self._tied = _tied_ranks(one.labels.scores[0, self._order])
        self.has_ties = any(self._tied[is_shown])

    def show(self, ranks: Sequence[int], missed: Sequence[Any]) -> None:
        """Shows these ranks, and these items that were not retrieved.

        `positions` contains the position of each item that is shown; -1 without an
        item.
        """
        self.ranks, self.missed = np.array(ranks, int), [*missed]
        exists = self.ranks <= len(self._order)
        of_ranks = np.full(len(self.ranks), -1)
        of_ranks[exists] = self._order[self.ranks[exists] - 1]
        place = {key: position for position, key in enumerate(self._one.keys)}
        of_missed = [place.get(key, -1) for key in self.missed]
        self.positions = np.append(of_ranks, np.array(of_missed, int))

    def columns(self) -> dict[str, np.ndarray]:
        """The columns that do not depend on the formula."""
        one, number = self._one, len(self.positions)
        columns = {RANK: np.full(number, np.nan)}
        columns[RANK][: len(self.ranks)] = self.ranks
        if self.has_ties:
            columns[TIED] = self._of_ranks(_objects([*self._tied, ""]))
        columns[ITEM] = _objects([*one.items, ""])[self.positions]
        if one.has_scores:
            columns[SCORE] = self._at_positions(one.labels.scores[0])
        columns[LABEL] = _labels(self._judged, self.positions)
        columns[GAIN] = self._at_positions(self._gains)
        return columns

    def _of_ranks(self, values: np.ndarray) -> np.ndarray:
        """Values of all ranks, the last of which represents no value."""
        last = len(values) - 1
        ranks = np.append(self.ranks - 1, np.full(len(self.missed), last))
        return values[np.minimum(ranks, last)]

    def read(self, values: Array) -> np.ndarray:
        """Values of the ranks, `[D]` or `[1, D]`, as a column: NaN below the cutoff."""
        values = np.asarray(values)
        values = np.broadcast_to(values, (1, values.shape[-1]))[0, : self.depth]
        return self._of_ranks(np.append(values, np.nan))

    def _at_positions(self, values: np.ndarray) -> np.ndarray:
        if values.dtype.kind == "i" and (self.positions >= 0).all():
            return values[self.positions]
        return np.append(values.astype(float), np.nan)[self.positions]

    def of_items(self, values: Array) -> np.ndarray:
        """Values of the items of the list, `[1, N]`, as a column."""
        return self._at_positions(np.asarray(values)[0])


def work_out(
    name: str, measure: Measure, one: OneList, items: ItemsByRank, label: str | None
) -> Working:
    """The working of a metric for a list."""
    value, weight = (float(np.asarray(each)[0, 0]) for each in one.compute(measure))
    with quiet():
        ranked = _ranked(measure, one)
        start, columns = _read(measure, ranked, items)
        is_empty = not np.asarray(measure.total(ranked)).any()
    value = value if weight > 0 else float("nan")
    if is_empty and measure["empty"] == "one":  # the formula returns 0
        start, columns[RUNNING] = start + value, columns[RUNNING] + value
    columns = {**items.columns(), **columns}
    return Working(name, label, measure, value, weight, columns, start, is_empty)


def _read(
    measure: Measure, ranked: RankedLists, items: ItemsByRank
) -> tuple[float, dict[str, np.ndarray]]:
    """The part that no rank contributes, and the columns of the values read."""
    columns = {}
    if ranked.judged.weights is not None:
        weights = ranked.relative_weights(measure.gain)(ranked.judged)
        columns[WEIGHT] = items.of_items(weights)
    expected = items.read(ranked.expected(measure.gain))
    if items.has_ties:
        columns[EXPECTED] = expected
    for column in measure.declaration.by_rank:
        if column != GAIN:  # shown as the item's gain and the expected one
            columns[column] = items.read(measure.by_rank(column, ranked))
    if CONTRIBUTION in columns:
        whole = _value_down_to(len(expected), measure, ranked)
        start = whole - np.nansum(columns[CONTRIBUTION])
        columns[RUNNING] = start + np.cumsum(columns[CONTRIBUTION])
        return start, columns
    start, running = _values_by_rank(measure, ranked, expected)
    columns[CONTRIBUTION] = np.diff(running, prepend=start)
    columns[RUNNING] = running
    return start, columns


def _ranked(measure: Measure, one: OneList) -> RankedLists:
    """The list as the formula reads it, in the library that the formula needs."""
    labels: Any = one.labels
    if measure.declaration.needs_tensors:
        arrays = labels.arrays.items()
        tensors = {n: xp.in_library("tensorflow", each) for n, each in arrays}
        labels = labels.with_arrays(tensors)
    ranked = labels.rank(measure.k, measure.tie_breaking, one.number)
    return dataclasses.replace(ranked, cutoffs=(measure.k,))


def _values_by_rank(
    measure: Measure, ranked: RankedLists, expected: np.ndarray
) -> tuple[float, np.ndarray]:
    """The value of the formula if it reads no rank, and down to each rank.

    A rank whose item has no gain contributes nothing, and is therefore skipped.
    """
    start = last = _value_down_to(0, measure, ranked)
    values = np.full(len(expected), np.nan)
    for rank in range(1, np.count_nonzero(~np.isnan(expected)) + 1):
        if expected[rank - 1] != 0:
            last = _value_down_to(rank, measure, ranked)
        values[rank - 1] = last
    return start, values


def _value_down_to(rank: int, measure: Measure, ranked: RankedLists) -> float:
    """The value of the formula if it reads the ranks down to this one."""
    value = measure.values(ReadDownTo.of(ranked, rank))
    return float(np.asarray(value)[0, 0])


def _positions(
    measure: Measure, labels: LabelLists, judged: Items, number: int
) -> np.ndarray:
    """The positions of the retrieved items in the list, by rank."""
    how = measure.tie_breaking
    before = np.arange(labels.scores.shape[1])
    if how.gain is not None:  # ties="best" and ties="worst" sort by gain first
        gains = how.gain(judged)[0]
        before, how = xp.argsort(gains, descending=how.policy.highest_first), STABLE
    # Because the weight of an item follows its label, it may carry the position.
    labels = LabelLists(
        np.zeros(labels.scores.shape),
        labels.scores[:, before],
        labels.valid[:, before],
        item_weights=before[np.newaxis].astype(float),
    )
    ranked = labels.rank(None, how, number).ranked
    positions: Any = ranked.weights
    return positions[ranked.retrieved].astype(int)


def _tied_ranks(scores: np.ndarray) -> np.ndarray:
    """For each rank the ranks whose items share its score, as in "2-4", or ""."""
    above, below = scores[:-1], scores[1:]
    is_same = (above == below) | (np.isnan(above) & np.isnan(below))
    starts = np.flatnonzero(np.append(True, ~is_same)[: len(scores)])
    sizes = np.diff(starts, append=len(scores))
    texts = [
        f"{start + 1}-{start + size}" if size > 1 else ""
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
    ]
    return np.repeat(np.array(texts, object), sizes)


def _labels(judged: Items, positions: np.ndarray) -> np.ndarray:
    """The labels; NaN for an item that was not judged, text for several subtopics."""
    labels = judged.labels[0]
    if labels.ndim == 2:
        texts = [" ".join(f"{each:g}" for each in row) for row in labels]
        return _objects([*texts, ""])[positions]
    if judged.judged is not None:
        labels = np.where(judged.judged[0], labels, np.nan)
    return np.append(labels, np.nan)[positions]


def _objects(values: Sequence[Any]) -> np.ndarray:
    """An array of any objects, even of sequences."""
    array = np.empty(len(values), object)
    array[:] = values
    return array
