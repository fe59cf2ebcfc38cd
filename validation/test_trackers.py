"""Experiment trackers and tuners log and read our metrics of `fit`."""

import pathlib

import keras_tuner
import mlflow
import numpy as np
import pytest
import tensorflow as tf
from code_blocks import run_blocks
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import tfrankmetrics as trm

NAMES = ["ndcg@10", "mrr"]
DATA = np.random.default_rng(0).normal(size=(8, 4)), np.eye(4)[np.arange(8) % 4]


def model(separator="_", units=4):
    items = tf.keras.Input((4,))
    hidden = tf.keras.layers.Dense(units)(items)
    made = tf.keras.Model(items, tf.keras.layers.Dense(4)(hidden))
    metric = trm.RankingMetrics(NAMES, separator=separator)
    made.compile(loss="mse", metrics=[metric])
    return made


def fit(made, **arguments):
    return made.fit(*DATA, validation_data=DATA, epochs=2, verbose=0, **arguments)


@pytest.fixture
def tracking(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    yield
    mlflow.tensorflow.autolog(disable=True)


def logged(run, key):
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, key)
    return [entry.value for entry in sorted(history, key=lambda entry: entry.step)]


@pytest.mark.usefixtures("tracking")
def test_the_callback_of_mlflow():
    with mlflow.start_run() as run:
        callback = mlflow.keras.MlflowCallback(run)
        history = fit(model(), callbacks=[callback]).history
    for name in ("ndcg_10", "mrr"):
        for key, of_mlflow in ((name, name), (f"val_{name}", f"val_{name}")):
            values = logged(run, of_mlflow)
            assert values[-1] == pytest.approx(history[key][-1], rel=1e-6)


@pytest.mark.usefixtures("tracking")
def test_autologging_of_mlflow():
    mlflow.tensorflow.autolog(log_models=False)
    with mlflow.start_run() as run:
        history = fit(model()).history
    for key in ("ndcg_10", "mrr", "val_ndcg_10", "val_mrr"):
        assert logged(run, key) == pytest.approx(history[key], rel=1e-6)


@pytest.mark.usefixtures("tracking")
def test_mlflow_loses_the_metrics_of_a_run_with_an_at_sign():
    """If this fails, docs/guide/tracking.md need no longer warn of it."""
    with mlflow.start_run() as run:
        fit(model("@"), callbacks=[mlflow.keras.MlflowCallback(run)])
        with pytest.raises(mlflow.MlflowException, match="Names may only contain"):
            mlflow.log_metric("ndcg@10", 1.0)
    assert mlflow.get_run(run.info.run_id).data.metrics == {}


def slices(separator):
    by = {"language": ["de", "en"] * 4, "market": ["north east", "south-west"] * 4}
    arguments = {"by": by, "separator": separator}
    return trm.EvaluateLists(*DATA, NAMES, prefix="val_", **arguments)


@pytest.mark.usefixtures("tracking")
def test_mlflow_logs_slices():
    with mlflow.start_run() as run:
        callbacks = [slices("_"), mlflow.keras.MlflowCallback(run)]
        history = fit(model(), callbacks=callbacks).history
    for name in ("ndcg_10", "mrr"):
        key = f"val_{name}/language:en/market:south-west"
        assert logged(run, key) == pytest.approx(history[key], rel=1e-6)


@pytest.mark.usefixtures("tracking")
def test_mlflow_refuses_other_characters_of_slices():
    """If this fails, docs/guide/tracking.md need no longer name them."""
    with mlflow.start_run():
        for character in "@,=+&()":
            with pytest.raises(mlflow.MlflowException, match="Names may only contain"):
                mlflow.log_metric(f"val_mrr/language:C{character}", 1.0)


@pytest.mark.usefixtures("tracking")
def test_page():
    """`tests/test_docs.py` runs its blocks, too, but not the one of MLflow."""
    page = pathlib.Path(__file__).parent.parent / "docs" / "guide" / "tracking.md"
    run_blocks(page, "(?:py|python)")


def test_tensorboard_logs_slices(tmp_path):
    callbacks = [slices("@"), tf.keras.callbacks.TensorBoard(tmp_path)]
    history = fit(model("@"), callbacks=callbacks).history
    events = EventAccumulator(str(tmp_path / "validation")).Reload()
    for name in NAMES:
        key = f"{name}/language:en/market:south-west"
        found = [
            tf.make_ndarray(event.tensor_proto)
            for event in events.Tensors(f"epoch_{key}")
        ]
        assert found == pytest.approx(history[f"val_{key}"], rel=1e-6)


def test_the_objective_of_keras_tuner(tmp_path):
    tuner = keras_tuner.RandomSearch(
        lambda choices: model(units=choices.Choice("units", [2, 4])),
        objective=keras_tuner.Objective("val_ndcg_10", direction="max"),
        max_trials=2,
        directory=tmp_path,
        project_name="search",
    )
    tuner.search(*DATA, validation_data=DATA, epochs=1, verbose=0)
    trials = tuner.oracle.get_best_trials(2)
    scores = [trial.score for trial in trials]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == trials[0].metrics.get_best_value("val_ndcg_10")
