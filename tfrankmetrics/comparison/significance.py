"""Standard errors, 95% intervals and paired tests of weighted means over queries.

The mean of a metric is sum(w v) / sum(w), over the queries with the values v and the
weights w. Because it is a ratio of sums, its standard error follows from each query's
influence u = w (v - mean) / sum(w) on it:

    standard error^2 = n / (n - 1) * sum(u^2)

Here n is the effective number of queries, sum(w)^2 / sum(w^2), of Kish, "Survey
Sampling", 1965. With equal weights it is the number of queries, and the formula is the
variance of the values / n. The influence on the difference of two models is the
difference of the influences, and n is the smaller one of both models. Therefore, all
formulas hold for weighted queries, and for micro averages, whose weights may differ
between models. The t-test has n - 1 degrees of freedom.

Student's interval fails for few queries with skewed values. If 5% of the queries have a
hit, it covers the mean in 92% of all samples of 50 queries, but only in 40% of those of
ten, because most of these samples contain no hit and its width is 0.

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
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tfrankmetrics.comparison.signed_ranks import wilcoxon_test
from tfrankmetrics.installation import require

ROUNDING = 1e-12  # a relative difference up to this one is rounding
NUMBERS_AT_A_TIME = 2**22  # of random numbers, which bounds the memory
CONFIDENCE = 0.95
# How far the ends are beyond the values, as a part of their spread: chosen so that
# intervals cover in 93 to 97% of the samples of tests/interval_coverage.py, where they
# can.
BEYOND = 1 / 3
WEIGHT_OF_END = 0.5


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """The values and weights of a model's queries, both `[queries, metrics]`.

    Both are 0 for excluded queries.
    """

    values: np.ndarray
    weights: np.ndarray

    def of(self, queries: Any) -> Sample:
        """Some of the queries."""
        return Sample(self.values[queries], self.weights[queries])

    def rounded_like(self, other: Sample) -> Sample:
        """The same sample, equal to `other` where they differ only by rounding.

        Otherwise a test would find that all queries differ, in the same direction. The
        weights are also equal if all differ by the same factor, which changes no mean.
        """

        def rounded(numbers: np.ndarray, others: np.ndarray) -> np.ndarray:
            is_rounding = np.abs(numbers - others) <= ROUNDING * np.abs(others)
            return np.where(is_rounding, others, numbers)

        with np.errstate(invalid="ignore", divide="ignore"):
            scaled = rounded(self.weights * (other.totals / self.totals), other.weights)
        weights = rounded(self.weights, other.weights)
        weights = np.where((scaled == other.weights).all(axis=0), scaled, weights)
        return Sample(rounded(self.values, other.values), weights)

    @functools.cached_property
    def terms(self) -> np.ndarray:
        """The columns w v and w, whose sums make the means, `[queries, 2 metrics]`."""
        return np.concatenate([self.weights * self.values, self.weights], axis=1)

    @functools.cached_property
    def totals(self) -> np.ndarray:
        """The sum of the weights of each metric."""
        return self.weights.sum(axis=0)

    @functools.cached_property
    def largest(self) -> np.ndarray:
        """The largest absolute value of each metric."""
        return np.abs(self.values).max(axis=0, initial=0)

    @functools.cached_property
    def means(self) -> np.ndarray:
        """The mean of each metric; NaN if no query is included."""
        with np.errstate(invalid="ignore"):
            return (self.weights * self.values).sum(axis=0) / self.totals

    @functools.cached_property
    def influences(self) -> np.ndarray:
        """The influence of each query on each mean, `[queries, metrics]`."""
        with np.errstate(invalid="ignore"):
            moved = self.values - self.means
            moved *= self.weights / self.totals
            return moved

    @functools.cached_property
    def numbers(self) -> np.ndarray:
        """The number of queries included in each metric."""
        return np.count_nonzero(self.weights, axis=0)

    @functools.cached_property
    def effective_numbers(self) -> np.ndarray:
        """The effective number of weighted queries of each metric, by Kish's formula.

        It is the exact number of queries if all weights are equal.
        """
        largest = self.weights.max(axis=0, initial=0)
        parts = self.weights / np.where(largest > 0, largest, 1)
        squares = np.einsum("qm,qm->m", parts, parts)
        return parts.sum(axis=0) ** 2 / np.maximum(squares, 1)


def effective_numbers(*samples: Sample) -> np.ndarray:
    """The effective number of queries; of a difference, the smaller one of both."""
    return np.min([each.effective_numbers for each in samples], axis=0)


def standard_errors(influences: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The standard error of each metric, NaN for fewer than two effective queries."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        factors = np.where(numbers > 1, numbers / (numbers - 1), np.nan)
        return np.sqrt(factors * np.einsum("qm,qm->m", influences, influences))


def intervals_of_means(sample: Sample, ranges: np.ndarray) -> np.ndarray:
    """The lower and upper ends for each metric, `[2, metrics]`.

    They are NaN for fewer than two queries, and for equal values of a metric without a
    range.

    Args:
        sample: The values and weights of the queries.
        ranges: The lowest and highest possible values, `[2, metrics]`; may be infinite.
    """
    found = _intervals(sample.means, sample.values, sample.influences, ranges, sample)
    # Shares: all values are 0 or 1, with equal weights.
    distances = np.minimum(np.abs(sample.values), np.abs(sample.values - 1))
    is_share = (distances <= ROUNDING).all(axis=0)
    is_share &= (ranges == [[0], [1]]).all(axis=0)
    is_counted = sample.weights > 0
    lightest = np.min(sample.weights, axis=0, initial=np.inf, where=is_counted)
    is_share &= lightest == sample.weights.max(axis=0, initial=0)
    if is_share.any():
        hits = np.round((sample.values * is_counted).sum(axis=0))
        misses, tail = sample.numbers - hits, (1 - CONFIDENCE) / 2
        inverse = _scipy("special").betaincinv
        low = np.where(hits > 0, inverse(hits, misses + 1, tail), 0)
        high = np.where(misses > 0, inverse(hits + 1, misses, 1 - tail), 1)
        exact = np.where(sample.numbers > 1, [low, high], np.nan)
        found = np.where(is_share, exact, found)
    return found


def intervals_of_differences(
    first: Sample, second: Sample, ranges: np.ndarray
) -> np.ndarray:
    """The same for the differences of means, the second sample minus the first.

    Where the models weight queries differently, the difference may be beyond the
    difference of any query. There, each query has the value at which it would have the
    same influence on an unweighted mean.
    """
    means, influences = second.means - first.means, second.influences - first.influences
    ranges = ranges - ranges[::-1]
    influenced = means + first.numbers * influences
    values = np.where(
        (first.weights == second.weights).all(axis=0),
        second.values - first.values,
        np.clip(influenced, *ranges),
    )
    return _intervals(means, values, influences, ranges, first, second)


def _intervals(
    means: np.ndarray,
    values: np.ndarray,
    influences: np.ndarray,
    ranges: np.ndarray,
    *samples: Sample,
) -> np.ndarray:
    """Intervals from the values of queries, or from their differences."""
    special = _scipy("special")
    low, high = _ends(values, ranges, samples)
    number = effective_numbers(*samples)
    total = number + 2 * WEIGHT_OF_END
    with np.errstate(all="ignore"):  # of metrics without an interval
        # The mean and the variance of the Bayesian bootstrap, with the two ends.
        center = (number * means + WEIGHT_OF_END * (low + high)) / total
        squares = np.einsum("qm,qm->m", influences, influences) * number**2
        squares += number * (means - center) ** 2
        squares += WEIGHT_OF_END * ((low - center) ** 2 + (high - center) ** 2)
        variance = squares / (total * (total + 1))
        # The beta distribution between the ends with this mean and variance.
        width = high - low
        place = (center - low) / width
        concentration = place * (1 - place) * width**2 / variance - 1
        shape = place * concentration, (1 - place) * concentration
        tails = np.array([[1 - CONFIDENCE], [1 + CONFIDENCE]]) / 2
        found = low + width * special.betaincinv(*shape, tails)
        # Wider, as Student's t distribution is wider than the normal one.
        degrees = np.maximum(number - 1, 1)
        wider = special.stdtrit(degrees, tails[1]) / special.ndtri(tails[1])
        found = np.clip(means + (found - means) * wider, low, high)
    return np.where(number > 1, found, np.nan)


def _ends(
    values: np.ndarray, ranges: np.ndarray, samples: Sequence[Sample]
) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest value that may occur; infinite if unknown."""
    is_included = np.any([each.weights > 0 for each in samples], axis=0)
    lowest = np.min(values, axis=0, initial=np.inf, where=is_included)
    highest = np.max(values, axis=0, initial=-np.inf, where=is_included)
    rounding = ROUNDING * np.max([each.largest for each in samples], axis=0)
    beyond = BEYOND * (highest - lowest)
    is_equal = highest - lowest <= rounding
    low, high = np.minimum(ranges[0], lowest), np.maximum(ranges[1], highest)
    return (
        np.where(is_equal, low, np.maximum(low, lowest - beyond)),
        np.where(is_equal, high, np.minimum(high, highest + beyond)),
    )


def paired_test(
    first: Sample, second: Sample, test: str, resamples: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two-sided p-values of each metric, and the smallest that any outcome could have.

    The third array has the sign of what was tested: of the difference of the means, or
    of the sum of Wilcoxon's signed ranks.

    The smallest p-values are 0 where they do not depend on the queries: for the t-test
    and the bootstrap. The tests that swap models have a limit: if m queries differ, two
    of the 2^m swaps lead to the largest difference, to swap no query, and to swap all.
    With random swaps, the p-value is at least 1 / (number of swaps + 1).
    """
    no_limit, differences = np.zeros(len(first.numbers)), second.means - first.means
    if test == "t":
        return _t_test(first, second), no_limit, differences
    if test == "bootstrap":
        p = _bootstrap_test(first, second, resamples, seed)
        return p, no_limit, differences
    num_different = differs(first, second).sum(axis=0)
    limit = np.minimum(1.0, 2.0 ** (1.0 - num_different))
    if test == "wilcoxon":
        p, rank_sums = _wilcoxon_tests(first, second)
        return p, limit, rank_sums
    is_random = num_different > np.log2(resamples)
    limit[is_random] = np.maximum(limit[is_random], 1 / (resamples + 1))
    return _randomization_test(first, second, resamples, seed), limit, differences


def _wilcoxon_tests(first: Sample, second: Sample) -> tuple[np.ndarray, np.ndarray]:
    """p-values of Wilcoxon's test, and the sums of the signed ranks."""
    rounding = ROUNDING * np.maximum(first.largest, second.largest)
    found = []
    for metric, is_included in enumerate((first.weights > 0).T):
        values = [each.values[is_included, metric] for each in (first, second)]
        found.append(wilcoxon_test(values[1] - values[0], rounding[metric]))
    p, rank_sums = np.array(found).T
    return p, rank_sums


def _t_test(first: Sample, second: Sample) -> np.ndarray:
    """p-values of the paired t-test; 1 if no query differs."""
    numbers, differences = effective_numbers(first, second), second.means - first.means
    errors = standard_errors(second.influences - first.influences, numbers)
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(differences == 0, 0, np.abs(differences) / errors)
    return 2 * _scipy("stats").t.sf(t, numbers - 1)  # NaN without degrees of freedom


def _randomization_test(
    first: Sample, second: Sample, resamples: int, seed: int
) -> np.ndarray:
    """How often random swaps of the models differ as much.

    If there are at most `resamples` different swaps for a metric, all of them are
    enumerated. The p-value of a metric does not depend on the other metrics: random
    swaps are drawn for all queries, whether they differ in a metric or not.
    """
    is_different = differs(first, second)
    is_enumerated = is_different.sum(axis=0) <= np.log2(resamples)
    p = np.full(len(is_enumerated), np.nan)
    for metric in np.flatnonzero(is_enumerated):
        queries = np.flatnonzero(is_different[:, metric])
        swaps = _all_swaps(len(queries))
        exceeds = _exceeding(first, second, queries, [metric], swaps)
        p[metric] = exceeds[0] / 2.0 ** len(queries)
    metrics, queries = np.flatnonzero(~is_enumerated), np.arange(len(is_different))
    if len(metrics):
        swaps = _random_swaps(len(queries), resamples, seed)
        exceeds = _exceeding(first, second, queries, metrics, swaps)
        p[metrics] = (exceeds + 1) / (resamples + 1)
    return np.where(first.numbers > 0, p, np.nan)


def differs(first: Sample, second: Sample) -> np.ndarray:
    """Whether a swap of each query changes a mean, `[queries, metrics]`."""
    weighted_values, weights = np.split(first.terms != second.terms, 2, axis=1)
    return weighted_values | weights


def _exceeding(
    first: Sample,
    second: Sample,
    queries: np.ndarray,
    metrics: Any,
    blocks: Iterable[np.ndarray],
) -> np.ndarray:
    """How many swaps of some queries differ as much as the samples, `[metrics]`."""
    one, other = (
        Sample(each.values[:, metrics], each.weights[:, metrics]).terms
        for each in (first, second)
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


def _bootstrap_test(
    first: Sample, second: Sample, resamples: int, seed: int
) -> np.ndarray:
    """How often differences of drawn queries are as far from the observed one as 0 is.

    Queries are drawn with replacement. Draws from few queries vary less than samples
    do. Therefore, their distances are scaled by sqrt(n / (n - 1)), and by how much
    wider Student's t distribution with n - 1 degrees of freedom is than the normal one,
    where n is the effective number of queries.
    """
    terms = np.concatenate([first.terms, second.terms], axis=1)
    observed = second.means - first.means
    numbers = effective_numbers(first, second)
    n = np.maximum(numbers, 2)
    stats = _scipy("stats")
    wider = np.sqrt(n / (n - 1)) * stats.t.ppf(0.975, n - 1) / stats.norm.ppf(0.975)
    exceeds = np.zeros(len(n))
    for counts in _random_counts(len(terms), resamples, seed):
        one, other = np.split(counts @ terms, 2, axis=1)
        with np.errstate(invalid="ignore"):
            distances = np.abs(_ratio(other) - _ratio(one) - observed) * wider
            exceeds += (distances >= np.abs(observed) * (1 - ROUNDING)).sum(axis=0)
    p = (exceeds + 1) / (resamples + 1)
    return np.where(numbers > 1, p, np.nan)


def adjusted(p: np.ndarray, correction: str | None) -> np.ndarray:
    """p-values adjusted for their number; NaN stays NaN and is not counted."""
    is_number = ~np.isnan(p)
    number = int(is_number.sum())
    if correction is None or number == 0:
        return p
    result = p.copy()
    if correction == "bonferroni":
        result[is_number] = np.minimum(1, number * p[is_number])
        return result
    order = np.argsort(p, kind="stable")[:number]  # NaN is last
    ranks = np.arange(1, number + 1)
    if correction == "bh":  # Benjamini and Hochberg
        shares = number * p[order] / ranks
        result[order] = np.minimum.accumulate(shares[::-1])[::-1]
        return result
    factors = number + 1 - ranks  # Holm
    result[order] = np.minimum(1, np.maximum.accumulate(factors * p[order]))
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


def _random_counts(num: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
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
