"""Common mistakes with a plausible number: an error, or a warning."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import tensorflow as tf
from helpers import XLA, update_function

import tfrankmetrics as tfr
from tfrankmetrics.inputs import mistakes

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
    with pytest.raises(ValueError, match="drop these rows"):
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
        ValueError, match=re.escape("y_true is a column of 3 rows. Call evaluate_rows")
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


def test_swapped_query_ids_and_labels_are_a_warning():
    query_ids, labels = np.repeat(np.arange(10), 6), np.tile([0, 1, 2, 0, 0, 1], 10)
    scores = RNG.normal(size=60)
    with pytest.warns(
        tfr.RankingWarning, match="from 0 to 2, and 10 different labels"
    ) as caught:
        tfr.evaluate_rows(labels, query_ids, scores, ["mrr"])
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.evaluate_rows(query_ids, labels, scores, ["mrr"])
        # Few queries: grades, or fractions.
        tfr.evaluate_rows(labels, labels, scores, ["mrr"])
        tfr.evaluate_rows(labels, query_ids / 10 + 0.05, scores, ["ndcg"])
        tfr.evaluate_rows([0, 0, 1, 1], [0, 5, 0, 7], [1.0, 2, 3, 4], ["mrr"])
        tfr.evaluate_rows([0, 0, 0, 0], [0, 5, 1, 7], [1.0, 2, 3, 4], ["mrr"])


def test_zeros_and_ones_as_ids_are_a_warning():
    one_hot = np.eye(4, dtype=int)
    recommended = np.argsort(-SCORES[:, :4], axis=1)
    with pytest.warns(
        tfr.RankingWarning, match="zeros and ones, in lists of more than two"
    ) as caught:
        tfr.evaluate(one_hot, recommended, ["mrr"], inputs="ids")
    assert caught[0].filename == __file__
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
    update = tf.function(update_function(metric))
    update(tf.constant([[99]]), tf.constant(SCORES[:1]))
    with pytest.warns(tfr.RankingWarning, match="an id outside of the catalogue"):
        assert np.isnan(metric.result()["ndcg@3"])
    metric.reset_state()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric.result()


def test_a_result_of_nan_without_a_catalogue_does_not_speak_of_one():
    metric = tfr.NDCG()
    metric.update_state([[np.nan]], [[1.0]])
    with pytest.warns(tfr.RankingWarning, match="a label or weight") as caught:
        metric.result()
    assert "catalogue" not in str(caught[0].message)


# Item ids in place of positions in the batch


class TwoTowers(tf.keras.Model):
    """Scores each query of a batch with each item of the batch, `[B, B]`."""

    def __init__(self):
        super().__init__()
        self.queries = tf.keras.layers.Embedding(50, 4)
        self.items = tf.keras.layers.Embedding(50, 4)

    def call(self, pairs):
        queries, items = self.queries(pairs[:, 0]), self.items(pairs[:, 1])
        return tf.matmul(queries, items, transpose_b=True)


def cross_entropy(ids, scores):
    positions = tf.range(tf.shape(scores)[0])  # whatever the ids
    return tf.keras.losses.sparse_categorical_crossentropy(
        positions, scores, from_logits=True
    )


def fit_in_batches(ids, **arguments):
    pairs = np.stack([np.arange(8), 20 + np.arange(8)], axis=1).astype("int32")
    model = TwoTowers()
    metric = tfr.RankingMetrics(["mrr"], inputs="catalogue")
    model.compile("sgd", cross_entropy, metrics=[metric], **arguments)
    ids = np.asarray(ids, "int32")
    return model.fit(pairs, ids, batch_size=4, shuffle=False, verbose=0).history["mrr"]


@pytest.mark.parametrize("way", ["graph", XLA])
def test_item_ids_for_positions_in_a_batch_are_a_warning_in_fit(way):
    with pytest.warns(tfr.RankingWarning, match="not the ids of the items"):
        values = fit_in_batches(20 + np.arange(8), jit_compile=way == "xla")
    assert np.isnan(values).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error", tfr.RankingWarning)
        values = fit_in_batches([0, 1, 2, 3] * 2, jit_compile=way == "xla")
    assert np.isfinite(values).all()


def test_item_ids_for_positions_in_a_batch_are_an_error_in_eager_code():
    message = "positions in the catalogue, from 0 to 3.* pass y_true=tf.range"
    with pytest.raises(ValueError, match=message):
        fit_in_batches(20 + np.arange(8), run_eagerly=True)
    metric = tfr.MeanReciprocalRank(inputs="catalogue")
    with pytest.raises(ValueError, match=message):
        metric.update_state([20, 21, 22, 23], np.eye(4))
    with pytest.raises(ValueError, match="from 0 to 3") as error:
        metric.update_state([0, 4], np.eye(4)[:2])
    assert "batch" not in str(error.value)
    with pytest.raises(ValueError, match="Received in `exclude`: 4"):
        metric.update_state({"ids": [0], "exclude": [[4]]}, np.eye(4)[:1])
    assert np.isnan(metric.result())  # no query was added


def test_the_value_of_an_in_batch_catalogue_depends_on_the_batch():
    scores = np.random.default_rng(0).normal(size=(8, 8))
    whole, halves = (tfr.MeanReciprocalRank(inputs="catalogue") for _ in range(2))
    whole.update_state(np.arange(8), scores)
    for half in (slice(4), slice(4, 8)):
        halves.update_state(np.arange(4), scores[half, half])
    assert halves.result() > whole.result() + 0.1  # fewer items to rank
    # Two queries with the same item: the item is a wrong answer for both.
    twice = tfr.evaluate([0, 1], [[1.0, 1.0], [1.0, 1.0]], ["mrr"], inputs="catalogue")
    assert twice == {"mrr": (1 + 1 / 2) / 2}


def updated(metric, y_true, y_pred, how):
    """The metric after an update of two batches."""

    def update(labels, scores):
        metric.update_state(labels, scores)

    if how != "eagerly":
        update = tf.function(update, jit_compile=how == "under XLA")
    for part in (slice(0, 5), slice(5, None)):
        update(tf.constant(y_true[part]), tf.constant(y_pred[part]))
    return metric


HOW = [
    "eagerly",
    "in a graph",
    pytest.param("under XLA", marks=pytest.mark.slow("XLA")),
]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("make", [tfr.NDCG, lambda: tfr.RankingMetrics(["mrr"])])
def test_a_metric_object_warns_of_labels_and_scores_that_are_swapped(make, how):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (10, 8)).astype("float32")
    scores = rng.random((10, 8), "float32")
    metric = updated(make(), scores, labels, how)
    with pytest.warns(tfr.RankingWarning, match="They are probably swapped") as caught:
        metric.result()
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric.reset_state()
        metric.result()
        updated(make(), labels, scores, how).result()


@pytest.mark.parametrize("how", HOW)
def test_a_metric_object_warns_of_labels_of_minus_one_and_one(how):
    rng = np.random.default_rng(0)
    labels = rng.choice([-1.0, 1.0], (10, 8)).astype("float32")
    scores = rng.random((10, 8), "float32")
    metric = updated(tfr.NDCG(), labels, scores, how)
    with pytest.warns(tfr.RankingWarning, match="pass labels > 0"):
        metric.result()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels[9, 0] = 0
        updated(tfr.NDCG(), labels, scores, how).result()
        labels[9, 0] = 1
        masked = {"labels": tf.constant(labels), "mask": tf.constant(labels > -2)}
        metric = tfr.NDCG()
        metric.update_state(masked, scores)
        metric.result()


def test_fit_warns_of_labels_of_minus_one_and_one():
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(1), tf.keras.layers.Reshape([8])]
    )
    model.compile("sgd", "mse", metrics=[tfr.RankingMetrics(["ndcg"])])
    rng = np.random.default_rng(0)
    labels = rng.choice([-1.0, 1.0], (10, 8)).astype("float32")
    features = rng.random((10, 8, 3)).astype("float32")
    with pytest.warns(tfr.RankingWarning, match="pass labels > 0"):
        model.fit(features, labels, verbose=0)


def test_query_ids_that_are_fractions_are_a_warning():
    """The order of torchmetrics: scores, labels, queries."""
    scores, labels, queries = [0.3, 0.2, 0.9], [1, 0, 1], [0, 0, 1]
    with pytest.warns(
        tfr.RankingWarning, match="such as 0.3. The order of the columns"
    ):
        tfr.evaluate_rows(scores, labels, queries, ["mrr"])


def test_lists_of_one_item_are_a_warning():
    labels, scores = RNG.integers(0, 2, (60, 1)), RNG.random((60, 1))
    with pytest.warns(tfr.RankingWarning, match="60 lists of one item each"):
        tfr.evaluate(labels, scores, ["mrr"])
    with pytest.warns(tfr.RankingWarning, match="60 lists of one item each"):
        tfr.evaluate_rows(np.arange(60), labels[:, 0], scores[:, 0], ["mrr"])


def test_labels_that_a_threshold_does_not_tell_apart_are_a_warning():
    scores = RNG.random((6, 8))
    stars, rates = RNG.integers(1, 6, (6, 8)), RNG.random((6, 8)) * 0.9
    ids = np.repeat(np.arange(6), 8)
    for labels, message in (
        (stars, "from 1 to 5, so that each item is relevant. Pass .* such as 4"),
        (rates, "none above 0.8.*, so that no item is relevant"),
    ):
        with pytest.warns(tfr.RankingWarning, match=message):
            tfr.evaluate(labels, scores, ["mrr"])
        with pytest.warns(tfr.RankingWarning, match=message):
            tfr.evaluate_rows(ids, labels.ravel(), scores.ravel(), ["mrr"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tfr.evaluate(labels, scores, ["ndcg", "err"], max_label=5.0)
            threshold = {"relevance_threshold": 4.0 if labels is stars else 0.5}
            tfr.evaluate(labels, scores, ["mrr", "map"], **threshold)
            tfr.evaluate(labels, scores, ["rbp"], graded=True)


def test_relevant_items_that_are_excluded_are_a_warning():
    vectors, relevant = np.eye(3), [0, 1, 2]
    with pytest.warns(tfr.RankingWarning, match="3 of 3 relevant items are excluded"):
        tfr.evaluate_retrieval(
            vectors, vectors, relevant, ["mrr"], exclude=[[0], [1], [2]]
        )


def test_labels_with_a_last_dimension_of_one_are_labels():
    """Losses of Keras with a mask need labels [B, N, 1]."""
    labels, scores = RNG.integers(0, 2, (6, 5)), RNG.random((6, 5))
    expected = tfr.evaluate(labels, scores, ["mrr", "ndcg"])
    shaped = labels[..., np.newaxis], scores[..., np.newaxis]
    assert tfr.evaluate(*shaped, ["mrr", "ndcg"]) == expected
    metric = tfr.MeanReciprocalRank()
    metric.update_state(*(each.astype("float32") for each in shaped))
    assert float(metric.result()) == pytest.approx(expected["mrr"], rel=1e-6)
    explanation = tfr.explain(*shaped, "mrr", query=2)
    assert explanation.value == tfr.explain(labels, scores, "mrr", query=2).value
    subtopics = tfr.evaluate(shaped[0], scores, ["alpha_dcg"])["alpha_dcg"]
    assert subtopics > 0


@pytest.mark.parametrize(
    ("name", "proposed"),
    [
        ("precision_at_10", "precision@10"),
        ("ndcg10", "ndcg@10"),
        ("hits@10", "hit_rate@10"),
        ("mean_average_precision@5", "map@5"),
        ("mean_reciprocal_rank", "mrr"),
        ("P10", "precision@10"),
        ("map_at_5", "map@5"),
    ],
)
def test_the_cutoff_of_a_name_is_part_of_the_proposal(name, proposed):
    with pytest.raises(ValueError, match=f"Did you mean '{proposed}'"):
        tfr.evaluate([1, 0], [2, 1], [name])


def test_errors_of_labels_say_what_to_do():
    with pytest.raises(ValueError, match="Pass 0 for an item that is not relevant"):
        tfr.evaluate_rows([1, 1], [np.nan, 1], [1, 2], ["mrr"])
    with pytest.raises(ValueError, match="pass gain='linear'"):
        tfr.evaluate([1500, 0], [2, 1], ["ndcg"])


# Weights of 0 for items


MASKING = [
    {"convention": "keras_rs"},
    {"convention": "tf_ranking"},
    {"zero_weight": "mask"},
]


@pytest.mark.parametrize("options", MASKING, ids=lambda options: next(iter(options)))
def test_a_weight_of_zero_masks_an_item_where_tools_mask_it(options):
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 3, (20, 8)), rng.normal(size=(20, 8))
    weights = np.where(rng.random((20, 8)) < 0.3, 0, rng.integers(1, 5, (20, 8)))
    names = ["ndcg@3", "map", "mrr", "precision@3", "recall@3", "dcg"]
    expected = tfr.evaluate(
        labels, scores, names, sample_weight=weights, mask=weights > 0
    )
    found = tfr.evaluate(labels, scores, names, sample_weight=weights, **options)
    assert found == expected
    rows = np.repeat(range(20), 8), labels.ravel(), scores.ravel()
    weighted = {"sample_weight": weights.ravel(), **options}
    assert tfr.evaluate_rows(*rows, names, **weighted) == pytest.approx(expected)
    metric = tfr.RankingMetrics(names, **options)
    update = tf.function(update_function(metric))
    update(labels, scores, tf.constant(weights, tf.float32))
    found = {name: float(value) for name, value in metric.result().items()}
    assert found == pytest.approx(expected, rel=1e-6)


def test_a_weight_of_zero_masks_an_item_only_in_some_metrics_of_a_list():
    data = {"y_true": [[0, 1]], "y_pred": [[0.9, 0.8]], "sample_weight": [[0, 1]]}
    of_tool = tfr.MeanReciprocalRank(convention="keras_rs", name="tool")
    copy = type(of_tool).from_config(of_tool.get_config())
    with pytest.warns(tfr.RankingWarning, match="does not mask"):
        values = tfr.evaluate(metrics=[copy, "mrr"], **data)
    assert values == {"tool": 1.0, "mrr": 0.5}
    explained = tfr.explain(**data, metric="mrr", versus="keras_rs")
    assert "They differ in zero_weight ('keep' or 'mask')" in str(explained)


def test_weights_of_zero_and_one_are_a_warning():
    data = {"y_true": [[0, 1]], "y_pred": [[0.9, 0.8]], "metrics": ["mrr"]}
    message = "does not mask an item.*1 in all.*pass a mask or labels below 0"
    with pytest.warns(tfr.RankingWarning, match=message):
        assert tfr.evaluate(sample_weight=[[0, 1]], **data) == {"mrr": 0.5}
    with pytest.warns(tfr.RankingWarning, match=message):
        tfr.evaluate_rows([5, 5], [0, 1], [0.9, 0.8], ["mrr"], sample_weight=[0, 1])
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, (9, 8)), rng.random((9, 8))
    labels[:, 0] = 1
    padded = np.arange(8) < rng.integers(3, 8, (9, 1))
    of_queries = rng.random((9, 1)) + 0.1
    with pytest.warns(tfr.RankingWarning, match="does not mask"):
        tfr.evaluate(labels, scores, ["mrr"], sample_weight=padded * of_queries)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for weights in (
            np.where(rng.random((9, 8)) < 0.3, 0, rng.random((9, 8))),  # of any size
            np.where(labels > 0, 1 / (1 + np.arange(8)), 0),  # of clicks only
            np.arange(9) % 2,  # of queries
            np.repeat(np.arange(9)[:, None] % 2, 8, axis=1),
        ):
            tfr.evaluate(labels, scores, ["mrr"], sample_weight=weights)
        tfr.evaluate(labels, scores, ["mrr"], sample_weight=padded * 1, mask=padded)
        masks = {"convention": "keras_rs", "sample_weight": padded * 1}
        tfr.evaluate(labels, scores, ["mrr"], **masks)


# Mistakes of which a metric object keeps evidence


def labels_of_mistakes(kind):
    rng = np.random.default_rng(0)
    return {
        "stars": rng.integers(1, 6, (10, 8)),
        "click rates": rng.random((10, 8)) * 0.9,
        "lists of one item": rng.integers(0, 2, (60, 1)),
        "ids": rng.integers(0, 900, (10, 8)),
    }[kind].astype("float32")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("stars", "at least 1. Received in .* so that each item is relevant"),
        ("click rates", "all of which are below 1, so that no item is relevant"),
        ("lists of one item", "only lists of one item, in which nothing can be"),
        ("ids", "requires grades of relevance.*Received in 'ndcg': labels above 30"),
    ],
)
def test_a_metric_object_warns_of_labels_as_functions_do(kind, message, how):
    labels = labels_of_mistakes(kind)
    scores = np.random.default_rng(1).random(labels.shape, "float32")
    metric = tfr.NDCG() if kind == "ids" else tfr.RankingMetrics(["mrr", "map"])
    updated(metric, labels, scores, how)
    if kind == "lists of one item":  # the first batch has 5 queries
        metric.reset_state()
        metric.update_state(labels, scores)
    with pytest.warns(tfr.RankingWarning, match=message):
        metric.result()


@pytest.mark.parametrize("how", HOW)
def test_a_metric_object_is_silent_about_valid_labels(how):
    rng = np.random.default_rng(0)
    shape = (10, 8)
    scores = rng.random(shape, "float32")
    stars = rng.integers(1, 6, shape)
    valid = [
        (stars, {"relevance_threshold": 4.0}),
        (rng.random(shape), {"relevance_threshold": 0.5}),
        (rng.integers(0, 6, shape), {}),
        (np.ones(shape), {}),  # implicit feedback
        (np.zeros(shape), {}),
        (np.where(rng.random(shape) < 0.1, 1, rng.random(shape)), {}),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for labels, options in valid:
            metric = tfr.RankingMetrics(["mrr"], **options)
            updated(metric, labels.astype("float32"), scores, how).result()
        updated(tfr.NDCG(), stars.astype("float32"), scores, how).result()
        grades = rng.integers(0, 31, shape).astype("float32")
        updated(tfr.NDCG(), grades, scores, how).result()
        updated(tfr.NDCG(gain="linear"), 100 * grades, scores, how).result()
        updated(
            tfr.NDCG(), stars[:2, :4].astype("float32"), scores[:2, :4], how
        ).result()


def test_fit_warns_of_stars():
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(1), tf.keras.layers.Reshape([8])]
    )
    model.compile("sgd", "mse", metrics=[tfr.MeanReciprocalRank()])
    features = np.random.default_rng(0).random((10, 8, 3), "float32")
    with pytest.warns(tfr.RankingWarning, match="each item is relevant. Pass"):
        model.fit(features, labels_of_mistakes("stars"), verbose=0)


@pytest.mark.parametrize("how", HOW)
def test_a_metric_object_warns_of_weights_like_a_mask(how):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (10, 30)).astype("float32")
    scores = rng.random((10, 30), "float32")
    padded = (np.arange(30) < rng.integers(3, 29, (10, 1))).astype("float32")

    def metric_after(weights, **options):
        metric = tfr.RankingMetrics(["mrr", "ndcg@3"], **options)

        def update(weights):
            metric.update_state(labels, scores, weights)

        if how != "eagerly":
            update = tf.function(update, jit_compile=how == "under XLA")
        update(tf.constant(weights, tf.float32))
        return metric

    of_queries = rng.random((10, 1)) + 0.1
    for weights in (padded, padded * of_queries):
        metric = metric_after(weights)
        with pytest.warns(tfr.RankingWarning, match="does not mask an item"):
            metric.result()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric_after(padded, convention="keras_rs").result()
        metric_after(padded * rng.random((10, 30))).result()
        metric_after(np.where(labels > 0, 1 / (1 + np.arange(30)), 0)).result()
        metric_after(of_queries * (np.arange(10)[:, None] % 2)).result()


@pytest.mark.parametrize("how", ["evaluate", *HOW])
def test_relevant_items_that_are_excluded_from_a_catalogue_are_a_warning(how):
    rng = np.random.default_rng(0)
    scores = rng.random((10, 30), "float32")
    relevant = rng.integers(0, 10, (10, 2))
    interactions = np.concatenate([relevant, rng.integers(0, 30, (10, 4))], axis=1)
    before = rng.integers(10, 30, (10, 6))  # only items that are not relevant

    def evaluate(exclude):
        data = {"ids": relevant, "exclude": exclude}
        if how == "evaluate":
            return tfr.evaluate(data, scores, ["mrr"], inputs="catalogue")
        metric = tfr.RankingMetrics(["mrr"], inputs="catalogue")

        def update(data, scores):
            metric.update_state(data, scores)

        if how != "eagerly":
            update = tf.function(update, jit_compile=how == "under XLA")
        update({name: tf.constant(ids) for name, ids in data.items()}, scores)
        return metric.result()

    with pytest.warns(tfr.RankingWarning, match="20 of 20 relevant items are excluded"):
        assert float(evaluate(interactions)["mrr"]) == 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(evaluate(before)["mrr"]) > 0
    some = np.where(np.arange(10)[:, None] < 3, interactions, before)
    with pytest.warns(tfr.RankingWarning, match="6 of 20 relevant items are excluded"):
        evaluate(some)


@pytest.mark.parametrize(
    ("relevant", "excluded", "warns"),
    [(1, 1, False), (2, 2, True), (19, 18, False), (20, 2, True), (1000, 99, False)],
)
def test_a_tenth_of_the_relevant_items_is_too_many_to_exclude(
    relevant, excluded, warns
):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mistakes.warn_if_relevant_are_excluded(relevant, excluded)
    assert bool(caught) == warns


def test_labels_of_runs_that_a_threshold_does_not_tell_apart_are_a_warning():
    rng = np.random.default_rng(0)
    queries, items = np.repeat(range(10), 8), np.tile(range(8), 10)
    run = pd.DataFrame({"query_id": queries, "item_id": items})
    qrels = run.assign(label=rng.integers(1, 6, 80))
    run = run.assign(score=rng.random(80))
    with pytest.warns(tfr.RankingWarning, match="so that each item is relevant"):
        tfr.evaluate_run(qrels, run, ["mrr"])
    rates = qrels.assign(label=rng.random(80) * 0.9)
    with pytest.warns(tfr.RankingWarning, match="so that no item is relevant"):
        tfr.evaluate_run(rates, run, ["mrr"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Other items of the run were not judged: they are not relevant.
        tfr.evaluate_run(qrels[qrels.item_id < 7], run, ["mrr"])
        tfr.evaluate_run(qrels, run, ["mrr"], relevance_threshold=4.0)


def test_labels_above_30_are_a_warning_with_exponential_gains():
    clicks, scores = [[3, 31, 0]], [[0.9, 0.5, 0.1]]
    calls = [
        lambda labels, **options: tfr.evaluate(labels, scores, ["ndcg@2"], **options),
        lambda labels, **options: tfr.evaluate_rows(
            [7, 7, 7], labels[0], scores[0], ["ndcg@2"], **options
        ),
        lambda labels, **options: tfr.evaluate_run(
            {"q": dict(zip("abc", labels[0], strict=True))},
            {"q": dict(zip("abc", scores[0], strict=True))},
            ["ndcg@2"],
            **options,
        ),
    ]
    for call in calls:
        with pytest.warns(tfr.RankingWarning, match="labels up to 31. .*gain='linear'"):
            call(clicks)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(clicks, gain="linear")
            call([[3, 30, 0]])


def test_batches_of_lists_are_checked_together():
    stars = labels_of_mistakes("stars")
    scores = np.random.default_rng(1).random((10, 8))

    def evaluate(labels):
        model = tf.keras.Sequential([tf.keras.layers.Reshape([8])])
        data = tf.data.Dataset.from_tensor_slices((scores, labels)).batch(4)
        callback = tfr.EvaluateLists(data, metrics=["mrr"])
        callback.set_model(model)
        callback.on_epoch_end(0, {})

    with pytest.warns(tfr.RankingWarning, match="so that each item is relevant"):
        evaluate(stars)
    stars[9, 0] = 0  # in the last batch
    with warnings.catch_warnings():
        warnings.simplefilter("error", tfr.RankingWarning)
        evaluate(stars)


# Data in another form than they seem


def test_a_long_flat_list_of_many_relevant_items_is_a_warning():
    labels, scores = RNG.integers(0, 2, 384), RNG.random(384)
    message = "384 items, .* If they belong to several queries, use evaluate_rows"
    with pytest.warns(tfr.RankingWarning, match=message):
        tfr.evaluate(labels, scores, ["ndcg@10"])
    with pytest.warns(tfr.RankingWarning, match=message):
        tfr.NDCG(k=10).update_state(labels, scores)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.evaluate([labels], [scores], ["ndcg@10"])
        tfr.evaluate(labels[:50], scores[:50], ["ndcg@10"])
        tfr.evaluate(np.arange(384) == 7, scores, ["ndcg@10"])  # of a catalogue
        tfr.evaluate_rows(None, labels, scores, ["mrr"], groups=[384])


@pytest.mark.parametrize("way", ["graph", XLA])
def test_a_metric_object_warns_of_a_long_flat_list_in_a_graph(way):
    rng = np.random.default_rng(0)
    metric = tfr.NDCG()

    @tf.function(jit_compile=way == "xla")
    def update(labels, scores):
        metric.update_state(labels, scores)

    def update_all(size, relevant, shape):
        labels = (rng.permutation(size) < relevant).reshape(shape).astype("float32")
        metric.reset_state()
        update(tf.constant(labels), tf.constant(rng.random(shape), tf.float32))

    for valid in [(300, 39, (300,)), (199, 100, (199,)), (300, 100, (1, 300))]:
        update_all(*valid)
        metric.result()
    update_all(200, 40, (200,))
    with pytest.warns(tfr.RankingWarning, match=r"of one query. Received in 'ndcg'"):
        metric.result()


def test_ranked_positions_as_scores_are_a_warning():
    scores = RNG.random((10, 40))
    ranked = np.argsort(-scores, axis=1)
    labels = (scores > 0.9).astype(int)
    relevant = RNG.integers(0, 40, (10, 1))
    message = "the numbers 0 to 39 in each list, as of argsort.* pass inputs='ids'"
    with pytest.warns(tfr.RankingWarning, match=message):
        tfr.evaluate(labels, ranked, ["mrr"])
    with pytest.warns(tfr.RankingWarning, match=message):
        tfr.evaluate(relevant, ranked, ["mrr"], inputs="catalogue")
    for inputs, truth in (("labels", labels), ("catalogue", relevant)):
        with pytest.warns(tfr.RankingWarning, match=message):
            tfr.MeanReciprocalRank(inputs=inputs).update_state(truth, ranked)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.evaluate(labels, ranked.astype(float), ["mrr"])
        tfr.evaluate(labels, (scores * 100).astype(int), ["mrr"])
        tfr.evaluate([[1, 0, 0]] * 4, [[2, 1, 0]] * 4, ["mrr"])
        tfr.evaluate(relevant, ranked, ["mrr"], inputs="ids")
    ranks = 1 + np.argsort(np.argsort(-scores[:, :4], axis=1), axis=1)
    with pytest.warns(tfr.RankingWarning, match="1 to 4 .* pass lower_is_better=True"):
        tfr.evaluate(labels[:, :4], ranks, ["mrr"])
    with pytest.raises(ValueError, match="recommended ids rather than scores"):
        tfr.evaluate([[39]] * 10, ranked[:, :20], ["mrr"], inputs="catalogue")


def test_one_metric_object_for_two_outputs_is_an_error():
    inputs = tf.keras.Input((8, 1))
    outputs = {n: tf.keras.layers.Reshape((8,), name=n)(inputs) for n in ("a", "b")}
    model = tf.keras.Model(inputs, outputs)
    metric = tfr.NDCG()
    data = np.ones((4, 8, 1)), {name: np.ones((4, 8)) for name in outputs}
    # Keras 2 itself finds the object twice.
    message = "Make an object for each output|duplicated metrics object"

    def evaluate():
        model.compile(loss="mse", metrics={"a": metric, "b": metric})
        model.evaluate(*data, verbose=0)

    with pytest.raises(ValueError, match=message):
        evaluate()


# Names and ids


@pytest.mark.parametrize(
    "name", ["recall_2", "ndcg_cut", "ndcg_cut_5", "P_3", "mine@3", "recall_3"]
)
def test_a_metric_must_not_have_the_name_of_another_one_with_a_cutoff(name):
    def hits(lists, relevance):
        return lists.sum_to_cutoffs(lists.expected(relevance))

    names = {"name": "hits_found", "aliases": (name,)}
    if re.fullmatch("[a-z0-9_]+", name):
        names = {"name": name, "aliases": ()}
    with pytest.raises(ValueError, match="must not end with a cutoff"):

        @tfr.metric(formula=hits, gain=tfr.BinaryGain, range=(0, np.inf), **names)
        class Hits(tfr.TopKMetric):
            """Hits."""

            relevance_threshold: float = 1.0

    assert tfr.evaluate([[1, 0, 0]], [[2, 1, 3]], ["recall_2"]) == {"recall@2": 1.0}


def test_ids_that_are_not_hashable_are_an_error():
    qrels = pd.DataFrame({"query_id": [[1], [2]], "item_id": [1, 2], "label": [1, 1]})
    run = qrels.rename(columns={"label": "score"})
    with pytest.raises(ValueError, match="The ids of queries must be hashable"):
        tfr.evaluate_run(qrels, run, ["mrr"])
    with pytest.raises(ValueError, match="one id for each candidate"):
        tfr.evaluate_retrieval(
            np.eye(2), np.eye(2), [[1], [2]], ["mrr"], candidate_ids=[[1], [2]]
        )


@pytest.mark.parametrize("name", ["recall_at_k", "NDCG-5", "map 5"])
def test_other_forms_of_a_cutoff_are_part_of_the_proposal(name):
    with pytest.raises(ValueError, match=r"'(recall@10|ndcg@5|map@5)'"):
        tfr.evaluate([1, 0], [2, 1], [name])


def test_ranks_as_scores_are_a_warning():
    queries, items = np.repeat(range(6), 4), np.tile(range(4), 6)
    frame = pd.DataFrame({"query_id": queries, "item_id": items, "rank": items + 1})
    qrels = frame.assign(label=RNG.integers(0, 2, 24))
    message = "whose lowest is the best. Pass the scores of the model, or lower"
    mixed = frame.sample(frac=1, random_state=0)
    for run in (frame, mixed):
        with pytest.warns(tfr.RankingWarning, match=message):
            tfr.evaluate_run(qrels, run, ["mrr"], score="rank")
        with pytest.warns(tfr.RankingWarning, match=message):
            tfr.evaluate_rows(
                "query_id", "label", "rank", ["mrr"], data=qrels.loc[run.index]
            )
    with pytest.warns(tfr.RankingWarning, match=message):
        tfr.evaluate_rows(queries, qrels["label"].to_numpy(), items + 1, ["mrr"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = qrels["label"].to_numpy()
        tfr.evaluate_rows(queries, labels, 4 - items, ["mrr"])  # the best one first
        tfr.evaluate_rows(queries, labels, RNG.permuted(items + 1), ["mrr"])
        tfr.evaluate_rows(queries[:8], labels[:8], items[:8] + 1, ["mrr"])  # a few
        tfr.evaluate_run(
            qrels, frame.assign(rank=-frame["rank"]), ["mrr"], score="rank"
        )
        tfr.evaluate_run(qrels, frame, ["mrr"], score="rank", lower_is_better=True)


def test_keras_2_without_its_package_is_named(monkeypatch):
    from tfrankmetrics.keras import bases

    class Keras:
        @property
        def metrics(self):
            raise ImportError("`tf_keras` is not installed")

    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    monkeypatch.setattr(tf, "keras", Keras())
    find = bases.importlib.util.find_spec

    def without_tf_keras(name, *more):
        return None if name == "tf_keras" else find(name, *more)

    monkeypatch.setattr(bases.importlib.util, "find_spec", without_tf_keras)
    with pytest.raises(ImportError, match="requires Keras 2, the package tf_keras"):
        bases._keras()


NAN = np.nan
ONE_HIT = [[1, 0, 0, 0, 0]] * 4  # the relevant one of five tied items
ALL_NAN = np.full((4, 5), NAN)
MEAN_OF_FIVE = np.mean([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5])


def evaluate_in_batches():
    batches = tf.data.Dataset.from_tensor_slices((np.ones((4, 5, 2)), ONE_HIT)).batch(2)
    return logs_of(tfr.EvaluateLists(batches, metrics=["mrr"]), (5, 2))


def evaluate_rows_in_a_callback():
    queries = np.repeat(range(4), 5)
    labels = np.ravel(ONE_HIT)
    return logs_of(tfr.EvaluateRows(np.ones((20, 2)), labels, queries, ["mrr"]), (2,))


def logs_of(callback, shape):
    """The logs of a callback for a model that has diverged."""
    model = tf.keras.Sequential([tf.keras.Input(shape), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.set_weights([np.full((2, 1), NAN), np.zeros(1)])
    callback.set_model(model)
    callback.set_params({})  # Keras 2 has no default
    logs = {}
    callback.on_epoch_end(0, logs)
    return {"mrr": logs["val_mrr"]}


def retrieve_for_vectors():
    tfr.retrieve(np.full((4, 2), NAN), np.ones((5, 2)), k=1)
    return {"mrr": MEAN_OF_FIVE}


ALL_NAN_IN_FUNCTIONS = {
    "evaluate": lambda: tfr.evaluate(ONE_HIT, ALL_NAN, ["mrr"]),
    "tensors": lambda: tfr.evaluate(ONE_HIT, tf.constant(ALL_NAN), ["mrr"]),
    "catalogue": lambda: tfr.evaluate([0] * 4, ALL_NAN, ["mrr"], inputs="catalogue"),
    "rows": lambda: tfr.evaluate_rows(
        np.repeat(range(4), 5), np.ravel(ONE_HIT), ALL_NAN.ravel(), ["mrr"]
    ),
    "run": lambda: tfr.evaluate_run(
        {q: {"a": 1} for q in range(4)},
        {q: dict.fromkeys("abcde", NAN) for q in range(4)},
        ["mrr"],
    ),
    "retrieval": lambda: tfr.evaluate_retrieval(
        np.full((4, 2), NAN), np.ones((5, 2)), [0] * 4, ["mrr"]
    ),
    "retrieve": retrieve_for_vectors,
    "batches": evaluate_in_batches,
    "callback of rows": evaluate_rows_in_a_callback,
}


@pytest.mark.parametrize("name", ALL_NAN_IN_FUNCTIONS)
def test_scores_of_nan_are_a_warning(name):
    """A model that has diverged has the value of a random order."""
    message = r"Scores must be numbers\. Received: NaN for 20 of 20 scores"
    with pytest.warns(tfr.RankingWarning, match=message):
        found = ALL_NAN_IN_FUNCTIONS[name]()
    assert found == {"mrr": pytest.approx(MEAN_OF_FIVE)}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("inputs", ["labels", "catalogue", "subtopics"])
def test_a_metric_object_warns_of_scores_of_nan(inputs, how):
    scores = np.random.default_rng(0).random((10, 6), "float32")
    labels = np.tile([1, 0, 2, 0, 1, 0], (10, 1))
    make = tfr.MeanReciprocalRank
    if inputs == "catalogue":
        labels, make = np.zeros(10, int), lambda: tfr.NDCG(inputs="catalogue")
    if inputs == "subtopics":
        labels, make = np.stack([labels, labels[:, ::-1]], axis=2), tfr.AlphaDCG
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        updated(make(), labels, scores, how).result()
    scores[7:, 2] = NAN  # the second batch
    metric = updated(make(), labels, scores, how)
    name = metric.name
    message = f"Received in '{name}', among the first .*: NaN for 3 of 60 scores"
    with pytest.warns(tfr.RankingWarning, match=message):
        metric.result()


def test_nan_in_padding_is_no_warning():
    labels, scores = [[1, 0, -1]], [[2.0, 1.0, NAN]]
    metric = tfr.MeanReciprocalRank()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tfr.evaluate(labels, scores, ["mrr"]) == {"mrr": 1.0}
        assert tfr.evaluate_rows([1, 1, 1], *labels, *scores, ["mrr"]) == {"mrr": 1.0}
        metric.update_state(labels, scores)
        metric.result()


def test_weights_of_queries_in_any_order_are_no_mask():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.evaluate_rows(
            ["b", "a", "b", "b"],
            [1, 0, 1, 0],
            [0.5, 0.4, 0.3, 0.2],
            ["ndcg"],
            sample_weight=[0, 1, 0, 0],
        )


@pytest.mark.parametrize("digits", [1, 3])
def test_rounded_scores_that_are_swapped_with_labels_are_a_warning(digits):
    labels, scores = RNG.integers(0, 3, (8, 10)), RNG.normal(size=(8, 10))
    with pytest.warns(tfr.RankingWarning, match="probably swapped"):
        tfr.evaluate(np.round(scores, digits), labels, ["ndcg"])


def test_labels_of_1_and_2_without_0_are_a_warning():
    labels, scores = RNG.integers(1, 3, (8, 10)), RNG.normal(size=(8, 10))
    message = "so that each item is relevant"
    with pytest.warns(tfr.RankingWarning, match=message):
        assert tfr.evaluate(labels, scores, ["mrr"]) == {"mrr": 1.0}
    metric = tfr.MeanReciprocalRank()
    metric.update_state(labels, scores)
    with pytest.warns(tfr.RankingWarning, match=message):
        assert float(metric.result()) == 1.0


def test_ids_none_of_which_match_are_a_warning():
    relevant, recommended = (RNG.integers(low, low + 90, (8, 10)) for low in (0, 90))
    with pytest.warns(tfr.RankingWarning, match="probably numbered differently"):
        tfr.evaluate(relevant, recommended, ["mrr"], inputs="ids")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.evaluate(relevant[:1], recommended[:1], ["mrr"], inputs="ids")  # a few
        recommended[3, 3] = relevant[5, 5]  # of a different query
        tfr.evaluate(relevant, recommended, ["mrr"], inputs="ids")


@pytest.mark.parametrize("name", ["pred_rank", "Rank", "item position"])
def test_a_column_called_rank_may_be_in_any_order(name):
    order = np.tile([3, 1, 2], 4)
    labels = np.tile([0, 1, 0], 4)
    data = {"q": np.repeat(range(4), 3), "label": labels, name: order}
    with pytest.warns(tfr.RankingWarning, match="pass lower_is_better=True|or lower_"):
        tfr.evaluate_rows("q", "label", name, ["mrr"], data=data)


def test_pairs_of_an_item_and_a_score_are_no_ids():
    with pytest.raises(ValueError, match=r"such as \('a', 0\.9\)\. Pass a dict"):
        tfr.evaluate_run({"q": {"a": 1}}, {"q": [("a", 0.9), ("b", 0.5)]}, ["mrr"])
    run = {"q": [("a", 9), ("b", 5)]}  # ids of two parts
    assert tfr.evaluate_run({"q": {("a", 9): 1}}, run, ["mrr"]) == {"mrr": 1.0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: tfr.evaluate_rows(t, t["label"], t["score"], ["mrr"]), "data=frame"),
        (lambda t: tfr.evaluate([["a"]], [["a"]], ["mrr"]), "pass inputs='ids'"),
        (
            lambda t: tfr.evaluate_rows("q", "label", "score", ["mrr"], data=t, model="m"),
            r"evaluate_run\(model=",
        ),
        (
            lambda t: tfr.evaluate_rows("q", "label", "score", ["mrr"], data=t, by="m"),
            r"evaluate_run\(model=",
        ),
        (lambda t: tfr.evaluate([[1]], [[1]], ["mrr"], threshold=2), "`thresholds`"),
        (lambda t: tfr.NDCG(k=[1, 5]), r"RankingMetrics\(\['ndcg@1', 'ndcg@5'\]\)"),
        (
            lambda t: tfr.evaluate([[1]], [[1]], ["mrr"], sample_weight=[-1]),
            r"NaN or a negative number at index \[0\]",
        ),
    ],
)  # fmt: skip
def test_errors_name_the_call_that_was_meant(call, message):
    table = pd.DataFrame({"q": [1, 1], "label": [0, 1], "score": [1.0, 2], "m": [0, 1]})
    with pytest.raises((ValueError, TypeError), match=message):
        call(table)
