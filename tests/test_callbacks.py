"""Tests the callbacks that evaluate a model while it trains."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from helpers import IS_KERAS_3

import tfrankmetrics as tfr

RNG = np.random.default_rng(0)
ROWS = 60
X = RNG.normal(size=(ROWS, 3)).astype("float32")
USERS = RNG.choice(["ann", "bob", "eve"], ROWS)
CLICKS = (X[:, 0] + RNG.normal(size=ROWS) > 0.5).astype(int)
LANGUAGES = np.where(USERS == "ann", "de", "en")
LISTS = RNG.normal(size=(8, 5, 3)).astype("float32")
LABELS = RNG.integers(0, 3, (8, 5))


def row_model():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "binary_crossentropy")
    return model


def list_model():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def fit(model, callbacks, x=X, y=CLICKS, epochs=2, **more):
    return model.fit(
        x, y, epochs=epochs, verbose=0, batch_size=20, callbacks=callbacks, **more
    ).history


class Recorder(tf.keras.callbacks.Callback):
    """Keeps the logs that a callback sees at each end of an epoch and of a batch."""

    def __init__(self):
        super().__init__()
        self.epochs, self.batches = [], []

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(dict(logs))

    def on_train_batch_end(self, batch, logs=None):
        self.batches.append(dict(logs))


def test_rows_are_evaluated_by_query_after_each_epoch():
    names = ["ndcg@5", "mrr", tfr.PerQueryAUC(average="items", name="gauc")]
    model, recorder = row_model(), Recorder()
    callback = tfr.EvaluateRows(X, CLICKS, USERS, names, gain="linear")
    history = fit(model, [callback, recorder])
    scores = model.predict(X, verbose=0)[:, 0]
    expected = tfr.evaluate_rows(USERS, CLICKS, scores, names, gain="linear")
    for name, value in expected.items():
        assert len(history[f"val_{name}"]) == 2
        assert history[f"val_{name}"][-1] == pytest.approx(value, rel=1e-12)
        assert recorder.epochs[-1][f"val_{name}"] == history[f"val_{name}"][-1]


def test_a_row_wise_model_stops_early_and_keeps_the_best_weights(tmp_path):
    tf.keras.utils.set_random_seed(0)
    model, path = row_model(), str(tmp_path / "best.weights.h5")
    save = {"save_best_only": True, "save_weights_only": True, "mode": "max"}
    callbacks = [
        tfr.EvaluateRows(X, CLICKS, USERS, ["ndcg@5"]),
        tf.keras.callbacks.EarlyStopping("val_ndcg@5", mode="max", patience=2),
        tf.keras.callbacks.ModelCheckpoint(path, monitor="val_ndcg@5", **save),
        tf.keras.callbacks.CSVLogger(str(tmp_path / "log.csv")),
        tf.keras.callbacks.TensorBoard(str(tmp_path / "logs")),
    ]
    values = fit(model, callbacks, epochs=60)["val_ndcg@5"]
    assert len(values) == np.argmax(values) + 3 < 60
    model.load_weights(path)
    scores = model.predict(X, verbose=0)[:, 0]
    best = tfr.evaluate_rows(USERS, CLICKS, scores, ["ndcg@5"])["ndcg@5"]
    assert best == pytest.approx(max(values))
    assert "val_ndcg@5" in (tmp_path / "log.csv").read_text()


@pytest.mark.parametrize(
    "reader",
    [
        lambda path: tf.keras.callbacks.EarlyStopping("val_mrr", mode="max"),
        lambda path: tf.keras.callbacks.ReduceLROnPlateau("val_mrr/slice:x"),
        lambda path: tf.keras.callbacks.CSVLogger(path),
    ],
)
def test_a_callback_that_reads_the_values_must_come_after(reader, tmp_path):
    callback = tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"])
    callbacks = [reader(str(tmp_path / "log.csv")), callback]
    with pytest.raises(ValueError, match="EvaluateRows must come before the callbacks"):
        fit(row_model(), callbacks)
    other = tf.keras.callbacks.EarlyStopping("loss")
    assert "val_mrr" in fit(row_model(), [other, callback])


def test_every_second_epoch():
    recorder = Recorder()
    callback = tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"], every=2, prefix="dev_")
    fit(row_model(), [callback, recorder], epochs=5)
    assert ["dev_mrr" in logs for logs in recorder.epochs] == [0, 1, 0, 1, 0]


def test_every_second_step():
    recorder = Recorder()
    callback = tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"], every=2, unit="steps")
    fit(row_model(), [callback, recorder])  # two epochs of three steps
    assert ["val_mrr" in logs for logs in recorder.batches] == [0, 1, 0, 1, 0, 1]
    for epoch, last in ((0, 1), (1, 5)):
        assert recorder.epochs[epoch]["val_mrr"] == recorder.batches[last]["val_mrr"]


def test_slices_weights_and_numbers_of_queries():
    weights = np.where(USERS == "bob", 3.0, 1.0)
    arguments = {"sample_weight": weights, "num_queries": True, "separator": "_"}
    callback = tfr.EvaluateRows(
        X, CLICKS, USERS, ["ndcg@5"], by={"language": LANGUAGES}, **arguments
    )
    model = row_model()
    history = fit(model, [callback])
    scores = model.predict(X, verbose=0)[:, 0]
    rows = USERS, CLICKS, scores, ["ndcg@5"]
    expected = tfr.evaluate_rows(*rows, by={"language": LANGUAGES}, **arguments)
    last = {name: values[-1] for name, values in history.items() if name != "loss"}
    assert last["val_ndcg_5"] == pytest.approx(expected.whole["ndcg_5"])
    for language in ("de", "en"):
        value = expected[language]["ndcg_5"]
        assert last[f"val_ndcg_5/language:{language}"] == pytest.approx(value)


def test_groups_of_sorted_rows():
    order = np.argsort(USERS, kind="stable")
    groups = np.unique(USERS, return_counts=True)[1]
    callback = tfr.EvaluateRows(X[order], CLICKS[order], None, ["mrr"], groups=groups)
    by_id = tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"], prefix="id_")
    history = fit(row_model(), [callback, by_id])
    assert history["val_mrr"] == pytest.approx(history["id_mrr"], rel=1e-12)


def test_columns_of_a_frame():
    table = pd.DataFrame({"user": USERS, "click": CLICKS, "language": LANGUAGES})
    names = "click", "user", ["mrr"]
    by_name = tfr.EvaluateRows(X, *names, data=table, by=["language"])
    arrays = tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"], prefix="a_")
    history = fit(row_model(), [by_name, arrays])
    assert history["val_mrr"] == history["a_mrr"]
    assert "val_mrr/language:de" in history


def test_lists_are_evaluated_with_slices():
    by = ["x", "y"] * 4
    callback = tfr.EvaluateLists(LISTS, LABELS, ["ndcg@3", "mrr"], by=by)
    model = list_model()
    history = fit(model, [callback], LISTS, LABELS)
    found = tfr.evaluate(LABELS, model.predict(LISTS, verbose=0), ["ndcg@3"], by=by)
    assert history["val_ndcg@3"][-1] == pytest.approx(found.whole["ndcg@3"])
    value = history["val_ndcg@3/slice:y"][-1]
    assert value == pytest.approx(found["y"]["ndcg@3"])


def test_a_catalogue():
    inputs = tf.keras.Input((3,))
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(7)(inputs))
    model.compile("sgd", "mse")
    ids = RNG.integers(0, 7, 8)
    callback = tfr.EvaluateLists(LISTS[:, 0], ids, ["mrr"], inputs="catalogue")
    history = fit(model, [callback], LISTS[:, 0], np.eye(7)[ids])
    scores = model.predict(LISTS[:, 0], verbose=0)
    expected = tfr.evaluate(ids, scores, ["mrr"], inputs="catalogue")
    assert history["val_mrr"][-1] == pytest.approx(expected["mrr"])


def test_one_of_several_outputs():
    inputs = tf.keras.Input((3,))
    heads = {n: tf.keras.layers.Dense(1, name=n)(inputs) for n in ("click", "buy")}
    model = tf.keras.Model(inputs, heads)
    model.compile("sgd", {"click": "mse", "buy": "mse"})
    targets = {"click": CLICKS[:, np.newaxis], "buy": CLICKS[:, np.newaxis]}
    arguments = X, CLICKS, USERS, ["mrr"]
    history = fit(model, [tfr.EvaluateRows(*arguments, output="buy")], X, targets)
    scores = model.predict(X, verbose=0)["buy"][:, 0]
    expected = tfr.evaluate_rows(USERS, CLICKS, scores, ["mrr"])
    assert history["val_mrr"][-1] == pytest.approx(expected["mrr"])
    for output in (None, "like"):
        with pytest.raises(ValueError, match="must name one output of the model"):
            fit(model, [tfr.EvaluateRows(*arguments, output=output)], X, targets)
    with pytest.raises(ValueError, match="Omit it"):
        fit(row_model(), [tfr.EvaluateRows(*arguments, output="buy")])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: tfr.EvaluateRows(X, CLICKS, USERS, ["ngcd"]),
            "A metric's name is one of",
        ),
        (lambda: tfr.EvaluateRows(X, CLICKS, USERS[:3], ["mrr"]), "value for each row"),
        (lambda: tfr.EvaluateRows(X, CLICKS, None, ["mrr"]), "Give either `query_ids`"),
        (lambda: tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"], every=0), "at least 1"),
        (lambda: tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"], unit="x"), "'steps'"),
        (lambda: tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"], prefix=3), "a string"),
        (lambda: tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"], gian="x"), "'gian'"),
        (lambda: tfr.EvaluateLists(X, CLICKS, ["mrr"], inputs="x"), "'catalogue'"),
        (lambda: tfr.EvaluateLists(X, CLICKS, ["mrr"], every="2"), "an int"),
    ],
)
def test_mistakes_raise_before_the_training(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_model_of_lists_is_refused_for_rows():
    inputs = tf.keras.Input((3,))
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(2)(inputs))
    model.compile("sgd", "mse")
    callback = tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"])
    with pytest.raises(ValueError, match="one score for each row"):
        fit(model, [callback], X, np.eye(2)[CLICKS])


@pytest.mark.skipif(not IS_KERAS_3, reason="Keras 2 has no such argument")
def test_a_model_that_is_trained_in_steps_per_execution():
    model = row_model()
    model.compile("sgd", "binary_crossentropy", steps_per_execution=2)
    history = fit(model, [tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"])])
    assert len(history["val_mrr"]) == 2
