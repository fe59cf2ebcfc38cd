"""`compare`: which model is better, and whether the difference is significant."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from tfrankmetrics.columns.frames import is_frame
from tfrankmetrics.columns.slices import (
    Column,
    Slices,
    by_columns,
    columns_by_query,
    slices_of,
    values_by_id,
)
from tfrankmetrics.comparison.estimates import Difference, Mean
from tfrankmetrics.comparison.intervals import (
    intervals_of_differences,
    intervals_of_means,
)
from tfrankmetrics.comparison.models import (
    Model,
    has_weights,
    paired,
    read_models,
    samples_of,
)
from tfrankmetrics.comparison.queries import PerQuery
from tfrankmetrics.comparison.result import Comparison
from tfrankmetrics.comparison.significance import (
    Sample,
    bootstrap_test,
    randomization_test,
    smallest_p,
    standard_errors,
    t_test,
)
from tfrankmetrics.inputs.mistakes import warn
from tfrankmetrics.results.values import QueryValues, described
from tfrankmetrics.rules import check_option, listed, rule_of, shortened

Test = Literal["randomization", "t", "bootstrap"]
Correction = Literal["holm", "bonferroni"]
Unpaired = Literal["error", "drop"]


def compare(
    values: Mapping[str, Mapping[str, Any]],
    *,
    by: Any = None,
    test: Test = "randomization",
    correction: Correction | None = "holm",
    seed: int = 0,
    resamples: int = 10_000,
    unpaired: Unpaired = "error",
) -> Comparison:
    """Compares models by the values of the same queries.

    >>> from tfrankmetrics import evaluate
    >>> labels = [[1, 0, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]]
    >>> a = evaluate(labels, [[3, 2, 1]] * 4, ["mrr"], per_query=True)
    >>> b = evaluate(labels, [[1, 3, 2]] * 4, ["mrr"], per_query=True)
    >>> compare({"A": a, "B": b})
    metric  queries                     A (a)                    B (b)
    mrr           4  0.7500 [0.3573, 1.0000]*  0.6667 [0.1431, 1.0000]
    Mean [95% interval]. * or bold: best. a: significantly better than (a) (p < 0.05).
    <BLANKLINE>
    metric  models  difference        95% interval      p  wins  losses  ties
    mrr     B - A      -0.0833  [-0.9202, +0.7841]  0.750     2       2     0
    Paired randomization test.
    Too few queries differ for p < 0.05 in any outcome: B - A, mrr (4: p >= 0.125).

    For each metric, the result contains the mean of each model with its 95% interval.
    For each pair of models, it contains the difference with its 95% interval, the
    p-value of a paired test, and the number of queries in which the second model is
    better, worse or equal.

    Queries are paired by their ids, the key "query" of the values, or by position
    without ids. A query whose value is NaN is excluded. The weights of queries apply to
    all means, intervals and tests. Intervals do not depend on `test`; they are
    described in the module `comparison.intervals`, and their coverage in the
    documentation.

    Args:
        values: For each model, the result of `evaluate`, `evaluate_rows` or
            `evaluate_run` with `per_query=True`. With one model, there are only means.
        by: A slice for each query: a dict `{query: slice}`, or a column or a dict of
            columns in the order of the first model. Or the keys of slice columns in the
            first model's values, which were computed with `by`. The models are compared
            in each slice, too.
        test: "randomization" (the default) randomly swaps the models within queries.
            "t" is the paired t-test. "bootstrap" draws queries with replacement.
        correction: "holm" (the default) or "bonferroni" adjusts the p-values for the
            number of comparisons: all metrics, all pairs of models, and all slices.
            None leaves them unadjusted.
        seed: The seed of the random swaps or draws.
        resamples: The number of random swaps or draws.
        unpaired: How to treat queries that are missing from some models: as an "error"
            (the default), or "drop" excludes them, and the result reports how many.

    Returns:
        A `Comparison`, which prints as a table.

    Raises:
        ValueError: The models differ in their queries or metrics, an id occurs twice,
            or an argument is not one of those above.
        ImportError: SciPy is not installed. `tfrankmetrics[compare]` includes it.
    """
    _check_options(test, correction, seed, resamples, unpaired)
    models = read_models(values, [by] if isinstance(by, str) else by)
    _warn_without_weights(values, models[0].metrics)
    slice_columns = _slice_columns(by, next(iter(values.values())), models[0])
    models, kept, num_unpaired = paired(models, unpaired)
    samples, dropped = samples_of(models, unpaired)
    dropped += num_unpaired
    slices = None
    if slice_columns:
        of_kept = {name: column.of(kept) for name, column in slice_columns.items()}
        slices = slices_of(of_kept)
    means, differences = _compared(
        models, samples, slices, _TestOptions(test, resamples, seed)
    )
    return Comparison(
        means,
        differences,
        by=slices.names if slices else (),
        test=test,
        correction=correction,
        dropped=dropped,
        per_query=PerQuery(
            models[0].ids or range(models[0].num_queries),
            {model.name: model.values for model in models},
            models[0].metrics,
            slices,
            models[0].lower_is_better,
            dict(zip(models[0].metrics, models[0].ranges.T.tolist(), strict=True)),
        ),
        notes=[
            f"{model.name}: {described(each.counts)}"
            for model, each in zip(models, values.values(), strict=True)
            if isinstance(each, QueryValues) and each.counts and described(each.counts)
        ],
    )


def _compared(
    models: Sequence[Model],
    samples: Sequence[Sample],
    slices: Slices | None,
    options: _TestOptions,
) -> tuple[list[Mean], list[Difference]]:
    """The means of all models and the differences of all pairs, in each slice."""
    names, metrics = [model.name for model in models], models[0].metrics
    lower = np.array([metric in models[0].lower_is_better for metric in metrics])
    means: list[Mean] = []
    differences: list[Difference] = []
    for key, queries in _parts(slices):
        parts = [sample.of(queries) for sample in samples]
        for name, part in zip(names, parts, strict=True):
            means += _means(key, name, metrics, part, models[0].ranges)
        for one, other in itertools.combinations(range(len(parts)), 2):
            pair, two = (names[one], names[other]), (parts[one], parts[other])
            differences += _differences(
                key, pair, metrics, two, lower, models[0].ranges, options
            )
    return means, differences


def _check_options(
    test: Any, correction: Any, seed: Any, resamples: Any, unpaired: Any
) -> None:
    for name, value, annotation in (
        ("test", test, Test),
        ("correction", correction, Correction | None),
        ("unpaired", unpaired, Unpaired),
    ):
        check_option("compare", name, value, annotation)
    for name, least, value in (("resamples", 1, resamples), ("seed", 0, seed)):
        if not rule_of(int).holds(value) or value < least:
            raise ValueError(
                f"`{name}` must be an int of at least {least}. Received: "
                f"{shortened(value)}."
            )


def _warn_without_weights(values: Mapping, metrics: Sequence[str]) -> None:
    """Warns of values that were copied to a plain dict, which drops their weights."""
    for name, each in values.items():
        micro = [*filter(has_weights, metrics)]
        if micro and not isinstance(each, QueryValues):
            warn(
                f"The mean of {listed(micro)} requires query weights. Received: values "
                f"without weights for {name!r}, so that all queries are weighted "
                "equally. Pass the object that evaluate(..., per_query=True) returned, "
                "not a copy of it."
            )


class _TestOptions(NamedTuple):
    test: str
    resamples: int
    seed: int


def _slice_columns(by: Any, values: Mapping, first: Model) -> dict[str, Column]:
    if by is None:
        return {}
    names = [by] if isinstance(by, str) else by
    if is_frame(by) and first.ids is not None:
        raise ValueError(
            "`by` must contain a slice for each query id. Received: a frame, whose "
            "rows may be in a different order. Pass a dict of the slice of each id, as "
            "in dict(zip(frame[ids], frame[slices])), or pass `by` to evaluate_run."
        )
    if isinstance(by, Mapping) and by and not any(map(np.ndim, by.values())):
        return _column_by_id(by, first)
    if _are_slices_of(names, values, first.metrics):
        columns = {name: values[name] for name in names}
        return columns_by_query(columns, first.num_queries)
    if isinstance(by, str):
        raise ValueError(
            "`by` must be a column, or the name of slices in the first model's values. "
            f"Received: {by!r}. Pass by={by!r} to evaluate, evaluate_rows or "
            "evaluate_run, too."
        )
    return columns_by_query(by_columns(by), first.num_queries)


def _are_slices_of(names: Any, values: Mapping, metrics: Sequence[str]) -> bool:
    """Whether names are keys of values other than metrics: of slices."""
    if not isinstance(names, (list, tuple)) or not names:
        return False
    keys = {key for key in values if key not in metrics}
    return all(isinstance(name, str) and name in keys for name in names)


def _column_by_id(by: Mapping, first: Model) -> dict[str, Column]:
    """The column of a dict with the slice of each query id."""
    if first.ids is None:
        raise ValueError(
            "A dict of the slice of each query requires query ids. Received: values "
            "without the key 'query'. Pass a column with a slice for each query."
        )
    rule = "`by` must contain a slice for each query."
    of_ids = values_by_id(rule, by, first.ids)
    return columns_by_query({"slice": of_ids}, first.num_queries)


def _parts(
    slices: Slices | None,
) -> Iterator[tuple[tuple | None, np.ndarray | slice]]:
    """The queries of each slice, and at last all queries, with the key None."""
    if slices is not None:
        order, places = slices.grouped()
        for key, place in zip(slices.keys, places, strict=True):
            yield key, order[place]
    yield None, slice(None)


def _means(
    key: tuple | None,
    model: str,
    metrics: tuple[str, ...],
    sample: Sample,
    ranges: np.ndarray,
) -> list[Mean]:
    errors = standard_errors(sample.influences, sample.numbers)
    ends = intervals_of_means(sample, ranges)
    columns = sample.means, errors, *ends, sample.numbers
    rows = zip(metrics, *(each.tolist() for each in columns), strict=True)
    return [Mean(key, metric, model, *row) for metric, *row in rows]


def _differences(
    key: tuple | None,
    names: tuple[str, str],
    metrics: tuple[str, ...],
    samples: tuple[Sample, Sample],
    lower_is_better: np.ndarray,
    ranges: np.ndarray,
    options: _TestOptions,
) -> list[Difference]:
    first, second = samples[0], samples[1].rounded_like(samples[0])
    difference = second.means - first.means
    numbers = first.numbers
    errors = standard_errors(second.influences - first.influences, numbers)
    low, high = intervals_of_differences(first, second, ranges)
    if options.test == "t":
        p = t_test(difference, errors, numbers)
    elif options.test == "bootstrap":
        p = bootstrap_test(first, second, options.resamples, options.seed)
    else:
        p = randomization_test(first, second, options.resamples, options.seed)
    is_higher, is_lower = second.values > first.values, second.values < first.values
    wins = np.where(lower_is_better, is_lower.sum(axis=0), is_higher.sum(axis=0))
    losses = np.where(lower_is_better, is_higher.sum(axis=0), is_lower.sum(axis=0))
    smallest = np.zeros(len(metrics))
    if options.test == "randomization":
        differs = (first.values != second.values) | (first.weights != second.weights)
        smallest = smallest_p(differs.sum(axis=0), options.resamples)
    ties = numbers - wins - losses
    columns = difference, errors, low, high, p, wins, losses, ties, smallest
    rows = zip(metrics, *(each.tolist() for each in columns), strict=True)
    return [Difference(key, metric, names, *row) for metric, *row in rows]
