"""Exact ranks among any number of candidates, in bounded memory.

An item's rank is one plus the number of candidates with a higher score. This number
adds up over chunks of the candidates, and so do the numbers of ties.

The score of an item itself must come from the very product that scores the others.
Another product differs in its last bits, and the item would not even be tied with
itself. But the chunk with the item may come last. So a first product, of the relevant
items alone, gives a threshold for each. It nearly always has the same bits. If the
chunk with the item shows other bits, all chunks are counted again with the right
threshold.
"""

from __future__ import annotations

import collections
import concurrent.futures
import itertools
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrankmetrics.inputs.dense import as_scores
from tfrankmetrics.ranking.ties import random_numbers
from tfrankmetrics.retrieval.candidates import (
    MOST_ROUNDING,
    Candidates,
    Chunk,
    padded,
    rows_of,
)
from tfrankmetrics.retrieval.truth import RelevantItems

# Few enough for the cache, and enough that the threads seldom wait for one another.
COMPARISONS_AT_A_TIME = 2**21
RELEVANT_AT_A_TIME = 2**12
# A comparison with each of more thresholds than these takes longer than a sort.
MOST_COMPARISONS = 64
# Bytes that are added up without an overflow, as numbers of 8 bytes.
BYTES_AT_A_TIME = 8 * 128


class Order(NamedTuple):
    """An order of tied candidates: by position, or at random with a seed."""

    is_random: bool
    seed: int = 0


class Ranks(NamedTuple):
    """What was counted for each relevant item, `[B, M]`; see `RankCounts`."""

    retrieved: np.ndarray
    above: np.ndarray
    tied: np.ndarray
    tied_before: dict[Order, np.ndarray]
    num_retrieved: np.ndarray  # [B]


def count_ranks(
    queries: Any,
    candidates: Candidates,
    relevant: RelevantItems,
    score: Callable[[Any, Any], Any],
    orders: Iterable[Order],
    block_size: int,
    progress: Callable[[int], None],
) -> Ranks:
    """Counts the candidates above and beside each relevant item."""
    # Queries with more relevant items first, so that a block has similar ones.
    by_number = np.argsort(-relevant.is_ranked.sum(axis=1), kind="stable")
    blocks = []
    for start in range(0, len(by_number), block_size):
        numbers = by_number[start : start + block_size]
        inputs = padded(rows_of(queries, numbers))
        of_block = relevant.of(numbers)
        blocks.append(_Block(inputs, of_block, numbers, candidates, score, orders))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        _count(blocks, candidates, progress, pool)
        again = [block for block in blocks if block.start_again()]
        if again:
            _count(again, candidates, progress, pool)
    if any(block.start_again() for block in again):
        raise ValueError(
            "A candidate must have the same score each time. Received: other scores "
            "for the same queries and candidates. `score` must not be random."
        )
    parts = [block.ranks(candidates.number) for block in blocks]
    place = np.argsort(by_number)
    return tf.nest.map_structure(lambda *each: np.concatenate(each)[place], *parts)


def _count(
    blocks: list[_Block],
    candidates: Candidates,
    progress: Callable[[int], None],
    pool: concurrent.futures.Executor,
) -> None:
    """Adds the scores of all chunks to each block.

    While some scores are counted, each device of a strategy computes the next ones. One
    thread calls TensorFlow for all devices, since calls from several for different
    devices have failed now and then.
    """
    devices: tuple[str | None, ...] = (None,)
    if tf.distribute.has_strategy():
        devices = tf.distribute.get_strategy().extended.worker_devices

    def product(block: _Block, chunk: Chunk, device: str | None) -> tf.Tensor:
        with tf.device(device):
            return block.product(chunk)

    def add(block: _Block, chunk: Chunk, scores: concurrent.futures.Future) -> None:
        block.add(chunk, block.as_array(scores.result(), chunk), pool)
        if block is blocks[-1]:
            progress(chunk.size)

    waiting: collections.deque = collections.deque()
    number = 0
    with concurrent.futures.ThreadPoolExecutor(1) as products:
        for chunk, device in zip(candidates.chunks(), itertools.cycle(devices)):
            number += chunk.size
            for block in blocks:
                scores = products.submit(product, block, chunk, device)
                waiting.append((block, chunk, scores))
                if len(waiting) > len(devices):
                    add(*waiting.popleft())
        while waiting:
            add(*waiting.popleft())
    if number != candidates.number:
        raise ValueError(
            "A dataset must give the same candidates each time it is read. Received: "
            f"{candidates.number}, and then {number}. A generator must start again."
        )


class _Block:
    """Some queries, with the counts of their relevant items."""

    def __init__(
        self,
        inputs: Any,
        relevant: RelevantItems,
        numbers: np.ndarray,
        candidates: Candidates,
        score: Callable[[Any, Any], Any],
        orders: Iterable[Order],
    ) -> None:
        self._inputs, self._score = inputs, score
        self._relevant, self._numbers = relevant, numbers
        self._num_ranked = relevant.is_ranked.sum(axis=1)
        self._own = _Pairs(relevant.ids, relevant.is_ranked)
        self._excluded = _Pairs(relevant.exclude, relevant.exclude >= 0)
        self._thresholds = self._first_thresholds(candidates)
        self._scores = self._thresholds.copy()
        self._orders = tuple(orders)
        self._reset()

    def _reset(self) -> None:
        shape = self._relevant.ids.shape
        self._above, self._tied = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self._before = {order: np.zeros(shape, np.int64) for order in self._orders}
        # Of the candidates that are not excluded.
        self._num_nan = np.zeros(shape[0], np.int64)
        self._num_lowest = np.zeros(shape[0], np.int64)

    def as_array(self, scores: tf.Tensor, chunk: Chunk) -> np.ndarray:
        """Scores without padding."""
        return np.asarray(scores)[: len(self._relevant.ids), : chunk.size]

    def product(self, chunk: Chunk) -> tf.Tensor:
        """The scores of some candidates, `[B, C]`, with padding."""
        rows = tf.nest.flatten(self._inputs)[0].shape[0]
        inputs = padded(chunk.inputs, chunk.width, not_to=rows)
        shape = rows, tf.nest.flatten(inputs)[0].shape[0]
        scores = tf.convert_to_tensor(self._score(self._inputs, inputs))
        if scores.shape != shape:
            raise ValueError(
                "`score` must return a score for each query and candidate, [B, C], "
                f"here {shape} (the last rows are repeated, to compute all in "
                f"the same way). Received: shape {tuple(scores.shape)}."
            )
        return as_scores(scores)

    def _first_thresholds(self, candidates: Candidates) -> np.ndarray:
        """The score of each relevant item, from a product of its own."""
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
        above, not_below, lowest = _compare(scores, thresholds, self._num_ranked, pool)
        excluded, _, ids = self._excluded.within(start, stop)
        for counts, compare in ((above, np.greater), (not_below, np.greater_equal)):
            of_excluded = scores[excluded, ids - start][:, np.newaxis]
            is_counted = compare(of_excluded, thresholds[excluded])
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

    def _count_special(self, start: int, scores: np.ndarray) -> None:
        """Counts NaN and -inf, which a comparison does not."""
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
        has_ties = self._relevant.is_ranked & ((tied > 0) | np.isnan(self._thresholds))
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
        """Whether a score was other than its threshold; then all counts start again."""
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
        score whose terms cancel, such as the distance of an item from itself. So if it
        differs by much, the candidate is scored again, between copies of itself.
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
        retrieved = self._relevant.is_ranked & ~np.isneginf(self._scores)
        return Ranks(retrieved, above, tied, self._before, num_retrieved)


class _Pairs:
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


def _compare(
    scores: np.ndarray,
    thresholds: np.ndarray,
    numbers: np.ndarray,
    pool: concurrent.futures.Executor,
) -> tuple[np.ndarray, np.ndarray, float]:
    """How many scores of each row are above, and not below, each of its thresholds.

    Args:
        scores: `[B, C]`.
        thresholds: `[B, M]`.
        numbers: How many of the thresholds of each row count, `[B]`, descending.
        pool: Threads, each of which does some rows.

    Returns:
        Two arrays `[B, M]` int64, and the lowest score, or NaN.
    """
    above = np.zeros(thresholds.shape, np.int64)
    not_below = np.zeros(thresholds.shape, np.int64)
    most = max(1, min(numbers[0], MOST_COMPARISONS))
    step = max(1, COMPARISONS_AT_A_TIME // (scores.shape[1] * most))
    starts = range(0, len(scores), step)
    num_threads = os.cpu_count() or 1

    def compare(thread: int) -> float:
        lowest = np.inf
        for start in starts[thread::num_threads]:
            rows, number = slice(start, start + step), numbers[start]
            some = rows, slice(0, number)
            count = _by_sorting if number > MOST_COMPARISONS else _by_comparing
            if number > 0:
                count(scores[rows], thresholds[some], above[some], not_below[some])
            lowest = np.minimum(lowest, scores[rows].min())
        return lowest

    lowest = np.min([*pool.map(compare, range(num_threads))])
    return above, not_below, lowest


def _by_comparing(
    scores: np.ndarray, thresholds: np.ndarray, above: np.ndarray, not_below: np.ndarray
) -> None:
    width = -(-scores.shape[1] // BYTES_AT_A_TIME) * BYTES_AT_A_TIME
    is_counted = np.zeros((*thresholds.shape, width), bool)
    pairs = scores[:, np.newaxis], thresholds[:, :, np.newaxis]
    for counts, compare in ((above, np.greater), (not_below, np.greater_equal)):
        compare(*pairs, out=is_counted[:, :, : scores.shape[1]])
        counts[:] = _count_bytes(is_counted)


def _count_bytes(where: np.ndarray) -> np.ndarray:
    """The number of True values along the last axis; faster than a sum of booleans."""
    numbers = where.view(np.uint64)
    numbers = numbers.reshape(*where.shape[:-1], -1, BYTES_AT_A_TIME // 8)
    bytes_ = np.add.reduce(numbers, axis=-1).view(np.uint8)
    return bytes_.sum(axis=-1, dtype=np.int64)


def _by_sorting(
    scores: np.ndarray, thresholds: np.ndarray, above: np.ndarray, not_below: np.ndarray
) -> None:
    for row, ascending in enumerate(np.sort(scores, axis=1)):
        end = len(ascending)
        if ascending.dtype.kind == "f":
            end = np.searchsorted(ascending, np.nan)  # NaN is sorted to the end
        limits = thresholds[row]
        above[row] = end - np.searchsorted(ascending[:end], limits, "right")
        not_below[row] = end - np.searchsorted(ascending[:end], limits)
