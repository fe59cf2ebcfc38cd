"""A request: the checked arguments of a call, and the form of its result.

To add an argument of several functions, spell it, with its default, in the signature of
each function, and pass it to `read_request` or to the function that needs it. Describe
it in full in the docstring of `evaluate`, and in one line in those of the others. Add
its name to `_ARGUMENTS` in `metrics/fields.py`, since no metric may have an option of
this name.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tfrankmetrics.arrays import Library
from tfrankmetrics.columns.numbered_ids import Ids
from tfrankmetrics.columns.slices import (
    Slices,
    columns_by_query,
    columns_of_slices,
    slices_of,
)
from tfrankmetrics.compute.computed import Computed
from tfrankmetrics.compute.exposures import require_known_items, with_num_items
from tfrankmetrics.compute.metric_checks import check_declaration
from tfrankmetrics.compute.sums import count_queries, means_of
from tfrankmetrics.compute.values import require_finite
from tfrankmetrics.inputs.formats import InputFormat, input_format
from tfrankmetrics.inputs.lists import Lists
from tfrankmetrics.inputs.mistakes import LabelRules
from tfrankmetrics.inputs.weights import refuse_negative_weights
from tfrankmetrics.metrics.measure import (
    Measure,
    label_rules,
    require_values_by_query,
)
from tfrankmetrics.metrics.names import named_measures
from tfrankmetrics.options import Duplicates, Separator
from tfrankmetrics.results.metric_values import (
    NUM_QUERIES,
    QueryValues,
    RunCounts,
    SlicedValues,
    Values,
    sliced_values,
)
from tfrankmetrics.rules import check_option, listed


@dataclasses.dataclass(frozen=True)
class Request:
    """Metrics of data in some format, and the form of the result.

    Every function that takes metrics makes one and ends with its `result`.
    """

    named: Mapping[str, Measure]
    input_format: InputFormat
    by: Any = None
    per_query: bool = False
    num_queries: bool = False
    lower_is_better: bool = False  # whether the lowest score ranks first

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The metrics with their cutoffs and options."""
        return (*self.named.values(),)

    @functools.cached_property
    def reads_judgments(self) -> bool:
        """Whether a metric distinguishes judged items from others."""
        return any(each.declaration.unjudged == "keep" for each in self.measures)

    @functools.cached_property
    def reads_items(self) -> bool:
        """Whether a metric reads which items are recommended."""
        return any(each.declaration.reads_items for each in self.measures)

    def column_of_subtopics(self, name: str | None) -> str | None:
        """The column of this name or, if a metric reads subtopics, "subtopic"."""
        if name is None and self.label_rules.read_subtopics:
            return "subtopic"
        return name

    @functools.cached_property
    def has_data_by_id(self) -> bool:
        """Whether data about items are by the ids of the items."""
        return any(each.ids_of_items for each in self.measures)

    @functools.cached_property
    def label_rules(self) -> LabelRules:
        """How the metrics read labels."""
        return label_rules(self.measures)

    def with_measures(self, named: Mapping[str, Measure]) -> Request:
        """The same request with other metrics under the same names."""
        return dataclasses.replace(self, named=named)

    def read(self, y_true: Any, y_pred: Any, weights: Any, mask: Any) -> Any:
        """The checked lists of arrays, with scores of which the highest ranks first."""
        refuse_negative_weights(weights)
        return self.read_unchecked(y_true, y_pred, weights, mask)

    def read_unchecked(
        self,
        y_true: Any,
        y_pred: Any,
        weights: Any,
        mask: Any,
        library: Library | None = None,
    ) -> Any:
        """As `read`, in which a negative weight is NaN, and no number is looked at.

        `library` computes with the lists, as in `InputFormat.read`.
        """
        lists: Any = self.input_format.read(y_true, y_pred, weights, mask, library)
        if not self.lower_is_better:
            return lists
        if "scores" not in lists.arrays:
            raise ValueError(
                "lower_is_better=True requires scores. Received: "
                f"inputs={self.input_format.inputs!r}, with ranked items. Omit it."
            )
        return lists.with_arrays({"scores": -lists.scores})

    def for_items_of(self, lists: Lists) -> Request:
        """The same request, with the number of items in the lists.

        Raises:
            ValueError: A metric lacks data about the items of the lists.
        """
        named = with_num_items(self.named, lists.num_items)
        require_known_items(named.values(), lists)
        return self.with_measures(named)

    def require_free_keys(self, columns: Iterable[str], *, has_ids: bool) -> None:
        """Raises ValueError if a key of the result would be ambiguous or undefined."""
        if self.num_queries and self.per_query:
            raise ValueError(
                "`num_queries` is for means. Received: num_queries=True with "
                "`per_query`, whose values are NaN for excluded queries."
            )
        keys = [*columns, *["query"] * (self.per_query and has_ids)]
        keys += [NUM_QUERIES] * self.num_queries
        if keys.count("query") > 1:
            raise ValueError(
                "With `per_query`, the key 'query' contains the query ids. Received: "
                "slices of this name. Rename their column."
            )
        if taken := self.named.keys() & {*keys}:
            raise ValueError(
                "A metric must not have the key of a column or of a number of queries. "
                f"Received: {listed(sorted(taken))}. Choose a different name for the "
                "metric."
            )

    def slice_columns(self, table: Any = None, *, has_ids: bool = False) -> dict:
        """The columns that `by` holds or, if there is a table, names."""
        columns = {} if self.by is None else columns_of_slices(self.by, table)
        self.require_free_keys(columns, has_ids=has_ids)
        return columns

    def slices_of_queries(self, number: int | None) -> Slices | None:
        """The slices of queries by their positions; their number may not be known."""
        if self.by is None and not self.num_queries:  # metrics are the only keys
            return None
        columns = self.slice_columns()
        return slices_of(columns_by_query(columns, number)) if columns else None

    def slices_of(self, columns: Mapping[str, Ids]) -> Slices | None:
        """The slices of columns with a value for each query; None without `by`."""
        return None if self.by is None else slices_of(columns)

    def result(
        self,
        computed: Computed,
        values: np.ndarray,
        weights: np.ndarray,
        slices: Slices | None = None,
        ids: np.ndarray | None = None,
        counts: RunCounts | None = None,
    ) -> dict[str, Any] | SlicedValues | QueryValues:
        """The result in the form that was asked for, from `[metrics, B]`.

        `computed` has the metrics with one value over all queries.
        """
        require_finite(self.named, values, weights, ids)
        if not self.per_query:
            if slices is not None:
                given = self.named, values, weights, slices, computed, counts
                return sliced_values(*given)
            means = means_of(self.named, values, weights) | computed.over_all()
            number = {NUM_QUERIES: count_queries(weights)} if self.num_queries else {}
            return Values(means | number)
        columns = {} if ids is None else {"query": ids}
        columns |= slices.columns() if slices else {}
        of_queries = np.where(weights != 0, values, np.nan)
        is_empty = weights < 0  # by `Measure.marks_empty`
        declarations = {name: each.declaration for name, each in self.named.items()}
        return QueryValues(
            {**columns, **dict(zip(self.named, of_queries, strict=True))},
            weights=dict(zip(self.named, np.abs(weights), strict=True)),
            lower_is_better=frozenset(
                name for name, each in declarations.items() if each.lower_is_better
            ),
            by=slices.names if slices else (),
            counts=counts,
            ranges={name: each.range for name, each in declarations.items()},
            without_relevant=dict(zip(self.named, is_empty, strict=True)),
        )


def read_request(
    metrics: Any,
    options: Mapping[str, Any],
    *,
    inputs: str | None = "labels",
    duplicates: Duplicates | None = None,
    by: Any = None,
    per_query: bool = False,
    num_queries: bool = False,
    separator: Separator = "@",
    lower_is_better: bool = False,
) -> Request:
    """Checks metrics, options and the form of the result, which all functions share.

    `evaluate` describes the arguments.
    """
    form = input_format(inputs, duplicates)
    check_option("metrics", "per_query", per_query, bool)
    check_option("metrics", "num_queries", num_queries, bool)
    check_option("metrics", "lower_is_better", lower_is_better, bool)
    named = named_measures(metrics, options, form, separator)
    for measure in named.values():
        if measure.declaration.is_custom:
            check_declaration(measure.declaration)
    if per_query:
        require_values_by_query(named)
        named = {
            name: dataclasses.replace(each, marks_empty=True)
            for name, each in named.items()
        }
    return Request(named, form, by, per_query, num_queries, lower_is_better)
