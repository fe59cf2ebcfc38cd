"""When to evaluate, and how the values get into the logs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from tfrankmetrics.keras import KerasCallback
from tfrankmetrics.options import check_option, shortened
from tfrankmetrics.results import SlicedValues

Unit = Literal["epochs", "steps"]


class Evaluation(KerasCallback):
    """Evaluates now and then, and adds the values to the logs.

    A subclass has the method `_values`, which computes them.
    """

    def __init__(
        self,
        names: Iterable[str],
        output: Any,
        every: int,
        unit: Unit,
        prefix: str,
        batch_size: int | None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        check_option(name, "unit", unit, Unit)
        check_option(name, "every", every, int)
        check_option(name, "prefix", prefix, str)
        if every < 1:
            raise ValueError(
                f"`every` of `{name}` must be at least 1. Received: every={every}."
            )
        self._output, self._every, self._unit = output, every, unit
        self._prefix, self._batch_size = prefix, batch_size
        self._keys = {prefix + name for name in names}
        self._steps, self._steps_of_epochs, self._logs = 0, 0, {}

    def _values(self) -> Any:
        """What `evaluate` or `evaluate_rows` returns."""
        raise NotImplementedError

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Refuses to stand behind a callback that reads the values."""
        self._steps, self._steps_of_epochs, self._logs = 0, 0, {}
        for callback in _earlier_callbacks(self):
            monitored, *_ = str(getattr(callback, "monitor", "")).split("/")
            path = str(getattr(callback, "filepath", ""))
            is_in_path = any(f"{{{key}" in path for key in self._keys)
            if monitored in self._keys or is_in_path or isinstance(callback, _READERS):
                raise ValueError(
                    f"{type(self).__name__} must come before the callbacks that read "
                    f"its values. Received: {type(callback).__name__} before it. Put "
                    f"{type(self).__name__} at the front of `callbacks`."
                )

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None):
        """Evaluates every n steps, with unit="steps"."""
        # With steps_per_execution, several batches end at once.
        before = self._steps
        self._steps = self._steps_of_epochs + batch + 1
        is_due = self._steps // self._every > before // self._every
        if self._unit == "steps" and is_due:
            self._evaluate(logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Evaluates every n epochs; with unit="steps" logs the last values."""
        if self._unit == "epochs" and (epoch + 1) % self._every == 0:
            others = {key: (logs or {}).get(key) for key in self._keys}
            self._evaluate(logs)
            self._refuse_others(others)
        elif logs is not None:
            logs.update(self._logs)
        self._steps_of_epochs, self._logs = self._steps, {}

    def _evaluate(self, logs: dict[str, Any] | None) -> None:
        self._logs = self._by_key(self._values())
        if logs is not None:
            logs.update(self._logs)

    def _refuse_others(self, others: Mapping[str, float | None]) -> None:
        """Raises ValueError if a key of the logs had another value."""
        for key, other in others.items():
            value = self._logs[key]
            # Metrics in `compile` on the same data have the same value, in float32.
            if other is not None and not np.isclose(value, other, 1e-4, equal_nan=True):
                raise ValueError(
                    "Each key of the logs must have one source. Received: "
                    f"{key}={value:.6g} from {type(self).__name__}, and {other:.6g} "
                    "from another callback or the metrics in `compile`. Pass another "
                    "`prefix`."
                )

    def _predict(self, x: Any) -> np.ndarray:
        verbose = (self.params or {}).get("verbose", 0)
        scores = self.model.predict(x, batch_size=self._batch_size, verbose=verbose)
        return output_of(scores, self._output, type(self).__name__)

    def _by_key(self, values: Any) -> dict[str, float]:
        """The values by the keys of the logs."""
        if not isinstance(values, SlicedValues):
            return {self._prefix + name: value for name, value in values.items()}
        keys = {self._prefix + name: value for name, value in values.whole.items()}
        for key, of_slice in values.items():
            labels = key if len(values.by) > 1 else (key,)
            # MLflow refuses most other characters, and then loses the whole run.
            where = "/".join(
                f"{name}:{label}" for name, label in zip(values.by, labels, strict=True)
            )
            keys |= {f"{self._prefix}{n}/{where}": v for n, v in of_slice.items()}
        return keys


# Keras's callbacks that read all logs.
_READERS = (tf.keras.callbacks.CSVLogger, tf.keras.callbacks.TensorBoard)


def _earlier_callbacks(callback: Any) -> list[Any]:
    """The callbacks before this one, in the list of Keras that calls it.

    Keras does not tell a callback which others there are, so this looks up the call
    stack.
    """
    frame = sys._getframe(1)
    while frame is not None:
        callbacks = getattr(frame.f_locals.get("self"), "callbacks", None)
        if isinstance(callbacks, list):
            is_here = [each is callback for each in callbacks]
            if any(is_here):
                return callbacks[: is_here.index(True)]
        frame = frame.f_back
    return []


def output_of(predicted: Any, output: Any, name: str) -> np.ndarray:
    """The predictions of one output of a model."""
    if isinstance(predicted, (Mapping, list, tuple)):
        with contextlib.suppress(KeyError, IndexError, TypeError):
            return predicted[output]
        choices = predicted if isinstance(predicted, Mapping) else range(len(predicted))
        raise ValueError(
            f"`output` of `{name}` must name one output of the model, of {[*choices]}. "
            f"Received: output={shortened(output)}."
        )
    if output is not None:
        raise ValueError(
            f"`output` of `{name}` is for models with several outputs. Received: "
            f"output={shortened(output)}, and a model with one. Omit it."
        )
    return predicted
