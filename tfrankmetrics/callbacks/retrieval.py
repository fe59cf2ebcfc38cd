"""`EvaluateRetrieval`: evaluates a retrieval model over its whole catalogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrankmetrics.callbacks.evaluation import Evaluation, Unit
from tfrankmetrics.columns.slices import by_columns
from tfrankmetrics.engine.names import named_measures
from tfrankmetrics.inputs.formats import input_format
from tfrankmetrics.inputs.mistakes import warn_if_other_towers
from tfrankmetrics.keras.state import StatefulMetric
from tfrankmetrics.options import (
    Options,
    Separator,
    takes_options,
)
from tfrankmetrics.retrieval.candidates import compiled, number_of
from tfrankmetrics.retrieval.evaluation import (
    evaluate_retrieval,
    size_or,
    weights_and_slices,
)
from tfrankmetrics.retrieval.truth import read_truth

if TYPE_CHECKING:
    from typing_extensions import Unpack


class EvaluateRetrieval(Evaluation):
    """Evaluates a retrieval model over its whole catalogue, while it trains.

    In-batch training compares a query with the items of its batch only, and so do
    metrics in `compile`. This callback ranks the relevant items of each query among all
    candidates by `evaluate_retrieval`, and adds the values to the logs, for all
    callbacks behind it.

    >>> import tensorflow as tf
    >>> users, items = tf.keras.layers.Embedding(5, 4), tf.keras.layers.Embedding(9, 4)
    >>> model = tf.keras.Sequential([users, tf.keras.layers.Dense(9)])
    >>> model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(True))
    >>> ids = tf.range(5)
    >>> whole_catalogue = EvaluateRetrieval(
    ...     ids, tf.range(9), ids, ["mrr"], query_tower=users, candidate_tower=items
    ... )
    >>> history = model.fit(ids, ids, callbacks=[whole_catalogue], verbose=0).history
    >>> sorted(history)
    ['loss', 'val_mrr']

    Each evaluation takes the time of the towers and of `evaluate_retrieval`.

    Args:
        queries: The inputs of the query tower, with a row for each query.
        candidates: The inputs of the candidate tower, with a row for each candidate.
        relevant: Ids of the relevant items, as in `evaluate_retrieval`.
        metrics: Names and metric objects, as in `evaluate`.
        query_tower: A part of the model, such as `model.query_tower`, that makes
            vectors, or the inputs of `score`, out of queries. None if the queries are
            vectors already.
        candidate_tower: The same for candidates.
        score, exclude, candidate_ids, chunk_size: As in `evaluate_retrieval`.
        sample_weight, by, num_queries, separator: As in `evaluate_retrieval`. A slice
            has keys such as `val_ndcg@10/language:de`.
        every: Evaluates after every so many epochs or steps.
        unit: "epochs" (the default) or "steps" (batches). Steps are logged at the
            batch, and the last values also at the end of the epoch.
        prefix: A string put before each key.
        batch_size: The number of queries at a time, as in `evaluate_retrieval`.
        **options: Options for the metrics given by name. See `tfrankmetrics.Options`.

    Raises:
        ValueError: `evaluate_retrieval` refuses an argument. Or, when training starts,
            a callback that reads the values stands in front of this one.
    """

    @takes_options
    def __init__(
        self,
        queries: Any,
        candidates: Any,
        relevant: Any,
        metrics: Sequence[str | StatefulMetric],
        *,
        query_tower: Any = None,
        candidate_tower: Any = None,
        score: Callable[[Any, Any], Any] | None = None,
        exclude: Any = None,
        candidate_ids: Any = None,
        chunk_size: int | None = None,
        sample_weight: Any = None,
        by: Any = None,
        num_queries: bool = False,
        separator: Separator = "@",
        every: int = 1,
        unit: Unit = "epochs",
        prefix: str = "val_",
        batch_size: int | None = None,
        **options: Unpack[Options],
    ) -> None:
        named = named_measures(metrics, options, input_format("catalogue"), separator)
        super().__init__(named, None, every, unit, prefix, batch_size, num_queries)
        if query_tower is None and candidate_tower is None and score is None:
            raise ValueError(
                "EvaluateRetrieval needs the parts of the model that score: "
                "`query_tower`, `candidate_tower` or `score`. Received: none of them, "
                "so that no value would change. Pass query_tower=model.query_tower."
            )
        # Raises errors before the training.
        size_or("batch_size", batch_size, 1)
        size_or("chunk_size", chunk_size, 1)
        truth = read_truth(relevant, exclude, candidate_ids)
        weights_and_slices(truth, sample_weight, {} if by is None else by_columns(by))
        if not isinstance(queries, tf.data.Dataset):
            truth.require_queries(number_of("queries", queries))
        if not isinstance(candidates, tf.data.Dataset):
            truth.require_candidates(number_of("candidates", candidates))
        self._towers = [query_tower, candidate_tower]
        self._arguments = {
            "queries": queries,
            "candidates": candidates,
            "relevant": relevant,
            "metrics": metrics,
            # Compiled once, and not in each evaluation.
            "query_tower": compiled(query_tower),
            "candidate_tower": compiled(candidate_tower),
            "score": score,
            "exclude": exclude,
            "candidate_ids": candidate_ids,
            "batch_size": batch_size,
            "chunk_size": chunk_size,
            "sample_weight": sample_weight,
            "by": by,
            "num_queries": num_queries,
            "separator": separator,
            **options,
        }

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Warns if the towers are not those of the model."""
        super().on_train_begin(logs)
        warn_if_other_towers(self._towers, self.model)

    def _values(self) -> Any:
        is_verbose = (self.params or {}).get("verbose", 0) == 1
        return evaluate_retrieval(**self._arguments, verbose=is_verbose)
