"""Runs the pitfalls of the README in the tools that have them.

Those of TF-Ranking are in `docs/conventions.md` too, which `test_tf_ranking.py` checks.
Ours are in `tests/test_pitfalls.py`.
"""

import pathlib
import re

import keras
import mlflow.metrics
import numpy as np
import pandas as pd
import pytest
import torch
from tools import keras_rs_metric
from torchmetrics.retrieval import RetrievalPrecision

import tfrankmetrics as trm

README = pathlib.Path(__file__).parent.parent / "README.md"


def elsewhere(pitfall):
    """What the README says of other tools in the row of this pitfall."""
    row = rf"^\| \*\*{pitfall}\.?\*\*[^|]*\| ([^|]*) \|"
    return re.search(row, README.read_text(encoding="utf-8"), re.MULTILINE)[1]


def values_of_keras_rs(name, k, labels, scores):
    """The values of 40 draws: keras-rs breaks ties at random."""
    values = set()
    for seed in range(40):
        metric = keras_rs_metric(name, k, seed=seed)
        metric.update_state(np.array(labels, "f4"), np.array(scores, "f4"))
        values.add(round(float(metric.result()), 4))
    return values


@pytest.mark.parametrize("place", range(5))
def test_a_constant_model_is_perfect_for_keras_and_random_for_keras_rs(place):
    labels, scores = np.eye(5, dtype="f4")[[place]], np.full((1, 5), 0.5, "f4")
    perfect = keras.metrics.TopKCategoricalAccuracy(k=1)
    perfect.update_state(labels, scores)
    assert float(perfect.result()) == 1.0
    assert values_of_keras_rs("ndcg", 1, labels, scores) == {0.0, 1.0}
    text = elsewhere("A constant model")
    assert "`TopKCategoricalAccuracy` returns 1.0" in text
    assert "its NDCG@1, here the same, is 0 or 1 at random" in text


def test_the_batch_size_changes_weighted_values_in_keras_rs():
    labels = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]], "f4")
    weights = np.array([[10], [1], [1], [3]], "f4")
    scores = np.tile(np.array([3, 2, 1], "f4"), (4, 1))
    values = []
    for size in (4, 2, 1):
        metric = keras_rs_metric("ndcg", None, seed=0)
        for start in range(0, 4, size):
            part = slice(start, start + size)
            metric.update_state(labels[part], scores[part], weights[part])
        values.append(f"{float(metric.result()):.4f}")
    assert f"keras-rs: {', '.join(values)}" in elsewhere("The batch size")


@pytest.mark.filterwarnings("ignore:``mlflow.metrics.ndcg_at_k``:FutureWarning")
def test_the_ideal_list_of_mlflow_is_as_short_as_the_list():
    retrieved, relevant = [["a"], ["x", "a"]], [[*"abcde"]] * 2
    evaluated = mlflow.metrics.ndcg_at_k(5).eval_fn(
        *map(pd.Series, (retrieved, relevant))
    )
    perfect, second = evaluated.scores
    version = ".".join(mlflow.__version__.split(".")[:2])
    assert f"MLflow {version}: {perfect}" in elsewhere("A short list")
    found = trm.evaluate_run({"q": relevant[1]}, {"q": retrieved[1]}, ["ndcg@2"])
    assert second == pytest.approx(found["ndcg@2"])


def test_a_cutoff_inside_a_tie_is_random_or_depends_on_the_order_of_items():
    scores, positional = [3.0, 2.0, 2.0, 2.0], set()
    for place in (1, 2, 3):
        labels = np.eye(4, dtype=int)[place]
        metric = RetrievalPrecision(top_k=2)
        which = torch.zeros(4, dtype=torch.long)
        value = metric(torch.tensor(scores), torch.tensor(labels), indexes=which)
        positional.add(float(value))
        assert values_of_keras_rs("precision", 2, [labels], [scores]) == {0.0, 0.5}
    assert positional == {0.0, 0.5}
    text = elsewhere("A cutoff inside a tie")
    assert "keras-rs: 0.0 or 0.5 at random" in text
    assert "torchmetrics: 0.0 or 0.5 by input order" in text
