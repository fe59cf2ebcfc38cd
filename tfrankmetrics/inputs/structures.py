"""Arrays in dicts, lists and tuples, as models of several inputs take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def map_arrays(function: Callable[..., Any], *inputs: Any) -> Any:
    """`function` of each array of some inputs that have the same structure."""
    first = inputs[0]
    if isinstance(first, Mapping):
        return {
            key: map_arrays(function, *(each[key] for each in inputs)) for key in first
        }
    if isinstance(first, (list, tuple)):
        parts = [map_arrays(function, *each) for each in zip(*inputs, strict=True)]
        is_named = hasattr(first, "_fields")  # of a namedtuple
        return type(first)(*parts) if is_named else type(first)(parts)
    return function(*inputs)


def flattened(inputs: Any) -> list[Any]:
    """The arrays of inputs."""
    arrays: list[Any] = []
    map_arrays(arrays.append, inputs)
    return arrays
