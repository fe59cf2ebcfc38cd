"""Which library computes the arguments of users, and on which device.

TensorFlow computes its tensors, and PyTorch those on an accelerator. NumPy computes
everything else: on a CPU it is faster than PyTorch, and other devices, such as Apple's,
lack float64. For tests, TFRANKMETRICS_TORCH=native lets PyTorch compute on a CPU, too.
In retrieval, and in Keras, JAX computes its own arrays.
"""

from __future__ import annotations

import numbers
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Library
from tfrankmetrics.columns.read_column import from_pytorch

ACCELERATORS = {"cuda", "xpu"}  # devices of PyTorch that have float64


def has_tensor(*arguments: Any) -> bool:
    """Whether an argument, or a value of a dict among them, is of TensorFlow."""
    return any(map(xp.is_of_tensorflow, _each_value(arguments)))


def library_for(*arguments: Any) -> Library:
    """The library that computes the arguments of a function."""
    if sys.modules.keys().isdisjoint(("tensorflow", "torch")):
        return "numpy"
    if has_tensor(*arguments):
        return "tensorflow"
    return "numpy" if _tensor_on_device(arguments) is None else "torch"


def on_one_device(*arguments: Any) -> list[Any]:
    """The arguments as tensors of PyTorch on the device that computes them."""
    like = _tensor_on_device(arguments)

    def move(data: Any) -> Any:
        if isinstance(data, Mapping):
            return {name: move(each) for name, each in data.items()}
        if data is None:
            return None
        if xp.library_of(data) == "torch":
            return data.to(like.device)  # the tensor itself if it is there already
        return xp.in_library("torch", data, like=like)

    return [*map(move, arguments)]


def is_on_gpu(*arguments: Any) -> bool:
    """Whether PyTorch, JAX or TensorFlow computes an argument on a GPU."""
    return library_for(*arguments) == "torch" or any(
        "gpu" in _platforms_of(each) or "GPU" in str(getattr(each, "device", ""))
        for each in _each_value(arguments)
        if xp.library_of(each) in ("jax", "tensorflow")
    )


def _platforms_of(array: Any) -> set[str]:
    """The kinds of devices that hold an array of JAX; none of other arrays."""
    if xp.library_of(array) != "jax":
        return set()
    from tfrankmetrics.arrays.jax import platforms_of

    return platforms_of(array)


def on_its_device(array: Any) -> Any:
    """An array on its device, or as one of NumPy if NumPy computes it.

    NumPy computes what is on a TPU, which has no float64, and the tensors of PyTorch
    that are not on one of `ACCELERATORS`.
    """
    if "tpu" in _platforms_of(array):
        return np.asarray(array)
    if _tensor_on_device([array]) is None:
        return from_pytorch(array)
    tensor = array.detach()
    return tensor.float() if "bfloat16" in str(tensor.dtype) else tensor


def _tensor_on_device(arguments: Iterable[Any]) -> Any:
    """A tensor on the device where PyTorch computes all arguments; None if it does not.

    PyTorch computes them if one is a tensor on a device with float64, and all others
    are dense tensors, numbers or arrays of numbers.
    """
    torch: Any = sys.modules.get("torch")
    given = [*_each_value(arguments)] if torch else []
    tensors = [each for each in given if isinstance(each, torch.Tensor)]
    are_dense = all(each.layout is torch.strided for each in tensors)
    others = (each for each in given if not isinstance(each, torch.Tensor))
    if not are_dense or not all(map(_is_array_of_numbers, others)):
        return None
    is_native = os.environ.get("TFRANKMETRICS_TORCH") == "native"
    devices = ACCELERATORS | ({"cpu"} if is_native else set())
    return next((each for each in tensors if each.device.type in devices), None)


def _is_array_of_numbers(data: Any) -> bool:
    if isinstance(data, np.ndarray):
        return data.dtype.kind in "biuf" and data.dtype.itemsize <= 8
    return isinstance(data, numbers.Real)


def _each_value(arguments: Iterable[Any]) -> Iterable[Any]:
    """The arguments, and the values of those that are dicts."""
    for argument in arguments:
        if isinstance(argument, Mapping):
            yield from _each_value(argument.values())
        elif argument is not None:
            yield argument
