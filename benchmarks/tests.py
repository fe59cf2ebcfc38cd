"""Measures a run of the tests: time, memory and the slowest tests.

    python benchmarks/tests.py              # the tests of `make test`
    python benchmarks/tests.py -m slow      # any arguments of pytest

It starts the run and waits for it, so that the operating system reports the CPU time of
all its processes and the peak memory of the largest one, which is a worker.
"""

import resource
import subprocess
import sys
import time


def main():
    """Runs the tests and prints what they took."""
    command = [sys.executable, "-m", "pytest", "-n", "auto", "--durations=10"]
    start = time.perf_counter()
    run = subprocess.run([*command, *sys.argv[1:]])
    wall = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 1 if sys.platform == "darwin" else 1024  # macOS reports bytes
    print(f"wall time                    {wall:7.0f} s")
    print(f"CPU time                     {used.ru_utime + used.ru_stime:7.0f} s")
    print(f"memory of the largest worker {used.ru_maxrss * unit / 1e9:7.2f} GB")
    sys.exit(run.returncode)


if __name__ == "__main__":
    main()
