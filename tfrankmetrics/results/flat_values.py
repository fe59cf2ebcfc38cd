"""Results as flat dicts, whose keys experiment trackers accept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from tfrankmetrics.rules import shortened


def flat_values(values: Iterable[tuple[Sequence[str], float]]) -> dict[str, float]:
    """Numbers by keys such as `ndcg_10/country:DE`, from the parts of each key.

    In a part, every character other than letters, digits, `_`, `-`, `.`, `:` and spaces
    becomes `_`: MLflow accepts no other, and a slash separates the parts.

    Raises:
        ValueError: Two keys become equal.
    """
    flat: dict[str, float] = {}
    parts_of: dict[str, Sequence[str]] = {}
    for parts, value in values:
        key = "/".join(re.sub(r"[^\w\-.: ]", "_", part) for part in parts)
        if key in flat:
            raise ValueError(
                "The keys must differ once other characters than letters, digits and "
                f"_-.: are replaced by _. Received: {shortened('/'.join(parts))} and "
                f"{shortened('/'.join(parts_of[key]))}. Rename a slice or a metric."
            )
        flat[key], parts_of[key] = float(value), parts
    return flat


def parts_of_slice(by: Sequence[str], labels: Iterable[Any]) -> list[str]:
    """The parts of a key that name a slice, such as `country:DE`."""
    return [f"{name}:{label}" for name, label in zip(by, labels, strict=True)]
