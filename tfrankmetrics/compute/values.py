"""Each query's value and weight in each measure.

Here all paths meet: the Keras metrics, `evaluate`, `evaluate_rows`, retrieval and
TensorFlow Model Analysis call `values_and_weights`, which ranks lists and calls the
formulas.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.columns.read_column import first_index
from tfrankmetrics.graphs import once_per_graph
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.metrics.measure import LeftOut, Measure, cutoffs_of
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
    lists_to_rank = with_labels_for(measures, lists)
    columns: dict[Measure, tuple[Array, Array]] = {}
    for measure, ranked in ranked_for(measures, lists_to_rank):
        if measure.declaration.reads_items:
            value, weight = _of_items(measure, ranked)
        else:
            value, weight = apply_empty(measure, ranked, measure.values(ranked))
        # Each column of the values belongs to the measure with its cutoff.
        columns_at = ranked.cutoffs if measure.declaration.has_cutoff else (None,)
        values = xp.unstack(value, axis=1)
        weights = [weight] * len(values)
        if weight.ndim == 2:  # one for each cutoff
            weights = xp.unstack(weight, axis=1)
        for k, *column in zip(columns_at, values, weights, strict=True):
            columns[dataclasses.replace(measure, k=k)] = tuple(column)
    values, weights = zip(*(columns[measure] for measure in measures), strict=True)
    is_valid = once_per_graph(type(lists).has_valid_values, lists)
    nan_if_invalid = xp.where(
        is_valid, xp.asarray(0, xp.float64, like=is_valid), float("nan")
    )
    return xp.stack(values), xp.stack(weights) + nan_if_invalid


def ranked_for(
    measures: Iterable[Measure], lists: Any
) -> Iterator[tuple[Measure, RankedLists]]:
    """Each measure without its cutoff, and the lists that it ranks, at all cutoffs.

    A formula returns the values at all cutoffs. It runs once for each metric.
    Measures that break ties and leave items out alike share ranked lists.
    """
    ranked_alike = collections.defaultdict(list)
    for measure in measures:
        reads_items = measure.declaration.reads_items
        ranked_alike[reads_items, measure.tie_breaking, measure.left_out].append(
            measure
        )
    for (reads_items, tie_breaking, left_out), alike in ranked_alike.items():
        cutoffs = cutoffs_of(alike)
        deepest = cutoffs[-1]
        if not (reads_items or deepest is None):
            # To share ranked lists, all cutoffs up to 10 are ranked equally deep.
            deepest = max(deepest, 10)
        kept = without_items(left_out, lists)
        rank = type(kept).recommend if reads_items else type(kept).rank
        ranked = once_per_graph(rank, kept, deepest, tie_breaking)
        ranked = dataclasses.replace(ranked, cutoffs=cutoffs)
        for measure in dict.fromkeys(dataclasses.replace(m, k=None) for m in alike):
            yield measure, ranked


def with_labels_for(measures: Iterable[Measure], lists: Any) -> Any:
    """The lists, with labels of the number of dimensions that the measures read.

    Labels `[B, N, 1]`, which losses of Keras need, lose the last dimension.

    Raises:
        ValueError: A measure requires subtopics and the labels have none, or the
            reverse. Only the number of dimensions matters, which is known in every
            graph.
    """
    read = [each.declaration for each in measures if not each.declaration.reads_items]
    reads_subtopics = any(each.has_subtopics for each in read)
    if lists.has_subtopics and lists.labels.shape[2] == 1 and not reads_subtopics:
        return lists.with_arrays({"labels": xp.squeeze(lists.labels, axis=2)})
    for declaration in read:
        if declaration.has_subtopics != lists.has_subtopics:
            forms = {False: "[B, N]", True: "[B, N, T], one for each subtopic"}
            remedy = (
                "If they are grades in one-hot form, pass np.argmax(labels, axis=-1)."
                if lists.has_subtopics
                else "Add a last dimension for the subtopics."
            )
            raise ValueError(
                f"`{declaration.name}` reads labels of shape "
                f"{forms[not lists.has_subtopics]}. Received: labels of shape "
                f"{forms[lists.has_subtopics]}. {remedy}"
            )
    return lists


def without_items(left_out: LeftOut, lists: Any) -> Any:
    """The lists without the items that a metric does not rank."""
    if left_out.unjudged:
        lists = once_per_graph(type(lists).without_unjudged, lists)
    if left_out.zero_weights:
        lists = once_per_graph(type(lists).without_zero_weights, lists)
    return lists


def _of_items(measure: Measure, recommended: RankedLists) -> tuple[Array, Array]:
    """The values `[B, C]` and weights `[B]` of a metric of recommended items.

    A query without recommendations has the weight 0. A metric with one value over all
    queries, which follows from `exposures`, has the value 0 per query.
    """
    weights = recommended.weights()
    for size in measure.numbers_of_items:
        ids: Any = recommended.ranked.ids
        is_known = xp.all((ids >= 0) & (ids < size), axis=1)
        weights = xp.where(is_known, weights, float("nan"))
    if measure.declaration.value is not None:
        return xp.zeros_like(recommended.num_to_cutoffs), weights
    return measure.values(recommended), weights


def apply_empty(
    measure: Measure, ranked: RankedLists, value: Array
) -> tuple[Array, Array]:
    """A measure's values and weights, by its policy for empty lists.

    The values are `[B, C]`. The weights are `[B]`, or `[B, C]` if `total` is.
    """
    total = measure.declaration.total(ranked, measure.item_gain)
    weight = ranked.weights(measure.item_gain)
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
            weight *= ranked.total(measure.item_gain)
        case _:  # "macro", or a metric without the option
            pass
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
    ids: Sequence[Any] | np.ndarray | None = None,
) -> None:
    """Raises ValueError for a value or weight that is not finite.

    The inputs were checked already. The cause is an overflow, a user's function, or a
    label above `max_label`. An infinite weight is an overflow of the weights; otherwise
    the gain of the metric states the rule. The error names the query by its id, or else
    by its number.
    """
    bad = ~(np.isfinite(values) & np.isfinite(weights))
    if bad.any():
        metric, query = first_index(bad)
        name = list(named)[metric]
        rule = named[name].item_gain.rule
        if np.isinf(weights[metric, query]):
            rule = "A query's weights times its gains must have a finite sum."
        place = query if ids is None else ids[query]
        place = place.item() if isinstance(place, np.generic) else place
        raise ValueError(
            f"{rule} Received: other values, in query {shortened(place)} for {name!r}."
        )
