"""Tests the Keras classes in TensorFlow Model Analysis, with Keras 2.

Run it with TF_USE_LEGACY_KERAS=1.
"""

import pytest
import tensorflow as tf
import tensorflow_model_analysis as tfma
from tensorflow_model_analysis.proto import config_pb2
from test_tfma import LISTS, ROWS, as_lists, make_table, values_of

import tfrankmetrics as trm

NAMES = ["ndcg@10", "map", "precision@5"]


@pytest.fixture(scope="module")
def table():
    """A table with more queries than the 1000 that TFMA passes on at once."""
    assert tf.keras.metrics.Metric.__module__.startswith("tf_keras")
    return make_table(queries=1200)


def values(data, query_key="", **model):
    metrics = [trm.NDCG(k=10), trm.MeanAveragePrecision(), trm.PrecisionAtK(k=5)]
    config = config_pb2.EvalConfig(
        model_specs=[config_pb2.ModelSpec(**model)],
        metrics_specs=tfma.metrics.specs_from_metrics(metrics, query_key=query_key),
    )
    ((_, found),) = tfma.analyze_raw_data(data, config).slicing_metrics
    return values_of(found)


@pytest.mark.parametrize("form", ["rows", "padded lists", "lists"])
def test_values_equal_evaluate(table, form):
    expected = trm.evaluate_rows(table["query"], table["grade"], table["score"], NAMES)
    of_floats = config_pb2.PaddingOptions(
        label_float_padding=-1, prediction_float_padding=0
    )
    of_ints = config_pb2.PaddingOptions(
        label_int_padding=-1, prediction_float_padding=0
    )
    found = {
        "rows": lambda: values(table, padding_options=of_ints, **ROWS),
        "padded lists": lambda: values(as_lists(table, padded=True), **LISTS),
        "lists": lambda: values(
            as_lists(table, padded=False), padding_options=of_floats, **LISTS
        ),
    }[form]()
    for name in NAMES:
        assert found[name] == pytest.approx(expected[name], abs=1e-6)


def test_list_weights(table):
    weights = table.groupby("query", sort=False)["weight"].first()
    lists = as_lists(table, padded=True).assign(weight=weights.to_numpy())
    expected = trm.evaluate_rows(
        table["query"],
        table["grade"],
        table["score"],
        NAMES,
        sample_weight=table["weight"],
    )
    found = values(lists, example_weight_key="weight", **LISTS)
    for name in NAMES:
        assert found[name] == pytest.approx(expected[name], abs=1e-6)
