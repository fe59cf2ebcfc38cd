"""Small rounds of the random tests of `fuzz.py`. `make fuzz` also draws them in graphs."""

import collections

import fuzz
import fuzz_tables
import numpy as np
import pytest


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
