"""Registers classes with Keras, which loads models by names, whenever it is imported.

Importing tfrankmetrics does not import Keras. However, `load_model` must find its
metrics, and those that users declare, if Keras is imported later. Therefore, this
module intercepts the import of Keras, and then registers them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from tfrankmetrics.keras.backends import require_keras

T = TypeVar("T")

KERAS = ("keras", "tf_keras")  # the packages that may be tf.keras
# The modules with the classes that are registered.
MODULES = ("tfrankmetrics.metrics", "tfrankmetrics.keras.many")

_names: dict[type, tuple[str, str | None]] = {}


def registered(package: str, name: str | None = None) -> Callable[[type[T]], type[T]]:
    """The decorator `register_keras_serializable`, also for a Keras imported later."""

    def register(cls: type[T]) -> type[T]:
        _names[cls] = package, name
        for keras in _loaded():
            _register(keras, cls)
        return cls

    return register


def register_soon() -> None:
    """Registers all classes in each Keras: at once, or when it has been imported."""
    sys.meta_path.insert(0, _Finder)  # type: ignore[arg-type]
    if is_keras_loaded():
        _import_classes()


def is_keras_loaded() -> bool:
    """Whether there is a Keras to register classes in."""
    return bool(_loaded())


def _loaded() -> list[Any]:
    return [sys.modules[name] for name in KERAS if sys.modules.get(name)]


def _import_classes() -> None:
    for module in MODULES:
        importlib.import_module(module)


def _register(keras: Any, cls: type) -> None:
    keras.utils.register_keras_serializable(*_names[cls])(cls)


class _Finder:
    """Finds Keras as the other finders do, and registers the classes afterwards."""

    @classmethod
    def find_spec(cls, name: str, path: Any, target: Any = None) -> Any:
        """The specification of a module, for Python's import; None for the others."""
        if name.startswith("tfrankmetrics.Evaluate"):
            # `from tfrankmetrics import EvaluateRows`, which is no attribute without
            # Keras: Python tries a module of this name, and would not say the reason.
            require_keras(f"`{name.rpartition('.')[2]}`")
        if name not in KERAS:
            return None
        others = (each for each in sys.meta_path if each is not cls)
        specs = (each.find_spec(name, path, target) for each in others)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_register(module):
                execute(module)
                _import_classes()
                for each in [*_names]:
                    _register(module, each)

            spec.loader.exec_module = execute_and_register
        return spec
