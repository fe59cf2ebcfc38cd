"""The ways in: what `inputs="labels"`, `"ids"` and `"catalogue"` read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tfrankmetrics.catalogue import CatalogueScores, catalogue_scores, require_items
from tfrankmetrics.ids import IdLists, id_lists, require_ids
from tfrankmetrics.inputs import padded_lists, require_numbers, require_weights
from tfrankmetrics.ranking import PaddedLists

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


def check_ways_in(metrics: Iterable[Any], way_in: WayIn) -> None:
    """Raises an error if a metric object was made for other data than comes in."""
    for metric in metrics:
        own = getattr(metric, "way_in", way_in)
        if own not in (way_in, make_way_in(None, None)):
            raise ValueError(
                "Metric objects in a list take the data of all: leave `inputs` and "
                f"`duplicates` away from them. Received: {own} for {metric.name!r}, "
                f"in a list for {way_in}."
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
