"""`evaluate_retrieval`: ranking metrics over a catalogue of any size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tfrankmetrics.columns.slices import (
    Slices,
    by_columns,
    columns_by_query,
    slices_of,
)
from tfrankmetrics.engine.calls import require_eager
from tfrankmetrics.engine.names import named_measures
from tfrankmetrics.inputs.formats import input_format
from tfrankmetrics.inputs.weights import query_weights, require_valid_weights
from tfrankmetrics.keras.state import StatefulMetric
from tfrankmetrics.options import Options, Separator, takes_options
from tfrankmetrics.results.values import SlicedValues, require_free_keys, summarize
from tfrankmetrics.retrieval.candidates import (
    candidates_of,
    compiled,
    dot_product,
    in_memory,
    size_of,
)
from tfrankmetrics.retrieval.counting import count_ranks
from tfrankmetrics.retrieval.lists import by_query, order_of
from tfrankmetrics.retrieval.truth import Truth, read_truth, require_unique
from tfrankmetrics.rules import check_option, shortened

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Queries and candidates whose scores are computed at a time: enough to keep all cores
# busy, few enough to take little memory.
BATCH_SIZE, CHUNK_SIZE = 256, 65_536
# A user's function may take much more memory for each pair than a dot product.
OWN_BATCH_SIZE, OWN_CHUNK_SIZE = 64, 2_048


@takes_options
def evaluate_retrieval(
    queries: Any,
    candidates: Any,
    relevant: Any,
    metrics: Sequence[str | StatefulMetric],
    *,
    exclude: Any = None,
    candidate_ids: Any = None,
    score: Callable[[Any, Any], Any] | None = None,
    query_tower: Any = None,
    candidate_tower: Any = None,
    batch_size: int | None = None,
    chunk_size: int | None = None,
    sample_weight: Any = None,
    by: Any = None,
    per_query: bool = False,
    num_queries: bool = False,
    separator: Separator = "@",
    verbose: bool = False,
    **options: Unpack[Options],
) -> dict[str, Any] | SlicedValues:
    """Computes ranking metrics of relevant items among all candidates, of any number.

    >>> queries = [[1.0, 0.0], [0.0, 1.0]]  # two vectors
    >>> candidates = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.6]]  # three vectors
    >>> relevant = [0, 2]  # the position of each query's relevant candidate
    >>> evaluate_retrieval(queries, candidates, relevant, ["mrr", "hit_rate@1"])
    {'mrr': 0.75, 'hit_rate@1': 0.5}

    All candidates are scored, a chunk at a time, and no scores `[B, V]` are stored. The
    rank of a relevant item is one plus the number of candidates with a higher score,
    which adds up over the chunks. So ranks are exact, and so is the treatment of ties.
    The score of the item itself comes from the very product that scores the others.

    Args:
        queries: Vectors `[B, d]`, as an array or a `tf.data.Dataset` of batches. With
            `query_tower` or `score`, also any inputs of these with B rows: an array, or
            a dict of arrays.
        candidates: Vectors `[V, d]`, or other inputs with V rows. A
            `tf.data.Dataset` of batches need not fit in memory. It is read several
            times, and must give the same candidates in the same order each time.
        relevant: Ids of the relevant items, `[B]` or `[B, M]`, or lists of unequal
            length: the position of each among the candidates, or -1 for padding. Or a
            dict of `ids` and their `relevance`, grades of the same shape. A query
            without any id does not count.
        metrics: Names and metric objects, as in `evaluate`.
        exclude: Ids to leave out of each query's ranking, such as items that the user
            has seen, `[B, E]` or lists of unequal length. An excluded item that is
            relevant counts as missed.
        candidate_ids: The id of each candidate, `[V]`, integers or strings. Then
            `relevant` and `exclude` hold these ids, in place of positions. Rows of
            strings have unequal length and no padding.
        score: A function from queries and candidates, some rows of each, to their
            scores `[B, C]`, made of TensorFlow operations. The score of a pair must not
            depend on the other rows, of which the last ones are repeated. The default
            is the dot product, in the wider of the two dtypes.
        query_tower: A Keras model, a layer or a function that makes `queries` out of
            inputs, each row by itself. The last row is repeated up to a multiple of 64.
        candidate_tower: The same for `candidates`.
        batch_size: The number of queries that are scored at a time, 256 by default, or
            64 with `score`.
        chunk_size: The number of candidates that are scored at a time, 65,536 by
            default, or 2,048 with `score`. A dataset has batches of its own.
        sample_weight: A weight for each query: a scalar, `[B]` or `[B, 1]`.
        by: A slice for each query, `[B]`, or a dict of columns, as in `evaluate`.
        per_query: If True, returns the value of each query instead of the mean.
        num_queries: If True, the result also has the number of queries that count in
            any of the metrics, with the key "num_queries".
        separator: What is put between the name and the cutoff of a metric given by
            name: "@" (the default) or "_".
        verbose: If True, shows a progress bar.
        **options: Options for the metrics given by name, such as `ties="worst"`. See
            `tfrankmetrics.Options`.

    Returns:
        The same as `evaluate`, and the same values as `evaluate` of all scores with
        inputs="catalogue". (But ties="random" draws another order for queries with
        excluded items, or with candidates whose score is -inf.)

    Raises:
        ValueError: A shape, id, metric or option is not one of those above; a dataset
            is empty, endless or changes its order.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("evaluate_retrieval")
    named = named_measures(metrics, options, input_format("catalogue"), separator)
    slice_columns = {} if by is None else by_columns(by)
    require_free_keys(named, slice_columns, per_query, num_queries)
    sizes = (OWN_BATCH_SIZE, OWN_CHUNK_SIZE) if score else (BATCH_SIZE, CHUNK_SIZE)
    batch_size = size_or("batch_size", batch_size, sizes[0])
    chunk_size = size_or("chunk_size", chunk_size, sizes[1])
    truth = read_truth(relevant, exclude, candidate_ids)
    for name, function in (
        ("score", score),
        ("query_tower", query_tower),
        ("candidate_tower", candidate_tower),
    ):
        if function is not None and not callable(function):
            raise ValueError(
                f"`{name}` must be a function, a layer or a model. Received: "
                f"{shortened(function)}."
            )
    query_tower, candidate_tower = compiled(query_tower), compiled(candidate_tower)
    vectors = in_memory("queries", queries, query_tower, batch_size)
    truth.require_queries(size_of("queries", vectors))
    weights, slices = weights_and_slices(truth, sample_weight, slice_columns)
    found = candidates_of(candidates, candidate_tower, truth.ids, chunk_size)
    truth.require_candidates(found.number)
    if candidate_ids is not None:
        require_unique(candidate_ids, found.number)

    items = truth.items()
    orders = {order for m in named.values() if (order := order_of(m)) is not None}
    ranks = count_ranks(
        vectors,
        found,
        items,
        score or dot_product,
        orders,
        batch_size,
        _progress_bar(found.number) if verbose else lambda number: None,
    )
    values, weights = by_query(named, items, ranks, weights, found.number)
    return summarize(named, values, weights, per_query, slices, num_queries=num_queries)


def weights_and_slices(
    truth: Truth, sample_weight: Any, slice_columns: Mapping[str, Any]
) -> tuple[tf.Tensor | None, Slices | None]:
    """The weight and the slice of each query. None without any."""
    weights = slices = None
    if sample_weight is not None:
        weights = query_weights(sample_weight, tf.constant(truth.ids))
        require_valid_weights(weights)
    if slice_columns:
        slices = slices_of(columns_by_query(slice_columns, len(truth.ids)))
    return weights, slices


def size_or(name: str, size: int | None, default: int) -> int:
    """A number of rows of at least 1, or the default for None."""
    if size is None:
        return default
    check_option("evaluate_retrieval", name, size, int)
    if size < 1:
        raise ValueError(f"`{name}` must be at least 1. Received: {size}.")
    return size


def _progress_bar(total: int) -> Callable[[int], None]:
    bar = tf.keras.utils.Progbar(total, unit_name="candidate")
    return bar.add
