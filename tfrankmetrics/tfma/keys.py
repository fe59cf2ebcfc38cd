"""Metrics in the configurations of TensorFlow Model Analysis: as JSON, and by key."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfrankmetrics.compute.combiner import require_support_of_beam
from tfrankmetrics.item_data import as_config
from tfrankmetrics.metrics.measure import (
    Measure,
    require_relevance,
    require_values_by_query,
)
from tfrankmetrics.metrics.names import canonical_name
from tfrankmetrics.options import Duplicates
from tfrankmetrics.results.request import Request, read_request


def without_numpy(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as JSON stores them: no numbers of NumPy, and pairs for a dict."""
    plain: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            value = as_config([*value], [*value.values()])
        plain[name] = value.item() if isinstance(value, np.generic) else value
    return plain


def read_saved(
    metrics: Sequence[str],
    options: Mapping[str, Any],
    modules: str | Sequence[str] = (),
    inputs: str | None = "labels",
    duplicates: Duplicates | None = None,
) -> Request:
    """The request of a configuration, with its metrics by their keys in TFMA."""
    try:
        json.dumps([metrics, options])
    except TypeError:
        raise ValueError(
            "TFMA stores metrics and their options as JSON. They must be strings, "
            "numbers, booleans or None: no metric objects and no functions. "
            f"Received: {metrics!r} with {options!r}."
        ) from None
    for module in [modules] if isinstance(modules, str) else modules:
        importlib.import_module(module)
    request = read_request(metrics, options, inputs=inputs, duplicates=duplicates)
    require_values_by_query(request.named)
    if request.input_format.inputs == "labels":  # whose items have no ids in TFMA
        where = "TensorFlow Model Analysis with inputs='labels'"
        require_relevance(request.named, where)
    require_support_of_beam(request.named)
    for measure in request.measures:
        if measure.declaration.unjudged == "keep":
            raise ValueError(
                "TFMA does not distinguish unjudged items from padding. Received: "
                f"{measure.name!r}. Use tfrankmetrics.evaluate_run."
            )
    keys: dict[str, str] = {}
    for name, measure in request.named.items():
        same = keys.setdefault(canonical_name(measure), name)
        if same != name:
            raise ValueError(
                "Two names in TFMA must not mean the same metric, since its keys are "
                f"canonical names. Received: {same!r} and {name!r}. Remove one."
            )
    return request.with_measures({k: request.named[name] for k, name in keys.items()})


def own_modules(measures: Mapping[str, Measure]) -> list[str]:
    """The modules that declare metrics outside this library, for workers to import.

    A metric that is declared in a script or a notebook has no such module.
    """
    modules = {measure.declaration.cls.__module__ for measure in measures.values()}
    package = __name__.partition(".")[0]
    return sorted(
        module
        for module in modules
        if module.partition(".")[0] not in (package, "__main__")
    )
