"""The combiner that Beam calls to add up queries, which TFMA passes one at a time.

`keys.py` reads the saved metrics, and `inputs/` the labels and scores of several
queries, as for `evaluate`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
from tensorflow_model_analysis import constants
from tensorflow_model_analysis.metrics import metric_types, metric_util
from tensorflow_model_analysis.proto import config_pb2

from tfrankmetrics.compute.calls import call_compiled
from tfrankmetrics.compute.combiner import (
    Combiner,
    Evaluated,
    WorkerState,
    means_and_number,
)
from tfrankmetrics.compute.values import values_and_weights
from tfrankmetrics.inputs.ids_as_integers import Codes, as_positions
from tfrankmetrics.inputs.mistakes import (
    MANY,
    Asked,
    Facts,
    warn,
    warn_if_signed,
    warn_of,
)
from tfrankmetrics.inputs.relevant_ids import PADDING
from tfrankmetrics.results.request import Request

# Without a query key, a slice with this many lists, all of one item, consists of rows.
MIN_LISTS_OF_ONE_ITEM = 5
MANY_OF_SLICE = 10 * MANY  # labels: a slice of fewer may hold only relevant items
Arrays = Sequence[np.ndarray]  # one for each query
# Where the values of a query are, and the option that names their feature.
_SOURCES = {
    constants.LABELS_KEY: "label_key",
    constants.PREDICTIONS_KEY: "prediction_key",
    constants.EXAMPLE_WEIGHTS_KEY: "example_weight_key",
}


class _Query(NamedTuple):
    """The labels, scores and weight of a query.

    The labels may be ids of relevant items, and the scores ids of recommended ones.
    """

    labels: np.ndarray
    scores: np.ndarray
    weight: float


class TfmaCombiner(Combiner, beam.CombineFn):
    """Adds up queries. TFMA passes one element for each query and adds up slices."""

    def __init__(
        self,
        request: Request,
        keys: list[metric_types.MetricKey],
        eval_config: config_pb2.EvalConfig | None,
        query_key: str,
    ) -> None:
        super().__init__(request.named)
        self._keys = keys  # of the metrics, and perhaps of the number of queries
        self._data = request.input_format
        self._query_key = query_key
        key = keys[0]
        self._is_weighted = key.example_weighted
        self._is_nested = bool(key.model_name or key.output_name)
        self._arguments = {
            "eval_config": eval_config,
            "model_name": key.model_name,
            "output_name": key.output_name,
            "example_weighted": key.example_weighted,
        }

    def add_input(
        self, accumulator: WorkerState, element: metric_types.StandardMetricInputs
    ) -> WorkerState:
        """Adds one query, unless one before it had an error.

        TFMA would print the whole query before an error that is raised here. It is
        raised at the end.
        """
        if not accumulator.mistake:
            try:
                super().add_input(accumulator, element)
            except ValueError as error:
                accumulator.mistake = str(error)
                accumulator.waiting = []
        return accumulator

    def output(self, accumulator: WorkerState) -> dict[metric_types.MetricKey, float]:
        """The means. Raises ValueError for an error in the data."""
        if accumulator.mistake:
            raise ValueError(accumulator.mistake)
        # One small slice with a list of one item is no mistake. Without these facts,
        # `warn_of` does not warn of lists of one item.
        facts = Facts(accumulator.facts)
        num_lists, longer = facts.pop("lists", 0), facts.pop("longer lists", 0)
        all_of_one = num_lists >= MIN_LISTS_OF_ONE_ITEM and longer == 0
        if all_of_one and not self._query_key and self._data.inputs == "labels":
            # No error, which one small slice would raise for the whole evaluation.
            warn(
                "Lists must have more than one item for their order to mean anything. "
                f"Received: {num_lists:.0f} lists of one item each, in a slice or "
                "overall. For data with a row for each query and document, name the "
                "`query_key`."
            )
        warn_of(facts, Asked(self.rules, least=MANY_OF_SLICE))
        warn_if_signed(facts, "leave padding out", Asked(least=MANY_OF_SLICE))
        means, number = means_and_number(self.sums_of_all(accumulator))
        # Without `num_queries`, there is no key for the last value.
        return dict(zip(self._keys, [*means, float(number)], strict=False))

    def query(self, element: metric_types.StandardMetricInputs) -> tuple[_Query, int]:
        """A query and the number of its items."""
        if self._query_key and not np.size(element.features.get(self._query_key, ())):
            raise ValueError(
                "Each row must have the feature of the query key, since TFMA makes one "
                "query of all rows without it. Received: query_key="
                f"{self._query_key!r} and rows without it."
            )
        names = [*_SOURCES][: 3 if self._is_weighted else 2]
        given = {name: element.get(name) for name in names}
        # Those of several models or outputs are in mappings, in which TFMA finds them.
        plain = {n: v for n, v in given.items() if not isinstance(v, Mapping)}
        self._require_values(plain)
        if self._is_nested or len(plain) < len(given):
            given = self._values_in_mappings(element)
            self._require_values(given)
        labels, scores, *weights = given.values()
        labels = np.ravel(labels)
        if self._data.inputs == "labels":
            labels = labels.astype(np.float64)
            _require_equal_sizes(labels, scores)
        weight = 1.0
        if self._is_weighted:
            weight = _weight_of(
                labels, *weights, is_labels=self._data.inputs == "labels"
            )
        return _Query(labels, scores, weight), np.size(scores)

    def _values_in_mappings(
        self, element: metric_types.StandardMetricInputs
    ) -> dict[str, Any]:
        """TFMA's own lookup, for several models or outputs. It is slower."""
        try:
            values = next(
                metric_util.to_label_prediction_example_weight(
                    element, flatten=False, **self._arguments
                )
            )
        except Exception as error:
            # TFMA's own errors print the whole query at the end.
            reason = re.split(r"[:,] (?:\w+=|\{)|\n", str(error))[0]
            raise ValueError(
                "TFMA does not find the labels or scores of a query. Check "
                f"`prediction_key`, `label_key` and the output's name. TFMA's error: "
                f"{reason}."
            ) from None
        return dict(zip(_SOURCES, values, strict=True))

    def _require_values(self, given: Mapping[str, Any]) -> None:
        """Raises ValueError unless values are arrays of numbers, or of ids."""
        for name, values in given.items():
            are_ids = (
                self._data.inputs == "ids" and name != constants.EXAMPLE_WEIGHTS_KEY
            )
            kinds = "fiubSUO" if are_ids else "fiub"  # ids may be text
            if isinstance(values, np.ndarray) and values.dtype.kind in kinds:
                continue
            if values is None:
                received = "none"
            elif isinstance(values, np.ndarray):
                kind = type(values.flat[0]).__name__ if values.size else values.dtype
                received = f"an array of {kind}"
            else:
                kind = type(values).__name__
                received = f"{kind}, as if rows had different numbers of values"
            remedy = f"Check that `{_SOURCES[name]}` is a feature of all examples."
            if are_ids:
                remedy += " A query without any id has one that is padding: -1, or "
                remedy += "empty text."
            raise ValueError(
                f"Each row or list must have {name}, and they must be "
                f"{'ids' if are_ids else 'numbers'}. Received: {received}. {remedy}"
            )

    def evaluated(self, accumulator: WorkerState) -> Evaluated:
        """The metrics of the queries that wait, all of one slice."""
        labels, scores, weights = zip(*accumulator.waiting, strict=True)
        if self._data.inputs == "catalog":
            _require_scores_of_catalog(scores)
        scores = [*map(np.ravel, scores)]
        if self._data.inputs == "ids":
            labels, scores = _with_numbers(labels, scores)
        given = labels, scores, np.array(weights) if self._is_weighted else None
        lists = self._data.read(*given, library="tensorflow")
        lists.require_valid_values()
        measures = tuple(self.named.values())
        numbers = call_compiled(values_and_weights, measures, lists)
        facts = lists.on_host().facts(labels, None, self.rules)
        # A list is longer than one item even if the others are padding.
        facts |= Facts.of_lengths(np.array([*map(len, labels)]))
        accumulator.facts += facts
        # TFMA makes a combiner for each slice: there is one slice here.
        slices = [()] * len(labels)
        return Evaluated(None, slices, *(each.numpy() for each in numbers))


def _require_equal_sizes(labels: np.ndarray, scores: np.ndarray) -> None:
    if labels.size != scores.size:
        raise ValueError(
            "A query must contain as many labels as predictions. Received: "
            f"{labels.size} labels and {scores.size} predictions. Check `label_key`, "
            "`prediction_key` and the padding of lists."
        )


def _weight_of(labels: np.ndarray, weights: np.ndarray, *, is_labels: bool) -> float:
    """The weight of a query, which all its rows but padding must share."""
    weights = np.ravel(weights)
    if is_labels and weights.size == labels.size and (labels >= 0).any():
        weights = weights[labels >= 0]
    if not weights.size or (weights != weights[0]).any():
        received = "none"
        if weights.size:
            received = f"weights from {weights.min()} to {weights.max()}"
        raise ValueError(
            "All rows of a query must have the same example weight, which is the "
            f"weight of the query. Received: {received}."
        )
    return float(weights[0])


def _with_numbers(relevant: Arrays, recommended: Arrays) -> tuple[Any, Any]:
    """Relevant and recommended ids, with numbers for ids that are text."""
    arrays = [array for array in (*relevant, *recommended) if array.size]
    kinds = {"numbers" if a.dtype.kind in "fiub" else "text" for a in arrays}
    if len(kinds) > 1:
        raise ValueError(
            "Relevant and recommended ids must have the same type, or none match. "
            f"Received: {' and '.join(sorted(kinds))}. Convert one of them."
        )
    if "text" not in kinds:
        return relevant, recommended
    positions = Codes({b"": PADDING, "": PADDING})  # empty text is padding
    relevant, recommended = (
        as_positions([ids.tolist() for ids in side], positions)
        for side in (relevant, recommended)
    )
    return relevant, recommended


def _require_scores_of_catalog(scores: Arrays) -> None:
    """Raises ValueError unless each query has as many scores, on one axis."""
    sizes = {size for each in scores for size in (each.size, max(each.shape))}
    if len(sizes) > 1:
        shapes = sorted({each.shape for each in scores})
        raise ValueError(
            "With inputs='catalog', the prediction for each query must be a score "
            "for each item of the catalog, [V]. Received: shapes "
            f"{', '.join(map(str, shapes[:3]))}."
        )
