"""Tests gains by grade: `gain=[0, 1, 3]` and `gain={0: 0, 1: 0.1, 3: 1}`."""

import json
import pickle
from typing import Literal

import numpy as np
import pytest
from cases import TIES, random_lists

import tfrankmetrics as trm
from tfrankmetrics.metrics.names import canonical_name, named_measures
from tfrankmetrics.options import Gain

NAMES = ["ndcg@2", "ndcg", "dcg@3"]
# The gains, as they are stored, and the canonical name of NDCG.
GAINS = [
    ([0, 1, 3, 7], (0, 1, 3, 7), "ndcg@2(gain=[0,1,3,7])"),
    ((0.5, 2.0, 0, 1), (0.5, 2, 0, 1), "ndcg@2(gain=[0.5,2,0,1])"),
    (
        {3: 1, 0: 0, 1: 0.1, 2: 0.01},
        ((0, 0), (1, 0.1), (2, 0.01), (3, 1)),
        "ndcg@2(gain={0:0,1:0.1,2:0.01,3:1})",
    ),
]


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("gains", [gains for gains, *_ in GAINS])
def test_the_gain_of_a_grade_is_that_of_a_linear_label(gains, ties):
    labels, scores = random_lists(3, ties=True)
    by_grade = gains if isinstance(gains, dict) else dict(enumerate(gains))
    as_labels = [[by_grade.get(label, -1.0) for label in row] for row in labels]
    found = trm.evaluate(labels, scores, NAMES, gain=gains, ties=ties)
    expected = trm.evaluate(as_labels, scores, NAMES, gain="linear", ties=ties)
    assert found == pytest.approx(expected, rel=1e-12)


def test_lists_rows_runs_ids_and_catalogs_have_the_same_value():
    expected = (10 / np.log2(3)) / (10 + 1 / np.log2(3))
    gain = {0: 0, 1: 1, 2: 10}
    found = [
        trm.evaluate([[0, 2, 1]], [[3, 2, 1]], ["ndcg@2"], gain=gain),
        trm.evaluate_rows([7] * 3, [0, 2, 1], [3, 2, 1], ["ndcg@2"], gain=gain),
        trm.evaluate_run(
            {"q": {"b": 2, "c": 1}}, {"q": ["a", "b", "c"]}, ["ndcg@2"], gain=gain
        ),
    ]
    relevant = {"ids": [[1, 2]], "relevance": [[2, 1]]}
    for inputs, given in (("ids", [[0, 1, 2]]), ("catalog", [[3.0, 2, 1]])):
        options = {"inputs": inputs, "gain": gain}
        found.append(trm.evaluate(relevant, given, ["ndcg@2"], **options))
    assert [each["ndcg@2"] for each in found] == pytest.approx([expected] * 5)
    explained = trm.explain([0, 2, 1], [3, 2, 1], "ndcg@2", gain=gain)
    assert explained.columns["gain"].tolist() == [0, 10, 1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_grade_may_be_a_fraction_in_labels_of_any_dtype(dtype):
    labels = np.array([[0.1, 0.7, 0]], dtype)
    found = trm.evaluate(labels, [[3, 2, 1]], ["dcg@1"], gain={0: 0, 0.1: 5, 0.7: 6})
    assert found == {"dcg@1": 5}


@pytest.mark.parametrize(("gains", "stored", "name"), GAINS)
def test_gains_are_stored_hashed_saved_and_named(gains, stored, name):
    metric = trm.NDCG(2, gain=gains)
    assert metric.gain == stored
    assert canonical_name(metric.measure) == name
    assert named_measures([name], {}) == {name: metric.measure}
    assert hash(pickle.loads(pickle.dumps(metric.measure))) == hash(metric.measure)
    saved = json.loads(json.dumps(metric.get_config()))
    assert saved["gain"] == [list(e) if isinstance(e, tuple) else e for e in stored]
    assert trm.NDCG.from_config(saved).measure == metric.measure


def test_gains_may_be_the_default_of_a_custom_metric():
    def hits(lists, gain):
        return lists.sum_to_cutoffs(lists.expected(gain))

    @trm.metric("graded_hits", formula=hits, gain=trm.LabelGain, range=(0, np.inf))
    class GradedHits(trm.TopKMetric):
        """The gains found."""

        gain: Gain = [0, 1, 5]  # noqa: RUF012 (stored as a tuple)
        empty: Literal["zero", "skip"] = "zero"

    assert GradedHits().gain == (0, 1, 5)
    assert trm.evaluate([2, 1, 0], [3, 2, 1], ["graded_hits"]) == {"graded_hits": 6}


def test_the_gains_of_ir_measures():
    names = ["nDCG(gains={0:0,1:1,2:5})@2", "nDCG@2"]
    found = trm.evaluate([[0, 2, 1]], [[3, 2, 1]], names, gain=[0, 1, 5])
    assert found[names[0]] == found[names[1]]


def test_a_grade_without_a_gain():
    """It is an error in arrays, and NaN in a metric object, as in a graph."""
    message = r"a gain for each grade.*for 0, 2\..*: the grade 1, for 'ndcg'"
    labels, scores, gain = [[2, 0], [0, 1]], [[1.0, 2.0]] * 2, {0: 0, 2: 1}
    with pytest.raises(ValueError, match=message):
        trm.evaluate(labels, scores, ["mrr", "ndcg"], gain=gain)
    with pytest.raises(ValueError, match=r"It has one for 0, 2\."):
        trm.explain(labels[1], scores[1], "ndcg", gain=gain)
    metric = trm.NDCG(gain=gain)
    metric.update_state(labels, scores)
    with pytest.warns(trm.RankingWarning, match="is NaN"):
        assert np.isnan(float(metric.result()))
    # That of padding is not needed.
    assert trm.evaluate([[2, 2, -1]], [[2, 1, 3]], ["ndcg"], gain={2: 3}) == {"ndcg": 1}


@pytest.mark.parametrize(
    "gains",
    [
        [],
        {},
        [0, -1],
        [0, float("nan")],
        {"a": 1},
        {None: 1, 1: 2},
        [[0, 1, 2]],
        [(0, 1), (0, 2)],
        3,
    ],
    ids=str,
)
def test_gains_that_are_none(gains):
    with pytest.raises(ValueError, match=r"the gain of each grade.*Received: gain="):
        trm.NDCG(gain=gains)
