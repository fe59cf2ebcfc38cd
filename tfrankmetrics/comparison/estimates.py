"""The estimates of a comparison, and the decision that they lead to.

They are the means of models and their differences. `Comparison.gate` decides whether a
model may replace a baseline.
"""

from __future__ import annotations

import math
import numbers
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from tfrankmetrics.rules import is_finite, listed, rule_of, shortened

SIGNIFICANT = 0.05
Policy = Literal["not_worse", "better"]


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
        queries: The number of queries.
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
        smallest_p: The smallest p-value that any outcome of these queries could have;
            0 without a limit.
        adjusted_p: The p-value after the correction.
        queries: The number of queries.
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
    smallest_p: float = 0
    adjusted_p: float = math.nan

    @property
    def queries(self) -> int:
        """The number of queries."""
        return self.wins + self.losses + self.ties

    @property
    def is_significant(self) -> bool:
        """Whether the adjusted p-value is below 0.05."""
        return self.adjusted_p < SIGNIFICANT

    def detectable_difference(self, power: float = 0.8) -> float:
        """The smallest true difference that this number of queries would detect.

        A test of as many queries, with the same variance of differences, yields p <
        0.05 with the probability `power` (without an adjustment for several
        comparisons). It is NaN for too few queries, or if none differs. Source:
        Guenther, "Sample size formulas for normal theory t tests", The American
        Statistician 35, 1981.
        """
        of_test, both = _quantiles(power)
        degrees = self.queries - of_test**2 / 2
        if degrees <= 0 or not self.standard_error or self.smallest_p >= SIGNIFICANT:
            return math.nan
        return both * self.standard_error * math.sqrt(self.queries / degrees)

    def queries_needed(self, difference: float, power: float = 0.8) -> int:
        """The number of queries that would detect a true difference of this size.

        The inverse of `detectable_difference`, and at least the smallest number that
        can reach significance. Raises ValueError for a difference that is not a finite
        number other than 0, and if no two queries differ.
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
                f"{self.queries} queries, {self.wins + self.losses} of which differ."
            )
        of_test, both = _quantiles(power)
        ratio = both * self.standard_error / difference
        needed = math.ceil(self.queries * ratio**2 + of_test**2 / 2)
        if not self.smallest_p:  # a test without a limit
            return needed
        # The least m with 2 / 2^m below 0.05, the number of queries that must differ.
        least = math.floor(math.log2(2 / SIGNIFICANT)) + 1
        return max(needed, math.ceil(least * self.queries / (self.wins + self.losses)))


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


class Decision(NamedTuple):
    """Whether a model passed, and the decisive rule, in one sentence.

    It is true if the model passed, as in `if not comparison.gate(...): ...`.

    Attributes:
        passed: Whether the model passed.
        reason: The comparison that decided, in one sentence.
    """

    passed: bool
    reason: str

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return f"{'Passed' if self.passed else 'Failed'}: {self.reason}"


def decide(
    differences: Iterable[Difference],
    baseline: str,
    margin: float,
    policy: Policy,
    sign: int,
) -> Decision:
    """The decision: by the first comparison that fails, or else the last one.

    Args:
        differences: The differences of the baseline and the model, one for each slice.
        baseline: The model to be replaced.
        margin: The largest loss, or the smallest gain, that does not matter.
        policy: "not_worse" or "better".
        sign: -1 if lower values of the metric are better, and otherwise 1.
    """
    decision, num_slices = Decision(False, "No comparison was made."), 0
    for each in differences:
        decision = _decision_in(each, baseline, margin, policy, sign)
        if not decision:
            return decision
        num_slices += each.slice is not None
    if num_slices:
        named = f"{num_slices} slices" if num_slices > 1 else "the slice"
        reason = f"{decision.reason[:-1]}; the rule also holds in {named}."
        return Decision(True, reason)
    return decision


def _decision_in(
    each: Difference, baseline: str, margin: float, policy: Policy, sign: int
) -> Decision:
    """The decision by one comparison, of all queries or of a slice."""
    model = each.models[1]
    if model == baseline:
        model, sign = each.models[0], -sign
    ends = sign * each.low, sign * each.high
    low, high, gain = min(ends), max(ends), sign * each.difference
    where = "" if each.slice is None else f" in the slice {listed(each.slice)}"
    start = f"{each.metric} of {model!r}{where} is "
    differs = each.wins + each.losses > 0
    if policy == "not_worse" and each.queries > 1 and not differs:
        reason = f"equal to that of {baseline!r} in each of {each.queries:,} queries."
        return Decision(True, start + reason)
    if math.isnan(low):
        number = "one query has" if each.queries == 1 else "these queries have"
        cause = f"{number} no interval" if each.queries else "no query is included"
        return Decision(False, f"{start}unknown, since {cause}.")
    if policy == "not_worse":
        passed, is_worse = low > -margin, high <= -margin
        verb = "not worse" if passed else "worse" if is_worse else "perhaps worse"
        limit = f"at most {high:+.4f}" if is_worse else f"at least {low:+.4f}"
        reason = (
            f"{verb} than that of {baseline!r} by {margin:g} or more: "
            f"its gain is {gain:+.4f}, and {limit} by the 95% interval."
        )
        return Decision(passed, start + reason)
    passed = each.is_significant and gain > margin
    verb = "better" if passed else "not shown to be better"
    by = f" by more than {margin:g}" if margin else ""
    p = "p < 0.001" if each.adjusted_p < 0.001 else f"p = {each.adjusted_p:.3f}"
    reason = (
        f"{verb} than that of {baseline!r}{by}: its gain is {gain:+.4f}, with "
        f"{p}, where p < 0.05 is required."
    )
    return Decision(passed, start + reason)


def check_policy(
    policy: Any, margin: Any, metric: str, low: float, high: float
) -> None:
    """Raises ValueError for an unknown policy, or a margin that decides nothing."""
    rule = rule_of(Policy)
    if not rule.holds(policy):
        raise ValueError(f"`policy` must be {rule.words}. Received: {policy!r}.")
    if not is_finite(margin) or margin < 0:
        raise ValueError(
            "`margin` must be a finite number of at least 0, in units of the metric. "
            f"Received: {shortened(margin)}."
        )
    if policy == "not_worse" and margin == 0:
        raise ValueError(
            'policy="not_worse" needs a margin above 0, the largest loss that does not '
            "matter, since no number of queries shows that a loss is exactly 0. "
            'Received: margin=0. Pass a margin, or policy="better".'
        )
    if margin >= high - low:
        raise ValueError(
            f"`margin` must be below {high - low:g}: the values of {metric!r} are from "
            f"{low:g} to {high:g}, so that no model could fail. Received: {margin:g}."
        )


def slices_to_decide(
    in_slices: bool | Sequence[Any], known: set[tuple | None]
) -> set[tuple | None]:
    """The slices that a user names, and None for all queries."""
    if in_slices is False:
        return {None}
    if known == {None}:
        raise ValueError(
            "`in_slices` needs slices. Received: a comparison without any. Pass `by` "
            "to compare()."
        )
    if in_slices is True:
        return known
    rule = "`in_slices` must be True, or a list of slices that are compared"
    if isinstance(in_slices, str) or not isinstance(in_slices, Sequence):
        raise ValueError(f"{rule}. Received: {shortened(in_slices)}.")
    keys = [each if isinstance(each, tuple) else (each,) for each in in_slices]
    unknown = [key for key in keys if key not in known]
    if unknown:
        names = [key[0] if len(key) == 1 else key for key in known if key]
        raise ValueError(
            f"{rule}: {listed(sorted(names, key=str))}. Received: "
            f"{listed(unknown[0])}, which was not compared."
        )
    return {None, *keys}
