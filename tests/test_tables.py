"""Tests that no name breaks a table or a plot: HTML, Markdown, LaTeX, text and TeX."""

import numpy as np
import pytest

import tfrankmetrics as tfr

NAMES = [
    "<script>alert(1)</script>",
    "a|b",
    "two\nlines",
    "cost in $ and $",
    "$\\frac$",
    "[link](javascript:alert(1))",
    "100%_&#{}",
    "tab\tand\u2028separator",
]
VALUES = {
    name: {"mrr": np.random.default_rng(i).random(12)} for i, name in enumerate(NAMES)
}
SLICES = [NAMES[i % len(NAMES)] for i in range(12)]


def results():
    """A comparison by slice, slices, and an explanation, with these names in all."""
    yield tfr.compare(VALUES, by={"<b>slice</b> $x$": SLICES})
    yield tfr.evaluate([[1, 0]] * 12, [[2, 1]] * 12, ["mrr"], by={"<i>\n$": SLICES})
    yield tfr.explain([NAMES[:2]], [NAMES], "map", inputs="ids")
    yield tfr.compare(VALUES).movers("mrr", NAMES[0], model=NAMES[2])


@pytest.mark.parametrize("result", [*results()], ids=lambda each: type(each).__name__)
def test_names_do_not_break_tables(result):
    markdown, latex, html = (
        result.to_markdown(),
        result.to_latex(),
        result._repr_html_(),
    )
    assert "<script" not in markdown
    assert "<script" not in html
    assert "](javascript" not in markdown
    for text in (markdown, latex, repr(result)):
        assert not {"\t", "\u2028"} & {*text}
    for table in markdown.split("\n\n"):
        lines = [line for line in table.splitlines() if line.startswith("|")]
        cells = {line.replace("\\|", "").count("|") for line in lines}
        assert len(cells) <= 1
    rows = [line for line in latex.splitlines() if line.endswith("\\\\")]
    assert rows
    assert all(row.count("&") > row.count("\\&") for row in rows)


def test_names_with_dollars_can_be_plotted():
    pyplot = pytest.importorskip("matplotlib").use("Agg") or pytest.importorskip(
        "matplotlib.pyplot"
    )
    two = {name: VALUES[name] for name in (NAMES[3], NAMES[4])}
    by = {"<b>$slice$</b>": SLICES}
    plots = [
        tfr.compare(VALUES, by=by).plot()[0],
        tfr.compare(two, by=by).plot()[0],
        tfr.compare(two).plot_queries("mrr", NAMES[3]),
        tfr.evaluate([[1, 0]] * 12, [[2, 1]] * 12, ["mrr"], by=by).plot()[0],
    ]
    for axis in plots:
        axis.figure.canvas.draw()  # raises ParseException for wrong TeX
        pyplot.close(axis.figure)
