"""Records every comparison and prints a table of them at the end of a run."""

import collections
import importlib.metadata
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import pytest

COLUMNS = ("tool", "convention", "metric", "values", "largest difference")


@pytest.fixture
def compare(record_property):
    """Asserts that two sets of numbers agree, and adds them to the table."""

    def assert_equal(package, convention, metric, ours, theirs, **tolerance):
        ours, theirs = np.atleast_1d(ours), np.atleast_1d(theirs)
        np.testing.assert_allclose(ours, theirs, **tolerance)
        assert np.isfinite(ours).all()
        tool = f"{package} {importlib.metadata.version(package)}"
        difference = float(np.max(np.abs(ours - theirs)))
        record_property("compared", [tool, convention, metric, ours.size, difference])

    return assert_equal


def pytest_terminal_summary(terminalreporter):
    compared = collections.defaultdict(lambda: [0, 0.0])
    for report in terminalreporter.stats.get("passed", ()):
        for name, entry in report.user_properties:
            if name == "compared":
                tool, convention, metric, number, difference = entry
                row = compared[tool, convention, metric]
                row[0] += number
                row[1] = max(row[1], difference)
    rows = [COLUMNS]
    for (tool, convention, metric), (number, difference) in compared.items():
        rows.append((tool, convention, metric, f"{number:,}", f"{difference:.1e}"))
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    terminalreporter.section("tfrankmetrics compared with other tools")
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        terminalreporter.write_line("  ".join(cells).rstrip())
