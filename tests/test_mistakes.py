"""Common mistakes with a plausible number: an error, or a warning."""

import dataclasses
import inspect
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import tensorflow as tf
from helpers import XLA, run_as, update_function
from mistake_table import CASES, EVERYWHERE, Data, cases_at, messages_of, require_found

import tfrankmetrics as trm
from tfrankmetrics.inputs import mistakes

RNG = np.random.default_rng(0)
SCORES = RNG.normal(size=(4, 6))
SIGNED = np.where(RNG.random((4, 6)) < 0.4, 1, -1)


@pytest.mark.parametrize("library", [pd, pl])
def test_columns_of_a_frame_are_an_error(library):
    frame = library.DataFrame({"label": [1, 0, 1], "score": [0.1, 0.2, 0.3]})
    with pytest.raises(
        ValueError, match=re.escape("y_true is a column of 3 rows. Call evaluate_rows")
    ):
        trm.evaluate(frame["label"], frame["score"], ["mrr"])
    with pytest.raises(ValueError, match=re.escape("y_pred is a column")):
        trm.evaluate([1, 0, 1], frame["score"], ["mrr"])
    arrays = frame["label"].to_numpy(), frame["score"].to_numpy()
    assert trm.evaluate(*arrays, ["mrr"]) == {"mrr": 1.0}


def test_swapped_query_ids_and_labels_are_a_warning():
    query_ids, labels = np.repeat(np.arange(10), 6), np.tile([0, 1, 2, 0, 0, 1], 10)
    scores = RNG.normal(size=60)
    by_item = np.arange(60).reshape(10, 6).T.ravel()
    for order in (np.arange(60), by_item, RNG.permutation(60)):
        with pytest.warns(
            trm.RankingWarning, match="from 0 to 2, and 10 different labels"
        ) as caught:
            trm.evaluate_rows(labels[order], query_ids[order], scores, ["mrr"])
        assert caught[0].filename == __file__
    trm.evaluate_rows(query_ids, labels, scores, ["mrr"])
    # Few queries: grades, or percentages, or fractions.
    for queries, grades in ((2, 50), (5, 11), (5, 101)):
        ids = np.repeat(np.arange(queries), grades)
        of_queries = RNG.permuted(np.tile(np.arange(grades), (queries, 1)), axis=1)
        for labels_of_rows in (of_queries, np.sort(of_queries)):
            rows = ids, labels_of_rows.ravel(), RNG.random(ids.size)
            trm.evaluate_rows(*rows, ["ndcg"], gain="linear")
    # Clicks of two queries, of which a third is 0.
    clicks = RNG.integers(0, 2, 1000), RNG.geometric(1 / 3, 1000) - 1
    trm.evaluate_rows(*clicks, RNG.random(1000), ["ndcg"], gain="linear")
    trm.evaluate_rows(labels, labels, scores, ["mrr"])
    trm.evaluate_rows(labels, query_ids / 10 + 0.05, scores, ["ndcg"])
    trm.evaluate_rows([0, 0, 1, 1], [0, 5, 0, 7], [1.0, 2, 3, 4], ["mrr"])
    trm.evaluate_rows([0, 0, 0, 0], [0, 5, 1, 7], [1.0, 2, 3, 4], ["mrr"])


def test_zeros_and_ones_as_ids_are_a_warning():
    one_hot = np.eye(4, dtype=int)
    recommended = np.argsort(-SCORES[:, :4], axis=1)
    with pytest.warns(
        trm.RankingWarning, match="zeros and ones, in lists of more than two"
    ) as caught:
        trm.evaluate(one_hot, recommended, ["mrr"], inputs="ids")
    assert caught[0].filename == __file__
    trm.evaluate([[0, 1]], [[0, 1, 2]], ["mrr"], inputs="ids")
    trm.evaluate([[3, 1, 0]], [[0, 1, 2]], ["mrr"], inputs="ids")


def test_a_result_of_nan_without_a_catalog_does_not_speak_of_one():
    metric = trm.NDCG()
    metric.update_state([[np.nan]], [[1.0]])
    with pytest.warns(trm.RankingWarning, match="a label or weight") as caught:
        metric.result()
    assert "catalog" not in str(caught[0].message)


def test_query_ids_that_are_fractions_are_a_warning():
    """The order of torchmetrics: scores, labels, queries."""
    scores, labels, queries = [0.3, 0.2, 0.9], [1, 0, 1], [0, 0, 1]
    with pytest.warns(
        trm.RankingWarning, match="such as 0.3. The order of the columns"
    ):
        trm.evaluate_rows(scores, labels, queries, ["mrr"])


# Labels


NAN = np.nan


def test_valid_labels_are_no_mistake(recwarn):
    evaluate = trm.evaluate
    assert evaluate([[1, 0, -1]], [[1.0, 2.0, 3.0]], ["mrr"]) == {"mrr": 0.5}
    assert evaluate([[2, -1]], [[1.0, 2.0]], ["mrr"]) == {"mrr": 1.0}
    assert evaluate([[1, 1]], [[1.0, 2.0]], ["mrr"]) == {"mrr": 1.0}
    evaluate([[0.5, 0.0, 1.0, 0.5]], [[3, 2, 1, 0]], ["mrr"])  # shares
    evaluate([[3, 2, 0, 1]], [[1, 0, 2, 3]], ["ndcg"])
    evaluate([[3, 31, 0]], [[0.9, 0.5, 0.1]], ["ndcg"], gain="linear")
    scores, stars = RNG.random((6, 8)), RNG.integers(1, 6, (6, 8))
    evaluate(stars, scores, ["ndcg", "err"], max_label=5.0)
    evaluate(stars, scores, ["rbp"], graded=True)
    evaluate(stars, scores, ["mrr", "map"], relevance_threshold=4.0)
    evaluate(stars / 6, scores, ["mrr"], relevance_threshold=0.5)
    queries, items = np.indices(stars.shape)
    run = {"query_id": queries.ravel(), "item_id": items.ravel()}
    run = pd.DataFrame({**run, "label": stars.ravel(), "score": scores.ravel()})
    # Other items of the run were not judged: they are not relevant.
    trm.evaluate_run(run[run["item_id"] < 7], run, ["mrr"])
    trm.evaluate_run(run, run, ["mrr"], relevance_threshold=4.0)
    assert not recwarn.list


def test_padding_and_masked_items_show_no_mistake(recwarn):
    mask = np.ones((30, 6), bool)
    mask[:, 0] = False
    metric = trm.RankingMetrics(["mrr"])
    for labels, scores in (
        (mask * 1.0, RNG.random((30, 6))),
        (mask * RNG.random((30, 6)) + mask, mask * 1.0),  # of a constant model
    ):
        metric.reset_state()
        data = {"labels": labels, "mask": mask}
        trm.evaluate(data, scores, ["ndcg"])
        metric.update_state({**data, "labels": labels >= 1}, scores)
        metric.result()
    # A mask decides, rather than labels below 0.
    assert trm.evaluate(SIGNED, SCORES, ["mrr"], mask=SIGNED >= 0) == {"mrr": 1.0}
    everything = np.ones(SIGNED.shape, bool)
    expected = trm.evaluate(SIGNED > 0, SCORES, ["mrr"])
    assert trm.evaluate(SIGNED, SCORES, ["mrr"], mask=everything) == expected
    metric.update_state({"labels": SIGNED, "mask": everything}, SCORES)
    metric.result()
    # Nor is a score of NaN a mistake in padding.
    labels, scores = [[1, 0, -1]], [[2.0, 1.0, NAN]]
    assert trm.evaluate(labels, scores, ["mrr"]) == {"mrr": 1.0}
    assert trm.evaluate_rows([1, 1, 1], *labels, *scores, ["mrr"]) == {"mrr": 1.0}
    metric.update_state(labels, scores)
    metric.result()
    assert not [each for each in recwarn if each.category is trm.RankingWarning]


@pytest.mark.parametrize("digits", [1, 3])
def test_rounded_scores_that_are_swapped_with_labels_are_a_warning(digits):
    labels, scores = RNG.integers(0, 3, (8, 10)), RNG.normal(size=(8, 10))
    with pytest.warns(trm.RankingWarning, match="probably swapped") as caught:
        trm.evaluate(np.round(scores, digits), labels, ["ndcg"])
    assert caught[0].filename == __file__


LENGTHS = np.array([10, 6, 4, 3, 10, 5, 7, 8])


@pytest.mark.parametrize("padding", [0, -1, -1e9, -np.inf, NAN, "mask", "ragged"])
def test_swapped_lists_of_unequal_length_are_noticed(padding):
    labels, scores = RNG.integers(0, 3, (8, 10)), RNG.normal(size=(8, 10))
    is_valid = np.arange(10) < LENGTHS[:, np.newaxis]
    mask = is_valid if padding == "mask" else None
    if padding == "ragged":
        labels, scores = (
            [*map(np.ndarray.tolist, np.split(each[is_valid], np.cumsum(LENGTHS)[:-1]))]
            for each in (labels, scores)
        )
    elif mask is None:
        labels, scores = (
            np.where(is_valid, labels, -1),
            np.where(is_valid, scores, padding),
        )
    accumulator = trm.Accumulator(["ndcg"])
    if padding is NAN:
        with pytest.raises(ValueError, match="pass them after the labels"):
            accumulator.update(scores, labels)
        return
    with pytest.warns(trm.RankingWarning, match="probably swapped"):
        trm.evaluate(scores, labels, ["mrr"], mask=mask)
    for rows in (slice(3), slice(3, 8)):
        accumulator.update(
            scores[rows], labels[rows], mask=None if mask is None else mask[rows]
        )
    with pytest.warns(trm.RankingWarning, match="probably swapped"):
        accumulator.compute()


@pytest.mark.parametrize(
    ("scores", "gain"),
    [
        ([0, 1], "exponential"),
        ([0, 1, 2, 3, 4], "exponential"),
        ([0, 0, 1, 1, 0], "linear"),  # of a classifier
    ],
)
def test_rates_as_labels_and_whole_numbers_as_scores_are_no_mistake(scores, gain):
    rng = np.random.default_rng(0)
    scores = rng.permuted(np.tile(scores, (30, 1)), axis=1)
    data = Data(rng.random(scores.shape), scores)
    options = {"metrics": ["ndcg"], "gain": gain}
    names = "query_id", "label", "score"
    metric = trm.RankingMetrics(**options)
    for call in (
        lambda: trm.evaluate(data.y_true, data.y_pred, **options),
        lambda: trm.evaluate_rows(*names, data=data.rows, **options),
        lambda: trm.evaluate_run(data.rows, data.run, **options),
        lambda: (metric.update_state(data.y_true, data.y_pred), metric.result()),
    ):
        assert messages_of(call) == []


def test_how_long_and_how_relevant_a_flat_list_must_be():
    def labels_of(size, relevant):
        return (RNG.permutation(size) < relevant).astype(float)

    scores = RNG.random(300)
    assert messages_of(lambda: trm.evaluate(labels_of(200, 40), scores[:200], ["mrr"]))
    trm.evaluate(labels_of(300, 39), scores, ["mrr"])
    trm.evaluate(labels_of(199, 100), scores[:199], ["mrr"])
    trm.evaluate([labels_of(300, 100)], [scores], ["mrr"])
    trm.evaluate_rows(None, labels_of(300, 100), scores, ["mrr"], groups=[300])


# Catalogs


@pytest.mark.parametrize("way", ["graph", XLA])
def test_a_result_of_nan_in_a_metric_says_why(way):
    metric = trm.RankingMetrics(["ndcg@3"], inputs="catalog")
    update = run_as(way, update_function(metric))
    metric.result()  # NaN before any query
    update(tf.constant([[2]]), tf.constant(SCORES[:1]))
    metric.result()
    update(tf.constant([[99]]), tf.constant(SCORES[:1]))
    message = "an id outside of the catalog.*not the ids of the items"
    with pytest.warns(trm.RankingWarning, match=message):
        assert np.isnan(metric.result()["ndcg@3"])
    metric.reset_state()
    metric.result()


def test_item_ids_for_positions_in_a_batch_are_an_error_in_eager_code():
    metric = trm.MeanReciprocalRank(inputs="catalog")
    message = "positions in the catalog, from 0 to 3.* pass y_true=tf.range"
    with pytest.raises(ValueError, match=message):
        metric.update_state([20, 21, 22, 23], np.eye(4))
    with pytest.raises(ValueError, match="from 0 to 3") as error:
        metric.update_state([0, 4], np.eye(4)[:2])
    assert "batch" not in str(error.value)
    with pytest.raises(ValueError, match="Received in `exclude`: 4"):
        metric.update_state({"ids": [0], "exclude": [[4]]}, np.eye(4)[:1])
    assert np.isnan(metric.result())  # no query was added


@pytest.mark.parametrize(
    ("relevant", "excluded", "warns"),
    [(1, 1, False), (2, 2, True), (9, 1, False), (19, 2, True), (1000, 49, False)]
    + [(1000, 50, True)],
)
def test_a_twentieth_of_the_relevant_items_is_too_many_to_exclude(
    relevant, excluded, warns
):
    exclude = np.where(np.arange(relevant) < excluded, 0, -1)[:, np.newaxis]
    y_true, scores = {"ids": [0] * relevant, "exclude": exclude}, np.eye(relevant, 4)
    messages = messages_of(
        lambda: trm.evaluate(y_true, scores, ["mrr"], inputs="catalog")
    )
    assert bool(messages) == warns


# Scores that are NaN, in addition to the table of mistakes


ONE_HIT = [[1, 0, 0, 0, 0]] * 4  # the relevant one of five tied items
ALL_NAN = np.full((4, 5), NAN)
NAN_VECTORS = np.full((4, 2), NAN), np.ones((5, 2))


def epoch_of_rows():
    """The logs of a callback for a model that has diverged."""
    rows = np.ones((20, 2)), np.ravel(ONE_HIT), np.repeat(range(4), 5)
    callback = trm.EvaluateRows(*rows, ["mrr"])
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.set_weights([np.full((2, 1), NAN), np.zeros(1)])
    callback.set_model(model)
    callback.set_params({})  # Keras 2 has no default
    logs = {}
    callback.on_epoch_end(0, logs)
    return {"mrr": logs["val_mrr"]}


@pytest.mark.parametrize(
    "call",
    [
        lambda: trm.evaluate([0] * 4, ALL_NAN, ["mrr"], inputs="catalog"),
        lambda: trm.evaluate_retrieval(*NAN_VECTORS, [0] * 4, ["mrr"]),
        lambda: trm.retrieve(*NAN_VECTORS, k=1),
        epoch_of_rows,
    ],
    ids=["catalog", "evaluate_retrieval", "retrieve", "EvaluateRows"],
)
def test_a_model_that_has_diverged_has_the_value_of_a_random_order(call):
    message = r"Scores must be numbers\. Received: NaN for 20 of 20 scores"
    with pytest.warns(trm.RankingWarning, match=message):
        found = call()
    if isinstance(found, dict) and "mrr" in found:
        expected = np.mean([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5])
        assert found == {"mrr": pytest.approx(expected)}


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
    expected = trm.evaluate(
        labels, scores, names, sample_weight=weights, mask=weights > 0
    )
    found = trm.evaluate(labels, scores, names, sample_weight=weights, **options)
    assert found == expected
    rows = np.repeat(range(20), 8), labels.ravel(), scores.ravel()
    weighted = {"sample_weight": weights.ravel(), **options}
    assert trm.evaluate_rows(*rows, names, **weighted) == pytest.approx(expected)
    metric = trm.RankingMetrics(names, **options)
    update = tf.function(update_function(metric))
    update(labels, scores, tf.constant(weights, tf.float32))
    found = {name: float(value) for name, value in metric.result().items()}
    assert found == pytest.approx(expected, rel=1e-6)


def test_a_weight_of_zero_masks_an_item_only_in_some_metrics_of_a_list():
    data = {"y_true": [[0, 1]], "y_pred": [[0.9, 0.8]], "sample_weight": [[0, 1]]}
    of_tool = trm.MeanReciprocalRank(convention="keras_rs", name="tool")
    copy = type(of_tool).from_config(of_tool.get_config())
    with pytest.warns(trm.RankingWarning, match="does not mask"):
        values = trm.evaluate(metrics=[copy, "mrr"], **data)
    assert values == {"tool": 1.0, "mrr": 0.5}
    explained = trm.explain(**data, metric="mrr", versus="keras_rs")
    assert "They differ in zero_weight ('keep' or 'mask')" in str(explained)


# The table of mistakes


def update_metric(case, data, how="eager"):
    """Updates a metric object in two batches, and reads its result."""
    is_flat = np.ndim(data.y_pred) == 1
    metric = trm.RankingMetrics([case.metric], inputs=case.inputs)
    update = run_as(how, update_function(metric))
    arrays = [data.y_true, np.asarray(data.y_pred, "float32")]
    if data.sample_weight is not None:
        arrays.append(np.asarray(data.sample_weight, "float32"))
    for part in [slice(None)] if is_flat else [slice(30), slice(30, None)]:
        update(*tf.nest.map_structure(lambda each: tf.constant(each[part]), arrays))  # noqa: B023
    metric.result()


def evaluate_arrays(case, data, convert=lambda array: array):
    arrays = data.y_true, data.y_pred, data.sample_weight
    y_true, y_pred, weight = tf.nest.map_structure(convert, arrays)
    options = {"sample_weight": weight, "inputs": case.inputs}
    trm.evaluate(y_true, y_pred, [case.metric], **options)


def evaluate_batches(case, data):
    weight = () if data.sample_weight is None else (data.sample_weight,)
    arrays = (np.array(data.y_pred), data.y_true, *weight)
    batches = tf.data.Dataset.from_tensor_slices(arrays).batch(4)
    callback = trm.EvaluateLists(batches, metrics=[case.metric])
    callback.set_model(tf.keras.Sequential([tf.keras.layers.Activation("linear")]))
    callback.set_params({})  # Keras 2 has no default
    callback.on_epoch_end(0, {})


def evaluate_rows(case, data):
    names = ("query_id", "label", "score")
    weight = {"sample_weight": "weight"} if "weight" in data.rows else {}
    if "subtopic" in data.rows:
        weight |= {"subtopic": "subtopic", "item_ids": "item_id"}
    trm.evaluate_rows(*names, [case.metric], data=data.rows, **weight)


def evaluate_retrieval(case, data):
    of_items = {"relevant": data.y_true["ids"], "exclude": data.y_true["exclude"]}
    trm.evaluate_retrieval(data.y_pred, np.eye(8), metrics=[case.metric], **of_items)


ENTRY_POINTS = {
    "evaluate": evaluate_arrays,
    "tensors": lambda case, data: evaluate_arrays(
        case, data, lambda array: None if array is None else tf.constant(array)
    ),
    "batches": evaluate_batches,
    "evaluate_rows": evaluate_rows,
    "evaluate_run": lambda case, data: trm.evaluate_run(
        data.rows, data.run, [case.metric]
    ),
    "evaluate_retrieval": evaluate_retrieval,
    "metric": update_metric,
    "graph": lambda case, data: update_metric(case, data, "graph"),
    "xla": lambda case, data: update_metric(case, data, "xla"),
}
MARKS = {"xla": XLA.marks}
# In each case with labels, XLA compiles the same facts. These two have all facts.
UNDER_XLA = {"weights_like_a_mask", "relevant_but_excluded"}


@pytest.mark.parametrize(
    ("case", "where"),
    [
        pytest.param(case, where, id=f"{case}, {where}", marks=MARKS.get(where, ()))
        for where in ENTRY_POINTS
        for case in cases_at(where)
        if where != "xla" or case.mistake in UNDER_XLA
    ],
)
def test_a_mistake_is_found_at_each_entry_point(case, where):
    require_found(case, lambda data: ENTRY_POINTS[where](case, data))


@pytest.mark.parametrize(
    "where", sorted(ENTRY_POINTS.keys() - {"evaluate_retrieval", "xla"})
)
def test_a_threshold_between_two_floats_is_that_of_the_metric(where):
    case = next(case for case in CASES if case.mistake == "useless_threshold")

    def evaluate(label, threshold):
        metric = trm.MeanReciprocalRank(relevance_threshold=threshold)
        data = Data(np.full((60, 8), label, "float32"))
        ENTRY_POINTS[where](dataclasses.replace(case, metric=metric), data)

    assert np.float64(np.float32(0.7)) < 0.7
    (message,) = messages_of(lambda: evaluate(0.7, 0.7))
    assert "below 0.7, so no item is relevant" in message
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # also NumPy's of an overflow
        evaluate(1.0, 1e39)
        evaluate(0.0, 1e-50)


def test_functions_warn_in_each_call():
    for _ in range(2):
        assert messages_of(lambda: trm.evaluate(ONE_HIT, ALL_NAN, ["mrr"]))


@pytest.mark.parametrize("mistake", ["swapped", "not_numbers"])
def test_an_explanation_of_rows_warns_of_mistakes(mistake):
    case = next(case for case in CASES if case.mistake == mistake)

    def explain(data):
        columns = ("query_id", "label", "score")
        trm.explain_rows(*columns, case.metric, 0, data=data.rows)

    require_found(case, explain)


def test_each_mistake_has_a_case():
    named = {find.__name__ for find in mistakes.MISTAKES}
    written = {
        name
        for name, each in vars(mistakes).items()
        if inspect.isgeneratorfunction(each) and each.__module__ == mistakes.__name__
    }
    assert named == written, "see MISTAKES in tfrankmetrics/inputs/mistakes.py"
    cases = {case.mistake for case in CASES}
    assert cases == named | {"signed_labels"}, "see CASES in tests/mistake_table.py"
    for case in CASES:
        assert case.where <= EVERYWHERE | {"evaluate_retrieval"}, case


def test_weights_of_zero_that_are_no_mask():
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 2, (9, 8)), rng.random((9, 8))
    labels[:, 0] = 1
    padded = np.arange(8) < rng.integers(3, 8, (9, 1))
    of_queries = rng.random((9, 1)) + 0.1
    with pytest.warns(trm.RankingWarning, match="does not mask"):
        trm.evaluate(labels, scores, ["mrr"], sample_weight=padded * of_queries)
    metrics = []
    for weights in (
        np.where(rng.random((9, 8)) < 0.3, 0, rng.random((9, 8))),  # of any size
        np.where(labels > 0, 1 / (1 + np.arange(8)), 0),  # of clicks only
        np.arange(9) % 2,  # of queries
        np.repeat(np.arange(9)[:, None] % 2, 8, axis=1),
    ):
        trm.evaluate(labels, scores, ["mrr"], sample_weight=weights)
        metrics.append(trm.RankingMetrics(["mrr", "ndcg@3"]))
        metrics[-1].update_state(labels, scores, weights)
    trm.evaluate(labels, scores, ["mrr"], sample_weight=padded * 1, mask=padded)
    masks = {"convention": "keras_rs", "sample_weight": padded * 1}
    trm.evaluate(labels, scores, ["mrr"], **masks)
    rows = list("babb"), [1, 0, 1, 0], [0.5, 0.4, 0.3, 0.2], ["ndcg"]
    trm.evaluate_rows(*rows, sample_weight=[0, 1, 0, 0])  # of queries
    metrics.append(trm.RankingMetrics(["mrr"], convention="keras_rs"))
    metrics[-1].update_state(labels, scores, padded * 1)
    for metric in metrics:
        metric.result()


def test_batches_are_checked_together():
    stars = RNG.integers(1, 6, (10, 8))
    stars[9, 0] = 0  # in the last batch
    case = next(case for case in CASES if case.mistake == "useless_threshold")
    assert messages_of(lambda: evaluate_batches(case, Data(stars, stars / 9))) == []


RANKS = np.argsort(RNG.random((10, 8)), axis=1)
BEST_FIRST = (RANKS < 2).astype(int)  # the labels of two relevant items


@pytest.mark.parametrize("ranks", [RANKS, RANKS + 1, RANKS + 1.0, np.float32(RANKS)])
@pytest.mark.parametrize("inputs", ["labels", "catalog", "padded"])
def test_ranks_are_no_scores_if_the_best_are_lowest(ranks, inputs):
    labels, expected = BEST_FIRST, "scores that look like ranks"
    if inputs == "padded":
        labels = np.pad(labels, [[0, 0], [0, 2]], constant_values=-1)
        ranks = np.pad(ranks, [[0, 0], [0, 2]])
    elif inputs == "catalog":
        labels = np.nonzero(labels)[1].reshape(10, 2)
    inputs = "catalog" if inputs == "catalog" else "labels"

    def messages(scores, **options):
        of_evaluate = lambda: trm.evaluate(  # noqa: E731
            labels, scores, ["mrr"], inputs=inputs, **options
        )
        if options:
            return messages_of(of_evaluate)
        metric = trm.MeanReciprocalRank(inputs=inputs)
        metric.update_state(labels, scores)
        return messages_of(of_evaluate) + messages_of(metric.result)

    assert [expected in each for each in messages(ranks)] == [True, True]
    assert messages(ranks, lower_is_better=True) == []
    assert messages(ranks.max() - ranks) == []  # n - rank
    assert messages(ranks + 2) == messages(2 * ranks) == []
    some = ranks.copy()
    some[0, 0] += 50
    assert messages(some) == messages(ranks)
    some[:, 0] += 50  # an eighth of the scores
    assert messages(some) == []


@pytest.mark.parametrize("method", ["min", "max", "average", "first"])
def test_ranks_of_tied_and_missing_items_are_a_warning(method):
    ranks = pd.DataFrame(RANKS // 2).rank(axis=1, method=method).to_numpy()
    for missing in (None, -1, np.nan):
        if missing is not None:
            ranks = np.where(RANKS < 6, ranks, missing)
        assert (
            "look like ranks"
            in messages_of(
                lambda: trm.evaluate(BEST_FIRST, ranks, ["mrr"])  # noqa: B023
            )[-1]
        )


def test_an_auc_below_half_by_three_standard_errors_is_no_chance():
    """A wrong pair has U = 0, where a random one has 1/2 with the variance 1/4."""

    def messages(number, name):
        rows = np.repeat(range(number), 2), np.tile([1, 0], number)
        scores = pd.Series(np.tile([1, 2], number), name=name)
        return messages_of(lambda: trm.evaluate_rows(*rows, scores, ["mrr"]))

    assert messages(9, "rank") == []  # -9/2 = -3 sqrt(9/4)
    assert len(messages(10, "rank")) == 1
    assert messages(19, "score") == []  # fewer than 40 scores
    assert len(messages(20, "score")) == 1


@pytest.mark.parametrize("strength", [0, 0.5, 2])
@pytest.mark.parametrize("shape", [(50, 10), (2, 20), (100, 2)])
def test_honest_scores_of_the_form_of_ranks_are_silent(strength, shape):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        labels = (np.argsort(rng.random(shape)) < shape[1] // 2).astype(int)
        scores = strength * labels + rng.normal(size=shape)
        numbers = np.argsort(np.argsort(scores))
        rows = np.indices(shape)[0].ravel(), labels.ravel()
        for name in ("score", "page_rank", "position_score"):
            column = pd.Series(numbers.ravel(), name=name)
            trm.evaluate_rows(*rows, column, ["mrr"])


def test_a_metric_object_judges_the_ranks_of_an_epoch():
    metric = trm.MeanReciprocalRank()

    def messages_of_epoch(scores):
        for label, score in zip(BEST_FIRST, scores, strict=True):
            metric.update_state([label], [score])
        found = messages_of(metric.result) + messages_of(metric.result)  # only once
        metric.reset_state()
        return found

    honest = 7 - RANKS
    honest[:3] = RANKS[:3]  # the first batches are worse than chance
    assert messages_of_epoch(honest) == []
    (message,) = messages_of_epoch(RANKS)
    assert "look like ranks" in message
    assert messages_of_epoch(honest) == []


def test_few_scores_and_lists_without_relevant_items_are_no_ranks():
    trm.evaluate(BEST_FIRST[:2], RANKS[:2], ["mrr"])
    trm.evaluate(np.zeros((10, 8)), RANKS, ["mrr"])
    constant = pd.Series([0, 0], name="rank")
    trm.evaluate_rows([0, 0], [1, 0], constant, ["mrr"])
    stars = np.tile([5, 4, 3, 1], (10, 1))  # all above 0
    with pytest.warns(trm.RankingWarning, match="look like ranks"):
        trm.evaluate(stars, [[1, 2, 3, 4]] * 10, ["ndcg"])
    with pytest.raises(ValueError, match="recommended ids rather than scores"):
        trm.evaluate([[39]] * 10, RANKS, ["mrr"], inputs="catalog")


def test_one_metric_object_for_two_outputs_is_an_error():
    inputs = tf.keras.Input((8, 1))
    outputs = {n: tf.keras.layers.Reshape((8,), name=n)(inputs) for n in ("a", "b")}
    model = tf.keras.Model(inputs, outputs)
    metric = trm.NDCG()
    data = np.ones((4, 8, 1)), {name: np.ones((4, 8)) for name in outputs}
    # Keras 2 itself finds the object twice.
    message = "Make an object for each output|duplicated metrics object"

    def evaluate():
        model.compile(loss="mse", metrics={"a": metric, "b": metric})
        model.evaluate(*data, verbose=0)

    with pytest.raises(ValueError, match=message):
        evaluate()


# Rows and lists

ITEMS_TWICE = {"query_ids": [*"abab"], "labels": [1, 0, 0, 1], "scores": [4.0, 3, 2, 1]}


@pytest.mark.parametrize(
    "items", [[*"xyxz"], [7, 8, 7, 9], pd.Series([*"xyxz"]), pl.Series([*"xyxz"])]
)
def test_a_pair_of_rows_with_the_same_item_is_an_error(items):
    message = "the query 'a' with the item ('x'|7) twice, the second time in row 2"
    rows = {**ITEMS_TWICE, "item_ids": items}
    with pytest.raises(ValueError, match=message):
        trm.evaluate_rows(**rows, metrics=["mrr"])
    with pytest.raises(ValueError, match=message):
        trm.evaluate_rows(**rows, metrics=["coverage@1"], num_items=10)
    with pytest.raises(ValueError, match=message):
        trm.explain_rows(**rows, metric="mrr", query="b")
    with pytest.raises(ValueError, match=message):
        queries, labels = rows["query_ids"], rows["labels"]
        trm.EvaluateRows(np.ones((4, 1)), labels, queries, ["mrr"], item_ids=items)
    of_groups = {**rows, "query_ids": None, "groups": [3, 1]}
    with pytest.raises(ValueError, match=r"the query 0 with the item .* in row 2"):
        trm.evaluate_rows(**of_groups, metrics=["mrr"])
    rows["query_ids"] = [*"abbb"]
    assert trm.evaluate_rows(**rows, metrics=["mrr"]) == {"mrr": (1 + 1 / 3) / 2}


def test_an_item_that_is_twice_in_a_list_is_an_error():
    labels, scores = [[1, 0, 0], [1, 0, -1]], [[3.0, 2, 1]] * 2
    data = {"labels": labels, "item_ids": [[1, 2, 3], [4, 5, 5]]}
    assert trm.evaluate(data, scores, ["mrr"]) == {"mrr": 1.0}  # of padding
    data["item_ids"][0][2] = 1
    with pytest.raises(ValueError, match="'item_ids': 1 twice in query 0"):
        trm.evaluate(data, scores, ["mrr"])
    with pytest.raises(ValueError, match="'item_ids': 1 twice in query 0"):
        trm.explain(data, scores, "mrr", query=0)
    data = {"labels": [[-1, 1, 0]], "item_ids": [[0, -1, 5]]}
    assert trm.evaluate(data, [[3.0, 2, 1]], ["mrr"]) == {"mrr": 1.0}


VECTORS = np.eye(3)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
@pytest.mark.parametrize("make", [list, pd.Series])
@pytest.mark.parametrize(
    "call",
    [
        lambda ids: trm.evaluate(
            [["a"], ["b"], ["c"]], ids("abc"), ["mrr"], inputs="ids"
        ),
        lambda ids: trm.evaluate(
            ids("abc"), [["a"], ["b"], ["c"]], ["mrr"], inputs="ids"
        ),
        lambda ids: trm.evaluate([[0], [1], [2]], ids(range(3)), ["mrr"], inputs="ids"),
        lambda ids: trm.evaluate(ids(range(3)), VECTORS, ["mrr"], inputs="catalog"),
        lambda ids: trm.evaluate([[1, 0]] * 3, ids(range(3)), ["mrr"]),
        lambda ids: trm.evaluate_retrieval(VECTORS, VECTORS, ids(range(3)), ["mrr"]),
        lambda ids: trm.evaluate_retrieval(
            VECTORS, VECTORS, [[0], [1], [2]], ["mrr"], exclude=ids([1, 2, 0])
        ),
        lambda ids: trm.evaluate_retrieval(
            VECTORS, VECTORS, ids("abc"), ["mrr"], candidate_ids=[*"abc"]
        ),
    ],
)
def test_a_query_without_a_list_is_named(call, make, missing):
    """As after a left join, of users without recommendations."""

    def ids(of_queries):
        first, _, last = of_queries
        return make([[first], missing, [last]])

    with pytest.raises(ValueError, match=r"in row 1\. Pass \[\]"):
        call(ids)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_numbers_are_nan(missing):
    for call in (
        lambda: trm.evaluate([[1, missing]], [[2.0, 1.0]], ["mrr"]),
        lambda: trm.evaluate([[1, missing], [1]], [[2.0, 1.0], [1.0]], ["mrr"]),
        lambda: trm.evaluate_rows([1, 1], [1, missing], [2.0, 1.0], ["mrr"]),
        lambda: trm.evaluate_run({"q": {"a": missing}}, {"q": ["a"]}, ["mrr"]),
    ):
        with pytest.raises(
            ValueError,
            match=r"Labels must be finite numbers.* Received: (nan|None|<NA>)",
        ):
            call()
    for call in (
        lambda: trm.evaluate([[1, 0]], [[missing, 1.0]], ["mrr"]),
        lambda: trm.evaluate_rows([1, 1], [1, 0], [missing, 1.0], ["mrr"]),
        lambda: trm.evaluate_run(
            {"q": {"a": 1, "b": 0}}, {"q": {"a": missing, "b": 1}}, ["mrr"]
        ),
    ):
        with pytest.warns(trm.RankingWarning, match="NaN for 1 of 2 scores"):
            assert call() == {"mrr": 1 / 2}


# Names and ids


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
        ("recall_at_k", "recall@10"),
        ("NDCG-5", "ndcg@5"),
        ("map 5", "map@5"),
    ],
)
def test_the_cutoff_of_a_name_is_part_of_the_proposal(name, proposed):
    with pytest.raises(ValueError, match=f"'{proposed}'"):
        trm.evaluate([1, 0], [2, 1], [name])


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

        @trm.metric(formula=hits, gain=trm.BinaryGain, range=(0, np.inf), **names)
        class Hits(trm.TopKMetric):
            """Hits."""

            relevance_threshold: float = 1.0

    assert trm.evaluate([[1, 0, 0]], [[2, 1, 3]], ["recall_2"]) == {"recall_2": 1.0}


def test_ids_that_are_not_hashable_are_an_error():
    qrels = pd.DataFrame({"query_id": [[1], [2]], "item_id": [1, 2], "label": [1, 1]})
    run = qrels.rename(columns={"label": "score"})
    with pytest.raises(ValueError, match="The ids of queries must be hashable"):
        trm.evaluate_run(qrels, run, ["mrr"])


@pytest.mark.parametrize("first", [0, 1])
def test_tables_of_ranks_are_a_warning(first):
    queries, items = np.indices(RANKS.shape)
    frame = pd.DataFrame({"query_id": queries.ravel(), "item_id": items.ravel()})
    frame = frame.assign(label=BEST_FIRST.ravel(), score=RANKS.ravel() + first)
    frame = frame.sample(frac=1, random_state=0)  # in any order
    qrels = {
        q: {str(i): x for i, x in enumerate(row)}
        for q, row in enumerate(BEST_FIRST.tolist())
    }
    run = {
        q: {str(i): x + first for i, x in enumerate(row)}
        for q, row in enumerate(RANKS.tolist())
    }
    names = "query_id", "label", "score", ["mrr"]
    calls = (
        lambda **options: trm.evaluate_rows(*names, data=frame, **options),
        lambda **options: trm.evaluate_run(frame, frame, ["mrr"], **options),
        lambda **options: trm.evaluate_run(qrels, run, ["mrr"], **options),
    )
    for call in calls:
        with pytest.warns(
            trm.RankingWarning, match="look like ranks.* pass lower_is_better=True"
        ):
            call()
        assert call(lower_is_better=True) == {"mrr": 1.0}
    reverse = frame.assign(score=8 - frame["score"])
    assert trm.evaluate_rows(*names, data=reverse) == {"mrr": 1.0}
    assert trm.evaluate_run(frame, reverse, ["mrr"]) == {"mrr": 1.0}


def test_the_ids_of_several_queries_as_one_list_are_a_warning():
    relevant, recommended = np.arange(40), np.arange(100, 300)
    recommended[0] = 0  # a hit
    message = "the lists of one query.* pass a list of ids for each"
    for convert in (list, np.array, tf.constant, lambda ids: [*map(str, ids)]):
        with pytest.warns(trm.RankingWarning, match=message):
            trm.evaluate(convert(relevant), convert(recommended), ["mrr"], inputs="ids")
    metric = trm.MeanReciprocalRank(inputs="ids")
    metric.update_state(relevant, recommended)
    with pytest.warns(trm.RankingWarning, match=message):
        metric.result()
    evaluate = lambda *ids: trm.evaluate(*ids, ["mrr"], inputs="ids")  # noqa: E731
    evaluate(relevant[:39], recommended)
    evaluate(relevant, recommended[:199])
    evaluate([relevant], [recommended])
    evaluate(relevant, [recommended] * 40)  # a relevant id for each query


def test_ids_none_of_which_match_are_a_warning():
    relevant, recommended = (RNG.integers(low, low + 90, (8, 10)) for low in (0, 90))
    with pytest.warns(trm.RankingWarning, match="Check that both are numbered alike"):
        trm.evaluate(relevant, recommended, ["mrr"], inputs="ids")
    trm.evaluate(relevant[:1], recommended[:1], ["mrr"], inputs="ids")  # a few
    recommended[3, 3] = relevant[5, 5]  # of a different query
    trm.evaluate(relevant, recommended, ["mrr"], inputs="ids")


@pytest.mark.parametrize(
    "name", ["pred_rank", "Rank", "item position", "positions", "itemRank", "pos", "rk"]
)
@pytest.mark.parametrize("ranks", [[9, 0, 2], [2.5, 1, 2.5], [np.inf, 1, 7]])
def test_a_column_called_rank_may_be_in_any_order(name, ranks):
    order = np.tile(ranks, 20)  # with gaps
    labels = np.tile([0, 1, 0], 20)
    data = {"q": np.repeat(range(20), 3), "label": labels, name: order}
    data["item"] = np.tile(range(3), 20)
    run = pd.DataFrame(data)
    columns = {"query": "q", "item": "item"}
    for call in (
        lambda: trm.evaluate_rows("q", "label", name, ["mrr"], data=data),
        lambda: trm.evaluate_rows(run["q"], run["label"], run[name], ["mrr"]),
        lambda: trm.evaluate_run(run, run, ["mrr"], **columns, score=name),
        lambda: trm.explain_rows("q", "label", name, "mrr", 0, data=data),
    ):
        with pytest.warns(trm.RankingWarning, match="pass lower_is_better=True"):
            call()
    trm.evaluate_rows("q", "label", name, ["mrr"], data={**data, name: -order})
    reverse = {"data": data, "lower_is_better": True}
    assert trm.evaluate_rows("q", "label", name, ["mrr"], **reverse) == {"mrr": 1.0}


def test_keras_2_without_its_package_is_named():
    code = "import sys; sys.modules['tf_keras'] = None; import tfrankmetrics; "
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1"}
    environment.pop("KERAS_BACKEND", None)
    command = [sys.executable, "-c", f"{code}tfrankmetrics.NDCG()"]
    found = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "requires Keras 2, the package tf_keras" in found.stderr


def test_pairs_of_an_item_and_a_score_are_no_ids():
    with pytest.raises(ValueError, match=r"such as \('a', 0\.9\)\. Pass a dict"):
        trm.evaluate_run({"q": {"a": 1}}, {"q": [("a", 0.9), ("b", 0.5)]}, ["mrr"])
    run = {"q": [("a", 9), ("b", 5)]}  # ids of two parts
    assert trm.evaluate_run({"q": {("a", 9): 1}}, run, ["mrr"]) == {"mrr": 1.0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: trm.evaluate_rows(t, t["label"], t["score"], ["mrr"]), "data=frame"),
        (lambda t: trm.evaluate([["a"]], [["a"]], ["mrr"]), "pass inputs='ids'"),
        (
            lambda t: trm.evaluate_rows("q", "label", "score", ["mrr"], data=t, model="m"),
            r"evaluate_run\(model=",
        ),
        (
            lambda t: trm.evaluate_rows("q", "label", "score", ["mrr"], data=t, by="m"),
            r"evaluate_run\(model=",
        ),
        (lambda t: trm.evaluate([[1]], [[1]], ["mrr"], threshold=2), "`thresholds`"),
        (lambda t: trm.NDCG(k=[1, 5]), r"RankingMetrics\(\['ndcg@1', 'ndcg@5'\]\)"),
        (
            lambda t: trm.evaluate([[1]], [[1]], ["mrr"], sample_weight=[-1]),
            "numbers of at least 0, .*Received: -1 at index",
        ),
        (lambda t: trm.evaluate_rows([1], [np.nan], [1], ["mrr"]), "Pass 0 for an item"),
        (lambda t: trm.evaluate([1500, 0], [2, 1], ["ndcg"]), "pass gain='linear'"),
    ],
)  # fmt: skip
def test_errors_name_the_call_that_was_meant(call, message):
    table = pd.DataFrame({"q": [1, 1], "label": [0, 1], "score": [1.0, 2], "m": [0, 1]})
    with pytest.raises((ValueError, TypeError), match=message):
        call(table)
