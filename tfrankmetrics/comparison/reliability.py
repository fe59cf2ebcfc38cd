"""How reliably a set of queries tells models apart: generalizability theory.

Each value of a query is modeled as an overall mean, plus an effect of the model, an
effect of the query, and their interaction. The variances of the effects come from an
analysis of variance with two random factors. Source: Urbano, Marrero and Martín, "On
the measurement of test collection reliability", SIGIR 2013; Brennan, "Generalizability
Theory", 2001.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tfrankmetrics.comparison.significance import ROUNDING
from tfrankmetrics.results.tables import Cell, ShownAsTable, Table, require

TAIL = 0.025  # of a 95% interval, at each end


class Coefficient(NamedTuple):
    """A reliability coefficient, with 95% intervals.

    Attributes:
        value: The coefficient with the queries of the comparison, from 0 to 1.
        low: The lower end of its interval.
        high: The upper end.
        queries: How many queries are needed for the target.
        least_queries: The lower end of the interval of this number.
        most_queries: The upper end, `math.inf` if possibly no number is enough.
    """

    value: float
    low: float
    high: float
    queries: float
    least_queries: float
    most_queries: float


class Reliability(ShownAsTable):
    """How reliably the queries of a comparison tell its models apart.

    Attributes:
        variances: The variance between "models", between "queries" and of their
            "interaction", a dict of floats.
        relative: The `Coefficient` of the order of the models: the generalizability
            coefficient, the expected squared correlation between the observed means and
            the means over all queries.
        absolute: The `Coefficient` of the means themselves: the dependability
            coefficient, which treats the difficulty of the queries as an error, too.
        target: The reliability for which the numbers of queries are computed.
        num_queries: The number of queries.
    """

    def __init__(self, values: np.ndarray, metric: str, target: float) -> None:
        self.num_queries, num_models = values.shape
        self.target, self._metric = target, metric
        analysis = _Analysis.of(values)
        self.variances = {
            "models": _excess(analysis.models, analysis.rest) / self.num_queries,
            "queries": _excess(analysis.queries, analysis.rest) / num_models,
            "interaction": analysis.rest,
        }
        noise, models = self.variances["interaction"], self.variances["models"]
        self.relative = self._coefficient(models, noise, analysis.relative_ratios())
        noise += self.variances["queries"]
        self.absolute = self._coefficient(models, noise, analysis.absolute_ratios())

    def _coefficient(
        self, models: float, noise: float, ratios: Iterator[float]
    ) -> Coefficient:
        """The coefficient for variances, and for the ends of their ratio."""
        ratios_ = [models / noise if noise else _endless(models), *ratios]
        value, low, high = (_reliability(ratio, self.num_queries) for ratio in ratios_)
        queries, most, least = (_needed(ratio, self.target) for ratio in ratios_)
        return Coefficient(value, low, high, queries, least, most)

    def _table(self) -> Table:
        rows = [
            [Cell(text) for text in (name, *_texts(each))]
            for name, each in (
                ("order of the models", self.relative),
                ("means of the models", self.absolute),
            )
        ]
        total = sum(self.variances.values()) or 1
        shares = (f"{name} {v / total:.1%}" for name, v in self.variances.items())
        note = (
            f"{self._metric} of {self.num_queries:,} queries. Share of the variance: "
            f"{', '.join(shares)}."
        )
        needed = f"queries for {self.target:g} [95% interval]"
        header = ["of the", "reliability [95% interval]", needed]
        return Table(header, rows, 1, note)


def require_two(values: np.ndarray) -> None:
    """Raises ValueError unless there are two queries and two models."""
    if min(values.shape) < 2:
        queries, models = values.shape
        raise ValueError(
            "A reliability requires at least two models, and two queries with a value "
            f"in all of them. Received: {models} models and {queries} queries."
        )


def _texts(each: Coefficient) -> list[str]:
    needed = (each.queries, each.least_queries, each.most_queries)
    number, least, most = ("infinite" if math.isinf(n) else f"{n:,.0f}" for n in needed)
    return [
        f"{each.value:.4f} [{each.low:.4f}, {each.high:.4f}]",
        f"{number} [{least}, {most}]",
    ]


class _Analysis(NamedTuple):
    """Mean squares of the analysis of variance, and the numbers behind them."""

    models: float
    queries: float
    rest: float
    num_models: int
    num_queries: int

    @classmethod
    def of(cls, values: np.ndarray) -> _Analysis:
        """The analysis of values `[queries, models]`."""
        num_queries, num_models = values.shape
        mean, rounding = values.mean(), ROUNDING * np.abs(values).max()

        def effects(differences: np.ndarray) -> np.ndarray:
            return np.where(np.abs(differences) > rounding, differences, 0)

        of_models = effects(values.mean(axis=0) - mean)
        of_queries = effects(values.mean(axis=1) - mean)
        rest = effects(values - mean - of_models - of_queries[:, np.newaxis])
        return cls(
            float((of_models**2).sum()) * num_queries / (num_models - 1),
            float((of_queries**2).sum()) * num_models / (num_queries - 1),
            float((rest**2).sum()) / (num_models - 1) / (num_queries - 1),
            num_models,
            num_queries,
        )

    def _quantiles(self) -> Iterator[Callable[[float], float]]:
        """For each end, the quantile of F by its second number of degrees of freedom.

        The first number is the degrees of freedom of the models.
        """
        stats = require("scipy.stats", "compare", "`reliability`")
        degrees = self.num_models - 1
        for probability in (1 - TAIL, TAIL):
            of_infinity = stats.chi2.ppf(probability, degrees) / degrees
            yield lambda others, p=probability, limit=of_infinity: float(
                limit if math.isinf(others) else stats.f.ppf(p, degrees, others)
            )

    def relative_ratios(self) -> Iterator[float]:
        """Both ends of (variance of models) / (variance of the interaction).

        Source: Feldt, "The approximate sampling distribution of Kuder-Richardson
        reliability coefficient twenty", Psychometrika 30(3), 1965.
        """
        degrees = (self.num_models - 1) * (self.num_queries - 1)
        for quantile in self._quantiles():
            if self.rest == 0:
                yield _endless(self.models)
                continue
            ratio = self.models / (self.rest * quantile(degrees))
            yield _excess(ratio, 1) / self.num_queries

    def absolute_ratios(self) -> Iterator[float]:
        """Both ends of (variance of models) / (variance of queries and interaction).

        Source: Arteaga, Jeyaratnam and Franklin, "Confidence intervals for proportions
        of total variance in the two-way cross component of variance model",
        Communications in Statistics 11(15), 1982.
        """
        degrees = (self.num_models - 1) * (self.num_queries - 1)
        for quantile in self._quantiles():
            all_, rest = quantile(math.inf), quantile(degrees)
            of_models = (
                self.models**2
                - all_ * self.models * self.rest
                + (all_ - rest) * rest * self.rest**2
            )
            of_others = self.models * (
                (self.num_models - 1) * all_ * self.rest
                + quantile(self.num_queries - 1) * self.queries
            )
            if of_others == 0:
                yield _endless(self.models)
                continue
            # The share of the total variance is r / (r + 1) for the ratio r.
            yield max(0.0, of_models * self.num_models / (of_others * self.num_queries))


def _excess(square: float, noise: float) -> float:
    """The excess of a mean square over the noise, but for rounding."""
    return square - noise if square > noise * (1 + 1e-9) else 0.0


def _endless(models: float) -> float:
    """The ratio of the variance of models to a variance of 0; 0 if both are 0."""
    return math.inf if models else 0.0


def _reliability(ratio: float, queries: int) -> float:
    """The coefficient of this many queries; `ratio`: the variances of one query."""
    return 1.0 if math.isinf(ratio) else ratio * queries / (1 + ratio * queries)


def _needed(ratio: float, target: float) -> float:
    """The number of queries for which the coefficient reaches the target."""
    if math.isinf(ratio):
        return 1
    if ratio <= 0:
        return math.inf
    number = target / (1 - target) / ratio
    return math.ceil(number * (1 - 1e-12))  # a whole number may be rounded up
