"""How far to trust a result: how much of it is ties, and how much was judged."""

from __future__ import annotations

from typing import Literal

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.metrics.base import TopKMetric
from tfrankmetrics.metrics.binary import precision
from tfrankmetrics.metrics.declared import metric
from tfrankmetrics.metrics.gains import JudgedItems, label_itself
from tfrankmetrics.ranking.items import ItemGain
from tfrankmetrics.ranking.ranked_lists import RankedLists


def tied_queries(lists: RankedLists, label: ItemGain) -> Array:
    """tied@k = 1 if a rank of 1..k is in a tie of unequal labels, otherwise 0."""
    return xp.minimum(lists.sum_to_cutoffs(lists.depends_on_order(label)), 1)


@metric(
    "tied",
    formula=tied_queries,
    gain=label_itself,
    lower_is_better=True,
    without_results=0,
    unaffected_by=("convention", "ties", "seed"),
)
class TiedQueries(TopKMetric):
    """The share of queries whose value may depend on the order of tied items.

    tied@k = 1 if a rank of 1..k is in a group of tied items with unequal labels (or,
             with one weight per item, unequal weights of relevant items), otherwise 0

    For such a query, another tool may give another value, and ties="best" and
    ties="worst" may differ. Beside other metrics, in `RankingMetrics` or `evaluate`, it
    comes from the same ranking, and the `ties` and `convention` of these do not apply
    to it. The value is between 0 and 1; lower is better.

    >>> tied = TiedQueries(k=1)
    >>> tied.update_state(y_true=[[1, 0, 0], [1, 0, 0]], y_pred=[[2, 2, 1], [2, 1, 1]])
    >>> float(tied.result())  # the first list depends on the order, the second does not
    0.5

    Args:
        ties: "expected", the only choice: with other ones there are no ties left.
        Other arguments: See `TopKMetric`.
    """

    ties: Literal["expected"] = "expected"
    empty: Literal["zero", "skip"] = "zero"


@metric(
    "judged",
    formula=precision,
    gain=JudgedItems,
    unjudged="keep",
    unaffected_by=("convention",),
)
class JudgedAtK(TopKMetric):
    """The share of the top items that was judged.

    judged@k = number of judged items at ranks 1..k / min(k, length of the list)

    Other metrics take an unjudged item for an irrelevant one, or ignore it. If few of
    the top items were judged, their values say little. `evaluate_run` knows what was
    judged. Elsewhere, an item that a mask keeps is unjudged if its label is below 0.
    Without a mask such an item is padding. The value is between 0 and 1.

    >>> judged = JudgedAtK(k=2)
    >>> y_true = {"labels": [[1, -1, 0]], "mask": [[True, True, True]]}
    >>> judged.update_state(y_true, y_pred=[[0.9, 0.5, 0.1]])
    >>> float(judged.result())  # one of two
    0.5

    Args:
        denominator: "list" (min(k, length of the list); the default), or "k", even for
            shorter lists.
        inputs: "labels", the only input format that tells judged items from others.
        Other arguments: See `TopKMetric`.
    """

    denominator: Literal["list", "k"] = "list"
    inputs: Literal["labels"] = "labels"
