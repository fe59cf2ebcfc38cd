"""Compares published numbers with this library's, and with `docs/published.md`."""

import re

import pytest
from published import ALWAYS, DATA, HAS_MODELS, OF_DATA, OF_MODELS, PAGE, updated


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
    page = PAGE.read_text("utf-8")
    assert updated(page) == page, "Run `python validation/published.py`."
    shown = re.findall(r"<!-- published: (.+?) -->", page)
    assert {*shown} == {each.table for each in (*ALWAYS, *OF_DATA, *OF_MODELS)}
