"""Tests of `to_lists`, which pads the rows of a table."""

import numpy as np
import pandas as pd
import pytest

import tfrankmetrics as trm


def test_rows_keep_their_order_and_queries_that_of_their_first_row():
    ids = ["b", "a", "b", "c", "a", "b"]
    found = trm.to_lists([1, 2, 3, 4, 5, 6], ids, padding=-1)
    np.testing.assert_array_equal(found, [[1, 3, 6], [2, 5, -1], [4, -1, -1]])
    assert found.dtype.kind == "i"


def test_features_have_a_last_dimension():
    features = np.arange(8, dtype="float32").reshape(4, 2)
    found = trm.to_lists(features, [7, 7, 3, 7], padding=0, length=4)
    assert found.dtype == np.float32
    expected = [[[0, 1], [2, 3], [6, 7], [0, 0]], [[4, 5], [0, 0], [0, 0], [0, 0]]]
    np.testing.assert_array_equal(found, expected)


def test_lists_have_the_values_of_rows():
    rng = np.random.default_rng(0)
    ids, labels = rng.integers(0, 30, 400), rng.integers(0, 3, 400)
    scores = rng.normal(size=400)
    names = ["ndcg@5", "map", "mrr"]
    lists = trm.to_lists(labels, ids, -1), trm.to_lists(scores, ids, 0.0)
    expected = trm.evaluate_rows(ids, labels, scores, names)
    assert trm.evaluate(*lists, names) == pytest.approx(expected)


def test_columns_of_pandas_and_no_rows():
    table = pd.DataFrame({"query": ["a", "b", "b"], "x": [1.0, 2.0, 3.0]})
    found = trm.to_lists(table[["x"]], table["query"], padding=0)
    np.testing.assert_array_equal(found, [[[1], [0]], [[2], [3]]])
    assert trm.to_lists([], [], padding=-1).shape == (0, 0)


@pytest.mark.parametrize(
    ("values", "ids", "options", "text"),
    [
        ([1, 2], [1], {}, r"Received: int64 of shape \(2,\), and 1 query ids"),
        ([[[1]]], [1], {}, r"must be numbers \[rows\] or \[rows, F\]"),
        (["x"], [1], {}, "Received: <U1 of shape"),
        ([1, 2], [1, None], {}, "query ids must not be missing"),
        ([1, 2, 3], [5, 6, 6], {"length": 1}, "length=1, and 2 rows of the query 6"),
        ([1], [1], {"length": 1.5}, "`length` of `to_lists` must be an int"),
        (np.uint8([1]), [1], {}, "padding=-1 for uint8. Cast the values"),
    ],
)
def test_mistakes(values, ids, options, text):
    with pytest.raises(ValueError, match=text):
        trm.to_lists(values, ids, padding=-1, **options)


def test_one_long_list_among_short_ones_is_a_warning():
    ids = [*range(100), *[100] * 500]
    text = r"94% are padding: the longest of 101 lists has 500 rows, and half .* most 1"
    with pytest.warns(trm.RankingWarning, match=text.replace("94%", r"\d\d%")):
        trm.to_lists(ids, ids, padding=-1)
    trm.to_lists(ids, ids, padding=-1, length=500)
    trm.to_lists(ids[:100], ids[:100], padding=-1)
