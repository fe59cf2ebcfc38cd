"""Relevant ids and the scores of a whole catalog: `inputs="catalog"`.

No labels `[B, V]` are created. If a query has one relevant item, its rank is found by
counting the higher scores. Several relevant items are looked up among the items at the
top of the ranking.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array, Library
from tfrankmetrics.graphs import keras_mask_of
from tfrankmetrics.inputs.dense import as_scores, dense, first_value, require_shape
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.inputs.mistakes import (
    OF_EXCLUDED,
    SCORE_FACTS,
    Facts,
    LabelRules,
    numbers_of,
)
from tfrankmetrics.inputs.ranks_as_scores import facts_of_arrays
from tfrankmetrics.inputs.relevant_ids import (
    PADDING,
    as_ids,
    find_in_rows,
    is_repeated,
    read_relevant,
    relevance_of,
    require_finite_relevance,
    with_padding,
)
from tfrankmetrics.inputs.weights import dense_weights, query_weights
from tfrankmetrics.ranking.counts import RankCounts, num_listed, rank_by_counts
from tfrankmetrics.ranking.items import Items, count, is_retrieved, lowest_score
from tfrankmetrics.ranking.order import rank_by_score
from tfrankmetrics.ranking.ranked_lists import RankedLists, depth_for
from tfrankmetrics.ranking.recommended import recommend_by_score
from tfrankmetrics.ranking.ties import TieBreaking


@dataclasses.dataclass(frozen=True, eq=False)
class CatalogLists(Lists):
    """Relevant ids and the scores of all V items, checked."""

    scores: Array  # [B, V] float32, float64 or int64
    relevant: Array  # [B, M] int64
    relevance: Array  # [B, M] float64
    exclude: Array | None  # [B, E] int64

    def has_valid_values(self) -> Array:
        """Whether all ids and grades of a query are valid, `[B]`."""
        size = xp.shape(self.scores, out_type=xp.int64)[1]
        are_valid = xp.isfinite(xp.sum(self.relevance, axis=1))
        for ids in self._ids.values():
            are_valid &= xp.all((ids >= PADDING) & (ids < size), axis=1)
        return are_valid

    @property
    def _ids(self) -> dict[str, Array]:
        """The ids of items, by the names of their arguments."""
        excluded = {} if self.exclude is None else {"exclude": self.exclude}
        return {"y_true": self.relevant, **excluded}

    def require_valid_values(self) -> None:
        """Raises ValueError for invalid ids, grades and weights."""
        size = self.scores.shape[1]
        for name, ids in self._ids.items():
            if ids.shape[1] == size > 2 and np.isin(np.asarray(ids), (0, 1)).all():
                raise ValueError(
                    "Ids must be positions in the catalog, not a 0 or 1 for each "
                    f"item. Received in `{name}`: zeros and ones of the shape of the "
                    f"scores, {ids.shape}. To pass labels and scores, omit `inputs`."
                )
        self.require_positions()
        require_finite_relevance(self.relevance, np.asarray(self.relevant))
        super().require_valid_values()

    def require_positions(self) -> None:
        """Raises ValueError for ids that are not positions in the catalog."""
        num_queries, size = self.scores.shape
        for name, ids in self._ids.items():
            invalid = (np.asarray(ids) < PADDING) | (np.asarray(ids) >= size)
            if invalid.any():
                hint = (
                    " If the batch is the catalog, as in two-tower models, pass "
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
                    f"Ids must be positions in the catalog, from 0 to {size - 1}, or "
                    f"-1 for padding. Received in `{name}`: "
                    f"{first_value(invalid, ids)}.{hint}"
                )

    def require_items(self, number: int, metric: str) -> None:
        """Raises ValueError unless there are data for each item of the catalog."""
        if self.num_items not in (None, number):
            raise ValueError(
                f"`{metric}` requires data for each item of the catalog, in the order "
                f"of the scores. Received: {number} items, and scores of "
                f"{self.num_items}."
            )

    @property
    def num_items(self) -> int | None:
        """V."""
        return self.scores.shape[1]

    def facts(self, y_true: Any, mask: Any, rules: LabelRules) -> Facts:
        """The facts about scores and excluded items."""
        facts = Facts.of(SCORE_FACTS, self.scores)
        facts |= self.uncounted_facts(y_true)
        if self.exclude is not None:
            conditions = conditions_of_excluded(self.relevant, self.exclude)
            facts |= zip(OF_EXCLUDED, numbers_of(conditions), strict=True)
        return facts

    def uncounted_facts(self, y_true: Any) -> Facts:
        """The facts of scores that may be ranks."""
        scores, relevant = self.scores, self.relevant

        def labels(queries: slice) -> np.ndarray:
            of_items = np.zeros((len(scores[queries]), scores.shape[1] + 1))
            # The id of padding, -1, is that of one more column.
            np.put_along_axis(of_items, relevant[queries], 1.0, axis=1)
            return of_items[:, :-1]

        return facts_of_arrays(scores, np.ones(scores.shape, bool), labels)

    def rank(self, deepest: int | None, tie_breaking: TieBreaking) -> RankedLists:
        """Ranks the catalog down to the deepest cutoff."""
        scores, excluded = self._scores_to_rank()
        relevant = self.relevant
        depth = depth_for(deepest, scores)
        valid = (relevant != PADDING) & ~is_repeated(relevant)
        size = xp.shape(scores, out_type=xp.int64)[1]
        ids = xp.clip(relevant, 0, xp.maximum(size, 1) - 1)
        num_candidates = xp.astype(size, xp.float64, like=scores)
        if excluded is not None:
            # A relevant item that is excluded is missed.
            missed = valid & xp.gather(excluded, ids) & (self.relevance > 0)
            num_candidates = num_candidates - xp.count_nonzero(excluded) + count(missed)
        relevant_scores = xp.gather(scores, ids)
        relevance = xp.where(valid, self.relevance, 0)
        judged = Items(relevance, valid, valid & is_retrieved(relevant_scores), None)
        num_retrieved, num_nan = _numbers_of_retrieved_and_nan(scores)
        if tie_breaking.is_exact and relevant.shape[1] == 1:
            # The items above the one that is relevant are counted instead of sorted.
            counts = _rank_counts(scores, relevant_scores, num_retrieved, num_nan)
            ranked, ties = rank_by_counts(counts, judged, depth, tie_breaking)
        else:

            def gain_of(gain):  # of each item of the catalog, [B, V]
                nothing = xp.zeros_like(scores, xp.float64)
                # The maximum, since padding was clipped to the id of a real item.
                return xp.scatter_max(nothing, ids, gain(judged))

            order, ties = rank_by_score(
                scores,
                depth,
                tie_breaking,
                gain_of,
                judged.retrieved,
                lambda where: xp.gather(where, ids),
            )
            ranked = _relevant_at(order, ids, judged)
        return RankedLists(
            ranked=ranked,
            listed=judged,
            ties=ties,
            query_weights=self.query_weights,
            deepest=deepest,
            num_retrieved=num_retrieved,
            num_listed=num_listed(judged, num_candidates),
        )

    def recommend(self, deepest: int | None, tie_breaking: TieBreaking) -> RankedLists:
        """The items of the catalog with the highest scores."""
        scores, _ = self._scores_to_rank()
        weights = self.query_weights
        return recommend_by_score(scores, deepest, tie_breaking, None, weights)

    def _scores_to_rank(self) -> tuple[Array, Array | None]:
        """The scores, with the lowest one for excluded items, and which these are."""
        if self.exclude is None:
            return self.scores, None
        excluded = _are_excluded(self.scores, self.exclude)
        return xp.select(~excluded, self.scores, lowest_score(self.scores)), excluded


def conditions_of_excluded(relevant: Array, exclude: Array) -> tuple[Array, Array]:
    """The conditions `OF_EXCLUDED` of each relevant id, both bool `[B, M]`."""
    is_relevant = relevant != PADDING
    _, is_excluded = find_in_rows(xp.sort(with_padding(exclude), axis=1), relevant)
    return is_relevant, is_relevant & is_excluded


def _are_excluded(scores: Array, exclude: Array) -> Array:
    """Which items of the catalog are excluded for each query, bool `[B, V]`."""
    size = xp.shape(scores, out_type=xp.int64)[1]
    is_item = (exclude >= 0) & (exclude < size)
    # Padding among the ids goes to an additional column, which is cut off again.
    items = xp.where(is_item, exclude, size)
    nothing = xp.zeros_like(scores[:, :1], xp.bool)
    nothing = xp.concat([xp.zeros_like(scores, xp.bool), nothing], axis=1)
    return xp.scatter(nothing, items, True)[:, :-1]


def _numbers_of_retrieved_and_nan(scores: Array) -> tuple[Array, Array]:
    """How many scores of each query are not -inf, and NaN, both float64 `[B]`."""

    def count_both():
        return xp.count_nonzero(is_retrieved(scores)), xp.count_nonzero(_is_nan(scores))

    if not xp.is_floating(scores):
        return count_both()
    # One pass shows that all scores are finite, which they nearly always are. (A sum
    # that overflows only costs the second pass.)
    sums = xp.sum(scores, axis=1)
    size = xp.astype(xp.shape(scores)[1], xp.float64, like=scores)
    nothing = xp.zeros_like(sums, xp.float64)
    return xp.cond(
        ~xp.all(xp.isfinite(sums)), count_both, lambda: (size + nothing, nothing)
    )


def _is_nan(scores: Array) -> Array:
    is_float = xp.is_floating(scores)
    return xp.isnan(scores) if is_float else xp.zeros_like(scores, xp.bool)


def _rank_counts(
    scores: Array, relevant_scores: Array, num_retrieved: Array, num_nan: Array
) -> RankCounts:
    """The items around the one relevant item of each query."""
    relevant_is_nan = _is_nan(relevant_scores[:, 0])
    above = xp.where(
        relevant_is_nan,
        num_retrieved - num_nan,  # NaN ranks below every number
        xp.count_nonzero(scores > relevant_scores),
    )
    tied = xp.count_nonzero(scores >= relevant_scores) - above
    tied = xp.where(relevant_is_nan, num_nan, tied)
    above, tied = (xp.astype(n, xp.int64)[:, xp.newaxis] for n in (above, tied))
    return RankCounts(above, tied)


def _relevant_at(order: Array, ids: Array, judged: Items) -> Items:
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


def read_catalog(
    y_true: Any,
    y_pred: Any,
    sample_weight: Any = None,
    *,
    library: Library = "tensorflow",
) -> CatalogLists:
    """Checks ids and the scores of a catalog.

    Args:
        y_true: Ids of the relevant items, `[B]` or `[B, M]`: the position of each item
            in the catalog, or -1 for padding. For sequences `[B, T]` or `[B, T, M]`.
            Or a dict of `ids`, their `relevance` of the same shape, and ids to
            `exclude` from the ranking, `[B, E]` or `[B, T, E]`.
        y_pred: Scores of all items, `[B, V]`, or `[B, T, V]` for sequences. A
            score of -inf means that the item was not retrieved.
        sample_weight: None, a scalar, `[B]` or `[B, 1]`; for sequences also `[B, T]`.
        library: The library that ranks the catalog.

    Raises:
        ValueError: A shape or dtype is not one of these.
    """
    relevant, relevance, exclude = read_relevant(
        y_true, {"relevance", "exclude"}, library
    )
    steps = keras_mask_of(y_pred)
    if sample_weight is steps:
        sample_weight = None  # Keras 2 also passes its mask as weights
    given = dense("`y_pred`", y_pred, as_scores, padding=0, library=library)
    if given.row_lengths is not None:
        raise ValueError(
            "Scores of a catalog must be dense, one for each item. Received: rows of "
            "unequal length."
        )
    scores = given.array
    received = (
        f"Received: y_true of shape {relevant.shape}, y_pred of shape {scores.shape}."
    )
    if scores.ndim not in (2, 3) or scores.ndim - relevant.ndim not in (0, 1):
        raise ValueError(
            "With inputs='catalog', scores must have shape [B, V], with ids [B] or "
            "[B, M]; or shape [B, T, V], with ids [B, T] or [B, T, M]. "
            f"{received}"
        )
    error = f"A catalog must have at least one item. {received}"
    if scores.shape[-1] == 0:
        raise ValueError(error)
    if scores.shape[-1] is None:
        from tfrankmetrics.inputs.read_tensors import with_an_item

        scores = with_an_item(scores, error)
    if relevant.ndim == scores.ndim - 1:
        relevant = relevant[..., xp.newaxis]
    error = f"Ids and scores must be for the same number of queries. {received}"
    relevant = _queries_like(scores, relevant, error)
    if steps is not None and scores.ndim == 3:
        relevant = xp.where(xp.reshape(steps, [-1, 1]), relevant, PADDING)
    return CatalogLists(
        _steps_as_queries(scores),
        relevant,
        relevance_of(relevant, relevance),
        _read_excluded(exclude, scores, library),
        query_weights=_weights_of_steps(sample_weight, scores),
    )


def _read_excluded(exclude: Any, scores: Array, library: Library) -> Array | None:
    """The ids of the items that are excluded from each query, `[B, E]`."""
    if exclude is None:
        return None
    exclude = as_ids("'exclude'", exclude, library=library).array
    error = (
        "'exclude' must have shape [B, E] for scores [B, V], or [B, T, E] for "
        f"scores [B, T, V]. Received: shape {exclude.shape} for {scores.shape}."
    )
    if exclude.ndim != scores.ndim:
        raise ValueError(error)
    return _queries_like(scores, exclude, error)


def _queries_like(scores: Array, ids: Array, error: str) -> Array:
    """Ids `[B, M]` or `[B, T, M]` as rows; they must match the scores in B and T."""
    known = (*scores.shape[:-1], None)
    shape = xp.concat([xp.shape(scores)[:-1], xp.shape(ids)[-1:]], axis=0)
    return _steps_as_queries(require_shape(ids, known, shape, error))


def _steps_as_queries(steps: Array) -> Array:
    """`[B, T, N]` as `[B * T, N]`: each step of a sequence is a query."""
    if steps.ndim == 2:
        return steps
    size = xp.shape(steps)[-1] if steps.shape[-1] is None else steps.shape[-1]
    return xp.reshape(steps, [-1, size])


def _weights_of_steps(sample_weight: Any, scores: Array) -> Array | None:
    """One weight per query; each step has the weight of its sequence."""
    if sample_weight is None or scores.ndim == 2:
        return query_weights(sample_weight, scores)
    steps = scores[:, :, 0]
    given = dense_weights(sample_weight, library=xp.library_of(scores))
    if given.ndim == 2 and given.shape[1] != 1:
        error = (
            "`sample_weight` must be a scalar, [B] or [B, 1], or [B, T] for sequences, "
            f"which is {steps.shape}. Received: shape {given.shape}."
        )
        given = require_shape(given, steps.shape, xp.shape(steps), error)
        return query_weights(xp.reshape(given, [-1]), _steps_as_queries(scores))
    weights = query_weights(sample_weight, scores)[:, xp.newaxis]
    return xp.reshape(weights * xp.ones_like(steps, weights.dtype), [-1])
