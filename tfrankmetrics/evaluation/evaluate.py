"""`evaluate`: ranking metrics from arrays in one call, as means or per query.

A `Request` asks, `ListData` read and check the arrays and answer in parts, `Computed`
computes these, and the request shapes the result. All entry points work alike.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arguments import ArrayLike, SlicesLike
from tfrankmetrics.columns.slices import Slices
from tfrankmetrics.compute.calls import require_eager
from tfrankmetrics.compute.computed import Computed, Part
from tfrankmetrics.compute.values import with_labels_for
from tfrankmetrics.evaluation.item_positions import with_items_by_position
from tfrankmetrics.inputs.alignment import aligned_lists
from tfrankmetrics.inputs.ids_as_integers import IdNumbers, as_integer_ids
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.inputs.mistakes import Asked, Facts, refuse_signed_labels, warn_of
from tfrankmetrics.inputs.one_list import OneList, list_of_query
from tfrankmetrics.inputs.parts_by_length import (
    ELEMENTS_AT_A_TIME,
    ELEMENTS_IN_CACHE,
    Batch,
    batch_of,
    lengths_if_unequal,
    parts_of,
)
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.options import Duplicates, Inputs, Options, Separator
from tfrankmetrics.results.metric_values import SlicedValues
from tfrankmetrics.results.request import Request, read_request
from tfrankmetrics.rules import check_query

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


def evaluate(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    metrics: Sequence[str | MetricObject],
    *,
    mask: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    inputs: Inputs = "labels",
    duplicates: Duplicates | None = None,
    lower_is_better: bool = False,
    by: SlicesLike | None = None,
    per_query: bool = False,
    num_queries: bool = False,
    separator: Separator = "@",
    **options: Unpack[Options],
) -> dict[str, Any] | SlicedValues:
    """Computes ranking metrics from labels and scores, or from ids.

    >>> labels = [[1, 0, 0], [0, 2]]  # two queries with three and two items
    >>> scores = [[0.9, 0.3, 0.1], [0.8, 0.4]]
    >>> evaluate(labels, scores, ["mrr", "precision@1"])
    {'mrr': 0.75, 'precision@1': 0.5}
    >>> evaluate(labels, scores, ["mrr"], per_query=True)
    {'mrr': array([1. , 0.5])}

    Args:
        y_true: Labels, graded or binary: `[B, N]`, `[B, N, 1]`, `[N]` for one list, or
            lists of lists of unequal length; NumPy arrays, Python lists, sparse
            matrices of SciPy, dense or ragged tensors. For metrics of subtopics
            `[B, N, T]`. A label below 0 marks padding, unless there is a mask. A dict
            of `labels` and `mask` also works.
            With inputs="ids" or "catalog", ids: integers, strings or of another
            hashable type, in nested lists. All must have the same type. Two flat lists
            are one query.
        y_pred: Scores of the same form; the highest ranks first. Dense scores may also
            be `[B, N, 1]`. Any float or integer dtype, compared without rounding. NaN
            ranks below every number; -inf means that an item was not retrieved.
        metrics: Names (`"ndcg@10"`, `"mrr"`, or those of trec_eval and ir_measures such
            as `"P@5"`), which may contain options (`"ndcg@10(gain=linear)"`,
            `"AP(rel=2)@100"`), and metric objects (`NDCG(k=10, gain="linear")`).
        mask: Booleans of the labels' shape, True for valid items. The mask alone
            decides: a negative label then means not relevant, rather than padding.
        sample_weight: A scalar, `[B]` or `[B, 1]` (one weight per query), or of the
            labels' shape (one per item).
        lower_is_better: If True, the lowest score ranks first, as for distances and for
            ranks. A score of +inf then means that an item was not retrieved.
        by: A slice for each query, such as its language, `[B]`. Also returns the
            metrics of each slice. Or a dict of columns, each `[B]`, whose combinations
            are the slices.
        per_query: If True, returns the value of each query instead of the mean. With
            average="micro", the default of ARP and OPA, the mean is weighted.
        num_queries: If True, the result also contains the number of queries that are
            included in any of the metrics, under the key "num_queries".
        separator: The form of a name as a key of the result: "@" (the default) is the
            name as passed. "_" replaces each run of other characters than letters,
            digits and underscores, as in "ndcg_10" or "ndcg_10_gain_linear", for
            trackers and file names. A metric object keeps its own name.
        inputs: The format of `y_true` and `y_pred`: "labels" and scores (the default);
            relevant "ids" and recommended ids, best first; or relevant ids and the
            scores of a whole "catalog". `NDCG.update_state` describes the three
            formats.
        duplicates: How repeated recommendations are counted, with inputs="ids" only:
            "first" (once, at the first position; the default) or "all" (each time).
        **options: Options for the metrics passed by name, such as `gain="linear"` or
            `convention="trec_eval"`. Options in a name take precedence. See
            `tfrankmetrics.Options`.

    Returns:
        A dict from each name, as passed, to the metric's weighted mean over the
        queries, a float (NaN if no query is included). With `per_query`, to an array
        `[B]` (`[B * T]` for sequences), which is NaN for excluded queries: fully padded
        lists, empty lists with `empty="skip"`, and queries of weight 0. This dict is a
        `QueryValues`, which `compare` takes. With `by`, a `SlicedValues`, which prints
        as a table; with both, a `QueryValues` with the slices as its first keys.

    Raises:
        ValueError: A shape, dtype, metric or option is not one of those above; a label
            is NaN or +infinity; a weight is NaN, infinite or negative; or a gain or
            discount function returns invalid values.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("evaluate")
    request = read_request(
        metrics,
        options,
        inputs=inputs,
        duplicates=duplicates,
        lower_is_better=lower_is_better,
        by=by,
        per_query=per_query,
        num_queries=num_queries,
        separator=separator,
    )
    data = ListData.of_arrays(request, y_true, y_pred, mask, sample_weight)
    return evaluate_lists(data)


def evaluate_lists(data: ListData) -> dict[str, Any] | SlicedValues:
    """`evaluate` for a request: computes and shapes the result."""
    computed, slices = compute_lists(data)
    found = computed.by_query(data.num_queries)
    return data.request.result(computed, *found, slices)


def compute_lists(data: ListData) -> tuple[Computed, Slices | None]:
    """The metrics of all lists, and the slices of these."""
    request, computed = data.request, None
    slices = request.slices_of_queries(None)
    for named, lists, queries in data.parts():
        computed = computed or Computed(named, slices)
        computed.add(named, lists, queries)
    if computed is None:
        raise ValueError("A dataset must have at least one batch. Received: none.")
    if slices is not None:  # now that the number of queries is known
        slices = request.slices_of_queries(data.num_queries)
    return computed, slices


class ListData:
    """Labels and scores, or ids, of lists in one batch or in several.

    Batches may have different widths, and their number of queries need not be known.
    """

    def __init__(
        self,
        request: Request,
        batches: Iterable[Batch],
        lengths: np.ndarray | None = None,
        *,
        is_whole: bool = False,
    ) -> None:
        """`is_whole` is whether there is one batch of all arguments as passed.

        With the `lengths` of its lists, it is read in parts of similar length.
        """
        self.request, self.num_queries = request, 0  # those of the parts so far
        self._batches, self._lengths, self._is_whole = batches, lengths, is_whole
        self.id_numbers = IdNumbers()

    @classmethod
    def of_arrays(
        cls, request: Request, y_true: Any, y_pred: Any, mask: Any, sample_weight: Any
    ) -> Self:
        """Arrays with a row for each query, in the order of one index."""
        inputs = request.input_format.inputs
        given = {"y_true": y_true, "y_pred": y_pred, "mask": mask}
        given |= {"sample_weight": sample_weight, "by": request.by}
        given = aligned_lists(inputs, given)
        by = given.pop("by")
        if by is not None:
            request = dataclasses.replace(request, by=by)
        whole = Batch(**given)
        lengths = lengths_if_unequal(whole.y_true, whole.y_pred, inputs)
        return cls(request, [whole], lengths, is_whole=lengths is None)

    def parts(self) -> Iterator[Part]:
        """The metrics, as many lists as fit in memory at a time, and their queries.

        The queries are their numbers. Warns of mistakes in the lists.
        """
        facts = Facts()
        for place, batch in enumerate(self._in_parts()):
            request, lists, y_true = self._read(batch)
            arrays = lists.arrays
            is_numpy = xp.library_of(*arrays.values()) == "numpy"
            on_host = lists if is_numpy else lists.on_host()
            on_host.require_valid_values()
            if request.reads_items:
                request = request.for_items_of(on_host)
            if place == 0:
                self._warn_of_first(on_host, y_true)
            facts += on_host.facts(y_true, batch.mask, request.label_rules)
            if self._is_whole:
                self._report(facts, "pass mask=labels >= 0")
            number, queries = int(lists.num_queries), batch.queries
            if queries is None:
                queries = self.num_queries + np.arange(number)
            self.num_queries += number
            most = ELEMENTS_IN_CACHE if is_numpy else ELEMENTS_AT_A_TIME
            step = max(1, most // max(1, lists.elements_per_query))
            if number <= step:
                yield request.named, lists, queries
                continue
            for start in range(0, number, step):
                rows = slice(start, start + step)
                of_rows = {name: each[rows] for name, each in arrays.items()}
                yield request.named, lists.with_arrays(of_rows), queries[rows]
        if not self._is_whole:
            self._report(facts, 'pass {"labels": labels, "mask": labels >= 0}')

    def list_of(self, query: int) -> OneList:
        """The list of the query of this number, in one batch of all."""
        (batch,), row = self._batches, query
        if self._lengths is not None:
            check_query("explain", query, len(self._lengths))
            batch, row = batch_of(batch, np.array([query])), 0
        _, lists, _ = self._read(batch)
        lists = lists.on_host()
        lists.require_valid_values()
        lists = with_labels_for(self.request.measures, lists)
        check_query("explain", row, int(lists.num_queries))
        return list_of_query(lists, row, query, self.id_numbers.ids())

    def _in_parts(self) -> Iterable[Batch]:
        """The batches, or parts of one whose lists have similar lengths."""
        if self._lengths is None:
            return self._batches
        (whole,) = self._batches
        by_length = np.argsort(self._lengths, kind="stable")
        parts = parts_of(by_length, self._lengths, ELEMENTS_AT_A_TIME)
        return (batch_of(whole, part) for part in parts)

    def _read(self, batch: Batch) -> tuple[Request, Lists, Any]:
        """The request with data about the items by position, and the checked lists.

        Also `y_true`, with numbers for ids.
        """
        request, y_true, y_pred = self.request, batch.y_true, batch.y_pred
        if request.reads_items:
            request, y_true, y_pred = with_items_by_position(request, y_true, y_pred)
        if request.input_format.inputs == "ids":
            y_true, y_pred = as_integer_ids(y_true, y_pred, self.id_numbers)
        lists = request.read(y_true, y_pred, batch.sample_weight, batch.mask)
        return request, lists, y_true

    def _warn_of_first(self, lists: Lists, y_true: Any) -> None:
        """Warns of mistakes that the first batch shows."""
        reads_judgments = self.request.reads_judgments
        lists.warn_of_mistakes(y_true, reads_judgments, self._is_whole)

    def _report(self, facts: Facts, remedy: str) -> None:
        """Raises ValueError for signed labels and warns of other mistakes."""
        refuse_signed_labels(facts, remedy)
        warn_of(facts, Asked(self.request.label_rules))
