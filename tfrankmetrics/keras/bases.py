"""The Keras that a program uses, and the base classes that it provides."""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import TYPE_CHECKING, Any

from tfrankmetrics.installation import require_tensorflow
from tfrankmetrics.keras.backends import is_legacy_keras, library_of_metrics


def _keras() -> Any:
    if library_of_metrics() != "tensorflow":
        return importlib.import_module("keras")
    require_tensorflow("A Keras metric")
    import tensorflow as tf

    try:
        tf.keras.metrics.Metric  # noqa: B018  # which loads it
    except ImportError as error:
        if is_legacy_keras() and importlib.util.find_spec("tf_keras") is None:
            raise ImportError(
                "TF_USE_LEGACY_KERAS=1 requires Keras 2, the package tf_keras. "
                f"Received: {error}. Run `pip install tf_keras`, or unset "
                "TF_USE_LEGACY_KERAS to use Keras 3."
            ) from error
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
