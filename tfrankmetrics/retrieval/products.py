"""The score of `evaluate_retrieval` by default: dot products."""

from __future__ import annotations

import concurrent.futures
import math
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.arrays.numpy import quiet
from tfrankmetrics.columns.values import FIRST_INEXACT

# The library behind NumPy multiplies matrices with one thread if the product of their
# three sizes is at most this (OpenBLAS).
TERMS_OF_ONE_THREAD = 2**18
WIDTH_OF_A_TILE = 32
# Few enough for the cache.
CANDIDATES_AT_A_TIME = 2**13


def dot_product(queries: Any, candidates: Any) -> Array:
    """The scores of the candidates `[C, d]` for the queries `[B, d]`, `[B, C]`."""
    shapes = [[*getattr(each, "shape", [])] for each in (queries, candidates)]
    if [len(shape) for shape in shapes] != [2, 2] or shapes[0][1] != shapes[1][1]:
        raise ValueError(
            "For a dot product, queries and candidates must be vectors of the same "
            f"length, [B, d] and [V, d]. Received: {_text('B', shapes[0])} and "
            f"{_text('V', shapes[1])}. To score other inputs, pass `score`, or towers "
            "that compute vectors."
        )
    dtype = _dtype_of_product(queries=queries, candidates=candidates)
    if not xp.is_tensor(queries):
        return product_of_arrays(queries, candidates)
    if dtype == np.int64:
        _largest_product(queries, candidates)  # for its error
    import tensorflow as tf

    queries, candidates = tf.cast(queries, dtype), tf.cast(candidates, dtype)
    return tf.matmul(queries, candidates, transpose_b=True)


class Memory:
    """Memory for products, which is used in turns.

    Reusing it is faster than allocating more. Because the next product is computed
    while the scores of one are counted, there are two.
    """

    def __init__(self) -> None:
        self._used, self._other = np.empty(0), np.empty(0)

    def array(self, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
        """An array for the next product, which overwrites the second-last one."""
        self._used, self._other = self._other, self._used
        if self._used.dtype != dtype or self._used.size < math.prod(shape):
            self._used = np.empty(math.prod(shape), dtype)
        return self._used[: math.prod(shape)].reshape(shape)


def product_of_arrays(
    queries: np.ndarray,
    candidates: np.ndarray,
    memory: Memory | None = None,
    pool: concurrent.futures.Executor | None = None,
) -> np.ndarray:
    """The scores of arrays of vectors, `[B, C]`, in float32, float64 or int64.

    With a pool, only its threads compute. Otherwise, those of the library behind NumPy
    do, which are faster for long vectors, but keep a core busy for some time when they
    have finished.
    """
    dtype = _dtype_of_product(queries=queries, candidates=candidates)
    computed_in = _computed_in(dtype)
    if dtype == np.int64 and _largest_product(queries, candidates) < FIRST_INEXACT:
        computed_in = np.dtype(np.float64)  # exact, and much faster
    queries = queries.astype(computed_in, copy=False)
    candidates = candidates.astype(computed_in, copy=False)
    memory = Memory() if memory is None else memory
    out = memory.array((len(queries), len(candidates)), computed_in)
    with quiet():
        if pool is None or queries.shape[1] == 0:
            np.matmul(queries, candidates.T, out=out)
        else:
            _multiply_in_tiles(queries, candidates, out, pool)
        return _rounded(out, dtype)


def _multiply_in_tiles(
    queries: np.ndarray,
    candidates: np.ndarray,
    out: np.ndarray,
    pool: concurrent.futures.Executor,
) -> None:
    """Multiplies matrices in tiles that each need one thread."""
    length = queries.shape[1]
    width = WIDTH_OF_A_TILE
    num_rows = max(1, TERMS_OF_ONE_THREAD // (width * length))

    def multiply(start: int) -> None:
        some = candidates[start : start + CANDIDATES_AT_A_TIME]
        end = len(some) // width * width
        tiles = some[:end].reshape(end // width, width, length).swapaxes(1, 2)
        for first in range(0, len(queries), num_rows):
            rows = slice(first, first + num_rows)
            products = out[rows, start : start + len(some)]
            of_tiles = products[:, :end].reshape(len(products), len(tiles), width)
            with quiet():  # in each thread
                np.matmul(queries[rows], tiles, out=of_tiles.swapaxes(0, 1))
                np.matmul(queries[rows], some[end:].T, out=products[:, end:])

    for _ in pool.map(multiply, range(0, len(candidates), CANDIDATES_AT_A_TIME)):
        pass  # raises the error of a thread


def dot_products_of_pairs(queries: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """The product of each query `[P, d]` with its candidate `[P, d]`, `[P]`.

    It depends on the two vectors alone.
    """
    dtype = _dtype_of_product(queries=queries, candidates=candidates)
    wide = np.promote_types(_computed_in(dtype), np.float64)
    if dtype == np.int64:
        wide = dtype
    one, other = (np.ascontiguousarray(each, wide) for each in (queries, candidates))
    with quiet():
        return _rounded(np.sum(one * other, axis=1), dtype)


def _computed_in(dtype: np.dtype) -> np.dtype:
    """The dtype in which NumPy multiplies: not in half precision, which is slow."""
    return dtype if dtype == np.int64 else np.promote_types(dtype, np.float32)


def _rounded(scores: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Scores that are rounded to a dtype, as float32, float64 or int64."""
    return scores.astype(dtype, copy=False).astype(_computed_in(dtype), copy=False)


def norms_of(vectors: np.ndarray) -> np.ndarray:
    """Bounds of the norms of vectors; NaN for a vector that is not finite."""
    wide = vectors.astype(_computed_in(vectors.dtype), copy=False)
    with quiet():
        norms = np.sqrt(np.einsum("ij,ij->i", wide, wide)).astype(np.float64) * 1.001
        unsure = ~((norms > 1e-15) & (norms < 1e15))  # squares may have overflowed
        largest = np.abs(wide[unsure].astype(np.float64)).max(axis=1, initial=0)
        norms[unsure] = largest * np.sqrt(wide.shape[1])
    norms[unsure] = np.where(np.isfinite(largest), norms[unsure], np.nan)
    return norms


def hold_integers(vectors: np.ndarray) -> bool:
    """Whether all numbers of some vectors are finite integers."""
    parts = (vectors[start : start + 2**10] for start in range(0, len(vectors), 2**10))
    with quiet():
        return all(
            (np.isfinite(part) & (part == np.rint(part))).all() for part in parts
        )


class Rounding:
    """How much the scores of a product may differ by rounding.

    The error of a sum is at most eps / 2 times the sum of the absolute partial sums
    (Higham, "Accuracy and Stability of Numerical Algorithms", section 4.2). In any
    order, a dot product of length d has d partial sums, each of some of the products.
    None is further from 0 than the sum of all positive, or of all negative, products,
    that is, than (a + |s|) / 2, where s is the dot product and a the sum of the
    absolute products, which is at most the product of the norms of the two vectors. The
    products and the result are rounded, too. However, sums of integers are exact as
    long as none exceeds the precision.
    """

    def __init__(self, queries: np.ndarray, candidates: Any) -> None:
        vectors = candidates.inputs
        dtype = _dtype_of_product(queries=queries, candidates=vectors)
        self.is_exact = dtype == np.int64
        if self.is_exact:
            return
        computed_in, length = np.finfo(_computed_in(dtype)), queries.shape[1] + 2
        if computed_in.dtype == np.float64:
            length *= 2  # the score that is computed again is rounded as much
        self._norms = candidates.norms
        eps = 2.0**-7 if dtype.name == "bfloat16" else float(np.finfo(dtype).eps)
        # The last two factors bound the terms of the second order.
        of_sum = length / 4 * float(computed_in.eps) * (1 + length * computed_in.eps)
        of_sum *= 1 + 2 * eps
        self._of_score = of_sum + 2 * eps
        self._least = float(computed_in.tiny) if dtype == computed_in.dtype else 1e-4
        with quiet():
            norms = norms_of(queries)[:, np.newaxis]
            self._of_norms = of_sum * norms
            self._of_terms = self._of_norms * candidates.largest_norm
            ulps = float(computed_in.eps) * norms * candidates.largest_norm
            is_precise = np.fmax.reduce(ulps, axis=None) < 1
        if is_precise and hold_integers(queries) and candidates.hold_integers:
            self.is_exact = True

    def most(self, scores: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
        """How much scores of some queries near `scores` `[R, M]` may differ."""
        return self._sum(self._of_terms[rows], scores)

    def of_pairs(
        self, scores: np.ndarray, rows: np.ndarray, ids: np.ndarray
    ) -> np.ndarray:
        """How much scores of queries and candidates near `scores` `[P]` may differ."""
        with quiet():
            of_terms = self._of_norms[rows, 0] * self._norms[ids]
        return self._sum(of_terms, scores)

    def _sum(self, of_terms: np.ndarray, scores: np.ndarray) -> np.ndarray:
        with quiet():
            of_scores = self._of_score * np.abs(scores.astype(np.float64))
            rounding = of_terms + of_scores + self._least
        # Without a norm, or a score, that is finite, the score is infinite or NaN.
        return np.where(np.isnan(rounding) | ~np.isfinite(scores), 0, rounding)


def _largest_product(queries: Array, candidates: Array) -> int:
    """A bound of the products of integers; ValueError if it does not fit into int64."""
    largest = [
        max(abs(int(xp.max(each))), abs(int(xp.min(each))))
        for each in (queries, candidates)
    ]
    bound = queries.shape[1] * largest[0] * largest[1]
    if bound >= 2**63:
        raise ValueError(
            "Products of integer vectors must be below 2^63. Received: vectors of "
            f"length {queries.shape[1]} with integers up to {largest[0]} and "
            f"{largest[1]}. Cast them to float64."
        )
    return bound


def _dtype_of_product(**vectors: Array) -> np.dtype:
    """The wider of two dtypes; int64 for integers, since a product of int32 overflows.

    Raises ValueError for a dtype that is not of real numbers.
    """
    for name, each in vectors.items():
        if not (xp.is_floating(each) or xp.dtype_of(each).kind in "iu"):
            raise ValueError(
                f"`{name}` must be vectors of real numbers. Received: "
                f"{each.dtype.name}."
            )
    distinct = {xp.dtype_of(each) for each in vectors.values()}
    are_integers = [dtype.kind in "iu" for dtype in distinct]
    if all(are_integers):
        return np.dtype(np.int64)
    if any(are_integers) or np.dtype(np.float64) in distinct:
        return np.dtype(np.float64)
    return distinct.pop() if len(distinct) == 1 else np.dtype(np.float32)


def _text(rows: str, shape: list[int]) -> str:
    if not shape:
        return "a structure of arrays"
    return f"[{', '.join([rows, *map(str, shape[1:])])}]"
