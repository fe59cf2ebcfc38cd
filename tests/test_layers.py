"""Tests that each layer of the package imports only the layers listed before it."""

import ast
import collections
import graphlib
import pathlib

import pytest
from cases import METRICS

import tfrankmetrics as trm
from tfrankmetrics import options

PACKAGE = pathlib.Path(trm.__file__).parent
LAYERS = [
    {"installation"},
    {"rules", "keras_hooks", "arguments"},
    {"columns"},
    {"item_data"},
    {"options", "conventions", "graphs"},
    {"arrays"},
    {"ranking"},
    {"inputs"},
    {"metrics"},
    {"compute"},
    {"testing"},
    {"results"},
    {"keras"},
    {"evaluation", "tfma", "comparison"},
    {"retrieval"},
    {"callbacks", "beam", "explanation", "integrations", "sql"},
    {"printed"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def module_name(path):
    """`ranking.ties` for `ranking/ties.py`, `ranking` for `ranking/__init__.py`."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {module_name(path): path for path in PACKAGE.rglob("*.py")}
MODULES.pop("")  # the package itself imports the public names
TREES = {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}


def imported_modules(tree):
    """The modules of the package that some code imports."""
    nodes = {*ast.walk(tree)}
    for node in [*nodes]:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for each in node.body:  # which does not run
                nodes -= {*ast.walk(each)}
    for node in nodes:
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
            assert not any(each.startswith(f"{trm.__name__}.") for each in names)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            trm.__name__
        ):
            module = node.module.removeprefix(trm.__name__).removeprefix(".")
            for alias in node.names:
                inner = f"{module}.{alias.name}".removeprefix(".")
                yield inner if inner in MODULES else module


@pytest.mark.parametrize("name", MODULES)
def test_modules_import_only_their_own_folder_and_earlier_layers(name):
    own = name.partition(".")[0]
    for module in imported_modules(TREES[name]):
        other = module.partition(".")[0]
        assert other == own or LEVEL[other] < LEVEL[own], module


WITH_TENSORFLOW = {"arrays.tensorflow", "inputs.read_tensors"}
WITH_OTHERS = {"arrays.jax", "arrays.torch", "integrations.torchmetrics"}


@pytest.mark.parametrize("name", MODULES)
def test_few_modules_import_tensorflow(name):
    """Arrays and tables never import these modules."""
    imports = {each for node in TREES[name].body for each in ast.walk(node)}
    roots = {
        alias.name.partition(".")[0]
        for node in imports
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    may_import = ("keras", "tfma", "installation")
    if name.partition(".")[0] not in may_import and name not in WITH_TENSORFLOW:
        assert not roots & {"tensorflow", "keras", "tf_keras"}
    if name.partition(".")[0] != "keras" and name not in WITH_OTHERS:
        assert not roots & {"jax", "torch"}


def test_there_are_no_import_cycles():
    graph = {}
    for name, tree in TREES.items():
        graph[name] = {module for module in imported_modules(tree) if module != name}
    assert {*graphlib.TopologicalSorter(graph).static_order()} == set(MODULES)


def test_type_checkers_see_the_public_names():
    stub = ast.parse(PACKAGE.joinpath("__init__.pyi").read_text("utf-8"))
    (listed,) = (node for node in stub.body if isinstance(node, ast.Assign))
    differs = {*ast.literal_eval(listed.value)} ^ {*trm.__all__}
    assert not differs, f"correct __all__ of tfrankmetrics/__init__.pyi: {differs}"


def test_metrics_and_the_types_of_options_are_public():
    classes = {each.cls.__name__ for each in METRICS.values()}
    private = classes - {*trm.__all__}
    assert not private, f"export {private} in tfrankmetrics/__init__.pyi"
    tree = ast.parse(PACKAGE.joinpath("options.py").read_text("utf-8"))
    (cls,) = (each for each in tree.body if getattr(each, "name", "") == "Options")
    fields = [each.annotation for each in cls.body if isinstance(each, ast.AnnAssign)]
    names = {
        each.id
        for field in fields
        for each in ast.walk(field)
        if isinstance(each, ast.Name)
    }
    missing = names - {*options.__all__, "bool", "ItemData"}
    assert not missing, (
        f"name the type of an option in tfrankmetrics/options.py, and add it to its "
        f"__all__: {missing}"
    )


def test_dir_lists_the_public_names():
    assert dir(trm) == sorted([*trm.__all__, "__version__"])
    for name in trm.__all__:
        assert getattr(trm, name) is not None


def test_only_the_metrics_and_conventions_name_a_metric():
    """What others need to know of a metric is a fact of its declaration."""
    names = {each for metric in METRICS.values() for each in metric.names}
    names -= {"judged", "tied"}  # fields of items and of counts have these names, too
    for name, tree in TREES.items():
        if name.partition(".")[0] in ("metrics", "conventions", "integrations"):
            continue
        for node in ast.walk(tree):
            is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
            assert not (is_text and node.value in names), (name, node.lineno)
            if isinstance(node, ast.Compare):
                assert "declaration.name ==" not in ast.unparse(node), name


# Modules of one interface, which offer the same functions.
ALIKE = ("arrays.", "keras.tensorflow_variables", "keras.float32_variables")


def test_each_name_occurs_once():
    """A reader finds a file, a class and a function by its name alone."""
    paths = [path for path in MODULES.values() if path.name != "__init__.py"]
    files = collections.Counter(path.name for path in paths)
    names = collections.Counter(
        node.name
        for name, tree in TREES.items()
        if not name.startswith(ALIKE)
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    )
    assert [each for each, number in (files + names).items() if number > 1] == []
    folders = {path.parent.name for path in paths}
    assert not folders & {*trm.__all__}  # `import` would hide the function


@pytest.mark.parametrize("name", MODULES)
def test_functions_fit_on_a_screen(name):
    """At most 50 lines, without the docstring."""
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.FunctionDef):
            documentation = ast.get_docstring(node, clean=False) or ""
            lines = node.end_lineno - node.lineno + 1
            lines -= len(documentation.splitlines())
            assert lines <= 50, node.name
