"""Tests judged@k, the share of the top items that was judged, and condensed lists."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import XLA, run_as, update_function

import tfrankmetrics as trm

LABELS = [[1, -1, 0, -1, 2], [-1, -1, 0, 1, 0]]
SCORES = [[5.0, 4.0, 3.0, 2.0, 1.0], [5.0, 4.0, 3.0, 2.0, 1.0]]
MASK = [[True] * 5, [True] * 4 + [False]]
EXPECTED = {"judged@1": [1, 0], "judged@3": [2 / 3, 1 / 3], "judged@9": [3 / 5, 2 / 4]}


def test_a_label_below_0_that_the_mask_keeps_is_unjudged():
    found = trm.evaluate(LABELS, SCORES, [*EXPECTED], mask=MASK, per_query=True)
    for name, expected in EXPECTED.items():
        assert found[name] == pytest.approx(expected)
    # Without a mask, it is padding.
    with pytest.warns(trm.RankingWarning, match="`judged` requires a mask") as caught:
        condensed = trm.evaluate(LABELS, SCORES, [*EXPECTED])
    assert condensed == dict.fromkeys(EXPECTED, 1.0)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("way", ["eager", "graph", XLA])
def test_in_a_metric_with_other_metrics(way):
    metric = trm.RankingMetrics(["judged@3", "mrr"], dtype="float64")
    update = run_as(way, update_function(metric))
    update({"labels": tf.constant(LABELS), "mask": tf.constant(MASK)}, SCORES)
    found = {name: float(value) for name, value in metric.result().items()}
    assert found == pytest.approx({"judged@3": 1 / 2, "mrr": (1 + 1 / 4) / 2})


def test_a_list_without_any_judged_item():
    arguments = [[1, 0], [-1, -1]], [[2.0, 1.0], [2.0, 1.0]], ["judged@1"]
    mask = [[True, True], [True, True]]
    for empty in ("zero", "one", "skip"):  # it is counted like any other list
        found = trm.evaluate(*arguments, mask=mask, empty=empty)
        assert found == {"judged@1": 1 / 2}
        residual = trm.evaluate(
            [[1, 0], [-1, -1]], [[2.0, 1.0]] * 2, ["hole@1"], mask=mask, empty="skip"
        )
        assert residual == {"hole@1": 1 / 2}


def test_a_list_without_relevant_items_is_counted_by_tied():
    labels, scores = [[0, 0], [1, 0]], [[2.0, 1.0], [1.0, 1.0]]
    found = trm.evaluate(labels, scores, ["ndcg", "tied@2"], empty="skip")
    assert found["tied@2"] == 1 / 2
    metric = trm.TiedQueries(k=2, empty="skip")
    metric.update_state(labels, scores)
    assert float(metric.result()) == 1 / 2


@pytest.mark.parametrize("way", ["eager", "graph", XLA])
def test_an_item_that_is_neither_judged_nor_retrieved_is_in_no_list(way):
    """The relevant item is the last one of two, whatever is padding or not."""
    labels, scores = [[1, 0, -1]], [[1.0, 2.0, -np.inf]]
    mask = [[True] * 3]
    names = ["auc", "opa", "gauc", "mrr", "first_relevant_rank", "hole"]
    expected = [0, 0, 0, 1 / 2, 2, 0]
    qrels, run = {"q": {"a": 1, "b": 0, "c": -1}}, {"q": {"a": 1.0, "b": 2.0}}
    of_run = trm.evaluate_run(qrels, run, names)
    assert [*of_run.values()] == expected
    assert trm.evaluate(labels, scores, names, mask=mask) == of_run
    rows = ["q"] * 3, labels[0], scores[0]
    assert trm.evaluate_rows(*rows, names) == of_run
    metric = trm.RankingMetrics(names)
    update = run_as(way, update_function(metric))
    update({"labels": tf.constant(labels), "mask": tf.constant(mask)}, scores)
    assert [float(value) for value in metric.result().values()] == expected
    data = {"labels": labels, "mask": mask}
    assert trm.explain(data, scores, "auc").value == 0.0
    # An unjudged item that was retrieved remains, and so does a judged one.
    scores[0][2] = 3.0
    assert trm.evaluate(labels, scores, ["mrr"], mask=mask) == {"mrr": 1 / 3}
    with pytest.raises(ValueError, match="Received: nan"):
        trm.evaluate([[1, np.nan]], [[1.0, -np.inf]], ["mrr"], mask=[[True, True]])


QRELS = {"q1": {"a": 1, "b": 0, "c": 2, "m": 1}, "q2": {"a": 1, "x": -1}}
RUN = {"q1": {"a": 5.0, "n": 4.0, "b": 3.0}, "q2": {"x": 3.0, "y": 2.0, "a": 1.0}}


def test_bpref_leaves_out_unjudged_items_that_a_mask_keeps():
    """Unlike other metrics: 1, 0, then 2, which has one irrelevant item above."""
    names, masked = ["bpref", "mrr"], {"mask": MASK, "per_query": True}
    expected = trm.evaluate(LABELS, SCORES, ["bpref"], per_query=True)["bpref"]
    assert expected.tolist() == [1 / 2, 0.0]
    found = trm.evaluate(LABELS, SCORES, names, **masked)
    assert found["bpref"].tolist() == expected.tolist()
    assert found["mrr"].tolist() == [1, 1 / 4]
    weights = [[1.0, 9.0, 2.0, 9.0, 3.0], [9.0, 9.0, 1.0, 1.0, 9.0]]
    of_items = trm.evaluate(LABELS, SCORES, names, sample_weight=weights, **masked)
    without = trm.evaluate(
        LABELS, SCORES, ["bpref"], sample_weight=weights, per_query=True
    )
    assert of_items.weights["bpref"].tolist() == without.weights["bpref"].tolist()
    working = trm.explain({"labels": LABELS, "mask": MASK}, SCORES, "bpref", query=0)
    assert working.value == 1 / 2


@pytest.mark.parametrize("way", ["eager", "graph", XLA])
def test_bpref_leaves_out_unjudged_items_in_a_metric(way):
    metric = trm.RankingMetrics(["bpref", "mrr"], dtype="float64")
    update = run_as(way, update_function(metric))
    update({"labels": tf.constant(LABELS), "mask": tf.constant(MASK)}, SCORES)
    found = {name: float(value) for name, value in metric.result().items()}
    assert found == pytest.approx({"bpref": 1 / 4, "mrr": (1 + 1 / 4) / 2})


def test_rows():
    """A label below 0 is unjudged to `judged`, and left out by the other metrics."""
    rows = [0] * 5 + [1] * 4, np.ravel(LABELS)[:9], np.ravel(SCORES)[:9]
    found = trm.evaluate_rows(*rows, [*EXPECTED, "mrr"], per_query=True)
    for name, expected in EXPECTED.items():
        assert found[name] == pytest.approx(expected)
    assert found["mrr"] == pytest.approx([1, 1 / 2])


@pytest.mark.parametrize("unjudged", ["irrelevant", "drop"])
def test_two_tables(unjudged):
    """In the run, n, x and y were not judged; x has a label below 0."""
    found = trm.evaluate_run(
        QRELS, RUN, ["judged@2", "judged@9"], unjudged=unjudged, per_query=True
    )
    assert found["judged@2"] == pytest.approx([1 / 2, 0])
    assert found["judged@9"] == pytest.approx([2 / 3, 1 / 3])


def test_condensed_lists_of_all_formats():
    """Unjudged items are left out: q1 is a, b, then c and m missed; q2 is a."""
    names = ["ndcg@2", "map", "mrr", "recall@2", "precision@1"]
    labels = [[1, -1, 0, 2, 1], [-1, -1, 1, -1, -1]]
    scores = [[5.0, 4.0, 3.0, -np.inf, -np.inf], [3.0, 2.0, 1.0, 0.0, 0.0]]
    expected = trm.evaluate(labels, scores, names)
    rows = [0] * 5 + [1] * 5, np.ravel(labels), np.ravel(scores)
    assert trm.evaluate_rows(*rows, names) == expected
    run = trm.evaluate_run(QRELS, RUN, names, unjudged="drop")
    assert dict(run) == pytest.approx(expected)
    assert expected["mrr"] == 1.0
