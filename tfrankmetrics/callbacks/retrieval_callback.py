"""`EvaluateRetrieval`: evaluates a retrieval model over all candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tfrankmetrics.arguments import ArrayLike, SlicesLike, Tower
from tfrankmetrics.callbacks.base_callback import Evaluation, Unit
from tfrankmetrics.inputs.datasets import comes_in_batches
from tfrankmetrics.inputs.mistakes import warn
from tfrankmetrics.inputs.model_inputs import as_arrays, size_of
from tfrankmetrics.keras.inference import is_layer
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.options import Options, Separator
from tfrankmetrics.results.request import read_request
from tfrankmetrics.retrieval.evaluate_retrieval import (
    CandidateData,
    Score,
    evaluate_candidates,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack


class EvaluateRetrieval(Evaluation):
    """Evaluates a retrieval model over all candidates during training.

    Metrics in `compile` rank only the items of a batch. This callback ranks the
    relevant items of each query among all candidates with `evaluate_retrieval`. It adds
    the values to the logs, for the callbacks that come after it in `callbacks`.

    >>> import tensorflow as tf
    >>> users, items = tf.keras.layers.Embedding(5, 4), tf.keras.layers.Embedding(9, 4)
    >>> model = tf.keras.Sequential([users, tf.keras.layers.Dense(9)])
    >>> model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(True))
    >>> ids = tf.range(5)
    >>> whole_catalog = EvaluateRetrieval(
    ...     ids, tf.range(9), ids, ["mrr"], query_tower=users, candidate_tower=items
    ... )
    >>> history = model.fit(ids, ids, callbacks=[whole_catalog], verbose=0).history
    >>> sorted(history)
    ['loss', 'val_mrr']

    Each evaluation takes the time of the towers and of `evaluate_retrieval`.

    Args:
        queries: The inputs of the query tower, with a row for each query.
        candidates: The inputs of the candidate tower, with a row for each candidate.
        relevant: Ids of the relevant items, as in `evaluate_retrieval`.
        metrics: Names and metric objects, as in `evaluate`.
        query_tower: A part of the model, such as `model.query_tower`, that computes
            embeddings, or the inputs of `score`, from queries. None if the queries are
            embeddings already.
        sample_weight: A weight for each query: a scalar, `[B]` or `[B, 1]`.
        by: A slice for each query, `[B]`, or a dict of columns. The keys of a slice
            look like `val_ndcg@10/language:de`.
        every: Evaluates after every so many epochs or steps, and after the first epoch.
        unit: "epochs" (the default) or "steps" (batches).
        prefix: A string put before each key.
        exclude: Ids to exclude from each query's ranking, `[B, E]`, lists of unequal
            length, or a sparse matrix `[B, V]`.
        candidate_ids: The id of each candidate, `[V]`, integers or strings. By default
            its position.
        score: A function from some rows of queries and of candidates to their scores
            `[B, C]`. By default the dot product.
        candidate_tower: The same for `candidates`.
        batch_size: The number of queries that are scored at a time.
        chunk_size: The number of candidates that are scored at a time.
        num_queries: If True, adds the number of included queries, under the key
            "num_queries".
        separator: "@" (the default): keys as passed; "_": keys such as "ndcg_10".
        **options: Options for the metrics passed by name. See
            `tfrankmetrics.Options`.

    Raises:
        ValueError: `evaluate_retrieval` rejects an argument.
    """

    def __init__(
        self,
        queries: ArrayLike,
        candidates: ArrayLike,
        relevant: ArrayLike,
        metrics: Sequence[str | MetricObject],
        *,
        sample_weight: ArrayLike | None = None,
        exclude: ArrayLike | None = None,
        candidate_ids: ArrayLike | None = None,
        score: Score | None = None,
        query_tower: Tower | None = None,
        candidate_tower: Tower | None = None,
        batch_size: int | None = None,
        chunk_size: int | None = None,
        by: SlicesLike | None = None,
        num_queries: bool = False,
        separator: Separator = "@",
        every: int = 1,
        unit: Unit = "epochs",
        prefix: str = "val_",
        **options: Unpack[Options],
    ) -> None:
        form = {"by": by, "num_queries": num_queries, "separator": separator}
        request = read_request(metrics, options, inputs="catalog", **form)
        super().__init__(request, every, unit, prefix)
        self._towers = [query_tower, candidate_tower]
        if self._towers == [None, None] and score is None:
            raise ValueError(
                "EvaluateRetrieval needs the parts of the model that score: "
                "`query_tower`, `candidate_tower` or `score`. Received: none of them, "
                "so no value would change. Pass query_tower=model.query_tower."
            )
        self._data = CandidateData(
            queries=queries,
            candidates=candidates,
            relevant=relevant,
            sample_weight=sample_weight,
            by=by,
            exclude=exclude,
            candidate_ids=candidate_ids,
            score=score,
            query_tower=query_tower,
            candidate_tower=candidate_tower,
            batch_size=batch_size,
            chunk_size=chunk_size,
        )
        self._check_before_training(queries, candidates)
        self._is_checked = False  # whether the towers belong to the model

    def _check_before_training(self, queries: Any, candidates: Any) -> None:
        """Raises errors before the training."""
        self._data.query_weights()
        self._data.slices(self._request)
        relevant = self._data.relevant
        for name, data, require in (
            ("queries", queries, relevant.require_queries),
            ("candidates", candidates, relevant.require_candidates),
        ):
            if not comes_in_batches(data):
                require(size_of(name, as_arrays(name, data)))

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Warns if the towers do not belong to the model."""
        super().on_train_begin(logs)
        self._is_checked = False
        self._check_towers()

    def _values(self) -> Any:
        is_verbose = (self.params or {}).get("verbose", 0) == 1
        values = evaluate_candidates(self._request, self._data, is_verbose)
        self._check_towers()
        return values

    def _check_towers(self) -> None:
        """Warns if no weight of the towers is one of the model that trains."""
        layers: list[Any] = [*filter(is_layer, self._towers)]
        # A layer has no weights before it is built, by its first evaluation.
        are_built = all(layer.built for layer in layers)
        if self._is_checked or not are_built or self.model is None:
            return
        self._is_checked = True
        weights = {id(each) for layer in layers for each in layer.trainable_variables}
        of_model = {id(each) for each in self.model.trainable_variables}
        if weights and not weights & of_model:
            warn(
                "The towers must be parts of the model that trains, or their values "
                "stay the same. Received: towers without any of its weights. Pass the "
                "towers of the model, such as query_tower=model.query_tower."
            )
