"""Steps of PyTorch, in which the metrics of a model share their results.

Keras passes the same tensors to all metrics of a model. PyTorch has no graph in which
they could share what they compute alike, such as the ranking; a `Step` takes its place.
It is for `fit` and `evaluate` of a model only, where each step has new tensors.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from tfrankmetrics import arrays as xp
from tfrankmetrics.graphs import keras_mask_of
from tfrankmetrics.inputs.devices import on_one_device
from tfrankmetrics.inputs.model_inputs import flattened, map_arrays


class Step:
    """The updates of several metrics with the same tensors."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        # Without the operations that led to them, which would stay in memory.
        self.arguments = map_arrays(_detached, on_one_device(*arguments))
        self.metrics: list[Any] = []
        self._given = [(_weak(each), _version(each)) for each in flattened(arguments)]

    def has(self, arguments: tuple[Any, ...]) -> bool:
        """Whether these are the unchanged tensors of the step."""
        given = flattened(arguments)
        return len(given) == len(self._given) and all(
            tensor() is each and version == _version(each)
            for (tensor, version), each in zip(self._given, given, strict=True)
        )


_last = threading.local()  # its attribute `step`


def step_of(metric: Any, *arguments: Any) -> Step:
    """The step in which a metric is updated with these tensors."""
    step = getattr(_last, "step", None)
    # A second update of a metric is a new step, even with the same tensors.
    if step is None or not step.has(arguments) or metric in step.metrics:
        step = _last.step = Step(arguments)
    step.metrics.append(metric)
    return step


def _detached(data: Any) -> Any:
    if xp.library_of(data) != "torch":
        return data
    detached = data.detach()
    detached._keras_mask = keras_mask_of(data)
    return detached


def _version(data: Any) -> Any:
    """A number that grows with each change of a tensor."""
    is_tensor = xp.library_of(data) == "torch"
    return data._version if is_tensor and not data.is_inference() else None


def _weak(data: Any) -> Any:
    """A reference to a tensor, without which the results of the last step are freed."""
    if xp.library_of(data) != "torch":
        return lambda: data
    return weakref.ref(data, lambda _: vars(_last).clear())
