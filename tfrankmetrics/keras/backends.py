"""The backend of Keras, and the classes that Keras loads by their names.

With TensorFlow as its backend, Keras is `tf.keras`, of version 2 or 3. With JAX or
PyTorch it is Keras 3, and TensorFlow is not imported.

Importing tfrankmetrics does not import Keras. However, `load_model` must find its
metrics, and those that users declare, if Keras is imported later. This module
intercepts the import of Keras and then registers them.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from tfrankmetrics.installation import has_tensorflow, install_hint

if TYPE_CHECKING:  # importing the package imports no NumPy
    from tfrankmetrics.arrays import Library


def library_of_metrics() -> Library:
    """The library of the backend of Keras; TensorFlow if none is installed.

    With PyTorch, NumPy computes updates on a CPU: see `float32_variables.py`.
    """
    if is_legacy_keras():
        return "tensorflow"
    try:
        name = importlib.import_module("keras").backend.backend()
    except ImportError:  # of Keras, or of its backend, which it imports
        return "tensorflow"
    if name == "openvino":
        raise RuntimeError(
            "Keras metrics require a backend that trains models. Received: the backend "
            "'openvino'. Call tfrankmetrics.evaluate with the predictions."
        )
    return name if name in ("jax", "torch") else "tensorflow"


def is_legacy_keras() -> bool:
    """Whether `tf.keras` is Keras 2, from the package tf_keras."""
    return os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")


def can_make_metrics() -> bool:
    """Whether Keras with a backend, or TensorFlow with Keras, is installed."""
    return has_tensorflow() or library_of_metrics() != "tensorflow"


def lacks_keras(needed_by: str) -> str:
    """The error for what needs Keras, where Keras or its backend is not installed."""
    return (
        f"{needed_by} needs Keras with TensorFlow, JAX or PyTorch. Received: "
        f"no TensorFlow, and KERAS_BACKEND={os.environ.get('KERAS_BACKEND')!r}. "
        f"{install_hint('tensorflow')} Or install the extra jax or torch instead, and "
        "set KERAS_BACKEND to 'jax' or 'torch'. Functions of arrays and tables, such "
        "as tfrankmetrics.evaluate, need NumPy only."
    )


# The modules with the classes that are registered.
MODULES = ("tfrankmetrics.metrics", "tfrankmetrics.keras.many")

_names: dict[type, tuple[str, str | None]] = {}


def register(cls: type, package: str, name: str | None = None) -> None:
    """What `register_keras_serializable` does, even for a Keras imported later."""
    _names[cls] = package, name
    if is_keras_loaded():
        _register(cls)


def register_soon() -> None:
    """Registers all classes with Keras: at once, or when it has been imported."""
    sys.meta_path.insert(0, _Finder)  # type: ignore[arg-type]
    if is_keras_loaded():
        _register_all()


def is_keras_loaded() -> bool:
    """Whether there is a Keras to register classes with."""
    return sys.modules.get(_name_of_keras()) is not None


def _name_of_keras() -> str:
    """The package that is `tf.keras`; a program may import the other one, too."""
    return "tf_keras" if is_legacy_keras() else "keras"


def _register_all() -> None:
    for module in MODULES:
        importlib.import_module(module)
    for cls in [*_names]:
        _register(cls)


def _register(cls: type) -> None:
    utils = sys.modules[_name_of_keras()].utils
    utils.register_keras_serializable(*_names[cls])(cls)


class _Finder:
    """Finds Keras as the other finders do, and registers the classes afterwards."""

    @classmethod
    def find_spec(cls, name: str, path: Any, target: Any = None) -> Any:
        """The specification of a module, for Python's import; None for the others."""
        if name.startswith("tfrankmetrics.Evaluate") and not can_make_metrics():
            # `from tfrankmetrics import EvaluateRows`, which is no attribute without
            # Keras: Python tries a module of this name, and would not say the reason.
            callback = name.removeprefix("tfrankmetrics.")
            raise ModuleNotFoundError(lacks_keras(f"`{callback}`"), name="tensorflow")
        if name != _name_of_keras():
            return None
        others = (each for each in sys.meta_path if each is not cls)
        specs = (each.find_spec(name, path, target) for each in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module):
                execute(module)
                _register_all()

            spec.loader.exec_module = execute_and_register
        return spec
