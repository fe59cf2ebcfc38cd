"""Lists that are known by counts: the relevant items of a catalogue of any size."""

from __future__ import annotations

import dataclasses

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.inputs.relevant_ids import require_finite_relevance
from tfrankmetrics.ranking.counts import RankCounts, num_judged, rank_by_counts
from tfrankmetrics.ranking.items import Items
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.ranking.ties import TieBreaking


@dataclasses.dataclass(frozen=True, eq=False)
class CountedLists(Lists):
    """The relevant items of each query and the counts of their ranks, checked."""

    relevance: Array  # [B, M] float64, 0 for padding
    valid: Array  # [B, M] bool, False for padding
    retrieved: Array  # [B, M] bool
    above: Array  # [B, M] int64, see `RankCounts`
    tied: Array  # [B, M] int64
    tied_before: Array  # [B, M] int64
    num_retrieved: Array  # [B] int64, of all candidates
    list_sizes: Array  # [B] int64, see `num_judged`
    some_ranks: Array  # [B, D] float64, see `RankedLists`
    num_candidates: int

    def has_valid_values(self) -> Array:
        """Whether all grades of a query are valid, `[B]`."""
        return xp.isfinite(xp.sum(self.relevance, axis=1))

    def require_valid_values(self) -> None:
        """Raises ValueError for invalid grades and weights."""
        require_finite_relevance(self.relevance)
        super().require_valid_values()

    def rank(
        self, deepest: int | None, tie_breaking: TieBreaking, first_query: Array | int
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
            num_judged=num_judged(judged, xp.astype(self.list_sizes, xp.float64)),
            some_ranks=some_ranks,
        )
