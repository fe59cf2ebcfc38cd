"""Estimates, intervals and decisions of a comparison, against formulas by hand."""

import math
import types
import warnings

import numpy as np
import pytest
import scipy.stats

from tfrankmetrics import RankingWarning, compare
from tfrankmetrics.comparison.estimates import Difference, p_text
from tfrankmetrics.comparison.gate import Rule, chosen_slices, make_rule
from tfrankmetrics.comparison.intervals import (
    intervals_of_differences,
    intervals_of_means,
)
from tfrankmetrics.comparison.significance import Sample, smallest_p

# The normal quantiles of 0.975 and of 0.8, from a table.
OF_TEST, OF_POWER = 1.959964, 0.841621


def difference(**fields):
    """A difference of 0.1 in ten queries, with some other fields."""
    defaults = {
        "slice": None,
        "metric": "mrr",
        "models": ("old", "new"),
        "difference": 0.1,
        "standard_error": 0.01,
        "low": 0.08,
        "high": 0.12,
        "p": 0.01,
        "wins": 6,
        "losses": 2,
        "ties": 2,
        "adjusted_p": 0.02,
    }
    return Difference(**{**defaults, **fields})


@pytest.mark.parametrize(
    ("p", "text"), [(0.0004, "p < 0.001"), (0.001, "p = 0.001"), (0.04, "p = 0.040")]
)
def test_a_p_value_in_a_sentence(p, text):
    assert p_text(p) == text


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


@pytest.mark.parametrize("power", [0.05, 1, 1.5])
def test_a_power_is_between_that_of_no_difference_and_1(power):
    with pytest.raises(ValueError, match=r"`power` must be above 0\.05"):
        difference().detectable_difference(power)


def decided(*differences, **fields):
    defaults = {
        "metric": "mrr",
        "baseline": "old",
        "model": "new",
        "margin": 0.1,
        "policy": "not_worse",
        "lower_is_better": False,
    }
    return Rule(**{**defaults, **fields}).decide(differences)


@pytest.mark.parametrize(
    ("fields", "rule", "passed", "reason"),
    [
        (
            {"low": -0.05},
            {},
            True,
            "mrr of 'new' is not worse than that of 'old' by 0.1 or more: its gain is "
            "+0.1000, and at least -0.0500 by the 95% interval.",
        ),
        (
            {"low": -0.1},  # the margin itself
            {},
            False,
            "mrr of 'new' is perhaps worse than that of 'old' by 0.1 or more: its gain "
            "is +0.1000, and at least -0.1000 by the 95% interval.",
        ),
        (
            {"models": ("new", "old"), "low": 0.1, "high": 0.12},
            {},
            False,
            "mrr of 'new' is worse than that of 'old' by 0.1 or more: its gain is "
            "-0.1000, and at most -0.1000 by the 95% interval.",
        ),
        (
            {"models": ("new", "old"), "low": -0.05, "high": 0.12},
            {},
            False,
            "mrr of 'new' is perhaps worse than that of 'old' by 0.1 or more: its gain "
            "is -0.1000, and at least -0.1200 by the 95% interval.",
        ),
        (
            {"slice": ("en",)},
            {"policy": "better", "margin": 0.0},
            True,
            "mrr of 'new' in the slice 'en' is better than that of 'old': its gain is "
            "+0.1000, with p = 0.020, where p < 0.05 is required; the rule also holds "
            "in the slice.",
        ),
        (
            {},
            {"policy": "better", "margin": 0.1},  # which the gain does not exceed
            False,
            "mrr of 'new' is not shown to be better than that of 'old' by more than "
            "0.1: its gain is +0.1000, with p = 0.020, where p < 0.05 is required.",
        ),
        (
            {"wins": 0, "losses": 0, "ties": 2, "low": math.nan, "high": math.nan},
            {},
            True,
            "mrr of 'new' is equal to that of 'old' in each of 2 queries.",
        ),
        (
            {"wins": 1, "losses": 0, "ties": 1, "low": math.nan, "high": math.nan},
            {},
            False,
            "mrr of 'new' is unknown, since these queries have no interval.",
        ),
        (
            {"wins": 0, "losses": 0, "ties": 1, "low": math.nan, "high": math.nan},
            {},
            False,
            "mrr of 'new' is unknown, since one query has no interval.",
        ),
        (
            {"wins": 0, "losses": 0, "ties": 0, "low": math.nan, "high": math.nan},
            {},
            False,
            "mrr of 'new' is unknown, since no query is included.",
        ),
    ],
)
def test_the_reason_of_a_decision(fields, rule, passed, reason):
    assert decided(difference(**fields), **rule) == (passed, reason)


def test_a_decision_about_nothing_fails():
    assert decided() == (False, "No comparison was made.")


def test_a_failed_decision_about_slices_names_only_the_slice():
    bad = difference(slice=("en",), low=-0.2)
    decision = decided(difference(slice=("de",)), bad)
    assert not decision
    assert "in the slice 'en' is perhaps worse" in decision.reason
    assert "also holds" not in decision.reason


@pytest.mark.parametrize("wrong", ["en", 5])
def test_slices_of_a_gate_are_a_list(wrong):
    with pytest.raises(ValueError, match="must be True, or a list of slices"):
        chosen_slices(wrong, {None, ("en",)})


def test_a_margin_is_below_the_range_of_the_metric():
    compared = types.SimpleNamespace(
        metrics=["x"], models=["a", "b"], ranges={"x": (1, 3)}, lower_is_better=()
    )
    assert make_rule("x", "a", None, 1.9, "not_worse", compared).margin == 1.9
    with pytest.raises(ValueError, match="`margin` must be below 2"):
        make_rule("x", "a", None, 2, "not_worse", compared)


def interval_by_hand(values, low, high):
    """The interval of a beta distribution with half a query at each end.

    It has the moments of the values and the two ends, and is widened as Student's
    distribution is compared with the normal one.
    """
    number = len(values)
    points = np.array([*values, low, high])
    weights = np.array([1.0] * number + [0.5, 0.5])
    mean = np.average(points, weights=weights)
    variance = np.average((points - mean) ** 2, weights=weights) / (number + 2)
    share, width = (mean - low) / (high - low), high - low
    both = share * (1 - share) * width**2 / variance - 1
    tails = np.array([0.025, 0.975])
    ends = scipy.stats.beta.ppf(tails, share * both, (1 - share) * both, low, width)
    wider = scipy.stats.t.ppf(0.975, number - 1) / scipy.stats.norm.ppf(0.975)
    return np.clip(np.mean(values) + (ends - np.mean(values)) * wider, low, high)


def sample_of(*columns, weights=None):
    values = np.array(columns, float).T
    weights = np.ones(values.shape) if weights is None else weights
    return Sample(values, np.broadcast_to(np.c_[weights], values.shape).astype(float))


def test_an_interval_has_the_moments_of_the_values_and_the_ends():
    values = [0.2, 0.3, 0.5, 0.4]
    found = intervals_of_means(sample_of(values), np.array([[0], [1]]))
    ends = 0.2 - 0.1, 0.5 + 0.1  # a third of their spread beyond the values
    np.testing.assert_allclose(found[:, 0], interval_by_hand(values, *ends), rtol=1e-9)
    in_range = intervals_of_means(sample_of(values), np.array([[0.15], [0.55]]))
    expected = interval_by_hand(values, 0.15, 0.55)
    np.testing.assert_allclose(in_range[:, 0], expected, rtol=1e-9)


def test_two_queries_have_an_interval_and_one_does_not():
    ranges = np.array([[0.0], [1.0]])
    expected = interval_by_hand([0.2, 0.5], 0.1, 0.6)
    found = intervals_of_means(sample_of([0.2, 0.5]), ranges)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-9)
    assert np.isnan(intervals_of_means(sample_of([0.2]), ranges)).all()
    assert np.isnan(intervals_of_means(sample_of([1.0]), ranges)).all()


def exact(hits, number):
    ends = scipy.stats.binomtest(hits, number).proportion_ci(method="exact")
    return [ends.low, ends.high]


def test_shares_have_the_interval_of_clopper_and_pearson():
    hits, others = [1, 0, 1, 1, 0], [0.2, 0.3, 0.5, 0.4, 0.1]
    ranges = np.array([[0.0, 0.0], [1.0, 1.0]])
    found = intervals_of_means(sample_of(hits, others), ranges)
    np.testing.assert_allclose(found[:, 0], exact(3, 5), rtol=1e-9)
    expected = interval_by_hand(others, 0, 0.5 + 0.4 / 3)
    np.testing.assert_allclose(found[:, 1], expected, rtol=1e-9)


def test_queries_without_a_weight_are_no_part_of_a_share():
    weights = [1, 1, 1, 1, 1, 0]
    found = intervals_of_means(
        sample_of([1, 0, 1, 1, 0, 1], weights=weights), np.array([[0], [1]])
    )
    np.testing.assert_allclose(found[:, 0], exact(3, 5), rtol=1e-9)


def test_values_of_0_and_1_are_no_shares_if_others_are_possible():
    hits = [1, 0, 1, 1, 0]
    found = intervals_of_means(sample_of(hits), np.array([[0.0], [2.0]]))
    expected = interval_by_hand(hits, 0, 1 + 1 / 3)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-9)


def test_queries_without_a_weight_are_no_part_of_an_interval():
    values, ranges = [0.2, 0.3, 0.5, 0.4], np.array([[0.0], [1.0]])
    whole = intervals_of_means(sample_of(values), ranges)
    longer = sample_of([*values, 0.9, 0.0], weights=[1, 1, 1, 1, 0, 0])
    np.testing.assert_allclose(intervals_of_means(longer, ranges), whole, rtol=1e-12)


def test_weighted_hits_are_no_shares_and_weights_of_0_change_nothing():
    hits, ranges = [1, 0, 1, 1], np.array([[0.0], [1.0]])
    weighted = intervals_of_means(sample_of(hits, weights=[2, 1, 1, 1]), ranges)
    assert not np.allclose(weighted[:, 0], exact(3, 4), rtol=1e-3)
    equal = sample_of([*hits, 0], weights=[2, 2, 2, 2, 0])
    found = intervals_of_means(equal, ranges)
    np.testing.assert_allclose(found[:, 0], exact(3, 4), rtol=1e-9)


def test_the_smaller_effective_number_is_that_of_a_difference():
    """Of weights 3, 1, 1, 1 it is 6^2 / 12 = 3, and of equal ones 4, by Kish."""
    values, zeros = [0.2, 0.3, 0.5, 0.4], [0.0] * 4
    equal, weighted = sample_of(zeros), sample_of(values, weights=[3, 1, 1, 1])
    ranges = np.array([[0.0], [1.0]])
    found = intervals_of_differences(equal, weighted, ranges)[:, 0]
    mean, number = weighted.means[0], 3
    low, high = 0.2 - 0.1, 0.5 + 0.1
    center = (number * mean + 0.5 * (low + high)) / (number + 1)
    squares = (np.square(weighted.influences).sum() + (mean - center) ** 2 / 3) * 9
    squares += 0.5 * ((low - center) ** 2 + (high - center) ** 2)
    variance = squares / ((number + 1) * (number + 2))
    share, width = (center - low) / (high - low), high - low
    both = share * (1 - share) * width**2 / variance - 1
    shape = share * both, (1 - share) * both
    ends = scipy.stats.beta.ppf([0.025, 0.975], *shape, low, width)
    wider = scipy.stats.t.ppf(0.975, 2) / scipy.stats.norm.ppf(0.975)
    expected = np.clip(mean + (ends - mean) * wider, low, high)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("sign", [1, -1])
def test_differences_that_are_rounding_of_large_values_are_equal(sign):
    large = sign * np.array([1e6, 1e6 + 1, 1e6, 1e6 - 1])
    first, second = sample_of(large), sample_of(large + [0, 1e-9, 0, 0])
    ranges = np.array([[-np.inf], [np.inf]])
    found = intervals_of_differences(first, second, ranges)
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


def test_values_at_the_ends_of_the_range_are_no_warning():
    ends = [0.0, 1.0, 0.5]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare({"old": {"mrr": ends}, "new": {"mrr": ends[::-1]}})


@pytest.mark.parametrize("number", [2, 3, 8])
def test_the_t_test_is_that_of_scipy(number):
    one, other = np.random.default_rng(number).random((2, number))
    models = {"old": {"x": one}, "new": {"x": other}}
    (found,) = compare(models, test="t").differences
    assert found.p == pytest.approx(scipy.stats.ttest_rel(other, one).pvalue)


def test_one_query_has_no_p_value_of_the_t_test():
    models = {"old": {"x": [0.1]}, "new": {"x": [0.4]}}
    assert math.isnan(compare(models, test="t").differences[0].p)


def test_the_smallest_p_values_of_swaps():
    """2 / 2^m for m different queries; from 2^m swaps on, that of random swaps."""
    found = smallest_p(np.array([0, 1, 2, 6, 7, 20]), 100)
    expected = [1, 1, 0.5, 2 / 64, 1 / 101, 1 / 101]
    assert found == pytest.approx([*expected[:4], max(2 / 128, 1 / 101), expected[5]])


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
