"""The per-query values of models, and their pairs, for `compare`."""

from __future__ import annotations

import collections
import contextlib
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.read_column import column_names, is_frame
from tfrankmetrics.comparison.samples import ROUNDING, Sample
from tfrankmetrics.inputs.alignment import aligned
from tfrankmetrics.inputs.mistakes import warn
from tfrankmetrics.metrics.measure import Declaration
from tfrankmetrics.metrics.names import parse_name
from tfrankmetrics.results.metric_values import QueryValues
from tfrankmetrics.rules import listed, shortened

# Names of query ids in other tools.
NAMES_OF_IDS = {"query_id", "queryid", "query-id", "qid", "q_id", "topic", "topic_id"}
NAMES_OF_IDS |= {"user", "user_id", "userid", "id"}


class Model(NamedTuple):
    """A model with its values and weights."""

    name: str
    ids: list[Any] | None
    values: np.ndarray  # [queries, metrics], NaN for excluded queries
    weights: np.ndarray  # [queries, metrics]
    metrics: tuple[str, ...]
    lower_is_better: frozenset[str]
    ranges: np.ndarray  # [2, metrics], the lowest and highest possible values
    without_relevant: np.ndarray  # [queries, metrics], False if that is not known
    skips_missing: bool  # whether evaluate_run left out queries that could count as 0

    @property
    def num_queries(self) -> int:
        """The number of queries."""
        return len(self.values)

    def take(self, numbers: Sequence[int], axis: int) -> Model:
        """The arrays of some queries (axis 0) or of some metrics (axis 1)."""
        names = "values", "weights", "without_relevant"
        arrays = {name: getattr(self, name).take(numbers, axis) for name in names}
        return self._replace(**arrays)

    def placed(self, rows: Any, number: int) -> Model:
        """The model with its queries at some rows of more queries, which have NaN."""
        fills = {"values": np.nan, "weights": 0.0, "without_relevant": False}
        arrays = {}
        for name, fill in fills.items():
            arrays[name] = np.full((number, len(self.metrics)), fill)
            arrays[name][rows] = getattr(self, name)
        return self._replace(**arrays)


def read_models(values: Any, by: Any, argument: str = "values") -> list[Model]:
    """Checks the values of models. The columns of the keys `by` are slices."""
    if is_frame(values):
        raise ValueError(
            f"`{argument}` must be a dict with the values of each model. Received: a "
            "frame. For scores in its columns, pass {'A': evaluate_rows(..., "
            "data=frame, per_query=True), ...}."
        )
    if not isinstance(values, Mapping) or not values:
        raise ValueError(
            f"`{argument}` must be a dict with the values of each model, as in "
            "{'A': evaluate(..., per_query=True)}. Received: " + shortened(values) + "."
        )
    if len({*map(str, values)}) < len(values):
        raise ValueError(
            f"The names of models must differ as text. Received: {listed(values)}."
        )
    slices = by if isinstance(by, (list, tuple)) else [by]
    slices = [name for name in slices if isinstance(name, str)]
    # Columns may be Series of pandas, which are matched by their indexes: within each
    # model if query ids match the models, and otherwise in all models together.
    tables = {
        name: {key: each[key] for key in column_names(each)}
        for name, each in values.items()
        if is_frame(each) or type(each) is dict
    }
    if any("query" in each for each in tables.values()):
        tables = {name: aligned({name: each})[name] for name, each in tables.items()}
    else:
        tables = aligned(tables)
    first, *others = [
        _model(str(name), each, slices) for name, each in {**values, **tables}.items()
    ]
    models = [first, *(with_metrics_of(first, model) for model in others)]
    _forget_wrong_ranges(models)
    _warn_without_weights(values, first.metrics)
    return models


def with_metrics_of(first: Model, model: Model) -> Model:
    """The model with its metrics in the order of the first model."""
    if {*model.metrics} != {*first.metrics}:
        raise ValueError(
            "All models must have the same metrics. Received: "
            f"{listed(first.metrics)} for {first.name!r}, and "
            f"{listed(model.metrics)} for {model.name!r}."
        )
    if (model.ids is None) != (first.ids is None):
        raise ValueError(
            f"Either all models must have query ids, or none. Received: {first.name!r} "
            f"and {model.name!r}, only one of which contains the key 'query'."
        )
    # Ranges, and which metrics are better if lower, are read of the first model only.
    order = [model.metrics.index(name) for name in first.metrics]
    return model.take(order, axis=1)._replace(metrics=first.metrics)


def _model(name: str, values: Any, slices: Sequence[str]) -> Model:
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
    for key, array in arrays.items():
        if array.dtype == object:  # of numbers and None, which is NaN
            with contextlib.suppress(TypeError, ValueError):
                arrays[key] = array.astype(float)
    _require_numbers_by_query(name, known, arrays)
    if not isinstance(values, QueryValues):  # a plain dict: by the names of metrics
        declared = {key: each for key in arrays if (each := _declaration(key))}
        known.ranges = {key: each.range for key, each in declared.items()}
        known.lower_is_better = frozenset(
            key for key, each in declared.items() if each.lower_is_better
        )
    matrix = np.stack([*arrays.values()], axis=1).astype(float)
    weights = [known.weights.get(key, np.ones(len(matrix))) for key in arrays]
    weights = np.stack(weights, axis=1)
    unknown = -np.inf, np.inf
    without = [known.without_relevant.get(key, [False] * len(matrix)) for key in arrays]
    return Model(
        name,
        np.asarray(known["query"]).tolist() if "query" in known else None,
        np.where(weights == 0, np.nan, matrix),
        weights,
        (*arrays,),
        known.lower_is_better,
        np.array([known.ranges.get(key, unknown) for key in arrays], float).T,
        np.stack(without, axis=1),
        getattr(known.counts, "missing_queries", None) == "skip"
        and all(map(_may_be_without_results, arrays)),
    )


def _require_numbers_by_query(
    name: str, known: QueryValues, arrays: Mapping[str, np.ndarray]
) -> None:
    """Raises ValueError unless there is one number for each query and metric."""
    ids = [key for key in arrays if str(key).lower() in NAMES_OF_IDS]
    if ids and "query" not in known:
        raise ValueError(
            "The ids of the queries must be under the key 'query', or queries would be "
            f"paired by position. Received: {listed(ids)} for {name!r}. Rename it to "
            "'query'."
        )
    texts = [key for key, array in arrays.items() if array.dtype.kind not in "biuf"]
    if texts:
        raise ValueError(
            "The values of a metric must be numbers, NaN for excluded queries. "
            f"Received: others for {listed(texts)} of {name!r}. Remove them, or name "
            "columns of slices in `by`."
        )
    shapes = {key: np.shape(array) for key, array in arrays.items()}
    for key, weights in known.weights.items():
        shapes[f"the weights of {key}"] = np.shape(weights)
    if "query" in known:
        shapes["query"] = np.shape(known["query"])
    distinct = {*shapes.values()}
    if not arrays or len(distinct) > 1 or any(len(shape) != 1 for shape in distinct):
        raise ValueError(
            "The values of a model must be one number for each query and metric, as "
            f"from evaluate(..., per_query=True). Received: the shapes {shapes} for "
            f"{name!r}."
        )
    if "query" in known:
        numbers = collections.Counter(np.asarray(known["query"]).tolist())
        query, number = numbers.most_common(1)[0] if numbers else (None, 0)
        if number > 1:
            raise ValueError(
                "A model must contain each query once. Received: the query "
                f"{shortened(query)} more than once for {name!r}."
            )


def _forget_wrong_ranges(models: Sequence[Model]) -> None:
    """Warns of values outside of a metric's range and makes the range unknown."""
    low, high = models[0].ranges
    for model in models:
        lowest = np.fmin.reduce(model.values, axis=0, initial=np.inf)
        highest = np.fmax.reduce(model.values, axis=0, initial=-np.inf)
        is_below, is_above = lowest < low - ROUNDING, highest > high * (1 + ROUNDING)
        for column in np.flatnonzero(is_below | is_above).tolist():
            bad = (highest if is_above[column] else lowest)[column]
            if math.isinf(bad):
                continue  # `samples_of` raises an error
            warn(
                f"The values of {models[0].metrics[column]!r} should be "
                f"{low[column]:g} to {high[column]:g}. Received: {bad:g} for "
                f"{model.name!r}, so intervals do not use this range. Divide "
                "percentages by 100, or use a different name."
            )
            models[0].ranges[:, column] = -np.inf, np.inf


def _warn_without_weights(values: Mapping, metrics: Sequence[str]) -> None:
    """Warns of values that were copied to a plain dict, which drops their weights."""
    for name, each in values.items():
        if isinstance(each, QueryValues):
            continue
        micro = [
            metric
            for metric in metrics
            if (declaration := _declaration(metric))
            and declaration.defaults.get("average") == "micro"
        ]
        if micro:
            warn(
                f"The mean of {listed(micro)} requires query weights. Received: values "
                f"without weights for {name!r}, so all queries are weighted "
                "equally. Pass the object that evaluate(..., per_query=True) returned, "
                "not a copy of it."
            )


def _declaration(metric: str) -> Declaration | None:
    try:
        return parse_name(metric)[0]
    except ValueError:  # the name of a metric of another library
        return None


def _may_be_without_results(metric: str) -> bool:
    """Whether a query without results has a value, as far as is known."""
    declaration = _declaration(metric)
    return declaration is None or declaration.without_results is not None


def side_by_side(models: Sequence[Model]) -> list[Model]:
    """Models of different queries, each with NaN in the queries of the others.

    Queries without ids have their numbers within their model.
    """
    ids = [each for model in models for each in model.ids or range(model.num_queries)]
    starts = itertools.accumulate((model.num_queries for model in models), initial=0)
    return [
        model.placed(slice(*rows), len(ids))._replace(ids=ids)
        for model, rows in zip(models, itertools.pairwise(starts), strict=True)
    ]


def with_common_queries(
    models: list[Model], unpaired: str
) -> tuple[list[Model], np.ndarray, int]:
    """The models with the queries common to all, in the order of the first model.

    Also returns which of the first model's queries these are, and how many queries are
    missing from some of the models.
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
        return models, np.full(first.num_queries, True), 0
    rows = [{query: i for i, query in enumerate(model.ids or ())} for model in models]
    is_common = [all(query in row for row in rows) for query in first.ids]
    ids = list(itertools.compress(first.ids, is_common))
    _require_common_queries(models, rows, ids, unpaired)
    models = [
        model.take([row[query] for query in ids], axis=0)._replace(ids=ids)
        for model, row in zip(models, rows, strict=True)
    ]
    return models, np.array(is_common), len(set().union(*rows)) - len(ids)


def _require_common_queries(
    models: list[Model], rows: list[dict[Any, int]], common: list[Any], unpaired: str
) -> None:
    """Raises ValueError without common queries, and for others unless they are dropped.

    The error names `missing_queries` only where it makes queries common.
    """
    remedy = ""
    if any(model.skips_missing for model in models):
        remedy = (
            " To evaluate queries without predictions as empty results, call "
            "evaluate_run(missing_queries='zero')."
        )
    if not common:
        firsts = [
            f"; the first query of {model.name!r} is {shortened(model.ids[0])}"
            for model in models[:3]
            if model.ids
        ]
        raise ValueError(
            "Models must have queries in common, by which their values are paired. "
            f"Received: no common query{''.join(firsts)}.{remedy}"
        )
    if unpaired == "drop":
        return
    for one, other in itertools.permutations(range(len(models)), 2):
        lacking = [query for query in rows[one] if query not in rows[other]]
        if lacking:
            raise ValueError(
                "All models must have the same queries. Received: "
                f"{len(lacking)} queries of {models[one].name!r} that "
                f"{models[other].name!r} does not have, such as "
                f"{', '.join(map(shortened, lacking[:3]))}. Pass unpaired='drop' to "
                f"leave them out.{remedy}"
            )


def samples_of(models: list[Model], unpaired: str) -> tuple[list[Sample], int]:
    """Values and weights, 0 for excluded queries; how many were dropped."""
    has_value = np.stack([~np.isnan(model.values) for model in models])
    in_all, in_some = has_value.all(axis=0), has_value.any(axis=0)
    differs = (in_all != in_some).any(axis=1)
    if differs.any() and unpaired == "error":
        row = int(np.argmax(differs))
        ids = models[0].ids
        query = shortened(ids[row]) if ids else f"number {row}"
        of_row = has_value[:, row, (in_all != in_some)[row]]
        lacks = models[int(np.argmin(of_row.all(axis=1)))].name
        raise ValueError(
            "A query must have a value for all models, or for none. Received: "
            f"{int(differs.sum())} queries with a value for some only, such as the "
            f"query {query}, which has no value for {lacks!r}. Pass unpaired='drop' to "
            "leave them out."
        )
    samples = [
        Sample(np.where(in_all, model.values, 0), np.where(in_all, model.weights, 0))
        for model in models
    ]
    for model, sample in zip(models, samples, strict=True):
        if not np.isfinite(sample.values).all():
            raise ValueError(
                "Values must be finite, or NaN for an excluded query. Received: an "
                f"infinite one for {model.name!r}."
            )
    return samples, int(differs.sum())
