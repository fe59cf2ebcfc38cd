"""The classes of Keras from which those of this library derive."""

import os

from tfrankmetrics import tensorflow_version  # noqa: F401 (first, for its checks)

# isort: split
import tensorflow as tf

try:
    KerasMetric = tf.keras.metrics.Metric
    KerasCallback = tf.keras.callbacks.Callback
except ImportError as error:
    raise ImportError(
        "tfrankmetrics needs Keras with its TensorFlow backend, and Keras failed to "
        f"load. Received: KERAS_BACKEND={os.environ.get('KERAS_BACKEND')!r}. Unset it, "
        "or set it to 'tensorflow', before Python starts."
    ) from error
