"""Data about the items of a catalog, which some metrics require.

The data are options of a metric: a number, a vector or a category for each item. The
classes below hold checked data. Two instances with the same data are equal.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from tfrankmetrics.columns.read_column import (
    as_values,
    collected,
    column_names,
    is_frame,
)
from tfrankmetrics.rules import is_finite, shortened


class ItemData:
    """A value for each item of a catalog, by position or by id.

    Args:
        values: One row for each item.
        ids: The ids of the items in the order of the rows; None if an item's id is
            its position.
        names: Of categories, the G names, sorted; `values` are positions in them.
    """

    words: ClassVar[str]  # the rule for the data that users pass
    kinds: ClassVar[str] = "fiubO"  # of the dtypes that they may have

    def __init__(
        self,
        values: np.ndarray,
        ids: tuple[Hashable, ...] | None = None,
        names: tuple[Any, ...] = (),
    ):
        self.values, self.ids, self.names = values, ids, names
        self.values.setflags(write=False)

    @classmethod
    def of(cls, option: str, data: Any) -> ItemData:
        """The data that a user passed for an option.

        Raises:
            ValueError: They are not one valid value for each item.
        """
        if isinstance(data, cls):
            return data
        ids, values = None, (data := collected(data))
        if isinstance(data, Mapping):
            ids, values = tuple(data), list(data.values())
        elif is_frame(data) and len(column_names(data)) == 2:
            columns = (as_values(data[name]) for name in column_names(data))
            ids, values = tuple(next(columns)), next(columns)
        elif hasattr(data, "iloc") and not is_frame(data):  # a Series of pandas
            ids, values = tuple(data.index.tolist()), data.tolist()
        item_data = cls._read(ids, values)
        if item_data is None and _are_pairs(data):  # data by id as they were saved
            ids = tuple(tuple(i) if isinstance(i, list) else i for i, _ in data)
            item_data = cls._read(ids, [value for _, value in data])
        if item_data is None or not len(item_data):
            raise ValueError(
                f"`{option}` must be {cls.words}, in the order of the items' ids, a "
                "dict from the id of each item to it, or a frame of both columns. "
                f"Received: {shortened(data)}."
            )
        if item_data.ids is not None and len({*item_data.ids}) < len(item_data.ids):
            raise ValueError(
                f"`{option}` must contain each item once. Received: an id twice."
            )
        return item_data

    @classmethod
    def _read(cls, ids: tuple[Hashable, ...] | None, data: Any) -> ItemData | None:
        try:
            array = np.asarray(data)
            values = cls.checked(array) if array.dtype.kind in cls.kinds else None
        except (OverflowError, TypeError, ValueError):
            return None
        return None if values is None else cls(values, ids, cls.names_of(array))

    @staticmethod
    def checked(values: np.ndarray) -> np.ndarray | None:
        """The values in the form that formulas read; None if they are invalid."""
        raise NotImplementedError

    @staticmethod
    def names_of(values: np.ndarray) -> tuple[Any, ...]:
        """The names of the categories among valid values."""
        return ()

    def __len__(self) -> int:
        return len(self.values)

    @functools.cached_property
    def _digest(self) -> bytes:
        parts = (str(self.values.shape).encode(), self.values.tobytes())
        digest = hashlib.blake2b(b"".join(parts))
        digest.update(repr((self.ids, self.names)).encode())
        return digest.digest()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._digest == self._digest  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        shape = ", ".join(map(str, self.values.shape))
        return f"<{type(self).__name__} [{shape}]>"

    def by_position(self, items: Sequence[Hashable]) -> ItemData:
        """The same data for these items, in this order.

        Raises:
            ValueError: The data of one of the items are missing.
        """
        if self.ids is None:
            return self
        rows = {item: row for row, item in enumerate(self.ids)}
        missing = [item for item in items if item not in rows]
        if missing:
            raise ValueError(
                "Data about items must include each recommended item. Received: none "
                f"for the item {shortened(missing[0])}."
            )
        of_items = np.array([rows[item] for item in items], np.intp)
        return type(self)(self.values[of_items], None, self.names)

    @property
    def config(self) -> Any:
        """The argument that recreates these data, as plain Python."""
        values = self.values.tolist()
        if self.names:
            values = [self.names[code] for code in values]
        return as_config(self.ids, values)


def as_config(ids: Sequence[Hashable] | None, values: Sequence[Any]) -> list[Any]:
    """Values, or pairs of an id and its value, since JSON has no keys but strings."""
    if ids is None:
        return [*values]
    return [[*pair] for pair in zip(ids, values, strict=True)]


def _are_pairs(data: Any) -> bool:
    return isinstance(data, list) and all(
        isinstance(each, list) and len(each) == 2 for each in data
    )


class ItemNumbers(ItemData):
    """A number for each item, such as its popularity."""

    words = "a finite number of at least 0 for each item"

    @staticmethod
    def checked(values: np.ndarray) -> np.ndarray | None:
        """Float64 `[V]`."""
        numbers = values.astype(np.float64)
        is_valid = numbers.ndim == 1 and (np.isfinite(numbers) & (numbers >= 0)).all()
        return numbers if is_valid else None


class ItemProbabilities(ItemData):
    """A probability for each item, such as the share of users who know it."""

    words = "a number above 0 and at most 1 for each item"

    @staticmethod
    def checked(values: np.ndarray) -> np.ndarray | None:
        """Float64 `[V]`."""
        numbers = values.astype(np.float64)
        is_valid = numbers.ndim == 1 and ((numbers > 0) & (numbers <= 1)).all()
        return numbers if is_valid else None


class ItemVectors(ItemData):
    """A vector for each item, of the length 1, or 0 for a vector of zeros."""

    words = "a vector of finite numbers for each item, [V, d]"

    @staticmethod
    def checked(values: np.ndarray) -> np.ndarray | None:
        """Float64 `[V, d]`, with a length of 1."""
        vectors = values.astype(np.float64)
        if vectors.ndim != 2 or not vectors.shape[1] or not np.isfinite(vectors).all():
            return None
        # Scaling by a power of 2 avoids overflow, and changes no bit.
        exponents = np.frexp(np.abs(vectors).max(axis=1, keepdims=True))[1]
        scaled = np.ldexp(vectors, -exponents)
        lengths = np.sqrt(np.sum(scaled * scaled, axis=1, keepdims=True))
        # Vectors that were saved have the length 1 already, and keep their bits.
        is_unit = np.abs(np.ldexp(lengths, np.minimum(exponents, 2)) - 1) < 1e-15
        unit = scaled / np.where(lengths > 0, lengths, 1)
        return np.where(is_unit, vectors, unit)


class ItemCategories(ItemData):
    """A category for each item, such as its genre."""

    words = "a category for each item, a string or an integer"
    kinds = "iuUbO"

    @staticmethod
    def checked(values: np.ndarray) -> np.ndarray | None:
        """The position of each category in sorted order, int64 `[V]`."""
        if values.ndim != 1 or any(value is None for value in values.tolist()):
            return None
        return np.unique(values, return_inverse=True)[1].astype(np.int64)

    @staticmethod
    def names_of(values: np.ndarray) -> tuple[Any, ...]:
        """The G categories, sorted."""
        return tuple(np.unique(values).tolist())


@dataclasses.dataclass(frozen=True, repr=False)
class CategoryShares:
    """A share for each category; the shares add up to 1.

    Args:
        shares: Pairs of a category and its share, sorted by category.
    """

    shares: tuple[tuple[Any, float], ...]

    words: ClassVar[str] = "a dict from each category to its share, which add up to 1"

    @classmethod
    def of(cls, option: str, data: Any) -> CategoryShares:
        """The shares that a user passed, as a dict.

        Raises:
            ValueError: They are not numbers of at least 0 that add up to 1.
        """
        if isinstance(data, cls):
            return data
        shares: Any = dict(data) if _are_pairs(data) else data  # as they were saved
        is_valid = isinstance(shares, Mapping) and all(
            is_finite(share) and share >= 0 for share in shares.values()
        )
        if not is_valid or abs(sum(shares.values()) - 1) > 1e-6:
            raise ValueError(
                f"`{option}` must be {cls.words}. Received: {shortened(data)}."
            )
        pairs = ((category, float(share)) for category, share in shares.items())
        return cls(tuple(sorted(pairs, key=lambda pair: repr(pair[0]))))

    def of_categories(self, categories: ItemCategories) -> np.ndarray:
        """The share of each category of the items.

        Raises:
            ValueError: A category does not occur among the items.
        """
        shares = dict(self.shares)
        if unknown := shares.keys() - {*categories.names}:
            raise ValueError(
                "A target must contain only categories of the items. Received: "
                f"{shortened(min(unknown, key=repr))}, which is not the category of "
                "any item."
            )
        return np.array([shares.get(name, 0.0) for name in categories.names])

    def __repr__(self) -> str:
        return repr(dict(self.shares))

    @property
    def config(self) -> list[list[Any]]:
        """The argument that recreates these shares, as plain Python."""
        return as_config(*zip(*self.shares, strict=True))
