"""Tests the callbacks that evaluate a model while it trains."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfrankmetrics as tfr

RNG = np.random.default_rng(0)
ROWS = 60
X = RNG.normal(size=(ROWS, 3)).astype("float32")
USERS = RNG.choice(["ann", "bob", "eve"], ROWS)
CLICKS = (X[:, 0] + RNG.normal(size=ROWS) > 0.5).astype(int)
LANGUAGES = np.where(USERS == "ann", "de", "en")
LISTS = RNG.normal(size=(8, 5, 3)).astype("float32")
LABELS = RNG.integers(0, 3, (8, 5))


# Keras takes longer to compile a step of a model than to run the few steps of a test.
# Where a compiled model could make a difference, a test compiles its own.


def row_model():
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "binary_crossentropy", run_eagerly=True)
    return model


def list_model(**arguments):
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse", **{"run_eagerly": True, **arguments})
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
    names = ["ndcg@5", "mrr", "gauc"]
    model, recorder = row_model(), Recorder()
    callback = tfr.EvaluateRows(X, CLICKS, USERS, names, gain="linear")
    history = fit(model, [callback, recorder])
    scores = model.predict(X, verbose=0)[:, 0]
    expected = tfr.evaluate_rows(USERS, CLICKS, scores, names, gain="linear")
    for name, value in expected.items():
        assert len(history[f"val_{name}"]) == 2
        assert history[f"val_{name}"][-1] == pytest.approx(value, rel=1e-12)
        assert recorder.epochs[-1][f"val_{name}"] == history[f"val_{name}"][-1]


def test_two_sources_of_one_key_are_an_error():
    callbacks = [tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"]) for _ in range(2)]
    assert "val_mrr" in fit(row_model(), callbacks)  # the same value twice
    callbacks[1] = tfr.EvaluateRows(X, CLICKS, LANGUAGES, ["mrr"])
    with pytest.raises(ValueError, match=r"val_mrr=\S+ from EvaluateRows, and \S+"):
        fit(row_model(), callbacks)
    callbacks[1] = tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"], prefix="dev_")
    assert {"val_mrr", "dev_mrr"} <= set(fit(row_model(), callbacks))


def test_two_sources_may_both_be_nan():
    nothing = np.zeros(len(CLICKS))
    callbacks = [
        tfr.EvaluateRows(X, nothing, USERS, ["mrr"], empty="skip") for _ in range(2)
    ]
    assert np.isnan(fit(row_model(), callbacks)["val_mrr"]).all()


def test_two_sources_of_one_key_are_an_error_with_steps():
    def callback(**arguments):
        return tfr.EvaluateRows(X, CLICKS, USERS, ["map"], unit="steps", **arguments)

    others = tfr.EvaluateRows(X, CLICKS, LANGUAGES, ["map"], unit="steps")
    with pytest.raises(ValueError, match="must have one source"):
        fit(row_model(), [callback(), others])
    with pytest.raises(ValueError, match="must have one source"):
        fit(
            row_model(),
            [callback(every=2), tfr.EvaluateRows(X, CLICKS, LANGUAGES, ["map"])],
        )
    model = list_model(metrics=[tfr.RankingMetrics(["ndcg"])])
    labels = LABELS[:, ::-1]
    for prefix in ("val_", ""):
        lists = tfr.EvaluateLists(LISTS, labels, ["ndcg"], unit="steps", prefix=prefix)
        with pytest.raises(ValueError, match="must have one source"):
            model.fit(
                LISTS,
                LABELS,
                validation_data=(LISTS, LABELS),
                verbose=0,
                callbacks=[lists],
            )


def test_the_numbers_of_queries_have_one_source_too():
    once, twice = (
        tfr.EvaluateLists(LISTS[of], LABELS[of], ["mrr"], num_queries=True)
        for of in ([0, 1], [0, 1, 0, 1])
    )
    with pytest.raises(ValueError, match=r"val_num_queries=4 from .*, and 2"):
        fit(list_model(), [once, twice], LISTS, LABELS)


def test_a_path_with_a_value_needs_the_callback_before_it(tmp_path):
    path = str(tmp_path / "{val_mrr:.2f}.weights.h5")
    save = tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True)
    with pytest.raises(ValueError, match="must come before the callbacks that read"):
        fit(row_model(), [save, tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"])])


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


def test_a_reader_of_other_keys_may_come_before(tmp_path):
    path = str(tmp_path / "{val_ndcg@5:.2f}.weights.h5")
    save = tf.keras.callbacks.ModelCheckpoint(path, save_weights_only=True)
    fit_with_metric = {"validation_data": (LISTS, LABELS), "verbose": 0}
    model = list_model(metrics=[tfr.RankingMetrics(["ndcg@5"])])
    callback = tfr.EvaluateLists(LISTS, LABELS, ["ndcg"], num_queries=True)
    model.fit(LISTS, LABELS, callbacks=[save, callback], **fit_with_metric)
    assert len([*tmp_path.glob("*.weights.h5*")]) == 1
    stop = tf.keras.callbacks.EarlyStopping("val_num_queries")
    with pytest.raises(ValueError, match="EarlyStopping before it"):
        model.fit(LISTS, LABELS, callbacks=[stop, callback], **fit_with_metric)


def test_every_second_epoch():
    recorder = Recorder()
    callback = tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"], every=2, prefix="dev_")
    fit(row_model(), [callback, recorder], epochs=5)
    assert ["dev_mrr" in logs for logs in recorder.epochs] == [0, 1, 0, 1, 0]
    recorder = Recorder()
    callback = tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"], every=3)
    fit(row_model(), [callback, recorder], epochs=4)
    assert ["val_mrr" in logs for logs in recorder.epochs] == [0, 0, 1, 0]


def test_every_second_step():
    recorder = Recorder()
    callback = tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"], every=2, unit="steps")
    fit(row_model(), [callback, recorder])  # two epochs of three steps
    assert ["val_mrr" in logs for logs in recorder.batches] == [0, 1, 0, 1, 0, 1]
    for epoch, last in ((0, 1), (1, 5)):
        assert recorder.epochs[epoch]["val_mrr"] == recorder.batches[last]["val_mrr"]


def test_steps_of_a_dataset_of_unknown_length_and_of_a_second_fit():
    def batches():
        for start in (0, 20, 40):
            yield X[start : start + 20], CLICKS[start : start + 20, None]

    signature = (
        tf.TensorSpec([None, X.shape[1]], tf.float32),
        tf.TensorSpec([None, 1], tf.float32),
    )
    data = tf.data.Dataset.from_generator(batches, output_signature=signature)
    model = row_model()
    callback = tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"], every=2, unit="steps")
    # Each fit starts with the first step.
    for epochs, evaluated in [(2, [0, 1, 0, 1, 0, 1]), (1, [0, 1, 0]), (1, [0, 1, 0])]:
        recorder = Recorder()
        model.fit(data, epochs=epochs, verbose=0, callbacks=[callback, recorder])
        assert ["val_mrr" in logs for logs in recorder.batches] == evaluated


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
    assert last["val_num_queries"] == 3
    for language in ("de", "en"):
        value = expected[language]["ndcg_5"]
        assert last[f"val_ndcg_5/language:{language}"] == pytest.approx(value)
        number = expected.num_queries[language]
        assert last[f"val_num_queries/language:{language}"] == number


def test_slices_that_are_the_same_text_are_an_error():
    of_lists = np.array([None, "None"] * 4, object)
    callback = tfr.EvaluateLists(LISTS, LABELS, ["mrr"], by={"l": of_lists})
    with pytest.raises(ValueError, match="Received twice: 'l:None'"):
        fit(list_model(), [callback], LISTS, LABELS)


@pytest.mark.parametrize(("run_eagerly", "batch_size"), [(False, None), (True, 3)])
def test_the_mask_of_keras_leaves_steps_out(run_eagerly, batch_size):
    sequences = RNG.integers(1, 7, (10, 5)) * (
        np.arange(5) < RNG.integers(2, 6, (10, 1))
    )
    targets = np.roll(sequences, -1, axis=1)
    inputs = tf.keras.Input((5,))
    embedded = tf.keras.layers.Embedding(7, 4, mask_zero=True)(inputs)
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(7)(embedded))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    metric = tfr.RankingMetrics(["mrr"], inputs="catalogue")
    model.compile("sgd", loss, metrics=[metric], run_eagerly=run_eagerly)
    dataset = tf.data.Dataset.from_tensor_slices((sequences, targets)).batch(4)
    arguments = {"metrics": ["mrr"], "inputs": "catalogue"}
    callbacks = [
        tfr.EvaluateLists(dataset, prefix="dataset_", **arguments),
        tfr.EvaluateLists(
            sequences, targets, prefix="arrays_", batch_size=batch_size, **arguments
        ),
    ]
    history = model.fit(
        sequences,
        targets,
        validation_data=(sequences, targets),
        verbose=0,
        callbacks=callbacks,
    ).history
    scores = model.predict(sequences, verbose=0)
    counted = np.where(sequences > 0, targets, -1)
    expected = tfr.evaluate(counted, scores, ["mrr"], inputs="catalogue")["mrr"]
    for prefix in ("val_", "dataset_", "arrays_"):
        assert history[f"{prefix}mrr"] == pytest.approx([expected], rel=1e-5), prefix
    without = tfr.evaluate(targets, scores, ["mrr"], inputs="catalogue")["mrr"]
    assert without != pytest.approx(expected, rel=1e-3)


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
    model.compile("sgd", {"click": "mse", "buy": "mse"}, run_eagerly=True)
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


LENGTHS = [2, 5, 1, 3, 4, 4, 2, 3]
RAGGED = [labels[:length] for labels, length in zip(LABELS, LENGTHS)]
WEIGHTS = np.arange(1.0, 9.0)


def padded_lists(*columns, shuffle=0, size=3):
    """A dataset of lists of different lengths, each batch as wide as its longest."""
    rows = [
        (LISTS[row, :length].astype("float32"), LABELS[row, :length])
        + tuple(column[row] for column in columns)
        for row, length in enumerate(LENGTHS)
    ]
    spec = (tf.TensorSpec([None, 3]), tf.TensorSpec([None], tf.int64))
    spec += (tf.TensorSpec([], tf.float64),) * len(columns)
    dataset = tf.data.Dataset.from_generator(lambda: rows, output_signature=spec)
    padding = (np.float32(0), np.int64(-1)) + (np.float64(0),) * len(columns)
    if shuffle:
        dataset = dataset.shuffle(shuffle, reshuffle_each_iteration=True)
    return dataset.padded_batch(size, padding_values=padding)


def scores_of_lists(model):
    scores = model.predict(LISTS, verbose=0).reshape(LABELS.shape)
    return [of_list[:length] for of_list, length in zip(scores, LENGTHS)]


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_a_dataset_of_batches_of_different_widths(run_eagerly):
    model = list_model(run_eagerly=run_eagerly)
    widths = [labels.shape[1] for _, labels, _ in padded_lists(WEIGHTS)]
    assert widths == [5, 4, 3]
    names = ["ndcg@3", "mrr", tfr.OrderedPairAccuracy(), "judged@2"]
    arguments = {"num_queries": True, "gain": "linear"}
    by = {"language": ["de", "en"] * 4, "market": ["x"] * 5 + ["y"] * 3}
    whole = tfr.EvaluateLists(padded_lists(WEIGHTS), metrics=names, **arguments)
    with pytest.warns(tfr.RankingWarning, match="`judged` requires a mask"):
        history = fit(model, [whole], LISTS, LABELS)
    scores = scores_of_lists(model)
    arguments["sample_weight"] = WEIGHTS
    with pytest.warns(tfr.RankingWarning):
        expected = tfr.evaluate(RAGGED, scores, names, **arguments)
    for name, value in expected.items():
        assert history[f"val_{name}"][-1] == pytest.approx(value, rel=1e-6)
    sliced = tfr.EvaluateLists(padded_lists(WEIGHTS), metrics=["mrr"], by=by)
    history = fit(model, [sliced], LISTS, LABELS)
    scores = scores_of_lists(model)
    expected = tfr.evaluate(RAGGED, scores, ["mrr"], by=by, sample_weight=WEIGHTS)
    assert history["val_mrr"][-1] == pytest.approx(expected.whole["mrr"], rel=1e-6)
    for (language, market), values in expected.items():
        key = f"val_mrr/language:{language}/market:{market}"
        assert history[key][-1] == pytest.approx(values["mrr"], rel=1e-6)


def test_a_dataset_that_is_shuffled_each_time():
    shuffled = padded_lists(shuffle=8)
    assert next(iter(shuffled))[1].numpy().tolist() != LABELS[:3].tolist()
    callback = tfr.EvaluateLists(shuffled, metrics=["ndcg@3", "mrr"])
    model = list_model()
    history = fit(model, [callback], LISTS, LABELS, epochs=4)
    expected = tfr.evaluate(RAGGED, scores_of_lists(model), ["ndcg@3", "mrr"])
    for name, value in expected.items():
        assert history[f"val_{name}"][-1] == pytest.approx(value, rel=1e-6)


def test_random_ties_of_a_dataset_are_those_of_the_arrays():
    model = tf.keras.Sequential([tf.keras.layers.Dense(5, kernel_initializer="zeros")])
    model.compile(tf.keras.optimizers.SGD(0.0), "mse", run_eagerly=True)
    flat = tf.data.Dataset.from_tensor_slices((LISTS[..., 0], LABELS))
    arguments = {"metrics": ["ndcg"], "ties": "random", "seed": 3}
    callbacks = [
        tfr.EvaluateLists(flat.batch(size), prefix=f"{size}_", **arguments)
        for size in (3, 8)
    ]
    history = fit(model, callbacks, LISTS[..., 0], LABELS)
    expected = tfr.evaluate(LABELS, np.zeros((8, 5)), **arguments)["ndcg"]
    assert history["3_ndcg"] == history["8_ndcg"] == pytest.approx([expected] * 2)


def test_a_dataset_with_ragged_labels_and_one_with_masks():
    labels = tf.ragged.constant([row.tolist() for row in RAGGED], dtype=tf.int64)
    ragged = tf.data.Dataset.from_tensor_slices((LISTS, labels)).batch(3)
    mask = np.arange(5) < np.array(LENGTHS)[:, np.newaxis]
    masked = {"labels": LABELS, "mask": mask}
    masked = tf.data.Dataset.from_tensor_slices((LISTS, masked)).batch(3)
    callbacks = [
        tfr.EvaluateLists(ragged, metrics=["ndcg", "auc"], prefix="ragged_"),
        tfr.EvaluateLists(masked, metrics=["ndcg", "auc"], prefix="masked_"),
    ]
    model = list_model()
    history = fit(model, callbacks, LISTS, LABELS)
    for name, value in tfr.evaluate(
        RAGGED, scores_of_lists(model), ["ndcg", "auc"]
    ).items():
        assert history[f"ragged_{name}"][-1] == pytest.approx(value, rel=1e-6)
        assert history[f"masked_{name}"][-1] == pytest.approx(value, rel=1e-6)


def test_one_output_of_a_dataset_of_several():
    inputs = tf.keras.Input((3,))
    heads = {n: tf.keras.layers.Dense(7, name=n)(inputs) for n in ("click", "buy")}
    model = tf.keras.Model(inputs, heads)
    model.compile("sgd", {"click": "mse", "buy": "mse"})
    ids = {"click": RNG.integers(0, 7, 8), "buy": RNG.integers(0, 7, 8)}
    weights = {"click": WEIGHTS, "buy": WEIGHTS[::-1].copy()}
    x = LISTS[:, 0]
    dataset = tf.data.Dataset.from_tensor_slices((x, ids, weights)).batch(3)
    callback = tfr.EvaluateLists(
        dataset, metrics=["mrr"], output="buy", inputs="catalogue"
    )
    targets = {name: np.eye(7)[of] for name, of in ids.items()}
    history = fit(model, [callback], x, targets)
    scores = model.predict(x, verbose=0)["buy"]
    expected = tfr.evaluate(
        ids["buy"], scores, ["mrr"], inputs="catalogue", sample_weight=weights["buy"]
    )
    assert history["val_mrr"][-1] == pytest.approx(expected["mrr"], rel=1e-6)


@pytest.mark.parametrize(
    ("replicas", "steps"),
    [
        pytest.param(2, 1, marks=pytest.mark.slow("trains a model on two replicas")),
        (1, 2),
    ],
)
def test_a_dataset_on_replicas_or_in_steps_per_execution(replicas, steps):
    devices = [f"CPU:{number}" for number in range(replicas)]
    with tf.distribute.MirroredStrategy(devices).scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse", steps_per_execution=steps)
    callback = tfr.EvaluateLists(padded_lists(), metrics=["mrr"])
    dataset = tf.data.Dataset.from_tensor_slices((LISTS, LABELS[..., None])).batch(2)
    history = model.fit(
        dataset, epochs=2, shuffle=False, verbose=0, callbacks=[callback]
    ).history
    expected = tfr.evaluate(RAGGED, scores_of_lists(model), ["mrr"])["mrr"]
    assert history["val_mrr"][-1] == pytest.approx(expected, rel=1e-6)


def test_labels_of_minus_1_and_1_in_all_batches_of_a_dataset():
    def evaluated(labels):
        dataset = tf.data.Dataset.from_tensor_slices((LISTS, labels)).batch(4)
        callback = tfr.EvaluateLists(dataset, metrics=["mrr"])
        return fit(list_model(), [callback], LISTS, LABELS)["val_mrr"]

    signed = np.where(LABELS > 0, 1, -1)
    with pytest.raises(ValueError, match="If -1 means not relevant, pass labels > 0"):
        evaluated(signed)
    assert len(evaluated(np.concatenate([signed[:4], LABELS[4:]]))) == 2


BATCHES = tf.data.Dataset.from_tensor_slices((LISTS, LABELS)).batch(4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"x": BATCHES, "y": LABELS}, "Received: a dataset, and also 'y'"),
        ({"x": BATCHES, "sample_weight": WEIGHTS}, "and also 'sample_weight'"),
        ({"x": BATCHES, "mask": LABELS > 0}, "and also 'mask'"),
        ({"x": BATCHES, "batch_size": 3}, "and also 'batch_size'"),
        ({"x": BATCHES.repeat()}, "A dataset must be finite"),
        ({"x": BATCHES.map(lambda x, y: x)}, r"must have batches \(x, y\)"),
        ({"x": BATCHES.map(lambda x, y: {"x": x, "y": y})}, r"batches \(x, y\)"),
        ({"x": LISTS}, "needs the labels"),
        (
            {"x": BATCHES.unbatch().shuffle(8).batch(2).prefetch(1), "by": ["a"] * 8},
            r"Omit shuffle\(\)",
        ),
    ],
)
def test_datasets_that_cannot_be_evaluated(arguments, message):
    with pytest.raises(ValueError, match=message):
        tfr.EvaluateLists(metrics=["mrr"], **arguments)


def test_datasets_that_turn_out_to_be_unfit():
    too_few = tfr.EvaluateLists(BATCHES, metrics=["mrr"], by=["a"] * 7)
    with pytest.raises(ValueError, match="7 values of 'slice' for 8 queries"):
        fit(list_model(), [too_few], LISTS, LABELS)
    empty = tfr.EvaluateLists(BATCHES.take(0), metrics=["mrr"])
    with pytest.raises(ValueError, match="at least one batch"):
        fit(list_model(), [empty], LISTS, LABELS)


SHUFFLED = tf.data.Dataset.from_tensor_slices(X).shuffle(99).batch(10)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: tfr.EvaluateRows(X, CLICKS, USERS, ["ngcd"]),
            "A metric must have a known name",
        ),
        (lambda: tfr.EvaluateRows(X, CLICKS, USERS[:3], ["mrr"]), "value for each row"),
        (lambda: tfr.EvaluateRows(X, CLICKS, None, ["mrr"]), "Pass either `query_ids`"),
        (lambda: tfr.EvaluateRows(X, None, USERS, ["mrr"]), "a label for each row"),
        (lambda: tfr.EvaluateRows(X[:0], [], [], ["mrr"]), "at least one row"),
        (
            lambda: tfr.EvaluateRows(SHUFFLED, CLICKS, USERS, ["mrr"]),
            "query ids must be",
        ),
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


def test_steps_are_batches_also_in_steps_per_execution():
    values = []
    for steps in (1, 3):
        tf.keras.utils.set_random_seed(0)
        model, recorder = row_model(), Recorder()
        model.compile("sgd", "binary_crossentropy", steps_per_execution=steps)
        arguments = {"every": 2 * steps, "unit": "steps"}
        callback = tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"], **arguments)
        model.fit(X, CLICKS, 10, 4, verbose=0, callbacks=[callback, recorder])
        values.append(["val_mrr" in logs for logs in recorder.batches])
    assert values[0] == [0, 1, 0, 1, 0, 1] * 4
    assert values[1] == [0, 1] * 4


@pytest.mark.parametrize(
    ("every", "evaluated"),
    [(4, [1, 0, 1, 0, 1, 0]), (15, [0, 0, 0, 0, 0, 1]), (5, [0, 1, 0, 1, 0, 1])],
)
def test_the_last_execution_of_an_epoch_has_fewer_steps(every, evaluated):
    """Three epochs of five batches, four and one at a time."""
    model, recorder = row_model(), Recorder()
    model.compile("sgd", "binary_crossentropy", steps_per_execution=4)
    callback = tfr.EvaluateRows(X, CLICKS, USERS, ["mrr"], every=every, unit="steps")
    model.fit(X, CLICKS, 12, 3, verbose=0, callbacks=[callback, recorder])
    assert ["val_mrr" in logs for logs in recorder.batches] == evaluated


def test_one_callback_evaluates_each_model_that_it_is_passed_to():
    batches = tf.data.Dataset.from_tensor_slices((LISTS, LABELS)).batch(3)
    callback = tfr.EvaluateLists(batches, metrics=["ndcg"])
    for seed in (0, 1):
        model = list_model()
        model.build((None, 5, 3))
        model.set_weights([RNG.normal(size=(3, 1)), np.zeros(1)])
        history = fit(model, [callback], LISTS, LABELS[..., None] + 0.0, epochs=1)
        scores = model.predict(LISTS, verbose=0)[..., 0]
        expected = tfr.evaluate(LABELS, scores, ["ndcg"])["ndcg"]
        assert history["val_ndcg"] == [pytest.approx(expected, rel=1e-6)], seed
