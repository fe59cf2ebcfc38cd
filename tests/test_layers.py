"""Imports run one way: each layer of the package knows only those above it here."""

import ast
import graphlib
import pathlib

import pytest

import tfrankmetrics as tfr

PACKAGE = pathlib.Path(tfr.__file__).parent
LAYERS = [
    {"options", "conventions"},
    {"ranking"},
    {"inputs"},
    {"measure"},
    {"compute", "compiled"},
    {"keras"},
    {"metrics"},
    {"evaluate", "rows", "trec", "tfma"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def name_of(path):
    """`ranking.ties` for `ranking/ties.py`, `ranking` for `ranking/__init__.py`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {name_of(path): path for path in PACKAGE.rglob("*.py")}
MODULES.pop("")  # the package itself gathers the public names


def imported(tree):
    """The modules of the package that a piece of code imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            tfr.__name__
        ):
            module = node.module.removeprefix(tfr.__name__).removeprefix(".")
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                yield inner if inner in MODULES else module


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_from_its_own_folder_and_lower_layers(name):
    own = name.partition(".")[0]
    for module in imported(ast.parse(MODULES[name].read_text("utf-8"))):
        other = module.partition(".")[0]
        assert other == own or LEVEL[other] < LEVEL[own], module


def test_no_module_imports_itself_by_way_of_others():
    graph = {}
    for name, path in MODULES.items():
        tree = ast.parse(path.read_text("utf-8"))
        tree.body = [node for node in tree.body if not is_for_type_checkers(node)]
        graph[name] = {module for module in imported(tree) if module != name}
    assert {*graphlib.TopologicalSorter(graph).static_order()} == set(MODULES)


def is_for_type_checkers(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def test_the_package_shows_its_public_names():
    assert dir(tfr) == sorted([*tfr.__all__, "__version__"])
    for name in tfr.__all__:
        assert getattr(tfr, name) is not None
