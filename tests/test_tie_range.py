"""Tests how much of a value depends on ties: the best and worst order, and `tied`."""

from typing import get_args

import numpy as np
import oracle
import pytest
import tensorflow as tf
from cases import CASES, JUDGMENT_METRICS, METRICS, Case, random_lists, with_cutoffs
from helpers import XLA, results, run_as, update_function

import tfrankmetrics as trm

BEST_AND_WORST = [
    case
    for case in CASES
    # Without a mask, all items are judged.
    if "best" in get_args(METRICS[case.name].types["ties"])
    and case.name not in JUDGMENT_METRICS
]
# Another hit may lower this one. At 3, it is 1 / 1 for the labels 1, 0, 0, 1, and
# (1 / 1 + 2 / 3) / 2 for 1, 0, 1, 0.
NOT_BOUNDED = [Case("map", (("denominator", "hits"),))]


def tied_lists():
    labels, scores = random_lists(7, queries=30, size=5, ties=True)
    scores[:5] = 0.5  # all items tied
    scores[5:8, 2:] = -np.inf
    scores[8:11, ::2] = np.nan
    return labels, scores


@pytest.mark.parametrize("case", BEST_AND_WORST, ids=str)
def test_best_and_worst_are_the_range_over_all_orders(case):
    labels, scores = tied_lists()
    cutoffs = [k for _, k in with_cutoffs([case], (1, 2, 4, None))]
    found = {
        ties: trm.evaluate(
            labels,
            scores,
            [case.metric(k, ties=ties, name=str(k)) for k in cutoffs],
            per_query=True,
        )
        for ties in ("worst", "best")
    }
    compared = 0
    for k in cutoffs:
        for query, items in enumerate(zip(labels, scores)):
            orders = oracle.of_orders(case.name, *items, k=k, **dict(case.options))
            worst, best = (found[ties][str(k)][query] for ties in ("worst", "best"))
            if orders is None or orders[1] == 0:
                assert np.isnan([worst, best]).all()
                continue
            if case in NOT_BOUNDED or -np.inf in scores[query]:
                continue  # unretrieved items share their ranks in every order
            ends = [float(min(orders[0])), float(max(orders[0]))]
            if METRICS[case.name].lower_is_better:
                ends.reverse()
            assert [worst, best] == pytest.approx(ends, rel=1e-12)
            compared += worst != best
    assert compared > 5 or case in NOT_BOUNDED


@pytest.mark.parametrize("ties", ["best", "worst"])
def test_best_and_worst_take_no_item_weights(ties):
    """The best order of the NDCG of weighted items differs from that of their MRR."""
    labels, scores, weights = [[2, 1]], [[1.0, 1.0]], [[1.0, 5.0]]
    with pytest.raises(ValueError, match="require one weight per query"):
        trm.evaluate(labels, scores, ["ndcg"], sample_weight=weights, ties=ties)
    rows = [0, 0], [2, 1], [1.0, 1.0], ["ndcg"]
    with pytest.raises(ValueError, match="require one weight per query"):
        trm.evaluate_rows(*rows, sample_weight=[1.0, 5.0], ties=ties)
    equal = trm.evaluate_rows(*rows, sample_weight=[5.0, 5.0], ties=ties)
    assert equal == trm.evaluate(labels, scores, ["ndcg"], ties=ties)


def test_best_and_worst_sort_by_the_gain_of_each_metric():
    labels, scores = [[0, 1, 2]], [[1.0, 1.0, 1.0]]
    mask = [[True, True, True]]
    odd = trm.NDCG(1, gain=lambda x: tf.where(x < 2, x, 0), ties="best", name="odd")
    metrics = [odd, trm.NDCG(1, ties="best", name="usual")]
    assert trm.evaluate(labels, scores, metrics) == {"odd": 1.0, "usual": 1.0}
    for ties, expected in (("best", 1.0), ("worst", 0.0)):
        unjudged = [[-1, 0, -1]], scores, ["judged@1"]
        assert trm.evaluate(*unjudged, mask=mask, ties=ties) == {"judged@1": expected}


@pytest.mark.parametrize("way", ["eager", "graph", XLA])
@pytest.mark.parametrize("ties", ["best", "worst"])
def test_best_and_worst_in_a_catalog(ties, way):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 3, (20, 9)).astype("float32")
    ids = np.stack([rng.permutation(9)[:3] for _ in range(20)])
    ids[::4, 1], ids[1::4, 2] = -1, ids[1::4, 0]  # padding, and a repeated id
    grades = rng.integers(0, 4, ids.shape).astype("float32")
    grades[1::4, 2] = grades[1::4, 0]
    labels = np.zeros(scores.shape, "float32")
    for row, (of_ids, of_grades) in enumerate(zip(ids, grades)):
        for position, item in enumerate(of_ids):
            if item >= 0:
                labels[row, item] = of_grades[position]
    names = ["ndcg@3", "mrr", "map@5", "err@2"]
    expected = trm.evaluate(labels, scores, names, ties=ties)
    metric = trm.RankingMetrics(names, ties=ties, inputs="catalog", dtype="float64")
    update = run_as(way, update_function(metric))
    update({"ids": tf.constant(ids), "relevance": tf.constant(grades)}, scores)
    assert results(metric) == pytest.approx(expected, rel=1e-12)
    assert expected != trm.evaluate(labels, scores, names)


def test_tied_and_judged_stand_beside_metrics_of_any_convention():
    labels, scores = [[1, 0, 0], [0, 1, 0]], [[1, 1, 0], [3, 2, 1]]
    names = ["ndcg@2", "tied@2"]
    for options in ({"convention": "trec_eval"}, {"ties": "stable"}):
        found = trm.evaluate(labels, scores, names, **options)
        assert found["tied@2"] == 1 / 2
    qrels, run = {"q": {"a": 1}}, {"q": {"a": 2.0, "b": 1.0}}
    found = trm.evaluate_run(
        qrels, run, ["ndcg@2", "judged@2", "tied@2"], convention="trec_eval"
    )
    assert dict(found) == {"ndcg@2": 1.0, "judged@2": 1 / 2, "tied@2": 0.0}
    with pytest.raises(ValueError, match="which no such metric accepts"):
        trm.evaluate(labels, scores, ["tied@2"], ties="stable")


def test_the_best_order_of_subtopics_is_refused():
    with pytest.raises(ValueError, match="`ties` of `alpha_dcg` must be one of"):
        trm.AlphaDCG(ties="best")


@pytest.mark.parametrize("way", ["eager", "graph", XLA])
def test_tied_in_a_catalog(way):
    scores = np.array([[3, 1, 1, 1, 0], [3, 2, 1, 0, 0], [4, 3, 2, 1, 1]], "float32")
    for ids, expected in (
        ([[1], [0], [4]], [0, 1 / 3, 1 / 3, 2 / 3]),
        ([[1, 2, 3], [0, 1, 1], [4, 3, -1]], [0, 0, 0, 0]),  # all tied are relevant
        ([[1, 2, 2], [3, 1, -1], [4, 3, -1]], [0, 1 / 3, 1 / 3, 2 / 3]),
    ):
        names = ["tied@1", "tied@2", "tied@3", "tied@5"]
        metric = trm.RankingMetrics(names, inputs="catalog", dtype="float64")
        update = run_as(way, update_function(metric))
        update(tf.constant(ids), tf.constant(scores))
        assert [*results(metric).values()] == pytest.approx(expected)
