"""Mistakes that only the data themselves show: their order, their form or their ids.

No facts that add up could show them (see `mistakes.py`). Functions that hold all data
check them, and a Keras metric only in eager code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrankmetrics.columns.read_column import (
    as_list,
    column_names,
    from_pytorch,
    is_frame,
)
from tfrankmetrics.inputs.mistakes import MANY, MOST_VALUES, are_grades, warn


def refuse_columns(y_true: Any, y_pred: Any) -> None:
    """Raises ValueError for columns of a frame, whose rows are of many queries."""
    for name, data in (("y_true", y_true), ("y_pred", y_pred)):
        library = type(data).__module__.partition(".")[0]
        is_of_frame = library in ("pandas", "polars", "pyarrow")
        if not is_of_frame or not hasattr(data, "to_numpy"):
            continue
        if is_frame(data):
            is_column = len(column_names(data)) == 1 and len(data) > 1
        else:
            is_column = np.ndim(data) == 1 and (
                len(data) == 0 or np.ndim(next(iter(data))) == 0
            )
        if is_column:
            raise ValueError(
                "Each query is a list, and the rows of a frame usually belong to many "
                f"queries. Received: {name} is a column of {len(data)} rows. Call "
                "evaluate_rows or explain_rows with the ids of the queries. If all "
                "rows belong to one query, pass column.to_numpy()."
            )


def warn_if_queries_are_labels(distinct_ids: Any, labels: np.ndarray) -> None:
    """Warns if the query ids look like labels and the labels look like ids.

    The rows of a query may be adjacent, which grades of a few queries are not. Or they
    are several for each label, and few of all rows, as are those of no grade.
    """
    ids = _sample(distinct_ids)
    if ids.size < 2 or not are_grades(ids).all():
        return
    grades, numbers = np.unique(labels, return_counts=True)
    are_ids = (grades % 1 == 0).all() and not are_grades(grades).all()
    are_adjacent = np.count_nonzero(np.diff(labels)) + 1 == grades.size
    are_several = labels.size >= 2 * grades.size * (1 if are_adjacent else ids.size)
    are_few = are_adjacent or numbers.max() <= labels.size / 10
    if are_ids and are_several and are_few and grades.size > 2 * ids.size:
        warn(
            "Query ids identify queries, and labels state how relevant an item is. "
            "Received: query ids that are only whole numbers from 0 to "
            f"{ids.max():.0f}, and {grades.size} different labels. They are probably "
            "swapped."
        )


def warn_if_ids_are_fractions(ids: Any) -> None:
    """Warns if query ids are fractions, which scores are."""
    numbers = _sample(ids)
    if numbers.size > 1 and (numbers % 1 != 0).mean() > 0.5:
        warn(
            "Query ids identify queries. Received: query ids that are fractions, such "
            f"as {numbers[numbers % 1 != 0][0]:g}. The order of the columns is "
            "query_ids, labels, scores; they are probably mixed up."
        )


def warn_if_no_ids(relevant: Any) -> None:
    """Warns if relevant ids are probably a 0 or 1 for each item."""
    relevant = as_list(from_pytorch(relevant))
    ids = _sample(relevant)
    try:
        is_long = np.ndim(relevant) == 2 and np.shape(relevant)[1] > 2
    except ValueError:  # lists of unequal length
        return
    if is_long and ids.size > 0 and ((ids == 0) | (ids == 1)).all():
        warn(
            "With inputs='ids', `y_true` must hold the ids of the relevant items. "
            "Received: zeros and ones, in lists of more than two. If they indicate "
            "which items are relevant, pass them as labels, with scores and without "
            "`inputs`."
        )


def warn_if_no_id_matches(relevant: np.ndarray, recommended: np.ndarray) -> None:
    """Warns if no recommended id, of any query, is a relevant one of any query."""
    relevant, recommended = (ids[ids >= 0] for ids in (relevant, recommended))
    if min(relevant.size, recommended.size) < MANY:
        return
    some = recommended[:MOST_VALUES]  # which are enough, unless none of them matches
    if not np.isin(some, relevant).any() and not np.isin(recommended, relevant).any():
        warn(
            "Relevant and recommended ids must be those of the same items. Received: "
            f"{recommended.size:,} recommended ids, none of which is among the "
            f"{relevant.size:,} relevant ids of any query. Check that both are "
            "numbered alike: only a model that has not learned anything yet recommends "
            "such items."
        )


def flat_numbers(data: Any) -> np.ndarray | None:
    """Data as an array, rows of unequal length one after the other.

    None if they are not numbers.
    """
    data = from_pytorch(getattr(data, "flat_values", data))  # of a ragged tensor
    try:
        numbers = np.asarray(data)
    except ValueError:  # lists of unequal length
        numbers = np.empty(0, object)
    if numbers.dtype == object:
        try:
            if any(isinstance(row, (str, bytes)) for row in data):
                return None
            numbers = np.concatenate([np.ravel(row) for row in data])
        except (TypeError, ValueError):
            return None
    return numbers if numbers.dtype.kind in "iuf" else None


def _sample(data: Any) -> np.ndarray:
    """Some of the finite values; none if these are not numbers."""
    numbers = flat_numbers(data)
    if numbers is None:
        return np.empty(0)
    numbers = numbers.ravel()[:MOST_VALUES]
    return numbers[np.isfinite(numbers)]
