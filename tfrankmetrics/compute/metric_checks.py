"""Checks of metrics that users declare, on small lists.

The first use of a custom metric runs them, and so does `testing.check_metric`. The
tests of this package check the built-in metrics.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import sys
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Library
from tfrankmetrics.compute.calls import call_compiled
from tfrankmetrics.compute.exposures import exposures
from tfrankmetrics.compute.values import values_and_weights
from tfrankmetrics.graphs import outside_of_graphs
from tfrankmetrics.inputs.ids import read_ids
from tfrankmetrics.inputs.labels import read_labels
from tfrankmetrics.metrics.measure import Declaration, make_measure
from tfrankmetrics.ranking.ties import STABLE

Values = Callable[..., np.ndarray]  # of labels, scores and perhaps cutoffs

# Valid for binary and for graded metrics.
LABELS = [1.0, 0.0, 0.5, 1.0]
SCORES = [4.0, 3.0, 2.0, 1.0]
OTHER_LABELS = [0.0, 1.0, 0.5, 1.0]
# The lists in which all libraries must agree: one batch, since JAX compiles a program
# for each shape. Labels may be float32, as those of Keras are.
_ROWS = LABELS, LABELS, OTHER_LABELS, [0] * 4, [-1] * 4, LABELS
BATCH = (
    np.array([[*r, -1] for r in _ROWS], np.float32),
    [[*r, 5] for r in (SCORES, [1] * 4, SCORES, SCORES, SCORES, [-np.inf] * 4)],
)


def check_declaration(declaration: Declaration, *libraries: Library) -> None:
    """Checks a metric once in NumPy, in TensorFlow if it is imported, and in these.

    It also finds out whether only TensorFlow computes the metric.

    Raises:
        TypeError: The formula is wrong, as in `tfrankmetrics.testing.check_metric`.
    """
    _check_alone(declaration)
    for library in ("tensorflow", *libraries):
        if library != "numpy" and sys.modules.get(library):
            _compare_with_numpy(declaration, library)


@functools.cache
def _check_alone(declaration: Declaration) -> None:
    """Raises TypeError for a wrong formula: in NumPy, or else in TensorFlow."""
    try:
        _check_values(declaration, "numpy")
    except _FormulaError:
        if not sys.modules.get("tensorflow"):
            raise
        _check_values(declaration, "tensorflow")
        declaration.needs_tensors = True


@functools.cache
def _compare_with_numpy(declaration: Declaration, library: Library) -> None:
    """Raises TypeError for a formula that computes other values in this library."""
    if declaration.needs_tensors:
        if library == "tensorflow":
            return
        raise TypeError(
            f"The formula of `{declaration.name}` must use `lists.xp` to run "
            f"on {library}. Received: a formula that only TensorFlow "
            "computes, and Keras with another backend."
        )
    values_of = _values_of_items if declaration.reads_items else _values_of_batch
    value, of_arrays = (np.array(values_of(declaration, x)) for x in (library, "numpy"))
    if not _are_close(value, of_arrays):
        raise TypeError(
            f"The value of `{declaration.name}` must be the same in NumPy and in "
            f"{library}. Received: {of_arrays.ravel()} and {value.ravel()}, for "
            f"lists such as {LABELS}. Write the formula with `lists.xp`."
        )


def _check_values(declaration: Declaration, library: Library) -> None:
    """Raises TypeError for a formula that is wrong in this library."""
    if declaration.reads_items:
        _check_items(declaration, library)
        return
    values = functools.partial(_values, declaration, library)
    with _formula_errors(declaration):
        value = values([LABELS], [SCORES])
        errors = itertools.chain(
            _errors_of_functions(declaration),
            _errors_of_other_lists(declaration, value, values),
            _errors_of_declaration(declaration, value, values),
        )
        error = next(errors, None)
    if error is not None:
        raise TypeError(error)


def _check_items(declaration: Declaration, library: Library) -> None:
    """`_check_values` for a metric of recommended items."""
    values = _values_of_items(declaration, library)
    if not values:
        return
    alone, padded = values
    if alone.shape != (1,) or not _are_close(alone, padded):
        raise TypeError(
            f"The value of `{declaration.name}` must be a number that does not depend "
            f"on padding. Received: {alone} for three items, and {padded} with padding."
        )


def _values_of_items(declaration: Declaration, library: Library) -> list[np.ndarray]:
    """The value of three items, and of these with padding.

    Empty if the metric requires data about the items.
    """
    options: dict[str, Any] = (
        {"num_items": 4} if "num_items" in declaration.types else {}
    )
    try:
        measure = make_measure(declaration, **options)
    except ValueError:
        return []
    values = []
    with _formula_errors(declaration), outside_of_graphs():
        for recommended in ([2, 0, 1], [2, 0, 1, -1]):
            lists = read_ids([[0]], [recommended], library=library)
            value = call_compiled(values_and_weights, (measure,), lists)[0][0]
            if declaration.value is not None:
                value = measure.value_of(exposures([measure], lists)[0])
            values.append(np.asarray(value))
    return values


def _values_of_batch(declaration: Declaration, library: Library) -> np.ndarray:
    with _formula_errors(declaration):
        return _values(declaration, library, *BATCH)


class _FormulaError(TypeError):
    """A formula that fails."""


@contextlib.contextmanager
def _formula_errors(declaration: Declaration) -> Iterator[None]:
    """A context in which any error becomes one of the metric's formula."""
    try:
        yield
    except Exception as error:
        name, hint = declaration.name, "describes the attributes for formulas"
        if declaration.reads_items:
            subject = f"The formula of `{name}`, and its `value`,"
            lists = "recommended items. Received, for three items"
        else:
            subject = f"The formula and the gain of `{name}`"
            lists = f"lists. Received, for a list of {len(LABELS)} items"
            hint += ", such as lists.expected(gain), the gains at each rank"
        raise _FormulaError(
            f"{subject} must compute the values of {lists}: {type(error).__name__}: "
            f"{str(error).rstrip('.')}. help(tfrankmetrics.RankedLists) {hint}."
        ) from error


def _errors_of_functions(declaration: Declaration) -> Iterator[str]:
    """Tries the gain and the columns of `by_rank`, always with NumPy."""
    labels = np.array([LABELS], np.float32)
    if declaration.has_subtopics:
        labels = np.stack([labels, labels], axis=2)
    lists = read_labels(labels, np.array([SCORES]), library="numpy")
    ranked = lists.rank(None, STABLE)
    ranked = dataclasses.replace(ranked, cutoffs=(None,))
    measure = make_measure(declaration)
    gains = measure.item_gain(ranked.listed)
    if not _is_float64(gains, [(1, len(LABELS))]):
        yield (
            f"The gain of `{declaration.name}` must return a float64 number for each "
            f"item, [B, D], in this case {(1, len(LABELS))}. Received: {gains!r}. Cast "
            "labels, which may be float32: items.xp.astype(items.labels, np.float64)."
        )
    for column in declaration.by_rank:
        of_ranks = measure.by_rank(column, ranked)
        if not _is_float64(of_ranks, [(1, len(LABELS)), (len(LABELS),)]):
            yield (
                f"The column {column!r} in `by_rank` of `{declaration.name}` must be a "
                "float64 number for each rank, [B, D] or [D], in this case "
                f"{(1, len(LABELS))}. Received: {of_ranks!r}."
            )


def _is_float64(array: Any, shapes: Sequence[tuple[int, ...]]) -> bool:
    is_float64 = getattr(array, "dtype", None) == np.float64
    return is_float64 and tuple(array.shape) in shapes


def _errors_of_other_lists(
    declaration: Declaration, value: np.ndarray, values: Values
) -> Iterator[str]:
    """Adds padding, a second list and a cutoff at the end, which change no value.

    Lists without relevant items must also have values.
    """
    with_padding = np.array([[*LABELS, -1, -1]], np.float32)
    padded = values(with_padding, [[*SCORES, 5.0, 0.0]])
    if not _are_close(value, padded):
        yield (
            f"The value of `{declaration.name}` must not depend on padding. Received: "
            f"{value} for the labels {LABELS}, and {padded} with two more items of "
            "padding. Set the gain of padding to 0, as in items.xp.where(items.valid, "
            "gains, 0), and do not count items where lists.ranked.valid is False."
        )
    with_other = values([LABELS, OTHER_LABELS], [SCORES, SCORES])
    if not _are_close(value, with_other[:, :1]):
        yield (
            f"The value of `{declaration.name}` must not depend on the other lists of "
            f"a batch. Received: {value} for a list alone, and {with_other[:, :1]} "
            "together with a second one. Reduce over the ranks of each list, with "
            "axis=1."
        )
    at_the_end, whole = values([LABELS], [SCORES], (len(LABELS), None))
    if not _are_close(at_the_end, whole):
        yield (
            f"Without a cutoff, the value of `{declaration.name}` must equal the value "
            f"at the cutoff k={len(LABELS)}, for a list of {len(LABELS)} items. "
            f"Received: {whole} without a cutoff, and {at_the_end} with it. `lists.k` "
            "is infinite without one: use lists.xp.minimum(lists.k, "
            "lists.num_retrieved[:, None])."
        )
    without = values([[0.0] * 4, [-1.0] * 4], [SCORES, SCORES])
    if not np.isfinite(without).all():
        yield (
            f"The value of `{declaration.name}` must be a number for each list. "
            f"Received: {without[:, 0]} for the labels {[0.0] * 4}, and "
            f"{without[:, 1]} for a list of padding. Use "
            "lists.xp.divide_no_nan for the division."
        )


def _errors_of_declaration(
    declaration: Declaration, value: np.ndarray, values: Values
) -> Iterator[str]:
    """Compares values with the range and the other facts that are declared.

    The value of tied items is compared with the mean over all their permutations.
    """
    lowest, highest = declaration.range
    if not ((value >= lowest - 1e-9) & (value <= highest + 1e-9)).all():
        yield (
            f"The value of `{declaration.name}` must be in its range, "
            f"{declaration.range}. Received: {value.ravel()} for the labels {LABELS}. "
            "Declare the range, as in range=(0, math.inf), or correct the formula."
        )
    declared = declaration.without_results
    empty = values([LABELS], [[-np.inf] * len(LABELS)])
    if declared is not None and not np.allclose(empty, declared):
        yield (
            f"The value of `{declaration.name}` without results must be the declared "
            f"one, {declared}. Received: {empty.ravel()}, for a list in which no item "
            "was retrieved. Declare the value as `without_results`, or None if such a "
            "list has no value."
        )
    if "expected" not in typing.get_args(declaration.types["ties"]):
        return
    orders = np.array(list(itertools.permutations(LABELS)))
    by_order = values(orders, [SCORES] * len(orders))
    mean = np.mean(by_order, axis=1, keepdims=True)
    tied = values([LABELS], [[1.0] * len(LABELS)])
    where = " at the cutoffs 1, 2 and none" if declaration.has_cutoff else ""
    if not _are_close(tied, mean):
        yield (
            "With ties='expected', a value must be the mean over all permutations of "
            f"the tied items. Received: `{declaration.name}` of tied items with the "
            f"labels {LABELS} is {tied.tolist()}{where}, and its mean over all "
            f"permutations is {mean.tolist()}. Its formula is not linear in the gains: "
            "use `first_relevant`, `relevant_down_to` or `first_stop` of RankedLists, "
            'or declare in the class ties: Literal["stable"] = "stable".'
        )


def _are_close(one: np.ndarray, other: np.ndarray) -> bool:
    return np.allclose(one, other, rtol=1e-9, equal_nan=True)


def _values(
    declaration: Declaration,
    library: Library,
    labels: Any,
    scores: Any,
    cutoffs: tuple[int | None, ...] = (1, 2, None),
) -> np.ndarray:
    """The values at some cutoffs, `[cutoffs, B]`; a metric without any ignores them."""
    options = {}
    if isinstance(declaration.defaults.get("gain"), tuple):
        options["gain"] = "linear"  # gains by grade may lack one of these labels
    measures = [
        make_measure(declaration, k if declaration.has_cutoff else None, **options)
        for k in cutoffs
    ]
    labels = np.array(labels)
    if declaration.has_subtopics:
        labels = np.stack([labels, np.where(labels < 0, -1, 1 - labels)], axis=2)
    with outside_of_graphs(), xp.computing_in(library):
        lists = read_labels(labels, np.array(scores), library=library)
        if library == "jax":
            computed = call_compiled(values_and_weights, tuple(measures), lists)
        else:
            computed = values_and_weights(measures, lists)
        return np.asarray(computed[0])
