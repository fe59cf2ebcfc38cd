"""The metric objects where Keras is not installed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.arrays.numpy import quiet
from tfrankmetrics.evaluation.accumulator import Accumulator
from tfrankmetrics.inputs.formats import InputFormat
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.rules import shortened


class Listed(NamedTuple):
    """A metric in the list of an `Accumulator`."""

    name: str
    measure: Measure
    input_format: InputFormat


class AccumulatingMetric:
    """A metric with the methods of a Keras metric, whose state is an `Accumulator`.

    It computes arrays of NumPy, PyTorch and JAX, and all else that `evaluate` accepts.
    The result is a number of NumPy, by default a float64.
    """

    arguments: Mapping[str, Any]  # as those of `MetricBase`, which derives from this
    result: Callable[[], Any]

    def __init__(
        self,
        named: Mapping[str, Measure],
        input_format: InputFormat,
        name: str | None,
        dtype: str | None,
        *,
        num_queries: bool = False,
    ) -> None:
        self.name = name or "ranking_metrics"  # the name of all others is given
        self.dtype = _dtype_of_result(dtype)
        self._measures = (*named.values(),)
        self._input_format, self._num_queries = input_format, num_queries
        self._listed = [Listed(*each, input_format) for each in named.items()]

    @functools.cached_property
    def _accumulator(self) -> Accumulator:
        # A metric that is only passed to `evaluate` may lack what an update requires.
        return Accumulator(
            self._listed,
            num_queries=self._num_queries,
            **self._input_format.arguments,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Adds a batch as `update_state` does and returns the result."""
        self.update_state(*args, **kwargs)
        return self.result()

    def update_state(
        self, y_true: Any, y_pred: Any, sample_weight: Any | None = None
    ) -> None:
        """As `MetricBase.update_state` states."""
        self._accumulator.update(y_true, y_pred, sample_weight)

    def reset_state(self) -> None:
        """As `MetricBase.reset_state` states."""
        self._accumulator.reset()

    def merge_state(self, metrics: Iterable[AccumulatingMetric]) -> None:
        """As `MetricBase.merge_state` states."""
        self._accumulator.merge(*(each._accumulator for each in metrics))

    def get_config(self) -> dict[str, Any]:
        """As `MetricBase.get_config` states."""
        return {"name": self.name, "dtype": self.dtype, **self.arguments}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """As `MetricBase.from_config` states."""
        return cls(**config)

    def _saved_state(self) -> dict[str, Any]:
        return self._accumulator.state_dict()

    def _load_state(self, state: dict[str, Any]) -> None:
        self._accumulator.load_state_dict(state)

    def _results(self) -> list[np.floating]:
        """The value of each measure, and the number of queries if it is returned.

        NaN before any query, and for a value that overflows the dtype.
        """
        values = np.array([*dict(self._accumulator.compute()).values()])
        with quiet():
            values = values.astype(self.dtype)
        return [*np.where(np.isfinite(values), values, np.nan)]


def _dtype_of_result(dtype: Any) -> str:
    """The name of a dtype, by default float64. Raises ValueError if it is no float."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found.kind != "f":
        raise ValueError(
            "The dtype of a metric's result must be a float. "
            f"Received: dtype={shortened(dtype)}."
        )
    return found.name
