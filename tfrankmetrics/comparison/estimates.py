"""The estimates of a comparison: means of models, and their differences."""

from __future__ import annotations

import math
import statistics
from typing import NamedTuple

SIGNIFICANT = 0.05


class Mean(NamedTuple):
    """The mean of a model, with its 95% interval."""

    slice: tuple | None  # None for all queries
    metric: str
    model: str
    mean: float
    standard_error: float
    low: float
    high: float
    queries: int


class Difference(NamedTuple):
    """The mean of the second model minus the first one's, with its 95% interval."""

    slice: tuple | None  # None for all queries
    metric: str
    models: tuple[str, str]
    difference: float
    standard_error: float
    low: float
    high: float
    p: float
    wins: int  # queries in which the second model is better
    losses: int
    ties: int
    # The smallest p that any outcome of these queries could have; 0 without a limit.
    smallest_p: float = 0
    corrected_p: float = math.nan

    @property
    def queries(self) -> int:
        """The number of queries."""
        return self.wins + self.losses + self.ties

    @property
    def is_significant(self) -> bool:
        """Whether the corrected p-value is below 0.05."""
        return self.corrected_p < SIGNIFICANT

    def detectable_difference(self, power: float = 0.8) -> float:
        """The smallest true difference that so many queries would show.

        A test of as many queries, whose differences vary as much, has p < 0.05 with
        the probability `power` (without a correction for several comparisons). NaN for
        too few queries. By Guenther, "Sample size formulas for normal theory t tests",
        The American Statistician 35, 1981.
        """
        of_test, both = _quantiles(power)
        degrees = self.queries - of_test**2 / 2
        if degrees <= 0:
            return math.nan
        return both * self.standard_error * math.sqrt(self.queries / degrees)

    def queries_needed(self, difference: float, power: float = 0.8) -> int:
        """The number of queries that would show a true difference of this size.

        The inverse of `detectable_difference`. Raises ValueError for a difference of
        0, and without a standard error.
        """
        if not difference or math.isnan(self.standard_error):
            raise ValueError(
                "`queries_needed` needs a difference other than 0, and at least two "
                f"queries. Received: {difference}, and {self.queries} queries."
            )
        of_test, both = _quantiles(power)
        ratio = both * self.standard_error / difference
        return math.ceil(self.queries * ratio**2 + of_test**2 / 2)


def _quantiles(power: float) -> tuple[float, float]:
    """The normal quantile of the test, and its sum with that of the power."""
    if not 0 < power < 1:
        raise ValueError(f"`power` must be between 0 and 1. Received: {power}.")
    normal = statistics.NormalDist()
    quantile = normal.inv_cdf(1 - SIGNIFICANT / 2)
    return quantile, quantile + normal.inv_cdf(power)
