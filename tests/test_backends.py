"""Tests the errors for backends without training and for mixed Keras versions."""

import os
import subprocess
import sys

import pytest
import tensorflow as tf
from helpers import IS_KERAS_3

import tfrankmetrics as trm
from tfrankmetrics.keras.backends import library_of_metrics


def test_the_error_in_tensorflow_model_analysis():
    with pytest.raises(TypeError, match=r"of Keras 2 only. Received: NDCG.*eval_conf"):
        trm.NDCG().computations()


@pytest.mark.slow("starts a process that imports Keras")
@pytest.mark.skipif(not IS_KERAS_3, reason="Keras 2 has no other backends")
def test_a_backend_that_fails_to_load_raises():
    code = "import tfrankmetrics; tfrankmetrics.NDCG()"
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "KERAS_BACKEND": "openvino"},  # not installed
        capture_output=True,
        text=True,
    )
    assert process.returncode != 0
    assert "a backend that is installed, 'tensorflow', 'jax'" in process.stderr
    assert "KERAS_BACKEND='openvino'" in process.stderr


@pytest.mark.skipif(not IS_KERAS_3, reason="Keras 2 has no other backends")
def test_a_backend_without_training_raises(monkeypatch):
    import keras

    monkeypatch.setattr(keras.backend, "backend", lambda: "openvino")
    with pytest.raises(RuntimeError, match=r"trains models. Received.*'openvino'"):
        library_of_metrics()  # which the first metric object calls


@pytest.mark.skipif(
    os.environ.get("TF_USE_LEGACY_KERAS") != "1",
    reason="tf.keras and keras are the same",
)
def test_a_keras_2_metric_in_a_keras_3_model_raises():
    import keras

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3)])
    model.compile(loss="mse", metrics=[trm.NDCG()])
    with pytest.raises(RuntimeError, match="the model is one of Keras 3"):
        model.evaluate(tf.ones((2, 3)), tf.ones((2, 3)), verbose=0)
