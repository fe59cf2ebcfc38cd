"""The values of metrics from ranks among all candidates, which counts describe."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.compute.computed import Part
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.inputs.parts_by_length import ELEMENTS_AT_A_TIME, parts_of
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.ranking.counts import RankCounts, num_listed, rank_by_counts
from tfrankmetrics.ranking.items import Items
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.ranking.ties import TieBreaking
from tfrankmetrics.retrieval.all_candidates import Ranks
from tfrankmetrics.retrieval.candidates import RelevantItems


@dataclasses.dataclass(frozen=True, eq=False)
class CountedLists(Lists):
    """The relevant items of each query and the counts of their ranks, checked."""

    relevance: Array  # [B, M] float64, 0 for padding
    valid: Array  # [B, M] bool, False for padding
    retrieved: Array  # [B, M] bool
    above: Array  # [B, M] int64, see `RankCounts`
    tied: Array  # [B, M] int64
    tied_before: Array | None  # [B, M] int64
    num_retrieved: Array  # [B] int64, of all candidates
    list_sizes: Array  # [B] int64, see `num_listed`
    some_ranks: Array  # [B, D] float64, see `RankedLists`
    num_candidates: int

    def has_valid_values(self) -> Array:
        """Whether all grades of a query are valid, `[B]`."""
        return xp.isfinite(xp.sum(self.relevance, axis=1))

    def rank(self, deepest: int | None, tie_breaking: TieBreaking) -> RankedLists:
        """The relevant items by rank, down to the deepest cutoff."""
        if deepest is None:
            some_ranks = self.some_ranks
            depth = xp.shape(some_ranks, out_type=xp.int64)[1]
        else:
            some_ranks, depth = None, min(deepest + 1, self.num_candidates)
        listed = Items(self.relevance, self.valid, self.retrieved, None)
        counts = RankCounts(self.above, self.tied, self.tied_before)
        ranked, ties = rank_by_counts(counts, listed, depth, tie_breaking, some_ranks)
        num_retrieved = xp.astype(self.num_retrieved, xp.float64)
        return RankedLists(
            ranked=ranked,
            listed=listed,
            ties=ties,
            query_weights=self.query_weights,
            deepest=deepest,
            num_retrieved=num_retrieved,
            num_listed=num_listed(listed, xp.astype(self.list_sizes, xp.float64)),
            some_ranks=some_ranks,
        )


def parts_of_ranks(
    named: Mapping[str, Measure],
    items: RelevantItems,
    ranks: Ranks,
    query_weights: np.ndarray | None,
    num_candidates: int,
) -> Iterator[Part]:
    """The metrics, lists for them, and the numbers of their queries."""
    num_relevant, list_sizes = items.ids.shape[1], _list_sizes(items, num_candidates)
    cutoffs = [measure.k for measure in named.values()]
    # Queries that read about as many numbers are computed together.
    down_to, lengths = None, np.full(len(list_sizes), num_relevant)
    if None in cutoffs:  # all ranks would be too many: see `_some_ranks`
        down_to = min(num_candidates, max(num_relevant, *(k or 0 for k in cutoffs)))
        lengths += down_to + np.where(ranks.retrieved, ranks.tied, 0).sum(axis=1)
    by_length = np.argsort(lengths, kind="stable")
    for part in parts_of(by_length, lengths, ELEMENTS_AT_A_TIME):
        retrieved = ranks.retrieved[part]
        counts = RankCounts(ranks.above[part], ranks.tied[part])
        some_ranks = np.zeros((len(part), 0))
        if down_to is not None:
            some_ranks = _some_ranks(counts, retrieved, down_to, num_candidates)
        before = ranks.tied_before
        lists = CountedLists(
            relevance=items.relevance[part],
            valid=items.is_valid[part],
            retrieved=retrieved,
            above=counts.above,
            tied=counts.tied,
            tied_before=None if before is None else before[part],
            num_retrieved=ranks.num_retrieved[part],
            list_sizes=list_sizes[part],
            some_ranks=some_ranks,
            num_candidates=num_candidates,
            query_weights=None if query_weights is None else query_weights[part],
        )
        yield named, lists, part


def _list_sizes(items: RelevantItems, num_candidates: int) -> np.ndarray:
    """The candidates that are not excluded, and the relevant ones that are, `[B]`.

    A relevant item that is excluded counts as missed.
    """
    is_missed = items.is_valid & ~items.is_ranked & (items.relevance > 0)
    return num_candidates - items.num_excluded + is_missed.sum(axis=1)


def _some_ranks(
    counts: RankCounts, retrieved: np.ndarray, down_to: int, num_candidates: int
) -> np.ndarray:
    """The first ranks, and those of relevant items below, ascending, `[B, D]`.

    The ranks of a group of ties are complete. For example, down to rank 2, with two
    relevant items that have 4 and 8 items above them, of which the second is tied with
    one more item: 1, 2, 5, 9, 10. Short rows are padded with the rank
    `num_candidates` + 1, which has no item.
    """
    # A group of ties starts below `above` candidates: its first rank is one more.
    above = np.where(retrieved, counts.above, num_candidates)
    order = np.argsort(above, axis=1, kind="stable")
    starts, tied, is_group = (
        np.take_along_axis(each, order, axis=1)
        for each in (above, counts.tied, retrieved)
    )
    is_group[:, 1:] &= starts[:, 1:] != starts[:, :-1]
    ends = starts + tied
    starts = np.maximum(starts, down_to)
    sizes = np.where(is_group, np.maximum(ends - starts, 0), 0)
    lengths = sizes.sum(axis=1)
    ranks = np.full(
        (len(sizes), down_to + lengths.max(initial=0)), num_candidates + 1.0
    )
    ranks[:, :down_to] = np.arange(1, down_to + 1)
    below = np.repeat(starts, sizes.ravel()) + _counting_up(sizes.ravel()) + 1
    rows = np.repeat(np.arange(len(sizes)), lengths)
    ranks[rows, down_to + _counting_up(lengths)] = below
    return ranks


def _counting_up(lengths: np.ndarray) -> np.ndarray:
    """The numbers 0 ... n - 1 for each length n, one after another."""
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
