"""Relevant ids and their grades, which inputs="ids" and inputs="catalog" share."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array, Library
from tfrankmetrics.columns.read_column import as_list, first_index
from tfrankmetrics.inputs.dense import (
    Dense,
    as_float64,
    dense,
    first_value,
    require_keys,
)
from tfrankmetrics.rules import shortened

PADDING = -1
# Up to this number of ids, the comparison of all pairs is faster than a sort.
MOST_COMPARED = 64


def from_dict(y_true: Any, may_have: set[str]) -> tuple[Any, Any, Any]:
    """The `ids`, `relevance` and `exclude` of `y_true`, which may be the ids alone."""
    y_true = with_relevance(y_true)
    if not isinstance(y_true, Mapping):
        return y_true, None, None
    require_keys(y_true, "ids", may_have)
    return y_true["ids"], y_true.get("relevance"), y_true.get("exclude")


def with_relevance(y_true: Any) -> Any:
    """A dict of ids and relevance for a sparse matrix or a list of dicts of grades.

    In a dict, the `ids` and those to `exclude` may be such a matrix or list.
    """
    if isinstance(y_true, Mapping):
        ids, exclude = (with_relevance(y_true.get(key)) for key in ("ids", "exclude"))
        if _is_dict(ids):
            y_true = {**ids, **y_true, "ids": ids["ids"]}
        return {**y_true, "exclude": exclude["ids"]} if _is_dict(exclude) else y_true
    if hasattr(y_true, "tocsr"):  # of SciPy, [B, V]
        rows = y_true.tocsr(copy=True)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        columns = rows.indices, rows.data.astype(float)
        of_rows = [slice(*ends) for ends in itertools.pairwise(rows.indptr)]
        ids, grades = ([each[row].tolist() for row in of_rows] for each in columns)
        return {"ids": ids, "relevance": grades}
    rows = as_list(y_true)
    if not isinstance(rows, (list, tuple)):
        return y_true
    if not any(issubclass(each, Mapping) for each in {*map(type, rows)}):
        return y_true
    for query, row in enumerate(rows):
        if not _is_dict(row):
            raise ValueError(
                "If the relevant items of a query are a dict from ids to grades, those "
                f"of each query must be. Received: {shortened(row)} for query {query}. "
                "Pass {} for a query without relevant items."
            )
    return {"ids": [[*row] for row in rows], "relevance": [[*r.values()] for r in rows]}


def _is_dict(data: Any) -> bool:
    return isinstance(data, Mapping)


def read_relevant(
    y_true: Any, may_have: set[str], library: Library
) -> tuple[Array, Array | None, Any]:
    """The relevant ids, their grades if there are any, and the ids to exclude."""
    y_true, relevance, exclude = from_dict(y_true, may_have)
    relevant = as_ids("`y_true`", y_true, library=library)
    if relevance is not None:
        relevance = as_relevance(relevance, relevant)
    return relevant.array, relevance, exclude


def as_ids(name: str, data: Any, *, library: Library) -> Dense:
    """Ids as int64; rows of unequal length are padded with -1."""

    def convert(ids: Any) -> Any:
        dtype = xp.dtype_of(ids)
        are_ids = dtype.kind in "iu" and dtype != np.uint64
        if not are_ids and 0 not in tuple(ids.shape):  # an empty list has no dtype
            hint = " Cast them to int64." if dtype == np.uint64 else ""
            if xp.is_floating(ids):
                hint = " Cast them to int64, with -1 for missing ids."
            raise ValueError(
                f"{name} must hold ids: integers of at least 0, with -1 for padding. "
                f"Received dtype: {dtype.name}.{hint}"
            )
        return xp.astype(ids, xp.int64)

    return dense(name, data, convert, padding=PADDING, library=library)


def as_relevance(relevance: Any, ids: Dense) -> Array:
    """The grades of ids, float64; a negative grade is 0, not relevant."""

    def convert(grades: Any) -> Any:
        if not (xp.is_floating(grades) or xp.dtype_of(grades).kind in "iu"):
            raise ValueError(
                "'relevance' must hold real numbers. Received: "
                f"{xp.dtype_of(grades).name}."
            )
        return xp.without_denormals(as_float64(grades))

    library = xp.library_of(ids.array)
    given = dense("'relevance'", relevance, convert, padding=0, library=library)
    error = (
        f"'relevance' must be of the shape of 'ids', {ids.array.shape}. "
        f"Received: shape {given.array.shape}."
    )
    if given.array.ndim != ids.array.ndim:
        raise ValueError(error)
    if ids.row_lengths is not None and given.row_lengths is None:
        given = given.as_ragged()
    grades = given.with_shape_of(ids, "ids", error)
    return xp.where(grades < 0, xp.zeros_like(grades), grades)


def relevance_of(relevant: Array, relevance: Array | None) -> Array:
    """The relevance of each id: its grade, or 1 without grades; 0 for padding.

    NaN for an id that occurs earlier in the row with a different grade.
    """
    if relevance is None:
        return xp.astype(relevant != PADDING, xp.float64)
    relevance = xp.reshape(relevance, xp.shape(relevant))
    relevance = xp.where(relevant != PADDING, relevance, 0)
    if relevant.ndim == 1:  # one id for each query
        return relevance
    by_id = xp.argsort(relevant, axis=1)
    is_same = equals_previous(xp.gather(relevant, by_id))
    differs = is_same & ~equals_previous(xp.gather(relevance, by_id))
    differs = xp.gather(differs, xp.argsort(by_id, axis=1))
    nan = xp.asarray(float("nan"), xp.float64, like=relevance)
    return xp.where(differs, nan, relevance)


def equals_previous(values: Array) -> Array:
    """Whether each value equals the one before it in its row, bool `[B, N]`."""
    return xp.pad(xp.equal(values[:, 1:], values[:, :-1]), [[0, 0], [1, 0]])


def is_repeated(ids: Array) -> Array:
    """True where the same id occurs earlier in the row `[B, M]`."""
    if ids.shape[1] == 1:
        return xp.zeros_like(ids, xp.bool)
    if ids.shape[1] is None or ids.shape[1] > MOST_COMPARED:
        order = xp.argsort(ids, axis=1)
        is_same = equals_previous(xp.gather(ids, order))
        return xp.gather(is_same, xp.argsort(order, axis=1))
    positions = xp.arange(xp.shape(ids)[1], like=ids)
    is_earlier = positions[xp.newaxis, :] < positions[:, xp.newaxis]
    is_same = xp.equal(ids[:, :, xp.newaxis], ids[:, xp.newaxis, :])
    return xp.any(is_same & is_earlier, axis=2)


def with_padding(ids: Array) -> Array:
    """The ids and a last column of padding."""
    # On a GPU, TensorFlow cannot pad integers of 64 bits.
    padding = xp.asarray(PADDING, xp.int64, like=ids)
    padding = xp.full([xp.shape(ids)[0], 1], padding, like=ids)
    return xp.concat([ids, padding], axis=1)


def find_in_rows(ascending: Array, ids: Array) -> tuple[Array, Array]:
    """The position of each id in its row of ascending ids, and whether it is there.

    A search, since a comparison of all pairs would require a tensor of three axes.
    """
    last = xp.shape(ascending)[1] - 1
    position = xp.searchsorted(ascending, ids)
    position = xp.minimum(position, xp.astype(last, position.dtype, like=position))
    return position, xp.equal(xp.gather(ascending, position), ids)


def require_finite_relevance(relevance: Array, ids: Array) -> None:
    """Raises ValueError for a grade that is NaN or infinite.

    NaN is also the grade of an id that occurs twice with different grades.
    """
    invalid = ~np.isfinite(np.asarray(relevance))
    if not invalid.any():
        return
    query, *place = first_index(invalid)
    received = first_value(invalid, relevance)
    if place and ids[query, place[0]] in ids[query, : place[0]]:
        received = f"two grades of the same id in query {query}"
    raise ValueError(
        "'relevance' must hold finite numbers, integers below 2^53, and one grade for "
        f"each id of a query. Received: {received}."
    )


def require_below(
    number: int, metric: str, ids: np.ndarray, lowest: int = PADDING
) -> None:
    """Raises ValueError for the id of an item without data in a metric."""
    largest, smallest = int(ids.max(initial=0)), int(ids.min(initial=0))
    if largest >= number or smallest < lowest:
        wrong = largest if largest >= number else smallest
        raise ValueError(
            f"`{metric}` has data for {number} items, whose ids must be 0 to "
            f"{number - 1}. Received: the recommended id {wrong}. Pass data of all "
            "items in the order of their ids, or a dict by id."
        )
