"""Many metrics and cutoffs from one ranking, as one metric object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tfrankmetrics.arrays import Array
from tfrankmetrics.compute.exposures import require_data_in_order
from tfrankmetrics.keras.backends import register
from tfrankmetrics.metrics.base import MetricBase, require_name
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.options import Duplicates, Inputs, Options, Separator
from tfrankmetrics.results.metric_values import NUM_QUERIES
from tfrankmetrics.results.request import read_request
from tfrankmetrics.rules import shortened

if TYPE_CHECKING:
    from typing_extensions import Unpack


class RankingMetrics(MetricBase):
    """Computes several ranking metrics from one ranking; `result()` returns a dict.

    Ten metrics and cutoffs cost little more than one.

    >>> metrics = RankingMetrics(["ndcg@10", "mrr", "P@1(ties=worst)"])
    >>> metrics.update_state(y_true=[[0, 1, 2]], y_pred=[[0.1, 0.8, 0.3]])
    >>> {name: float(value) for name, value in metrics.result().items()}
    {'ndcg@10': 0.796..., 'mrr': 1.0, 'P@1(ties=worst)': 1.0}

    In `model.compile(metrics=[RankingMetrics([...])])` each key becomes an entry of the
    logs, as `ndcg@10` and `val_ndcg@10`. Callbacks that monitor one need `mode="max"`,
    or `mode="min"` for ARP.

    Keras merges the results of all metrics and all outputs of a model into one dict and
    silently keeps only one of two results with the same key. If a model has several
    `RankingMetrics`, set a different `prefix` for each. During `fit` and `evaluate`,
    equal keys raise an error.

    Args:
        metrics: A list of names and metric objects, as in `evaluate`. The key of the
            result is the name as passed or, for an object
            (`NDCG(k=10, gain="linear", name="x")`), its `name`.
        prefix: A string put before each key of the result.
        name: The name of the metric itself, which the logs do not show.
        dtype: The dtype of the results, by default Keras's floatx, or float64 without
            Keras.
        num_queries: If True, adds the number of included queries, under the key
            "num_queries".
        separator: "@" (the default): keys as passed; "_": keys such as "ndcg_10".
        inputs: The format of `y_true` and `y_pred`: "labels" and scores (the default);
            relevant "ids" and recommended ids, best first; or relevant ids and the
            scores of a whole "catalog".
        duplicates: With inputs="ids", how repeated recommendations are counted: "first"
            (once, at the first position; the default) or "all" (each time).
        **options: Options for the metrics passed by name, such as `gain="linear"` or
            `convention="trec_eval"`. See `tfrankmetrics.Options`.

    Raises:
        ValueError: A name is unknown or occurs twice, or an option is invalid or
            applies to none of the metrics passed by name.
    """

    def __init__(
        self,
        metrics: Sequence[str | MetricObject],
        prefix: str = "",
        *,
        name: str | None = None,
        dtype: str | None = None,
        inputs: Inputs = "labels",
        duplicates: Duplicates | None = None,
        num_queries: bool = False,
        separator: Separator = "@",
        **options: Unpack[Options],
    ) -> None:
        if not isinstance(prefix, str):
            raise ValueError(
                f"`prefix` must be a string. Received: {shortened(prefix)}."
            )
        require_name(name)
        metrics = list(metrics) if isinstance(metrics, Iterator) else metrics
        given = {
            "inputs": inputs,
            "duplicates": duplicates,
            "num_queries": num_queries,
            "separator": separator,
        }
        request = read_request(metrics, options, **given)
        request.require_free_keys((), has_ids=False)
        require_data_in_order(request.measures)
        super().__init__(
            request.named,
            request.input_format,
            name,
            dtype,
            num_queries=request.num_queries,
        )
        keys = [*request.named, *[NUM_QUERIES] * request.num_queries]
        self._keys = tuple(prefix + key for key in keys)
        # A function, since Keras would track and wrap the metrics in a container.
        listed = [*metrics]
        self._arguments = lambda: {
            "metrics": listed,
            "prefix": prefix,
            **given,
            **options,
        }

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments that recreate this metric, except its name and dtype."""
        return self._arguments()

    @property
    def result_keys(self) -> tuple[str, ...]:
        """The keys of the result."""
        return self._keys

    def result(self) -> dict[str, Array]:
        """The weighted mean of each metric over the queries so far, by its key."""
        return dict(zip(self._keys, self._results(), strict=True))


register(RankingMetrics, "tfrankmetrics")
