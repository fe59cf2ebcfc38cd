"""Items ranked by score, and sums over their ranks.

The axes of all tensors: B queries, J judged items, D ranks down to the deepest cutoff
(see `depth_for`), and C cutoffs.

The D ranks are 1 ... D, with one exception: of a large catalogue without a cutoff, only
some are read (see `some_ranks`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar, cast

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.graphs import current_scope
from tfrankmetrics.ranking.items import ItemGain, Items

Method = TypeVar("Method", bound=Callable[..., Any])


def cached(method: Method) -> Method:
    """Caches the result of a method for each gain, which many metrics share.

    The key includes the scope, because a branch or a loop of a formula has a separate
    one.
    """

    @functools.wraps(method)
    def from_cache(self: RankedItems, *gain: ItemGain) -> Any:
        # NumPy's arrays, which have values, belong to no scope.
        is_array = isinstance(self.judged.labels, np.ndarray)
        key = method.__name__, *gain, None if is_array else current_scope()
        if key not in self.cache:
            self.cache[key] = method(self, *gain)
        return self.cache[key]

    return cast(Method, from_cache)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class RankedItems:
    """Items by rank, and all judged items; the base of `RankedLists`."""

    ranked: Items  # [B, D]
    judged: Items  # [B, J]
    deepest: int | None  # the deepest cutoff that can be read; None is the whole list
    # Ascending and unique, at most `deepest`; None, the whole list, is the last.
    cutoffs: tuple[int | None, ...] = ()
    # The ranks that are read, ascending, float64 [B, D], if they are not 1 ... D: those
    # down to the deepest cutoff and to the number of relevant items, and below them
    # only the ranks of the relevant items and of all that are tied with these. The
    # other ranks add nothing to a sum.
    some_ranks: Array | None = None
    cache: dict[tuple, Any] = dataclasses.field(default_factory=dict)

    @property
    def xp(self) -> ModuleType:
        """The operations on arrays, for the library of the lists."""
        return xp

    @property
    def k(self) -> Array:
        """The cutoffs, float64 `[C]`; infinity is the whole list."""
        numbers = [math.inf if k is None else k for k in self.cutoffs]
        return xp.asarray(numbers, xp.float64, like=self.ranked.valid)

    @property
    @cached
    def depth(self) -> Array | int:
        """D, the number of ranks."""
        known = xp.known_size(self.ranked.valid)
        return xp.shape(self.ranked.valid)[1] if known is None else known

    @property
    def ranks(self) -> Array:
        """The ranks 1 ... D, float64 `[D]`, or `some_ranks` `[B, D]`."""
        return self.positions if self.some_ranks is None else self.some_ranks

    @property
    @cached
    def positions(self) -> Array:
        """The numbers 1 ... D, float64 `[D]`.

        They are also the ranks down to every cutoff.
        """
        if isinstance(self.depth, int):
            ranks = np.arange(1, self.depth + 1)
            return xp.asarray(ranks, xp.float64, like=self.ranked.valid)
        return xp.arange(1, xp.astype(self.depth, xp.float64) + 1, dtype=xp.float64)

    def sum_to_cutoffs(self, values: Array) -> Array:
        """Sum of float64 `values` `[B, D]` over ranks 1 ... k, `[B, C]`."""
        if self._is_shallow:
            is_counted = self.positions[:, xp.newaxis] <= self.k
            return xp.matmul(values, xp.astype(is_counted, xp.float64))
        parts = [values if k is None else values[:, :k] for k in self.cutoffs]
        return xp.stack([xp.sum(part, axis=1) for part in parts], axis=1)

    def running_sums(self, values: Array) -> Array:
        """Sum of float64 `values` `[B, D]` down to each rank, `[B, D]`."""
        if self._is_shallow:
            return xp.matmul(values, self._is_down_to_each_rank)
        return xp.cumulative_sum(values, axis=1)

    @property
    @cached
    def _is_down_to_each_rank(self) -> Array:
        """1 where the row, a rank, is at most the column, a rank, and 0 elsewhere."""
        return xp.astype(self.positions[:, xp.newaxis] <= self.positions, xp.float64)

    @property
    def _is_shallow(self) -> bool:
        """Whether TensorFlow reads at most 64 ranks.

        In this case a product with a matrix of zeros and ones is faster than tf.cumsum.
        NumPy would compute the product with BLAS, whose order of summation depends on
        the processor.
        """
        if xp.library_of(self.ranked.valid) != "tensorflow":
            return False
        if isinstance(self.depth, int):
            return self.depth <= 64
        return self.deepest is not None and self.deepest < 64

    def at_cutoffs(self, curve: Array) -> Array:
        """The value of a curve over the ranks, `[B, D]`, at each cutoff, `[B, C]`.

        Below the end of a list the curve stays constant.
        """
        curve = xp.pad(curve, [[0, 0], [1, 0]])  # for lists without any item
        ranks = xp.minimum(self.k, xp.astype(self.depth, xp.float64, like=curve))
        return xp.take(curve, xp.astype(ranks, xp.int32), axis=1)


def depth_for(deepest: int | None, lists: Array) -> Array | int:
    """How deep to rank lists `[B, N]` for the deepest cutoff, at most N.

    One rank deeper: if the cutoff cuts a group of ties, the last two ranks have equal
    scores.
    """
    size = xp.known_size(lists)
    if size is None:
        size = xp.shape(lists)[1]
        return size if deepest is None else xp.minimum(deepest, size - 1) + 1
    return size if deepest is None else min(deepest + 1, size)
