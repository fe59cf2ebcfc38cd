"""Errors for misuse in `fit` and `evaluate` that would give a plausible number.

Three mistakes can only be seen by looking at who calls `update_state`. Keras silently
drops one of two results with the same key; it passes outputs of pointwise models, which
are not lists; and Keras 3 averages the results of a Keras 2 metric as if they were
losses. Keras gives a metric no way to see the model, or the metrics beside it. So this
module looks up the Python call stack for the object in which Keras keeps the metrics of
a model. It relies on the names of two private classes, and on private attributes of
one. If Keras renames these, the errors no longer appear, and tests fail. Values never
depend on it: the metrics compute the same without this module. In a graph the look
happens only while tracing.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import tensorflow as tf

if TYPE_CHECKING:
    from tfrankmetrics.keras.state import StatefulMetric

_CONTAINERS = ("CompileMetrics", "MetricsContainer")  # of Keras 3, of Keras 2


def check_use_in_keras(metric: StatefulMetric, y_pred: Any) -> None:
    """Raises an error if Keras would turn the metric's result into a wrong number."""
    container = _calling_container()
    if container is None:
        return
    _refuse_other_keras(container)
    if metric.result_keys:  # Keras itself tells single results apart
        _refuse_lost_keys(container)
    if metric.input_format.inputs == "labels":
        _refuse_single_items(y_pred)


def _calling_container() -> Any:
    """The object through which `fit` or `evaluate` updates a metric, if any does."""
    frame = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if type(caller).__name__ in _CONTAINERS:
            return caller
        frame = frame.f_back
    return None


def _refuse_other_keras(container: Any) -> None:
    """Rejects a Keras 2 metric in a Keras 3 model."""
    is_keras_3 = type(container).__name__ == "CompileMetrics"
    if is_keras_3 and not isinstance(container, tf.keras.metrics.Metric):
        raise RuntimeError(
            "This metric was made for Keras 2, which tf.keras is here (TF_USE_LEGACY_"
            "KERAS=1), and the model is one of Keras 3. Build the model from tf.keras, "
            "or unset TF_USE_LEGACY_KERAS."
        )


def _refuse_lost_keys(container: Any) -> None:
    """Rejects two metrics of a model that have a key in common."""
    keys = ["loss"]
    for prefix, metric in _prefixed_metrics(container):
        keys += getattr(metric, "result_keys", ()) or [prefix + metric.name]
    clashes = [key for key, number in Counter(keys).items() if number > 1]
    if clashes:
        raise ValueError(
            "Each result of a model must have its own key: Keras silently keeps only "
            f"one of two results with the same key. Received twice: {clashes}. Give "
            "each RankingMetrics a prefix, as in RankingMetrics([...], prefix='a_')."
        )


def _prefixed_metrics(container: Any) -> Iterator[tuple[str, Any]]:
    """The metrics of a model, and what Keras puts before the name of each."""
    if not hasattr(container, "_flat_metrics"):  # Keras 2 has renamed them itself
        yield from (("", metric) for metric in container.metrics)
        return
    for metrics in container._flat_metrics + container._flat_weighted_metrics:
        if metrics:
            prefix = f"{metrics.output_name}_" if metrics.output_name else ""
            yield from ((prefix, metric) for metric in metrics.metrics)


def _refuse_single_items(y_pred: Any) -> None:
    """Rejects pointwise outputs, which would be ranked across the batch."""
    shape = y_pred.shape
    # Eagerly, a batch may happen to have only lists of one item.
    is_single = len(shape) == 2 and shape[1] == 1 and not tf.executing_eagerly()
    if len(shape) == 1 or is_single:
        raise ValueError(
            "In fit and evaluate of a model, scores must be [B, N] or [B, N, 1], a "
            f"list of items for each query. Received: scores of shape {shape}, one "
            "item for each example. Group scores by query and use "
            "tfrankmetrics.evaluate_rows."
        )
