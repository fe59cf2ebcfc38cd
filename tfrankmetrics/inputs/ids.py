"""Relevant ids and recommended ids: `inputs="ids"`.

Because recommended ids are ranked already, nothing is sorted. Each one is looked up
among the relevant ids. A relevant id that was not recommended is treated as not
retrieved.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array, Library
from tfrankmetrics.columns.read_column import Codes, as_list
from tfrankmetrics.inputs.dense import first_value, require_shape
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.inputs.relevant_ids import (
    PADDING,
    as_ids,
    is_repeated,
    read_relevant,
    relevance_of,
    require_below,
    require_finite_relevance,
)
from tfrankmetrics.inputs.weights import query_weights
from tfrankmetrics.inputs.whole_data import warn_if_no_id_matches, warn_if_no_ids
from tfrankmetrics.ranking.items import Items, count
from tfrankmetrics.ranking.ranked_lists import RankedLists, depth_for
from tfrankmetrics.ranking.recommended import Recommended
from tfrankmetrics.ranking.ties import TieBreaking

# The number of the first relevant id that was not recommended, among ids such as text.
FIRST_OTHER = 2**62


@dataclasses.dataclass(frozen=True, eq=False)
class IdLists(Lists):
    """Relevant and recommended ids, checked."""

    relevant: Array  # [B, M] int64
    relevance: Array  # [B, M] float64
    recommended: Array  # [B, K] int64, best first
    count_repeats: bool  # whether repeated recommendations are counted each time

    def has_valid_values(self) -> Array:
        """Whether all ids and grades of a query are valid, `[B]`."""
        are_ids = xp.all(self.relevant >= PADDING, axis=1) & xp.all(
            self.recommended >= PADDING, axis=1
        )
        has_gaps = xp.any(_follows_padding(self.recommended), axis=1)
        are_finite = xp.isfinite(xp.sum(self.relevance, axis=1))
        return are_ids & ~has_gaps & are_finite

    def require_valid_values(self) -> None:
        """Raises ValueError for invalid ids, grades and weights."""
        for name, ids in (("y_true", self.relevant), ("y_pred", self.recommended)):
            invalid = np.asarray(ids) < PADDING
            if invalid.any():
                raise ValueError(
                    "Ids must be at least 0, or -1 for padding. Received in "
                    f"`{name}`: {first_value(invalid, ids)}."
                )
        gaps = np.asarray(_follows_padding(self.recommended))
        if gaps.any():
            raise ValueError(
                "Recommended ids must be padded at the end: no id may follow a -1. "
                f"Received one in query {np.argwhere(gaps)[0][0]}."
            )
        require_finite_relevance(self.relevance)
        super().require_valid_values()

    def require_items(self, number: int, metric: str) -> None:
        """Raises ValueError for a recommended id that is not below a number."""
        require_below(number, metric, xp.to_numpy(self.recommended))

    def warn_of_mistakes(
        self, y_true: Any, reads_judgments: bool, is_complete: bool
    ) -> None:
        """Warns of a 0 or 1 for each item, and of ids none of which match."""
        warn_if_no_ids(y_true)
        if is_complete:
            relevant, recommended = map(np.asarray, (self.relevant, self.recommended))
            warn_if_no_id_matches(relevant, recommended)

    def ascending_relevant(self) -> tuple[Array, Array]:
        """The relevant ids in ascending order, at least one, and their relevance."""
        # On a GPU, TensorFlow cannot pad integers of 64 bits.
        padding = xp.asarray(PADDING, xp.int64, like=self.relevant)
        padding = xp.full([xp.shape(self.relevant)[0], 1], padding, like=self.relevant)
        relevant = xp.concat([self.relevant, padding], axis=1)
        relevance = xp.pad(self.relevance, [[0, 0], [0, 1]])
        by_id = xp.argsort(relevant, axis=1)
        return xp.gather(relevant, by_id), xp.gather(relevance, by_id)

    def rank(
        self, deepest: int | None, tie_breaking: TieBreaking, first_query: Array | int
    ) -> RankedLists:
        """The recommended items in their order, and the relevant items they miss.

        The latter are in the order of `ascending_relevant`.
        """
        is_recommended = self.recommended != PADDING
        ascending, relevance = self.ascending_relevant()
        # The first of equal ids, since a search finds that one.
        is_later = xp.equal(ascending[:, 1:], ascending[:, :-1])
        is_first = ~xp.pad(is_later, [[0, 0], [1, 0]]) & (ascending != PADDING)
        # A search, since a comparison of all pairs would require a tensor [B, K, M].
        last = xp.shape(ascending)[1] - 1
        position = xp.searchsorted(ascending, self.recommended)
        position = xp.minimum(position, xp.astype(last, position.dtype, like=position))
        is_match = xp.equal(xp.gather(ascending, position), self.recommended)
        is_match &= is_recommended
        if not self.count_repeats:
            is_match &= ~is_repeated(self.recommended)
        of_recommended = xp.where(is_match, xp.gather(relevance, position), 0)
        is_found = xp.scatter_max(
            xp.zeros_like(relevance),
            xp.astype(position, xp.int64),
            xp.astype(is_match, xp.float64),
        )
        is_missed = is_first & xp.equal(is_found, 0)
        labels = xp.concat([of_recommended, xp.where(is_missed, relevance, 0)], axis=1)
        valid = xp.concat([is_recommended, is_missed], axis=1)
        retrieved = xp.concat([is_recommended, xp.zeros_like(is_missed)], axis=1)
        depth = depth_for(deepest, labels)
        is_ranked = retrieved[:, :depth]
        ranked = Items(labels[:, :depth], is_ranked, is_ranked, None)
        return RankedLists(
            ranked=ranked.only(is_ranked),
            judged=Items(labels, valid, retrieved, None),
            ties=None,
            query_weights=self.query_weights,
            deepest=deepest,
            num_retrieved=count(retrieved),
            num_judged=count(valid),
        )

    def recommend(
        self, deepest: int | None, tie_breaking: TieBreaking, first_query: Array | int
    ) -> Recommended:
        """The recommended items, without ties."""
        ids = self.recommended[:, : depth_for(deepest, self.recommended)]
        return Recommended(
            at_ranks=ids, exists=ids != PADDING, query_weights=self.query_weights
        )


def _follows_padding(ids: Array) -> Array:
    return (ids[:, 1:] != PADDING) & (ids[:, :-1] == PADDING)


def read_ids(
    y_true: Any,
    y_pred: Any,
    sample_weight: Any = None,
    *,
    count_repeats: bool = False,
    library: Library = "tensorflow",
) -> IdLists:
    """Checks relevant and recommended ids.

    Args:
        y_true: Relevant ids `[B, M]` or `[B]`, integers, -1 for padding, in any order.
            Or a dict of `ids` and their `relevance`, of the same shape.
        y_pred: Recommended ids `[B, K]`, best first, with -1 for padding at the end.
            Both may be `[M]` and `[K]`, for one query.
        sample_weight: None, a scalar, `[B]` or `[B, 1]`.
        count_repeats: Whether repeated recommendations are counted each time.
        library: The library that looks up the ids.

    Raises:
        ValueError: A shape or dtype is not one of these.
    """
    relevant, relevance, _ = read_relevant(y_true, {"relevance"}, library)
    recommended = as_ids("`y_pred`", y_pred, library=library).tensor
    received = (
        f"Received: y_true of shape {relevant.shape}, y_pred of shape "
        f"{recommended.shape}."
    )
    if recommended.ndim == 1 and relevant.ndim == 1:
        relevant, recommended = relevant[xp.newaxis], recommended[xp.newaxis]
    elif relevant.ndim == 1:
        relevant = relevant[:, xp.newaxis]
    if relevant.ndim != 2 or recommended.ndim != 2:
        raise ValueError(
            "With inputs='ids', relevant ids must be of shape [B, M] and recommended "
            f"ids of shape [B, K], or [M] and [K] for one query. {received}"
        )
    relevant = require_shape(
        relevant,
        (recommended.shape[0], None),
        xp.stack([xp.shape(recommended)[0], xp.shape(relevant)[1]], like=relevant),
        "Relevant and recommended ids must be for the same number of queries. "
        f"{received}",
    )
    return IdLists(
        relevant=relevant,
        relevance=relevance_of(relevant, relevance),
        recommended=recommended,
        query_weights=query_weights(sample_weight, recommended),
        count_repeats=count_repeats,
    )


class IdNumbers:
    """Numbers for ids that are not integers, such as strings.

    Recommended ids are 0, 1, ..., so that they fit into a catalog. Relevant ids that
    were not recommended have high numbers.
    """

    def __init__(self) -> None:
        self._recommended, self._others = Codes(), Codes()

    def of_recommended(self, item: Any) -> int:
        """The number of a recommended item."""
        return self._recommended[item]

    def of_relevant(self, item: Any) -> int:
        """The number of a relevant item, once all recommended ones have theirs."""
        if item in self._recommended:
            return self._recommended[item]
        return FIRST_OTHER + self._others[item]

    def ids(self) -> dict[int, Any]:
        """The ids by their numbers."""
        numbers = {number: item for item, number in self._recommended.items()}
        others = self._others.items()
        return numbers | {FIRST_OTHER + number: item for item, number in others}


def as_integer_ids(
    y_true: Any,
    y_pred: Any,
    numbers: IdNumbers | None = None,
    names: str = "Relevant and recommended ids",
) -> tuple[Any, Any]:
    """Replaces ids that are not integers, such as strings, by numbers.

    `names` states in an error what both are.
    """
    is_dict = isinstance(y_true, Mapping)
    if is_dict and "ids" not in y_true:
        return y_true, y_pred  # an error that `from_dict` raises
    ids = _as_nested(y_true["ids"] if is_dict else y_true)
    if isinstance(ids, (list, tuple)):
        ids = [[*row] if _is_set(row) else row for row in ids]
    y_pred = _as_nested(y_pred)
    require_ordered(y_pred)
    kinds = [kind for data in (ids, y_pred) if (kind := _kind_of(data)) is not None]
    if len({*kinds}) > 1:
        raise ValueError(
            f"{names} must have the same type, or none match. Received: "
            f"{' and '.join(kind.__name__ for kind in kinds)}."
        )
    if not {*kinds} <= {int}:
        numbers = IdNumbers() if numbers is None else numbers
        y_pred = _map_ids(numbers.of_recommended, y_pred, kinds[0])
        ids = _map_ids(numbers.of_relevant, ids, kinds[0])
    return ({**y_true, "ids": ids} if is_dict else ids), y_pred


def require_ordered(y_pred: Any) -> None:
    """Raises ValueError for recommended ids in sets."""
    if isinstance(y_pred, (list, tuple)) and any(map(_is_set, y_pred)):
        raise ValueError(
            "Recommended ids must be in order, the best first. Received: a set, which "
            "is unordered."
        )


def as_positions(data: Any, rows: Codes) -> Any:
    """Nested lists of ids as nested lists of their rows, and -1 for padding."""

    def row_of(item: Any) -> int:
        is_padding = isinstance(item, numbers.Number) and item == PADDING
        return PADDING if is_padding else rows[item]

    return _map_ids(row_of, data)


def _map_ids(function: Callable[[Any], int], data: Any, kind: type = object) -> Any:
    """A function of each id in nested lists, all of which are of one type."""
    if not isinstance(data, str):  # as most ids are
        data = _as_nested(data)
        if _is_nested(data) or _is_set(data):
            return [_map_ids(function, item, kind) for item in data]
    if not isinstance(data, kind):
        raise ValueError(
            f"Ids must all have the same type. Received: {data!r} and others."
        )
    if not isinstance(data, Hashable):
        raise ValueError(
            "Ids must be integers, strings or of another hashable type. "
            f"Received: {data!s:.200}."
        )
    return function(data)


def _is_nested(data: Any) -> bool:
    """Whether data are several ids, rather than one."""
    is_sequence = isinstance(data, (Sequence, np.ndarray))
    return is_sequence and not isinstance(data, (str, bytes))


def _is_set(data: Any) -> bool:
    return isinstance(data, (set, frozenset))


def _as_nested(data: Any) -> Any:
    """Columns of a table and tensors of strings as arrays or lists."""
    data = as_list(data)
    if xp.is_tensor(data) and data.dtype.name == "string":
        return _decoded(data.to_list() if hasattr(data, "to_list") else data.numpy())
    if hasattr(data, "to_numpy"):
        data = data.to_numpy()
    if isinstance(data, np.ndarray) and data.dtype.kind == "O":
        return data.tolist()
    return data


def _decoded(data: Any) -> Any:
    """Nested lists of text for nested lists, or an array, of bytes."""
    if isinstance(data, bytes):
        return data.decode("utf-8")
    return [_decoded(item) for item in data]


def _kind_of(data: Any) -> type | None:
    """The type of the first id: `int`, `str` or another; None without any id."""
    if data is None:
        return None
    if hasattr(data, "dtype") and data.dtype != object:
        is_text = getattr(data.dtype, "kind", "") == "U"
        return str if is_text else int  # `as_ids` checks for floats
    if _is_nested(data):
        kinds = (_kind_of(item) for item in data)
        return next((kind for kind in kinds if kind is not None), None)
    if isinstance(data, numbers.Number):
        return int
    return str if isinstance(data, str) else type(data)
