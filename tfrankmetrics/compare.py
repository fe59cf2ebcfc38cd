"""`compare`: which model is better, and whether the difference may be chance."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from tfrankmetrics.comparison import Comparison, Difference, Mean
from tfrankmetrics.frames import column_names, is_frame
from tfrankmetrics.inputs.mistakes import RankingWarning
from tfrankmetrics.measure import Declaration, parse_name
from tfrankmetrics.options import listed, rule_of, shortened
from tfrankmetrics.results import QueryValues, described
from tfrankmetrics.significance import (
    Sample,
    bootstrap_test,
    half_widths,
    randomization_test,
    standard_errors,
    t_test,
)
from tfrankmetrics.slices import Slices, as_objects, by_columns, slices_of

Test = Literal["randomization", "t", "bootstrap"]
Correction = Literal["holm", "bonferroni"]
Unpaired = Literal["error", "drop"]


def compare(
    values: Mapping[str, Mapping[str, Any]],
    by: Any = None,
    test: Test = "randomization",
    correction: Correction | None = "holm",
    seed: int = 0,
    *,
    resamples: int = 10_000,
    unpaired: Unpaired = "error",
) -> Comparison:
    """Compares models by the values of the same queries.

    >>> from tfrankmetrics import evaluate
    >>> labels = [[1, 0, 0], [0, 1, 0], [0, 1, 0], [1, 0, 0]]
    >>> a = evaluate(labels, [[3, 2, 1]] * 4, ["mrr"], per_query=True)
    >>> b = evaluate(labels, [[1, 3, 2]] * 4, ["mrr"], per_query=True)
    >>> compare({"A": a, "B": b})
    metric  queries             A (a)            B (b)
    mrr           4  0.7500 ± 0.4593*  0.6667 ± 0.6125
    Mean ± 95% interval. Letters: significantly better than that model (p < 0.05).
    <BLANKLINE>
    metric  models  difference        95% interval      p  wins  losses  ties
    mrr     B - A      -0.0833  [-1.1551, +0.9885]  0.750     2       2     0
    Paired randomization test.

    For each metric, the result has the mean of each model with its 95% interval, and
    for each two models the difference with its 95% interval, the p-value of a paired
    test, and the number of queries in which the second model is better, worse or equal.

    Queries are paired by their ids, the key "query" of the values, or by position
    without ids. A query whose value is NaN does not count. Weighted queries have their
    weights in all means, intervals and tests.

    Args:
        values: For each model, what `evaluate`, `evaluate_rows` or `evaluate_run`
            returned with `per_query=True`. With one model, there are only means.
        by: A slice for each query, in the order of the first model: a column or a dict
            of columns; or the keys of such columns among the first model's values. The
            models are compared in each slice, too.
        test: "randomization" (the default) swaps the models in random queries. "t" is
            the paired t-test. "bootstrap" draws queries with replacement.
        correction: "holm" (the default) or "bonferroni" corrects the p-values for the
            number of comparisons: all metrics, all pairs of models, and all slices.
            None leaves them as they are.
        seed: The seed of the random swaps or draws.
        resamples: The number of random swaps or draws.
        unpaired: Queries that only some of the models have are an "error" (the
            default). "drop" leaves them out, and the result says how many.

    Returns:
        A `Comparison`, which prints as a table.

    Raises:
        ValueError: The models do not have the same queries and metrics, an id occurs
            twice, or an argument is not one of those above.
        ImportError: SciPy is not installed. `tfrankmetrics[compare]` brings it.
    """
    for name, value, annotation in (
        ("test", test, Test),
        ("correction", correction, Correction | None),
        ("unpaired", unpaired, Unpaired),
    ):
        if not rule_of(annotation).holds(value):
            raise ValueError(
                f"`{name}` must be {rule_of(annotation).words}. Received: "
                f"{shortened(value)}."
            )
    for name, least, value in (("resamples", 1, resamples), ("seed", 0, seed)):
        if not rule_of(int).holds(value) or value < least:
            raise ValueError(
                f"`{name}` must be an int of at least {least}. Received: "
                f"{shortened(value)}."
            )
    models = _read(values, [by] if isinstance(by, str) else by)
    for name, each in values.items():
        micro = [*filter(_has_weights, models[0].metrics)]
        if micro and not isinstance(each, QueryValues):
            warnings.warn(
                f"The mean of {listed(micro)} weighs the queries. Received: values "
                f"without weights for {name!r}, so all queries count alike. Pass what "
                "evaluate(..., per_query=True) returned, and no copy of it.",
                RankingWarning,
                stacklevel=2,
            )
    slice_columns = _slice_columns(by, next(iter(values.values())), models[0])
    models, kept = _paired(models, unpaired)
    samples, dropped = _samples(models, unpaired)
    dropped += int((~kept).sum())
    slices = None
    if slice_columns:
        of_kept = {name: column[kept] for name, column in slice_columns.items()}
        slices = slices_of(of_kept, int(kept.sum()))
    names, metrics = [model.name for model in models], models[0].metrics
    lower = np.array([metric in models[0].lower_is_better for metric in metrics])
    means: list[Mean] = []
    differences: list[Difference] = []
    for key, queries in _parts(slices, samples[0]):
        parts = [Sample(*(each[queries] for each in sample)) for sample in samples]
        for name, part in zip(names, parts, strict=True):
            means += _means(key, name, metrics, part)
        for one, other in itertools.combinations(range(len(parts)), 2):
            differences += _differences(
                key,
                (names[one], names[other]),
                metrics,
                (parts[one], parts[other]),
                lower,
                _TestOptions(test, resamples, seed),
            )
    return Comparison(
        means,
        differences,
        by=slices.names if slices else (),
        lower_is_better=models[0].lower_is_better,
        test=test,
        correction=correction,
        dropped=dropped,
        notes=[
            f"{name}: {described(each.counts)}"
            for name, each in zip(names, values.values(), strict=True)
            if isinstance(each, QueryValues) and each.counts and described(each.counts)
        ],
    )


class _Model(NamedTuple):
    name: str
    ids: list[Any] | None
    values: np.ndarray  # [queries, metrics], NaN for queries that do not count
    weights: np.ndarray  # [queries, metrics]
    metrics: tuple[str, ...]
    lower_is_better: frozenset[str]

    @property
    def num_queries(self) -> int:
        return len(self.values)


class _TestOptions(NamedTuple):
    test: str
    resamples: int
    seed: int


def _read(values: Any, by: Any) -> list[_Model]:
    if not isinstance(values, Mapping) or not values:
        raise ValueError(
            "`values` must be a dict with the values of each model, as in "
            "{'A': evaluate(..., per_query=True)}. Received: " + shortened(values) + "."
        )
    slices = by if isinstance(by, (list, tuple)) else []
    slices = [name for name in slices if isinstance(name, str)]
    models = [_model(str(name), each, slices) for name, each in values.items()]
    first = models[0]
    for model in models[1:]:
        if set(model.metrics) != set(first.metrics):
            raise ValueError(
                "All models must have the same metrics. Received: "
                f"{listed(first.metrics)} for {first.name!r}, and "
                f"{listed(model.metrics)} for {model.name!r}."
            )
        if (model.ids is None) != (first.ids is None):
            raise ValueError(
                "Either all models must have query ids, or none. Received: "
                f"{first.name!r} and {model.name!r}, only one of which has the key "
                "'query'."
            )
    order = [[model.metrics.index(name) for name in first.metrics] for model in models]
    return [
        model._replace(
            values=model.values[:, o],
            weights=model.weights[:, o],
            metrics=first.metrics,
        )
        for model, o in zip(models, order, strict=True)
    ]


def _model(name: str, values: Any, slices: Sequence[Any]) -> _Model:
    if is_frame(values):
        values = {key: values[key] for key in column_names(values)}
    if not isinstance(values, Mapping):
        raise ValueError(
            "The values of a model must be a dict of arrays, as from "
            f"evaluate(..., per_query=True). Received: {shortened(values)} for "
            f"{name!r}."
        )
    known = values if isinstance(values, QueryValues) else QueryValues(values, {})
    arrays = {
        key: np.asarray(array)
        for key, array in known.items()
        if key not in ("query", *known.by, *slices)
    }
    arrays = {key: a for key, a in arrays.items() if a.dtype.kind in "biuf"}
    lengths = {key: np.shape(array) for key, array in arrays.items()}
    if "query" in known:
        lengths["query"] = np.shape(known["query"])
    if (
        not arrays
        or len({*lengths.values()}) > 1
        or any(len(n) != 1 for n in lengths.values())
    ):
        raise ValueError(
            "The values of a model must be one number for each query and metric, as "
            f"from evaluate(..., per_query=True). Received: the shapes {lengths} for "
            f"{name!r}."
        )
    matrix = np.stack([*arrays.values()], axis=1).astype(float)
    weights = [known.weights.get(key, np.ones(len(matrix))) for key in arrays]
    ids = None
    if "query" in known:
        ids = np.asarray(known["query"]).tolist()
        if len(set(ids)) < len(ids):
            twice = next(i for i in ids if ids.count(i) > 1)
            raise ValueError(
                "A model must have each query once. Received: the query "
                f"{shortened(twice)} more than once for {name!r}."
            )
    lower = known.lower_is_better or frozenset(filter(_is_lower_better, arrays))
    return _Model(name, ids, matrix, np.stack(weights, axis=1), (*arrays,), lower)


def _declaration(metric: str) -> Declaration | None:
    try:
        return parse_name(metric)[0]
    except ValueError:  # the name of somebody else's metric
        return None


def _is_lower_better(metric: str) -> bool:
    declaration = _declaration(metric)
    return declaration is not None and declaration.lower_is_better


def _has_weights(metric: str) -> bool:
    """Whether the metric's mean over queries is weighted by default."""
    declaration = _declaration(metric)
    return declaration is not None and declaration.defaults.get("average") == "micro"


def _slice_columns(by: Any, values: Mapping, first: _Model) -> dict[str, np.ndarray]:
    if by is None:
        return {}
    names = [by] if isinstance(by, str) else by
    if isinstance(names, (list, tuple)) and all(isinstance(n, str) for n in names):
        if all(name in values and name not in first.metrics for name in names):
            return {name: np.asarray(values[name]) for name in names}
        if isinstance(by, str):
            raise ValueError(
                "`by` must be a column, or a key of the first model's values, as "
                f"evaluate(..., by=..., per_query=True) returns. Received: {by!r}."
            )
    columns = by_columns(by)
    slices_of(columns, first.num_queries)  # checks the columns
    return {name: as_objects([*column]) for name, column in columns.items()}


def _paired(models: list[_Model], unpaired: str) -> tuple[list[_Model], np.ndarray]:
    """The models with the queries of the first one, in its order, that all have.

    Also returns which of the first model's queries these are.
    """
    first = models[0]
    if first.ids is None:
        for model in models[1:]:
            if model.num_queries != first.num_queries:
                raise ValueError(
                    "Without query ids, models are paired by position, and must have "
                    f"the same number of queries. Received: {first.num_queries} for "
                    f"{first.name!r} and {model.num_queries} for {model.name!r}. Use "
                    "evaluate_rows or evaluate_run, which keep the ids."
                )
        return models, np.full(first.num_queries, True)
    places = [{query: i for i, query in enumerate(model.ids or ())} for model in models]
    for one, other in itertools.permutations(range(len(models)), 2):
        lacking = places[one].keys() - places[other].keys()
        if lacking and unpaired == "error":
            examples = [q for q in places[one] if q in lacking][:3]
            raise ValueError(
                "All models must have the same queries. Received: "
                f"{len(lacking)} queries of {models[one].name!r} that "
                f"{models[other].name!r} does not have, such as "
                f"{', '.join(map(shortened, examples))}. Pass unpaired='drop' to leave "
                "them out."
            )
    kept = [all(query in place for place in places) for query in first.ids]
    ids = list(itertools.compress(first.ids, kept))
    if not ids:
        raise ValueError(
            "Models must have queries in common. Received: none that all have."
        )
    paired = []
    for model, place in zip(models, places, strict=True):
        rows = [place[query] for query in ids]
        paired.append(
            model._replace(
                ids=ids, values=model.values[rows], weights=model.weights[rows]
            )
        )
    return paired, np.array(kept)


def _samples(models: list[_Model], unpaired: str) -> tuple[list[Sample], int]:
    """Values and weights, 0 where a query does not count; how many were dropped."""
    counts = np.stack([~np.isnan(model.values) for model in models])
    in_all, in_some = counts.all(axis=0), counts.any(axis=0)
    differs = (in_all != in_some).any(axis=1)
    if differs.any() and unpaired == "error":
        row = int(np.argmax(differs))
        ids = models[0].ids
        query = shortened(ids[row]) if ids else f"number {row}"
        lacks = models[int(np.argmin(counts[:, row].all(axis=1)))].name
        raise ValueError(
            "A query must count for all models, or for none. Received: "
            f"{int(differs.sum())} queries that count for some only, such as the query "
            f"{query}, which has no value for {lacks!r}. Pass unpaired='drop' to leave "
            "them out."
        )
    for model in models:
        bad = ~np.isfinite(np.where(in_all, model.values, 0))
        if bad.any():
            raise ValueError(
                "Values must be finite, or NaN for a query that does not count. "
                f"Received: an infinite one for {model.name!r}."
            )
    samples = [
        Sample(np.where(in_all, m.values, 0), np.where(in_all, m.weights, 0))
        for m in models
    ]
    return samples, int(differs.sum())


def _parts(
    slices: Slices | None, sample: Sample
) -> Iterator[tuple[tuple | None, np.ndarray | slice]]:
    """The queries of each slice, and at last all queries, with the key None."""
    if slices is not None:
        for number, key in enumerate(slices.keys):
            yield key, slices.of_query == number
    yield None, slice(None)


def _means(
    key: tuple | None, model: str, metrics: tuple[str, ...], sample: Sample
) -> list[Mean]:
    errors = standard_errors(sample.influences, sample.numbers)
    widths = half_widths(errors, sample.numbers)
    columns = sample.means, errors, sample.means - widths, sample.means + widths
    rows = zip(
        metrics, *(each.tolist() for each in (*columns, sample.numbers)), strict=True
    )
    return [Mean(key, metric, model, *row) for metric, *row in rows]


def _differences(
    key: tuple | None,
    names: tuple[str, str],
    metrics: tuple[str, ...],
    samples: tuple[Sample, Sample],
    lower_is_better: np.ndarray,
    options: _TestOptions,
) -> list[Difference]:
    first, second = samples
    difference = second.means - first.means
    numbers = first.numbers
    errors = standard_errors(second.influences - first.influences, numbers)
    widths = half_widths(errors, numbers)
    low, high = difference - widths, difference + widths
    if options.test == "t":
        p = t_test(difference, errors, numbers)
    elif options.test == "bootstrap":
        p, low, high = bootstrap_test(first, second, options.resamples, options.seed)
    else:
        p = randomization_test(first, second, options.resamples, options.seed)
    is_tie = np.isclose(second.values, first.values, rtol=1e-12, atol=0)  # rounding
    is_higher = ~is_tie & (second.values > first.values)
    is_lower = ~is_tie & (second.values < first.values)
    wins = np.where(lower_is_better, is_lower.sum(axis=0), is_higher.sum(axis=0))
    losses = np.where(lower_is_better, is_higher.sum(axis=0), is_lower.sum(axis=0))
    columns = difference, errors, low, high, p, wins, losses, numbers - wins - losses
    rows = zip(metrics, *(each.tolist() for each in columns), strict=True)
    return [Difference(key, metric, names, *row) for metric, *row in rows]
