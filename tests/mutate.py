"""Mutation tests: changes the package in small ways and looks for a test that fails.

A change that no test notices is a survivor. It shows a missing test, code that nobody
needs, or another way to write the same.

    python tests/mutate.py ranking metrics compute/values.py   # these folders and files
    python tests/mutate.py --sample 100 --seed 1      # 100 mutants of all modules
    python tests/mutate.py inputs --tests inputs      # only tests/test_inputs.py
    python tests/mutate.py beam --tests validation/test_beam.py    # where Beam is

First it runs all tests once and notes which functions each test calls. Then each mutant
runs the tests of its function, those that killed most mutants first. It has a process of
its own, forked from one that has imported TensorFlow, but has not run any operation:
TensorFlow's threads do not survive a fork.
"""

import argparse
import ast
import collections
import copy
import gc
import importlib.machinery
import json
import os
import pathlib
import random
import signal
import sys

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "tfrankmetrics"
# These run other processes, read documents or measure time.
LEFT_OUT = ["backend_callbacks", "backends", "call_map", "command", "cost"]
LEFT_OUT += ["distribution", "docs", "growth", "keras_backends", "layers"]
LEFT_OUT += ["notebooks", "project"]
TESTS = sorted(path.stem.removeprefix("test_") for path in ROOT.glob("tests/test_*.py"))
TESTS = [name for name in TESTS if name not in LEFT_OUT]
# Seconds of tests: of one mutant, and those of the best file, which run first.
SECONDS, FIRST_SECONDS = 30, 3

# What replaces what, in both directions.
PAIRS = [(ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq)]
PAIRS += [(ast.Is, ast.IsNot), (ast.In, ast.NotIn), (ast.And, ast.Or)]
PAIRS += [(ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitAnd, ast.BitOr)]
PAIRS += [("reduce_sum", "reduce_max"), ("reduce_any", "reduce_all"), ("min", "max")]
PAIRS += [("minimum", "maximum"), ("equal", "not_equal"), ("any", "all")]
PAIRS += [("ones_like", "zeros_like"), ("cumsum", "cumprod")]
OTHER = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])}
# In one direction.
OTHER |= {ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult}
OTHER |= {"reduce_min": "reduce_max", "divide_no_nan": "multiply"}

NEGATIONS = (ast.Not, ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
TEXTS = {"__repr__", "__str__", "rule", "listed", "shortened", "did_you_mean"}


def changes(node):
    """The small changes of a node, as new nodes."""

    def with_(**fields):
        new = copy.copy(node)
        vars(new).update(fields)
        return new

    match node:
        case ast.Constant(value=bool(value)):
            yield with_(value=not value)
        case ast.Constant(value=int() | float() as value):
            yield with_(value=value + 1)
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                if type(op) in OTHER:
                    yield with_(ops=[*ops[:i], OTHER[type(op)](), *ops[i + 1 :]])
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in OTHER:
            yield with_(op=OTHER[type(op)]())
        case ast.AugAssign(op=op):
            yield with_(op=OTHER[type(op)]())
            yield ast.Pass()
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub(), operand=operand):
            yield operand
        case ast.Name(id=name, ctx=ast.Load()) if name in OTHER:
            yield with_(id=OTHER[name])
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in OTHER:
            yield with_(attr=OTHER[name])
        case ast.Call(
            func=ast.Attribute(attr="where") | ast.Name(id="select"), args=[a, b, c]
        ):
            yield with_(args=[a, c, b])
        case ast.If(test=test) | ast.IfExp(test=test):
            ops = getattr(test, "ops", [getattr(test, "op", None)])
            if not isinstance(ops[0], NEGATIONS):  # else the test itself is negated
                yield with_(test=ast.UnaryOp(ast.Not(), test))
        case ast.comprehension(ifs=[test]):
            yield with_(ifs=[ast.UnaryOp(ast.Not(), test)])
        case ast.Raise() | ast.Expr(value=ast.Call()) | ast.Continue():
            yield ast.Pass()


class Change(ast.NodeTransformer):
    """Makes one change: the one with this number."""

    def __init__(self, number=None):
        self.number, self.count = number, 0
        self.function = self.before = self.after = None

    def visit(self, node):
        if is_text(node):
            return node
        for new in changes(node):
            if self.count == self.number:
                self.count, self.before, self.after = self.count + 1, node, new
                return ast.copy_location(new, node)
            self.count += 1
        outer = self.function
        if isinstance(node, ast.FunctionDef):
            lines = [each.lineno for each in (node, *node.decorator_list)]
            self.function = outer if self.before else min(lines)
        if isinstance(node, ast.AnnAssign):
            node.value = node.value and self.visit(node.value)
        elif not isinstance(node, (ast.Raise, ast.arg)):  # errors, and annotations
            returns = node.__dict__.pop("returns", None)
            self.generic_visit(node)
            if isinstance(node, ast.FunctionDef):
                node.returns = returns
        if not self.before:
            self.function = outer
        return node


def is_text(node):
    """Whether a node is for people or for type checkers."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    is_text = isinstance(node, (ast.JoinedStr, ast.Import, ast.ImportFrom))
    return is_text or getattr(node, "name", None) in TEXTS


def count(path):
    """How many changes of a module there are."""
    change = Change()
    change.visit(ast.parse(path.read_text("utf-8")))
    return change.count


class Mutant:
    """A module with one of its changes, in a function or outside of all."""

    def __init__(self, path, number):
        change, tree = Change(number), ast.parse(path.read_text("utf-8"))
        change.visit(tree)
        self.path, self.module = path, str(path.relative_to(PACKAGE))
        self.function = f"{path}:{change.function}"
        self.code = compile(ast.fix_missing_locations(tree), str(path), "exec")
        before, after = (
            ast.unparse(each).partition("\n")[0][:70]
            for each in (change.before, change.after)
        )
        line = getattr(change.before, "lineno", change.function)
        self.name = f"{self.module}:{line}  {before}  ->  {after}"


class Run:
    """A pytest plugin: chooses tests, and notes functions, durations and failures."""

    def __init__(self, chosen=None):
        self.chosen, self.failed, self.current = chosen, None, None
        self.functions = collections.defaultdict(set)
        self.durations = collections.Counter()

    def pytest_collection_finish(self, session):
        if self.chosen is not None:
            items = {item.nodeid: item for item in session.items}
            session.items[:] = [items[name] for name in self.chosen if name in items]

    def pytest_runtest_protocol(self, item, nextitem):
        from tfrankmetrics.compute import calls

        if self.chosen is None:
            calls._tensor_calls.cache_clear()  # each test traces its own graphs
            self.current = item.nodeid
            sys.setprofile(self.note)

    def note(self, frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(PACKAGE)):
            name = f"{code.co_filename}:{code.co_firstlineno}"
            self.functions[self.current].add(name)

    def pytest_runtest_logreport(self, report):
        self.durations[report.nodeid] += report.duration
        if report.failed:
            self.failed = report.nodeid


def run_tests(files, mutant=None, chosen=None):
    """Runs tests with a mutant instead of the original module."""
    import pytest

    get_code = importlib.machinery.SourceFileLoader.get_code

    def replaced(self, fullname):
        is_mutant = mutant is not None and pathlib.Path(self.path) == mutant.path
        return mutant.code if is_mutant else get_code(self, fullname)

    importlib.machinery.SourceFileLoader.get_code = replaced
    run = Run(chosen)
    # Plain asserts are faster than those that pytest rewrites.
    arguments = ["-o", "addopts=", "-m", "not slow", "--assert=plain"]
    for plugin in ("cacheprovider", "xdist", "unraisableexception", "threadexception"):
        arguments += ["-p", f"no:{plugin}"]
    if chosen:
        arguments.append("-x")
    status = pytest.main([*arguments, *files], plugins=[run])
    sys.setprofile(None)
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


def file_of(test):
    return test.partition("::")[0]


class Judge:
    """Decides what becomes of mutants, and learns which tests kill most of them."""

    def __init__(self, files):
        def run():
            run, status = run_tests(map(str, files))
            functions = {name: [*each] for name, each in run.functions.items()}
            return [int(status), run.failed, run.durations, functions]

        print("Running all tests once ...", flush=True)
        found = in_a_fork(run, timeout=7200)
        if isinstance(found, str) or found[0]:
            raise SystemExit(f"All tests must pass at first. Received: {found[:2]}.")
        _, _, self.durations, self.functions = found
        self.kills = collections.Counter()  # by each test, and by each file

    def result(self, mutant):
        """Killed (by which test), timed out, survived, or crashed."""
        tests = [t for t, each in self.functions.items() if mutant.function in each]
        tests = tests or [*self.durations]  # the line runs when it is imported
        tests.sort(key=lambda name: (-self.kills[name], self.durations[name]))
        chosen = self.within(SECONDS, tests)
        # To import all files takes seconds, so the best file comes first.
        number = collections.Counter(map(file_of, tests))
        best = max(number, key=lambda file: (self.kills[file], number[file]))
        first = [name for name in chosen if file_of(name) == best]
        first = self.within(FIRST_SECONDS, first)
        for part in (first, [name for name in chosen if name not in first]):

            def failed(part=part):
                run, status = run_tests(sorted({*map(file_of, part)}), mutant, part)
                return [run.failed or "import"] if status else []

            seconds = sum(self.durations[name] for name in part)
            found = in_a_fork(failed, 20 + 3 * seconds) if part else []
            if isinstance(found, str):
                return found
            if found:
                self.kills.update([found[0], file_of(found[0])])
                return f"killed by {found[0]}"
        return f"survived {len(chosen)} of {len(tests)} tests"

    def within(self, seconds, tests):
        """As many of the first tests as run in this time."""
        chosen = []
        for name in tests:
            seconds -= self.durations[name]
            if seconds >= 0:
                chosen.append(name)
        return chosen


def main():
    """Judges mutants and prints the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", default=["."])
    parser.add_argument("--sample", type=int, help="how many mutants, at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="names, or paths")
    options, paths = parser.parse_args(), []
    os.chdir(ROOT)
    for target in options.targets:
        path = PACKAGE / target
        paths += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    places = [(path, number) for path in paths for number in range(count(path))]
    if options.sample:
        places = random.Random(options.seed).sample(places, options.sample)
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
    judge, table = Judge(files), collections.defaultdict(collections.Counter)
    for place in places:
        mutant = Mutant(*place)
        found = judge.result(mutant)
        table[mutant.module][found.partition(" ")[0]] += 1
        print(mutant.name, found, flush=True)
    for module, numbers in table.items():
        print(f"{module:28} {numbers.total():5}  {dict(numbers)}")


if __name__ == "__main__":
    main()
