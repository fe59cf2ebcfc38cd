"""Evidence of mistakes in the batches of a Keras metric, kept in its state.

A graph cannot warn. So an update counts a few facts of some items. `result` reads them
in eager code, as Keras does at the end of an epoch, and warns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import Array
from tfrankmetrics.inputs.mistakes import warn

LOOKED_AT = slice(24)  # queries of a batch, and items of a query
LEAST_LABELS = 20  # fewer may look like a mistake by chance
NO_EVIDENCE = np.zeros((3, 2))  # in the shape of the facts: rows of a metric's sums


class Evidence(NamedTuple):
    """How many items, of those looked at, had which labels and scores."""

    items: Any  # with padding
    labels: Any
    other_than_one: Any  # labels
    fractions: Any  # labels
    no_grades: Any  # scores that are not 0, 1, 2, 3 or 4
    other_scores: Any  # than the first of the list


def evidence_of(lists: Any) -> Array:
    """The facts of a batch of labels and scores, float64 `[3, 2]`."""
    labels, scores, valid = (
        each[LOOKED_AT, LOOKED_AT] for each in (lists.labels, lists.scores, lists.valid)
    )
    grades = xp.clip(xp.floor(xp.astype(scores, xp.float64)), 0, 4)
    found = [
        valid,
        xp.not_equal(labels, 1),
        xp.not_equal(labels, xp.floor(labels)),
        xp.not_equal(xp.astype(grades, scores.dtype), scores),
        xp.not_equal(scores, scores[:, :1]),
    ]
    counts = xp.sum(xp.astype(xp.stack(found) & valid, xp.float64), axis=(1, 2))
    items = xp.size(valid)
    if lists.judged is not None:  # with a mask, a label below 0 is no padding
        items = counts[0]
    number = xp.stack([xp.astype(items, xp.float64, like=counts)])
    return xp.reshape(xp.concat([number, counts], axis=0), [3, 2])


def are_in_order(facts: np.ndarray) -> bool:
    """Whether the batches so far show that the data are what they should be."""
    found = Evidence(*facts.ravel().tolist())
    return found.other_than_one > 0 and found.no_grades > 0


def warn_of_mistakes(facts: np.ndarray, name: str) -> None:
    """Warns of labels that are all 1, and of labels and scores that are swapped."""
    found = Evidence(*facts.ravel().tolist())
    if found.labels < LEAST_LABELS:
        return
    if found.other_than_one == 0 and found.items > found.labels:
        warn(
            f"All labels in {name!r} are 1 or below 0, and a label below 0 marks "
            "padding: nothing but relevant items is left, and every order is perfect. "
            "If -1 means not relevant, pass labels > 0."
        )
    are_grades = found.no_grades == 0 and found.other_scores > 0
    if are_grades and found.fractions > found.labels / 2:
        warn(
            f"`y_true` of {name!r} holds labels, and `y_pred` scores. Received: labels "
            "that are mostly fractions, and scores that are whole numbers from 0 to 4. "
            "They are probably swapped."
        )
