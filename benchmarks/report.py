"""What the benchmarks measured, as one page: benchmarks/results/README.md.

Each benchmark keeps its figures in a file of its own, since not all of the tools can be
installed side by side; the page is made of all of them.
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
HEAD = """# What was measured

Medians, with half of the range in which the middle half of all runs lies; whatever is
compared ran in one process, in turns. Times depend on the machine, ratios less so.
[How it was measured](../README.md), and why the ratios in bold miss their targets.
"""


class Target(NamedTuple):
    """What a ratio should be at most, or at least, and what it was."""

    what: str
    bound: str
    limit: float
    reached: float

    @classmethod
    def at_most(cls, limit, what, reached):
        """A ratio that must not be above the limit."""
        return cls(what, "at most", limit, reached)

    @classmethod
    def at_least(cls, limit, what, reached):
        """A ratio that must not be below the limit."""
        return cls(what, "at least", limit, reached)

    def row(self):
        """Its row in a table."""
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
    """Keeps the figures of a benchmark and writes the page anew.

    Args:
        name: The name of its file.
        title: What was measured.
        packages: Those whose versions matter.
        tables: Lists of rows by heading; the first row is the head.
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


def write_page():
    """Writes the page of all benchmarks."""
    parts = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(RESULTS.glob("*.json"), reverse=True)  # training first
    ]
    page = [
        HEAD,
        "## Targets\n\n"
        "A ratio in bold misses its target. Unless it says otherwise, no scores "
        "tie. Of all sizes it is the worst.\n",
    ]
    for part in parts:
        if part["targets"]:
            head = ["ratio", "target", "reached"]
            page += [f"### {part['title']}\n", _table([head, *part["targets"]])]
    for part in parts:
        page += [f"## {part['title']}\n", part["circumstances"] + "\n"]
        if part["plot"]:
            page.append(f"![{part['title']}]({part['plot']})\n")
        for heading, rows in part["tables"].items():
            page += [f"### {heading}\n", _table(rows)]
    (RESULTS / "README.md").write_text("\n".join(page), encoding="utf-8")


def _table(rows):
    """A Markdown table of rows, the first of which is the head."""
    rows = [[str(cell) for cell in row] for row in rows]
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def _circumstances(packages):
    """Date, commit, machine and versions, in a line."""
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
    """What git answers."""
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=RESULTS, capture_output=True, text=True, check=True
    ).stdout.strip()
