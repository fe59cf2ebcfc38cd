"""Tests what the package says of itself, and its check of TensorFlow."""

import itertools
import pathlib
import re
import runpy
import subprocess
import sys
from unittest import mock

import pytest
import tomllib

import tfrankmetrics as trm

ROOT = pathlib.Path(__file__).parent.parent
REPOSITORY = re.search(r"^repo_url: (\S+)", (ROOT / "mkdocs.yml").read_text(), re.M)[1]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_numpy_is_all_that_is_installed_without_an_extra():
    """The package `tensorflow` would overwrite the files of tensorflow-cpu."""
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert [each.partition(">")[0] for each in project["dependencies"]] == ["numpy"]


def test_the_command_is_a_script():
    scripts = tomllib.loads(read("pyproject.toml"))["project"]["scripts"]
    assert scripts == {"tfrankmetrics": "tfrankmetrics.__main__:main"}


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda p: p.name
)
def test_workflows_pin_actions_and_restrict_permissions(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[lines.index("permissions:") + 1] == "  contents: read"
    for before, line in itertools.pairwise(lines):
        action = re.search(r"uses: (?!\./)(\S+)", line)
        if action and not before.strip().startswith("# Not pinned"):
            assert re.fullmatch(r".*@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line), line
    if path.name == "publish.yml":
        text = "\n".join(lines)
        assert "uses: ./.github/workflows/tests.yml" in text
        assert "build:\n    needs: tests" in text
        for job in ("publish", "site"):  # by way of others
            assert re.search(rf"^  {job}:\n    needs: (try|publish)$", text, re.M)


def test_the_readme_of_the_package_has_no_relative_links(monkeypatch):
    setup = mock.Mock()
    monkeypatch.setitem(sys.modules, "setuptools", mock.Mock(setup=setup))
    runpy.run_path(str(ROOT / "setup.py"))
    links = re.findall(r"\]\(([^)]+)\)", setup.call_args.kwargs["long_description"])
    assert len(links) > 20
    assert all(link.startswith(("https://", "#")) for link in links)
    paths = [
        re.match(rf"{REPOSITORY}/(?:blob|raw)/main/([^#?\s]+)", link) for link in links
    ]
    for path in filter(None, paths):
        assert (ROOT / path[1]).exists(), path[1]


@pytest.mark.parametrize(
    "name", ["pyproject.toml", "setup.py", "CITATION.cff", "README.md", "CHANGELOG.md"]
)
def test_all_files_name_the_same_repository(name):
    owners = re.findall(r"https://github\.com/([\w-]+/tfrankmetrics)", read(name))
    assert owners
    assert {f"https://github.com/{owner}" for owner in owners} == {REPOSITORY}


def test_the_citation_has_the_version():
    assert (
        re.search(r"^version: (\S+)", read("CITATION.cff"), re.M)[1] == trm.__version__
    )


def run_with(tmp_path, tensorflow, code):
    """Runs code where `tensorflow` is another module, or missing."""
    start = "import sys; sys.modules['tensorflow'] = sys.modules['keras'] = None\n"
    if tensorflow is not None:
        (tmp_path / "tensorflow.py").write_text(tensorflow)
        start = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    code = f"{start}import tfrankmetrics as trm\n{code}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("tensorflow", "message"),
    [
        (
            None,
            r"AttributeError: `EvaluateRows` needs Keras with TensorFlow, JAX or "
            r"PyTorch\. Received: no TensorFlow, .*Run pip install \"\.\[tensorflow\]\" in a clone",
        ),
        ("__version__ = '2.14.1'", r"ImportError: .*Received: TensorFlow 2\.14\.1\."),
        ("import not_there", r"ModuleNotFoundError: No module named 'not_there'"),
    ],
    ids=["none", "too old", "broken"],
)
def test_a_missing_or_old_tensorflow_raises(tmp_path, tensorflow, message):
    code = "trm.NDCG(); trm.EvaluateRows"  # without TensorFlow, a metric needs none
    process = run_with(tmp_path, tensorflow, code)
    assert process.returncode != 0
    assert re.search(message, process.stderr), process.stderr


def test_arrays_and_tables_need_no_tensorflow(tmp_path):
    """Metric objects carry options to functions, and are copied, without it.

    `test_without_keras.py` tests that they accumulate.
    """
    process = run_with(tmp_path, None, WITHOUT_TENSORFLOW)
    assert process.returncode == 0, process.stderr


WITHOUT_TENSORFLOW = """
import copy, pickle
lists = [[1, 0, 1]], [[3.0, 2.0, 1.0]]
hits = trm.MeanAveragePrecision(k=2, denominator="hits")
assert trm.evaluate(*lists, [hits]) == {"map@2": 1.0}
assert trm.evaluate([[5, 7]], [[5, 6]], ["recall@2"], inputs="ids") == {"recall@2": 0.5}
scores = [[3.0, 2.0, 1.0]]
assert trm.evaluate([[1]], scores, ["mrr"], inputs="catalog") == {"mrr": 0.5}
assert trm.evaluate_rows([1, 1], [0, 1], [0.2, 0.1], ["mrr"]) == {"mrr": 0.5}
run = {"q": {"a": 1.0, "b": 0.5}}
values = trm.evaluate_run({"q": {"b": 1}}, run, ["mrr"], per_query=True)
assert values["mrr"] == [0.5]
trm.compare({"one": values, "other": values}, resamples=10)
vectors = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
assert trm.evaluate_retrieval(vectors[:2], vectors, [0, 2], ["mrr"]) == {"mrr": 0.75}
towers = {"query_tower": lambda x: 2 * x["a"], "candidate_tower": lambda x: x + 1}
found = trm.evaluate_retrieval({"a": vectors[:2]}, vectors, [0, 2], ["mrr"], **towers)
assert found == {"mrr": 0.75}
score = lambda queries, candidates: queries @ candidates.T + 1
found = trm.evaluate_retrieval(vectors[:2], vectors, [0, 2], ["mrr"], score=score)
assert found == {"mrr": 0.75}
for again in (copy.deepcopy(hits), pickle.loads(pickle.dumps(hits))):
    assert isinstance(again, trm.MeanAveragePrecision)
    assert (again.k, again.denominator, again.name) == (2, "hits", "map@2")
calls = [lambda: trm.EvaluateRows]
calls += [lambda: __import__("tfrankmetrics", fromlist=["EvaluateRows"])]
for call in calls:
    try:
        call()
    except (ImportError, AttributeError) as error:
        assert 'pip install ".[tensorflow]"' in str(error)
    else:
        raise AssertionError(call)
import inspect
assert not hasattr(trm, "EvaluateRows")
assert {"evaluate", "NDCG"} <= {name for name, _ in inspect.getmembers(trm)}
names = {}
exec("from tfrankmetrics import *", names)
assert names.keys() - {"__builtins__"} == {*trm.__all__}
assert names["evaluate"](*lists, [hits]) == {"map@2": 1.0}
assert "tensorflow" not in {name for name, module in sys.modules.items() if module}
"""
