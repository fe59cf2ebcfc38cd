"""Metrics in the configurations of TensorFlow Model Analysis: as JSON, and by key."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfrankmetrics.compute.combiner import require_support_of_beam
from tfrankmetrics.compute.metric_checks import check_declaration
from tfrankmetrics.inputs.formats import InputFormat, input_format
from tfrankmetrics.metrics.measure import (
    Measure,
    require_relevance,
    require_values_by_query,
)
from tfrankmetrics.metrics.names import named_measures


def without_numpy(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with Python's numbers instead of NumPy's, which JSON cannot store."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in options.items()
    }


def as_json(
    metrics: Sequence[str],
    options: Mapping[str, Any],
    modules: str | Sequence[str] = (),
    inputs: str | None = "labels",
    duplicates: str | None = None,
) -> str:
    """Metrics and the options of their measures, in the form that workers receive."""
    if isinstance(modules, str):
        modules = [modules]
    try:
        return json.dumps(
            {
                "metrics": metrics,
                "options": dict(options),
                "modules": [*modules],
                "inputs": inputs,
                "duplicates": duplicates,
            }
        )
    except TypeError:
        raise ValueError(
            "TFMA stores metrics and their options as JSON; therefore, they must be "
            "strings, numbers, booleans or None: no metric objects, and no functions. "
            f"Received: {metrics!r} with {options!r}."
        ) from None


def input_format_of(saved: str) -> InputFormat:
    """The input format, from the result of `as_json`."""
    given = json.loads(saved)
    return input_format(given["inputs"], given["duplicates"])


def measures_by_key(saved: str) -> dict[str, Measure]:
    """The measures by their keys in TFMA, from the result of `as_json`."""
    given = json.loads(saved)
    for module in given["modules"]:
        importlib.import_module(module)
    data = input_format(given["inputs"], given["duplicates"])
    named = named_measures(given["metrics"], given["options"], data)
    for measure in named.values():
        if measure.declaration.is_custom:
            check_declaration(measure.declaration)
    require_values_by_query(named)
    if data.inputs == "labels":  # whose items have no ids in TFMA
        require_relevance(named, "TensorFlow Model Analysis with inputs='labels'")
    require_support_of_beam(named)
    for measure in named.values():
        if measure.declaration.unjudged == "keep":
            raise ValueError(
                "TFMA does not distinguish unjudged items from padding. Received: "
                f"{measure.name!r}. Use tfrankmetrics.evaluate_run."
            )
    return {_key(measure): measure for measure in named.values()}


def _key(measure: Measure) -> str:
    """The metric's name with every option that differs from its default."""
    defaults = measure.declaration.defaults
    chosen = ",".join(
        f"{name}={str(value).removesuffix('.0')}"  # 2 and 2.0 are the same option
        for name, value in measure.options
        if value != defaults[name]
    )
    return f"{measure.name}({chosen})" if chosen else measure.name


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
