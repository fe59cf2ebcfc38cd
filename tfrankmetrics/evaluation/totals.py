"""The totals of some queries, which an `Accumulator` keeps.

They are the sums of `compute/sums.py` for each slice, and the facts that show mistakes.
The totals of two sets of queries add up to those of both. They never change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.columns.slices import Slices
from tfrankmetrics.compute.computed import Computed
from tfrankmetrics.compute.exposures import with_num_items
from tfrankmetrics.compute.sums import num_rows, sums_by_slice, with_items_at
from tfrankmetrics.compute.values import require_finite
from tfrankmetrics.inputs.mistakes import Facts
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.rules import shortened


@dataclasses.dataclass(frozen=True)
class Totals:
    """What is known of some queries."""

    # The columns of `by`, `()` without it; None before the first batch.
    by: tuple[str, ...] | None = None
    # Of each slice, `[rows, 2]`. An accelerator holds those that it has computed.
    sums: Mapping[tuple, Array] = dataclasses.field(default_factory=dict)
    items: Sequence[Any] = ()  # the ids whose positions are 0, 1, ..., if they are text
    num_items: int | None = None  # V, if it is known from the scores of a catalog
    facts: Facts = dataclasses.field(default_factory=Facts)
    evidence: Array | None = None  # the facts of what an accelerator has computed

    @classmethod
    def of_computed(
        cls,
        named: Mapping[str, Measure],
        computed: Computed,
        number: int,
        slices: Slices | None,
        items: Sequence[Any],
        facts: Facts,
        num_items: int | None = None,
    ) -> Totals:
        """The totals of a number of queries, of which NumPy holds the values."""
        values, weights = computed.by_query(number)
        require_finite(named, values, weights)
        of_items = [*computed.exposures.values()]
        return cls(
            by=slices.names if slices else (),
            sums=sums_by_slice(values, weights, of_items, slices),
            items=items if of_items else (),
            num_items=num_items,
            facts=facts,
        )

    def plus(self, other: Totals, named: Mapping[str, Measure]) -> Totals:
        """The totals of both sets of queries in these metrics."""
        if self.by is None or other.by is None:
            return self if other.by is None else other
        if self.by != other.by:
            raise ValueError(
                "All batches must have the same columns of slices. Received: by="
                f"{[*other.by]} after by={[*self.by]}."
            )
        if self.num_items != other.num_items:
            raise ValueError(
                "All batches must hold scores of the same catalog. Received: "
                f"{other.num_items} items after {self.num_items}."
            )
        items, added = self.items, other.sums
        if self.items or other.items:
            items, added = self._with_items_of(other, [*named.values()])
        sums = {**self.sums}
        for key, each in added.items():
            sums[key] = _added(sums.get(key), each)
        facts = self.facts + other.facts
        evidence = _added(self.evidence, other.evidence)
        return Totals(self.by, sums, items, self.num_items, facts, evidence)

    def _with_items_of(
        self, other: Totals, measures: Sequence[Measure]
    ) -> tuple[Sequence[Any], Mapping[tuple, Array]]:
        """The items of both totals, and the sums of the other for these items."""
        for each in (self, other):
            of_items = (xp.to_numpy(s)[len(measures) : -1] for s in each.sums.values())
            if not each.items and any(part.any() for part in of_items):
                raise ValueError(
                    "Item ids must be of one type in all batches. Received: integers, "
                    f"and ids such as {shortened((self.items or other.items)[0])}."
                )
        positions = {item: number for number, item in enumerate(self.items)}
        for item in other.items:
            positions.setdefault(item, len(positions))
        sizes = (size for each in measures for size in each.numbers_of_items)
        size = min(sizes, default=len(positions))
        if size < len(positions):
            raise ValueError(
                "The catalog must contain all recommended items. Received: "
                f"num_items={size}, and {len(positions)} different items."
            )
        places = [positions[item] for item in other.items]
        sums = {k: with_items_at(places, measures, s) for k, s in other.sums.items()}
        return [*positions], sums

    def on_host(self) -> Totals:
        """The same totals in arrays of NumPy."""
        sums = {key: xp.to_numpy(each) for key, each in self.sums.items()}
        evidence = self.evidence
        evidence = None if evidence is None else xp.to_numpy(evidence)
        return dataclasses.replace(self, sums=sums, evidence=evidence)

    def state(self) -> dict[str, Any]:
        """The same totals in dicts, lists, numbers and text."""
        totals = self.on_host()
        evidence = totals.evidence
        return {
            "by": None if totals.by is None else [*totals.by],
            "slices": [[*key] for key in totals.sums],
            "sums": [each.tolist() for each in totals.sums.values()],
            "items": [*totals.items],
            "num_items": totals.num_items,
            "facts": dict(totals.facts),
            "evidence": None if evidence is None else evidence.tolist(),
        }

    @classmethod
    def of_state(cls, state: Mapping[str, Any], named: Mapping[str, Measure]) -> Totals:
        """The inverse of `state`, for these metrics."""
        measures = with_num_items(named, state["num_items"]).values()
        rows = num_rows([*measures]) + 1
        sums = [np.array(each, float) for each in state["sums"]]
        if any(each.shape != (rows, 2) for each in sums):
            raise ValueError(
                f"The sums of each slice must have the shape {(rows, 2)}. Received: "
                f"{[each.shape for each in sums]}."
            )
        keys, evidence = map(tuple, state["slices"]), state["evidence"]
        return cls(
            by=None if state["by"] is None else tuple(state["by"]),
            sums=dict(zip(keys, sums, strict=True)),
            items=state["items"],
            num_items=state["num_items"],
            facts=Facts(state["facts"]),
            evidence=None if evidence is None else np.array(evidence),
        )


def sum_of(totals: Iterable[Totals], named: Mapping[str, Measure]) -> Totals:
    """The totals of several sets of queries."""
    total = Totals()
    for each in totals:
        total = total.plus(each, named)
    return total


def _added(mine: Array | None, theirs: Array | None) -> Array | None:
    """The sum of two arrays where they are, or on the host if they are not together."""
    if mine is None or theirs is None:
        return theirs if mine is None else mine
    places = [(type(each), getattr(each, "device", None)) for each in (mine, theirs)]
    if places[0] != places[1]:
        mine, theirs = xp.to_numpy(mine), xp.to_numpy(theirs)
    with xp.computing_in(xp.library_of(mine)):
        return mine + theirs
