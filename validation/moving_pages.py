"""Runs the code and checks the tables of the pages that use other tools."""

import contextlib
import io
import pathlib
import re

import numpy as np
import pytest

import tfrankmetrics as tfr

DOCS = pathlib.Path(__file__).parent.parent / "docs"
BLOCK = re.compile(
    r"^```(py|python)\n(.*?)^```\n+(?:^```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL
)
CODE = re.compile(r"`([^`]+)`")
NUMBER = re.compile(r"-?\d+\.\d+")


def run_page(name):
    """Runs all blocks of Python in order, those of the other tool included.

    Returns the namespace, and `theirs` and `ours` after each pair of blocks, or after a
    block of the other tool that sets both. One that sets neither and defines no
    function is a sketch and does not run.
    """
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    namespace, pairs, previous = {}, [], None
    for language, code, shown in BLOCK.findall(text):
        if language == "py" and "theirs" not in code and "def " not in code:
            continue
        printed = _run(code, name, namespace)
        if language == "python":
            _assert_same_text(printed, shown)
            if previous == "py" and "ours = " in code:
                pairs.append((namespace["theirs"], namespace["ours"]))
        elif "theirs, ours" in code:
            pairs.append((namespace["theirs"], namespace["ours"]))
        previous = language
    return namespace, pairs


def run_all_blocks(name):
    """Runs every block of Python in order, and compares what each prints."""
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    namespace = {}
    blocks = BLOCK.findall(text)
    assert blocks
    for _, code, shown in blocks:
        _assert_same_text(_run(code, name, namespace), shown)


def _run(code, name, namespace):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec"), namespace)
    return printed.getvalue()


def _assert_same_text(printed, shown):
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    numbers = [float(number) for number in NUMBER.findall(printed)]
    expected = [float(number) for number in NUMBER.findall(shown)]
    assert numbers == pytest.approx(expected, abs=1e-6)


def assert_pairs_agree(pairs, tolerance):
    """The values are in the same order, or have the same keys."""
    assert pairs
    for theirs, ours in pairs:
        if isinstance(theirs, dict) and theirs.keys() == ours.keys():
            ours = {key: ours[key] for key in theirs}
        np.testing.assert_allclose(_flat(ours), _flat(theirs), rtol=tolerance)


def assert_table_is_true(name, theirs, ours, tolerance):
    """Computes each row of the tables whose header ends in "without the convention".

    The last cell starts with "same" or "differs". The middle one is "none" if we have
    no such metric. `theirs` takes a call. `ours` takes a metric, the call, and whether
    to use the convention. A metric object has options of its own.
    """
    rows = _rows(name)
    assert len(rows) > 4
    for call, metric, is_same in rows:
        value = _flat(theirs(call))
        # The program for ERR prints five digits.
        close = {"rtol": tolerance, "atol": 5.1e-6 if call == "ERR@3" else 1e-12}
        is_object = metric.endswith(")")
        if is_object:
            metric = eval(metric, {**vars(tfr)})
        plain = _flat(ours(metric, call, False))
        assert np.allclose(plain, value, **close) == is_same, (call, plain, value)
        if not is_object:
            converted = _flat(ours(metric, call, True))
            np.testing.assert_allclose(converted, value, **close, err_msg=call)


def _rows(name):
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    rows, is_table = [], False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[-1] == "without the convention":
            is_table = True
        elif not line.startswith("|"):
            is_table = False
        elif is_table and not line.startswith("|---"):
            is_compared = cells[1] != "none" and cells[0] != "`GAUC`"
            if is_compared:
                assert cells[2].startswith(("same", "differs")), line
                theirs, ours = (CODE.findall(cell)[0] for cell in cells[:2])
                rows.append((theirs, ours, cells[2].startswith("same")))
    return rows


def _flat(values):
    """The numbers of a dict, of lists, or one number, as a list."""
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, list | tuple):
        return [number for value in values for number in _flat(value)]
    return [float(values)]
