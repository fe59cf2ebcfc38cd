"""The metric to explain, and a second one to compare it with."""

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
    convention: str | None
    measure: Measure
    request: Request


def asked_metrics(
    metric: str | MetricObject,
    versus: str | MetricObject | None,
    options: Mapping[str, Any],
    **of_data: Any,
) -> list[AskedMetric]:
    """The metric and, if there is one, the other metric or convention."""
    if isinstance(metric, (list, tuple)):
        raise ValueError(
            "`metric` must be one name or one metric object. Received: "
            f"{shortened(metric)}. To show two, pass the other one as `versus`."
        )
    first = _asked(metric, options, of_data)
    require_relevance(first.request.named, "`explain`")
    if versus is None:
        return [first]
    if not isinstance(versus, str):
        second = _asked(versus, {}, of_data)
        label = "versus" if second.name == first.name else second.name
    else:
        _require_convention(versus, metric)
        second = _asked(metric, {**options, "convention": versus}, of_data)
        label = versus
    if second.name == first.name:
        second = second._replace(name=f"{second.name} ({label})")
    return [first, second._replace(label=label)]


def _asked(
    metric: str | MetricObject, options: Mapping[str, Any], of_data: Mapping[str, Any]
) -> AskedMetric:
    request = read_request([metric], options, **of_data)
    ((name, measure),) = request.named.items()
    return AskedMetric(name, None, options.get("convention"), measure, request)


def _require_convention(versus: str, metric: str | MetricObject) -> None:
    """Raises ValueError unless the metric can be computed again in a convention."""
    if not isinstance(metric, str):
        raise ValueError(
            "`versus` may be a convention if `metric` is a name. Received: "
            f"versus={versus!r}, metric={shortened(metric)}. Pass two metric objects."
        )
    if versus not in CONVENTIONS:
        hint = did_you_mean(versus, CONVENTIONS, CONVENTION_OF)
        raise ValueError(
            "`versus` must be the name of a convention, or a metric object. "
            f"Received: {versus!r}.{hint}"
        )
