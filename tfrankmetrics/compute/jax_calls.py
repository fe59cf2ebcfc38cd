"""Calls with arrays of JAX, which it compiles.

Only calls with arrays of JAX import this module.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax

from tfrankmetrics.arrays import Array
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.metrics.measure import Measure


def call_with_jax(
    function: Callable,
    measures: tuple[Measure, ...],
    lists: Lists,
    first_query: Array | int,
) -> Any:
    """`function(measures, lists, first_query)`, compiled for the shapes of the lists.

    A call that JAX traces already is compiled as part of what it traces.
    """
    arrays = lists.arrays
    if any(callable(value) for measure in measures for _, value in measure.options):
        # A compiled call would not notice that a user's function behaves differently.
        return function(measures, lists, first_query)
    others = tuple((n, v) for n, v in vars(lists).items() if n not in arrays)
    return _compiled(function, measures, type(lists), others)(arrays, first_query)


@functools.lru_cache(maxsize=64)
def _compiled(
    function: Callable,
    measures: tuple[Measure, ...],
    lists_type: Any,
    others: tuple[tuple[str, Any], ...],
) -> Callable:
    def ranking_metrics(arrays, first_query):
        return function(measures, lists_type(**arrays, **dict(others)), first_query)

    return jax.jit(ranking_metrics)
