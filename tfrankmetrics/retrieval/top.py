"""The candidates with the highest scores of each query, which come in chunks.

Metrics of recommended items read them. Under ties they need all candidates that are
tied at the deepest cutoff, and so all of these are kept.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from tfrankmetrics.engine.calls import call_compiled
from tfrankmetrics.engine.items import ExposureSums
from tfrankmetrics.engine.measure import Measure
from tfrankmetrics.engine.values import ELEMENTS_IN_CACHE, parts_of, values_and_weights
from tfrankmetrics.inputs.labels import LabelLists, lists_of_arrays
from tfrankmetrics.ranking.items import lowest_score

# The length of the parts of a row whose maxima are compared.
PART = 64
# How many tied candidates are kept for the queries of a block.
MOST_KEPT = 2**26


class Top(NamedTuple):
    """Some candidates of each query, by query, the highest score first."""

    rows: np.ndarray
    ids: np.ndarray
    scores: np.ndarray


class Precision(NamedTuple):
    """How the scores of a product are corrected, if their last bits may be wrong."""

    # From scores `[B]` to the lowest ones that rounding may make of higher scores.
    lowered: Callable[[np.ndarray], np.ndarray]
    # From rows and ids to the correct scores.
    correct: Callable[[np.ndarray, np.ndarray], np.ndarray]


class TopCandidates:
    """The candidates of some queries down to a depth, with all that are tied there.

    Args:
        num_queries: B.
        depth: How many candidates of each query are needed; None for all.
        is_stable: Whether the first of tied candidates are enough.
        precision: How scores are corrected; None if they are correct.
    """

    def __init__(
        self,
        num_queries: int,
        depth: int | None,
        is_stable: bool,
        precision: Precision | None,
    ) -> None:
        self._num_queries, self._depth = num_queries, depth
        self._is_stable, self._precision = is_stable, precision
        self.reset()

    def reset(self) -> None:
        """Forgets all candidates."""
        none = np.zeros(0, np.int64)
        self.kept = Top(none, none, np.zeros(0))
        # The score that as many candidates as are needed reach, or the lowest one.
        self._reached: np.ndarray | None = None

    def add(
        self,
        start: int,
        scores: np.ndarray,
        excluded: tuple[np.ndarray, np.ndarray],
        pool: concurrent.futures.Executor,
    ) -> None:
        """Adds a chunk of candidates, `[B, C]`; `excluded` are rows and columns."""
        if scores.dtype.kind == "f" and np.isnan(scores).any():
            scores = _nan_as_number(scores)
        most_excluded = np.bincount(excluded[0], minlength=1).max()
        step = -(-len(scores) // (os.cpu_count() or 1))
        pieces = [slice(at, at + step) for at in range(0, len(scores), step)]
        found = pool.map(lambda r: self._found(r, scores[r], most_excluded), pieces)
        rows, columns = (np.concatenate(each) for each in zip(*found, strict=True))
        width = scores.shape[1]
        is_excluded = np.isin(rows * width + columns, excluded[0] * width + excluded[1])
        rows, columns = rows[~is_excluded], columns[~is_excluded]
        own = scores[rows, columns]
        if self._precision is not None and len(rows):
            own = self._precision.correct(rows, start + columns)
            own = _nan_as_number(own) if own.dtype.kind == "f" else own
        self._keep(Top(rows, start + columns, own))

    def _found(
        self, rows: slice, scores: np.ndarray, most_excluded: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """The candidates that may be needed: their rows and columns."""
        lower = self._reached_in(scores, most_excluded)
        if self._reached is not None:
            lower = np.maximum(lower, self._reached[rows].astype(lower.dtype))
        if self._precision is not None:
            every = np.full(self._num_queries, lowest_score(scores), lower.dtype)
            every[rows] = lower
            lower = self._precision.lowered(every)[rows]
        is_found = scores >= lower[:, np.newaxis]
        is_found &= scores != lowest_score(scores)  # those are not retrieved
        found, columns = np.divmod(np.flatnonzero(is_found), scores.shape[1])
        return rows.start + found, columns

    def _reached_in(self, scores: np.ndarray, most_excluded: int) -> np.ndarray:
        """A score that as many candidates of the chunk reach as are needed, `[B]`.

        Each part of a row has a maximum. If n of these reach a score, at least n
        candidates do.
        """
        num_parts = scores.shape[1] // PART
        needed = None if self._depth is None else self._depth + most_excluded
        if needed is None or needed > num_parts:
            return np.full(len(scores), lowest_score(scores), scores.dtype)
        parts = scores[:, : num_parts * PART].reshape(len(scores), num_parts, PART)
        at = num_parts - needed
        return np.partition(parts.max(axis=2), at, axis=1)[:, at]

    def _keep(self, new: Top) -> None:
        """Keeps what is needed of the candidates so far and of new ones."""
        rows, ids, scores = map(np.concatenate, zip(self.kept, new, strict=True))
        if len(self.kept.rows) == 0:
            scores = new.scores  # of their dtype
        order = np.lexsort((ids, -scores, rows))
        rows, ids, scores = rows[order], ids[order], scores[order]
        numbers = np.bincount(rows, minlength=self._num_queries)
        starts = np.cumsum(numbers) - numbers
        if self._depth is not None:
            is_full = numbers >= self._depth
            last = scores[np.where(is_full, starts + self._depth - 1, 0)]
            reached = np.where(is_full, last, lowest_score(scores))
            is_kept = scores >= reached[rows]
            if self._is_stable:
                is_kept = np.arange(len(rows)) - starts[rows] < self._depth
            rows, ids, scores = rows[is_kept], ids[is_kept], scores[is_kept]
            self._reached = reached.astype(scores.dtype)
        if len(rows) > MOST_KEPT:
            raise ValueError(
                "Metrics of recommended items read all candidates that are tied at the "
                f"cutoff. Received: more than {len(rows):,} for {self._num_queries} "
                "queries, as of a model whose scores are all equal. Pass "
                "ties='stable', or a smaller `batch_size`."
            )
        self.kept = Top(rows, ids, scores)


def _nan_as_number(scores: np.ndarray) -> np.ndarray:
    """Scores with the lowest number for NaN, which ranks below every number."""
    return np.where(np.isnan(scores), np.finfo(scores.dtype).min, scores)


def values_of_items(
    named: Mapping[str, Measure],
    top: Top,
    num_queries: int,
    query_weights: np.ndarray | None,
    sums: ExposureSums,
) -> tuple[np.ndarray, np.ndarray]:
    """Values and weights of metrics of recommended items, `[metrics, B]`.

    Adds the exposure of the items to `sums`.
    """
    values, weights = np.zeros((2, len(named), num_queries))
    numbers = np.bincount(top.rows, minlength=num_queries)
    starts = np.cumsum(numbers) - numbers
    measures = tuple(named.values())
    first = 0
    for part in parts_of(np.arange(num_queries), numbers, ELEMENTS_IN_CACHE):
        lists = _lists(top, starts[part], numbers[part])
        if query_weights is not None:
            of_part = query_weights[part]
            lists = dataclasses.replace(lists, query_weights=of_part)
        found = call_compiled(values_and_weights, measures, lists, first)
        values[:, part], weights[:, part] = found
        sums.add(lists, part, first)
        first += len(part)
    return values, weights


def _lists(top: Top, starts: np.ndarray, numbers: np.ndarray) -> LabelLists:
    """The candidates of some queries as lists."""
    positions = np.arange(numbers.max(initial=1))
    exists = positions < numbers[:, np.newaxis]
    at = np.where(exists, starts[:, np.newaxis] + positions, 0)
    if not len(top.rows):
        at, top = np.zeros_like(at), Top(at[0], at[0], np.zeros(at.shape[1]))
    lists = lists_of_arrays(np.zeros(exists.shape), top.scores[at], exists)
    return dataclasses.replace(lists, item_ids=top.ids[at])
