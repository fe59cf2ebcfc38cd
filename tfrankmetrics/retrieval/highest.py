"""The candidates with the highest scores of each query, which come in chunks.

Metrics of recommended items read them, and so do `retrieve` and `explain_retrieval`. If
candidates are tied at the deepest cutoff, metrics require all of these, unless
ties="stable".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.evaluation.rows_by_query import Queries
from tfrankmetrics.ranking.items import lowest_score
from tfrankmetrics.retrieval.scores import elements

# The size of the sample of the first chunk that sets the first limit: at least, and for
# each candidate that is needed. A smaller sample lets more candidates through, which
# NumPy has to sort. With scores on a GPU, this takes five times as long.
LOOKED_AT, LOOKED_AT_FOR_EACH = 2**12, 2**8
# How many candidates are kept for the queries of a block, tied ones included.
MOST_KEPT = 2**26


class Depth(NamedTuple):
    """The number of candidates of each query that must be returned."""

    number: int | None  # None for all
    is_stable: bool  # whether the first of those tied at this depth are enough


NOTHING = Depth(0, True)


class Highest(NamedTuple):
    """Some candidates of each query; when complete, by query and highest score."""

    rows: np.ndarray
    ids: np.ndarray
    scores: np.ndarray

    @classmethod
    def joined(cls, parts: Sequence[Highest]) -> Highest:
        """Those of blocks of queries, by query."""
        every = cls(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        order = np.argsort(every.rows, kind="stable")
        return cls(*(each[order] for each in every))

    def queries(self, number: int) -> Queries:
        """Where the candidates of each query are, if the rows are ascending."""
        lengths = np.bincount(self.rows, minlength=number)
        return Queries(None, np.cumsum(lengths) - lengths, lengths)


class HighestCandidates:
    """Keeps the candidates of some queries down to a depth, and those tied there."""

    def __init__(self, queries: np.ndarray, depth: Depth) -> None:
        self._queries, self._depth = queries, depth
        none = np.zeros(0, np.int64)
        self._kept = Highest(none, none, np.zeros(0))
        self._new: list[Highest] = []
        self._num_new = 0
        # A candidate is needed if its score reaches the limit of its query. NaN, which
        # reaches none, is needed as long as there are fewer candidates than the depth,
        # and if it is tied there.
        self._limits: np.ndarray | None = None
        self._takes_nan = np.ones(len(queries), bool)

    def add(
        self,
        scores: Array,
        start: int,
        rounding: Array | None,
        exact: Callable[[np.ndarray, np.ndarray], np.ndarray],
    ) -> None:
        """Adds the candidates of a chunk that may be needed.

        Args:
            scores: `[B, C]`, the lowest one for excluded candidates.
            start: The first candidate of the chunk.
            rounding: How far scores may be from the exact ones, `[B, C]`; None if all
                are exact.
            exact: From rows and columns to the exact scores, if some are not.
        """
        library = xp.library_of(scores)
        low, high = scores, scores
        if rounding is not None:
            low, high = scores - rounding, scores + rounding
        if self._limits is None:
            self._limits = self._first_limits(low)
        is_needed = high >= xp.in_library(
            library, self._limits[:, np.newaxis], like=scores
        )
        if xp.is_floating(scores) and self._takes_nan.any():
            takes_nan = xp.in_library(
                library, self._takes_nan[:, np.newaxis], like=scores
            )
            is_needed |= xp.isnan(scores) & takes_nan
        places = xp.to_numpy(xp.flatnonzero(is_needed))
        rows, columns = np.divmod(places, scores.shape[1])
        needed = elements(scores, rows, columns)
        is_retrieved = needed != lowest_score(needed)
        rows, columns, needed = (e[is_retrieved] for e in (rows, columns, needed))
        if rounding is not None:
            needed = exact(rows, columns)
        self._new.append(Highest(rows, start + columns, needed))
        self._num_new += len(rows)
        # At least as many are new as were kept: all sorts together sort each candidate
        # about twice.
        if self._num_new > len(self._kept.rows):
            self._merge()

    def complete(self) -> Highest:
        """The needed candidates, with the numbers of their queries."""
        self._merge()
        return self._kept._replace(rows=self._queries[self._kept.rows])

    def _first_limits(self, scores: Array) -> np.ndarray:
        """A score reached by as many candidates of the chunk as are needed, `[B]`.

        Some candidates are enough for a low score, which the next chunks raise.
        """
        number = self._depth.number
        lowest = np.array(lowest_score(scores), xp.dtype_of(scores))
        if number is None or number > scores.shape[1]:
            return np.full(len(self._queries), lowest)
        some = scores[:, : max(LOOKED_AT, LOOKED_AT_FOR_EACH * number)]
        if xp.is_floating(some):
            some = xp.select(~xp.isnan(some), some, lowest)
        limits = xp.to_numpy(xp.top_k(some, number)[0])[:, -1]
        self._takes_nan = limits == lowest  # the sample has too few numbers
        return limits

    def _merge(self) -> None:
        """Keeps those that are needed of the old and the new candidates, in order."""
        if not self._new:
            return
        if len(self._kept.rows) == 0:
            dtype = self._new[0].scores.dtype
            self._kept = self._kept._replace(scores=self._kept.scores.astype(dtype))
        parts = [self._kept, *self._new]
        every = Highest(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        self._new, self._num_new = [], 0
        # Of equal scores, the first candidate comes first: `lexsort` is stable.
        is_nan = np.isnan(every.scores)
        order = np.lexsort((-np.where(is_nan, 0, every.scores), is_nan, every.rows))
        every = Highest(*(each[order] for each in every))
        if self._depth.number is not None and len(order):
            every = self._cut(every, self._depth.number)
        self._kept = every
        if len(every.rows) > MOST_KEPT:
            raise ValueError(
                "The highest candidates of a block of queries, and those tied at the "
                f"cutoff, are kept in memory. Received: {len(every.rows):,} for "
                f"{len(self._queries)} queries, as for a deep cutoff or a model whose "
                "scores are all equal. Pass a smaller cutoff or `batch_size`; or, if "
                "candidates are tied, ties='stable'."
            )

    def _cut(self, every: Highest, depth: int) -> Highest:
        """The first candidates of each query; finds the limits of those to come.

        `last` is the score at the depth, for queries with as many candidates.
        """
        queries = every.queries(len(self._queries))
        starts, is_full = queries.starts, queries.lengths >= depth
        last = every.scores[np.where(is_full, starts + depth - 1, 0)]
        is_nan = np.isnan(last)
        lowest = lowest_score(last)
        is_kept = np.arange(len(every.rows)) - starts[every.rows] < depth
        limits = last
        if self._depth.is_stable:  # a later candidate must have a higher score
            limits = last + 1 if last.dtype.kind == "i" else np.nextafter(last, np.inf)
        else:
            of_row = last[every.rows]
            are_nan = np.isnan(every.scores) & np.isnan(of_row)
            is_kept |= ((every.scores == of_row) | are_nan) & is_full[every.rows]
        self._limits = np.where(is_full & ~is_nan, limits, lowest).astype(last.dtype)
        self._takes_nan = ~is_full | (is_nan & (not self._depth.is_stable))
        return Highest(*(each[is_kept] for each in every))
