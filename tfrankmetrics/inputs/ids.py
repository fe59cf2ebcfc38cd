"""Relevant ids and recommended ids: `inputs="ids"`.

Recommended ids are ranked already: nothing is sorted. Each one is looked up among the
relevant ids. A relevant id that was not recommended is treated as not retrieved.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array, Library
from tfrankmetrics.inputs.dense import first_value, is_flat, require_shape
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.inputs.mistakes import LONG, MANY_RELEVANT, Facts
from tfrankmetrics.inputs.relevant_ids import (
    PADDING,
    as_ids,
    equals_previous,
    find_in_rows,
    from_dict,
    is_repeated,
    read_relevant,
    relevance_of,
    require_below,
    require_finite_relevance,
    with_padding,
)
from tfrankmetrics.inputs.weights import query_weights
from tfrankmetrics.inputs.whole_data import warn_if_no_id_matches, warn_if_no_ids
from tfrankmetrics.ranking.items import Items, count
from tfrankmetrics.ranking.ranked_lists import RankedLists, depth_for
from tfrankmetrics.ranking.ties import TieBreaking


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
        require_finite_relevance(self.relevance, np.asarray(self.relevant))
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

    def uncounted_facts(self, y_true: Any) -> Facts:
        """Whether the ids of several queries may have been passed as one list."""
        is_long = self.relevant.shape[1] >= MANY_RELEVANT
        is_long &= self.recommended.shape[1] >= LONG
        ids, _, _ = from_dict(y_true, {"relevance"})
        flat = float(is_long and is_flat(ids))
        return Facts({"flat lists": flat, "flat ids": flat})

    def ascending_relevant(self) -> tuple[Array, Array]:
        """The relevant ids in ascending order, at least one, and their relevance."""
        relevant = with_padding(self.relevant)
        relevance = xp.pad(self.relevance, [[0, 0], [0, 1]])
        by_id = xp.argsort(relevant, axis=1)
        return xp.gather(relevant, by_id), xp.gather(relevance, by_id)

    def rank(self, deepest: int | None, tie_breaking: TieBreaking) -> RankedLists:
        """The recommended items in their order, and the relevant items they miss.

        The latter are in the order of `ascending_relevant`.
        """
        is_recommended = self.recommended != PADDING
        ascending, relevance = self.ascending_relevant()
        # The first of equal ids, since a search finds that one.
        is_first = ~equals_previous(ascending) & (ascending != PADDING)
        position, is_match = find_in_rows(ascending, self.recommended)
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
            listed=Items(labels, valid, retrieved, None),
            ties=None,
            query_weights=self.query_weights,
            deepest=deepest,
            num_retrieved=count(retrieved),
            num_listed=count(valid),
        )

    def recommend(self, deepest: int | None, tie_breaking: TieBreaking) -> RankedLists:
        """The recommended items, without ties."""
        ids = self.recommended[:, : depth_for(deepest, self.recommended)]
        items = Items.recommended(ids, ids != PADDING)
        number = count(items.valid)
        return RankedLists(
            ranked=items,
            listed=items,
            ties=None,
            query_weights=self.query_weights,
            deepest=deepest,
            num_retrieved=number,
            num_listed=number,
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
    recommended = as_ids("`y_pred`", y_pred, library=library).array
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
