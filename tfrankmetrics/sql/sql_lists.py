"""Ranked lists whose rows are in a database: what formulas read, as expressions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tfrankmetrics.ranking.items import ItemGain, Items
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.ranking.ties import TiesOfBatch
from tfrankmetrics.sql.sql_columns import (
    BY_SCORE,
    FLOAT,
    RANK,
    TIED,
    Column,
    NotInSQLError,
    condition,
)

xp = Column.array_operations
_IS_RETRIEVED, _IS_JUDGED = condition("score_class > 0"), condition("is_judged")
_IS_LISTED = condition("score_class >= 0")
LISTED = Items(Column("label"), _IS_LISTED, _IS_RETRIEVED, None, _IS_JUDGED)


def _window(form: str, *operands: Any, name: str) -> Column:
    return Column(form, *operands, kind="window", name=name)


class TiesOfRows(NamedTuple):
    """The group of tied items of each row, as `ranking.ties.TieGroups`."""

    sizes: Column
    first_rank: Column

    def rank_in_group(self, positions: Column) -> Column:
        """The place of each rank in its group, from 1."""
        place = positions - self.first_rank + 1
        return Column("{}", place, kind="named", name="place_in_tie")


_TIES: Any = TiesOfRows(
    _window(f"CAST(COUNT(*) OVER {TIED} AS {FLOAT})", name="tie_size"),
    _window(f"CAST(RANK() OVER {BY_SCORE} AS {FLOAT})", name="first_rank"),
)


class SqlLists(RankedLists):
    """The lists of a statement, down to one cutoff."""

    @classmethod
    def down_to(
        cls, k: int | None, *, has_ties: bool, has_weights: bool, is_run: bool
    ) -> SqlLists:
        """The lists of one metric.

        Args:
            k: The cutoff.
            has_ties: Whether items with equal scores are tied, rather than in an order.
            has_weights: Whether queries have weights.
            is_run: Whether judgments and predictions are two tables.
        """
        num_listed = xp.sum(xp.astype(_IS_LISTED, float), axis=1)
        if is_run:  # `Join.rows` adds an item to a query without judgments
            num_judged = xp.sum(xp.astype(_IS_JUDGED, float), axis=1)
            num_listed += xp.where(xp.equal(num_judged, 0), 1, 0)
        return cls(
            ranked=LISTED,
            listed=LISTED,
            deepest=k,
            ties=TiesOfBatch(True, _TIES) if has_ties else None,
            query_weights=Column("weight") if has_weights else None,
            num_retrieved=xp.sum(xp.astype(_IS_RETRIEVED, float), axis=1),
            num_listed=num_listed,
            cutoffs=(k,),
        )

    @property
    def k(self) -> float:
        """The cutoff; infinity is the whole list."""
        return math.inf if self.deepest is None else self.deepest

    @property
    def positions(self) -> Column:
        """The ranks."""
        return RANK

    def sum_to_cutoffs(self, values: Column) -> Column:
        """The sum down to the cutoff, by the rank of the values."""
        if self.deepest is not None:
            rank = values.ideal_rank or RANK
            values = xp.where(rank <= self.deepest, values, 0)
        return xp.sum(values, axis=1)

    def running_sums(self, values: Column) -> Column:
        """The sum down to each rank."""
        over = "(PARTITION BY query_id ORDER BY {1} ROWS UNBOUNDED PRECEDING)"
        return _window(f"SUM({{0}}) OVER {over}", values, RANK, name="running_sum")

    def at_ranks(self, gain: ItemGain) -> Column:
        """The gain of each retrieved item, and 0 for others."""
        return xp.where(_IS_RETRIEVED, _gains(gain), 0)

    def group_sums(self, gain: ItemGain) -> tuple[Column, Column]:
        """The sum and the mean of the gains of all items tied with each."""
        gains = self.at_ranks(gain)
        if self.ties is None:
            return gains, gains
        sums = _window(f"SUM({{}}) OVER {TIED}", gains, name="tie_sum")
        return sums, sums / _TIES.sizes

    def ideal(self, gain: ItemGain) -> Column:
        """The gains, by the rank in the ideal order."""
        order = "(PARTITION BY query_id ORDER BY {} DESC)"
        form = f"CAST(ROW_NUMBER() OVER {order} AS {FLOAT})"
        rank = _window(form, _gains(gain), name="ideal_rank")
        return Column("{}", _gains(gain), ideal_rank=rank)

    def depends_on_order(self, gain: ItemGain) -> Column:
        """1 where tied items have unequal gains, otherwise 0."""
        differs = f"MIN({{0}}) OVER {TIED} < MAX({{0}}) OVER {TIED}"
        form = f"CAST(CASE WHEN {differs} THEN 1 ELSE 0 END AS {FLOAT})"
        return _window(form, self.at_ranks(gain), name="tie_differs")

    def first_stop(self, stop: ItemGain) -> Any:
        """Not in SQL: a probability for each number of items in a tie."""
        raise NotInSQLError("the probability of a stop")


def _gains(gain: ItemGain) -> Column:
    """The gain of each listed item, computed once."""
    return Column("{}", gain(LISTED), kind="named", name="gain")
