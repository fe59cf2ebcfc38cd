"""One argument of a user, as it is read."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfrankmetrics.arrays import Array


class Dense(NamedTuple):
    """One argument as a dense array, with its row lengths if it was ragged."""

    name: str
    tensor: Array
    padding: float | bool
    row_lengths: Array | None = None


class Rows(NamedTuple):
    """Rows of unequal length."""

    values: np.ndarray  # of all rows, one after the other
    lengths: np.ndarray
