"""Checks that time and memory grow with the data, and not with their square."""

import ctypes
import gc
import math
import pathlib
import time

import pytest

# Sorting twice the data takes a little more than twice as long, and a quadratic step
# four times.
MOST_GROWTH = 2.6
# Below these, fixed costs and noise hide what the data cost.
LEAST_SECONDS, LEAST_MIB = 0.2, 32
ATTEMPTS = 5
PEAK = pathlib.Path("/proc/self/clear_refs")  # of Linux


def require_growth_in_proportion(build, n):
    """Fails if the call that `build` returns takes more than it should for 2 * n."""
    calls = build(n), build(2 * n)
    for call in calls:  # the first call compiles
        call()
    for measure, least in ((seconds_of, LEAST_SECONDS), (peak_of, LEAST_MIB)):
        lowest = [math.inf, math.inf]
        for _ in range(ATTEMPTS):  # others use the machine, too
            lowest = [min(*pair) for pair in zip(lowest, map(measure, calls))]
            is_small = lowest[1] <= MOST_GROWTH * max(lowest[0], least)
            if is_small:
                break
        assert is_small, lowest


def with_error(call):
    """A call that must raise a ValueError, for a mistake in the data."""

    def fails():
        with pytest.raises(ValueError, match="Received: "):
            call()

    return fails


def seconds_of(call):
    gc.collect()
    gc.disable()  # a collection takes longer the more there is in the process
    start = time.process_time()
    call()
    seconds = time.process_time() - start
    gc.enable()
    return seconds


def peak_of(call):
    """How much the memory of the process grows during a call, in MiB; 0 elsewhere."""
    if not PEAK.exists():
        return 0
    ctypes.CDLL(None).malloc_trim(0)
    PEAK.write_text("5")  # the peak starts again
    before = memory("VmRSS")
    call()
    return memory("VmHWM") - before


def memory(name):
    status = pathlib.Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024
