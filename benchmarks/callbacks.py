"""Measures what the callbacks add to training.

A model of a user and an item is trained on a million rows. The callback `EvaluateRows`
takes turns with `predict` on its rows and with `evaluate_rows` on their scores, which
are the least that it can cost. `EvaluateLists` on a dataset takes turns with `predict`
on the same lists as arrays, and `evaluate`. Run it with:

    python benchmarks/callbacks.py
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's start-up messages

import numpy as np
import tensorflow as tf
from report import Target, publish
from timing import median_and_spread, ratio, timed

from tfrankmetrics import EvaluateLists, EvaluateRows, evaluate, evaluate_rows

USERS, ITEMS, ROWS, OF_A_USER = 100_000, 10_000, 1_000_000, 10
BATCH = 4096
NAMES = ["ndcg@10", "map@10", "mrr", "precision@5", "gauc"]
# Of the epochs: rows to train on, rows to validate on, and rows of a batch.
EPOCH = (ROWS, ROWS // 10, 1024)


def data(rows):
    """The users and items of rows, `[rows, 2]`, and whether the user clicked."""
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(rows // OF_A_USER), OF_A_USER)
    x = np.stack([users, rng.integers(0, ITEMS, rows)], axis=1).astype("int32")
    order = rng.permutation(rows)
    return x[order], (rng.random(rows) < 0.3).astype("float32")[order]


def pointwise_model():
    """A model with embeddings of the user and the item and two layers."""
    pairs = tf.keras.Input((2,), dtype="int32")
    embedded = [
        tf.keras.layers.Embedding(size, 16)(pairs[:, number])
        for number, size in enumerate((USERS, ITEMS))
    ]
    hidden = tf.keras.layers.Concatenate()(embedded)
    hidden = tf.keras.layers.Dense(64, activation="relu")(hidden)
    model = tf.keras.Model(pairs, tf.keras.layers.Dense(1, "sigmoid")(hidden))
    model.compile("adam", "binary_crossentropy")
    return model


def attached(callback, model):
    """A function that calls a callback as `fit` does at the end of an epoch."""
    callback.set_params({"verbose": 0})
    callback.set_model(model)
    callback.on_train_begin()
    return lambda: callback.on_epoch_end(0, {})


def of_rows(rows, model):
    """Compares `EvaluateRows` with its two parts."""
    x, clicks = data(ROWS)
    callback = EvaluateRows(x, clicks, x[:, 0], NAMES, batch_size=BATCH)
    scores = model.predict(x, batch_size=BATCH, verbose=0)[:, 0]
    return compared(
        f"rows, {ROWS:,} of {ROWS // OF_A_USER:,} users",
        {
            "the callback": attached(callback, model),
            "predict": lambda: model.predict(x, batch_size=BATCH, verbose=0),
            "evaluate": lambda: evaluate_rows(x[:, 0], clicks, scores, NAMES),
        },
        rows,
    )


def of_lists(rows):
    """Compares `EvaluateLists` on a dataset with the two parts on arrays."""
    x = np.random.default_rng(0).normal(size=(20_000, 50, 8)).astype("float32")
    labels = (x[..., 0] > 1).astype(int)
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    model.fit(x[:256], labels[:256, :, np.newaxis], verbose=0)
    batches = tf.data.Dataset.from_tensor_slices((x, labels)).batch(256).cache()
    callback = EvaluateLists(batches.prefetch(2), metrics=NAMES)
    scores = model.predict(x, batch_size=256, verbose=0)
    return compared(
        "lists, 20,000 of 50 items, a dataset",
        {
            "the callback": attached(callback, model),
            "predict": lambda: model.predict(x, batch_size=256, verbose=0),
            "evaluate": lambda: evaluate(labels, scores, NAMES),
        },
        rows,
    )


def compared(what, calls, rows):
    """Adds a row. Returns the callback's time, by that of its two parts."""
    times = timed(calls, seconds=60, least=7)
    times["parts"] = times["predict"] + times["evaluate"]  # the calls take turns
    found = ratio(times, "the callback", "parts")
    rows.append([what, *map(median_and_spread, times.values()), f"{found:.3g}"])
    print(*rows[-1], sep="  ", flush=True)
    return found


def of_epochs(rows, model):
    """Measures the share of the callback in an epoch."""
    trained, validated, size = EPOCH
    x, clicks = data(trained)
    dev, dev_clicks = x[:validated], clicks[:validated]
    arguments = {"batch_size": size, "verbose": 0}
    callback = EvaluateRows(dev, dev_clicks, dev[:, 0], NAMES, batch_size=BATCH)
    times = timed(
        {
            "without": lambda: model.fit(x, clicks, **arguments),
            "the callback": attached(callback, model),
        },
        seconds=60,
        least=7,
    )
    share = float(
        np.median(times["the callback"])
        / np.median(times["without"] + times["the callback"])
    )
    what = f"{trained:,} rows in batches of {size}, {validated:,} to evaluate"
    rows.append([what, *map(median_and_spread, times.values()), f"{100 * share:.2g}%"])
    print(*rows[-1], sep="  ", flush=True)


def main():
    """Measures all cases and publishes the results."""
    parts = [["case", "the callback", "predict", "evaluate", "predict + evaluate"]]
    parts[0].append("the callback / both")
    epochs = [["case", "an epoch without it", "the callback", "its share"]]
    model = pointwise_model()
    of_epochs(epochs, model)
    target = Target.at_most(
        1.1,
        f"the callback on rows, {ROWS:,} rows: EvaluateRows / predict plus "
        "evaluate_rows",
        of_rows(parts, model),
    )
    of_lists(parts)
    publish(
        "callbacks",
        "What the callbacks add to training",
        ["tensorflow", "keras"],
        {
            "Beside predict and evaluate, milliseconds": parts,
            "In an epoch of a small model, milliseconds": epochs,
        },
        [target],
    )


if __name__ == "__main__":
    main()
