"""Compares published numbers with this library's, and with `docs/published.md`."""

import re

import pytest
from published import ALWAYS, DATA, HAS_MODELS, OF_DATA, OF_MODELS, PAGE

EVERYTHING = [*ALWAYS, *OF_DATA, *OF_MODELS]


@pytest.mark.parametrize("number", ALWAYS, ids=str)
def test_numbers(number):
    assert number.agrees()


@pytest.mark.skipif(DATA is None, reason="needs the folder PUBLISHED_DATA")
@pytest.mark.parametrize("number", OF_DATA, ids=str)
def test_numbers_from_data(number):
    assert number.agrees()


@pytest.mark.skipif(not HAS_MODELS, reason="needs recommenders and recbole")
@pytest.mark.parametrize("number", OF_MODELS, ids=str)
def test_numbers_of_models(number):
    assert number.agrees()


def test_the_page_shows_every_number():
    rows = re.findall(
        r"^\| (.+?) \| ([-.\d]+) \| ([-.\d]+) \|$", PAGE.read_text(), re.M
    )
    assert [row[:2] for row in rows] == [(n.what, n.printed) for n in ordered()]
    for (_, printed, shown), number in zip(rows, ordered(), strict=True):
        half = 0.5 * 10.0**-number.digits
        assert abs(float(shown) - float(printed)) <= half * 1.000001 + number.noise


def ordered():
    """All numbers in the order of the sections of the page."""
    sections = re.findall(r"<!-- published: (.+?) -->", PAGE.read_text())
    assert {*sections} == {number.section for number in EVERYTHING}
    return [n for section in sections for n in EVERYTHING if n.section == section]
