"""What all Keras metrics of this library share: state, updates and configs."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfrankmetrics.per_query import call_compiled, means, weighted_sums
from tfrankmetrics.registry import Measure, make_measure
from tfrankmetrics.ways_in import WayIn, check_meaning, make_way_in

try:
    KerasMetric = tf.keras.metrics.Metric
except ImportError as error:
    raise ImportError(
        "tfrankmetrics needs Keras with its TensorFlow backend, and Keras failed to "
        f"load. Received: KERAS_BACKEND={os.environ.get('KERAS_BACKEND')!r}. Unset it, "
        "or set it to 'tensorflow', before Python starts."
    ) from error


class StatefulMetric(KerasMetric):
    """A Keras metric whose state is the sums of some measures.

    The state is one float64 tensor `[measures, 2]`: the sums of weight * value
    and of weight. In float64 it stays exact to 1e-8 over 10^8 single updates,
    where float32 is 1% off after 10^6. It is additive, so replicas and workers
    combine to what one device would have computed.
    """

    def __init__(
        self,
        measures: Sequence[Measure],
        way_in: WayIn,
        name: str | None,
        dtype: str | None,
    ) -> None:
        if tf.keras.backend.backend() != "tensorflow":
            raise RuntimeError(
                "tfrankmetrics' Keras metrics need Keras's TensorFlow backend. "
                f"Received: the backend {tf.keras.backend.backend()!r}. Set "
                "KERAS_BACKEND=tensorflow before importing Keras, or use "
                "tfrankmetrics.evaluate on arrays."
            )
        super().__init__(name=name, dtype=dtype)
        if not tf.as_dtype(self.dtype).is_floating:
            raise ValueError(
                "The dtype of a metric's result must be a float. "
                f"Received: dtype={dtype!r}."
            )
        self._measures = tuple(measures)
        self._way_in = tuple(way_in)  # Keras would turn a named tuple into another
        self._sums = self.add_weight(
            name="sums",
            shape=(len(self._measures), 2),
            initializer="zeros",
            dtype="float64",
        )
        self._queries_seen = None
        if any(measure["ties"] == "random" for measure in self._measures):
            self._queries_seen = self.add_weight(
                name="queries_seen", shape=(), initializer="zeros", dtype="int64"
            )

    @property
    def way_in(self) -> WayIn:
        """What `update_state` takes: labels, ids or a catalogue."""
        return WayIn(*self._way_in)

    @tf.autograph.experimental.do_not_convert
    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds a batch of queries.

        Args:
            y_true: Labels `[B, N]`, or `[N]` for one list; dense or ragged. For
                metrics of subtopics `[B, N, T]`, one label for each. A label below
                0 marks padding; where there are several, all of an item's do. Or
                a dict with `labels` and a boolean `mask` `[B, N]`, True for the
                items that count; then the mask alone decides, and a negative label
                is not relevant. A Keras mask that `y_pred` carries does the same.

                With inputs="ids", the relevant ids, `[B]` or `[B, M]` in any
                order, integers with -1 for padding. With inputs="catalogue" too,
                each the place of an item in the catalogue; `[B, T]` or
                `[B, T, M]` for sequences. Or a dict of `ids` and, if wanted,
                their `relevance`, of the same shape, and for a catalogue the ids
                to `exclude` from the ranking, `[B, E]` or `[B, T, E]`.
            y_pred: Scores of the labels' shape, or `[B, N, 1]`; higher ranks
                first. Any float or integer dtype, compared as it is. NaN
                ranks below every number; -inf says that an item was not retrieved.

                With inputs="ids", recommended ids `[B, K]`, best first, with -1
                for padding at the end. With inputs="catalogue", scores of all
                items, `[B, V]`, or `[B, T, V]` for each step of a sequence.
            sample_weight: None, a scalar, `[B]` or `[B, 1]` for one weight a
                query, or with labels of their shape for one weight an item, or
                `[B, T]` for one a step.

        Raises:
            ValueError: Shapes or dtypes are not of these forms. In a graph
                with unknown dimensions, `tf.errors.InvalidArgumentError` when
                it runs.
        """
        container = _keras_container()
        if container is not None:
            self._check_use_in_keras(container, y_pred)
        lists = self.way_in.read(y_true, y_pred, sample_weight)
        first_query = 0
        if self._queries_seen is not None:
            first_query = tf.convert_to_tensor(self._queries_seen)
            self._queries_seen.assign_add(lists.number)
        if tf.executing_eagerly():
            sums = call_compiled(weighted_sums, self._measures, lists, first_query)
        else:
            sums = weighted_sums(self._measures, lists, first_query)
        self._sums.assign_add(sums)

    def _check_use_in_keras(self, container: Any, y_pred: Any) -> None:
        """Refuses what `fit` and `evaluate` would turn into a plausible number."""
        _refuse_other_keras(container)
        if self.way_in.inputs == "labels":
            _refuse_single_items(y_pred)

    def computations(self, *args: Any, **kwargs: Any) -> None:
        """Refuses to be a metric of TensorFlow Model Analysis, which calls this."""
        raise TypeError(
            "TensorFlow Model Analysis takes metrics of Keras 2 only. Received: "
            f"{type(self).__name__}, a metric of Keras 3. The same metrics on Beam: "
            "tfrankmetrics.tfma.eval_config(['ndcg@10'], label_key=...)."
        )

    def reset_state(self) -> None:
        """Forgets all batches."""
        for variable in self.variables:
            variable.assign(tf.zeros(variable.shape, variable.dtype))

    def __reduce__(self) -> tuple:
        """Copies and pickles by config and state, with Keras 2 and 3 alike."""
        state = [tf.convert_to_tensor(variable).numpy() for variable in self.variables]
        return _restore, (type(self), self.get_config(), state)

    def _results(self) -> list[tf.Tensor]:
        """The value of each measure, in the metric's dtype; NaN before any query."""
        values = means(tf.convert_to_tensor(self._sums))
        return tf.unstack(tf.cast(values, self.dtype))


class SingleMetric(StatefulMetric):
    """One metric. Subclasses name the formula and give it a signature."""

    formula: str

    def __init__(self, arguments: dict[str, Any]) -> None:
        """Takes the arguments of the subclass as `locals()` gives them there."""
        options = {
            name: value
            for name, value in arguments.items()
            if name not in ("self", "__class__")
        }
        name, dtype = options.pop("name"), options.pop("dtype")
        way_in = make_way_in(options.pop("inputs"), options.pop("duplicates", None))
        measure = make_measure(self.formula, options.pop("k", None), **options)
        check_meaning([measure], way_in)
        super().__init__([measure], way_in, name or measure.name, dtype)
        self.measure = measure
        # For Keras 3's callbacks with mode="auto".
        self._direction = "down" if measure.formula.lower_is_better else "up"

    @property
    def k(self) -> int | None:
        """The cutoff, or None for the whole list."""
        return self.measure.k

    def result(self) -> tf.Tensor:
        """The weighted mean over the queries so far: a scalar, NaN before any."""
        return self._results()[0]

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this metric again."""
        options = {name: to_config(value) for name, value in self.measure.options}
        options["inputs"], duplicates = self.way_in
        if self.measure.formula.has_cutoff:
            options["k"] = self.k
        if options["inputs"] == "ids":
            options["duplicates"] = duplicates
        return {**super().get_config(), **options}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SingleMetric:
        """Makes the metric from what `get_config` returned."""
        return cls(**{name: from_config(value) for name, value in config.items()})


def _restore(
    cls: type[StatefulMetric], config: dict[str, Any], state: list[np.ndarray]
) -> StatefulMetric:
    metric = cls.from_config(config)
    for variable, value in zip(metric.variables, state, strict=True):
        variable.assign(value)
    return metric


def to_config(value: Any) -> Any:
    """A function or metric as Keras serialises it; anything else as plain Python."""
    if isinstance(value, np.generic):
        return value.item()
    if callable(value):
        return tf.keras.utils.serialize_keras_object(value)
    return value


def from_config(value: Any) -> Any:
    """The inverse of `to_config`."""
    if isinstance(value, dict) and "class_name" in value:
        return tf.keras.utils.deserialize_keras_object(value)
    return value


def _keras_container() -> Any:
    """The object through which `fit` or `evaluate` updates this metric, if any.

    Keras does not tell a metric which others stand beside it in `compile`, so
    this looks for their container among the callers.
    """
    frame = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if type(caller).__name__ in ("CompileMetrics", "MetricsContainer"):
            return caller
        frame = frame.f_back
    return None


def _refuse_single_items(y_pred: Any) -> None:
    """A model of single items would get numbers here, of whole batches or of luck."""
    shape = y_pred.shape
    # Run eagerly, a batch may happen to hold nothing but lists of one item.
    is_single = len(shape) == 2 and shape[1] == 1 and not tf.executing_eagerly()
    if len(shape) == 1 or is_single:
        raise ValueError(
            "In fit and evaluate of a model, scores must be [B, N] or [B, N, 1], a "
            f"list of items for each query. Received: scores of shape {shape}, an item "
            "for each example. Group scores by query and use tfrankmetrics.evaluate."
        )


def _refuse_other_keras(container: Any) -> None:
    """Keras 3 would average our results as if they were per-example losses."""
    if type(container).__name__ == "CompileMetrics" and not isinstance(
        container, KerasMetric
    ):
        raise RuntimeError(
            "This metric was made for Keras 2, which tf.keras is here (TF_USE_LEGACY_"
            "KERAS=1), and the model is one of Keras 3. Build the model from tf.keras, "
            "or unset TF_USE_LEGACY_KERAS."
        )
