"""Tests metrics and callbacks in Keras 3, whichever its backend is.

    KERAS_BACKEND=jax python -m pytest tests/test_keras_backends.py

The expected values come from functions such as `evaluate`, which compute with NumPy and
are tested elsewhere.
"""

import ast
import collections
import concurrent.futures
import copy
import os
import pathlib
import pickle
import subprocess
import sys
import typing

import keras
import numpy as np
import pytest
from code_blocks import run_block, run_blocks

import tfrankmetrics as tfr
from tfrankmetrics.metrics.measure import declarations

if not keras.__version__.startswith("3."):
    pytest.skip("Keras 2 has one backend", allow_module_level=True)

ROOT = pathlib.Path(__file__).parents[1]
BACKEND = keras.backend.backend()
IS_JAX, IS_TENSORFLOW = BACKEND == "jax", BACKEND == "tensorflow"
# Without a mask, `judged` warns that it counts no item as unjudged.
pytestmark = [pytest.mark.filterwarnings("ignore:`judged` requires a mask")]
if IS_TENSORFLOW:
    pytestmark += [pytest.mark.slow("other files test the same with TensorFlow")]
RNG = np.random.default_rng(0)
QUERIES, ITEMS, CATALOGUE = 24, 9, 12
BATCH_SIZE = 8
X = RNG.normal(size=(QUERIES, ITEMS, 4)).astype("float32")
X = np.round(X)  # so that some scores are equal
LABELS = RNG.integers(-1, 4, (QUERIES, ITEMS)).astype("float32")
LABELS[3] = -1  # only padding
LABELS[4] = 0  # a list without a relevant item
WEIGHTS = RNG.uniform(0.5, 2, QUERIES).astype("float32")
NAMES = ["ndcg@3", "map", "mrr@5", "precision@2", "recall@4", "err", "auc", "opa"]
OWN = {
    name: declaration
    for name, declaration in declarations().items()
    if declaration.cls.__module__.startswith("tfrankmetrics.")
    and not declaration.reads_items
}


def close(values):
    return pytest.approx(values, rel=1e-6, abs=1e-6, nan_ok=True)


def list_model(metrics=(), *, weighted=(), mask=False, **options):
    """A model of lists. Its scores are exact, so that ties stay ties."""
    inputs = keras.Input((ITEMS, 4))
    items = keras.layers.Masking()(inputs) if mask else inputs
    dense = keras.layers.Dense(
        1, kernel_initializer=keras.initializers.Constant(0.5), use_bias=False
    )
    model = keras.Model(inputs, dense(items))
    model.compile(
        "sgd",
        _squares if mask else "mse",
        metrics=[*metrics],
        weighted_metrics=[*weighted],
        **options,
    )
    return model


def _squares(y_true, y_pred):
    """A loss for each item, as a mask of items requires."""
    return keras.ops.square(y_pred - y_true)


def scores_of(model, x=X):
    return model.predict(x, verbose=0)[..., 0]


def evaluated(model, y=LABELS, x=X, **options):
    return model.evaluate(
        x, y, batch_size=BATCH_SIZE, verbose=0, return_dict=True, **options
    )


def numbers(results):
    return {key: float(value) for key, value in results.items()}


def test_the_first_example_of_the_readme():
    text = (ROOT / "README.md").read_text("utf-8")
    printed = run_block(text.split("```python\n")[1].split("```")[0], "README", {})
    values = ast.literal_eval(printed)
    assert values.keys() == {"val_loss", "val_mrr", "val_ndcg@10", "val_precision@5"}
    assert 0.7 < values["val_ndcg@10"] < 0.9


@pytest.mark.skipif(IS_TENSORFLOW, reason="Keras needs TensorFlow itself")
def test_tensorflow_is_not_imported():
    code = (
        "import sys, tfrankmetrics as tfr\n"
        "metric = tfr.RankingMetrics(['ndcg@10', 'err'])\n"
        "metric.update_state([[1, 0]], [[0.1, 0.3]])\n"
        "print(float(metric.result()['err']), 'tensorflow' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.split()[1:] == ["False"], found.stderr


def all_measures(inputs):
    """Every metric for this input format, with each way to break ties."""
    metrics = []
    for name, declaration in OWN.items():
        if declaration.has_subtopics or inputs not in declaration.inputs:
            continue
        for ties in typing.get_args(declaration.types["ties"]):
            for k in (2, None) if declaration.has_cutoff else (None,):
                cutoff = {"k": k} if declaration.has_cutoff else {}
                made = declaration.cls(
                    **cutoff, ties=ties, inputs=inputs, name=f"{name}_{k}_{ties}"
                )
                metrics.append(made)
    return metrics


def test_every_metric_in_evaluate():
    metrics = tfr.RankingMetrics(all_measures("labels"))
    model = list_model([metrics])
    expected = tfr.evaluate(LABELS, scores_of(model), all_measures("labels"))
    found = evaluated(model)
    assert len(expected) > 100
    assert {key: found[key] for key in expected} == close(expected)


def test_every_metric_of_ids():
    relevant = RNG.integers(-1, 9, (QUERIES, 3))
    recommended = np.array([RNG.permutation(9)[:5] for _ in range(QUERIES)])
    recommended[2, 3:] = -1
    metric = tfr.RankingMetrics(all_measures("ids"), inputs="ids")
    for start in range(0, QUERIES, BATCH_SIZE):
        rows = slice(start, start + BATCH_SIZE)
        metric.update_state(relevant[rows], recommended[rows])
    expected = tfr.evaluate(relevant, recommended, all_measures("ids"), inputs="ids")
    assert numbers(metric.result()) == close(expected)


ITEM_DATA = {
    "popularity": RNG.uniform(0.1, 1, CATALOGUE),
    "vectors": RNG.normal(size=(CATALOGUE, 3)),
    "categories": ["a", "b"] * (CATALOGUE // 2) + ["a"] * (CATALOGUE % 2),
    "target": {"a": 0.5, "b": 0.5},
    "num_items": CATALOGUE,
}
OF_ITEMS = ["coverage@2", "gini@3", "entropy@2", "mean_popularity@3", "novelty@2"]
OF_ITEMS += ["intra_list_diversity@3", "awrf@3"]


def test_metrics_of_recommended_items():
    inputs = keras.Input((4,))
    model = keras.Model(inputs, keras.layers.Dense(CATALOGUE)(inputs))
    metrics = tfr.RankingMetrics(OF_ITEMS, inputs="catalogue", **ITEM_DATA)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss=loss, metrics=[metrics])
    features = RNG.normal(size=(QUERIES, 4)).astype("float32")
    relevant = RNG.integers(0, CATALOGUE, (QUERIES, 1))
    logs = model.evaluate(
        features, relevant, batch_size=BATCH_SIZE, verbose=0, return_dict=True
    )
    scores = model.predict(features, verbose=0)
    arguments = {"inputs": "catalogue", **ITEM_DATA}
    expected = tfr.evaluate(relevant, scores, OF_ITEMS, **arguments)
    assert {name: logs[name] for name in OF_ITEMS} == close(expected)
    tied = np.round(scores)
    metrics.reset_state()
    metrics.update_state(relevant, tied)
    expected = tfr.evaluate(relevant, tied, OF_ITEMS, **arguments)
    assert numbers(metrics.result()) == close(expected)


@pytest.mark.parametrize("number", [1, 3], ids=["one relevant", "several relevant"])
def test_every_metric_of_a_catalogue(number):
    inputs = keras.Input((4,))
    model = keras.Model(inputs, keras.layers.Dense(CATALOGUE)(inputs))
    metrics = tfr.RankingMetrics(all_measures("catalogue"), inputs="catalogue")
    model.compile("sgd", loss=lambda y, s: keras.ops.mean(s, -1), metrics=[metrics])
    relevant = RNG.integers(0, CATALOGUE, (QUERIES, number))
    relevant[:, 1:] -= 1  # some padding
    x = X[:, 0]
    expected = tfr.evaluate(
        relevant,
        model.predict(x, verbose=0),
        all_measures("catalogue"),
        inputs="catalogue",
    )
    found = evaluated(model, relevant, x)
    assert {key: found[key] for key in expected} == close(expected)


def test_each_class_in_compile():
    names = [name for name, declaration in OWN.items() if not declaration.has_subtopics]
    model = list_model([OWN[name].cls() for name in names])
    expected = tfr.evaluate(LABELS, scores_of(model), names)
    found = evaluated(model)
    assert {name: found[name] for name in names} == close(expected)


def test_metrics_of_subtopics():
    labels = np.stack([LABELS, LABELS[:, ::-1]], axis=2)
    scores = X[..., 0]
    metric = tfr.RankingMetrics(["alpha_dcg@3", "precision_ia@2"])
    metric.update_state(labels, scores)
    expected = tfr.evaluate(labels, scores, ["alpha_dcg@3", "precision_ia@2"])
    assert numbers(metric.result()) == close(expected)


def test_fit_with_validation_data():
    model = list_model([tfr.RankingMetrics(NAMES), tfr.NDCG(k=2)])
    history = model.fit(
        X,
        LABELS,
        epochs=2,
        batch_size=10,  # so that the last batch is smaller
        validation_data=(X, LABELS),
        verbose=0,
    ).history
    expected = tfr.evaluate(LABELS, scores_of(model), [*NAMES, "ndcg@2"])
    for name, value in expected.items():
        assert history[f"val_{name}"][1] == close(value)
        assert len(history[name]) == 2


def test_the_model_runs_eagerly():
    model = list_model([tfr.RankingMetrics(NAMES)], run_eagerly=True)
    expected = tfr.evaluate(LABELS, scores_of(model), NAMES)
    found = evaluated(model)
    assert {name: found[name] for name in NAMES} == close(expected)


@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch")
def test_torch_compile_does_not_trace_the_metrics():
    import torch

    metric = tfr.RankingMetrics(NAMES, num_queries=True)

    @torch.compile(backend="eager")
    def step(labels, scores):
        metric.update_state(labels, scores * 2)
        return metric.result()

    torch._dynamo.utils.counters.clear()
    found = step(torch.tensor(LABELS), torch.tensor(X[..., 0]))
    assert numbers(found) == close(
        tfr.evaluate(LABELS, X[..., 0], NAMES, num_queries=True)
    )
    # Two pieces: `scores * 2` before the update, and the dict of the results.
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 2


def test_lists_without_items():
    for shape in ((3, 0), (0, 3)):
        labels = np.zeros(shape, "float32")
        metric = tfr.RankingMetrics(NAMES)
        metric.update_state(labels, labels)
        expected = tfr.evaluate(labels, labels, NAMES)
        assert numbers(metric.result()) == close(expected)


def test_keys_and_weighted_metrics():
    weighted = tfr.RankingMetrics(NAMES, prefix="weighted_", separator="_")
    model = list_model([tfr.RankingMetrics(NAMES)], weighted=[weighted])
    found = evaluated(model, sample_weight=WEIGHTS)
    scores = scores_of(model)
    plain = tfr.evaluate(LABELS, scores, NAMES)
    assert {name: found[name] for name in NAMES} == close(plain)
    expected = tfr.evaluate(LABELS, scores, NAMES, sample_weight=WEIGHTS)
    for name, value in expected.items():
        assert found["weighted_" + name.replace("@", "_")] == close(value)


def test_a_mask_of_keras():
    x = X.copy()
    x[:, 5:] = 0  # which Masking takes for padding
    labels = np.abs(LABELS)
    metric = tfr.RankingMetrics(NAMES)
    model = list_model([metric], mask=True)
    is_item = np.any(x != 0, axis=2)
    expected = tfr.evaluate(labels, scores_of(model, x), NAMES, mask=is_item)
    found = evaluated(model, labels, x)
    assert {name: found[name] for name in NAMES} == close(expected)


def test_a_mask_in_a_dict():
    metric = tfr.RankingMetrics(NAMES)
    mask = RNG.random(LABELS.shape) < 0.7
    metric.update_state({"labels": LABELS, "mask": mask}, X[..., 0])
    expected = tfr.evaluate(LABELS, X[..., 0], NAMES, mask=mask)
    assert numbers(metric.result()) == close(expected)


@pytest.mark.filterwarnings("ignore:`exclude` removes items from")  # at random
def test_sequences_and_excluded_ids():
    scores = RNG.normal(size=(4, 3, CATALOGUE)).astype("float32")
    ids, grades = RNG.integers(-1, CATALOGUE, (4, 3, 2)), RNG.integers(0, 4, CATALOGUE)
    y = {
        "ids": ids,
        "relevance": grades[ids].astype("float32"),
        "exclude": RNG.integers(-1, CATALOGUE, (4, 3, 2)),
    }
    names = ["ndcg@3", "mrr", "recall@5"]
    metric = tfr.RankingMetrics(names, inputs="catalogue")
    metric.update_state(y, scores, WEIGHTS[:4])
    expected = tfr.evaluate(
        y, scores, names, inputs="catalogue", sample_weight=WEIGHTS[:4]
    )
    assert numbers(metric.result()) == close(expected)


def test_lists_of_unequal_length():
    labels, scores = [[1, 0, 2], [0, 1]], [[0.1, 0.3, 0.2], [0.4, 0.4]]
    metric = tfr.RankingMetrics(NAMES)
    metric.update_state(labels, scores)
    assert numbers(metric.result()) == close(tfr.evaluate(labels, scores, NAMES))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32"])
def test_dtypes_of_scores(dtype):
    scores = keras.ops.cast(X[..., 0] * 3, dtype)
    metric = tfr.RankingMetrics(NAMES)
    metric.update_state(keras.ops.cast(LABELS, dtype), scores)
    expected = tfr.evaluate(LABELS, np.round(X[..., 0] * 3), NAMES)
    assert numbers(metric.result()) == close(expected)


def test_special_scores():
    scores = X[..., 0].copy()
    scores[0, 2], scores[1, :3], scores[2, 1] = np.nan, -np.inf, np.inf
    metric = tfr.RankingMetrics(NAMES)
    metric.update_state(LABELS, scores)
    expected = tfr.evaluate(LABELS, scores, NAMES)
    assert numbers(metric.result()) == close(expected)


def test_random_ties_do_not_depend_on_the_batches():
    metric = tfr.NDCG(k=2, ties="random", seed=7)
    scores = np.zeros(LABELS.shape, "float32")
    for start in range(0, QUERIES, 5):
        metric.update_state(LABELS[start : start + 5], scores[start : start + 5])
    expected = tfr.evaluate(LABELS, scores, [tfr.NDCG(k=2, ties="random", seed=7)])
    assert float(metric.result()) == close(expected["ndcg@2"])


def test_a_model_is_saved_and_loaded(tmp_path):
    metrics = [tfr.RankingMetrics(NAMES, gain="linear"), tfr.NDCG(k=2, name="n")]
    model = list_model(metrics)
    model.compile("sgd", "mse", metrics=metrics)
    before = evaluated(model)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    after = evaluated(loaded)
    assert after == close(before)


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_copies_keep_the_state(duplicate):
    metric = tfr.NDCG(k=3, ties="random")
    metric.update_state(LABELS, X[..., 0])
    other = duplicate(metric)
    assert float(other.result()) == float(metric.result())
    for each in (metric, other):
        each.update_state(LABELS, X[..., 1])
    assert float(other.result()) == float(metric.result())


def test_states_are_merged_and_reset():
    whole, first, second = (tfr.RankingMetrics(NAMES) for _ in range(3))
    whole.update_state(LABELS, X[..., 0])
    first.update_state(LABELS[:9], X[:9, :, 0])
    second.update_state(LABELS[9:], X[9:, :, 0])
    first.merge_state([second])
    assert numbers(first.result()) == close(numbers(whole.result()))
    first.reset_state()
    assert np.isnan([*numbers(first.result()).values()]).all()


def test_the_state_stays_exact_over_many_updates():
    metric = tfr.MeanReciprocalRank()
    metric.update_state([[1, 0]], [[2.0, 1.0]], sample_weight=1e8)
    expected = np.array([1e8, 1e8])
    for _ in range(100):
        metric.update_state([[0, 1]], [[2.0, 1.0]], sample_weight=0.1)
        expected += [0.05, 0.1]
    assert metric_sums(metric).tolist() == expected.tolist()


def metric_sums(metric):
    """The sums of weight * value and of weight, in float64."""
    sums = keras.ops.convert_to_numpy(metric.variables[0]).astype(np.float64)
    return sums[0] if IS_TENSORFLOW else sums[0].sum(axis=-1)


def test_results_have_the_dtype_of_the_metric():
    metric = tfr.DCG(dtype="float16", gain="exponential")
    metric.update_state([[20, 1]], [[2.0, 1.0]])
    assert "float16" in str(metric.result().dtype)
    assert np.isnan(float(metric.result()))  # 2^20 is more than a float16 holds


def test_threads_lose_no_updates():
    metric = tfr.RankingMetrics(["mrr"], num_queries=True)

    def update():
        for _ in range(20):
            metric.update_state(LABELS, X[..., 0])

    metric.update_state(LABELS, X[..., 0])
    number = float(metric.result()["num_queries"])
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(update) for _ in range(4)]:
            each.result()
    assert float(metric.result()["num_queries"]) == 81 * number


def test_pointwise_outputs_raise():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[tfr.NDCG()])
    with pytest.raises(ValueError, match="a list of items for each query"):
        model.evaluate(X[:, 0], LABELS[:, :1], verbose=0)


def test_equal_keys_raise():
    metrics = [tfr.RankingMetrics(["mrr"]), tfr.RankingMetrics(["mrr"], name="b")]
    with pytest.raises(ValueError, match="must have a unique key"):
        evaluated(list_model(metrics))


def test_wrong_shapes_raise():
    with pytest.raises(ValueError, match="must be of the same shape"):
        tfr.NDCG().update_state(LABELS[:, 1:], X[..., 0])


def test_ids_outside_of_a_catalogue_raise():
    with pytest.raises(ValueError, match="positions in the catalogue"):
        tfr.NDCG(inputs="catalogue").update_state([7], [[0.1, 0.2]])


def test_invalid_labels_warn():
    metric = tfr.NDCG()
    metric.update_state([[np.nan, 1.0]], [[0.1, 0.2]])
    with pytest.warns(tfr.RankingWarning, match="NaN"):
        assert np.isnan(float(metric.result()))


@pytest.mark.skipif(not IS_JAX, reason="of JAX")
class TestJax:
    def test_the_page_of_the_documentation(self):
        page = ROOT / "docs" / "guide" / "backends.md"
        run_blocks(page, "(?:py|python)", section="Keras backends")

    def test_stateless_methods(self):
        import jax

        metric = tfr.RankingMetrics(NAMES)
        variables = [variable.value for variable in metric.variables]

        @jax.jit
        def step(variables, labels, scores):
            return metric.stateless_update_state(variables, labels, scores)

        for start in range(0, QUERIES, 12):
            rows = slice(start, start + 12)
            variables = step(variables, LABELS[rows], X[rows, :, 0])
        found = jax.jit(metric.stateless_result)(variables)
        assert numbers(found) == close(tfr.evaluate(LABELS, X[..., 0], NAMES))
        assert np.isnan(float(metric.result()["map"]))  # the object has seen nothing

    def test_results_are_in_32_bits(self):
        import jax

        metric = tfr.NDCG()
        metric.update_state(LABELS, X[..., 0])
        assert metric.result().dtype == "float32"
        assert {variable.dtype for variable in metric.variables} == {"float32"}
        assert jax.numpy.zeros(1, float).dtype == jax.numpy.zeros(1).dtype

    def test_functions_raise_while_jax_traces(self):
        import jax

        calls = [
            lambda y: tfr.evaluate(y, LABELS, ["mrr"])["mrr"],
            lambda y: tfr.evaluate(LABELS, LABELS, ["mrr"], by=y[:, 0]).whole["mrr"],
            lambda y: tfr.evaluate_rows(y[0], y[0], y[0], ["mrr"])["mrr"],
            lambda y: tfr.evaluate_retrieval(y, y, [0] * QUERIES, ["mrr"])["mrr"],
        ]
        for call in calls:
            with pytest.raises(RuntimeError, match=r"outside of jax\.jit"):
                jax.jit(call)(LABELS)

    def test_results_of_several_states(self):
        import jax

        metric = tfr.MeanReciprocalRank()
        start = [variable.value for variable in metric.variables]
        states = [
            metric.stateless_update_state(start, LABELS, X[..., i]) for i in (0, 1)
        ]
        stacked = [jax.numpy.stack(each) for each in zip(*states)]
        found = jax.vmap(metric.stateless_result)(stacked)
        expected = [tfr.evaluate(LABELS, X[..., i], ["mrr"])["mrr"] for i in (0, 1)]
        assert found.tolist() == close(expected)

    def test_functions_of_jax_as_options(self):
        import jax.numpy as jnp

        labels, expected = LABELS[:3], np.square
        for ours, theirs in ((jnp.square, expected), (jnp.log1p, np.log1p)):
            found = tfr.evaluate(labels, X[:3, :, 0], ["dcg@3"], gain=ours)
            exact = tfr.evaluate(labels, X[:3, :, 0], ["dcg@3"], gain=theirs)
            assert found == pytest.approx(exact, rel=1e-12)

    def test_replicas(self):
        import jax

        devices = jax.devices()
        assert len(devices) == 4
        model = list_model([tfr.RankingMetrics(NAMES)])
        expected = evaluated(model, LABELS[:20], X[:20])
        parallel = keras.distribution.DataParallel(
            devices=[f"cpu:{i}" for i in range(4)]
        )
        keras.distribution.set_distribution(parallel)
        try:
            model = list_model([tfr.RankingMetrics(NAMES)])
            found = model.evaluate(
                X[:20], LABELS[:20], batch_size=4, verbose=0, return_dict=True
            )
        finally:
            keras.distribution.set_distribution(None)
        assert {name: found[name] for name in NAMES} == close(
            {name: expected[name] for name in NAMES}
        )


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
    found = fit_with(tfr.EvaluateLists(X, LABELS, NAMES, by=by), model)
    expected = tfr.evaluate(LABELS, scores_of(model), NAMES, by=by)
    for name in NAMES:
        assert found[name] == close(expected.whole[name])
        assert found[f"{name}/half:b"] == close(expected["b"][name])


@sources
@pytest.mark.parametrize("weights", [(), (WEIGHTS,)], ids=["plain", "weighted"])
def test_evaluate_lists_of_batches(source, weights):
    model = list_model()
    found = fit_with(
        tfr.EvaluateLists(source(X, LABELS, *weights), metrics=NAMES), model
    )
    given = {"sample_weight": WEIGHTS} if weights else {}
    assert found == close(tfr.evaluate(LABELS, scores_of(model), NAMES, **given))


@pytest.mark.parametrize("in_batches", [False, True])
def test_evaluate_lists_with_a_mask_of_keras(in_batches):
    x, labels = X.copy(), np.abs(LABELS)
    x[:, 5:] = 0
    model = list_model(mask=True)
    arguments = (Lists(x, labels),) if in_batches else (x, labels)
    found = fit_with(tfr.EvaluateLists(*arguments, metrics=NAMES), model)
    is_item = np.any(x != 0, axis=2)
    expected = tfr.evaluate(labels, scores_of(model, x), NAMES, mask=is_item)
    assert found == close(expected)


def test_evaluate_lists_by_step():
    model = list_model()
    callback = tfr.EvaluateLists(X, LABELS, ["mrr"], every=2, unit="steps")
    found = fit_with(callback, model)
    assert found.keys() == {"mrr"}
    assert 0 < found["mrr"] < 1


def test_a_shuffled_loader_raises():
    torch = pytest.importorskip("torch")
    tensors = torch.utils.data.TensorDataset(
        torch.from_numpy(X), torch.from_numpy(LABELS)
    )
    loader = torch.utils.data.DataLoader(tensors, shuffle=True)
    data = torch.utils.data
    loaders = [
        loader,
        data.DataLoader(tensors, sampler=data.SubsetRandomSampler(range(QUERIES))),
        data.DataLoader(
            tensors,
            batch_sampler=data.BatchSampler(data.RandomSampler(tensors), 2, False),
        ),
    ]
    for each in loaders:
        with pytest.raises(ValueError, match="with shuffle=True or the sampler"):
            tfr.EvaluateLists(each, metrics=["mrr"], by=["a"] * QUERIES)


def test_batches_in_named_tuples():
    Batch = collections.namedtuple("Batch", ["x", "y"])

    class Named(Lists):
        def __getitem__(self, number):
            return Batch(*super().__getitem__(number))

    model = list_model()
    found = fit_with(tfr.EvaluateLists(Named(X, LABELS), metrics=["mrr"]), model)
    assert found == close(tfr.evaluate(LABELS, scores_of(model), ["mrr"]))


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
    callback = tfr.EvaluateRows(source(x), clicks, users, ["ndcg@2", "auc"])
    history = model.fit(x, clicks, callbacks=[callback], verbose=0).history
    scores = model.predict(x, verbose=0)[:, 0]
    expected = tfr.evaluate_rows(users, clicks, scores, ["ndcg@2", "auc"])
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
    callback = tfr.EvaluateRetrieval(
        source(x),
        source(y),
        relevant,
        ["mrr", "ndcg@3"],
        query_tower=users,
        candidate_tower=items,
    )
    history = model.fit([x, y], LABELS[:, 0], callbacks=[callback], verbose=0).history
    product = users.predict(x, verbose=0) @ items.predict(y, verbose=0).T
    expected = tfr.evaluate(relevant, product, ["mrr", "ndcg@3"], inputs="catalogue")
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
    found = tfr.evaluate_retrieval(
        inputs, inputs, [0, 1, 2, 3], ["mrr"], query_tower=tower, candidate_tower=tower
    )
    vectors = np.asarray(keras.ops.convert_to_numpy(tower(inputs)))
    expected = tfr.evaluate_retrieval(vectors, vectors, [0, 1, 2, 3], ["mrr"])
    assert found == close(expected)


def test_evaluate_lists_of_a_model_that_does_not_take_training():
    model = Doubled()
    model.compile("sgd", "mse")
    labels = np.repeat(LABELS[..., np.newaxis], 3, axis=2)
    callback = tfr.EvaluateLists(X[:, 0], np.abs(LABELS[:, :3]), ["ndcg"])
    found = model.fit(X[:, 0], labels[:, 0], callbacks=[callback], verbose=0).history
    expected = tfr.evaluate(
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
        callback = tfr.EvaluateRetrieval(
            np.arange(5),
            np.arange(5),
            [0, 1, 2, 3, 4],
            ["mrr"],
            query_tower=towers.users,
            candidate_tower=towers.items,
        )
        model.fit(pairs, clicks, callbacks=[callback], epochs=2, verbose=0)

    with pytest.warns(tfr.RankingWarning, match="without any of its weights") as caught:
        fit(other)
    assert sum(each.category is tfr.RankingWarning for each in caught) == 1
    fit(model)  # the pattern of the guide


def test_evaluate_retrieval_with_a_score():
    candidates = np.eye(4, dtype="float32")[:, ::-1] * [[1], [2], [3], [4]]
    queries, relevant = X[:, 0], np.arange(QUERIES) % 4

    def score(queries, candidates):
        both = keras.ops.matmul(queries, keras.ops.transpose(candidates))
        return keras.ops.tanh(both / 10)

    found = tfr.evaluate_retrieval(
        queries, candidates.astype("float32"), relevant, ["mrr"], score=score
    )
    scores = np.tanh(queries @ candidates.T / 10)
    expected = tfr.evaluate(relevant, scores, ["mrr"], inputs="catalogue")
    assert found == close(expected)


@pytest.mark.skipif(os.environ.get("KERAS_BACKEND") is None, reason="the default")
def test_the_backend_is_the_one_that_was_asked_for():
    assert os.environ["KERAS_BACKEND"] == BACKEND
