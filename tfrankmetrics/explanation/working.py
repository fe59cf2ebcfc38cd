"""The working of the value of a metric for one query: the contribution of each rank.

Formulas read what is at the ranks by the methods of `RankedLists`. Those of
`ReadDownTo` return 0 at the ranks that are not read, whereas the ideal order and the
totals remain those of the whole list. The value of the formula is then the contribution
of the ranks that are read. `hole` and `rbp_residual` also read which ranks have an
item: they start with what a list without judged items scores.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.arrays.numpy import quiet
from tfrankmetrics.columns.read_column import as_objects
from tfrankmetrics.compute.calls import for_functions_of
from tfrankmetrics.compute.values import (
    apply_empty,
    ranked_for,
    require_finite,
    with_labels_for,
    without_items,
)
from tfrankmetrics.explanation.asked import AskedMetric
from tfrankmetrics.inputs.labels import LabelLists
from tfrankmetrics.inputs.one_list import OneList
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.ranking.items import ItemGain, Items, lowest_score
from tfrankmetrics.ranking.order import rank_by_score
from tfrankmetrics.ranking.ranked_lists import RankedLists

RANK, TIED, ITEM, SCORE = "rank", "tied ranks", "item", "score"
LABEL, GAIN, WEIGHT, EXPECTED = "label", "gain", "relative weight", "expected gain"
CONTRIBUTION, RUNNING = "contribution", "running value"


@dataclasses.dataclass(frozen=True)
class Working:
    """The value of one query in one metric, and how it is computed.

    Attributes:
        metric: The metric.
        value: The value of the query; NaN if it is left out.
        weight: The weight of the query in the mean; 0 if it is left out.
        left_out: Why the query is left out; empty if it is not.
        start: The part that no rank contributes, such as that of the items not
            retrieved in ARP.
        is_empty: Whether the list has no relevant items: `empty` then decides.
        row_keys: A number for each row, by which the rows of two metrics are matched.
            First there is a row for each rank, with the rank, from 1, as its key. Then
            there is one for each item of the list, with -1 minus the item's key. For 2
            ranks, and items with the keys 0, 4 and 7, of which one was not retrieved,
            they are 1, 2, -1, -5, -8.
        is_shown: The rows to show. Of the ranks these are those that the formula reads,
            and those with a gain; of the items, those with a gain that were not
            retrieved.
        columns: The columns by name.
    """

    metric: AskedMetric
    value: float
    weight: float
    left_out: str
    start: float
    is_empty: bool
    row_keys: np.ndarray
    is_shown: np.ndarray
    columns: dict[str, np.ndarray]

    def with_rows(self, keys: Sequence[int]) -> Working:
        """The working with the rows of these keys, and the column of ranks.

        A row that only another metric has is empty.
        """
        positions = {key: row for row, key in enumerate(self.row_keys.tolist())}
        chosen = np.array([positions.get(key, -1) for key in keys], int)
        columns = {RANK: np.array([key if key > 0 else np.nan for key in keys], float)}
        for name, column in self.columns.items():
            if name == RANK:  # also a factor of ARP
                continue
            if (chosen < 0).any():  # -1 chooses the value that is appended
                missing = np.nan if column.dtype != object else as_objects([""])
                column = np.append(column, missing)
            columns[name] = column[chosen]
        shown = np.ones(len(keys), bool)
        return dataclasses.replace(
            self, row_keys=np.array(keys, int), is_shown=shown, columns=columns
        )

    @property
    def rule(self) -> str:
        """The contribution as a product of other columns; empty if it is not one."""
        factors: list[str] = []
        for column in self.metric.measure.declaration.by_rank:
            if column == GAIN:
                factors.append(EXPECTED if EXPECTED in self.columns else GAIN)
                factors += [WEIGHT] * (WEIGHT in self.columns)
            elif column != CONTRIBUTION:
                factors.append(column)
        if not factors:
            return ""
        product = np.prod([self.columns[each] for each in factors], axis=0)
        contributions = self.columns[CONTRIBUTION]
        is_known = ~np.isnan(product) & ~np.isnan(contributions)
        product, contributions = product[is_known], contributions[is_known]
        if not contributions.sum() > 0:
            return ""
        denominator = product.sum() / contributions.sum()
        scaled = contributions * denominator
        if not np.allclose(product, scaled, rtol=1e-9, atol=1e-12):
            return ""
        over = "" if np.isclose(denominator, 1, rtol=1e-9) else f" / {denominator:.5g}"
        return f"{CONTRIBUTION} = {' * '.join(factors)}{over}"


def _down_to_last(method: Callable[..., Array]) -> Callable[..., Array]:
    """A method of ranked lists, with 0 at the ranks that are not read."""

    def by_rank(lists: ReadDownTo, gain: ItemGain) -> Array:
        values = method(lists.whole, gain)
        is_read = lists.positions <= lists.last
        if values.ndim == 3:  # gains by subtopic
            is_read = is_read[:, xp.newaxis]
        return xp.where(is_read, values, 0)

    return by_rank


def _of_whole(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of ranked lists, with the values of the whole lists."""
    return lambda lists, *gains, **options: method(lists.whole, *gains, **options)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class ReadDownTo(RankedLists):
    """Ranked lists without the contributions of the ranks below `last`."""

    whole: RankedLists
    last: int

    at_ranks = _down_to_last(RankedLists.at_ranks)
    expected = _down_to_last(RankedLists.expected)
    first_stop = _down_to_last(RankedLists.first_stop)
    first_relevant = _down_to_last(RankedLists.first_relevant)
    last_relevant = _down_to_last(RankedLists.last_relevant)
    last_relevant_of_group = _down_to_last(RankedLists.last_relevant_of_group)
    depends_on_order = _down_to_last(RankedLists.depends_on_order)
    # The values of the following methods at a rank also depend on other ranks, and
    # they only matter where the rank itself contributes.
    group_sums = _of_whole(RankedLists.group_sums)
    relevant_down_to = _of_whole(RankedLists.relevant_down_to)
    irrelevant_above = _of_whole(RankedLists.irrelevant_above)


def work_out(metric: AskedMetric, query: OneList) -> Working:
    """The working of a metric for the list of a query."""
    measure = metric.measure
    lists = with_labels_for([measure], query.lists)
    lists = _in_library(measure, without_items(measure.left_out, lists))
    with quiet(), for_functions_of((measure,)):
        ((_, ranked),) = ranked_for([measure], lists)
        of_formula = measure.values(ranked)
        values, weights = apply_empty(measure, ranked, of_formula)
        values, weights = np.asarray(values), np.asarray(weights).reshape(1, 1)
        require_finite({metric.name: measure}, values, weights, [query.number])
        value, weight = float(values[0, 0]), float(weights[0, 0])
        gains = np.asarray(measure.item_gain(ranked.listed))
        order = _order_of_retrieved(measure, lists, gains)

        depth = min(len(order), measure.k or len(order))
        has_gain, is_read = gains[0] != 0, np.arange(len(order)) < depth
        is_missed = np.asarray(ranked.listed.valid & ~ranked.listed.retrieved)[0]
        is_shown = np.append(is_read | has_gain[order], is_missed & has_gain)

        columns = _columns_by_item(query, ranked, measure, gains[0], order)
        is_exact = measure.tie_breaking.is_exact
        has_ties = is_exact and any(columns[TIED][is_shown])
        if not has_ties:
            del columns[TIED]
        final = float(np.asarray(of_formula)[0, 0])
        start, by_rank = _columns_by_rank(ranked, measure, depth, final, has_ties)
        total = measure.declaration.total(ranked, measure.item_gain)
        is_empty = not np.asarray(total).any()
    left_out = _why_left_out(query, measure, weight, is_empty)
    if left_out:
        value, weight = float("nan"), 0.0
    elif is_empty and measure["empty"] == "one":  # for which the formula returns 0
        start, by_rank[RUNNING] = start + value, by_rank[RUNNING] + value
    for name, column in by_rank.items():
        below = len(is_shown) - depth
        columns[name] = np.pad(column, (0, below), constant_values=np.nan)
    keys = np.append(np.arange(len(order)) + 1, -1 - np.array(query.keys, int))
    of_query = value, weight, left_out, start, is_empty
    return Working(metric, *of_query, keys, is_shown, columns)


def _why_left_out(
    query: OneList, measure: Measure, weight: float, is_empty: bool
) -> str:
    """Why the query is left out of the mean; empty if it is not."""
    if query.left_out or weight > 0:
        return query.left_out
    if not query.lists.valid.any():
        return "it has no judged items"
    if is_empty and measure["empty"] == "skip":
        return 'the list is empty (empty="skip")'
    return "its weight is 0"


def _in_library(measure: Measure, lists: LabelLists) -> LabelLists:
    """The lists in arrays of the library that computes the formula."""
    if not measure.declaration.needs_tensors:
        return lists
    arrays = lists.arrays.items()
    return lists.with_arrays({n: xp.in_library("tensorflow", a) for n, a in arrays})


def _order_of_retrieved(
    measure: Measure, lists: LabelLists, gains: np.ndarray
) -> np.ndarray:
    """The positions of the retrieved items in the list, by rank."""
    scores = np.where(lists.valid, lists.scores, lowest_score(lists.scores))
    is_retrieved = scores != lowest_score(scores)
    order, _ = rank_by_score(
        scores,
        scores.shape[1],
        measure.tie_breaking,
        gain_of=lambda gain: gains,
        retrieved=is_retrieved,
    )
    return np.asarray(order)[0, : is_retrieved.sum()]


def _columns_by_item(
    query: OneList,
    ranked: RankedLists,
    measure: Measure,
    gains: np.ndarray,
    order: np.ndarray,
) -> dict[str, np.ndarray]:
    """The columns of the items: at each rank, and then of all items of the list."""
    positions, scores = np.append(order, np.arange(len(gains))), query.lists.scores[0]
    tied = [*_tied_ranks(scores[order]), *[""] * len(gains)]
    columns = {TIED: as_objects(tied), ITEM: as_objects(query.items)[positions]}
    if query.has_scores:
        is_float = scores.dtype.kind == "f"
        columns[SCORE] = (scores.astype(float) if is_float else scores)[positions]
    columns[LABEL] = _labels(ranked.listed)[positions]
    columns[GAIN] = gains[positions]
    if ranked.listed.weights is not None:
        weights = ranked.relative_weights(measure.item_gain)(ranked.listed)
        columns[WEIGHT] = np.asarray(weights)[0, positions]
    return columns


def _columns_by_rank(
    ranked: RankedLists, measure: Measure, depth: int, final: float, has_ties: bool
) -> tuple[float, dict[str, np.ndarray]]:
    """The part that no rank contributes, and the columns of the ranks that are read.

    `final` is the value of the formula, which reads all of them.
    """

    def values_at_ranks(values: Array) -> np.ndarray:
        return np.asarray(values).ravel()[:depth]  # [D] or [1, D]

    def value_down_to(rank: int) -> float:
        """The value of the formula if it reads the ranks down to this one."""
        # They may share the cache, whose results do not depend on `last`.
        read = ReadDownTo(**vars(ranked), whole=ranked, last=rank)
        return float(np.asarray(measure.values(read))[0, 0])

    expected = values_at_ranks(ranked.expected(measure.item_gain))
    columns = {EXPECTED: expected} if has_ties else {}
    for name in measure.declaration.by_rank:
        if name != GAIN:  # shown as the item's gain and the expected one
            columns[name] = values_at_ranks(measure.by_rank(name, ranked))
    if CONTRIBUTION in columns:
        start = final - np.nansum(columns[CONTRIBUTION])
        columns[RUNNING] = start + np.cumsum(columns[CONTRIBUTION])
        return start, columns
    start = value_down_to(0)
    running = np.full(depth, start)
    contributing = np.flatnonzero(expected)  # without a gain, an item adds nothing
    for rank in contributing:
        running[rank:] = final if rank == contributing[-1] else value_down_to(rank + 1)
    columns[CONTRIBUTION] = np.diff(running, prepend=start)
    columns[RUNNING] = running
    return start, columns


def _tied_ranks(scores: np.ndarray) -> list[str]:
    """For each rank the ranks whose items share its score, as in "2-4", or ""."""
    _, first, group, sizes = np.unique(
        scores, return_index=True, return_inverse=True, return_counts=True
    )
    texts = [
        f"{start + 1}-{start + size}" if size > 1 else ""
        for start, size in zip(first.tolist(), sizes.tolist(), strict=True)
    ]
    return [texts[each] for each in group]


def _labels(judged: Items) -> np.ndarray:
    """The labels; NaN for an item that was not judged, text for several subtopics."""
    labels = np.asarray(judged.labels)[0]
    if labels.ndim == 2:
        return as_objects([" ".join(f"{each:g}" for each in row) for row in labels])
    is_judged = True if judged.judged is None else np.asarray(judged.judged)[0]
    return np.where(is_judged, labels.astype(float), np.nan)
