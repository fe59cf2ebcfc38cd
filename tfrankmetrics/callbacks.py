"""Callbacks that evaluate a model while it trains, and add the values to its logs."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import tensorflow as tf

from tfrankmetrics.evaluate import evaluate, evaluate_batches
from tfrankmetrics.inputs.formats import input_format
from tfrankmetrics.inputs.mistakes import RankingWarning
from tfrankmetrics.keras.state import StatefulMetric
from tfrankmetrics.measure import named_measures
from tfrankmetrics.options import (
    Duplicates,
    Inputs,
    Options,
    Separator,
    check_option,
    listed,
    shortened,
    takes_options,
)
from tfrankmetrics.results import SlicedValues
from tfrankmetrics.rows import columns_of, evaluate_rows

if TYPE_CHECKING:
    from typing_extensions import Unpack

Unit = Literal["epochs", "steps"]


class _Evaluation(tf.keras.callbacks.Callback):
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
            if monitored in self._keys or isinstance(callback, _READERS):
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
            self._evaluate(logs)
        elif logs is not None:
            logs.update(self._logs)
        self._steps_of_epochs, self._logs = self._steps, {}

    def _evaluate(self, logs: dict[str, Any] | None) -> None:
        self._logs = self._by_key(self._values())
        if logs is not None:
            logs.update(self._logs)

    def _predict(self, x: Any) -> np.ndarray:
        verbose = (self.params or {}).get("verbose", 0)
        scores = self.model.predict(x, batch_size=self._batch_size, verbose=verbose)
        return _output_of(scores, self._output, type(self).__name__)

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


def _output_of(predicted: Any, output: Any, name: str) -> np.ndarray:
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


class EvaluateRows(_Evaluation):
    """Evaluates a model of single items by query, while it trains.

    A model such as DIN or DeepFM scores one user and one item at a time. After each
    epoch this callback predicts all rows, computes the metrics by `evaluate_rows`, and
    adds them to the logs, for `EarlyStopping`, `ModelCheckpoint`, `CSVLogger` and all
    other callbacks behind it.

    >>> import numpy as np
    >>> import tensorflow as tf
    >>> x = np.random.default_rng(0).normal(size=(6, 2))
    >>> clicks, users = [1, 0, 0, 0, 1, 0], ["a", "a", "a", "b", "b", "b"]
    >>> model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    >>> model.compile("sgd", "binary_crossentropy")
    >>> by_user = EvaluateRows(x, clicks, users, ["ndcg@10", "gauc"])
    >>> history = model.fit(x, np.array(clicks), callbacks=[by_user], verbose=0).history
    >>> sorted(history)
    ['loss', 'val_auc', 'val_ndcg@10']

    Each evaluation takes the time of `model.predict` and of `evaluate_rows`.

    Args:
        x: The inputs of the rows, as for `model.predict`.
        labels: The label of each row.
        query_ids: The query id of each row, or None with `groups`.
        metrics: Names and metric objects, as in `evaluate`.
        data, groups, sample_weight, by, num_queries, separator: As in `evaluate_rows`.
            With `data`, the other columns may be names. A slice has keys such as
            `val_ndcg@10/language:de`.
        output: The name or the number of the model's output that holds the scores, if
            it has several.
        every: Evaluates after every so many epochs or steps.
        unit: "epochs" (the default) or "steps" (batches). Steps are logged at the
            batch, and the last values also at the end of the epoch. With
            `steps_per_execution`, it is the first end of an execution after the step.
        prefix: A string put before each key.
        batch_size: The batch size of the prediction, as for `model.predict`.
        **options: Options for the metrics given by name. See `tfrankmetrics.Options`.

    Raises:
        ValueError: `evaluate_rows` refuses an argument. Or, when training starts, a
            callback that reads the values stands in front of this one.
    """

    @takes_options
    def __init__(
        self,
        x: Any,
        labels: Any,
        query_ids: Any,
        metrics: Sequence[str | StatefulMetric],
        *,
        data: Any = None,
        groups: Any = None,
        sample_weight: Any = None,
        by: Any = None,
        num_queries: bool = False,
        separator: Separator = "@",
        output: str | int | None = None,
        every: int = 1,
        unit: Unit = "epochs",
        prefix: str = "val_",
        batch_size: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        named = named_measures(metrics, options, separator=separator)
        super().__init__(named, output, every, unit, prefix, batch_size)
        columns = columns_of(data, {"query_ids": query_ids, "labels": labels})
        self._x, self._labels = x, columns["labels"]
        self._arguments = {
            **columns,
            "metrics": metrics,
            "data": data,
            "groups": groups,
            "sample_weight": sample_weight,
            "by": by,
            "num_queries": num_queries,
            "separator": separator,
            **options,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankingWarning)
            self._of_scores(
                np.zeros(len(self._labels))
            )  # raises errors before the training

    def _of_scores(self, scores: np.ndarray) -> Any:
        return evaluate_rows(scores=scores, **self._arguments)

    def _values(self) -> Any:
        scores = np.asarray(self._predict(self._x))
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0]
        if scores.shape != np.shape(self._labels):
            raise ValueError(
                "EvaluateRows needs one score for each row, [rows] or [rows, 1]. "
                f"Received: predictions of shape {scores.shape} for "
                f"{len(self._labels)} labels. For lists [B, N], use EvaluateLists."
            )
        return self._of_scores(scores)


class EvaluateLists(_Evaluation):
    """Evaluates a model of lists on all that `evaluate` knows, while it trains.

    Metrics in `compile` are cheaper, since they see the batches of the validation
    anyway. This callback has slices, masks and strings as ids, and evaluates data of
    its own. It adds its values to the logs, for all callbacks behind it.

    >>> import numpy as np
    >>> import tensorflow as tf
    >>> x = np.random.default_rng(0).normal(size=(2, 3, 4))
    >>> labels, languages = np.array([[1, 0, 0], [0, 0, 1]]), ["de", "en"]
    >>> model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> by_language = EvaluateLists(x, labels, ["mrr"], by={"language": languages})
    >>> history = model.fit(x, labels, callbacks=[by_language], verbose=0).history
    >>> sorted(history)
    ['loss', 'val_mrr', 'val_mrr/language:de', 'val_mrr/language:en']

    A `tf.data.Dataset` of batches of lists takes the place of `x` and `y`, such as the
    one for `validation_data`. Its batches may be padded to different widths:

    >>> lists = tf.data.Dataset.from_tensor_slices((x, labels)).batch(1)
    >>> in_batches = EvaluateLists(lists, metrics=["mrr"])
    >>> history = model.fit(x, labels, callbacks=[in_batches], verbose=0).history
    >>> sorted(history)
    ['loss', 'val_mrr']

    Args:
        x: The inputs, as for `model.predict`. Or a finite `tf.data.Dataset` of
            batches `(x, y)` or `(x, y, sample_weight)`. Each evaluation goes through it
            once, so a dataset that is shuffled again each time is fine, but for `by`.
        y: What `evaluate` takes as `y_true`: labels, or relevant ids. Omit it if `x` is
            a dataset.
        metrics: Names and metric objects, as in `evaluate`.
        inputs, duplicates, num_queries, separator: As in `evaluate`.
        mask, sample_weight: As in `evaluate`. A dataset holds its own: a mask in `y`,
            as `{"labels": ..., "mask": ...}`.
        by: As in `evaluate`. A slice has keys such as `val_ndcg@10/language:de`. The
            slices of a dataset are in the order of its lists, which must not be
            shuffled.
        output: The name or the number of the model's output that holds the scores, if
            it has several. If the `y` of a dataset is a dict or a tuple for all
            outputs, this output's is taken.
        every: Evaluates after every so many epochs or steps.
        unit: "epochs" (the default) or "steps" (batches). Steps are logged at the
            batch, and the last values also at the end of the epoch. With
            `steps_per_execution`, it is the first end of an execution after the step.
        prefix: A string put before each key.
        batch_size: The batch size of the prediction, as for `model.predict`. A dataset
            has its own.
        **options: Options for the metrics given by name. See `tfrankmetrics.Options`.

    Raises:
        ValueError: `evaluate` refuses an argument, or a dataset is infinite, not of
            these elements, or shuffled with `by`. Or, when training starts, a callback
            that reads the values stands in front of this one.
    """

    @takes_options
    def __init__(
        self,
        x: Any,
        y: Any = None,
        metrics: Sequence[str | StatefulMetric] = (),
        *,
        inputs: Inputs | None = None,
        duplicates: Duplicates | None = None,
        mask: Any = None,
        sample_weight: Any = None,
        by: Any = None,
        num_queries: bool = False,
        separator: Separator = "@",
        output: str | int | None = None,
        every: int = 1,
        unit: Unit = "epochs",
        prefix: str = "val_",
        batch_size: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        if isinstance(x, tf.data.Dataset):
            others = {"mask": mask, "sample_weight": sample_weight}
            _require_batches_of_lists(x, y, {**others, "batch_size": batch_size})
            if by is not None:
                _refuse_shuffled(x)
        elif y is None:
            raise ValueError(
                "EvaluateLists needs the labels, or the relevant ids, of its lists. "
                f"Received: y=None, and x={shortened(x)}. Pass y, or a tf.data.Dataset "
                "of batches (x, y)."
            )
        data = input_format(inputs, duplicates)
        named = named_measures(metrics, options, data, separator)
        super().__init__(named, output, every, unit, prefix, batch_size)
        self._x, self._y, self._predict_step = x, y, None
        self._of_arrays = {"mask": mask, "sample_weight": sample_weight}
        self._arguments = {
            "metrics": metrics,
            "inputs": inputs,
            "duplicates": duplicates,
            "by": by,
            "num_queries": num_queries,
            "separator": separator,
            **options,
        }

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Forgets the model of an earlier training."""
        super().on_train_begin(logs)
        self._predict_step = None

    def _values(self) -> Any:
        if isinstance(self._x, tf.data.Dataset):
            return evaluate_batches(self._batches(), **self._arguments)
        scores = self._predict(self._x)
        return evaluate(self._y, scores, **self._of_arrays, **self._arguments)

    def _batches(self) -> Iterator[tuple[Any, Any, Any]]:
        """The labels, scores and weights of each batch, from one pass."""
        if self._predict_step is None:
            # `predict_on_batch` repeats the lists on replicas in Keras 3, and fails
            # with steps_per_execution in Keras 2.
            step = self.model.predict_step
            is_eager = self.model.run_eagerly
            self._predict_step = (
                step if is_eager else tf.function(step, reduce_retracing=True)
            )
        for x, y, *weights in self._x:
            scores = _output_of(self._predict_step((x,)), self._output, "EvaluateLists")
            yield (
                _of_output(y, self._output),
                scores,
                _of_output(weights[0], self._output) if weights else None,
            )


def _require_batches_of_lists(x: Any, y: Any, others: Mapping[str, Any]) -> None:
    """Raises ValueError for a dataset that cannot be evaluated, or beside arrays."""
    given = {"y": y, **others}
    beside = [name for name, value in given.items() if value is not None]
    if beside:
        raise ValueError(
            "A dataset holds its own labels, masks, weights and batches. Received: a "
            f"dataset, and also {listed(beside)}. Pass EvaluateLists(dataset, "
            "metrics=[...]), with batches (x, y) or (x, y, sample_weight), where y may "
            'be {"labels": ..., "mask": ...}.'
        )
    spec = x.element_spec
    if not isinstance(spec, tuple) or len(spec) not in (2, 3):
        raise ValueError(
            "A dataset must have batches (x, y) or (x, y, sample_weight), as for "
            f"`fit`. Received: {shortened(spec)}."
        )
    if x.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise ValueError(
            "A dataset must be finite, since each evaluation reads all of it. "
            "Received: an infinite dataset. Omit repeat(), or add "
            "take(number of batches)."
        )


def _refuse_shuffled(dataset: Any) -> None:
    """Raises ValueError if the order of a dataset is random.

    TensorFlow has no public way to see this, and this reads a private method. If it is
    renamed, the error no longer appears, and a test fails.
    """
    if "Shuffle" in type(dataset).__name__:
        raise ValueError(
            "`by` has a slice for each list of a dataset, in its order. Received: "
            "`by`, and a dataset with shuffle(). Omit shuffle(), which an evaluation "
            "does not need."
        )
    for source in getattr(dataset, "_inputs", list)():
        _refuse_shuffled(source)


def _of_output(data: Any, output: Any) -> Any:
    """The labels or weights of one output, if these are of several, as for `fit`."""
    if output is not None and isinstance(data, (Mapping, tuple)):
        with contextlib.suppress(KeyError, IndexError, TypeError):
            return data[output]
    return data
