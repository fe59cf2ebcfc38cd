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
# Enough that the functions of NumPy that correct them are worth their calls.
CORRECTIONS_AT_A_TIME = 2**14
# Bytes that are added up without an overflow, as numbers of 8 bytes.
BYTES_AT_A_TIME = 8 * 128


class Near(NamedTuple):
    """Which scores are too near a threshold to be compared, and how to correct them."""

    lower: np.ndarray  # [B, M]
    upper: np.ndarray  # [B, M]
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
    *,
    look: Callable[[slice, np.ndarray], None] | None = None,
) -> tuple[np.ndarray, np.ndarray, float]:
    """How many scores of each row are above, and not below, each of its thresholds.

    Args:
        scores: `[B, C]`. Those that are near a threshold are corrected in place.
        thresholds: `[B, M]`.
        numbers: How many of the thresholds of each row count, `[B]`, descending.
        pool: Threads, each of which does some rows.
        near: Which scores are near a threshold. None if all scores are correct.
        look: Is called with some rows and their scores, for all rows.

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
        lowest, found, num_found = np.inf, [], 0
        for start in starts[thread::num_threads]:
            rows, number = slice(start, start + step), numbers[start]
            some = rows, slice(0, number)
            count = _by_sorting if number > MOST_COMPARISONS else _by_comparing
            if number > 0 and near is None:
                limits = thresholds[some], thresholds[some]
                count(scores[rows], *limits, above[some], not_below[some])
            elif number > 0 and near is not None:
                limits, counts = near.limits_of(some), (above[some], not_below[some])
                places = count(scores[rows], *limits, *counts, find=True)
                found.append((places[0] + start, *places[1:]))
                num_found += len(places[0])
                if num_found > CORRECTIONS_AT_A_TIME:
                    _correct(scores, thresholds, found, near, above, not_below)
                    found, num_found = [], 0
            lowest = np.minimum(lowest, scores[rows].min())
            if look is not None:
                look(rows, scores[rows])
        if near is not None and num_found > 0:
            _correct(scores, thresholds, found, near, above, not_below)
        return lowest

    lowest = np.min([*pool.map(of_thread, range(num_threads))])
    return above, not_below, lowest


def _correct(
    scores: np.ndarray,
    thresholds: np.ndarray,
    found: list[tuple[np.ndarray, ...]],
    near: Near,
    above: np.ndarray,
    not_below: np.ndarray,
) -> None:
    """Corrects scores and counts, where the scores found are near the thresholds."""
    rows, columns, places = map(np.concatenate, zip(*found, strict=True))
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
    *,
    find: bool = False,
) -> tuple[np.ndarray, ...]:
    """Counts scores; with `find`, returns those between the two limits."""
    width = -(-scores.shape[1] // BYTES_AT_A_TIME) * BYTES_AT_A_TIME
    is_above, is_not_below = is_counted = np.zeros((2, *upper.shape, width), bool)
    scores, end = scores[:, np.newaxis], scores.shape[1]
    np.greater(scores, upper[:, :, np.newaxis], out=is_above[:, :, :end])
    np.greater_equal(scores, lower[:, :, np.newaxis], out=is_not_below[:, :, :end])
    above[:] = _count_bytes(is_above)
    if not find:
        not_below[:] = _count_bytes(is_not_below)
        return ()
    above_words, words = is_counted.view(np.uint64)
    words ^= above_words
    rows, columns, places = _true_bytes(words)
    np.add.at(not_below, (rows, columns), 1)
    not_below += above
    return rows, columns, places


def _true_bytes(words: np.ndarray) -> tuple[np.ndarray, ...]:
    """The indexes of the bytes that are 1, in numbers of 8 bytes, most of them 0."""
    found = np.flatnonzero(words != 0)
    each, byte = np.nonzero(words.reshape(-1, 1)[found].view(np.uint8))
    shape = *words.shape[:-1], words.shape[-1] * 8
    return np.unravel_index(found[each] * 8 + byte, shape)


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
    *,
    find: bool = False,
) -> tuple[np.ndarray, ...]:
    """Counts scores; with `find`, returns those between the two limits."""
    for row, ascending in enumerate(np.sort(scores, axis=1)):
        end = len(ascending)
        if ascending.dtype.kind == "f":
            end = np.searchsorted(ascending, np.nan)  # NaN is sorted to the end
        above[row] = end - np.searchsorted(ascending[:end], upper[row], "right")
        not_below[row] = end - np.searchsorted(ascending[:end], lower[row])
    if not find:
        return ()
    rows, columns = np.nonzero(not_below != above)
    found = [
        np.flatnonzero((scores[row] >= low) & (scores[row] <= high))
        for row, low, high in zip(
            rows, lower[rows, columns], upper[rows, columns], strict=True
        )
    ]
    sizes = [len(places) for places in found]
    places = np.concatenate([*found, np.zeros(0, np.intp)])
    return np.repeat(rows, sizes), np.repeat(columns, sizes), places
