"""Times several functions fairly in one process."""

import time

import numpy as np


def timed(functions, seconds=3.0, least=7, clock=time.perf_counter, warm_ups=2):
    """The milliseconds of each call, by function name.

    The clock `time.process_time` counts those of all cores.

    After a warm-up, the functions take turns. The speed of a machine changes over
    minutes. With turns, a change affects all functions alike, so ratios are more
    reliable than times.
    """
    for function in functions.values():
        for _ in range(warm_ups):
            function()
    times = {name: [] for name in functions}
    start = time.perf_counter()
    while (
        len(times[next(iter(times))]) < least or time.perf_counter() - start < seconds
    ):
        for name, function in functions.items():
            before = clock()
            function()
            times[name].append(1000 * (clock() - before))
    return {name: np.array(of) for name, of in times.items()}


def median_and_spread(milliseconds):
    """The median, and half the interquartile range."""
    low, median, high = np.percentile(milliseconds, [25, 50, 75])
    spread = float(f"{(high - low) / 2:.1g}")  # 10, not 1e+01
    return f"{float(f'{median:.3g}'):g} ± {spread:g}"


def ratio(times, above, below):
    """The ratio of two medians."""
    return float(np.median(times[above]) / np.median(times[below]))
