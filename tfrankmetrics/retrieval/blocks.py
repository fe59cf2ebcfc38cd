"""Blocks of queries, with the counts of their relevant items among the candidates.

The score of a relevant item must come from the same product that scores the others. A
separate product may differ in its last bits, and the item would not even be tied with
itself. However, the chunk with the item may come last. Therefore, a first product, of
the relevant items alone, computes a threshold for each, which is nearly always
identical. If the chunk with the item yields different bits, all chunks are counted
again with the correct threshold.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array, Library
from tfrankmetrics.columns.values import from_pytorch
from tfrankmetrics.inputs.dense import as_scores
from tfrankmetrics.inputs.mistakes import ScoreCounts
from tfrankmetrics.inputs.structures import flattened
from tfrankmetrics.ranking.counts import FAR
from tfrankmetrics.ranking.ties import random_numbers
from tfrankmetrics.retrieval.chunks import MOST_ROUNDING, Candidates, Chunk
from tfrankmetrics.retrieval.comparing import compare
from tfrankmetrics.retrieval.inputs import padded, rows_of
from tfrankmetrics.retrieval.products import dot_product
from tfrankmetrics.retrieval.top import Precision, TopCandidates
from tfrankmetrics.retrieval.truth import RelevantItems

RELEVANT_AT_A_TIME = 2**12


class Order(NamedTuple):
    """An order of tied candidates: by position, or at random with a seed."""

    is_random: bool
    seed: int = 0


class Depth(NamedTuple):
    """The number of candidates of each query that must be returned."""

    depth: int | None  # None for all
    is_stable: bool  # whether the first of those tied at this depth are enough


class Needed(NamedTuple):
    """Which ranks metrics read. The counts of other relevant items are incomplete."""

    down_to: int  # all ranks down to this one
    first: bool  # and that of the first relevant item


class Ranks(NamedTuple):
    """The counts of each relevant item, `[B, M]`; see `RankCounts`.

    Those that are not needed are far below all others, and tied with none.
    """

    retrieved: np.ndarray
    above: np.ndarray
    tied: np.ndarray
    tied_before: dict[Order, np.ndarray]
    num_retrieved: np.ndarray  # [B]
    num_nan: np.ndarray  # [B], of these, the scores that are NaN

    def score_counts(self) -> ScoreCounts:
        """How many scores there are, and how many of them are NaN."""
        return ScoreCounts(int(self.num_retrieved.sum()), int(self.num_nan.sum()))


class Block:
    """Some queries, with the counts of their relevant items."""

    def __init__(
        self,
        inputs: Any,
        relevant: RelevantItems,
        numbers: np.ndarray,
        candidates: Candidates,
        score: Callable[[Any, Any], Any],
        orders: Iterable[Order],
        library: Library,
        depth: Depth | None = None,
        needed: Needed | None = None,
    ) -> None:
        self._inputs, self._score = inputs, score
        self._library: Library = library
        self._relevant, self._numbers, self._needed = relevant, numbers, needed
        self._own = Pairs(relevant.ids, relevant.is_ranked)
        self._excluded = Pairs(relevant.exclude, relevant.exclude >= 0)
        thresholds = self._first_thresholds(candidates)
        descending = -_of_ranked(relevant, thresholds)
        self._columns = np.argsort(descending, axis=1, kind="stable")
        self._relevant = relevant.by_column(self._columns)
        self._thresholds = np.take_along_axis(thresholds, self._columns, axis=1)
        self._own = Pairs(self._relevant.ids, self._relevant.is_ranked)
        self._scores = self._thresholds.copy()
        self._orders = tuple(orders)
        self.top = None
        if depth is not None:
            precision = self._precision(candidates)
            most_excluded = (relevant.exclude >= 0).sum(axis=1).max(initial=0)
            self.top = TopCandidates(
                len(numbers), *depth, most_excluded, candidates.number, precision
            )
        self._reset()

    def _precision(self, candidates: Any) -> Precision | None:
        """How scores are corrected; None, since they are exact."""

    def _reset(self) -> None:
        shape = self._relevant.ids.shape
        self._above, self._tied = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self._before = {order: np.zeros(shape, np.int64) for order in self._orders}
        # Of the candidates that are not excluded.
        self._num_nan = np.zeros(shape[0], np.int64)
        self._num_lowest = np.zeros(shape[0], np.int64)
        self._enough = self._enough_above()
        if self.top is not None:
            self.top.reset()

    def _enough_above(self) -> np.ndarray:
        """How many candidates above a relevant item make it not needed, `[B, M]`."""
        is_ranked = self._relevant.is_ranked
        enough = np.where(is_ranked, FAR, 0)
        if self._needed is None:
            return enough
        may_stop = is_ranked
        if self._needed.first:
            scores = _of_ranked(self._relevant, self._thresholds)
            highest = np.fmax.reduce(scores, axis=1, initial=-np.inf, keepdims=True)
            may_stop = is_ranked & (scores != highest)
        # Excluded candidates are counted first and subtracted later.
        num_excluded = (self._relevant.exclude >= 0).sum(axis=1, keepdims=True)
        return np.where(may_stop, self._needed.down_to + num_excluded, enough)

    def as_array(self, scores: Array, chunk: Chunk) -> np.ndarray:
        """Scores without padding."""
        return np.asarray(scores)[: len(self._relevant.ids), : chunk.size]

    def product(self, chunk: Chunk) -> Array:
        """The scores of some candidates, `[B, C]`, with padding."""
        rows = flattened(self._inputs)[0].shape[0]
        inputs = padded(chunk.inputs, self._library, chunk.width, not_to=rows)
        shape = rows, flattened(inputs)[0].shape[0]
        scores = from_pytorch(self._score(self._inputs, inputs))
        scores = xp.in_library(self._library, scores)
        if scores.shape != shape:
            raise ValueError(
                "`score` must return a score for each query and candidate, [B, C], "
                f"{shape} in this call (the last rows are repeated, to compute all in "
                f"the same way). Received: shape {tuple(scores.shape)}."
            )
        return as_scores(scores)

    def _compared(
        self, chunk: Chunk, scores: np.ndarray, pool: concurrent.futures.Executor
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """How many scores are above, and not below, each threshold; and the lowest."""
        look = None if self.top is None else self.top.look
        return compare(scores, self._thresholds, self._left(), pool, look=look)

    def _left(self) -> np.ndarray:
        """How many more candidates above a relevant item make it not needed."""
        return self._enough - self._above

    def _first_thresholds(self, candidates: Any) -> np.ndarray:
        """The score of each relevant item, from a separate product."""
        thresholds, own = np.zeros(self._relevant.ids.shape, np.float32), self._own
        unique, place = np.unique(own.ids, return_inverse=True)
        for start in range(0, len(unique), RELEVANT_AT_A_TIME):
            stop = start + RELEVANT_AT_A_TIME
            ids = unique[start:stop]
            chunk = Chunk(start, len(ids), candidates.at(ids), len(ids))
            scores = self.as_array(self.product(chunk), chunk)
            thresholds = thresholds.astype(scores.dtype, copy=False)
            here = (place >= start) & (place < stop)
            rows, columns = own.rows[here], own.columns[here]
            thresholds[rows, columns] = scores[rows, place[here] - start]
        return thresholds

    def add(
        self, chunk: Chunk, scores: np.ndarray, pool: concurrent.futures.Executor
    ) -> None:
        """Counts some candidates, with the scores `[B, C]`."""
        start, stop = chunk.start, chunk.start + chunk.size
        thresholds = self._thresholds
        above, not_below, lowest = self._compared(chunk, scores, pool)
        if not np.isfinite(lowest) or np.isinf(thresholds).any():
            self._refuse_overflow(chunk, scores)
        excluded, _, ids = self._excluded.within(start, stop)
        for counts, operation in ((above, np.greater), (not_below, np.greater_equal)):
            of_excluded = scores[excluded, ids - start][:, np.newaxis]
            is_counted = operation(of_excluded, thresholds[excluded])
            np.subtract.at(counts, excluded, is_counted.astype(np.int64))
        tied = not_below - above
        self._above += above
        self._tied += tied
        rows, columns, own = self._own.within(start, stop)
        self._scores[rows, columns] = scores[rows, own - start]
        self._require_scores_of_pairs(chunk, rows, columns, own - start)
        if not np.isfinite(lowest):
            self._count_special(start, scores)
        for order, before in self._before.items():
            self._count_before(order, before, start, scores, tied)
        if self.top is not None:
            self.top.add(start, (excluded, ids - start), chunk.size)

    def _refuse_overflow(self, chunk: Chunk, scores: np.ndarray) -> None:
        """Raises ValueError for a product of finite vectors that is not finite.

        As -inf it would mean that the candidate was not retrieved.
        """
        if self._score is not dot_product:
            return
        vectors: Any = [
            np.asarray(each, np.float64) for each in (self._inputs, chunk.inputs)
        ]
        finite_rows, finite_columns = (np.isfinite(e).all(axis=1) for e in vectors)
        rows, columns = np.nonzero(~np.isfinite(scores))
        bad = finite_rows[rows] & finite_columns[columns]
        if bad.any():
            names = {str(each.dtype.name) for each in (self._inputs, chunk.inputs)}
            raise ValueError(
                "The dot products of finite vectors must be finite. Received: vectors "
                f"of {' and '.join(sorted(names))}, and a product that overflows. Cast "
                "them to a wider dtype, such as float32 for float16, or scale them."
            )

    def _count_special(self, start: int, scores: np.ndarray) -> None:
        """Counts NaN and -inf, which a comparison ignores."""
        excluded, _, ids = self._excluded.within(start, start + scores.shape[1])
        for counts, special in (
            (self._num_nan, np.isnan(scores)),
            (self._num_lowest, np.isneginf(scores)),
        ):
            special[excluded, ids - start] = False
            counts += special.sum(axis=1)

    def _count_before(
        self,
        order: Order,
        before: np.ndarray,
        start: int,
        scores: np.ndarray,
        tied: np.ndarray,
    ) -> None:
        """Counts the candidates that are tied with a relevant item and come first."""
        excluded, _, ids = self._excluded.within(start, start + scores.shape[1])
        is_excluded = np.zeros(scores.shape, bool)
        is_excluded[excluded, ids - start] = True
        has_ties = (self._left() > 0) & ((tied > 0) | np.isnan(self._thresholds))
        for row, column in zip(*np.nonzero(has_ties), strict=True):
            threshold, own = (
                each[row, column] for each in (self._thresholds, self._relevant.ids)
            )
            is_tied = scores[row] == threshold
            if np.isnan(threshold):
                is_tied = np.isnan(scores[row])
            others = start + np.flatnonzero(is_tied & ~is_excluded[row])
            is_before = others < own
            if order.is_random:
                query, items = self._numbers[[row]], np.append(others, own)
                numbers = random_numbers(order.seed, query, items)
                limit = numbers[-1]
                is_before &= numbers[:-1] == limit
                is_before |= numbers[:-1] < limit
            before[row, column] += np.count_nonzero(is_before)

    def start_again(self) -> bool:
        """Whether a score differed from its threshold; then all counts start again."""
        if np.array_equal(self._scores, self._thresholds, equal_nan=True):
            return False
        self._thresholds = self._scores.copy()
        self._reset()
        return True

    def _require_scores_of_pairs(
        self, chunk: Chunk, rows: np.ndarray, columns: np.ndarray, places: np.ndarray
    ) -> None:
        """Raises ValueError if scores depend on more than a query and a candidate.

        A score may differ from its threshold by rounding, which is a large part of a
        score whose terms cancel, such as the distance of an item from itself.
        Therefore, if the difference is large, the candidate is scored again, among
        copies of itself.
        """
        scores, thresholds = (
            np.nan_to_num(each[rows, columns].astype(np.float64), posinf=0, neginf=0)
            for each in (self._scores, self._thresholds)
        )
        differences = np.abs(scores - thresholds)
        if differences.max(initial=0) <= MOST_ROUNDING * np.abs(thresholds).max(
            initial=0
        ):
            return
        worst = differences.argmax()
        copies = rows_of(chunk.inputs, np.full(chunk.size, places[worst]))
        again = self.as_array(self.product(chunk._replace(inputs=copies)), chunk)
        difference = np.abs(again[rows[worst]].astype(np.float64) - scores[worst])
        if not (difference <= MOST_ROUNDING * np.abs(scores[worst])).all():
            raise ValueError(
                "A candidate must have the same score each time, whatever the other "
                f"candidates are. Received: {thresholds[worst]:.6g} and then "
                f"{scores[worst]:.6g} for the same query and candidate. `score` must "
                "not be random, and must not read other rows, as a softmax over the "
                "candidates does."
            )

    def ranks(self, num_candidates: int) -> Ranks:
        """The counts of all candidates."""
        num_left = num_candidates - (self._relevant.exclude >= 0).sum(axis=1)
        num_retrieved = num_left - self._num_lowest
        num_numbers = (num_retrieved - self._num_nan)[:, np.newaxis]
        is_nan = np.isnan(self._scores)
        above = np.where(is_nan, num_numbers, self._above)
        tied = np.where(is_nan, self._num_nan[:, np.newaxis], self._tied)
        # Excluded candidates were subtracted from counts that ended early.
        num_excluded = num_candidates - num_left[:, np.newaxis]
        is_needed = is_nan | (self._above < self._enough - num_excluded)
        above, tied = np.where(is_needed, above, FAR), np.where(is_needed, tied, 1)
        retrieved = self._relevant.is_ranked & ~np.isneginf(self._scores)
        columns = np.argsort(self._columns, axis=1)  # as they were given
        retrieved, above, tied, *of_orders = (
            np.take_along_axis(each, columns, axis=1)
            for each in (retrieved, above, tied, *self._before.values())
        )
        before = dict(zip(self._before, of_orders, strict=True))
        return Ranks(retrieved, above, tied, before, num_retrieved, self._num_nan)


def _of_ranked(relevant: RelevantItems, scores: np.ndarray) -> np.ndarray:
    """The scores of relevant items with a rank; NaN for the others, `[B, M]`."""
    return np.where(relevant.is_ranked, scores.astype(np.float64), np.nan)


class Pairs:
    """Pairs of a query and a candidate, sorted by the candidate."""

    def __init__(self, ids: np.ndarray, exists: np.ndarray) -> None:
        rows, columns = np.nonzero(exists)
        order = np.argsort(ids[rows, columns], kind="stable")
        self.rows, self.columns = rows[order], columns[order]
        self.ids = ids[self.rows, self.columns]

    def within(
        self, start: int, stop: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The queries, columns and candidates of the pairs from `start` to `stop`."""
        first, end = np.searchsorted(self.ids, [start, stop])
        return self.rows[first:end], self.columns[first:end], self.ids[first:end]
