"""What Beam calls to add up queries, of which TFMA hands out one at a time."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import tensorflow as tf
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.metrics import metric_types, metric_util
from tensorflow_model_analysis.proto import config_pb2

from tfrankmetrics.inputs import padded_lists
from tfrankmetrics.per_query import call_compiled, means, weighted_sums
from tfrankmetrics.registry import Measure
from tfrankmetrics.ways_in import make_way_in, measures_for, require_values

# Enough queries to keep a call's own cost small, and few enough to keep in memory.
QUERIES_AT_A_TIME = 512
# Lists of one item, if there is no other list in a slice: those are rows.
TOO_MANY_OF_ONE = 20
_ONE = np.ones(1)


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
        f"{name}={value}" for name, value in measure.options if value != defaults[name]
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
    ) -> None:
        self._config = config
        self._keys = keys
        self._is_weighted = example_weighted
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
            # TFMA's own errors end in a print of the whole query.
            mistake = str(error).partition("\n\nto_label_prediction_example_weight(")[0]
            return accumulator._replace(mistake=mistake)

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
        if accumulator.number >= TOO_MANY_OF_ONE and accumulator.longest == 1:
            raise ValueError(
                "Lists must have more than one item for their order to mean anything. "
                f"Received: {accumulator.number} lists of one item each. For data with "
                "a row for each query and document, name the `query_key`."
            )
        values = means(tf.constant(accumulator.sums)).numpy().tolist()
        return dict(zip(self._keys, values, strict=True))

    def _query(self, element: metric_types.StandardMetricInputs) -> _Query:
        if not self._is_nested:
            labels = element.get(constants.LABELS_KEY)
            scores = element.get(constants.PREDICTIONS_KEY)
            weights = element.get(constants.EXAMPLE_WEIGHTS_KEY, _ONE)
            if not self._is_weighted:
                weights = _ONE
            if all(map(_are_numbers, (labels, scores, weights))):
                return _Query(labels, scores, weights)
        # TFMA's own way also looks into mappings of models, outputs and predictions,
        # and takes some eight microseconds a query.
        found = metric_util.to_label_prediction_example_weight(
            element, flatten=False, **self._arguments
        )
        return _Query(*next(found))

    def _added_up(self, accumulator: _Sums, unless_fewer_than: int = 1) -> _Sums:
        waiting = accumulator.waiting
        if len(waiting) < unless_fewer_than or accumulator.mistake:
            return accumulator
        labels, lengths = _as_rows([query.labels for query in waiting], padding=-1.0)
        scores, numbers = _as_rows([query.scores for query in waiting], padding=0.0)
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
        measures = tuple(measures_by_key(self._config).values())
        more = call_compiled(weighted_sums, measures, lists, 0).numpy()
        return _Sums(
            accumulator.sums + more,
            accumulator.number + len(waiting),
            max(accumulator.longest, labels.shape[1]),
            [],
        )


def _are_numbers(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "fiub"


def _as_rows(
    arrays: Sequence[np.ndarray], padding: float
) -> tuple[np.ndarray, np.ndarray]:
    """Arrays of any length as the rows of one, and their lengths."""
    lengths = np.array([array.size for array in arrays])
    rows = np.full((len(arrays), lengths.max()), padding)
    is_inside = np.arange(rows.shape[1]) < lengths[:, np.newaxis]
    rows[is_inside] = np.concatenate(arrays, axis=None)
    return rows, lengths


def _weights(queries: Sequence[_Query]) -> np.ndarray:
    """The weight of each query `[B]`, which all its rows must share."""
    weights = np.array([query.weights.flat[0] for query in queries], np.float64)
    for query, weight in zip(queries, weights, strict=True):
        if (query.weights != weight).any():
            raise ValueError(
                "All rows of a query must have the same example weight, which weighs "
                "the query. Received: weights from "
                f"{query.weights.min()} to {query.weights.max()}."
            )
    return weights
