"""Blocks of queries whose vectors are arrays of NumPy, which computes their scores.

The library that multiplies matrices for NumPy adds up the terms of a score in an order
that depends on the place in the matrix, on the processor and on the threads. So the
last bits of its scores say nothing, and copies of a candidate would not be tied. But
they only matter for a score near that of a relevant item. Such a score, and that of the
relevant item, are therefore computed again, from the two vectors alone.
"""

from __future__ import annotations

import concurrent.futures
from typing import Any

import numpy as np

from tfrankmetrics.retrieval.blocks import Block
from tfrankmetrics.retrieval.chunks import Chunk
from tfrankmetrics.retrieval.comparing import compare
from tfrankmetrics.retrieval.products import (
    dot_product,
    dot_products_of_pairs,
    most_rounding,
)

PAIRS_AT_A_TIME = 2**12


class ArrayBlock(Block):
    """Some queries as an array of vectors, with the counts of their relevant items."""

    def product(self, chunk: Chunk) -> np.ndarray:
        """The scores of some candidates, `[B, C]`; their last bits may be wrong."""
        return dot_product(self._inputs, chunk.inputs)

    def _first_thresholds(self, candidates: Any) -> np.ndarray:
        """The score of each relevant item."""
        own, vectors = self._own, candidates.inputs
        thresholds = dot_product(self._inputs, vectors[:1])  # for its dtype and errors
        thresholds = np.zeros(self._relevant.ids.shape, thresholds.dtype)
        thresholds[own.rows, own.columns] = self._of_pairs(own.rows, vectors, own.ids)
        rounding = most_rounding(
            self._inputs, vectors, candidates.largest_norm, thresholds
        )
        self._lower, self._upper = thresholds - rounding, thresholds + rounding
        if thresholds.dtype.kind == "f":  # their own rounding
            self._lower = np.nextafter(self._lower, -np.inf).astype(thresholds.dtype)
            self._upper = np.nextafter(self._upper, np.inf).astype(thresholds.dtype)
        return thresholds

    def _of_pairs(
        self, rows: np.ndarray, vectors: np.ndarray, ids: np.ndarray
    ) -> np.ndarray:
        """The score of each pair of a query and a vector."""
        starts = range(0, max(1, len(ids)), PAIRS_AT_A_TIME)
        parts = (slice(start, start + PAIRS_AT_A_TIME) for start in starts)
        return np.concatenate(
            [
                dot_products_of_pairs(self._inputs[rows[part]], vectors[ids[part]])
                for part in parts
            ]
        )

    def _compared(
        self, chunk: Chunk, scores: np.ndarray, pool: concurrent.futures.Executor
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """How many scores are above, and not below, each threshold; and the lowest.

        Corrects the scores that are near a threshold.
        """
        numbers = self._num_ranked
        above, not_below, lowest = compare(
            scores, self._upper, self._lower, numbers, pool
        )
        rows, columns, ids = self._own.within(chunk.start, chunk.start + chunk.size)
        scores[rows, ids - chunk.start] = self._thresholds[rows, columns]
        is_near = not_below - above
        is_near[rows, columns] -= 1  # the item itself
        wrong = np.flatnonzero(is_near.any(axis=1))
        for row in wrong:
            self._correct(chunk, scores[row], row, np.flatnonzero(is_near[row]))
        if len(wrong):
            thresholds = self._thresholds[wrong]
            above[wrong], not_below[wrong], lowest_of_wrong = compare(
                scores[wrong], thresholds, thresholds, numbers[wrong], pool
            )
            lowest = np.minimum(lowest, lowest_of_wrong)
        return above, not_below, lowest

    def _correct(
        self, chunk: Chunk, scores: np.ndarray, row: np.intp, columns: np.ndarray
    ) -> None:
        """Computes the scores of a query that are near some thresholds again."""
        is_near = np.zeros(len(scores), bool)
        for column in columns:
            is_near |= (scores >= self._lower[row, column]) & (
                scores <= self._upper[row, column]
            )
        places = np.flatnonzero(is_near)
        rows = np.full(len(places), row)
        scores[places] = self._of_pairs(rows, chunk.inputs, places)
