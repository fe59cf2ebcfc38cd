"""What is explained: one metric, or two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tfrankmetrics.conventions import CONVENTION_OF, CONVENTIONS
from tfrankmetrics.metrics.measure import Measure, require_relevance
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.results.request import Request, read_request
from tfrankmetrics.rules import did_you_mean, shortened


class AskedMetric(NamedTuple):
    """A metric to explain."""

    name: str
    label: str | None  # in the columns of a second metric
    measure: Measure


def asked_metrics(
    metric: str | MetricObject,
    versus: str | MetricObject | None,
    options: Mapping[str, Any],
    **of_data: Any,
) -> tuple[Request, list[AskedMetric]]:
    """The metric and, if there is one, the other metric or convention.

    The request has both, for data in the format that `of_data` states.
    """
    if isinstance(metric, (list, tuple)):
        raise ValueError(
            "`metric` must be one name or one metric object. Received: "
            f"{shortened(metric)}. To show two, pass the other one as `versus`."
        )
    request = read_request([metric], options, **of_data)
    require_relevance(request.named, "`explain`")
    ((first, measure),) = request.named.items()
    asked = [AskedMetric(first, None, measure)]
    if versus is None:
        return request, asked
    if not isinstance(versus, str):
        other = read_request([versus], {}, **of_data)
    elif "(" in versus:  # a name with parameters
        other = read_request([versus], options, **of_data)
    elif not isinstance(metric, str):
        raise ValueError(
            "`versus` may be a convention if `metric` is a name. Received: "
            f"versus={versus!r}, metric={shortened(metric)}. Pass two metric objects."
        )
    elif versus not in CONVENTIONS:
        hint = did_you_mean(versus, CONVENTIONS, CONVENTION_OF)
        raise ValueError(
            "`versus` must be the name of a convention, a name with parameters such as "
            f"'ndcg@10(gain=linear)', or a metric object. Received: {versus!r}.{hint}"
        )
    else:
        other = read_request([metric], {**options, "convention": versus}, **of_data)
    ((second, measure),) = other.named.items()
    label = second
    if second == first:
        label = versus if isinstance(versus, str) else "versus"
        second = f"{second} ({label})"
    asked.append(AskedMetric(second, label, measure))
    return request.with_measures({each.name: each.measure for each in asked}), asked
