"""Queries and candidates: arrays, datasets, and the towers that compute vectors.

Candidates are read a chunk at a time. All functions of the user, towers and scores, are
called here, with arrays of the library of their inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.values import from_pytorch
from tfrankmetrics.inputs.alignment import aligned
from tfrankmetrics.inputs.batches import (
    batches_of,
    comes_in_batches,
    is_dataset,
    refuse_unordered,
    require_end,
)
from tfrankmetrics.inputs.structures import (
    as_arrays,
    concatenated,
    flattened,
    library_of_inputs,
    map_arrays,
    padded,
    rows_of,
    size_of,
)
from tfrankmetrics.keras.backends import other_backend
from tfrankmetrics.keras.registration import is_keras_loaded

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
        width = len(self._parts[0])
        for part in self._parts:
            rows = rows_of(self.inputs, slice(part.start, part.stop))
            yield Chunk(part.start, len(part), rows, width)


class StreamedCandidates:
    """Candidates in a dataset of batches; only the relevant ones are kept.

    The first pass, when the object is made, finds these and counts all candidates.
    """

    def __init__(
        self, dataset: Any, tower: Any, kept: np.ndarray, prepare: Callable[[Any], Any]
    ) -> None:
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
            inputs = self._prepare(_outputs(self._tower, batch, self._width))
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


def candidates_of(
    data: Any,
    tower: Any,
    kept: np.ndarray,
    chunk_size: int,
    prepare: Callable[[Any], Any],
) -> Candidates:
    """The candidates; `kept` holds the positions of those that `at` must return.

    `prepare` checks and converts the inputs of scores.
    """
    if is_dataset(data):
        _require_readable(data, "candidates")
        return StreamedCandidates(data, tower, kept, prepare)
    inputs = in_memory("candidates", data, tower, chunk_size)
    return ArrayCandidates(prepare(inputs), chunk_size)


def in_memory(name: str, data: Any, tower: Any, batch_size: int) -> Any:
    """Arrays, batches, or the outputs of a tower for them, as tensors or arrays."""
    if comes_in_batches(data):
        _require_readable(data, name)
        batches = batches_of(data)
        if not is_dataset(data):
            batches = map(_inputs_of_loader, batches)
        outputs = [_outputs(tower, batch) for batch in batches]
        _require_some(name, len(outputs))
        return concatenated(outputs)
    arrays = as_arrays(name, data)
    number = size_of(name, arrays)
    _require_some(name, number)
    if tower is None:
        return arrays
    parts = _even_parts(number, batch_size)
    batches = (rows_of(arrays, slice(part.start, part.stop)) for part in parts)
    return concatenated([_outputs(tower, batch, len(parts[0])) for batch in batches])


def _inputs_of_loader(batch: Any) -> Any:
    """The inputs in the output of a loader, which come first, as in Keras."""
    return batch[0] if isinstance(batch, (list, tuple)) else batch


def _even_parts(number: int, most: int) -> list[range]:
    """The numbers 0, 1, ... in as few ranges of at most `most` as possible.

    They have the same length, except the last one, which may be slightly shorter.
    """
    size = -(-number // -(-number // most))
    return [range(s, min(s + size, number)) for s in range(0, number, size)]


def _require_readable(dataset: Any, name: str) -> None:
    """Raises ValueError for a dataset that never ends, or whose order is random."""
    refuse_unordered(dataset, _BY_POSITION[name])
    require_end(f"`{name}`", dataset)


def _outputs(tower: Any, batch: Any, width: int = 0) -> Any:
    """The outputs of a tower; without any, the batch itself.

    The tower receives batches padded to at least `width` rows, so that equal inputs in
    batches of one width yield equal embeddings. A model or a layer is compiled, and
    runs without dropout.
    """
    if tower is None:
        return batch
    number, library = size_of("a tower", batch), library_of_inputs(batch)
    function = tower
    if is_keras_loaded():
        from tfrankmetrics.keras.inference import inference_of, is_layer

        if is_layer(tower):
            function = inference_of(tower)
            batch = map_arrays(from_pytorch, batch)
            library = "tensorflow" if other_backend() is None else "numpy"
    rows = padded(batch, library, width) if number else batch
    return rows_of(call_by_user(tower, function, rows), slice(0, number))


def call_by_user(named: Any, function: Callable[..., Any], *inputs: Any) -> Any:
    """What a function of the user returns; its errors name it and its inputs."""
    try:
        return function(*inputs)
    except Exception as error:
        given = [
            f"{type(each).__module__}.{type(each).__name__} {[*each.shape]}"
            for each in flattened(inputs)
        ]
        raise ValueError(
            "`score` and towers must accept the rows that they are passed. Received: "
            f"{type(error).__name__} from {named!r} for {' and '.join(given)}: "
            f"{error}"
        ) from error


def with_aligned_rows(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with the rows of queries, and those of candidates, in one order."""
    of_queries = ("queries", "relevant", "exclude", "sample_weight", "by")
    found = dict(given)
    for names in (of_queries, ("candidates", "candidate_ids")):
        found |= aligned({name: given[name] for name in names if name in given})
    return found


def _require_some(name: str, number: int) -> None:
    """Raises ValueError if the number is 0."""
    if number == 0:
        raise ValueError(f"`{name}` must not be empty. Received: none.")
