"""Runs the code of a page, and compares what it prints with what the page shows."""

import contextlib
import io
import linecache
import re

import pytest

NUMBER = re.compile(r"-?\d+\.\d+")
SHOWN = r"```\n+(?:^```text\n(?P<shown>.*?)^```)?"


def read_section(path, section=None):
    """A page, or its introduction and the section below one heading."""
    text = path.read_text(encoding="utf-8")
    if section is None:
        return text
    introduction, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    (found,) = (each for each in sections if each.startswith(f"## {section}\n"))
    return introduction + found


def blocks_of(path, language="python", section=None, containing=""):
    """The blocks of a page as matches, with their `code` and the output `shown`."""
    block = re.compile(rf"^```{language}\n(?P<code>.*?)^{SHOWN}", re.M | re.S)
    found = block.finditer(read_section(path, section))
    chosen = [each for each in found if containing in each["code"]]
    assert chosen
    return chosen


def run_blocks(path, language="python", section=None, containing="", names=None):
    """Runs the blocks of a page in order. The text block below each is its output.

    The code may use `names`. Returns these and those that the blocks define.
    """
    namespace = {} if names is None else names
    for number, part in enumerate(blocks_of(path, language, section, containing)):
        printed = run_block(part["code"], f"{path.name}, block {number}", namespace)
        # The values of trained models differ slightly between machines.
        tolerance = 0.02 if "fit(" in part["code"] else 1e-12
        assert_prints(printed, part["shown"], tolerance)
    return namespace


def run_block(code, name, namespace):
    """What a block of code prints."""
    # TensorFlow reads the source of functions. In the page, it would find other lines.
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec"), namespace)
    return printed.getvalue()


def assert_prints(printed, shown, tolerance):
    """The text must be the same, but for small differences of its numbers."""
    shown = shown or ""
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
    numbers = [float(number) for number in NUMBER.findall(printed)]
    expected = [float(number) for number in NUMBER.findall(shown)]
    assert numbers == pytest.approx(expected, abs=tolerance)
