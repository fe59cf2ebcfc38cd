"""95% intervals of estimates, and tests of differences.

Student's interval fails for few queries with skewed values. If 5% of the queries have a
hit, it covers the mean in 92% of all samples of 50 queries, but only in 40% of those of
ten: most of these contain no hit, and its width is 0.

The interval follows Rubin, "The Bayesian bootstrap", Annals of Statistics 9, 1981: the
unknown mean is sum(D x) / sum(D), where each value x has a random weight D of the
distribution Gamma(1). Two more values with Gamma(1/2) represent unobserved values, one
at each end of the possible values, as in Jeffreys' prior for a share (Brown, Cai and
DasGupta, "Interval estimation for a binomial proportion", Statistical Science 16,
2001). The ends are a third of the observed spread beyond the lowest and the highest
value, but within the range of the metric; or the range, if all values are equal. The
distribution of the mean is approximated by the beta distribution between the ends with
the same mean and variance, and widened as Student's t distribution is wider than the
normal one.

If all values are 0 or 1, as the range of the metric is, and all weights are equal, the
interval is the exact one of Clopper and Pearson.

The interval of a difference of different queries follows from those of both means by
Zou and Donner, "Construction of confidence limits about effect measures: a general
approach", Statistics in Medicine 27, 2008.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tfrankmetrics.comparison.samples import (
    ROUNDING,
    Arms,
    Corrected,
    Estimate,
    Pair,
    Sample,
)
from tfrankmetrics.comparison.signed_ranks import wilcoxon_test
from tfrankmetrics.installation import require

NUMBERS_AT_A_TIME = 2**22  # of random numbers, which bounds the memory
CONFIDENCE = 0.95
# How far the ends are beyond the values, as a part of their spread: with it, intervals
# cover in 93 to 97% of the samples of tests/interval_coverage.py, where they can.
BEYOND = 1 / 3
WEIGHT_OF_END = 0.5


def intervals(of: Estimate, ranges: np.ndarray) -> np.ndarray:
    """The lower and upper ends for each metric, `[2, metrics]`.

    They are NaN for fewer than two queries, and for equal values of a metric without a
    range.

    Args:
        of: Means or differences.
        ranges: The lowest and highest possible values, `[2, metrics]`; may be infinite.
    """
    match of:
        case Sample():
            return _intervals_of_means(of, ranges)
        case Arms():
            return _intervals_of_arms(of, ranges)
        case Corrected():
            alone = intervals(of.people, ranges)
            ends = _intervals_of_corrected(of, _limits(of, ranges))
            return np.where(of.weights == 0, alone, ends)
        case _:
            return _intervals_of_differences(of, _limits(of, ranges))


def _limits(of: Any, ranges: np.ndarray) -> np.ndarray:
    """The lowest and highest possible values of an estimate, from those of metrics."""
    match of:
        case Pair():
            limits = _limits(of.first, ranges)
            return limits - limits[::-1]
        case Corrected():
            return _limits(of.people, ranges)
        case _:
            return ranges


def _intervals_of_means(sample: Sample, ranges: np.ndarray) -> np.ndarray:
    ends = _intervals(sample, _ends(sample, sample.values, ranges))
    # Shares: all values are 0 or 1, with equal weights.
    distances = np.minimum(np.abs(sample.values), np.abs(sample.values - 1))
    is_share = (distances <= ROUNDING).all(axis=0)
    is_share &= (ranges == [[0], [1]]).all(axis=0)
    is_counted = sample.is_included
    lightest = np.min(sample.weights, axis=0, initial=np.inf, where=is_counted)
    is_share &= lightest == sample.weights.max(axis=0, initial=0)
    if not is_share.any():
        return ends
    hits = np.round((sample.values * is_counted).sum(axis=0))
    misses, tail = sample.numbers - hits, (1 - CONFIDENCE) / 2
    inverse = _scipy("special").betaincinv
    low = np.where(hits > 0, inverse(hits, misses + 1, tail), 0)
    high = np.where(misses > 0, inverse(hits + 1, misses, 1 - tail), 1)
    exact = np.where(sample.numbers > 1, [low, high], np.nan)
    return np.where(is_share, exact, ends)


def _intervals_of_differences(pair: Any, limits: np.ndarray) -> np.ndarray:
    """Intervals of the differences in the same queries.

    Where the models weight queries differently, the difference may be beyond the
    difference of any query. There, each query has the value at which it would have the
    same influence on an unweighted mean.
    """
    first, second = pair.first, pair.second
    values = np.clip(pair.influencing_values, *limits)
    if isinstance(first, Sample):
        is_exact = (first.weights == second.weights).all(axis=0)
        values = np.where(is_exact, second.values - first.values, values)
    return _intervals(pair, _ends(pair, values, limits))


def _intervals_of_corrected(of: Corrected, limits: np.ndarray) -> np.ndarray:
    """Intervals of estimates by people, corrected by a judge.

    Each query that people graded has the value with its influence on an unweighted
    mean. The mean may be beyond the ends of these by those of the other queries.
    """
    ends = _ends(of.people, of.influencing_values, limits)
    others = of.judge_of_others
    beyond = _ends(others, np.clip(others.influencing_values, *limits), limits)
    with np.errstate(invalid="ignore"):  # of infinite ends
        beyond = of.weights * (beyond - others.means)
    return np.clip(_intervals(of, ends, beyond), *limits)


def _intervals_of_arms(arms: Arms, ranges: np.ndarray) -> np.ndarray:
    """Intervals of the differences of different queries, from those of both means."""
    first, second = (
        np.abs(intervals(each, ranges) - each.means)
        for each in (arms.first, arms.second)
    )
    return arms.means + np.hypot(second, first[::-1]) * [[-1], [1]]


def _intervals(of: Estimate, ends: Any, beyond: Any = 0.0) -> np.ndarray:
    """Intervals from the ends of the values of queries, or of their differences.

    `beyond` is how far the mean may be beyond these ends, `[2, metrics]`.
    """
    means, influences, number = of.means, of.influences, of.effective_numbers
    low, high = ends
    total = number + 2 * WEIGHT_OF_END
    with np.errstate(all="ignore"):  # of metrics without an interval
        # The mean and the variance of the Bayesian bootstrap, with the two ends.
        center = (number * means + WEIGHT_OF_END * (low + high)) / total
        squares = np.einsum("qm,qm->m", influences, influences) * number**2
        squares += number * (means - center) ** 2
        squares += WEIGHT_OF_END * ((low - center) ** 2 + (high - center) ** 2)
        variance = squares / (total * (total + 1))
        low, high = ends + beyond
        # The beta distribution between the ends with this mean and variance.
        width = high - low
        place = (center - low) / width
        concentration = place * (1 - place) * width**2 / variance - 1
        shape = place * concentration, (1 - place) * concentration
        tails = np.array([[1 - CONFIDENCE], [1 + CONFIDENCE]]) / 2
        found = low + width * _scipy("special").betaincinv(*shape, tails)
        found = means + (found - means) * _wider_than_normal(of.degrees)
        found = np.clip(found, low, high)
    return np.where(number > 1, found, np.nan)


def _wider_than_normal(degrees: np.ndarray) -> np.ndarray:
    """How much wider Student's t distribution is, by the degrees of freedom."""
    special, tail = _scipy("special"), (1 + CONFIDENCE) / 2
    return special.stdtrit(np.maximum(degrees, 1), tail) / special.ndtri(tail)


def _ends(of: Any, values: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """The lowest and the highest value that may occur; infinite if unknown."""
    lowest = np.min(values, axis=0, initial=np.inf, where=of.is_included)
    highest = np.max(values, axis=0, initial=-np.inf, where=of.is_included)
    beyond = BEYOND * (highest - lowest)
    is_equal = highest - lowest <= ROUNDING * of.largest
    low, high = np.minimum(ranges[0], lowest), np.maximum(ranges[1], highest)
    of_values = np.maximum(low, lowest - beyond), np.minimum(high, highest + beyond)
    return np.where(is_equal, [low, high], of_values)


def significance_test(
    of: Any, test: str, resamples: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two-sided p-values of each metric, and the smallest that any outcome could have.

    The third array has the sign of what was tested: of the difference of the means, or
    of the sum of Wilcoxon's signed ranks.

    The smallest p-values are 0 where they do not depend on the queries: for the t-test
    and the bootstrap. The tests that swap models have a limit: if m queries differ, two
    of the 2^m swaps lead to the largest difference, to swap no query, and to swap all.
    With random swaps, the p-value is at least 1 / (number of swaps + 1).
    """
    if test in ("t", "bootstrap"):
        if test == "t":
            p = _t_test(of)
        elif isinstance(of, Arms):
            p = _bootstrap_test_of_arms(of, resamples, seed)
        else:
            p = _bootstrap_test(of, resamples, seed)
        return p, np.zeros_like(p), of.means
    num_different = of.is_different.sum(axis=0)
    limit = np.minimum(1.0, 2.0 ** (1.0 - num_different))
    if test == "wilcoxon":
        p, rank_sums = _wilcoxon_tests(of)
        return p, limit, rank_sums
    is_random = num_different > np.log2(resamples)
    limit[is_random] = np.maximum(limit[is_random], 1 / (resamples + 1))
    return _randomization_test(of, is_random, resamples, seed), limit, of.means


def _wilcoxon_tests(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """p-values of Wilcoxon's test, and the sums of the signed ranks."""
    differences = pair.second.values - pair.first.values
    rounding = ROUNDING * pair.largest
    tests = [
        wilcoxon_test(differences[is_included, metric], rounding[metric])
        for metric, is_included in enumerate(pair.is_included.T)
    ]
    p, rank_sums = np.array(tests).T
    return p, rank_sums


def _t_test(of: Estimate) -> np.ndarray:
    """p-values of the t-test; 1 if the difference is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.abs(of.means) / of.standard_errors
    t = np.where(of.means == 0, 0, ratios)
    # NaN without degrees of freedom.
    return 2 * _scipy("stats").t.sf(t, of.degrees)


def _randomization_test(
    pair: Pair, is_random: np.ndarray, resamples: int, seed: int
) -> np.ndarray:
    """How often random swaps of the models differ as much.

    Of a metric that is not `is_random`, all different swaps are enumerated. The p-value
    of a metric does not depend on the other metrics: random swaps are drawn for all
    queries, whether they differ in a metric or not.
    """
    p = np.full(len(is_random), np.nan)
    for metric in np.flatnonzero(~is_random):
        queries = np.flatnonzero(pair.is_different[:, metric])
        swaps = _all_swaps(len(queries))
        exceeds = _exceeding(pair, queries, np.array([metric]), swaps)
        p[metric] = exceeds[0] / 2.0 ** len(queries)
    metrics, queries = np.flatnonzero(is_random), np.arange(len(pair.is_different))
    if len(metrics):
        swaps = _random_swaps(len(queries), resamples, seed)
        exceeds = _exceeding(pair, queries, metrics, swaps)
        p[metrics] = (exceeds + 1) / (resamples + 1)
    return np.where(pair.first.numbers > 0, p, np.nan)


def _exceeding(
    pair: Pair, queries: np.ndarray, metrics: np.ndarray, blocks: Iterable[np.ndarray]
) -> np.ndarray:
    """How many swaps of some queries differ as much as the samples, `[metrics]`."""
    columns = np.append(metrics, metrics + len(pair.means))
    one, other = (
        each.terms.take(columns, axis=1) for each in (pair.first, pair.second)
    )
    changes, sums = (other - one)[queries], (one.sum(axis=0), other.sum(axis=0))

    def differences(swaps: np.ndarray) -> np.ndarray:
        moved = swaps @ changes
        return np.abs(_ratio(sums[1] - moved) - _ratio(sums[0] + moved))

    # Swaps that yield the observed difference up to rounding are treated as equal to
    # it. The tolerance is a part of the values, which are rounded, not of the
    # differences. `differences` rounds alike in all swaps; the observed difference is
    # that of no swap.
    observed = differences(np.zeros((1, len(queries))))[0]
    scale = sum(_ratio(np.abs(each).sum(axis=0)) for each in (one, other))
    least = observed - ROUNDING * scale
    exceeds = np.zeros(len(observed))
    for swaps in blocks:
        exceeds += (differences(swaps) >= least).sum(axis=0)
    return exceeds


def _bootstrap_test(pair: Pair, resamples: int, seed: int) -> np.ndarray:
    """How often differences of drawn queries are as far from the observed one as 0 is.

    Queries are drawn with replacement. Draws from few queries vary less than samples
    do: their distances are scaled by sqrt(n / (n - 1)), and by how much wider Student's
    t distribution with n - 1 degrees of freedom is than the normal one, where n is the
    effective number of queries.
    """
    terms = np.concatenate([pair.first.terms, pair.second.terms], axis=1)
    n = np.maximum(pair.effective_numbers, 2)
    wider = np.sqrt(n / (n - 1)) * _wider_than_normal(n - 1)
    least = np.abs(pair.means) * (1 - ROUNDING)
    exceeds = np.zeros(len(n))
    for counts in _random_counts(len(terms), resamples, seed):
        one, other = np.split(counts @ terms, 2, axis=1)
        with np.errstate(invalid="ignore"):
            distances = np.abs(_ratio(other) - _ratio(one) - pair.means) * wider
            exceeds += (distances >= least).sum(axis=0)
    p = (exceeds + 1) / (resamples + 1)
    return np.where(pair.effective_numbers > 1, p, np.nan)


def _bootstrap_test_of_arms(arms: Arms, resamples: int, seed: int) -> np.ndarray:
    """The same for different queries, which are drawn in each arm."""
    moved = [np.zeros(0)] * 2
    for number, sample in enumerate((arms.first, arms.second)):
        terms = sample.of(sample.is_included.any(axis=1)).terms
        n = np.maximum(sample.effective_numbers, 2)
        blocks = _random_counts(len(terms), resamples, [seed, number])
        means = np.concatenate([_ratio(counts @ terms) for counts in blocks])
        moved[number] = (means - sample.means) * np.sqrt(n / (n - 1))
    distances = np.abs(moved[1] - moved[0]) * _wider_than_normal(arms.degrees)
    exceeds = (distances >= np.abs(arms.means) * (1 - ROUNDING)).sum(axis=0)
    return np.where(arms.standard_errors >= 0, (exceeds + 1) / (resamples + 1), np.nan)


def adjusted(p: np.ndarray, correction: str | None) -> np.ndarray:
    """p-values adjusted for their number; NaN stays NaN and is not counted."""
    number = np.count_nonzero(~np.isnan(p))
    order = np.argsort(p, kind="stable")[:number]  # NaN is last
    ascending, ranks, result = p[order], np.arange(1, number + 1), p.copy()
    match correction:
        case "bonferroni":
            result[order] = np.minimum(1, number * ascending)
        case "holm":
            factors = number + 1 - ranks
            result[order] = np.minimum(1, np.maximum.accumulate(factors * ascending))
        case "bh":  # Benjamini and Hochberg
            shares = number * ascending / ranks
            result[order] = np.minimum.accumulate(shares[::-1])[::-1]
        case _:  # None
            pass
    return result


def _ratio(sums: np.ndarray) -> np.ndarray:
    """Means from the sums of w v and of w, `[..., 2 metrics]`."""
    numerators, denominators = np.split(sums, 2, axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return numerators / denominators


def _all_swaps(num: int) -> Iterator[np.ndarray]:
    """Zeros and ones, float64 `[swaps, num]`, a block at a time."""
    start = 0
    for size in _blocks(num, 2**num):
        numbers = np.arange(start, start + size)
        yield ((numbers[:, np.newaxis] >> np.arange(num)) & 1).astype(float)
        start += size


def _random_swaps(num: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Zeros and ones, float64 `[draws, num]`, a block at a time."""
    rng = np.random.default_rng(seed)
    for draws in _blocks(num, resamples):
        numbers = rng.integers(0, 256, (draws, -(-num // 8)), np.uint8)
        yield np.unpackbits(numbers, axis=1, count=num).astype(float)


def _random_counts(num: int, resamples: int, seed: Any) -> Iterator[np.ndarray]:
    """How often each query was drawn, float64 `[draws, num]`, a block at a time."""
    rng = np.random.default_rng(seed)
    for draws in _blocks(num, resamples):
        drawn = rng.integers(0, num, (draws, num))
        drawn += num * np.arange(draws)[:, np.newaxis]
        counts = np.bincount(drawn.ravel(), minlength=draws * num)
        yield counts.reshape(draws, num).astype(float)


def _blocks(num: int, resamples: int) -> Iterator[int]:
    size = max(1, NUMBERS_AT_A_TIME // max(1, num))
    for start in range(0, resamples, size):
        yield min(size, resamples - start)


def _scipy(module: str) -> Any:
    return require(f"scipy.{module}", "`compare`")
