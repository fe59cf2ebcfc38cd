"""Models and metrics that version 0.1.0 saved still load, with the same values.

`saved/keras_3.keras` was saved on TensorFlow 2.21, `saved/keras_2.keras` on 2.15.1, and
each `.json` holds the data and the values of that day. `validation/test_tfma.py` loads
`saved/eval_config.pbtxt`.
"""

import json
import pathlib
import re

import numpy as np
import pytest
import tensorflow as tf

import tfrankmetrics as tfr

IS_KERAS_3 = not hasattr(tf.keras, "__internal__")
FOLDER = pathlib.Path(__file__).parent / "saved"
NAME = "keras_3" if IS_KERAS_3 else "keras_2"


@pytest.fixture(scope="module")
def saved():
    return json.loads((FOLDER / f"{NAME}.json").read_text("utf-8"))


def plus_one(labels):
    return labels + 1.0


def test_a_model_has_the_values_of_its_metrics(saved):
    names = ["tests>plus_one", "plus_one"]  # as Keras 3 and Keras 2 saved the function
    with tf.keras.utils.custom_object_scope(dict.fromkeys(names, plus_one)):
        model = tf.keras.models.load_model(FOLDER / f"{NAME}.keras")
    targets = {name: np.array(data) for name, data in saved["targets"].items()}
    logs = model.evaluate(
        np.array(saved["features"]), targets, verbose=0, return_dict=True, batch_size=4
    )
    # Keras 2 puts the output's name before a metric's once more when it loads a model.
    logs = {re.sub(r"^([a-z]+_)\1", r"\1", name): value for name, value in logs.items()}
    assert len(logs) >= 28
    assert logs == pytest.approx(saved["logs"], rel=1e-6)


def test_configs_of_metrics(saved):
    single, many = map(tf.keras.metrics.deserialize, saved["metrics of ids"])
    for metric in (single, many):
        assert str(metric.input_format) == "inputs='ids', duplicates='all'"
        metric.update_state([[1, 2]], [[1, 1, 2]])
    expected = tfr.NDCG(k=3, inputs="ids", duplicates="all")
    expected.update_state([[1, 2]], [[1, 1, 2]])
    assert single.result() == many.result()["ndcg@3"] == expected.result()
    assert (single.name, many.name) == ("ndcg@3", "many")
