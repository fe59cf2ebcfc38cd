"""Queries, candidates and relevant items of a retrieval model, read and checked.

Queries and candidates are arrays, datasets, or the outputs of towers for them. The
relevant items of each query, and those to exclude, are positions of candidates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.columns.read_column import is_frame
from tfrankmetrics.inputs.datasets import (
    batches_of,
    comes_in_batches,
    is_dataset,
    refuse_unordered,
    require_end,
)
from tfrankmetrics.inputs.dense import Dense
from tfrankmetrics.inputs.ids_as_integers import IdNumbers, as_integer_ids
from tfrankmetrics.inputs.mistakes import Facts, warn
from tfrankmetrics.inputs.model_inputs import as_arrays, concatenated, rows_of, size_of
from tfrankmetrics.inputs.relevant_ids import (
    PADDING,
    as_ids,
    as_relevance,
    from_dict,
    is_repeated,
    relevance_of,
    require_finite_relevance,
)
from tfrankmetrics.keras.towers import outputs_of
from tfrankmetrics.rules import shortened

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
    if number == 0:
        raise ValueError(f"`{name}` must not be empty. Received: none.")


class RelevantItems(NamedTuple):
    """The relevant items of each query, and those to exclude."""

    ids: np.ndarray  # [B, M] int64, the positions among the candidates
    relevance: np.ndarray  # [B, M] float64
    is_valid: np.ndarray  # [B, M], False for padding and repeated ids
    is_ranked: np.ndarray  # [B, M], also False for excluded items
    exclude: np.ndarray  # [B, E] int64, -1 for padding

    @classmethod
    def read(cls, relevant: Any, exclude: Any, candidate_ids: Any) -> RelevantItems:
        """Checks these arguments of `evaluate_retrieval`."""
        ids, relevance, excluded = from_dict(relevant, {"relevance", "exclude"})
        if excluded is not None and exclude is not None:
            raise ValueError(
                "`exclude` must be passed once. Received: the argument, and a key of "
                "`relevant`. Omit the key."
            )
        exclude = excluded if exclude is None else exclude
        ids, relevance = _read_relevant(ids, relevance, candidate_ids)
        is_valid = (ids != PADDING) & ~is_repeated(ids)
        relevance = np.where(is_valid, relevance, 0)
        excluded = np.zeros((len(ids), 0), np.int64)
        if exclude is not None:
            if is_frame(exclude) or isinstance(exclude, Mapping):
                raise ValueError(
                    "`exclude` must hold ids for each query, in the order of "
                    f"`queries`. Received: a {type(exclude).__name__}. Pass a list of "
                    "lists."
                )
            exclude, _, _ = from_dict(exclude, {"relevance"})
            excluded = _positions_of("`exclude`", exclude, candidate_ids).array
        if excluded.ndim != 2:
            raise ValueError(
                f"`exclude` must hold ids [B, E]. Received: shape {excluded.shape}."
            )
        is_ranked = is_valid
        if len(excluded) == len(ids):  # otherwise, `require_queries` raises an error
            is_ranked = is_valid & ~np.isin(_pairs(ids), _pairs(excluded))
        return cls(ids, relevance, is_valid, is_ranked, excluded)

    @property
    def num_excluded(self) -> np.ndarray:
        """The number of items that are excluded from each query, `[B]`."""
        is_excluded = (self.exclude != PADDING) & ~is_repeated(self.exclude)
        return is_excluded.sum(axis=1)

    def facts(self) -> Facts:
        """How many items are relevant, and how many of these are excluded."""
        num_excluded = int((self.is_valid & ~self.is_ranked).sum())
        numbers = {"relevant": int(self.is_valid.sum()), "excluded": num_excluded}
        return Facts(numbers)

    def of(self, queries: np.ndarray) -> RelevantItems:
        """The items of some queries."""
        return RelevantItems._make([column[queries] for column in self])

    def require_queries(self, number: int) -> None:
        """Raises ValueError unless there is a row for each query."""
        for name, ids in (("relevant", self.ids), ("exclude", self.exclude)):
            if len(ids) != number:
                raise ValueError(
                    f"`{name}` must have a row for each query. Received: {len(ids)} "
                    f"rows for {number} queries."
                )

    def require_candidates(self, number: int) -> None:
        """Raises ValueError for an id that is not the position of a candidate."""
        for name, ids in (("relevant", self.ids), ("exclude", self.exclude)):
            invalid = (ids < PADDING) | (ids >= number)
            if invalid.any():
                raise ValueError(
                    "Ids must be positions among the candidates, from 0 to "
                    f"{number - 1}, or -1 for padding. Received in `{name}`: "
                    f"{ids[invalid][0]}. To use custom ids, pass `candidate_ids`."
                )
            if ids.shape[1] != number or number <= 2:
                continue
            if not (is_repeated(ids) & (ids != PADDING)).any():
                continue
            if np.isin(ids, (PADDING, 0, 1)).all():
                raise ValueError(
                    "Ids must be positions among the candidates, not a 0 or 1 for each "
                    f"candidate. Received in `{name}`: zeros and ones of shape "
                    f"{ids.shape}. Pass the positions of the ones."
                )
            if name == "relevant":
                warn(
                    "Relevant items must be passed as their positions among the "
                    f"candidates. Received: shape {ids.shape}, a number for each "
                    "candidate, some of them twice in a row. They are probably labels. "
                    "Pass the positions of the relevant candidates, and the labels of "
                    "these as `relevance`."
                )


class Pairs(NamedTuple):
    """Pairs of a query and a candidate, sorted by the candidate."""

    rows: np.ndarray
    columns: np.ndarray
    ids: np.ndarray

    @classmethod
    def of(cls, ids: np.ndarray, exists: np.ndarray) -> Pairs:
        """The pairs of ids `[B, M]` that exist."""
        rows, columns = np.nonzero(exists)
        order = np.argsort(ids[rows, columns], kind="stable")
        rows, columns = rows[order], columns[order]
        return cls(rows, columns, ids[rows, columns])

    def within(self, start: int, number: int) -> Pairs:
        """Those of some consecutive candidates."""
        first, end = np.searchsorted(self.ids, [start, start + number])
        return Pairs(*(each[first:end] for each in self))


def _read_relevant(
    relevant: Any, relevance: Any, candidate_ids: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The positions of relevant items and their relevance, `[B, M]`."""
    given = _positions_of("`relevant`", relevant, candidate_ids)
    ids = given.array
    grades = None if relevance is None else as_relevance(relevance, given)
    if ids.ndim not in (1, 2):
        raise ValueError(
            f"`relevant` must hold ids [B] or [B, M]. Received: shape {ids.shape}."
        )
    grades = np.asarray(relevance_of(ids, grades))
    require_finite_relevance(grades, ids)
    if ids.ndim == 1:
        return ids[:, np.newaxis], grades[:, np.newaxis]
    if ids.shape[1] == 0:  # no query has a relevant item
        return np.full((len(ids), 1), PADDING, np.int64), np.zeros((len(ids), 1))
    return ids, grades


def _pairs(ids: np.ndarray) -> np.ndarray:
    """One number for each pair of a row and an id; -1 for padding among the ids."""
    pairs = np.arange(len(ids))[:, np.newaxis] + len(ids) * ids
    return np.where(ids == PADDING, PADDING, pairs)


def _positions_of(name: str, data: Any, candidate_ids: Any) -> Dense:
    """The position of each id, padded with -1, in arrays of NumPy.

    Without `candidate_ids`, ids are positions already.
    """
    if candidate_ids is None:
        return as_ids(name, data, library="numpy")
    # As one row, in which tuples are ids.
    row = (
        candidate_ids[np.newaxis]
        if candidate_ids.dtype.kind in "iu"
        else [candidate_ids.tolist()]
    )
    names = name, "`candidate_ids`"
    integers, numbers = as_integer_ids(data, row, IdNumbers(), names)
    given = as_ids(name, integers, library="numpy")
    numbers = as_ids("`candidate_ids`", numbers, library="numpy").array[0]
    order = np.argsort(numbers, kind="stable")
    ascending, ids = numbers[order], given.array
    place = np.minimum(np.searchsorted(ascending, ids), len(ascending) - 1)
    is_padding = ids == PADDING
    unknown = (ascending[place] != ids) & ~is_padding
    if unknown.any():
        row = int(np.argwhere(unknown)[0][0])
        rows = data.to_list() if hasattr(data, "row_lengths") else data
        raise ValueError(
            f"{name} must hold ids that are in `candidate_ids`, or, among integers, -1 "
            f"for padding. Received an unknown id in row {row}: "
            f"{shortened([*rows][row])}. Remove items that are not candidates."
        )
    positions = np.where(is_padding, PADDING, order[place])
    return given._replace(array=positions)


def require_unique(candidate_ids: np.ndarray, number: int) -> None:
    """Raises ValueError unless there is one id for each candidate."""
    ids = candidate_ids
    if len(ids) != number:
        raise ValueError(
            "`candidate_ids` must have an id for each candidate. Received: "
            f"{len(ids)} for {number} candidates."
        )
    ((item, times),) = Counter(ids.tolist()).most_common(1)
    if times > 1:
        raise ValueError(
            f"`candidate_ids` must be unique. Received: {shortened(item)} twice or "
            "more."
        )
    if ids.dtype.kind in "iu" and ids.min(initial=0) < 0:
        raise ValueError(
            "`candidate_ids` must be at least 0, since -1 is padding. Received: "
            f"{ids.min()}."
        )
