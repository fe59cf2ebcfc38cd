"""Fair timing of functions in one process."""

import time

import numpy as np


def timed(functions, seconds=3.0, least=7):
    """Milliseconds of each call, by name: the functions take turns, after a warm-up.

    Machines get slower and faster by the minute. Whoever takes turns is slowed
    alike, so the ratios hold where the times do not.
    """
    for function in functions.values():
        function()
        function()
    times = {name: [] for name in functions}
    start = time.perf_counter()
    while (
        len(times[next(iter(times))]) < least or time.perf_counter() - start < seconds
    ):
        for name, function in functions.items():
            before = time.perf_counter()
            function()
            times[name].append(1000 * (time.perf_counter() - before))
    return {name: np.array(of) for name, of in times.items()}


def median_and_spread(milliseconds):
    """The median, and half of the range in which the middle half of all is."""
    low, median, high = np.percentile(milliseconds, [25, 50, 75])
    spread = float(f"{(high - low) / 2:.1g}")  # 10, not 1e+01
    return f"{median:.3g} ± {spread:g}"


def ratio(times, above, below):
    """The ratio of two medians."""
    return float(np.median(times[above]) / np.median(times[below]))
