"""Runs the comparison of random lists with the oracle for a minute."""

import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).with_name("fuzz.py")


@pytest.mark.slow("draws random lists for a minute, eagerly, in graphs and under XLA")
def test_random_lists_have_the_values_of_the_oracle():
    process = subprocess.run(
        [sys.executable, SCRIPT, "--seconds", "60"], capture_output=True, text=True
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert "s without a finding:" in process.stdout
