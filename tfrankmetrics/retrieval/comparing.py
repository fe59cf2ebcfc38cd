"""How many scores of each row are above its thresholds, on all cores."""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tfrankmetrics.arrays.numpy import quiet

# Few enough for the cache, and enough that the threads seldom wait for each other.
COMPARISONS_AT_A_TIME = 2**21
# A comparison with each of more thresholds takes longer than a sort, or than buckets.
MOST_COMPARISONS = 24
# Enough that few scores share a bucket with a limit; these are sorted.
BUCKETS_OF_A_LIMIT = 128
# Enough to amortize the calls of NumPy functions that correct them.
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
    look: Callable[[slice, np.ndarray, float], None] | None = None,
) -> tuple[np.ndarray, np.ndarray, float]:
    """How many scores of each row are above, and not below, each of its thresholds.

    Args:
        scores: `[B, C]`. Those that are near a threshold are corrected in place.
        thresholds: `[B, M]`.
        numbers: How many of the thresholds of each row are used, `[B]`, descending.
        pool: Threads, each of which processes some rows.
        near: Which scores are near a threshold. None if all scores are correct.
        look: Is called with some rows, their scores, and the lowest of these or NaN,
            for all rows.

    Returns:
        Two arrays `[B, M]` int64, and the lowest score, or NaN.
    """
    above = np.zeros(thresholds.shape, np.int64)
    not_below = np.zeros(thresholds.shape, np.int64)
    num_candidates = scores.shape[1]
    most = max(1, numbers[0]) * (1 if near is None else 2)
    step = max(1, COMPARISONS_AT_A_TIME // (num_candidates * most))
    starts = range(0, len(scores), step)
    num_threads = os.cpu_count() or 1

    def of_thread(thread: int) -> float:
        lowest, found, num_found = np.inf, [], 0
        for start in starts[thread::num_threads]:
            rows, number = slice(start, start + step), numbers[start]
            some = rows, slice(0, number)
            counts, is_many = (above[some], not_below[some]), number > MOST_COMPARISONS
            if number > 0 and near is None:
                count = _by_sorting if is_many else _by_comparing
                count(scores[rows], thresholds[some], *counts)
            elif number > 0 and near is not None:
                find = _found_by_buckets if is_many else _found_by_comparing
                places = find(scores[rows], *near.limits_of(some), *counts)
                found.append((places[0] + start, *places[1:]))
                num_found += len(places[0])
                if num_found > CORRECTIONS_AT_A_TIME:
                    _correct(scores, thresholds, found, near, above, not_below)
                    found, num_found = [], 0
            lowest_here = scores[rows].min()
            lowest = np.minimum(lowest, lowest_here)
            if look is not None:
                look(rows, scores[rows], lowest_here)
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


def _compared(
    scores: np.ndarray, upper: np.ndarray, lower: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Whether scores are above, and not below, two limits, with padding `[R, M, C]`."""
    width = -(-scores.shape[1] // BYTES_AT_A_TIME) * BYTES_AT_A_TIME
    compared = np.empty((2, *upper.shape, width), bool)
    scores, end = scores[:, np.newaxis], scores.shape[1]
    compared[..., end:] = False
    np.greater(scores, upper[:, :, np.newaxis], out=compared[0, :, :, :end])
    np.greater_equal(scores, lower[:, :, np.newaxis], out=compared[1, :, :, :end])
    return compared[0], compared[1]


def _by_comparing(
    scores: np.ndarray,
    thresholds: np.ndarray,
    above: np.ndarray,
    not_below: np.ndarray,
) -> None:
    """Counts scores, with a comparison for each threshold."""
    is_above, is_not_below = _compared(scores, thresholds, thresholds)
    above[:], not_below[:] = _count_bytes(is_above), _count_bytes(is_not_below)


def _found_by_comparing(
    scores: np.ndarray,
    upper: np.ndarray,
    lower: np.ndarray,
    above: np.ndarray,
    not_below: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Counts scores, and returns the places of those between two limits."""
    is_above, is_not_below = _compared(scores, upper, lower)
    rows, columns, places = _different(is_above, is_not_below)
    above[:] = not_below[:] = _count_bytes(is_above)
    np.add.at(not_below, (rows, columns), 1)
    return rows, columns, places


def not_below_limits(scores: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, ...]:
    """Rows and columns of the few scores that are not below the limit of their row."""
    shape = (len(scores), -(-scores.shape[1] // 8) * 8)
    is_found, none = np.zeros((2, *shape), bool)
    np.greater_equal(scores, limits[:, np.newaxis], out=is_found[:, : scores.shape[1]])
    return _different(is_found, none)


def _different(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, ...]:
    """The indexes where two arrays differ, which they seldom do."""
    words, other_words = one.view(np.uint64), other.view(np.uint64)
    found = np.flatnonzero(words != other_words)  # eight bytes at a time
    pair = (each.reshape(-1, 8)[found] for each in (one, other))
    each, byte = np.nonzero(np.not_equal(*pair))
    return np.unravel_index(found[each] * 8 + byte, one.shape)


def _count_bytes(where: np.ndarray) -> np.ndarray:
    """The number of True values along the last axis; faster than a sum of booleans."""
    numbers = where.view(np.uint64)
    numbers = numbers.reshape(*where.shape[:-1], -1, BYTES_AT_A_TIME // 8)
    bytes_ = np.add.reduce(numbers, axis=-1).view(np.uint8)
    return bytes_.sum(axis=-1, dtype=np.int64)


def _by_sorting(
    scores: np.ndarray,
    thresholds: np.ndarray,
    above: np.ndarray,
    not_below: np.ndarray,
) -> None:
    """Counts scores, in the order of each row."""
    for row, ascending in enumerate(np.sort(scores, axis=1)):
        end = len(ascending)
        if ascending.dtype.kind == "f":
            end = np.searchsorted(ascending, np.nan)  # NaN is sorted to the end
        above[row] = end - np.searchsorted(ascending[:end], thresholds[row], "right")
        not_below[row] = end - np.searchsorted(ascending[:end], thresholds[row])


def _found_by_buckets(
    scores: np.ndarray,
    upper: np.ndarray,
    lower: np.ndarray,
    above: np.ndarray,
    not_below: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """Counts scores, and returns the places of those between two limits.

    Most scores fall into a bucket without a limit, and their bucket alone determines
    which limits they exceed. The few other scores are sorted.
    """
    found = []
    for row, own in enumerate(scores):
        higher, places = _counted_in_buckets(own, lower[row], upper[row])
        places = places[np.argsort(own[places])]
        ascending = own[places]
        ascending = ascending[: np.searchsorted(ascending, np.nan)]  # NaN is at the end
        first = np.searchsorted(ascending, lower[row])
        last = np.searchsorted(ascending, upper[row], "right")
        above[row] = higher + len(ascending) - last
        not_below[row] = higher + len(ascending) - first
        sizes = last - first
        columns = np.repeat(np.arange(len(sizes)), sizes)
        starts = np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
        between = places[starts + np.arange(len(starts))]
        found.append((np.full(len(columns), row), columns, between))
    return tuple(map(np.concatenate, zip(*found, strict=True)))


def _counted_in_buckets(
    scores: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Counts the scores of a row that are above each limit, where buckets show it.

    Buckets are numbered by the score, from the lowest limit to the highest. Because
    rounding preserves this order, a score in a higher bucket than a limit is above it.

    Returns:
        The counts `[M]`, and the places of the scores that share a bucket with a limit,
        which are not counted.
    """
    number = min(BUCKETS_OF_A_LIMIT * len(lower), max(len(scores), 2**10))
    wide = np.promote_types(scores.dtype, np.float32)
    with quiet():
        low, high = (each.astype(wide) for each in (lower.min(), upper.max()))
        width = np.maximum((high - low) / (number - 3), np.finfo(wide).tiny)
        if not np.isfinite(width) or np.isnan(scores.min()):
            return np.zeros(len(lower), np.int64), np.arange(len(scores))

        def buckets_of(each: np.ndarray) -> np.ndarray:
            buckets = np.subtract(each, low - width, dtype=wide)
            buckets *= 1 / width
            return np.clip(buckets, 0, number - 1, out=buckets).astype(np.intp)

        first, last, buckets = map(buckets_of, (lower, upper, scores))
    opened, closed = (
        np.bincount(each, minlength=number + 1) for each in (first, last + 1)
    )
    has_limit = np.cumsum(opened - closed) > 0
    counts = np.bincount(buckets, minlength=number + 1)
    counts[has_limit] = 0
    above = counts.sum() - np.cumsum(counts)
    return above[last], np.flatnonzero(has_limit.take(buckets))
