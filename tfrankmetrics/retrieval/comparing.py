"""How many scores of each row are above its thresholds, on all cores."""

from __future__ import annotations

import concurrent.futures
import os

import numpy as np

# Few enough for the cache, and enough that the threads seldom wait for one another.
COMPARISONS_AT_A_TIME = 2**21
# A comparison with each of more thresholds than these takes longer than a sort.
MOST_COMPARISONS = 64
# Bytes that are added up without an overflow, as numbers of 8 bytes.
BYTES_AT_A_TIME = 8 * 128


def compare(
    scores: np.ndarray,
    upper: np.ndarray,
    lower: np.ndarray,
    numbers: np.ndarray,
    pool: concurrent.futures.Executor,
) -> tuple[np.ndarray, np.ndarray, float]:
    """How many scores of each row are above, and not below, each of its thresholds.

    Args:
        scores: `[B, C]`.
        upper: The thresholds that scores may be above, `[B, M]`.
        lower: The thresholds that scores may not be below, `[B, M]`.
        numbers: How many of the thresholds of each row count, `[B]`, descending.
        pool: Threads, each of which does some rows.

    Returns:
        Two arrays `[B, M]` int64, and the lowest score, or NaN.
    """
    above = np.zeros(upper.shape, np.int64)
    not_below = np.zeros(upper.shape, np.int64)
    most = max(1, min(numbers[0], MOST_COMPARISONS))
    step = max(1, COMPARISONS_AT_A_TIME // (scores.shape[1] * most))
    starts = range(0, len(scores), step)
    num_threads = os.cpu_count() or 1

    def of_thread(thread: int) -> float:
        lowest = np.inf
        for start in starts[thread::num_threads]:
            rows, number = slice(start, start + step), numbers[start]
            some = rows, slice(0, number)
            count = _by_sorting if number > MOST_COMPARISONS else _by_comparing
            if number > 0:
                limits = upper[some], lower[some]
                count(scores[rows], *limits, above[some], not_below[some])
            lowest = np.minimum(lowest, scores[rows].min())
        return lowest

    lowest = np.min([*pool.map(of_thread, range(num_threads))])
    return above, not_below, lowest


def _by_comparing(
    scores: np.ndarray,
    upper: np.ndarray,
    lower: np.ndarray,
    above: np.ndarray,
    not_below: np.ndarray,
) -> None:
    width = -(-scores.shape[1] // BYTES_AT_A_TIME) * BYTES_AT_A_TIME
    is_counted = np.zeros((*upper.shape, width), bool)
    where, scores = is_counted[:, :, : scores.shape[1]], scores[:, np.newaxis]
    np.greater(scores, upper[:, :, np.newaxis], out=where)
    above[:] = _count_bytes(is_counted)
    np.greater_equal(scores, lower[:, :, np.newaxis], out=where)
    not_below[:] = _count_bytes(is_counted)


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
) -> None:
    for row, ascending in enumerate(np.sort(scores, axis=1)):
        end = len(ascending)
        if ascending.dtype.kind == "f":
            end = np.searchsorted(ascending, np.nan)  # NaN is sorted to the end
        above[row] = end - np.searchsorted(ascending[:end], upper[row], "right")
        not_below[row] = end - np.searchsorted(ascending[:end], lower[row])
