"""Writes the results of all benchmarks to one page, benchmarks/results/README.md.

Each benchmark saves its figures in its own file, because some of the tools cannot be
installed in one environment. The page combines these files.
"""

import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import subprocess
from typing import NamedTuple

RESULTS = pathlib.Path(__file__).parent / "results"
HEAD = """# Benchmark results

Each figure is a median ± half the interquartile range. The tools in a comparison ran in
one process and took turns. Times depend on the machine; ratios depend on it less.
[The benchmarks' README](../README.md) describes the method and explains why some ratios
miss their targets. In the tables, "ours" is tfrankmetrics.
"""


class Target(NamedTuple):
    """An upper or lower limit for a ratio, and the measured ratio."""

    what: str
    bound: str
    limit: float
    reached: float

    @classmethod
    def at_most(cls, limit, what, reached):
        """A target for a ratio that must not exceed the limit."""
        return cls(what, "at most", limit, reached)

    @classmethod
    def at_least(cls, limit, what, reached):
        """A target for a ratio that must not fall below the limit."""
        return cls(what, "at least", limit, reached)

    def row(self):
        """The target's row in a table."""
        is_met = (
            self.reached <= self.limit
            if self.bound == "at most"
            else self.reached >= self.limit
        )
        reached = f"{self.reached:.3g}"
        return [
            self.what,
            f"{self.bound} {self.limit:.3g}",
            reached if is_met else f"**{reached}**",
        ]


def publish(name, title, packages, tables, targets=(), plot=None):
    """Saves the figures of a benchmark and rewrites the page.

    Args:
        name: The file name, without a suffix.
        title: The title of the benchmark's section.
        packages: The packages whose versions are listed.
        tables: A list of rows for each heading. The first row holds the column names.
        targets: A `Target` for each ratio that has one.
        plot: A matplotlib figure, or None.
    """
    RESULTS.mkdir(exist_ok=True)
    if plot is not None:
        plot.savefig(RESULTS / f"{name}.png", dpi=120)
    figures = {
        "title": title,
        "circumstances": _circumstances(packages),
        "targets": [target.row() for target in targets],
        "tables": tables,
        "plot": f"{name}.png" if plot is not None else None,
    }
    text = json.dumps(figures, indent=1, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    write_page()


def plot_bars(rows, label, size):
    """A figure of bars for the medians in a table: a group for each row."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns, rows = [name for name in rows[0] if name and "/" not in name], rows[1:]
    figure, axis = plt.subplots(figsize=size, layout="constrained")
    width = 0.8 / len(columns)
    for number, name in enumerate(columns):
        medians = [float(row[1 + number].split()[0]) for row in rows]
        places = [place + width * (number + 0.5) - 0.4 for place in range(len(rows))]
        axis.barh(places, medians, width, label=name)
    axis.set_yticks(range(len(rows)), [row[0] for row in rows])
    axis.invert_yaxis()
    axis.set_xlabel(label)
    axis.legend()
    return figure


def write_page():
    """Writes the page of all benchmarks."""
    parts = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(RESULTS.glob("*.json"), reverse=True)  # training first
    ]
    page = [
        HEAD,
        "## Targets\n\n"
        "A ratio in bold misses its target. Scores are not tied unless the row says "
        "so. A row for all sizes shows the worst size.\n",
    ]
    for part in parts:
        if part["targets"]:
            head = ["ratio", "target", "measured"]
            page += [f"### {part['title']}\n", _table([head, *part["targets"]])]
    for part in parts:
        page += [f"## {part['title']}\n", part["circumstances"] + "\n"]
        if part["plot"]:
            page.append(f"![{part['title']}]({part['plot']})\n")
        for heading, rows in part["tables"].items():
            page += [f"### {heading}\n", _table(rows)]
    (RESULTS / "README.md").write_text("\n".join(page), encoding="utf-8")


def _table(rows):
    """A Markdown table. The first row holds the column names."""
    rows = [[str(cell) for cell in row] for row in rows]
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def _circumstances(packages):
    """One line with the date, commit, machine and versions."""
    commit = _git("rev-parse", "--short", "HEAD")
    if _git("status", "--porcelain", "--", ":/*.py"):
        commit += " with changes"
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in packages
    )
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    model = re.search(
        r"model name\s*: (.+)", cpuinfo.read_text() if cpuinfo.exists() else ""
    )
    machine = model.group(1) if model else platform.machine()
    return (
        f"{datetime.date.today()}, commit {commit}, {os.cpu_count()} cores "
        f"({machine}), Python {platform.python_version()}, {versions}."
    )


def _git(*arguments):
    """The output of a git command."""
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=RESULTS, capture_output=True, text=True, check=True
    ).stdout.strip()
