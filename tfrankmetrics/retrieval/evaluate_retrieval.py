"""`evaluate_retrieval`: ranking metrics over a catalog of any size."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrankmetrics.arguments import ArrayLike, SlicesLike, Tower
from tfrankmetrics.columns.numbered_ids import number_ids
from tfrankmetrics.columns.slices import Slices
from tfrankmetrics.compute.calls import require_eager
from tfrankmetrics.compute.computed import Computed, Part
from tfrankmetrics.compute.exposures import with_num_items
from tfrankmetrics.evaluation.evaluate_rows import RowData
from tfrankmetrics.evaluation.item_positions import by_position
from tfrankmetrics.inputs.alignment import aligned
from tfrankmetrics.inputs.catalog import CatalogLists
from tfrankmetrics.inputs.datasets import is_dataset
from tfrankmetrics.inputs.dense import as_scores
from tfrankmetrics.inputs.devices import is_on_gpu
from tfrankmetrics.inputs.mistakes import warn_of
from tfrankmetrics.inputs.model_inputs import rows_of, size_of
from tfrankmetrics.inputs.one_list import OneList, list_of_query
from tfrankmetrics.inputs.weights import (
    query_weights,
    refuse_negative_weights,
    require_valid_weights,
)
from tfrankmetrics.metrics.measure import Measure, cutoffs_of
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.options import Options, Separator
from tfrankmetrics.ranking.items import lowest_score
from tfrankmetrics.results.metric_values import SlicedValues
from tfrankmetrics.results.request import Request, read_request
from tfrankmetrics.retrieval.all_candidates import rank_all
from tfrankmetrics.retrieval.candidates import (
    ArrayCandidates,
    Candidates,
    RelevantItems,
    StreamedCandidates,
    in_memory,
    require_unique,
)
from tfrankmetrics.retrieval.highest import NOTHING, Depth, Highest
from tfrankmetrics.retrieval.scores import DotProducts, ScoreFunction
from tfrankmetrics.retrieval.values_of_ranks import parts_of_ranks
from tfrankmetrics.rules import Positive, check_option, check_query, shortened

if TYPE_CHECKING:
    from typing_extensions import Unpack

# From some queries and some candidates to their scores, `[B, C]`.
Score = Callable[[Any, Any], Any]
# Queries and candidates whose scores are computed at a time: enough to keep all cores
# busy, few enough to take little memory.
BATCH_SIZE, CHUNK_SIZE = 256, 16_384
# A GPU computes few large blocks faster than many small ones.
GPU_BATCH_SIZE, GPU_CHUNK_SIZE = 1_024, 65_536
# A user's function may take much more memory for each pair than a dot product.
OWN_BATCH_SIZE, OWN_CHUNK_SIZE = 64, 2_048
# Arguments whose rows must be in the same order.
OF_QUERIES = "queries", "relevant", "exclude", "sample_weight", "by"
OF_CANDIDATES = "candidates", "candidate_ids"


def evaluate_retrieval(
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
    per_query: bool = False,
    num_queries: bool = False,
    separator: Separator = "@",
    verbose: bool = False,
    **options: Unpack[Options],
) -> dict[str, Any] | SlicedValues:
    """Ranks all candidates for each query and computes ranking metrics.

    >>> queries = [[1.0, 0.0], [0.0, 1.0]]  # two vectors
    >>> candidates = [[0.9, 0.1], [0.2, 0.8], [0.5, 0.6]]  # three vectors
    >>> relevant = [0, 2]  # the position of each query's relevant candidate
    >>> evaluate_retrieval(queries, candidates, relevant, ["mrr", "hit_rate@1"])
    {'mrr': 0.75, 'hit_rate@1': 0.5}

    All candidates are scored, a chunk at a time, and no scores `[B, V]` are stored. The
    rank of a relevant item is one plus the number of candidates with a higher score,
    which adds up over the chunks. Ranks and ties are exact.

    Args:
        queries: Embeddings `[B, d]`, as an array or a `tf.data.Dataset` of batches.
            With `query_tower` or `score`, also any inputs of these with B rows: an
            array, or a dict of arrays.
        candidates: Embeddings `[V, d]`, or other inputs with V rows. A
            `tf.data.Dataset` of batches need not fit in memory. It is read several
            times and must yield the same candidates in the same order each time.
        relevant: Ids of the relevant items, `[B]` or `[B, M]`, or lists of unequal
            length: the position of each among the candidates, or -1 for padding. Or a
            dict of `ids` and their `relevance`, grades of the same shape; a dict from
            id to grade for each query; or a sparse matrix of grades, `[B, V]`. Queries
            without any id are excluded.
        metrics: Names and metric objects, as in `evaluate`.
        sample_weight: A weight for each query: a scalar, `[B]` or `[B, 1]`.
        by: A slice for each query, `[B]`, or a dict of columns, as in `evaluate`.
        verbose: If True, shows a progress bar.
        exclude: Ids to exclude from each query's ranking, such as items that the user
            has seen, `[B, E]`, lists of unequal length, or a sparse matrix, `[B, V]`.
            An excluded item that is relevant is treated as missed.
        candidate_ids: The id of each candidate, `[V]`, integers or strings. Then
            `relevant` and `exclude` hold these ids instead of positions. Rows of
            strings have unequal length and no padding.
        score: A function from queries and candidates, some rows of each, to their
            scores `[B, C]`. It receives arrays of the library of its inputs: tensors of
            PyTorch if queries or candidates are, and so on. The score of a pair must
            not depend on the other rows, of which the last ones are repeated. Rows in
            half precision are passed as float32. The default is the dot product,
            computed in float64 and, for vectors of float32 and below, rounded to
            float32.
        query_tower: A Keras model, a layer or a function that computes `queries` from
            inputs, each row independently. The last row is repeated up to a multiple of
            64.
        candidate_tower: The same for `candidates`.
        batch_size: The number of queries that are scored at a time: by default 256, on
            a GPU 1,024, and 64 with `score`.
        chunk_size: The number of candidates that are scored at a time: by default
            16,384, on a GPU 65,536, and 2,048 with `score`. A dataset keeps its
            batches.
        num_queries: If True, adds the number of included queries, under the key
            "num_queries".
        separator: "@" (the default): keys as passed; "_": keys such as "ndcg_10".
        per_query: If True, returns the value of each query instead of the mean.
        **options: Options for the metrics passed by name, such as `ties="worst"`. See
            `tfrankmetrics.Options`.

    Returns:
        The same as `evaluate`, and the same values as `evaluate` of all scores with
        inputs="catalog".

    Raises:
        ValueError: A shape, id, metric or option is not one of those above; a dataset
            is empty, endless or changes its order.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("evaluate_retrieval")
    request = read_request(
        metrics,
        options,
        inputs="catalog",
        by=by,
        per_query=per_query,
        num_queries=num_queries,
        separator=separator,
    )
    data = CandidateData(
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
    return evaluate_candidates(request, data, verbose)


def evaluate_candidates(
    request: Request, data: CandidateData, verbose: bool
) -> dict[str, Any] | SlicedValues:
    """`evaluate_retrieval` for a request: computes and shapes the result."""
    queries = data.queries()
    weights, slices = data.query_weights(), data.slices(request)
    candidates = data.candidates()
    request = data.with_items(request, candidates.number)
    computed = Computed(request.named, slices)
    progress = _progress(candidates.number) if verbose else None
    given = queries, candidates, weights, progress
    for part in data.parts(request.named, *given):
        computed.add(*part)
    number = len(data.relevant.ids)
    return request.result(computed, *computed.by_query(number), slices)


class CandidateData:
    """Queries, candidates and relevant items, and how they are scored, checked."""

    def __init__(self, **given: Any) -> None:
        """Checks arguments of `evaluate_retrieval`, and of its like, before towers run.

        Without `relevant`, as in `retrieve`, call `read_relevant` before `candidates`.
        """
        for name in ("score", "query_tower", "candidate_tower"):
            if given[name] is not None and not callable(given[name]):
                raise ValueError(
                    f"`{name}` must be a function, a layer or a model. Received: "
                    f"{shortened(given[name])}."
                )
        self.scores, sizes = DotProducts(), [BATCH_SIZE, CHUNK_SIZE]
        if is_on_gpu(given["queries"], given["candidates"]):
            sizes = [GPU_BATCH_SIZE, GPU_CHUNK_SIZE]
        if given["score"] is not None:
            self.scores = ScoreFunction(given["score"])
            sizes = [OWN_BATCH_SIZE, OWN_CHUNK_SIZE]
        for number, name in enumerate(("batch_size", "chunk_size")):
            if (size := given[name]) is not None:
                check_option("evaluate_retrieval", name, size, Positive)
                sizes[number] = size
        self.batch_size, self._chunk_size = sizes
        self._given = dict(given)
        for names in (OF_QUERIES, OF_CANDIDATES):
            self._given |= aligned({n: given[n] for n in names if n in given})
        if "relevant" in given:
            self.read_relevant(self._given["relevant"])

    def read_relevant(self, relevant: Any) -> None:
        """Reads the relevant items and those to exclude."""
        exclude, self.ids = (self._given[n] for n in ("exclude", "candidate_ids"))
        if self.ids is not None:
            ids = number_ids("`candidate_ids`", [self.ids])
            self.ids = ids.array(ids.codes)
        self.relevant = RelevantItems.read(relevant, exclude, self.ids)

    def queries(self) -> Any:
        """The queries in memory, with a row of relevant items for each."""
        given, tower = self._given["queries"], self._given["query_tower"]
        queries = self.scores.read(in_memory("queries", given, tower, self.batch_size))
        if "relevant" not in self._given:
            self.read_relevant([[]] * size_of("queries", queries))
        self.relevant.require_queries(size_of("queries", queries))
        return queries

    def candidates(self) -> Candidates:
        """The candidates, among which all relevant items must be."""
        given, tower = self._given["candidates"], self._given["candidate_tower"]
        read = self.scores.read
        if is_dataset(given):
            kept = self.relevant.ids
            candidates: Candidates = StreamedCandidates(given, tower, kept, read)
        else:
            arrays = read(in_memory("candidates", given, tower, self._chunk_size))
            candidates = ArrayCandidates(arrays, self._chunk_size)
        self.relevant.require_candidates(candidates.number)
        if self.ids is not None:
            require_unique(self.ids, candidates.number)
        return candidates

    def query_weights(self) -> np.ndarray | None:
        """The weight of each query; None without any."""
        weights = self._given["sample_weight"]
        if weights is None:
            return None
        refuse_negative_weights(weights)
        weights = np.asarray(query_weights(weights, self.relevant.ids))
        require_valid_weights(weights)
        return weights

    def slices(self, request: Request) -> Slices | None:
        """The slice of each query; None without any."""
        request = dataclasses.replace(request, by=self._given.get("by"))
        return request.slices_of_queries(len(self.relevant.ids))

    def with_items(self, request: Request, number: int) -> Request:
        """The request with data about items in the order of the candidates."""
        if not request.reads_items:
            return request
        if request.has_data_by_id:
            if self.ids is None:
                raise ValueError(
                    "Data about items by id require `candidate_ids`, the id of each "
                    "candidate. Received: a dict by id, without `candidate_ids`. Pass "
                    "the data in the order of the candidates."
                )
            request = by_position(request, self.ids.tolist())
        request = request.with_measures(with_num_items(request.named, number))
        for measure in request.measures:
            for size in measure.numbers_of_items:
                if size != number:
                    raise ValueError(
                        f"`{measure.declaration.name}` requires data for each "
                        f"candidate. Received: {size} items, and {number} candidates."
                    )
        return request

    def parts(
        self,
        named: Mapping[str, Measure],
        queries: Any,
        candidates: Candidates,
        weights: np.ndarray | None,
        progress: Callable[[int], None] | None,
    ) -> Iterator[Part]:
        """The metrics, lists for them, and the numbers of their queries.

        Warns of mistakes in the scores.
        """
        of_items, of_lists = {}, {}
        for name, measure in named.items():
            chosen = of_items if measure.declaration.reads_items else of_lists
            chosen[name] = measure
        ranks, highest = rank_all(
            queries,
            candidates,
            self.relevant,
            self.scores,
            self.batch_size,
            counts_tied_before=any(
                each.tie_breaking.keeps_order for each in of_lists.values()
            ),
            depth=_depth_of(of_items),
            progress=progress,
        )
        warn_of(self.relevant.facts() + ranks.facts())
        if of_lists:
            of_ranks = self.relevant, ranks, weights, candidates.number
            yield from parts_of_ranks(of_lists, *of_ranks)
        if len(highest.rows):
            rows = rows_of_highest(highest, len(self.relevant.ids), weights)
            yield from rows.parts(of_items)

    def list_of(self, query: int) -> OneList:
        """The list of the query of this number, with the scores of all candidates."""
        vectors = self.queries()
        check_query("explain_retrieval", query, len(self.relevant.ids))
        weights, candidates = self.query_weights(), self.candidates()
        chosen = np.array([query])
        vectors, items = rows_of(vectors, chosen), self.relevant.of(chosen)
        of_blocks = self.scores, self.batch_size
        depth = Depth(None, is_stable=True)
        _, ranked = rank_all(vectors, candidates, items, *of_blocks, depth=depth)
        of_ranked = as_scores(ranked.scores)
        lowest = lowest_score(of_ranked)
        scores = np.full((1, candidates.number), lowest, of_ranked.dtype)
        scores[0, ranked.ids] = of_ranked
        of_query = scores, items.ids, items.relevance, items.exclude
        weights = None if weights is None else weights[chosen]
        lists = CatalogLists(*of_query, query_weights=weights)
        names = {} if self.ids is None else dict(enumerate(self.ids.tolist()))
        return list_of_query(lists, 0, query, names)


def rows_of_highest(
    highest: Highest, num_queries: int, weights: np.ndarray | None
) -> RowData:
    """The candidates with the highest scores as rows without relevance."""
    columns = {"labels": np.zeros(len(highest.rows)), "items": highest.ids}
    columns["scores"] = highest.scores
    if weights is not None:
        columns["sample_weight"] = weights[highest.rows]
    ids, queries = np.arange(num_queries), highest.queries(num_queries)
    return RowData(columns, ids, queries, drops_unjudged=False)


def _depth_of(named: Mapping[str, Measure]) -> Depth:
    """How many candidates of each query some metrics read."""
    if not named:
        return NOTHING
    is_stable = all(each.tie_breaking.keeps_order for each in named.values())
    return Depth(cutoffs_of(named.values())[-1], is_stable)


def _progress(total: int) -> Callable[[int], None]:
    """Prints how many candidates were scored."""
    scored = 0

    def add(number: int) -> None:
        nonlocal scored
        scored += number
        end = "\n" if scored >= total else ""
        print(f"\r{scored:,} of {total:,} candidates", end=end, file=sys.stderr)

    return add
