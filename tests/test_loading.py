"""Tests that hostile models and configs raise errors, and run no code.

`canary.py` is a module that leaves a file when it is imported, and when its functions
are called.
"""

import ast
import json
import pathlib
import sys
import zipfile

import cases
import pytest
import tensorflow as tf
from helpers import IS_KERAS_3
from test_saved import FOLDER, NAME, plus_one

import tfrankmetrics as trm

CANARY = """
import pathlib

def leave_a_file(*_, **__):
    (pathlib.Path(__file__).parent / "left").touch()

class Gain:
    __init__ = from_config = leave_a_file

leave_a_file()
"""
LONG = "x" * 10**6
INT = 10**5000  # Python refuses to print it


@pytest.fixture(autouse=True)
def canary(tmp_path, monkeypatch):
    """Fails if any code of the module ran."""
    (tmp_path / "canary.py").write_text(CANARY)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    assert not (tmp_path / "left").exists()
    assert "canary" not in sys.modules


def nested(inner, depth=2000):
    for _ in range(depth):
        inner = [inner]
    return inner


def reference(module, name, kind="function"):
    """How Keras stores a function or a class."""
    config = name if kind == "function" else {}
    class_name = "function" if kind == "function" else name
    return {
        "module": module,
        "class_name": class_name,
        "config": config,
        "registered_name": class_name,
    }


def as_lambda(code):
    return {
        "module": "builtins",
        "class_name": "__lambda__",
        "config": {"value": {"code": code, "defaults": None, "closure": None}},
    }


OBJECTS = [
    reference("os", "system"),
    reference("builtins", "eval"),
    reference("subprocess", "Popen", "class"),
    reference("canary", "leave_a_file"),
    reference("canary", "Gain", "class"),
    {**reference("canary", "Gain", "class"), "registered_name": None},
    {"class_name": "canary.Gain", "config": {}},
    {"class_name": "function"},
    {"class_name": nested("function")},
    as_lambda("4wAAAAAAAAAA"),
]
OBJECT_IDS = [str(number) for number in range(len(OBJECTS))]


def assert_refused(config, cls=trm.NDCG):
    with pytest.raises((TypeError, ValueError)) as error:
        cls.from_config(config)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize("config", OBJECTS, ids=OBJECT_IDS)
@pytest.mark.parametrize("option", ["gain", "discount", "k", "name", "dtype"])
def test_options_load_no_other_objects(option, config):
    assert_refused({option: config})


@pytest.mark.parametrize("config", OBJECTS[:5], ids=OBJECT_IDS[:5])
def test_objects_that_are_not_registered_are_refused_before_keras_sees_them(config):
    with pytest.raises(ValueError, match="only registered functions and metrics"):
        trm.NDCG.from_config({"gain": config})


@pytest.mark.parametrize("config", OBJECTS, ids=OBJECT_IDS)
def test_lists_of_metrics_load_no_other_objects(config):
    assert_refused({"metrics": config}, trm.RankingMetrics)
    assert_refused({"metrics": ["ndcg", config]}, trm.RankingMetrics)


def test_registered_functions_load_by_either_name():
    """Keras 3 up to 3.6 saved a function without its package."""
    names = ["tests>plus_one", "plus_one"] if IS_KERAS_3 else ["tests>plus_one"]
    for name in names:
        config = {"gain": reference("builtins", name)}
        assert trm.NDCG.from_config(config).gain is cases.plus_one


@pytest.mark.parametrize("option", [*trm.NDCG().get_config(), "unknown"])
@pytest.mark.parametrize(
    "value",
    [LONG, INT, -1, 0.5, float("nan"), {"a": 1}, {"a": LONG}, [LONG], nested("ndcg")],
    ids=["long", "int", "-1", "0.5", "nan", "dict", "long dict", "list", "nested"],
)
def test_wrong_values_of_options_raise(option, value):
    if (option, value) == ("name", LONG):
        return  # any string is a name
    assert_refused({option: value})
    if option not in ("k", "name"):
        assert_refused({"metrics": ["ndcg"], option: value}, trm.RankingMetrics)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"metrics": None},
        {"metrics": 5},
        {"metrics": "ndcg"},
        {"metrics": {"ndcg": 1}},
        {"metrics": []},
        {"metrics": [LONG]},
        {"metrics": [None]},
        {"metrics": [INT]},
        {"metrics": nested("ndcg")},
        {"metrics": ["__import__('os')"]},
        {"metrics": ["ndcg@" + "9" * 5000]},
        {"metrics": ["ndcg@" + "9" * 50]},
        {"metrics": ["ndcg_" + "9" * 5000]},
        {"metrics": ["_1" * 10**5]},
        {"metrics": ["ndcg", "ndcg"]},
        {"metrics": ["ndcg"], "prefix": [LONG]},
        {"metrics": ["ndcg"], LONG: 1},
        {"metrics": ["ndcg"], "denominator": LONG},
    ],
    ids=range(19),
)
def test_wrong_lists_of_metrics_raise(config):
    assert_refused(config, trm.RankingMetrics)


def test_equal_long_names_raise_a_short_error():
    metrics = [trm.NDCG(name=LONG), trm.DCG(name=LONG)]
    with pytest.raises(ValueError, match="must be unique") as error:
        trm.RankingMetrics(metrics)
    assert len(str(error.value)) < 1000


def custom_objects():
    names = ["tests>plus_one", "plus_one"]
    return tf.keras.utils.custom_object_scope(dict.fromkeys(names, plus_one))


def edited(config, edit):
    """A config with a change of every metric in it."""
    if isinstance(config, list):
        return [edited(each, edit) for each in config]
    if not isinstance(config, dict):
        return config
    if str(config.get("registered_name")).startswith("tfrankmetrics>"):
        return edit(config)
    return {key: edited(value, edit) for key, value in config.items()}


def with_option(**options):
    return lambda metric: {**metric, "config": {**metric["config"], **options}}


@pytest.mark.parametrize(
    "edit",
    [
        lambda metric: {**metric, "registered_name": "tfrankmetrics>Unknown"},
        lambda metric: {**metric, "config": {"gain": "exponential", "unknown": 1}},
        with_option(k=float("nan")),
        with_option(k=nested(1, depth=100)),
        with_option(name=7),
        with_option(dtype="int32"),
        with_option(gain=reference("canary", "leave_a_file")),
        with_option(gain=reference("os", "system")),
        with_option(gain=as_lambda("4wAAAAAAAAAA")),
    ],
    ids=range(9),
)
def test_edited_models_do_not_load(tmp_path, edit):
    path = tmp_path / "model.keras"
    source = zipfile.ZipFile(FOLDER / f"{NAME}.keras")
    with source, zipfile.ZipFile(path, "w") as model:
        for name in source.namelist():
            content = source.read(name)
            if name == "config.json":
                config = json.loads(content)
                content = json.dumps(edited(config, edit))
                assert json.loads(content) != config
            model.writestr(name, content)
    with custom_objects():
        tf.keras.models.load_model(FOLDER / f"{NAME}.keras")
        with pytest.raises((TypeError, ValueError)):
            tf.keras.models.load_model(path)


def test_the_package_runs_no_code_from_data():
    """No `eval`, pickle or shell; `import_module` only for modules named by a user."""
    forbidden = {"eval", "exec", "compile", "__import__", "system", "popen", "Popen"}
    forbidden |= {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"}
    forbidden |= {"subprocess", "yaml", "func_load", "enable_unsafe_deserialization"}
    importers = set()
    for path in pathlib.Path(trm.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            used = {getattr(node, "id", None), getattr(node, "attr", None)}
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                used |= {part for name in node.names for part in name.name.split(".")}
                used |= {*(getattr(node, "module", None) or "").split(".")}
            if isinstance(node, ast.keyword):
                used.add(node.arg)
            assert not used & {*forbidden, "safe_mode"}, (path, node.lineno)
            if "import_module" in used:
                importers.add(path.name)
    # All of them import modules by names in the code.
    assert importers == {
        "__init__.py",
        "accumulator.py",
        "backends.py",
        "bases.py",
        "files.py",
        "keys.py",
        "installation.py",
    }
