"""Relevant ids and the scores of a whole catalogue: `inputs="catalogue"`.

No labels `[B, V]` are created. If a query has one relevant item, its rank is found by
counting the higher scores. Several relevant items are looked up among the items at the
top of the ranking.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array, Library
from tfrankmetrics.graphs import keras_mask_of
from tfrankmetrics.inputs.dense import (
    as_scores,
    dense,
    first_value,
    require_shape,
    required,
)
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.inputs.relevant_ids import (
    PADDING,
    as_ids,
    as_relevance,
    from_dict,
    is_repeated,
    relevance_of,
    require_finite_relevance,
)
from tfrankmetrics.inputs.weights import (
    dense_weights,
    query_weights,
)
from tfrankmetrics.ranking.counts import RankCounts, num_judged, rank_by_counts
from tfrankmetrics.ranking.items import Items, count, is_retrieved, lowest_score
from tfrankmetrics.ranking.order import rank_by_score
from tfrankmetrics.ranking.ranked_items import depth_for
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.ranking.recommended import Recommended, recommend_by_score
from tfrankmetrics.ranking.ties import TieBreaking, Ties


class _ScoreCounts(NamedTuple):
    """How many scores of each query are not -inf, and how many are NaN; `[B]`."""

    num_retrieved: Array  # float64
    num_nan: Array  # float64


@dataclasses.dataclass(frozen=True, eq=False)
class CatalogueLists(Lists):
    """Relevant ids and the scores of all V items, checked."""

    scores: Array  # [B, V] float32, float64 or int64
    relevant: Array  # [B, M] int64
    relevance: Array  # [B, M] float64
    exclude: Array | None  # [B, E] int64

    def has_valid_values(self) -> Array:
        """Whether all ids and grades of a query are valid, `[B]`."""
        size = xp.shape(self.scores, out_type=xp.int64)[1]
        are_valid = xp.isfinite(xp.sum(self.relevance, axis=1))
        for ids in (self.relevant, self.exclude):
            if ids is not None:
                are_valid &= xp.all((ids >= PADDING) & (ids < size), axis=1)
        return are_valid

    def require_valid_values(self) -> None:
        """Raises ValueError for invalid ids, grades and weights."""
        size = self.scores.shape[1]
        for name, ids in (("y_true", self.relevant), ("exclude", self.exclude)):
            if ids is None:
                continue
            if ids.shape[1] == size > 2 and np.isin(np.asarray(ids), (0, 1)).all():
                raise ValueError(
                    "Ids must be positions in the catalogue, not a 0 or 1 for each "
                    f"item. Received in `{name}`: zeros and ones of the shape of the "
                    f"scores, {ids.shape}. To pass labels and scores, omit `inputs`."
                )
        self.require_positions()
        require_finite_relevance(self.relevance)
        super().require_valid_values()

    def require_positions(self) -> None:
        """Raises ValueError for ids that are not positions in the catalogue."""
        num_queries, size = self.scores.shape
        for name, ids in (("y_true", self.relevant), ("exclude", self.exclude)):
            if ids is None:
                continue
            invalid = (np.asarray(ids) < PADDING) | (np.asarray(ids) >= size)
            if invalid.any():
                hint = (
                    " If the batch is the catalogue, as in two-tower models, pass "
                    "y_true=tf.range(batch size), not the ids of the items."
                    if num_queries == size
                    else ""
                )
                if not xp.is_floating(self.scores):
                    hint += (
                        " If `y_pred` holds recommended ids rather than scores, pass "
                        "inputs='ids'."
                    )
                raise ValueError(
                    f"Ids must be positions in the catalogue, from 0 to {size - 1}, or "
                    f"-1 for padding. Received in `{name}`: "
                    f"{first_value(invalid, ids)}.{hint}"
                )

    def relevant_and_excluded(self) -> tuple[int, int]:
        """The number of relevant items, and of those among them that are excluded."""
        relevant, exclude = np.asarray(self.relevant), np.asarray(self.exclude)
        size = self.scores.shape[1]
        keys = np.arange(len(relevant))[:, np.newaxis] * size  # one for each pair
        valid, of_exclude = relevant != PADDING, exclude != PADDING
        excluded = np.isin((relevant + keys)[valid], (exclude + keys)[of_exclude])
        return int(valid.sum()), int(excluded.sum())

    def rank(
        self,
        deepest: int | None,
        tie_breaking: TieBreaking,
        first_query: Array | int,
    ) -> RankedLists:
        """Ranks the catalogue down to the deepest cutoff."""
        depth = depth_for(deepest, self.scores)
        valid = (self.relevant != PADDING) & ~is_repeated(self.relevant)
        size = xp.shape(self.scores, out_type=xp.int64)[1]
        ids = xp.clip(self.relevant, 0, xp.maximum(size, 1) - 1)
        num_candidates = xp.astype(size, xp.float64, like=self.scores)
        if self.exclude is not None:
            excluded = _excluded(self.scores, self.exclude)
            # A relevant item that is excluded is missed.
            missed = valid & xp.gather(excluded, ids) & (self.relevance > 0)
            num_candidates = num_candidates - xp.count_nonzero(excluded) + count(missed)
            scores = _without(excluded, self.scores)
            self = dataclasses.replace(self, scores=scores, exclude=None)
        relevant_scores = xp.gather(self.scores, ids)
        relevance = xp.where(valid, self.relevance, 0)
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
                lambda where: xp.gather(where, ids),
            )
        return RankedLists(
            ranked=ranked,
            judged=judged,
            ties=ties,
            query_weights=self.query_weights,
            deepest=deepest,
            num_retrieved=counts.num_retrieved,
            num_judged=num_judged(judged, num_candidates),
        )

    def recommend(
        self,
        deepest: int | None,
        tie_breaking: TieBreaking,
        first_query: Array | int,
    ) -> Recommended:
        """The items of the catalogue with the highest scores."""
        scores = self.scores
        if self.exclude is not None:
            scores = _without(_excluded(scores, self.exclude), scores)
        weights = self.query_weights
        return recommend_by_score(
            scores, None, deepest, tie_breaking, first_query, weights
        )

    @property
    def num_items(self) -> int | None:
        """V."""
        return self.scores.shape[1]

    def require_items(self, number: int, metric: str) -> None:
        """Raises ValueError unless there are data for each item of the catalogue."""
        if self.num_items not in (None, number):
            raise ValueError(
                f"`{metric}` requires data for each item of the catalog, in the order "
                f"of the scores. Received: {number} items, and scores of "
                f"{self.num_items}."
            )

    def _by_counting(
        self,
        relevant_scores: Array,
        judged: Items,
        counts: _ScoreCounts,
        depth: Array | int,
        tie_breaking: TieBreaking,
    ) -> tuple[Items, Ties | None]:
        """The ranks around the one relevant item of each query."""
        relevant_is_nan = _is_nan(relevant_scores[:, 0])
        # NaN ranks below every number.
        num_numbers = counts.num_retrieved - counts.num_nan
        above = xp.where(
            relevant_is_nan,
            num_numbers,
            xp.count_nonzero(self.scores > relevant_scores),
        )
        tied = xp.count_nonzero(self.scores >= relevant_scores) - above
        tied = xp.where(relevant_is_nan, counts.num_nan, tied)
        above, tied = (xp.astype(n, xp.int64)[:, xp.newaxis] for n in (above, tied))
        return rank_by_counts(RankCounts(above, tied), judged, depth, tie_breaking)


def _is_nan(scores: Array) -> Array:
    is_float = xp.is_floating(scores)
    return xp.isnan(scores) if is_float else xp.zeros_like(scores, xp.bool)


def _counts(scores: Array) -> _ScoreCounts:
    def count_both():
        return xp.count_nonzero(is_retrieved(scores)), xp.count_nonzero(_is_nan(scores))

    if not xp.is_floating(scores):
        return _ScoreCounts(*count_both())
    # One pass shows that all scores are finite, which they nearly always are. (A sum
    # that overflows only costs the second pass.)
    sums = xp.sum(scores, axis=1)
    size = xp.astype(xp.shape(scores)[1], xp.float64)
    num_retrieved, num_nan = xp.cond(
        xp.all(xp.isfinite(sums)),
        lambda: (
            size + xp.zeros_like(sums, xp.float64),
            xp.zeros_like(sums, xp.float64),
        ),
        count_both,
    )
    return _ScoreCounts(num_retrieved, num_nan)


def _found_in(order: Array, ids: Array, judged: Items) -> Items:
    """The relevant items among those at ranks 1 ... D. Other items have the label 0."""
    highest = np.iinfo(xp.dtype_of(order)).max
    ids = xp.where(judged.retrieved, xp.astype(ids, order.dtype), highest)
    # One more id, higher than all others, for ranks without a relevant item.
    ids = xp.pad(ids, [[0, 0], [0, 1]], constant_values=highest)
    labels = xp.pad(judged.labels, [[0, 0], [0, 1]])
    by_id = xp.argsort(ids, axis=1)
    ids = xp.gather(ids, by_id)
    labels = xp.gather(labels, by_id)
    # A search, since a comparison of all pairs would require a tensor [B, D, M].
    position = xp.searchsorted(ids, order)
    is_here = xp.equal(xp.gather(ids, position), order)
    labels = xp.where(is_here, xp.gather(labels, position), 0)
    return Items(labels, is_here, is_here, None)


def _in_catalogue(scores: Array, ids: Array, gains: Array) -> Array:
    """The gain of each item of the catalogue, float64 `[B, V]`."""
    nothing = xp.zeros_like(scores, xp.float64)
    # The maximum, since padding has the id of a different item.
    return xp.scatter_max(nothing, ids, gains)


def read_catalogue(
    y_true: Any,
    y_pred: Any,
    sample_weight: Any = None,
    *,
    library: Library = "tensorflow",
) -> CatalogueLists:
    """Checks ids and the scores of a catalogue.

    Args:
        y_true: Ids of the relevant items, `[B]` or `[B, M]`: the position of each item
            in the catalogue, or -1 for padding. For sequences `[B, T]` or `[B, T, M]`.
            Or a dict of `ids`, their `relevance` of the same shape, and ids to
            `exclude` from the ranking, `[B, E]` or `[B, T, E]`.
        y_pred: Scores of all items, `[B, V]`, or `[B, T, V]` for sequences. A
            score of -inf means that the item was not retrieved.
        sample_weight: None, a scalar, `[B]` or `[B, 1]`; for sequences also `[B, T]`.
        library: The library that ranks the catalogue.

    Raises:
        ValueError: A shape or dtype is not one of these.
    """
    y_true, relevance, exclude = from_dict(y_true, {"relevance", "exclude"})
    steps = keras_mask_of(y_pred)
    if sample_weight is steps:
        sample_weight = None  # Keras 2 also passes its mask as weights
    scores = _as_scores(y_pred, library)
    relevant = as_ids("`y_true`", y_true, library=library)
    if relevance is not None:
        relevance = as_relevance(relevance, relevant)
    relevant = relevant.tensor
    received = (
        f"Received: y_true of shape {relevant.shape}, y_pred of shape {scores.shape}."
    )
    if scores.ndim not in (2, 3) or relevant.ndim not in (
        scores.ndim - 1,
        scores.ndim,
    ):
        raise ValueError(
            "With inputs='catalogue', scores must have shape [B, V], with ids [B] or "
            "[B, M]; or shape [B, T, V], with ids [B, T] or [B, T, M]. "
            f"{received}"
        )
    scores = _at_least_one_item(scores, received)
    if relevant.ndim == scores.ndim - 1:
        relevant = relevant[..., xp.newaxis]
    relevant = _queries_like(
        scores,
        relevant,
        f"Ids and scores must be for the same number of queries. {received}",
    )
    if steps is not None and scores.ndim == 3:
        relevant = xp.where(xp.reshape(steps, [-1, 1]), relevant, PADDING)
    if exclude is not None:
        exclude = as_ids("'exclude'", exclude, library=library).tensor
        error = (
            "'exclude' must have shape [B, E] for scores [B, V], or [B, T, E] for "
            f"scores [B, T, V]. Received: shape {exclude.shape} for {scores.shape}."
        )
        if exclude.ndim != scores.ndim:
            raise ValueError(error)
        exclude = _queries_like(scores, exclude, error)
    return CatalogueLists(
        _rows(scores),
        relevant,
        relevance_of(relevant, relevance),
        exclude,
        query_weights=_weights(sample_weight, scores),
    )


def _as_scores(y_pred: Any, library: Library) -> Array:
    given = dense("`y_pred`", y_pred, as_scores, padding=0, library=library)
    if given.row_lengths is not None:
        raise ValueError(
            "Scores of a catalogue must be dense, one for each item. Received: rows of "
            "unequal length."
        )
    return given.tensor


def _at_least_one_item(scores: Array, received: str) -> Array:
    error = f"A catalogue must have at least one item. {received}"
    if scores.shape[-1] == 0:
        raise ValueError(error)
    if scores.shape[-1] is not None:
        return scores
    from tfrankmetrics.inputs.read_tensors import identity

    with required(xp.shape(scores)[-1] > 0, error):
        return identity(scores)


def _queries_like(scores: Array, ids: Array, error: str) -> Array:
    """Ids `[B, M]` or `[B, T, M]` as rows; they must match the scores in B and T."""
    known = (*scores.shape[:-1], None)
    shape = xp.concat([xp.shape(scores)[:-1], xp.shape(ids)[-1:]], axis=0)
    return _rows(require_shape(ids, known, shape, error))


def _rows(steps: Array) -> Array:
    """`[B, T, N]` as `[B * T, N]`: each step of a sequence is a query."""
    if steps.ndim == 2:
        return steps
    size = xp.shape(steps)[-1] if steps.shape[-1] is None else steps.shape[-1]
    return xp.reshape(steps, [-1, size])


def _weights(sample_weight: Any, scores: Array) -> Array | None:
    """One weight per query; each step has the weight of its sequence."""
    if sample_weight is None:
        return None
    if scores.ndim == 2:
        return query_weights(sample_weight, scores)
    steps = scores[:, :, 0]
    given = dense_weights(sample_weight, library=xp.library_of(scores))
    if given.ndim == 2 and given.shape[1] != 1:
        error = (
            "`sample_weight` must be a scalar, [B] or [B, 1], or [B, T] for sequences, "
            f"which is {steps.shape}. Received: shape {given.shape}."
        )
        given = require_shape(given, steps.shape, xp.shape(steps), error)
        return query_weights(xp.reshape(given, [-1]), _rows(scores))
    weights = query_weights(sample_weight, scores)[:, xp.newaxis]
    return xp.reshape(weights * xp.ones_like(steps, weights.dtype), [-1])


def _excluded(scores: Array, exclude: Array) -> Array:
    """Which items of the catalogue are excluded for each query, bool `[B, V]`."""
    size = xp.shape(scores, out_type=xp.int64)[1]
    is_item = (exclude >= 0) & (exclude < size)
    # Padding among the ids goes to an additional column, which is cut off again.
    items = xp.where(is_item, exclude, size)
    nothing = xp.zeros_like(scores[:, :1], xp.bool)
    nothing = xp.concat([xp.zeros_like(scores, xp.bool), nothing], axis=1)
    return xp.scatter(nothing, items, True)[:, :-1]


def _without(excluded: Array, scores: Array) -> Array:
    """Scores with the lowest score for excluded items."""
    return xp.select(~excluded, scores, lowest_score(scores))
