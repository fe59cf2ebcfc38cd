"""Extreme numbers give the exact value or a clear error, never a plausible number."""

import decimal
import fractions
import itertools
import math

import numpy as np
import pytest
import tensorflow as tf
from helpers import EAGER_GRAPH_XLA, XLA, run_as, update_function

import tfrankmetrics as trm

TINY = np.finfo(float).tiny


@pytest.mark.parametrize("way", ["graph", XLA])
@pytest.mark.parametrize("ties", ["expected", "stable"])
def test_negative_zero_is_the_same_label_as_zero(ties, way):
    """XLA sorts -0.0 below 0.0. `np.round(-0.3)` gives -0.0."""
    metric = trm.OrderedPairAccuracy(ties=ties)
    update = run_as(way, update_function(metric))
    update(tf.constant([[0.0, -0.0, 1.0]]), tf.constant([[2.0, 1.0, 3.0]]))
    assert float(metric.result()) == 1.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("threshold", "first_relevant"),
    [
        (np.nextafter(0, 1), 1),  # the lowest number above 0
        (1e-300, 1),
        (TINY, 1),
        (1.0, 1),
        (1.0000000001, 2),
        (16777215, 2),
        (16777216, 2),
        (16777217, 3),  # not a float32
        (1e39, None),  # above all float32
    ],
)
def test_thresholds_are_not_rounded(threshold, first_relevant, dtype):
    labels = np.array([[0, 1, 16777216, 16777218, -1]], dtype)
    scores = [[5.0, 4.0, 3.0, 2.0, 1.0]]
    subtopics = np.stack([labels, np.minimum(labels, 0)], axis=2)
    relevant = labels.astype("float64").ravel() >= threshold
    assert (first_relevant is None) == (not relevant.any())
    rank = math.inf if first_relevant is None else first_relevant + 1
    options = {"relevance_threshold": threshold}
    values = trm.evaluate(labels, scores, ["mrr", "P@5", "auc"], **options)
    assert values["mrr"] == pytest.approx(1 / rank)
    assert values["P@5"] == pytest.approx(relevant.sum() / 4)
    assert not values["auc"] > 1
    (precision_ia,) = trm.evaluate(subtopics, scores, ["P-IA@5"], **options).values()
    assert precision_ia == pytest.approx(relevant.sum() / 4)


@pytest.mark.parametrize("ties", ["expected", "stable"])
@pytest.mark.parametrize("label", [1e-290, 1e-17, 1e-16, 1e-9, 1e-3, 0.5, 20.5])
def test_exponential_gains_of_small_labels(label, ties):
    """2^x - 1 is log(2) * x for small x. e^x - 1 has lost its digits there."""
    gain = math.expm1(label * math.log(2))
    stop = gain / 2**30
    labels, options = [[label, 0, label]], {"ties": ties}
    untied, tied = [[3.0, 2.0, 1.0]], [[3.0, 1.0, 1.0]]
    metrics = ["dcg@1", trm.ExpectedReciprocalRank(max_label=30, ties=ties)]
    values = trm.evaluate(labels, untied, metrics, **options)
    assert values["dcg@1"] == pytest.approx(gain, rel=1e-14, abs=0)
    rr = stop + (1 - stop) * stop / 3
    assert values["err"] == pytest.approx(rr, rel=1e-14, abs=0)
    values = trm.evaluate(labels, tied, metrics, **options)
    second = (1 / 2 + 1 / 3) / 2 if ties == "expected" else 1 / 3
    rr = stop + (1 - stop) * stop * second
    assert values["err"] == pytest.approx(rr, rel=1e-14, abs=0)


@pytest.mark.filterwarnings("ignore:The exponential gain")
def test_gains_whose_sum_overflows():
    """2^1024 - 1 is just below the largest number, so only the sum overflows."""
    labels, scores = [[0, 1024, 1, 1023]], [[4.0, 3.0, 2.0, 1.0]]
    with pytest.raises(ValueError, match=r"with a finite sum.* in query 0"):
        trm.evaluate(labels, scores, ["ndcg"])
    metric = trm.NDCG()
    metric.update_state(labels, scores)
    with pytest.warns(trm.RankingWarning, match="is NaN"):
        assert math.isnan(metric.result())


@pytest.mark.filterwarnings("ignore:The exponential gain")
def test_gains_whose_sum_is_just_finite():
    labels, scores = [[0, 1022, 1, 1021]], [[4.0, 3.0, 2.0, 1.0]]
    # In units of 2^1021: gains 0, 2, 0 and 1.
    expected = (2 / math.log2(3) + 1 / math.log2(5)) / (2 + 1 / math.log2(3))
    assert trm.evaluate(labels, scores, ["ndcg"])["ndcg"] == pytest.approx(expected)


LISTS = [[1, 0], [0, 1]], [[2.0, 1.0], [2.0, 1.0]]  # reciprocal ranks 1 and 1/2


@pytest.mark.parametrize("weight", [1e308, 1.0, 1e-300, TINY])
@pytest.mark.parametrize("shape", [(), (2,), (2, 1), (2, 2)])
def test_the_size_of_weights_does_not_matter(weight, shape):
    weights = np.full(shape, weight)
    assert trm.evaluate(*LISTS, ["mrr"], sample_weight=weights) == {"mrr": 0.75}
    rows = np.repeat([1, 2], 2), np.ravel(LISTS[0]), np.ravel(LISTS[1])
    of_rows = trm.evaluate_rows(*rows, ["mrr"], sample_weight=np.full(4, weight))
    assert of_rows == {"mrr": 0.75}


@pytest.mark.parametrize("labels", [LISTS[0], [[0, 0]] * 2])
def test_a_sum_of_weights_that_overflows_makes_the_result_nan(labels):
    metric = trm.MeanReciprocalRank()
    metric.update_state(labels, LISTS[1], sample_weight=[1e308, 1e308])
    with pytest.warns(trm.RankingWarning, match="whose sum overflows"):
        assert math.isnan(metric.result())


def test_denormal_weights_raise():
    """TensorFlow takes them for 0, so no query would count."""
    with pytest.raises(ValueError, match=r"between 0 and 2.3e-308.*index \[1\]"):
        trm.evaluate(*LISTS, ["mrr"], sample_weight=[1.0, 5e-324])


def test_the_largest_highest_label():
    metric = trm.ExpectedReciprocalRank(max_label=1000)
    (value,) = trm.evaluate([[1000]], [[1.0]], [metric]).values()
    assert value == pytest.approx(1, rel=1e-12)


@pytest.mark.filterwarnings("ignore:The exponential gain")
@pytest.mark.parametrize("way", EAGER_GRAPH_XLA)
def test_ndcg_of_almost_equal_labels_is_at_most_1(way):
    """Many labels of float64 that are equal in float32, in every order."""
    metrics = [
        trm.NDCG(k=k, gain=g, name=f"{k} {g}")
        for k in (1, 3, None)
        for g in ("linear", "exponential")
    ]
    metric = trm.RankingMetrics(metrics)
    update, rng = run_as(way, update_function(metric)), np.random.default_rng(0)
    for step in (1e-9, 1e-9, 2e-7, 2e-7, 1e-3):
        labels = 100 + rng.integers(0, 40, (8, 12)) * step
        metric.reset_state()
        update(tf.constant(labels), tf.constant(labels))
        for name, value in metric.result().items():
            assert float(value) == pytest.approx(1, abs=1e-7), name
        for each in (labels, labels[:, ::-1]):
            found = trm.evaluate(each, each, metrics, per_query=True)
            for name, values in found.items():
                np.testing.assert_allclose(values, 1, rtol=1e-15, err_msg=name)


def test_labels_above_the_highest_float32():
    labels = [[1e39, 2e39, 3e39]]
    (value,) = trm.evaluate(
        labels, [[3.0, 2.0, 1.0]], ["ndcg@1"], gain="linear"
    ).values()
    assert value == pytest.approx(1 / 3)


@pytest.mark.parametrize("relevant", [[0], [1], [0, 2]])
def test_integer_scores_of_a_catalog_are_exact(relevant):
    """In float64 the three scores would be equal."""
    scores = np.array([[2**53, 2**53 + 1, 2**53 - 1]])
    labels = [[float(item in relevant) for item in range(3)]]
    names = ["mrr", "auc", "recall@1", "P@2"]
    values = trm.evaluate([relevant], scores, names, inputs="catalog")
    assert values == trm.evaluate(labels, scores, names)
    assert values["mrr"] == {0: 1 / 2, 1: 1}[relevant[0]]
    data = {"ids": [relevant], "exclude": [[1]]}
    values = trm.evaluate(data, scores, ["mrr"], inputs="catalog")
    assert values["mrr"] == (0 if relevant == [1] else 1)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integer_labels_that_float64_would_round_raise(dtype):
    labels = np.array([[2**53 - 1, 2**53, 0]], dtype)
    grades = {"ids": [[3, 4, 5]], "relevance": labels}
    for y_true, y_pred, inputs in (
        (labels, [[3.0, 2.0, 1.0]], "labels"),
        (grades, [[5, 4, 3]], "ids"),
        (grades, [[0.0] * 6], "catalog"),
    ):
        with pytest.raises(ValueError, match=r"integers below 2\^53.*\[0, 1\]"):
            trm.evaluate(y_true, y_pred, ["dcg"], gain="linear", inputs=inputs)
    with pytest.raises(ValueError, match=r"integers below 2\^53.*in row 1"):
        trm.evaluate_rows([1, 1, 1], labels[0], [3.0, 2.0, 1.0], ["dcg"])
    exact = trm.evaluate(labels[:, :1], [[1]], ["dcg"], gain="linear")
    assert exact["dcg"] == 2**53 - 1
    metric = trm.DCG(gain="linear")
    metric.update_state(labels, [[3.0, 2.0, 1.0]])
    with pytest.warns(trm.RankingWarning, match="is NaN"):
        assert math.isnan(metric.result())
    ragged = tf.ragged.constant(labels.tolist(), dtype=dtype)
    with pytest.raises(ValueError, match="integers below"):
        trm.evaluate(ragged, ragged.to_tensor().numpy().astype("f4"), ["mrr"])


@pytest.mark.parametrize(
    ("labels", "name", "weights"),
    [([[3, 1]], "arp", [1e308]), ([[1, 1]], "mrr", [[1e308, 1e308]])],
)
def test_the_error_for_weights_that_overflow_names_the_weights(labels, name, weights):
    with pytest.raises(ValueError, match="A query's weights times its gains"):
        trm.evaluate(labels, [[2.0, 1.0]], [name], sample_weight=weights)


@pytest.mark.parametrize("scores", [[2**63 + 1, 1], [2**53 + 1, 0.5]])
def test_integers_in_a_list_that_numpy_rounds_raise(scores):
    with pytest.raises(ValueError, match=f"float64 rounds.*Received: {scores[0]}"):
        trm.evaluate([[1, 0]], [scores], ["mrr"])
    assert trm.evaluate([[1, 0]], [[float(s) for s in scores]], ["mrr"])["mrr"] == 1


def test_scores_of_uint64_in_a_catalog_raise():
    scores = np.array([[1, 2]], np.uint64)
    with pytest.raises(ValueError, match=r"Scores must be floats or integers.*uint64"):
        trm.evaluate([0], scores, ["mrr"], inputs="catalog")


def dcg_with(discounts):
    dcg = trm.DCG(gain="linear", discount=lambda ranks: tf.constant(discounts))
    dcg.update_state([1, 2, 4], [3, 2, 1])
    return dcg


def test_discounts_may_stay_and_end_at_zero():
    assert float(dcg_with([1.0, 1.0, 1.0]).result()) == 1 + 2 + 4
    assert float(dcg_with([1.0, 0.5, 0.0]).result()) == 1 + 2 / 2


@pytest.mark.parametrize("k", [1, 2, None])
@pytest.mark.usefixtures("run_eagerly")
def test_ideal_order_of_labels_that_are_equal_in_float32(k):
    labels = 1 + 1e-9 * np.array([*itertools.permutations(range(4))])
    ndcg = trm.NDCG(k=k, gain="linear")
    for some in [labels, *labels[:, np.newaxis]]:  # together, and one by one
        (values,) = trm.evaluate(some, some, [ndcg], per_query=True).values()
        np.testing.assert_allclose(values, 1, rtol=1e-14)


@pytest.mark.parametrize("with_other", [False, True])
@pytest.mark.parametrize("k", [1, 10, 12])
@pytest.mark.parametrize("largest", [[], [2000.0]])
def test_the_ideal_order_of_more_close_labels_than_ranks(largest, k, with_other):
    # In float32 the last 14 labels are equal, and their largest is not among the first.
    labels = [[*largest, *[1000.0] * 13, 1000 + 2.9e-5]]
    if with_other:
        labels.append([*range(len(labels[0]))])
    scores = labels
    for gain in ("linear", lambda label: label):
        metrics = [trm.NDCG(k=k, gain=gain)]
        values = trm.evaluate(labels, scores, metrics, per_query=True)
        assert values[f"ndcg@{k}"].tolist() == [1.0] * len(labels)


TENTHS = [decimal.Decimal("0.1"), decimal.Decimal("0.3"), decimal.Decimal("0.2")]
THIRDS = [fractions.Fraction(1, 3), fractions.Fraction(1, 2), fractions.Fraction(2, 5)]


@pytest.mark.parametrize("scores", [TENTHS, THIRDS, [decimal.Decimal(1), 3.0, 2]])
def test_decimals_and_fractions_are_numbers(scores):
    """A database returns decimals."""
    labels = [decimal.Decimal(2), decimal.Decimal("0.5"), 1]
    expected = trm.evaluate([[2, 0.5, 1]], [[1, 3, 2]], ["ndcg", "mrr"])
    for found in (
        trm.evaluate([labels], [scores], ["ndcg", "mrr"]),
        trm.evaluate(
            [labels, labels[:2]],
            [scores, scores[:2]],
            ["ndcg", "mrr"],
            sample_weight=[decimal.Decimal(1), 0],
        ),
        trm.evaluate_rows([1] * 3, labels, scores, ["ndcg", "mrr"]),
        trm.evaluate_run(
            {"q": dict(zip("abc", labels))},
            {"q": dict(zip("abc", scores))},
            ["ndcg", "mrr"],
        ),
    ):
        assert found == expected


def test_decimals_that_floats_do_not_tell_apart_are_an_error():
    near = [decimal.Decimal(1), decimal.Decimal("1.00000000000000000001")]
    for call in (
        lambda: trm.evaluate([[0, 1]], [near], ["mrr"]),
        lambda: trm.evaluate_rows([1, 1], [0, 1], near, ["mrr"]),
        lambda: trm.evaluate_run({"q": ["b"]}, {"q": dict(zip("ab", near))}, ["mrr"]),
    ):
        with pytest.raises(ValueError, match="must be different floats"):
            call()


def test_the_lowest_integer_of_64_bits_is_no_score():
    """It marks items that were not retrieved, and would be tied with the next one."""
    lowest = np.iinfo(np.int64).min
    scores = np.array([lowest, lowest + 1])
    assert trm.evaluate([[0, 1]], [scores + 1], ["mrr"]) == {"mrr": 1.0}
    for call in (
        lambda: trm.evaluate([[0, 1]], [scores], ["mrr"]),
        lambda: trm.evaluate([1], [scores], ["mrr"], inputs="catalog"),
        lambda: trm.evaluate_rows([1, 1], [0, 1], scores, ["mrr"]),
    ):
        with pytest.raises(ValueError, match="above the lowest integer of 64 bits"):
            call()
    run = {"q": dict(zip("ab", scores.tolist()))}
    assert trm.evaluate_run({"q": ["b"]}, run, ["mrr"]) == {"mrr": 1.0}
