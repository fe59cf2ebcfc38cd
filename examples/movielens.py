"""Recommends the next film to each MovieLens user and evaluates the recommendations.

The test set holds the last film that each user rated. The validation set holds the film
before it. The model reads the earlier films in order and scores the whole catalog.
Films that the user has seen are excluded, except in the rows "seen items too". The
script compares a small recurrent model with the popularity of the films. Run it with
the path of the ratings:

    python examples/movielens.py --ratings u.data

`u.data` is a file of MovieLens 100K. Each line has a user, an item, a rating and a
time, separated by tabs. The script also reads the same table with a header line, such
as a `.inter` file. GroupLens does not allow redistribution, so the ratings are not part
of this repository. Without a path, the script says where to get them, and runs on made
ratings.
"""

import argparse
import pathlib

import numpy as np
import pandas as pd
from terminal import one_line, quiet

with quiet():
    import tensorflow as tf

from tfrankmetrics import RankingMetrics, evaluate

METRICS = ["hit_rate@10", "ndcg@10", "mrr@10"]
STEPS = 50  # the number of most recent films that the model reads
PADDING = -1
WHERE = """The ratings are made, since no path was given. To run on MovieLens 100K:

    curl -LO https://files.grouplens.org/datasets/movielens/ml-100k.zip
    unzip ml-100k.zip
    python examples/movielens.py --ratings ml-100k/u.data

Its license is on https://grouplens.org/datasets/movielens/100k/. The wheel of recbole
holds the same ratings:

    pip download --no-deps recbole==1.2.1
    unzip recbole-*.whl 'recbole/dataset_example/ml-100k/*'
    python examples/movielens.py --ratings recbole/dataset_example/ml-100k/ml-100k.inter
"""


def made_histories(users=400, items=200, length=30):
    """Made histories: after an item, a user nearly always takes one of the next two."""
    rng = np.random.default_rng(0)
    steps = rng.choice([1, 2, 17], (users, length), p=[0.6, 0.35, 0.05])
    rows = (rng.integers(0, items, (users, 1)) + np.cumsum(steps, axis=1)) % items
    return [row[np.sort(np.unique(row, return_index=True)[1])] for row in rows], items


def read_histories(path):
    """Each user's items, numbered from 0, in order of time; and the number of items."""
    with open(path, encoding="utf-8") as lines:
        has_header = ":" in lines.readline()
    ratings = pd.read_csv(
        path,
        sep="\t",
        names=["user", "item", "rating", "time"],
        skiprows=int(has_header),
    )
    ratings["item"] = ratings["item"].factorize()[0]
    ratings = ratings.sort_values(["user", "time"], kind="stable")
    histories = [items.to_numpy() for _, items in ratings.groupby("user")["item"]]
    return [items for items in histories if len(items) >= 4], ratings["item"].nunique()


def padded(histories, size):
    """The last items of each history, `[users, size]`, padded at the start."""
    rows = np.full((len(histories), size), PADDING)
    for row, items in zip(rows, histories):
        last = items[-size:]
        row[size - len(last) :] = last
    return rows


def make_model(items, units=64):
    """A model that returns logits for the next item, `[users, steps, items]`."""
    histories = tf.keras.Input((None,), dtype="int32")
    shifted = tf.keras.layers.Lambda(lambda ids: ids + 1)(histories)  # 0 is padding
    embedded = tf.keras.layers.Embedding(items + 1, units)(shifted)
    hidden = tf.keras.layers.GRU(units, return_sequences=True)(embedded)
    hidden = tf.keras.layers.Dropout(0.3)(hidden)
    return tf.keras.Model(histories, tf.keras.layers.Dense(items)(hidden))


def cross_entropy(targets, logits):
    """The mean cross-entropy over the steps that have a target."""
    losses = tf.keras.losses.sparse_categorical_crossentropy(
        tf.maximum(targets, 0), logits, from_logits=True
    )
    counts = tf.cast(tf.reshape(targets, tf.shape(losses)) >= 0, losses.dtype)
    return tf.math.divide_no_nan(tf.reduce_sum(losses * counts), tf.reduce_sum(counts))


def train(model, histories, epochs):
    """Fits the model to all of each user's steps except the last two.

    In validation, only the next-to-last step has a target.
    """
    trained = padded([items[:-2] for items in histories], STEPS + 1)
    validation = padded([items[:-1] for items in histories], STEPS + 1)
    only_last = np.full_like(validation[:, 1:], PADDING)
    only_last[:, -1] = validation[:, -1]
    # A padding step has no target, so a user's first film is never a target.
    targets = np.where(trained[:, :-1] >= 0, trained[:, 1:], PADDING)
    model.compile(
        tf.keras.optimizers.Adam(0.003),
        cross_entropy,
        metrics=[RankingMetrics(METRICS, inputs="catalog")],
    )
    stop = tf.keras.callbacks.EarlyStopping(
        "val_ndcg@10", mode="max", patience=5, restore_best_weights=True
    )
    return model.fit(
        trained[:, :-1],
        targets,
        validation_data=(validation[:, :-1], only_last),
        batch_size=64,
        epochs=epochs,
        callbacks=[stop, one_line(["loss", "val_loss", "val_ndcg@10"], stop)],
        verbose=0,
    ).history


def main(ratings=None, epochs=40, seed=0):
    """Trains and evaluates. Returns the test values of each recommender."""
    tf.keras.utils.set_random_seed(seed)
    if ratings is None:
        print(WHERE, flush=True)
        histories, items = made_histories()
    else:
        histories, items = read_histories(ratings)
    model = make_model(items)
    train(model, histories, epochs)

    target = np.array([history[-1] for history in histories])
    seen = padded([history[:-1] for history in histories], max(map(len, histories)))
    counts = np.bincount(np.concatenate([h[:-2] for h in histories]), minlength=items)
    inputs = padded([history[:-1] for history in histories], STEPS)
    logits = np.asarray(model.predict(inputs, verbose=0))[:, -1]
    test = {}
    for name, scores in {
        "popularity": np.tile(counts, (len(histories), 1)),
        "model": logits,
    }.items():
        query = {"ids": target, "exclude": seen}
        test[name] = evaluate(query, scores, METRICS, inputs="catalog")
        test[f"{name}, seen items too"] = evaluate(
            target, scores, METRICS, inputs="catalog"
        )
    print(f"\n{len(histories)} users, {items} items; the last item of each user:")
    print(pd.DataFrame(test).T.round(4).to_string())
    return test


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--ratings", type=pathlib.Path, help="path of u.data; made ratings without"
    )
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.ratings is not None and not arguments.ratings.is_file():
        parser.error(
            f"--ratings must be the path of u.data. Received: {arguments.ratings}, "
            "which is not a file. Without --ratings, the script says where to get it."
        )
    main(**vars(arguments))
