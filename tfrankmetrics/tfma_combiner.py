"""What Beam calls to add up queries, of which TFMA hands out one at a time."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import tensorflow as tf
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.metrics import metric_types, metric_util
from tensorflow_model_analysis.proto import config_pb2

from tfrankmetrics.evaluate import require_finite
from tfrankmetrics.inputs import padded_lists
from tfrankmetrics.per_query import (
    call_compiled,
    means,
    values_and_weights,
    weighted_sums,
)
from tfrankmetrics.registry import Measure
from tfrankmetrics.ways_in import make_way_in, measures_for, require_values

# Enough queries to keep a call's own cost small, and few enough to keep in memory.
QUERIES_AT_A_TIME = 512
# Without a query key, lists of one item, if a slice has no other: those are rows.
TOO_MANY_OF_ONE = 5
_ONE = np.ones(1)
# What a query is read from, and the option that says where it is.
_LABELS = (constants.LABELS_KEY, "label_key")
_SCORES = (constants.PREDICTIONS_KEY, "prediction_key")
_WEIGHTS = (constants.EXAMPLE_WEIGHTS_KEY, "example_weight_key")


def as_json(metrics: Sequence[str], options: Mapping[str, Any]) -> str:
    """Metrics and options as TFMA keeps them."""
    try:
        return json.dumps([metrics, dict(options)])
    except TypeError:
        raise ValueError(
            "TFMA keeps metrics and their options as JSON, so they must be strings, "
            "numbers, booleans or None: no metric objects, and no functions of one's "
            f"own. Received: {metrics!r} with {options!r}."
        ) from None


@functools.cache
def measures_by_key(config: str) -> dict[str, Measure]:
    """The measures by key, from metrics and options as JSON."""
    metrics, options = json.loads(config)
    named = measures_for(make_way_in(None, None), metrics, options)
    for measure in named.values():
        if measure.formula.has_subtopics:
            raise ValueError(
                f"`{measure.name}` reads labels of subtopics: not in TFMA."
            )
        if measure["ties"] == "random":
            raise ValueError(
                "ties='random' draws by the number of the query, and queries have no "
                "order on Beam. Use 'expected' or 'stable'."
            )
    return {_key_name(measure): measure for measure in named.values()}


def _key_name(measure: Measure) -> str:
    parameters = measure.formula.parameters()
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    chosen = ",".join(
        f"{name}={str(value).removesuffix('.0')}"  # 2 and 2.0 are one option
        for name, value in measure.options
        if value != defaults[name]
    )
    return f"{measure.name}({chosen})" if chosen else measure.name


class _Query(NamedTuple):
    """What TFMA knows of a query; the weights are of the query or of each row."""

    labels: np.ndarray
    scores: np.ndarray
    weights: np.ndarray


class _Sums(NamedTuple):
    """Sums of weight * value and of weight, and the queries that are yet to add."""

    sums: np.ndarray  # [metrics, 2]
    number: int  # of queries in the sums
    longest: int  # of their lists
    waiting: list[_Query]
    # What is wrong with the data. TFMA would put the whole query before an error that
    # `add_input` raises, so it is kept for the end.
    mistake: str | None = None


class Combiner(beam.CombineFn):
    """Adds up queries; TFMA gives it one element a query, or a list-wise example.

    Beam's name for its state between two calls is an accumulator.
    """

    def __init__(
        self,
        config: str,
        keys: list[metric_types.MetricKey],
        eval_config: config_pb2.EvalConfig | None,
        model_name: str,
        output_name: str,
        example_weighted: bool,
        query_key: str,
    ) -> None:
        self._config = config
        self._keys = keys
        self._is_weighted = example_weighted
        self._query_key = query_key
        self._is_nested = bool(model_name or output_name)
        self._arguments = {
            "eval_config": eval_config,
            "model_name": model_name,
            "output_name": output_name,
            "example_weighted": example_weighted,
        }

    def create_accumulator(self) -> _Sums:
        """No queries yet."""
        return _Sums(np.zeros((len(self._keys), 2)), 0, 0, [])

    def add_input(
        self, accumulator: _Sums, element: metric_types.StandardMetricInputs
    ) -> _Sums:
        """Takes one query in."""
        if accumulator.mistake:
            return accumulator
        try:
            accumulator.waiting.append(self._query(element))
            return self._added_up(accumulator, unless_fewer_than=QUERIES_AT_A_TIME)
        except ValueError as error:
            return accumulator._replace(mistake=str(error))

    def merge_accumulators(self, accumulators: Iterable[_Sums]) -> _Sums:
        """The sums of several workers as one."""
        merged = self.create_accumulator()
        for sums, number, longest, waiting, mistake in accumulators:
            merged = _Sums(
                merged.sums + sums,
                merged.number + number,
                max(merged.longest, longest),
                merged.waiting + waiting,
                merged.mistake or mistake,
            )
            merged = self._added_up(merged, unless_fewer_than=QUERIES_AT_A_TIME)
        return merged

    def compact(self, accumulator: _Sums) -> _Sums:
        """Only sums are sent to other workers, no queries."""
        return self._added_up(accumulator)

    def extract_output(self, accumulator: _Sums) -> dict[metric_types.MetricKey, float]:
        """The means; what is wrong with the data comes out here, as an error."""
        accumulator = self._added_up(accumulator)
        if accumulator.mistake:
            raise ValueError(accumulator.mistake)
        are_of_one = accumulator.number >= TOO_MANY_OF_ONE and accumulator.longest == 1
        if are_of_one and not self._query_key:
            raise ValueError(
                "Lists must have more than one item for their order to mean anything. "
                f"Received: {accumulator.number} lists of one item each. For data with "
                "a row for each query and document, name the `query_key`."
            )
        values = means(tf.constant(accumulator.sums)).numpy().tolist()
        return dict(zip(self._keys, values, strict=True))

    def _query(self, element: metric_types.StandardMetricInputs) -> _Query:
        if self._query_key and not np.size(element.features.get(self._query_key, ())):
            raise ValueError(
                "Each row must have the feature of the query key, or TFMA makes one "
                f"query of all that lack it. Received: query_key={self._query_key!r} "
                "and rows without it."
            )
        places = (
            [_LABELS, _SCORES, _WEIGHTS] if self._is_weighted else [_LABELS, _SCORES]
        )
        found = [element.get(place) for place, _ in places]
        is_nested = self._is_nested
        for values, (name, option) in zip(found, places, strict=True):
            if isinstance(values, Mapping):
                is_nested = True
            else:
                _require_numbers(values, name, option)
        if is_nested:
            found = self._found_in_mappings(element)
        return _Query(*found) if self._is_weighted else _Query(*found[:2], _ONE)

    def _found_in_mappings(self, element: metric_types.StandardMetricInputs) -> tuple:
        """TFMA's own way, for several models or outputs; it takes 8 microseconds."""
        try:
            found = next(
                metric_util.to_label_prediction_example_weight(
                    element, flatten=False, **self._arguments
                )
            )
        except Exception as error:
            # TFMA's own errors end in a print of the whole query.
            reason = re.split(r"[:,] (?:\w+=|\{)|\n", str(error))[0]
            raise ValueError(
                "TFMA does not find the numbers of a query. Are `prediction_key`, "
                f"`label_key` and the output's name right? TFMA says: {reason}."
            ) from None
        for values, (name, option) in zip(
            found, (_LABELS, _SCORES, _WEIGHTS), strict=True
        ):
            _require_numbers(values, name, option)
        return found

    def _added_up(self, accumulator: _Sums, unless_fewer_than: int = 1) -> _Sums:
        waiting = accumulator.waiting
        if len(waiting) < unless_fewer_than or accumulator.mistake:
            return accumulator
        labels, lengths = _as_rows([query.labels for query in waiting], -1, np.float64)
        scores, numbers = _as_rows([query.scores for query in waiting], 0)
        if (lengths != numbers).any():
            first = np.argmax(lengths != numbers)
            raise ValueError(
                "A query must have as many labels as predictions. Received: "
                f"{lengths[first]} labels and {numbers[first]} predictions. Is the "
                "label key, the prediction key or the padding of lists another than "
                "meant?"
            )
        weights = _weights(waiting) if self._is_weighted else None
        lists = padded_lists(labels, scores, weights)
        require_values(lists)
        named = measures_by_key(self._config)
        measures = tuple(named.values())
        more = call_compiled(weighted_sums, measures, lists, 0).numpy()
        if not np.isfinite(more).all():
            values, weights = call_compiled(values_and_weights, measures, lists, 0)
            require_finite(named, values.numpy(), weights.numpy())
        return _Sums(
            accumulator.sums + more,
            accumulator.number + len(waiting),
            max(accumulator.longest, labels.shape[1]),
            [],
        )


def _require_numbers(values: Any, name: str, option: str) -> None:
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        return
    received = f"{type(values).__name__}, as of rows with different numbers of them"
    if values is None:
        received = "none"
    elif isinstance(values, np.ndarray):
        kind = type(values.flat[0]).__name__ if values.size else values.dtype
        received = f"an array of {kind}"
    raise ValueError(
        f"Each row or list must have {name}, and they must be numbers. Received: "
        f"{received}. Is `{option}` a feature of all the data?"
    )


def _as_rows(
    arrays: Sequence[np.ndarray], padding: int, dtype: type | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Arrays of any length as the rows of one, and their lengths."""
    lengths = np.array([array.size for array in arrays])
    values = np.concatenate(arrays, axis=None)
    rows = np.full((len(arrays), lengths.max()), padding, dtype or values.dtype)
    rows[np.arange(rows.shape[1]) < lengths[:, np.newaxis]] = values
    return rows, lengths


def _weights(queries: Sequence[_Query]) -> np.ndarray:
    """The weight of each query `[B]`, which all its rows but padding must share."""
    weights = []
    for query in queries:
        of_items = np.ravel(query.weights)
        if of_items.size == query.labels.size and (query.labels >= 0).any():
            of_items = of_items[np.ravel(query.labels) >= 0]
        if not of_items.size or (of_items != of_items[0]).any():
            received = "none"
            if of_items.size:
                received = f"weights from {of_items.min()} to {of_items.max()}"
            raise ValueError(
                "All rows of a query must have the same example weight, which weighs "
                f"the query. Received: {received}."
            )
        weights.append(of_items[0])
    return np.array(weights, np.float64)
