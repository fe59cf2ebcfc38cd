"""Learns to retrieve images of the same digit and evaluates the ranking.

Each query is an image of a handwritten digit. Its list holds other images in random
order, and lists differ in length. An image is relevant if it shows the same digit. The
script trains a small Keras model to rank the images, with ranking metrics in `compile`
and early stopping on one of them. Then it evaluates every query of the test set. Run it
with:

    python examples/quickstart.py

It takes about 20 seconds and writes quickstart_output/quickstart.png.
"""

import argparse
import pathlib

import matplotlib
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from terminal import one_line, quiet

with quiet():
    import tensorflow as tf

from tfrankmetrics import EvaluateLists, RankingMetrics, evaluate

matplotlib.use("Agg")
import matplotlib.pyplot as plt

METRICS = ["ndcg@5", "ndcg@10", "map", "mrr", "precision@5", "recall@10"]
# One list in twenty has no image of the query's digit. It is skipped, not counted as 0.
EMPTY = "skip"
SHORTEST, LONGEST = 15, 60


def make_lists(images, digits, rng):
    """One list for each image: other images, and labels that mark those of its digit.

    Lists are padded to one length with blank images and the label -1.
    """
    number = len(images)
    candidates = np.zeros((number, LONGEST, images.shape[1]), "float32")
    labels = np.full((number, LONGEST), -1.0, "float32")
    for query in range(number):
        length = rng.integers(SHORTEST, LONGEST + 1)
        others = rng.choice(np.delete(np.arange(number), query), length, replace=False)
        candidates[query, :length] = images[others]
        labels[query, :length] = digits[others] == digits[query]
    return {"query": images, "candidates": candidates}, labels


def load_splits(rng):
    """Lists for training, validation and test. The splits share no image."""
    images, digits = load_digits(return_X_y=True)
    images = (images / 16).astype("float32")
    order = rng.permutation(len(images))
    splits = np.split(order, [900, 1200])
    return [make_lists(images[part], digits[part], rng) for part in splits]


def make_model():
    """A model whose scores are cosines of candidate and query embeddings."""
    hidden = tf.keras.layers.Dense(64, activation="relu")
    embedding = tf.keras.layers.Dense(16)
    query = tf.keras.Input((64,), name="query")
    candidates = tf.keras.Input((None, 64), name="candidates")
    cosines = tf.keras.layers.Dot(axes=(2, 1), normalize=True)(
        [embedding(hidden(candidates)), embedding(hidden(query))]
    )
    scores = tf.keras.layers.Rescaling(10.0)(cosines)
    return tf.keras.Model({"query": query, "candidates": candidates}, scores)


def softmax_loss(labels, scores):
    """Cross-entropy between each list's labels and the softmax of its scores."""
    is_item = labels >= 0
    scores = tf.where(is_item, scores, -1e9)
    relevant = tf.where(is_item, labels, 0.0)
    share = tf.math.divide_no_nan(
        relevant, tf.reduce_sum(relevant, axis=1, keepdims=True)
    )
    return -tf.reduce_sum(share * tf.nn.log_softmax(scores), axis=1)


def evaluate_queries(model, features, labels):
    """A table with one row per query and one column per metric."""
    scores = model.predict(features, verbose=0)
    values = evaluate(labels, scores, METRICS, per_query=True, empty=EMPTY)
    return pd.DataFrame(values).dropna()


def summary(untrained, trained):
    """Means over the test queries, with standard errors."""
    return pd.DataFrame(
        {
            f"{model} {column}": value
            for model, values in (("untrained", untrained), ("trained", trained))
            for column, value in (("mean", values.mean()), ("s.e.", values.sem()))
        }
    )


def plot(history, untrained, trained, queries, path):
    """Plots the learning curves, and which share of the queries has which value."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    epochs = range(1, len(history["loss"]) + 1)
    left.plot(epochs, history["train_ndcg@10"], "--", label="training")
    left.plot(epochs, history["val_ndcg@10"], label="validation")
    left.set(xlabel="epoch", ylabel="mean ndcg@10", title=queries)
    left.xaxis.get_major_locator().set_params(integer=True)
    left.legend()
    for label, values in (("untrained", untrained), ("trained", trained)):
        mean = values["ndcg@10"].mean()
        right.ecdf(
            values["ndcg@10"], complementary=True, label=f"{label}, mean {mean:.3f}"
        )
    right.set(
        xlabel="ndcg@10, at least",
        ylabel="share of queries",
        title=f"{len(trained)} test queries",
    )
    right.legend(loc="lower left")
    figure.savefig(path, dpi=120)


def main(epochs, output):
    tf.keras.utils.set_random_seed(0)
    train, validation, test = load_splits(np.random.default_rng(0))
    model = make_model()
    model.compile(
        optimizer=tf.keras.optimizers.Adam(3e-3),
        loss=softmax_loss,
        metrics=[RankingMetrics(METRICS, empty=EMPTY)],
    )
    untrained = evaluate_queries(model, *test)
    stop = tf.keras.callbacks.EarlyStopping(
        "val_ndcg@10", mode="max", patience=3, restore_best_weights=True
    )
    # Keras's logs of training are means over an epoch in which the model got better.
    # This callback evaluates the training lists after the epoch.
    after_epoch = EvaluateLists(*train, metrics=METRICS, empty=EMPTY, prefix="train_")
    history = model.fit(
        *train,
        validation_data=validation,
        epochs=epochs,
        batch_size=64,
        callbacks=[
            after_epoch,
            stop,
            one_line(["loss", "train_ndcg@10", "val_ndcg@10"], stop),
        ],
        verbose=0,
    ).history
    trained = evaluate_queries(model, *test)

    lists = len(test[1])
    print(
        f"\nMean over {len(trained)} test queries, with its standard error. "
        f"({lists - len(trained)} of {lists}\n"
        "lists have no image of the query's digit, and are skipped.)\n"
    )
    print(summary(untrained, trained).to_string(float_format="{:.4f}".format))
    output.mkdir(parents=True, exist_ok=True)
    queries = " and ".join(
        f"{(labels > 0).any(axis=1).sum()} {part}"
        for part, (_, labels) in (("training", train), ("validation", validation))
    )
    plot(history, untrained, trained, f"{queries} queries", output / "quickstart.png")
    print(f"\nLearning curves and per-query values: {output / 'quickstart.png'}")
    return untrained, trained


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20, help="maximum number")
    parser.add_argument(
        "--output", type=pathlib.Path, default=pathlib.Path("quickstart_output")
    )
    arguments = parser.parse_args()
    main(arguments.epochs, arguments.output)
