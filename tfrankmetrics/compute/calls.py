"""Calls with arrays of NumPy, or of other libraries, which may compile them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.arrays.numpy import quiet
from tfrankmetrics.graphs import executing_eagerly
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.metrics.measure import Measure


def call_compiled(
    function: Callable,
    measures: tuple[Measure, ...],
    lists: Lists,
    first_query: Array | int,
) -> Any:
    """`function(measures, lists, first_query)`; other libraries may compile it."""
    library = xp.library_of(*lists.arrays.values())
    needs_tensors = any(measure.declaration.needs_tensors for measure in measures)
    if library == "numpy" and not needs_tensors:
        with quiet(), _for_functions(measures):
            return function(measures, lists, first_query)
    if library == "jax":
        from tfrankmetrics.compute.jax_calls import call_with_jax

        return call_with_jax(function, measures, lists, first_query)
    from tfrankmetrics.compute.graph_calls import call_with_tensors

    return call_with_tensors(function, measures, lists, first_query)


def _for_functions(measures: tuple[Measure, ...]) -> AbstractContextManager:
    """The context of a computation in which a user's function may call JAX."""
    options = (value for measure in measures for _, value in measure.options)
    if "jax" in sys.modules and any(map(callable, options)):
        return xp.computing_in("jax")
    return nullcontext()


def require_eager(function: str) -> None:
    """Raises RuntimeError inside a `tf.function`."""
    if not executing_eagerly():
        raise RuntimeError(
            f"{function}() must be called eagerly, since it returns numbers. Received: "
            "a call inside tf.function. Update a metric object there instead."
        )
