"""Learns to rank search results from a table and compares two losses query by query.

The synthetic search log has one row for each query and document, with features and a
grade from 0 to 4. Long queries have higher text scores and fewer good documents. Across
queries, a high text score therefore looks like a bad sign. Within a query, it is a good
sign. The script trains the same small network twice: on the grades (pointwise) and on
the order within each list (listwise). It compares both models with a ranking by the
text score alone. Run it with:

    python examples/learning_to_rank.py

It takes about half a minute and writes learning_to_rank_output/learning_to_rank.png.
"""

import argparse
import pathlib

import matplotlib
import numpy as np
import pandas as pd
from terminal import one_line, quiet

with quiet():
    import tensorflow as tf

from tfrankmetrics import RankingMetrics, compare, evaluate_rows

matplotlib.use("Agg")
import matplotlib.pyplot as plt

METRICS = ["ndcg@5", "ndcg@10", "map", "mrr", "err@10", "opa"]
FEATURES = ["text_score", *(f"feature_{number}" for number in range(1, 8))]


def make_log(queries, seed):
    """Shuffled rows with a query, features and a grade; 5 to 40 rows per query."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(5, 41, queries)
    query = np.repeat(np.arange(queries), lengths)
    features = rng.normal(size=(len(query), len(FEATURES)))
    quality = features[:, 0] + features[:, 1] * features[:, 2]
    quality += 0.5 * rng.normal(size=len(query))
    words = rng.normal(scale=0.6, size=queries)[query]
    features[:, 0] += words
    log = pd.DataFrame(features.astype("float32"), columns=FEATURES)
    log["query"] = [f"query {number}" for number in query]
    log["words"] = np.where(words > 0, "many words", "few words")
    log["grade"] = np.digitize(quality - 2 * words, [0.5, 1.5, 2.5, 3.5])
    return log.sample(frac=1, random_state=seed, ignore_index=True)


def as_lists(log):
    """Features `[B, N, F]` and grades `[B, N]`, padded to the longest list."""
    groups = [rows for _, rows in log.groupby("query", sort=False)]
    longest = max(map(len, groups))
    features = np.zeros((len(groups), longest, len(FEATURES)), "float32")
    grades = np.full((len(groups), longest), -1.0, "float32")
    for place, rows in enumerate(groups):
        features[place, : len(rows)] = rows[FEATURES]
        grades[place, : len(rows)] = rows["grade"]
    return features, grades


def pointwise_loss(grades, scores):
    """Squared error of the grades, averaged over each padded list."""
    errors = tf.where(grades >= 0, (grades - scores) ** 2, 0.0)
    return tf.reduce_mean(errors, axis=1)


def listwise_loss(grades, scores):
    """Cross-entropy between each list's gains and the softmax of its scores."""
    gains = tf.where(grades >= 0, 2.0**grades - 1.0, 0.0)
    share = tf.math.divide_no_nan(gains, tf.reduce_sum(gains, axis=1, keepdims=True))
    scores = tf.where(grades >= 0, scores, -1e9)
    return -tf.reduce_sum(share * tf.nn.log_softmax(scores), axis=1)


def make_model():
    """A model that scores each document by its own features."""
    features = tf.keras.Input((None, len(FEATURES)))
    hidden = tf.keras.layers.Dense(64, activation="relu")(features)
    hidden = tf.keras.layers.Dense(32, activation="relu")(hidden)
    scores = tf.keras.layers.Dense(1)(hidden)
    return tf.keras.Model(features, tf.keras.layers.Reshape((-1,))(scores))


def train(loss, lists, validation, epochs):
    tf.keras.utils.set_random_seed(0)
    model = make_model()
    model.compile(
        tf.keras.optimizers.Adam(0.003),
        loss,
        metrics=[RankingMetrics(METRICS, average="macro")],
    )
    stop = tf.keras.callbacks.EarlyStopping(
        "val_ndcg@10", mode="max", patience=5, restore_best_weights=True
    )
    history = model.fit(
        *lists,
        validation_data=validation,
        batch_size=32,
        epochs=epochs,
        callbacks=[stop, one_line(["loss", "val_loss", "val_ndcg@10"], stop)],
        verbose=0,
    ).history
    return model, history["val_ndcg@10"]


def evaluate_log(log, scores):
    """The values of each query, by metric."""
    return evaluate_rows(
        "query",
        "grade",
        scores,
        METRICS,
        data=log,
        by="words",
        average="macro",  # gives all queries the same weight, also in opa
        per_query=True,
    )


def plot(curves, values, validation_queries, path):
    """Plots the learning curves and the gain of each query from the listwise loss."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for name, curve in curves.items():
        left.plot(range(1, len(curve) + 1), curve, label=name)
    left.set(
        xlabel="epoch",
        ylabel="ndcg@10",
        title=f"{validation_queries} validation queries",
    )
    left.xaxis.get_major_locator().set_params(integer=True)
    left.legend()
    gain = values["listwise"]["ndcg@10"] - values["pointwise"]["ndcg@10"]
    right.hist(gain, bins=np.linspace(-0.5, 0.5, 41))
    right.axvline(0, color="black", linewidth=0.8)
    right.axvline(gain.mean(), color="tab:orange", label=f"mean {gain.mean():+.3f}")
    right.set(
        xlabel="ndcg@10, listwise minus pointwise",
        ylabel="test queries",
        title=f"Gain of each of {len(gain)} test queries",
    )
    right.legend()
    figure.savefig(path, dpi=120)


def main(epochs, output, queries=1500):
    """Trains and compares the models. Returns the values of each ranking."""
    training, validation = make_log(queries, seed=0), make_log(queries // 5, seed=1)
    test = make_log(queries // 3, seed=2)
    lists, validation = as_lists(training), as_lists(validation)
    curves, values = {}, {"text score": evaluate_log(test, test["text_score"])}
    for name, loss in (("pointwise", pointwise_loss), ("listwise", listwise_loss)):
        print(f"\n{name}:")
        model, curves[name] = train(loss, lists, validation, epochs)
        rows = test[FEATURES].to_numpy()[np.newaxis]  # the model scores each row alone
        values[name] = evaluate_log(test, np.asarray(model(rows))[0])

    number = test["query"].nunique()
    print(f"\n{number} test queries ({len(test)} rows):\n")
    print(compare(values))
    print("\nThe two models, by the length of the query:\n")
    models = {name: values[name] for name in ("pointwise", "listwise")}
    by_words = compare(models, by="words").to_pandas()
    is_ndcg = by_words["metric"] == "ndcg@10"
    columns = ["words", "difference", "low", "high", "wins", "losses", "adjusted_p"]
    print(by_words.loc[is_ndcg, columns].to_string(index=False))
    output.mkdir(parents=True, exist_ok=True)
    number = len(validation[1])
    plot(curves, values, number, output / "learning_to_rank.png")
    print(f"\nLearning curves and gains: {output / 'learning_to_rank.png'}")
    return values


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40, help="maximum number")
    parser.add_argument(
        "--output", type=pathlib.Path, default=pathlib.Path("learning_to_rank_output")
    )
    arguments = parser.parse_args()
    main(arguments.epochs, arguments.output)
