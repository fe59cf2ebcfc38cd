"""`compare(paired=False)`: models with different queries, as in an A/B test."""

import math

import interval_coverage
import numpy as np
import pytest
import scipy.stats

import tfrankmetrics as trm

RNG = np.random.default_rng(0)
A, B, C = (RNG.beta(2, 3, number) for number in (80, 120, 50))


def arms(*arrays, metric="ndcg@10", **options):
    models = {name: {metric: each} for name, each in zip("ABC", arrays, strict=False)}
    return trm.compare(models, paired=False, **options)


def test_welchs_t_test_is_that_of_scipy():
    found = arms(A, B, C, correction=None)
    pairs = [(A, B), (A, C), (B, C)]
    for each, (one, other) in zip(found.differences, pairs, strict=True):
        expected = scipy.stats.ttest_ind(other, one, equal_var=False)
        assert math.isclose(each.p, expected.pvalue, rel_tol=1e-9)
        assert math.isclose(each.difference, other.mean() - one.mean())
        error = math.hypot(scipy.stats.sem(one), scipy.stats.sem(other))
        assert math.isclose(each.standard_error, error)
        assert (each.wins, each.losses, each.ties) == (0, 0, 0)
        assert each.queries == len(one) + len(other)
        interval = expected.confidence_interval()
        np.testing.assert_allclose([each.low, each.high], interval, atol=0.01)
    alone = [trm.compare({"A": {"ndcg@10": each}}).means[0] for each in (A, B, C)]
    assert [each[3:] for each in found.means] == [each[3:] for each in alone]


def test_the_bootstrap_draws_in_each_arm():
    """In large arms, its p-value differs from that of the t-test only by chance."""
    found = arms(A, B + 0.05, test="bootstrap").differences[0]
    expected = arms(A, B + 0.05).differences[0]
    assert math.isclose(found.p, expected.p, abs_tol=0.02)
    same = arms(A, A.copy(), test="bootstrap").differences[0]
    assert same.p == 1
    assert arms(A[:1], B, test="bootstrap").differences[0].p != 0  # NaN
    assert math.isnan(arms(A[:1], B, test="bootstrap").differences[0].p)


def test_arms_without_variation():
    """As of SciPy: a certain difference, or none."""
    zeros, ones = np.zeros(5), np.ones(5)
    with np.errstate(all="raise"):
        assert arms(zeros, ones, metric="x").differences[0].p == 0
        assert arms(ones, ones).differences[0].p == 1
    assert not arms(ones, ones).gate("ndcg@10", "A", margin=0.1)  # of few queries


def test_ids_slices_and_excluded_queries():
    """Ids may recur in both arms, and both have queries without a value."""
    models = {}
    for name, values in zip("AB", (A, B), strict=True):
        values = np.where(np.arange(len(values)) == 2, np.nan, values)
        models[name] = {"query": np.arange(len(values)), "mrr": values}
    by = {query: query % 2 for query in range(120)}
    found = trm.compare(models, paired=False, by=by)
    first = found.differences[0]
    assert (first.slice, first.queries) == ((0,), 98)
    both = models["A"]["mrr"][::2], models["B"]["mrr"][::2]
    expected = scipy.stats.ttest_ind(*both, equal_var=False, nan_policy="omit")
    assert math.isclose(first.p, expected.pvalue)
    named = {name: {**each, "part": each["query"] % 2} for name, each in models.items()}
    assert trm.compare(named, paired=False, by="part").differences == found.differences
    column = np.concatenate([np.arange(80) % 2, np.arange(120) % 2])
    assert trm.compare(models, paired=False, by=column).means == found.means
    assert found.dropped == 0
    worst = found.worst_queries("mrr", "B", number=1)
    assert worst.queries == [int(np.nanargmin(models["B"]["mrr"]))]
    assert "59 / 39" not in repr(found)
    assert "39 / 59" in repr(found)


def test_tables_have_no_wins():
    found = arms(A, B)
    text = repr(found)
    assert "80 / 120" in text
    assert "Welch's t-test." in text
    assert "wins" not in text
    assert {"wins", "unpaired"}.isdisjoint(found.to_dicts()[0])
    assert "Bootstrap of both means." in arms(A, B, test="bootstrap").to_markdown()
    assert found.worst_queries("ndcg@10", "B").queries[0] == np.argmin(B)
    for call in (found.movers, found.plot_queries):
        with pytest.raises(ValueError, match="requires both models in the same query"):
            call("ndcg@10", "A")


@pytest.mark.parametrize("test", ["randomization", "wilcoxon"])
def test_tests_that_pair_queries_are_an_error(test):
    with pytest.raises(ValueError, match="must be 't' or 'bootstrap'"):
        arms(A, B, test=test)


def test_gates_and_weights():
    """Weights of an arm count, as in its mean."""
    assert arms(A, A + 0.2, metric="x").gate("x", "A", policy="better")
    weights = RNG.integers(1, 4, len(B)).astype(float)
    weighted = trm.QueryValues({"x": B}, {"x": weights})
    found = trm.compare({"A": {"x": A}, "B": weighted}, paired=False)
    (difference,) = found.differences
    alone = trm.compare({"B": weighted}).means[0]
    np.testing.assert_allclose(found.means[1][3:], alone[3:], rtol=1e-12)
    error = math.hypot(scipy.stats.sem(A), alone.standard_error)
    assert math.isclose(difference.standard_error, error)


CASES = [
    ("NDCG, 50% zeros", "reciprocal ranks, 20% zeros"),
    ("NDCG near 0.8, no ties", "NDCG, 50% zeros"),
    ("0 or 1, mean 0.05", "0 or 1, mean 0.3"),
]


@pytest.mark.parametrize("numbers", [(20, 20), (30, 100)])
@pytest.mark.parametrize("names", CASES)
def test_coverage(names, numbers):
    rng = interval_coverage.rng_of(names, numbers)
    models = {}
    for arm, name, number in zip("AB", names, numbers, strict=True):
        values = interval_coverage.MODELS[name](rng, (number, 2000))
        models[arm] = interval_coverage.model_of(values, np.ones_like(values))
    found = trm.compare(models, paired=False).differences
    one, other = map(interval_coverage.true_mean, names)
    assert 0.93 <= interval_coverage.covers(found, other - one) <= 0.99


@pytest.mark.parametrize("numbers", [(200, 200), (100, 400)])
@pytest.mark.parametrize("difference", [0.1, 0.3])
def test_queries_needed_for_each_arm(numbers, difference):
    """Arms of this size find the difference in 80% of the draws."""
    rng = np.random.default_rng(1)

    def drawn(first, second, draws):
        names = [f"x{i}" for i in range(draws)]
        samples = (
            rng.normal(0, 0.2, (draws, first)),
            rng.normal(difference, 0.4, (draws, second)),
        )
        models = {
            arm: dict(zip(names, each, strict=True))
            for arm, each in zip("AB", samples, strict=True)
        }
        return trm.compare(models, paired=False, correction=None).differences

    needed = np.mean([each.queries_needed(difference) for each in drawn(*numbers, 50)])
    exact = (1.959964 + 0.841621) ** 2 * (0.2**2 + 0.4**2) / difference**2
    assert exact * 0.97 <= needed <= exact * 1.03 + 2
    found = drawn(round(needed), round(needed), 2000)
    assert 0.77 <= np.mean([each.p < 0.05 for each in found]) <= 0.85
    detectable = np.mean([each.detectable_difference() for each in found])
    assert math.isclose(detectable, difference, rel_tol=0.05)
