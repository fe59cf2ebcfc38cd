"""Diagnostics of a result: the share of ties, and the share of judged items."""

from __future__ import annotations

from typing import Literal

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.metrics.base import TopKMetric
from tfrankmetrics.metrics.binary import PrecisionDenominator, depths, precision
from tfrankmetrics.metrics.declared import metric
from tfrankmetrics.metrics.gains import JudgedItems, label_itself
from tfrankmetrics.metrics.user_models import probability_of_look
from tfrankmetrics.options import Persistence
from tfrankmetrics.ranking.items import ItemGain
from tfrankmetrics.ranking.ranked_lists import RankedLists


def tied_queries(lists: RankedLists, label: ItemGain) -> Array:
    """tied@k = 1 if a rank of 1..k is in a tie of unequal labels, otherwise 0."""
    return xp.minimum(lists.sum_to_cutoffs(lists.depends_on_order(label)), 1)


def number_of_items(lists: RankedLists, judged: ItemGain) -> Array:
    """The number of items, `[B]`: a list is not empty if no item is relevant."""
    return lists.num_listed


@metric(
    "tied",
    formula=tied_queries,
    gain=label_itself,
    lower_is_better=True,
    total=number_of_items,
    without_results=0,
    unaffected_by=("convention", "ties"),
)
class TiedQueries(TopKMetric):
    """The share of queries whose value may depend on the order of tied items.

    tied@k = 1 if a rank of 1..k is in a group of tied items with unequal labels (or,
             with one weight per item, unequal weights of relevant items), otherwise 0

    For such a query, a different tool may return a different value, and ties="best" and
    ties="worst" may differ. Together with other metrics, in `RankingMetrics` or
    `evaluate`, it uses the same ranking, and the `ties` and `convention` of these do
    not apply to it. The value is between 0 and 1; lower is better.

    >>> tied = TiedQueries(k=1)
    >>> tied.update_state(y_true=[[1, 0, 0], [1, 0, 0]], y_pred=[[2, 2, 1], [2, 1, 1]])
    >>> float(tied.result())  # the first list depends on the order, the second does not
    0.5

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        ties: "expected", the only choice: the other choices break all ties.
        empty: "zero" (the default) or "skip", without a difference: a list without
            relevant items is counted like any other.
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: What `update_state` reads: "labels" (the default), "ids" or "catalog".
        duplicates: Of repeated ids, count the "first" (the default) or "all".
        name: The name of the result, by default such as "tied@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    ties: Literal["expected"] = "expected"
    empty: Literal["zero", "skip"] = "zero"


@metric(
    "judged",
    formula=precision,
    gain=JudgedItems,
    total=number_of_items,
    unjudged="keep",
    unaffected_by=("convention",),
    by_rank={"gain": RankedLists.expected},
)
class JudgedAtK(TopKMetric):
    """The share of the top items that was judged.

    judged@k = number of judged items at ranks 1..k / min(k, length of the list)

    Other metrics treat unjudged items as irrelevant or ignore them. If few of the top
    items were judged, their values say little. `evaluate_run` knows which items were
    judged. In other functions, an item that a mask keeps is unjudged if its label is
    below 0. Without a mask such an item is padding. The value is between 0 and 1.

    >>> judged = JudgedAtK(k=2)
    >>> y_true = {"labels": [[1, -1, 0]], "mask": [[True, True, True]]}
    >>> judged.update_state(y_true, y_pred=[[0.9, 0.5, 0.1]])
    >>> float(judged.result())  # one of two
    0.5

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        denominator: "list" (min(k, length of the list); the default), or "k", even for
            shorter lists.
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: "zero" (the default), "one" or "skip", without a difference: a list
            without judged items is counted like any other.
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: "labels", the only input format that distinguishes judged items.
        name: The name of the result, by default such as "judged@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    denominator: PrecisionDenominator = "list"
    inputs: Literal["labels"] = "labels"


def unjudged_share(
    lists: RankedLists, judged: ItemGain, *, denominator: PrecisionDenominator
) -> Array:
    """hole@k = number of unjudged items at ranks 1..k / denominator."""
    retrieved = lists.sum_to_cutoffs(xp.astype(lists.ranked.retrieved, xp.float64))
    missing = retrieved - lists.sum_to_cutoffs(lists.expected(judged))
    return xp.divide_no_nan(missing, depths(lists, denominator))


@metric(
    "hole",
    formula=unjudged_share,
    gain=JudgedItems,
    lower_is_better=True,
    total=number_of_items,
    without_results=0,
    unjudged="keep",
    unaffected_by=("convention",),
)
class HoleAtK(TopKMetric):
    """The share of the top items that was not judged.

    hole@k = number of unjudged items at ranks 1..k / min(k, length of the list)

    It is 1 - `JudgedAtK`. BEIR and MTEB also call it the hole, but divide by k and
    treat an item as judged if it was judged for any query. The value is between 0 and
    1; lower is better. Source: Thakur et al., "BEIR: A heterogeneous benchmark for
    zero-shot evaluation of information retrieval models", NeurIPS 2021.

    >>> hole = HoleAtK(k=3)
    >>> y_true = {"labels": [[1, -1, 0]], "mask": [[True, True, True]]}
    >>> hole.update_state(y_true, y_pred=[[0.9, 0.5, 0.1]])
    >>> float(hole.result())  # one of three
    0.333...

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        denominator: "list" (min(k, length of the list); the default), or "k", even for
            shorter lists.
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: "zero" (the default) or "skip", without a difference: a list without
            judged items is counted like any other.
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: "labels", the only input format that distinguishes judged items.
        name: The name of the result, by default such as "hole@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    denominator: PrecisionDenominator = "list"
    empty: Literal["zero", "skip"] = "zero"
    inputs: Literal["labels"] = "labels"


def rbp_residual(lists: RankedLists, judged: ItemGain, *, persistence: float) -> Array:
    """Residual@k = b^n + (1 - b) * sum over ranks 1..n of unjudged * b^(rank - 1).

    It equals 1 - (1 - b) * sum of judged * b^(rank - 1), in which cancellation would
    lose digits.
    """
    is_retrieved = xp.astype(lists.ranked.retrieved, xp.float64)
    unjudged = is_retrieved - lists.expected(judged)
    look = probability_of_look(lists, judged, persistence=persistence)
    could_add = (1 - persistence) * lists.sum_to_cutoffs(unjudged * look)
    return could_add + persistence ** lists.sum_to_cutoffs(is_retrieved)


@metric(
    "rbp_residual",
    formula=rbp_residual,
    gain=JudgedItems,
    lower_is_better=True,
    total=number_of_items,
    without_results=1,
    unjudged="keep",
    unaffected_by=("convention",),
)
class RBPResidual(TopKMetric):
    """The residual of rank-biased precision: how much unjudged items could add to it.

    residual@k = persistence^n + (1 - persistence) * sum over the unjudged items at
                 ranks 1..n of persistence^(rank - 1)

    With n = min(k, length of the list), the items below rank n are unknown as well.
    If all items had been judged and read, the value would be between RBP@k and RBP@k +
    residual@k. The value is between 0 and 1; lower is better. Source: Moffat and Zobel,
    "Rank-biased precision for measurement of retrieval effectiveness", ACM TOIS 27(1),
    2008.

    >>> residual = RBPResidual(persistence=0.5)
    >>> y_true = {"labels": [[1, -1, 0]], "mask": [[True, True, True]]}
    >>> residual.update_state(y_true, y_pred=[[0.9, 0.5, 0.1]])
    >>> float(residual.result())  # 0.5^3 + 0.5 * 0.5, or 1 - (0.5 + 0.125)
    0.375

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        persistence: The probability that a user continues from one item to the next,
            between 0 and 1. Default 0.8.
        ties: For equal scores: "expected" (the default), "stable", "best" or "worst".
        empty: "zero" (the default) or "skip", without a difference: a list without
            judged items is counted like any other.
        zero_weight: For an item of weight 0: "keep" it (the default) or "mask" it.
        convention: The tool that sets the defaults, such as "trec_eval". Default None.
        inputs: "labels", the only input format that distinguishes judged items.
        name: The name of the result, by default such as "rbp_residual@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `TopKMetric` describes the arguments from `ties` on in full.
    """

    persistence: Persistence = 0.8
    empty: Literal["zero", "skip"] = "zero"
    inputs: Literal["labels"] = "labels"
