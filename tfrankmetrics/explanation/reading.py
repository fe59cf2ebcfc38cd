"""Ranked lists that a formula reads only down to some rank.

Every formula reads the ranks by the methods below. They return 0 at the ranks that are
not read, whereas the ideal order and the totals remain those of the whole list.
Therefore, the value of the formula is the contribution of the ranks that are read.
"""

from __future__ import annotations

import dataclasses

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.ranking.items import ItemGain
from tfrankmetrics.ranking.ranked_lists import RankedLists


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class ReadDownTo(RankedLists):
    """Ranked lists without the contributions of the ranks below `last`."""

    whole: RankedLists
    last: int

    def _down_to_last(self, by_rank: Array) -> Array:
        is_read = self.positions <= self.last
        if by_rank.ndim == 3:  # gains by subtopic
            is_read = is_read[:, xp.newaxis]
        return xp.where(is_read, by_rank, 0)

    def at_ranks(self, gain: ItemGain) -> Array:
        """The gain of the item at each rank that is read."""
        return self._down_to_last(self.whole.at_ranks(gain))

    def expected(self, gain: ItemGain) -> Array:
        """The mean gain at each rank that is read."""
        return self._down_to_last(self.whole.expected(gain))

    def first_stop(self, stop: ItemGain) -> Array:
        """The probability of a stop at each rank that is read."""
        return self._down_to_last(self.whole.first_stop(stop))

    def first_relevant(self, relevance: ItemGain) -> Array:
        """The probability of the first relevant item at each rank that is read."""
        return self._down_to_last(self.whole.first_relevant(relevance))

    def last_relevant(self, relevance: ItemGain) -> Array:
        """The rank of the last relevant item of each tie that is read."""
        return self._down_to_last(self.whole.last_relevant(relevance))

    def depends_on_order(self, gain: ItemGain) -> Array:
        """Which of the ranks that are read depend on the order of tied items."""
        return self._down_to_last(self.whole.depends_on_order(gain))

    # The values of the following methods at a rank also depend on the ranks above it,
    # and they only matter where the rank itself contributes.

    def group_sums(self, gain: ItemGain) -> tuple[Array, Array]:
        """As in the whole lists."""
        return self.whole.group_sums(gain)

    def relevant_down_to(self, relevance: ItemGain) -> Array:
        """As in the whole lists."""
        return self.whole.relevant_down_to(relevance)

    def irrelevant_above(self, relevance: ItemGain, maximum: Array) -> Array:
        """As in the whole lists."""
        return self.whole.irrelevant_above(relevance, maximum)
