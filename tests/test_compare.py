"""`compare`: means, intervals and paired tests, against SciPy and by hand."""

import fractions
import inspect
import itertools
import math
import re
import sys
import warnings

import interval_coverage
import numpy as np
import pandas as pd
import pytest
import scipy.stats

import tfrankmetrics as trm

RNG = np.random.default_rng(0)
N = 200
LABELS = (RNG.random((N, 12)) < 0.15) * RNG.integers(1, 4, (N, 12))
MODELS = {
    name: RNG.normal(size=(N, 12)) + strength * LABELS
    for name, strength in (("A", 0.6), ("B", 0.9), ("C", 0.5))
}
METRICS = ["ndcg@5", "mrr", "arp"]
WEIGHTS = RNG.integers(1, 5, N)


def values(models="AB", metrics=METRICS, queries=slice(None), **options):
    return {
        name: trm.evaluate(
            LABELS[queries], MODELS[name][queries], metrics, per_query=True, **options
        )
        for name in models
    }


def one(rows, **which):
    (found,) = (
        row for row in rows if all(getattr(row, k) == v for k, v in which.items())
    )
    return found


def difference_of(first, second, **options):
    """The difference of two models in a metric, from arrays or `QueryValues`."""
    models = {
        name: each if isinstance(each, trm.QueryValues) else {"x": each}
        for name, each in zip("AB", (first, second))
    }
    (found,) = trm.compare(models, **options).differences
    return found


def weighted(values, weights):
    return trm.QueryValues(
        {"x": np.array(values, float)}, {"x": np.array(weights, float)}
    )


def swapped_mean(swaps, one, other):
    values, weights = (np.where(swaps, b, a) for a, b in zip(one, other))
    return np.average(np.nan_to_num(values), weights=weights)


def p_of_all_swaps(first, second):
    """The p-value of all swaps of two models, each a pair of values and weights."""
    differences = []
    for swaps in itertools.product([False, True], repeat=len(first[0])):
        means = [
            swapped_mean(swaps, one, other)
            for one, other in ((first, second), (second, first))
        ]
        differences.append(abs(means[1] - means[0]))
    return np.mean(np.array(differences) >= differences[0] - 1e-12)


def assert_near(interval, expected):
    """For many queries, an interval differs little from Student's interval."""
    assert interval == pytest.approx([*expected], abs=0.04 * np.diff(expected)[0])


def test_the_bootstrap_interval_is_that_of_scipy_but_for_chance():
    found = {name: {"mrr": of_model["mrr"]} for name, of_model in values().items()}
    (difference,) = trm.compare(
        found, test="bootstrap", correction=None, resamples=20_000
    ).differences
    has_rng = "rng" in inspect.signature(scipy.stats.bootstrap).parameters
    seed = "rng" if has_rng else "random_state"  # the name before SciPy 1.15
    d = found["B"]["mrr"] - found["A"]["mrr"]
    expected = scipy.stats.bootstrap(
        (d,),
        np.mean,
        method="percentile",
        n_resamples=20_000,
        batch=1000,
        **{seed: np.random.default_rng(3)},
    )
    assert_near((difference.low, difference.high), [*expected.confidence_interval])
    draws = expected.bootstrap_distribution
    p = (np.abs(draws - d.mean()) >= abs(d.mean())).mean()
    assert difference.p == pytest.approx(p, abs=0.01)


def test_equal_values_have_an_interval_within_the_range():
    models = {
        name: {"mrr": [0.5] * 8, "x": [0.5] * 8, "dcg": [0.5] * 8} for name in "AB"
    }
    comparison = trm.compare(models)
    mrr = one(comparison.means, model="A", metric="mrr")
    assert 0 < mrr.low < 0.5 < mrr.high < 1
    assert one(comparison.differences, metric="mrr").low < -0.1
    for metric in ("x", "dcg"):  # without a range, any value may occur
        mean = one(comparison.means, model="A", metric=metric)
        assert np.isnan([mean.low, mean.high]).all()


def test_intervals_do_not_use_a_range_that_values_are_outside_of():
    models = {"a": {"ndcg@10": [50.0, 40, 30]}, "b": {"ndcg@10": [90.0, 80, 30]}}
    with pytest.warns(trm.RankingWarning, match=r"be 0 to 1\. Received: 50 for 'a'"):
        comparison = trm.compare(models)
    assert comparison.differences[0].low < -1  # not cut at the end of the range
    near = {"ndcg@10": [1 + 1e-15, 0.5, 0.2]}
    assert trm.compare({"a": near}).means[0].high <= 1 + 1e-9


def test_values_equal_but_for_rounding_have_the_intervals_of_equal_ones():
    ones = np.ones(10)
    near = ones.copy()
    near[1] = 1 - 2.0**-53
    for values_of_one in ([0.1 + 0.2] * 5 + [0.3] * 5, near):
        (mean,) = trm.compare({"m": {"ndcg@10": values_of_one}}).means
        (equal,) = trm.compare({"m": {"ndcg@10": np.round(values_of_one, 9)}}).means
        assert (mean.low, mean.high) == pytest.approx((equal.low, equal.high))
        assert mean.high - mean.low > 0.01
    base = RNG.random(20) / 2
    models = {"old": {"ndcg@10": base}, "new": {"ndcg@10": base + 0.1}}
    (shifted,) = trm.compare(models).differences
    assert shifted.low < 0.09 < 0.11 < shifted.high


def assert_coverage_of_means_is_printed(model, columns):
    text = interval_coverage.PAGE.read_text("utf-8")
    row = re.search(rf"^\| {re.escape(model)} \|(.*)\|$", text, re.M)[1]
    cells = [cell.strip() for cell in row.split("|")]
    for column, queries in columns.items():
        share = interval_coverage.coverage_of_means(model, "", queries)
        assert cells[column] == f"{share:.1%}"
        assert share >= 0.93


def test_a_table_of_coverage_is_what_the_simulation_prints():
    assert_coverage_of_means_is_printed("NDCG, 80% zeros", {0: 10})


@pytest.mark.slow("simulates thousands of samples")
def test_the_tables_of_coverage_are_what_the_simulation_prints():
    assert_coverage_of_means_is_printed("NDCG, 80% zeros", {2: 50})
    assert_coverage_of_means_is_printed("0 or 1, mean 0.05", {0: 10, 2: 50})
    model, text = "NDCG, 50% zeros", interval_coverage.PAGE.read_text("utf-8")
    assert 0.93 <= interval_coverage.coverage_of_differences(model, "", 10) <= 0.97
    found = interval_coverage.rejections(model, "", 20)
    cells = " | ".join(f"{share:.1%}" for share in found.values())
    assert f"| {model} | 20 | {cells} |" in text
    assert max(found.values()) < 0.065


@pytest.mark.slow("simulates thousands of samples")
@pytest.mark.parametrize("queries", [8, 20])
def test_tests_find_differences_of_equal_models_in_5_percent(queries):
    """With few different values, fewer p-values are possible."""
    exact, coarse = "NDCG near 0.8, no ties", "NDCG, 50% zeros"
    unweighted = interval_coverage.rejections(exact, "", queries)
    assert unweighted["randomization"] <= 0.06
    assert all(0.04 <= unweighted[test] <= 0.06 for test in ("t", "bootstrap"))
    for model in (exact, coarse):
        weights = interval_coverage.LOG_NORMAL
        shares = interval_coverage.rejections(model, weights, queries)
        assert max(shares.values()) <= 0.075
        assert (
            interval_coverage.coverage_of_differences(model, weights, queries) >= 0.95
        )


@pytest.mark.slow("simulates thousands of samples")
@pytest.mark.parametrize("own", [0.1, 1])
def test_intervals_cover_where_models_have_weights_of_their_own(own):
    """Where values are nearly equal, differences are due to the weights."""
    for model in interval_coverage.EQUAL:
        for queries in (8, 20, 50):
            options = interval_coverage.LOG_NORMAL, queries
            found = interval_coverage.differences(model, *options, own=own)
            assert interval_coverage.covers(found, 0) >= 0.93
            assert all(each.low <= each.difference <= each.high for each in found)


@pytest.mark.slow("simulates thousands of samples")
@pytest.mark.parametrize("weights", ["", interval_coverage.LOG_NORMAL])
def test_the_power_of_the_t_test_and_of_gates(weights):
    text = interval_coverage.PAGE.read_text("utf-8")
    for model in [*interval_coverage.EQUAL][2:]:
        for queries in (20, 50, 300):
            shares = interval_coverage.powers(model, weights, queries)
            cells = " | ".join(f"{share:.1%}" for share in shares)
            assert f"| {model}{weights} | {queries} | {cells} |" in text
            of_test, _, of_gate = shares
            assert 0.74 <= of_test <= 0.81
            assert 0.77 <= of_gate <= 0.81


def test_means_are_those_of_evaluate_with_weights_and_micro_averages():
    found = values(sample_weight=WEIGHTS)
    comparison = trm.compare(found)
    for name in "AB":
        expected = trm.evaluate(LABELS, MODELS[name], METRICS, sample_weight=WEIGHTS)
        for metric in METRICS:
            mean = one(comparison.means, model=name, metric=metric)
            assert mean.mean == pytest.approx(expected[metric], rel=1e-13)
    for metric in METRICS:
        means = {m.model: m.mean for m in comparison.means if m.metric == metric}
        difference = one(comparison.differences, metric=metric).difference
        assert difference == pytest.approx(means["B"] - means["A"], rel=1e-12)


def test_standard_errors_of_weighted_means_are_those_of_many_draws():
    found = values(sample_weight=WEIGHTS)
    comparison = trm.compare(found)
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, N, (4000, N))
    for metric in METRICS:
        draws = {}
        for name in "AB":
            w = found[name].weights[metric]
            v = np.nan_to_num(found[name][metric])
            draws[name] = (w * v)[drawn].sum(axis=1) / w[drawn].sum(axis=1)
            mean = one(comparison.means, model=name, metric=metric)
            assert mean.standard_error == pytest.approx(draws[name].std(), rel=0.06)
        difference = one(comparison.differences, metric=metric)
        error = (draws["B"] - draws["A"]).std()
        assert difference.standard_error == pytest.approx(error, rel=0.06)


def test_weights_follow_their_metric_when_the_order_differs():
    def model(names):
        columns = {"x": [1.0, 0.0, 0.5], "y": [0.2, 0.4, 0.9]}
        weights = {"x": [1.0, 5.0, 1.0], "y": [7.0, 1.0, 1.0]}
        return trm.QueryValues(
            {name: np.array(columns[name]) for name in names},
            {name: np.array(weights[name]) for name in names},
        )

    means = trm.compare({"a": model("xy"), "b": model("yx")}).means
    of_x, of_y = 1.5 / 7, (1.4 + 0.4 + 0.9) / 9
    assert [each.mean for each in means] == pytest.approx([of_x, of_y] * 2)


@pytest.mark.parametrize("options", [{}, {"sample_weight": WEIGHTS[:9]}])
def test_the_randomization_test_of_weighted_queries_by_hand(options):
    found = values(queries=slice(0, 9), **options)
    # With judgments of its own, each model would have weights of its own in ARP.
    found["B"].weights["arp"] = found["B"].weights["arp"] * np.arange(1, 10)
    comparison = trm.compare(found, correction=None)
    for metric in METRICS:
        models = [(found[name][metric], found[name].weights[metric]) for name in "AB"]
        expected = p_of_all_swaps(*models)
        assert one(comparison.differences, metric=metric).p == pytest.approx(expected)


def test_queries_whose_weights_alone_differ_matter_to_the_swaps():
    """Weight * value is 0.4 for the first two queries of both models."""
    models = ([0.4, 0.2, 0.9], [1, 2, 1]), ([0.2, 0.4, 0.1], [2, 1, 3])
    found = difference_of(*(weighted(*each) for each in models))
    assert found.p == pytest.approx(p_of_all_swaps(*models))


def test_weights_that_all_differ_by_a_factor_are_equal():
    """All pairs of a query are in order, or none: one, or two more with c and d."""
    number = 20
    qrels = {i: {"a": 1, "b": 0} for i in range(number)}
    old = {i: {"a": 8.0 + i % 2, "b": 8.5} for i in range(number)}
    more = {"c": 1.0, "d": 0.0}, {"c": 9.0, "d": 9.5}
    new = {i: {**scores, **more[scores["a"] < 8.5]} for i, scores in old.items()}
    runs = {"old": old, "new": new}
    models = {
        n: trm.evaluate_run(qrels, r, ["opa"], per_query=True) for n, r in runs.items()
    }
    weights = [models[name].weights["opa"].tolist() for name in models]
    assert weights == [[1] * number, [3] * number]
    comparison = trm.compare(models)
    (found,) = comparison.differences
    assert (found.difference, found.standard_error, found.differing) == (0, 0, 0)
    gate = comparison.gate("opa", "old", margin=0.01)
    assert gate.reason.endswith(f"in each of {number} queries.")
    assert "Ties of" not in str(comparison)


def test_models_of_equal_values_and_other_weights():
    """Two of four values are 1, with 4 / 6 and 2 / 7 of the weight."""
    values = [1, 1, 0, 0]
    models = {
        name: weighted(values, weights)
        for name, weights in (("A", [2, 2, 1, 1]), ("B", [1, 1, 2, 3]))
    }
    comparison = trm.compare(models)
    (found,) = comparison.differences
    assert found.difference == pytest.approx(2 / 7 - 2 / 3)
    assert (found.wins, found.losses, found.ties, found.differing) == (0, 0, 4, 4)
    assert found.low < found.difference < found.high
    assert "Ties of different weights, which may change the means: B - A, x." in str(
        comparison
    )
    assert "(4: p >= 0.125)" in str(comparison)
    assert found.queries_needed(100) == 6
    assert not comparison.gate("x", "A", margin=0.1)
    equal = trm.compare({"A": models["A"], "B": models["A"]})
    assert comparison.gate("x", "A", margin=0.9).reason.startswith("x of 'B' is not")
    assert equal.gate("x", "A", margin=0.1).reason.endswith("in each of 4 queries.")
    assert "Ties of" not in str(equal)


def test_an_interval_contains_a_difference_that_is_due_to_weights():
    """The means are 0.1 + 0.8 * 20 / 21 and 0.1 + 0.8 / 9. No value differs by more than 0.01."""
    is_good = np.arange(20) % 2 == 0
    heavy, light = np.where(is_good, 20, 1), np.where(is_good, 1, 8)
    values = np.where(is_good, 0.9, 0.1)
    for change in (0, 0.01):
        second = values + change * np.tile([1, 1, -1, -1], 5)
        found = difference_of(weighted(values, heavy), weighted(second, light))
        assert found.difference == pytest.approx(0.8 / 9 - 0.8 * 20 / 21, abs=0.01)
        assert -0.9 < found.low < found.difference < found.high < -0.5


def test_queries_of_weight_0_are_excluded():
    first = weighted([0.1, 0.2, 0.3, 0.4, 0.5], [0, 0, 1, 1, 1])
    second = weighted([0.5, 0.6, 0.3, 0.5, 0.4], [0, 0, 1, 1, 1])
    comparison = trm.compare({"A": first, "B": second})
    (found,) = comparison.differences
    assert (found.wins, found.losses, found.ties) == (1, 1, 1)
    assert comparison.movers("x", "A").queries == [3, 4]
    assert comparison.worst_queries("x", "A").queries == [2, 3, 4]
    other = weighted(second["x"], [1] * 5)
    with pytest.raises(ValueError, match="Received: 2 queries with a value for some"):
        trm.compare({"A": first, "B": other})


@pytest.mark.parametrize("test", ["randomization", "t", "bootstrap", "wilcoxon"])
@pytest.mark.parametrize("number", [9, 40])
def test_a_p_value_does_not_depend_on_the_other_metrics(test, number):
    """With 9 queries that differ, all swaps are enumerated, even if others do not differ."""
    rng = np.random.default_rng(1)
    first, second = rng.random((2, 60))
    second[number:] = first[number:]
    alone = difference_of(first, second, test=test, resamples=5000).p
    for more in (1, 3):
        others = {f"m{i}": rng.random((2, 60)) for i in range(more)}
        models = {
            name: {"hit": each, **{n: both[i] for n, both in others.items()}}
            for i, (name, each) in enumerate((("A", first), ("B", second)))
        }
        found = trm.compare(models, test=test, resamples=5000).differences
        assert one(found, metric="hit").p == pytest.approx(alone, rel=1e-12)
    if test == "randomization" and number == 9:
        some = [(each[:9], np.ones(9)) for each in (first, second)]
        assert alone == p_of_all_swaps(*some)


@pytest.mark.parametrize("number", [1, 6, 12])
def test_few_queries_that_differ_among_many_have_exact_p_values(number):
    first = np.random.default_rng(2).random(10_000).round(3) * 0.8
    second = first + 0.1 * (np.arange(10_000) < number)
    assert difference_of(first, second).p == pytest.approx(2 / 2**number, rel=1e-12)


@pytest.mark.parametrize(
    ("number", "resamples", "error"),
    [(20, 2**20, 1e-12), (21, 2**20, 0.005), (4000, 10_000, 0.02)],
)
def test_swaps_of_equal_differences_are_a_binomial_test(number, resamples, error):
    """The swaps are more than what is computed at a time."""
    better = number // 2 + int(0.8 * math.sqrt(number))
    first = np.full(number, 0.5)
    second = first + np.where(np.arange(number) < better, 0.1, -0.1)
    found = difference_of(first, second, resamples=resamples)
    expected = scipy.stats.binomtest(better, number).pvalue
    assert found.p == pytest.approx(expected, abs=error)


@pytest.mark.parametrize("number", [60, 65, 71])
def test_random_swaps_swap_queries_independently(number):
    """The first query and another one differ by 1, which matters if both are swapped.

    The other differences are small, and reduce the sum of these two.
    """
    changes = np.full((number, number - 1), -1e-6)
    changes[0], changes[range(1, number), range(number - 1)] = 1, 1
    names = [f"with {i}" for i in range(1, number)]
    models = {
        "A": dict.fromkeys(names, np.zeros(number)),
        "B": dict(zip(names, changes.T)),
    }
    found = trm.compare(models, correction=None).differences
    # The standard error of each share is 0.005.
    np.testing.assert_allclose([each.p for each in found], 0.5, atol=0.025)


def test_the_p_values_of_swaps_and_draws_by_hand():
    # No random draw reaches the observed difference, which counts as one of them.
    far = np.zeros(100), np.linspace(1, 2, 100)
    for test in ("randomization", "bootstrap"):
        assert difference_of(*far, test=test, resamples=99).p == 1 / 100
    # As many swaps as resamples are all tried: two of 2^3 differ as much.
    assert difference_of([0.0, 0, 0], [1.0, 2, 4], resamples=8).p == 2 / 8
    # Of four draws of two queries, one has the difference 0 and one twice 0.15.
    found = difference_of([0.1, 0.3], [0.4, 0.3], test="bootstrap")
    assert found.p == pytest.approx(0.5, abs=0.05)
    # Half of the draws are 0.05 away from 0.45, which counts sqrt(2) * 12.7 / 1.96 times.
    found = difference_of([0.1, 0.1], [0.6, 0.5], test="bootstrap")
    assert found.p == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("weight", [1, 0.1, 1e200])
def test_the_t_test_of_equal_weights_is_that_of_scipy(weight):
    first, second = np.random.default_rng(0).random((2, 7))
    models = (weighted(each, [weight] * 7) for each in (first, second))
    found = difference_of(*models, test="t")
    expected = scipy.stats.ttest_rel(second, first)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.effective_queries == 7


def test_the_t_test_of_weighted_queries_by_hand():
    """The shares are 1/8, 1/8, 1/4 and 1/2, and the mean is 0.6 - 0.4 + 0.4 = 0.25.

    Kish's number is 8^2 / (1 + 1 + 4 + 16) = 64 / 22.
    """
    differences, weights = np.array([0.4, -0.4, 0.6, 0.2]), [1, 1, 2, 4]
    models = (weighted(each, weights) for each in (np.zeros(4), differences))
    found = difference_of(*models, test="t")
    number, squares = 64 / 22, [0.15**2, 0.65**2, 2**2 * 0.35**2, 4**2 * 0.05**2]
    error = math.sqrt(number / (number - 1) * sum(squares)) / 8
    assert found.effective_queries == pytest.approx(number)
    assert found.standard_error == pytest.approx(error)
    assert found.p == pytest.approx(2 * scipy.stats.t.sf(0.25 / error, number - 1))


@pytest.mark.parametrize("test", ["t", "bootstrap"])
@pytest.mark.parametrize("light", [0.1, 1e-3, 1e-9])
def test_one_query_with_most_of_the_weight_decides_nothing(test, light):
    first, second = np.random.default_rng(0).random((2, 20)) + [[0], [1]]
    models = (weighted(each, [1] + [light] * 19) for each in (first, second))
    found = difference_of(*models, test=test)
    assert found.p < 0.05 if light == 0.1 else found.p > 0.2


def test_the_bootstrap_of_weighted_queries_is_scaled_by_the_effective_number():
    weights = np.array([1, 1, 2, 4, 1, 3])
    differences = np.array([0.4, -0.3, 0.6, 0.2, 0.5, -0.1])
    models = (weighted(each, weights) for each in (np.zeros(6), differences))
    found = difference_of(*models, test="bootstrap", resamples=20_000)
    drawn = np.array([*itertools.product(range(6), repeat=6)])  # all draws
    means = (weights * differences)[drawn].sum(axis=1) / weights[drawn].sum(axis=1)
    mean, number = np.average(differences, weights=weights), 12**2 / 32
    wider = math.sqrt(number / (number - 1)) * scipy.stats.t.ppf(0.975, number - 1)
    distances = np.abs(means - mean) * wider / scipy.stats.norm.ppf(0.975)
    assert found.p == pytest.approx((distances >= mean).mean(), abs=0.015)


def test_two_queries_are_enough_for_the_t_test_and_the_standard_error():
    first, second = [0.1, 0.3], [0.4, 0.9]
    found = difference_of(first, second, test="t")
    assert found.p == pytest.approx(scipy.stats.ttest_rel(first, second).pvalue)
    # The differences 0.3 and 0.6 have the standard deviation 0.3 / sqrt(2).
    assert found.standard_error == pytest.approx(0.3 / 2)


def test_swaps_of_large_values_are_equal_but_for_rounding():
    """The values are 1,000,007 and tenths; exact arithmetic says which swaps count."""
    tenths = [1, 2, 3, 1, 1, 2, -1, -2]
    exact = [fractions.Fraction(each, 10) for each in tenths]
    observed = abs(sum(exact))
    signs = itertools.product((1, -1), repeat=len(exact))
    sums = [abs(sum(s * d for s, d in zip(each, exact))) for each in signs]
    expected = np.mean([each >= observed for each in sums])
    first = [1_000_007 + 0.1 * i for i in range(len(exact))]
    second = [1_000_007 + 0.1 * (i + d) for i, d in enumerate(tenths)]
    assert difference_of(first, second).p == expected


def test_the_p_value_by_swapping_needs_a_query_that_counts():
    nothing, one_query = [math.nan, math.nan], [0.5, math.nan]
    first = {"x": nothing, "y": one_query, "z": [0.1, 0.2]}
    second = {"x": nothing, "y": [0.7, math.nan], "z": [0.1, 0.2]}
    found = trm.compare({"a": first, "b": second}).differences
    assert [each.p for each in found] == pytest.approx([math.nan, 1, 1], nan_ok=True)


def signed_ranks_of(differences):
    """The p-value by all signs and Pratt's rule, in plain Python."""
    sizes = sorted(map(abs, differences))
    ranks = [
        sizes.index(abs(d)) + (sizes.count(abs(d)) + 1) / 2 for d in differences if d
    ]
    signs = itertools.product((1, -1), repeat=len(ranks))
    sums = [abs(sum(s * r for s, r in zip(each, ranks))) for each in signs]
    positive = [d > 0 for d in differences if d]
    observed = abs(sum(r if up else -r for r, up in zip(ranks, positive)))
    return sum(each >= observed for each in sums) / len(sums)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([0, 0, 0], 1),
        ([0, 1], 1),
        ([1, 2, 3], 2 / 8),
        ([-1, 2, 3], 4 / 8),  # 4 is reached by 5 - 1 and 6, with either sign
        ([-1, 1, 1], 1),  # equal ranks: 2 - 2 + 2
        # Zeros have the ranks 1 to 4: -5 + 6 + 7 = 8 is reached by 18, 8 and their negatives.
        ([0, 0, 0, 0, -1, 2, 3], 4 / 8),
        ([0] * 95 + [1, 2, 3, 4, 5], 2 / 32),
    ],
)
def test_signed_ranks_by_hand(differences, p):
    first = np.full(len(differences), 0.1)
    found = difference_of(first, first + 0.1 * np.array(differences), test="wilcoxon")
    assert found.p == pytest.approx(p)
    assert signed_ranks_of(differences) == pytest.approx(p)
    num_different = np.count_nonzero(differences)
    assert found.smallest_p == min(1, 2 / 2**num_different)


@pytest.mark.parametrize(
    ("number", "zeros", "decimals"),
    [
        (9, 0, 3),
        (13, 0, 3),
        (14, 0, 3),
        (50, 0, 6),
        (51, 0, 6),
        (40, 20, 1),
        (300, 90, 1),
    ],
)
def test_signed_ranks_are_those_of_scipy(number, zeros, decimals):
    """Exact for few queries without ties, and by the normal distribution for many."""
    first, second = np.random.default_rng(number).random((2, number)).round(decimals)
    second += 0.1
    second[:zeros] = first[:zeros]
    found = difference_of(first, second, test="wilcoxon")
    changes = (second - first).round(9)
    expected = scipy.stats.wilcoxon(changes, zero_method="pratt").pvalue
    assert found.p == pytest.approx(expected, rel=1e-12)


def test_signed_ranks_of_few_queries_with_ties_and_zeros_are_exact():
    rng = np.random.default_rng(3)
    for _ in range(20):
        changes = rng.integers(-3, 4, 11)
        found = difference_of(np.zeros(11), changes / 10, test="wilcoxon")
        assert found.p == pytest.approx(signed_ranks_of(changes))


def test_sizes_that_differ_by_rounding_share_a_rank():
    first, second = [0, 0.1, 1 / 3, 0.2], [1 / 3, 0.1 + 1 / 3, 0, 0.9]
    exact = [1, 1, -1, 2]
    found = difference_of(first, second, test="wilcoxon")
    assert found.p == pytest.approx(signed_ranks_of(exact))


def test_ranks_that_oppose_the_mean_are_not_significant():
    """19 queries lose a little, and one wins more than they lose."""
    second = np.where(np.arange(20) < 19, 0.1 - 0.001 * np.arange(20), 1.0)
    models = {"A": {"x": np.full(20, 0.1)}, "B": {"x": second}}
    comparison = trm.compare(models, test="wilcoxon")
    (found,) = comparison.differences
    assert found.difference > 0
    assert found.p < 0.05
    assert found.is_opposed
    assert not found.is_significant
    assert "as the ranks oppose the difference: B - A, x." in repr(comparison)
    decision = comparison.gate("x", "A", policy="better")
    assert not decision
    assert "but by their ranks, the queries differ in the other" in decision.reason
    assert "Wilcoxon's signed-rank test." in repr(comparison)
    assert "oppose" not in repr(trm.compare(models))


@pytest.mark.parametrize("weights", [WEIGHTS, None])
def test_signed_ranks_need_queries_of_equal_weights(weights):
    metrics = ["mrr", "ndcg@5"] if weights is not None else ["mrr", "arp"]
    found = values("AB", metrics, sample_weight=weights)
    named = "'mrr', 'ndcg@5'" if weights is not None else "'arp'"
    with pytest.raises(ValueError, match=f"Received: weighted queries for {named}"):
        trm.compare(found, test="wilcoxon")
    equal = values("AB", ["mrr"], sample_weight=np.full(N, 2.0))
    alone = values("AB", ["mrr"])
    of_both = [
        trm.compare(each, test="wilcoxon").differences[0].p for each in (equal, alone)
    ]
    assert of_both[0] == of_both[1]


def test_a_note_says_where_ndcg_and_dcg_order_models_differently():
    """A ranks the only relevant item first; B ranks five relevant items first."""
    labels = [[1, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 0]]
    best, third, last = [6, 5, 4, 3, 2, 1], [4, 6, 5, 3, 2, 1], [5, 4, 3, 2, 1, 6]
    scores = {"A": [best, last], "B": [third, best]}
    models = {
        name: trm.evaluate(labels, each, ["ndcg", "dcg"], per_query=True)
        for name, each in scores.items()
    }
    comparison = trm.compare(models)
    means = [round(each.mean, 3) for each in comparison.means]
    assert means == [0.891, 1.652, 0.75, 1.724]
    note = "NDCG and DCG order the models differently (B - A, ndcg)"
    assert note in repr(comparison)
    assert note in comparison.to_markdown()
    one_query = {
        name: {key: each[key][:1] for key in ("ndcg", "dcg")}
        for name, each in models.items()
    }
    assert "differently" not in repr(trm.compare(one_query))
    del one_query["A"]["dcg"], one_query["B"]["dcg"]
    assert "differently" not in repr(trm.compare(one_query))


@pytest.mark.parametrize("test", ["t", "bootstrap"])
def test_one_query_has_no_interval_and_no_p_value_by_drawing(test):
    found = difference_of([0.5], [0.7], test=test)
    assert np.isnan([found.p, found.low, found.high]).all()
    assert not found.is_significant


@pytest.mark.parametrize("rounded", ["values", "weights"])
def test_some_values_or_weights_that_differ_by_rounding_are_equal(rounded):
    """Half of the values are equal; the others are all higher, by rounding."""
    first = np.linspace(0.1, 0.9, 30)
    second = first.copy()
    second[::2] *= 1 + 4e-16
    of_second = {"values": first, "weights": first, rounded: second}
    found = difference_of(weighted(first, first), weighted(**of_second))
    assert (found.difference, found.p) == (0, 1)


@pytest.mark.parametrize("scale", [1, -1000])
def test_a_win_needs_more_than_rounding(scale):
    base = scale * np.random.default_rng(0).random(50)
    signs = np.tile([1, -1], 25)
    for part, number in ((3e-16, 0), (1e-13, 0), (1e-11, 25)):
        found = difference_of(base, base * (1 + part * signs))
        assert (found.wins, found.losses) == (number, number)
        assert found.ties == 50 - 2 * number


@pytest.mark.parametrize("test", ["randomization", "t", "bootstrap", "wilcoxon"])
def test_values_that_differ_by_rounding_are_equal_for_every_test(test):
    recall = {"A": {"recall@6": [1.0] * 30}, "B": {"recall@6": [1 - 2**-53] * 30}}
    (found,) = trm.compare(recall, test=test).differences
    assert (found.difference, found.p) == (0, 1)
    assert found.low == pytest.approx(-found.high)
    assert (found.wins, found.losses, found.ties) == (0, 0, 30)


@pytest.mark.parametrize(
    ("correction", "expected"),
    [
        ("holm", [5 / 128, 3 / 64, 3 / 64, 5 / 128, 1]),
        ("bonferroni", [5 / 128, 5 / 64, 5 / 64, 5 / 128, 1]),
        # The least of 5 p(j) / j over j >= i, where p(4) is 1 / 64.
        ("bh", [5 / 256, 5 / 256, 5 / 256, 5 / 256, 1]),
        (None, [1 / 128, 1 / 64, 1 / 64, 1 / 128, 1]),
    ],
)
def test_corrections_by_hand(correction, expected):
    """Without a better query of the first model, p is 2 / 2^m for m that differ."""
    numbers = {"a": 8, "b": 7, "c": 7, "d": 8, "e": 1}
    first = {**{name: [0.5] * 9 for name in numbers}, "none": [math.nan] * 9}
    second = {name: 0.5 + 0.1 * (np.arange(9) < m) for name, m in numbers.items()}
    models = {"A": first, "B": {**second, "none": [math.nan] * 9}}
    found = [
        e.adjusted_p for e in trm.compare(models, correction=correction).differences
    ]
    assert found[:-1] == pytest.approx(expected)
    assert math.isnan(found[-1])  # and is not counted


def test_the_correction_is_over_metrics_pairs_and_slices():
    by = np.array(["x", "y"])[RNG.integers(0, 2, N)]
    comparison = trm.compare(values("ABC"), by=by, correction="bonferroni")
    assert len(comparison.differences) == 3 * 3 * 3  # slices and all, metrics, pairs
    for each in comparison.differences:
        assert each.adjusted_p == pytest.approx(min(1, 27 * each.p))
    assert "adjusted for 27 comparisons (bonferroni)" in repr(comparison)


def test_power_needs_queries_that_differ():
    single = difference_of([1.0], [2.0])
    assert math.isnan(single.detectable_difference())
    with pytest.raises(ValueError, match="differences vary"):
        single.queries_needed(0.1)
    two = difference_of([1.0, 2], [2.0, 0])
    for wrong in (80, 0.05, 0, "a"):
        with pytest.raises(ValueError, match=r"`power` must be above 0.05"):
            two.queries_needed(0.1, power=wrong)
    for wrong in (math.nan, "a", math.inf, 0):
        message = "`difference` must be a finite number other than 0"
        with pytest.raises(ValueError, match=message):
            two.queries_needed(wrong)
    none = difference_of([0.5, 0.6, 0.7], [0.5, 0.6, 0.7])
    assert math.isnan(none.detectable_difference())
    with pytest.raises(ValueError, match="3 queries, 0 of which differ"):
        none.queries_needed(0.1)
    # Six queries must differ for p < 0.05, of which there are five here.
    old, new = [0.5, 0.5, 0.5, 0.5, 0.6], [0.9, 0.8, 0.9, 0.85, 0.95]
    five = difference_of(old, new)
    assert math.isnan(five.detectable_difference())
    assert five.queries_needed(0.35) == 6


def test_slices_by_a_key_of_the_values():
    by = {"group": np.array(["x", "y"])[RNG.integers(0, 2, N)]}
    with_keys = values(by=by)
    by_key = trm.compare(with_keys, by="group", test="t", correction=None)
    by_column = trm.compare(values(), by=by, test="t", correction=None)
    assert by_key.by == by_column.by == ("group",)
    assert by_key.differences == by_column.differences


def test_slices_by_query_id():
    ids = ["q0", "q1", "q2", "q3"]
    model = {"A": {"query": ids, "m": [1.0, 2.0, 3.0, 4.0]}}
    by = {"q3": "x", "q2": "y", "q1": "x", "q0": "y"}
    means = {mean.slice: mean.mean for mean in trm.compare(model, by=by).means}
    assert means == {("x",): 3.0, ("y",): 2.0, None: 2.5}
    with pytest.raises(ValueError, match="none for the query 'q1', and 2 more"):
        trm.compare(model, by={"q0": "x"})
    with pytest.raises(ValueError, match="rows may be in a different order"):
        trm.compare(model, by=pd.DataFrame({"id": ids, "slice": [*"xyxy"]}))
    with pytest.raises(ValueError, match="requires query ids"):
        trm.compare({"A": {"m": [1.0]}}, by={"q0": "x"})


@pytest.mark.parametrize("names", [["de", "en"], ["slice", "other"]])
def test_all_names_of_slices_must_be_in_the_values(names):
    found = values(by=np.arange(N) % 2)
    trm.compare(found, by=["slice"])
    with pytest.raises(ValueError, match="`by` must"):
        trm.compare(found, by=names)


@pytest.mark.parametrize("test", ["randomization", "t", "bootstrap", "wilcoxon"])
@pytest.mark.parametrize("correction", ["holm", "bonferroni", "bh", None])
def test_slices_in_which_no_query_counts_are_no_warning(test, correction):
    nothing, some = [math.nan] * 2, [1.0, 0.5]
    models = {
        "a": {"x": [*nothing, *some], "y": [0.0, 1.0, 0.5, 0.2]},
        "b": {"x": [*nothing, 0.5, 0.5], "y": [0.0, 1.0, 0.5, 0.2]},
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = trm.compare(
            models,
            by=["none", "none", "one", "two"],
            test=test,
            correction=correction,
            resamples=100,
        )
        result.to_pandas(), repr(result), result.to_latex()
    of_none = [e for e in result.differences if e.slice == ("none",)]
    assert [(e.metric, e.queries, math.isnan(e.difference)) for e in of_none] == [
        ("x", 0, True),
        ("y", 2, False),
    ]


def test_slices_of_times_keep_their_microseconds():
    times = np.array(["2026-01-01T00:00:00.000001", "2026-01-01T00:00:00.000002"])
    by = times.astype("datetime64[us]").repeat(3)
    for unit in ("us", "ns"):
        steps = by.astype("datetime64[ns]") if unit == "ns" else by
        steps = steps + np.arange(6) // 3 * np.timedelta64(1, unit)
        comparison = trm.compare({"a": {"x": np.arange(6.0)}}, by=steps)
        assert [each.queries for each in comparison.means] == [3, 3, 6]
    nanoseconds = np.datetime64("2026-01-01", "ns") + np.arange(2).repeat(3)
    comparison = trm.compare({"a": {"x": np.arange(6.0)}}, by=nanoseconds)
    assert [each.queries for each in comparison.means] == [3, 3, 6]
    assert "2026-01-01T00:00:00.000000001" in str(comparison)


def rows(name, order):
    queries = np.repeat([f"q{i}" for i in range(N)], 12).reshape(N, 12)[order]
    return trm.evaluate_rows(
        queries.ravel(),
        LABELS[order].ravel(),
        MODELS[name][order].ravel(),
        METRICS,
        per_query=True,
    )


def test_queries_are_paired_by_id():
    order = RNG.permutation(N)
    shuffled = {"A": rows("A", np.arange(N)), "B": rows("B", order)}
    expected = trm.compare(values())
    for mine, theirs in zip(trm.compare(shuffled).differences, expected.differences):
        assert mine.difference == pytest.approx(theirs.difference, rel=1e-12)
        assert (mine.wins, mine.p) == (theirs.wins, pytest.approx(theirs.p))


def test_queries_of_some_models_only():
    some = {"A": rows("A", np.arange(5, N)), "B": rows("B", np.arange(N - 10))}
    message = "10 queries of 'A' that 'B' does not have, such as 'q190', 'q191', 'q192'"
    with pytest.raises(ValueError, match=message):
        trm.compare(some)
    dropped = trm.compare(some, unpaired="drop")
    assert dropped.dropped == 15  # of both models
    assert "15 queries are excluded, which only some models have." in repr(dropped)
    expected = trm.compare(values(queries=slice(5, N - 10)))
    assert [m.mean for m in dropped.means] == pytest.approx(
        [m.mean for m in expected.means]
    )


def skipping(**runs):
    """The values of runs, without the judged queries that they do not answer."""
    qrels = {query: {"a": 1} for query in "qrs"}
    return {
        name: trm.evaluate_run(
            qrels,
            {query: ["a"] for query in queries},
            ["mrr"],
            per_query=True,
            missing_queries="skip",
        )
        for name, queries in runs.items()
    }


def test_a_remedy_for_different_queries_does_not_fail():
    zero = "call evaluate_run(missing_queries='zero')"
    for values, drops, is_zero in (
        (skipping(one="qr", two="rs"), True, True),
        (skipping(one="q", two="s"), False, True),
        (skipping(one="qr", two="rs", three="sq"), False, True),  # none of all three
        ({"A": rows("A", np.arange(9)), "B": rows("B", np.arange(3, 9))}, True, False),
        (
            {"A": rows("A", np.arange(9)), "B": rows("B", np.arange(9, 12))},
            False,
            False,
        ),
    ):
        with pytest.raises(ValueError) as error:
            trm.compare(values)
        assert ("Pass unpaired='drop'" in str(error.value)) == drops
        assert (zero in str(error.value)) == is_zero
        if drops:
            trm.compare(values, unpaired="drop")
        else:
            with pytest.raises(ValueError, match="no common query; the first query"):
                trm.compare(values, unpaired="drop")


def test_a_metric_without_a_value_for_missing_queries_is_not_counted_as_0():
    qrels, runs = {"q": {"a": 1}, "r": {"a": 1}}, {"one": "qr", "two": "r"}
    options = {"per_query": True, "missing_queries": "skip"}
    values = {
        name: trm.evaluate_run(qrels, {q: ["a"] for q in each}, ["arp"], **options)
        for name, each in runs.items()
    }
    with pytest.raises(ValueError, match=r"Pass unpaired='drop' to leave them out\.$"):
        trm.compare(values)


def test_a_query_without_a_value_is_never_0():
    a, b = np.array([0.5, 1.0, 0.0, 0.25]), np.array([0.75, np.nan, 0.5, 0.5])
    models = {"A": {"mrr": a, "x": a}, "B": {"mrr": b, "x": a}}
    message = r"Received: 1 queries .* the query number 1, which has no value for 'B'"
    with pytest.raises(ValueError, match=message):
        trm.compare(models)
    neither = {name: {**each, "y": b} for name, each in models.items()}
    with pytest.raises(ValueError, match=message):
        trm.compare(neither)
    comparison = trm.compare(models, unpaired="drop")
    assert comparison.means[0].mean == a[[0, 2, 3]].mean()
    assert comparison.differences[0].difference == pytest.approx(1 / 3)
    assert comparison.dropped == 1
    both = {"A": {"mrr": np.where([0, 1, 0, 0], np.nan, a)}, "B": {"mrr": b}}
    assert trm.compare(both).dropped == 0
    assert trm.compare(both).means[0].queries == 3


def test_none_is_a_query_that_does_not_count():
    values = {"A": {"m": [0.25, None, 0.75], "k": [1, 2, 3]}}
    assert [mean.mean for mean in trm.compare(values).means] == [0.5, 2.0]


def test_models_without_queries_raise_no_warning():
    nothing = {"mrr": np.array([])}
    assert math.isnan(trm.compare({"a": nothing, "b": nothing}).means[0].mean)


def test_lower_is_better():
    comparison = trm.compare(values(), test="t", correction=None)
    arp = one(comparison.differences, metric="arp")
    assert arp.difference < 0
    assert arp.wins > arp.losses
    (line,) = (
        each
        for each in repr(comparison).splitlines()
        if each.startswith("arp ") and " - " not in each
    )
    assert re.search(r"\* a$", line)  # B is best, and better than A
    plain = {**values(), "A": dict(values()["A"])}
    with pytest.warns(
        trm.RankingWarning,
        match="'arp' requires query weights. Received: values without weights for 'A'",
    ):
        unweighted = trm.compare(plain)
    assert one(unweighted.differences, metric="arp").wins == arp.wins


def test_the_direction_comes_from_the_metric_and_not_from_its_name():
    labels, low, high = [[1, 0]] * 4, [[1.0, 2.0]] * 4, [[2.0, 1.0]] * 4
    ndcg = trm.NDCG(name="arp")
    models = {
        name: trm.evaluate(labels, scores, [ndcg], per_query=True)
        for name, scores in (("A", low), ("B", high))
    }
    (difference,) = trm.compare(models).differences
    assert (difference.wins, difference.losses) == (4, 0)


def test_results_repeat_and_depend_on_the_seed():
    first, again, other = (trm.compare(values("AC"), seed=seed) for seed in (1, 1, 2))
    assert first.differences == again.differences
    assert first.differences != other.differences


def test_one_model_has_means_only():
    comparison = trm.compare(values("A"))
    assert comparison.differences == []
    assert len(comparison.to_pandas()) == 3
    assert "difference" not in repr(comparison)
    pytest.importorskip("matplotlib").use("Agg")
    assert len(comparison.plot()) == 3


def test_frames_and_any_names():
    found = values(metrics=["mrr"])
    frames = {number: pd.DataFrame(each) for number, each in enumerate(found.values())}
    comparison = trm.compare(frames)
    assert comparison.differences[0].models == ("0", "1")
    assert comparison.differences[0][3:] == trm.compare(found).differences[0][3:]
    plain = {name: frame.to_dict("series") for name, frame in frames.items()}
    assert trm.compare(plain).differences == comparison.differences
    years = {n: f.assign(year=np.arange(N) % 2) for n, f in frames.items()}
    assert {each.metric for each in trm.compare(years, by="year").means} == {"mrr"}
    many = {f"model {i}": {"x": np.random.default_rng(i).random(5)} for i in range(28)}
    assert "model 26 (a1)" in repr(trm.compare(many, test="t"))


def test_query_ids_under_another_key_are_no_metric():
    for key in ("query_id", "qid", "Query_ID", "user_id", "id"):
        model = {key: [1, 2, 3], "mrr": [0.1, 0.5, 1.0]}
        with pytest.raises(ValueError, match=f"must be under the key 'query'.*{key}"):
            trm.compare({"a": model, "b": model})


ONE = {"A": {"mrr": [1.0]}}
ERRORS = [
    ({}, {}, "Received: {}"),
    ([1], {}, "`values` must be a dict with the values of each model"),
    ({"A": [1]}, {}, "The values of a model must be a dict of arrays"),
    ({"A": {"mrr": 0.5}}, {}, "Received: the shapes {'mrr': ()}"),
    ({"A": {"mrr": [1.0], "map": [1.0, 0.5]}}, {}, "'map': (2,)"),
    ({**ONE, "B": {"mrr": [1.0, 0.5]}}, {}, "1 for 'A' and 2 for 'B'"),
    ({**ONE, "B": {"map": [1.0]}}, {}, "'mrr' for 'A', and 'map' for 'B'"),
    ({"A": {"query": [1], "mrr": [1.0]}, "B": {"mrr": [1.0]}}, {}, "only one of which contains the key 'query'"),
    (
        {"A": {"query": [1], "mrr": [1.0]}, "B": {"query": [2], "mrr": [1.0]}},
        {"unpaired": "drop"},
        "Received: no common query",
    ),
    ({"A": {"mrr": ["0.1"], "k": [1]}}, {}, "others for 'mrr' of 'A'"),
    ({1: {"m": [1.0]}, "1": {"m": [1.0]}}, {}, "as text. Received: 1, '1'"),
    ({"A": trm.QueryValues({"mrr": np.ones(2)}, {"mrr": np.ones(3)})}, {}, "'mrr': (2,), 'the weights of mrr': (3,)"),
    ({"A": {"query": [1, 2, 2], "mrr": [1.0, 0.0, 0.0]}}, {}, "the query 2 more than once for 'A'"),
    ({"A": {"mrr": [np.inf]}}, {}, "an infinite one for 'A'"),
    (ONE, {"test": "sign"}, "one of 'randomization', 't', 'bootstrap', 'wilcoxon'. Received: test='sign'"),
    (ONE, {"correction": "fdr"}, "Received: correction='fdr'"),
    (ONE, {"unpaired": "skip"}, "Received: unpaired='skip'"),
    (ONE, {"resamples": 0}, "an int of at least 1"),
    (ONE, {"seed": -1}, "an int of at least 0"),
    (ONE, {"by": "language"}, "Also pass by='language' to evaluate, evaluate_rows or evaluate_run."),
    (ONE, {"by": ["a", "b"]}, "2 values of 'slice' for 1 queries"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "options", "message"), ERRORS)
def test_errors(given, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        trm.compare(given, **options)


def test_without_scipy_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(ImportError, match=re.escape('pip install ".[compare]"')):
        trm.compare(values("A"))


def test_tables():
    comparison = trm.compare(values("ABC"))
    frame = comparison.to_pandas()
    assert [*frame.columns[:4]] == ["metric", "model", "than", "difference"]
    row = frame.iloc[0]
    assert (row.metric, row.model, row.than) == ("ndcg@5", "B", "A")
    assert row.difference == comparison.differences[0].difference
    assert row.queries == N
    means = comparison.to_pandas("means")
    assert means["mean"].tolist() == [each.mean for each in comparison.means]
    markdown, latex = comparison.to_markdown("means"), comparison.to_latex("means")
    best = one(comparison.means, model="B", metric="ndcg@5")
    text = f"{best.mean:.4f} [{best.low:.4f}, {best.high:.4f}]"
    assert f"**{text}**<sup>ac</sup>" in markdown
    assert rf"\textbf{{{text}}}$^{{ac}}$" in latex
    # OT1, the default encoding, has other signs in the places of < and >.
    assert "p $<$ 0.05" in latex
    assert "<" not in latex.replace("$<$", "")
    assert "\\end{tabular}\n\nMean" in latex  # a paragraph below the table
    assert f"<b>{text}</b><sup>ac</sup>" in comparison._repr_html_()
    assert f"{text}* ac" in repr(comparison)
    differences = comparison.to_markdown("differences")
    assert comparison.to_markdown() == f"{markdown}\n\n{differences}"
    halves = np.repeat(["x", "y"], N // 2)
    by = trm.compare(values(), by=halves).to_pandas()
    assert by["slice"].tolist() == ["x"] * 3 + ["y"] * 3 + ["all"] * 3
    with pytest.raises(ValueError, match="slices by 'metric'"):
        trm.compare(values(), by={"metric": halves}).to_pandas()


def test_pairs_with_the_first_model_are_fewer_comparisons():
    models = values("ABC", metrics=["mrr"])
    every, firsts = trm.compare(models), trm.compare(models, pairs="first")
    pairs = [each.models for each in firsts.differences]
    assert pairs == [("A", "B"), ("A", "C")]
    of_every = [each for each in every.differences if each.models in pairs]
    assert [each.p for each in firsts.differences] == [each.p for each in of_every]
    doubled = max(each.adjusted_p / each.p for each in firsts.differences)
    assert doubled == pytest.approx(2)  # the smallest p times the number of pairs
    assert firsts.means == every.means


def test_columns_of_the_tables():
    by = {"market": np.arange(N) % 2, "language": np.arange(N) % 3}
    comparison = trm.compare(values(metrics=["mrr"]), by=by)
    rows = comparison.to_markdown("means").splitlines()
    assert {row.count("|") for row in rows if row.startswith("|")} == {7}
    assert any(row.startswith("| all |  | mrr |") for row in rows)
    comparison = trm.compare(values("AB", ["mrr"]))
    lines = comparison.to_markdown("differences").splitlines()
    assert lines[1].startswith("| --- | --- | ---: |")  # numbers are on the right
    assert comparison.to_markdown("means").splitlines()[1].startswith("| --- | ---: |")
    for call in (comparison.to_markdown, comparison.to_pandas):
        with pytest.raises(
            ValueError, match="one of 'means', 'differences', 'judge', or None"
        ):
            call("mean")


def test_notes_explain_letters_only_where_models_are_compared():
    alone, both = repr(trm.compare(values("A"))), repr(trm.compare(values("AB")))
    assert "significantly better than (a) (adjusted p < 0.05)" in both
    one_test = repr(trm.compare(values("AB", ["mrr"])))
    assert "significantly better than (a) (p < 0.05)" in one_test
    assert "significantly" not in alone
    assert "A (a)" in both
    assert "(a)" not in alone
    assert "*" not in alone  # nothing is the best of one


def test_comparisons_that_cannot_be_significant_are_named():
    models = {"A": {"mrr": [1, 0.5, 0.2, 1]}, "B": {"mrr": [1, 1, 0.5, 0.5]}}
    text = repr(trm.compare(models))
    assert "in any outcome: B - A, mrr (3: p >= 0.25)." in text
    assert "Too few" not in repr(trm.compare(models, test="t"))
    many = {name: {"x": MODELS[name][:, 0]} for name in "AB"}
    comparison = trm.compare(many)
    assert "Too few" not in repr(comparison)
    assert comparison.differences[0].smallest_p == 1 / 10_001  # of random swaps
    strict = {
        name: {f"m{i}": each[:6, i] for i in range(2)} for name, each in MODELS.items()
    }
    assert "Too few" not in repr(trm.compare(strict))  # 2 / 2^6 is below 0.05
    assert "; and 3 more." in repr(trm.compare(strict, correction="bonferroni"))


def test_plots_show_the_differences_and_intervals():
    pytest.importorskip("matplotlib").use("Agg")
    comparison = trm.compare(values())
    axes = comparison.plot()
    labels = [f"difference in {metric}" for metric in METRICS]
    assert [axis.get_xlabel() for axis in axes] == labels
    for axis, each in zip(axes, comparison.differences):
        line, point, zero = axis.get_lines()
        assert line.get_xdata().tolist() == [each.low, each.high]
        assert point.get_xdata().tolist() == [each.difference]
        assert [*zero.get_xdata()] == [0, 0]
        assert each.is_significant
        assert point.get_markerfacecolor() == point.get_color()
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["B - A"]
    assert len(comparison.plot("mrr")) == 1
    with pytest.raises(ValueError, match="must be one of 'ndcg@5', 'mrr', 'arp'"):
        comparison.plot("map")


def test_the_dot_of_an_uncertain_difference_is_white():
    pytest.importorskip("matplotlib").use("Agg")
    comparison = trm.compare({"A": {"x": [0.1, 0.2] * 9}, "B": {"x": [0.2, 0.1] * 9}})
    _, point, _ = comparison.plot()[0].get_lines()
    assert not comparison.differences[0].is_significant
    assert point.get_markerfacecolor() == "white"


def texts(labels):
    return [label.get_text() for label in labels]


def test_plots_name_the_models_of_slices_once():
    pytest.importorskip("matplotlib").use("Agg")
    models = values("ABC")
    by = np.repeat(["x", "y"], N // 2)
    axes = trm.compare(models, by=by).plot("mrr")
    rows = [f"x ({N // 2})", f"y ({N // 2})", f"all ({N})"]
    assert texts(axes[0].get_yticklabels()) == rows
    places = [line.get_ydata()[0] for line in axes[0].get_lines() if line.get_marker()]
    lines = [place for place in places[:-1:2]]
    assert np.rint(lines).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert len({*lines}) == 9  # each pair has its place in the row of a slice
    (legend,) = axes[0].figure.legends
    pairs = ["B - A", "C - A", "C - B"]
    assert texts(legend.get_texts()) == [
        *pairs, "significant (adjusted p < 0.05)", "not significant"
    ]  # fmt: skip
    (of_one,) = trm.compare({"A": values()["A"]}, by=by).plot("mrr")
    assert of_one.get_xlabel() == "mrr\n(A)"
    assert not of_one.figure.legends


def test_plot_of_the_improvement_of_each_query():
    pytest.importorskip("matplotlib").use("Agg")
    labels, best = [[1, 0, 0, 0]] * 3, [4, 3, 2, 1]
    scores = {"old": [[1, 2, 3, 4], best, best], "new": [best, best, [3, 4, 2, 1]]}
    arp = {  # of the only relevant item: its rank
        name: trm.evaluate(labels, each, ["arp"], per_query=True)
        for name, each in scores.items()
    }
    axis = trm.compare(arp).plot_queries("arp", "old")
    worsened, improved = (
        each.get_paths()[0].vertices[:, 1].tolist() for each in axis.collections
    )
    assert (min(worsened), max(worsened)) == (-1, 0)  # a lower rank is better
    assert (min(improved), max(improved)) == (0, 3)
    assert axis.get_ylabel() == "improvement in arp\n(old to new)"
    assert axis.get_title() == "1 worsened, 1 improved, 1 unchanged"
    small = {"old": {"mrr": [0.1, 0.2, 0.3, 0.4]}, "new": {"mrr": [0.2, 0.3, 0.1, 0.4]}}
    axis = trm.compare(small).plot_queries("mrr", "old")
    assert axis.get_title() == "1 worsened, 2 improved, 1 unchanged"
    nothing = {"old": {"mrr": [np.nan]}, "new": {"mrr": [np.nan]}}
    with pytest.raises(ValueError, match="requires a query with a value"):
        trm.compare(nothing).plot_queries("mrr", "old")


IMPROVEMENT = np.array([0.0, 0.02, 0.04, 0.06] * 10)


def gate_of(improvement, *names, metric="x", **options):
    first = np.full(len(improvement), 0.5)
    models = {"old": {metric: first}, "new": {metric: first + improvement}}
    return trm.compare(models, **options.pop("compare", {})).gate(
        metric, *(names or ["old"]), **options
    )


@pytest.mark.parametrize(
    ("improvement", "options", "passed"),
    [
        (IMPROVEMENT, {"margin": 0.001}, True),
        (-IMPROVEMENT, {"margin": 0.05}, True),  # it loses 0.03, and at most 0.04
        (-IMPROVEMENT, {"margin": 0.03}, False),
        (IMPROVEMENT, {"policy": "better"}, True),
        (IMPROVEMENT, {"policy": "better", "margin": 0.02}, True),
        (IMPROVEMENT, {"policy": "better", "margin": 0.04}, False),
        (-IMPROVEMENT, {"policy": "better"}, False),
        (IMPROVEMENT[:3], {"policy": "better"}, False),  # too few queries
        (IMPROVEMENT[:1], {"margin": 0.9}, False),
        (-IMPROVEMENT, {"policy": "better", "metric": "arp"}, True),  # lower is better
        (-IMPROVEMENT, {"margin": 0.001, "metric": "arp"}, True),
        (IMPROVEMENT, {"margin": 0.001, "metric": "arp"}, False),
    ],
)
def test_gates(improvement, options, passed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", trm.RankingWarning)  # ARP without weights
        decision = gate_of(improvement, **options)
        assert (decision.passed, bool(decision)) == (passed, passed)
        assert str(decision).startswith("Passed: " if passed else "Failed: ")
        assert "'new'" in decision.reason
        assert decision.reason.endswith(".")
        if (
            "margin" in options and len(improvement) == 40
        ):  # the other model's improvement is its negative
            swapped = gate_of(improvement, "new", **{"margin": 0.001, **options})
            assert not (swapped and decision) or options["margin"] >= 0.03


def lists_of(is_long, is_good):
    """Items from best to worst: relevant "a", "b", and 20 more of a long list."""
    best = [f"{number}" for number in range(20)] if is_long else []
    return ["a", "b", *best] if is_good else [*best, "b", "a"]


def per_query_of(lists, function, metric, **options):
    """The values of queries with these lists, by one of the functions."""
    options["per_query"] = True
    if function == "evaluate_run":
        qrels = {query: {"a": 1, "b": 0} for query in lists}
        return trm.evaluate_run(qrels, lists, [metric], **options)
    pairs = [(query, item) for query, items in lists.items() for item in items]
    labels = [int(item == "a") for _, item in pairs]
    scores = [-number for number in range(len(pairs))]
    if function == "evaluate_rows":
        ids = [query for query, _ in pairs]
        return trm.evaluate_rows(ids, labels, scores, [metric], **options)
    sizes = np.cumsum([len(items) for items in lists.values()])[:-1]
    labels, scores = (
        [part.tolist() for part in np.split(np.array(each), sizes)]
        for each in (labels, scores)
    )
    return trm.evaluate(labels, scores, [metric], **options)


@pytest.mark.parametrize("function", ["evaluate", "evaluate_rows", "evaluate_run"])
@pytest.mark.parametrize(
    ("metric", "options", "weights"),
    [
        ("opa", {}, (21, 1)),
        ("auc", {"average": "micro"}, (21, 1)),
        ("auc", {"average": "items"}, (22, 2)),
        ("gauc", {}, (22, 2)),
    ],
)
def test_a_gate_reads_the_weights_of_models(function, metric, options, weights):
    """A query with a long list counts more. The old model is good in these, the new in others.

    Each value is 1 or 0, the same of both models. The weights are the numbers of pairs
    of unequal labels, or the numbers of items.
    """
    names, is_good = [f"q{number}" for number in range(20)], [True, False] * 10
    models = {
        model: per_query_of(
            {q: lists_of(good == is_old, good) for q, good in zip(names, is_good)},
            function,
            metric,
            **options,
        )
        for model, is_old in (("old", True), ("new", False))
    }
    comparison = trm.compare(models)
    (found,) = comparison.differences
    assert found.ties == 20
    heavy, light = weights
    expected = (light - heavy) / (light + heavy)
    assert found.difference == pytest.approx(expected)
    decision = comparison.gate(metric, "old", margin=0.01)
    assert not decision
    assert (
        f"is worse than that of 'old' by 0.01 or more: its improvement is {expected:.4f}"
        in (decision.reason)
    )
    assert not comparison.gate(metric, "old", policy="better")
    assert comparison.gate(metric, "new", policy="better")


@pytest.mark.parametrize("test", ["randomization", "t", "bootstrap", "wilcoxon"])
def test_a_better_model_needs_no_interval(test):
    """DCG is 1 and 1 / log2(3), without an upper end. Of 2^13 swaps, two differ as much."""
    models = {"old": {"dcg": [1 / math.log2(3)] * 13}, "new": {"dcg": [1.0] * 13}}
    comparison = trm.compare(models, test=test)
    assert math.isnan(comparison.differences[0].low)
    if test == "randomization":
        assert comparison.differences[0].p == 2 / 2**13
    assert comparison.gate("dcg", "old", policy="better")
    assert "no interval" in comparison.gate("dcg", "old", margin=0.1).reason
    one_query = {name: {"dcg": each["dcg"][:1]} for name, each in models.items()}
    decision = trm.compare(one_query, test=test).gate("dcg", "old", policy="better")
    assert not decision
    has_p = test in ("randomization", "wilcoxon")
    assert ("p = 1.000" if has_p else "one query has no p-value") in decision.reason


def test_a_gate_in_slices_names_the_one_that_fails():
    improvement = np.concatenate([IMPROVEMENT, [-0.2, -0.1, -0.3, -0.2]])
    by = {"language": ["de"] * 40 + ["en"] * 4}
    whole = gate_of(improvement, margin=0.05, compare={"by": by})
    assert whole
    decision = gate_of(improvement, margin=0.05, compare={"by": by}, in_slices=True)
    assert not decision
    assert "in the slice 'en' is worse" in decision.reason
    halves = {"by": ["de", "en"] * 20}
    decision = gate_of(IMPROVEMENT, margin=0.01, compare=halves, in_slices=True)
    assert decision.reason.endswith("; the rule also holds in 2 slices.")
    assert gate_of(improvement, margin=0.05, compare={"by": by}, in_slices=["de"])
    assert not gate_of(
        improvement, margin=0.05, compare={"by": by}, in_slices=["de", "en"]
    )
    for wrong, message in ((["fr"], "'de', 'en'. Received: 'fr'"), ("de", "or a list")):
        with pytest.raises(ValueError, match=message):
            gate_of(improvement, margin=0.05, compare={"by": by}, in_slices=wrong)


def test_arguments_of_gates():
    models = {name: {"x": IMPROVEMENT, "y": IMPROVEMENT} for name in "abc"}
    comparison = trm.compare(models)
    for arguments, message in (
        ({"metric": "z", "baseline": "a"}, "one of those compared: 'x', 'y'"),
        ({"metric": "x", "baseline": "d"}, "`baseline` must be one of"),
        ({"metric": "x", "baseline": "a"}, "`model` must be one of .*several"),
        ({"metric": "x", "baseline": "a", "model": "a"}, "must be one of 'b', 'c'"),
        ({"model": "b", "margin": -1}, "at least 0, in units of the metric"),
        ({"model": "b", "margin": "1"}, "at least 0, in units of the metric"),
        ({"model": "b", "margin": 0}, "needs a margin above 0"),
        ({"model": "b", "policy": "best"}, "`policy` must be"),
    ):
        with pytest.raises(ValueError, match=message):
            comparison.gate(**{"metric": "x", "baseline": "a", **arguments})
    with pytest.raises(ValueError, match="requires a second model"):
        trm.compare({"a": {"x": IMPROVEMENT}}).gate("x", "a")
    mrr = trm.compare({name: {"mrr": IMPROVEMENT} for name in "ab"})
    for wrong, message in (
        ({"margin": True}, "a finite number"),
        ({"margin": 2}, "below 1: the values"),
        ({"margin": 0.1, "in_slices": True}, "needs slices"),
        ({"margin": 0.1, "in_slices": ["x"]}, "needs slices"),
    ):
        with pytest.raises(ValueError, match=message):
            mrr.gate("mrr", "a", **wrong)


QUERIES = {"query": ["p", "q", "r", "s", "t"]}
OLD = {**QUERIES, "mrr": [0.2, 1.0, 0.5, np.nan, 0.3], "arp": [1, 2, 3, 4, 5.0]}
NEW = {**QUERIES, "mrr": [0.9, 0.5, 0.5, np.nan, 0.4], "arp": [2, 1, 3, 6, 5.0]}


def compared_queries(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", trm.RankingWarning)  # ARP without weights
        return trm.compare({"old": OLD, "new": NEW}, **options)


@pytest.mark.parametrize("number", [0, -3, 1.5, "5", True])
def test_a_wrong_number_of_queries(number):
    comparison = compared_queries()
    with pytest.raises(ValueError, match=r"`number` of .* an int of at least 1"):
        comparison.movers("mrr", "old", number=number)
    with pytest.raises(ValueError, match=r"`number` of .* an int of at least 1"):
        comparison.worst_queries("mrr", "old", number=number)
    with pytest.raises(ValueError, match="`in_slice` needs slices"):
        comparison.movers("mrr", "old", in_slice="en")


def test_movers_are_sorted_by_improvement():
    found = compared_queries().movers("mrr", "old")
    assert found.queries == ["p", "t", "q"]
    assert found.columns["old"] == [0.2, 0.3, 1.0]
    assert found.columns["new"] == [0.9, 0.4, 0.5]
    assert found.columns["improvement"] == pytest.approx([0.7, 0.1, -0.5])
    assert "improved: 2, that worsened: 1." in repr(found)
    one = compared_queries().movers("mrr", "old", number=1)
    assert one.queries == ["p", "q"]
    back = compared_queries().movers("mrr", "new")
    assert back.queries == ["q", "t", "p"]
    assert back.columns["improvement"][0] == 0.5
    lower = compared_queries().movers("arp", "old")  # a lower ARP is better
    assert (lower.queries, lower.columns["improvement"]) == (
        ["q", "p", "s"],
        [1, -1, -2],
    )
    frame = found.to_pandas()
    assert frame["query"].tolist() == found.queries
    assert "| p | 0.2000 | 0.9000 | +0.7000 |" in found.to_markdown()
    assert "<td" in found._repr_html_()


def test_movers_and_worst_queries_of_a_slice():
    by = dict(zip("pqrst", ["de", "en", "en", "en", "de"]))
    comparison = compared_queries(by=by)
    assert comparison.movers("mrr", "old", in_slice="de").queries == ["p", "t"]
    assert comparison.worst_queries("mrr", "new", in_slice="en").queries == ["q", "r"]
    assert comparison.worst_queries("mrr", "old", number=2).queries == ["p", "t"]
    assert comparison.worst_queries("arp", "new", number=1).queries == ["s"]
    with pytest.raises(ValueError, match=r"the slices compared: 'de', 'en'\. Received"):
        comparison.movers("mrr", "old", in_slice="fr")


@pytest.mark.parametrize("empty", ["zero", "one", "skip"])
@pytest.mark.parametrize("library", ["numpy", "tensorflow"])
def test_worst_queries_leave_out_those_without_relevant_items(library, empty):
    lists = [[1, 0], [0, 0], [0, 1], [1, 0]], [[2, 1]] * 4
    if library == "tensorflow":
        lists = map(pytest.importorskip("tensorflow").constant, lists)
    labels, scores = lists
    options = {"per_query": True, "empty": empty, "sample_weight": [1, 2, 3, 4]}
    values = trm.evaluate(labels, scores, ["mrr@1", "map"], **options)
    weight = 0 if empty == "skip" else 2
    assert values.weights["map"].tolist() == [1, weight, 3, 4]
    assert values.without_relevant["map"].tolist() == [False, weight > 0, False, False]
    found = trm.compare({"a": values}).worst_queries("mrr@1", "a", number=2)
    assert found.queries == [2, 0]
    assert ("items, left out: 1." in str(found)) == (weight > 0)


def test_queries_without_relevant_items_of_every_function():
    """Also in models with other queries, and with the metrics in another order."""
    names, run = ["mrr", "ndcg@1"], {"q": ["a", "b"], "r": ["b", "a"], "s": ["a"]}
    qrels = {"r": {"a": 1}, "s": {"a": 0}, "q": {"b": 1}}
    columns = list("rrqq") + ["s"], [0, 1, 0, 1, 0], [2, 1, 3, 4, 1]
    graded = {"ids": [[1], [1], [0]], "relevance": [[1], [1], [0]]}
    vectors = [[2, 1], [1, 2], [1, 1]], np.eye(2), graded
    for values, worst in (
        (trm.evaluate_run(qrels, run, names, per_query=True), "r"),
        (trm.evaluate_rows(*columns, names, per_query=True), "r"),
        (trm.evaluate_retrieval(*vectors, names, per_query=True), 0),
    ):
        assert values.without_relevant["mrr"].sum() == 1
        other = type(values)({}, values.weights)
        other |= {name: values[name] for name in reversed(values)}
        other.without_relevant = values.without_relevant
        found = trm.compare({"a": values, "b": other}).worst_queries("mrr", "b")
        assert len(found.queries) == 2
        assert found.queries[0] == worst


def test_movers_without_ids_have_numbers_and_their_own_column():
    models = {"improvement": {"x": [1.0, 2.0]}, "b": {"x": [1.0, 3.0]}}
    found = trm.compare(models).movers("x", "improvement")
    assert found.queries == [1]
    assert found.columns == {
        "improvement": [2.0],
        "b": [3.0],
        "improvement of the query": [1.0],
    }
    assert [*map(str.split, str(found).splitlines())][1] == [
        "1",
        "2.0000",
        "3.0000",
        "+1.0000",
    ]
    for call, message in (
        (lambda c: c.movers("y", "b"), "`metric` must be one of those compared: 'x'"),
        (lambda c: c.movers("x", "c"), "`baseline` must be one of"),
        (lambda c: c.worst_queries("x", "c"), "`model` must be one of those compared"),
    ):
        with pytest.raises(ValueError, match=message):
            call(trm.compare(models))
