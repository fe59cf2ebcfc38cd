"""Estimates, intervals and decisions of a comparison, against formulas by hand."""

import math

import numpy as np
import pytest
import scipy.stats
from fuzz_tables import interval_by_hand

from tfrankmetrics import QueryValues, RankingWarning, compare

# The normal quantiles of 0.975 and of 0.8, from a table.
OF_TEST, OF_POWER = 1.959964, 0.841621
# A difference of 0.1 in ten queries.
DEFAULTS = {
    "models": ("old", "new"),
    "difference": 0.1,
    "standard_error": 0.01,
    "low": 0.08,
    "high": 0.12,
    "p": 0.01,
    "wins": 6,
    "losses": 2,
    "ties": 2,
    "smallest_p": 0,
    "adjusted_p": 0.02,
}


def comparison_of(*fields):
    """A comparison with these differences, which have the defaults in other fields.

    By default, all weights are equal.
    """
    compared = compare({"old": {"mrr": [0.1, 0.2]}, "new": {"mrr": [0.3, 0.3]}})
    (found,) = compared.differences
    compared.differences = []
    for each in fields:
        each = {**DEFAULTS, **each}
        differing = each["wins"] + each["losses"]
        of_weights = {
            "differing": differing,
            "effective_queries": differing + each["ties"],
        }
        compared.differences.append(found._replace(**{**of_weights, **each}))
    return compared


def difference(**fields):
    return comparison_of(fields).differences[0]


def decided(*fields, **options):
    options = {"margin": 0.1, **options}
    return comparison_of(*fields).gate("mrr", "old", model="new", **options)


@pytest.mark.parametrize(
    ("p", "text"), [(0.0004, "p < 0.001"), (0.001, "p = 0.001"), (0.04, "p = 0.040")]
)
def test_a_p_value_in_a_sentence(p, text):
    decision = decided({"adjusted_p": p}, policy="better", margin=0)
    assert f", with {text}, where p < 0.05 is required." in decision.reason


def test_a_difference_of_weights_needs_an_interval():
    """Values are equal in all queries, and the weights of the models differ."""
    ties = {"wins": 0, "losses": 0, "ties": 20, "differing": 20}
    decision = decided({**ties, "low": -0.3, "high": -0.2, "difference": -0.25})
    assert "is worse than that of 'old' by 0.1 or more" in decision.reason
    assert "have no interval" in decided({**ties, **NO_INTERVAL}).reason


def test_a_difference_is_significant_below_5_percent():
    assert difference(adjusted_p=0.0499).is_significant
    assert not difference(adjusted_p=0.05).is_significant
    assert not difference(adjusted_p=math.nan).is_significant


@pytest.mark.parametrize("queries", [2, 10, 100])
def test_the_detectable_difference_is_that_of_guenther(queries):
    found = difference(wins=queries, losses=0, ties=0).detectable_difference()
    expected = (
        (OF_TEST + OF_POWER) * 0.01 * math.sqrt(queries / (queries - OF_TEST**2 / 2))
    )
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("fields", [{"wins": 1}, {"smallest_p": 0.05, "wins": 9}])
def test_too_few_queries_detect_no_difference(fields):
    found = difference(**{"losses": 0, "ties": 0, **fields})
    assert math.isnan(found.detectable_difference())


def test_weighted_queries_count_as_the_effective_number():
    """8 of 20 queries would be as precise. As many more have 0.4 of their number."""
    found = difference(wins=20, losses=0, ties=0, effective_queries=8.0)
    power = (OF_TEST + OF_POWER) * 0.01
    detectable = power * math.sqrt(8 / (8 - OF_TEST**2 / 2))
    assert found.detectable_difference() == pytest.approx(detectable, rel=1e-6)
    assert found.queries_needed(detectable * (1 + 1e-6)) == 20
    assert found.queries_needed(power / 3) == math.ceil((72 + OF_TEST**2 / 2) / 0.4)
    few = difference(wins=20, losses=0, ties=0, effective_queries=1.9)
    assert math.isnan(few.detectable_difference())


@pytest.mark.parametrize("squares", [100.05, 100.5])
def test_the_queries_needed_are_those_of_guenther(squares):
    """(z of the test + z of the power)^2 * variance / difference^2 + z^2 / 2."""
    found = difference(wins=100, losses=0, ties=0)
    size = (OF_TEST + OF_POWER) * 0.01 / math.sqrt(squares / 100)
    assert found.queries_needed(size) == math.ceil(squares + OF_TEST**2 / 2)


def test_a_test_of_swaps_needs_six_queries_that_differ():
    """2 / 2^6 is below 0.05, and 2 / 2^5 is not. Half of the queries differ."""
    found = difference(wins=4, losses=2, ties=6, smallest_p=2 / 2**6)
    assert found.queries_needed(100) == 12
    of_weights = difference(wins=0, losses=0, ties=12, differing=4, smallest_p=2 / 2**4)
    assert of_weights.queries_needed(100) == 18


NO_INTERVAL = {"low": math.nan, "high": math.nan}
REVERSED = {"models": ("new", "old")}
BETTER = {"policy": "better", "margin": 0.0}


@pytest.mark.parametrize(
    ("fields", "options", "decision"),
    [
        (
            {"low": -0.05},
            {},
            "Passed: mrr of 'new' is not worse than that of 'old' by 0.1 or more: its "
            "improvement is +0.1000, and at least -0.0500 by the 95% interval.",
        ),
        (
            {"low": -0.1},  # the margin itself
            {},
            "Failed: mrr of 'new' is perhaps worse than that of 'old' by 0.1 or more: "
            "its improvement is +0.1000, and at least -0.1000 by the 95% interval.",
        ),
        (
            {**REVERSED, "low": 0.1, "high": 0.12},
            {},
            "Failed: mrr of 'new' is worse than that of 'old' by 0.1 or more: its "
            "improvement is -0.1000, and at most -0.1000 by the 95% interval.",
        ),
        (
            {**REVERSED, "low": -0.05, "high": 0.12},
            {},
            "Failed: mrr of 'new' is perhaps worse than that of 'old' by 0.1 or more: "
            "its improvement is -0.1000, and at least -0.1200 by the 95% interval.",
        ),
        (
            {"slice": ("en",)},
            {**BETTER, "in_slices": True},
            "Passed: mrr of 'new' in the slice 'en' is better than that of 'old': its "
            "improvement is +0.1000, with p = 0.020, where p < 0.05 is required; the rule "
            "also holds in the slice.",
        ),
        (
            {},
            {**BETTER, "margin": 0.1},  # which the improvement does not exceed
            "Failed: mrr of 'new' is not shown to be better than that of 'old' by more "
            "than 0.1: its improvement is +0.1000, with p = 0.020, where an improvement above 0.1 is "
            "required.",
        ),
        (
            {"adjusted_p": 0.2},
            BETTER,
            "Failed: mrr of 'new' is not shown to be better than that of 'old': its "
            "improvement is +0.1000, with p = 0.200, where p < 0.05 is required.",
        ),
        (
            REVERSED,
            {**BETTER, "margin": 0.05},
            "Failed: mrr of 'new' is worse than that of 'old': its improvement is -0.1000, "
            "with p = 0.020.",
        ),
        (
            {**REVERSED, "adjusted_p": 0.2},
            BETTER,
            "Failed: mrr of 'new' is not shown to be better than that of 'old': its "
            "improvement is -0.1000, with p = 0.200, where an improvement above 0 is required.",
        ),
        (
            {**REVERSED, "is_opposed": True},
            BETTER,
            "Failed: mrr of 'new' is not shown to be better than that of 'old': its "
            "improvement is -0.1000, with p = 0.020, where an improvement above 0 is required.",
        ),
        (
            NO_INTERVAL,
            BETTER,
            "Passed: mrr of 'new' is better than that of 'old': its improvement is +0.1000, "
            "with p = 0.020, where p < 0.05 is required.",
        ),
        (
            {"p": math.nan, "adjusted_p": math.nan},
            BETTER,
            "Failed: mrr of 'new' is unknown, since these queries have no p-value.",
        ),
        (
            {"wins": 1, "losses": 0, "ties": 0, "p": math.nan, "adjusted_p": math.nan},
            BETTER,
            "Failed: mrr of 'new' is unknown, since one query has no p-value.",
        ),
        (
            {"wins": 0, "losses": 0, "ties": 2, **NO_INTERVAL},
            {},
            "Passed: mrr of 'new' is equal to that of 'old' in each of 2 queries.",
        ),
        (
            {"wins": 1, "losses": 0, "ties": 1, **NO_INTERVAL},
            {},
            "Failed: mrr of 'new' is unknown, since these queries have no interval.",
        ),
        (
            {"wins": 0, "losses": 0, "ties": 1, **NO_INTERVAL},
            {},
            "Failed: mrr of 'new' is unknown, since one query has no interval.",
        ),
        (
            {"wins": 0, "losses": 0, "ties": 0, **NO_INTERVAL},
            {},
            "Failed: mrr of 'new' is unknown, since no query is included.",
        ),
    ],
)
def test_the_reason_of_a_decision(fields, options, decision):
    assert str(decided(fields, **options)) == decision


def test_a_decision_about_nothing_fails():
    assert decided() == (False, "No comparison was made.")


def model_of(values, weights=None, bounds=(0.0, 1.0)):
    weights = np.ones(len(values)) if weights is None else np.array(weights, float)
    columns = {"x": np.array(values, float)}, {"x": weights}
    return QueryValues(*columns, ranges={"x": bounds})


def test_a_margin_is_below_the_range_of_the_metric():
    old, new = (model_of([1, each], bounds=(1, 3)) for each in (2, 3))
    compared = compare({"old": old, "new": new})
    assert compared.gate("x", "old", margin=1.9).reason.startswith("x of 'new' is")
    with pytest.raises(ValueError, match="`margin` must be below 2"):
        compared.gate("x", "old", margin=2)


def interval(*model):
    (mean,) = compare({"a": model_of(*model)}).means
    return mean.low, mean.high


def interval_of_difference(first, second):
    (found,) = compare({"a": first, "b": second}, test="t").differences
    return found.low, found.high


def exact(hits, number):
    ends = scipy.stats.binomtest(hits, number).proportion_ci(method="exact")
    return [ends.low, ends.high]


VALUES, HITS = [0.2, 0.3, 0.5, 0.4], [1, 0, 1, 1, 0]
SPREAD = 0.2 - 0.1, 0.5 + 0.1  # a third of their spread beyond the values


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ((VALUES,), interval_by_hand(VALUES, *SPREAD)),
        ((VALUES, None, (0.15, 0.55)), interval_by_hand(VALUES, 0.15, 0.55)),
        (([0.2, 0.5],), interval_by_hand([0.2, 0.5], 0.1, 0.6)),
        (([0.2],), [math.nan] * 2),
        (([1.0],), [math.nan] * 2),
        # The exact interval of shares, also if all weights above 0 are equal.
        *[(([1] * n + [0] * (10 - n),), exact(n, 10)) for n in (0, 1, 5, 9, 10)],
        (([*HITS, 1], [1] * 5 + [0]), exact(3, 5)),
        (([*HITS, 1], [2] * 5 + [0]), exact(3, 5)),
        # Values of 0 and 1 are no shares if others are possible.
        ((HITS, None, (0.0, 2.0)), interval_by_hand(HITS, 0, 1 + 1 / 3)),
        # Queries without a weight are no part of an interval.
        (([*VALUES, 0.9, 0.0], [1] * 4 + [0] * 2), interval_by_hand(VALUES, *SPREAD)),
        (([1, 0, 1], [2, 1, 1]), interval_by_hand([1, 0, 1], 0, 1, [2, 1, 1])),
    ],
)
def test_intervals_by_hand(model, expected):
    np.testing.assert_allclose(interval(*model), expected, rtol=1e-9)


def test_a_metric_of_shares_leaves_the_others_as_they_are():
    models = {"a": {"hit_rate": HITS, "mrr": [0.2, 0.3, 0.5, 0.4, 0.1]}}
    shares, others = compare(models).means
    assert (shares.low, shares.high) == pytest.approx(exact(3, 5))
    expected = interval_by_hand(models["a"]["mrr"], 0, 0.5 + 0.4 / 3)
    assert (others.low, others.high) == pytest.approx([*expected])


def test_the_smaller_effective_number_is_that_of_a_difference():
    """Of weights 3, 1, 1, 1 it is 6^2 / 12 = 3, and of equal ones 4, by Kish.

    The mean is 0.3. The influences of the queries on it are those of the values 0.1,
    0.3, 1.3 / 3 and 1.1 / 3 with equal weights, whose spread is 1 / 3.
    """
    weights = [3, 1, 1, 1]
    first, second = model_of([0] * 4), model_of(VALUES, weights)
    (found,) = compare({"a": first, "b": second}, test="t").differences
    spread = 1 / 3
    expected = interval_by_hand(VALUES, 0.1 - spread / 3, 1.3 / 3 + spread / 3, weights)
    np.testing.assert_allclose([found.low, found.high], expected, rtol=1e-9)
    assert found.effective_queries == pytest.approx(3)
    influences = np.array([0.1, 0.3, 1.3 / 3, 1.1 / 3]) - 0.3
    error = math.sqrt(3 / 2 * sum((influences / 4) ** 2))
    assert found.standard_error == pytest.approx(error)
    assert found.p == pytest.approx(2 * scipy.stats.t.sf(0.3 / error, 2))


@pytest.mark.parametrize("sign", [1, -1])
def test_differences_that_are_rounding_of_large_values_are_equal(sign):
    large = sign * np.array([1e6, 1e6 + 1, 1e6, 1e6 - 1])
    models = [
        model_of(each, None, (-np.inf, np.inf))
        for each in (large, large + [0, 1e-9, 0, 0])
    ]
    found = interval_of_difference(*models)
    assert np.isnan(found).all() or np.ptp(found) < 1e-6


@pytest.mark.parametrize(
    ("values", "received"),
    [
        ([-0.1, 0.5, 1.0], "-0.1"),
        ([0.0, 0.5, 1.2], "1.2"),
        ([math.nan, 0.5, -0.1], "-0.1"),
        ([math.nan, 50, 60], "60"),
    ],
)
def test_values_outside_of_the_range_are_a_warning(values, received):
    models = {"old": {"mrr": [0.0, 0.5, 1.0]}, "new": {"mrr": values}}
    with pytest.warns(RankingWarning, match=f"Received: {received} for 'new'"):
        compare(models, unpaired="drop")


def test_the_smallest_p_values_of_swaps():
    """2 / 2^m for m different queries; from 2^m swaps on, that of random swaps."""
    expected = {0: 1, 1: 1, 2: 0.5, 6: 2 / 64, 7: 2 / 128, 20: 1 / 101}
    models = {
        name: {f"x{m}": change * (np.arange(20) < m) for m in expected}
        for name, change in (("old", 0.0), ("new", 0.5))
    }
    found = compare(models, resamples=100).differences
    assert [each.smallest_p for each in found] == pytest.approx([*expected.values()])


def test_the_printed_table_shows_the_differences():
    """The query of the slice "b" has no value."""
    old = np.array([0.1, 0.2, 0.3, math.nan])
    models = {"old": {"x": old}, "new": {"x": old + [0.2, 0.1, 0, 0]}}
    by = {"part": ["a", "a", "a", "b"]}
    compared = compare(models, by=by, correction=None)
    lines = [line.split() for line in str(compared).splitlines()]
    (part,) = (each for each in compared.differences if each.slice == ("a",))
    ends = f"[{part.low:+.4f},", f"{part.high:+.4f}]"
    shown = ["a", "x", "new", "-", "old", "+0.1000", *ends, "0.500", "2", "0", "1"]
    assert shown in lines
    assert ["b", "x", "new", "-", "old", "-", "-", "-", "0", "0", "0"] in lines
