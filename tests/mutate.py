r"""Mutation tests: changes the package in small ways and looks for a test that fails.

A change that no test notices is a survivor. It shows a missing test, code that nobody
needs, or another way to write the same.

    python tests/mutate.py ranking metrics compute/values.py   # these folders and files
    python tests/mutate.py --sample 100 --seed 1      # 100 mutants of all modules
    python tests/mutate.py --again --budget 300       # more tests for the survivors
    python tests/mutate.py --again --tests inputs     # only tests/test_inputs.py
    python tests/mutate.py beam --tests validation/test_beam.py    # where Beam is

The results are kept in a file, and another run goes on where the last one stopped.

First it runs all tests once and notes which lines each test runs. Then each mutant runs
the tests of its line, those that killed most mutants first. It has a process of its own,
forked from one that has imported TensorFlow, but has not run any operation: TensorFlow's
threads do not survive a fork.
"""

import argparse
import builtins
import collections
import gc
import hashlib
import importlib.machinery
import itertools
import json
import os
import pathlib
import random
import signal
import sys

import mutants

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "tfrankmetrics"
# Tests that run other processes, read documents or measure time are left out, and so
# are those with the marker `slow`.
TESTS = ["values", "ties", "extreme_values", "inputs", "input_formats", "properties"]
TESTS += ["conventions", "declarations", "own_metrics", "recommendation", "pitfalls"]
TESTS += ["graph", "keras", "state", "saved", "loading", "trec", "backends"]
TESTS += ["tf_ranking_values", "tie_range", "names", "judged", "propensity"]
TESTS += ["retrieval", "two_towers", "compare", "decisions", "runs", "slices"]
TESTS += [
    "callbacks",
    "backend_callbacks",
    "arrays",
    "items",
    "mistakes",
    "tables",
    "explain",
]
DEFAULT_TARGETS = ["ranking", "metrics", "inputs", "compute", "evaluation", "retrieval"]
DEFAULT_TARGETS += ["comparison", "columns", "results", "callbacks"]


class Run:
    """A pytest plugin: chooses tests, and notes lines, durations and failures."""

    def __init__(self, chosen=None):
        self.chosen, self.failed = chosen, None
        self.lines, self.durations = collections.defaultdict(set), collections.Counter()

    def pytest_collection_finish(self, session):
        import helpers

        if self.chosen is not None:
            helpers.clear_caches = helpers.calls._calls.cache_clear
            items = {item.nodeid: item for item in session.items}
            session.items[:] = [items[name] for name in self.chosen if name in items]

    def pytest_runtest_protocol(self, item, nextitem):
        if self.chosen is None:
            import helpers

            helpers.calls._calls.cache_clear()  # each test traces its own graphs
            builtins.note_line = self.lines[item.nodeid].add

    def pytest_runtest_logreport(self, report):
        self.durations[report.nodeid] += report.duration
        if report.failed:
            self.failed = report.nodeid


def run_tests(files, mutant=None, chosen=None):
    """Runs tests with a mutant in place of its module; without one, notes lines."""
    import pytest

    get_code = importlib.machinery.SourceFileLoader.get_code
    builtins.note_line = lambda line: None  # while modules are imported

    def replaced(self, fullname):
        path = pathlib.Path(self.path)
        if mutant is not None and path == mutant.path:
            return mutant.code()
        if mutant is None and path.is_relative_to(PACKAGE):
            return mutants.noting_lines(PACKAGE, path)
        return get_code(self, fullname)

    importlib.machinery.SourceFileLoader.get_code = replaced
    run = Run(chosen)
    # Plain asserts are faster than those that pytest rewrites.
    arguments = [
        "-o",
        "addopts=",
        "-m",
        "not slow",
        "--assert=plain",
        *(["-x"] if chosen else []),
    ]
    for plugin in ("cacheprovider", "xdist", "unraisableexception", "threadexception"):
        arguments += ["-p", f"no:{plugin}"]
    status = pytest.main([*arguments, *files], plugins=[run])
    return run, status


def in_a_fork(function, timeout):
    """The result of a function in a child process, or "timed out"."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        with os.fdopen(writing, "w") as pipe:
            json.dump(function(), pipe)
        os._exit(0)
    os.close(writing)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(int(timeout))
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    has_time_left = signal.alarm(0)
    os.waitpid(child, 0)
    if text:
        return json.loads(text)
    return "crashed" if has_time_left else "timed out"


def tests_by_line(files):
    """The durations of all tests, and the lines that each runs; kept in a file."""
    sources = b"".join(p.read_bytes() for p in [*sorted(PACKAGE.rglob("*.py")), *files])
    cache = ROOT / "build" / f"tests_{hashlib.sha256(sources).hexdigest()[:16]}.json"
    if not cache.exists():
        print("Running all tests once ...", flush=True)

        def run():
            run, _ = run_tests(map(str, files))
            lines = {name: [*each] for name, each in run.lines.items()}
            return [run.durations, lines, run.failed]

        result = in_a_fork(run, timeout=3600)
        if isinstance(result, str) or result[2]:
            failed = result if isinstance(result, str) else result[2]
            raise SystemExit(f"All tests must pass at first. Received: {failed}.")
        cache.parent.mkdir(exist_ok=True)
        cache.write_text(json.dumps(result))
    return json.loads(cache.read_text())[:2]


class Judge:
    """Decides what becomes of mutants, and learns which tests kill most of them."""

    def __init__(self, durations, lines, budget):
        self.durations, self.lines, self.budget = durations, lines, budget
        self.kills = collections.Counter()  # by each test, and by each file

    def result(self, mutant):
        """Killed (by which test), timed out, survived, or crashed."""
        tests = [t for t, each in self.lines.items() if mutant.lines & {*each}]
        tests = tests or [*self.durations]  # the line runs when it is imported
        tests.sort(key=lambda name: (-self.kills[name], -self._lines_per_second(name)))
        # To import all files takes seconds, so the best files come first.
        number = collections.Counter(map(file_of, tests))
        best = sorted(number, key=lambda file: (-self.kills[file], -number[file]))[:2]
        chosen = self._within(self.budget, tests)
        quick = self._within(3, [name for name in chosen if file_of(name) in best])
        rest = [name for name in chosen if name not in {*quick}]
        for part in filter(None, (quick, rest)):

            def failed(part=part):
                run, status = run_tests(sorted({*map(file_of, part)}), mutant, part)
                return [run.failed or "import"] if status else []

            seconds = sum(self.durations[name] for name in part)
            result = in_a_fork(failed, 20 + 3 * seconds)
            if isinstance(result, str):
                return {"result": result}
            if result:
                self.add(result[0])
                return {"result": "killed", "by": result[0]}
        return {"result": "survived", "tests": len(chosen), "of": len(tests)}

    def add(self, test):
        self.kills.update([test, file_of(test)])

    def _lines_per_second(self, name):
        return len(self.lines.get(name, ())) / (0.01 + self.durations[name])

    def _within(self, seconds, tests):
        total = itertools.accumulate(self.durations[name] for name in tests)
        return [name for name, so_far in zip(tests, total) if so_far <= seconds]


def file_of(test):
    """The file of a test."""
    return test.partition("::")[0]


def main():
    """Judges mutants and prints the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", default=DEFAULT_TARGETS)
    parser.add_argument("--sample", type=int, help="how many mutants, at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--budget", type=float, default=30, help="seconds per mutant")
    parser.add_argument(
        "--tests", nargs="+", default=TESTS, help="names, or paths, of test files"
    )
    parser.add_argument("--results", default="build/mutants.jsonl", help="a file")
    parser.add_argument("--again", action="store_true", help="judge survivors again")
    options, paths = parser.parse_args(), []
    os.chdir(ROOT)
    for target in options.targets:
        path = PACKAGE / target
        paths += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    places = [(path, number) for path in paths for number in range(mutants.count(path))]
    if options.sample:
        random.Random(options.seed).shuffle(places)
        del places[options.sample :]
    results, known = pathlib.Path(options.results), {}
    results.parent.mkdir(exist_ok=True)
    if results.exists():
        known = {(r := json.loads(line))["mutant"]: r for line in results.open()}
    files = [
        ROOT / name if name.endswith(".py") else ROOT / "tests" / f"test_{name}.py"
        for name in options.tests
    ]
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import hypothesis
    import hypothesis.extra.numpy
    import pytest  # noqa: F401
    import tensorflow as tf

    tf.keras.Model  # noqa: B018  imports Keras
    # A failed example is enough; a smaller one is not needed.
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
    hypothesis.settings.register_profile("mutate", phases=phases, database=None)
    hypothesis.settings.load_profile("mutate")
    gc.freeze()
    judge = Judge(*tests_by_line(files), options.budget)
    for found in known.values():
        judge.add(found.get("by", ""))

    table = collections.defaultdict(collections.Counter)
    for place in places:
        mutant = mutants.Mutant(PACKAGE, *place)
        found = known.get(mutant.name)
        if not found or (options.again and found["result"] == "survived"):
            found = {"mutant": mutant.name, **judge.result(mutant)}
            with results.open("a") as file:
                file.write(json.dumps(found) + "\n")
        table[mutant.module][found["result"]] += 1
        if found["result"] not in ("killed", "timed out"):
            print(*found.values(), flush=True)
    for module, numbers in table.items():
        print(f"{module:28} {numbers.total():5}  {dict(numbers)}")


if __name__ == "__main__":
    main()
