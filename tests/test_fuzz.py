"""Runs the comparisons of random data with slow definitions, for a while each."""

import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent


@pytest.mark.slow(
    "draws random data for half a minute, eagerly, in graphs and under XLA"
)
@pytest.mark.parametrize(("script", "seconds"), [("fuzz", 30), ("fuzz_tables", 10)])
def test_random_data_have_the_values_of_slow_definitions(script, seconds):
    command = [sys.executable, FOLDER / f"{script}.py", "--seconds", str(seconds)]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "s without a finding:" in process.stdout
