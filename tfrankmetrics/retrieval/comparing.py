"""How many scores of each row are above its thresholds, on all cores."""

from __future__ import annotations

import concurrent.futures
import itertools
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tfrankmetrics.arrays.numpy import quiet

# Few enough for the cache, and enough that the threads seldom wait for each other.
COMPARISONS_AT_A_TIME = 2**21
# Enough rows, or scores of short rows, to amortize the calls of NumPy functions.
ROWS_AT_A_TIME, SCORES_AT_A_TIME = 16, 2**19
SCORES_SORTED_AT_A_TIME = 2**18
# A sort of a row takes as long as its comparison with some thresholds, and as a number
# of further comparisons, however short the row is.
MOST_COMPARISONS, SORT_START = 14, 2**17
# A level and a place of a score fit into a number of 32 bits.
NUM_LEVELS = NUM_PLACES = 2**16
PLACES = np.arange(NUM_PLACES, dtype=np.uint32)
# Enough to amortize the calls of NumPy functions that correct them.
CORRECTIONS_AT_A_TIME = 2**14
# Bytes that are added up without an overflow, as numbers of 8 bytes.
BYTES_AT_A_TIME = 8 * 128
# How many scores of each row are compared first, to find the thresholds that have
# enough above them.
FIRST_COLUMNS = 2**12
# The rows, thresholds and columns of some scores.
Found = tuple[np.ndarray, ...]
NOT_FOUND: Found = (np.zeros(0, np.int64),) * 3


class Near(NamedTuple):
    """Which scores are too near a threshold to be compared, and how to correct them."""

    lower: np.ndarray  # [B, M]
    upper: np.ndarray  # [B, M]
    # From rows, thresholds and columns of scores between these limits to whether the
    # comparison may be wrong.
    is_unsure: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    # From rows and columns of `scores` to the correct scores.
    correct: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def limits_of(self, some: tuple[slice, slice]) -> tuple[np.ndarray, np.ndarray]:
        """The upper and the lower limits of some rows and thresholds."""
        return self.upper[some], self.lower[some]


def compare(
    scores: np.ndarray,
    thresholds: np.ndarray,
    enough: np.ndarray,
    pool: concurrent.futures.Executor,
    near: Near | None = None,
    *,
    look: Callable[[slice, np.ndarray, float], None] | None = None,
) -> tuple[np.ndarray, np.ndarray, float]:
    """How many scores of each row are above, and not below, each of its thresholds.

    Args:
        scores: `[B, C]`. Those that are near a threshold are corrected in place.
        thresholds: `[B, M]`. Fewer are compared if the highest of a row come first.
        enough: The number of scores above each threshold from which on its two counts
            may be incomplete, `[B, M]` int64; 0 if they are not needed.
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
    num_threads = os.cpu_count() or 1
    at_a_time = max(ROWS_AT_A_TIME, SCORES_AT_A_TIME // num_candidates)
    at_a_time = min(at_a_time, -(-len(scores) // num_threads))

    def count(rows: slice, columns: slice, number: int, can_sort: bool) -> Found:
        some = rows, slice(0, number)
        own, counts = scores[rows, columns], (above[some], not_below[some])
        if near is None:
            by = _by_sorting if can_sort else _by_comparing
            by(own, thresholds[some], *counts)
            return NOT_FOUND
        find = _found_by_sorting if can_sort else _found_by_comparing
        found, at, places = find(own, *near.limits_of(some), *counts)
        return found + rows.start, at, places + columns.start

    def count_all(rows: slice, least: float) -> Iterator[Found]:
        ends = [num_candidates]
        may_stop = (enough[rows] > 0) & (enough[rows] < FIRST_COLUMNS)
        if num_candidates > FIRST_COLUMNS and may_stop.any():
            ends = [FIRST_COLUMNS, num_candidates]
        for start, end in itertools.pairwise([0, *ends]):
            number = _number_to_last(above[rows] < enough[rows])
            if number == 0:
                return
            can_sort = (number - MOST_COMPARISONS) * (end - start) > SORT_START
            if can_sort and near is not None:
                limits = near.limits_of((rows, slice(0, number)))
                can_sort = not np.isnan(least) and _are_finite(*limits)
            size = COMPARISONS_AT_A_TIME // (2 * number)
            size = SCORES_SORTED_AT_A_TIME if can_sort else size
            step = max(1, size // (end - start))
            for first in range(rows.start, rows.stop, step):
                some = slice(first, min(first + step, rows.stop))
                yield count(some, slice(start, end), number, can_sort)

    def of_thread(thread: int) -> float:
        lowest, found = np.inf, []
        starts = range(0, len(scores), at_a_time)
        for start in starts[thread::num_threads]:
            rows = slice(start, min(start + at_a_time, len(scores)))
            least = scores[rows].min()
            lowest = np.minimum(lowest, least)
            found.extend(count_all(rows, least))
            num_found = sum(len(each[0]) for each in found)
            if near is not None and num_found > CORRECTIONS_AT_A_TIME:
                _correct(scores, thresholds, found, near, above, not_below)
                found = []
            if look is not None:
                look(rows, scores[rows], least)
        if near is not None and found:
            _correct(scores, thresholds, found, near, above, not_below)
        return lowest

    lowest = np.min([*pool.map(of_thread, range(num_threads))])
    return above, not_below, lowest


def _number_to_last(where: np.ndarray) -> int:
    """The number of columns `[R, M]` up to the last one with a True value."""
    columns = np.flatnonzero(where.any(axis=0))
    return columns[-1] + 1 if len(columns) else 0


def _correct(
    scores: np.ndarray,
    thresholds: np.ndarray,
    found: list[Found],
    near: Near,
    above: np.ndarray,
    not_below: np.ndarray,
) -> None:
    """Corrects scores and counts, where the scores found are near the thresholds."""
    rows, columns, places = map(np.concatenate, zip(*found, strict=True))
    unsure = np.flatnonzero(near.is_unsure(rows, columns, places))
    correct = near.correct(rows[unsure], places[unsure])
    scores[rows[unsure], places[unsure]] = correct
    again = scores[rows, places]
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
    above += _count_bytes(is_above)
    not_below += _count_bytes(is_not_below)


def _found_by_comparing(
    scores: np.ndarray,
    upper: np.ndarray,
    lower: np.ndarray,
    above: np.ndarray,
    not_below: np.ndarray,
) -> Found:
    """Counts scores, and returns the places of those between two limits."""
    is_above, is_not_below = _compared(scores, upper, lower)
    rows, columns, places = _different(is_above, is_not_below)
    counts = _count_bytes(is_above)
    above += counts
    not_below += counts
    np.add.at(not_below, (rows, columns), 1)
    return rows, columns, places


def not_below_limits(scores: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, ...]:
    """Rows and columns of the few scores that are not below the limit of their row."""
    end = scores.shape[1]
    is_found = np.empty((len(scores), -(-end // 8) * 8), bool)
    is_found[:, end:] = False
    np.greater_equal(scores, limits[:, np.newaxis], out=is_found[:, :end])
    words = is_found.view(np.uint64).ravel()
    found = np.flatnonzero(words != 0)
    return _indexes(found, words[found], is_found.shape)


def _different(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, ...]:
    """The indexes where two arrays differ, which they seldom do."""
    words, other_words = (each.view(np.uint64).ravel() for each in (one, other))
    found = np.flatnonzero(words != other_words)  # eight bytes at a time
    return _indexes(found, words[found] ^ other_words[found], one.shape)


def _indexes(
    places: np.ndarray, words: np.ndarray, shape: tuple[int, ...]
) -> tuple[np.ndarray, ...]:
    """The indexes of the True values in some words of eight bytes of an array."""
    at = np.flatnonzero(words.view(bool))  # much faster than those of two axes
    return np.unravel_index(places[at // 8] * 8 + at % 8, shape)


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
        above[row] += end - np.searchsorted(ascending[:end], thresholds[row], "right")
        not_below[row] += end - np.searchsorted(ascending[:end], thresholds[row])


def _found_by_sorting(
    scores: np.ndarray,
    upper: np.ndarray,
    lower: np.ndarray,
    above: np.ndarray,
    not_below: np.ndarray,
) -> Found:
    """Counts scores, and returns the places of those between two limits."""
    found = []
    for first in range(0, scores.shape[1], NUM_PLACES):
        part = scores[:, first : first + NUM_PLACES]
        ordered, start, stop = _sorted_by_level(part, upper, lower)
        sizes = (stop - start).ravel()
        if sizes.sum() > part.size:  # one limit is far from all others
            for row in range(len(part)):
                of_row = (
                    each[row : row + 1] for each in (upper, lower, above, not_below)
                )
                _, columns, places = _found_by_comparing(part[row : row + 1], *of_row)
                found.append((np.full(len(columns), row), columns, places + first))
            continue
        limits = np.repeat(np.arange(start.size), sizes)
        rows, columns = np.divmod(limits, start.shape[1])
        at = np.repeat(start.ravel(), sizes) + counting_up(sizes)
        places = ordered[rows, at] % NUM_PLACES
        others = part[rows, places]
        is_above = others > upper[rows, columns]
        is_near = ~is_above & (others >= lower[rows, columns])
        counts = part.shape[1] - stop
        np.add.at(counts, (rows[is_above], columns[is_above]), 1)
        above += counts
        not_below += counts
        np.add.at(not_below, (rows[is_near], columns[is_near]), 1)
        found.append((rows[is_near], columns[is_near], places[is_near] + first))
    return tuple(map(np.concatenate, zip(*found, strict=True)))


def _sorted_by_level(
    scores: np.ndarray, upper: np.ndarray, lower: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sorts the scores of each row by level, with their places.

    Levels are scores that are rounded to integers, from the lowest limit of a row to
    the highest. Because rounding preserves the order, a score at a higher level than a
    limit is above it. A level and a place are sorted as one number of 32 bits, which is
    several times as fast as to sort scores with their places.

    Returns:
        The sorted numbers `[R, C]`, which are a place modulo `NUM_PLACES`; and for each
        limit `[R, M]` where those at the levels of its two values, and between them,
        start and stop.
    """
    wide = np.promote_types(scores.dtype, np.float32)
    low = lower.min(axis=1, keepdims=True).astype(wide)
    high = upper.max(axis=1, keepdims=True).astype(wide)
    # Some levels below and above the limits are for all other scores.
    width = np.maximum((high - low) / (NUM_LEVELS - 6), np.finfo(wide).tiny)

    def at_levels(each: np.ndarray) -> np.ndarray:
        levels = np.subtract(each, low - 2 * width, dtype=wide)
        levels *= 1 / width
        np.clip(levels, 0, NUM_LEVELS - 2, out=levels)
        # Faster than a conversion to unsigned integers.
        return levels.astype(np.int32).view(np.uint32) * np.uint32(NUM_PLACES)

    with quiet():
        ordered, first, last = map(at_levels, (scores, lower, upper))
    ordered |= PLACES[: ordered.shape[1]]
    ordered.sort(axis=1)
    last += np.uint32(NUM_PLACES)
    start, stop = (
        np.stack([np.searchsorted(*row) for row in zip(ordered, each, strict=True)])
        for each in (first, last)
    )
    return ordered, start, stop


def counting_up(lengths: np.ndarray) -> np.ndarray:
    """The numbers 0 ... n - 1 for each length n, one after another."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)


def _are_finite(upper: np.ndarray, lower: np.ndarray) -> bool:
    """Whether all limits are finite numbers, and their differences too."""
    with quiet():
        return bool(np.isfinite(upper.max() - lower.min()))
