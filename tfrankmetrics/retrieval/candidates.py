"""Queries and candidates: arrays, datasets, and the outputs of towers for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.inputs.structures import (
    as_arrays,
    batches_of,
    comes_in_batches,
    concatenated,
    is_dataset,
    refuse_unordered,
    require_end,
    rows_of,
    size_of,
)
from tfrankmetrics.keras.towers import outputs_of

_BY_POSITION = {
    "queries": "`relevant` and the other arguments with a row for each query",
    "candidates": "The positions of candidates",
}


class Chunk(NamedTuple):
    """Some consecutive candidates."""

    start: int  # the position of the first
    size: int
    inputs: Any
    width: int  # the rows to pad the inputs to, the same in all chunks


class ArrayCandidates:
    """Candidates in memory."""

    def __init__(self, inputs: Any, chunk_size: int) -> None:
        self.inputs = inputs
        self.number = size_of("candidates", inputs)
        self._parts = _even_parts(self.number, chunk_size)

    def at(self, positions: np.ndarray) -> Any:
        """The candidates at some positions."""
        return rows_of(self.inputs, positions)

    def chunks(self) -> Iterator[Chunk]:
        """All candidates in their order."""
        width = self._parts[0].stop
        for part in self._parts:
            size = part.stop - part.start
            yield Chunk(part.start, size, rows_of(self.inputs, part), width)


class StreamedCandidates:
    """Candidates in a dataset of batches; only the relevant ones are kept.

    The first pass, when the object is made, finds these and counts all candidates.
    """

    def __init__(
        self, dataset: Any, tower: Any, kept: np.ndarray, prepare: Callable[[Any], Any]
    ) -> None:
        _require_readable(dataset, "candidates")
        self._dataset, self._tower, self._prepare = dataset, tower, prepare
        self._kept = np.unique(kept[kept >= 0])
        self._width, self._rows = 0, None  # the width of the largest batch so far
        self.number, rows = 0, []
        for chunk in self.chunks():
            self.number = chunk.start + chunk.size
            first, end = np.searchsorted(self._kept, [chunk.start, self.number])
            rows.append(rows_of(chunk.inputs, self._kept[first:end] - chunk.start))
        _require_some("candidates", self.number)
        self._rows = concatenated(rows)

    def at(self, positions: np.ndarray) -> Any:
        """The relevant candidates at some positions."""
        return rows_of(self._rows, np.searchsorted(self._kept, positions))

    def chunks(self) -> Iterator[Chunk]:
        """All candidates in their order, one batch of the dataset at a time."""
        start = 0
        for batch in self._dataset:
            self._width = max(self._width, size_of("candidates", batch))
            inputs = self._prepare(outputs_of(self._tower, batch, self._width))
            size = size_of("candidates", inputs)
            if size > 0:
                yield Chunk(start, size, inputs, self._width)
            start += size
        if self._rows is not None and start != self.number:
            raise ValueError(
                "A dataset must yield the same candidates each time it is read. "
                f"Received: {self.number}, and then {start}. A generator must be "
                "restartable."
            )


Candidates = ArrayCandidates | StreamedCandidates


def in_memory(name: str, data: Any, tower: Any, batch_size: int) -> Any:
    """Arrays, batches, or the outputs of a tower for them, as tensors or arrays."""
    if comes_in_batches(data):
        _require_readable(data, name)
        outputs = []
        for batch in batches_of(data):
            if not is_dataset(data) and isinstance(batch, (list, tuple)):
                batch = batch[0]  # in a loader, the inputs come first, as in Keras
            outputs.append(outputs_of(tower, batch))
        _require_some(name, len(outputs))
        return concatenated(outputs)
    arrays = as_arrays(name, data)
    number = size_of(name, arrays)
    _require_some(name, number)
    if tower is None:
        return arrays
    parts = _even_parts(number, batch_size)
    batches, width = (rows_of(arrays, part) for part in parts), parts[0].stop
    return concatenated([outputs_of(tower, batch, width) for batch in batches])


def _even_parts(number: int, most: int) -> list[slice]:
    """As few slices of at most `most` rows as possible, of the same length.

    The last one may be slightly shorter.
    """
    size = -(-number // -(-number // most))
    return [slice(s, min(s + size, number)) for s in range(0, number, size)]


def _require_readable(dataset: Any, name: str) -> None:
    """Raises ValueError for a dataset that never ends, or whose order is random."""
    refuse_unordered(dataset, _BY_POSITION[name])
    require_end(f"`{name}`", dataset)


def _require_some(name: str, number: int) -> None:
    """Raises ValueError if the number is 0."""
    if number == 0:
        raise ValueError(f"`{name}` must not be empty. Received: none.")
