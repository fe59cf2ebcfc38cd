"""The Keras of the tests that run on TensorFlow, JAX and PyTorch, and on Keras 2."""

import os

import numpy as np
import pytest

BACKEND = os.environ.get("KERAS_BACKEND", "tensorflow")
IS_TENSORFLOW, IS_JAX = BACKEND == "tensorflow", BACKEND == "jax"
if IS_TENSORFLOW:
    import tensorflow as tf

    keras = tf.keras
else:
    import keras as keras
# Keras 2 lacks some methods, with the current TensorFlow and with TensorFlow 2.15.
IS_KERAS_3 = not hasattr(keras, "__internal__")


def register(function):
    """Registers a function in Keras, which finds it by its name in saved models."""
    return keras.utils.register_keras_serializable(package="tests")(function)


ONLY_TENSORFLOW = pytest.mark.skipif(not IS_TENSORFLOW, reason="of TensorFlow")
# JAX does not compute in float64 unless a program enables it, nor do some devices.
DTYPE, PRECISION = ("float64", 1e-12) if IS_TENSORFLOW else ("float32", 1e-6)

SWEEP = pytest.mark.slow("compiles a graph for every setting")
# The fast tests compile each formula under XLA once, in `test_graph.py`, because a
# program takes a second or more and its memory is never freed.
XLA = pytest.param("xla", marks=pytest.mark.slow("compiles a program with XLA"))


def assert_same(logs, expected, prefix=""):
    """Asserts that results, such as the logs of a model, have the expected values."""
    for name, number in expected.items():
        np.testing.assert_allclose(
            float(logs[prefix + name]), number, rtol=1e-6, err_msg=name
        )


def close(values):
    """What equals values that were computed in float32."""
    return pytest.approx(values, rel=1e-6, abs=1e-6, nan_ok=True)


def results(metric):
    """The results of a metric as floats: one, or a dict of those."""
    found = metric.result()
    if isinstance(found, dict):
        return {name: float(number) for name, number in found.items()}
    return float(found)
