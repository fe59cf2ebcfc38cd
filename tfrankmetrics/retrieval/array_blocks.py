"""Blocks of queries whose embeddings are NumPy arrays, with scores computed by NumPy.

The library that multiplies matrices for NumPy adds up the terms of a score in an order
that depends on the place in the matrix, on the processor and on the threads. As a
result, scores of equal vectors may differ in their last bits, and copies of a candidate
would not be tied. However, the last bits only matter for a score near that of a
relevant item. Therefore such a score, and that of the relevant item, are computed
again, from the two vectors alone.
"""

from __future__ import annotations

import concurrent.futures
import functools
from typing import Any

import numpy as np

from tfrankmetrics.arrays.numpy import quiet
from tfrankmetrics.retrieval.blocks import Block
from tfrankmetrics.retrieval.chunks import Chunk
from tfrankmetrics.retrieval.comparing import Near, compare
from tfrankmetrics.retrieval.products import (
    Memory,
    Rounding,
    dot_product,
    dot_products_of_pairs,
    product_of_arrays,
)
from tfrankmetrics.retrieval.top import Precision

TERMS_AT_A_TIME = 2**17  # of pairs of vectors, so that they fit into the cache

# Longer vectors are multiplied faster by the library behind NumPy, whose idle threads
# slow down the count, however, which takes longer for many relevant items.
LONGEST_IN_TILES, LONGEST_IF_MANY, MANY_RELEVANT = 64, 128, 8


class ArrayBlock(Block):
    """Some queries as an array of vectors, with the counts of their relevant items."""

    def __init__(
        self,
        *arguments: Any,
        memory: Memory,
        pool: concurrent.futures.Executor,
        **options: Any,
    ) -> None:
        self._memory, self._pool = memory, pool  # that all blocks share
        super().__init__(*arguments, **options)

    def product(self, chunk: Chunk) -> np.ndarray:
        """The scores of some candidates, `[B, C]`, whose last bits may be wrong."""
        number = self._relevant.is_ranked[0].sum()
        are_many = self._needed is None and number >= MANY_RELEVANT
        longest = LONGEST_IF_MANY if are_many else LONGEST_IN_TILES
        pool = self._pool if self._inputs.shape[1] <= longest else None
        return product_of_arrays(self._inputs, chunk.inputs, self._memory, pool)

    def _first_thresholds(self, candidates: Any) -> np.ndarray:
        """The score of each relevant item."""
        own, vectors = self._own, candidates.inputs
        thresholds = dot_product(self._inputs, vectors[:1])  # for the dtype and errors
        thresholds = np.zeros(self._relevant.ids.shape, thresholds.dtype)
        thresholds[own.rows, own.columns] = self._of_pairs(own.rows, vectors, own.ids)
        self._rounding = Rounding(self._inputs, candidates)
        return thresholds

    @functools.cached_property
    def _limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and highest scores that rounding may make of the thresholds."""
        return _within_rounding(self._thresholds, self._rounding.most(self._thresholds))

    def _precision(self, candidates: Any) -> Precision | None:
        """How the scores of the product are corrected; None if they are exact."""
        if self._rounding.is_exact:
            return None

        def lowered(rows: slice, scores: np.ndarray) -> np.ndarray:
            scores = scores[:, np.newaxis]
            # Both the score that is compared and the one that it must reach are wrong.
            most = 2 * self._rounding.most(scores, rows)
            with quiet():  # the lowest number has none below it
                return _within_rounding(scores, most)[0][:, 0]

        def correct(rows: np.ndarray, ids: np.ndarray) -> np.ndarray:
            return self._of_pairs(rows, candidates.inputs, ids)

        return Precision(lowered, correct)

    def _of_pairs(
        self, rows: np.ndarray, vectors: np.ndarray, ids: np.ndarray
    ) -> np.ndarray:
        """The score of each pair of a query and a vector."""

        def products(start: int) -> np.ndarray:
            some = slice(start, start + step)
            queries = self._inputs.take(rows[some], axis=0)
            return dot_products_of_pairs(queries, vectors.take(ids[some], axis=0))

        step = max(1, TERMS_AT_A_TIME // max(1, vectors.shape[1]))
        return np.concatenate([*map(products, range(0, max(1, len(ids)), step))])

    def _compared(
        self, chunk: Chunk, scores: np.ndarray, pool: concurrent.futures.Executor
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """How many scores are above, and not below, each threshold; and the lowest.

        Corrects the scores that are near a threshold.
        """

        def correct(rows: np.ndarray, places: np.ndarray) -> np.ndarray:
            return self._of_pairs(rows, chunk.inputs, places)

        def is_unsure(
            rows: np.ndarray, columns: np.ndarray, places: np.ndarray
        ) -> np.ndarray:
            ids = chunk.start + places
            limits = self._thresholds[rows, columns].astype(np.float64)
            rounding = self._rounding.of_pairs(limits, rows, ids)
            with quiet():
                is_near = np.abs(scores[rows, places] - limits) <= rounding
            return is_near & (ids != self._relevant.ids[rows, columns])

        rows, columns, ids = self._own.within(chunk.start, chunk.start + chunk.size)
        scores[rows, ids - chunk.start] = self._thresholds[rows, columns]
        near = None
        if not self._rounding.is_exact:
            near = Near(*self._limits, is_unsure, correct)
        look = None if self.top is None else self.top.look
        return compare(scores, self._thresholds, self._left(), pool, near, look=look)


def _within_rounding(
    thresholds: np.ndarray, rounding: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest scores that rounding may make of the thresholds."""

    def limit(end: float) -> np.ndarray:
        far = thresholds + np.sign(end) * rounding
        far = np.where(np.isinf(rounding), end, far).astype(thresholds.dtype)
        return np.nextafter(far, thresholds.dtype.type(end))

    return limit(-np.inf), limit(np.inf)
