"""Fair timing of functions in one process."""

import time

import numpy as np

QUICK = 0.1  # seconds


def timed(functions, seconds=3.0, least=7):
    """Milliseconds of each call, by name: the functions take turns, after a warm-up.

    Machines get slower and faster by the minute. Whoever takes turns is slowed
    alike, so the ratios hold where the times do not. A quick function is called twice
    in its turn and only the second call counts, since the first finds the caches of
    the processor as another function left them.
    """
    quick = set()
    for name, function in functions.items():
        function()
        if _seconds(function) < QUICK:
            quick.add(name)
    times = {name: [] for name in functions}
    start = time.perf_counter()
    while (
        len(times[next(iter(times))]) < least or time.perf_counter() - start < seconds
    ):
        for name, function in functions.items():
            if name in quick:
                function()
            times[name].append(1000 * _seconds(function))
    return {name: np.array(of) for name, of in times.items()}


def _seconds(function):
    """How long a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def median_and_spread(milliseconds):
    """The median, and half of the range in which the middle half of all is."""
    low, median, high = np.percentile(milliseconds, [25, 50, 75])
    return f"{median:.3g} ± {(high - low) / 2:.1g}"


def ratio(times, above, below):
    """The ratio of two medians."""
    return float(np.median(times[above]) / np.median(times[below]))
