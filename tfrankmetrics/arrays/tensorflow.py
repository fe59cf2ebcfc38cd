"""The operations of `tfrankmetrics.arrays` on tensors of TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tfrankmetrics.arrays.numpy import unchanged
from tfrankmetrics.graphs import current_graph

package = tf.experimental.numpy  # has what is missing here
pow = package.power

# Elementwise
clip = tf.clip_by_value
isfinite, isnan = tf.math.is_finite, tf.math.is_nan
round, floor, ceil = tf.round, tf.floor, tf.math.ceil
exp, log, log1p, tanh = tf.exp, tf.math.log, tf.math.log1p, tf.tanh
divide_no_nan = tf.math.divide_no_nan
astype = tf.cast

# Along an axis
sum, mean = tf.reduce_sum, tf.reduce_mean
max, min, argmax = tf.reduce_max, tf.reduce_min, tf.argmax
any, all = tf.reduce_any, tf.reduce_all
cumulative_sum, cumulative_prod = tf.cumsum, tf.math.cumprod
sort, top_k, searchsorted = tf.sort, tf.math.top_k, tf.searchsorted
roll = tf.roll

# Products
matmul, matvec = tf.matmul, tf.linalg.matvec

# Shapes
shape, size, reshape = tf.shape, tf.size, tf.reshape
squeeze, broadcast_to = tf.squeeze, tf.broadcast_to
concat, stack, unstack, tile, pad = tf.concat, tf.stack, tf.unstack, tf.tile, tf.pad
matrix_transpose = tf.linalg.matrix_transpose

# New tensors
zeros_like, ones_like = tf.zeros_like, tf.ones_like

barrier = without_denormals = unchanged

# Branches and loops
cond, while_loop = tf.cond, tf.while_loop


def _adapting(name: str) -> Callable[..., tf.Tensor]:
    """An operation whose last two operands may be numbers of Python, as in NumPy.

    TensorFlow itself adapts only a number after a tensor, and no float to integers.
    """
    of_tensors, of_any = getattr(tf, name), getattr(package, name)

    def operation(*operands: Any) -> tf.Tensor:
        *_, x, y = operands
        is_number = isinstance(x, (int, float))
        if is_number or (isinstance(y, float) and not tf.as_dtype(x.dtype).is_floating):
            return of_any(*operands)
        return of_tensors(*operands)

    return operation


equal, not_equal, where = map(_adapting, ("equal", "not_equal", "where"))
minimum, maximum = map(_adapting, ("minimum", "maximum"))


def asarray(values: Any, dtype: Any = None) -> tf.Tensor:
    """A tensor; of numbers of Python, in the dtype of NumPy."""
    has_dtype = dtype is not None or hasattr(values, "dtype")
    return tf.convert_to_tensor(values if has_dtype else np.asarray(values), dtype)


def arange(*ends: Any, dtype: Any = None) -> tf.Tensor:
    """The numbers of a range; int32 for integers."""
    has_float = float in map(type, ends)
    return tf.range(*ends, dtype=dtype or (tf.float64 if has_float else None))


def full(sizes: Any, value: Any) -> tf.Tensor:
    """The same number everywhere."""
    return tf.fill(sizes, asarray(value))


def flip(values: Any, axis: int) -> tf.Tensor:
    """The elements in the other order along an axis."""
    return tf.reverse(values, [axis])


def argsort(values: Any, axis: int = -1, descending: bool = False) -> tf.Tensor:
    """The order of the elements; equal ones keep theirs."""
    direction = "DESCENDING" if descending else "ASCENDING"
    return tf.argsort(values, axis, direction, stable=True)


def take(values: Any, index: Any, axis: int = 0) -> tf.Tensor:
    """The elements at some positions of an axis."""
    return tf.gather(values, index, axis=axis)


def gather(values: Any, index: Any) -> tf.Tensor:
    """The elements of each row."""
    return tf.gather(values, index, batch_dims=1)


def select(which: Any, values: Any, otherwise: float) -> tf.Tensor:
    """Values or a number. Faster than tf.where, which may have to broadcast."""
    others = tf.fill(tf.shape(values), tf.cast(otherwise, values.dtype))
    return tf.raw_ops.Select(condition=which, x=values, y=others)


def scatter(values: Any, index: Any, number: Any) -> tf.Tensor:
    """The values with a number at some positions of each row."""
    numbers = tf.fill(tf.shape(index), tf.constant(number, values.dtype))
    return tf.tensor_scatter_nd_update(values, _indices(index), numbers)


def scatter_max(values: Any, index: Any, numbers: Any) -> tf.Tensor:
    """The maximum of values and numbers at some positions of each row."""
    return tf.tensor_scatter_nd_max(values, _indices(index), numbers)


def _indices(index: Any) -> tf.Tensor:
    """Positions in rows `[B, D]` as pairs of a row and a position, `[B, D, 2]`."""
    rows = tf.range(tf.shape(index, out_type=tf.int64)[0])[:, tf.newaxis]
    return tf.stack([rows + tf.zeros_like(index), index], axis=2)


def segment_sum(values: Any, segments: Any, number: int) -> tf.Tensor:
    """The sum of the values of each segment."""
    return tf.math.unsorted_segment_sum(values, segments, number)


def sum_chosen(which: Any, values: Any, index: Any = None) -> tf.Tensor:
    """The sum of the values of some items of each row."""
    if index is not None:
        values = tf.gather(values, index)
        is_chosen = which[..., tf.newaxis] if values.shape.rank == 3 else which
        return tf.reduce_sum(tf.where(is_chosen, values, 0), axis=1)
    chosen = tf.cast(which, values.dtype)
    if values.shape.rank == 1:
        return tf.linalg.matvec(chosen, values)
    return tf.matmul(chosen, values)


def count_nonzero(where: Any) -> tf.Tensor:
    """How many are True in each row."""
    if tf.config.list_physical_devices("GPU"):  # where TensorFlow cannot add up bytes
        return tf.reduce_sum(tf.cast(where, tf.float64), axis=1)
    # Sums of up to 250 bytes fit into a byte, which is faster than adding up floats.
    queries, items = tf.unstack(tf.shape(where))
    parts = -(-items // 250)
    bytes_ = tf.pad(tf.cast(where, tf.uint8), [[0, 0], [0, 250 * parts - items]])
    sums = tf.reduce_sum(tf.reshape(bytes_, [queries, parts, 250]), axis=2)
    return tf.reduce_sum(tf.cast(sums, tf.float64), axis=1)


def flatnonzero(where: Any) -> tf.Tensor:
    """The positions of True among all elements."""
    return tf.where(tf.reshape(where, [-1]))[:, 0]


def unfold(
    step: Callable, state: tuple, number: Any, depth: Any, like_row: Any
) -> tf.Tensor:
    """The rows."""
    if current_graph() is None:  # a TensorArray takes its time for each row of 0
        rows = [tf.zeros([0, tf.shape(like_row)[0]], tf.float64)]
        for s in range(1, int(number) + 1):
            state, row = step(tf.constant(s, tf.float64), *state)
            rows.append(row[tf.newaxis])
        computed = tf.concat(rows, axis=0)
        return tf.pad(computed, [[0, depth - tf.shape(computed)[0]], [0, 0]])
    rows = tf.TensorArray(tf.float64, depth, element_shape=like_row.shape)
    rows = rows.unstack(tf.zeros([depth, tf.shape(like_row)[0]], tf.float64))

    def add_row(s, state, rows):
        state, row = step(s, *state)
        return s + 1, state, rows.write(tf.cast(s, tf.int32) - 1, row)

    *_, rows = tf.while_loop(
        lambda s, *_: s <= number, add_row, [tf.ones([], tf.float64), state, rows]
    )
    return rows.stack()


def known_size(lists: tf.Tensor) -> int | None:
    """N, if a graph knows it.

    None in eager mode. The code may be compiled later, for lists of any length, and
    must produce the same bits as the graph that does not know their length.
    """
    return None if current_graph() is None else lists.shape[1]


def has_shape(values: tf.Tensor, sizes: tuple[int | None, ...]) -> bool:
    """Whether the sizes may be these."""
    return values.shape.is_compatible_with(sizes)


def dtype_of(values: tf.Tensor) -> np.dtype:
    """The dtype of NumPy."""
    return np.dtype(values.dtype.as_numpy_dtype)


def is_floating(values: tf.Tensor) -> bool:
    """Whether the values are floats."""
    return values.dtype.is_floating
