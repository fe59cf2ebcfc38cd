"""Some rounds of the random tests of `fuzz.py`. `make fuzz` runs more."""

import collections
import pathlib
import subprocess
import sys

import fuzz
import fuzz_tables
import numpy as np
import pytest

FOLDER = pathlib.Path(__file__).parent


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.usefixtures("run_eagerly")
def test_random_lists(seed):
    rng, small = np.random.default_rng(seed), {"queries": 40, "batches": 2}
    with fuzz.warnings_as_errors():
        fuzz.check_lists(rng, collections.Counter(), ways=["eagerly"], **small)


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("check", [fuzz_tables.check_run, fuzz_tables.check_compare])
def test_random_tables(check, seed):
    with fuzz.warnings_as_errors():
        check(np.random.default_rng(seed), collections.Counter())


@pytest.mark.slow("draws random data for 15 seconds, also in graphs and under XLA")
def test_some_rounds():
    command = [sys.executable, FOLDER / "fuzz.py", "--seconds", "15"]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "s without a finding:" in process.stdout
