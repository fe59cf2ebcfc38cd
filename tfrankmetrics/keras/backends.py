"""The backend of Keras.

With TensorFlow as its backend, Keras is `tf.keras`, of version 2 or 3. With JAX or
PyTorch it is Keras 3, and TensorFlow is not imported.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any, Literal, cast

from tfrankmetrics.installation import install_hint
from tfrankmetrics.tensorflow_version import is_installed

if TYPE_CHECKING:  # importing the package imports no NumPy
    from tfrankmetrics.arrays import Library

OtherBackend = Literal["jax", "torch"]


def other_backend() -> OtherBackend | None:
    """The backend of Keras, if it is not TensorFlow."""
    if is_legacy_keras() or not _has_keras():
        return None
    keras = _keras_or_none()
    name = None if keras is None else keras.backend.backend()
    if name == "openvino":
        raise RuntimeError(
            "Keras metrics require a backend that trains models. Received: the backend "
            "'openvino'. Call tfrankmetrics.evaluate with the predictions."
        )
    return cast(OtherBackend, name) if name in ("jax", "torch") else None


def is_legacy_keras() -> bool:
    """Whether `tf.keras` is Keras 2, from the package tf_keras."""
    return os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")


def can_make_metrics() -> bool:
    """Whether Keras with a backend, or TensorFlow with Keras, is installed."""
    return is_installed() or other_backend() is not None


def require_keras(needed_by: str) -> None:
    """Raises ImportError without a Keras whose backend is installed."""
    if not can_make_metrics():
        raise ModuleNotFoundError(lacks_keras(needed_by), name="tensorflow")


def lacks_keras(needed_by: str) -> str:
    """The error for what needs Keras, where Keras or its backend is not installed."""
    return (
        f"{needed_by} needs Keras with TensorFlow, JAX or PyTorch. Received: "
        f"no TensorFlow, and KERAS_BACKEND={os.environ.get('KERAS_BACKEND')!r}. "
        f"{install_hint('tensorflow')} Or install the extra jax or torch instead, and "
        "set KERAS_BACKEND to 'jax' or 'torch'. Functions of arrays and tables, such "
        "as tfrankmetrics.evaluate, need NumPy only."
    )


def library_of_metrics() -> Library:
    """The library that computes metric objects."""
    libraries: dict[str | None, Library] = {"jax": "jax", "torch": "numpy"}
    return libraries.get(other_backend(), "tensorflow")


def _has_keras() -> bool:
    return "keras" in sys.modules or importlib.util.find_spec("keras") is not None


def _keras_or_none() -> Any:
    """Keras; None if its backend, which it imports, is not installed."""
    try:
        return importlib.import_module("keras")
    except ImportError:
        return None
