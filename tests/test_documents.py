"""Reproduces the numbers in five documents about ranking metrics.

Each test case names its document: a notebook on MAP, precision and NDCG; a Chinese blog
post on ranking metrics; a notebook on NDCG for recommenders; a notebook on recall, MRR,
MAP and NDCG; or a notebook on Kaggle's MAP@12.
"""

from math import log2

import pytest
from cases import CLASSES
from helpers import value

import tfrankmetrics as trm

NOTEBOOK_NDCG = "notebook on MAP, precision@k and NDCG"
BLOG = "blog post on metrics for ranking"
RECOMMENDER = "notebook on NDCG for recommenders"
RECALL_TO_NDCG = "notebook on recall, MRR, MAP and NDCG"
KAGGLE = "notebook on MAP@12"

LINEAR = {"gain": "linear"}
# Items 1 to 8 in ranked order. Relevant items: 2, 4, 5, 7; 1, 4, 5, 7; and 5, 8.
FOUND = [[0, 1, 0, 1, 1, 0, 1, 0], [1, 0, 0, 1, 1, 0, 1, 0], [0, 0, 0, 0, 1, 0, 0, 1]]
GRADES = [0, 4, 1, 3, 4, 1, 3, 2]
IDEAL = [4, 4, 3, 3, 2, 1, 1, 0]


@pytest.mark.parametrize(
    ("document", "name", "k", "options", "labels", "printed", "digits"),
    [
        (NOTEBOOK_NDCG, "dcg", None, LINEAR, [3, 2, 3, 0, 1, 2, 3, 2], 8.492056442164959, 15),
        (NOTEBOOK_NDCG, "ndcg", 10, LINEAR, [3, 2, 3, 0, 1, 2, 3, 2], 0.935908621453514, 15),
        (BLOG, "precision", 3, {}, [1, 0, 1, 0, 1], 2 / 3, 15),
        (BLOG, "precision", 4, {}, [1, 0, 1, 0, 1], 2 / 4, 15),
        (BLOG, "precision", 5, {}, [1, 0, 1, 0, 1], 3 / 5, 15),
        (BLOG, "map", None, {}, [1, 0, 1, 0, 1], (1 / 1 + 2 / 3 + 3 / 5) / 3, 15),
        (BLOG, "mrr", None, {}, [0, 1, 0, 0], 1 / 2, 15),
        (RECOMMENDER, "dcg", 6, {**LINEAR, "discount": "jarvelin"}, [3, 2, 3, 0, 1, 2], 8.097171433256849, 15),
        (RECOMMENDER, "ndcg", 6, LINEAR, [3, 2, 3, 0, 1, 2], 0.9608081943360617, 15),
        (RECALL_TO_NDCG, "mrr", None, {}, FOUND, 0.57, 2),
        (RECALL_TO_NDCG, "map", 8, {}, FOUND[:1], 0.54, 2),
        (RECALL_TO_NDCG, "map", 8, {}, FOUND[1:2], 0.67, 2),
        (RECALL_TO_NDCG, "map", 8, {}, FOUND[2:], 0.23, 2),
        (RECALL_TO_NDCG, "map", 8, {}, FOUND, 0.48, 2),
    ]
    + [
        (RECALL_TO_NDCG, name, k, options, labels, printed, 2)
        for name, options, labels, all_printed in [
            ("recall", {}, FOUND[0], [0.0, 0.25, 0.25, 0.5, 0.75, 0.75, 1.0, 1.0]),
            ("dcg", LINEAR, GRADES, [0.0, 2.52, 3.02, 4.32, 5.86, 6.22, 7.22, 7.85]),
            ("dcg", LINEAR, IDEAL, [4.0, 6.52, 8.02, 9.32, 10.09, 10.45, 10.78, 10.78]),
            ("ndcg", LINEAR, GRADES, [0.0, 0.39, 0.38, 0.46, 0.58, 0.6, 0.67, 0.73]),
        ]
        for k, printed in enumerate(all_printed, 1)
    ],
)  # fmt: skip
def test_printed_values(document, name, k, options, labels, printed, digits):
    size = len(labels[0] if isinstance(labels[0], list) else labels)
    row = list(range(size, 0, -1))
    scores = [row] * len(labels) if isinstance(labels[0], list) else row
    assert round(value(name, labels, scores, k=k, **options), digits) == pytest.approx(
        printed, rel=1e-14
    )


ONE = [[1], [1], [1], [1], [1]]
LISTS = [
    [1, 1, 3, 4, 1],
    [2, 1, 3, 4, 5],
    [3, 2, 1, 4, 5],
    [4, 2, 3, 1, 5],
    [4, 2, 3, 5, 1],
]
ALL_DUPLICATES = {"duplicates": "all"}
OVER_HITS = {**ALL_DUPLICATES, "denominator": "hits"}
TRUTH = ["a", "b", "c", "d", "e"]
PREDICTED = ["bcade", "abcde", "fbcde", "afegb", "afcgb", "dcbae"]
MIN_K_RELEVANT = {"denominator": "min(k, relevant)"}
GOOD = [["good 1", "good 2", "good 3"]]
FIVE = [["good 1", "bad 1", "good 2", "bad 2", "good 3"]]
STRINGS = [["2", "4", "5", "7"]]
RANKED = [["1", "2", "3", "4", "5", "6", "7", "8"]]
THREE_QUERIES = [[2, 4, 5, 7], [1, 4, 5, 7], [5, 8]]
ONE_TO_EIGHT = [[1, 2, 3, 4, 5, 6, 7, 8]] * 3


@pytest.mark.parametrize(
    ("document", "name", "k", "options", "relevant", "recommended", "expected", "digits"),
    [
        (NOTEBOOK_NDCG, "map", 5, OVER_HITS, [1], LISTS[0], 0.8666666666666667, 16),
        (NOTEBOOK_NDCG, "map", 5, OVER_HITS, ONE, LISTS, 0.43, 15),
        (NOTEBOOK_NDCG, "precision", 5, ALL_DUPLICATES, ONE, LISTS, 0.28, 15),
        (BLOG, "precision", 3, {}, GOOD, FIVE, 2 / 3, 15),
        (BLOG, "precision", 4, {}, GOOD, FIVE, 2 / 4, 15),
        (BLOG, "precision", 5, {}, GOOD, FIVE, 3 / 5, 15),
        (BLOG, "map", None, {}, GOOD, FIVE, (1 / 1 + 2 / 3 + 3 / 5) / 3, 15),
        # The relevant item that was not returned lowers average precision.
        (BLOG, "map", None, {}, [["a", "b"]], [["x", "a"]], (1 / 2 + 0) / 2, 15),
        (BLOG, "mrr", None, {}, [["a"]], [["x", "a", "y", "z"]], 1 / 2, 15),
        (BLOG, "ndcg", None, {}, [["a", "b"]], [["x", "b", "a"]], (1 / log2(3) + 1 / log2(4)) / (1 + 1 / log2(3)), 15),
        # One of its functions puts only retrieved items in the ideal order.
        (RECOMMENDER, "ndcg", 4, {"ideal": "retrieved"}, [[7, 8, 9]], [[1, 7, 2, 8]], (1 / log2(3) + 1 / log2(5)) / (1 + 1 / log2(3)), 15),
        # Three users, each with one relevant item: their next item.
        (RECOMMENDER, "ndcg", 10, {}, [5, 6, 7], [[5, 1], [1, 2], [8, 9]], (1 + 0 + 0) / 3, 15),
        (RECOMMENDER, "ndcg", 10, {}, [5, 6, 7], [[5, 1, 2], [1, 2, 6], [8, 9, 1]], (1 + 1 / log2(4) + 0) / 3, 15),
        (RECALL_TO_NDCG, "mrr", None, {}, THREE_QUERIES, ONE_TO_EIGHT, 0.57, 2),
        (RECALL_TO_NDCG, "map", 8, {}, THREE_QUERIES[0], ONE_TO_EIGHT[0], 0.54, 2),
        (RECALL_TO_NDCG, "map", 8, {}, THREE_QUERIES[1], ONE_TO_EIGHT[1], 0.67, 2),
        (RECALL_TO_NDCG, "map", 8, {}, THREE_QUERIES[2], ONE_TO_EIGHT[2], 0.23, 2),
        (RECALL_TO_NDCG, "map", 8, {}, THREE_QUERIES, ONE_TO_EIGHT, 0.48, 2),
        (KAGGLE, "map", 4, MIN_K_RELEVANT, [TRUTH] * 6, [*map(list, PREDICTED)], 0.71875, 15),
    ]
    + [
        (RECALL_TO_NDCG, "recall", k, {}, STRINGS, RANKED, expected, 15)
        for k, expected in enumerate([0.0, 0.25, 0.25, 0.5, 0.75, 0.75, 1.0, 1.0], 1)
    ]
    + [
        (KAGGLE, name, k, options, TRUTH, list(PREDICTED[number]), expected, 15)
        for name, options, all_expected in [
            ("precision", {}, [1.0, 1.0, 0.0, 1 / 2, 2 / 3, 3 / 3]),
            ("map", MIN_K_RELEVANT, [1.0, 1.0, 0.0, 0.5, 0.5555555555555555, 1.0]),
        ]
        for number, (k, expected) in enumerate(zip([1, 1, 1, 2, 3, 3], all_expected))
    ],
)  # fmt: skip
def test_values_from_ids(
    document, name, k, options, relevant, recommended, expected, digits
):
    options = dict(options)
    duplicates = options.pop("duplicates", None)
    metric = CLASSES[name](k=k, **options)
    (found,) = trm.evaluate(
        relevant, recommended, [metric], inputs="ids", duplicates=duplicates
    ).values()
    assert round(found, digits) == pytest.approx(expected, rel=1e-14)


def test_ndcg_with_reciprocal_positions_as_grades():
    """The blog post's grades are 1 / (position in the list of relevant documents)."""
    relevant, grades = ["a", "b", "c"], [1 / 1, 1 / 2, 1 / 3]
    ndcg = trm.evaluate(
        {"ids": [relevant], "relevance": [grades]},
        [["c", "x", "a"]],
        ["ndcg"],
        inputs="ids",
        gain="linear",
    )["ndcg"]
    ideal = 1 / 1 + (1 / 2) / log2(3) + (1 / 3) / log2(4)
    assert ndcg == pytest.approx((1 / 3 + 1 / log2(4)) / ideal, rel=1e-14)


@pytest.mark.parametrize(
    ("number", "k", "relevance"),
    [(0, 1, 1.0), (1, 1, 1.0), (2, 1, 0.0), (3, 2, 0.0), (4, 3, 1.0), (5, 3, 1.0)],
)
def test_relevance_at_one_rank(number, k, relevance):
    """The notebook on MAP@12 defines rel@k, the relevance of the item at rank k."""
    ids, names = [TRUTH], [f"P@{depth}" for depth in range(1, k + 1)]
    precision = trm.evaluate(ids, [list(PREDICTED[number])], names, inputs="ids")
    before = (k - 1) * precision[f"P@{k - 1}"] if k > 1 else 0.0
    assert k * precision[f"P@{k}"] - before == pytest.approx(relevance)
