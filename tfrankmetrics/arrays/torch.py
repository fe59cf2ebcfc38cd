"""The operations of `tfrankmetrics.arrays` on tensors of PyTorch, on their device.

Each operation only starts work on the device. None waits for it by reading a value,
except `while_loop` and `unfold`, whose number of steps depends on values. `cond` does
not read its condition either: it always returns the first result.

Constants are copied to a device once, since a copy from the host may wait, too.

Unsigned integers of 32 bits, for which PyTorch lacks most operations, are int64 numbers
whose upper 32 bits have no meaning.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from tfrankmetrics.arrays.numpy import (
    cumulative_sum,
    has_shape,
    known_size,
    limits,
    shape,
    unchanged,
    while_loop,
)

# The same as those of NumPy, which use only what tensors of PyTorch have, too.
__all__ = ["cumulative_sum", "has_shape", "known_size", "shape", "while_loop"]

# Operations that create a tensor, on the device of the argument `like`.
CREATING = {"arange", "asarray", "astype", "concat", "full", "ones", "stack", "zeros"}

_LARGE = 2**16  # bytes of an array that is data rather than a constant

_DTYPES = {
    np.dtype(name): getattr(torch, name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
    if hasattr(torch, name)  # PyTorch 2.3 has added the wider unsigned integers
}
_OF_NUMPY = {of_torch: of_numpy for of_numpy, of_torch in _DTYPES.items()}
_DTYPES[np.dtype(np.uint32)] = torch.int64

exact = torch.no_grad  # the context in which these operations run

# Has what is missing here, and accepts `axis` and `keepdims`, as NumPy does.
package = torch
unstack, barrier = torch.unbind, unchanged
var, std = (functools.partial(each, correction=0) for each in (torch.var, torch.std))


def asarray(values: Any, dtype: Any = None, like: Any = None) -> torch.Tensor:
    """A tensor on the device of `like`."""
    dtype = _dtype(dtype)
    if isinstance(values, torch.Tensor):
        return values if dtype is None else values.to(dtype)
    array = np.asarray(values)
    if array.dtype == np.uint32:
        array = array.astype(np.int64)
    if array.nbytes > _LARGE:
        return torch.as_tensor(array).to(_device_of(like), dtype)
    constant = array.tobytes(), array.dtype.str, array.shape
    return _constant(*constant, dtype, _device_of(like))


@functools.lru_cache(maxsize=1024)
def _constant(
    data: bytes, kind: str, shape: tuple, dtype: Any, device: Any
) -> torch.Tensor:
    array = np.frombuffer(data, kind).reshape(shape).copy()
    return torch.from_numpy(array).to(device, dtype, non_blocking=True)


@functools.cache
def _dtype(dtype: Any) -> Any:
    is_known = dtype is None or isinstance(dtype, torch.dtype)
    return dtype if is_known else _DTYPES[np.dtype(dtype)]


def _device_of(like: Any) -> torch.device | None:
    """The device of a tensor, or of the first one in nested lists; None without any."""
    if isinstance(like, torch.Tensor):
        return like.device
    devices = map(_device_of, like if isinstance(like, (list, tuple)) else ())
    return next((device for device in devices if device is not None), None)


def _operands(*values: Any) -> list[Any]:
    """Numbers of Python as they are, and arrays of NumPy on the device of the others.

    A number adapts to the dtype of a tensor, as everywhere in PyTorch.
    """
    return [
        value.item()
        if isinstance(value, np.generic)
        else asarray(value, like=values)
        if isinstance(value, np.ndarray)
        else value
        for value in values
    ]


def _tensors(x: Any, y: Any, like: Any = None) -> list[torch.Tensor]:
    """Two operands as tensors of one dtype: float64 for a float among integers.

    They are on the device of one of them, or of `like` if both are numbers.
    """
    x, y = _operands(x, y)
    dtypes = [each.dtype for each in (x, y) if isinstance(each, torch.Tensor)]
    is_float = isinstance(x, float) or isinstance(y, float)
    if is_float and not any(each.is_floating_point for each in dtypes):
        dtype = torch.float64
    else:
        dtype = functools.reduce(torch.promote_types, dtypes) if dtypes else None
    return [asarray(each, dtype, like=(x, y, like)) for each in (x, y)]


def isfinite(values: torch.Tensor) -> torch.Tensor:
    """Whether they are finite, in half as many operations as torch.isfinite."""
    return values.abs() < np.inf


def _of_both(function: Callable) -> Callable[[Any, Any], torch.Tensor]:
    """A function of two operands, which need not be tensors."""
    return lambda x, y: function(*_tensors(x, y))


equal, not_equal = _of_both(torch.eq), _of_both(torch.ne)
greater, greater_equal = _of_both(torch.gt), _of_both(torch.ge)
less, less_equal = _of_both(torch.lt), _of_both(torch.le)
minimum, maximum = _of_both(torch.minimum), _of_both(torch.maximum)


def clip(values: torch.Tensor, low: Any, high: Any) -> torch.Tensor:
    """The values within bounds."""
    return minimum(maximum(values, low), high)


def where(which: torch.Tensor, x: Any, y: Any) -> torch.Tensor:
    """One of two."""
    return torch.where(which, *_tensors(x, y, like=which))


select = where  # a number takes the dtype of the other operand


def divide_no_nan(x: Any, y: Any) -> torch.Tensor:
    """The quotient, or 0 where the denominator is 0."""
    x, y = _tensors(x, y)
    return where(torch.eq(y, 0), 0, x / y)


def astype(values: Any, dtype: Any, like: Any = None) -> Any:
    """Numbers of another dtype; sizes, which the host knows, stay numbers."""
    if isinstance(values, torch.Tensor):
        return values.to(_dtype(dtype))
    return np.asarray(values).astype(_OF_NUMPY.get(dtype, dtype)).item()


def max(values: torch.Tensor, axis: int | None = None, keepdims: bool = False) -> Any:
    """The maximum; of nothing, -inf or the lowest integer."""
    return _extreme(torch.amax, values, axis, keepdims, _limits(values)[0])


def min(values: torch.Tensor, axis: int | None = None, keepdims: bool = False) -> Any:
    """The minimum; of nothing, inf or the highest integer."""
    return _extreme(torch.amin, values, axis, keepdims, _limits(values)[1])


def _limits(values: torch.Tensor) -> tuple[Any, Any]:
    return limits(np.empty(0, dtype_of(values)))


def _extreme(
    function: Callable, values: torch.Tensor, axis: Any, keepdims: bool, of_nothing: Any
) -> torch.Tensor:
    axes = [*range(values.ndim)] if axis is None else [axis]
    if any(values.shape[each] == 0 for each in axes):
        sizes = [1 if i in axes else size for i, size in enumerate(values.shape)]
        values = values.new_full(sizes, of_nothing)
    return function(values, dim=axes, keepdim=keepdims)


def argmax(values: torch.Tensor, axis: int) -> torch.Tensor:
    """The position of the first maximum; torch.argmax returns any of them."""
    is_maximum = torch.eq(values, max(values, axis, keepdims=True))
    sizes = [1] * values.ndim
    sizes[axis] = values.shape[axis]
    positions = arange(sizes[axis], like=values).reshape(sizes)
    return min(where(is_maximum, positions, sizes[axis]), axis)


def cumulative_prod(
    values: torch.Tensor, axis: int = 0, exclusive: bool = False, reverse: bool = False
) -> torch.Tensor:
    """The running products, without each element itself if `exclusive`."""
    if reverse:
        return flip(cumulative_prod(flip(values, axis), axis, exclusive), axis)
    if exclusive and values.shape[axis]:
        first = torch.ones_like(values.narrow(axis, 0, 1))
        others = values.narrow(axis, 0, values.shape[axis] - 1)
        values = torch.cat([first, others], dim=axis)
    return torch.cumprod(values, dim=axis)


def flip(values: torch.Tensor, axis: int) -> torch.Tensor:
    """The elements in the other order along an axis."""
    return torch.flip(values, (axis,))


def roll(values: torch.Tensor, shift: int, axis: int) -> torch.Tensor:
    """The elements, shifted."""
    return torch.roll(values, shift, dims=axis)


def sort(values: torch.Tensor, axis: int = -1) -> torch.Tensor:
    """The elements in ascending order."""
    return torch.sort(values, dim=axis).values


def argsort(
    values: torch.Tensor, axis: int = -1, descending: bool = False
) -> torch.Tensor:
    """The order of the elements; equal ones keep theirs."""
    return torch.argsort(values, dim=axis, descending=descending, stable=True)


def top_k(values: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The largest of each row, and their positions.

    Of equal values, torch.topk returns any, unlike a stable sort. On a GPU, a sort of
    lists takes little longer.
    """
    keys, order = torch.sort(values, dim=1, descending=True, stable=True)
    return keys[:, :k], order[:, :k]


def searchsorted(
    keys: torch.Tensor, values: torch.Tensor, side: str = "left", out_type: Any = None
) -> torch.Tensor:
    """How many of the sorted keys of each row are below each value, or not above it."""
    numbers = torch.searchsorted(keys.contiguous(), values.contiguous(), side=side)
    return numbers.to(_dtype(out_type or np.int32))


def take(values: Any, index: Any, axis: int = 0) -> torch.Tensor:
    """The elements at some positions of an axis."""
    values, index = asarray(values, like=index), _positions(index, values)
    elements = torch.index_select(values, axis, index.reshape(-1))
    sizes = *values.shape[:axis], *index.shape, *values.shape[axis:][1:]
    return elements.reshape(sizes)


def _positions(index: Any, like: Any) -> torch.Tensor:
    return asarray(index, np.int64, like=like)


def gather(values: torch.Tensor, index: Any) -> torch.Tensor:
    """The elements of each row."""
    index = _positions(index, values)
    if values.ndim == 3:
        index = index[..., None].expand(*index.shape, values.shape[2])
    return torch.gather(values, 1, index)


def scatter(values: torch.Tensor, index: torch.Tensor, number: Any) -> torch.Tensor:
    """The values with a number at some positions of each row."""
    return values.scatter(1, _positions(index, values), number)


def scatter_max(
    values: torch.Tensor, index: torch.Tensor, numbers: torch.Tensor
) -> torch.Tensor:
    """The maximum of values and numbers at some positions of each row."""
    return values.scatter_reduce(1, _positions(index, values), numbers, "amax")


def segment_sum(
    values: torch.Tensor, segments: torch.Tensor, number: int
) -> torch.Tensor:
    """The sum of the values of each segment.

    `index_put_` adds in a fixed order even on a GPU, unlike `index_add_`.
    """
    sums = values.new_zeros(number)
    return sums.index_put_((_positions(segments, values),), values, accumulate=True)


def sum_chosen(
    which: torch.Tensor, values: torch.Tensor, index: torch.Tensor | None = None
) -> torch.Tensor:
    """The sum of the values of some items of each row."""
    if index is None:
        return torch.matmul(which.to(values.dtype), values)
    values = values[_positions(index, values)]
    return torch.sum(values * (which[..., None] if values.ndim == 3 else which), dim=1)


def count_nonzero(where: torch.Tensor) -> torch.Tensor:
    """How many are True in each row."""
    return torch.sum(where, dim=1, dtype=torch.float64)


def flatnonzero(where: torch.Tensor) -> torch.Tensor:
    """The positions of True among all elements; waits for the device, to count them."""
    return torch.nonzero(where.reshape(-1))[:, 0]


def matvec(matrices: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """The product of each matrix with its vector."""
    return torch.matmul(matrices, vectors[..., None])[..., 0]


def matrix_transpose(values: torch.Tensor) -> torch.Tensor:
    """The last two axes in the other order."""
    return values.mT


def concat(parts: Sequence[Any], axis: int = 0, like: Any = None) -> torch.Tensor:
    """The parts, one after the other."""
    return torch.cat([asarray(part, like=like) for part in parts], dim=axis)


def stack(parts: Sequence[Any], axis: int = 0, like: Any = None) -> torch.Tensor:
    """The parts along a new axis."""
    return torch.stack([asarray(part, like=like) for part in parts], dim=axis)


def pad(values: torch.Tensor, widths: Any, constant_values: Any = 0) -> torch.Tensor:
    """The values within others."""
    # torch.nn.functional.pad makes a float of the constant, which may be too high.
    sizes, inside = [], []
    for size, (before, after) in zip(values.shape, widths, strict=True):
        sizes.append(int(before + size + after))
        inside.append(slice(int(before), int(before + size)))
    padded = values.new_full(sizes, _operands(constant_values)[0])
    padded[tuple(inside)] = values
    return padded


def arange(*ends: Any, dtype: Any = None, like: Any = None) -> torch.Tensor:
    """The numbers of a range, whose ends the host knows."""
    return asarray(np.arange(*ends, dtype=dtype), like=like)


def zeros(sizes: Sequence[int], dtype: Any = float, like: Any = None) -> torch.Tensor:
    """Zeros."""
    return torch.zeros(tuple(sizes), dtype=_dtype(dtype), device=_device_of(like))


def ones(sizes: Sequence[int], dtype: Any = float, like: Any = None) -> torch.Tensor:
    """Ones."""
    return torch.ones(tuple(sizes), dtype=_dtype(dtype), device=_device_of(like))


def full(sizes: Sequence[int], value: Any, like: Any = None) -> torch.Tensor:
    """The same number everywhere."""
    return asarray(value, like=like).expand(tuple(sizes))


def zeros_like(values: torch.Tensor, dtype: Any = None) -> torch.Tensor:
    """Zeros of the same shape."""
    return torch.zeros_like(values, dtype=_dtype(dtype))


def ones_like(values: torch.Tensor, dtype: Any = None) -> torch.Tensor:
    """Ones of the same shape."""
    return torch.ones_like(values, dtype=_dtype(dtype))


def cond(condition: Any, if_true: Callable, if_false: Callable, name: str = "") -> Any:
    """The result of the first function, unless the host knows the condition."""
    if isinstance(condition, torch.Tensor) or condition:
        return if_true()
    return if_false()


def unfold(
    step: Callable, state: tuple, number: Any, depth: int, like_row: torch.Tensor
) -> torch.Tensor:
    """The rows. It waits for the device once, to read the number."""
    rows = []
    for s in range(1, int(number) + 1):
        state, row = step(float(s), *state)
        rows.append(row)
    nothing = torch.zeros_like(like_row, dtype=torch.float64)
    return torch.stack([*rows, *[nothing] * (depth - len(rows))])


def size(values: torch.Tensor) -> int:
    """The number of elements."""
    return values.numel()


def dtype_of(values: torch.Tensor) -> np.dtype:
    """The dtype of NumPy; float16 for a short float that NumPy lacks."""
    return _OF_NUMPY.get(values.dtype, np.dtype(np.float16))


def is_floating(values: torch.Tensor) -> bool:
    """Whether the values are floats."""
    return values.dtype.is_floating_point


def without_denormals(values: torch.Tensor) -> torch.Tensor:
    """The values with 0 for denormal numbers."""
    if not values.dtype.is_floating_point:
        return values
    return where(values.abs() < torch.finfo(values.dtype).tiny, 0, values)
