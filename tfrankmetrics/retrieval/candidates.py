"""Queries and candidates of `evaluate_retrieval`: arrays, datasets, and towers."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from tfrankmetrics.columns.values import refuse_masked_arrays
from tfrankmetrics.inputs.mistakes import refuse_shuffled
from tfrankmetrics.rules import shortened

# In products of one shape, whose sizes are multiples of this number, TensorFlow
# computes every row and column in the same way, so that equal vectors have equal
# scores. A remainder or a narrower product is summed in a different order, so that the
# last bits differ.
ALIGNMENT = 64
# In bfloat16, two products of the same vectors can differ by some percent.
MOST_ROUNDING = 0.1


_BY_POSITION = {
    "queries": "`relevant` and the other arguments with a row for each query",
    "candidates": "The positions of candidates",
}


class Chunk(NamedTuple):
    """Some candidates that stand side by side."""

    start: int  # the position of the first
    size: int
    inputs: Any
    width: int  # the rows to pad the inputs to, the same in all chunks


class Candidates(Protocol):
    """All candidates, read some at a time."""

    number: int

    def at(self, positions: np.ndarray) -> Any:
        """The candidates at some positions, which must be among the relevant ones."""
        ...

    def chunks(self) -> Iterator[Chunk]:
        """All candidates in their order."""
        ...


class ArrayCandidates:
    """Candidates in memory."""

    def __init__(self, arrays: Any, chunk_size: int) -> None:
        self._arrays = arrays
        self.number = size_of("candidates", arrays)
        self._parts = even_parts(self.number, chunk_size)

    def at(self, positions: np.ndarray) -> Any:
        """The candidates at some positions."""
        return rows_of(self._arrays, positions)

    def chunks(self) -> Iterator[Chunk]:
        """All candidates in their order."""
        width = len(self._parts[0])
        for part in self._parts:
            rows = rows_of(self._arrays, slice(part.start, part.stop))
            yield Chunk(part.start, len(part), rows, width)


class StreamedCandidates:
    """Candidates in a dataset, of which only the relevant ones are kept."""

    def __init__(self, dataset: Any, tower: Any, relevant: np.ndarray) -> None:
        self._dataset, self._tower = dataset, tower
        self._kept, kept, self.number = np.unique(relevant[relevant >= 0]), [], 0
        self._width, self._rows = 0, None  # the width of the largest batch so far
        for chunk in self.chunks():
            self.number = chunk.start + chunk.size
            first, end = np.searchsorted(self._kept, [chunk.start, self.number])
            kept.append(rows_of(chunk.inputs, self._kept[first:end] - chunk.start))
        require_some("candidates", self.number)
        self._rows = concatenated(kept)

    def at(self, positions: np.ndarray) -> Any:
        """The relevant candidates at some positions."""
        return rows_of(self._rows, np.searchsorted(self._kept, positions))

    def chunks(self) -> Iterator[Chunk]:
        """All candidates in their order, one batch of the dataset at a time."""
        start = 0
        for batch in self._dataset:
            self._width = max(self._width, size_of("candidates", batch))
            inputs = apply_tower(self._tower, batch, self._width)
            size = size_of("candidates", inputs)
            if size > 0:
                chunk = Chunk(start, size, inputs, self._width)
                self._require_same_rows(chunk)
                yield chunk
            start += size

    def _require_same_rows(self, chunk: Chunk) -> None:
        """Raises ValueError if relevant candidates differ from those of the first time.

        Vectors of a tower may differ by rounding.
        """
        if self._rows is None:
            return
        first, end = np.searchsorted(
            self._kept, [chunk.start, chunk.start + chunk.size]
        )
        positions = self._kept[first:end]
        before = rows_of(self._rows, slice(first, end))
        again = rows_of(chunk.inputs, positions - chunk.start)
        pairs = zip(tf.nest.flatten(before), tf.nest.flatten(again), strict=True)
        for one, other in pairs:
            alike = _alike(np.asarray(one), np.asarray(other))
            if not alike.all():
                raise ValueError(
                    "A dataset must return the candidates in the same order each time. "
                    "Received: other values than before for the candidate at position "
                    f"{positions[alike.argmin()]}."
                )


def _alike(one: np.ndarray, other: np.ndarray) -> Any:
    """Whether each row has the same values; of floats, up to rounding."""
    size = len(one), math.prod(one.shape[1:])
    one, other = one.reshape(size), other.reshape(size)
    if one.dtype.kind not in "fV":  # bfloat16 is not a dtype of NumPy itself
        return np.equal(one, other).all(axis=1)
    one, other = one.astype(np.float64), other.astype(np.float64)
    largest = np.abs(np.nan_to_num(one)).max(axis=1, initial=0, keepdims=True)
    with np.errstate(invalid="ignore"):  # infinity minus infinity
        is_near = np.abs(one - other) <= MOST_ROUNDING * largest
    is_same = (one == other) | (np.isnan(one) & np.isnan(other))
    return (is_near | is_same).all(axis=1)


def even_parts(number: int, most: int) -> list[range]:
    """The numbers 0, 1, ... in as few ranges of at most `most` as possible.

    They have the same length, but for the last one, which may be a little shorter.
    """
    size = -(-number // -(-number // most))
    return [range(s, min(s + size, number)) for s in range(0, number, size)]


def candidates_of(
    data: Any, tower: Any, relevant: np.ndarray, chunk_size: int
) -> Candidates:
    """The candidates; `relevant` holds the positions of all relevant ones, or -1."""
    if isinstance(data, tf.data.Dataset):
        require_readable(data, "candidates")
        return StreamedCandidates(data, tower, relevant)
    return ArrayCandidates(in_memory("candidates", data, tower, chunk_size), chunk_size)


def in_memory(name: str, data: Any, tower: Any, batch_size: int) -> Any:
    """Arrays, a dataset, or what a tower makes of them, as tensors or arrays."""
    if isinstance(data, tf.data.Dataset):
        require_readable(data, name)
        batches = [apply_tower(tower, batch) for batch in data]
        require_some(name, len(batches))
        return concatenated(batches)
    arrays = as_arrays(name, data)
    number = size_of(name, arrays)
    require_some(name, number)
    if tower is None:
        return arrays
    parts = even_parts(number, batch_size)
    batches = (rows_of(arrays, slice(part.start, part.stop)) for part in parts)
    return concatenated([apply_tower(tower, batch, len(parts[0])) for batch in batches])


def as_arrays(name: str, data: Any) -> Any:
    """A tensor or an array, or a dict of these."""
    if isinstance(data, Mapping):
        return {key: as_arrays(name, values) for key, values in data.items()}
    if tf.is_tensor(data):
        return data
    refuse_masked_arrays(f"`{name}`", data)
    rule = f"`{name}` must be arrays with a row for each."
    try:
        array = np.asarray(data)
    except ValueError:
        raise ValueError(f"{rule} Received: rows of different lengths.") from None
    vectors = (np.ndarray, list, tuple)
    if array.dtype == object and any(isinstance(each, vectors) for each in array):
        raise ValueError(
            f"{rule} Received: a column of vectors. Pass np.stack(column)."
        )
    return array


def number_of(name: str, data: Any) -> int:
    """The number of rows of data in memory."""
    return size_of(name, as_arrays(name, data))


def compiled(tower: Any) -> Any:
    """A model or a layer as a compiled function, without dropout; others as they are.

    A tower is compiled once, for as long as it exists. (In Keras 3, `predict_on_batch`
    repeats the rows on replicas.)
    """
    if not isinstance(tower, tf.keras.layers.Layer):
        return tower
    if tower not in _COMPILED:
        existing: Any = weakref.ref(tower)  # else the tower would exist forever
        _COMPILED[tower] = tf.function(
            lambda batch: existing()(batch, training=False), reduce_retracing=True
        )
    return _COMPILED[tower]


_COMPILED: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def apply_tower(tower: Any, batch: Any, width: int = 0) -> Any:
    """The outputs of a tower; without any, the batch itself.

    The tower sees batches that are padded to `width` rows at least, so that equal
    inputs in batches of one width get equal vectors.
    """
    if tower is None:
        return batch
    number = size_of("inputs of a tower", batch)
    tower = compiled(tower)
    if number == 0:
        return tower(tf.nest.map_structure(tf.convert_to_tensor, batch))
    return rows_of(tower(padded(batch, width)), slice(0, number))


def rows_of(arrays: Any, which: slice | np.ndarray) -> Any:
    """Some rows of each array."""

    def rows(array: Any) -> Any:
        if isinstance(which, np.ndarray) and tf.is_tensor(array):
            return tf.gather(array, which)
        return array[which]

    return tf.nest.map_structure(rows, arrays)


def concatenated(parts: list[Any]) -> Any:
    """The rows of all parts."""
    return tf.nest.map_structure(lambda *rows: tf.concat(rows, axis=0), *parts)


def padded(inputs: Any, width: int = 0, not_to: int | None = None) -> Any:
    """Tensors with the last row repeated, to a multiple of `ALIGNMENT` from `width` on.

    The multiple is not `not_to`. So candidates do not become as many as queries, and a
    transposed score is noticed.
    """

    def pad(rows: Any) -> tf.Tensor:
        rows = tf.convert_to_tensor(rows)
        size = rows.shape[0]
        least = max(size, width)
        number = least + -least % ALIGNMENT
        if number == not_to:
            number += ALIGNMENT
        if number == size:
            return rows
        return tf.gather(rows, np.minimum(np.arange(number), size - 1))

    return tf.nest.map_structure(pad, inputs)


def size_of(name: str, arrays: Any) -> int:
    """The number of rows, the same in all arrays."""
    shapes = [tuple(array.shape) for array in tf.nest.flatten(arrays)]
    if not shapes or () in shapes or len({shape[0] for shape in shapes}) > 1:
        raise ValueError(
            f"`{name}` must be arrays with a row for each, all with the same number of "
            f"rows. Received: {shapes or 'none'} as their shapes."
        )
    return shapes[0][0]


def require_some(name: str, number: int) -> None:
    """Raises ValueError if the number is 0."""
    if number == 0:
        raise ValueError(f"`{name}` must not be empty. Received: none.")


def require_readable(dataset: Any, name: str) -> None:
    """Raises ValueError for a dataset that never ends, or whose order is random."""
    refuse_shuffled(dataset, _BY_POSITION[name])
    if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise ValueError(
            f"`{name}` must end. Received: a dataset that repeats forever. Remove "
            f"repeat(). The dataset was {shortened(dataset)}."
        )


def dot_product(queries: Any, candidates: Any) -> tf.Tensor:
    """The scores of the candidates `[C, d]` for the queries `[B, d]`, `[B, C]`."""
    shapes = [
        [*each.shape] if tf.is_tensor(each) else [] for each in (queries, candidates)
    ]
    if [len(shape) for shape in shapes] != [2, 2] or shapes[0][1] != shapes[1][1]:
        raise ValueError(
            "For a dot product, queries and candidates must be vectors of the same "
            f"length, [B, d] and [V, d]. Received: {_text('B', shapes[0])} and "
            f"{_text('V', shapes[1])}. To score others, pass `score`, or towers that "
            "make vectors."
        )
    dtype = _dtype_of_product(queries=queries.dtype, candidates=candidates.dtype)
    if dtype == tf.int64:
        _require_no_overflow(queries, candidates)
    queries, candidates = tf.cast(queries, dtype), tf.cast(candidates, dtype)
    return tf.matmul(queries, candidates, transpose_b=True)


def _require_no_overflow(queries: tf.Tensor, candidates: tf.Tensor) -> None:
    """Raises ValueError for integers whose products may not fit into int64."""
    largest = [
        max(abs(int(tf.reduce_max(each))), abs(int(tf.reduce_min(each))))
        for each in (queries, candidates)
    ]
    if queries.shape[1] * largest[0] * largest[1] >= 2**63:
        raise ValueError(
            "Products of integer vectors must be below 2^63. Received: vectors of "
            f"length {queries.shape[1]} with integers up to {largest[0]} and "
            f"{largest[1]}. Cast them to float64."
        )


def _dtype_of_product(**dtypes: tf.DType) -> tf.DType:
    """The wider of two dtypes; int64 for integers, since a product of int32 overflows.

    Raises ValueError for a dtype of other things than real numbers.
    """
    for name, dtype in dtypes.items():
        if not (dtype.is_floating or dtype.is_integer):
            raise ValueError(
                f"`{name}` must be vectors of real numbers. Received: {dtype.name}."
            )
    distinct = {*dtypes.values()}
    if all(dtype.is_integer for dtype in distinct):
        return tf.int64
    if any(dtype.is_integer for dtype in distinct) or tf.float64 in distinct:
        return tf.float64
    return distinct.pop() if len(distinct) == 1 else tf.float32


def _text(rows: str, shape: list[int]) -> str:
    if not shape:
        return "a structure of arrays"
    return f"[{', '.join([rows, *map(str, shape[1:])])}]"
