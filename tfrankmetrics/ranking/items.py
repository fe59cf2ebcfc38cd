"""Items and their gains, which formulas read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array


class Items(NamedTuple):
    """Some items of each query: all that are judged, or those at ranks 1 ... D."""

    labels: Array  # [B, D], or [B, D, T] with T subtopics; 0 where not valid
    valid: Array  # [B, D] bool, False for padding
    retrieved: Array  # [B, D] bool, also False for a score of -inf
    weights: Array | None  # [B, D] float64
    # [B, D] bool, also False for unjudged items; None if all were judged.
    judged: Array | None = None
    # [B, D] int: of recommended items, None if they are the positions 0, 1, ...; of
    # judged items the order of their ids, None if they have no ids.
    ids: Array | None = None

    @property
    def xp(self) -> ModuleType:
        """The operations on arrays, for the library of the items."""
        return xp

    def only(self, which: Array) -> Items:
        """Turns all items but these into padding."""
        label_is_kept = which
        if self.labels.ndim == 3:
            shape = xp.shape(self.labels)
            label_is_kept = xp.broadcast_to(which[..., xp.newaxis], shape)
        labels = xp.select(label_is_kept, self.labels, 0)
        judged = None if self.judged is None else self.judged & which
        return Items(labels, which, which, self.weights, judged)

    def positions(self, number: int) -> Array:
        """The position of each item in data about `number` items, `[B, D]`.

        An id without data, which makes the weight of the query NaN, is clipped.
        """
        if self.ids is None:
            return xp.arange(number, dtype=xp.int64, like=self.valid)[xp.newaxis]
        return xp.clip(self.ids, 0, number - 1)

    @classmethod
    def recommended(cls, ids: Array | None, exists: Array) -> Items:
        """Recommended items, whose label is only whether there is one."""
        if ids is not None:
            ids = xp.where(exists, xp.astype(ids, xp.int64), 0)
        return cls(exists, exists, exists, None, ids=ids)

    @classmethod
    def retrieved_with(cls, labels: Array) -> Items:
        """Items with these labels that were all retrieved, without weights."""
        all_true = xp.ones_like(labels, xp.bool)
        return cls(labels, all_true, all_true, None)


class ItemGain:
    """The contribution of each item to a metric, such as 2^label - 1, or 1 if relevant.

    A subclass computes gains from items, which provide `labels` `[B, D]` (with
    subtopics `[B, D, T]`; 0 for padding), and the booleans `valid` (False for padding)
    and `retrieved` (also False for a score of -inf), both `[B, D]`. Gains are float64,
    and 0 for padding.

    The subclass should be a frozen dataclass whose fields are options of the metric.
    Then two metrics with the same options have equal gains, which are computed once.

    >>> import dataclasses
    >>> @dataclasses.dataclass(frozen=True)
    ... class ShareOfMaximum(ItemGain):
    ...     max_label: float
    ...
    ...     def __call__(self, items):
    ...         return xp.astype(items.labels, xp.float64) / self.max_label
    """

    @property
    def increases_with_label(self) -> bool:
        """Whether items sorted by label are sorted by gain, too. False if unknown."""
        return False

    @property
    def rule(self) -> str:
        """The rule that is violated if the value of a metric is not finite."""
        return "The gains and the values of a metric must be finite."

    def __call__(self, items: Items) -> Array:
        """The gain of each item, float64 `[B, D]`, 0 for padding."""
        raise NotImplementedError

    def sum(self, items: Items, which: Array | None = None) -> Array:
        """The sum of the gains of the items, `[B]`.

        Args:
            items: The items.
            which: Booleans, True for the items to sum; by default all.
        """
        gains = self(items)
        if which is not None:
            gains = xp.select(which, gains, 0)
        return xp.sum(gains, axis=1)


@dataclasses.dataclass(frozen=True, eq=False)
class DerivedGain(ItemGain):
    """A gain derived from `gain` by a function of the items."""

    function: Callable[[Items], Array]

    def __call__(self, items: Items) -> Array:
        """The gain of each item."""
        return self.function(items)


@dataclasses.dataclass(frozen=True, eq=False)
class DataGain(ItemGain):
    """A number for each item of a catalog as its gain, or a vector.

    The formulas of an `ItemMetric` make it from data about the items.

    >>> import tfrankmetrics as trm
    >>> def mean_price(lists, *, price):
    ...     prices = lists.expected(trm.DataGain(price.values))
    ...     total = lists.sum_to_cutoffs(prices)
    ...     return lists.xp.divide_no_nan(total, lists.num_to_cutoffs)

    Args:
        values: The numbers, `[V]`, or vectors, `[V, T]`: the `values` of an option, or
            an array that is computed from these, such as `price.values < 10`.
    """

    values: Array

    def __call__(self, items: Items) -> Array:
        """The number of each item, float64 `[B, D]`, or `[B, D, T]` for vectors."""
        values = xp.asarray(self.values, xp.float64, like=items.valid)
        here = xp.take(values, items.positions(self.values.shape[0]), axis=0)
        valid = items.valid if here.ndim == 2 else items.valid[..., xp.newaxis]
        return xp.where(valid, here, 0)

    def sum(self, items: Items, which: Array | None = None) -> Array:
        """The sum of the gains of the items, `[B]` or `[B, T]`.

        Args:
            items: The items.
            which: Booleans, True for the items to sum; by default all.
        """
        values = xp.asarray(self.values, xp.float64, like=items.valid)
        chosen = items.valid if which is None else which
        positions = None if items.ids is None else items.positions(self.values.shape[0])
        return xp.sum_chosen(chosen, values, positions)


def lowest_score(scores: Array) -> int | float:
    """The score of items that were not retrieved: -inf, or the lowest integer.

    Users may pass -inf. A score equal to the lowest integer is raised by one to free
    this number.
    """
    dtype = xp.dtype_of(scores)
    return int(np.iinfo(dtype).min) if dtype.kind in "iu" else -float("inf")


def is_retrieved(scores: Array) -> Array:
    """True for retrieved items."""
    return xp.not_equal(scores, lowest_score(scores))


def lowest_relevant(threshold: float, labels: Array) -> np.floating:
    """The lowest number in the labels' dtype that is at least the threshold.

    Rounded to the nearest number, the threshold could reach a lower label. It is above
    0 even where the threshold is denormal, which TensorFlow treats as 0.
    """
    # For integers, a float that holds them.
    dtype = np.result_type(xp.dtype_of(labels), np.float16).type
    with np.errstate(over="ignore"):
        lowest = dtype(threshold)
    if float(lowest) < threshold:
        lowest = np.nextafter(lowest, dtype(np.inf))
    return max(lowest, np.finfo(dtype).tiny)


def count(where: Array) -> Array:
    """How many are True in each row, float64 `[B]`."""
    # float32 is exact up to 2^24, and faster than float64.
    number = xp.sum(xp.astype(where, xp.float32), axis=1)
    return xp.astype(number, xp.float64)


def without_negative_zero(keys: Array) -> Array:
    """The same numbers, to be sorted: XLA's sort puts -0.0 below 0.0."""
    return xp.where(xp.not_equal(keys, 0), keys, 0)
