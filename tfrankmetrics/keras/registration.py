"""Registers classes with Keras, which loads models by names, whenever it is imported.

Importing tfrankmetrics does not import Keras. However, `load_model` must find its
metrics, and those that users declare, if Keras is imported later. Therefore, this
module intercepts the import of Keras, and then registers them.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from tfrankmetrics.keras.backends import is_legacy_keras, require_keras

# The modules with the classes that are registered.
MODULES = ("tfrankmetrics.metrics", "tfrankmetrics.keras.many")

_names: dict[type, tuple[str, str | None]] = {}


def register(cls: type, package: str, name: str | None = None) -> None:
    """What `register_keras_serializable` does, also for a Keras imported later."""
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
        if name.startswith(("tfrankmetrics.Evaluate", "tfrankmetrics.RankingMetrics")):
            # `from tfrankmetrics import EvaluateRows`, which is no attribute without
            # Keras: Python tries a module of this name, and would not say the reason.
            require_keras(f"`{name.rpartition('.')[2]}`")
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
