"""Common mistakes with a plausible number: an error, or a warning."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import tensorflow as tf

import tfrankmetrics as tfr

RNG = np.random.default_rng(0)
SCORES = RNG.normal(size=(4, 6))
SIGNED = np.where(RNG.random((4, 6)) < 0.4, 1, -1)


@pytest.mark.parametrize(
    "labels",
    [
        SIGNED,
        SIGNED.astype(np.float32),
        SIGNED.tolist(),
        tf.constant(SIGNED),
        tf.ragged.constant([[-1, 1], [1], [-1, -1, 1]]),
        [[-1, 1], [1], [-1, -1, 1]],
        SIGNED[0],
    ],
    ids=["int", "float", "list", "tensor", "ragged", "lists", "one list"],
)
def test_labels_of_minus_1_and_1_are_an_error(labels):
    scores = SCORES
    if isinstance(labels, tf.RaggedTensor):
        scores = tf.ragged.constant([[1.0, 2.0], [1.0], [1.0, 2.0, 3.0]])
    elif len(labels) == 3:
        scores = [[1.0, 2.0], [1.0], [1.0, 2.0, 3.0]]
    elif len(labels) == 6:
        scores = SCORES[0]
    with pytest.raises(ValueError, match="If -1 means not relevant, pass labels > 0"):
        tfr.evaluate(labels, scores, ["mrr"])


def test_labels_of_minus_1_and_1_in_rows():
    with pytest.raises(ValueError, match="leave these rows out"):
        tfr.evaluate_rows(
            np.repeat(range(4), 6), SIGNED.ravel(), SCORES.ravel(), ["mrr"]
        )


def test_other_labels_below_0_are_padding():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tfr.evaluate([[1, 0, -1]], [[1.0, 2.0, 3.0]], ["mrr"]) == {"mrr": 0.5}
        assert tfr.evaluate([[2, -1]], [[1.0, 2.0]], ["mrr"]) == {"mrr": 1.0}
        assert tfr.evaluate([[1, 1]], [[1.0, 2.0]], ["mrr"]) == {"mrr": 1.0}
        mask = SIGNED >= 0
        assert tfr.evaluate(SIGNED, SCORES, ["mrr"], mask=mask) == {"mrr": 1.0}
        everything = np.ones_like(mask)
        relevant = SIGNED > 0
        expected = tfr.evaluate(relevant, SCORES, ["mrr"])
        assert tfr.evaluate(SIGNED, SCORES, ["mrr"], mask=everything) == expected


@pytest.mark.parametrize("library", [pd, pl])
def test_columns_of_a_frame_are_an_error(library):
    frame = library.DataFrame({"label": [1, 0, 1], "score": [0.1, 0.2, 0.3]})
    with pytest.raises(
        ValueError, match=re.escape("y_true is a column of 3 rows. Use evaluate_rows")
    ):
        tfr.evaluate(frame["label"], frame["score"], ["mrr"])
    with pytest.raises(ValueError, match=re.escape("y_pred is a column")):
        tfr.evaluate([1, 0, 1], frame["score"], ["mrr"])
    arrays = frame["label"].to_numpy(), frame["score"].to_numpy()
    assert tfr.evaluate(*arrays, ["mrr"]) == {"mrr": 1.0}


def test_a_column_of_lists_is_many_queries():
    labels, scores = (
        pd.Series([[1, 0], [0, 1, 0]]),
        pd.Series([[2.0, 1.0], [2.0, 1.0, 0.0]]),
    )
    assert tfr.evaluate(labels, scores, ["mrr"]) == {"mrr": 0.75}


def test_swapped_labels_and_scores_are_a_warning():
    labels = np.arange(6) % 3 == RNG.integers(0, 3, (4, 1))
    with pytest.warns(tfr.RankingWarning, match="probably swapped") as caught:
        tfr.evaluate(SCORES, labels.astype(int), ["mrr"])
    assert caught[0].filename == __file__
    rows = [1, 1, 1, 1], [0.5, 0.3, 0.7, 0.1], [1, 0, 1, 0]
    with pytest.warns(tfr.RankingWarning, match="probably swapped"):
        tfr.evaluate_rows(*rows, ["mrr"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.evaluate(labels, SCORES, ["mrr"])
        tfr.evaluate(
            [[0.5, 0.0, 1.0, 0.5]], [[3, 2, 1, 0]], ["mrr"]
        )  # shares as labels
        tfr.evaluate([[3, 2, 0, 1]], [[1, 0, 2, 3]], ["ndcg"])


def test_zeros_and_ones_as_ids_are_a_warning():
    one_hot = np.eye(4, dtype=int)
    recommended = np.argsort(-SCORES[:, :4], axis=1)
    with pytest.warns(
        tfr.RankingWarning, match="zeros and ones, in lists of more than two"
    ):
        tfr.evaluate(one_hot, recommended, ["mrr"], inputs="ids")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.evaluate([[0, 1]], [[0, 1, 2]], ["mrr"], inputs="ids")
        tfr.evaluate([[3, 1, 0]], [[0, 1, 2]], ["mrr"], inputs="ids")


def test_a_result_of_nan_in_a_metric_says_why():
    metric = tfr.RankingMetrics(["ndcg@3"], inputs="catalogue")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric.result()  # NaN before any query
        metric.update_state([[2]], SCORES[:1])
        metric.result()
    metric.update_state([[99]], SCORES[:1])
    with pytest.warns(tfr.RankingWarning, match="an id outside of the catalogue"):
        assert np.isnan(metric.result()["ndcg@3"])
    metric.reset_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric.result()
