"""`evaluate`: ranking metrics of arrays in one call, as means or per query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrankmetrics.columns.slices import (
    by_columns,
    columns_by_query,
    slices_of,
)
from tfrankmetrics.engine.calls import call_compiled, require_eager
from tfrankmetrics.engine.measure import Measure
from tfrankmetrics.engine.names import named_measures
from tfrankmetrics.engine.values import ELEMENTS_AT_A_TIME, values_and_weights
from tfrankmetrics.inputs.formats import (
    InputFormat,
    Lists,
    input_format,
    tensors_of,
    with_tensors,
)
from tfrankmetrics.inputs.mistakes import (
    DistinctLabels,
    refuse_columns,
    refuse_signed_labels,
    warn_if_all_judged,
    warn_if_no_ids,
    warn_if_swapped,
)
from tfrankmetrics.keras.state import StatefulMetric
from tfrankmetrics.options import (
    Duplicates,
    Inputs,
    Options,
    Separator,
    takes_options,
)
from tfrankmetrics.results.values import (
    SlicedValues,
    require_free_keys,
    summarize,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack


@takes_options
def evaluate(
    y_true: Any,
    y_pred: Any,
    metrics: Sequence[str | StatefulMetric],
    *,
    inputs: Inputs | None = None,
    duplicates: Duplicates | None = None,
    mask: Any = None,
    sample_weight: Any = None,
    by: Any = None,
    per_query: bool = False,
    num_queries: bool = False,
    separator: Separator = "@",
    **options: Unpack[Options],
) -> dict[str, Any] | SlicedValues:
    """Computes ranking metrics of labels and scores, or of ids.

    >>> labels = [[1, 0, 0], [0, 2]]  # two queries with three and two items
    >>> scores = [[0.9, 0.3, 0.1], [0.8, 0.4]]
    >>> evaluate(labels, scores, ["mrr", "precision@1"])
    {'mrr': 0.75, 'precision@1': 0.5}
    >>> evaluate(labels, scores, ["mrr"], per_query=True)
    {'mrr': array([1. , 0.5])}

    Args:
        y_true: Labels, graded or binary: `[B, N]`, `[N]` for one list, or lists of
            lists of unequal length; NumPy arrays, Python lists, dense or ragged
            tensors. For metrics of subtopics `[B, N, T]`. A label below 0 marks
            padding, unless there is a mask. A dict of `labels` and `mask` also works.
        y_pred: Scores of the same form; the highest ranks first. Dense scores may also
            be `[B, N, 1]`. Any float or integer dtype, compared without rounding. NaN
            ranks below every number; -inf means that an item was not retrieved.
        metrics: Names (`"ndcg@10"`, `"mrr"`, or those of trec_eval and ir_measures such
            as `"P@5"`) and metric objects with their own options
            (`NDCG(k=10, gain="linear")`).
        inputs: What `y_true` and `y_pred` are: "labels" and scores (the default);
            relevant "ids" and recommended ids, best first; or relevant ids and the
            scores of a whole "catalogue". `NDCG.update_state` describes the three
            formats. Here ids may also be strings, or have another hashable type, in
            nested lists. All must have the same type. Two flat lists are one query.
        duplicates: How a repeated recommendation counts, with inputs="ids" only:
            "first" (once, at its first position; the default) or "all" (each time).
        mask: Booleans of the labels' shape, True for the items that count. The mask
            alone decides: a negative label is then not padding, but not relevant.
        sample_weight: A scalar, `[B]` or `[B, 1]` (one weight per query), or of the
            labels' shape (one per item).
        by: A slice for each query, such as its language, `[B]`. Returns the metrics of
            each slice, too. Or a dict of columns, each `[B]`, whose combinations are
            the slices.
        per_query: If True, returns the value of each query instead of the mean. (With
            average="micro", the default of ARP and OPA, the mean weighs the queries.)
        num_queries: If True, the result also has the number of queries that count in
            any of the metrics, with the key "num_queries".
        separator: What is put between the name and the cutoff of a metric given by
            name: "@" (the default) or "_", as in "ndcg_10", for trackers that refuse
            "@". A metric object keeps its own name.
        **options: Options for the metrics given by name, such as `gain="linear"` or
            `convention="trec_eval"`. See `tfrankmetrics.Options`.

    Returns:
        A dict from each metric's name to its weighted mean over the queries, a float
        (NaN if no query counts). With `per_query`, to an array `[B]` (`[B * T]` for
        sequences), which is NaN for queries that do not count: lists of padding, empty
        lists with `empty="skip"`, and queries of weight 0. This dict is a
        `QueryValues`, which `compare` takes. With `by`, a `SlicedValues`, which prints
        as a table; with both, a `QueryValues` with the slices as its first keys.

    Raises:
        ValueError: A shape, dtype, metric or option is not one of those above; a label
            is NaN or +infinity; a weight is NaN, infinite or negative; or a gain or
            discount function returns invalid values.
        RuntimeError: The call is inside a `tf.function`.
    """
    require_eager("evaluate")
    data = input_format(inputs, duplicates)
    named = named_measures(metrics, options, data, separator)
    if data.inputs == "labels":
        refuse_columns(y_true, y_pred)
    lists = data.read(y_true, y_pred, sample_weight, mask, ids_may_be_strings=True)
    lists.require_valid_values()
    if data.inputs == "labels" and mask is None and not isinstance(y_true, Mapping):
        refuse_signed_labels(y_true, "pass mask=labels >= 0")
        warn_if_swapped(y_true, y_pred)
    _warn_of_mistakes(data, named.values(), lists, y_true)
    slice_columns = {} if by is None else by_columns(by)
    require_free_keys(named, slice_columns, per_query, num_queries)
    slices = None
    if by is not None:
        slices = slices_of(columns_by_query(slice_columns, int(lists.num_queries)))

    values, weights = _values_and_weights(tuple(named.values()), lists)
    return summarize(named, values, weights, per_query, slices, num_queries=num_queries)


def evaluate_batches(
    batches: Iterable[tuple[Any, Any, Any]],
    metrics: Sequence[str | StatefulMetric],
    *,
    inputs: Inputs | None,
    duplicates: Duplicates | None,
    by: Any,
    num_queries: bool,
    separator: Separator,
    **options: Any,
) -> dict[str, Any] | SlicedValues:
    """`evaluate` for lists that come in batches, which may have different widths.

    A batch is the `y_true`, the `y_pred` and the `sample_weight` of some lists. Only
    their values are kept.
    """
    data = input_format(inputs, duplicates)
    named = named_measures(metrics, options, data, separator)
    slice_columns = {} if by is None else by_columns(by)
    require_free_keys(named, slice_columns, num_queries=num_queries)
    measures, parts, number, labels = tuple(named.values()), [], 0, DistinctLabels()
    for y_true, y_pred, sample_weight in batches:
        lists = data.read(y_true, y_pred, sample_weight, ids_may_be_strings=True)
        lists.require_valid_values()
        if data.inputs == "labels" and not isinstance(y_true, Mapping):
            labels.add(y_true)
        if not parts:
            _warn_of_mistakes(data, measures, lists, y_true)
        parts.append(_values_and_weights(measures, lists, number))
        number += int(lists.num_queries)
    if not parts:
        raise ValueError("A dataset must have at least one batch. Received: none.")
    refuse_signed_labels(
        labels.distinct, 'pass {"labels": labels, "mask": labels >= 0}'
    )
    values, weights = (
        np.concatenate(each, axis=1) for each in zip(*parts, strict=True)
    )
    slices = None if by is None else slices_of(columns_by_query(slice_columns, number))
    return summarize(named, values, weights, False, slices, num_queries=num_queries)


def _warn_of_mistakes(
    data: InputFormat, measures: Iterable[Measure], lists: Lists, y_true: Any
) -> None:
    if data.inputs == "labels":
        reads_judgments = any(m.declaration.unjudged == "keep" for m in measures)
        warn_if_all_judged(reads_judgments, getattr(lists, "judged", None))
    if data.inputs == "ids":
        warn_if_no_ids(y_true)


def _values_and_weights(
    measures: tuple[Measure, ...], lists: Lists, first_query: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Each query's value and weight, of as many lists as fit in memory at a time."""
    step, parts = max(1, ELEMENTS_AT_A_TIME // max(1, lists.elements_per_query)), []
    for start in range(0, max(1, int(lists.num_queries)), step):
        rows = slice(start, start + step)
        part = {name: tensor[rows] for name, tensor in tensors_of(lists).items()}
        part = with_tensors(lists, part)
        parts.append(
            call_compiled(values_and_weights, measures, part, first_query + start)
        )
    values, weights = (
        np.concatenate(each, axis=1) for each in zip(*parts, strict=True)
    )
    return values, weights
