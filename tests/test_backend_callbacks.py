"""Tests callbacks and towers on each backend of Keras 3, with each kind of data set.

KERAS_BACKEND=jax python -m pytest tests/test_backend_callbacks.py
"""

import collections

import numpy as np
import pytest
from keras_backend import IS_KERAS_3, IS_TENSORFLOW, close, keras

import tfrankmetrics as trm

if not IS_KERAS_3:
    pytest.skip("Keras 2 has one backend", allow_module_level=True)
if IS_TENSORFLOW:
    pytestmark = pytest.mark.slow("other files test the same with TensorFlow")

RNG = np.random.default_rng(0)
QUERIES, ITEMS, BATCH_SIZE = 24, 9, 8
X = np.round(RNG.normal(size=(QUERIES, ITEMS, 4))).astype("float32")
LABELS = RNG.integers(-1, 4, (QUERIES, ITEMS)).astype("float32")
WEIGHTS = RNG.uniform(0.5, 2, QUERIES).astype("float32")
NAMES = ["ndcg@3", "map", "mrr@5", "precision@2", "recall@4", "err", "auc", "opa"]


def list_model(mask=False):
    """A model of lists. Its scores are exact, so that ties stay ties."""
    inputs = keras.Input((ITEMS, 4))
    items = keras.layers.Masking()(inputs) if mask else inputs
    halves = keras.initializers.Constant(0.5)
    dense = keras.layers.Dense(1, kernel_initializer=halves, use_bias=False)
    model = keras.Model(inputs, dense(items))
    # A mask of items requires a loss for each item.
    model.compile("sgd", (lambda y, scores: (scores - y) ** 2) if mask else "mse")
    return model


def scores_of(model, x=X):
    return model.predict(x, verbose=0)[..., 0]


class Lists(keras.utils.PyDataset):
    """Batches of a `PyDataset`."""

    def __init__(self, *arrays):
        super().__init__()
        self.arrays = arrays

    def __len__(self):
        return -(-QUERIES // BATCH_SIZE)

    def __getitem__(self, number):
        rows = slice(number * BATCH_SIZE, (number + 1) * BATCH_SIZE)
        return tuple(each[rows] for each in self.arrays)


def tf_dataset(*arrays):
    tf = pytest.importorskip("tensorflow")
    data = arrays if len(arrays) > 1 else arrays[0]
    return tf.data.Dataset.from_tensor_slices(data).batch(BATCH_SIZE)


def torch_loader(*arrays):
    torch = pytest.importorskip("torch")
    tensors = torch.utils.data.TensorDataset(*map(torch.from_numpy, arrays))
    return torch.utils.data.DataLoader(tensors, batch_size=BATCH_SIZE)


SOURCES = {"PyDataset": Lists, "tf.data": tf_dataset, "DataLoader": torch_loader}
sources = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


def fit_with(callback, model):
    history = model.fit(
        X, LABELS, batch_size=BATCH_SIZE, callbacks=[callback], verbose=0
    ).history
    return {
        key.removeprefix("val_"): values[-1]
        for key, values in history.items()
        if key.startswith("val_")
    }


def test_evaluate_lists_of_arrays():
    by = {"half": ["a"] * 12 + ["b"] * 12}
    model = list_model()
    found = fit_with(trm.EvaluateLists(X, LABELS, NAMES, by=by), model)
    expected = trm.evaluate(LABELS, scores_of(model), NAMES, by=by)
    for name in NAMES:
        assert found[name] == close(expected.whole[name])
        assert found[f"{name}/half:b"] == close(expected["b"][name])


@sources
@pytest.mark.parametrize("weights", [(), (WEIGHTS,)], ids=["plain", "weighted"])
def test_evaluate_lists_of_batches(source, weights):
    model = list_model()
    found = fit_with(
        trm.EvaluateLists(source(X, LABELS, *weights), metrics=NAMES), model
    )
    given = {"sample_weight": WEIGHTS} if weights else {}
    assert found == close(trm.evaluate(LABELS, scores_of(model), NAMES, **given))


@pytest.mark.parametrize("in_batches", [False, True])
def test_evaluate_lists_with_a_mask_of_keras(in_batches):
    x, labels = X.copy(), np.abs(LABELS)
    x[:, 5:] = 0
    model = list_model(mask=True)
    arguments = (Lists(x, labels),) if in_batches else (x, labels)
    found = fit_with(trm.EvaluateLists(*arguments, metrics=NAMES), model)
    is_item = np.any(x != 0, axis=2)
    expected = trm.evaluate(labels, scores_of(model, x), NAMES, mask=is_item)
    assert found == close(expected)


def test_evaluate_lists_by_step():
    model = list_model()
    callback = trm.EvaluateLists(X, LABELS, ["mrr"], every=2, unit="steps")
    found = fit_with(callback, model)
    assert found.keys() == {"mrr"}
    assert 0 < found["mrr"] < 1


def test_a_shuffled_loader_raises():
    torch = pytest.importorskip("torch")
    data = torch.utils.data
    tensors = data.TensorDataset(torch.from_numpy(X), torch.from_numpy(LABELS))
    loaders = [
        data.DataLoader(tensors, shuffle=True),
        data.DataLoader(tensors, sampler=data.SubsetRandomSampler(range(QUERIES))),
        data.DataLoader(
            tensors,
            batch_sampler=data.BatchSampler(data.RandomSampler(tensors), 2, False),
        ),
    ]
    for each in loaders:
        with pytest.raises(ValueError, match="with shuffle=True or the sampler"):
            trm.EvaluateLists(each, metrics=["mrr"], by=["a"] * QUERIES)


def test_batches_in_named_tuples():
    Batch = collections.namedtuple("Batch", ["x", "y"])

    class Named(Lists):
        def __getitem__(self, number):
            return Batch(*super().__getitem__(number))

    model = list_model()
    found = fit_with(trm.EvaluateLists(Named(X, LABELS), metrics=["mrr"]), model)
    assert found == close(trm.evaluate(LABELS, scores_of(model), ["mrr"]))


class Rows(Lists):
    def __getitem__(self, number):
        return super().__getitem__(number)[0]


@pytest.mark.parametrize("source", [lambda x: x, Rows, tf_dataset, torch_loader])
def test_evaluate_rows(source):
    inputs = keras.Input((4,))
    model = keras.Model(inputs, keras.layers.Dense(1)(inputs))
    model.compile("sgd", "mse")
    x, clicks = X[:, 0], (LABELS[:, 0] > 0).astype("float32")
    users = np.arange(QUERIES) % 5
    callback = trm.EvaluateRows(source(x), clicks, users, ["ndcg@2", "auc"])
    history = model.fit(x, clicks, callbacks=[callback], verbose=0).history
    scores = model.predict(x, verbose=0)[:, 0]
    expected = trm.evaluate_rows(users, clicks, scores, ["ndcg@2", "auc"])
    assert {k: history[f"val_{k}"][0] for k in expected} == close(expected)


@pytest.mark.parametrize("source", [lambda x: x, Rows, tf_dataset, torch_loader])
def test_evaluate_retrieval(source):
    users = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    items = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dropout(0.9), keras.layers.Dense(3)]
    )
    user, item = keras.Input((4,)), keras.Input((4,))
    scores = keras.layers.Dot(axes=1)([users(user), items(item)])
    model = keras.Model([user, item], scores)
    model.compile("sgd", "mse")
    x, y = X[:, 0] + RNG.normal(size=(QUERIES, 4)).astype("float32"), X[:, 1]
    relevant = RNG.integers(0, QUERIES, QUERIES)
    callback = trm.EvaluateRetrieval(
        source(x),
        source(y),
        relevant,
        ["mrr", "ndcg@3"],
        query_tower=users,
        candidate_tower=items,
    )
    history = model.fit([x, y], LABELS[:, 0], callbacks=[callback], verbose=0).history
    product = users.predict(x, verbose=0) @ items.predict(y, verbose=0).T
    expected = trm.evaluate(relevant, product, ["mrr", "ndcg@3"], inputs="catalog")
    assert {k: history[f"val_{k}"][0] for k in expected} == close(expected)


class Doubled(keras.Model):
    """A model whose `call` does not take `training`."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(3)

    def call(self, x):
        return self.dense(2 * x)


TOWERS = {
    "Embedding": (lambda: keras.layers.Embedding(5, 3), np.arange(4)),
    "LayerNormalization": (keras.layers.LayerNormalization, X[:4, 0]),
    "Rescaling": (lambda: keras.layers.Rescaling(2.0), X[:4, 0]),
    "Flatten": (keras.layers.Flatten, X[:4, :2]),
    "model": (Doubled, X[:4, 0]),
}


@pytest.mark.parametrize("name", TOWERS)
def test_towers_that_do_not_take_training(name):
    make, inputs = TOWERS[name]
    tower = make()
    found = trm.evaluate_retrieval(
        inputs, inputs, [0, 1, 2, 3], ["mrr"], query_tower=tower, candidate_tower=tower
    )
    vectors = np.asarray(keras.ops.convert_to_numpy(tower(inputs)))
    expected = trm.evaluate_retrieval(vectors, vectors, [0, 1, 2, 3], ["mrr"])
    assert found == close(expected)


def test_evaluate_lists_of_a_model_that_does_not_take_training():
    model = Doubled()
    model.compile("sgd", "mse")
    labels = np.repeat(LABELS[..., np.newaxis], 3, axis=2)
    callback = trm.EvaluateLists(X[:, 0], np.abs(LABELS[:, :3]), ["ndcg"])
    found = model.fit(X[:, 0], labels[:, 0], callbacks=[callback], verbose=0).history
    expected = trm.evaluate(
        np.abs(LABELS[:, :3]), model.predict(X[:, 0], verbose=0), ["ndcg"]
    )
    assert found["val_ndcg"][0] == close(expected["ndcg"])


class Towers(keras.Model):
    """A subclassed model, which has no weights before it is called."""

    def __init__(self):
        super().__init__()
        self.users, self.items = (keras.layers.Embedding(5, 3) for _ in range(2))

    def call(self, pairs):
        user, item = self.users(pairs[:, 0]), self.items(pairs[:, 1])
        return keras.ops.sum(user * item, axis=1, keepdims=True)


@pytest.mark.parametrize("are_built", [False, True])
def test_towers_of_another_model_are_a_warning(are_built):
    model, other = Towers(), Towers()
    pairs, clicks = np.array([[0, 1], [1, 2], [2, 3], [3, 4]]), np.array([1, 0, 1, 0])
    if are_built:
        other(pairs)

    def fit(towers):
        model.compile("sgd", "mse")
        callback = trm.EvaluateRetrieval(
            np.arange(5),
            np.arange(5),
            [0, 1, 2, 3, 4],
            ["mrr"],
            query_tower=towers.users,
            candidate_tower=towers.items,
        )
        model.fit(pairs, clicks, callbacks=[callback], epochs=2, verbose=0)

    with pytest.warns(trm.RankingWarning, match="without any of its weights") as caught:
        fit(other)
    assert sum(each.category is trm.RankingWarning for each in caught) == 1
    fit(model)  # the pattern of the guide


def test_evaluate_retrieval_with_a_score():
    candidates = np.eye(4, dtype="float32")[:, ::-1] * [[1], [2], [3], [4]]
    queries, relevant = X[:, 0], np.arange(QUERIES) % 4

    def score(queries, candidates):
        both = keras.ops.matmul(queries, keras.ops.transpose(candidates))
        return keras.ops.tanh(both / 10)

    found = trm.evaluate_retrieval(
        queries, candidates.astype("float32"), relevant, ["mrr"], score=score
    )
    scores = np.tanh(queries @ candidates.T / 10)
    expected = trm.evaluate(relevant, scores, ["mrr"], inputs="catalog")
    assert found == close(expected)
