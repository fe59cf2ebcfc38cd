"""The outputs of models and layers without dropout, compiled on each backend."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from tfrankmetrics.graphs import keras_mask_of
from tfrankmetrics.keras.backends import library_of_metrics
from tfrankmetrics.keras.bases import keras


class MaskedArray(np.ndarray):
    """Outputs as an array of NumPy, with the mask that Keras attached to them."""

    _keras_mask: np.ndarray | None = None

    @classmethod
    def of(cls, outputs: np.ndarray, mask: np.ndarray | None) -> MaskedArray:
        """Outputs with a mask, or without any."""
        array = outputs.view(cls)
        array._keras_mask = mask
        return array


# The references are weak, or a layer would exist forever.
_COMPILED: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def inference_of(layer: Any) -> Callable[[Any], Any]:
    """A function from a batch to the outputs of a layer or a model, such as a tower.

    A layer is compiled once in its lifetime. The outputs are tensors of TensorFlow, or
    arrays of NumPy with Keras's other backends.
    """
    if layer not in _COMPILED:
        _COMPILED[layer] = _INFERENCE[library_of_metrics()](weakref.ref(layer))
    return _COMPILED[layer]


def prediction_of(model: Any) -> Callable[[Any], Any]:
    """A function from a batch to the outputs of `predict`, with their masks.

    With TensorFlow it calls the model's `predict_step`, which users may override. It
    does not call `predict_on_batch`, which repeats the lists on replicas in Keras 3 and
    fails with steps_per_execution in Keras 2.
    """
    if library_of_metrics() != "tensorflow":
        return inference_of(model)
    import tensorflow as tf

    def step(x):
        outputs = model.predict_step((x,))
        return outputs, tf.nest.map_structure(keras_mask_of, outputs)

    if not model.run_eagerly:
        step = tf.function(step, reduce_retracing=True)

    def outputs_of(x):
        outputs, masks = step(tf.nest.map_structure(tf.convert_to_tensor, x))
        flat = zip(tf.nest.flatten(outputs), tf.nest.flatten(masks), strict=True)
        for output, mask in flat:
            if mask is not None:
                output._keras_mask = mask
        return outputs

    return outputs_of


def is_layer(tower: Any) -> bool:
    """Whether a tower is a layer or a model of Keras."""
    return isinstance(tower, keras.layers.Layer)


def _in_tensorflow(reference: Any) -> Callable[[Any], Any]:
    """A function from a batch to the outputs of the layer that is referred to."""
    import tensorflow as tf

    return tf.function(
        lambda batch: reference()(batch, training=False), reduce_retracing=True
    )


def _in_jax(reference: Any) -> Callable[[Any], Any]:
    import jax

    @jax.jit
    def outputs_and_masks(values, batch):
        layer = reference()
        state = [*zip(layer.variables, values, strict=True)]
        # `stateless_call` would pass `training` to layers that do not take it.
        with keras.StatelessScope(state_mapping=state):
            outputs = layer(batch, training=False)
            return outputs, keras.tree.map_structure(_mask_or_nothing, outputs)

    def outputs_of(batch):
        layer = reference()
        if not layer.built:
            layer(_as_arrays(batch), training=False)
        values = [variable.value for variable in layer.variables]
        return keras.tree.map_structure(
            _as_masked_array, *outputs_and_masks(values, _as_arrays(batch))
        )

    return outputs_of


def _in_torch(reference: Any) -> Callable[[Any], Any]:
    import torch

    def outputs_of(batch):
        with torch.no_grad():
            outputs = reference()(_as_arrays(batch), training=False)
        masks = keras.tree.map_structure(_mask_or_nothing, outputs)
        return keras.tree.map_structure(_as_masked_array, outputs, masks)

    return outputs_of


def _as_arrays(batch: Any) -> Any:
    """A batch, such as one of `tf.data`, as arrays of NumPy."""
    return keras.tree.map_structure(np.asarray, batch)


def _mask_or_nothing(outputs: Any) -> Any:
    """The mask, or an empty one, since None would be a different structure."""
    mask = keras_mask_of(outputs)
    return keras.ops.zeros((0,), "bool") if mask is None else mask


def _as_masked_array(outputs: Any, mask: Any) -> MaskedArray:
    mask = keras.ops.convert_to_numpy(mask)
    return MaskedArray.of(
        keras.ops.convert_to_numpy(outputs), mask if mask.size else None
    )


_INFERENCE: dict[Any, Callable[[Any], Callable[[Any], Any]]] = {
    "tensorflow": _in_tensorflow,
    "jax": _in_jax,
    "torch": _in_torch,
}
