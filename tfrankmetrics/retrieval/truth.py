"""The facts about each query: the relevant items, and those to exclude."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.inputs.ids import as_integer_ids
from tfrankmetrics.inputs.mistakes import warn_of_labels
from tfrankmetrics.inputs.relevant_ids import (
    PADDING,
    as_ids,
    as_relevance,
    from_dict,
    relevance_of,
    require_finite_relevance,
)
from tfrankmetrics.inputs.rows import Dense
from tfrankmetrics.rules import shortened


class Truth(NamedTuple):
    """The relevant items of each query, and those to exclude."""

    ids: np.ndarray  # [B, M] int64, -1 for padding
    relevance: np.ndarray  # [B, M] float64
    exclude: np.ndarray  # [B, E] int64, -1 for padding

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
            if np.array_equal(_each_once(ids), ids):
                continue
            if np.isin(ids, (PADDING, 0, 1)).all():
                raise ValueError(
                    "Ids must be positions among the candidates, not a 0 or 1 for each "
                    f"candidate. Received in `{name}`: zeros and ones of shape "
                    f"{ids.shape}. Pass the positions of the ones."
                )
            if name == "relevant":
                warn_of_labels(ids.shape)

    def items(self) -> RelevantItems:
        """The relevant items, each once."""
        ids, exclude = _each_once(self.ids), _each_once(self.exclude)
        is_valid = ids != PADDING
        is_ranked = is_valid & ~_is_in(ids, exclude)
        relevance = np.where(is_valid, self.relevance, 0)
        return RelevantItems(ids, is_valid, is_ranked, relevance, exclude)


class RelevantItems(NamedTuple):
    """The relevant items of each query."""

    ids: np.ndarray  # [B, M] int64, the positions among the candidates
    is_valid: np.ndarray  # [B, M], False for padding and repeated ids
    is_ranked: np.ndarray  # [B, M], False also for excluded items
    relevance: np.ndarray  # [B, M]
    exclude: np.ndarray  # [B, E] int64, each once; -1 for padding

    def of(self, queries: np.ndarray) -> RelevantItems:
        """The items of some queries."""
        return RelevantItems(*(column[queries] for column in self))

    def by_column(self, columns: np.ndarray) -> RelevantItems:
        """The items of each query, reordered, `[B, M]`."""
        *items, exclude = self
        items = (np.take_along_axis(each, columns, axis=1) for each in items)
        return RelevantItems(*items, exclude)


def read_truth(relevant: Any, exclude: Any, candidate_ids: Any) -> Truth:
    """Checks these arguments of `evaluate_retrieval`."""
    ids, grades, excluded = from_dict(relevant, {"relevance", "exclude"})
    if excluded is not None and exclude is not None:
        raise ValueError(
            "`exclude` must be passed once. Received: the argument, and a key of "
            "`relevant`. Omit the key."
        )
    exclude = excluded if exclude is None else exclude
    given = _positions_of("`relevant`", ids, candidate_ids)
    relevance = None if grades is None else as_relevance(grades, given)
    if given.tensor.ndim not in (1, 2):
        raise ValueError(
            "`relevant` must hold ids [B] or [B, M]. Received: shape "
            f"{tuple(given.tensor.shape)}."
        )
    ids = given.tensor
    relevance = np.asarray(relevance_of(ids, relevance))
    require_finite_relevance(relevance)
    if ids.ndim == 1:
        ids, relevance = ids[:, np.newaxis], relevance[:, np.newaxis]
    if ids.shape[1] == 0:  # no query has a relevant item
        ids = np.full((len(ids), 1), PADDING, np.int64)
        relevance = np.zeros(ids.shape)
    return Truth(ids, relevance, _excluded(exclude, candidate_ids, len(ids)))


def no_truth(number: int, exclude: Any, candidate_ids: Any) -> Truth:
    """Queries without relevant items, for which only items to exclude are known."""
    none = np.full((number, 1), PADDING, np.int64)
    return Truth(none, np.zeros(none.shape), _excluded(exclude, candidate_ids, number))


def _excluded(exclude: Any, candidate_ids: Any, number: int) -> np.ndarray:
    """The positions of the items to exclude, `[B, E]`."""
    if exclude is None:
        return np.zeros((number, 0), np.int64)
    excluded = _positions_of("`exclude`", exclude, candidate_ids).tensor
    if excluded.ndim != 2:
        raise ValueError(
            f"`exclude` must hold ids [B, E]. Received: shape {excluded.shape}."
        )
    return excluded


def _each_once(ids: np.ndarray) -> np.ndarray:
    """Ids with -1 instead of an id that occurs earlier in its row."""
    order = np.argsort(ids, axis=1, kind="stable")
    ascending = np.take_along_axis(ids, order, axis=1)
    is_repeated = np.zeros(ids.shape, bool)
    is_repeated[:, 1:] = ascending[:, 1:] == ascending[:, :-1]
    once = ids.copy()
    np.put_along_axis(once, order, np.where(is_repeated, PADDING, ascending), axis=1)
    return once


def _is_in(ids: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Whether each id is among the others of its row."""
    return np.isin(_pairs(ids), _pairs(others)) & (ids != PADDING)


def _pairs(ids: np.ndarray) -> np.ndarray:
    """One number for each pair of a row and an id."""
    return np.arange(len(ids))[:, np.newaxis] + len(ids) * (ids + 1)


def _positions_of(name: str, data: Any, candidate_ids: Any) -> Dense:
    """The position of each id, padded with -1.

    Without `candidate_ids`, ids are positions already.
    """
    if candidate_ids is None:
        return _ids_of_arrays(name, data)
    integers, numbers = as_integer_ids(data, candidate_ids)
    given = _ids_of_arrays(name, integers)
    numbers = _ids_of_arrays("`candidate_ids`", numbers).tensor
    if numbers.ndim != 1:
        raise ValueError(
            "`candidate_ids` must hold one id for each candidate, [V]. Received: shape "
            f"{numbers.shape}."
        )
    order = np.argsort(numbers, kind="stable")
    ascending, ids = numbers[order], given.tensor
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
    return given._replace(tensor=positions)


def _ids_of_arrays(name: str, data: Any) -> Dense:
    """Ids as arrays of NumPy, whatever their container."""
    given = as_ids(name, data, library="numpy")
    lengths = given.row_lengths
    if lengths is not None:
        lengths = np.asarray(lengths)
    return given._replace(tensor=np.asarray(given.tensor), row_lengths=lengths)


def require_unique(candidate_ids: Any, number: int) -> None:
    """Raises ValueError unless there is one id for each candidate."""
    ids = np.asarray(candidate_ids)
    if ids.shape != (number,):
        raise ValueError(
            "`candidate_ids` must have an id for each candidate. Received: shape "
            f"{ids.shape} for {number} candidates."
        )
    unique, counts = np.unique(ids, return_counts=True)
    if len(unique) < number:
        raise ValueError(
            "`candidate_ids` must be unique. Received: "
            f"{shortened(unique[counts > 1][0].item())} twice or more."
        )
    if ids.dtype.kind in "iu" and ids.min(initial=0) < 0:
        raise ValueError(
            "`candidate_ids` must be at least 0, since -1 is padding. Received: "
            f"{ids.min()}."
        )
