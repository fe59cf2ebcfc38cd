"""`as_dataframe`: the results of TensorFlow Model Analysis as a table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tensorflow_model_analysis.view import view_types

from tfrankmetrics.arguments import DataFrame
from tfrankmetrics.results.metric_values import NUM_QUERIES
from tfrankmetrics.rules import shortened

OVERALL = "overall"  # the slice of all queries


def as_dataframe(result: Any) -> DataFrame:
    """The results of TensorFlow Model Analysis (TFMA) as a pandas DataFrame.

    >>> import pandas as pd
    >>> import tensorflow_model_analysis as tfma
    >>> from tfrankmetrics.tfma import eval_config
    >>> table = pd.DataFrame(
    ...     {"query": ["a", "a", "b"], "grade": [1, 0, 1], "score": [0.1, 0.9, 0.5]}
    ... )
    >>> config = eval_config(
    ...     ["mrr"], label_key="grade", prediction_key="score", query_key="query",
    ...     num_queries=True,
    ... )
    >>> as_dataframe(tfma.analyze_raw_data(table, config))
         slice metric  value  lower  upper  queries
    0  overall    mrr   0.75    NaN    NaN        2

    Args:
        result: The result of `tfma.analyze_raw_data`, `tfma.run_model_analysis`,
            `tfma.load_eval_result` or `tfma.load_eval_results`. Or a dict of such
            results, by the names of the models.

    Returns:
        A DataFrame with a row for each value of each slice, overall first. Its columns
        are `slice` ("overall", or text such as "language=de"), `metric`, `value`,
        `lower` and `upper` (the ends of the confidence interval; NaN without one) and
        `queries` (the number of queries of the slice; missing unless the configuration
        contains num_queries=True). The columns `model`, `output` and `sub_key` come
        first, each only if it contains several values. TFMA names a difference from the
        baseline `ndcg@10_diff`. Results that are not a number, such as plots, are
        excluded.

    Raises:
        ValueError: The argument is not such a result, or TFMA has dropped one of two
            Keras metrics with the same name.
    """
    import pandas as pd

    rows = [row for each in _by_model(result) for row in _rows_of_slices(*each)]
    columns = ["model", "output", "sub_key", "slice", "metric", "value", "lower"]
    table = pd.DataFrame(rows, columns=[*columns, "upper", "queries"])
    table["queries"] = table["queries"].astype("Int64")
    alike = [name for name in columns[:3] if table[name].nunique() < 2]
    return table.drop(columns=alike)


def _by_model(result: Any) -> Iterator[tuple[str, view_types.EvalResult]]:
    if isinstance(result, view_types.EvalResult):
        yield "", result
    elif isinstance(result, view_types.EvalResults):
        results = result.get_results()
        names = [spec.name for spec in results[0].config.model_specs] if results else []
        if len(names) != len(results) or len({*names}) < len(names):
            names = [str(number) for number in range(len(results))]
        yield from zip(names, results, strict=True)
    elif isinstance(result, Mapping):
        for name, each in result.items():
            for _, single in _by_model(each):
                yield str(name), single
    else:
        raise ValueError(
            "`result` must be an EvalResult of TFMA, or a dict of them by model. "
            f"Received: {shortened(result)}. Pass the result of tfma.load_eval_result."
        )


def _rows_of_slices(model: str, result: view_types.EvalResult) -> Iterator[tuple]:
    """A row for each number, the slice of all queries first."""
    _refuse_names_twice(result.config)
    slices = sorted(result.slicing_metrics, key=lambda each: _name_of(each[0]))
    for of, outputs in sorted(slices, key=lambda each: bool(each[0])):
        for output, sub_keys in outputs.items():
            for sub_key, metrics in sub_keys.items():
                intervals = {name: _interval(value) for name, value in metrics.items()}
                number, *_ = intervals.pop(NUM_QUERIES, None) or [None]
                intervals.pop(f"{NUM_QUERIES}_diff", None)  # the queries are the same
                labels = model, output, str(sub_key), _name_of(of)
                for name, interval in intervals.items():
                    if interval is not None:
                        yield *labels, name, *interval, number


def _refuse_names_twice(config: Any) -> None:
    """Raises ValueError for different Keras metrics with one name."""
    known: dict[tuple, str] = {}
    for spec in config.metrics_specs:
        for metric in spec.metrics:
            name = json.loads(metric.config or "{}").get("name")
            key = name, *spec.model_names, *spec.output_names
            # Metrics of `eval_config` with one key compute the same values.
            is_keras = name and metric.class_name != "RankMetrics"
            if is_keras and known.setdefault(key, metric.config) != metric.config:
                raise ValueError(
                    "Metrics must have different names, since TFMA keeps only one of "
                    f"two metrics with the same name. Received: {name!r} twice. Pass "
                    "`name=` to one of them, and evaluate again."
                )


def _name_of(of: tuple) -> str:
    return ", ".join(f"{name}={value}" for name, value in of) or OVERALL


def _interval(value: Mapping[str, Any]) -> list[float] | None:
    """A value and the ends of its interval, or None if it is not a number."""
    if "doubleValue" in value:
        bounded = {"value": value["doubleValue"]}
    elif "boundedValue" in value:
        bounded = value["boundedValue"]
    else:
        return None
    keys = "value", "lowerBound", "upperBound"
    # TFMA writes NaN and infinity as text.
    return [float(bounded.get(key, "nan")) for key in keys]
