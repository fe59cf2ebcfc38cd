"""Datasets of candidates, and towers, which compute embeddings from inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.columns.values import from_pytorch
from tfrankmetrics.inputs.batches import refuse_unordered, require_end
from tfrankmetrics.inputs.structures import flattened, map_arrays
from tfrankmetrics.keras.registration import is_keras_loaded
from tfrankmetrics.retrieval.chunks import MOST_ROUNDING, Chunk
from tfrankmetrics.retrieval.inputs import (
    concatenated,
    library_of_functions,
    padded,
    require_some,
    rows_of,
    size_of,
)

_BY_POSITION = {
    "queries": "`relevant` and the other arguments with a row for each query",
    "candidates": "The positions of candidates",
}


class StreamedCandidates:
    """Candidates in a dataset; only the relevant ones are kept."""

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
        """Raises ValueError if relevant candidates changed since the first pass.

        Embeddings of a tower may differ by rounding.
        """
        if self._rows is None:
            return
        first, end = np.searchsorted(
            self._kept, [chunk.start, chunk.start + chunk.size]
        )
        positions = self._kept[first:end]
        before = rows_of(self._rows, slice(first, end))
        again = rows_of(chunk.inputs, positions - chunk.start)
        pairs = zip(flattened(before), flattened(again), strict=True)
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


def apply_tower(tower: Any, batch: Any, width: int = 0) -> Any:
    """The outputs of a tower; without any, the batch itself.

    The tower receives batches padded to at least `width` rows, so that equal inputs in
    batches of one width yield equal embeddings. A model or a layer is compiled, and
    runs without dropout.
    """
    if tower is None:
        return batch
    number, library = size_of("inputs of a tower", batch), library_of_functions()
    if is_keras_loaded():
        from tfrankmetrics.keras.inference import inference_of, is_layer

        tower = inference_of(tower) if is_layer(tower) else tower
    if number == 0:
        rows = map_arrays(lambda each: xp.in_library(library, each), batch)
    else:
        rows = padded(batch, library, width)
    outputs = tower(rows)
    if library == "numpy":
        outputs = map_arrays(lambda each: np.asarray(from_pytorch(each)), outputs)
    return rows_of(outputs, slice(0, number))


def require_readable(dataset: Any, name: str) -> None:
    """Raises ValueError for a dataset that never ends, or whose order is random."""
    refuse_unordered(dataset, _BY_POSITION[name])
    require_end(f"`{name}`", dataset)
