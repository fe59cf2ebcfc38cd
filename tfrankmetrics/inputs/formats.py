"""The input formats: what `inputs="labels"`, `"ids"` and `"catalogue"` mean.

Each format has a module that checks what users pass and makes lists of it. All lists
follow one protocol, so that whatever comes after does not depend on the format.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol

import tensorflow as tf

from tfrankmetrics.inputs.catalogue import read_catalogue
from tfrankmetrics.inputs.ids import as_integer_ids, read_ids
from tfrankmetrics.inputs.labels import read_labels
from tfrankmetrics.options import Duplicates, Inputs
from tfrankmetrics.ranking.ranked_lists import RankedLists
from tfrankmetrics.ranking.ties import TieBreaking
from tfrankmetrics.rules import rule_of, shortened


class Lists(Protocol):
    """Checked lists of any input format: a frozen dataclass of tensors.

    The first axis of every tensor is the query, so that a slice of all tensors is a
    slice of the queries.
    """

    @property
    def query_weights(self) -> tf.Tensor | None:
        """The weights of the queries, `[B]` float64."""
        ...

    @property
    def has_subtopics(self) -> bool:
        """Whether labels are `[B, N, T]`."""
        ...

    @property
    def num_queries(self) -> tf.Tensor:
        """B, int64."""
        ...

    @property
    def elements_per_query(self) -> int:
        """Roughly how many numbers one query takes in memory."""
        ...

    def has_valid_values(self) -> tf.Tensor:
        """Whether the labels or ids of each query are valid, bool `[B]`."""
        ...

    def require_valid_values(self) -> None:
        """Raises ValueError for values that would make a result NaN."""
        ...

    def rank(
        self,
        deepest: int | None,
        tie_breaking: TieBreaking,
        first_query: tf.Tensor | int,
    ) -> RankedLists:
        """Ranks each list, down to the deepest cutoff that will be read.

        Args:
            deepest: The deepest cutoff; None is the whole list.
            tie_breaking: How equal scores are ordered.
            first_query: Number of queries ranked before these. With ties="random" it
                makes the result independent of the batch size.
        """
        ...


def tensors_of(lists: Lists) -> dict[str, tf.Tensor]:
    """The tensors of some lists, by the name of their field."""
    return {name: value for name, value in vars(lists).items() if tf.is_tensor(value)}


def with_tensors(lists: Any, tensors: Mapping[str, tf.Tensor]) -> Lists:
    """The same lists with other tensors in these fields."""
    return dataclasses.replace(lists, **tensors)


@dataclasses.dataclass(frozen=True)
class InputFormat:
    """What a user passes, and how repeated ids count."""

    inputs: Inputs
    duplicates: Duplicates

    def __str__(self) -> str:
        """The two as they are passed."""
        shown = f"inputs={self.inputs!r}"
        is_default = self.duplicates == "first"
        return shown if is_default else f"{shown}, duplicates={self.duplicates!r}"

    def read(
        self,
        y_true: Any,
        y_pred: Any,
        sample_weight: Any,
        mask: Any = None,
        *,
        ids_may_be_strings: bool = False,
    ) -> Lists:
        """Checks what was passed and makes lists of it."""
        if mask is not None and self.inputs != "labels":
            raise ValueError(
                "`mask` is for inputs='labels'; among ids, -1 is padding. Received: a "
                f"mask with inputs={self.inputs!r}."
            )
        if self.inputs == "ids":
            if ids_may_be_strings:
                y_true, y_pred = as_integer_ids(y_true, y_pred)
            count_repeats = self.duplicates == "all"
            return read_ids(y_true, y_pred, sample_weight, count_repeats=count_repeats)
        if self.inputs == "catalogue":
            return read_catalogue(y_true, y_pred, sample_weight)
        return read_labels(y_true, y_pred, sample_weight, mask)


def input_format(
    inputs: Inputs | None = None, duplicates: Duplicates | None = None
) -> InputFormat:
    """Checks the two options; None is the default, which is labels.

    Raises:
        ValueError: An option is not one of its choices, or `duplicates` is given
            without ids.
    """
    inputs = "labels" if inputs is None else inputs
    for name, value, annotation in (
        ("inputs", inputs, Inputs),
        ("duplicates", duplicates, Duplicates | None),
    ):
        rule = rule_of(annotation)
        if not rule.holds(value):
            raise ValueError(
                f"`{name}` must be {rule.words}. Received: {name}={shortened(value)}."
            )
    if duplicates is not None and inputs != "ids":
        raise ValueError(
            "`duplicates` is for inputs='ids', where it says how repeated "
            f"recommendations count. Received: duplicates={duplicates!r}, "
            f"inputs={inputs!r}."
        )
    return InputFormat(inputs, duplicates or "first")
