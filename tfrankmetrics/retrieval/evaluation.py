"""`evaluate_retrieval`: ranking metrics over a catalogue of any size."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfrankmetrics.arguments import RetrievalArguments
from tfrankmetrics.arrays import Library
from tfrankmetrics.columns.slices import (
    Slices,
)
from tfrankmetrics.engine.calls import require_eager
from tfrankmetrics.engine.items import ExposureSums, with_num_items
from tfrankmetrics.engine.measure import Measure, cutoffs_of
from tfrankmetrics.engine.names import MetricObject
from tfrankmetrics.inputs.mistakes import warn_if_relevant_are_excluded
from tfrankmetrics.inputs.weights import query_weights, require_valid_weights
from tfrankmetrics.results.request import Request, read_request
from tfrankmetrics.results.values import SlicedValues
from tfrankmetrics.retrieval.blocks import Depth
from tfrankmetrics.retrieval.candidates import (
    ArrayCandidates,
    candidates_of,
    in_memory,
)
from tfrankmetrics.retrieval.chunks import Candidates
from tfrankmetrics.retrieval.counting import count_ranks
from tfrankmetrics.retrieval.inputs import (
    library_of_functions,
    size_of,
    with_aligned_rows,
)
from tfrankmetrics.retrieval.lists import by_query, needed_ranks, order_of
from tfrankmetrics.retrieval.products import dot_product
from tfrankmetrics.retrieval.top import values_of_items
from tfrankmetrics.retrieval.truth import Truth, read_truth, require_unique
from tfrankmetrics.rules import check_option, shortened
from tfrankmetrics.signatures import takes

if TYPE_CHECKING:
    from typing_extensions import Unpack

# Queries and candidates whose scores are computed at a time: enough to keep all cores
# busy, few enough to take little memory.
BATCH_SIZE, CHUNK_SIZE = 256, 65_536
# A user's function may take much more memory for each pair than a dot product.
OWN_BATCH_SIZE, OWN_CHUNK_SIZE = 64, 2_048


@takes(RetrievalArguments)
def evaluate_retrieval(
    queries: Any,
    candidates: Any,
    relevant: Any,
    metrics: Sequence[str | MetricObject],
    *,
    sample_weight: Any = None,
    verbose: bool = False,
    **arguments: Unpack[RetrievalArguments],
) -> dict[str, Any] | SlicedValues:
    """Computes ranking metrics of relevant items among all candidates, of any number.

    >>> queries = [[1.0, 0.0], [0.0, 1.0]]  # two vectors
    >>> candidates = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.6]]  # three vectors
    >>> relevant = [0, 2]  # the position of each query's relevant candidate
    >>> evaluate_retrieval(queries, candidates, relevant, ["mrr", "hit_rate@1"])
    {'mrr': 0.75, 'hit_rate@1': 0.5}

    All candidates are scored, a chunk at a time, and no scores `[B, V]` are stored. The
    rank of a relevant item is one plus the number of candidates with a higher score,
    which adds up over the chunks. Therefore, ranks and ties are exact. The score of a
    relevant item comes from the same product that scores the others.

    Args:
        queries: Embeddings `[B, d]`, as an array or a `tf.data.Dataset` of batches.
            With `query_tower` or `score`, also any inputs of these with B rows: an
            array, or a dict of arrays.
        candidates: Embeddings `[V, d]`, or other inputs with V rows. A
            `tf.data.Dataset` of batches need not fit in memory. It is read several
            times, and must yield the same candidates in the same order each time.
        relevant: Ids of the relevant items, `[B]` or `[B, M]`, or lists of unequal
            length: the position of each among the candidates, or -1 for padding. Or a
            dict of `ids` and their `relevance`, grades of the same shape. Queries
            without any id are excluded.
        metrics: Names and metric objects, as in `evaluate`.
        sample_weight: A weight for each query: a scalar, `[B]` or `[B, 1]`.
        by: A slice for each query, `[B]`, or a dict of columns, as in `evaluate`.
        verbose: If True, shows a progress bar.
        **arguments: Options for the metrics passed by name, such as `ties="worst"`. See
            `tfrankmetrics.Options`.

    Returns:
        The same as `evaluate`, and the same values as `evaluate` of all scores with
        inputs="catalogue". However, ties="random" draws a different order for metrics
        of recommended items, and for queries with excluded items, or with candidates
        whose score is -inf.

    Raises:
        ValueError: A shape, id, metric or option is not one of those above; a dataset
            is empty, endless or changes its order.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("evaluate_retrieval")
    request, given = read_request(
        RetrievalArguments, metrics, arguments, inputs="catalogue"
    )
    given = with_aligned_rows(
        {
            **given,
            "queries": queries,
            "candidates": candidates,
            "relevant": relevant,
            "sample_weight": sample_weight,
        }
    )
    truth = read_truth(given["relevant"], given["exclude"], given["candidate_ids"])
    return evaluate_queries(
        dataclasses.replace(request, by=given["by"]),
        RetrievalSettings.of(given),
        truth,
        given["queries"],
        given["candidates"],
        given["sample_weight"],
        verbose,
    )


class RetrievalSettings(NamedTuple):
    """How queries and candidates are scored, checked."""

    score: Callable[[Any, Any], Any]
    query_tower: Any
    candidate_tower: Any
    batch_size: int
    chunk_size: int
    candidate_ids: Any

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> RetrievalSettings:
        """Raises ValueError for arguments that are not functions or sizes."""
        for name in ("score", "query_tower", "candidate_tower"):
            if given[name] is not None and not callable(given[name]):
                raise ValueError(
                    f"`{name}` must be a function, a layer or a model. Received: "
                    f"{shortened(given[name])}."
                )
        sizes = (BATCH_SIZE, CHUNK_SIZE)
        if given["score"] is not None:
            sizes = (OWN_BATCH_SIZE, OWN_CHUNK_SIZE)
        return cls(
            given["score"] or dot_product,
            given["query_tower"],
            given["candidate_tower"],
            _size_or("batch_size", given["batch_size"], sizes[0]),
            _size_or("chunk_size", given["chunk_size"], sizes[1]),
            given["candidate_ids"],
        )


def evaluate_queries(
    request: Request,
    settings: RetrievalSettings,
    truth: Truth,
    queries: Any,
    candidates: Any,
    sample_weight: Any,
    verbose: bool,
) -> dict[str, Any] | SlicedValues:
    """`evaluate_retrieval` for a request: reads, counts ranks, computes, shapes."""
    vectors = read_queries(settings, truth, queries)
    weights_of_queries, slices = weights_and_slices(request, truth, sample_weight)
    found = read_candidates(settings, truth, candidates)
    request = with_items(request, settings.candidate_ids, found.number)
    of_items, of_lists = {}, {}
    for name, measure in request.named.items():
        chosen = of_items if measure.declaration.reads_items else of_lists
        chosen[name] = measure
    items = truth.items()
    excluded = int((items.is_valid & ~items.is_ranked).sum())
    warn_if_relevant_are_excluded(int(items.is_valid.sum()), excluded)
    orders = {order for m in of_lists.values() if (order := order_of(m)) is not None}
    ranks, top = count_ranks(
        vectors,
        found,
        items,
        settings.score,
        orders,
        settings.batch_size,
        _progress(found.number) if verbose else lambda number: None,
        library=library_of_scores(settings.score, vectors, found),
        depth=depth_of(of_items),
        needed=needed_ranks([*of_lists.values()], items),
    )
    ranks.score_counts().warn()
    values, weights = np.zeros((2, len(request.named), len(truth.ids)))
    is_of_items = np.array([name in of_items for name in request.named])
    sums = ExposureSums.of(request.named, slices)
    if of_lists:
        values[~is_of_items], weights[~is_of_items] = by_query(
            of_lists, items, ranks, weights_of_queries, found.number
        )
    if top is not None:
        values[is_of_items], weights[is_of_items] = values_of_items(
            of_items, top, len(truth.ids), weights_of_queries, sums
        )
    return request.result(values, weights, slices, totals=sums.values())


def with_items(request: Request, candidate_ids: Any, number: int) -> Request:
    """The request with data about items in the order of the candidates."""
    named = request.named
    if any(measure.ids_of_items for measure in named.values()):
        if candidate_ids is None:
            raise ValueError(
                "Data about items by id require `candidate_ids`, the id of each "
                "candidate. Received: a dict by id, without `candidate_ids`. Pass the "
                "data in the order of the candidates."
            )
        ids = np.asarray(candidate_ids).tolist()
        named = {name: each.by_position(ids) for name, each in named.items()}
    named = with_num_items(named, number)
    for measure in named.values():
        for size in measure.numbers_of_items:
            if size != number:
                raise ValueError(
                    f"`{measure.declaration.name}` requires data for each candidate. "
                    f"Received: {size} items, and {number} candidates."
                )
    return request.with_measures(named)


def depth_of(named: Mapping[str, Measure]) -> Depth | None:
    """How many candidates of each query some metrics read; None without metrics."""
    if not named:
        return None
    cutoffs = cutoffs_of(named.values())
    is_stable = all(measure["ties"] == "stable" for measure in named.values())
    return Depth(cutoffs[-1], is_stable)


def read_queries(settings: RetrievalSettings, truth: Truth, queries: Any) -> Any:
    """The queries in memory, as many as there are rows of relevant items."""
    vectors = in_memory("queries", queries, settings.query_tower, settings.batch_size)
    truth.require_queries(size_of("queries", vectors))
    return vectors


def read_candidates(
    settings: RetrievalSettings, truth: Truth, candidates: Any
) -> Candidates:
    """The candidates, among which all relevant items must be."""
    found = candidates_of(
        candidates, settings.candidate_tower, truth.ids, settings.chunk_size
    )
    truth.require_candidates(found.number)
    if settings.candidate_ids is not None:
        require_unique(settings.candidate_ids, found.number)
    return found


def weights_and_slices(
    request: Request, truth: Truth, sample_weight: Any
) -> tuple[np.ndarray | None, Slices | None]:
    """The weight and the slice of each query. None without any."""
    weights = None
    if sample_weight is not None:
        weights = np.asarray(query_weights(sample_weight, truth.ids))
        require_valid_weights(weights)
    return weights, request.slices_of_queries(lambda: len(truth.ids))


def _size_or(name: str, size: int | None, default: int) -> int:
    """A number of rows of at least 1, or the default for None."""
    if size is None:
        return default
    check_option("evaluate_retrieval", name, size, int)
    if size < 1:
        raise ValueError(f"`{name}` must be at least 1. Received: {size}.")
    return size


def library_of_scores(score: Any, queries: Any, candidates: Candidates) -> Library:
    """The library that computes the scores."""
    if score is not dot_product:
        return library_of_functions()
    are_arrays = isinstance(queries, np.ndarray) and (
        isinstance(candidates, ArrayCandidates)
        and isinstance(candidates.inputs, np.ndarray)
    )
    return "numpy" if are_arrays else "tensorflow"


def _progress(total: int) -> Callable[[int], None]:
    """Prints how many candidates were scored."""
    scored = 0

    def add(number: int) -> None:
        nonlocal scored
        scored += number
        end = "\n" if scored >= total else ""
        print(f"\r{scored:,} of {total:,} candidates", end=end, file=sys.stderr)

    return add
