"""Each query's value and weight in each measure.

Here all paths meet: the Keras metrics, `evaluate`, `evaluate_rows`, retrieval and
TensorFlow Model Analysis call `values_and_weights`, which ranks lists and calls the
formulas.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.columns.read_column import first_index
from tfrankmetrics.compute.exposures import ValuesByMeasure, columns_of_items
from tfrankmetrics.graphs import once_per_graph
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.metrics.measure import (
    LeftOut,
    Measure,
    cutoffs_of,
    ranked_alike,
)
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.rules import shortened


def values_and_weights(
    measures: Sequence[Measure],
    lists: Lists,
) -> tuple[Array, Array]:
    """Each query's value and weight in each measure, float64 `[measures, B]`.

    Ranks once for all measures that break ties alike. An excluded list (all padding, or
    empty with `empty="skip"`) has the weight 0, and an empty one has a negative weight
    if its measure `marks_empty`. An invalid label or weight makes the
    query's weight NaN.
    """
    of_lists = [each for each in measures if not each.declaration.reads_items]
    of_items = [each for each in measures if each.declaration.reads_items]
    columns = _columns_of_lists(of_lists, lists)
    columns |= columns_of_items(of_items, lists)
    values, weights = zip(*(columns[measure] for measure in measures), strict=True)
    is_valid = once_per_graph(type(lists).has_valid_values, lists)
    nan_if_invalid = xp.where(
        is_valid, xp.asarray(0, xp.float64, like=is_valid), float("nan")
    )
    return xp.stack(values), xp.stack(weights) + nan_if_invalid


def _columns_of_lists(measures: Sequence[Measure], lists: Lists) -> ValuesByMeasure:
    """The values and weights `[B]` of metrics of relevance, by the measure."""
    lists = without_one_subtopic(measures, lists)
    check_labels(measures, lists)
    columns: ValuesByMeasure = {}
    for (tie_breaking, left_out), alike in ranked_alike(measures).items():
        cutoffs = cutoffs_of(alike)
        read = without_items(left_out, lists)
        # To share ranked lists, all cutoffs up to 10 are ranked equally deep.
        deepest = None if cutoffs[-1] is None else max(cutoffs[-1], 10)
        ranked = once_per_graph(type(read).rank, read, deepest, tie_breaking)
        ranked = dataclasses.replace(ranked, cutoffs=cutoffs)
        # A formula returns the values at all cutoffs, so that it runs once for each
        # metric, and each column belongs to the measure with its cutoff.
        for measure in dict.fromkeys(measure.without_cutoff for measure in alike):
            value, weight = apply_empty(measure, ranked, measure.values(ranked))
            has_cutoff = measure.declaration.has_cutoff
            columns_at = cutoffs if has_cutoff else (None,)
            values = xp.unstack(value, axis=1)
            weights = [weight] * len(values)
            if weight.ndim == 2:  # one for each cutoff
                weights = xp.unstack(weight, axis=1)
            for k, *column in zip(columns_at, values, weights, strict=True):
                columns[dataclasses.replace(measure, k=k)] = tuple(column)
    return columns


def without_one_subtopic(measures: Iterable[Measure], lists: Lists) -> Any:
    """Labels `[B, N, 1]`, which losses of Keras need, without the last dimension."""
    if not lists.has_subtopics or any(m.declaration.has_subtopics for m in measures):
        return lists
    labels = lists.labels  # type: ignore[attr-defined]
    if labels.shape[2] != 1:
        return lists
    return lists.with_arrays({"labels": xp.squeeze(labels, axis=2)})


def check_labels(measures: Iterable[Measure], lists: Lists) -> None:
    """Raises ValueError if a measure requires subtopics and the labels have none.

    Also raises it in the reverse case. Only the number of dimensions matters, which is
    known in every graph.
    """
    for measure in measures:
        if measure.declaration.has_subtopics != lists.has_subtopics:
            forms = {False: "[B, N]", True: "[B, N, T], one for each subtopic"}
            remedy = (
                "If they are grades in one-hot form, pass np.argmax(labels, axis=-1)."
                if lists.has_subtopics
                else "Add a last dimension for the subtopics."
            )
            raise ValueError(
                f"`{measure.declaration.name}` reads labels of shape "
                f"{forms[not lists.has_subtopics]}. Received: labels of shape "
                f"{forms[lists.has_subtopics]}. {remedy}"
            )


def without_items(left_out: LeftOut, lists: Any) -> Any:
    """The lists without the items that a metric does not rank."""
    if left_out.unjudged:
        lists = once_per_graph(type(lists).without_unjudged, lists)
    if left_out.zero_weights:
        lists = once_per_graph(type(lists).without_zero_weights, lists)
    return lists


def apply_empty(
    measure: Measure, ranked: RankedLists, value: Array
) -> tuple[Array, Array]:
    """A measure's values and weights, by its policy for empty lists.

    The values are `[B, C]`. The weights are `[B]`, or `[B, C]` if `total` is.
    """
    total = measure.total(ranked)
    weight = ranked.weights(measure.gain)
    if total.ndim == 2:
        weight = weight[:, xp.newaxis]
    weight = xp.where(xp.isfinite(total), weight, float("nan"))
    options = measure.by_option
    if options["empty"] == "skip":
        weight = xp.where(xp.equal(total, 0), xp.zeros_like(weight), weight)
    if measure.marks_empty:
        weight = xp.where(xp.equal(total, 0), -weight, weight)
    match options.get("average"):
        case "micro":
            weight *= total
        case "items":
            weight *= ranked.num_listed
        case "relevant":
            weight *= ranked.total(measure.gain)
    # In an empty list, formulas return 0 already.
    if options["empty"] == "one":
        is_empty = xp.equal(total, 0)
        is_empty = is_empty[:, xp.newaxis] if total.ndim == 1 else is_empty
        value = xp.where(is_empty, xp.ones_like(value), value)
    return value, weight


def require_finite(
    named: Mapping[str, Measure],
    values: np.ndarray,
    weights: np.ndarray,
    ids: Sequence[Any] | None = None,
) -> None:
    """Raises ValueError for a value or weight that is not finite.

    Because the inputs were checked already, the cause is an overflow, a user's
    function, or a label above `max_label`. An infinite weight is an overflow of the
    weights; otherwise the gain of the metric states the rule. The error names the query
    by its id, or else by its number.
    """
    bad = ~(np.isfinite(values) & np.isfinite(weights))
    if bad.any():
        metric, query = first_index(bad)
        name = list(named)[metric]
        rule = named[name].gain.rule
        if np.isinf(weights[metric, query]):
            rule = "A query's weights times its gains must have a finite sum."
        named_query = query if ids is None else shortened(ids[query])
        raise ValueError(
            f"{rule} Received: other values, in query {named_query} for {name!r}."
        )
