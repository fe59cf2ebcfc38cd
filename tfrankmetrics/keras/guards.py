"""Errors for misuse in `fit` and `evaluate` that would yield a plausible value.

Three mistakes can only be detected from the model that calls `update_state`. Keras
silently drops one of two results with the same key; it passes outputs of pointwise
models, which are not lists; and Keras 3 averages the results of a Keras 2 metric as if
they were losses. A Keras metric cannot access the model or its other metrics.
This module searches the Python call stack for a method of a Keras model. To find the
model's metrics it reads one private attribute. If Keras renames it, the errors no
longer appear, and tests fail. Values never depend on this module. In a graph the check
runs only while tracing.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tfrankmetrics import arrays as xp
from tfrankmetrics.graphs import executing_eagerly
from tfrankmetrics.keras.bases import keras

if TYPE_CHECKING:
    from tfrankmetrics.keras.state import StatefulMetric


def check_use_in_keras(metric: StatefulMetric, y_pred: Any) -> bool:
    """Raises an error if Keras would turn the metric's result into a wrong number.

    Returns whether the metric is one that was passed to `compile`.
    """
    model, methods = _calling_model()
    if model is None:
        return False
    is_compiled = "compute_metrics" in methods
    if is_compiled:
        if not isinstance(model, keras.Model):
            raise RuntimeError(
                "This metric was made for Keras 2, to which tf.keras refers (TF_USE_"
                "LEGACY_KERAS=1), and the model is one of Keras 3. Build the model "
                "from tf.keras, or unset TF_USE_LEGACY_KERAS."
            )
        _refuse_second_use(model, metric)
        # Keras itself distinguishes single results, except for its "loss".
        if metric.result_keys or metric.name == "loss":
            _refuse_lost_keys(model)
    if metric.input_format.inputs == "labels":
        _refuse_single_items(y_pred, model)
    return is_compiled


def with_integer_ids(metric: StatefulMetric, y_true: Any) -> Any:
    """Ids as integers, where Keras made them floats to build the metrics of a model.

    Under a strategy, Keras builds them with the mean of a batch over its replicas, from
    which it only takes dtypes and shapes.
    """
    reads_labels = metric.input_format.inputs == "labels"
    if reads_labels or executing_eagerly() or not xp.is_of_tensorflow(y_true):
        return y_true
    is_build = xp.is_floating(y_true) and "_symbolic_build" in _calling_model()[1]
    return xp.astype(y_true, xp.int64) if is_build else y_true


def _calling_model() -> tuple[Any, list[str]]:
    """The model that updates a metric, and its methods on the call stack; or None."""
    # The Keras other than tf.keras, if a program uses both.
    keras_3 = getattr(sys.modules.get("keras"), "Model", keras.Model)
    models = (keras.Model, keras_3)
    model, methods = None, []
    frame = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, models) and (model is None or caller is model):
            model = caller
            methods.append(frame.f_code.co_name)
        frame = frame.f_back
    return model, methods


def _refuse_second_use(model: Any, metric: StatefulMetric) -> None:
    """Rejects an object that is among both the metrics and the weighted metrics."""
    uses = [each for _, each in _prefixed_metrics(model) if each is metric]
    if len(uses) > 1:
        raise ValueError(
            "A metric object must be in one place of `compile` only, since each use "
            "adds every batch to its state, with weights or without. Received: "
            f"{metric.name!r} {len(uses)} times. Make an object for each output of the "
            "model, and for each of `metrics` and `weighted_metrics`, with different "
            "names, or a different `prefix` of RankingMetrics."
        )


def _refuse_lost_keys(model: Any) -> None:
    """Rejects two metrics of a model that have a key in common."""
    keys = ["loss"]
    for prefix, metric in _prefixed_metrics(model):
        keys += _result_keys(metric) or [prefix + metric.name]
    clashes = [key for key, number in Counter(keys).items() if number > 1]
    if clashes:
        raise ValueError(
            "Each result of a model must have a unique key: Keras silently keeps only "
            f"one of two results with the same key. Received twice: {clashes}. Set a "
            "prefix for each RankingMetrics, as in RankingMetrics([...], prefix='a_')."
        )


def _prefixed_metrics(model: Any) -> Iterator[tuple[str, Any]]:
    """The compiled metrics of a model, and the prefix that Keras adds to each name."""
    if not hasattr(model, "_compile_metrics"):  # Keras 2 has renamed them itself
        yield from (("", metric) for metric in model.compiled_metrics.metrics)
        return
    container = model._compile_metrics
    for metrics in container._flat_metrics + container._flat_weighted_metrics:
        if metrics:
            prefix = f"{metrics.output_name}_" if metrics.output_name else ""
            yield from ((prefix, metric) for metric in metrics.metrics)


def _result_keys(metric: Any) -> list[str]:
    """The keys of a metric's result, if it is a dict; none if it is a number."""
    if hasattr(metric, "result_keys"):
        return list(metric.result_keys)
    if type(metric).__module__.partition(".")[0] in ("keras", "tf_keras"):
        return []  # the metrics of Keras return one number
    with contextlib.suppress(Exception):  # of a metric that has no result yet
        result = metric.result()
        if isinstance(result, Mapping):
            return list(result)
    return []


def _refuse_single_items(y_pred: Any, model: Any) -> None:
    """Rejects pointwise outputs, which would be ranked across the batch."""
    shape = y_pred.shape
    is_single = tuple(shape[1:]) in ((), (1,))
    if is_single and len(shape) == 2 and executing_eagerly():
        # In some batches, each list has one item. The output of a listwise model has a
        # different or an unknown size. Subclassed models have no symbolic outputs.
        outputs = getattr(model, "outputs", None) or []
        is_single = all(tuple(each.shape[1:]) in ((), (1,)) for each in outputs)
    if is_single:
        raise ValueError(
            "In fit and evaluate of a model, scores must be [B, N] or [B, N, 1], a "
            f"list of items for each query. Received: scores of shape {shape}, one "
            "item for each example. Use the callback tfrankmetrics.EvaluateRows, or "
            "tfrankmetrics.evaluate_rows."
        )
