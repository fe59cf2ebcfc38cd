"""Relevant ids beside recommended ids: `inputs="ids"`.

Ids come ranked, so nothing is sorted here: each recommended id is looked up among
the relevant ones, and a relevant id that was not recommended was not retrieved.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrankmetrics.arrays import Dense, dense, first, like, of_shape, row_by_row
from tfrankmetrics.inputs import query_weights, require_keys
from tfrankmetrics.ranked_lists import Items, RankedLists, count, depth_for
from tfrankmetrics.ranking import TieBreaking

PADDING = -1


class IdLists(NamedTuple):
    """Relevant and recommended ids, checked and made canonical by `id_lists`."""

    relevant: tf.Tensor  # [B, M] int64
    relevance: tf.Tensor  # [B, M] float64
    recommended: tf.Tensor  # [B, K] int64, best first
    query_weights: tf.Tensor | None  # [B] float64
    count_repeats: bool  # whether a repeated recommendation counts each time

    @property
    def number(self) -> tf.Tensor:
        """How many queries there are."""
        return tf.shape(self.recommended, out_type=tf.int64)[0]

    @property
    def size_of_one(self) -> int:
        """Numbers to hold in memory for each query, roughly."""
        relevant, recommended = self.relevant.shape[1], self.recommended.shape[1]
        return relevant * (relevant + recommended)

    def are_numbers(self) -> tf.Tensor:
        """False for a query with an id or relevance that has no meaning, `[B]`."""
        is_id = tf.reduce_all(self.relevant >= PADDING, axis=1) & tf.reduce_all(
            self.recommended >= PADDING, axis=1
        )
        has_gaps = tf.reduce_any(_follows_padding(self.recommended), axis=1)
        are_finite = tf.math.is_finite(tf.reduce_sum(self.relevance, axis=1))
        return is_id & ~has_gaps & are_finite

    def rank(
        self,
        cutoffs: tuple[int | None, ...],
        tie_breaking: TieBreaking,
        first_query: tf.Tensor | int,
    ) -> RankedLists:
        """The recommended items as they stand, and the relevant ones they lack."""
        is_first = (self.relevant != PADDING) & ~is_repeated(self.relevant)
        matches = tf.equal(
            self.recommended[:, :, tf.newaxis], self.relevant[:, tf.newaxis, :]
        )
        matches &= is_first[:, tf.newaxis, :]  # [B, K, M]
        if not self.count_repeats:
            size = tf.shape(matches)[1]
            places = tf.range(size)[:, tf.newaxis]
            first_place = tf.reduce_min(
                tf.where(matches, places, size), axis=1, keepdims=True
            )
            matches &= tf.equal(places, first_place)
        relevance = tf.where(matches, self.relevance[:, tf.newaxis, :], 0)
        is_missed = is_first & ~tf.reduce_any(matches, axis=1)
        is_recommended = self.recommended != PADDING
        labels = tf.concat(
            [tf.reduce_sum(relevance, axis=2), tf.where(is_missed, self.relevance, 0)],
            axis=1,
        )
        valid = tf.concat([is_recommended, is_missed], axis=1)
        retrieved = tf.concat([is_recommended, tf.zeros_like(is_missed)], axis=1)
        depth = depth_for(cutoffs, labels)
        is_ranked = retrieved[:, :depth]
        ranked = Items(labels[:, :depth], is_ranked, is_ranked, None)
        return RankedLists(
            ranked=ranked.only(is_ranked),
            judged=Items(labels, valid, retrieved, None),
            ties=None,
            query_weights=self.query_weights,
            cutoffs=cutoffs,
            lengths=count(retrieved),
            sizes=count(valid),
            kept={},
        )


def is_repeated(ids: tf.Tensor) -> tf.Tensor:
    """True where the same id stands earlier in the row `[B, M]`."""
    if ids.shape[1] == 1:
        return tf.zeros_like(ids, tf.bool)
    places = tf.range(tf.shape(ids)[1])
    is_earlier = places[tf.newaxis, :] < places[:, tf.newaxis]
    is_same = tf.equal(ids[:, :, tf.newaxis], ids[:, tf.newaxis, :])
    return tf.reduce_any(is_same & is_earlier, axis=2)


def _follows_padding(ids: tf.Tensor) -> tf.Tensor:
    return (ids[:, 1:] != PADDING) & (ids[:, :-1] == PADDING)


@tf.autograph.experimental.do_not_convert
def id_lists(
    y_true: Any, y_pred: Any, sample_weight: Any = None, *, count_repeats: bool = False
) -> IdLists:
    """Checks relevant and recommended ids and brings them into one form.

    Args:
        y_true: Relevant ids `[B, M]` or `[B]`, integers, -1 for padding; in any
            order. Or a dict of `ids` and their `relevance` of the same shape.
        y_pred: Recommended ids `[B, K]`, best first, with -1 for padding at the
            end. Both may be `[M]` and `[K]`, of one query.
        sample_weight: None, a scalar, `[B]` or `[B, 1]`.
        count_repeats: Whether a repeated recommendation counts each time.

    Raises:
        ValueError: What was passed is not of these forms.
    """
    y_true, relevance, _ = from_dict(y_true, {"relevance"})
    relevant, recommended = as_ids("`y_true`", y_true), as_ids("`y_pred`", y_pred)
    if relevance is not None:
        relevance = as_relevance(relevance, relevant)
    relevant, recommended = relevant.tensor, recommended.tensor
    received = (
        f"Received: y_true of shape {relevant.shape}, y_pred of shape "
        f"{recommended.shape}."
    )
    if recommended.shape.rank == 1 and relevant.shape.rank == 1:
        relevant, recommended = relevant[tf.newaxis], recommended[tf.newaxis]
    elif relevant.shape.rank == 1:
        relevant = relevant[:, tf.newaxis]
    if relevant.shape.rank != 2 or recommended.shape.rank != 2:
        raise ValueError(
            "With inputs='ids', relevant ids must be of shape [B, M] and recommended "
            f"ones of shape [B, K], or [M] and [K] for one query. {received}"
        )
    relevant = of_shape(
        relevant,
        tf.TensorShape([recommended.shape[0], None]),
        tf.stack([tf.shape(recommended)[0], tf.shape(relevant)[1]]),
        f"Relevant and recommended ids must be of as many queries. {received}",
    )
    return IdLists(
        relevant,
        relevance_of(relevant, relevance),
        recommended,
        query_weights(sample_weight, recommended),
        count_repeats,
    )


def numbered_ids(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Numbers in place of ids that are none, such as strings; equal for equal ids."""
    is_dict = isinstance(y_true, Mapping)
    if is_dict and "ids" not in y_true:
        return y_true, y_pred  # an error, which `from_dict` raises
    if isinstance(y_pred, (list, tuple)) and any(map(_is_set, y_pred)):
        raise ValueError(
            "Recommended ids must be in order, the best first. Received: a set, which "
            "has none."
        )
    ids, y_pred = _as_rows(y_true["ids"] if is_dict else y_true), _as_rows(y_pred)
    kinds = {_kind_of(data) for data in (ids, y_pred)} - {None}
    if len(kinds) > 1:
        raise ValueError(
            "Relevant and recommended ids must be of one kind, or none would match. "
            f"Received: {' and '.join(sorted(kind.__name__ for kind in kinds))}."
        )
    numbered: dict[Any, int] = {}

    def number(data: Any) -> Any:
        if isinstance(data, (list, tuple, np.ndarray)):
            return [number(item) for item in data]
        if not isinstance(data, (*kinds,)):
            raise ValueError(
                f"Ids must be of one kind. Received: {data!r} beside others."
            )
        return numbered.setdefault(data, len(numbered))

    if not kinds <= {int}:
        ids, y_pred = number(ids), number(y_pred)
    return ({**y_true, "ids": ids} if is_dict else ids), y_pred


def _is_set(data: Any) -> bool:
    return isinstance(data, (set, frozenset))


def _as_rows(data: Any) -> Any:
    """Columns of a table, sets and tensors of strings as arrays or lists of such."""
    if isinstance(data, tf.Tensor) and data.dtype == tf.string:
        return data.numpy().astype(str)
    if hasattr(data, "to_numpy"):
        data = data.to_numpy()
    if isinstance(data, np.ndarray) and data.dtype.kind == "O":
        data = data.tolist()
    if not isinstance(data, (list, tuple)):
        return data
    return [list(row) if _is_set(row) else row for row in data]


def _kind_of(data: Any) -> type | None:
    """`int`, `str` or what else the first id is; None if there is none."""
    if data is None:
        return None
    if hasattr(data, "dtype") and data.dtype not in (object, tf.string):
        is_text = getattr(data.dtype, "kind", "") == "U"
        return str if is_text else int  # as_ids has the say on floats
    if isinstance(data, (list, tuple, np.ndarray)):
        kinds = (_kind_of(item) for item in data)
        return next((kind for kind in kinds if kind is not None), None)
    if isinstance(data, numbers.Number):
        return int
    return str if isinstance(data, str) else type(data)


def from_dict(y_true: Any, may_have: set[str]) -> tuple[Any, Any, Any]:
    """The `ids`, `relevance` and `exclude` of `y_true`, which may be the ids alone."""
    if not isinstance(y_true, Mapping):
        return y_true, None, None
    require_keys(y_true, "ids", may_have)
    return y_true["ids"], y_true.get("relevance"), y_true.get("exclude")


def as_ids(name: str, data: Any) -> Dense:
    """Ids as int64; rows of unequal length are padded with -1."""

    def convert(ids: Any) -> Any:
        if not ids.dtype.is_integer or ids.dtype == tf.uint64:
            values = ids.flat_values if isinstance(ids, tf.RaggedTensor) else ids
            if values.shape.num_elements() == 0:  # an empty list has no dtype
                return tf.cast(ids, tf.int64)
            raise ValueError(
                f"{name} must hold ids, integers of at least 0 with -1 for padding "
                "(evaluate also takes lists of strings). "
                f"Received dtype: {ids.dtype.name}."
            )
        return tf.cast(ids, tf.int64)

    return dense(name, data, convert, padding=PADDING)


def as_relevance(relevance: Any, ids: Dense) -> tf.Tensor:
    """The grades beside ids, in float64; what is below 0 is not relevant."""

    def convert(grades: Any) -> Any:
        if not (grades.dtype.is_floating or grades.dtype.is_integer):
            raise ValueError(
                f"'relevance' must hold real numbers. Received: {grades.dtype.name}."
            )
        return tf.cast(grades, tf.float64)

    given = dense("'relevance'", relevance, convert, padding=0)
    error = (
        f"'relevance' must be of the shape of 'ids', {ids.tensor.shape}. "
        f"Received: shape {given.tensor.shape}."
    )
    if given.tensor.shape.rank != ids.tensor.shape.rank:
        raise ValueError(error)
    if ids.row_lengths is not None and given.row_lengths is None:
        given = row_by_row(given)
    grades = like(given, ids, "ids", error)
    return tf.where(grades < 0, tf.zeros_like(grades), grades)


def relevance_of(relevant: tf.Tensor, relevance: tf.Tensor | None) -> tf.Tensor:
    """The relevance of each id, 1 where none is given and 0 for padding."""
    if relevance is None:
        return tf.cast(relevant != PADDING, tf.float64)
    relevance = tf.reshape(relevance, tf.shape(relevant))
    return tf.where(relevant != PADDING, relevance, 0)


def require_ids(lists: IdLists) -> None:
    """Raises an error for values that no metric has a meaning for."""
    for name, ids in (("y_true", lists.relevant), ("y_pred", lists.recommended)):
        bad = ids.numpy() < PADDING
        if bad.any():
            raise ValueError(
                f"Ids must be at least 0, or -1 for padding. Received in `{name}`: "
                f"{first(bad, ids)}."
            )
    gaps = _follows_padding(lists.recommended).numpy()
    if gaps.any():
        raise ValueError(
            "Recommended ids must be padded at the end: no id may follow a -1. "
            f"Received one in query {np.argwhere(gaps)[0][0]}."
        )
    require_finite_relevance(lists.relevance)


def require_finite_relevance(relevance: tf.Tensor) -> None:
    """Raises an error for a grade that is NaN or infinite."""
    bad = ~np.isfinite(relevance.numpy())
    if bad.any():
        raise ValueError(
            f"'relevance' must hold finite numbers. Received: {first(bad, relevance)}."
        )
