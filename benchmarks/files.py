"""Compares the command with ir_measures and trec_eval, on runs of up to 10^7 lines.

Each measurement is a process of its own, since memory is measured, too. The figures are
CPU seconds of all threads, with the start of Python and the imports, and the largest
memory. All tools compute the same three metrics, with tied documents in the order of
trec_eval; a tool that prints another value ends the benchmark. pyarrow is hidden where
the name says so. `evaluate_run` reads the same run from frames and from a dict; these
figures are those of the call alone. In an environment with tfrankmetrics, ir_measures,
pandas, polars and pyarrow, run it with the path of a compiled trec_eval, if any:

    python benchmarks/files.py [trec_eval]
"""

import importlib.util
import json
import os
import pathlib
import resource
import runpy
import subprocess
import sys
import tempfile
import time

import numpy as np
from report import Target, publish
from timing import median_and_spread

DOCUMENTS = 8_841_823  # as in MS MARCO
LENGTH, JUDGED = 1000, 50  # documents for each query
REPEATS = 5
DISTINCT = "10^6 lines, 945,000 different documents"
# The numbers of queries and of documents, whether lines are shuffled, and repeats.
CASES = {
    DISTINCT: (1000, DOCUMENTS, False, REPEATS),
    "the same, shuffled": (1000, DOCUMENTS, True, REPEATS),
    "10^6 lines, 10,000 different documents": (1000, 10_000, False, REPEATS),
    "10^7 lines, 6,000,000 different documents": (10_000, DOCUMENTS, False, 1),
}
OURS, PLAIN = "tfrankmetrics", "tfrankmetrics without pyarrow"
IR = "ir_measures"
NAMES = {
    OURS: ["ndcg@10", "map", "recall@100"],
    IR: ["nDCG@10", "AP", "R@100"],
    "trec_eval": ["ndcg_cut.10", "map", "recall.100"],
}


def write_files(folder, queries, documents, *, shuffled):
    """Judgments and a run, with scores of four decimals, some of them tied."""
    rng = np.random.default_rng(0)
    lines, judgments = [], []
    for query in range(queries):
        found = rng.choice(documents, LENGTH, replace=False)
        scores = -np.sort(-rng.random(LENGTH).round(4) * 30)
        lines += [
            f"{query} Q0 {document} {rank} {score:.4f} tag\n"
            for rank, (document, score) in enumerate(zip(found, scores, strict=True), 1)
        ]
        judged = np.unique(np.append(found[:20], rng.choice(documents, JUDGED - 20)))
        grades = rng.choice([0, 0, 1, 2, 3], len(judged))
        judgments += [
            f"{query} 0 {d} {grade}\n" for d, grade in zip(judged, grades, strict=True)
        ]
    if shuffled:
        rng.shuffle(lines)
    paths = [pathlib.Path(folder) / name for name in ("qrels", "run")]
    for path, text in zip(paths, (judgments, lines), strict=True):
        path.write_text("".join(text))
    return [*map(str, paths)]


def measured(command):
    """The CPU seconds and megabytes of a process, and what it prints."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3, output


def commands(files, trec_eval):
    """The command of each tool."""
    flags = {
        tool: [part for name in names for part in ("-m", name)]
        for tool, names in NAMES.items()
    }
    ours = [*files, *flags[OURS], "--convention", "trec_eval"]
    found = {
        OURS: [sys.executable, "-m", "tfrankmetrics", *ours],
        PLAIN: [sys.executable, __file__, "--without-pyarrow", *ours],
        IR: [sys.executable, "-m", IR, *files, *NAMES[IR]],
    }
    if trec_eval:
        found["trec_eval (C)"] = [trec_eval, *flags["trec_eval"], *files]
    return found


def values_of(output):
    """The three values that a tool prints, in any order."""
    return sorted(float(line.split()[-1]) for line in output.splitlines())


def compare_commands(files, trec_eval, repeats):
    """The CPU seconds and megabytes of each tool; they take turns."""
    found, printed = {}, {}
    for _ in range(repeats):
        for name, command in commands(files, trec_eval).items():
            *figures, output = measured(command)
            found.setdefault(name, []).append(figures)
            printed[name] = values_of(output)
    for name, values in printed.items():
        np.testing.assert_allclose(values, printed[OURS], atol=1e-4, err_msg=name)
    return {name: np.transpose(of) for name, of in found.items()}


def compare_tables(files):
    """The CPU seconds and the additional megabytes of `evaluate_run` on each kind."""
    rows = [["", "CPU s", "additional MB"]]
    for kind in ("polars", "Arrow", "pandas", "dict of dicts"):
        command = [sys.executable, __file__, "--table", kind, *files]
        found = [json.loads(measured(command)[2]) for _ in range(REPEATS)]
        seconds, megabytes = np.transpose(found)
        rows.append([kind, median_and_spread(seconds), f"{np.median(megabytes):.0f}"])
        print(*rows[-1], sep="  ", flush=True)
    return rows


def call_of_tables(kind, *paths):
    """Prints the CPU seconds and the megabytes of `evaluate_run` in this process."""
    import pandas
    import polars
    import pyarrow

    import tfrankmetrics as trm

    convert = {"polars": polars.from_pandas, "Arrow": pyarrow.Table.from_pandas}
    tables = []
    for path, value, place in zip(paths, ("label", "score"), (3, 4), strict=True):
        table = pandas.read_csv(path, sep=" ", header=None, dtype={0: str, 2: str})
        table = table[[0, 2, place]].set_axis(["query_id", "item_id", value], axis=1)
        if kind == "dict of dicts":
            of_queries = {}
            for query, item, number in table.itertuples(index=False):
                of_queries.setdefault(query, {})[item] = number
            table = of_queries
        tables.append(convert.get(kind, lambda table: table)(table))
    names = NAMES[OURS]
    trm.evaluate_run({"q": {"d": 1}}, {"q": ["d"]}, names)  # imports what it needs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = time.process_time()
    trm.evaluate_run(*tables, names, convention="trec_eval")
    seconds = time.process_time() - seconds
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([seconds, (after - before) / 1e3]))


def command_without_pyarrow(*arguments):
    """Runs our command as if pyarrow was not installed."""
    find = importlib.util.find_spec
    importlib.util.find_spec = lambda name, *rest: (
        None if name == "pyarrow" else find(name, *rest)
    )
    sys.argv = [OURS, *arguments]
    runpy.run_module(OURS, run_name="__main__")


def main(trec_eval=None):
    """Measures all cases and publishes the results."""
    tables, targets = {}, []
    for case, (queries, documents, shuffled, repeats) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            files = write_files(folder, queries, documents, shuffled=shuffled)
            found = compare_commands(files, trec_eval, repeats)
            tables[f"The command: {case}"] = [["", "CPU s", "MB"]] + [
                [name, median_and_spread(seconds), f"{np.median(megabytes):.0f}"]
                for name, (seconds, megabytes) in found.items()
            ]
            print(case, tables[f"The command: {case}"], flush=True)
            if case == DISTINCT:
                tables[f"`evaluate_run`: {case}"] = compare_tables(files)
        medians = {name: np.median(of, axis=1) for name, of in found.items()}
        what = f"CPU seconds: ir_measures / ours, {case}"
        ratio = medians[IR][0] / medians[OURS][0]
        targets.append(Target.at_least(1, what, ratio))
        if case == DISTINCT:
            targets += [
                Target.at_most(limit, f"{unit} of {name}, {case}", medians[name][row])
                for name, unit, row, limit in (
                    (OURS, "CPU seconds", 0, 1.2),
                    (PLAIN, "CPU seconds", 0, 2.5),
                    (OURS, "MB", 1, 250),
                )
            ]
    packages = ["ir-measures", "pytrec-eval-terrier", "pandas", "polars", "pyarrow"]
    publish("files", "Files of a million lines", packages, tables, targets)


if __name__ == "__main__":
    modes = {"--table": call_of_tables, "--without-pyarrow": command_without_pyarrow}
    mode = modes.get(sys.argv[1]) if sys.argv[1:] else None
    main(*sys.argv[1:]) if mode is None else mode(*sys.argv[2:])
