"""From lists to each query's value and weight: what every shell calls."""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from tfrankmetrics.ranked_lists import RankedLists
from tfrankmetrics.ranking import TieBreaking
from tfrankmetrics.registry import Measure
from tfrankmetrics.ways_in import Lists, check_labels


@tf.autograph.experimental.do_not_convert
def values_and_weights(
    measures: Sequence[Measure],
    lists: Lists,
    first_query: tf.Tensor | int = 0,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Each query's value and weight in each metric, float64 `[metrics, B]`.

    Ranks once for all measures that break ties alike. A list that does not
    count (all padding, or empty under `empty="skip"`) has the weight 0. A
    label or weight that is not a number makes the query's weight NaN.
    """
    check_labels(measures, lists)
    columns: dict[Measure, tuple[tf.Tensor, tf.Tensor]] = {}
    for tie_breaking, alike in _by_tie_breaking(measures).items():
        cutoffs = tuple(sorted({measure.k for measure in alike}, key=_none_last))
        ranked = lists.rank(cutoffs, tie_breaking, first_query)
        families = list(dict.fromkeys(measure.family for measure in alike))
        for family, found in zip(families, _values_of(families, ranked), strict=True):
            value, weight = _apply_empty(family, ranked, found)
            of_columns = cutoffs if family.formula.has_cutoff else (None,)
            for k, column in zip(of_columns, tf.unstack(value, axis=1), strict=True):
                columns[dataclasses.replace(family, k=k)] = column, weight
    values, weights = zip(*(columns[measure] for measure in measures), strict=True)
    poison = tf.where(lists.are_numbers(), tf.constant(0, tf.float64), float("nan"))
    return tf.stack(values), tf.stack(weights) + poison


def _by_tie_breaking(
    measures: Iterable[Measure],
) -> dict[TieBreaking, list[Measure]]:
    alike = collections.defaultdict(list)
    for measure in measures:
        alike[TieBreaking(measure["ties"], measure["seed"])].append(measure)
    return alike


def _none_last(k: int | None) -> tuple[bool, int]:
    return k is None, k or 0


def _values_of(families: Sequence[Measure], ranked: RankedLists) -> list[tf.Tensor]:
    """The values of each metric, `[B, C]`.

    In most batches no list has a tie that matters, or NaN, and there the groups of tied
    items, which take half of all the operations, are not looked for.
    """
    values = [family.values(ranked) for family in families]
    if ranked.ties is None:
        return values

    def with_ties():
        grouped = ranked.with_groups()
        return [family.values(grouped) for family in families]

    return tf.cond(ranked.ties.may_exist, with_ties, lambda: values)


def weighted_sums(
    measures: Sequence[Measure],
    lists: Lists,
    first_query: tf.Tensor | int = 0,
) -> tf.Tensor:
    """Sum of weight * value and sum of weight over the queries, `[metrics, 2]`.

    A metric's whole state: it adds up over batches, replicas and workers.
    """
    values, weights = values_and_weights(measures, lists, first_query)
    return tf.stack(
        [tf.reduce_sum(weights * values, axis=1), tf.reduce_sum(weights, axis=1)],
        axis=1,
    )


def call_compiled(
    function: Callable,
    measures: tuple[Measure, ...],
    lists: Lists,
    first_query: tf.Tensor | int,
) -> Any:
    """`function(measures, lists, first_query)`, as a graph, for calls from eager code.

    Op by op, an eager call would spend some 30 microseconds on each op. The
    graph is made once for all batches and list sizes.
    """
    if any(callable(value) for measure in measures for _, value in measure.options):
        # A graph would keep what the user's function did when it was first called.
        return function(measures, lists, first_query)
    tensors = {
        name: field for name, field in lists._asdict().items() if tf.is_tensor(field)
    }
    signature = tuple((name, _spec(field)) for name, field in tensors.items())
    others = lists._replace(**dict.fromkeys(tensors))
    graph = _compiled(function, tuple(measures), type(lists), others, signature)
    return graph(tensors, tf.cast(first_query, tf.int64))


def _spec(field: tf.Tensor) -> tf.TensorSpec:
    """Any number of queries and items, but one alone has shorter ways."""
    shape = [None] * field.shape.rank
    if len(shape) > 1 and field.shape[-1] == 1:
        shape[-1] = 1
    return tf.TensorSpec(shape, field.dtype)


@functools.lru_cache(maxsize=256)
def _compiled(
    function: Callable,
    measures: tuple[Measure, ...],
    kind: type[Lists],  # tuples of different types may be equal
    others: Lists,
    signature: tuple[tuple[str, tf.TensorSpec], ...],
) -> Callable:
    def ranking_metrics(tensors, first_query):
        return function(measures, others._replace(**tensors), first_query)

    graph = tf.function(ranking_metrics, autograph=False)
    return graph.get_concrete_function(
        dict(signature), tf.TensorSpec([], tf.int64, name="first_query")
    )


def means(sums: tf.Tensor) -> tf.Tensor:
    """The metrics' values `[metrics]` from `weighted_sums`; NaN if none counted."""
    return sums[:, 0] / sums[:, 1]


def _apply_empty(
    measure: Measure, ranked: RankedLists, value: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """A metric's values `[B, C]` and weights `[B]`, by its policy for empty lists."""
    to_find = measure.formula.to_find(ranked, measure.worth)
    is_empty = tf.equal(to_find, 0)
    weight = ranked.weights(measure.worth)
    weight = tf.where(tf.math.is_finite(to_find), weight, float("nan"))
    if measure["empty"] == "skip":
        weight = tf.where(is_empty, tf.zeros_like(weight), weight)
    if measure.formula.averages and measure["average"] == "micro":
        weight *= to_find
    # Where there is nothing to find, formulas give 0 of themselves.
    if measure["empty"] == "one":
        value = tf.where(is_empty[:, tf.newaxis], tf.ones_like(value), value)
    return value, weight
