"""Runs the code and checks the tables of the pages that use other tools."""

import dataclasses
import pathlib
import re
from typing import Any, NamedTuple

import numpy as np
from code_blocks import SHOWN, assert_prints, read_section, run_block

import tfrankmetrics as trm

DOCS = pathlib.Path(__file__).parent.parent / "docs"
PART = re.compile(
    rf"^```(?P<language>py|python)\n(?P<code>.*?)^{SHOWN}"
    r"|(?P<table>(?:^\|[^\n]*\n)+)",
    re.MULTILINE | re.DOTALL,
)
CODE = re.compile(r"`([^`]+)`")
METRICS = (trm.TopKMetric, trm.WholeListMetric, trm.SubtopicMetric)
OURS = {name: getattr(trm, name) for name in trm.__all__}


class Row(NamedTuple):
    """Cells of a table, and the names that the blocks above the table define.

    The header of the first column names the tool.
    """

    tool: str
    cells: list[str]
    names: dict[str, Any]

    def code(self, column):
        """The first code in a cell."""
        return CODE.findall(self.cells[column])[0]


@dataclasses.dataclass
class Page:
    """What a page has for a test, in order.

    Attributes:
        names: What the blocks define, after the last one.
        pairs: `theirs` and `ours` after each pair of blocks, or after a block of the
            other tool that sets both.
        calls: The rows of tables whose header ends in "without the convention".
        options: Tables whose header ends in "equivalent in tfrankmetrics", each with
            its rows.
        examples: The rows of tables whose header starts with "example".
        weighted: The rows of tables whose header starts with "metric, labels and
            weights".
    """

    names: dict[str, Any] = dataclasses.field(default_factory=dict)
    pairs: list[tuple[Any, Any]] = dataclasses.field(default_factory=list)
    calls: list[Row] = dataclasses.field(default_factory=list)
    options: list[list[Row]] = dataclasses.field(default_factory=list)
    examples: list[Row] = dataclasses.field(default_factory=list)
    weighted: list[Row] = dataclasses.field(default_factory=list)


def run_page(name, section=None):
    """Runs all blocks of Python in order, those of the other tool included.

    Of a page about several tools, only the introduction and one section run.

    A block of the other tool that sets neither `theirs` nor `ours` and defines no
    function is a sketch and does not run.
    """
    text = read_section(DOCS / f"{name}.md", section)
    page, previous = Page(), None
    for part in PART.finditer(text):
        if part["table"]:
            _add_table(page, part["table"])
            continue
        language, code, shown = part["language"], part["code"], part["shown"]
        if language == "py" and "theirs" not in code and "def " not in code:
            continue
        printed = run_block(code, f"{name}, at {part.start()}", page.names)
        if language == "python":
            assert_prints(printed, shown, tolerance=1e-6)
        follows = language == "python" and previous == "py" and "ours = " in code
        if follows or (language == "py" and "theirs, ours" in code):
            page.pairs.append((page.names["theirs"], page.names["ours"]))
        previous = language
    return page


def _add_table(page, table):
    header, _, *lines = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()
    )
    rows = [Row(header[0], cells, {**page.names}) for cells in lines]
    if header[-1] == "without the convention":
        page.calls += rows
    elif header[-1] == "equivalent in tfrankmetrics":
        page.options.append(rows)
    elif header[0] == "example":
        page.examples += rows
    elif header[0] == "metric, labels and weights":
        page.weighted += rows


def assert_pairs_agree(pairs, tolerance):
    """The values are in the same order, or have the same keys."""
    assert pairs
    for theirs, ours in pairs:
        if isinstance(theirs, dict) and theirs.keys() == ours.keys():
            ours = {key: ours[key] for key in theirs}
        np.testing.assert_allclose(flat(ours), flat(theirs), rtol=tolerance)


def assert_calls_are_true(page, theirs, ours, tolerance):
    """Computes each row of the tables of calls.

    The last cell starts with "same" or "differs". The middle one is "none" if we have
    no such metric. `theirs` takes a call, the names of the page and the tool. `ours`
    takes a metric, the names, the call, and whether to use the convention. A metric
    object has options of its own.
    """
    rows = [
        row for row in page.calls if row.cells[1] != "none" and row.code(0) != "GAUC"
    ]
    assert len(rows) > 4
    for row in rows:
        assert row.cells[2].startswith(("same", "differs")), row.cells
        is_same = row.cells[2].startswith("same")
        call, metric = row.code(0), row.code(1)
        value = flat(theirs(call, row.names, row.tool))
        close = _tolerances(call, tolerance)
        is_object = metric.endswith(")") and metric[0].isupper()
        if is_object:
            metric = eval(metric, dict(OURS))
        plain = flat(ours(metric, row.names, call, False))
        assert np.allclose(plain, value, **close) == is_same, (call, plain, value)
        if not is_object:
            converted = flat(ours(metric, row.names, call, True))
            np.testing.assert_allclose(converted, value, **close, err_msg=call)


def assert_options_are_true(page, theirs, ours, tolerance):
    """Computes each row of the tables of options.

    The second cell is an expression. If it is a metric or its name, `ours` evaluates
    it, a name with the convention. All rows of a table have different values, so an
    option without an effect on the data of the page fails.
    """
    assert page.options
    for rows in page.options:
        values = []
        for row in rows:
            call, metric = row.code(0), row.code(1)
            if not re.fullmatch(r"[\w@.]+", metric):
                metric = eval(metric, {**row.names, **OURS})
            if isinstance(metric, (str, *METRICS)):
                metric = ours(metric, row.names, call, isinstance(metric, str))
            value = flat(theirs(call, row.names, row.tool))
            np.testing.assert_allclose(
                flat(metric), value, **_tolerances(call, tolerance), err_msg=call
            )
            values.append(tuple(np.round(value, 4)))
        assert len({*values}) == len(rows), values


def assert_examples_are_true(page, theirs, ours):
    """Computes each row of the tables of examples: the tool's value, and ours.

    `theirs` and `ours` take what the code in the first cell gives.
    """
    assert page.examples
    for row in page.examples:
        arguments = eval(row.code(0), dict(row.names))
        for cell, value in zip(row.cells[1:], (theirs, ours), strict=True):
            assert cell == f"{flat(value(arguments))[0]:.4f}", row.cells


def assert_weighted_values_are_true(page, theirs, ours):
    """Computes the table of weighted values, and each call with weights.

    The table has the tool's value, ours with the convention, and ours by default. A
    call is "same, unless weighted", if a list without relevant items changes its value,
    and else "same, unless an item has weight 0". `theirs` takes a call and `ours` takes
    a metric, each then labels, the names of the page and weights. `ours` also takes
    whether to use the convention.
    """
    calls = {row.code(1): row for row in page.calls}

    def values(metric, labels, weights):
        of_page = labels, page.names, weights
        shown = [theirs(calls[metric].code(0), *of_page)]
        shown += [ours(metric, *of_page, convention) for convention in (True, False)]
        return np.array([flat(value)[0] for value in shown])

    assert page.weighted
    for row in page.weighted:
        found = values(*eval(row.code(0), dict(page.names)))
        assert row.cells[1:] == [f"{value:.4f}" for value in found]
    one_empty, by_query, labels, by_item = (
        page.names[name] for name in ("one_empty", "by_query", "labels", "by_item")
    )
    for metric, row in calls.items():
        cell = row.cells[2]
        of_tool, *of_ours = values(metric, one_empty, by_query)
        is_same = cell != "same, unless weighted"
        assert np.allclose(of_ours, of_tool, rtol=1e-6) == is_same, metric
        of_tool, with_convention, default = values(metric, labels, by_item)
        np.testing.assert_allclose(with_convention, of_tool, rtol=1e-6, err_msg=metric)
        if cell == "same, unless an item has weight 0":
            assert not np.isclose(default, of_tool, rtol=1e-6), metric


def _tolerances(call, tolerance):
    # The program for ERR, and for this NDCG, prints five digits.
    prints_five = call == "ERR@3" or "exp-log2" in call
    return {"rtol": tolerance, "atol": 5.1e-6 if prints_five else 1e-12}


def flat(values):
    """The numbers of a dict, of lists or arrays, or one number, as a list."""
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, list | tuple) or np.ndim(values):
        return [number for value in values for number in flat(value)]
    return [float(values)]
