"""Relevant ids and recommended ids: `inputs="ids"`.

Because recommended ids are ranked already, nothing is sorted. Each one is looked up
among the relevant ids. A relevant id that was not recommended is treated as not
retrieved.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array, Library
from tfrankmetrics.columns.values import Codes
from tfrankmetrics.inputs.dense import first_value, require_shape
from tfrankmetrics.inputs.relevant_ids import (
    PADDING,
    as_ids,
    as_relevance,
    from_dict,
    is_repeated,
    relevance_of,
    require_below,
    require_finite_relevance,
)
from tfrankmetrics.inputs.weights import query_weights, require_valid_weights
from tfrankmetrics.ranking.items import Items, count
from tfrankmetrics.ranking.ranked_items import depth_for
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.ranking.recommended import Recommended
from tfrankmetrics.ranking.ties import TieBreaking


@dataclasses.dataclass(frozen=True, eq=False)
class IdLists:
    """Relevant and recommended ids, checked."""

    relevant: Array  # [B, M] int64
    relevance: Array  # [B, M] float64
    recommended: Array  # [B, K] int64, best first
    query_weights: Array | None  # [B] float64
    count_repeats: bool  # whether repeated recommendations are counted each time
    has_subtopics = False

    @property
    def num_queries(self) -> Array:
        """B, int64."""
        return xp.shape(self.recommended, out_type=xp.int64)[0]

    @property
    def elements_per_query(self) -> int:
        """Roughly how many numbers one query takes in memory."""
        relevant, recommended = self.relevant.shape[1], self.recommended.shape[1]
        return relevant * (relevant + recommended)

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
        require_valid_weights(self.query_weights)

    def rank(
        self,
        deepest: int | None,
        tie_breaking: TieBreaking,
        first_query: Array | int,
    ) -> RankedLists:
        """The recommended items in their order, and the relevant items they miss."""
        is_first = (self.relevant != PADDING) & ~is_repeated(self.relevant)
        matches = xp.equal(
            self.recommended[:, :, xp.newaxis], self.relevant[:, xp.newaxis, :]
        )
        matches &= is_first[:, xp.newaxis, :]  # [B, K, M]
        if not self.count_repeats:
            size = xp.shape(matches)[1]
            positions = xp.arange(size, like=matches)[:, xp.newaxis]
            first_match = xp.min(
                xp.where(matches, positions, size), axis=1, keepdims=True
            )
            matches &= xp.equal(positions, first_match)
        relevance = xp.where(matches, self.relevance[:, xp.newaxis, :], 0)
        is_missed = is_first & ~xp.any(matches, axis=1)
        is_recommended = self.recommended != PADDING
        labels = xp.concat(
            [xp.sum(relevance, axis=2), xp.where(is_missed, self.relevance, 0)],
            axis=1,
        )
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
        self,
        deepest: int | None,
        tie_breaking: TieBreaking,
        first_query: Array | int,
    ) -> Recommended:
        """The recommended items, without ties."""
        ids = self.recommended[:, : depth_for(deepest, self.recommended)]
        return Recommended(
            at_ranks=ids, exists=ids != PADDING, query_weights=self.query_weights
        )

    @property
    def num_items(self) -> None:
        """Unknown: a list contains some of the items only."""

    def require_items(self, number: int, metric: str) -> None:
        """Raises ValueError for a recommended id that is not below a number."""
        require_below(number, metric, np.asarray(self.recommended))


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
    y_true, relevance, _ = from_dict(y_true, {"relevance"})
    relevant = as_ids("`y_true`", y_true, library=library)
    recommended = as_ids("`y_pred`", y_pred, library=library)
    if relevance is not None:
        relevance = as_relevance(relevance, relevant)
    relevant, recommended = relevant.tensor, recommended.tensor
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
        relevant,
        relevance_of(relevant, relevance),
        recommended,
        None if sample_weight is None else query_weights(sample_weight, recommended),
        count_repeats,
    )


def as_integer_ids(
    y_true: Any, y_pred: Any, codes: Codes | None = None
) -> tuple[Any, Any]:
    """Replaces ids that are not integers, such as strings, by their codes."""
    is_dict = isinstance(y_true, Mapping)
    if is_dict and "ids" not in y_true:
        return y_true, y_pred  # an error that `from_dict` raises
    ids = _listed_sets(_as_rows(y_true["ids"] if is_dict else y_true))
    y_pred = _as_rows(y_pred)
    require_ordered(y_pred)
    kinds = [kind for data in (ids, y_pred) if (kind := _kind_of(data)) is not None]
    if len({*kinds}) > 1:
        raise ValueError(
            "Relevant and recommended ids must have the same type, or none match. "
            f"Received: {' and '.join(kind.__name__ for kind in kinds)}."
        )
    if not {*kinds} <= {int}:
        codes = Codes() if codes is None else codes
        ids, y_pred = (_coded(data, kinds[0], codes) for data in (ids, y_pred))
    return ({**y_true, "ids": ids} if is_dict else ids), y_pred


def require_ordered(y_pred: Any) -> None:
    """Raises ValueError for recommended ids in sets."""
    if _has_set(y_pred):
        raise ValueError(
            "Recommended ids must be in order, the best first. Received: a set, which "
            "is unordered."
        )


def as_positions(data: Any, rows: Codes) -> Any:
    """Nested lists of ids as nested lists of their rows, and -1 for padding."""
    data = _as_rows(data)
    if isinstance(data, (list, tuple, np.ndarray)):
        return [as_positions(item, rows) for item in data]
    if _is_set(data):
        return [rows[item] for item in data]
    if isinstance(data, numbers.Number) and data == PADDING:
        return PADDING
    _require_hashable(data)
    return rows[data]


def _coded(data: Any, kind: type, codes: Codes) -> Any:
    """Nested lists of ids of one type as nested lists of their codes."""
    if isinstance(data, (list, tuple, np.ndarray)):
        return [_coded(item, kind, codes) for item in data]
    if not isinstance(data, kind):
        raise ValueError(
            f"Ids must all have the same type. Received: {data!r} and others."
        )
    _require_hashable(data)
    return codes[data]


def _require_hashable(data: Any) -> None:
    if not isinstance(data, Hashable):
        raise ValueError(
            "Ids must be integers, strings or of another hashable type. "
            f"Received: {data!s:.200}."
        )


def _has_set(rows: Any) -> bool:
    return isinstance(rows, (list, tuple)) and any(map(_is_set, rows))


def _listed_sets(rows: Any) -> Any:
    """Rows with a list for each set."""
    if not _has_set(rows):
        return rows
    return [list(row) if _is_set(row) else row for row in rows]


def _is_set(data: Any) -> bool:
    return isinstance(data, (set, frozenset))


def _as_rows(data: Any) -> Any:
    """Columns of a table and tensors of strings as arrays or lists."""
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
    if isinstance(data, (list, tuple, np.ndarray)):
        kinds = (_kind_of(item) for item in data)
        return next((kind for kind in kinds if kind is not None), None)
    if isinstance(data, numbers.Number):
        return int
    return str if isinstance(data, str) else type(data)
