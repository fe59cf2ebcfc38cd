"""`EvaluateRows`: evaluates a pointwise model per query."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrankmetrics.arguments import ArrayLike, ColumnLike, SlicesLike, TableLike
from tfrankmetrics.callbacks.base_callback import Evaluation, Unit
from tfrankmetrics.evaluation.evaluate_rows import (
    RowData,
    columns_of_rows,
    evaluate_table,
)
from tfrankmetrics.inputs.datasets import refuse_unordered
from tfrankmetrics.inputs.mistakes import RankingWarning
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.options import Options, Separator
from tfrankmetrics.results.request import read_request
from tfrankmetrics.rules import shortened

if TYPE_CHECKING:
    from typing_extensions import Unpack


class EvaluateRows(Evaluation):
    """Evaluates a pointwise model per query during training.

    A model such as DIN or DeepFM scores one user and one item at a time. After each
    epoch, this callback predicts all rows, calls `evaluate_rows` and adds the metrics
    to the logs, for `EarlyStopping`, `ModelCheckpoint`, `CSVLogger` and the others that
    come after it in `callbacks`.

    >>> import numpy as np
    >>> import tensorflow as tf
    >>> x = np.random.default_rng(0).normal(size=(6, 2))
    >>> clicks, users = [1, 0, 0, 0, 1, 0], ["a", "a", "a", "b", "b", "b"]
    >>> model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    >>> model.compile("sgd", "binary_crossentropy")
    >>> by_user = EvaluateRows(x, clicks, users, ["ndcg@10", "auc"])
    >>> history = model.fit(x, np.array(clicks), callbacks=[by_user], verbose=0).history
    >>> sorted(history)
    ['loss', 'val_auc', 'val_ndcg@10']

    Each evaluation takes the time of `model.predict` and of `evaluate_rows`.

    Args:
        x: The inputs of the rows, as for `model.predict`.
        labels: The label of each row.
        query_ids: The query id of each row, or None with `groups`.
        metrics: Names and metric objects, as in `evaluate`.
        data: A frame, or a dict of columns. The other columns may then be names.
        groups: Instead of query ids, the number of rows of each query, whose rows are
            adjacent.
        sample_weight: One weight per row; or of each query, if it is the same in all
            its rows.
        item_ids: The item of each row, which metrics of recommended items require.
        lower_is_better: If True, the lowest score ranks first.
        by: A slice for each row, the same in all rows of a query, or a dict of columns.
            The keys of a slice look like `val_ndcg@10/language:de`.
        every: Evaluates after every so many epochs or steps, and after the first epoch.
        unit: "epochs" (the default) or "steps" (batches).
        prefix: A string put before each key.
        output: The name or the number of the model's output that holds the scores, if
            it has several.
        batch_size: The batch size of the prediction, as for `model.predict`.
        num_queries: If True, adds the number of included queries, under the key
            "num_queries".
        separator: "@" (the default): keys as passed; "_": keys such as "ndcg_10".
        **options: Options for the metrics passed by name. See
            `tfrankmetrics.Options`.

    Raises:
        ValueError: `evaluate_rows` rejects an argument.
    """

    def __init__(
        self,
        x: ArrayLike,
        labels: ColumnLike,
        query_ids: ColumnLike,
        metrics: Sequence[str | MetricObject],
        *,
        data: TableLike | None = None,
        groups: ColumnLike | None = None,
        sample_weight: ColumnLike | None = None,
        item_ids: ColumnLike | None = None,
        lower_is_better: bool = False,
        by: SlicesLike | None = None,
        num_queries: bool = False,
        separator: Separator = "@",
        output: str | int | None = None,
        batch_size: int | None = None,
        every: int = 1,
        unit: Unit = "epochs",
        prefix: str = "val_",
        **options: Unpack[Options],
    ) -> None:
        form = {"by": by, "num_queries": num_queries, "separator": separator}
        request = read_request(
            metrics, options, **form, lower_is_better=lower_is_better
        )
        super().__init__(request, every, unit, prefix, output, batch_size)
        refuse_unordered(x, "Labels and query ids")
        columns = {"query_ids": query_ids, "labels": labels, "item_ids": item_ids}
        columns["sample_weight"] = sample_weight
        columns = columns_of_rows(request, data, columns, x=x)
        self._x, self._labels = columns.pop("x"), columns["labels"]
        self._request = dataclasses.replace(request, by=columns.pop("by") or None)
        if np.shape(self._labels) == () or len(self._labels) == 0:
            raise ValueError(
                "EvaluateRows needs a label for each row, and at least one row. "
                f"Received: labels={shortened(self._labels)}."
            )
        self._columns, self._groups = columns, groups
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankingWarning)
            # Raises errors before the training.
            self._of_scores(np.zeros(len(self._labels)))

    def _of_scores(self, scores: np.ndarray) -> Any:
        columns = {**self._columns, "scores": scores}
        data = RowData.of_table(self._request, columns, None, self._groups)
        return evaluate_table(self._request, data)

    def _values(self) -> Any:
        scores = np.asarray(self._predict(self._x))
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores[:, 0]
        if scores.shape != np.shape(self._labels):
            raise ValueError(
                "EvaluateRows needs one score for each row, [rows] or [rows, 1]. "
                f"Received: predictions of shape {scores.shape} for "
                f"{len(self._labels)} labels. For lists [B, N], use EvaluateLists."
            )
        return self._of_scores(scores)
