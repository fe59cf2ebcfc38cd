"""Beyond accuracy: which items are shown, how often, and how different they are."""

from __future__ import annotations

import math

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.item_data import (
    CategoryShares,
    ItemCategories,
    ItemNumbers,
    ItemProbabilities,
    ItemVectors,
)
from tfrankmetrics.metrics.base import ItemMetric
from tfrankmetrics.metrics.dcg import discounts
from tfrankmetrics.metrics.declared import metric
from tfrankmetrics.options import Discount, NumItems
from tfrankmetrics.ranking.items import DataGain
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.ranking.recommended import Exposure, sums_by_category


def every_rank(lists: RankedLists) -> Array:
    """The attention 1 to each rank: how often an item is recommended."""
    return xp.ones_like(lists.ranks)


def share_shown(exposure: Exposure) -> Array:
    """The share of the items with any exposure."""
    return xp.mean(xp.astype(exposure.of_items > 0, xp.float64), axis=-1)


@metric("coverage", formula=every_rank, value=share_shown, aliases=("item_coverage",))
class CatalogCoverage(ItemMetric):
    """Catalog coverage: the share of the catalog that is recommended to anyone.

    coverage@k = items in the top k of at least one query / items in the catalog

    It is one value over all queries, rather than a mean of values per query. Under
    ties, an item that may be in the top k is covered: its expected exposure is above 0.
    The value is between 0 and 1. See Shani and Gunawardana, "Evaluating Recommendation
    Systems" (Recommender Systems Handbook, 2011), section 8.3.3.

    >>> coverage = CatalogCoverage(k=2, num_items=4)
    >>> coverage.update_state(y_true=[[3], [0]], y_pred=[[0, 1, 3], [1, 0, 2]])
    >>> float(coverage.result())  # two of four items
    0.5

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        num_items: The number of items in the catalog, V, whose ids are 0 ... V - 1.
            Required unless a function is passed the scores of the whole catalog.
            Default None.
        ties: For equal scores: "expected" (the default) or "stable".
        empty: "skip", the only choice: a query without recommendations is excluded.
        zero_weight: "keep", the only choice, since items have no weights.
        convention: None, the only choice: no convention covers this metric.
        inputs: What `update_state` reads: "labels", "ids" (the default) or "catalog".
        duplicates: "first" (the default) or "all", without a difference.
        name: The name of the result, by default such as "coverage@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `ItemMetric` describes the arguments from `ties` on in full.
    """

    num_items: NumItems = None


def gini(exposure: Exposure) -> Array:
    """The Gini coefficient: 0 if all shares are equal, 1 if one item has everything.

    With the shares p_1 <= ... <= p_V: sum of (2i - V - 1) p_i / V.
    """
    ascending = xp.sort(exposure.of_items, axis=-1)
    size = xp.astype(xp.shape(ascending)[-1], xp.float64, like=ascending)
    positions = xp.arange(1, size + 1, dtype=xp.float64, like=ascending)
    weighted = xp.sum((2 * positions - size - 1) * ascending, axis=-1)
    return xp.divide_no_nan(weighted, size * xp.sum(ascending, axis=-1))


@metric("gini", formula=every_rank, value=gini, lower_is_better=True)
class ExposureGini(ItemMetric):
    """Gini coefficient of exposure: how unequally items are recommended.

    gini@k = sum over i of (2i - V - 1) * p_i / V

    The shares p_1 <= ... <= p_V are those of the V items of the catalog in all
    recommendations down to rank k. The coefficient is one value over all queries: 0 if
    all items are recommended equally often, and almost 1 if all queries receive the
    same few. Lower is more equal. See Shani and Gunawardana (2011), section 8.3.3.

    >>> gini = ExposureGini(k=1, num_items=4)
    >>> gini.update_state(y_true=[[3], [0]], y_pred=[[0, 1, 3], [0, 2, 1]])
    >>> float(gini.result())  # one item receives everything: (V - 1) / V
    0.75

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        num_items: The number of items in the catalog, V, whose ids are 0 ... V - 1.
            Required unless a function is passed the scores of the whole catalog.
            Default None.
        ties: For equal scores: "expected" (the default) or "stable".
        empty: "skip", the only choice: a query without recommendations is excluded.
        zero_weight: "keep", the only choice, since items have no weights.
        convention: None, the only choice: no convention covers this metric.
        inputs: What `update_state` reads: "labels", "ids" (the default) or "catalog".
        duplicates: "first" (the default) or "all", without a difference.
        name: The name of the result, by default such as "gini@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `ItemMetric` describes the arguments from `ties` on in full.
    """

    num_items: NumItems = None


def entropy(exposure: Exposure) -> Array:
    """The entropy of the shares of the items, in bits."""
    total = xp.sum(exposure.of_items, axis=-1, keepdims=True)
    shares = xp.divide_no_nan(exposure.of_items, total)
    return xp.sum(shares * -_log2(shares), axis=-1)


def _log2(shares: Array) -> Array:
    """The logarithm, and 0 for a share of 0, whose term is 0."""
    return xp.log(xp.where(shares > 0, shares, 1)) / math.log(2)


@metric("entropy", formula=every_rank, value=entropy, range=(0, float("inf")))
class ExposureEntropy(ItemMetric):
    """Entropy of exposure: how evenly items are recommended, in bits.

    entropy@k = -sum over items of p * log2(p)

    The share p of an item is that in all recommendations down to rank k. It is one
    value over all queries: log2 of the number of items if all of them are recommended
    equally often, and 0 if all queries receive one item. See Shani and Gunawardana
    (2011), section 8.3.3.

    >>> entropy = ExposureEntropy(k=2, num_items=4)
    >>> entropy.update_state(y_true=[[3], [0]], y_pred=[[0, 1], [2, 3]])
    >>> float(entropy.result())  # four items equally often
    2.0

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        num_items: The number of items in the catalog, V, whose ids are 0 ... V - 1.
            Required unless a function is passed the scores of the whole catalog.
            Default None.
        ties: For equal scores: "expected" (the default) or "stable".
        empty: "skip", the only choice: a query without recommendations is excluded.
        zero_weight: "keep", the only choice, since items have no weights.
        convention: None, the only choice: no convention covers this metric.
        inputs: What `update_state` reads: "labels", "ids" (the default) or "catalog".
        duplicates: "first" (the default) or "all", without a difference.
        name: The name of the result, by default such as "entropy@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `ItemMetric` describes the arguments from `ties` on in full.
    """

    num_items: NumItems = None


def mean_of_items(lists: RankedLists, gain: DataGain) -> Array:
    """The mean gain of the recommended items."""
    total = lists.sum_to_cutoffs(lists.expected(gain))
    return xp.divide_no_nan(total, lists.num_to_cutoffs)


def mean_popularity(lists: RankedLists, *, popularity: ItemNumbers) -> Array:
    """The mean popularity of the recommended items."""
    return mean_of_items(lists, DataGain(popularity.values))


@metric(
    "mean_popularity",
    formula=mean_popularity,
    lower_is_better=True,
    range=(0, float("inf")),
    aliases=("average_recommendation_popularity",),
)
class MeanPopularity(ItemMetric):
    """Average recommendation popularity: how popular the recommended items are.

    mean_popularity@k = sum over ranks 1..k of popularity / number of items there

    The popularity of an item is passed by the user, such as its number of interactions
    in the training data. Other tools abbreviate this metric as ARP, which is the
    average relevance position in tfrankmetrics. See Yin et al., "Challenging the Long
    Tail Recommendation" (VLDB 2012), and Abdollahpouri et al., "Managing Popularity
    Bias" (2019).

    >>> popularity = MeanPopularity(k=2, popularity=[10, 4, 0])
    >>> popularity.update_state(y_true=[[2]], y_pred=[[0, 1, 2]])
    >>> float(popularity.result())
    7.0

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        popularity: The popularity of each item, at least 0, in the order of the items'
            ids, or a dict from the id of an item to it, or a frame of both columns.
            `novelty` requires probabilities above 0, such as (users of the item + 1) /
            (users + 1). Required.
        ties: For equal scores: "expected" (the default) or "stable".
        empty: "skip", the only choice: a query without recommendations is excluded.
        zero_weight: "keep", the only choice, since items have no weights.
        convention: None, the only choice: no convention covers this metric.
        inputs: What `update_state` reads: "labels", "ids" (the default) or "catalog".
        duplicates: "first" (the default) or "all", without a difference.
        name: The name of the result, by default such as "mean_popularity@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `ItemMetric` describes the arguments from `ties` on in full.
    """

    popularity: ItemNumbers = None  # type: ignore[assignment]


def self_information(lists: RankedLists, *, popularity: ItemProbabilities) -> Array:
    """The mean of -log2(popularity) over the recommended items."""
    return mean_of_items(lists, DataGain(-np.log2(popularity.values)))


@metric("novelty", formula=self_information, range=(0, float("inf")))
class Novelty(ItemMetric):
    """Novelty: the mean self-information of the recommended items, in bits.

    novelty@k = sum over ranks 1..k of -log2(popularity) / number of items there

    The popularity of an item is the probability that a user knows it, such as the share
    of users with an interaction in the training data. It must be above 0; for items
    without users, add one to both: (users of the item + 1) / (users + 1). See Zhou et
    al., "Solving the apparent diversity-accuracy dilemma" (PNAS 2010), and Castells et
    al. (Recommender Systems Handbook, 2015).

    >>> novelty = Novelty(k=2, popularity=[0.5, 0.125, 1.0])
    >>> novelty.update_state(y_true=[[2]], y_pred=[[0, 1, 2]])
    >>> float(novelty.result())  # 1 bit and 3 bits
    2.0

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        popularity: The popularity of each item, at least 0, in the order of the items'
            ids, or a dict from the id of an item to it, or a frame of both columns.
            `novelty` requires probabilities above 0, such as (users of the item + 1) /
            (users + 1). Required.
        ties: For equal scores: "expected" (the default) or "stable".
        empty: "skip", the only choice: a query without recommendations is excluded.
        zero_weight: "keep", the only choice, since items have no weights.
        convention: None, the only choice: no convention covers this metric.
        inputs: What `update_state` reads: "labels", "ids" (the default) or "catalog".
        duplicates: "first" (the default) or "all", without a difference.
        name: The name of the result, by default such as "novelty@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `ItemMetric` describes the arguments from `ties` on in full.
    """

    popularity: ItemProbabilities = None  # type: ignore[assignment]


def mean_distance(lists: RankedLists, *, vectors: ItemVectors) -> Array:
    """The mean of 1 - cosine over all pairs of recommended items."""
    number = lists.num_to_cutoffs
    num_pairs = number * (number - 1) / 2
    products = lists.pair_sums(DataGain(vectors.values))
    similarity = xp.divide_no_nan(products, num_pairs)
    return xp.where(number > 1, 1 - similarity, 0)


@metric("intra_list_diversity", formula=mean_distance, range=(0, 2), aliases=("ild",))
class IntraListDiversity(ItemMetric):
    """Intra-list diversity: how different the items of a list are from each other.

    intra_list_diversity@k = mean of 1 - cos(u, v) over all pairs of items in the top k

    The vectors describe the items: embeddings, or zeros and ones for their
    genres. Two items without a common genre have a distance of 1, as have two items of
    which one has a vector of zeros. A list of one item scores 0. Under ties, it is the
    average over all orders of tied items. See Ziegler et al., "Improving Recommendation
    Lists Through Topic Diversification" (WWW 2005), and Smyth and McClave (ICCBR 2001).

    >>> diversity = IntraListDiversity(k=2, vectors=[[1, 0], [0, 1], [1, 0]])
    >>> diversity.update_state(y_true=[[2], [2]], y_pred=[[0, 1, 2], [0, 2, 1]])
    >>> float(diversity.result())  # 1 and 0
    0.5

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        vectors: A vector for each item, `[V, d]`, or a dict from the id of an item to
            its vector. Required.
        ties: For equal scores: "expected" (the default) or "stable".
        empty: "skip", the only choice: a query without recommendations is excluded.
        zero_weight: "keep", the only choice, since items have no weights.
        convention: None, the only choice: no convention covers this metric.
        inputs: What `update_state` reads: "labels", "ids" (the default) or "catalog".
        duplicates: "first" (the default) or "all", without a difference.
        name: The name of the result, by default such as "intra_list_diversity@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `ItemMetric` describes the arguments from `ties` on in full.
    """

    vectors: ItemVectors = None  # type: ignore[assignment]


def rank_fairness(
    lists: RankedLists,
    *,
    categories: ItemCategories,
    target: CategoryShares,
    discount: Discount,
) -> Array:
    """1 minus the Jensen-Shannon divergence of the exposure from its target."""
    attention = discounts(lists, discount=discount)
    exposure = sums_by_category(lists, categories, attention)  # [B, C, G]
    shares = xp.divide_no_nan(exposure, xp.sum(exposure, axis=2, keepdims=True))
    wanted = xp.asarray(target.of_categories(categories), xp.float64, like=exposure)
    middle = (shares + wanted) / 2

    def divergence(of):
        return xp.sum(of * (_log2(of) - _log2(middle)), axis=2)

    distance = (divergence(shares) + divergence(wanted + xp.zeros_like(shares))) / 2
    return xp.where(lists.num_to_cutoffs > 0, xp.clip(1 - distance, 0, 1), 0)


@metric("awrf", formula=rank_fairness)
class AttentionWeightedRankFairness(ItemMetric):
    """Attention-weighted rank fairness: whether groups of items receive their share.

    awrf@k = 1 - JS(exposure, target)

    The exposure of a category is the sum of the discounts of the ranks 1..k that hold
    its items, as a share of the sum over all categories. JS is the Jensen-Shannon
    divergence in bits. The value is 1 if the exposure is the target, and 0 if they have
    no category in common. See Sapiezynski et al., "Quantifying the Impact of User
    Attention on Fair Group Representation in Ranked Lists" (WWW 2019), and the overview
    of the TREC 2021 Fair Ranking Track.

    >>> fairness = AttentionWeightedRankFairness(
    ...     k=1, categories=["new", "old"], target={"new": 0.5, "old": 0.5}
    ... )
    >>> fairness.update_state(y_true=[[0]], y_pred=[[1, 0]])
    >>> round(float(fairness.result()), 4)
    0.6887

    Args:
        k: The cutoff, an int of at least 1; None (the default) is the whole list.
        categories: The category of each item, a string or an integer, `[V]`, or a dict
            from the id of an item to its category. Required.
        target: The share of the exposure that each category should receive: a dict from
            categories to numbers that add up to 1. Required.
        discount: The discount of a rank: "log2" (1 / log2(1 + rank)), "jarvelin" (1 for
            ranks 1 and 2, then 1 / log2(rank)), or a function from a float64 tensor of
            ranks, starting at 1, to a tensor of discounts. Default "log2".
        ties: For equal scores: "expected" (the default) or "stable".
        empty: "skip", the only choice: a query without recommendations is excluded.
        zero_weight: "keep", the only choice, since items have no weights.
        convention: None, the only choice: no convention covers this metric.
        inputs: What `update_state` reads: "labels", "ids" (the default) or "catalog".
        duplicates: "first" (the default) or "all", without a difference.
        name: The name of the result, by default such as "awrf@10".
        dtype: The dtype of the result, by default Keras's floatx.

    `ItemMetric` describes the arguments from `ties` on in full.
    """

    categories: ItemCategories = None  # type: ignore[assignment]
    target: CategoryShares = None  # type: ignore[assignment]
    discount: Discount = "log2"
