"""Plots of a comparison: intervals by slice and model, and differences by query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.comparison.estimates import SIGNIFICANT, Difference, Mean
from tfrankmetrics.installation import require
from tfrankmetrics.results.plot_axes import axes_for, without_tex


class Row(NamedTuple):
    """An interval, with the slice in whose row it is and the models in its legend."""

    slice: str  # with the number of queries; empty without slices
    models: str
    estimate: Mean | Difference


def plot_intervals(rows: Sequence[Row], metrics: Sequence[str]) -> Any:
    """Intervals on one axis for each metric.

    With slices, a row is a slice, in which each model or pair is shown in its color.
    Otherwise a row is a model or a pair. The dot of an uncertain difference is white.
    """
    series = [*dict.fromkeys(row.models for row in rows)]
    slices = [*dict.fromkeys(row.slice for row in rows)]
    has_slices = slices != [""]
    names = slices if has_slices else series
    height = 0.3 + (0.16 * len(series) if has_slices else 0)
    axes = axes_for(metrics, names, height)
    are_differences = isinstance(rows[0].estimate, Difference)
    for axis, metric in zip(axes, metrics, strict=True):
        for slice_, models, estimate in rows:
            if estimate.metric != metric:
                continue
            y, color = names.index(slice_ if has_slices else models), "C0"
            if has_slices:
                number = series.index(models)
                y += 0.7 * ((number + 0.5) / len(series) - 0.5)
                color = f"C{number % 10}"
            is_certain = isinstance(estimate, Mean) or estimate.is_significant
            fill = color if is_certain else "white"
            axis.plot([estimate.low, estimate.high], [y, y], color=color, linewidth=2)
            axis.plot(estimate[3], y, "o", color=color, markerfacecolor=fill)
        text = without_tex(f"difference in {metric}" if are_differences else metric)
        if has_slices and len(series) == 1:
            text += f"\n({without_tex(series[0])})"
        axis.set_xlabel(text)
        if are_differences:
            axis.axvline(0, color="black", linewidth=0.8, zorder=0)
    _add_legend(axes, series if has_slices and len(series) > 1 else [], are_differences)
    return axes


def _add_legend(axes: Any, series: Sequence[str], are_differences: bool) -> None:
    """A legend below all axes, without duplicate entries."""
    lines = require("matplotlib.lines", "`plot`").Line2D
    handles = [
        lines([], [], color=f"C{i % 10}", marker="o", label=without_tex(name))
        for i, name in enumerate(series)
    ]
    if are_differences:
        grey = {"color": "grey", "marker": "o", "linewidth": 2}
        name = f"significant (adjusted p < {SIGNIFICANT:g})"
        handles.append(lines([], [], label=name, **grey))
        handles.append(
            lines([], [], label="not significant", markerfacecolor="white", **grey)
        )
    if handles:
        figure = axes[0].figure
        width = 0.6 + 0.085 * max(len(each.get_label()) for each in handles)
        columns = max(1, int(figure.get_figwidth() / width))
        figure.set_figheight(figure.get_figheight() + 0.2 * (len(handles) // columns))
        figure.legend(
            handles=handles, loc="outside lower center", ncols=columns, frameon=False
        )


def plot_improvements(
    improvements: np.ndarray, metric: str, models: tuple[str, str]
) -> Any:
    """The improvement of each query, from the lowest to the highest."""
    pyplot = require("matplotlib.pyplot", "`plot_queries`")
    ascending = np.sort(improvements[~np.isnan(improvements)])
    number = len(ascending)
    if not number:
        raise ValueError("A plot requires a query with a value. Received: none.")
    _, axis = pyplot.subplots(figsize=(6, 3), layout="constrained")
    edges, heights = np.arange(number + 1), np.append(ascending, ascending[-1])
    for color, part in (("C3", np.minimum(heights, 0)), ("C0", np.maximum(heights, 0))):
        axis.fill_between(edges, part, step="post", color=color, linewidth=0)
    axis.axhline(0, color="black", linewidth=0.8)
    improved, worsened = int((ascending > 0).sum()), int((ascending < 0).sum())
    title = f"{worsened:,} worsened, {improved:,} improved, "
    title += f"{number - improved - worsened:,} unchanged"
    axis.set_title(title, fontsize=10)
    from_to = without_tex(" to ".join(models))
    label = f"improvement in {without_tex(metric)}\n({from_to})"
    axis.set(xlabel=f"{number:,} queries, sorted", ylabel=label, xticks=[])
    axis.margins(x=0)
    return axis
