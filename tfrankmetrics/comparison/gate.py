"""The decision whether a model may replace a baseline, by a stated rule."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from tfrankmetrics.comparison.estimates import Difference, p_text
from tfrankmetrics.comparison.queries import PerQuery, require_compared
from tfrankmetrics.rules import listed, rule_of, shortened

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


class Rule(NamedTuple):
    """The condition on a model in each comparison with the baseline."""

    metric: str
    baseline: str
    model: str
    margin: float
    policy: Policy
    lower_is_better: bool

    def decide(self, differences: Iterable[Difference]) -> Decision:
        """The decision: the first comparison that fails, or else the last one."""
        decision = Decision(False, "No comparison was made.")
        slices = []
        for each in differences:
            decision = self._of(each)
            if not decision:
                return decision
            slices += [] if each.slice is None else [each.slice]
        if slices and decision:
            named = f"{len(slices)} slices" if len(slices) > 1 else "the slice"
            reason = f"{decision.reason[:-1]}; the rule also holds in {named}."
            return Decision(True, reason)
        return decision

    def _of(self, each: Difference) -> Decision:
        is_reversed = each.models != (self.baseline, self.model)
        sign = -1 if is_reversed != self.lower_is_better else 1
        ends = sign * each.low, sign * each.high
        low, high, gain = min(ends), max(ends), sign * each.difference
        where = "" if each.slice is None else f" in the slice {listed(each.slice)}"
        start = f"{self.metric} of {self.model!r}{where} is "
        differs = each.wins + each.losses > 0
        if self.policy == "not_worse" and each.queries > 1 and not differs:
            reason = f"equal to that of {self.baseline!r} in each of {each.queries:,}"
            return Decision(True, f"{start}{reason} queries.")
        if math.isnan(low):
            number = "one query has" if each.queries == 1 else "these queries have"
            cause = f"{number} no interval" if each.queries else "no query is included"
            return Decision(False, f"{start}unknown, since {cause}.")
        if self.policy == "not_worse":
            passed, is_worse = low > -self.margin, high <= -self.margin
            verb = "not worse" if passed else "worse" if is_worse else "perhaps worse"
            limit = f"at most {high:+.4f}" if is_worse else f"at least {low:+.4f}"
            reason = (
                f"{verb} than that of {self.baseline!r} by {self.margin:g} or more: "
                f"its gain is {gain:+.4f}, and {limit} by the 95% interval."
            )
            return Decision(passed, start + reason)
        passed = each.is_significant and gain > self.margin
        verb = "better" if passed else "not shown to be better"
        by = f" by more than {self.margin:g}" if self.margin else ""
        reason = (
            f"{verb} than that of {self.baseline!r}{by}: its gain is {gain:+.4f}, with "
            f"{p_text(each.adjusted_p)}, where p < 0.05 is required."
        )
        return Decision(passed, start + reason)


def chosen_slices(
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


def other_model(baseline: str, model: str | None, models: Sequence[str]) -> str:
    """The model that is compared with the baseline: `model`, or the only other one."""
    others = [name for name in models if name != baseline]
    if len(models) < 2:
        raise ValueError(
            f"A baseline requires a second model. Received: only {listed(models)}."
        )
    if baseline not in models:
        raise ValueError(
            f"`baseline` must be one of {listed(models)}. Received: "
            f"{shortened(baseline)}."
        )
    if model is None and len(others) > 1:
        raise ValueError(
            f"`model` must be one of {listed(others)}, since there are several. "
            "Received: None."
        )
    model = others[0] if model is None else model
    if model not in others:
        raise ValueError(
            f"`model` must be one of {listed(others)}. Received: {shortened(model)}."
        )
    return model


def make_rule(
    metric: str,
    baseline: str,
    model: str | None,
    margin: float,
    policy: Any,
    compared: PerQuery,
) -> Rule:
    """Checks the request. Raises ValueError for names that were not compared."""
    require_compared("metric", metric, compared.metrics)
    model = other_model(baseline, model, compared.models)
    rule = rule_of(Policy)
    if not rule.holds(policy):
        raise ValueError(f"`policy` must be {rule.words}. Received: {policy!r}.")
    is_number = isinstance(margin, numbers.Real) and not isinstance(margin, bool)
    if not is_number or not math.isfinite(margin) or margin < 0:
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
    low, high = compared.ranges[metric]
    if margin >= high - low:
        raise ValueError(
            f"`margin` must be below {high - low:g}: the values of {metric!r} are from "
            f"{low:g} to {high:g}, so that no model could fail. Received: {margin:g}."
        )
    is_lower = metric in compared.lower_is_better
    return Rule(metric, baseline, model, float(margin), policy, is_lower)
