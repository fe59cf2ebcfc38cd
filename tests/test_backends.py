"""Tests the errors for other Keras backends and for mixed Keras versions."""

import os
import subprocess
import sys

import pytest
import tensorflow as tf
from helpers import IS_KERAS_3

import tfrankmetrics as tfr


def test_other_backends_raise(monkeypatch):
    monkeypatch.setattr(tf.keras.backend, "backend", lambda: "jax")
    with pytest.raises(RuntimeError, match=r"TensorFlow backend.*Received.*'jax'"):
        tfr.NDCG()
    assert tfr.evaluate([0, 1], [2, 1], ["mrr"]) == {"mrr": 0.5}


def test_the_error_in_tensorflow_model_analysis():
    with pytest.raises(TypeError, match=r"of Keras 2 only. Received: NDCG.*eval_conf"):
        tfr.NDCG().computations()


@pytest.mark.slow("starts a process that imports Keras")
@pytest.mark.skipif(not IS_KERAS_3, reason="Keras 2 has no other backends")
def test_other_backends_raise_without_mocks():
    code = "import tfrankmetrics; tfrankmetrics.NDCG()"
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
    )
    assert process.returncode != 0
    assert "TensorFlow backend" in process.stderr
    assert "Received" in process.stderr
    assert "'jax'" in process.stderr


@pytest.mark.skipif(
    os.environ.get("TF_USE_LEGACY_KERAS") != "1",
    reason="tf.keras and keras are the same",
)
def test_a_keras_2_metric_in_a_keras_3_model_raises():
    import keras

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(3)])
    model.compile(loss="mse", metrics=[tfr.NDCG()])
    with pytest.raises(RuntimeError, match="the model is one of Keras 3"):
        model.evaluate(tf.ones((2, 3)), tf.ones((2, 3)), verbose=0)
