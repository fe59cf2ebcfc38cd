"""Tests PSP, PSnDCG and inverse propensities, and weights of clicks by propensity."""

import math

import numpy as np
import pytest

import tfrankmetrics as tfr

RNG = np.random.default_rng(0)
INVERSE = tfr.inverse_propensity([900, 50, 5, 1, 0, 300], num_examples=1000)
RELEVANT = RNG.random((40, 6)) < 0.3
RELEVANT[3] = False
SCORES = RNG.random(RELEVANT.shape)


def as_in_extreme_classification(k):
    """PSP@k and PSnDCG@k by loops over the queries and the ranks."""
    sums = np.zeros(4)
    for relevant, scores in zip(RELEVANT, SCORES):
        found = (relevant * INVERSE)[np.argsort(-scores)][:k]
        best = np.sort(relevant * INVERSE)[::-1][:k]
        discounts = [1 / math.log2(1 + rank) for rank in range(1, len(found) + 1)]
        binary = sum(discounts[: relevant.sum()]) or 1
        sums += [
            sum(found),
            sum(best),
            sum(found * discounts) / binary,
            sum(best * discounts) / binary,
        ]
    return {f"psp@{k}": sums[0] / sums[1], f"psndcg@{k}": sums[2] / sums[3]}


@pytest.mark.parametrize("k", [1, 3, 5])
def test_ratios_of_sums(k):
    expected = as_in_extreme_classification(k)
    found = tfr.evaluate(RELEVANT * INVERSE, SCORES, [*expected])
    assert found == pytest.approx(expected, rel=1e-13)


def test_all_formats_and_separate_cutoffs_give_the_same_values():
    names = ["psp@1", "psp@3", "psndcg@3", "psp", "ndcg@2"]
    skip = {"empty": "skip"}  # ids cannot tell an empty list from padding
    expected = tfr.evaluate(RELEVANT * INVERSE, SCORES, names, **skip)
    rows = np.repeat(np.arange(40), 6), (RELEVANT * INVERSE).ravel(), SCORES.ravel()
    assert tfr.evaluate_rows(*rows, names, **skip) == pytest.approx(expected, rel=1e-14)
    ids = np.where(RELEVANT, np.arange(6), -1)
    y_true = {"ids": ids, "relevance": RELEVANT * INVERSE}
    catalogue = tfr.evaluate(y_true, SCORES, names, inputs="catalogue", **skip)
    assert catalogue == pytest.approx(expected, rel=1e-14)
    recommended = np.argsort(-SCORES, axis=1)
    of_ids = tfr.evaluate(y_true, recommended, names, inputs="ids", **skip)
    assert of_ids == pytest.approx(expected, rel=1e-14)
    together = tfr.RankingMetrics(names, dtype="float64", **skip)
    for part in (slice(0, 7), slice(7, None)):
        together.update_state((RELEVANT * INVERSE)[part], SCORES[part])
    values = {name: float(value) for name, value in together.result().items()}
    assert values == pytest.approx(expected, rel=1e-14)


def test_macro_averages_are_means_of_ratios():
    labels = RELEVANT * INVERSE
    macro = tfr.evaluate(labels, SCORES, ["psp@2", "psndcg@2"], average="macro")
    by_query = tfr.evaluate(labels, SCORES, ["psp@2", "psndcg@2"], per_query=True)
    for name, values in by_query.items():
        assert np.isnan(values[3])
        assert macro[name] == pytest.approx(np.nanmean(values), rel=1e-14)
    linear = tfr.evaluate(labels, SCORES, ["ndcg@2"], gain="linear", empty="skip")
    assert macro["psndcg@2"] == pytest.approx(linear["ndcg@2"], rel=1e-14)


def test_inverse_propensity():
    """By hand for one frequency: C = (log(1000) - 1) * 2.5^0.55."""
    c = (math.log(1000) - 1) * 2.5**0.55
    expected = 1 + c / 101.5**0.55
    assert tfr.inverse_propensity(100, 1000) == pytest.approx(expected)
    assert (np.diff(tfr.inverse_propensity([0, 1, 10, 999], 1000)) < 0).all()
    wikipedia = tfr.inverse_propensity([5], 1000, a=0.5, b=0.4)
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
        tfr.inverse_propensity(*arguments)


@pytest.mark.parametrize("name", ["mrr", "recall@2", "ndcg@3", "map", "hit_rate@2"])
def test_weights_of_single_clicks_give_the_self_normalized_estimate(name):
    """sum(value / p) / sum(1 / p) over the clicks, each in a list of its own."""
    clicked = RNG.integers(0, 6, 40)
    inverse = 1 / RNG.uniform(0.05, 1, 40)
    labels = np.eye(6)[clicked]
    values = tfr.evaluate(labels, SCORES, [name], per_query=True)[name]
    expected = np.sum(values * inverse) / np.sum(inverse)
    found = tfr.evaluate(labels, SCORES, [name], sample_weight=inverse)
    assert found[name] == pytest.approx(expected, rel=1e-13)
