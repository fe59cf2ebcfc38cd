"""Means of weighted queries and their differences, with standard errors.

The mean of a metric is sum(w v) / sum(w), over the queries with the values v and the
weights w. It is a ratio of sums, whose standard error follows from each query's
influence u = w (v - mean) / sum(w) on it:

    standard error^2 = n / (n - 1) * sum(u^2)

Here n is the effective number of queries, sum(w)^2 / sum(w^2), of Kish, "Survey
Sampling", 1965. With equal weights it is the number of queries, and the formula is the
variance of the values / n. The influence on the difference of two models is the
difference of the influences, and n is the smaller one of both models. All formulas hold
for weighted queries and for micro averages, whose weights may differ between models.
The t-test has n - 1 degrees of freedom.

An estimate is one of these, for each metric:

    Sample     the mean of a model
    Pair       the difference of two estimates in the same queries
    Arms       the difference of two samples of different queries
    Corrected  one of the first two by people's grades, corrected by a judge
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from tfrankmetrics.compute.sums import means_of_sums, sums_of

ROUNDING = 1e-12  # a relative difference up to this one is rounding
LEAST_PEOPLE = 10  # queries that people must grade to correct a judge


class Estimate:
    """A mean or a difference for each metric, whose precision follows from influences.

    Attributes:
        means: The estimate of each metric.
        influences: The influence of each query on it, `[queries, metrics]`.
        effective_numbers: The effective number of queries of each metric.
        numbers: The number of queries of each metric.
    """

    means: Any
    influences: Any
    effective_numbers: Any
    numbers: Any

    @functools.cached_property
    def standard_errors(self) -> np.ndarray:
        """The standard error, NaN for fewer than two effective queries."""
        numbers, influences = self.effective_numbers, self.influences
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            factors = np.where(numbers > 1, numbers / (numbers - 1), np.nan)
            return np.sqrt(factors * np.einsum("qm,qm->m", influences, influences))

    @functools.cached_property
    def degrees(self) -> np.ndarray:
        """The degrees of freedom of Student's t distribution."""
        return self.effective_numbers - 1

    @property
    def influencing_values(self) -> np.ndarray:
        """Values that influence an unweighted mean as the queries do."""
        return self.means + self.numbers * self.influences


@dataclasses.dataclass(frozen=True, eq=False)
class Sample(Estimate):
    """The values and weights of a model's queries, both `[queries, metrics]`.

    Both are 0 for excluded queries.
    """

    values: np.ndarray
    weights: np.ndarray

    def of(self, queries: Any) -> Sample:
        """Some of the queries."""
        return Sample(self.values[queries], self.weights[queries])

    def where(self, is_kept: np.ndarray) -> Sample:
        """The same queries, all others of which are excluded, by metric."""
        return Sample(*(np.where(is_kept, a, 0) for a in (self.values, self.weights)))

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
            return means_of_sums(sums_of(self.values.T, self.weights.T))

    @functools.cached_property
    def influences(self) -> np.ndarray:
        """The influence of each query on each mean, `[queries, metrics]`."""
        with np.errstate(invalid="ignore"):
            moved = self.values - self.means
            moved *= self.weights / self.totals
            return moved

    @functools.cached_property
    def is_included(self) -> np.ndarray:
        """Which queries are included in each metric, `[queries, metrics]`."""
        return self.weights > 0

    @functools.cached_property
    def numbers(self) -> np.ndarray:
        """The number of queries included in each metric."""
        return self.is_included.sum(axis=0)

    @functools.cached_property
    def effective_numbers(self) -> np.ndarray:
        """The effective number of weighted queries of each metric, by Kish's formula.

        It is the exact number of queries if all weights are equal.
        """
        largest = self.weights.max(axis=0, initial=0)
        parts = self.weights / np.where(largest > 0, largest, 1)
        squares = np.einsum("qm,qm->m", parts, parts)
        return parts.sum(axis=0) ** 2 / np.maximum(squares, 1)


@dataclasses.dataclass(frozen=True, eq=False)
class Pair(Estimate):
    """The difference of two estimates in the same queries: the second minus the first.

    They are two models, or people's values and those of a judge.
    """

    first: Any
    second: Any

    def where(self, is_kept: np.ndarray) -> Pair:
        """The difference in some of the queries, by metric."""
        return Pair(self.first.where(is_kept), self.second.where(is_kept))

    @functools.cached_property
    def means(self) -> np.ndarray:
        """The difference of the means of each metric."""
        return self.second.means - self.first.means

    @functools.cached_property
    def influences(self) -> np.ndarray:
        """The influence of each query on each difference, `[queries, metrics]`."""
        return self.second.influences - self.first.influences

    @functools.cached_property
    def effective_numbers(self) -> np.ndarray:
        """The effective number of queries: the smaller one of both models."""
        return np.minimum(self.first.effective_numbers, self.second.effective_numbers)

    @property
    def numbers(self) -> np.ndarray:
        """The number of queries included in each metric."""
        return self.first.numbers

    @functools.cached_property
    def largest(self) -> np.ndarray:
        """The largest absolute value of each metric, of both models."""
        return np.maximum(self.first.largest, self.second.largest)

    @functools.cached_property
    def is_included(self) -> np.ndarray:
        """Which queries are included in each metric of either model."""
        return self.first.is_included | self.second.is_included

    @functools.cached_property
    def is_different(self) -> np.ndarray:
        """Whether a swap of each query changes a mean, `[queries, metrics]`."""
        products, weights = np.split(self.first.terms != self.second.terms, 2, axis=1)
        return products | weights


class Arms(Pair):
    """The difference of two samples of different queries: the second minus the first.

    Its variance is the sum of theirs, with the degrees of freedom of Welch, "The
    generalization of Student's problem when several different population variances are
    involved", Biometrika 34, 1947.
    """

    @functools.cached_property
    def standard_errors(self) -> np.ndarray:
        """The standard error of each difference."""
        return np.hypot(self.first.standard_errors, self.second.standard_errors)

    @functools.cached_property
    def degrees(self) -> np.ndarray:
        """The degrees of freedom by Welch and Satterthwaite; 1 if no value varies."""
        with np.errstate(invalid="ignore", divide="ignore"):
            one = self.first.standard_errors**4 / self.first.degrees
            other = self.second.standard_errors**4 / self.second.degrees
            degrees = self.standard_errors**4 / (one + other)
        return np.where(np.isnan(degrees), 1, degrees)

    @property
    def numbers(self) -> np.ndarray:
        """The number of queries of both arms."""
        return self.first.numbers + self.second.numbers

    @functools.cached_property
    def effective_numbers(self) -> np.ndarray:
        """How many queries in two arms of the same size would be as precise."""
        one = self.first.numbers * self.first.standard_errors**2
        other = self.second.numbers * self.second.standard_errors**2
        with np.errstate(invalid="ignore", divide="ignore"):
            return 2 * (one + other) / self.standard_errors**2


@dataclasses.dataclass(frozen=True, eq=False)
class Corrected(Estimate):
    """An estimate by people's grades, corrected by a judge of more queries.

    Source: Angelopoulos, Duchi and Zrnic, "PPI++: Efficient prediction-powered
    inference", arXiv:2311.01453, 2023. With y and f, the values by people and by the
    judge in the n queries that people graded, and F, those by the judge in N others:

        mean = mean(y) + l (mean(F) - mean(f))
        standard error^2 = var(y - l f) / n + l^2 var(F) / N

    The weight l of the judge is where the standard error is smallest, cov(y, f) /
    ((1 + n / N) var(f and F together)), from 0 to 1. It is 0 without other queries:
    people alone then make the estimate.
    """

    people: Any
    judge: Any

    def of(self, queries: Any) -> Corrected:
        """Some of the queries."""
        return Corrected(self.people.of(queries), self.judge.of(queries))

    @functools.cached_property
    def judge_of_same(self) -> Any:
        """The judge in the queries that people graded."""
        return self.judge.where(self.people.is_included)

    @functools.cached_property
    def judge_of_others(self) -> Any:
        """The judge in all other queries."""
        return self.judge.where(~self.people.is_included)

    @functools.cached_property
    def bias(self) -> Pair:
        """By how much the judge overrates the queries that people graded."""
        return Pair(self.people, self.judge_of_same)

    @functools.cached_property
    def weights(self) -> np.ndarray:
        """The weight l of the judge; NaN if people graded too few of the queries."""
        n, others = self.effective_numbers, self.judge_of_others.effective_numbers
        u, v = self.people.influences, self.judge_of_same.influences
        with np.errstate(invalid="ignore", divide="ignore"):
            covariances = n / (n - 1) * np.einsum("qm,qm->m", u, v)
            variances = self.judge.standard_errors**2 * self.judge.effective_numbers
            variances *= 1 / n + 1 / others
            best = np.clip(covariances / variances, 0, 1)
        best = np.where((others > 1) & (variances > 0), best, 0)
        is_known = (self.numbers >= LEAST_PEOPLE) | (self.judge_of_others.numbers == 0)
        return np.where(is_known, best, np.nan)

    @functools.cached_property
    def means(self) -> np.ndarray:
        """The corrected estimate of each metric."""
        moved = self.judge_of_others.means - self.judge_of_same.means
        return self.people.means + self._weighted(moved)

    @functools.cached_property
    def influences(self) -> np.ndarray:
        """The influences, those of the other queries with their own n / (n - 1)."""
        n, others = self.effective_numbers, self.judge_of_others.effective_numbers
        with np.errstate(invalid="ignore", divide="ignore"):
            factors = np.sqrt(others / (others - 1) / (n / (n - 1)))
            moved = factors * self.judge_of_others.influences
            moved -= self.judge_of_same.influences
        return self.people.influences + self._weighted(moved)

    def _weighted(self, moved: np.ndarray) -> np.ndarray:
        """The judge's part; 0 for the weight 0, even where the judge has no value."""
        with np.errstate(invalid="ignore"):
            return np.where(self.weights == 0, 0, self.weights * moved)

    @property
    def effective_numbers(self) -> np.ndarray:
        """The effective number of the queries that people graded."""
        return self.people.effective_numbers

    @property
    def numbers(self) -> np.ndarray:
        """The number of the queries that people graded."""
        return self.people.numbers

    @functools.cached_property
    def equivalent_numbers(self) -> np.ndarray:
        """How many queries people alone would have to grade for the same precision."""
        error = np.where(self.standard_errors > 0, self.standard_errors, np.nan)
        gains = (self.people.standard_errors / error) ** 2
        return self.numbers * np.where(self.weights == 0, 1, gains)


def difference(first: Any, second: Any, *, paired: bool) -> Estimate:
    """The second estimate minus the first one."""
    if not paired:
        return Arms(first, second)
    if isinstance(first, Corrected):
        both = (first.people, second.people), (first.judge, second.judge)
        return Corrected(*(difference(*each, paired=True) for each in both))
    return Pair(first, second.rounded_like(first))
