"""Relevant ids and the scores of a whole catalogue: `inputs="catalogue"`.

No labels `[B, V]` are made. If a query has one relevant item, its rank is found by
counting the scores above its own. Several relevant items are looked up among the items
at the top of the ranking.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfrankmetrics.graphs import keras_mask_of
from tfrankmetrics.inputs.relevant_ids import (
    PADDING,
    as_ids,
    as_relevance,
    from_dict,
    is_repeated,
    relevance_of,
    require_finite_relevance,
)
from tfrankmetrics.inputs.tensors import (
    as_scores,
    dense,
    first_value,
    require_shape,
    required,
)
from tfrankmetrics.inputs.weights import (
    dense_weights,
    query_weights,
    require_valid_weights,
)
from tfrankmetrics.ranking.counts import RankCounts, num_judged, rank_by_counts
from tfrankmetrics.ranking.items import Items, is_retrieved, lowest_score
from tfrankmetrics.ranking.order import rank_by_score
from tfrankmetrics.ranking.ranked_items import depth_for
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.ranking.ties import TieBreaking, Ties


class _Counts(NamedTuple):
    """How many scores of each query are not -inf, and how many are NaN; `[B]`."""

    num_retrieved: tf.Tensor  # float64
    num_nan: tf.Tensor  # float64


@dataclasses.dataclass(frozen=True, eq=False)
class CatalogueLists:
    """Relevant ids and the scores of all V items, checked."""

    scores: tf.Tensor  # [B, V] float32, float64 or int64
    relevant: tf.Tensor  # [B, M] int64
    relevance: tf.Tensor  # [B, M] float64
    exclude: tf.Tensor | None  # [B, E] int64
    query_weights: tf.Tensor | None  # [B] float64
    has_subtopics = False

    @property
    def num_queries(self) -> tf.Tensor:
        """B, int64."""
        return tf.shape(self.scores, out_type=tf.int64)[0]

    @property
    def elements_per_query(self) -> int:
        """Roughly how many numbers one query takes in memory."""
        return self.scores.shape[1]

    def has_valid_values(self) -> tf.Tensor:
        """Whether all ids and grades of a query are valid, `[B]`."""
        size = tf.shape(self.scores, out_type=tf.int64)[1]
        are_valid = tf.math.is_finite(tf.reduce_sum(self.relevance, axis=1))
        for ids in (self.relevant, self.exclude):
            if ids is not None:
                are_valid &= tf.reduce_all((ids >= PADDING) & (ids < size), axis=1)
        return are_valid

    def require_valid_values(self) -> None:
        """Raises ValueError for invalid ids, grades and weights."""
        size = self.scores.shape[1]
        for name, ids in (("y_true", self.relevant), ("exclude", self.exclude)):
            if ids is None:
                continue
            if ids.shape[1] == size > 2 and np.isin(ids.numpy(), (0, 1)).all():
                raise ValueError(
                    "Ids must be positions in the catalogue, not a 0 or 1 for each "
                    f"item. Received in `{name}`: zeros and ones of the shape of the "
                    f"scores, {ids.shape}. To pass labels and scores, omit `inputs`."
                )
        self.require_positions()
        require_finite_relevance(self.relevance)
        require_valid_weights(self.query_weights)

    def require_positions(self) -> None:
        """Raises ValueError for ids that are not positions in the catalogue."""
        num_queries, size = self.scores.shape
        for name, ids in (("y_true", self.relevant), ("exclude", self.exclude)):
            if ids is None:
                continue
            invalid = (ids.numpy() < PADDING) | (ids.numpy() >= size)
            if invalid.any():
                hint = (
                    " If the batch is the catalogue, as in two-tower models, pass "
                    "y_true=tf.range(batch size), not the ids of the items."
                    if num_queries == size
                    else ""
                )
                raise ValueError(
                    f"Ids must be positions in the catalogue, 0 to {size - 1} here, or "
                    f"-1 for padding. Received in `{name}`: "
                    f"{first_value(invalid, ids)}.{hint}"
                )

    def rank(
        self,
        deepest: int | None,
        tie_breaking: TieBreaking,
        first_query: tf.Tensor | int,
    ) -> RankedLists:
        """Ranks the catalogue down to the deepest cutoff."""
        if self.exclude is not None:
            scores = _excluding(self.scores, self.exclude)
            lists = dataclasses.replace(self, scores=scores, exclude=None)
            return lists.rank(deepest, tie_breaking, first_query)
        depth = depth_for(deepest, self.scores)
        valid = (self.relevant != PADDING) & ~is_repeated(self.relevant)
        size = tf.shape(self.scores, out_type=tf.int64)[1]
        ids = tf.clip_by_value(self.relevant, 0, tf.maximum(size, 1) - 1)
        relevant_scores = tf.gather(self.scores, ids, batch_dims=1)
        relevance = tf.where(valid, self.relevance, 0)
        judged = Items(relevance, valid, valid & is_retrieved(relevant_scores), None)
        counts = _counts(self.scores)
        if tie_breaking.is_exact and self.relevant.shape[1] == 1:
            ranked, ties = self._by_counting(
                relevant_scores, judged, counts, depth, tie_breaking
            )
        else:
            ranked, ties = rank_by_score(
                self.scores,
                depth,
                tie_breaking,
                first_query,
                lambda order: _found_in(order, ids, judged),
                lambda gain: _in_catalogue(self.scores, ids, gain(judged)),
                judged.retrieved,
                lambda where: tf.gather(where, ids, batch_dims=1),
            )
        return RankedLists(
            ranked=ranked,
            judged=judged,
            ties=ties,
            query_weights=self.query_weights,
            deepest=deepest,
            num_retrieved=counts.num_retrieved,
            num_judged=num_judged(judged, counts.num_retrieved),
        )

    def _by_counting(
        self,
        relevant_scores: tf.Tensor,
        judged: Items,
        counts: _Counts,
        depth: tf.Tensor | int,
        tie_breaking: TieBreaking,
    ) -> tuple[Items, Ties | None]:
        """The ranks around the one relevant item of each query."""
        relevant_is_nan = _is_nan(relevant_scores[:, 0])
        # NaN ranks below every number.
        num_numbers = counts.num_retrieved - counts.num_nan
        above = tf.where(
            relevant_is_nan, num_numbers, _count_bytes(self.scores > relevant_scores)
        )
        tied = _count_bytes(self.scores >= relevant_scores) - above
        tied = tf.where(relevant_is_nan, counts.num_nan, tied)
        above, tied = (tf.cast(n, tf.int64)[:, tf.newaxis] for n in (above, tied))
        return rank_by_counts(RankCounts(above, tied), judged, depth, tie_breaking)


def _is_nan(scores: tf.Tensor) -> tf.Tensor:
    is_float = scores.dtype.is_floating
    return tf.math.is_nan(scores) if is_float else tf.zeros_like(scores, tf.bool)


def _counts(scores: tf.Tensor) -> _Counts:
    def count_both():
        return _count_bytes(is_retrieved(scores)), _count_bytes(_is_nan(scores))

    if scores.dtype.is_integer:
        return _Counts(*count_both())
    # One pass shows that all scores are finite, which they nearly always are. (A sum
    # that overflows only costs the second pass.)
    sums = tf.reduce_sum(scores, axis=1)
    size = tf.cast(tf.shape(scores)[1], tf.float64)
    num_retrieved, num_nan = tf.cond(
        tf.reduce_all(tf.math.is_finite(sums)),
        lambda: (
            size + tf.zeros_like(sums, tf.float64),
            tf.zeros_like(sums, tf.float64),
        ),
        count_both,
    )
    return _Counts(num_retrieved, num_nan)


def _count_bytes(where: tf.Tensor) -> tf.Tensor:
    """The number of True values in each row of `[B, V]`, float64 `[B]`.

    Does the same as `count`, and is faster for long rows.
    """
    # Sums of up to 250 bytes fit into a byte, which is faster than adding up floats.
    # (On a GPU without XLA, TensorFlow adds up bytes on the CPU.)
    queries, items = tf.unstack(tf.shape(where))
    parts = -(-items // 250)
    bytes_ = tf.pad(tf.cast(where, tf.uint8), [[0, 0], [0, 250 * parts - items]])
    sums = tf.reduce_sum(tf.reshape(bytes_, [queries, parts, 250]), axis=2)
    return tf.reduce_sum(tf.cast(sums, tf.float64), axis=1)


def _found_in(order: tf.Tensor, ids: tf.Tensor, judged: Items) -> Items:
    """The relevant items among those at ranks 1 ... D. Other items have the label 0."""
    ids = tf.where(judged.retrieved, tf.cast(ids, order.dtype), order.dtype.max)
    # One more id, higher than all others, for ranks without a relevant item.
    ids = tf.pad(ids, [[0, 0], [0, 1]], constant_values=order.dtype.max)
    labels = tf.pad(judged.labels, [[0, 0], [0, 1]])
    by_id = tf.argsort(ids, axis=1)
    ids = tf.gather(ids, by_id, batch_dims=1)
    labels = tf.gather(labels, by_id, batch_dims=1)
    # A search, since comparing each with each would make a tensor [B, D, M].
    position = tf.searchsorted(ids, order)
    is_here = tf.equal(tf.gather(ids, position, batch_dims=1), order)
    labels = tf.where(is_here, tf.gather(labels, position, batch_dims=1), 0)
    return Items(labels, is_here, is_here, None)


def _in_catalogue(scores: tf.Tensor, ids: tf.Tensor, gains: tf.Tensor) -> tf.Tensor:
    """The gain of each item of the catalogue, float64 `[B, V]`."""
    queries = tf.range(tf.shape(ids, out_type=tf.int64)[0])[:, tf.newaxis]
    indices = tf.stack([queries + tf.zeros_like(ids), ids], axis=2)
    nothing = tf.zeros_like(scores, tf.float64)
    # The maximum, since padding has the id of another item.
    return tf.tensor_scatter_nd_max(nothing, indices, gains)


@tf.autograph.experimental.do_not_convert
def read_catalogue(
    y_true: Any, y_pred: Any, sample_weight: Any = None
) -> CatalogueLists:
    """Checks ids and the scores of a catalogue.

    Args:
        y_true: Ids of the relevant items, `[B]` or `[B, M]`: the position of each item
            in the catalogue, or -1 for padding. For sequences `[B, T]` or `[B, T, M]`.
            Or a dict of `ids`, their `relevance` of the same shape, and ids to
            `exclude` from the ranking, `[B, E]` or `[B, T, E]`.
        y_pred: Scores of all items, `[B, V]`, or `[B, T, V]` for sequences. A
            score of -inf excludes the item.
        sample_weight: None, a scalar, `[B]` or `[B, 1]`; for sequences also `[B, T]`.

    Raises:
        ValueError: A shape or dtype is not one of these.
    """
    y_true, relevance, exclude = from_dict(y_true, {"relevance", "exclude"})
    steps = keras_mask_of(y_pred)
    if sample_weight is steps:
        sample_weight = None  # Keras 2 also passes its mask as weights
    scores, relevant = _as_scores(y_pred), as_ids("`y_true`", y_true)
    if relevance is not None:
        relevance = as_relevance(relevance, relevant)
    relevant = relevant.tensor
    received = (
        f"Received: y_true of shape {relevant.shape}, y_pred of shape {scores.shape}."
    )
    if scores.shape.rank not in (2, 3) or relevant.shape.rank not in (
        scores.shape.rank - 1,
        scores.shape.rank,
    ):
        raise ValueError(
            "With inputs='catalogue', scores must have shape [B, V], with ids [B] or "
            "[B, M]; or shape [B, T, V], with ids [B, T] or [B, T, M]. "
            f"{received}"
        )
    scores = _at_least_one_item(scores, received)
    if relevant.shape.rank == scores.shape.rank - 1:
        relevant = relevant[..., tf.newaxis]
    relevant = _queries_like(
        scores,
        relevant,
        f"Ids and scores must be for the same number of queries. {received}",
    )
    if steps is not None and scores.shape.rank == 3:
        relevant = tf.where(tf.reshape(steps, [-1, 1]), relevant, PADDING)
    if exclude is not None:
        exclude = as_ids("'exclude'", exclude).tensor
        error = (
            "'exclude' must have shape [B, E] for scores [B, V], or [B, T, E] for "
            f"scores [B, T, V]. Received: shape {exclude.shape} for {scores.shape}."
        )
        if exclude.shape.rank != scores.shape.rank:
            raise ValueError(error)
        exclude = _queries_like(scores, exclude, error)
    return CatalogueLists(
        _rows(scores),
        relevant,
        relevance_of(relevant, relevance),
        exclude,
        _weights(sample_weight, scores),
    )


def _as_scores(y_pred: Any) -> tf.Tensor:
    given = dense("`y_pred`", y_pred, as_scores, padding=0)
    if given.row_lengths is not None:
        raise ValueError(
            "Scores of a catalogue must be dense, one for each item. Received: rows of "
            "unequal length."
        )
    return given.tensor


def _at_least_one_item(scores: tf.Tensor, received: str) -> tf.Tensor:
    error = f"A catalogue must have at least one item. {received}"
    if scores.shape[-1] == 0:
        raise ValueError(error)
    if scores.shape[-1] is not None:
        return scores
    with required(tf.shape(scores)[-1] > 0, error):
        return tf.identity(scores)


def _queries_like(scores: tf.Tensor, ids: tf.Tensor, error: str) -> tf.Tensor:
    """Ids `[B, M]` or `[B, T, M]` as rows; they must match the scores in B and T."""
    known = tf.TensorShape([*scores.shape[:-1], None])
    shape = tf.concat([tf.shape(scores)[:-1], tf.shape(ids)[-1:]], axis=0)
    return _rows(require_shape(ids, known, shape, error))


def _rows(steps: tf.Tensor) -> tf.Tensor:
    """`[B, T, N]` as `[B * T, N]`: each step of a sequence is a query."""
    if steps.shape.rank == 2:
        return steps
    size = tf.shape(steps)[-1] if steps.shape[-1] is None else steps.shape[-1]
    return tf.reshape(steps, [-1, size])


def _weights(sample_weight: Any, scores: tf.Tensor) -> tf.Tensor | None:
    """One weight per query; each step of a sequence has the weight of the sequence."""
    if sample_weight is None:
        return None
    if scores.shape.rank == 2:
        return query_weights(sample_weight, scores)
    steps = scores[:, :, 0]
    given = dense_weights(sample_weight)
    if given.shape.rank == 2 and given.shape[1] != 1:
        error = (
            "`sample_weight` must be a scalar, [B] or [B, 1], or [B, T] for sequences, "
            f"here {steps.shape}. Received: shape {given.shape}."
        )
        given = require_shape(given, steps.shape, tf.shape(steps), error)
        return query_weights(tf.reshape(given, [-1]), _rows(scores))
    weights = query_weights(sample_weight, scores)[:, tf.newaxis]
    return tf.reshape(weights * tf.ones_like(steps, weights.dtype), [-1])


def _excluding(scores: tf.Tensor, exclude: tf.Tensor) -> tf.Tensor:
    """Scores with the lowest score for the items to exclude."""
    size = tf.shape(scores, out_type=tf.int64)[1]
    is_item = (exclude >= 0) & (exclude < size)
    # Padding among the ids goes to one more column, which is cut off again.
    items = tf.where(is_item, exclude, size)
    queries = tf.range(tf.shape(exclude, out_type=tf.int64)[0])[:, tf.newaxis]
    indices = tf.stack([queries + tf.zeros_like(items), items], axis=2)
    lowest = tf.constant(lowest_score(scores), scores.dtype)
    excluded = tf.fill(tf.shape(items), lowest)
    wider = tf.pad(scores, [[0, 0], [0, 1]])
    return tf.tensor_scatter_nd_update(wider, indices, excluded)[:, :-1]
