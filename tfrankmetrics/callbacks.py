"""Callbacks that evaluate a model while it trains, and add the values to its logs."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import tensorflow as tf

from tfrankmetrics.evaluate import evaluate
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
    shortened,
    takes_options,
)
from tfrankmetrics.results import SlicedValues
from tfrankmetrics.retrieval.evaluate import evaluate_retrieval
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
        self._steps, self._logs = 0, {}

    def _values(self) -> Any:
        """What `evaluate` or `evaluate_rows` returns."""
        raise NotImplementedError

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Refuses to stand behind a callback that reads the values."""
        self._steps, self._logs = 0, {}
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
        self._steps += 1
        if self._unit == "steps" and self._steps % self._every == 0:
            self._evaluate(logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Evaluates every n epochs; with unit="steps" logs the last values."""
        if self._unit == "epochs" and (epoch + 1) % self._every == 0:
            self._evaluate(logs)
        elif logs is not None:
            logs.update(self._logs)
        self._logs = {}

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
            where = ",".join(
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
            batch, and the last values also at the end of the epoch.
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

    Args:
        x: The inputs, as for `model.predict`.
        y: What `evaluate` takes as `y_true`: labels, or relevant ids.
        metrics: Names and metric objects, as in `evaluate`.
        inputs, duplicates, mask, sample_weight, by, num_queries, separator: As in
            `evaluate`. A slice has keys such as `val_ndcg@10/language:de`.
        output: The name or the number of the model's output that holds the scores, if
            it has several.
        every: Evaluates after every so many epochs or steps.
        unit: "epochs" (the default) or "steps" (batches). Steps are logged at the
            batch, and the last values also at the end of the epoch.
        prefix: A string put before each key.
        batch_size: The batch size of the prediction, as for `model.predict`.
        **options: Options for the metrics given by name. See `tfrankmetrics.Options`.

    Raises:
        ValueError: `evaluate` refuses an argument. Or, when training starts, a callback
            that reads the values stands in front of this one.
    """

    @takes_options
    def __init__(
        self,
        x: Any,
        y: Any,
        metrics: Sequence[str | StatefulMetric],
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
        data = input_format(inputs, duplicates)
        named = named_measures(metrics, options, data, separator)
        super().__init__(named, output, every, unit, prefix, batch_size)
        self._x, self._y = x, y
        self._arguments = {
            "metrics": metrics,
            "inputs": inputs,
            "duplicates": duplicates,
            "mask": mask,
            "sample_weight": sample_weight,
            "by": by,
            "num_queries": num_queries,
            "separator": separator,
            **options,
        }

    def _values(self) -> Any:
        return evaluate(self._y, self._predict(self._x), **self._arguments)


class EvaluateRetrieval(_Evaluation):
    """Evaluates a retrieval model over its whole catalogue, while it trains.

    In-batch training compares a query with the items of its batch only, and so do
    metrics in `compile`. This callback ranks the relevant items of each query among all
    candidates by `evaluate_retrieval`, and adds the values to the logs, for all
    callbacks behind it.

    >>> import tensorflow as tf
    >>> users, items = tf.keras.layers.Embedding(5, 4), tf.keras.layers.Embedding(9, 4)
    >>> model = tf.keras.Sequential([users, tf.keras.layers.Dense(9)])
    >>> model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(True))
    >>> ids = tf.range(5)
    >>> whole_catalogue = EvaluateRetrieval(
    ...     ids, tf.range(9), ids, ["mrr"], query_tower=users, candidate_tower=items
    ... )
    >>> history = model.fit(ids, ids, callbacks=[whole_catalogue], verbose=0).history
    >>> sorted(history)
    ['loss', 'val_mrr']

    Each evaluation takes the time of the towers and of `evaluate_retrieval`.

    Args:
        queries: The inputs of the query tower, with a row for each query.
        candidates: The inputs of the candidate tower, with a row for each candidate.
        relevant: Ids of the relevant items, as in `evaluate_retrieval`.
        metrics: Names and metric objects, as in `evaluate`.
        query_tower: A part of the model, such as `model.query_tower`, that makes
            vectors, or the inputs of `score`, out of queries. None if the queries are
            vectors already.
        candidate_tower: The same for candidates.
        score, exclude, candidate_ids, chunk_size, sample_weight, by, num_queries,
            separator: As in `evaluate_retrieval`. A slice has keys such as
            `val_ndcg@10/language:de`.
        every: Evaluates after every so many epochs or steps.
        unit: "epochs" (the default) or "steps" (batches). Steps are logged at the
            batch, and the last values also at the end of the epoch.
        prefix: A string put before each key.
        batch_size: The number of queries at a time, as in `evaluate_retrieval`.
        **options: Options for the metrics given by name. See `tfrankmetrics.Options`.

    Raises:
        ValueError: `evaluate_retrieval` refuses an argument. Or, when training starts,
            a callback that reads the values stands in front of this one.
    """

    @takes_options
    def __init__(
        self,
        queries: Any,
        candidates: Any,
        relevant: Any,
        metrics: Sequence[str | StatefulMetric],
        *,
        query_tower: Any = None,
        candidate_tower: Any = None,
        score: Callable[[Any, Any], Any] | None = None,
        exclude: Any = None,
        candidate_ids: Any = None,
        chunk_size: int | None = None,
        sample_weight: Any = None,
        by: Any = None,
        num_queries: bool = False,
        separator: Separator = "@",
        every: int = 1,
        unit: Unit = "epochs",
        prefix: str = "val_",
        batch_size: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        named = named_measures(metrics, options, input_format("catalogue"), separator)
        super().__init__(named, None, every, unit, prefix, batch_size)
        if query_tower is None and candidate_tower is None and score is None:
            raise ValueError(
                "EvaluateRetrieval needs the parts of the model that score: "
                "`query_tower`, `candidate_tower` or `score`. Received: none of them, "
                "so that no value would change. Pass query_tower=model.query_tower."
            )
        self._arguments = {
            "queries": queries,
            "candidates": candidates,
            "relevant": relevant,
            "metrics": metrics,
            "query_tower": query_tower,
            "candidate_tower": candidate_tower,
            "score": score,
            "exclude": exclude,
            "candidate_ids": candidate_ids,
            "batch_size": batch_size,
            "chunk_size": chunk_size,
            "sample_weight": sample_weight,
            "by": by,
            "num_queries": num_queries,
            "separator": separator,
            **options,
        }

    def _values(self) -> Any:
        is_verbose = (self.params or {}).get("verbose", 0) == 1
        return evaluate_retrieval(**self._arguments, verbose=is_verbose)
