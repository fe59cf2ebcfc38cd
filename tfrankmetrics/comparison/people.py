"""The values of people's grades, which correct those of a judge, for `compare`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrankmetrics.comparison.models import (
    Model,
    read_models,
    samples_of,
    with_common_queries,
    with_metrics_of,
)
from tfrankmetrics.comparison.samples import LEAST_PEOPLE, Corrected, Sample
from tfrankmetrics.rules import listed, shortened


def corrected_by_people(
    people: Any, by: Any, models: Sequence[Model], samples: list[Sample], unpaired: str
) -> tuple[list[Corrected], int]:
    """The samples of a judge, corrected by people; how many queries were dropped."""
    graded, lost, num_unpaired = _read_people(people, by, models, unpaired)
    by_people, num_dropped = samples_of(graded, unpaired)
    has_value = samples[0].is_included
    is_lost = (by_people[0].is_included & ~has_value).any(axis=1)
    ids = models[0].ids or range(models[0].num_queries)
    lost += [ids[row] for row in np.flatnonzero(is_lost)]
    if lost and unpaired == "error":
        raise ValueError(
            "Queries of `people` must have a value in `values`. Received: "
            f"{len(lost)} without one, such as {', '.join(map(shortened, lost[:3]))}. "
            "Pass unpaired='drop' to leave them out."
        )
    by_people = [each.where(has_value) for each in by_people]
    few = by_people[0].numbers < LEAST_PEOPLE
    if few.any():
        metric = int(np.argmax(few))
        raise ValueError(
            f"`people` must have grades of at least {LEAST_PEOPLE} queries. Received: "
            f"{by_people[0].numbers[metric]} queries with a value of "
            f"{models[0].metrics[metric]!r}."
        )
    found = [Corrected(*each) for each in zip(by_people, samples, strict=True)]
    return found, num_unpaired + num_dropped + len(lost)


def _read_people(
    people: Any, by: Any, models: Sequence[Model], unpaired: str
) -> tuple[list[Model], list[Any], int]:
    """The values by people, at the places of the same queries of the models.

    Also returns the queries that the models lack, and how many only some models have.
    """
    first, names = models[0], [each.name for each in models]
    graded = {each.name: each for each in read_models(people, by, "people")}
    if {*graded} != {*names}:
        raise ValueError(
            "`people` must have the models of `values`. Received: "
            f"{listed(graded)}, and {listed(names)} in `values`."
        )
    found = [
        with_metrics_of(first, graded[name]._replace(name=f"{name} by people"))
        for name in names
    ]
    # A range that the values by people leave is unknown for the estimates, too.
    checked = next(iter(graded.values()))
    of_people = checked.ranges[:, [*map(checked.metrics.index, first.metrics)]]
    np.copyto(first.ranges, of_people, where=np.isinf(of_people))
    found, _, num_unpaired = with_common_queries(found, unpaired)
    ids, num_queries = found[0].ids, found[0].num_queries
    if ids is None or first.ids is None:
        if num_queries != first.num_queries:
            raise ValueError(
                "Without query ids, `people` must have a value for each query, NaN "
                f"where people did not grade. Received: {num_queries} for "
                f"{first.num_queries} queries."
            )
        return found, [], num_unpaired
    row_of = {query: row for row, query in enumerate(first.ids)}
    known = [number for number, query in enumerate(ids) if query in row_of]
    rows = [row_of[ids[number]] for number in known]
    found = [each.take(known, axis=0).placed(rows, first.num_queries) for each in found]
    lacking = [query for query in ids if query not in row_of]
    return [each._replace(ids=first.ids) for each in found], lacking, num_unpaired
