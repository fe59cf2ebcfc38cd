"""Tests what JAX and PyTorch compute for Keras 3: every metric, and compiled steps.

    KERAS_BACKEND=jax python -m pytest tests/test_keras_backends.py

`test_keras.py` and `test_state.py` test models and states on each backend, and
`test_backend_callbacks.py` callbacks. The expected values come from functions such as
`evaluate`, which compute with NumPy and are tested elsewhere.
"""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
from cases import TIES, metrics_with
from code_blocks import run_block, run_blocks
from keras_backend import BACKEND, IS_JAX, close, keras, results
from operations import CALLS, require_what_numpy_computes

import tfrankmetrics as trm
import tfrankmetrics.arrays as xp
from tfrankmetrics.testing import check_metric

ROOT = pathlib.Path(__file__).parents[1]
# Without a mask, `judged` warns that it counts no item as unjudged.
pytestmark = pytest.mark.filterwarnings("ignore:`judged` requires a mask")
RNG = np.random.default_rng(0)
QUERIES, ITEMS, CATALOGUE, BATCH_SIZE = 24, 9, 12, 8
X = RNG.normal(size=(QUERIES, ITEMS, 4)).astype("float32")
X = np.round(X)  # so that some scores are equal
LABELS = RNG.integers(-1, 4, (QUERIES, ITEMS)).astype("float32")
LABELS[3] = -1  # only padding
LABELS[4] = 0  # a list without a relevant item
WEIGHTS = RNG.uniform(0.5, 2, QUERIES).astype("float32")
SCORES = X[..., 0]
NAMES = ["ndcg@3", "map", "mrr@5", "precision@2", "recall@4", "err", "auc", "opa"]
IDS = RNG.integers(-1, CATALOGUE, (QUERIES, 3))
RECOMMENDED = np.array([RNG.permutation(CATALOGUE)[:5] for _ in range(QUERIES)])
RECOMMENDED[2, 3:] = -1
ITEM_DATA = {
    "popularity": RNG.uniform(0.1, 1, CATALOGUE),
    "vectors": RNG.normal(size=(CATALOGUE, 3)),
    "categories": ["a", "b"] * (CATALOGUE // 2),
    "target": {"a": 0.5, "b": 0.5},
    "num_items": CATALOGUE,
}


def test_the_first_example_of_the_readme():
    text = (ROOT / "README.md").read_text("utf-8")
    printed = run_block(text.split("```python\n")[1].split("```")[0], "README", {})
    name, value = printed.split()
    assert name == "val_ndcg@10:"
    assert 0.7 < float(value) < 0.9


def test_the_backend_is_used_and_tensorflow_is_not_imported():
    code = (
        "import sys, keras, tfrankmetrics as trm\n"
        "metric = trm.RankingMetrics(['ndcg@10', 'err'])\n"
        "metric.update_state([[1, 0]], [[0.1, 0.3]])\n"
        "metric.result(), print(keras.backend.backend(), 'tensorflow' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.split() == [BACKEND, "False"], found.stderr


# Values


@pytest.mark.parametrize(
    ("inputs", "y_true", "y_pred"),
    [
        ("labels", LABELS, SCORES),
        ("ids", IDS, RECOMMENDED),
        (
            "catalog",
            np.abs(IDS[:, :1]),
            np.round(RNG.normal(size=(QUERIES, CATALOGUE))),
        ),
        ("catalog", IDS, RNG.normal(size=(QUERIES, CATALOGUE))),
    ],
    ids=["labels", "ids", "one relevant", "several relevant"],
)
def test_every_metric_in_a_model(inputs, y_true, y_pred):
    metrics = [
        metric
        for ties in TIES
        for metric in metrics_with(
            inputs, ties, (2, None) if ties == "expected" else (2,), **ITEM_DATA
        )
    ]
    model = keras.Sequential([keras.layers.Rescaling(1, dtype=y_pred.dtype.name)])
    model.compile(
        "sgd",
        lambda y, scores: 0 * keras.ops.cast(scores, "float32"),
        metrics=[trm.RankingMetrics(metrics, inputs=inputs)],
    )
    found = model.evaluate(
        y_pred, y_true, batch_size=BATCH_SIZE, verbose=0, return_dict=True
    )
    expected = trm.evaluate(y_true, y_pred, metrics, inputs=inputs)
    assert len(expected) > 50
    assert {key: found[key] for key in expected} == close(expected)


GRADES = RNG.integers(0, 4, CATALOGUE).astype("float32")[IDS[:4, :2]]
SPECIAL = SCORES.copy()
SPECIAL[0, 2], SPECIAL[1, :3], SPECIAL[2, 1] = np.nan, -np.inf, np.inf
UPDATES = {
    "no items": (NAMES, (np.zeros((3, 0)), np.zeros((3, 0))), {}),
    "no lists": (NAMES, (np.zeros((0, 3)), np.zeros((0, 3))), {}),
    "a mask": (NAMES, ({"labels": LABELS, "mask": RNG.random(LABELS.shape) < 0.7}, SCORES), {}),
    "unequal lengths": (NAMES, ([[1, 0, 2], [0, 1]], [[0.1, 0.3, 0.2], [0.4, 0.4]]), {}),
    "special scores": (NAMES, (LABELS, SPECIAL), {}),
    "subtopics": (["alpha_dcg@3", "precision_ia@2"], (np.stack([LABELS, LABELS[:, ::-1]], axis=2), SCORES), {}),
    "sequences": (
        ["ndcg@3", "mrr", "recall@5"],
        (
            {
                "ids": IDS[:4, :2].reshape(4, 2, 1),
                "relevance": GRADES.reshape(4, 2, 1),
                "exclude": IDS[4:8, :2].reshape(4, 2, 1),
            },
            RNG.normal(size=(4, 2, CATALOGUE)).astype("float32"),
            WEIGHTS[:4],
        ),
        {"inputs": "catalog"},
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:`exclude` removes items from")  # at random
@pytest.mark.parametrize("name", UPDATES)
def test_an_update_has_the_values_of_evaluate(name):
    names, data, options = UPDATES[name]
    metric = trm.RankingMetrics(names, **options)
    metric.update_state(*data)
    weights = {"sample_weight": data[2]} if len(data) > 2 else {}
    expected = trm.evaluate(*data[:2], names, **weights, **options)
    assert results(metric) == close(expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int32"])
def test_dtypes_of_scores(dtype):
    metric = trm.RankingMetrics(NAMES)
    scores = keras.ops.cast(SCORES * 3, dtype)
    metric.update_state(keras.ops.cast(LABELS, dtype), scores)
    expected = trm.evaluate(LABELS, np.round(SCORES * 3), NAMES)
    assert results(metric) == close(expected)


def test_invalid_data_raise_or_warn():
    with pytest.raises(ValueError, match="must be of the same shape"):
        trm.NDCG().update_state(LABELS[:, 1:], SCORES)
    with pytest.raises(ValueError, match="positions in the catalog"):
        trm.NDCG(inputs="catalog").update_state([7], [[0.1, 0.2]])
    metric = trm.NDCG()
    metric.update_state([[np.nan, 1.0]], [[0.1, 0.2]])
    with pytest.warns(trm.RankingWarning, match="NaN"):
        assert np.isnan(float(metric.result()))


# Steps


@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch")
def test_torch_compile_does_not_trace_the_metrics():
    import torch

    metric = trm.RankingMetrics(NAMES, num_queries=True)

    @torch.compile(backend="eager")
    def step(labels, scores):
        metric.update_state(labels, scores * 2)
        return metric.result()

    torch._dynamo.utils.counters.clear()
    found = step(torch.tensor(LABELS), torch.tensor(SCORES))
    assert {key: float(value) for key, value in found.items()} == close(
        trm.evaluate(LABELS, SCORES, NAMES, num_queries=True)
    )
    # Two pieces: `scores * 2` before the update, and the dict of the results.
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 2


@pytest.mark.skipif(not IS_JAX, reason="of JAX")
class TestJax:
    def test_the_page_of_the_documentation(self):
        page = ROOT / "docs" / "guide" / "backends.md"
        names = run_blocks(page, "(?:py|python)", section="Keras backends")
        run_blocks(page, "py", containing="keras.distribution", names=names)

    def test_stateless_methods(self):
        import jax

        metric = trm.RankingMetrics(NAMES)
        variables = [variable.value for variable in metric.variables]

        @jax.jit
        def step(variables, labels, scores):
            return metric.stateless_update_state(variables, labels, scores)

        for start in range(0, QUERIES, 12):
            rows = slice(start, start + 12)
            variables = step(variables, LABELS[rows], X[rows, :, 0])
        found = jax.jit(metric.stateless_result)(variables)
        found = {key: float(value) for key, value in found.items()}
        assert found == close(trm.evaluate(LABELS, SCORES, NAMES))
        assert np.isnan(float(metric.result()["map"]))  # the object has seen nothing

    def test_results_are_in_32_bits(self):
        import jax

        metric = trm.NDCG()
        metric.update_state(LABELS, SCORES)
        assert metric.result().dtype == "float32"
        assert {variable.dtype for variable in metric.variables} == {"float32"}
        assert jax.numpy.zeros(1, float).dtype == jax.numpy.zeros(1).dtype

    def test_functions_raise_while_jax_traces(self):
        import jax

        calls = [
            lambda y: trm.evaluate(y, LABELS, ["mrr"])["mrr"],
            lambda y: trm.evaluate(LABELS, LABELS, ["mrr"], by=y[:, 0]).whole["mrr"],
            lambda y: trm.evaluate_rows(y[0], y[0], y[0], ["mrr"])["mrr"],
            lambda y: trm.evaluate_retrieval(y, y, [0] * QUERIES, ["mrr"])["mrr"],
        ]
        for call in calls:
            with pytest.raises(RuntimeError, match=r"outside of jax\.jit"):
                jax.jit(call)(LABELS)

    def test_results_of_several_states(self):
        import jax

        metric = trm.MeanReciprocalRank()
        start = [variable.value for variable in metric.variables]
        states = [
            metric.stateless_update_state(start, LABELS, X[..., i]) for i in (0, 1)
        ]
        stacked = [jax.numpy.stack(each) for each in zip(*states)]
        found = jax.vmap(metric.stateless_result)(stacked)
        expected = [trm.evaluate(LABELS, X[..., i], ["mrr"])["mrr"] for i in (0, 1)]
        assert found.tolist() == close(expected)

    def test_functions_of_jax_as_options(self):
        import jax.numpy as jnp

        labels, expected = LABELS[:3], np.square
        for ours, theirs in ((jnp.square, expected), (jnp.log1p, np.log1p)):
            found = trm.evaluate(labels, X[:3, :, 0], ["dcg@3"], gain=ours)
            exact = trm.evaluate(labels, X[:3, :, 0], ["dcg@3"], gain=theirs)
            assert found == pytest.approx(exact, rel=1e-12)
            lists = labels, X[:3, :, 0], "dcg@3"
            shown = trm.explain(*lists, gain=ours).columns["contribution"]
            by_numpy = trm.explain(*lists, gain=theirs).columns["contribution"]
            assert shown == pytest.approx(by_numpy, rel=1e-12, nan_ok=True)

    @pytest.mark.parametrize("is_sharded", [False, True])
    def test_several_devices(self, is_sharded):
        import jax

        devices = [f"cpu:{i}" for i in range(len(jax.devices()))]
        assert len(devices) == 4
        if is_sharded:  # the table of embeddings is spread over the devices
            mesh = keras.distribution.DeviceMesh((4,), ["model"], devices)
            layout = keras.distribution.LayoutMap(mesh)
            layout["items/embeddings"] = (None, "model")
            distribution = keras.distribution.ModelParallel(layout_map=layout)
        else:
            distribution = keras.distribution.DataParallel(devices=devices)

        def table(shape, dtype=None):
            return numbers

        def evaluated():
            ids, items = keras.Input((ITEMS,), dtype="int32"), keras.layers.Embedding
            vectors = items(CATALOGUE, 4, name="items", embeddings_initializer=table)
            scores = keras.ops.sum(vectors(ids), axis=-1)
            model = keras.Model(ids, scores)
            model.compile("sgd", "mse", metrics=[trm.RankingMetrics(NAMES)])
            options = {"batch_size": 4, "verbose": 0}
            found = model.evaluate(rows, LABELS[:20], return_dict=True, **options)
            return {name: found[name] for name in NAMES}

        rows = RNG.integers(0, CATALOGUE, (20, ITEMS))
        numbers = np.round(RNG.normal(size=(CATALOGUE, 4))).astype("float32")
        expected = evaluated()
        keras.distribution.set_distribution(distribution)
        try:
            assert evaluated() == close(expected)
        finally:
            keras.distribution.set_distribution(None)


@pytest.mark.parametrize("name", CALLS)
def test_operations_compute_what_numpy_does(name):
    library = pytest.importorskip(BACKEND)
    with xp.computing_in(BACKEND):
        if IS_JAX:
            require_what_numpy_computes(name, library.numpy.asarray)
            require_what_numpy_computes(name, library.numpy.asarray, library.jit)
        else:
            require_what_numpy_computes(name, library.asarray)


def test_check_metric_finds_a_formula_that_is_wrong_in_this_library():
    def formula(lists, relevance):
        factor = 0.5 if xp.library_of(lists.ranks) == BACKEND else 1.0
        return lists.sum_to_cutoffs(lists.expected(relevance)) * factor

    class Own(trm.TopKMetric):
        """A metric of this test."""

        relevance_threshold: float = 1.0

    facts = {"gain": trm.BinaryGain, "range": (0, 9)}
    with pytest.raises(TypeError, match=f"the same in NumPy and in {BACKEND}"):
        check_metric(trm.metric("own_of_this_test", formula=formula, **facts)(Own))
