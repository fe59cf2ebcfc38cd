"""The gate: the decision whether a model may replace a baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from tfrankmetrics.arguments import Key
from tfrankmetrics.comparison.estimates import Difference
from tfrankmetrics.rules import is_finite, listed, rule_of, shortened

Policy = Literal["not_worse", "better"]


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
        margin: The largest loss, or the smallest improvement, that does not matter.
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
    low, high, improvement = min(ends), max(ends), sign * each.difference
    where = "" if each.slice is None else f" in the slice {listed(each.slice)}"
    start = f"{each.metric} of {model!r}{where} is "
    if policy == "not_worse" and each.queries > 1 and not each.differing:
        reason = f"equal to that of {baseline!r} in each of {each.queries:,} queries."
        return Decision(True, start + reason)
    decisive, name = (each.p, "p-value") if policy == "better" else (low, "interval")
    if math.isnan(decisive):
        number = "one query has" if each.queries == 1 else "these queries have"
        cause = f"{number} no {name}" if each.queries else "no query is included"
        return Decision(False, f"{start}unknown, since {cause}.")
    if policy == "not_worse":
        passed, is_worse = low > -margin, high <= -margin
        verb = "not worse" if passed else "worse" if is_worse else "perhaps worse"
        limit = f"at most {high:+.4f}" if is_worse else f"at least {low:+.4f}"
        reason = (
            f"{verb} than that of {baseline!r} by {margin:g} or more: "
            f"its improvement is {improvement:+.4f}, and {limit} by the 95% interval."
        )
        return Decision(passed, start + reason)
    passed = each.is_significant and improvement > margin
    verb = "better" if passed else "not shown to be better"
    by = f" by more than {margin:g}" if margin else ""
    condition = ", where p < 0.05 is required"
    if each.is_significant and improvement < 0:
        verb, by, condition = "worse", "", ""
    elif improvement <= margin:
        condition = f", where an improvement above {margin:g} is required"
    elif each.is_opposed:
        condition = ", but by their ranks, the queries differ in the other direction"
    p = "p < 0.001" if each.adjusted_p < 0.001 else f"p = {each.adjusted_p:.3f}"
    reason = f"{verb} than that of {baseline!r}{by}: "
    reason += f"its improvement is {improvement:+.4f}, with {p}{condition}."
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
            f"{low:g} to {high:g}, so no model could fail. Received: {margin:g}."
        )


def slices_to_decide(
    in_slices: bool | Sequence[Key], known: set[tuple | None]
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
