"""The per-query values of models, and their pairs, for `compare`."""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.frames import column_names, is_frame
from tfrankmetrics.comparison.significance import ROUNDING, Sample
from tfrankmetrics.inputs.alignment import aligned
from tfrankmetrics.inputs.mistakes import warn
from tfrankmetrics.metrics.measure import Declaration
from tfrankmetrics.metrics.names import parse_name
from tfrankmetrics.results.values import QueryValues
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

    @property
    def num_queries(self) -> int:
        """The number of queries."""
        return len(self.values)

    def with_metrics(self, metrics: tuple[str, ...]) -> Model:
        """The model with its metrics in this order."""
        if metrics == self.metrics:
            return self
        order = [self.metrics.index(name) for name in metrics]
        return self._replace(
            values=self.values[:, order],
            weights=self.weights[:, order],
            ranges=self.ranges[:, order],
            metrics=metrics,
        )

    def with_queries(self, ids: list[Any], rows: list[int]) -> Model:
        """The model with only these of its queries."""
        return self._replace(
            ids=ids, values=self.values[rows], weights=self.weights[rows]
        )


def read_models(values: Any, by: Any) -> list[Model]:
    """Checks the values of models. The columns of the keys `by` are slices."""
    if is_frame(values):
        raise ValueError(
            "`values` must be a dict with the values of each model. Received: a frame. "
            "For scores in its columns, pass {'A': evaluate_rows(..., data=frame, "
            "per_query=True), ...}."
        )
    if not isinstance(values, Mapping) or not values:
        raise ValueError(
            "`values` must be a dict with the values of each model, as in "
            "{'A': evaluate(..., per_query=True)}. Received: " + shortened(values) + "."
        )
    if len({*map(str, values)}) < len(values):
        raise ValueError(
            f"The names of models must differ as text. Received: {listed(values)}."
        )
    slices = by if isinstance(by, (list, tuple)) else []
    slices = [name for name in slices if isinstance(name, str)]
    models = [
        _model(str(name), each, slices) for name, each in _aligned(values).items()
    ]
    first = models[0]
    for model in models[1:]:
        _require_alike(first, model)
    models = [model.with_metrics(first.metrics) for model in models]
    _check_range(models)
    return models


def _aligned(values: Mapping[Any, Any]) -> dict[Any, Any]:
    """The values with all Series in one order; with query ids, those of each model."""
    plain = {
        name: {key: each[key] for key in column_names(each)}
        for name, each in values.items()
        if is_frame(each) or type(each) is dict
    }
    if any("query" in each for each in plain.values()):
        found = {name: aligned({name: each})[name] for name, each in plain.items()}
    else:
        found = aligned(plain)
    return {**values, **found}


def _require_alike(first: Model, model: Model) -> None:
    """Raises ValueError if models differ in metrics, or only some have query ids."""
    if set(model.metrics) != set(first.metrics):
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


def _model(name: str, values: Any, slices: Sequence[Any]) -> Model:
    if not isinstance(values, Mapping):
        raise ValueError(
            "The values of a model must be a dict of arrays, as from "
            f"evaluate(..., per_query=True). Received: {shortened(values)} for "
            f"{name!r}."
        )
    known = values if isinstance(values, QueryValues) else QueryValues(values, {})
    arrays = {
        key: _numbers(np.asarray(array))
        for key, array in known.items()
        if key not in ("query", *known.by, *slices)
    }
    _refuse_ids(name, known, arrays)
    _require_numbers(name, known, arrays)
    matrix = np.stack([*arrays.values()], axis=1).astype(float)
    weights = [known.weights.get(key, np.ones(len(matrix))) for key in arrays]
    ids = np.asarray(known["query"]).tolist() if "query" in known else None
    if ids is not None:
        _require_distinct(name, ids)
    lower, ranges = known.lower_is_better, known.ranges
    if not isinstance(values, QueryValues):  # a plain dict: by the names of metrics
        lower = frozenset(filter(_is_lower_better, arrays))
        declarations = {key: _declaration(key) for key in arrays}
        ranges = {key: each.range for key, each in declarations.items() if each}
    unknown = -np.inf, np.inf
    return Model(
        name,
        ids,
        matrix,
        np.stack(weights, axis=1),
        (*arrays,),
        lower,
        np.array([ranges.get(key, unknown) for key in arrays], float).T,
    )


def _refuse_ids(name: str, known: Mapping, arrays: Mapping[str, Any]) -> None:
    """Raises ValueError for query ids under a key that would be a metric."""
    found = [key for key in arrays if str(key).lower() in NAMES_OF_IDS]
    if found and "query" not in known:
        raise ValueError(
            "The ids of the queries must be under the key 'query', or queries would be "
            f"paired by position. Received: {listed(found)} for {name!r}. Rename it to "
            "'query'."
        )


def _require_numbers(
    name: str, known: QueryValues, arrays: Mapping[str, np.ndarray]
) -> None:
    """Raises ValueError unless there is one number for each query and metric."""
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


def _require_distinct(name: str, ids: list[Any]) -> None:
    """Raises ValueError for a query that occurs twice in a model."""
    if len(set(ids)) < len(ids):
        numbers = collections.Counter(ids)
        twice = next(query for query, number in numbers.items() if number > 1)
        raise ValueError(
            "A model must contain each query once. Received: the query "
            f"{shortened(twice)} more than once for {name!r}."
        )


def _numbers(array: np.ndarray) -> np.ndarray:
    """Objects that are numbers or None as floats; other arrays unchanged."""
    if array.dtype == object:
        try:
            return array.astype(float)
        except (TypeError, ValueError):
            pass
    return array


def _check_range(models: Sequence[Model]) -> None:
    """Warns of values outside of a metric's range, which is then unknown."""
    low, high = models[0].ranges
    for model in models:
        if not model.num_queries:
            continue
        lowest, highest = model.values.min(axis=0), model.values.max(axis=0)
        if np.isnan(lowest).any():  # rarely, and slower
            lowest, highest = (
                each.reduce(model.values, axis=0) for each in (np.fmin, np.fmax)
            )
        is_below, is_above = lowest < low - ROUNDING, highest > high * (1 + ROUNDING)
        for column in np.flatnonzero(is_below | is_above).tolist():
            bad = (highest if is_above[column] else lowest)[column]
            if math.isinf(bad):
                continue  # an error
            warn(
                f"The values of {models[0].metrics[column]!r} should be "
                f"{low[column]:g} to {high[column]:g}. Received: {bad:g} for "
                f"{model.name!r}, so that intervals do not use this range. Divide "
                "percentages by 100, or use a different name."
            )
            models[0].ranges[:, column] = -np.inf, np.inf


def _declaration(metric: str) -> Declaration | None:
    try:
        return parse_name(metric)[0]
    except ValueError:  # the name of a metric of another library
        return None


def _is_lower_better(metric: str) -> bool:
    declaration = _declaration(metric)
    return declaration is not None and declaration.lower_is_better


def has_weights(metric: str) -> bool:
    """Whether the metric's mean over queries is weighted by default."""
    declaration = _declaration(metric)
    return declaration is not None and declaration.defaults.get("average") == "micro"


def paired(models: list[Model], unpaired: str) -> tuple[list[Model], np.ndarray, int]:
    """The models with the queries common to all, in the order of the first model.

    Also returns which of the first model's queries these are, and how many queries are
    missing from some of the models.
    """
    first = models[0]
    if first.ids is None:
        _require_same_number(models)
        return models, np.full(first.num_queries, True), 0
    places = [{query: i for i, query in enumerate(model.ids or ())} for model in models]
    if unpaired == "error":
        _require_same_queries(models, places)
    kept = [all(query in place for place in places) for query in first.ids]
    ids = list(itertools.compress(first.ids, kept))
    if not ids:
        raise ValueError(
            "Models must have queries in common. Received: no common query."
        )
    result = [
        model.with_queries(ids, [place[query] for query in ids])
        for model, place in zip(models, places, strict=True)
    ]
    number = len(set().union(*places)) - len(ids)
    return result, np.array(kept), number


def _require_same_number(models: list[Model]) -> None:
    first = models[0]
    for model in models[1:]:
        if model.num_queries != first.num_queries:
            raise ValueError(
                "Without query ids, models are paired by position, and must have "
                f"the same number of queries. Received: {first.num_queries} for "
                f"{first.name!r} and {model.num_queries} for {model.name!r}. Use "
                "evaluate_rows or evaluate_run, which keep the ids."
            )


def _require_same_queries(models: list[Model], places: list[dict[Any, int]]) -> None:
    for one, other in itertools.permutations(range(len(models)), 2):
        lacking = places[one].keys() - places[other].keys()
        if lacking:
            examples = [q for q in places[one] if q in lacking][:3]
            raise ValueError(
                "All models must have the same queries. Received: "
                f"{len(lacking)} queries of {models[one].name!r} that "
                f"{models[other].name!r} does not have, such as "
                f"{', '.join(map(shortened, examples))}. Pass unpaired='drop' to leave "
                "them out."
            )


def samples_of(models: list[Model], unpaired: str) -> tuple[list[Sample], int]:
    """Values and weights, 0 for excluded queries; how many were dropped."""
    counts = np.stack([~np.isnan(model.values) for model in models])
    in_all, in_some = counts.all(axis=0), counts.any(axis=0)
    differs = (in_all != in_some).any(axis=1)
    if differs.any() and unpaired == "error":
        row = int(np.argmax(differs))
        ids = models[0].ids
        query = shortened(ids[row]) if ids else f"number {row}"
        lacks = models[int(np.argmin(counts[:, row].all(axis=1)))].name
        raise ValueError(
            "A query must have a value for all models, or for none. Received: "
            f"{int(differs.sum())} queries with a value for some only, such as the "
            f"query {query}, which has no value for {lacks!r}. Pass unpaired='drop' to "
            "leave them out."
        )
    for model in models:
        bad = ~np.isfinite(np.where(in_all, model.values, 0))
        if bad.any():
            raise ValueError(
                "Values must be finite, or NaN for an excluded query. Received: an "
                f"infinite one for {model.name!r}."
            )
    samples = [
        Sample(np.where(in_all, m.values, 0), np.where(in_all, m.weights, 0))
        for m in models
    ]
    return samples, int(differs.sum())
