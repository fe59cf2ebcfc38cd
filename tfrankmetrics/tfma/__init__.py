"""Ranking metrics in TensorFlow Model Analysis (TFMA) and the TFX Evaluator, on Beam.

`eval_config` makes a valid configuration. `RankMetrics` is the metric in it, which TFMA
finds by `class_name: "RankMetrics"` and `module: "tfrankmetrics.tfma"`. The values
equal those of `tfrankmetrics.evaluate` on the same queries.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tfrankmetrics.installation import install_hint

try:
    from tensorflow_model_analysis.metrics import metric_types
    from tensorflow_model_analysis.proto import config_pb2
except ImportError as error:
    raise ImportError(
        "tfrankmetrics.tfma needs TensorFlow Model Analysis, on Python 3.10 or 3.11. "
        f"{install_hint('tfx')}"
    ) from error

from tfrankmetrics.inputs.formats import InputFormat
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.options import Duplicates, Inputs, Options
from tfrankmetrics.results.metric_values import NUM_QUERIES
from tfrankmetrics.results.request import Request
from tfrankmetrics.rules import check_option, is_finite, listed
from tfrankmetrics.tfma.dataframe import as_dataframe
from tfrankmetrics.tfma.keys import (
    own_modules,
    read_saved,
    without_numpy,
)
from tfrankmetrics.tfma.tfma_combiner import TfmaCombiner

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["RankMetrics", "as_dataframe", "eval_config"]


class RankMetrics(metric_types.Metric):
    """Ranking metrics for TFMA, all computed in one pass over the queries.

    With a `query_key` in the metrics spec, each example is a row for one query and one
    document. Without it, each example is a list, which may be padded by labels below 0.
    The example weight, if any, is the weight of the query.

    >>> metric = RankMetrics(["ndcg@10", "map"], gain="linear")
    >>> metric.key_names
    ['ndcg@10(gain=linear)', 'map']
    >>> metric.name
    'ndcg@10(gain=linear)'

    TFMA drops one of two metrics with the same key. A key is the canonical name with
    every option that differs from its default, wherever it was passed.

    Args:
        metrics: Names such as `"ndcg@10"` or `"nDCG(dcg='log2')@10"`, as
            `tfrankmetrics.evaluate` takes them.
        name: The key that a threshold of this metric refers to; the first one by
            default. All metrics are computed in any case.
        modules: Modules to import first, which declare metrics outside this library.
            `eval_config` fills them in.
        num_queries: If True, adds the number of included queries, under the key
            "num_queries".
        inputs: The format of `y_true` and `y_pred`: "labels" and scores (the default);
            relevant "ids" and recommended ids, best first; or relevant ids and the
            scores of a whole "catalog".
        duplicates: With inputs="ids", how repeated recommendations are counted: "first"
            (once, at the first position; the default) or "all" (each time).
        **options: Options for the metrics, such as `gain="linear"` or
            `convention="trec_eval"`. See `tfrankmetrics.Options`. Functions are
            not supported.

    Raises:
        ValueError: A name or option is unknown, or is not supported by TFMA.
    """

    def __init__(
        self,
        metrics: Sequence[str],
        name: str | None = None,
        modules: str | Sequence[str] = (),
        *,
        inputs: Inputs = "labels",
        duplicates: Duplicates | None = None,
        num_queries: bool = False,
        **options: Unpack[Options],
    ) -> None:
        check_option("RankMetrics", "num_queries", num_queries, bool)
        chosen = without_numpy(options)
        of_data = {"modules": modules, "inputs": inputs, "duplicates": duplicates}
        self.request = read_saved(metrics, chosen, **of_data)
        self.key_names = [*self.request.named]
        name = name or self.key_names[0]
        if name not in self.key_names:
            raise ValueError(
                f"`name` must be the key of one of the metrics: {self.key_names}. "
                f"Received: {name!r}."
            )
        of_keys = {"name": name, "num_queries": num_queries}
        super().__init__(_computations, request=self.request, **of_keys)
        self._config = {"metrics": metrics, **of_data, **of_keys, **chosen}

    def get_config(self) -> dict[str, Any]:
        """The arguments that recreate this metric."""
        return {**self._config}


# TFMA drops the module of a metric that is not built in.
metric_types.register_metric(RankMetrics)


def _computations(
    request: Request,
    num_queries: bool,
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
            "`binarize` and `aggregate` of a metrics spec do not apply to ranking "
            "metrics: a cutoff is part of the name, as in 'ndcg@10'."
        )
    _refuse_query_key(request.input_format, query_key)
    key_names = [*request.named, *[NUM_QUERIES] * num_queries]
    # TFMA passes labels, predictions and weights, but features only on demand.
    features = metric_types.FeaturePreprocessor(feature_keys=[query_key])
    preprocessors = [features] if query_key else None

    computations = []
    outputs = itertools.product(model_names or [""], output_names or [""])
    for model_name, output_name in outputs:
        of_output = dict(model_name=model_name, output_name=output_name)
        of_output |= {"example_weighted": example_weighted}
        keys = [metric_types.MetricKey(name, **of_output) for name in key_names]
        combiner = TfmaCombiner(request, keys, eval_config, query_key)
        each = metric_types.MetricComputation(keys, preprocessors, combiner)
        computations.append(each)
    return computations


def _refuse_query_key(data: InputFormat, query_key: str | None) -> None:
    """Raises ValueError for a query key where each example is a whole query."""
    if query_key and data.inputs != "labels":
        raise ValueError(
            f"With {data}, each example contains a whole query. A `query_key` "
            f"is meaningless. Received: query_key={query_key!r}. Omit it."
        )


def eval_config(
    metrics: Sequence[str],
    *,
    label_key: str,
    prediction_key: str | None = None,
    query_key: str | None = None,
    example_weight_key: str | None = None,
    slices: str | Iterable[Sequence[str] | str] = (),
    thresholds: Mapping[str, float] | None = None,
    change_thresholds: Mapping[str, float] | None = None,
    add_to: config_pb2.EvalConfig | None = None,
    inputs: Inputs = "labels",
    duplicates: Duplicates | None = None,
    num_queries: bool = False,
    **options: Unpack[Options],
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
        prediction_key: The model's output, or the feature, with the scores. Needed if
            there are several.
        query_key: The feature with the query of each row. None for list-wise data,
            where an example is a query.
        example_weight_key: The feature with the weight of the query, which must be the
            same in all its rows.
        slices: A feature to slice by, or a list of features; in the list, a sequence of
            features to slice by together. Use features of the query: all rows of a
            query belong to each slice that contains one of them. The overall value is
            always included.
        thresholds: The worst value of each metric that passes, overall and in every
            slice: the lowest, or the highest for ARP, where lower is better. A model
            that misses a threshold is not blessed.
        change_thresholds: The smallest improvement over the model named "baseline" that
            passes, overall and in every slice: 0.0 for "not worse".
        add_to: A configuration to extend: the result is a copy of it with these metrics
            and slices. Its models are kept. They must have the same keys.
        inputs: The format of labels and predictions: "labels" and scores (the default);
            relevant "ids" and recommended ids, best first; or relevant ids and the
            scores of a whole "catalog", `[V]`. With ids and catalogs an example is
            a query. Ids are integers, padded by -1; with inputs="ids" also text, padded
            by empty text. In a catalog they are positions.
        num_queries: If True, adds the number of included queries, under the key
            "num_queries".
        duplicates: With inputs="ids", how repeated recommendations are counted: "first"
            (once, at the first position; the default) or "all" (each time).
        **options: Options for the metrics, such as `gain="linear"` or
            `convention="trec_eval"`. See `tfrankmetrics.Options`.

    Raises:
        ValueError: A name, key, option or threshold is not valid.
    """
    keys = {
        "label_key": label_key,
        "prediction_key": prediction_key,
        "example_weight_key": example_weight_key,
    }
    _check_keys({**keys, "query_key": query_key})
    of_data = {"inputs": inputs, "duplicates": duplicates, "num_queries": num_queries}
    metric = RankMetrics(metrics, **of_data, **options)
    _refuse_query_key(metric.request.input_format, query_key)
    measures = metric.request.named
    minimum = _by_key("thresholds", thresholds, metrics, measures)
    min_change = _by_key("change_thresholds", change_thresholds, metrics, measures)
    saved = metric.get_config() | {"modules": own_modules(measures)}
    metrics_spec = config_pb2.MetricsSpec(query_key=query_key)
    for key, measure in measures.items():
        metrics_spec.metrics.add(
            class_name=RankMetrics.__name__,
            module=RankMetrics.__module__,
            config=json.dumps({**saved, "name": key}),
            threshold=_threshold(measure, minimum.get(key), min_change.get(key)),
        )
    specs = {"slicing_specs": _slicing_specs(slices), "metrics_specs": [metrics_spec]}
    made = config_pb2.EvalConfig(**specs)
    if min_change:
        made.metrics_specs[0].model_names.extend(["candidate", "baseline"])
        made.model_specs.add(name="candidate", **keys)
        made.model_specs.add(name="baseline", is_baseline=True, **keys)
    else:
        made.model_specs.add(**keys)
    return made if add_to is None else _added_to_config(add_to, made)


def _added_to_config(
    config: config_pb2.EvalConfig, new: config_pb2.EvalConfig
) -> config_pb2.EvalConfig:
    """A copy of a configuration with the metrics and slices of a new one."""
    result = config_pb2.EvalConfig()
    result.CopyFrom(config)
    (ours,) = new.metrics_specs
    models, known = new.model_specs, {each.name for each in config.model_specs}
    if not known:
        result.model_specs.extend(models)
    elif missing := {*ours.model_names} - known:
        raise ValueError(
            "`change_thresholds` compare the models 'candidate' and 'baseline', which "
            f"the configuration `add_to` must have. Received: one without {missing}."
        )
    for spec in result.model_specs:
        for name in ("label_key", "prediction_key", "example_weight_key"):
            theirs, given = getattr(spec, name), getattr(models[0], name)
            if given != theirs:
                raise ValueError(
                    f"`{name}` must be the one of the models in `add_to`. Received: "
                    f"{given!r}, and {theirs!r} of the model {spec.name!r}."
                )
    # TFMA fails if two metrics have one key, unless they are the same.
    for spec in config.metrics_specs:
        taken = sorted(_keys_of(ours) & _keys_of(spec))
        if taken and spec.query_key != ours.query_key:
            raise ValueError(
                "A metric must have one `query_key` in a configuration. Received: "
                f"{listed(taken)} with the query keys {spec.query_key!r} and "
                f"{ours.query_key!r}. Evaluate the second one with a separate "
                "configuration."
            )
    result.slicing_specs.extend(
        each for each in new.slicing_specs if each not in config.slicing_specs
    )
    result.metrics_specs.append(ours)
    return result


def _keys_of(spec: config_pb2.MetricsSpec) -> set[str]:
    """The keys of the metrics of this library."""
    keys = set()
    for each in spec.metrics:
        if each.class_name == RankMetrics.__name__:
            saved = json.loads(each.config)
            keys.update(RankMetrics(**saved).key_names)
            keys.update([NUM_QUERIES] * saved.get("num_queries", False))
    return keys


def _check_keys(keys: Mapping[str, Any]) -> None:
    """Raises ValueError for keys that do not name features, or the same ones."""
    for name, key in keys.items():
        is_missing = key is None and name != "label_key"
        if not is_missing and not (isinstance(key, str) and key):
            raise ValueError(f"`{name}` must name a feature. Received: {key!r}.")
    given = [key for key in keys.values() if key is not None]
    if len({*given}) < len(given):
        named = {name: key for name, key in keys.items() if given.count(key) > 1}
        raise ValueError(f"Each key must name a different feature. Received: {named}.")


def _slicing_specs(slices: Any) -> list[config_pb2.SlicingSpec]:
    """All queries, and the slices by each feature or combination of features."""
    is_list = isinstance(slices, Iterable) and not isinstance(slices, str)
    features = slices if is_list else [slices]
    together = [[each] if isinstance(each, str) else each for each in features]
    are_names = (
        isinstance(names, list | tuple) and all(isinstance(n, str) and n for n in names)
        for names in together
    )
    if not all(are_names):
        raise ValueError(
            "`slices` must be a list of the names of features, or of lists of names to "
            f"slice by together. Received: {slices!r}."
        )
    return [config_pb2.SlicingSpec(feature_keys=keys) for keys in [[], *together]]


def _keys_of_names(
    metrics: Sequence[str], measures: Mapping[str, Measure]
) -> dict[str, str]:
    """The keys by the names as passed, and by names without the options of a call."""
    keys = dict(zip(metrics, measures, strict=True))
    names = [measure.name for measure in measures.values()]
    unique = {
        measure.name: key
        for key, measure in measures.items()
        if names.count(measure.name) == 1
    }
    return {**unique, **keys, **{key: key for key in measures}}


def _by_key(
    argument: str,
    thresholds: Mapping[str, float] | None,
    metrics: Sequence[str],
    measures: Mapping[str, Measure],
) -> dict[str, float]:
    """Thresholds by the keys of their metrics, which may be passed by any name."""
    thresholds = {} if thresholds is None else thresholds
    if not isinstance(thresholds, Mapping):
        raise ValueError(
            f"`{argument}` must be a dict from metrics to numbers. Received: "
            f"{thresholds!r}. Pass {{'ndcg@10': 0.5}}, for example."
        )
    keys = _keys_of_names(metrics, measures)
    by_key = {}
    for name, value in thresholds.items():
        canonical = name
        if name not in keys:
            (canonical,) = read_saved([name], {}).named
        key = keys.get(canonical, canonical)
        if key not in measures:
            raise ValueError(
                "A threshold must refer to one of the metrics, since TFMA blesses no "
                f"model if it does not find the metric. Received: {name!r}, for the "
                f"metrics {[*measures]}. Add the metric, or omit the threshold."
            )
        lowest, highest = measures[key].declaration.range
        if argument == "change_thresholds":
            lowest, highest = lowest - highest, highest - lowest
        if not is_finite(value) or not lowest <= value <= highest:
            raise ValueError(
                "A threshold must be a value that the metric can have, and a change "
                "one by which it can change: a finite number from "
                f"{lowest:g} to {highest:g}. Received: {value!r} for {name!r}."
            )
        if key in by_key:
            raise ValueError(
                f"A metric must have only one threshold. Received: two thresholds for "
                f"{key!r}: {thresholds}."
            )
        by_key[key] = value
    return by_key


def _threshold(
    measure: Measure, minimum: float | None, min_change: float | None
) -> config_pb2.MetricThreshold | None:
    """The threshold in TFMA's form, or None without any."""
    threshold = config_pb2.MetricThreshold()
    lower_is_better = measure.declaration.lower_is_better
    if minimum is not None:
        bound = "upper_bound" if lower_is_better else "lower_bound"
        getattr(threshold.value_threshold, bound).value = minimum
    if min_change is not None:
        change = threshold.change_threshold
        change.absolute.value = -min_change if lower_is_better else min_change
        change.direction = (
            config_pb2.MetricDirection.LOWER_IS_BETTER
            if lower_is_better
            else config_pb2.MetricDirection.HIGHER_IS_BETTER
        )
    return None if minimum is None and min_change is None else threshold
