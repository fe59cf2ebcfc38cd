"""Compares each metric on small lists with values that are written as arithmetic."""

import math
from math import log2

import numpy as np
import pytest
from cases import (
    CLASSES,
    JUDGMENT_METRICS,
    LABEL_METRICS,
    METRICS,
    empty_list_options,
    labels_for,
    make_metric,
)
from helpers import XLA, judged_without_mask, results, run_as, update_function, value

import tfrankmetrics as trm

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("name", "k", "labels", "expected"),
    [
        ("ndcg", None, [1, 0, 2], (1 + 3 / log2(4)) / (3 + 1 / log2(3))),
        ("ndcg", 2, [1, 0, 2], 1 / (3 + 1 / log2(3))),
        ("dcg", None, [1, 0, 2], 1 + 3 / log2(4)),
        ("dcg", 2, [0, 3, 3], 7 / log2(3)),
        ("dcg", 1, [0.5, 0], 2**0.5 - 1),
        ("map", None, [0, 1, 1, 0, 1], (1 / 2 + 2 / 3 + 3 / 5) / 3),
        ("map", 2, [1, 0, 1], (1 / 1) / 2),
        ("mrr", None, [0, 0, 1, 1], 1 / 3),
        ("mrr", 2, [0, 0, 1, 1], 0.0),
        ("precision", None, [1, 0, 1, 0], 2 / 4),
        ("precision", 9, [1, 0, 1], 2 / 3),  # min(k, items)
        ("recall", 2, [1, 0, 1, 1], 1 / 3),
        ("recall", None, [1, 0, 1, 1], 1.0),
        ("capped_recall", 2, [1, 0, 1, 1], 1 / 2),
        ("completeness", 2, [1, 0, 1], 0.0),
        ("completeness", 3, [1, 0, 1], 1.0),
        ("completeness", 2, [1, 1, 1], 0.0),  # do not fit
        ("f1", 2, [1, 0, 1], 2 * 1 / (2 + 2)),
        ("f1", 9, [1, 0, 1], 2 * 2 / (3 + 2)),
        ("r_precision", None, [1, 0, 1, 1], 2 / 3),
        ("r_precision", 2, [1, 0, 1, 1], 1 / 3),
        ("rbp", None, [1, 0, 1], 0.2 * (1 + 0.8**2)),
        ("rbp", 2, [1, 0, 1], 0.2 * 1),
        ("err", None, [2, 0, 1], 3 / 16 + 1 / 3 * (13 / 16) * (1 / 16)),
        ("err", 2, [2, 0, 1], 3 / 16),
        # The first user finds it with probability 1/4, the next one with 1/2 of the rest.
        ("pfound", None, [1, 2], 1 / 4 + 0.85 * (3 / 4) * (1 / 2)),
        ("pfound", 1, [1, 2], 1 / 4),
        ("hit_rate", 1, [0, 1, 1], 0.0),
        ("hit_rate", None, [0, 0, 1], 1.0),
        ("arp", None, [2, 0, 1], (2 * 1 + 1 * 3) / (2 + 1)),
        ("opa", None, [2, 0, 1], 2 / 3),  # 0 ranks above 1
        ("auc", None, [1, 0, 2, 0], 3 / 4),
        ("gauc", None, [1, 0, 2, 0], 3 / 4),
        ("bpref", None, [1, 0, -1, 1, 0], (1 + (1 - 1 / 2)) / 2),
        ("bpref", None, [1, 2], 1.0),  # no item is judged irrelevant
        ("first_relevant_rank", None, [0, 1, 1, 0], 2.0),
        ("coverage_error", None, [0, 1, 1, 0], 3.0),
        ("psp", 2, [1, 0, 3], 1 / (3 + 1)),
        ("psndcg", 2, [1, 0, 3], 1 / (3 + 1 / log2(3))),
        ("tied", None, [1, 0], 0.0),
        # With two subtopics. The second one needs a label of at least 2.
        ("precision_ia", None, [2, 0, 1], (2 + 0 + 1) / (2 * 3)),
        ("precision_ia", 2, [2, 0, 1], (2 + 0) / (2 * 2)),
        ("precision_ia", None, [1, 0], 1 / (1 * 2)),  # only the first counts
        ("subtopic_recall", 1, [1, 2, 0], 1 / 2),
        ("subtopic_recall", 2, [1, 2, 0], 2 / 2),
        ("alpha_ndcg", 1, [1, 2], 1 / 2),
        ("alpha_ndcg", None, [1, 2], (1 + 1.5 / log2(3)) / (2 + 0.5 / log2(3))),
        ("alpha_dcg", None, [2, 0, 1], (1 + 1) + (1 / 2 + 0) / log2(4)),
        ("alpha_dcg", 2, [1, 2], 1 + (1 / 2 + 1) / log2(3)),
    ],
    ids=str,
)
def test_labels_in_ranked_order(name, k, labels, expected):
    assert value(name, labels, k=k) == pytest.approx(expected, rel=1e-12)


RANKS = ["arp", "first_relevant_rank", "coverage_error"]  # undefined without an item


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("label", [1, 0])
@judged_without_mask
def test_lists_with_one_item(name, label):
    best = {"rbp": 0.2, "err": 1 / 16, "pfound": 1 / 4, "tied": 0.0}
    of_judgments = {"judged": 1.0, "hole": 0.0, "rbp_residual": 0.8}
    best = (best | {"opa": NAN, "auc": NAN, "gauc": NAN}).get(name, 1.0)
    always_skips = name in (*RANKS, "psp", "psndcg")
    expected = NAN if always_skips and label == 0 else best * label
    expected = of_judgments.get(name, expected)
    for k in (None, 1):
        assert value(name, [label], k=k) == pytest.approx(expected, nan_ok=True)


def test_averages_of_auc_in_a_catalog():
    ids, scores = [[0, -1], [0, 2]], [[3.0, 2.0, 1.0, 0.0], [3.0, 2.0, 1.0, -np.inf]]
    relevant = [1, 2]
    # An item of the second query that is excluded is not in its list, and one with a
    # score of -inf is last in it, as in lists of labels.
    for y_true, aucs, items in (
        ({"ids": ids, "exclude": [[-1], [3]]}, [1.0, 1 / 2], [4, 3]),
        (ids, [1.0, 3 / 4], [4, 4]),
    ):
        for average, weights in (("items", items), ("relevant", relevant)):
            found = trm.evaluate(
                y_true, scores, ["auc"], inputs="catalog", average=average
            )
            assert found["auc"] == pytest.approx(np.average(aucs, weights=weights))


def test_lists_of_one_class_have_the_weight_of_their_items():
    found = trm.evaluate(
        [[1, 0], [1, 1, 1]], [[2, 1], [3, 2, 1]], ["auc"], average="items", empty="zero"
    )
    assert found["auc"] == pytest.approx(2 / 5)
    with pytest.raises(ValueError, match="average='micro' requires empty='skip'"):
        trm.PerQueryAUC(average="micro", empty="one")


@pytest.mark.parametrize("name", [n for n in LABEL_METRICS if METRICS[n].has_cutoff])
@judged_without_mask
def test_a_cutoff_far_beyond_the_list(name):
    deep = 2**31 - 1  # the largest cutoff, at no extra cost
    labels = [0, 1, 0, 2]
    assert value(name, labels, k=deep) == pytest.approx(value(name, labels))
    names = [f"{name}@{k}" for k in (1, 4, 5, 1000, deep)]
    scores = [4.0, 3.0, 2.0, 1.0]
    together = trm.evaluate(labels, scores, names)
    for metric in names:
        assert together[metric] == trm.evaluate(labels, scores, [metric])[metric]


def test_stable_ties_keep_list_order():
    assert value("mrr", [0, 1, 1], [1.0, 1.0, 1.0], ties="stable") == 1 / 2
    assert value("mrr", [1, 0, 0], [1.0, 1.0, 1.0], ties="stable") == 1.0
    assert value("mrr", [0, 1, 1], [0.0, -0.0, 0.0], ties="stable") == 1 / 2


@pytest.mark.parametrize("name", CLASSES)
@judged_without_mask
def test_value_of_lists_without_relevant_items_and_of_lists_of_padding(name):
    labels, scores = [[1, 0], [-1, -1], [0, 0]], [[2.0, 1.0]] * 3
    full = value(name, labels[0], scores[0])
    expected = {"zero": (0 + full) / 2, "one": (1 + full) / 2, "skip": full}
    if name in JUDGMENT_METRICS:  # the items of the last list are judged as well
        expected = dict.fromkeys(expected, full)
    for options in empty_list_options(name):
        counted = value(name, labels, scores, **options)
        assert counted == pytest.approx(expected[options["empty"]])
        assert math.isnan(value(name, labels[1:2], scores[1:2], **options))
    default = METRICS[name].defaults["empty"]
    assert value(name, labels, scores) == pytest.approx(expected[default])
    labels = labels_for(name, labels)
    per_query = trm.evaluate(labels, scores, [name], per_query=True)[name]
    assert np.isnan(per_query).tolist() == [False, True, default == "skip"]


@pytest.mark.parametrize("name", CLASSES)
@judged_without_mask
def test_result_without_any_items_is_nan(name):
    made = CLASSES[name]()
    assert np.isnan(made.result())
    no_query, no_item = np.zeros((0, 3)), np.zeros((2, 0))
    for scores in (no_query, no_item):
        labels = labels_for(name, scores)
        made.update_state(labels, scores)
        assert np.isnan(made.result())
        assert math.isnan(trm.evaluate(labels, scores, [name])[name])
    made.update_state(labels_for(name, [[1, 0]]), [[0.5, 0.5]])
    assert np.isfinite(made.result())


def test_one_list_without_items():
    assert trm.evaluate([], [], ["ndcg"], per_query=True)["ndcg"].shape == (1,)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_and_infinite_scores(dtype):
    def rr(labels, scores):
        return value("mrr", labels, np.array(scores, dtype))

    assert rr([0, 0, 0, 1], [INF, 1.0, -INF, NAN]) == 1 / 3
    assert rr([0, 0, 1, 0], [INF, 1.0, -INF, NAN]) == 0.0  # -inf: not retrieved
    assert rr([0, 0, 1], [NAN, NAN, -1e4]) == 1.0
    assert rr([0, 1, -1], [1.0, NAN, INF]) == 1 / 2  # NaN ranks above padding
    assert rr([0, 1], [0.0, -0.0]) == 3 / 4  # a tie
    assert rr([0, 1], [NAN, NAN]) == 3 / 4
    assert rr([0, 1], [-INF, -INF]) == 0.0


@pytest.mark.parametrize(
    ("dtype", "higher", "lower"),
    [
        ("float64", 1.0 + 1e-9, 1.0),  # equal in float32
        ("int64", 2**53 + 1, 2**53),  # equal in float64
        ("int32", 2**24 + 1, 2**24),
        ("uint8", 255, 0),
        ("int8", 127, -128),
        ("float16", 1.001, 1.0),
        ("float32", 1e-30, 0.0),
    ],
)
def test_scores_are_compared_in_their_own_dtype(dtype, higher, lower):
    scores = np.array([[lower, higher]], dtype)
    assert trm.evaluate([[0, 1]], scores, ["mrr"])["mrr"] == 1.0
    assert trm.evaluate([[1, 0]], scores, ["mrr"])["mrr"] == 0.5


def test_large_integer_labels_are_not_rounded():
    labels = np.array([[2**24 + 1, 2**24]], "int32")  # equal in float32
    assert value("opa", labels, [[1.0, 2.0]]) == 0.0


def test_query_weights():
    labels, scores = [[1, 0], [0, 1]], [[2.0, 1.0], [2.0, 1.0]]  # RR 1 and 1/2
    for weights in ([3.0, 1.0], [[3.0], [1.0]], [3, 1]):
        weighted = value("mrr", labels, scores, sample_weight=weights)
        assert weighted == pytest.approx((3 * 1 + 1 * 0.5) / 4)
    assert value("mrr", labels, scores, sample_weight=2.0) == pytest.approx(3 / 4)
    # With two queries of two items, weights of shape [2] are query weights.
    assert value("mrr", labels, scores, sample_weight=[0.0, 1.0]) == 0.5


def test_an_explicit_mask_overrides_negative_labels():
    labels, scores = [[-1, 0, 2, 5]], [[4.0, 3.0, 2.0, 1.0]]
    mask = [[True, False, True, False]]
    # The mask keeps the labels -1, which is not relevant, and 2.
    assert trm.evaluate(labels, scores, ["mrr"], mask=mask)["mrr"] == 1 / 2
    dcg = trm.evaluate(labels, scores, ["dcg"], mask=mask, gain="linear")["dcg"]
    assert dcg == pytest.approx(0 + 2 / log2(3))
    made = trm.MeanReciprocalRank()
    made.update_state({"labels": labels, "mask": mask}, scores)
    assert float(made.result()) == 0.5


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_result_has_the_dtype_of_the_metric(dtype):
    single = trm.NDCG(dtype=dtype)
    many = trm.RankingMetrics(["ndcg"], dtype=dtype)
    for metric in (single, many):
        metric.update_state([[0.0, 1.0]], [[2.0, 1.0]])
    assert single.result().dtype == many.result()["ndcg"].dtype == dtype
    assert float(single.result()) == pytest.approx(1 / log2(3), rel=1e-3)


@pytest.mark.filterwarnings("ignore:The exponential gain")
@pytest.mark.parametrize("wrong", [NAN, INF, -INF])
def test_invalid_values_make_the_result_nan(wrong):
    # Graphs do not check values, so invalid values show up in the result.
    labels, scores = [[1.0, 0.0], [0.0, 1.0]], [[2.0, 1.0], [2.0, 1.0]]
    objects = [
        make_metric(name, 1, name=f"{name}-{options['empty']}", **options)
        for name in LABEL_METRICS
        for options in empty_list_options(name)
    ]
    for bad in ([[wrong, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, wrong]]):
        metrics = trm.RankingMetrics(objects)
        metrics.update_state(bad, scores)
        is_padding = wrong == -INF
        if is_padding:
            assert not np.isnan([*results(metrics).values()]).all()
        else:
            with pytest.warns(trm.RankingWarning, match="is NaN"):
                assert np.isnan([*results(metrics).values()]).all()
    for weights in ([1.0, wrong], [1.0, -1.0], [[1.0, 1.0], [1.0, -1.0]]):
        metric = trm.MeanReciprocalRank()
        metric.update_state(labels, scores, sample_weight=weights)
        with pytest.warns(trm.RankingWarning, match="is NaN"):
            assert np.isnan(metric.result())


@pytest.mark.parametrize(
    "options",
    [
        {"gain": lambda labels: labels - 1.0},  # negative for label 0
        {"discount": lambda ranks: ranks},  # increases with the rank
        {"discount": lambda ranks: -ranks},
        {"gain": lambda labels: labels / 0.0},
        {"gain": lambda labels: labels * (labels - 1) / labels},  # NaN for label 0
    ],
    ids=[
        "negative gain",
        "growing discount",
        "negative discount",
        "infinite gain",
        "NaN gain",
    ],
)
@pytest.mark.parametrize("way", ["eager", "graph", XLA])
def test_invalid_gain_and_discount_functions(options, way):
    tf = pytest.importorskip("tensorflow")
    labels, scores = tf.constant([[2.0, 0.0, 0.0]]), tf.constant([[3.0, 2.0, 1.0]])
    cutoffs = (1, 2) if "gain" in options else (2, None)
    metrics = [make(k, **options) for make in (trm.NDCG, trm.DCG) for k in cutoffs]
    together = trm.RankingMetrics(metrics)
    run_as(way, update_function(together))(labels, scores)
    with pytest.warns(trm.RankingWarning, match="is NaN"):
        assert np.isnan([*results(together).values()]).all()
    for metric in metrics:
        with pytest.raises(ValueError, match="Gains must be finite"):
            trm.evaluate(labels, scores, [metric])


@pytest.mark.parametrize("names", [["dcg@1"], ["dcg@1", "dcg@2"], ["ndcg@1"]])
def test_an_overflowing_gain_raises_at_any_rank(names):
    for labels in ([[1.0, 2000.0]], [[2000.0, 1.0]]):
        with pytest.raises(ValueError, match="with a finite sum"):
            trm.evaluate(labels, [[2.0, 1.0]], names)
        assert trm.evaluate(labels, [[2.0, 1.0]], names, gain="linear")


@pytest.mark.filterwarnings("ignore:The exponential gain")
def test_ideal_order_of_very_large_and_very_small_gains():
    assert value("ndcg", [150.0, 200.0, 0.0], [1.0, 2.0, 0.0], k=1) == 1.0
    assert value("ndcg", [130.0, 255.0, 200.0], [1.0, 3.0, 2.0]) == pytest.approx(1.0)
    tiny = np.array([1e-50, 2e-50])
    assert value("ndcg", tiny, [1.0, 2.0], k=1, gain="linear") == 1.0


@pytest.mark.parametrize("cutoffs", [(10, 3, 8), (100, 3, 80), (120, 119, 200)])
def test_cutoffs_in_any_order(cutoffs):
    names = [f"recall@{k}" for k in cutoffs]
    values = trm.evaluate(np.ones(120), -np.arange(120.0), names)
    assert [*values.values()] == [min(k, 120) / 120 for k in cutoffs]
