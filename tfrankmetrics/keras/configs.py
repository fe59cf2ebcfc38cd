"""Configs: options and metrics as Keras saves them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfrankmetrics.item_data import CategoryShares, ItemData, as_config
from tfrankmetrics.keras.bases import keras
from tfrankmetrics.rules import shortened


def require_registered(option: str, function: Any) -> None:
    """Raises ValueError for a function that could not be loaded again."""
    name = keras.utils.get_registered_name(function)
    if keras.utils.get_registered_object(name) is not function:
        raise ValueError(
            f"To save or copy a metric, `{option}` must be a registered function. "
            f"Received: {function!r}. Decorate the function with "
            "@keras.utils.register_keras_serializable()."
        )


def to_config(value: Any) -> Any:
    """A function or metric as Keras serializes it; anything else as plain Python.

    Or a list of these, as of the metrics of `RankingMetrics`.
    """
    if isinstance(value, (list, tuple)):
        return [to_config(each) for each in value]
    if isinstance(value, (ItemData, CategoryShares)):
        return value.config
    if isinstance(value, Mapping):
        return as_config([*value], [*value.values()])
    if hasattr(value, "tolist"):  # of NumPy or pandas
        return value.tolist()
    if callable(value):
        return keras.utils.serialize_keras_object(value)
    return value


def from_config(value: Any) -> Any:
    """The inverse of `to_config`. Raises ValueError for an object not registered.

    Some versions of Keras would import any module that a config names.
    """
    if isinstance(value, (list, tuple)):
        return [from_config(e) if isinstance(e, dict) else e for e in value]
    if not isinstance(value, dict) or "class_name" not in value:
        return value
    is_function = value["class_name"] == "function"
    name = value.get("config" if is_function else "registered_name")
    utils = keras.utils
    # Keras up to 3.6 saved functions without their package.
    is_registered = isinstance(name, str) and (
        utils.get_registered_object(name) is not None
        or any(each.endswith(f">{name}") for each in utils.get_custom_objects())
    )
    if not is_registered:
        raise ValueError(
            "A config must hold only registered functions and metrics. Received: "
            f"{shortened(value)}. Import the module that registers it first."
        )
    return utils.deserialize_keras_object(value)
