"""The classes of Keras from which those of this library derive."""

import os

from tfrankmetrics.tensorflow_version import require_tensorflow

require_tensorflow("A Keras metric")

import tensorflow as tf  # noqa: E402

try:
    KerasMetric = tf.keras.metrics.Metric
    KerasCallback = tf.keras.callbacks.Callback
except ImportError as error:
    raise ImportError(
        "tfrankmetrics needs Keras with its TensorFlow backend, and Keras failed to "
        f"load. Received: KERAS_BACKEND={os.environ.get('KERAS_BACKEND')!r}. Unset it, "
        "or set it to 'tensorflow', before Python starts."
    ) from error
