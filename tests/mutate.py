r"""Mutation tests: changes the package in small ways and looks for a test that fails.

A change that no test notices is a survivor. It shows a missing test, code that nobody
needs, or another way to write the same.

    python tests/mutate.py ranking metrics compute.py      # these folders and files
    python tests/mutate.py --sample 100 --seed 1           # 100 mutants of all modules
    python tests/mutate.py --results build/mutants.jsonl   # goes on where it stopped
    python tests/mutate.py --results build/mutants.jsonl --again survived --budget 300

First it runs all tests once and notes which lines each test runs. Each mutant then runs
the tests of its line, those that found most mutants first, for `--budget` seconds. Every
mutant has a process of its own. It is forked from one that has imported TensorFlow, but
has not run any operation, since TensorFlow's threads do not survive a fork.
"""

import argparse
import ast
import builtins
import collections
import copy
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
import time

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "tfrankmetrics"
# Tests that run other processes, read documents or measure time are left out.
TESTS = ["values", "ties", "extreme_values", "inputs", "input_formats", "properties"]
TESTS += ["conventions", "declarations", "own_metrics", "recommendation", "pitfalls"]
TESTS += ["graph", "keras", "saved", "loading", "trec", "backends", "tf_ranking_values"]
DEFAULT_TARGETS = ["ranking", "metrics", "inputs", "compute.py", "rows.py", "trec.py"]
DEFAULT_TARGETS += ["measure.py"]

# What replaces what. A pair stands for both directions.
_PAIRS = [(ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq)]
_PAIRS += [(ast.Is, ast.IsNot), (ast.In, ast.NotIn), (ast.And, ast.Or)]
_PAIRS += [(ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.BitAnd, ast.BitOr)]
OPERATORS = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
OPERATORS |= {ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult}
_PAIRS = [("reduce_sum", "reduce_max"), ("reduce_any", "reduce_all"), ("min", "max")]
_PAIRS += [("minimum", "maximum"), ("equal", "not_equal"), ("any", "all")]
_PAIRS += [("ones_like", "zeros_like"), ("cumsum", "cumprod"), ("less", "less_equal")]
NAMES = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
NAMES |= {
    "reduce_min": "reduce_max",
    "divide_no_nan": "multiply",
    "accumulate": "reduce",
}
# Texts for people.
SKIPPED_FUNCTIONS = {
    "__repr__",
    "__str__",
    "rule",
    "listed",
    "shortened",
    "did_you_mean",
}


class Place:
    """A node of a module's tree, and the statement around it."""

    def __init__(self, node, parent, field, index, statement):
        self.node, self.parent, self.field, self.index = node, parent, field, index
        self.statement = statement

    def put(self, new):
        """Replaces the node in its tree."""
        ast.copy_location(new, self.node)
        if self.index is None:
            setattr(self.parent, self.field, new)
        else:
            getattr(self.parent, self.field)[self.index] = new
        ast.fix_missing_locations(new)

    @property
    def lines(self):
        """The lines that run if the node does."""
        node, body = self.statement, getattr(self.statement, "body", None)
        last = body[0].lineno - 1 if isinstance(body, list) else node.end_lineno
        return range(node.lineno, max(node.lineno, last) + 1)


def places(tree):
    """All nodes to change: no texts, annotations, imports or arguments of `raise`."""
    skipped = (ast.JoinedStr, ast.Import, ast.ImportFrom, ast.expr_context)

    def walk(parent, statement):
        for field, value in ast.iter_fields(parent):
            if field in ("annotation", "returns") or isinstance(parent, ast.Raise):
                continue
            for index, node in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(node, ast.AST) or isinstance(node, skipped):
                    continue
                if getattr(node, "name", None) in SKIPPED_FUNCTIONS:
                    continue
                if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(
                    node.test
                ):
                    continue
                of = node if isinstance(node, ast.stmt) else statement
                yield Place(
                    node, parent, field, index if isinstance(value, list) else None, of
                )
                yield from walk(node, of)

    yield from walk(tree, tree)


def variants(node):
    """Small changes of one node, as new nodes."""

    def changed(**fields):
        new = copy.deepcopy(node)
        for field, value in fields.items():
            setattr(new, field, value)
        return new

    def negated(test):
        return ast.UnaryOp(ast.Not(), test)

    def is_changed(test):
        """Whether another change of the test is its negation."""
        ops = getattr(test, "ops", [getattr(test, "op", None)])
        return isinstance(ops[0], (ast.Not, ast.Eq, ast.NotEq, ast.Is, ast.IsNot))

    match node:
        case ast.Constant(value=bool(value)):
            yield changed(value=not value)
        case ast.Constant(value=int() | float() as value):
            yield changed(value=value + 1)
        case ast.Compare(ops=[op]) if type(op) in OPERATORS:
            yield changed(ops=[OPERATORS[type(op)]()])
        case ast.Compare(ops=[first, second]):
            yield changed(ops=[OPERATORS[type(first)](), second])
            yield changed(ops=[first, OPERATORS[type(second)]()])
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in OPERATORS:
            yield changed(op=OPERATORS[type(op)]())
            if isinstance(node, ast.AugAssign):
                yield ast.Pass()
        case ast.BoolOp(op=op):
            yield changed(op=OPERATORS[type(op)]())
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub(), operand=operand):
            yield operand
        case ast.Name(id=name, ctx=ast.Load()) if name in NAMES:
            yield changed(id=NAMES[name])
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in NAMES:
            yield changed(attr=NAMES[name])
        case ast.Call(
            func=ast.Attribute(attr="where") | ast.Name(id="select"), args=[a, b, c]
        ):
            yield changed(args=[a, c, b])
        case ast.If(test=test) | ast.IfExp(test=test) if not is_changed(test):
            yield changed(test=negated(test))
        case ast.comprehension(ifs=[test]):
            yield changed(ifs=[negated(test)])
        case ast.Raise() | ast.Expr(value=ast.Call()) | ast.Continue():
            yield ast.Pass()


class Mutant:
    """One change of one module."""

    def __init__(self, path, number, variant):
        self.path, self.number, self.variant = path, number, variant
        place, new, _ = self._changed()
        self.lines = place.lines
        line = getattr(place.node, "lineno", place.statement.lineno)
        before, after = (
            ast.unparse(each).splitlines()[0] for each in (place.node, new)
        )
        where = f"{path.relative_to(PACKAGE)}:{line}:{number}.{variant}"
        self.name = f"{where}  {before:.70}  ->  {after:.70}"

    def _changed(self):
        tree = ast.parse(self.path.read_text("utf-8"))
        place = next(itertools.islice(places(tree), self.number, None))
        return (
            place,
            next(itertools.islice(variants(place.node), self.variant, None)),
            tree,
        )

    def code(self):
        """The changed module, compiled."""
        place, new, tree = self._changed()
        place.put(new)
        return compile(tree, str(self.path), "exec")


def mutants_of(path):
    """All mutants of a module."""
    for number, place in enumerate(places(ast.parse(path.read_text("utf-8")))):
        for variant, _ in enumerate(variants(place.node)):
            yield Mutant(path, number, variant)


class Run:
    """A pytest plugin: chooses tests, and notes lines, durations and failures."""

    def __init__(self, chosen=None):
        self.chosen, self.failed = chosen, None
        self.lines, self.durations = collections.defaultdict(set), collections.Counter()

    def pytest_collection_finish(self, session):
        import helpers

        if self.chosen is not None:
            helpers.clear_caches = helpers.compiled._compiled.cache_clear
            items = {item.nodeid: item for item in session.items}
            session.items[:] = [items[name] for name in self.chosen if name in items]

    def pytest_runtest_protocol(self, item, nextitem):
        if self.chosen is None:
            import helpers

            helpers.compiled._compiled.cache_clear()  # each test traces its own graphs
            builtins.note_line = self.lines[item.nodeid].add

    def pytest_runtest_logreport(self, report):
        self.durations[report.nodeid] += report.duration
        if report.failed:
            self.failed = report.nodeid


class Noting(ast.NodeTransformer):
    """Puts a call of `note_line` before each statement of a function."""

    def __init__(self, path):
        self.module = path.relative_to(PACKAGE)

    def visit_FunctionDef(self, function):
        for node in ast.walk(function):
            for field in ("body", "orelse", "finalbody"):
                body = getattr(node, field, None)
                if isinstance(body, list):
                    setattr(node, field, [*itertools.chain(*map(self._noted, body))])
        return ast.fix_missing_locations(function)

    def _noted(self, statement):
        if isinstance(statement, ast.Expr) and isinstance(
            statement.value, ast.Constant
        ):
            return [statement]
        line = ast.Constant(f"{self.module}:{statement.lineno}")
        call = ast.Call(ast.Name("note_line", ast.Load()), [line], [])
        return [ast.copy_location(ast.Expr(call), statement), statement]


def run_tests(files, mutant=None, chosen=None):
    """Runs tests in this process, with a module replaced by its mutant.

    Without one, notes which lines run.
    """
    import pytest

    get_code = importlib.machinery.SourceFileLoader.get_code
    builtins.note_line = lambda line: None  # while modules are imported

    def replaced(self, fullname):
        path = pathlib.Path(self.path)
        if mutant is not None and path == mutant.path:
            return mutant.code()
        if mutant is None and path.is_relative_to(PACKAGE):
            tree = Noting(path).visit(ast.parse(path.read_text("utf-8")))
            return compile(tree, self.path, "exec")
        return get_code(self, fullname)

    importlib.machinery.SourceFileLoader.get_code = replaced
    run = Run(chosen)
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts="]
    arguments += ["-x"] if chosen is not None else []
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
            lines = {name: sorted(each) for name, each in run.lines.items()}
            return [run.durations, lines, run.failed]

        result = in_a_fork(run, timeout=3600)
        cache.parent.mkdir(exist_ok=True)
        cache.write_text(json.dumps(result))
    durations, lines, failed = json.loads(cache.read_text())
    if failed:
        raise SystemExit(
            f"The tests must pass without any change. This failed: {failed}."
        )
    return durations, {name: {*each} for name, each in lines.items()}


def judge(mutant, durations, lines, files, kills, budget):
    """What became of a mutant: killed (by which test), timed out, survived, no test."""
    at = {f"{mutant.path.relative_to(PACKAGE)}:{line}" for line in mutant.lines}
    tests = [name for name, those in lines.items() if those & at] or [*durations]
    tests.sort(key=lambda name: (-kills[name], durations[name]))
    total = itertools.accumulate(durations[name] for name in tests)
    chosen = [name for name, so_far in zip(tests, total) if so_far <= budget]
    used = {str(ROOT / name.partition("::")[0]) for name in chosen}

    def run():
        run, status = run_tests(sorted(used), mutant, chosen)
        return [run.failed or ("import" if status else None), len(chosen), len(tests)]

    seconds = sum(durations[name] for name in chosen)
    result = in_a_fork(run, timeout=20 + 3 * seconds)
    if isinstance(result, str):
        return {"result": result}
    by, number, of = result
    if by:
        kills[by] += 1
        return {"result": "killed", "by": by}
    return {"result": "survived", "tests": number, "of": of}


def main():
    """Judges mutants and prints the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", default=DEFAULT_TARGETS)
    parser.add_argument("--sample", type=int, help="how many mutants, at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=float, default=30, help="seconds a mutant")
    parser.add_argument("--tests", nargs="*", default=TESTS, help="as in `values ties`")
    parser.add_argument("--results", default="build/mutants.jsonl", help="a file")
    parser.add_argument("--again", nargs="*", default=[], help="results to find again")
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    options = parser.parse_args()

    os.chdir(ROOT)
    paths = []
    for target in options.targets:
        path = PACKAGE / target
        paths += sorted(path.glob("*.py")) if path.is_dir() else [path]
    mutants = [mutant for path in paths for mutant in mutants_of(path)]
    if options.sample:
        random.Random(options.seed).shuffle(mutants)
        del mutants[options.sample :]
    if options.list:
        print(*(mutant.name for mutant in mutants), sep="\n")
        return

    results = pathlib.Path(options.results)
    known, kills = {}, collections.Counter()
    if results.exists():
        known = {(r := json.loads(line))["mutant"]: r for line in results.open()}
        kills.update(r["by"] for r in known.values() if "by" in r)
    files = [ROOT / "tests" / f"test_{name}.py" for name in options.tests]
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
    durations, lines = tests_by_line([file for file in files if file.exists()])

    start, results_of = time.time(), collections.defaultdict(collections.Counter)
    results.parent.mkdir(exist_ok=True)
    for mutant in mutants:
        result = known.get(mutant.name)
        if result is None or result["result"] in options.again:
            result = judge(mutant, durations, lines, files, kills, options.budget)
            result = {"mutant": mutant.name, **result}
            with results.open("a") as file:
                file.write(json.dumps(result) + "\n")
        module = str(mutant.path.relative_to(PACKAGE))
        results_of[module][result["result"]] += 1
        if result["result"] in ("survived", "crashed"):
            print(*result.values(), flush=True)
    for module, numbers in results_of.items():
        print(f"{module:28} {numbers.total():5}  {dict(numbers)}")
    print(f"{time.time() - start:.0f} seconds")


if __name__ == "__main__":
    main()
