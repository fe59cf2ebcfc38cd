"""The candidates with the highest scores of each query, which come in chunks.

Metrics of recommended items read them. Under ties they require all candidates that are
tied at the deepest cutoff; therefore, all of these are kept.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from tfrankmetrics.engine.calls import call_compiled
from tfrankmetrics.engine.items import ExposureSums
from tfrankmetrics.engine.measure import Measure
from tfrankmetrics.engine.values import ELEMENTS_IN_CACHE, parts_of, values_and_weights
from tfrankmetrics.inputs.labels import LabelLists, lists_of_arrays
from tfrankmetrics.ranking.items import lowest_score
from tfrankmetrics.retrieval.comparing import not_below_limits

# How many candidates of the first chunk are compared to find a first limit, at least
# and for each that is needed.
LOOKED_AT, LOOKED_AT_FOR_EACH = 2**14, 2**9
# In how many parts: enough for a good limit, and for NumPy to compare long rows.
PARTS, PARTS_FOR_EACH = 2**8, 4
# How many tied candidates are kept for the queries of a block.
MOST_KEPT = 2**26


class Top(NamedTuple):
    """Some candidates of each query, by query, the highest score first."""

    rows: np.ndarray
    ids: np.ndarray
    scores: np.ndarray


class Precision(NamedTuple):
    """How the scores of a product are corrected, if their last bits may be wrong."""

    # From some rows and a score for each to the lowest score that rounding may make of
    # a score above it.
    lowered: Callable[[slice, np.ndarray], np.ndarray]
    # From rows and ids to the correct scores.
    correct: Callable[[np.ndarray, np.ndarray], np.ndarray]


class TopCandidates:
    """The candidates of some queries down to a depth, with all ties at that depth.

    Args:
        num_queries: B.
        depth: How many candidates of each query are needed; None for all.
        is_stable: Whether the first of tied candidates are enough.
        most_excluded: How many candidates are excluded for a query, at most.
        num_candidates: V.
        precision: How scores are corrected; None if they are correct.
    """

    def __init__(
        self,
        num_queries: int,
        depth: int | None,
        is_stable: bool,
        most_excluded: int,
        num_candidates: int,
        precision: Precision | None,
    ) -> None:
        self._num_queries, self._depth = num_queries, depth
        self._num_candidates = num_candidates
        self._most_excluded = most_excluded
        self._found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._is_stable, self._precision = is_stable, precision
        self.reset()

    def reset(self) -> None:
        """Discards all candidates."""
        none = np.zeros(0, np.int64)
        self._kept = Top(none, none, np.zeros(0))
        # The lowest score of a needed candidate of each query, once it is known.
        self._lower: np.ndarray | None = None

    def look(self, rows: slice, scores: np.ndarray, lowest: float) -> None:
        """Records which candidates of a chunk may be needed, for some rows `[R, C]`.

        Threads call it while they have these scores in their cache. The lowest of the
        scores is NaN if any score is.
        """
        numbers = _nan_as_number(scores) if np.isnan(lowest) else scores
        if self._lower is None:
            lower = self._lowered(rows, self._reached_in(numbers))
        else:
            lower = self._lower[rows]
        found, columns = not_below_limits(numbers, lower)
        own = scores[found, columns]
        self._found.append((rows.start + found, columns, own))

    def add(
        self, start: int, excluded: tuple[np.ndarray, np.ndarray], width: int
    ) -> None:
        """Adds the candidates of a chunk that may be needed, except excluded ones.

        The others are discarded, except in the last chunk, where `kept` discards them,
        unless they may be many that are tied.

        Args:
            start: The first candidate of the chunk.
            excluded: Rows and columns.
            width: The number of candidates.
        """
        rows, columns, own = map(np.concatenate, zip(*self._found, strict=True))
        self._found.clear()
        is_left = own != lowest_score(own)  # the others are not retrieved
        excluded_places = excluded[0] * width + excluded[1]
        is_left &= ~np.isin(rows * width + columns, excluded_places)
        rows, columns, own = rows[is_left], columns[is_left], own[is_left]
        if len(self._kept.rows) == 0:
            self._kept = self._kept._replace(scores=self._kept.scores.astype(own.dtype))
        new = Top(rows, start + columns, own)
        self._kept = Top(*map(np.concatenate, zip(self._kept, new, strict=True)))
        is_exact = self._precision is None
        is_last = start + width == self._num_candidates
        if not is_last or (is_exact and self._is_stable):
            self._kept = self._needed(self._kept, is_exact=is_exact)

    def kept(self) -> Top:
        """The needed candidates."""
        kept = self._kept
        if self._precision is not None and len(kept.rows):
            scores = self._precision.correct(kept.rows, kept.ids)
            kept = kept._replace(scores=scores)
        return self._needed(kept, is_exact=True)

    def _lowered(self, rows: slice, scores: np.ndarray) -> np.ndarray:
        if self._precision is None:
            return scores
        return self._precision.lowered(rows, scores)

    def _reached_in(self, scores: np.ndarray) -> np.ndarray:
        """A score reached by as many candidates of the chunk as are needed, `[B]`.

        Each part of a row has a maximum. If n of these reach a score, at least n
        candidates do. With several times as many parts, the score is not much too low.
        Some candidates are enough for a low score, which the next chunks raise.
        """
        needed = None if self._depth is None else self._depth + self._most_excluded
        if needed is None or needed > scores.shape[1]:
            return np.full(len(scores), lowest_score(scores), scores.dtype)
        number = min(scores.shape[1], max(LOOKED_AT, LOOKED_AT_FOR_EACH * needed))
        length = max(1, number // max(PARTS, PARTS_FOR_EACH * needed))
        num_parts = number // length
        # Elements of a part are not adjacent, so that whole rows of numbers are
        # compared.
        parts = scores[:, : num_parts * length].reshape(-1, length, num_parts)
        at = num_parts - needed
        return np.partition(parts.max(axis=1), at, axis=1)[:, at]

    def _needed(self, every: Top, *, is_exact: bool) -> Top:
        """Those of some candidates that are needed, or may be if scores are wrong.

        Candidates with the same score must be in the order of their ids. The result has
        the highest score first if all scores are correct; otherwise, the given order.
        """
        is_nan = np.isnan(every.scores)  # which ranks below every number
        numbers = _nan_as_number(every.scores) if is_nan.any() else every.scores
        rows = every.rows.astype(np.min_scalar_type(self._num_queries))  # sorted faster
        order = np.lexsort((-numbers, is_nan, rows))
        is_kept = np.ones(len(order), bool)
        if self._depth is not None and len(order):
            lengths = np.bincount(every.rows, minlength=self._num_queries)
            starts = np.cumsum(lengths) - lengths
            is_full = lengths >= self._depth
            last = order[np.where(is_full, starts + self._depth - 1, 0)]
            reached = np.where(is_full, numbers[last], lowest_score(numbers))
            reached = reached.astype(numbers.dtype)
            takes_nan = (~is_full | is_nan[last])[every.rows]
            if not is_exact:
                reached = self._lowered(slice(0, self._num_queries), reached)
            self._lower = reached
            is_kept = (numbers >= reached[every.rows]) & (takes_nan | ~is_nan)
            if self._is_stable and is_exact:
                places = np.arange(len(order)) - starts[every.rows[order]]
                is_kept[order] = places < self._depth
        kept = order[is_kept[order]] if is_exact else is_kept
        every = Top(*(each[kept] for each in every))
        if len(every.rows) > MOST_KEPT:
            raise ValueError(
                "Metrics of recommended items read all candidates that are tied at the "
                f"cutoff. Received: more than {len(every.rows):,} for "
                f"{self._num_queries} queries, as of a model whose scores are all "
                "equal. Pass ties='stable', or a smaller `batch_size`."
            )
        return every


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
