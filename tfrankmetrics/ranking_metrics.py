"""Many metrics and cutoffs from one ranking, as one Keras metric."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tfrankmetrics.base_metric import (
    StatefulMetric,
    from_config,
    to_config,
)
from tfrankmetrics.ways_in import make_way_in, measures_for


@tf.keras.utils.register_keras_serializable(package="tfrankmetrics")
class RankingMetrics(StatefulMetric):
    """Several ranking metrics at once; `result` is a dict.

    All of them read from one ranking of the lists, so ten metrics and cutoffs
    cost little more than one.

    >>> metrics = RankingMetrics(["ndcg@10", "mrr", "P@1"])
    >>> metrics.update_state(y_true=[[0, 1, 2]], y_pred=[[0.1, 0.8, 0.3]])
    >>> {name: float(value) for name, value in metrics.result().items()}
    {'ndcg@10': 0.796..., 'mrr': 1.0, 'precision@1': 1.0}

    In `model.compile(metrics=[RankingMetrics([...])])` each key becomes an
    entry of the logs, as `ndcg@10` and `val_ndcg@10`. Callbacks that monitor one
    need `mode="max"`, and for ARP "min".

    Keras merges the dicts of all metrics of a model, and of all its outputs,
    into one, and of two equal keys it keeps the last. So where a model has
    several `RankingMetrics`, give each a `prefix` of its own; during `fit` and
    `evaluate` equal keys raise an error.

    Args:
        metrics: A list of names and metric objects. Names are those of the
            results (`"ndcg@10"`, `"map"`), or as trec_eval and ir_measures spell
            them (`"nDCG@10"`, `"P@5"`, `"AP"`); the key of the result is this
            library's name. An object (`NDCG(k=10, gain="linear", name="x")`)
            has options of its own, and its name is the key.
        prefix: Put before each key of the result.
        inputs: What `update_state` takes: "labels" beside scores (default), relevant
            "ids" beside recommended ids, or relevant ids beside the scores of a
            whole "catalogue".
        duplicates: How a repeated recommendation counts, with inputs="ids" only:
            "first" (default), at its first place; or "all", each time.
        gain: For NDCG and DCG by name: "exponential", "linear" or a function.
        discount: For NDCG, DCG and alpha-DCG by name: "log2", "jarvelin" or a
            function.
        ideal: For NDCG by name: "judged" or "retrieved".
        relevance_threshold: For binary metrics by name: the lowest relevant label.
        persistence: For RBP by name: the chance that a user looks on.
        max_label: For ERR by name: the highest label that there is.
        alpha: For alpha-DCG by name: how much less a subtopic is worth each time.
        average: For ARP and OPA by name: "micro" or "macro".
        ties: For metrics by name: "expected", "stable" or "random".
        seed: An int, with ties="random" only.
        empty: For metrics by name: "zero", "one" or "skip".
        convention: For metrics by name: another tool's name, as in `CONVENTIONS`.
            Its choices hold instead of the defaults, and an option given beside it
            comes first.
        name: Name of the metric itself, which the logs do not show.
        dtype: Dtype of the results, by default Keras's floatx.

    Raises:
        ValueError: A name is unknown or comes up twice, or an option is not
            valid or applies to none of the metrics given by name.
    """

    def __init__(
        self,
        metrics: Sequence[Any],
        prefix: str = "",
        *,
        inputs: str | None = None,
        duplicates: str | None = None,
        gain: str | Callable | None = None,
        discount: str | Callable | None = None,
        ideal: str | None = None,
        relevance_threshold: float | None = None,
        persistence: float | None = None,
        max_label: float | None = None,
        alpha: float | None = None,
        average: str | None = None,
        ties: str | None = None,
        seed: int | None = None,
        empty: str | None = None,
        convention: str | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> None:
        options = {
            "gain": gain,
            "discount": discount,
            "ideal": ideal,
            "relevance_threshold": relevance_threshold,
            "persistence": persistence,
            "max_label": max_label,
            "alpha": alpha,
            "average": average,
            "ties": ties,
            "seed": seed,
            "empty": empty,
            "convention": convention,
        }
        if not isinstance(prefix, str):
            raise ValueError(f"`prefix` must be a string. Received: {prefix!r}.")
        metrics = list(metrics) if isinstance(metrics, Iterator) else metrics
        way_in = make_way_in(inputs, duplicates)
        named = measures_for(way_in, metrics, options)
        super().__init__(list(named.values()), way_in, name, dtype)
        self._keys = tuple(prefix + name for name in named)
        arguments = {
            "metrics": [to_config(metric) for metric in metrics],
            "prefix": prefix,
            "inputs": inputs,
            "duplicates": duplicates,
            **{name: to_config(value) for name, value in options.items()},
        }
        # As text: Keras would wrap a dict into one that cannot be pickled.
        self._arguments = json.dumps(arguments)

    def _check_use_in_keras(self, container: Any, y_pred: Any) -> None:
        _refuse_lost_keys(container)
        super()._check_use_in_keras(container, y_pred)

    def result(self) -> dict[str, tf.Tensor]:
        """The weighted mean of each metric over the queries so far, by its key."""
        return dict(zip(self._keys, self._results(), strict=True))

    def get_config(self) -> dict[str, Any]:
        """The arguments that make this metric again."""
        return {**super().get_config(), **json.loads(self._arguments)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> RankingMetrics:
        """Makes the metric from what `get_config` returned."""
        config = {name: from_config(value) for name, value in config.items()}
        config["metrics"] = [from_config(metric) for metric in config["metrics"]]
        return cls(**config)


def _refuse_lost_keys(container: Any) -> None:
    """Raises if two metrics that Keras updates together have a key in common."""
    keys = ["loss"]
    for prefix, metric in _prefixed_metrics(container):
        if isinstance(metric, RankingMetrics):
            keys.extend(metric._keys)
        else:
            keys.append(prefix + metric.name)
    clashes = [key for key, number in Counter(keys).items() if number > 1]
    if clashes:
        raise ValueError(
            "The metrics of a model must have keys of their own: of two equal ones "
            f"Keras drops one without a word. Received twice: {clashes}. Give each "
            "RankingMetrics a prefix, as in RankingMetrics([...], prefix='a_')."
        )


def _prefixed_metrics(container: Any) -> Iterator[tuple[str, Any]]:
    """The metrics of a model, with what Keras puts before their names."""
    if not hasattr(container, "_flat_metrics"):  # Keras 2 has renamed them itself
        yield from (("", metric) for metric in container.metrics)
        return
    for metrics in container._flat_metrics + container._flat_weighted_metrics:
        if metrics:
            prefix = f"{metrics.output_name}_" if metrics.output_name else ""
            yield from ((prefix, metric) for metric in metrics.metrics)
