"""The records of a comparison: `Mean`, `Difference` with its power, `JudgeBias`."""

from __future__ import annotations

import math
import numbers
import statistics
from typing import NamedTuple

SIGNIFICANT = 0.05


class Mean(NamedTuple):
    """The mean of a model, with its 95% interval.

    Attributes:
        slice: The values of the columns of `by`, a tuple; None for all queries.
        metric: The metric.
        model: The model.
        mean: The mean over the queries.
        standard_error: The standard error of the mean.
        low: The lower end of the 95% interval.
        high: The upper end.
        queries: The number of queries; with `people=`, of those that people graded.
    """

    slice: tuple | None
    metric: str
    model: str
    mean: float
    standard_error: float
    low: float
    high: float
    queries: int


class Difference(NamedTuple):
    """The mean of the second model minus that of the first, with its 95% interval.

    Attributes:
        slice: The values of the columns of `by`, a tuple; None for all queries.
        metric: The metric.
        models: The first and the second model.
        difference: The difference of the means.
        standard_error: The standard error of the difference.
        low: The lower end of the 95% interval.
        high: The upper end.
        p: The p-value, before the correction for several comparisons.
        wins: The number of queries in which the second model is better.
        losses: The number of queries in which the first model is better.
        ties: The number of queries in which both are equal.
        differing: The number of queries whose values or weights differ.
        effective_queries: How many queries of equal weights would be as precise:
            sum(w)^2 / sum(w^2), the smaller one of both models. With `paired=False`,
            how many queries in two arms of the same size.
        smallest_p: The smallest p-value that any outcome of these queries could have;
            0 without a limit.
        adjusted_p: The p-value after the correction.
        is_opposed: Whether Wilcoxon's ranks point in the other direction than the
            difference of the means, which is then never significant.
        unpaired: The number of queries of both models with `paired=False`, where wins,
            losses and ties are 0; otherwise 0.
        queries: The number of queries; with `people=`, of those that people graded.
        is_significant: Whether the adjusted p-value is below 0.05.
    """

    slice: tuple | None
    metric: str
    models: tuple[str, str]
    difference: float
    standard_error: float
    low: float
    high: float
    p: float
    wins: int
    losses: int
    ties: int
    differing: int
    effective_queries: float
    smallest_p: float = 0
    adjusted_p: float = math.nan
    is_opposed: bool = False
    unpaired: int = 0

    @property
    def queries(self) -> int:
        """The number of queries."""
        return self.wins + self.losses + self.ties + self.unpaired

    @property
    def is_significant(self) -> bool:
        """Whether the adjusted p-value is below 0.05."""
        return self.adjusted_p < SIGNIFICANT and not self.is_opposed

    def detectable_difference(self, power: float = 0.8) -> float:
        """The smallest true difference that this number of queries would detect.

        A test of as many queries, with the same variance of differences, yields p <
        0.05 with the probability `power` (without an adjustment for several
        comparisons). It is NaN for too few queries, or if none differs. Source:
        Guenther, "Sample size formulas for normal theory t tests", The American
        Statistician 35, 1981.

        Args:
            power: A probability above 0 and below 1. Default 0.8.
        """
        of_test, both = _quantiles(power)
        degrees = self.effective_queries - of_test**2 / 2
        if degrees <= 0 or not self.standard_error or self.smallest_p >= SIGNIFICANT:
            return math.nan
        return both * self.standard_error * math.sqrt(self.effective_queries / degrees)

    def queries_needed(self, difference: float, power: float = 0.8) -> int:
        """The number of queries that would detect a true difference of this size.

        The inverse of `detectable_difference`, and at least the smallest number that
        can reach significance. With `paired=False`, it is the number for each arm.
        With `people=`, people grade so many, and the judge as many times as many others
        as here.

        Args:
            difference: The true difference, a finite number other than 0.
            power: The probability of p < 0.05, above 0 and below 1. Default 0.8.

        Raises:
            ValueError: An argument is not one of these, or no two queries differ.
        """
        is_number = isinstance(difference, numbers.Real) and math.isfinite(difference)
        if not is_number or not difference:
            raise ValueError(
                "`difference` must be a finite number other than 0. Received: "
                f"{difference!r}."
            )
        if not self.standard_error > 0:
            raise ValueError(
                "`queries_needed` needs queries whose differences vary. Received: "
                f"{self.queries} queries, {self.differing} of which differ."
            )
        of_test, both = _quantiles(power)
        ratio = both * self.standard_error / difference
        effective = self.effective_queries * ratio**2 + of_test**2 / 2
        if self.unpaired:
            return math.ceil(effective / 2)
        needed = math.ceil(effective * (self.queries / self.effective_queries))
        if not self.smallest_p:  # a test without a limit
            return needed
        # The least m with 2 / 2^m below 0.05, the number of queries that must differ.
        least = math.floor(math.log2(2 / SIGNIFICANT)) + 1
        return max(needed, math.ceil(least * self.queries / self.differing))


class JudgeBias(NamedTuple):
    """By how much a judge overrates a model, or the difference of two models.

    Attributes:
        slice: The values of the columns of `by`, a tuple; None for all queries.
        metric: The metric.
        models: The model, or the first and the second model of a difference.
        bias: The value by the judge minus that by people, in the queries that people
            graded. Above 0, the judge overrates the model, or prefers the second one.
        standard_error: The standard error of the bias.
        low: The lower end of its 95% interval.
        high: The upper end.
        queries: The number of queries that people graded.
        other_queries: The number of queries that only the judge graded.
        weight: How much the judge counts, from 0 (people alone) to 1.
        effective_queries: How many queries people alone would have to grade for the
            same precision.
    """

    slice: tuple | None
    metric: str
    models: tuple[str, ...]
    bias: float
    standard_error: float
    low: float
    high: float
    queries: int
    other_queries: int
    weight: float
    effective_queries: float


def _quantiles(power: float) -> tuple[float, float]:
    """The normal quantile of the test, and its sum with that of the power."""
    if not isinstance(power, numbers.Real) or not SIGNIFICANT < power < 1:
        raise ValueError(
            f"`power` must be above {SIGNIFICANT:g}, which the test reaches without a "
            f"difference, and below 1. Received: {power!r}."
        )
    normal = statistics.NormalDist()
    quantile = normal.inv_cdf(1 - SIGNIFICANT / 2)
    return quantile, quantile + normal.inv_cdf(power)
