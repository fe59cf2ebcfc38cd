"""The common part of all Keras metrics: state, updates and configs."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arguments import ArrayLike
from tfrankmetrics.arrays import Array, Library
from tfrankmetrics.compute.calls import call_compiled
from tfrankmetrics.compute.exposures import require_data_in_order, require_known_items
from tfrankmetrics.compute.metric_checks import check_declaration
from tfrankmetrics.compute.sums import (
    num_rows,
    results,
    weighted_sums,
    weighted_sums_and_queries,
)
from tfrankmetrics.graphs import once_per_graph, sharing_in
from tfrankmetrics.inputs.devices import library_for
from tfrankmetrics.inputs.formats import InputFormat
from tfrankmetrics.inputs.mistakes import warn
from tfrankmetrics.keras.backends import library_of_metrics
from tfrankmetrics.keras.bases import KerasMetric
from tfrankmetrics.keras.configs import from_config, require_registered, to_config
from tfrankmetrics.keras.evidence import QUERIES, Evidence
from tfrankmetrics.keras.guards import check_use_in_keras, with_integer_ids
from tfrankmetrics.keras.steps import Step, step_of
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.rules import shortened

BACKEND = library_of_metrics()
READER: Library = "numpy" if BACKEND == "torch" else BACKEND  # of a state
if BACKEND == "tensorflow":
    from tfrankmetrics.keras import tensorflow_variables as variables
else:
    from tfrankmetrics.keras import float32_variables as variables


class StatefulMetric(KerasMetric):
    """A Keras metric whose state is the sums of some measures: a base of all metrics.

    The state is one array, with a row `[2]` for each measure: the sums of weight *
    value and of weight. In float64 it stays exact to 1e-8 over 10^8 single updates,
    where float32 is 1% off after 10^6; JAX and PyTorch hold each number in three of
    float32 (see `float32_variables.py`). A row for the number of queries and rows for
    evidence of mistakes may follow: TFMA adds up the state of a Keras 2 metric as one
    array. The states of replicas and workers, which Keras sums up by default, are the
    state of one device.
    """

    def __init__(
        self,
        named: Mapping[str, Measure],
        input_format: InputFormat,
        name: str | None,
        dtype: str | None,
        *,
        num_queries: bool = False,
    ) -> None:
        fields = getattr(self, "fields", {})  # of a single metric
        for field in fields.keys() - {"name", "dtype"}:
            if hasattr(StatefulMetric, field):
                raise TypeError(
                    "A field must not have the name of an attribute of Keras's "
                    f"metrics. Received: `{field}` of {type(self).__name__}."
                )
        for measure in named.values():
            if measure.declaration.is_custom:
                check_declaration(measure.declaration, BACKEND)
        try:
            super().__init__(name=name, dtype=dtype)
            is_float = "float" in str(self.dtype)
        except (RecursionError, TypeError, ValueError):
            is_float = False
        if not is_float:
            raise ValueError(
                "The dtype of a metric's result must be a float. "
                f"Received: dtype={shortened(dtype)}."
            )
        self._measures = (*named.values(),)
        self._input_format, self._num_queries = input_format, num_queries
        self._sums_of_batch = (
            weighted_sums_and_queries if num_queries else weighted_sums
        )
        self._evidence = Evidence(input_format, self._measures)
        # The number of queries follows the sums if it is returned, and then the facts.
        self._num_sums = num_rows(self._measures)
        self._num_saved = self._num_sums + num_queries
        num_all = self._num_saved + self._evidence.num_rows
        self._sums = variables.new(self, "sums", (num_all, 2))

    @variables.not_converted
    def update_state(
        self,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> None:
        """As `MetricBase.update_state` states."""
        is_compiled = check_use_in_keras(self, y_pred)
        arguments = y_true, y_pred, sample_weight
        library, sharing = BACKEND, nullcontext()
        if BACKEND == "torch":  # for tensors on a CPU, NumPy is faster
            library = library_for(*arguments)
        if library == "torch":
            step = step_of(self, *arguments) if is_compiled else Step(arguments)
            y_true, y_pred, sample_weight = step.arguments
            sharing = sharing_in(step)
        with self._computing_in(library), sharing:
            y_true = with_integer_ids(self, y_true)
            add = functools.partial(self._add, library)
            if library == "jax":
                from tfrankmetrics.keras.tpu import add_also_on_tpu

                add_also_on_tpu(self, add, y_true, y_pred, sample_weight)
            else:
                add(y_true, y_pred, sample_weight)

    def _computing_in(self, library: Library) -> AbstractContextManager:
        """The context in which a library computes what the state holds."""
        return xp.computing_in(library, self._sums.value if library == "jax" else None)

    def _add(
        self, library: Library, y_true: Any, y_pred: Any, sample_weight: Any
    ) -> None:
        """Reads a batch and adds its sums and its facts to the state."""
        lists: Any = once_per_graph(
            type(self._input_format).read,
            self._input_format,
            y_true,
            y_pred,
            sample_weight,
            None,
            library,
        )
        require_data_in_order(self._measures)
        # Values are unknown in a graph, and to read them from an accelerator would take
        # time. Then the result is NaN instead of an error, which is less informative.
        is_tracing = variables.is_tracing(*lists.arrays.values())
        reads_values = not (is_tracing or library == "torch")
        checked = lists
        if reads_values:
            lists.require_positions()
            require_known_items(self._measures, lists)
            checked = lists.on_host(QUERIES)
            self._evidence.uncounted += checked.uncounted_facts(y_true)
        if is_tracing:
            sums = self._sums_of_batch(self._measures, lists)
        else:
            sums = call_compiled(self._sums_of_batch, self._measures, lists)
        if self._evidence.num_rows:
            is_flat = getattr(y_true, "ndim", None) == 1
            evidence = self._evidence.counted_in(checked, is_flat)
            sums = xp.concat([sums, evidence], axis=0)
        variables.add(self._sums, sums)

    def computations(self, *_: Any, **__: Any) -> None:
        """Raises an error in TensorFlow Model Analysis, which calls this method."""
        raise TypeError(
            "TensorFlow Model Analysis supports metrics of Keras 2 only. Received: "
            f"{type(self).__name__}, a metric of Keras 3. Use "
            "tfrankmetrics.tfma.eval_config(['ndcg@10'], label_key=...)."
        )

    def reset_state(self) -> None:
        """As `MetricBase.reset_state` states."""
        self._evidence.reset()
        self._sums.assign(np.zeros(tuple(self._sums.shape)))

    def merge_state(self, metrics: Iterable[StatefulMetric]) -> None:
        """As `MetricBase.merge_state` states."""
        for metric in metrics:
            with self._computing_in(READER):
                amount = variables.numbers_of(metric._sums, READER)
                variables.add(self._sums, amount)

    def get_config(self) -> dict[str, Any]:
        """The arguments that recreate this metric.

        Raises ValueError for a function that Keras could not load again.
        """
        for measure in self._measures:
            for option, value in measure.options:
                if callable(value):
                    require_registered(option, value)
        arguments = {name: to_config(value) for name, value in self.arguments.items()}
        return {**super().get_config(), **arguments}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Makes the metric from the result of `get_config`."""
        return cls(**{name: from_config(value) for name, value in config.items()})

    def _saved_state(self) -> np.ndarray:
        """The sums without the facts, since another version may count other facts.

        Float64 `[rows, 2]` with every backend, which another one can load.
        """
        sums = np.asarray(variables.numbers_of(self._sums, "numpy"))
        return sums[: self._num_saved]

    def _load_state(self, state: np.ndarray) -> None:
        """Sets the sums, and all facts to 0."""
        rows = np.zeros((self._num_saved + self._evidence.num_rows, 2))
        rows[: len(state)] = state
        variables.assign(self._sums, rows)

    # Keras 2 saves the state of metrics with a model. Keras 3 saves none.
    if hasattr(KerasMetric, "save_own_variables"):

        def save_own_variables(self, store: dict[str, np.ndarray]) -> None:
            """Saves the state in the file of a model.

            Args:
                store: The part of the file for this metric.
            """
            store["0"] = self._saved_state()

        def load_own_variables(self, store: dict[str, np.ndarray]) -> None:
            """Loads the state from the file of a model.

            Args:
                store: The part of the file for this metric.
            """
            self._load_state(np.asarray(store["0"]))

    @variables.not_converted
    def _results(self) -> list[Array]:
        """The value of each measure, and the number of queries if it is returned.

        In the metric's dtype. NaN before any query, and for a value that overflows a
        float16.
        """
        with self._computing_in(READER):
            sums = variables.numbers_of(self._sums, READER)
            if not variables.is_tracing(sums):
                self._warn_of_mistakes(np.asarray(sums))
            of_measures = results(self._measures, sums[: self._num_sums])
            values = variables.as_results(of_measures, self.dtype)
            if self._num_saved > self._num_sums:
                values.append(variables.as_result(sums[self._num_sums, 0], self.dtype))
            return values

    def _warn_of_mistakes(self, sums: np.ndarray) -> None:
        if np.isfinite(sums[: len(self._measures)]).all():
            self._evidence.warn(sums[self._num_saved :], self.name)
            return
        cause = hint = ""
        if self._input_format.inputs == "catalog":
            cause = "an id outside of the catalog, "
            hint = (
                "An id must be the position of an item in the scores. If the batch is "
                "the catalog, as in two-tower models, pass tf.range(batch size), not "
                "the ids of the items. "
            )
        warn(
            f"The result of {self.name!r} is NaN, since an update received invalid "
            f"values: {cause}a label or weight that is NaN or infinite, a negative "
            "weight, weights whose sum overflows, or gains that overflow, as of labels "
            f"above 1,023 with gain='exponential'. {hint}Pass the same data to "
            "tfrankmetrics.evaluate to get an error that names the value.",
            self._evidence.warned,
        )
