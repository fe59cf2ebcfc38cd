"""The ways in: what `inputs="labels"`, `"ids"` and `"catalogue"` read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tfrankmetrics.catalogue import CatalogueScores, catalogue_scores, require_items
from tfrankmetrics.ids import IdLists, id_lists, require_ids
from tfrankmetrics.inputs import padded_lists, require_numbers, require_weights
from tfrankmetrics.ranking import PaddedLists
from tfrankmetrics.registry import Measure, named_measures

INPUTS = ("labels", "ids", "catalogue")
DUPLICATES = ("first", "all")

Lists = PaddedLists | IdLists | CatalogueScores


class WayIn(NamedTuple):
    """What a user passes, and how repeated ids count."""

    inputs: str
    duplicates: str

    def read(
        self, y_true: Any, y_pred: Any, sample_weight: Any, mask: Any = None
    ) -> Lists:
        """Checks what was passed and brings it into one form."""
        if mask is not None and self.inputs != "labels":
            raise ValueError(
                "`mask` is for inputs='labels'; among ids -1 is padding. Received: a "
                f"mask with inputs={self.inputs!r}."
            )
        if self.inputs == "ids":
            return id_lists(
                y_true,
                y_pred,
                sample_weight,
                count_repeats=self.duplicates == "all",
            )
        if self.inputs == "catalogue":
            return catalogue_scores(y_true, y_pred, sample_weight)
        return padded_lists(y_true, y_pred, sample_weight, mask)


def make_way_in(inputs: str | None, duplicates: str | None) -> WayIn:
    """Checks the two options; None is the default."""
    inputs = "labels" if inputs is None else inputs
    for name, value, choices in (
        ("inputs", inputs, INPUTS),
        ("duplicates", duplicates or "first", DUPLICATES),
    ):
        if not isinstance(value, str) or value not in choices:
            raise ValueError(
                f"`{name}` must be one of {', '.join(map(repr, choices))}. "
                f"Received: {name}={value!r}."
            )
    if duplicates is not None and inputs != "ids":
        raise ValueError(
            "`duplicates` says how repeated recommendations count, with inputs='ids' "
            f"only. Received: duplicates={duplicates!r}, inputs={inputs!r}."
        )
    return WayIn(inputs, duplicates or "first")


def measures_for(
    way_in: WayIn, metrics: Iterable[Any], options: Mapping[str, Any]
) -> dict[str, Measure]:
    """The measures of a list of metrics by name, if all are of what comes in."""
    if isinstance(metrics, Iterator):
        metrics = list(metrics)
    named = named_measures(metrics, options)
    for metric in metrics:
        own = getattr(metric, "way_in", way_in)
        if own not in (way_in, make_way_in(None, None)):
            raise ValueError(
                "Metric objects in a list take the data of all: leave `inputs` and "
                f"`duplicates` away from them. Received: {own} for {metric.name!r}, "
                f"in a list for {way_in}."
            )

    check_meaning(named.values(), way_in)
    return named


def check_meaning(measures: Iterable[Measure], way_in: WayIn) -> None:
    """Raises an error for a measure of what this way in does not tell."""
    for measure in measures:
        inputs = measure.formula.inputs
        if way_in.inputs not in inputs:
            raise ValueError(
                f"`{measure.formula.name}` has a meaning for inputs="
                f"{' and '.join(map(repr, inputs))} only: it is about items that "
                f"inputs={way_in.inputs!r} does not tell of."
            )


def check_labels(measures: Iterable[Measure], lists: Lists) -> None:
    """Raises an error if labels are of subtopics for one measure, and not for another.

    It is of the number of dimensions alone, which every graph knows.
    """
    has_subtopics = isinstance(lists, PaddedLists) and lists.has_subtopics
    for measure in measures:
        if measure.formula.has_subtopics != has_subtopics:
            forms = {False: "[B, N]", True: "[B, N, T], one for each subtopic"}
            raise ValueError(
                f"`{measure.formula.name}` reads labels of shape "
                f"{forms[not has_subtopics]}. Received: labels of shape "
                f"{forms[has_subtopics]}. tf.squeeze takes a dimension of 1 away."
            )


def require_values(lists: Lists) -> None:
    """Raises an error for values that would make a metric's result NaN."""
    check = {
        PaddedLists: require_numbers,
        IdLists: require_ids,
        CatalogueScores: require_items,
    }[type(lists)]
    check(lists)
    if lists.query_weights is not None:
        require_weights(lists.query_weights)
