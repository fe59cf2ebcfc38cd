"""Compares published numbers with this library's, and with `docs/published.csv`."""

import csv

import pytest
from published import (
    ALWAYS,
    DATA,
    EVERYTHING,
    FILE,
    HAS_MODELS,
    HEADER,
    OF_DATA,
    OF_MODELS,
    PAGE,
)


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


def read():
    """The rows of the file, each with its number."""
    with FILE.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == HEADER
    return [*zip(rows, EVERYTHING, strict=True)]


def test_the_file_has_every_number():
    for (source, what, printed, ours), number in read():
        assert (source, what, printed) == (number.section, number.what, number.printed)
        assert number.error(float(ours)) <= number.noise


def test_the_page_sums_up_the_file():
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    counts, errors = {}, []
    for (source, _, printed, ours), number in read():
        is_equal = number.error(float(ours)) == 0
        of_source = counts.setdefault(source, [0, 0])
        of_source[0] += 1
        of_source[1] += is_equal
        if not is_equal:
            assert number.noise > 0
            errors.append(abs(float(ours) - float(printed)))
    for source, (every, equal) in counts.items():
        assert f"| {source} | {every} | {equal} |" in text
        assert f"* **{source}** " in text
    every, equal = (sum(numbers) for numbers in zip(*counts.values(), strict=True))
    link = f"[{every} published numbers](published.csv)"
    start = f"Of {link}, tfrankmetrics reproduces {equal} in every"
    assert f"{start} printed digit" in text
    assert len(errors) == 4  # "The other four", in the text
    assert f"They differ by {max(errors):.4f} at most" in text
