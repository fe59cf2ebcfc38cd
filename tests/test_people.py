"""`compare(people=...)`: a judge's values, corrected by those of people."""

import functools
import math
import re

import interval_coverage
import numpy as np
import pandas as pd
import pytest
import scipy.stats

import tfrankmetrics as trm
from tfrankmetrics.comparison.samples import Corrected, Sample

# Checked with ppi-python 0.2.3: ppi_mean_pointestimate and ppi_mean_ci.
Y = np.array([1, 0, 0.5, 1, 0.25, 0, 1, 0.5])
F = np.array([1, 0.5, 0.5, 1, 0.5, 0.25, 1, 1])
OTHERS = np.linspace(0, 1, 40)


def with_ddofs_of_ppi_python(weight=None):
    """The weight of the judge, the mean and its interval, as ppi-python computes them.

    It takes the covariance and variances with ddof 0, the variance of all values of the
    judge with ddof 1, and the quantile of the normal distribution.
    """
    n, others = len(Y), len(OTHERS)
    if weight is None:
        covariance = np.mean((Y - Y.mean()) * (F - F.mean()))
        variance = np.concatenate([F, OTHERS]).var(ddof=1)
        weight = np.clip(covariance / ((1 + n / others) * variance), 0, 1)
    mean = weight * OTHERS.mean() + (Y - weight * F).mean()
    variance = (Y - weight * F).var() / n + weight**2 * OTHERS.var() / others
    half = scipy.stats.norm.ppf(0.975) * math.sqrt(variance)
    return weight, mean, mean - half, mean + half


def by_hand(y, f, others):
    """The weight, the mean and its standard error, as `compare` states them."""
    n, number = len(y), len(others)
    covariance = np.cov(y, f)[0, 1]
    variance = np.concatenate([f, others]).var(ddof=1)
    weight = np.clip(covariance / ((1 + n / number) * variance), 0, 1)
    rest = y - weight * f
    variance = rest.var(ddof=1) / n + weight**2 * others.var(ddof=1) / number
    return weight, weight * others.mean() + rest.mean(), math.sqrt(variance)


def graded(values, number):
    """Values of people, who graded the first queries."""
    return np.where(np.arange(len(values)) < number, values, np.nan)


RNG = np.random.default_rng(0)
M, N = 300, 40
PEOPLE = {"old": RNG.beta(2, 3, M)}
PEOPLE["new"] = np.clip(PEOPLE["old"] + RNG.normal(0.04, 0.1, M), 0, 1)
JUDGE = {
    name: np.clip(0.35 + 0.6 * each + RNG.normal(0, 0.1, M), 0, 1)
    for name, each in PEOPLE.items()
}


def values_of(models, metric="ndcg@10"):
    return {name: {metric: each} for name, each in models.items()}


def compared(number=N, judge=JUDGE, **options):
    people = {name: graded(each, number) for name, each in PEOPLE.items()}
    return trm.compare(values_of(judge), people=values_of(people), **options)


def test_the_formula_is_that_of_ppi_python():
    expected = 1, 0.3125, 0.142070, 0.482930
    np.testing.assert_allclose(with_ddofs_of_ppi_python(1), expected, atol=1e-6)
    expected = 0.891881, 0.336151, 0.164025, 0.508277
    np.testing.assert_allclose(with_ddofs_of_ppi_python(), expected, atol=1e-6)
    weight, mean, _ = by_hand(Y, F, OTHERS)  # with ddof 1 everywhere
    assert math.isclose(weight, with_ddofs_of_ppi_python()[0] * 8 / 7) or weight == 1
    assert math.isclose(mean, weight * (0.5 - F.mean()) + Y.mean())


@pytest.mark.parametrize("scale", [1, 7])
def test_means_and_differences_by_hand(scale):
    """The weights of queries are equal, or all multiplied."""

    def weighted(models):
        return {
            name: trm.QueryValues({"mrr": each}, {"mrr": np.full(M, float(scale))})
            for name, each in models.items()
        }

    people = {name: graded(each, N) for name, each in PEOPLE.items()}
    found = trm.compare(weighted(JUDGE), people=weighted(people))
    changes = [models["new"] - models["old"] for models in (PEOPLE, JUDGE)]
    rows = [*found.means, *found.differences]
    of_rows = [(PEOPLE[name], JUDGE[name]) for name in PEOPLE] + [changes]
    for row, judge, (y, f) in zip(rows, found.judge, of_rows, strict=True):
        weight, mean, error = by_hand(y[:N], f[:N], f[N:])
        assert 0 < weight < 1
        np.testing.assert_allclose(row[3:5], [mean, error], rtol=1e-12)
        assert row.low < mean < row.high
        assert math.isclose(judge.weight, weight)
        overrated = f[:N] - y[:N]
        assert math.isclose(judge.bias, overrated.mean())
        assert math.isclose(judge.standard_error, scipy.stats.sem(overrated))
        number = y[:N].var(ddof=1) / error**2
        assert math.isclose(judge.effective_queries, number)
        assert (judge.queries, judge.other_queries) == (N, M - N)
    (found,) = found.differences
    t = found.difference / found.standard_error
    assert math.isclose(found.p, 2 * scipy.stats.t.sf(abs(t), N - 1))
    assert (found.queries, found.effective_queries) == (N, N)


def test_weighted_queries_by_their_influence():
    """A query of weight 2 counts as two queries."""
    rng, twice = np.random.default_rng(1), np.arange(200) % 2 == 0
    y = rng.random(200)
    f = 0.7 * y + 0.3 * rng.random(200)
    weights = {"mrr": 1.0 + twice}

    def values(array, weights):
        return {"A": trm.QueryValues({"mrr": array}, weights)}

    weighted = trm.compare(values(f, weights), people=values(graded(y, 100), weights))
    copies = np.repeat(np.arange(200), 1 + twice)
    y, f = graded(y, 100)[copies], f[copies]
    repeated = trm.compare({"A": {"mrr": f}}, people={"A": {"mrr": y}})
    one, other = weighted.means[0], repeated.means[0]
    assert math.isclose(one.mean, other.mean, rel_tol=0.01)
    assert one.standard_error > other.standard_error  # of fewer queries
    assert one.queries == 100


@functools.cache
def simulated(name, kind, number):
    return interval_coverage.corrected_and_alone(name, kind, number)


@pytest.mark.parametrize("number", [20, 50, 100])
@pytest.mark.parametrize("kind", interval_coverage.JUDGES)
@pytest.mark.parametrize("name", interval_coverage.JUDGED)
def test_coverage_and_width(name, kind, number):
    corrected, alone = simulated(name, kind, number)
    least = 0.92 if number == 20 else 0.93
    means = [each for each in corrected.means if each.model == "A"]
    true = interval_coverage.true_mean(name)
    shares = [
        interval_coverage.covers(means, true),
        interval_coverage.covers(corrected.differences, 0),
    ]
    assert all(least <= share <= 0.97 for share in shares)
    cells = " | ".join(f"{share:.1%}" for share in shares)
    page = interval_coverage.PAGE.read_text("utf-8")
    (row,) = (line for line in page.splitlines() if f"| {name} | {kind} |" in line)
    assert cells in row
    rejected = np.mean([each.p < 0.05 for each in corrected.differences])
    assert 0.03 <= rejected <= 0.07
    for content in ("means", "differences"):
        one, other = (
            interval_coverage.width(getattr(each, content))
            for each in (corrected, alone)
        )
        assert one <= 1.02 * other
        assert kind != "good" or one < 0.8 * other


def test_a_useless_judge_adds_no_queries():
    corrected, _ = simulated(interval_coverage.JUDGED[0], "useless", 100)
    assert 95 < np.median([each.effective_queries for each in corrected.judge]) < 105


@pytest.mark.parametrize("metric", ["ndcg@10", "dcg@10"])
def test_people_who_graded_all_queries_are_alone(metric):
    by = np.arange(M) % 60  # 5 queries in a slice
    people, judge = values_of(PEOPLE, metric), values_of(JUDGE, metric)
    found = trm.compare(judge, people=people, by=by)
    alone = trm.compare(people, test="t", by=by)
    assert found.means == alone.means
    assert found.differences == alone.differences
    assert {each.weight for each in found.judge} == {0}
    assert all(each.effective_queries == each.queries for each in found.judge)


@pytest.mark.parametrize("hits", [0, 1, 12])
def test_hits_have_an_interval_within_the_range(hits):
    """The corrected mean may be below 0, if the judge overrates the graded queries."""
    y = np.arange(100) < hits
    f = np.arange(100) < 12
    found = trm.compare(
        {"A": {"hit_rate@1": f}}, people={"A": {"hit_rate@1": graded(y * 1.0, 12)}}
    )
    (mean,) = found.means
    assert 0 <= mean.low < mean.high <= 1


def test_queries_are_matched_by_id():
    chosen = np.random.default_rng(2).permutation(M)[:N]
    ids = np.array([f"q{i}" for i in range(M)])
    judge = {name: {"query": ids, "mrr": each} for name, each in JUDGE.items()}
    people = {
        name: {"query": ids[chosen], "mrr": each[chosen]}
        for name, each in PEOPLE.items()
    }
    by = {f"q{i}": i % 2 for i in range(M)}
    found = trm.compare(judge, people=dict(reversed(people.items())), by=by)
    nan = {
        name: np.where(np.isin(np.arange(M), chosen), each, np.nan)
        for name, each in PEOPLE.items()
    }
    expected = trm.compare(
        values_of(JUDGE, "mrr"), people=values_of(nan, "mrr"), by=np.arange(M) % 2
    )
    assert (found.means, found.differences) == (expected.means, expected.differences)
    frames = {name: pd.DataFrame(each) for name, each in people.items()}
    assert trm.compare(judge, people=frames, by=by).means == found.means
    more = {
        name: {"query": [*each["query"], "x"], "mrr": [*each["mrr"], 0.5]}
        for name, each in people.items()
    }
    with pytest.raises(
        ValueError, match=r"1 without one, such as 'x'\. Pass unpaired='drop'"
    ):
        trm.compare(judge, people=more)
    dropped = trm.compare(judge, people=more, by=by, unpaired="drop")
    assert (dropped.means, dropped.dropped) == (found.means, 1)


def test_slices_of_few_graded_queries_have_no_numbers():
    found = compared(by=np.where(np.arange(M) % 5, "often", "rarely"))
    (rarely,) = (each for each in found.differences if each.slice == ("rarely",))
    assert (rarely.queries, math.isnan(rarely.difference), math.isnan(rarely.p)) == (
        8,
        True,
        True,
    )
    text = repr(found)
    assert re.search(r"rarely  ndcg@10 +8 +- +-\n", text)
    assert re.search(r"rarely +ndcg@10  new - old +8 +52 ", text)
    decision = found.gate("ndcg@10", "old", margin=0.2, in_slices=["rarely"])
    assert "unknown, since these queries have no interval" in decision.reason


def test_tables():
    found = compared()
    text = repr(found)
    assert "wins" not in text
    assert "Mean by people [95% interval], estimated with the judge." in text
    assert "t-test of the differences by people, estimated with the judge." in text
    bias = found.judge[2]
    row = f"new - old         40     260          {bias.bias:+.4f}"
    assert row in text
    assert found.to_markdown("judge").startswith("| metric | models | by people |")
    assert found.to_latex("judge").count("\\begin{tabular}") == 1
    assert found.to_markdown().count("| metric |") == 3
    records = found.to_dicts("judge")
    assert [(each["model"], each["than"]) for each in records] == [
        ("old", None),
        ("new", None),
        ("new", "old"),
    ]
    assert "wins" not in found.to_dicts()[0]
    assert "judge" not in repr(trm.compare(values_of(PEOPLE)))
    assert trm.compare(values_of(PEOPLE)).to_dicts("judge") == []


def test_a_judge_that_prefers_a_model_is_corrected():
    """The judge adds 0.1 to the values of one of two equal models."""
    rng = np.random.default_rng(3)
    people = {name: rng.beta(2, 3, 1000) for name in "AB"}
    judge = {"A": 0.5 * people["A"], "B": 0.5 * people["B"] + 0.1}
    alone = trm.compare(values_of(judge)).differences[0]
    assert alone.is_significant
    some = {name: graded(each, 100) for name, each in people.items()}
    found = trm.compare(values_of(judge), people=values_of(some))
    assert not found.differences[0].is_significant
    assert found.judge[2].low > 0.05
    assert not found.gate("ndcg@10", "A", policy="better")


def test_queries_needed_for_people():
    """As many people and others as needed find the difference in 80% of the draws."""
    rng = np.random.default_rng(4)

    def drawn(number, others, draws):
        change = rng.normal(0.05, 0.2, (number + others, draws))
        judged = change + rng.normal(0, 0.15, change.shape)
        is_people = np.arange(len(change)) < number
        people = np.where(is_people[:, np.newaxis], change, np.nan)

        def model(values):
            names = [f"x{i}" for i in range(draws)]
            return dict(zip(names, values.T, strict=True))

        zeros, no_people = np.zeros_like(change), np.where(np.isnan(people), np.nan, 0)
        return trm.compare(
            {"A": model(zeros), "B": model(judged)},
            people={"A": model(no_people), "B": model(people)},
            correction=None,
        ).differences

    needed = drawn(500, 2000, 1)[0].queries_needed(0.05)
    found = drawn(needed, 4 * needed, 500)
    assert 0.75 < np.mean([each.p < 0.05 for each in found]) < 0.86


@pytest.mark.parametrize(
    ("people", "options", "message"),
    [
        (values_of(PEOPLE), {"test": "randomization"}, "`test` with `people` must be 't'. Received: test='randomization'"),
        (values_of(PEOPLE), {"paired": False}, "Received: paired=False"),
        ([1], {}, "`people` must be a dict with the values of each model"),
        (pd.DataFrame({"mrr": [1.0]}), {}, "`people` must be a dict"),
        ({"old": {"ndcg@10": PEOPLE["old"]}}, {}, "Received: 'old', and 'old', 'new' in `values`"),
        (values_of(PEOPLE, "mrr"), {}, "'mrr' for 'old by people'"),
        (values_of({name: each[:20] for name, each in PEOPLE.items()}), {}, "Received: 20 for 300 queries"),
        (values_of({name: graded(each, 9) for name, each in PEOPLE.items()}), {}, "at least 10 queries. Received: 9 queries with a value of 'ndcg@10'"),
        (values_of({"old": graded(PEOPLE["old"], 20), "new": graded(PEOPLE["new"], 21)}), {}, "has no value for 'old by people'"),
        ({name: {"query": range(20), "ndcg@10": each[:20]} for name, each in PEOPLE.items()}, {}, "only one of which contains the key 'query'"),
    ],
)  # fmt: skip
def test_errors(people, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        trm.compare(values_of(JUDGE), people=people, **options)


def test_a_graded_query_needs_a_value_by_the_judge():
    lacking = {
        name: np.where(np.arange(M) == 3, np.nan, each) for name, each in JUDGE.items()
    }
    with pytest.raises(ValueError, match="1 without one, such as 3"):
        compared(judge=lacking)
    found = compared(judge=lacking, unpaired="drop")
    assert (found.means[0].queries, found.dropped) == (N - 1, 1)


def test_values_of_people_outside_of_the_range_have_an_interval_around_the_mean():
    people = {
        name: {"mrr": graded(each, N), "ndcg@10": 100 * graded(each, N)}
        for name, each in reversed(PEOPLE.items())
    }
    judge = {name: {"ndcg@10": each, "mrr": each} for name, each in JUDGE.items()}
    with pytest.warns(trm.RankingWarning, match="Divide percentages by 100"):
        found = trm.compare(judge, people=people)
    for each in found.means:
        assert each.low < each.mean < each.high
    within_range = compared().means[0]
    assert found.means[1][3:] == pytest.approx(within_range[3:], rel=1e-12)


def test_the_weight_is_between_0_and_1():
    """The judge contradicts people, or changes half as much as they do."""
    y = np.random.default_rng(5).random((60, 1))
    weights = np.ones_like(y)
    people = Sample(y, weights).where(np.arange(60)[:, np.newaxis] < 20)
    for f, expected in ((1 - y, 0), (y / 2, 1)):
        assert Corrected(people, Sample(f, weights)).weights == [expected]
