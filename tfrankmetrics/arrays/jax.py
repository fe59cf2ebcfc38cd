"""The operations of `tfrankmetrics.arrays` on arrays of JAX, also while it traces.

By default, JAX converts float64 to float32 and int64 to int32. These operations and
their callers run within `exact()`. For a TPU they run within `narrow()`, where a dtype
of 64 bits stands for that of 32 bits: see `keras/tpu.py`.

XLA sorts integers several times faster than floats or pairs of a number and its
position. 32-bit numbers and their positions are sorted as 64-bit integers.

Some operations, such as `argmax`, make their instructions only when the step is
compiled, outside of `exact()`. They fail, and the tests find them. The result of a
branch or a loop is unknown outside of it: see `graphs.new_scope`.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from tfrankmetrics.arrays.numpy import (
    cumulative_sum,
    dtype_of,
    has_shape,
    is_floating,
    known_size,
    max,
    min,
    shape,
    size,
    unchanged,
)
from tfrankmetrics.graphs import new_scope

# The same as those of NumPy, which use only what arrays of JAX have, too.
__all__ = ["cumulative_sum", "dtype_of", "has_shape", "is_floating", "known_size"]
__all__ += ["max", "min", "shape", "size"]

# The part of a row up to which `lax.top_k` is faster than a sort of the row.
_FEW = 1 / 4

package = jnp  # has what is missing here
barrier = lax.optimization_barrier
matvec, pad = jnp.matvec, jnp.pad
without_denormals = unchanged  # XLA treats them as 0


def _available(dtype: Any) -> Any:
    """The dtype, or in `narrow()`, where JAX would warn of 64 bits, that of 32 bits."""
    return None if dtype is None else jax.dtypes.canonicalize_dtype(dtype)


def _creating(function: Callable) -> Callable:
    """The function, in whose arguments each type is a dtype that must be available."""

    def create(*arguments: Any, **options: Any) -> jax.Array:
        given = (_available(a) if isinstance(a, type) else a for a in arguments)
        return function(*given, **options)

    return create


# New arrays
asarray = _creating(jnp.asarray)
zeros, ones, full = map(_creating, (jnp.zeros, jnp.ones, jnp.full))
zeros_like, ones_like = map(_creating, (jnp.zeros_like, jnp.ones_like))


def exact(like: Any = None) -> Any:
    """A context in which JAX computes in 64 bits, even in a step of 32 bits.

    On a TPU, it computes in 32 bits. For tests, TFRANKMETRICS_JAX=32bit does the same.
    """
    if os.environ.get("TFRANKMETRICS_JAX") == "32bit" or "tpu" in platforms_of(like):
        return narrow()
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    if not jax.config.read("jax_enable_x64"):
        raise RuntimeError(
            "Keras metrics need JAX 0.8 or later, unless JAX computes all in 64 bits. "
            f"Received: JAX {jax.__version__}. Run `pip install --upgrade jax`, which "
            "needs Python 3.11; or set JAX_ENABLE_X64=1 before Python starts."
        )
    return contextlib.nullcontext()


def platforms_of(array: Any) -> set[str]:
    """The kinds of devices that hold an array of JAX; none of others, or in a trace."""
    is_known = isinstance(array, jax.Array) and not isinstance(array, Tracer)
    return {each.platform for each in array.devices()} if is_known else set()


def is_tracing(*arrays: Any) -> bool:
    """Whether JAX traces a function or these arrays: values are then unknown."""
    # Inside a traced function, a sum of constants is a tracer, too.
    return any(isinstance(each, Tracer) for each in (jnp.add(0, 0), *arrays))


@contextlib.contextmanager
def narrow() -> Iterator[None]:
    """A context in which JAX computes in 32 bits, as a TPU can."""
    with jax.enable_x64(False), jax.default_matmul_precision("highest"):
        yield


def narrowed(values: jax.Array) -> jax.Array:
    """An array of numbers that `narrow()` has."""
    return values.astype(_available(values.dtype))


def is_narrow() -> bool:
    """Whether JAX computes in 32 bits here."""
    return not jax.config.read("jax_enable_x64")


def astype(values: Any, dtype: Any) -> Any:
    """Numbers of another dtype; sizes stay numbers that are known while JAX traces."""
    if isinstance(values, jax.Array):
        return values.astype(_available(dtype))
    return np.asarray(values).astype(dtype)


def arange(*ends: Any, dtype: Any = None) -> jax.Array:
    """The numbers of a range; int32 for integers, as in TensorFlow."""
    if dtype is None and np.result_type(*ends).kind == "i":
        dtype = jnp.int32
    return jnp.arange(*ends, dtype=_available(dtype))


def divide_no_nan(x: Any, y: Any) -> jax.Array:
    """The quotient, or 0 where the denominator is 0."""
    is_zero = jnp.equal(y, 0)
    return jnp.where(is_zero, 0, x / jnp.where(is_zero, 1, y))


def select(which: jax.Array, values: jax.Array, otherwise: float) -> jax.Array:
    """Values or a number."""
    return jnp.where(which, values, jnp.asarray(otherwise, values.dtype))


def argmax(values: jax.Array, axis: int) -> jax.Array:
    """The position of the first maximum.

    JAX lowers `lax.argmax` only when it compiles a step, outside of `exact()`.
    """
    positions = lax.broadcasted_iota(jnp.int32, values.shape, axis % values.ndim)
    is_maximum = jnp.equal(values, max(values, axis, keepdims=True))
    return min(jnp.where(is_maximum, positions, values.shape[axis]), axis)


def cumulative_prod(
    values: jax.Array, axis: int = 0, exclusive: bool = False, reverse: bool = False
) -> jax.Array:
    """The running products, without each element itself if `exclusive`."""
    if reverse:
        return jnp.flip(cumulative_prod(jnp.flip(values, axis), axis, exclusive), axis)
    products = jnp.cumprod(values, axis=axis)
    if not exclusive or values.shape[axis] == 0:
        return products
    first = jnp.ones_like(lax.slice_in_dim(values, 0, 1, axis=axis))
    above = lax.slice_in_dim(products, 0, -1, axis=axis)
    return jnp.concatenate([first, above], axis=axis)


def sort(values: jax.Array, axis: int = -1) -> jax.Array:
    """The elements in ascending order."""
    if not is_floating(values):
        return jnp.sort(values, axis)
    return _as_floats(jnp.sort(_as_integers(values), axis), values.dtype)


def argsort(values: jax.Array, axis: int = -1, descending: bool = False) -> jax.Array:
    """The order of the elements; equal ones keep theirs."""
    if axis % values.ndim == values.ndim - 1 and values.dtype.itemsize <= 4:
        return _sorted_with_positions(values, descending)[1]
    return jnp.argsort(values, axis, stable=True, descending=descending)


def top_k(values: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    """The largest of each row, and their positions."""
    k, length = int(k), values.shape[1]
    is_small = values.dtype.itemsize <= 4
    if is_small and k > length * _FEW:
        keys, positions = _sorted_with_positions(values, descending=True)
        return keys[:, :k], positions[:, :k]
    keys, positions = lax.top_k(values, k)
    # XLA sorts 64-bit numbers faster than it finds the top k. If only the keys are
    # used, it removes the `top_k` above.
    if not is_small:
        keys = jnp.flip(sort(values), 1)[:, :k]
    return keys, positions


def _sorted_with_positions(
    values: jax.Array, descending: bool
) -> tuple[jax.Array, jax.Array]:
    """Numbers of at most 32 bits by size, and their positions."""
    keys = astype(_as_integers(values), jnp.int64)
    keys = -1 - keys if descending else keys  # -keys could overflow
    positions = lax.broadcasted_iota(keys.dtype, keys.shape, keys.ndim - 1)
    if keys.dtype == jnp.int32:  # in `narrow()`, which has no integers of 64 bits
        keys, positions = lax.sort((keys, positions), num_keys=1)
    else:
        both = jnp.sort(keys * 2**32 + positions, axis=-1)
        keys, positions = both >> 32, (both & (2**32 - 1)).astype(jnp.int32)
    keys = -1 - keys if descending else keys
    if is_floating(values):
        return _as_floats(keys.astype(jnp.int32), values.dtype), positions
    return keys.astype(values.dtype), positions


def _as_integers(values: jax.Array) -> jax.Array:
    """Integers in the order of the numbers: the bits, in reverse below 0."""
    if not is_floating(values):
        return values
    values = jnp.where(jnp.equal(values, 0), 0, values)  # -0.0 is equal to 0.0
    if values.dtype.itemsize < 4:
        values = values.astype(jnp.float32)
    kind = jnp.int32 if values.dtype.itemsize == 4 else jnp.int64
    bits = lax.bitcast_convert_type(values, kind)
    # Below 0, all bits but the sign are flipped.
    return jnp.where(bits < 0, bits ^ np.iinfo(kind).max, bits)


def _as_floats(numbers: jax.Array, dtype: Any) -> jax.Array:
    """The inverse of `_as_integers`."""
    kind = jnp.float32 if numbers.dtype.itemsize == 4 else jnp.float64
    bits = jnp.where(numbers < 0, numbers ^ np.iinfo(numbers.dtype).max, numbers)
    return lax.bitcast_convert_type(bits, kind).astype(dtype)


def searchsorted(
    keys: jax.Array, values: jax.Array, side: str = "left", out_type: Any = np.int32
) -> jax.Array:
    """How many of the sorted keys of each row are below each value, or not above it."""
    of_row = functools.partial(jnp.searchsorted, side=side)
    return astype(jax.vmap(of_row)(keys, values), out_type)


def take(values: jax.Array, index: jax.Array, axis: int = 0) -> jax.Array:
    """The elements at some positions of an axis."""
    return jnp.take(values, jnp.asarray(index), axis=axis, mode="clip")


def gather(values: jax.Array, index: jax.Array) -> jax.Array:
    """The elements of each row."""
    return values[_row_numbers(index), index]


def scatter(values: jax.Array, index: jax.Array, number: Any) -> jax.Array:
    """The values with a number at some positions of each row."""
    return values.at[_row_numbers(index), index].set(number)


def scatter_max(values: jax.Array, index: jax.Array, numbers: jax.Array) -> jax.Array:
    """The maximum of values and numbers at some positions of each row."""
    return values.at[_row_numbers(index), index].max(numbers)


def _row_numbers(index: jax.Array) -> jax.Array:
    return jnp.arange(index.shape[0])[:, np.newaxis]


def segment_sum(values: jax.Array, segments: jax.Array, number: int) -> jax.Array:
    """The sum of the values of each segment."""
    return jax.ops.segment_sum(values, segments, number)


def sum_chosen(
    which: jax.Array, values: jax.Array, index: jax.Array | None = None
) -> jax.Array:
    """The sum of the values of some items of each row."""
    if index is not None:
        values = values[index]
        is_chosen = which[..., jnp.newaxis] if values.ndim == 3 else which
        return jnp.sum(jnp.where(is_chosen, values, 0), axis=1)
    return jnp.matmul(which.astype(values.dtype), values)


def count_nonzero(where: jax.Array) -> jax.Array:
    """How many are True in each row."""
    return astype(jnp.count_nonzero(where, axis=1), jnp.float64)


def flatnonzero(where: jax.Array) -> np.ndarray:
    """The positions of True among all elements, found by NumPy.

    JAX would compile the operation for each number of them.
    """
    return np.flatnonzero(where)


def cond(condition: Any, if_true: Callable, if_false: Callable, name: str = "") -> Any:
    """The result of one of the functions."""
    return lax.cond(condition, new_scope(if_true), new_scope(if_false))


def while_loop(condition: Callable, body: Callable, variables: Sequence) -> Any:
    """The last variables."""
    return lax.while_loop(
        lambda state: new_scope(condition)(*state),
        lambda state: tuple(new_scope(body)(*state)),
        tuple(variables),
    )


def unfold(
    step: Callable, state: tuple, number: Any, depth: int, like_row: jax.Array
) -> jax.Array:
    """The rows."""

    def add_row(s, state, rows):
        state, row = new_scope(step)(s, *state)
        return s + 1, state, rows.at[s.astype(jnp.int32) - 1].set(row)

    rows = zeros((depth, *like_row.shape), jnp.float64)
    return lax.while_loop(
        lambda loop: loop[0] <= number,
        lambda loop: add_row(*loop),
        (ones((), jnp.float64), state, rows),
    )[2]
