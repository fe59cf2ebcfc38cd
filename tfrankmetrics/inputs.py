"""What users pass, checked and made canonical: `padded_lists` is the one way in.

Values are never looked at in a graph, since that would slow it down: a label or
weight that is not a number, and a negative weight, make the result NaN. `evaluate`,
which runs outside a graph, raises an error for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfrankmetrics.arrays import (
    Dense,
    dense,
    first,
    first_index,
    like,
    of_shape,
    reshaped_if_same,
    row_by_row,
    widened,
)
from tfrankmetrics.ranking import PaddedLists


@tf.autograph.experimental.do_not_convert
def padded_lists(
    y_true: Any, y_pred: Any, sample_weight: Any = None, mask: Any = None
) -> PaddedLists:
    """Checks labels, scores, weights and mask and brings them into one form.

    Args:
        y_true: Labels `[B, N]`, or `[N]` for one list, or `[B, N, T]` of subtopics;
            dense, ragged or nested lists of unequal length. Or a dict of `labels`
            and `mask`.
        y_pred: Scores of the labels' shape; dense scores may also be `[B, N, 1]`.
        sample_weight: None, or numbers of shape `[]`, `[B]` or `[B, 1]` (one a
            query) or of the labels' shape (one an item).
        mask: None, or booleans of the labels' shape, True for the items that
            count. Without it a label below 0 marks padding.

    Raises:
        ValueError: What was passed is not of these forms.
    """
    if isinstance(y_true, Mapping):
        y_true, mask = _from_dict(y_true, mask)
    keras_mask = getattr(y_pred, "_keras_mask", None)
    if sample_weight is keras_mask:
        sample_weight = None  # Keras 2 hands its mask over as weights, too
    mask_name = "`mask`"
    if mask is None and keras_mask is not None:
        mask, mask_name = keras_mask, "The Keras mask of `y_pred`"

    labels, subtopics, scores, is_one_list = _labels_and_scores(y_true, y_pred)
    valid = query_weights = item_weights = None
    if mask is not None:
        valid = _mask(mask_name, mask, labels, is_one_list)
    if sample_weight is not None:
        query_weights, item_weights = _weights(sample_weight, labels, is_one_list)

    values = labels.tensor if subtopics is None else subtopics
    values = tf.maximum(values, 0)  # NaN stays NaN, an error
    if valid is None:
        valid = labels.tensor >= 0
    else:
        is_valid = valid if subtopics is None else valid[..., tf.newaxis]
        values = tf.where(is_valid, values, 0)
    if item_weights is not None:
        item_weights = tf.where(valid, item_weights, 0)
    return PaddedLists(values, scores, valid, query_weights, item_weights)


def _from_dict(y_true: Mapping, mask: Any) -> tuple[Any, Any]:
    require_keys(y_true, "labels", {"mask"})
    if mask is not None and y_true.get("mask") is not None:
        raise ValueError(
            "Give the mask once. Received: `mask` and a 'mask' in the dict `y_true`."
        )
    return y_true["labels"], y_true.get("mask") if mask is None else mask


def require_keys(y_true: Mapping, key: str, may_have: set[str]) -> None:
    """Raises an error for a dict without the key, or with others than these."""
    if key not in y_true or not y_true.keys() <= {key, *may_have}:
        raise ValueError(
            f"A dict `y_true` must have the key {key!r} and may have "
            f"{', '.join(map(repr, sorted(may_have)))}, no other. "
            f"Received keys: {sorted(map(str, y_true))}."
        )


def _labels_and_scores(
    y_true: Any, y_pred: Any
) -> tuple[Dense, tf.Tensor | None, tf.Tensor, bool]:
    """Labels, labels of subtopics, and scores, in the dtypes to compute with.

    Labels and scores are `[B, N]`. Where there are labels `[B, N, T]` of subtopics,
    an item's label is the highest of them. The last of the four says whether labels
    and scores came as one list, `[N]`.
    """
    labels = dense("`y_true`", y_true, _as_labels, padding=-1)
    scores = dense("`y_pred`", y_pred, _as_scores, padding=0)
    received = (
        f"Received: y_true of shape {labels.tensor.shape}, "
        f"y_pred of shape {scores.tensor.shape}."
    )
    ranks = labels.tensor.shape.rank, scores.tensor.shape.rank
    is_one_list = ranks == (1, 1)
    if is_one_list:
        labels = labels._replace(tensor=labels.tensor[tf.newaxis])
        scores = scores._replace(tensor=scores.tensor[tf.newaxis])
    elif ranks in ((2, 3), (3, 3)) and scores.tensor.shape[2] == 1:
        scores = scores._replace(tensor=tf.squeeze(scores.tensor, axis=2))
    elif ranks not in ((2, 2), (3, 2)):
        raise ValueError(
            "Labels and scores must both be of shape [B, N], or both [N]; scores may "
            f"also be [B, N, 1], and labels of subtopics [B, N, T]. {received}"
        )
    if labels.row_lengths is not None and scores.row_lengths is None:
        if isinstance(y_pred, (list, tuple)):
            scores = row_by_row(scores)
        else:
            labels = widened(labels, tf.shape(scores.tensor)[1])
    subtopics = None
    if ranks[0] == 3:
        subtopics = labels.tensor
        labels = labels._replace(tensor=tf.reduce_max(subtopics, axis=2))
    error = f"Labels and scores must be of the same shape. {received}"
    return labels, subtopics, like(scores, labels, "labels", error), is_one_list


def _mask(name: str, mask: Any, labels: Dense, is_one_list: bool) -> tf.Tensor:
    """Which items count, `[B, N]`."""
    given = dense(name, mask, _as_mask, padding=False)
    error = (
        f"{name} must be of the labels' shape, {labels.tensor.shape}. "
        f"Received: shape {given.tensor.shape}."
    )
    if is_one_list and given.tensor.shape.rank == 1:
        given = given._replace(tensor=given.tensor[tf.newaxis])
    valid = like(given, labels, "labels", error)
    if labels.row_lengths is None:
        return valid
    return valid & tf.sequence_mask(labels.row_lengths, tf.shape(valid)[1])


def _weights(
    sample_weight: Any, labels: Dense, is_one_list: bool
) -> tuple[tf.Tensor | None, tf.Tensor | None]:
    """The weights as one a query, `[B]`, or else one an item, `[B, N]`."""
    given = dense("`sample_weight`", sample_weight, _as_weights, padding=0)
    error = (
        "`sample_weight` must be a scalar, [B] or [B, 1] (one weight a query), or of "
        f"the labels' shape (one an item), here {labels.tensor.shape}. "
        f"Received: shape {given.tensor.shape}."
    )
    weights = _nan_if_negative(given.tensor)
    if is_one_list and weights.shape.rank == 1 and weights.shape[0] != 1:
        weights = weights[tf.newaxis]
    batch = tf.shape(labels.tensor)[:1]
    if weights.shape.rank == 0:
        return tf.fill(batch, weights), None
    if weights.shape.rank == 2 and weights.shape[1] == 1:
        weights = tf.squeeze(weights, axis=1)
    if weights.shape.rank == 1:
        return of_shape(weights, labels.tensor.shape[:1], batch, error), None
    if weights.shape.rank == 2 and weights.shape[1] is None:
        # [B, 1] or [B, N], as only the run will tell; as weights of the items
        # both come to the same.
        shape = tf.shape(labels.tensor)
        width = tf.where(tf.shape(weights)[1] == 1, 1, shape[1])
        weights = reshaped_if_same(weights, tf.stack([shape[0], width]), error)
        weights *= tf.ones_like(labels.tensor, tf.float64)
    return None, like(given._replace(tensor=weights), labels, "labels", error)


def query_weights(sample_weight: Any, queries: tf.Tensor) -> tf.Tensor | None:
    """The weights of `queries`, `[B, ...]`, as float64 `[B]`."""
    if sample_weight is None:
        return None
    weights = dense("`sample_weight`", sample_weight, _as_weights, padding=0).tensor
    error = (
        "`sample_weight` must be a scalar, [B] or [B, 1]: one weight a query. "
        f"Received: shape {weights.shape} for scores or ids of shape {queries.shape}."
    )
    weights = _nan_if_negative(weights)
    batch = tf.shape(queries)[:1]
    if weights.shape.rank == 0:
        return tf.fill(batch, weights)
    if weights.shape.rank == 2 and weights.shape[1] in (1, None):
        column = of_shape(
            weights,
            tf.TensorShape([queries.shape[0], 1]),
            tf.concat([batch, [1]], axis=0),
            error,
        )
        return tf.squeeze(column, axis=1)
    if weights.shape.rank != 1:
        raise ValueError(error)
    return of_shape(weights, queries.shape[:1], batch, error)


def _nan_if_negative(weights: tf.Tensor) -> tf.Tensor:
    return tf.where(weights < 0, tf.constant(float("nan"), tf.float64), weights)


def _as_labels(labels: Any) -> Any:
    dtype = labels.dtype
    if not (dtype.is_floating or dtype.is_integer or dtype.is_bool):
        raise ValueError(f"Labels must be real numbers. Received dtype: {dtype.name}.")
    # In float32, 2^24 and the next integer would be one label.
    is_wide = dtype == tf.float64 or (dtype.is_integer and dtype.size > 2)
    return tf.cast(labels, tf.float64 if is_wide else tf.float32)


def _as_scores(scores: Any) -> Any:
    """Scores in a dtype that holds them exactly, so that no two tie by rounding."""
    dtype = scores.dtype
    if dtype.is_floating:
        return scores if dtype == tf.float64 else tf.cast(scores, tf.float32)
    if not dtype.is_integer or dtype == tf.uint64:
        hint = " Cast them to int64." if dtype == tf.uint64 else ""
        raise ValueError(
            f"Scores must be floats or integers. Received dtype: {dtype.name}.{hint}"
        )
    return tf.cast(scores, tf.int64)


def _as_mask(mask: Any) -> Any:
    if not mask.dtype.is_bool:
        raise ValueError(
            "A mask must be boolean, True for the items that count. "
            f"Received dtype: {mask.dtype.name}."
        )
    return mask


def _as_weights(weights: Any) -> Any:
    if not (weights.dtype.is_floating or weights.dtype.is_integer):
        raise ValueError(
            "`sample_weight` must hold real numbers; what leaves items out of the "
            f"ranking is a mask. Received dtype: {weights.dtype.name}."
        )
    return tf.cast(weights, tf.float64)


def require_numbers(lists: PaddedLists) -> None:
    """Raises an error for values that no metric has a meaning for."""
    bad_labels = ~np.isfinite(lists.labels.numpy())
    if bad_labels.any():
        raise ValueError(
            "Labels must be finite numbers; what has no label is padding, marked by a "
            f"label below 0 or a mask. Received: {first(bad_labels, lists.labels)}."
        )
    if lists.item_weights is not None:
        require_weights(lists.item_weights)


def require_weights(weights: tf.Tensor) -> None:
    """Raises an error for a weight that is none; a negative one was made NaN."""
    bad_weights = ~np.isfinite(weights.numpy())
    if bad_weights.any():
        raise ValueError(
            "`sample_weight` must hold finite numbers of at least 0. "
            f"Received another at index {first_index(bad_weights)}."
        )
