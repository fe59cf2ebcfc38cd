"""The combiner that Beam calls to add up queries, which TFMA passes one at a time.

`keys.py` reads the saved metrics. Several queries are padded to arrays with a row for
each; `inputs/` checks what these contain.
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
    Accumulator,
    Combiner,
    Evaluated,
    means_and_number,
)
from tfrankmetrics.compute.values import values_and_weights
from tfrankmetrics.inputs.ids_as_integers import Codes
from tfrankmetrics.inputs.mistakes import (
    MANY,
    Asked,
    Facts,
    warn,
    warn_if_signed,
    warn_of,
)
from tfrankmetrics.metrics.measure import Measure, label_rules
from tfrankmetrics.tfma.keys import input_format_of, measures_by_key

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
    """A query as TFMA passes it, with weights of the query or of each row.

    The labels may be ids of relevant items, and the scores ids of recommended ones.
    """

    labels: np.ndarray
    scores: np.ndarray
    weights: np.ndarray


class TfmaCombiner(Combiner, beam.CombineFn):
    """Adds up queries. TFMA passes one element for each query, and adds up slices."""

    def __init__(
        self,
        saved: str,
        keys: list[metric_types.MetricKey],
        eval_config: config_pb2.EvalConfig | None,
        model_name: str,
        output_name: str,
        example_weighted: bool,
        query_key: str,
    ) -> None:
        self._saved = saved
        self._keys = keys  # of the metrics, and perhaps of the number of queries
        self._data = input_format_of(saved)
        self._is_weighted = example_weighted
        self._query_key = query_key
        self._is_nested = bool(model_name or output_name)
        self._arguments = {
            "eval_config": eval_config,
            "model_name": model_name,
            "output_name": output_name,
            "example_weighted": example_weighted,
        }

    @property
    def named(self) -> Mapping[str, Measure]:
        """The metrics by their keys in TFMA."""
        return measures_by_key(self._saved)

    def add_input(
        self, accumulator: Accumulator, element: metric_types.StandardMetricInputs
    ) -> Accumulator:
        """Adds one query, unless one before it had an error.

        TFMA would print the whole query before an error that is raised here. Therefore,
        it is raised at the end.
        """
        if not accumulator.mistake:
            try:
                super().add_input(accumulator, element)
            except ValueError as error:
                accumulator.mistake = str(error)
                accumulator.waiting = []
        return accumulator

    def output(self, accumulator: Accumulator) -> dict[metric_types.MetricKey, float]:
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
        rules = label_rules(self.named.values())
        warn_of(facts, Asked(rules, least=MANY_OF_SLICE))
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
        found = {name: element.get(name) for name in names}
        # Those of several models or outputs are in mappings, in which TFMA finds them.
        plain = {n: v for n, v in found.items() if not isinstance(v, Mapping)}
        self._require_values(plain)
        if self._is_nested or len(plain) < len(found):
            found = self._found_in_mappings(element)
            self._require_values(found)
        labels, scores, *weights = found.values()
        weight = weights[0] if self._is_weighted else np.ones(1)
        return _Query(labels, scores, weight), np.size(scores)

    def _found_in_mappings(
        self, element: metric_types.StandardMetricInputs
    ) -> dict[str, Any]:
        """TFMA's own lookup, for several models or outputs. It is slower."""
        try:
            found = next(
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
        return dict(zip(_SOURCES, found, strict=True))

    def _require_values(self, found: Mapping[str, Any]) -> None:
        """Raises ValueError unless values are arrays of numbers, or of ids."""
        for name, values in found.items():
            are_ids = (
                self._data.inputs == "ids" and name != constants.EXAMPLE_WEIGHTS_KEY
            )
            kinds = "fiubSUO" if are_ids else "fiub"  # ids may be text
            if isinstance(values, np.ndarray) and values.dtype.kind in kinds:
                continue
            received = type(values).__name__
            received += ", as if rows had different numbers of values"
            if values is None:
                received = "none"
            elif isinstance(values, np.ndarray):
                kind = type(values.flat[0]).__name__ if values.size else values.dtype
                received = f"an array of {kind}"
            remedy = f"Check that `{_SOURCES[name]}` is a feature of all examples."
            if are_ids:
                remedy += " A query without any id has one that is padding: -1, or "
                remedy += "empty text."
            raise ValueError(
                f"Each row or list must have {name}, and they must be "
                f"{'ids' if are_ids else 'numbers'}. Received: {received}. {remedy}"
            )

    def evaluated(self, accumulator: Accumulator) -> Evaluated:
        """The metrics of the queries that wait, all of one slice."""
        waiting = accumulator.waiting
        is_labels = self._data.inputs == "labels"
        weights = None
        if self._is_weighted:
            weights = np.array([_weight_of(each, is_labels) for each in waiting])
        labels, predictions = PAD[self._data.inputs](
            [query.labels for query in waiting], [query.scores for query in waiting]
        )
        lists = self._data.read(labels, predictions, weights, library="tensorflow")
        lists.require_valid_values()
        measures = tuple(self.named.values())
        numbers = call_compiled(values_and_weights, measures, lists)
        lengths = np.array([np.size(query.labels) for query in waiting])
        accumulator.facts += Facts.of_lengths(lengths)
        if is_labels:
            of_queries = [np.ravel(query.labels) for query in waiting]
            thresholds = label_rules(measures).thresholds
            found = Facts.of_labels(np.concatenate(of_queries), thresholds)
            accumulator.facts += found
        if "scores" in lists.arrays:
            scores = np.concatenate([np.ravel(query.scores) for query in waiting])
            accumulator.facts += Facts.of_scores(scores)
            accumulator.facts += lists.on_host().uncounted_facts(labels)
        # TFMA makes a combiner for each slice, so that there is one slice here.
        return Evaluated(None, [()] * len(waiting), *(each.numpy() for each in numbers))


def _weight_of(query: _Query, is_labels: bool) -> float:
    """The weight of a query, which all its rows but padding must share."""
    row_weights = np.ravel(query.weights)
    is_by_row = is_labels and row_weights.size == query.labels.size
    if is_by_row and (query.labels >= 0).any():
        row_weights = row_weights[np.ravel(query.labels) >= 0]
    if not row_weights.size or (row_weights != row_weights[0]).any():
        received = "none"
        if row_weights.size:
            received = f"weights from {row_weights.min()} to {row_weights.max()}"
        raise ValueError(
            "All rows of a query must have the same example weight, which is the "
            f"weight of the query. Received: {received}."
        )
    return float(row_weights[0])


def _pad_labels_and_scores(
    labels: Arrays, scores: Arrays
) -> tuple[np.ndarray, np.ndarray]:
    """Labels, padded by -1, and scores, in equal number for each query."""
    padded_labels, lengths = _padded_rows(labels, -1, np.float64)
    padded_scores, numbers = _padded_rows(scores, 0)
    if (lengths != numbers).any():
        first = np.argmax(lengths != numbers)
        raise ValueError(
            "A query must contain as many labels as predictions. Received: "
            f"{lengths[first]} labels and {numbers[first]} predictions. Check "
            "`label_key`, `prediction_key` and the padding of lists."
        )
    return padded_labels, padded_scores


def _pad_ids(relevant: Arrays, recommended: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Relevant and recommended ids, padded by -1; numbers for ids that are text."""
    arrays = [array for array in (*relevant, *recommended) if array.size]
    kinds = {"numbers" if a.dtype.kind in "fiub" else "text" for a in arrays}
    if len(kinds) > 1:
        raise ValueError(
            "Relevant and recommended ids must have the same type, or none match. "
            f"Received: {' and '.join(sorted(kinds))}. Convert one of them."
        )
    if "text" in kinds:
        codes = Codes({b"": -1, "": -1})  # empty text is padding
        relevant, recommended = (
            [
                np.array([codes[each] for each in ids.ravel().tolist()], int)
                for ids in side
            ]
            for side in (relevant, recommended)
        )
    return _padded_rows(relevant, -1)[0], _padded_rows(recommended, -1)[0]


def _pad_ids_of_catalog(
    relevant: Arrays, scores: Arrays
) -> tuple[np.ndarray, np.ndarray]:
    """Relevant ids, padded by -1, and scores of the whole catalog."""
    shapes = [array.shape for array in scores]
    padded, sizes = _padded_rows(scores, 0)
    if len({*sizes.tolist()}) > 1 or max(map(max, shapes)) != sizes[0]:
        raise ValueError(
            "With inputs='catalog', the prediction for each query must be a score "
            "for each item of the catalog, [V]. Received: shapes "
            f"{', '.join(map(str, sorted({*shapes})[:3]))}."
        )
    return _padded_rows(relevant, -1)[0], padded


def _padded_rows(
    arrays: Sequence[np.ndarray], padding: int, dtype: type | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Arrays of any length as the rows of one, and their lengths."""
    lengths = np.array([array.size for array in arrays])
    values = np.concatenate(arrays, axis=None)
    rows = np.full((len(arrays), lengths.max()), padding, dtype or values.dtype)
    rows[np.arange(rows.shape[1]) < lengths[:, np.newaxis]] = values
    return rows, lengths


# How the queries of each input format are padded.
PAD = {
    "labels": _pad_labels_and_scores,
    "ids": _pad_ids,
    "catalog": _pad_ids_of_catalog,
}
