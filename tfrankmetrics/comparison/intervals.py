"""95% intervals of means, and of their differences, for any number of queries.

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

If all values are 0 or 1, and all weights are equal, the interval is the exact one of
Clopper and Pearson.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrankmetrics.comparison.significance import ROUNDING, Sample
from tfrankmetrics.results.text_tables import require

CONFIDENCE = 0.95
# How far the ends are beyond the values, as a part of their spread: chosen so that
# intervals cover in 93 to 97% of the samples of tests/interval_coverage.py, where they
# can.
BEYOND = 1 / 3
WEIGHT_OF_END = 0.5


def intervals_of_means(sample: Sample, ranges: np.ndarray) -> np.ndarray:
    """The lower and upper ends for each metric, `[2, metrics]`.

    They are NaN for fewer than two queries, and for equal values of a metric without a
    range.

    Args:
        sample: The values and weights of the queries.
        ranges: The lowest and highest possible values, `[2, metrics]`; may be infinite.
    """
    found = _intervals(sample.means, sample.values, sample.influences, ranges, sample)
    is_share = _are_shares(sample) & (ranges == [[0], [1]]).all(axis=0)
    if is_share.any():
        hits = np.round((sample.values * (sample.weights > 0)).sum(axis=0))
        misses, tail = sample.numbers - hits, (1 - CONFIDENCE) / 2
        inverse = _special().betaincinv
        low = np.where(hits > 0, inverse(hits, misses + 1, tail), 0)
        high = np.where(misses > 0, inverse(hits + 1, misses, 1 - tail), 1)
        exact = np.where(sample.numbers > 1, [low, high], np.nan)
        found = np.where(is_share, exact, found)
    return found


def intervals_of_differences(
    first: Sample, second: Sample, ranges: np.ndarray
) -> np.ndarray:
    """The same for the differences of means, the second sample minus the first."""
    return _intervals(
        second.means - first.means,
        second.values - first.values,
        second.influences - first.influences,
        ranges - ranges[::-1],
        first,
        second,
    )


def _intervals(
    means: np.ndarray,
    values: np.ndarray,
    influences: np.ndarray,
    ranges: np.ndarray,
    *samples: Sample,
) -> np.ndarray:
    """Intervals from the values of queries, or from their differences."""
    special = _special()
    low, high = _ends(values, ranges, samples)
    number = np.min([each.effective_numbers for each in samples], axis=0)
    total = number + 2 * WEIGHT_OF_END
    with np.errstate(all="ignore"):  # of metrics without an interval
        center = (number * means + WEIGHT_OF_END * (low + high)) / total
        squares = np.einsum("qm,qm->m", influences, influences) * number**2
        squares += number * (means - center) ** 2
        squares += WEIGHT_OF_END * ((low - center) ** 2 + (high - center) ** 2)
        variance = squares / (total * (total + 1))
        share, width = (center - low) / (high - low), high - low
        concentration = share * (1 - share) * width**2 / variance - 1
        shape = share * concentration, (1 - share) * concentration
        tails = np.array([[1 - CONFIDENCE], [1 + CONFIDENCE]]) / 2
        found = low + width * special.betaincinv(*shape, tails)
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


def _are_shares(sample: Sample) -> Any:
    """Whether all values are 0 or 1, and all weights are equal, in each metric."""
    distances = np.minimum(np.abs(sample.values), np.abs(sample.values - 1))
    is_whole = (distances <= ROUNDING).all(axis=0)
    is_counted = sample.weights > 0
    lightest = np.min(sample.weights, axis=0, initial=np.inf, where=is_counted)
    return is_whole & (lightest == sample.weights.max(axis=0, initial=0))


def _special() -> Any:
    """Quantiles of distributions, without the overhead of scipy.stats."""
    return require("scipy.special", "compare", "`compare`")
