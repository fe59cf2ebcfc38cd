"""The relevant items of each query as ranked lists, derived from counts."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.engine.calls import call_compiled
from tfrankmetrics.engine.measure import Measure, thresholds_of
from tfrankmetrics.engine.values import ELEMENTS_AT_A_TIME, parts_of, values_and_weights
from tfrankmetrics.inputs.relevant_ids import require_finite_relevance
from tfrankmetrics.inputs.weights import require_valid_weights
from tfrankmetrics.ranking.counts import FAR, RankCounts, num_judged, rank_by_counts
from tfrankmetrics.ranking.items import Items
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.ranking.ties import TieBreaking
from tfrankmetrics.retrieval.blocks import Needed, Order, Ranks
from tfrankmetrics.retrieval.comparing import counting_up
from tfrankmetrics.retrieval.truth import RelevantItems


@dataclasses.dataclass(frozen=True, eq=False)
class CountedLists:
    """The relevant items of each query and the counts of their ranks, checked."""

    relevance: Array  # [B, M] float64, 0 for padding
    valid: Array  # [B, M] bool, False for padding
    retrieved: Array  # [B, M] bool
    above: Array  # [B, M] int64, see `RankCounts`
    tied: Array  # [B, M] int64
    tied_before: Array  # [B, M] int64
    num_retrieved: Array  # [B] int64, of all candidates
    num_items: Array  # [B] int64, see `num_judged`
    some_ranks: Array  # [B, D] float64, see `RankedLists`
    num_candidates: int
    query_weights: Array | None = None  # [B] float64
    has_subtopics = False

    @property
    def num_queries(self) -> Array:
        """B, int64."""
        return xp.shape(self.relevance, out_type=xp.int64)[0]

    @property
    def elements_per_query(self) -> int:
        """Roughly how many numbers one query takes in memory."""
        return self.relevance.shape[1] + self.some_ranks.shape[1]

    def has_valid_values(self) -> Array:
        """Whether all grades of a query are valid, `[B]`."""
        return xp.isfinite(xp.sum(self.relevance, axis=1))

    def require_valid_values(self) -> None:
        """Raises ValueError for invalid grades and weights."""
        require_finite_relevance(self.relevance)
        require_valid_weights(self.query_weights)

    def rank(
        self,
        deepest: int | None,
        tie_breaking: TieBreaking,
        first_query: Array | int,
    ) -> RankedLists:
        """The relevant items by rank, down to the deepest cutoff."""
        if deepest is None:
            some_ranks = self.some_ranks
            depth = xp.shape(some_ranks, out_type=xp.int64)[1]
        else:
            some_ranks, depth = None, min(deepest + 1, self.num_candidates)
        judged = Items(self.relevance, self.valid, self.retrieved, None)
        counts = RankCounts(self.above, self.tied, self.tied_before)
        ranked, ties = rank_by_counts(counts, judged, depth, tie_breaking, some_ranks)
        num_retrieved = xp.astype(self.num_retrieved, xp.float64)
        return RankedLists(
            ranked=ranked,
            judged=judged,
            ties=ties,
            query_weights=self.query_weights,
            deepest=deepest,
            num_retrieved=num_retrieved,
            num_judged=num_judged(judged, xp.astype(self.num_items, xp.float64)),
            some_ranks=some_ranks,
        )


class SomeRanks:
    """The ranks of each query that must be complete, and some below.

    Args:
        ranks: The counts of the relevant items.
        measures: The metrics.
        num_candidates: V.
    """

    def __init__(
        self,
        ranks: Ranks,
        measures: Sequence[Measure],
        num_candidates: int,
    ) -> None:
        self._num_candidates, self._width = num_candidates, ranks.above.shape[1]
        cutoffs = [measure.k for measure in measures]
        deepest = _deepest(measures, self._width)
        self._down_to = 0
        if None in cutoffs:
            self._down_to = min(num_candidates, deepest)
        # The groups of tied items by rank: the part of them below these ranks.
        order = np.argsort(
            np.where(ranks.retrieved, ranks.above, num_candidates),
            axis=1,
            kind="stable",
        )
        above, tied, is_group = (
            np.take_along_axis(each, order, axis=1)
            for each in (ranks.above, ranks.tied, ranks.retrieved)
        )
        is_group[:, 1:] &= above[:, 1:] != above[:, :-1]
        is_group &= above < FAR
        if None not in cutoffs:
            is_group[:] = False
        self._starts = np.maximum(above, self._down_to)
        sizes = above + tied - self._starts
        self._sizes = np.where(is_group, np.maximum(sizes, 0), 0)

    def parts(self) -> Iterator[np.ndarray]:
        """The queries, as many at a time as fit in memory, those of like length."""
        lengths = self._sizes.sum(axis=1) + self._down_to + self._width
        return parts_of(np.argsort(lengths, kind="stable"), lengths, ELEMENTS_AT_A_TIME)

    def of(self, queries: np.ndarray) -> np.ndarray:
        """The ranks of some queries, ascending, float64 `[B, D]`.

        Short rows are padded with the rank V + 1, which has no item.
        """
        starts, sizes = self._starts[queries], self._sizes[queries]
        lengths = sizes.sum(axis=1)
        ranks = np.full(
            (len(queries), self._down_to + lengths.max(initial=0)),
            self._num_candidates + 1.0,
        )
        ranks[:, : self._down_to] = np.arange(1, self._down_to + 1)
        starts, sizes = starts.ravel(), sizes.ravel()
        below = np.repeat(starts, sizes) + counting_up(sizes) + 1
        rows = np.repeat(np.arange(len(queries)), lengths)
        ranks[rows, self._down_to + counting_up(lengths)] = below
        return ranks


def needed_ranks(measures: Sequence[Measure], items: RelevantItems) -> Needed | None:
    """The ranks that the metrics read; None if they read those of all items.

    With items below the relevance threshold, the first item need not be relevant.
    """
    whole = [measure for measure in measures if measure.k is None]
    if not all(measure.reads_first_relevant for measure in whole):
        return None
    threshold = max(thresholds_of(whole), default=-np.inf)
    if (items.relevance[items.is_ranked] < threshold).any():
        return None
    # The rank below the deepest cutoff tells whether a group of ties crosses it.
    return Needed(_deepest(measures, items.ids.shape[1]) + 1, first=bool(whole))


def _deepest(measures: Sequence[Measure], num_relevant: int) -> int:
    """The ranks that must be complete even without a cutoff."""
    return max([num_relevant, *(m.k for m in measures if m.k is not None)])


def by_query(
    named: Mapping[str, Measure],
    items: RelevantItems,
    ranks: Ranks,
    query_weights: np.ndarray | None,
    num_candidates: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Values and weights of all queries, `[metrics, B]`."""
    values, weights = np.zeros((2, len(named), len(items.ids)))
    groups = collections.defaultdict(list)
    for number, measure in enumerate(named.values()):
        groups[order_of(measure)].append(number)
    measures = [*named.values()]
    num_items = num_candidates - (items.exclude >= 0).sum(axis=1)
    is_missed = items.is_valid & ~items.is_ranked & (items.relevance > 0)
    num_items += is_missed.sum(axis=1)
    for order, numbers in groups.items():
        chosen = tuple(measures[number] for number in numbers)
        some_ranks = SomeRanks(ranks, chosen, num_candidates)
        for part in some_ranks.parts():
            lists = CountedLists(
                relevance=items.relevance[part],
                valid=items.is_valid[part],
                retrieved=ranks.retrieved[part],
                above=ranks.above[part],
                tied=ranks.tied[part],
                tied_before=ranks.tied_before.get(order, ranks.tied)[part],
                num_retrieved=ranks.num_retrieved[part],
                num_items=num_items[part],
                some_ranks=some_ranks.of(part),
                num_candidates=num_candidates,
                query_weights=None if query_weights is None else query_weights[part],
            )
            found = call_compiled(values_and_weights, chosen, lists, 0)
            where = np.ix_(numbers, part)
            values[where], weights[where] = found
    return values, weights


def order_of(measure: Measure) -> Order | None:
    """The order of tied candidates, if it depends on their positions."""
    if measure["ties"] == "random":
        return Order(True, measure["seed"] or 0)
    return Order(False) if measure["ties"] == "stable" else None
