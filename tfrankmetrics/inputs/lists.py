"""The lists of queries that every input format is read to.

`retrieval/values_of_ranks.py` has those of a catalog of any size, which hold counts
instead of scores.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, TypeVar

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.inputs.mistakes import Facts, LabelRules
from tfrankmetrics.inputs.weights import require_valid_weights
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.ranking.ties import TieBreaking

T = TypeVar("T", bound="Lists")


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Lists:
    """Checked lists of some queries, the base of those of each input format.

    The first axis of every array is the query: a slice of all arrays is a slice of the
    queries. A subclass implements `rank` and `has_valid_values` and overrides what else
    differs.
    """

    query_weights: Array | None = None  # [B] float64

    @property
    def has_subtopics(self) -> bool:
        """Whether items have a label for each subtopic, `[B, N, T]`."""
        return False

    @property
    def arrays(self) -> dict[str, Array]:
        """The arrays, by the name of their field."""
        return {n: value for n, value in vars(self).items() if hasattr(value, "dtype")}

    def with_arrays(self: T, arrays: Mapping[str, Array]) -> T:
        """The same lists with other arrays in these fields."""
        return dataclasses.replace(self, **arrays)

    def on_host(self: T, queries: slice = slice(None)) -> T:
        """The lists of some queries in arrays of NumPy."""
        arrays = self.arrays.items()
        return self.with_arrays({n: xp.to_numpy(each[queries]) for n, each in arrays})

    @property
    def num_queries(self) -> Array:
        """B, int64."""
        return xp.shape(next(iter(self.arrays.values())), out_type=xp.int64)[0]

    @property
    def elements_per_query(self) -> int:
        """How many numbers one query has in its widest array."""
        return max(math.prod(array.shape[1:]) for array in self.arrays.values())

    @property
    def num_items(self) -> int | None:
        """V, if the lists contain the scores of a catalog."""
        return None

    def has_valid_values(self) -> Array:
        """Whether the labels or ids of each query are valid, bool `[B]`."""
        raise NotImplementedError

    def require_valid_values(self) -> None:
        """Raises ValueError for values that would make a result NaN."""
        require_valid_weights(self.query_weights)

    def require_positions(self) -> None:
        """Raises ValueError for ids outside of a catalog."""

    def require_items(self, number: int, metric: str) -> None:
        """Raises ValueError if the items do not fit into a catalog of this size."""

    def warn_of_mistakes(
        self, y_true: Any, reads_judgments: bool, is_complete: bool
    ) -> None:
        """Warns of data that are probably a mistake; `is_complete` if all are here.

        `y_true` are the labels or ids as passed, and `reads_judgments` is whether a
        metric distinguishes judged items from others.
        """

    def facts(self, y_true: Any, mask: Any, rules: LabelRules) -> Facts:
        """The facts about lists that NumPy holds, and about `y_true` as passed."""
        return self.uncounted_facts(y_true)

    def uncounted_facts(self, y_true: Any) -> Facts:
        """Those of `facts` that a graph does not count."""
        return Facts()

    def without_unjudged(self: T) -> T:
        """The lists without unjudged items, if a mask keeps some."""
        return self

    def without_zero_weights(self: T) -> T:
        """The lists without items of weight 0, if items have weights."""
        return self

    def rank(self, deepest: int | None, tie_breaking: TieBreaking) -> RankedLists:
        """Ranks each list, down to the deepest cutoff that will be read.

        Args:
            deepest: The deepest cutoff; None is the whole list.
            tie_breaking: How equal scores are ordered.
        """
        raise NotImplementedError

    def recommend(self, deepest: int | None, tie_breaking: TieBreaking) -> RankedLists:
        """The recommended items by rank. It takes the same arguments as `rank`."""
        raise ValueError(
            "Metrics of which items are recommended require item ids. Received: labels "
            "without any. Pass y_true={'labels': ..., 'item_ids': ...}, `item_ids` of "
            "a table, or inputs='ids' or 'catalog'."
        )
