"""Axes of Matplotlib for the plots of results, and the metrics that they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfrankmetrics.installation import require
from tfrankmetrics.results.text_tables import one_line
from tfrankmetrics.rules import listed


def chosen_metrics(metrics: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    """The metrics to plot: all known ones if none is passed."""
    if unknown := [each for each in metrics if each not in known]:
        raise ValueError(
            f"A metric must be one of {listed(known)}. Received: {listed(unknown)}."
        )
    return metrics or known


def axes_for(metrics: Sequence[str], rows: Sequence[str], height: float = 0.3) -> Any:
    """Axes of Matplotlib, one for each metric, which share the names of the rows.

    A row is `height` inches high.
    """
    pyplot = require("matplotlib.pyplot", "`plot`")
    longest = max(map(len, rows), default=0)
    size = (1 + 0.07 * longest + 2.5 * len(metrics), 1.2 + height * len(rows))
    _, axes = pyplot.subplots(
        1, len(metrics), figsize=size, sharey=True, squeeze=False, layout="constrained"
    )
    for axis, metric in zip(axes[0], metrics, strict=True):
        axis.set_xlabel(without_tex(metric))
        axis.locator_params(axis="x", nbins=4)
    axes[0, 0].set_yticks(range(len(rows)), [*map(without_tex, rows)])
    axes[0, 0].set_ylim(len(rows) - 0.5, -0.5)
    return axes[0]


def without_tex(text: str) -> str:
    """The text for Matplotlib, which would treat text between two $ as TeX."""
    return one_line(text).replace("$", r"\$")
