"""The schedule of evaluations, and the entries of their values in the logs.

What is evaluated is in the modules of the three callbacks.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from traceback import walk_stack
from typing import Any, Literal

import numpy as np

from tfrankmetrics.keras.bases import KerasCallback, keras
from tfrankmetrics.results.flat_values import parts_of_slice
from tfrankmetrics.results.metric_values import NUM_QUERIES, SlicedValues
from tfrankmetrics.results.request import Request
from tfrankmetrics.rules import Positive, check_option, shortened

Unit = Literal["epochs", "steps"]


class Evaluation(KerasCallback):
    """Evaluates at regular intervals and adds the values to the logs.

    The logs of each epoch contain values: an epoch without an evaluation repeats the
    last ones, and the first epoch is always evaluated. Without a value,
    `ModelCheckpoint(save_best_only=True)` would overwrite the best model, and
    `CSVLogger` would have no column.

    A subclass implements the method `_values`, which computes them.
    """

    def __init__(
        self,
        request: Request,
        every: int,
        unit: Unit,
        prefix: str,
        output: str | int | None = None,
        batch_size: int | None = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        check_option(name, "every", every, Positive)
        check_option(name, "unit", unit, Unit)
        check_option(name, "prefix", prefix, str)
        self._every, self._unit = every, unit
        self._prefix, self._request = prefix, request
        self._output, self._batch_size = output, batch_size
        self._steps, self._steps_of_epochs, self._logs = 0, 0, {}

    def _values(self) -> Any:
        """The result of `evaluate`, `evaluate_rows` or `evaluate_retrieval`."""
        raise NotImplementedError

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Starts to count steps."""
        self._steps, self._steps_of_epochs, self._logs = 0, 0, {}
        self._require_patience()

    def _require_patience(self) -> None:
        """Raises ValueError for a callback that acts before there is a new value."""
        steps = (self.params or {}).get("steps") or self._every  # of an epoch, if known
        epochs = self._every if self._unit == "epochs" else -(-self._every // steps)
        keys = tuple(f"{self._prefix}{name}/" for name in self._request.named)
        waiting = keras.callbacks.EarlyStopping, keras.callbacks.ReduceLROnPlateau
        for each in _callbacks_of_training(waiting):
            # A patience of 0 ends after one epoch, too.
            if max(each.patience, 1) < epochs and f"{each.monitor}/".startswith(keys):
                raise ValueError(
                    "`patience` counts epochs, and must reach the next evaluation. "
                    f"Received: patience={each.patience} of {type(each).__name__}, and "
                    f"every={self._every} {self._unit}. Pass at least {epochs}."
                )

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None):
        """Evaluates every n steps, with unit="steps"."""
        # With steps_per_execution, several batches end at once. In the last execution
        # of an epoch, Keras 3 also counts batches that do not exist.
        steps, before = (self.params or {}).get("steps"), self._steps
        number = batch + 1 if steps is None else min(batch + 1, steps)
        self._steps = self._steps_of_epochs + number
        is_due = self._steps // self._every > before // self._every
        if self._unit == "steps" and is_due:
            self._evaluate()
            self._add_to(logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Evaluates the first epoch and every n epochs, and logs the last values."""
        is_due = self._unit == "epochs" and (epoch + 1) % self._every == 0
        if is_due or not self._logs:
            self._evaluate()
        self._add_to(logs)
        self._steps_of_epochs = self._steps

    def _evaluate(self) -> None:
        """Computes the values that are logged until the next evaluation."""
        if hasattr(self.model, "jax_state_sync"):  # the weights of this step
            self.model.jax_state_sync()
        is_training = getattr(self.model, "training", None)  # of PyTorch
        with _weights_of_validation():
            self._logs = self._by_key(self._values())
        self._steps_of_logs = self._steps
        if is_training:
            self.model.train()

    def _add_to(self, logs: dict[str, Any] | None) -> None:
        """Adds the values. Raises ValueError if a key already has a different value.

        Values of an earlier step are added only under new keys.
        """
        if logs is None:
            return
        if self._steps_of_logs < self._steps:
            logs.update({**self._logs, **logs})
            return
        for key, value in self._logs.items():
            other = logs.get(key)
            # Metrics in `compile` return the same value for the same data, in float32.
            if other is not None and not np.isclose(value, other, 1e-4, equal_nan=True):
                raise ValueError(
                    "Each key of the logs must have one source. Received: "
                    f"{key}={value:.6g} from {type(self).__name__}, and "
                    f"{float(other):.6g} from a different callback or the metrics in "
                    "`compile`. Pass a different `prefix`."
                )
        logs.update(self._logs)

    def _predict(self, x: Any) -> np.ndarray:
        verbose = (self.params or {}).get("verbose", 0)
        scores = self.model.predict(x, batch_size=self._batch_size, verbose=verbose)
        return output_of(scores, self._output, type(self).__name__)

    def _by_key(self, values: Any) -> dict[str, float]:
        """The values by their log keys."""
        if not isinstance(values, SlicedValues):
            return {self._prefix + name: value for name, value in values.items()}
        parts, numbers = {"": values.whole}, {"": sum(values.num_queries.values())}
        for key, of_slice in values.items():
            labels = key if len(values.by) > 1 else (key,)
            # MLflow rejects most other characters, and then loses the whole run.
            where = "/" + "/".join(parts_of_slice(values.by, labels))
            if where in parts:
                raise ValueError(
                    "The slices of a callback must differ as text, since they are "
                    f"parts of the keys of the logs. Received twice: {where[1:]!r}."
                )
            parts[where], numbers[where] = of_slice, values.num_queries[key]
        if self._request.num_queries:
            parts = {w: {**p, NUM_QUERIES: numbers[w]} for w, p in parts.items()}
        return {
            f"{self._prefix}{name}{where}": value
            for where, part in parts.items()
            for name, value in part.items()
        }


def _callbacks_of_training(kind: Any) -> list[Any]:
    """The callbacks of a kind that `fit` calls along with this one.

    Keras does not pass them to each other, but their list is on the call stack.
    """
    selves: Any = (f.f_locals.get("self") for f, _ in walk_stack(sys._getframe()))
    lists = (x.callbacks for x in selves if isinstance(x, keras.callbacks.CallbackList))
    return [each for each in next(lists, []) if isinstance(each, kind)]


@contextlib.contextmanager
def _weights_of_validation() -> Iterator[None]:
    """Puts the weights that `fit` validates into the model: the averaged ones.

    `SwapEMAWeights` swaps them with those of the training, unless it has already done
    so, as with `swap_on_epoch=True`. Only a private attribute says whether it has.
    """
    # Keras 2 has no such callback.
    swaps = _callbacks_of_training(getattr(keras.callbacks, "SwapEMAWeights", ()))
    to_undo = [each for each in swaps if not each._ema_weights_in_model]
    try:
        for each in swaps:
            # With JAX, both weights are one array after the last epoch, which `predict`
            # would delete. To swap them copies it.
            each.on_test_end()
            each.on_test_begin()
        yield
    finally:
        for each in to_undo:
            each.on_test_end()


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
