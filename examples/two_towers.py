"""Trains two towers on interactions, and stops early on their rank among all items.

The query tower reads the last items of a user, and the candidate tower reads one item.
In training, a user's next item competes with the next items of the other users in the
batch. Metrics of a batch say little, since they fall with the size of the batch. So a
callback ranks the next item of each user among all items after every epoch, without
those that the user has seen. Run it on made data, or on MovieLens 100K:

    python examples/two_towers.py
    python examples/two_towers.py --ratings ml-100k/u.data

The learning curves are saved as two_towers.png.
"""

import argparse
import pathlib

import matplotlib.pyplot as plt
import numpy as np
from terminal import one_line, quiet

with quiet():
    import tensorflow as tf

from movielens import WHERE, made_histories, padded, read_histories

from tfrankmetrics import EvaluateRetrieval, RankingMetrics, evaluate_retrieval

METRICS = ["ndcg@10", "hit_rate@10", "mrr"]
STEPS, BATCH = 10, 256


class TwoTowers(tf.keras.Model):
    """A tower for the last items of a user, and a tower for the next item."""

    def __init__(self, items, width=64):
        super().__init__()
        self.query_tower = tf.keras.Sequential(
            [
                tf.keras.layers.Embedding(items + 1, width, mask_zero=True),
                tf.keras.layers.GlobalAveragePooling1D(),
                tf.keras.layers.Dense(width),
            ]
        )
        self.candidate_tower = tf.keras.layers.Embedding(items, width)

    def call(self, inputs):
        """The scores of all next items of the batch, `[B, B]`."""
        queries = self.query_tower(inputs["last"])
        candidates = self.candidate_tower(inputs["next"])
        return tf.matmul(queries, candidates, transpose_b=True)


def last_items(histories):
    """The last items of each history, from 1, with 0 for padding."""
    return padded(histories, STEPS) + 1


def batches(histories):
    """Every item of the histories but the first, with the items before it."""
    pairs = [(h[:end], h[end]) for h in histories for end in range(1, len(h))]
    before, following = zip(*pairs)
    inputs = {"last": last_items(before), "next": np.array(following)}
    dataset = tf.data.Dataset.from_tensor_slices(inputs)
    dataset = dataset.shuffle(len(pairs), seed=0).batch(BATCH, drop_remainder=True)
    return dataset.map(lambda batch: (batch, tf.range(BATCH)))


def question(histories):
    """The last item of each history is to be found; those before it are excluded."""
    before = [history[:-1] for history in histories]
    return {
        "queries": last_items(before),
        "relevant": np.array([history[-1] for history in histories]),
        "exclude": before,
    }


def train(model, histories, items, epochs):
    """Fits the model, and stops when the rank among all items gets no better."""
    model.compile(
        tf.keras.optimizers.Adam(0.003),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[RankingMetrics(["ndcg@10"], inputs="catalog", prefix="in_batch_")],
    )
    whole_catalog = EvaluateRetrieval(
        candidates=np.arange(items),
        metrics=METRICS,
        query_tower=model.query_tower,
        candidate_tower=model.candidate_tower,
        **question([history[:-1] for history in histories]),
    )
    stop = tf.keras.callbacks.EarlyStopping(
        "val_ndcg@10", mode="max", patience=3, restore_best_weights=True
    )
    return model.fit(
        batches([history[:-2] for history in histories]),
        epochs=epochs,
        shuffle=False,  # the dataset shuffles
        callbacks=[
            whole_catalog,
            stop,
            one_line(["loss", "in_batch_ndcg@10", "val_ndcg@10"], stop),
        ],
        verbose=0,
    ).history


def plot(history, users, items, path):
    """The learning curves, in the batch and over the whole catalog."""
    figure, (of_batch, of_all) = plt.subplots(1, 2, figsize=(9, 3.5))
    epochs = range(1, len(history["loss"]) + 1)
    best = int(np.argmax(history["val_ndcg@10"]))
    of_batch.plot(epochs, history["in_batch_ndcg@10"], marker="o")
    of_batch.set_title(f"ndcg@10 in training, among {BATCH} items of a batch")
    of_all.plot(epochs, history["val_ndcg@10"], marker="o", color="tab:orange")
    of_all.axvline(best + 1, color="gray", linestyle=":", label="kept weights")
    of_all.set_title(f"ndcg@10 of {users} users, among all {items} items")
    of_all.legend()
    for axes in (of_batch, of_all):
        axes.set_xlabel("epoch")
        axes.set_ylim(bottom=0)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    print(f"\nThe learning curves are in {path}.")


def main(ratings=None, epochs=30, seed=0, path="two_towers.png"):
    """Trains and evaluates. Returns the logs of training, and the test values."""
    tf.keras.utils.set_random_seed(seed)
    if ratings is None:
        print(WHERE.replace("movielens.py", "two_towers.py"))
    histories, items = read_histories(ratings) if ratings else made_histories()
    model = TwoTowers(items)
    history = train(model, histories, items, epochs)
    plot(history, len(histories), items, path)
    test = evaluate_retrieval(
        candidates=np.arange(items),
        metrics=METRICS,
        query_tower=model.query_tower,
        candidate_tower=model.candidate_tower,
        **question(histories),
    )
    print(f"{len(histories)} users, {items} items; the last item of each user:")
    for name, value in test.items():
        print(f"{name:12s} {value:.4f}")
    return history, test


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ratings", type=pathlib.Path, help="path of u.data")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.ratings and not arguments.ratings.is_file():
        parser.error(f"{arguments.ratings} is not a file.\n\n{WHERE}")
    main(**vars(arguments))
