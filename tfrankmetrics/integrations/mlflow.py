"""What `mlflow.log_metrics` takes, from every result of this package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfrankmetrics.results.flat_values import flat_values
from tfrankmetrics.results.metric_values import QueryValues


def flat_metrics(result: Any) -> dict[str, float]:
    """The numbers of a result by keys that MLflow accepts.

    >>> from tfrankmetrics import evaluate
    >>> from tfrankmetrics.integrations.mlflow import flat_metrics
    >>> result = evaluate([[1, 0], [0, 1]], [[2, 1]] * 2, ["mrr@5"], by=["DE", "FR"])
    >>> flat_metrics(result)
    {'mrr_5': 0.75, 'mrr_5/slice:DE': 1.0, 'mrr_5/slice:FR': 0.5}

    Pass it to `mlflow.log_metrics(flat_metrics(result))`. Every character of a name
    other than letters, digits, `_`, `-`, `.`, `:` and spaces becomes `_`.

    Args:
        result: What `evaluate` and the other functions return: a dict of metrics, a
            `SlicedValues`, a dict of these by model, or a `Comparison`. No values of
            each query.

    Raises:
        ValueError: Two keys become equal, or the result has values of each query.
    """
    if hasattr(result, "to_flat_dict"):
        return result.to_flat_dict()
    if isinstance(result, QueryValues):
        raise ValueError(
            "MLflow logs means. Received: the values of each query. Omit `per_query`."
        )
    if not any(isinstance(value, Mapping) for value in result.values()):
        return flat_values(([name], value) for name, value in result.items())
    models = flat_values(([str(model)], 0) for model in result)  # their names
    return {
        f"{model}/{key}": number
        for model, values in zip(models, result.values(), strict=True)
        for key, number in flat_metrics(values).items()
    }
