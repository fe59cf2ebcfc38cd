"""Tests that models, metrics and data about items have the same values once loaded.

An earlier state of the package saved the files in `saved`.
TensorFlow 2.21 saved `saved/keras_3.keras`, TensorFlow 2.15.1 `saved/keras_2.keras`.
Each `.json` file has the data and the values at that time. `validation/test_tfma.py`
loads `saved/eval_config.pbtxt`.
"""

import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from cases import ITEM_METRICS
from helpers import IS_KERAS_3

import tfrankmetrics as trm

FOLDER = pathlib.Path(__file__).parent / "saved"
NAME = "keras_3" if IS_KERAS_3 else "keras_2"


@pytest.fixture(scope="module")
def saved():
    return json.loads((FOLDER / f"{NAME}.json").read_text("utf-8"))


def plus_one(labels):
    return labels + 1.0


def test_a_loaded_model_gives_the_saved_values(saved):
    names = ["tests>plus_one", "plus_one"]  # as saved by Keras 3 and Keras 2
    with tf.keras.utils.custom_object_scope(dict.fromkeys(names, plus_one)):
        model = tf.keras.models.load_model(FOLDER / f"{NAME}.keras")
    targets = {name: np.array(data) for name, data in saved["targets"].items()}
    logs = model.evaluate(
        np.array(saved["features"]), targets, verbose=0, return_dict=True, batch_size=4
    )
    # When Keras 2 loads a model, it adds the output's name to metric names again.
    logs = {re.sub(r"^([a-z]+_)\1", r"\1", name): value for name, value in logs.items()}
    assert len(logs) >= 28
    assert logs == pytest.approx(saved["logs"], rel=1e-6)


@pytest.mark.slow("starts a process that imports TensorFlow")
@pytest.mark.parametrize("first", ["tfrankmetrics", "tensorflow"])
def test_metrics_are_known_to_keras_whatever_is_imported_first(first):
    """Importing this library does not import Keras, which must find its metrics."""
    code = f"""if 1:
        import json, sys
        import {first}
        if {first!r} == "tensorflow":
            tensorflow.keras.Model
        import tfrankmetrics
        assert {first!r} == "tensorflow" or "numpy" not in sys.modules
        import tensorflow as tf
        for config in json.loads(sys.argv[1]):
            print(type(tf.keras.metrics.deserialize(config)).__name__)
        """
    saved_metrics = json.loads((FOLDER / f"{NAME}.json").read_text("utf-8"))
    configs = json.dumps(saved_metrics["metrics of ids"])
    command = [sys.executable, "-c", code, configs]
    process = subprocess.run(command, capture_output=True, text=True)
    assert process.stdout.split() == ["NDCG", "RankingMetrics"], process.stderr


def test_metrics_load_from_saved_configs(saved):
    single, many = map(tf.keras.metrics.deserialize, saved["metrics of ids"])
    for metric in (single, many):
        assert str(metric.input_format) == "inputs='ids', duplicates='all'"
        metric.update_state([[1, 2]], [[1, 1, 2]])
    expected = trm.NDCG(k=3, inputs="ids", duplicates="all")
    expected.update_state([[1, 2]], [[1, 1, 2]])
    assert single.result() == many.result()["ndcg@3"] == expected.result()
    assert (single.name, many.name) == ("ndcg@3", "many")


def test_integer_categories_are_saved():
    options = {"categories": [1, 2], "target": {1: 0.5, 2: 0.5}}
    metric = trm.AttentionWeightedRankFairness(k=1, **options)
    config = json.loads(json.dumps(metric.get_config()))
    assert trm.AttentionWeightedRankFairness.from_config(config).measure == (
        metric.measure
    )
    many = trm.RankingMetrics(["awrf@1"], inputs="ids", **options)
    config = json.loads(json.dumps(many.get_config()))
    again = trm.RankingMetrics.from_config(config)
    for each in (many, again):
        each.update_state([[0]], [[0]])
    assert float(many.result()["awrf@1"]) == float(again.result()["awrf@1"])


@pytest.mark.parametrize("kind", [dict, pd.Series])
@pytest.mark.parametrize(
    ("name", "option", "data", "more"),
    [
        ("mean_popularity", "popularity", {3: 0.5, 1: 0.25, 2: 1.0}, {}),
        ("mean_popularity", "popularity", {"c": 0.5, "a": 0.25, "b": 1.0}, {}),
        ("intra_list_diversity", "vectors", {2: [1, 0], 1: [0, 1], 3: [1, 1]}, {}),
        ("awrf", "categories", {2: 5, 1: 7, 3: 5}, {"target": {5: 0.5, 7: 0.5}}),
    ],
)
def test_data_by_id_are_saved_by_id(kind, name, option, data, more):
    items = [*data]
    options = {"inputs": "ids", option: kind(data), **more}
    metric = ITEM_METRICS[name].cls(k=1, **options)
    again = metric.from_config(json.loads(json.dumps(metric.get_config())))
    expected, found = (
        trm.evaluate([items[:1]], [items], [each], inputs="ids")
        for each in (metric, again)
    )
    assert found == expected
    with pytest.raises(ValueError, match="in the order of their ids"):
        again.update_state([[0]], [[0]])
    with pytest.raises(ValueError, match="in the order of their ids"):
        trm.RankingMetrics([f"{name}@1"], **options)
