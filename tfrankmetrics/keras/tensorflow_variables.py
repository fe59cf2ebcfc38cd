"""The state of metrics in variables of TensorFlow, one for each array of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tfrankmetrics.arrays import Library

# Keras 2 traces `update_state` with AutoGraph, which would rewrite it.
not_converted = tf.autograph.experimental.do_not_convert


def new(metric: Any, name: str, shape: tuple[int, ...]) -> Any:
    """A variable of zeros."""
    return metric.add_weight(
        name=name, shape=shape, initializer="zeros", dtype="float64"
    )


def is_tracing(*_: tf.Tensor) -> bool:
    """Whether a graph is being made: values are then unknown."""
    return not tf.executing_eagerly()


def numbers_of(variable: Any, library: Library) -> tf.Tensor:
    """The numbers that a variable holds."""
    return tf.convert_to_tensor(variable)


def add(variable: Any, amount: tf.Tensor) -> None:
    """Adds to a variable in one operation.

    `assign_add` of Keras 3 reads the variable and then writes it. A concurrent update
    by a different thread or worker would be lost. The operation of TensorFlow is
    atomic.
    """
    inner = variable.value  # in Keras 2, a method
    is_replica = tf.distribute.has_strategy() and tf.distribute.get_replica_context()
    # Outside its replicas, a distributed variable can be assigned to, but not added to.
    is_distributed = isinstance(inner, tf.distribute.DistributedValues)
    if isinstance(inner, tf.Variable) and (is_replica or not is_distributed):
        variable = inner
    variable.assign_add(amount)


def assign(variable: Any, numbers: np.ndarray) -> None:
    """Sets a variable to float64 numbers."""
    variable.assign(numbers)


def as_results(values: tf.Tensor, dtype: Any) -> list[tf.Tensor]:
    """The values as scalars of a dtype; NaN for one that overflows it."""
    values = tf.cast(values, dtype)
    nan = tf.constant(float("nan"), values.dtype)
    return tf.unstack(tf.where(tf.math.is_finite(values), values, nan))


def as_result(number: tf.Tensor, dtype: Any) -> tf.Tensor:
    """A number as a scalar of a dtype."""
    return tf.cast(number, dtype)
