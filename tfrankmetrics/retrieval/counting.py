"""Exact ranks among any number of candidates, in bounded memory.

An item's rank is one plus the number of candidates with a higher score. This number,
like the number of ties, adds up over chunks of the candidates.
"""

from __future__ import annotations

import collections
import concurrent.futures
import functools
import itertools
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from tfrankmetrics.arrays import Array, Library
from tfrankmetrics.retrieval.array_blocks import ArrayBlock
from tfrankmetrics.retrieval.blocks import Block, Depth, Needed, Order, Ranks
from tfrankmetrics.retrieval.chunks import Candidates, Chunk
from tfrankmetrics.retrieval.inputs import padded, rows_of
from tfrankmetrics.retrieval.products import Memory, dot_product
from tfrankmetrics.retrieval.top import Top, TopCandidates
from tfrankmetrics.retrieval.truth import RelevantItems


def count_ranks(
    queries: Any,
    candidates: Candidates,
    relevant: RelevantItems,
    score: Callable[[Any, Any], Any],
    orders: Iterable[Order],
    block_size: int,
    progress: Callable[[int], None],
    *,
    library: Library,
    depth: Depth | None = None,
    needed: Needed | None = None,
) -> tuple[Ranks, Top | None]:
    """Counts the candidates that score above, or as high as, each relevant item.

    The scores are computed with arrays of `library`. With `depth`, the second result
    contains the candidates with the highest scores. Without `needed`, all ranks are.
    """
    # Queries with more relevant items first, so that those of a block are similar.
    by_number = np.argsort(-relevant.is_ranked.sum(axis=1), kind="stable")
    make, in_turn = Block, map
    are_vectors = score is dot_product and library == "numpy"
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        if are_vectors:
            make = functools.partial(ArrayBlock, memory=Memory(), pool=pool)
            in_turn = pool.map

        def block_of(start: int) -> Block:
            numbers = by_number[start : start + block_size]
            inputs, of_block = rows_of(queries, numbers), relevant.of(numbers)
            if not are_vectors:
                inputs = padded(inputs, library)
            arguments = inputs, of_block, numbers, candidates, score, orders, library
            return make(*arguments, depth=depth, needed=needed)

        blocks = [*in_turn(block_of, range(0, len(by_number), block_size))]
        _count(blocks, candidates, progress, pool, library)
        again = [block for block in blocks if block.start_again()]
        if again:
            _count(again, candidates, progress, pool, library)
        top = None
        if depth is not None:
            top = _joined_top(blocks, by_number, block_size, pool)
        parts = [*pool.map(lambda block: block.ranks(candidates.number), blocks)]
    if any(block.start_again() for block in again):
        raise ValueError(
            "A candidate must have the same score each time. Received: other scores "
            "for the same queries and candidates. `score` must not be random."
        )
    return _joined(parts, np.argsort(by_number)), top


def _joined_top(
    blocks: list[Block],
    by_number: np.ndarray,
    block_size: int,
    pool: concurrent.futures.Executor,
) -> Top:
    """The candidates with the highest scores of all blocks, by query."""
    found = (block.top for block in blocks if block.top is not None)
    tops = [*pool.map(TopCandidates.kept, found)]
    rows = [
        by_number[number * block_size + top.rows] for number, top in enumerate(tops)
    ]
    queries = np.concatenate(rows)
    order = np.argsort(queries, kind="stable")
    ids, scores = (
        np.concatenate([getattr(top, name) for top in tops])[order]
        for name in ("ids", "scores")
    )
    return Top(queries[order], ids, scores)


def _joined(parts: list[Ranks], order: np.ndarray) -> Ranks:
    """The counts of all parts as one, with the queries reordered."""

    def join(each: Iterable[np.ndarray]) -> np.ndarray:
        return np.concatenate([*each])[order]

    counts = {
        name: join(getattr(part, name) for part in parts)
        for name in Ranks._fields
        if name != "tied_before"
    }
    before = {
        o: join(part.tied_before[o] for part in parts) for o in parts[0].tied_before
    }
    return Ranks(**counts, tied_before=before)


def _devices(library: Library) -> Sequence[str | None]:
    """The devices of a strategy of TensorFlow, if there is one; otherwise None."""
    if library == "numpy":
        return (None,)
    import tensorflow as tf

    if not tf.distribute.has_strategy():
        return (None,)
    return tf.distribute.get_strategy().extended.worker_devices


def _on(device: str | None) -> AbstractContextManager:
    if device is None:
        return nullcontext()
    import tensorflow as tf

    return tf.device(device)


def _count(
    blocks: list[Block],
    candidates: Candidates,
    progress: Callable[[int], None],
    pool: concurrent.futures.Executor,
    library: Library,
) -> None:
    """Adds the scores of all chunks to each block.

    While some scores are counted, each device of a strategy computes the next ones. One
    thread calls TensorFlow for all devices, since calls from several threads for
    different devices have failed occasionally.
    """
    devices = _devices(library)

    def product(block: Block, chunk: Chunk, device: str | None) -> Array:
        with _on(device):
            return block.product(chunk)

    def add(block: Block, chunk: Chunk, scores: concurrent.futures.Future) -> None:
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
            "A dataset must yield the same candidates each time it is read. Received: "
            f"{candidates.number}, and then {number}. A generator must be restartable."
        )
