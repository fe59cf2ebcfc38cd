"""Columns of frames: of pandas, polars or Arrow, or dicts of columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrankmetrics.rules import did_you_mean, listed, shortened

MOST_NAMES = 20  # in an error message


def is_frame(data: Any) -> bool:
    """Whether an object is a frame of pandas or polars, or an Arrow table."""
    return hasattr(type(data), "columns") and not isinstance(
        data, (np.ndarray, Mapping)
    )


def is_column_of_frame(data: Any) -> bool:
    """Whether an object is a column of numbers or text, from pandas or polars."""
    library = type(data).__module__.partition(".")[0]
    if library not in ("pandas", "polars", "pyarrow") or not hasattr(data, "to_numpy"):
        return False
    if is_frame(data):
        return len(column_names(data)) == 1 and len(data) > 1
    return len(np.shape(data)) == 1 and (
        len(data) == 0 or np.ndim(next(iter(data))) == 0
    )


def column_names(data: Any) -> list[Any]:
    """The names of the columns of a frame or of a dict of columns."""
    if isinstance(data, Mapping):
        return [*data]
    return [*(data.column_names if hasattr(data, "column_names") else data.columns)]


def rows_at(frame: Any, rows: np.ndarray) -> Any:
    """Some rows of a frame of pandas, polars or Arrow, by their positions."""
    if hasattr(frame, "iloc"):
        return frame.iloc[rows]
    return frame.take(rows) if hasattr(frame, "take") else frame[rows]


def column(data: Any, name: Any, argument: str) -> Any:
    """The column of a frame that an argument names."""
    if type(data).__name__ == "LazyFrame":
        raise ValueError(
            "A frame must contain its data. Received: a LazyFrame. Call its collect()."
        )
    names = column_names(data)
    if names.count(name) == 1:
        return data[name]
    if name in names:
        problem = "two columns of this name"
    else:
        more = f", and {len(names) - MOST_NAMES} more" * (len(names) > MOST_NAMES)
        problem = f"the columns {listed(names[:MOST_NAMES])}{more}"
    hint = did_you_mean(name, map(str, names)) if isinstance(name, str) else ""
    if name in getattr(getattr(data, "index", None), "names", ()):
        hint = " It is in the index: pass frame.reset_index()."
    raise ValueError(
        f"`{argument}` must name one column of the frame. Received: "
        f"{argument}={shortened(name)}, for {problem}.{hint}"
    )
