"""Queries and candidates of `evaluate_retrieval`: arrays, datasets, and towers."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tfrankmetrics.inputs.batches import batches_of, comes_in_batches, is_dataset
from tfrankmetrics.retrieval.chunks import Candidates, Chunk
from tfrankmetrics.retrieval.inputs import (
    as_arrays,
    concatenated,
    require_some,
    rows_of,
    size_of,
)
from tfrankmetrics.retrieval.products import hold_integers, norms_of


class ArrayCandidates:
    """Candidates in memory."""

    def __init__(self, inputs: Any, chunk_size: int) -> None:
        self.inputs = inputs
        self.number = size_of("candidates", inputs)
        self._parts = even_parts(self.number, chunk_size)

    @functools.cached_property
    def norms(self) -> np.ndarray:
        """Upper bounds on the norms of the vectors; NaN for those not finite."""
        parts = (self.inputs[part.start : part.stop] for part in self._parts)
        return np.concatenate([norms_of(part) for part in parts])

    @functools.cached_property
    def largest_norm(self) -> float:
        """The largest of these; NaN if no vector is finite."""
        return np.fmax.reduce(self.norms)

    @functools.cached_property
    def hold_integers(self) -> bool:
        """Whether all numbers of the vectors are finite integers."""
        return hold_integers(self.inputs)

    def at(self, positions: np.ndarray) -> Any:
        """The candidates at some positions."""
        return rows_of(self.inputs, positions)

    def chunks(self) -> Iterator[Chunk]:
        """All candidates in their order."""
        width = len(self._parts[0])
        for part in self._parts:
            rows = rows_of(self.inputs, slice(part.start, part.stop))
            yield Chunk(part.start, len(part), rows, width)


def even_parts(number: int, most: int) -> list[range]:
    """The numbers 0, 1, ... in as few ranges of at most `most` as possible.

    They have the same length, except the last one, which may be slightly shorter.
    """
    size = -(-number // -(-number // most))
    return [range(s, min(s + size, number)) for s in range(0, number, size)]


def candidates_of(
    data: Any, tower: Any, relevant: np.ndarray, chunk_size: int
) -> Candidates:
    """The candidates; `relevant` holds the positions of all relevant ones, or -1."""
    if is_dataset(data):
        from tfrankmetrics.retrieval.streams import StreamedCandidates, require_readable

        require_readable(data, "candidates")
        return StreamedCandidates(data, tower, relevant)
    return ArrayCandidates(in_memory("candidates", data, tower, chunk_size), chunk_size)


def _inputs(batch: Any) -> Any:
    """The inputs in the output of a loader, which come first, as in Keras."""
    return batch[0] if isinstance(batch, (list, tuple)) else batch


def in_memory(name: str, data: Any, tower: Any, batch_size: int) -> Any:
    """Arrays, batches, or the outputs of a tower for them, as tensors or arrays."""
    if comes_in_batches(data):
        from tfrankmetrics.retrieval.streams import apply_tower, require_readable

        require_readable(data, name)
        batches = (
            batches_of(data) if is_dataset(data) else map(_inputs, batches_of(data))
        )
        batches = [apply_tower(tower, batch) for batch in batches]
        require_some(name, len(batches))
        return concatenated(batches)
    arrays = as_arrays(name, data)
    number = size_of(name, arrays)
    require_some(name, number)
    if tower is None:
        return arrays
    from tfrankmetrics.retrieval.streams import apply_tower

    parts = even_parts(number, batch_size)
    batches = (rows_of(arrays, slice(part.start, part.stop)) for part in parts)
    return concatenated([apply_tower(tower, batch, len(parts[0])) for batch in batches])
