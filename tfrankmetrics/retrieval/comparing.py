"""How many scores of each row are above its thresholds, on all cores."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# Few enough for the cache, and enough that the threads seldom wait for one another.
COMPARISONS_AT_A_TIME = 2**21
# A comparison with each of more thresholds than these takes longer than a sort.
MOST_COMPARISONS = 64
# Bytes that are added up without an overflow, as numbers of 8 bytes.
BYTES_AT_A_TIME = 8 * 128


class Near(NamedTuple):
    """Which scores are too near a threshold to be compared, and how to correct them."""

    lower: np.ndarray  # [B, M]
    upper: np.ndarray  # [B, M]
    known: np.ndarray  # [B, M], how many of them are the threshold itself
    # From rows and columns of `scores` to the correct scores.
    correct: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def limits_of(self, some: tuple[slice, slice]) -> tuple[np.ndarray, np.ndarray]:
        """The upper and the lower limits of some rows and thresholds."""
        return self.upper[some], self.lower[some]


def compare(
    scores: np.ndarray,
    thresholds: np.ndarray,
    numbers: np.ndarray,
    pool: concurrent.futures.Executor,
    near: Near | None = None,
) -> tuple[np.ndarray, np.ndarray, float]:
    """How many scores of each row are above, and not below, each of its thresholds.

    Args:
        scores: `[B, C]`. Those that are near a threshold are corrected in place.
        thresholds: `[B, M]`.
        numbers: How many of the thresholds of each row count, `[B]`, descending.
        pool: Threads, each of which does some rows.
        near: Which scores are near a threshold. None if all scores are correct.

    Returns:
        Two arrays `[B, M]` int64, and the lowest score, or NaN.
    """
    above = np.zeros(thresholds.shape, np.int64)
    not_below = np.zeros(thresholds.shape, np.int64)
    most = max(1, min(numbers[0], MOST_COMPARISONS))
    most *= 1 if near is None else 2  # arrays that are compared
    step = max(1, COMPARISONS_AT_A_TIME // (scores.shape[1] * most))
    starts = range(0, len(scores), step)
    num_threads = os.cpu_count() or 1

    def of_thread(thread: int) -> float:
        lowest = np.inf
        for start in starts[thread::num_threads]:
            rows, number = slice(start, start + step), numbers[start]
            some = rows, slice(0, number)
            count = _by_sorting if number > MOST_COMPARISONS else _by_comparing
            if number > 0 and near is None:
                limits = thresholds[some], thresholds[some]
                count(scores[rows], *limits, above[some], not_below[some])
            elif number > 0 and near is not None:
                limits, counts = near.limits_of(some), (above[some], not_below[some])
                found = count(scores[rows], *limits, *counts, near.known[some])
                _correct(start, scores, thresholds, found, near, above, not_below)
            lowest = np.minimum(lowest, scores[rows].min())
        return lowest

    lowest = np.min([*pool.map(of_thread, range(num_threads))])
    return above, not_below, lowest


def _correct(
    start: int,
    scores: np.ndarray,
    thresholds: np.ndarray,
    found: tuple[np.ndarray, ...],
    near: Near,
    above: np.ndarray,
    not_below: np.ndarray,
) -> None:
    """Corrects scores and counts, where the scores found are near the thresholds."""
    rows, columns, places = found
    rows = rows + start
    again = near.correct(rows, places)
    scores[rows, places] = again
    limits = thresholds[rows, columns]
    np.add.at(not_below, (rows, columns), (again >= limits).astype(np.int64) - 1)
    np.add.at(above, (rows, columns), (again > limits).astype(np.int64))


def _by_comparing(
    scores: np.ndarray,
    upper: np.ndarray,
    lower: np.ndarray,
    above: np.ndarray,
    not_below: np.ndarray,
    known: np.ndarray | None = None,
) -> tuple[np.ndarray, ...]:
    """Counts scores; with `known`, finds the others between the two limits."""
    width = -(-scores.shape[1] // BYTES_AT_A_TIME) * BYTES_AT_A_TIME
    is_counted = np.zeros((1 if known is None else 2, *upper.shape, width), bool)
    scores, end = scores[:, np.newaxis], scores.shape[1]
    np.greater(scores, upper[:, :, np.newaxis], out=is_counted[0, :, :, :end])
    above[:] = _count_bytes(is_counted[0])
    np.greater_equal(scores, lower[:, :, np.newaxis], out=is_counted[-1, :, :, :end])
    not_below[:] = _count_bytes(is_counted[-1])
    if known is None:
        return ()
    rows, columns = np.nonzero(not_below - above != known)
    one, other = is_counted[:, rows, columns]
    pairs, places = np.divmod(np.flatnonzero(one != other), width)
    return rows[pairs], columns[pairs], places


def _count_bytes(where: np.ndarray) -> np.ndarray:
    """The number of True values along the last axis; faster than a sum of booleans."""
    numbers = where.view(np.uint64)
    numbers = numbers.reshape(*where.shape[:-1], -1, BYTES_AT_A_TIME // 8)
    bytes_ = np.add.reduce(numbers, axis=-1).view(np.uint8)
    return bytes_.sum(axis=-1, dtype=np.int64)


def _by_sorting(
    scores: np.ndarray,
    upper: np.ndarray,
    lower: np.ndarray,
    above: np.ndarray,
    not_below: np.ndarray,
    known: np.ndarray | None = None,
) -> tuple[np.ndarray, ...]:
    """Counts scores; with `known`, finds the others between the two limits."""
    for row, ascending in enumerate(np.sort(scores, axis=1)):
        end = len(ascending)
        if ascending.dtype.kind == "f":
            end = np.searchsorted(ascending, np.nan)  # NaN is sorted to the end
        above[row] = end - np.searchsorted(ascending[:end], upper[row], "right")
        not_below[row] = end - np.searchsorted(ascending[:end], lower[row])
    if known is None:
        return ()
    rows, columns = np.nonzero(not_below - above != known)
    found = [
        np.flatnonzero((scores[row] >= low) & (scores[row] <= high))
        for row, low, high in zip(
            rows, lower[rows, columns], upper[rows, columns], strict=True
        )
    ]
    sizes = [len(places) for places in found]
    places = np.concatenate([*found, np.zeros(0, np.intp)])
    return np.repeat(rows, sizes), np.repeat(columns, sizes), places
