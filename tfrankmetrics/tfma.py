"""Ranking metrics in TensorFlow Model Analysis, and so in the TFX Evaluator, on Beam.

`eval_config` makes a valid configuration; `RankMetrics` is the metric in it, which
TFMA finds by `class_name: "RankMetrics"` and `module: "tfrankmetrics.tfma"`. The
values are those of `tfrankmetrics.evaluate` on the same queries.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import tensorflow as tf
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


class RankMetrics(metric_types.Metric):
    """Ranking metrics of one pass over the queries, for TFMA.

    With a `query_key` in the metrics spec, each row is a query and document; without
    one, each example is a list, padded by labels below 0 or of a length of its own.
    The example weight, if any, is the weight of the query.

    >>> metric = RankMetrics(["ndcg@10", "map"], gain="linear")
    >>> metric.key_names
    ['ndcg@10(gain=linear)', 'map']
    >>> metric.name
    'ndcg@10(gain=linear)'

    TFMA drops all but one of two metrics whose keys are equal. So a key names every
    option that is not the default's.

    Args:
        metrics: Names such as `"ndcg@10"`, as `tfrankmetrics.evaluate` takes them.
        name: The key that a threshold beside this metric is about; the first one by
            default. All the metrics are computed in any case.
        **options: Options for all of the metrics that take them, as in `evaluate`:
            `gain="linear"`, `convention="lightgbm"`. No functions, and no
            ties="random", since queries have no order on Beam.

    Raises:
        ValueError: A name or option is unknown, or has no meaning here.
    """

    def __init__(
        self, metrics: Sequence[str], name: str | None = None, **options: Any
    ) -> None:
        self.key_names = [*_measures(json.dumps([metrics, options]))]
        name = name or self.key_names[0]
        if name not in self.key_names:
            raise ValueError(
                f"`name` must be the key of one of the metrics: {self.key_names}. "
                f"Received: {name!r}."
            )
        super().__init__(_computations, metrics=metrics, name=name, options=options)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this metric again."""
        return {
            "metrics": self.kwargs["metrics"],
            "name": self.name,
            **self.kwargs["options"],
        }


# TFMA forgets the module of a metric that it does not know itself.
metric_types.register_metric(RankMetrics)


@functools.cache
def _measures(config: str) -> dict[str, Measure]:
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


def _computations(
    metrics: Sequence[str],
    options: Mapping[str, Any],
    name: str,
    eval_config: config_pb2.EvalConfig | None = None,
    model_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    sub_keys: Sequence[metric_types.SubKey | None] | None = None,
    aggregation_type: metric_types.AggregationType | None = None,
    example_weighted: bool = False,
    query_key: str = "",
) -> list[metric_types.MetricComputation]:
    """One computation of all the metrics for each model and output."""
    if aggregation_type is not None or any(key is not None for key in sub_keys or ()):
        raise ValueError(
            "`binarize` and `aggregate` of a metrics spec have no meaning for ranking "
            "metrics: a cutoff is part of the name, as in 'ndcg@10'."
        )
    config = json.dumps([metrics, dict(options)])
    computations = []
    for model_name in model_names or [""]:
        for output_name in output_names or [""]:
            keys = [
                metric_types.MetricKey(
                    name=key_name,
                    model_name=model_name,
                    output_name=output_name,
                    example_weighted=example_weighted,
                )
                for key_name in _measures(config)
            ]
            combiner = _Combiner(
                config, keys, eval_config, model_name, output_name, example_weighted
            )
            computations.append(metric_types.MetricComputation(keys, None, combiner))
    return computations


class _Sums(NamedTuple):
    """Sums of weight * value and of weight, and the queries that are yet to add."""

    sums: np.ndarray  # [metrics, 2]
    number: int  # of queries in the sums
    longest: int  # of their lists
    waiting: list[tuple[np.ndarray, np.ndarray, float]]
    # What is wrong with the data. TFMA would put the whole query before an error that
    # `add_input` raises, so it is kept for the end.
    mistake: str | None = None


class _Combiner(beam.CombineFn):
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
        self._arguments = {
            "eval_config": eval_config,
            "model_name": model_name,
            "output_name": output_name,
            "example_weighted": example_weighted,
        }

    def create_accumulator(self) -> _Sums:
        return _Sums(np.zeros((len(self._keys), 2)), 0, 0, [])

    def add_input(
        self, accumulator: _Sums, element: metric_types.StandardMetricInputs
    ) -> _Sums:
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
        return self._added_up(accumulator)

    def extract_output(self, accumulator: _Sums) -> dict[metric_types.MetricKey, float]:
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

    def _query(
        self, element: metric_types.StandardMetricInputs
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Labels, scores and weight of one query."""
        labels, scores, weights = next(
            metric_util.to_label_prediction_example_weight(
                element, flatten=False, **self._arguments
            )
        )
        labels, scores = np.ravel(labels), np.ravel(scores)
        if len(labels) != len(scores):
            raise ValueError(
                "A query must have as many labels as predictions. Received: "
                f"{len(labels)} labels and {len(scores)} predictions. Is the label "
                "key, the prediction key or the padding of lists another than meant?"
            )
        weights = np.ravel(weights)
        if (weights != weights[0]).any():
            raise ValueError(
                "All rows of a query must have the same example weight, which weighs "
                f"the query. Received: weights from {weights.min()} to {weights.max()}."
            )
        return labels, scores, float(weights[0])

    def _added_up(self, accumulator: _Sums, unless_fewer_than: int = 1) -> _Sums:
        waiting = accumulator.waiting
        if len(waiting) < unless_fewer_than or accumulator.mistake:
            return accumulator
        longest = max(len(labels) for labels, _, _ in waiting)
        labels = np.full((len(waiting), longest), -1.0)
        scores = np.zeros_like(labels)
        for query, (of_labels, of_scores, _) in enumerate(waiting):
            labels[query, : len(of_labels)] = of_labels
            scores[query, : len(of_scores)] = of_scores
        weights = np.array([weight for _, _, weight in waiting])
        lists = padded_lists(labels, scores, weights)
        require_values(lists)
        measures = tuple(_measures(self._config).values())
        more = call_compiled(weighted_sums, measures, lists, 0).numpy()
        return _Sums(
            accumulator.sums + more,
            accumulator.number + len(waiting),
            max(accumulator.longest, longest),
            [],
        )


def eval_config(
    metrics: Sequence[str],
    *,
    label_key: str,
    prediction_key: str | None = None,
    query_key: str | None = None,
    example_weight_key: str | None = None,
    slices: Iterable[Sequence[str] | str] = (),
    thresholds: Mapping[str, float] | None = None,
    change_thresholds: Mapping[str, float] | None = None,
    **options: Any,
) -> config_pb2.EvalConfig:
    """Makes a configuration for TFMA and for the TFX Evaluator.

    >>> config = eval_config(
    ...     ["ndcg@10", "map"], label_key="grade", query_key="query",
    ...     slices=["country"], thresholds={"ndcg@10": 0.5},
    ... )
    >>> [spec.query_key for spec in config.metrics_specs]
    ['query']

    Args:
        metrics: Names such as `"ndcg@10"`.
        label_key: The feature with the labels.
        prediction_key: The model's output or the feature with the scores, if there
            are several.
        query_key: The feature with the query of each row. None for list-wise data,
            in which an example is a query.
        example_weight_key: The feature with the weight of the query, the same in all
            its rows.
        slices: Features to slice by, or sequences of features to slice by together;
            features of the query, since all rows of a query go into each slice that
            one of them is in. The whole is always there.
        thresholds: The least value of a metric for a model to be blessed; the most
            where lower is better (ARP).
        change_thresholds: The least gain over the baseline model, which is the model
            named "baseline": 0.0 for "not worse".
        **options: Options of the metrics, as for `RankMetrics`.

    Raises:
        ValueError: A name, option or threshold is not valid.
    """
    thresholds, change_thresholds = thresholds or {}, change_thresholds or {}
    measures = _measures(json.dumps([metrics, options]))
    by_name = {measure.name: key for key, measure in measures.items()}
    for name in {**thresholds, **change_thresholds}:
        if name not in by_name:
            raise ValueError(
                "A threshold must be of one of the metrics, or TFMA would never find "
                f"it and bless no model. Received: {name!r} for {list(by_name)}."
            )
    model = {
        "label_key": label_key,
        "prediction_key": prediction_key or "",
        "example_weight_key": example_weight_key or "",
    }
    names = ["candidate", "baseline"] if change_thresholds else [""]
    configs = []
    for name, key in by_name.items():
        config = config_pb2.MetricConfig(
            class_name=RankMetrics.__name__,
            module=RankMetrics.__module__,
            config=json.dumps({"metrics": list(metrics), "name": key, **options}),
        )
        lower_is_better = measures[key].formula.lower_is_better
        bound = "upper_bound" if lower_is_better else "lower_bound"
        if name in thresholds:
            value = getattr(config.threshold.value_threshold, bound)
            value.value = thresholds[name]
        if name in change_thresholds:
            gain, change = change_thresholds[name], config.threshold.change_threshold
            change.absolute.value = -gain if lower_is_better else gain
            change.direction = (
                config_pb2.MetricDirection.LOWER_IS_BETTER
                if lower_is_better
                else config_pb2.MetricDirection.HIGHER_IS_BETTER
            )
        configs.append(config)
    return config_pb2.EvalConfig(
        model_specs=[
            config_pb2.ModelSpec(name=name, is_baseline=name == "baseline", **model)
            for name in names
        ],
        slicing_specs=[
            config_pb2.SlicingSpec(),
            *(
                config_pb2.SlicingSpec(
                    feature_keys=[of] if isinstance(of, str) else list(of)
                )
                for of in slices
            ),
        ],
        metrics_specs=[
            config_pb2.MetricsSpec(
                metrics=configs,
                query_key=query_key or "",
                model_names=[] if names == [""] else names,
            )
        ],
    )
