"""Queries that come one at a time, padded to arrays with a row for each.

`inputs/` reads lists that come together, and checks what these arrays contain.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfrankmetrics.columns.read_column import Codes

Arrays = Sequence[np.ndarray]  # one for each query


def pad_labels_and_scores(
    labels: Arrays, scores: Arrays
) -> tuple[np.ndarray, np.ndarray]:
    """Labels, padded by -1, and scores, in equal number for each query."""
    padded_labels, lengths = _padded_rows(labels, -1, np.float64)
    padded_scores, numbers = _padded_rows(scores, 0)
    if (lengths != numbers).any():
        first = np.argmax(lengths != numbers)
        raise ValueError(
            "A query must contain as many labels as predictions. Received: "
            f"{lengths[first]} labels and {numbers[first]} predictions. Check "
            "`label_key`, `prediction_key` and the padding of lists."
        )
    return padded_labels, padded_scores


def pad_ids(relevant: Arrays, recommended: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Relevant and recommended ids, padded by -1; numbers for ids that are text."""
    arrays = [array for array in (*relevant, *recommended) if array.size]
    kinds = {"numbers" if a.dtype.kind in "fiub" else "text" for a in arrays}
    if len(kinds) > 1:
        raise ValueError(
            "Relevant and recommended ids must have the same type, or none match. "
            f"Received: {' and '.join(sorted(kinds))}. Convert one of them."
        )
    if "text" in kinds:
        codes = Codes({b"": -1, "": -1})  # empty text is padding
        relevant, recommended = (
            [
                np.array([codes[each] for each in ids.ravel().tolist()], int)
                for ids in side
            ]
            for side in (relevant, recommended)
        )
    return _padded_rows(relevant, -1)[0], _padded_rows(recommended, -1)[0]


def pad_ids_of_catalogue(
    relevant: Arrays, scores: Arrays
) -> tuple[np.ndarray, np.ndarray]:
    """Relevant ids, padded by -1, and scores of the whole catalogue."""
    shapes = [array.shape for array in scores]
    padded, sizes = _padded_rows(scores, 0)
    if len({*sizes.tolist()}) > 1 or max(map(max, shapes)) != sizes[0]:
        raise ValueError(
            "With inputs='catalogue', the prediction for each query must be a score "
            "for each item of the catalogue, [V]. Received: shapes "
            f"{', '.join(map(str, sorted({*shapes})[:3]))}."
        )
    return _padded_rows(relevant, -1)[0], padded


def _padded_rows(
    arrays: Sequence[np.ndarray], padding: int, dtype: type | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Arrays of any length as the rows of one, and their lengths."""
    lengths = np.array([array.size for array in arrays])
    values = np.concatenate(arrays, axis=None)
    rows = np.full((len(arrays), lengths.max()), padding, dtype or values.dtype)
    rows[np.arange(rows.shape[1]) < lengths[:, np.newaxis]] = values
    return rows, lengths


# How the queries of each input format are padded.
PAD = {
    "labels": pad_labels_and_scores,
    "ids": pad_ids,
    "catalogue": pad_ids_of_catalogue,
}
