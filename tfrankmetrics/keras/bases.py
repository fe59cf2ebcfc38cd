"""The Keras that a program uses, and its classes from which this library's derive."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from tfrankmetrics.keras.backends import other_backend
from tfrankmetrics.tensorflow_version import require_tensorflow


def _keras() -> Any:
    if other_backend() is not None:
        return importlib.import_module("keras")
    require_tensorflow("A Keras metric")
    import tensorflow as tf

    try:
        tf.keras.metrics.Metric  # noqa: B018  # which loads it
    except ImportError as error:
        raise ImportError(
            "tfrankmetrics needs Keras, and Keras failed to load. Received: "
            f"KERAS_BACKEND={os.environ.get('KERAS_BACKEND')!r}. Set it to a backend "
            "that is installed, 'tensorflow', 'jax' or 'torch', before Python starts."
        ) from error
    return tf.keras


if TYPE_CHECKING:
    import tensorflow as tf

    keras = tf.keras
else:
    keras = _keras()
KerasMetric = keras.metrics.Metric
KerasCallback = keras.callbacks.Callback
