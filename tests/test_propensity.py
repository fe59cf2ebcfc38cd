"""Tests PSP and PSnDCG in all formats, and inverse propensities."""

import math

import numpy as np
import pytest
from keras_backend import results

import tfrankmetrics as trm

RNG = np.random.default_rng(0)
INVERSE = trm.inverse_propensity([900, 50, 5, 1, 0, 300], num_examples=1000)
RELEVANT = RNG.random((40, 6)) < 0.3
RELEVANT[3] = False
SCORES = RNG.random(RELEVANT.shape)


def test_all_formats_and_separate_cutoffs_give_the_same_values():
    names = ["psp@1", "psp@3", "psndcg@3", "psp", "ndcg@2"]
    skip = {"empty": "skip"}  # ids cannot tell an empty list from padding
    expected = trm.evaluate(RELEVANT * INVERSE, SCORES, names, **skip)
    rows = np.repeat(np.arange(40), 6), (RELEVANT * INVERSE).ravel(), SCORES.ravel()
    assert trm.evaluate_rows(*rows, names, **skip) == pytest.approx(expected, rel=1e-14)
    ids = np.where(RELEVANT, np.arange(6), -1)
    y_true = {"ids": ids, "relevance": RELEVANT * INVERSE}
    catalog = trm.evaluate(y_true, SCORES, names, inputs="catalog", **skip)
    assert catalog == pytest.approx(expected, rel=1e-14)
    recommended = np.argsort(-SCORES, axis=1)
    of_ids = trm.evaluate(y_true, recommended, names, inputs="ids", **skip)
    assert of_ids == pytest.approx(expected, rel=1e-14)
    together = trm.RankingMetrics(names, dtype="float64", **skip)
    for part in (slice(0, 7), slice(7, None)):
        together.update_state((RELEVANT * INVERSE)[part], SCORES[part])
    assert results(together) == pytest.approx(expected, rel=1e-14)


def test_inverse_propensity():
    """By hand for one frequency: C = (log(1000) - 1) * 2.5^0.55."""
    c = (math.log(1000) - 1) * 2.5**0.55
    expected = 1 + c / 101.5**0.55
    assert trm.inverse_propensity(100, 1000) == pytest.approx(expected)
    assert (np.diff(trm.inverse_propensity([0, 1, 10, 999], 1000)) < 0).all()
    wikipedia = trm.inverse_propensity([5], 1000, a=0.5, b=0.4)
    assert wikipedia == pytest.approx(1 + (math.log(1000) - 1) * math.sqrt(1.4 / 5.4))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, -1], 10), "frequencies.*Received: .*-1"),
        (([1, 11], 10), "frequencies.*Received: .*11"),
        (([1, math.nan], 10), "frequencies.*Received: .*nan"),
        ((-1, 10), "frequencies.*Received: -1"),
        (({"a": 1}, 10), "frequencies.*Received: .*'a'"),
        (([[1], [1, 2]], 10), "frequencies.*Received"),
        ((["x"], 10), "frequencies.*Received: .*'x'"),
        (([1], 2), "num_examples=2"),
        (([1], "10"), "num_examples='10'"),
        (([1], math.inf), "num_examples=inf"),
        (([1], 10, math.inf), "a=inf"),
        (([1], 10, 1e6), "a=1000000"),
        (([1], 10, 0), "a=0"),
        (([1], 10, 1, -1), "b=-1"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        trm.inverse_propensity(*arguments)
