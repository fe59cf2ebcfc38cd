"""Tries a metric on a small list when it is declared, to show mistakes at once.

Otherwise a formula that fails would do so in the middle of a training, and a formula
that counts padding, or is not exact under ties, would give plausible numbers.
"""

from __future__ import annotations

import itertools
import typing
from typing import Any

import numpy as np
import tensorflow as tf

from tfrankmetrics.engine.measure import Declaration, make_measure
from tfrankmetrics.engine.values import values_and_weights
from tfrankmetrics.inputs.labels import read_labels

# Valid for binary and for graded metrics.
LABELS = [1.0, 0.0, 0.5, 1.0]
SCORES = [4.0, 3.0, 2.0, 1.0]
OTHER_LABELS = [0.0, 1.0, 0.5, 1.0]


def try_declaration(declaration: Declaration) -> None:
    """Raises TypeError for a formula that gives plausible, but wrong numbers.

    It fails, counts padding, mixes the lists of a batch, is wrong without a cutoff, or
    is wrong under ties.
    """
    name = declaration.name
    try:
        value = _values(declaration, [LABELS], [SCORES])
        padded = _values(declaration, [[*LABELS, -1, -1]], [[*SCORES, 5.0, 0.0]])
        with_other = _values(declaration, [LABELS, OTHER_LABELS], [SCORES, SCORES])
        at_the_end, whole = _values(
            declaration, [LABELS], [SCORES], cutoffs=(len(LABELS), None)
        )
        without = _values(declaration, [[0.0] * 4, [-1.0] * 4], [SCORES, SCORES])
        nothing_found = _values(declaration, [LABELS], [[-np.inf] * len(LABELS)])
    except Exception as error:
        raise TypeError(
            f"The formula and the gain of `{name}` must compute the values of lists. "
            f"Received, for a list of {len(LABELS)} items: {type(error).__name__}: "
            f"{str(error).rstrip('.')}. help(tfrankmetrics.RankedLists) says what a "
            "formula can read, such as lists.expected(gain), the gains at each rank."
        ) from error
    if not np.allclose(value, padded, rtol=1e-9, equal_nan=True):
        raise TypeError(
            f"The value of `{name}` must not depend on padding. Received: {value} for "
            f"the labels {LABELS}, and {padded} with two more items of padding. Give "
            "padding no gain, as in tf.where(items.valid, gains, 0), and do not count "
            "items where lists.ranked.valid is False."
        )
    if not np.allclose(value, with_other[:, :1], rtol=1e-9, equal_nan=True):
        raise TypeError(
            f"The value of `{name}` must not depend on the other lists of a batch. "
            f"Received: {value} for a list alone, and {with_other[:, :1]} beside "
            "another one. Reduce over the ranks of each list, with axis=1."
        )
    if not np.allclose(at_the_end, whole, rtol=1e-9, equal_nan=True):
        raise TypeError(
            f"Without a cutoff, the value of `{name}` must be that of the cutoff "
            f"k={len(LABELS)}, for a list of {len(LABELS)} items. Received: {whole} "
            f"without a cutoff, and {at_the_end} with it. `lists.k` is infinite "
            "without one: use tf.minimum(lists.k, lists.num_retrieved[:, None])."
        )
    if not np.isfinite(without).all():
        raise TypeError(
            f"The value of `{name}` must be a number for each list. Received: "
            f"{without[:, 0]} for the labels {[0.0] * 4}, and {without[:, 1]} for a "
            "list of padding. Divide by tf.math.divide_no_nan."
        )
    lowest, highest = declaration.range
    in_range = (value >= lowest - 1e-9) & (value <= highest + 1e-9)
    if not in_range.all():
        raise TypeError(
            f"The value of `{name}` must be in its range, {declaration.range}. "
            f"Received: {value.ravel()} for the labels {LABELS}. Declare the range, as "
            "in range=(0, math.inf), or mend the formula."
        )
    of_nothing = declaration.without_results
    if of_nothing is not None and not np.allclose(nothing_found, of_nothing):
        raise TypeError(
            f"The value of `{name}` without results must be the declared one, "
            f"{of_nothing}. Received: {nothing_found.ravel()}, for a list in which no "
            "item was retrieved. Declare the value as `without_results`, or None if "
            "such a list has no value."
        )
    if "expected" in typing.get_args(declaration.types["ties"]):
        _require_exact_ties(declaration)


def _require_exact_ties(declaration: Declaration) -> None:
    """Compares the value of tied items with the mean over all their orders."""
    orders = np.array(list(itertools.permutations(LABELS)))
    by_order = _values(declaration, orders, [SCORES] * len(orders))
    mean = np.mean(by_order, axis=1, keepdims=True)
    tied = _values(declaration, [LABELS], [[1.0] * len(LABELS)])
    where = " at the cutoffs 1, 2 and none" if declaration.has_cutoff else ""
    if not np.allclose(tied, mean, rtol=1e-9, equal_nan=True):
        raise TypeError(
            "With ties='expected', a value must be the mean over all orders of the "
            f"tied items. Received: `{declaration.name}` of tied items with the labels "
            f"{LABELS} is {tied.tolist()}{where}, and its mean "
            f"over all orders is {mean.tolist()}. Its formula is not linear in the "
            "gains: use `first_relevant`, `relevant_down_to` or `first_stop` of "
            "RankedLists, or declare in the class "
            'ties: Literal["stable", "random"] = "stable".'
        )


def _values(
    declaration: Declaration,
    labels: Any,
    scores: Any,
    cutoffs: tuple[int | None, ...] = (1, 2, None),
) -> np.ndarray:
    """The values at some cutoffs, `[cutoffs, B]`; a metric without any ignores them."""
    measures = [
        make_measure(declaration, k if declaration.has_cutoff else None)
        for k in cutoffs
    ]
    labels = np.array(labels)
    if declaration.has_subtopics:
        labels = np.stack([labels, np.where(labels < 0, -1, 1 - labels)], axis=2)
    with tf.init_scope():
        lists = read_labels(labels, np.array(scores))
        return values_and_weights(measures, lists)[0].numpy()
