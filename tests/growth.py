"""Checks that time and memory grow with the data, and not with their square."""

import ctypes
import gc
import math
import pathlib
import time

import numpy as np
import pytest

# Sorting twice the data takes a little more than twice as long, and a quadratic step
# four times.
MOST_GROWTH = 2.6
# Below these, fixed costs and noise hide what the data cost.
LEAST = 0.2, 32  # seconds, MiB
ATTEMPTS = 5
PEAK = pathlib.Path("/proc/self/clear_refs")  # of Linux


def require_growth_in_proportion(build, n):
    """Fails if the call that `build` returns takes more than it should for 2 * n."""
    calls = build(n), build(2 * n)
    for call in calls:  # the first call compiles
        call()
    lowest = np.full((2, 2), math.inf)
    for _ in range(ATTEMPTS):  # others use the machine, too
        lowest = np.minimum(lowest, [*map(cost_of, calls)])
        one, two = lowest
        if (two <= MOST_GROWTH * np.maximum(one, LEAST)).all():
            return
    raise AssertionError(f"seconds and MiB: {one}, for twice as much: {two}")


def with_error(call):
    """A call that must raise a ValueError, for a mistake in the data."""

    def fails():
        with pytest.raises(ValueError, match="Received: "):
            call()

    return fails


def cost_of(call):
    """The seconds of a call, and by how many MiB the memory of the process grows."""
    gc.collect()
    gc.disable()  # a collection takes longer the more there is in the process
    if PEAK.exists():
        ctypes.CDLL(None).malloc_trim(0)
        PEAK.write_text("5")  # the peak starts again
    before, start = memory("VmRSS"), time.process_time()
    call()
    seconds = time.process_time() - start
    gc.enable()
    return seconds, memory("VmHWM") - before


def memory(name):
    if not PEAK.exists():
        return 0
    status = pathlib.Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024
