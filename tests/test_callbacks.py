"""Tests the callbacks that evaluate a model while it trains."""

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import tfrankmetrics as trm

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


def list_model(**arguments):
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", **{"loss": "mse", "run_eagerly": True, **arguments})
    return model


def row_model():
    return list_model(loss="binary_crossentropy")


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


def rows_by_user(metrics=("mrr",), queries=USERS, **arguments):
    return trm.EvaluateRows(X, CLICKS, queries, [*metrics], **arguments)


def values_of_rows(model, metrics, **arguments):
    scores = model.predict(X, verbose=0)[:, 0]
    return trm.evaluate_rows(USERS, CLICKS, scores, metrics, **arguments)


def test_rows_are_evaluated_by_query_after_each_epoch():
    names = ["ndcg@5", "mrr", "gauc"]
    model, recorder = row_model(), Recorder()
    history = fit(model, [rows_by_user(names, gain="linear"), recorder])
    for name, value in values_of_rows(model, names, gain="linear").items():
        assert len(history[f"val_{name}"]) == 2
        assert history[f"val_{name}"][-1] == pytest.approx(value, rel=1e-12)
        assert recorder.epochs[-1][f"val_{name}"] == history[f"val_{name}"][-1]


def test_two_sources_of_one_key_may_have_the_same_value():
    assert "val_mrr" in fit(row_model(), [rows_by_user(), rows_by_user()])
    nothing = np.zeros(len(CLICKS))
    callbacks = [
        trm.EvaluateRows(X, nothing, USERS, ["mrr"], empty="skip") for _ in range(2)
    ]
    assert np.isnan(fit(row_model(), callbacks)["val_mrr"]).all()
    others = rows_by_user(queries=LANGUAGES, prefix="dev_")
    assert {"val_mrr", "dev_mrr"} <= set(fit(row_model(), [rows_by_user(), others]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {}),
        ({"unit": "steps"}, {"unit": "steps"}),
        ({"unit": "steps", "every": 2}, {}),
    ],
)
def test_two_sources_of_one_key_are_an_error(one, other):
    callbacks = [rows_by_user(**one), rows_by_user(queries=LANGUAGES, **other)]
    with pytest.raises(ValueError, match=r"val_mrr=\S+ from EvaluateRows, and \S+"):
        fit(row_model(), callbacks)


@pytest.mark.parametrize("prefix", ["val_", ""])
def test_a_metric_in_compile_is_a_source_too(prefix):
    model = list_model(metrics=[trm.RankingMetrics(["ndcg"])])
    lists = trm.EvaluateLists(
        LISTS, LABELS[:, ::-1], ["ndcg"], unit="steps", prefix=prefix
    )
    with pytest.raises(ValueError, match="must have one source"):
        fit(model, [lists], LISTS, LABELS, validation_data=(LISTS, LABELS))


@pytest.mark.parametrize("when", [{"every": 3}, {"every": 3, "unit": "steps"}])
def test_a_repeated_value_leaves_that_of_a_metric_in_compile(when):
    model = list_model(metrics=[trm.RankingMetrics(["ndcg"])], loss="mse")
    lists = trm.EvaluateLists(LISTS, LABELS, ["ndcg", "mrr"], **when)
    data = {"validation_data": (LISTS, LABELS), "epochs": 5}
    found = model.fit(
        LISTS, LABELS, callbacks=[lists], batch_size=1, verbose=0, **data
    ).history
    expected = trm.evaluate(LABELS, model.predict(LISTS, verbose=0), ["ndcg"])
    assert found["val_ndcg"][-1] == pytest.approx(expected["ndcg"], rel=1e-6)
    assert len(found["val_mrr"]) == 5


def test_the_numbers_of_queries_have_one_source_too():
    once, twice = (
        trm.EvaluateLists(LISTS[of], LABELS[of], ["mrr"], num_queries=True)
        for of in ([0, 1], [0, 1, 0, 1])
    )
    with pytest.raises(ValueError, match=r"val_num_queries=4 from .*, and 2"):
        fit(list_model(), [once, twice], LISTS, LABELS)


def test_a_row_wise_model_stops_early_and_keeps_the_best_weights(tmp_path):
    model, path = row_model(), str(tmp_path / "best.weights.h5")
    save = {"save_best_only": True, "save_weights_only": True, "mode": "max"}
    callbacks = [
        rows_by_user(["ndcg@5"]),
        tf.keras.callbacks.EarlyStopping("val_ndcg@5", mode="max", patience=2),
        tf.keras.callbacks.ModelCheckpoint(path, monitor="val_ndcg@5", **save),
        tf.keras.callbacks.CSVLogger(str(tmp_path / "log.csv")),
        tf.keras.callbacks.TensorBoard(str(tmp_path / "logs")),
    ]
    values = fit(model, callbacks, epochs=60)["val_ndcg@5"]
    assert len(values) == np.argmax(values) + 3 < 60
    model.load_weights(path)
    best = values_of_rows(model, ["ndcg@5"])["ndcg@5"]
    assert best == pytest.approx(max(values))
    assert "val_ndcg@5" in (tmp_path / "log.csv").read_text()


def test_steps_of_a_dataset_of_unknown_length_and_of_a_second_fit():
    data = tf.data.Dataset.from_tensor_slices((X, CLICKS[:, None])).batch(20)
    data = data.filter(lambda x, y: True)
    assert data.cardinality() == tf.data.UNKNOWN_CARDINALITY
    model = row_model()
    callback = rows_by_user(every=2, unit="steps")
    # Each fit starts with the first step.
    for epochs, evaluated in [(2, [0, 1, 0, 1, 0, 1]), (1, [0, 1, 0]), (1, [0, 1, 0])]:
        recorder = Recorder()
        model.fit(data, epochs=epochs, verbose=0, callbacks=[callback, recorder])
        assert ["val_mrr" in logs for logs in recorder.batches] == evaluated


def test_slices_weights_and_numbers_of_queries():
    weights = np.where(USERS == "bob", 3.0, 1.0)
    arguments = {"sample_weight": weights, "num_queries": True, "separator": "_"}
    arguments["by"] = {"language": LANGUAGES}
    model = row_model()
    history = fit(model, [rows_by_user(["ndcg@5"], **arguments)])
    expected = values_of_rows(model, ["ndcg@5"], **arguments)
    last = {name: values[-1] for name, values in history.items() if name != "loss"}
    assert last.pop("val_num_queries") == 3
    for language in ("de", "en"):
        number = last.pop(f"val_num_queries/language:{language}")
        assert number == expected.num_queries[language]
    assert last == pytest.approx(
        {
            "val_ndcg_5": expected.whole["ndcg_5"],
            "val_ndcg_5/language:de": expected["de"]["ndcg_5"],
            "val_ndcg_5/language:en": expected["en"]["ndcg_5"],
        }
    )


def test_slices_that_are_the_same_text_are_an_error():
    of_lists = np.array([None, "None"] * 4, object)
    callback = trm.EvaluateLists(LISTS, LABELS, ["mrr"], by={"l": of_lists})
    with pytest.raises(ValueError, match="Received twice: 'l:None'"):
        fit(list_model(), [callback], LISTS, LABELS)


@pytest.mark.parametrize(("run_eagerly", "batch_size"), [(False, None), (True, 3)])
def test_the_mask_of_keras_leaves_steps_out(run_eagerly, batch_size):
    is_step = np.arange(5) < RNG.integers(2, 6, (10, 1))
    sequences = RNG.integers(1, 7, (10, 5)) * is_step
    data = sequences, np.roll(sequences, -1, axis=1)
    inputs = tf.keras.Input((5,))
    embedded = tf.keras.layers.Embedding(7, 4, mask_zero=True)(inputs)
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(7)(embedded))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    metric = trm.RankingMetrics(["mrr"], inputs="catalog")
    model.compile("sgd", loss, metrics=[metric], run_eagerly=run_eagerly)
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(4)
    arguments = {"metrics": ["mrr"], "inputs": "catalog"}
    callbacks = [
        trm.EvaluateLists(dataset, prefix="dataset_", **arguments),
        trm.EvaluateLists(*data, prefix="arrays_", batch_size=batch_size, **arguments),
    ]
    history = fit(model, callbacks, *data, epochs=1, validation_data=data)
    scores = model.predict(sequences, verbose=0)
    counted = np.where(is_step, data[1], -1)
    expected = trm.evaluate(counted, scores, **arguments)["mrr"]
    for prefix in ("val_", "dataset_", "arrays_"):
        assert history[f"{prefix}mrr"] == pytest.approx([expected], rel=1e-5), prefix
    without = trm.evaluate(data[1], scores, **arguments)["mrr"]
    assert without != pytest.approx(expected, rel=1e-3)


def test_groups_of_sorted_rows_and_columns_of_a_frame():
    order = np.argsort(USERS, kind="stable")
    groups = np.unique(USERS, return_counts=True)[1]
    table = pd.DataFrame({"user": USERS, "click": CLICKS, "language": LANGUAGES})
    names, columns = ["mrr"], {"data": table, "by": ["language"]}
    callbacks = [
        rows_by_user(),
        trm.EvaluateRows(
            X[order], CLICKS[order], None, names, groups=groups, prefix="groups_"
        ),
        trm.EvaluateRows(X, "click", "user", names, prefix="names_", **columns),
    ]
    history = fit(row_model(), callbacks)
    assert history["val_mrr"] == pytest.approx(history["groups_mrr"], rel=1e-12)
    assert history["val_mrr"] == history["names_mrr"]
    assert "names_mrr/language:de" in history


def model_of_two_heads(size):
    inputs = tf.keras.Input((3,))
    heads = {n: tf.keras.layers.Dense(size, name=n)(inputs) for n in ("click", "buy")}
    model = tf.keras.Model(inputs, heads)
    model.compile("sgd", {"click": "mse", "buy": "mse"}, run_eagerly=True)
    return model


def test_one_of_several_outputs():
    model = model_of_two_heads(1)
    targets = {"click": CLICKS[:, np.newaxis], "buy": CLICKS[:, np.newaxis]}
    history = fit(model, [rows_by_user(output="buy")], X, targets)
    scores = model.predict(X, verbose=0)["buy"][:, 0]
    expected = trm.evaluate_rows(USERS, CLICKS, scores, ["mrr"])
    assert history["val_mrr"][-1] == pytest.approx(expected["mrr"])
    for output in (None, "like"):
        with pytest.raises(ValueError, match="must name one output of the model"):
            fit(model, [rows_by_user(output=output)], X, targets)
    with pytest.raises(ValueError, match="Omit it"):
        fit(row_model(), [rows_by_user(output="buy")])


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
    names = ["ndcg@3", "mrr", trm.OrderedPairAccuracy(), "judged@2"]
    arguments = {"num_queries": True, "gain": "linear"}
    by = {"language": ["de", "en"] * 4, "market": ["x"] * 5 + ["y"] * 3}
    whole = trm.EvaluateLists(padded_lists(WEIGHTS), metrics=names, **arguments)
    with pytest.warns(trm.RankingWarning, match="`judged` requires a mask"):
        history = fit(model, [whole], LISTS, LABELS)
    scores = scores_of_lists(model)
    arguments["sample_weight"] = WEIGHTS
    with pytest.warns(trm.RankingWarning):
        expected = trm.evaluate(RAGGED, scores, names, **arguments)
    for name, value in expected.items():
        assert history[f"val_{name}"][-1] == pytest.approx(value, rel=1e-6)
    sliced = trm.EvaluateLists(padded_lists(WEIGHTS), metrics=["mrr"], by=by)
    history = fit(model, [sliced], LISTS, LABELS)
    scores = scores_of_lists(model)
    expected = trm.evaluate(RAGGED, scores, ["mrr"], by=by, sample_weight=WEIGHTS)
    assert history["val_mrr"][-1] == pytest.approx(expected.whole["mrr"], rel=1e-6)
    for (language, market), values in expected.items():
        key = f"val_mrr/language:{language}/market:{market}"
        assert history[key][-1] == pytest.approx(values["mrr"], rel=1e-6)


def assert_values_of_lists(model, history, names, prefix="val_"):
    for name, value in trm.evaluate(RAGGED, scores_of_lists(model), names).items():
        assert history[f"{prefix}{name}"][-1] == pytest.approx(value, rel=1e-6)


def test_a_dataset_that_is_shuffled_each_time():
    shuffled = padded_lists(shuffle=8)
    assert next(iter(shuffled))[1].numpy().tolist() != LABELS[:3].tolist()
    callback = trm.EvaluateLists(shuffled, metrics=["ndcg@3", "mrr"])
    model = list_model()
    history = fit(model, [callback], LISTS, LABELS, epochs=4)
    assert_values_of_lists(model, history, ["ndcg@3", "mrr"])


def test_a_dataset_with_ragged_labels_and_one_with_masks():
    ragged = tf.ragged.constant([row.tolist() for row in RAGGED], dtype=tf.int64)
    mask = np.arange(5) < np.array(LENGTHS)[:, np.newaxis]
    of_labels = {"ragged_": ragged, "masked_": {"labels": LABELS, "mask": mask}}
    names = ["ndcg", "auc"]
    callbacks = [
        trm.EvaluateLists(
            tf.data.Dataset.from_tensor_slices((LISTS, labels)).batch(3),
            metrics=names,
            prefix=prefix,
        )
        for prefix, labels in of_labels.items()
    ]
    model = list_model()
    history = fit(model, callbacks, LISTS, LABELS)
    for prefix in of_labels:
        assert_values_of_lists(model, history, names, prefix)


def test_one_output_of_a_dataset_of_several():
    model = model_of_two_heads(7)
    ids = {"click": RNG.integers(0, 7, 8), "buy": RNG.integers(0, 7, 8)}
    weights = {"click": WEIGHTS, "buy": WEIGHTS[::-1].copy()}
    x = LISTS[:, 0]
    dataset = tf.data.Dataset.from_tensor_slices((x, ids, weights)).batch(3)
    arguments = {"metrics": ["mrr"], "inputs": "catalog"}
    callback = trm.EvaluateLists(dataset, output="buy", **arguments)
    targets = {name: np.eye(7)[of] for name, of in ids.items()}
    history = fit(model, [callback], x, targets)
    scores = model.predict(x, verbose=0)["buy"]
    expected = trm.evaluate(
        ids["buy"], scores, sample_weight=weights["buy"], **arguments
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
    callback = trm.EvaluateLists(padded_lists(), metrics=["mrr"])
    dataset = tf.data.Dataset.from_tensor_slices((LISTS, LABELS[..., None])).batch(2)
    history = model.fit(
        dataset, epochs=2, shuffle=False, verbose=0, callbacks=[callback]
    ).history
    assert_values_of_lists(model, history, ["mrr"])


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
        ({"x": LISTS, "y": LABELS, "inputs": "x"}, "'catalog'"),
        (
            {"x": BATCHES.unbatch().shuffle(8).batch(2).prefetch(1), "by": ["a"] * 8},
            r"Omit shuffle\(\)",
        ),
    ],
)
def test_datasets_that_cannot_be_evaluated(arguments, message):
    with pytest.raises(ValueError, match=message):
        trm.EvaluateLists(metrics=["mrr"], **arguments)


def test_datasets_that_turn_out_to_be_unfit():
    too_few = trm.EvaluateLists(BATCHES, metrics=["mrr"], by=["a"] * 7)
    with pytest.raises(ValueError, match="7 values of 'slice' for 8 queries"):
        fit(list_model(), [too_few], LISTS, LABELS)
    empty = trm.EvaluateLists(BATCHES.take(0), metrics=["mrr"])
    with pytest.raises(ValueError, match="at least one batch"):
        fit(list_model(), [empty], LISTS, LABELS)


SHUFFLED = tf.data.Dataset.from_tensor_slices(X).shuffle(99).batch(10)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"metrics": ["ngcd"]}, "A metric must have a known name"),
        ({"query_ids": USERS[:3]}, "value for each row"),
        ({"query_ids": None}, "Pass either `query_ids`"),
        ({"labels": None}, "a label for each row"),
        ({"x": X[:0], "labels": [], "query_ids": []}, "at least one row"),
        ({"x": SHUFFLED}, "query ids must be"),
        ({"every": 0}, "at least 1"),
        ({"every": "2"}, "an int"),
        ({"unit": "x"}, "'steps'"),
        ({"prefix": 3}, "a string"),
        ({"gian": "x"}, "'gian'"),
    ],
)
def test_mistakes_raise_before_the_training(change, message):
    given = {"x": X, "labels": CLICKS, "query_ids": USERS, "metrics": ["mrr"]}
    with pytest.raises(ValueError, match=message):
        trm.EvaluateRows(**{**given, **change})


def test_a_model_of_lists_is_refused_for_rows():
    inputs = tf.keras.Input((3,))
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(2)(inputs))
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="one score for each row"):
        fit(model, [rows_by_user()], X, np.eye(2)[CLICKS])


@pytest.mark.parametrize(
    ("batch_size", "execution", "every", "evaluated"),
    [
        (10, 1, 2, [0, 1, 0, 1, 0, 1]),
        (10, 3, 6, [0, 1]),
        # Epochs of five batches, four and one at a time.
        (12, 4, 4, [1, 0, 1, 0, 1, 0]),
        (12, 4, 15, [0, 0, 0, 0, 0, 1]),
        (12, 4, 5, [0, 1, 0, 1, 0, 1]),
    ],
)
def test_steps_are_batches_also_in_steps_per_execution(
    batch_size, execution, every, evaluated
):
    recorder = Recorder()
    model = list_model(steps_per_execution=execution, run_eagerly=False)
    callbacks = [rows_by_user(every=every, unit="steps"), recorder]
    model.fit(X, CLICKS, batch_size, 3, verbose=0, callbacks=callbacks)
    found = ["val_mrr" in logs for logs in recorder.batches]
    assert found == evaluated * (len(found) // len(evaluated))
    assert len(found) == 3 * -(-ROWS // batch_size // execution)


def test_one_callback_evaluates_each_model_that_it_is_passed_to():
    batches = tf.data.Dataset.from_tensor_slices((LISTS, LABELS)).batch(3)
    callback = trm.EvaluateLists(batches, metrics=["ndcg"])
    for seed in (0, 1):
        model = list_model()
        model.build((None, 5, 3))
        model.set_weights([RNG.normal(size=(3, 1)), np.zeros(1)])
        history = fit(model, [callback], LISTS, LABELS[..., None] + 0.0, epochs=1)
        scores = model.predict(LISTS, verbose=0)[..., 0]
        expected = trm.evaluate(LABELS, scores, ["ndcg"])["ndcg"]
        assert history["val_ndcg"] == [pytest.approx(expected, rel=1e-6)], seed
