"""Tests the metrics in Keras: compile, fit, evaluate, callbacks, saving, replicas.

These tests run on Keras 2 under TF_USE_LEGACY_KERAS=1, on TensorFlow 2.15, and on Keras
3 with each backend:

    KERAS_BACKEND=jax python -m pytest tests/test_keras.py
"""

import copy
import pickle
import warnings

import numpy as np
import pytest
from cases import CASES, METRICS, labels_for, make_metric
from keras_backend import (
    IS_JAX,
    IS_TENSORFLOW,
    ONLY_TENSORFLOW,
    XLA,
    assert_same,
    keras,
    results,
)

import tfrankmetrics as trm

if IS_TENSORFLOW:
    import tensorflow as tf

LISTS, ITEMS, FEATURES = 70, 6, 4
NAMES = ["ndcg@3", "map", "mrr", "precision@2", "recall@3", "hit_rate@1"]


@pytest.fixture(scope="module")
def data():
    """Padded lists of unequal length, with labels that depend on the first feature."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(LISTS, ITEMS, FEATURES)).astype("float32")
    labels = np.digitize(features[..., 0], [0.0, 1.0]).astype("float32")
    labels[np.arange(ITEMS) >= rng.integers(2, ITEMS + 1, size=(LISTS, 1))] = -1.0
    weights = rng.integers(1, 4, size=LISTS).astype("float32")
    return features, labels, weights


def scoring_model(outputs=1, **compile_options):
    """A linear model of the features, with the same initial weights on every call.

    It runs step by step, because Keras takes a second to compile the few steps of a test.
    Tests whose subject is the compiled model pass `run_eagerly=False`.
    """
    compile_options = {"run_eagerly": True, **compile_options}
    if not IS_TENSORFLOW:  # where compilation means XLA, or takes long
        compile_options.pop("jit_compile", None)
    keras.utils.set_random_seed(1)
    inputs = keras.Input((ITEMS, FEATURES))
    scores = [
        keras.layers.Reshape((ITEMS,), name=f"scores_{i}")(
            keras.layers.Dense(1)(inputs)
        )
        for i in range(outputs)
    ]
    model = keras.Model(inputs, scores[0] if outputs == 1 else scores)
    model.compile(optimizer="adam", loss="mse", **compile_options)
    return model


def expected(model, data, names=NAMES, **options):
    features, labels, _ = data
    scores = model.predict(features, verbose=0)
    return trm.evaluate(labels, scores, names, **options)


@pytest.mark.parametrize("way", ["eager", "graph", XLA])
def test_fit_and_evaluate_equal_the_values_from_arrays(data, way):
    features, labels, _ = data
    separate = [trm.NDCG(k=3, name="alone")]
    model = scoring_model(
        metrics=[trm.RankingMetrics(NAMES), *separate],
        run_eagerly=way == "eager",
        jit_compile=way == "xla",
    )
    model.optimizer.learning_rate = 0.0  # so that every batch sees the same model
    # Equal batches: XLA would compile once more for a smaller last one.
    size = {"batch_size": LISTS // 5, "verbose": 0}
    history = model.fit(features, labels, **size).history
    fitted = {name: values[-1] for name, values in history.items()}
    logs = model.evaluate(features, labels, return_dict=True, **size)
    reference = expected(model, data)
    for numbers in (fitted, logs):
        assert_same(numbers, {**reference, "alone": reference["ndcg@3"]})


@ONLY_TENSORFLOW
def test_dataset_with_a_smaller_last_batch_and_unknown_list_size(data):
    features, labels, _ = data
    dataset = tf.data.Dataset.from_generator(
        lambda: zip(features, labels),
        output_signature=(tf.TensorSpec((None, FEATURES)), tf.TensorSpec((None,))),
    )
    batches = -(-LISTS // 32)
    dataset = dataset.batch(32).apply(tf.data.experimental.assert_cardinality(batches))
    inputs = keras.Input((None, FEATURES))
    model = keras.Model(inputs, keras.layers.Dense(1)(inputs))
    model.compile(loss="mse", metrics=[trm.RankingMetrics(NAMES)])
    assert model.output_shape == (None, None, 1)  # scores [B, N, 1]
    logs = model.evaluate(dataset, verbose=0, return_dict=True)
    reference = trm.evaluate(labels, model(features).numpy(), NAMES)
    assert_same(logs, reference)


@ONLY_TENSORFLOW
def test_ragged_targets(data):
    features, labels, _ = data
    rows = [row[row >= 0].tolist() for row in labels]
    ragged = tf.ragged.constant(rows, dtype="float32")
    dataset = tf.data.Dataset.from_tensor_slices((features, ragged)).batch(16)
    # Keras's own losses do not support ragged targets with dense outputs.
    model = scoring_model()
    model.compile(
        loss=lambda y, scores: tf.reduce_sum(scores, axis=1),
        metrics=[trm.RankingMetrics(NAMES)],
    )
    logs = model.evaluate(dataset, verbose=0, return_dict=True)
    assert_same(logs, expected(model, data))


def test_only_weighted_metrics_use_sample_weights(data):
    features, labels, weights = data
    model = scoring_model(
        metrics=[trm.RankingMetrics(NAMES, prefix="plain_")],
        weighted_metrics=[trm.RankingMetrics(NAMES)],
    )
    logs = model.evaluate(
        features, labels, sample_weight=weights, verbose=0, return_dict=True
    )
    assert_same(logs, expected(model, data), prefix="plain_")
    assert_same(logs, expected(model, data, sample_weight=weights))


def test_each_output_may_have_its_own_metrics(data):
    features, labels, _ = data
    model = scoring_model(
        outputs=2,
        metrics={
            "scores_0": [trm.RankingMetrics(NAMES, prefix="a_")],
            "scores_1": [trm.RankingMetrics(NAMES, prefix="b_"), trm.NDCG(k=3)],
        },
    )
    targets = {"scores_0": labels, "scores_1": labels}
    logs = model.evaluate(features, targets, verbose=0, return_dict=True)
    first, second = model.predict(features, verbose=0)
    assert_same(logs, trm.evaluate(labels, first, NAMES), prefix="a_")
    assert_same(logs, trm.evaluate(labels, second, NAMES), prefix="b_")
    assert_same(logs, trm.evaluate(labels, second, ["ndcg@3"]), prefix="scores_1_")


class DictMetric(keras.metrics.Mean):
    """A metric of somebody else with several results."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        return super().update_state(y_true)

    def result(self):
        return {"ndcg@3": super().result()}


def of_names(*names, **options):
    return trm.RankingMetrics([*names], **options)


EQUAL_KEYS = {
    "two dicts": ("ndcg@3", lambda: [of_names("ndcg@3"), of_names("ndcg@3", "mrr")]),
    "dict and scalar": ("ndcg@3", lambda: [of_names("ndcg@3"), trm.NDCG(k=3)]),
    "another metric": ("ndcg@3", lambda: [of_names("ndcg@3"), DictMetric()]),
    "loss": ("loss", lambda: [trm.NDCG(name="loss")]),
    "loss in a dict": ("loss", lambda: [of_names(trm.NDCG(name="loss"))]),
    "two outputs": (
        "mrr",
        lambda: {"scores_0": [of_names("mrr")], "scores_1": [of_names("mrr")]},
    ),
    "the name of an output": (
        "scores_0_mrr",
        lambda: {
            "scores_0": [trm.MeanReciprocalRank()],
            "scores_1": [of_names("mrr", prefix="scores_0_")],
        },
    ),
}


@pytest.mark.parametrize(
    ("case", "run_eagerly"),
    [
        *((case, True) for case in EQUAL_KEYS),
        ("two dicts", False),
        ("two outputs", False),
    ],
)
def test_equal_keys_in_one_model_raise(data, case, run_eagerly):
    features, labels, _ = data
    key, make = EQUAL_KEYS[case]
    metrics = make()
    outputs = len(metrics) if isinstance(metrics, dict) else 1
    model = scoring_model(outputs, metrics=metrics, run_eagerly=run_eagerly)
    targets = dict.fromkeys(metrics, labels) if outputs == 2 else labels
    with pytest.raises(ValueError, match=rf"must have a unique key.*'{key}'"):
        model.evaluate(features, targets, verbose=0)


@pytest.mark.parametrize("run_eagerly", [False, True])
@pytest.mark.parametrize("shape", [(), (1,)], ids=["[B]", "[B, 1]"])
def test_pointwise_models_raise(shape, run_eagerly):
    inputs = keras.Input((FEATURES,))
    scores = keras.layers.Dense(1)(inputs)
    scores = keras.layers.Reshape(shape)(scores) if shape == () else scores
    model = keras.Model(inputs, scores)
    metrics = [trm.MeanReciprocalRank()]
    model.compile(loss="mse", metrics=metrics, run_eagerly=run_eagerly)
    with pytest.raises(ValueError, match="list of items for each query"):
        model.evaluate(np.ones((8, FEATURES)), np.ones((8, *shape)), verbose=0)


STEPS = pytest.mark.skipif(IS_JAX, reason="steps of JAX receive the state")


class OwnSteps(keras.Model):
    """A subclassed model that updates its metric itself."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)
        self.mrr = trm.MeanReciprocalRank()

    def call(self, inputs):
        return self.dense(inputs)

    def train_step(self, data):
        return self.test_step(data)

    def test_step(self, data):
        features, labels = data
        self.mrr.update_state(labels, self(features))
        return {"mrr": self.mrr.result()}


@STEPS
@pytest.mark.parametrize("run_eagerly", [False, True])
@pytest.mark.parametrize("method", ["fit", "evaluate"])
def test_pointwise_models_with_their_own_steps_raise(method, run_eagerly):
    model = OwnSteps()
    model.compile(run_eagerly=run_eagerly)
    with pytest.raises(ValueError, match="list of items for each query"):
        getattr(model, method)(np.ones((8, FEATURES)), np.ones((8, 1)), verbose=0)


@STEPS
@pytest.mark.parametrize("run_eagerly", [False, True])
def test_models_of_lists_with_their_own_steps(run_eagerly):
    model = OwnSteps()
    model.compile(run_eagerly=run_eagerly)
    labels = np.eye(4)[[0, 1, 2]]
    logs = model.evaluate(
        np.ones((3, 4, FEATURES)), labels, verbose=0, return_dict=True
    )
    assert logs["mrr"] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)


def test_eager_batches_with_lists_of_one_item():
    """A model of lists of any length may see them, unlike a pointwise model."""
    inputs = keras.Input((None, FEATURES))
    scores = keras.layers.Dense(1)(inputs)
    model = keras.Model(inputs, keras.layers.Reshape((-1,))(scores))
    model.compile(loss="mse", metrics=[trm.RankingMetrics(["mrr"])], run_eagerly=True)
    logs = model.evaluate(
        np.ones((3, 1, FEATURES)), np.eye(3)[:, :1], verbose=0, return_dict=True
    )
    assert logs["mrr"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", ["CompileMetrics", "MetricsContainer", "Model"])
def test_other_classes_of_the_same_name_may_update_a_metric(name):
    def update(self):
        metric = trm.MeanReciprocalRank()
        metric.update_state([[1], [0]], [[1], [1]])
        return float(metric.result())

    assert type(name, (), {"compute_metrics": update})().compute_metrics() == 0.5


@pytest.mark.parametrize("option", ["gain", "discount"])
def test_saving_an_unregistered_function_raises(tmp_path, data, option):
    def unregistered(values):
        return 1 / (1 + values)

    for metric in (
        trm.DCG(**{option: unregistered}),
        trm.RankingMetrics(["dcg"], **{option: unregistered}),
        trm.RankingMetrics([trm.DCG(**{option: unregistered})]),
    ):
        model = scoring_model(metrics=[metric])
        model.evaluate(*data[:2], verbose=0)
        with pytest.raises(ValueError, match=f"`{option}` must be a registered"):
            model.save(tmp_path / "model.keras")


@ONLY_TENSORFLOW
def test_an_explicit_mask_counts_rather_than_that_of_keras():
    labels, scores = [[1, 0, 1]], tf.constant([[3.0, 2.0, 1.0]])
    scores._keras_mask = tf.constant([[False, True, True]])
    assert trm.evaluate(labels, scores, ["mrr"]) == {"mrr": 1 / 2}
    every_item = {"labels": labels, "mask": [[True, True, True]]}
    assert trm.evaluate(every_item, scores, ["mrr"]) == {"mrr": 1}


def test_keras_masks_mark_padding():
    ids = np.array([[1, 2, 3, 0, 0], [4, 5, 0, 0, 0], [3, 2, 5, 1, 4]])
    labels = np.array([[0, 1, 0, 2, 2], [1, 0, 3, 3, 3], [0, 0, 1, 2, 0]], "float32")
    keras.utils.set_random_seed(3)
    inputs = keras.Input((None,), dtype="int32")
    embedded = keras.layers.Embedding(6, 4, mask_zero=True)(inputs)
    model = keras.Model(inputs, keras.layers.Dense(1)(embedded))
    metrics = trm.RankingMetrics(NAMES)
    # Keras's own losses need labels with a last axis to apply this mask.
    model.compile(loss=lambda y, scores: y**2, metrics=[metrics])
    logs = model.evaluate(ids, labels, verbose=0, return_dict=True)
    scores = model.predict(ids, verbose=0)
    reference = trm.evaluate(labels, scores, NAMES, mask=ids != 0)
    assert_same(logs, reference)
    # Without the mask, padding counts as relevant items, which changes the value.
    assert reference["recall@3"] != trm.evaluate(labels, scores, NAMES)["recall@3"]
    metrics.reset_state()
    metrics.update_state(labels, model(ids))  # direct calls use the mask as well
    assert_same(metrics.result(), reference)


def test_early_stopping_and_checkpoints_on_a_ranking_metric(data, tmp_path):
    features, labels, _ = data
    model = scoring_model(metrics=[trm.RankingMetrics(["ndcg@3"])])
    stop = keras.callbacks.EarlyStopping(
        "val_ndcg@3", mode="max", patience=1, min_delta=1.0
    )
    checkpoint = keras.callbacks.ModelCheckpoint(
        str(tmp_path / "{epoch:02d}-{val_ndcg@3:.3f}.keras"),
        monitor="val_ndcg@3",
        mode="max",
    )
    history = model.fit(
        features,
        labels,
        validation_data=(features, labels),
        epochs=5,
        callbacks=[stop, checkpoint],
        verbose=0,
    ).history
    assert len(history["val_ndcg@3"]) == 2  # no later epoch can improve by min_delta
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        f"{epoch:02d}-{value:.3f}.keras"
        for epoch, value in enumerate(history["val_ndcg@3"], 1)
    ]


@keras.utils.register_keras_serializable(package="tests")
def square_gain(labels):
    return labels**2


def test_loaded_model_has_its_metrics(data, tmp_path):
    features, labels, _ = data
    metrics = [
        trm.RankingMetrics(
            ["ndcg@3", trm.MeanAveragePrecision(k=2, denominator="hits")],
            prefix="all_",
            gain="linear",
        ),
        trm.RecallAtK(k=2, relevance_threshold=2.0, empty="skip"),
        trm.NDCG(gain=square_gain),
        trm.RankingMetrics(["dcg"], gain=square_gain),
    ]
    model = scoring_model(metrics=metrics, run_eagerly=False)
    model.optimizer.build(model.trainable_variables)
    before = model.evaluate(features, labels, verbose=0, return_dict=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    after = loaded.evaluate(features, labels, verbose=0, return_dict=True)
    keys = {"loss", "all_ndcg@3", "all_map@2", "recall@2", "ndcg", "dcg"}
    assert set(after) == keys
    assert after == pytest.approx(before)


@ONLY_TENSORFLOW
@pytest.mark.slow("trains a model on two replicas")
def test_replicas_give_the_values_of_one_device(data):
    features, labels, weights = data
    names = [*NAMES, "dcg"]
    devices = tf.config.list_logical_devices("CPU")[:2]
    assert len(devices) == 2, "conftest.py must configure several logical CPU devices"
    strategy = tf.distribute.MirroredStrategy([device.name for device in devices])
    with strategy.scope():
        model = scoring_model(
            weighted_metrics=[trm.RankingMetrics(names), trm.NDCG(k=2)],
            run_eagerly=False,
        )
    logs = model.evaluate(
        features,
        labels,
        sample_weight=weights,
        batch_size=16,
        verbose=0,
        return_dict=True,
    )
    reference = expected(model, data, [*names, "ndcg@2"], sample_weight=weights)
    assert_same(logs, reference)
    history = model.fit(
        features,
        labels,
        sample_weight=weights,
        validation_data=(features, labels, weights),
        verbose=0,
    ).history
    last = {name: values[-1] for name, values in history.items()}
    reference = expected(model, data, [*names, "ndcg@2"], sample_weight=weights)
    assert_same(last, reference, prefix="val_")


@ONLY_TENSORFLOW
@pytest.mark.slow("trains a model on two replicas")
def test_a_model_with_a_metric_of_ids_is_built_on_replicas():
    """Keras builds its metrics with the mean of the first batch, so with floats."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(32, 3)).astype("float32")
    ids = rng.integers(0, 9, 32)
    devices = [device.name for device in tf.config.list_logical_devices("CPU")[:2]]
    with tf.distribute.MirroredStrategy(devices).scope():
        model = keras.Sequential([keras.layers.Dense(9)])
        metrics = [trm.MeanReciprocalRank(inputs="catalog")]
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss, metrics=metrics)
    logs = model.evaluate(features, ids, verbose=0, return_dict=True)
    scores = model.predict(features, verbose=0)
    found = trm.evaluate(ids, scores, ["mrr"], inputs="catalog")
    assert logs["mrr"] == pytest.approx(found["mrr"], rel=1e-6)


@pytest.mark.parametrize(
    ("make_copy", "keeps_state"),
    [
        (copy.deepcopy, True),
        (copy.copy, True),
        (lambda metric: pickle.loads(pickle.dumps(metric)), True),
        (lambda metric: type(metric).from_config(metric.get_config()), False),
        (lambda m: keras.metrics.deserialize(keras.metrics.serialize(m)), False),
    ],
    ids=["deepcopy", "copy", "pickle", "from_config", "deserialize"],
)
@pytest.mark.usefixtures("run_eagerly")
def test_copies_compute_the_same_values_and_share_no_state(make_copy, keeps_state):
    for case in CASES:
        metric = case.metric(k=3)
        assert make_copy(metric).get_config() == metric.get_config()
    metrics = [make_metric(name, 3) for name in METRICS]
    metrics.append(
        trm.RankingMetrics(["P@1", trm.DCG(k=2)], prefix="x_", ties="stable")
    )
    labels, scores = [[0.0, 1.0, 3.0]], [[0.3, 0.3, 0.1]]
    for metric in metrics:
        is_single = hasattr(metric, "declaration")
        y_true = labels_for(metric.declaration.name, labels) if is_single else labels
        metric.update_state(y_true, scores)
        value = results(metric)
        duplicate = make_copy(metric)
        assert duplicate.get_config() == metric.get_config()
        if keeps_state:
            assert results(duplicate) == pytest.approx(value)
        duplicate.reset_state()
        duplicate.update_state(y_true, scores)
        metric.reset_state()
        assert results(duplicate) == pytest.approx(value)  # which NaN would not equal


def test_an_object_in_both_lists_of_metrics_raises():
    """Keras 2 raises its own error."""
    metric = trm.NDCG(k=2)
    model = keras.Sequential([keras.layers.Dense(1)])
    features = np.ones((2, 3, 4), "float32")
    labels = np.array([[0.0, 1, 0], [1, 0, 0]], "float32")

    def train():
        model.compile("sgd", "mse", metrics=[metric], weighted_metrics=[metric])
        model.fit(features, labels, sample_weight=np.ones(2), verbose=0)

    with pytest.raises(
        ValueError, match=r"in one place of `compile`.*2 times|uplicated"
    ):
        train()


# What callbacks measure, and what other callbacks make of it


FOUR = 4  # queries of two items, of which the first is relevant
PAIRS = np.tile([[1.0], [0.0]], (FOUR, 1)).astype("float32")
IS_FIRST = np.tile([1, 0], FOUR)
# The first item ranks first if the only weight is 1, and second if it is -1: the MRR is
# 1 or 1/2.


def model_of_one_weight(shape=(1,), **compile_options):
    """A model whose score is the weight times the only feature."""
    model = keras.Sequential(
        [
            keras.Input(shape),
            keras.layers.Dense(1, kernel_initializer="ones", use_bias=False),
        ]
    )
    compile_options = {"optimizer": keras.optimizers.SGD(0.0), **compile_options}
    model.compile(**{"loss": "mse", "run_eagerly": True, **compile_options})
    return model


def set_weight(model, weight):
    model.set_weights([np.array([[weight]], "float32")])


def weight_of(model):
    return model.get_weights()[0].item()


def rows_of_pairs(**arguments):
    queries = np.repeat(range(FOUR), 2)
    return trm.EvaluateRows(PAIRS, IS_FIRST, queries, ["mrr"], **arguments)


class WeightOfEpochs(keras.callbacks.Callback):
    """Trains: the weight is set when an epoch ends, before it is evaluated."""

    def __init__(self, *weights):
        super().__init__()
        self.weights = weights

    def on_epoch_end(self, epoch, logs=None):
        set_weight(self.model, self.weights[epoch])


def fit_pairs(callbacks, epochs, model=None):
    model = model_of_one_weight() if model is None else model
    given = {"epochs": epochs, "callbacks": callbacks, "verbose": 0, "batch_size": 2}
    return model.fit(PAIRS, PAIRS, **given).history


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ({}, [0.5, 1.0, 0.5, 0.5, 1.0, 0.5]),
        ({"every": 2}, [0.5, 1.0, 1.0, 0.5, 0.5, 0.5]),  # epochs 1, 2, 4 and 6
        ({"every": 3}, [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]),  # epochs 1, 3 and 6
        ({"every": 5}, [0.5, 0.5, 0.5, 0.5, 1.0, 1.0]),  # epochs 1 and 5
        # Epoch 1, the first step of epoch 3 (of four steps), and the second of epoch 5,
        # before which the weight is that of epochs 2 and 4.
        ({"every": 9, "unit": "steps"}, [0.5, 0.5, 1.0, 1.0, 0.5, 0.5]),
    ],
)
def test_epochs_between_two_evaluations_repeat_the_last_value(schedule, expected):
    training = WeightOfEpochs(-1.0, 1.0, -1.0, -1.0, 1.0, -1.0)
    history = fit_pairs([training, rows_of_pairs(**schedule)], epochs=6)
    assert history["val_mrr"] == expected


def test_callbacks_of_keras_with_a_value_every_second_epoch(tmp_path):
    best = {"monitor": "val_mrr", "mode": "max"}
    model = model_of_one_weight(optimizer=keras.optimizers.SGD(0.5))
    path = str(tmp_path / "best.weights.h5")
    callbacks = [
        WeightOfEpochs(-1.0, 1.0, -1.0, -1.0, 1.0, 1.0),
        rows_of_pairs(every=2),
        keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True, **best),
        keras.callbacks.ReduceLROnPlateau(patience=2, factor=0.5, **best),
        keras.callbacks.ModelCheckpoint(
            path, save_best_only=True, save_weights_only=True, **best
        ),
        keras.callbacks.CSVLogger(str(tmp_path / "log.csv")),
    ]
    history = fit_pairs(callbacks, epochs=6, model=model)
    # Epochs 1, 2 and 4 are evaluated. The best is 2; the patience ends with 4.
    assert history["val_mrr"] == [0.5, 1.0, 1.0, 0.5]
    assert weight_of(model) == 1.0
    rates = history.get("learning_rate", history.get("lr"))  # of Keras 3, of Keras 2
    assert rates == [0.5, 0.5, 0.5, 0.5]
    assert float(model.optimizer.learning_rate) == 0.25
    set_weight(model, 0.0)
    model.load_weights(path)
    assert weight_of(model) == 1.0
    header, *rows = (tmp_path / "log.csv").read_text().split()
    column = header.split(",").index("val_mrr")
    assert [row.split(",")[column] for row in rows] == ["0.5", "1.0", "1.0", "0.5"]


@pytest.mark.parametrize("kind", ["EarlyStopping", "ReduceLROnPlateau"])
@pytest.mark.parametrize(
    ("schedule", "patience", "monitor", "least"),
    [
        ({"every": 3}, 2, "val_mrr", 3),
        ({"every": 2}, 0, "val_mrr", 2),
        ({"every": 3}, 3, "val_mrr", None),
        ({"every": 1}, 0, "val_mrr", None),
        ({"every": 3}, 2, "val_loss", None),  # of Keras's own validation
        ({"every": 3}, 2, "mrr", None),
        ({"every": 3}, 2, "val_mrr@5", None),
        ({"every": 3}, 2, "val_mrr/half:a", 3),
        # Epochs of four steps.
        ({"every": 9, "unit": "steps"}, 2, "val_mrr", 3),
        ({"every": 8, "unit": "steps"}, 2, "val_mrr", None),
        ({"every": 4, "unit": "steps"}, 0, "val_mrr", None),
    ],
)
@pytest.mark.filterwarnings("ignore:.* which is not available")
def test_patience_must_last_until_the_next_evaluation(
    kind, schedule, patience, monitor, least
):
    by = {"half": ["a"] * FOUR + ["b"] * FOUR}
    waiting = getattr(keras.callbacks, kind)(monitor, mode="max", patience=patience)
    callbacks = [rows_of_pairs(by=by, **schedule), waiting]
    if least is None:
        fit_pairs(callbacks, epochs=1)
        return
    message = f"patience={patience} of {kind}, and every=.* Pass at least {least}"
    with pytest.raises(ValueError, match=message):
        fit_pairs([*callbacks, WeightOfEpochs()], epochs=1)


NEEDS_SWAPS = pytest.mark.skipif(
    not hasattr(keras.callbacks, "SwapEMAWeights"),
    reason="Keras 2 has no such callback",
)


def averaging(shape=(1,), **compile_options):
    """A model whose averaged weight stays what the weight is in the first step, 1."""
    optimizer = keras.optimizers.SGD(0.0, use_ema=True, ema_momentum=1.0)
    return model_of_one_weight(shape, optimizer=optimizer, **compile_options)


class SecondEpoch(keras.callbacks.Callback):
    """Trains in the second epoch, and keeps the weight at each end of a batch."""

    def __init__(self):
        super().__init__()
        self.of_batches = []

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            set_weight(self.model, -1.0)

    def on_train_batch_end(self, batch, logs=None):
        if hasattr(self.model, "jax_state_sync"):
            self.model.jax_state_sync()
        self.of_batches.append(weight_of(self.model))

    def on_epoch_end(self, epoch, logs=None):
        self.at_the_end = weight_of(self.model)


def evaluation_of_lists(model, unit):
    lists = PAIRS.reshape(FOUR, 2, 1), IS_FIRST.reshape(FOUR, 2)
    return trm.EvaluateLists(*lists, ["mrr"], unit=unit)


def evaluation_of_retrieval(model, unit):
    queries, candidates = np.ones((FOUR, 1), "float32"), PAIRS[:2]
    return trm.EvaluateRetrieval(
        queries, candidates, [0] * FOUR, ["mrr"], query_tower=model, unit=unit
    )


EVALUATIONS = {
    "lists": evaluation_of_lists,
    "rows": lambda model, unit: rows_of_pairs(unit=unit),
    "retrieval": evaluation_of_retrieval,
}


@NEEDS_SWAPS
@pytest.mark.parametrize("unit", ["epochs", "steps"])
@pytest.mark.parametrize("swap_on_epoch", [False, True])
@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("name", EVALUATIONS)
def test_callbacks_measure_the_averaged_weights(name, is_first, swap_on_epoch, unit):
    shape, run_eagerly = ((2, 1), False) if name == "lists" else ((1,), True)
    model = averaging(shape, run_eagerly=run_eagerly)
    evaluation = EVALUATIONS[name](model, unit)
    swap = keras.callbacks.SwapEMAWeights(swap_on_epoch=swap_on_epoch)
    training = SecondEpoch()
    callbacks = [evaluation, swap] if is_first else [swap, evaluation]
    x = PAIRS.reshape(-1, *shape)
    history = model.fit(
        x, x, batch_size=2, epochs=2, callbacks=[*callbacks, training], verbose=0
    ).history
    assert history["val_mrr"] == [1.0, 1.0]
    batches = len(training.of_batches) // 2
    assert training.of_batches == [1.0] * batches + [-1.0] * batches
    assert training.at_the_end == (1.0 if swap_on_epoch else -1.0)
    assert weight_of(model) == 1.0  # Keras keeps the averaged one


@pytest.mark.parametrize(
    "swaps",
    [
        pytest.param({"swap_on_epoch": False}, marks=NEEDS_SWAPS),
        pytest.param({"swap_on_epoch": True}, marks=NEEDS_SWAPS),
        None,
    ],
)
def test_callbacks_measure_the_weights_that_fit_validates(swaps):
    """Without the callback of Keras, these are not the averaged ones."""
    x, y = PAIRS.reshape(FOUR, 2, 1), IS_FIRST.reshape(FOUR, 2)
    model = averaging((2, 1), metrics=[trm.RankingMetrics(["mrr"])])
    callbacks = [trm.EvaluateLists(x, y, ["mrr"], prefix="same_")]
    if swaps is not None:
        callbacks.append(keras.callbacks.SwapEMAWeights(**swaps))
    history = model.fit(
        x,
        y,
        validation_data=(x, y),
        epochs=2,
        callbacks=[*callbacks, SecondEpoch()],
        verbose=0,
    ).history
    expected = [1.0, 0.5 if swaps is None else 1.0]
    assert history["same_mrr"] == history["val_mrr"] == expected


@NEEDS_SWAPS
def test_the_weights_of_the_training_return_after_an_error():
    model = averaging()
    fit_pairs([], epochs=1, model=model)
    set_weight(model, -1.0)
    swap, failing = keras.callbacks.SwapEMAWeights(), rows_of_pairs(output="no")
    callbacks = keras.callbacks.CallbackList([swap, failing], model=model, epochs=1)
    callbacks.on_train_begin()
    with pytest.raises(ValueError, match="`output` of `EvaluateRows`"):
        callbacks.on_epoch_end(0, {})
    assert weight_of(model) == -1.0
    swap.on_test_begin()
    assert weight_of(model) == 1.0


# Warnings in `fit`


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_a_mistake_is_a_warning_once_in_each_epoch(data, run_eagerly):
    features, labels, _ = data
    model = scoring_model(
        metrics=[trm.RankingMetrics(["mrr"])], run_eagerly=run_eagerly
    )
    features = np.where(np.arange(LISTS)[:, None, None] % 7, features, np.nan)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(features, labels, batch_size=10, epochs=3, verbose=0)
    found = [each for each in caught if each.category is trm.RankingWarning]
    assert len(found) == 3, found
    for each in found:
        assert "Scores must be numbers" in str(each.message)
        assert each.filename == __file__


@pytest.mark.parametrize(
    "scores",
    [
        lambda size: np.full((9, size), np.nan),
        lambda size: np.tile(np.arange(size), (9, 1)),  # ranks, the best one first
    ],
)
def test_a_metric_warns_once_until_it_is_reset(scores):
    metric, numbers = trm.RankingMetrics(["mrr"]), []
    for _ in range(2):
        metric.reset_state()
        for size in (5, 6):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                metric.update_state(np.eye(1, size).repeat(9, axis=0), scores(size))
                metric.result()
            numbers.append(len(caught))
    assert numbers == [1, 0] * 2


@pytest.mark.filterwarnings("error::DeprecationWarning")
def test_results_and_copies_are_computed_without_a_warning_of_numpy():
    metric = trm.RankingMetrics(["mrr"])
    metric.update_state(np.eye(2), np.eye(2))
    assert results(copy.copy(metric)) == results(metric) == {"mrr": 1.0}
