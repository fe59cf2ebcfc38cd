"""The printed numbers of five documents about ranking metrics.

These are the numbers that need nothing but labels in ranked order. Each row
names the document: a notebook on MAP, precision and NDCG; a Chinese blog post on
ranking metrics; a notebook on NDCG for recommenders; a notebook on recall, MRR,
MAP and NDCG; and one on Kaggle's MAP@12, whose lists of ids do not fit here.
"""

import pytest
from test_values import value

NOTEBOOK_NDCG = "notebook on MAP, precision@k and NDCG"
BLOG = "blog post on metrics for ranking"
RECOMMENDER = "notebook on NDCG for recommenders"
RECALL_TO_NDCG = "notebook on recall, MRR, MAP and NDCG"

LINEAR = {"gain": "linear"}
# Relevant are the items 2, 4, 5, 7; 1, 4, 5, 7; and 5, 8 of those ranked 1 to 8.
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
def test_printed_number(document, name, k, options, labels, printed, digits):
    size = len(labels[0] if isinstance(labels[0], list) else labels)
    row = list(range(size, 0, -1))
    scores = [row] * len(labels) if isinstance(labels[0], list) else row
    assert round(value(name, labels, scores, k=k, **options), digits) == pytest.approx(
        printed, rel=1e-14
    )
