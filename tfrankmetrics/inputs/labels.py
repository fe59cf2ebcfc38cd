"""Labels and scores: `inputs="labels"`.

A graph never checks values, which would slow it down: an invalid label or weight makes
the result NaN. In contrast, `evaluate`, which runs outside a graph, raises an error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array, Library
from tfrankmetrics.columns.read_column import LABEL_RULE, as_list, first_index
from tfrankmetrics.graphs import keras_mask_of
from tfrankmetrics.inputs.dense import (
    Dense,
    as_float64,
    as_scores,
    dense,
    first_value,
    is_flat,
    require_keys,
)
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.inputs.mistakes import (
    SCORE_FACTS,
    Facts,
    LabelRules,
    are_grades,
    flat_lists,
    warn,
)
from tfrankmetrics.inputs.ranks_as_scores import facts_of_arrays
from tfrankmetrics.inputs.relevant_ids import as_ids, require_below
from tfrankmetrics.inputs.weights import (
    as_weights,
    query_or_item_weights,
    require_valid_weights,
)
from tfrankmetrics.inputs.whole_data import flat_numbers
from tfrankmetrics.ranking.items import Items, count, is_retrieved, lowest_score
from tfrankmetrics.ranking.order import rank_by_score
from tfrankmetrics.ranking.ranked_lists import RankedLists, depth_for
from tfrankmetrics.ranking.recommended import recommend_by_score
from tfrankmetrics.ranking.ties import TieBreaking


@dataclasses.dataclass(frozen=True, eq=False)
class LabelLists(Lists):
    """Labels and scores, checked.

    A label is 0 for padding and for negative labels: formulas add up labels without
    looking at `valid`.
    """

    labels: Array  # [B, N] or [B, N, T] float32 or float64, >= 0
    scores: Array  # [B, N] float32, float64 or int64
    valid: Array  # [B, N] bool, False for padding
    item_weights: Array | None = None  # [B, N] float64, 0 in padding
    judged: Array | None = None  # [B, N] bool; None if all valid items were judged
    item_ids: Array | None = None  # [B, N] int64, in tables with items
    # [B, N] int64, the order of the items by their ids, in tables with subtopics
    id_ranks: Array | None = None
    # [B] float64, the items with a weight, including 0; None if they are the valid
    # ones.
    num_weighted: Array | None = None

    @property
    def has_subtopics(self) -> bool:
        """Whether items have a label for each subtopic."""
        return self.labels.ndim == 3

    def has_valid_values(self) -> Array:
        """Whether all labels of a query are finite, `[B]`."""
        all_but_first = tuple(range(1, self.labels.ndim))
        return xp.isfinite(xp.sum(self.labels, axis=all_but_first))

    def require_valid_values(self) -> None:
        """Raises ValueError for labels and weights that are not finite."""
        invalid = ~np.isfinite(np.asarray(self.labels))
        if invalid.any():
            hint = ""
            if np.all(are_grades(self.scores)):
                hint = " If they are scores, pass them after the labels."
            raise ValueError(
                f"{LABEL_RULE} Mark items without a label as padding, with a label "
                "below 0 or a mask. Received: "
                f"{first_value(invalid, self.labels)}.{hint}"
            )
        require_valid_weights(self.item_weights)
        if self.item_ids is not None:
            self._require_items_once(np.asarray(self.item_ids))
        super().require_valid_values()

    def _require_items_once(self, ids: np.ndarray) -> None:
        """Raises ValueError for an item that is twice in a list."""
        # The items of padding become different from all others.
        lowest = ids.min(initial=0)
        ids = np.where(self.valid, ids, lowest - 1 - np.arange(ids.shape[1]))
        ids = np.sort(ids, axis=1)
        twice = ids[:, 1:] == ids[:, :-1]
        if twice.any():
            raise ValueError(
                "A list must contain each item once. Received in 'item_ids': "
                f"{ids[:, 1:][twice][0]} twice in query {first_index(twice)[0]}."
            )

    def require_items(self, number: int, metric: str) -> None:
        """Raises ValueError for the number of an item that is not below a number."""
        if self.item_ids is not None:
            ids = xp.to_numpy(self.item_ids)[xp.to_numpy(self.valid)]
            require_below(number, metric, ids, lowest=0)

    def warn_of_mistakes(
        self, y_true: Any, reads_judgments: bool, is_complete: bool
    ) -> None:
        """Warns if `judged` cannot tell unjudged items from padding."""
        if reads_judgments and self.judged is None:
            warn(
                "`judged` requires a mask, which distinguishes unjudged items (labels "
                "below 0) from padding. Received: no mask, so such items are "
                "padding, and all others are treated as judged. Pass a mask, or use "
                "evaluate_rows or evaluate_run."
            )

    def facts(self, y_true: Any, mask: Any, rules: LabelRules) -> Facts:
        """The facts about labels, scores, lists and weights."""
        judged = self.valid if self.judged is None else self.judged
        has_mask = mask is not None or isinstance(y_true, Mapping)
        labels = self._labels_of_items
        thresholds = () if self.has_subtopics else rules.thresholds
        facts = Facts.of_labels(self.labels[judged], thresholds)
        # Only then the labels below 0, which are not in the lists, may be a mistake.
        if not has_mask and (self.has_subtopics or facts["ones"] == facts["labels"]):
            numbers = flat_numbers(y_true)
            if numbers is not None:
                facts = Facts.of_labels(numbers, thresholds)
        facts |= self.uncounted_facts(y_true)
        facts |= Facts.of(SCORE_FACTS, self.scores[self.valid])
        facts |= Facts.of_lengths(judged.sum(axis=1))
        if rules.rank_zero_weights and self.item_weights is not None:
            facts |= Facts.of_weights(labels, self.item_weights, judged)
        if len(labels) == 1 and not has_mask and is_flat(y_true):
            facts["flat lists"] = float(flat_lists(labels[0], judged[0]))
        return facts

    def uncounted_facts(self, y_true: Any) -> Facts:
        """The facts of scores that may be ranks."""
        return facts_of_arrays(
            self.scores, self.valid, self._labels_of_items.__getitem__
        )

    @property
    def _labels_of_items(self) -> Array:
        """The labels `[B, N]`, of subtopics the highest."""
        return xp.max(self.labels, axis=2) if self.has_subtopics else self.labels

    def without_unjudged(self) -> LabelLists:
        """The lists without unjudged items, if a mask keeps some."""
        if self.judged is None:
            return self
        weights = self.item_weights
        if weights is not None:
            weights = xp.where(self.judged, weights, 0)
        return dataclasses.replace(
            self, valid=self.judged, judged=None, item_weights=weights
        )

    def without_zero_weights(self) -> LabelLists:
        """The lists without items of weight 0, if items have weights."""
        if self.item_weights is None:
            return self
        has_weight = xp.not_equal(self.item_weights, 0)  # NaN stays NaN
        is_of_item = has_weight[..., xp.newaxis] if self.has_subtopics else has_weight
        return dataclasses.replace(
            self,
            labels=xp.where(is_of_item, self.labels, 0),
            valid=self.valid & has_weight,
            judged=None if self.judged is None else self.judged & has_weight,
            num_weighted=count(self.valid),
        )

    def rank(self, deepest: int | None, tie_breaking: TieBreaking) -> RankedLists:
        """Ranks each list by descending score, down to the deepest cutoff."""
        if tie_breaking.gain is not None and self.item_weights is not None:
            raise ValueError(
                "ties='best' and ties='worst' require one weight per query, since "
                "weights of items change which order is the best. Received: one weight "
                "per item. Pass weights [B], or use ties='expected'."
            )
        scores = self._scores_to_rank()
        retrieved = is_retrieved(scores)
        num_retrieved = count(retrieved)
        depth = depth_for(deepest, scores)
        is_ranked = (
            xp.arange(xp.astype(depth, xp.float64, like=scores), like=scores)
            < num_retrieved[:, xp.newaxis]
        )
        given = self.item_weights, self.judged, self.id_ranks
        judged = Items(self.labels, self.valid, retrieved, *given)
        order, ties = rank_by_score(
            scores, depth, tie_breaking, lambda gain: gain(judged), retrieved
        )
        labels, weights, is_judged = (
            None if values is None else xp.gather(values, order)
            for values in (self.labels, self.item_weights, self.judged)
        )
        ranked = Items(labels, is_ranked, is_ranked, weights, is_judged)
        return RankedLists(
            ranked=ranked.only(is_ranked),
            listed=judged,
            ties=ties,
            query_weights=self.query_weights,
            deepest=deepest,
            num_retrieved=num_retrieved,
            num_listed=count(self.valid),
            num_weighted=self.num_weighted,
        )

    def recommend(self, deepest: int | None, tie_breaking: TieBreaking) -> RankedLists:
        """The items with the highest scores, in tables with a column of items."""
        if self.item_ids is None:
            return super().recommend(deepest, tie_breaking)
        scores, weights = self._scores_to_rank(), self.query_weights
        return recommend_by_score(scores, deepest, tie_breaking, self.item_ids, weights)

    def _scores_to_rank(self) -> Array:
        """The scores, with the lowest score for padding."""
        return xp.select(self.valid, self.scores, lowest_score(self.scores))


def read_labels(
    y_true: Any,
    y_pred: Any,
    sample_weight: Any = None,
    mask: Any = None,
    *,
    library: Library = "tensorflow",
) -> LabelLists:
    """Checks labels, scores, weights and mask.

    Args:
        y_true: Labels `[B, N]`, or `[N]` for one list, or `[B, N, T]` for subtopics;
            dense, ragged or nested lists of unequal length. Or a dict of `labels`,
            `mask` and `item_ids`.
        y_pred: Scores of the labels' shape; dense scores may also be `[B, N, 1]`.
        sample_weight: None, or numbers of shape `[]`, `[B]` or `[B, 1]` (one weight per
            query) or of the labels' shape (one per item).
        mask: None, or booleans of the labels' shape, True for valid items.
            Without a mask, a label below 0 marks padding.
        library: The library that ranks the lists.

    Raises:
        ValueError: A shape or dtype is not one of these.
    """
    item_ids = None
    if isinstance(y_true, Mapping):
        require_keys(y_true, "labels", {"mask", "item_ids"})
        if mask is not None and y_true.get("mask") is not None:
            raise ValueError(
                "Pass the mask once. Received: `mask` and a 'mask' in the dict "
                "`y_true`."
            )
        mask = y_true.get("mask") if mask is None else mask
        item_ids, y_true = y_true.get("item_ids"), y_true["labels"]
    keras_mask = keras_mask_of(y_pred)
    if sample_weight is keras_mask:
        sample_weight = None  # Keras 2 also passes its mask as weights
    mask_name = "`mask`"
    if mask is None and keras_mask is not None:
        mask, mask_name = keras_mask, "The Keras mask of `y_pred`"

    labels, subtopics, scores, is_one_list = _labels_and_scores(y_true, y_pred, library)
    valid = query_weights = item_weights = None
    if mask is not None:
        valid = _mask(mask_name, mask, labels, is_one_list)
    if sample_weight is not None:
        query_weights, item_weights = query_or_item_weights(
            sample_weight, labels, is_one_list
        )
    values = labels.array if subtopics is None else subtopics
    lists = _as_lists(values, labels.array, scores, valid, query_weights, item_weights)
    if item_ids is None:
        return lists
    ids = _ids_of_items(item_ids, labels, is_one_list, library)
    return dataclasses.replace(lists, item_ids=ids)


def lists_of_arrays(
    labels: np.ndarray,
    scores: np.ndarray,
    valid: np.ndarray,
    weights: np.ndarray | None = None,
    subtopics: np.ndarray | None = None,
) -> LabelLists:
    """Lists of NumPy arrays, which NumPy ranks: labels and scores `[B, N]`.

    Args:
        labels: Labels that `require_labels` accepts.
        scores: Scores of any dtype.
        valid: True for valid items, False for padding.
        weights: Valid weights of the queries, `[B]`, or of the items, `[B, N]`.
        subtopics: The labels of subtopics, `[B, N, T]`, whose maxima are `labels`.
    """
    labels, of_queries, of_items = _as_labels(labels), None, None
    values = labels if subtopics is None else _as_labels(subtopics)
    if weights is not None and weights.ndim == 1:
        of_queries = as_weights(weights)
    elif weights is not None:
        of_items = as_weights(weights)
    return _as_lists(values, labels, as_scores(scores), valid, of_queries, of_items)


def _as_lists(
    values: Array,
    labels: Array,
    scores: Array,
    valid: Array | None,
    query_weights: Array | None,
    item_weights: Array | None,
) -> LabelLists:
    """Lists in which the labels and weights of padding are 0.

    `values` are the labels `[B, N]`, or the labels of subtopics, whose maxima are
    `labels`.
    """
    judged = None
    values = xp.maximum(values, 0)  # NaN stays NaN, which is an error
    if valid is None:
        valid = labels >= 0
    else:
        # What is neither judged nor retrieved is in no list. NaN stays an error.
        in_list = valid & (~(labels < 0) | is_retrieved(scores))
        valid, judged = in_list, in_list & (labels >= 0)
        is_valid = in_list if values.ndim == 2 else in_list[..., xp.newaxis]
        values = xp.where(is_valid, values, 0)
    if item_weights is not None:
        item_weights = xp.where(valid, item_weights, 0)
    return LabelLists(
        values, scores, valid, item_weights, judged, query_weights=query_weights
    )


def _labels_and_scores(
    y_true: Any, y_pred: Any, library: Library
) -> tuple[Dense, Array | None, Array, bool]:
    """Labels, labels of subtopics, and scores, in the dtypes to compute with.

    Labels and scores are `[B, N]`. With labels `[B, N, T]` of subtopics, an item's
    label is the highest of them. The last value indicates whether labels and scores are
    one list, `[N]`.
    """
    labels = dense("`y_true`", y_true, _as_labels, padding=-1, library=library)
    scores = dense("`y_pred`", y_pred, as_scores, padding=0, library=library)
    received = (
        f"Received: y_true of shape {labels.array.shape}, "
        f"y_pred of shape {scores.array.shape}."
    )
    num_dims = labels.array.ndim, scores.array.ndim
    of_catalog = " For the ids of relevant items, pass inputs='catalog'."
    is_one_list = num_dims == (1, 1)
    if is_one_list:
        labels, scores = labels.as_batch(), scores.as_batch()
    elif num_dims in ((2, 3), (3, 3)) and scores.array.shape[2] == 1:
        scores = scores._replace(array=xp.squeeze(scores.array, axis=2))
    elif num_dims not in ((2, 2), (3, 2)):
        hint = ""
        if num_dims in ((1, 2), (2, 3)):
            hint = of_catalog
        if num_dims == (2, 3):
            hint += " For labels, pass one score for each item, such as y_pred[..., 1]."
        raise ValueError(
            "Labels and scores must both be of shape [B, N], or both [N]; scores may "
            f"also be [B, N, 1], and labels of subtopics [B, N, T]. {received}{hint}"
        )
    if labels.row_lengths is not None and scores.row_lengths is None:
        if isinstance(as_list(y_pred), (list, tuple)):
            scores = scores.as_ragged()
        else:
            labels = labels.padded_to(xp.shape(scores.array)[1])
    subtopics = None
    if num_dims[0] == 3:
        subtopics = labels.array
        if subtopics.shape[2] == 0:
            raise ValueError(
                f"Labels [B, N, T] must contain at least 1 subtopic. {received}"
            )
        labels = labels._replace(array=xp.max(subtopics, axis=2))
    error = f"Labels and scores must be of the same shape. {received}{of_catalog}"
    scores = scores.with_shape_of(labels, "labels", error)
    return labels, subtopics, scores, is_one_list


def _mask(name: str, mask: Any, labels: Dense, is_one_list: bool) -> Array:
    """Which items are valid, `[B, N]`."""
    library = xp.library_of(labels.array)
    given = dense(name, mask, _as_mask, padding=False, library=library)
    error = (
        f"{name} must be of the labels' shape, {labels.array.shape}. "
        f"Received: shape {given.array.shape}."
    )
    if is_one_list and given.array.ndim == 1:
        given = given.as_batch()
    valid = given.with_shape_of(labels, "labels", error)
    if labels.row_lengths is None:
        return valid
    positions = xp.arange(xp.shape(valid, out_type=xp.int64)[1], like=valid)
    return valid & (positions < labels.row_lengths[:, xp.newaxis])


def _ids_of_items(
    item_ids: Any, labels: Dense, is_one_list: bool, library: Library
) -> Array:
    ids = as_ids("'item_ids'", item_ids, library=library)
    if is_one_list and ids.array.ndim == 1:
        ids = ids.as_batch()
    error = (
        "'item_ids' must be of the shape of the labels. Received: shape "
        f"{ids.array.shape} for labels of shape {labels.array.shape}."
    )
    if ids.array.ndim != 2:
        raise ValueError(error)
    if labels.row_lengths is not None and ids.row_lengths is None:
        ids = ids.as_ragged()
    return ids.with_shape_of(labels, "labels", error)


def _as_labels(labels: Array) -> Array:
    dtype = xp.dtype_of(labels)
    if not (xp.is_floating(labels) or dtype.kind in "iub"):
        raise ValueError(
            "Labels must be real numbers. Received dtype: "
            f"{getattr(labels.dtype, 'name', labels.dtype)}."
        )
    # In float32, 2^24 and 2^24 + 1 are the same label.
    is_wide = dtype == np.float64 or (dtype.kind in "iu" and dtype.itemsize > 2)
    converted = as_float64(labels) if is_wide else xp.astype(labels, xp.float32)
    return converted if dtype.kind in "iub" else xp.without_denormals(converted)


def _as_mask(mask: Any) -> Any:
    if xp.dtype_of(mask) != np.bool_:
        raise ValueError(
            "A mask must be boolean, True for valid items. "
            f"Received dtype: {xp.dtype_of(mask).name}."
        )
    return mask
