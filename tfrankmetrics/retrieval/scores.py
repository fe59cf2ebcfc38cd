"""The scores of queries and candidates: dot products, or those of a user's function.

Equal vectors must have equal scores, or copies of a candidate would not be tied.
However, the order in which a matrix product adds up its terms depends on the sizes of
the matrices and on the processor. The last bits of two equal sums may differ.

Vectors of float16, bfloat16 and float32
    are multiplied in float64, and each product is rounded once to float32. Two sums of
    the same terms differ by about 2^-52 of the product of the norms, and the numbers of
    float32 are 2^-23 of their size apart. Hence, both are rounded to the same number
    unless the middle between two neighbors lies between the sums: about once in 2^28
    scores, and more often where the terms of a sum nearly cancel. Then a copy of a
    relevant item is one neighbor away from it instead of tied. Products in half
    precision would tie candidates that the vectors distinguish.
Vectors of float64
    have no wider dtype. In any order, the error of a sum of d terms is at most d times
    2^-53 times the sum of their absolute values (Higham, "Accuracy and Stability of
    Numerical Algorithms", section 4.2). Wherever a score is so close to the score of a
    relevant item that such errors could change the order, it is computed again from its
    two vectors alone, and so are those that may be among the highest.
Integers
    have exact products: in float64 as long as they are below 2^53, otherwise in int64.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.arrays.numpy import quiet
from tfrankmetrics.columns.read_column import FIRST_INEXACT
from tfrankmetrics.inputs.dense import as_scores
from tfrankmetrics.inputs.devices import on_its_device
from tfrankmetrics.inputs.model_inputs import (
    flattened,
    library_of_inputs,
    map_arrays,
    padded,
    rows_of,
)
from tfrankmetrics.keras.towers import call_by_user
from tfrankmetrics.retrieval.candidates import Candidates, Chunk, Pairs

# In bfloat16, two scores of the same pair can differ by some percent.
MOST_ROUNDING = 0.1
TERMS_AT_A_TIME = 2**17  # of pairs of vectors, which fit into the cache
RELEVANT_AT_A_TIME = 2**12  # by a function of the user
# Up to this many limits are compared with all scores; more take a sort and a search. A
# sort of a row takes as long as its comparisons with 8 to 33 limits, by the processor.
MOST_COMPARED = 10


class DotProducts:
    """Scores that are dot products of vectors, computed where these are."""

    def read(self, inputs: Any) -> Any:
        """Queries or candidates in the form that the scores need."""
        return map_arrays(on_its_device, inputs)

    def of_block(self, queries: Any, chunk: Chunk) -> Array:
        """The scores of some queries and the candidates of a chunk, `[B, C]`."""
        vectors = queries, chunk.inputs
        require_vectors(*vectors)
        dtype, wide = _dtype_of_product(*vectors), xp.float64
        if dtype == np.int64 and _largest_product(*vectors) >= FIRST_INEXACT:
            wide = xp.int64
        library = xp.library_of(*vectors)
        with xp.computing_in(library):
            queries, candidates = (
                xp.astype(xp.in_library(library, each, like=vectors), wide)
                for each in vectors
            )
            product = xp.matmul(queries, xp.matrix_transpose(candidates))
            return xp.astype(product, dtype)

    def of_relevant(
        self, queries: Any, pairs: Pairs, candidates: Candidates
    ) -> np.ndarray:
        """The score of each pair of a query and its relevant candidate, `[P]`."""
        return of_pairs(
            functools.partial(rows_of, queries), pairs.rows, candidates.at, pairs.ids
        )

    def rounding(self, queries: Any, candidates: Any) -> Array | None:
        """How far scores `[B, C]` may be from those of the two vectors alone.

        None for other dtypes than float64, whose products are exact, or rounded from
        float64. The sum of the absolute terms is at most the largest
        number of one vector times the sum of those of the other, which overflow less
        soon than the squares in a norm.
        """
        if _dtype_of_product(queries, candidates) != np.float64:
            return None
        queries, candidates = (
            abs(xp.astype(each, xp.float64)) for each in (queries, candidates)
        )
        # The sum of d terms is rounded d times. The rest is for the rounding of the
        # terms, of both scores and of this bound.
        bound = (queries.shape[1] + 8) * 2.0**-52
        bound *= xp.max(queries, axis=1, keepdims=True)
        return bound * xp.sum(candidates, axis=1) + np.finfo(np.float64).tiny

    def require_same(
        self, queries: Any, chunk: Chunk, pairs: Pairs, scores: Any, before: Any
    ) -> None:
        """Dot products are the same each time, but for the last bit of a few."""

    def require_finite(self, queries: Any, candidates: Any, scores: Array) -> None:
        """Raises ValueError for a product of finite vectors that is not finite.

        As -inf it would mean that the candidate was not retrieved.
        """
        vectors: list[Any] = [*map(xp.to_numpy, (queries, candidates))]
        finite_rows, finite_columns = (
            np.isfinite(each.astype(np.float64)).all(axis=1) for each in vectors
        )
        are_finite = np.isfinite(xp.to_numpy(scores))
        if (~are_finite & finite_rows[:, np.newaxis] & finite_columns).any():
            names = sorted({each.dtype.name for each in vectors})
            raise ValueError(
                "The dot products of finite vectors must be finite. Received: vectors "
                f"of {' and '.join(names)}, and a product that overflows. Cast them to "
                "float64, or scale them."
            )


class ScoreFunction:
    """Scores that a function of the user computes from some queries and candidates.

    It receives a multiple of some number of rows, of which the last ones may be copies:
    libraries then compute each row in the same way. There are never as many queries as
    candidates, which reveals a transposed result.
    """

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        self._function = function

    def read(self, inputs: Any) -> Any:
        """Queries or candidates in their own library."""
        return inputs

    def of_block(self, queries: Any, chunk: Chunk) -> Array:
        """The scores of some queries and the candidates of a chunk, `[B, C]`."""
        library = library_of_inputs(queries, chunk.inputs)
        number = flattened(queries)[0].shape[0]
        queries = padded(map_arrays(_without_half_precision, queries), library)
        rows = flattened(queries)[0].shape[0]
        inputs = map_arrays(_without_half_precision, chunk.inputs)
        inputs = padded(inputs, library, chunk.width, not_to=rows)
        shape = rows, flattened(inputs)[0].shape[0]
        scores = on_its_device(
            call_by_user(self._function, self._function, queries, inputs)
        )
        if xp.library_of(scores) == "numpy":
            scores = np.asarray(scores)
        if tuple(scores.shape) != shape:
            raise ValueError(
                "`score` must return a score for each query and candidate, [B, C], "
                f"{shape} in this call (the last rows are repeated, to compute all in "
                f"the same way). Received: shape {tuple(scores.shape)}."
            )
        with xp.computing_in(xp.library_of(scores)):
            return as_scores(scores)[:number, : chunk.size]

    def of_relevant(
        self, queries: Any, pairs: Pairs, candidates: Candidates
    ) -> np.ndarray:
        """The score of each pair of a query and its relevant candidate, `[P]`."""
        unique, places = np.unique(pairs.ids, return_inverse=True)
        parts = [np.zeros(0, np.float32)]
        for start in range(0, len(unique), RELEVANT_AT_A_TIME):
            ids = unique[start : start + RELEVANT_AT_A_TIME]
            # They are not consecutive, but `of_block` does not read the start.
            chunk = Chunk(0, len(ids), candidates.at(ids), len(ids))
            scores = xp.to_numpy(self.of_block(queries, chunk))
            here = (places >= start) & (places < start + len(ids))
            parts.append(scores[pairs.rows[here], places[here] - start])
        # The pairs are sorted by the candidates.
        return np.concatenate(parts[1:] or parts)

    def rounding(self, queries: Any, candidates: Any) -> None:
        """None: a function must return the same score each time."""

    def require_finite(self, queries: Any, candidates: Any, scores: Array) -> None:
        """A function may return any numbers."""

    def require_same(
        self, queries: Any, chunk: Chunk, pairs: Pairs, scores: Any, before: Any
    ) -> None:
        """Raises ValueError if the scores of pairs depend on more than the two rows.

        A score may differ from the one before by rounding. Where large terms cancel, as
        in the distance of an item from itself, this is a large part of the score.
        If the difference is large, the candidate is scored again among copies of
        itself. The score then changes if the function also reads other rows.
        """
        scores, before = (
            np.nan_to_num(each.astype(np.float64), posinf=0, neginf=0)
            for each in (scores, before)
        )
        worst = np.abs(scores - before).argmax()
        if np.abs(scores - before)[worst] <= MOST_ROUNDING * np.abs(before).max():
            return
        copies = np.full(chunk.size, pairs.ids[worst] - chunk.start)
        chunk = chunk._replace(inputs=rows_of(chunk.inputs, copies))
        again = xp.to_numpy(self.of_block(queries, chunk))[pairs.rows[worst]]
        if np.abs(again - scores[worst]).max() > MOST_ROUNDING * np.abs(scores[worst]):
            raise ValueError(
                "A candidate must have the same score each time, whatever the other "
                f"candidates are. Received: {before[worst]:.6g} and then "
                f"{scores[worst]:.6g} for the same query and candidate. `score` must "
                "not be random, and must not read other rows, as a softmax over the "
                "candidates does."
            )


Scorer = DotProducts | ScoreFunction


def _without_half_precision(array: Array) -> Array:
    """Floats of 16 bits and fewer as float32, which has few ties of its own."""
    is_half = xp.is_floating(array) and xp.dtype_of(array).itemsize < 4
    return xp.astype(array, xp.float32) if is_half else array


def of_pairs(
    queries_at: Callable[[np.ndarray], Any],
    rows: np.ndarray,
    candidates_at: Callable[[np.ndarray], Any],
    places: np.ndarray,
) -> np.ndarray:
    """The dot product of each pair of a query and a candidate, `[P]`.

    It depends on the two vectors alone. The functions return the vectors at some
    positions, as many at a time as fit into the cache.
    """

    def products(some: slice) -> np.ndarray:
        vectors = queries_at(rows[some]), candidates_at(places[some])
        dtype = _dtype_of_product(*vectors)
        wide = np.int64 if dtype == np.int64 else np.float64
        queries, candidates = (xp.to_numpy(each).astype(wide) for each in vectors)
        with quiet():
            return np.sum(queries * candidates, axis=1).astype(dtype)

    none = queries_at(rows[:0]), candidates_at(places[:0])
    require_vectors(*none)
    step = max(1, TERMS_AT_A_TIME // max(1, none[0].shape[1]))
    starts = range(0, max(1, len(rows)), step)
    return np.concatenate([products(slice(each, each + step)) for each in starts])


def elements(scores: Array, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The scores at some rows and columns."""
    places = rows * scores.shape[1] + columns
    # JAX compiles an operation for each number of places. Powers of two are few.
    padding = 2 ** len(places).bit_length() - len(places)
    places = np.pad(places, (0, padding))
    chosen = xp.to_numpy(xp.take(xp.reshape(scores, (-1,)), places))
    return chosen[: len(rows)]


def near_limits(scores: Array, rounding: Array, limits: np.ndarray) -> Array:
    """Whether scores `[B, C]` are within rounding of a limit of their row `[B, M]`."""
    limits = np.sort(np.where(np.isnan(limits), np.inf, limits))
    limits = xp.in_library(xp.library_of(scores), limits, like=scores)
    if limits.shape[1] <= MOST_COMPARED:
        is_near = xp.zeros_like(scores, dtype=xp.bool)
        for limit in xp.unstack(limits, axis=1):
            is_near |= abs(scores - limit[:, xp.newaxis]) <= rounding
        return is_near
    first = xp.searchsorted(limits, scores - rounding, side="left")
    return first < xp.searchsorted(limits, scores + rounding, side="right")


def require_vectors(queries: Any, candidates: Any) -> None:
    """Raises ValueError for inputs that have no dot products."""
    shapes = [[*getattr(each, "shape", [])] for each in (queries, candidates)]
    if [len(shape) for shape in shapes] != [2, 2] or shapes[0][1] != shapes[1][1]:
        raise ValueError(
            "For a dot product, queries and candidates must be vectors of the same "
            f"length, [B, d] and [V, d]. Received: shapes {shapes[0] or 'of a dict'} "
            f"and {shapes[1] or 'of a dict'}. To score other inputs, pass `score`, or "
            "towers that compute vectors."
        )
    for name, each in (("queries", queries), ("candidates", candidates)):
        dtype = xp.dtype_of(each)
        is_number = xp.is_floating(each) or dtype.kind in "iu"
        if not is_number or dtype.itemsize > 8:
            raise ValueError(
                f"`{name}` must be vectors of real numbers of at most 64 bits. "
                f"Received: {dtype.name}."
            )


def _dtype_of_product(queries: Array, candidates: Array) -> np.dtype:
    """int64 of two integers, float64 of one or with float64, and float32 of others."""
    dtypes = [xp.dtype_of(each) for each in (queries, candidates)]
    are_integers = [dtype.kind in "iu" for dtype in dtypes]
    if all(are_integers):
        return np.dtype(np.int64)
    is_wide = any(are_integers) or np.dtype(np.float64) in dtypes
    return np.dtype(np.float64 if is_wide else np.float32)


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
