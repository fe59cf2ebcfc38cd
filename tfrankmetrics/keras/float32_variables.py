"""The state of metrics in variables of Keras's backends JAX and PyTorch.

JAX does not use float64 unless a program enables it, and PyTorch lacks it on some
devices. A variable holds each float64 number as three float32 numbers, whose sum is
exact up to 3.4e38. With JAX, all computations are traced and compiled with those of the
model. PyTorch computes step by step: on an accelerator, which an update does not wait
for, and on a CPU by NumPy, which is faster.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array, Library
from tfrankmetrics.compute.sums import in_float32_parts
from tfrankmetrics.keras.backends import library_of_metrics
from tfrankmetrics.keras.bases import keras

IS_JAX = library_of_metrics() == "jax"
PARTS = 3  # of `in_float32_parts`

if IS_JAX:
    from tfrankmetrics.arrays.jax import is_narrow, is_tracing
else:

    def _never(*_: Array) -> bool:
        return False

    is_narrow = is_tracing = _never


def not_converted(method: Callable) -> Callable:
    """The method; with PyTorch, one that `torch.compile` calls instead of tracing it.

    Tracing would translate NumPy's operations one by one, for minutes, and recompile
    them for each batch with different ties. With JAX, the method is part of the step.
    """
    if IS_JAX:
        return method
    import torch

    return torch.compiler.disable(method)


def new(metric: Any, name: str, shape: tuple[int, ...]) -> Any:
    """A variable of zeros."""
    parts = (*shape, PARTS)
    return metric.add_weight(
        name=name, shape=parts, initializer="zeros", dtype="float32"
    )


def numbers_of(variable: Any, library: Library) -> Array:
    """The numbers that a variable holds, as an array of the library."""
    parts = variable.value
    if library == "numpy":
        parts = xp.to_numpy(parts)
    return xp.sum(xp.astype(parts, xp.float64), axis=-1)


def add(variable: Any, amount: Array) -> None:
    """Adds to a variable; one thread after another, since it is read and then set."""
    with _LOCK:
        parts = _added(variable, amount)
        variable.assign(xp.stack(parts, axis=-1))


_LOCK = threading.Lock()


def _added(variable: Any, amount: Array) -> list[Array]:
    """The parts of the numbers that a variable holds plus an amount."""
    if is_narrow():
        from tfrankmetrics.keras.tpu import sum_of_parts

        return sum_of_parts(variable.value, amount)
    numbers = numbers_of(variable, xp.library_of(amount))
    if xp.library_of(amount) == "torch":  # the metric may be on another device
        amount = amount.to(numbers.device)
    return in_float32_parts(numbers + amount)


def assign(variable: Any, numbers: np.ndarray) -> None:
    """Sets a variable to float64 numbers."""
    variable.assign(np.stack(in_float32_parts(numbers), axis=-1))


def as_results(values: Array, dtype: Any) -> list[Any]:
    """The values as scalars of a dtype; NaN for one that overflows it."""
    values = as_result(values, dtype)
    values = keras.ops.where(keras.ops.isfinite(values), values, float("nan"))
    return [*keras.ops.unstack(values)]


def as_result(number: Array, dtype: Any) -> Any:
    """A number, or some, of a dtype."""
    return keras.ops.cast(keras.ops.convert_to_tensor(number), dtype)
