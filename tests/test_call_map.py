"""Tests that the call map of CONTRIBUTING.md names functions in the order of calls."""

import pathlib
import re
import sys

import numpy as np
import pytest

import tfrankmetrics as trm

ROOT = pathlib.Path(__file__).parent.parent
PACKAGE = str(pathlib.Path(trm.__file__).parent)
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
# Lines such as "evaluate    request.read_request, labels.read_labels, ...".
MAP = {
    entry: re.split(r",\s+", functions)
    for entry, functions in re.findall(
        r"^    (\w+) +(\w+\.\w+(?:,\s+\w+\.\w+)+)$", TEXT, re.M
    )
}
LABELS, SCORES = [[1, 0, 2], [0, 1, 0]], [[0.3, 0.2, 0.1], [0.1, 0.3, 0.2]]
QRELS, RUN = {"q": {"a": 1, "b": 0}}, {"q": {"a": 0.2, "b": 0.1}}
QUERIES, VECTORS = np.eye(2, 3), np.eye(3)


def update_state():
    trm.NDCG(k=2).update_state(np.array(LABELS), np.array(SCORES))


def result():
    metric = trm.NDCG(k=2)
    metric.update_state(np.array(LABELS), np.array(SCORES))
    return metric.result


def compare():
    models = {
        name: trm.evaluate(LABELS * 5, np.random.default_rng(seed).random((10, 3)), ["ndcg@2"], per_query=True)
        for seed, name in enumerate(["a", "b"])
    }  # fmt: skip
    return lambda: trm.compare(models)


CALLS = {
    "evaluate": lambda: trm.evaluate(LABELS, SCORES, ["ndcg@2"]),
    "evaluate_rows": lambda: trm.evaluate_rows([1, 1, 2], [1, 0, 1], [0.1, 0.2, 0.3], ["ndcg@2"]),
    "evaluate_run": lambda: trm.evaluate_run(QRELS, RUN, ["ndcg@2"]),
    "update": lambda: trm.Accumulator(["ndcg@2"]).update(LABELS, SCORES),
    "update_state": update_state,
    "result": result(),
    "evaluate_retrieval": lambda: trm.evaluate_retrieval(QUERIES, VECTORS, [0, 1], ["ndcg@2"]),
    "explain": lambda: trm.explain(LABELS, SCORES, "ndcg@2"),
    "compare": compare(),
}  # fmt: skip


def first_calls(call):
    """The package's functions as file.function, in the order of their first calls."""
    found = {}

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            file = pathlib.Path(frame.f_code.co_filename).stem
            found.setdefault(f"{file}.{frame.f_code.co_name}")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return [*found]


@pytest.mark.parametrize("entry", CALLS)
def test_functions_are_called_in_the_order_of_the_map(entry):
    calls = first_calls(CALLS[entry])
    assert [each for each in calls if each in MAP[entry]] == MAP[entry]
