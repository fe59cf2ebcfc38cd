"""Exact ranks among any number of candidates, in bounded memory, and their values.

The rank of a relevant item is one plus the number of candidates with a higher score.
This number, like the number of ties, adds up over chunks of the candidates. For
example, the limit of a relevant item is its score, 0.5, and the candidates score 0.9,
0.5 (the item itself), 0.5 and 0.7, of which the last one is excluded. One is above the
limit and two are tied with it: the rank is 2 or 3. The excluded candidate gets the
lowest score, which means that it was not retrieved.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.inputs.mistakes import Facts
from tfrankmetrics.inputs.model_inputs import rows_of
from tfrankmetrics.ranking.items import lowest_score
from tfrankmetrics.retrieval.candidates import Candidates, Chunk, Pairs, RelevantItems
from tfrankmetrics.retrieval.highest import NOTHING, Depth, Highest, HighestCandidates
from tfrankmetrics.retrieval.scores import (
    MOST_COMPARED,
    Scorer,
    elements,
    near_limits,
    of_pairs,
)


def rank_all(
    queries: Any,
    candidates: Candidates,
    relevant: RelevantItems,
    scorer: Scorer,
    batch_size: int,
    *,
    counts_tied_before: bool = False,
    depth: Depth = NOTHING,
    progress: Callable[[int], None] | None = None,
) -> tuple[Ranks, Highest]:
    """Counts the candidates that score above, or as high as, each relevant item.

    Also returns those with the highest scores, down to a depth if there is one.
    """
    # Queries with more relevant items first: those of a block are similar.
    by_number = np.argsort(-relevant.is_ranked.sum(axis=1), kind="stable")
    blocks = []
    for start in range(0, len(by_number), batch_size):
        rows = by_number[start : start + batch_size]
        inputs, items = rows_of(queries, rows), relevant.of(rows)
        of_all = candidates, scorer, counts_tied_before, depth
        blocks.append(Block(rows, inputs, items, *of_all))

    # The score of a relevant item in its chunk may differ from the limit in the last
    # bits. Then the block starts again with the score of the chunk as its limit, which
    # a second pass finds again.
    waiting = blocks
    for is_first_pass in (True, False):
        for chunk in candidates.chunks():
            for block in waiting:
                block.add(scorer.of_block(block.queries, chunk), chunk)
            if is_first_pass and progress is not None:
                progress(chunk.size)
        waiting = [block for block in waiting if block.starts_again()]
        if not waiting:
            ranks = Ranks.zeros(relevant.ids.shape, counts_tied_before)
            for block in blocks:
                block.finish(ranks)
            return ranks, Highest.joined([block.highest.complete() for block in blocks])
    raise ValueError(
        "A candidate must have the same score each time. Received: other scores for "
        "the same queries and candidates. `score` must not be random, and a dataset "
        "must return the candidates in the same order each time."
    )


class Ranks(NamedTuple):
    """The counts of each relevant item, `[B, M]`; see `RankCounts`."""

    retrieved: np.ndarray
    above: np.ndarray
    tied: np.ndarray
    tied_before: np.ndarray | None  # None if no metric needs it
    num_retrieved: np.ndarray  # [B]
    num_nan: np.ndarray  # [B], of these, the scores that are NaN

    @classmethod
    def zeros(cls, shape: tuple[int, ...], counts_tied_before: bool) -> Ranks:
        """The counts before any candidate."""
        above, tied, before = np.zeros((3, *shape), np.int64)
        num_retrieved, num_nan = np.zeros((2, shape[0]), np.int64)
        tied_before = before if counts_tied_before else None
        retrieved = np.zeros(shape, bool)
        return cls(retrieved, above, tied, tied_before, num_retrieved, num_nan)

    def facts(self) -> Facts:
        """How many scores there are, and how many of them are NaN."""
        return Facts({"scores": self.num_retrieved.sum(), "NaN": self.num_nan.sum()})


class Block:
    """Some queries, with the counts of their relevant items.

    The score of a relevant item, its limit, is computed before the chunks are read. If
    the chunk with the item yields a different score, which `_seen` holds, this block
    starts again with it. `add` counts the candidates of each chunk, and `finish` adds
    those of NaN.
    """

    def __init__(
        self,
        query_rows: np.ndarray,
        queries: Any,
        relevant: RelevantItems,
        candidates: Candidates,
        scorer: Scorer,
        counts_tied_before: bool,
        depth: Depth,
    ) -> None:
        """`query_rows` are the places of the queries among all."""
        # The columns down to the last one with a rank: other blocks may need more.
        used = np.flatnonzero(relevant.is_ranked.any(axis=0)).max(initial=0) + 1
        self._ids = relevant.ids[:, :used]
        self._is_ranked = relevant.is_ranked[:, :used]
        self.queries = queries
        self._query_rows = query_rows
        self._scorer = scorer
        self._counts_tied_before = counts_tied_before
        self._depth = depth
        self._num_candidates = candidates.number
        self._relevant = Pairs.of(self._ids, self._is_ranked)
        self._excluded = Pairs.of(relevant.exclude, relevant.exclude >= 0)
        scores = scorer.of_relevant(queries, self._relevant, candidates)
        padding = np.inf if scores.dtype.kind == "f" else np.iinfo(scores.dtype).max
        limits = np.full(self._ids.shape, padding, scores.dtype)
        limits[self._relevant.rows, self._relevant.columns] = scores
        self._start(limits)

    def _start(self, limits: np.ndarray) -> None:
        """Starts to count, for relevant items with these scores."""
        self._limits, self._seen = limits, limits.copy()
        zeros = np.zeros((3, *limits.shape), np.int64)
        self._above, self._tied, self._tied_before = zeros[0], zeros[1], zeros[2]
        self._num_nan = np.zeros(len(limits), np.int64)
        self._num_retrieved = np.full(len(limits), self._num_candidates, np.int64)
        self.highest = HighestCandidates(self._query_rows, self._depth)

    def add(self, scores: Array, chunk: Chunk) -> None:
        """Counts the candidates of a chunk, with the scores `[B, C]`."""
        with xp.computing_in(xp.library_of(scores)):
            rounding = self._scorer.rounding(self.queries, chunk.inputs)
            if rounding is not None:
                is_near = near_limits(scores, rounding, self._limits)
                scores = self._corrected(scores, is_near, chunk)
            self._note_scores_of_relevant(scores, chunk)
            is_finite = not xp.is_floating(scores) or xp.all(xp.isfinite(scores))
            if not is_finite:
                self._scorer.require_finite(self.queries, chunk.inputs, scores)
            excluded = self._excluded.within(chunk.start, chunk.size)
            scores = _without(excluded, scores, chunk.start)
            comparable = scores
            if not is_finite or len(excluded.rows):
                comparable = self._without_nan(scores)

            above, not_below = counts_above(comparable, self._limits)
            self._above += above
            self._tied += not_below - above
            if self._counts_tied_before:
                self._count_before(scores, chunk, not_below > above)
            if self._depth != NOTHING:
                exact = functools.partial(self._of_pairs, chunk)
                self.highest.add(scores, chunk.start, rounding, exact)

    def _corrected(self, scores: Array, is_near: Array, chunk: Chunk) -> Array:
        """Scores, with those of the two vectors alone where they are near a limit."""
        rows, places = np.nonzero(xp.to_numpy(is_near))
        corrected = np.array(xp.to_numpy(scores))
        corrected[rows, places] = self._of_pairs(chunk, rows, places)
        return xp.in_library(xp.library_of(scores), corrected, like=scores)

    def _of_pairs(
        self, chunk: Chunk, rows: np.ndarray, places: np.ndarray
    ) -> np.ndarray:
        """The scores of pairs of a query and a candidate, by its row in the chunk."""
        queries_at = functools.partial(rows_of, self.queries)
        candidates_at = functools.partial(rows_of, chunk.inputs)
        return of_pairs(queries_at, rows, candidates_at, places)

    def _note_scores_of_relevant(self, scores: Array, chunk: Chunk) -> None:
        """Notes the scores of the relevant items that are in a chunk."""
        pairs = rows, columns, ids = self._relevant.within(chunk.start, chunk.size)
        if len(rows):
            seen = elements(scores, rows, ids - chunk.start)
            self._scorer.require_same(
                self.queries, chunk, pairs, seen, self._limits[rows, columns]
            )
            self._seen[rows, columns] = seen

    def _without_nan(self, scores: Array) -> Array:
        """The scores, with -inf for NaN; counts NaN and what was not retrieved."""
        lowest = lowest_score(scores)
        missed = xp.count_nonzero(xp.equal(scores, lowest))
        self._num_retrieved -= _integers(missed)
        if not xp.is_floating(scores):
            return scores
        is_nan = xp.isnan(scores)
        self._num_nan += _integers(xp.count_nonzero(is_nan))
        return xp.select(~is_nan, scores, lowest)

    def _count_before(self, scores: Array, chunk: Chunk, has_ties: np.ndarray) -> None:
        """Counts the candidates that are tied with a relevant item and come first.

        Each score that is tied takes one pass over its row.
        """
        has_ties = has_ties | np.isnan(self._limits)  # comparisons found none of NaN
        rows = np.flatnonzero(has_ties.any(axis=1))
        chosen = xp.to_numpy(xp.take(scores, rows)) if len(rows) else ()
        for row, of_row in zip(rows, chosen, strict=True):
            limits = self._limits[row]
            for limit in np.unique(limits[has_ties[row]]):
                is_tied, has_limit = (
                    np.isnan(each) if np.isnan(limit) else each == limit
                    for each in (of_row, limits)
                )
                self._tied_before[row, has_limit] += np.searchsorted(
                    chunk.start + np.flatnonzero(is_tied), self._ids[row, has_limit]
                )

    def starts_again(self) -> bool:
        """Whether a score differed from its limit; then the counts are 0 again."""
        if np.array_equal(self._seen, self._limits, equal_nan=True):
            return False
        self._start(self._seen)
        return True

    def finish(self, ranks: Ranks) -> None:
        """Writes the counts into those of all queries: NaN ranks below every number."""
        rows, limits = self._query_rows, self._limits
        of_block = rows, slice(limits.shape[1])
        is_missed, is_nan = limits == lowest_score(limits), np.isnan(limits)
        num_nan = self._num_nan[:, np.newaxis]
        num_numbers = self._num_retrieved[:, np.newaxis] - num_nan
        ranks.retrieved[of_block] = self._is_ranked & ~is_missed
        ranks.above[of_block] = np.where(is_nan, num_numbers, self._above)
        ranks.tied[of_block] = np.where(is_nan, num_nan, self._tied)
        if ranks.tied_before is not None:
            ranks.tied_before[of_block] = self._tied_before
        ranks.num_retrieved[rows] = self._num_retrieved
        ranks.num_nan[rows] = self._num_nan


def counts_above(scores: Array, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many scores of each row are above each limit `[B, M]` and not below it."""
    number, library = limits.shape[1], xp.library_of(scores)
    if number <= MOST_COMPARED:
        limits = xp.in_library(library, limits, like=scores)
        single = [limits[:, column : column + 1] for column in range(number)]
        above, not_below = (
            [xp.count_nonzero(compare(scores, limit)) for limit in single]
            for compare in (operator.gt, operator.ge)
        )
        return _integers(xp.stack(above, 1)), _integers(xp.stack(not_below, 1))
    order = np.argsort(limits, axis=1)  # a search for ascending limits is faster
    ascending = np.take_along_axis(limits, order, axis=1)
    ascending, ordered = xp.in_library(library, ascending, like=scores), xp.sort(scores)
    back = np.argsort(order, axis=1)
    above, not_below = (
        scores.shape[1] - _integers(xp.searchsorted(ordered, ascending, side=side))
        for side in ("right", "left")
    )
    above, not_below = (
        np.take_along_axis(each, back, axis=1) for each in (above, not_below)
    )
    return above, not_below


def _without(excluded: Pairs, scores: Array, start: int) -> Array:
    """Scores, with the lowest one for the excluded candidates of a chunk."""
    if len(excluded.rows) == 0:
        return scores
    is_left = np.ones(tuple(scores.shape), bool)
    is_left[excluded.rows, excluded.ids - start] = False
    is_left = xp.in_library(xp.library_of(scores), is_left, like=scores)
    return xp.select(is_left, scores, np.array(lowest_score(scores)))


def _integers(numbers: Array) -> np.ndarray:
    return xp.to_numpy(numbers).astype(np.int64)
