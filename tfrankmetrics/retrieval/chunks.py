"""Candidates, which are read a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

# In bfloat16, two products of the same vectors can differ by some percent.
MOST_ROUNDING = 0.1


class Chunk(NamedTuple):
    """Some consecutive candidates."""

    start: int  # the position of the first
    size: int
    inputs: Any
    width: int  # the rows to pad the inputs to, the same in all chunks


class Candidates(Protocol):
    """All candidates, read some at a time."""

    number: int

    def at(self, positions: np.ndarray) -> Any:
        """The candidates at some positions, which must be among the relevant ones."""
        ...

    def chunks(self) -> Iterator[Chunk]:
        """All candidates in their order."""
        ...
