"""Tests of what JAX computes in 32 bits, as in a program for a TPU.

    KERAS_BACKEND=jax python -m pytest tests/test_jax.py

TFRANKMETRICS_JAX=32bit lets it compute so on a CPU, too. The expected values come from
`evaluate`, which computes with NumPy in 64 bits. `benchmarks/tpu.py` compiles for a TPU.
"""

import math

import jax
import keras
import numpy as np
import pytest
from cases import metrics_with
from jax.interpreters import mlir
from keras_backend import results

import tfrankmetrics as trm
from tfrankmetrics.keras import tpu

RNG = np.random.default_rng(0)
SHAPE, CATALOGUE = (6, 1000), 400
CUTOFFS = (10, 100, None)
LABELS = RNG.integers(-1, 4, SHAPE).astype("float32")
LABELS[0, 1:], LABELS[1] = -1, 0  # one item, and a list without a relevant item
SCORES = RNG.normal(size=SHAPE).astype("float32")
TIED = np.round(SCORES * 3).astype(int)
TIED[3] = 0  # one group of ties
SPECIAL = TIED.astype("float32")
SPECIAL[4, :9], SPECIAL[5, :9] = np.nan, -np.inf
WEIGHTS = RNG.uniform(0.5, 2, SHAPE).astype("float32")
MASKED = {"labels": LABELS, "mask": RNG.random(SHAPE) < 0.9}
SUBTOPICS = np.stack([LABELS, LABELS[:, ::-1]], axis=2)
IDS = RNG.integers(-1, CATALOGUE, (6, 30))
RECOMMENDED = np.array([RNG.permutation(CATALOGUE)[:200] for _ in range(6)])
RECOMMENDED[2, 50:] = -1
EXCLUDED = {"ids": IDS, "exclude": RNG.integers(0, CATALOGUE, (6, 20))}
OF_ITEMS = np.round(RNG.normal(size=(6, CATALOGUE)) * 9).astype("float32")
DATA = {
    "no ties": ("labels", LABELS, SCORES, None),
    "ties": ("labels", LABELS.astype(int), TIED, WEIGHTS[:, 0]),
    "special scores": ("labels", MASKED, SPECIAL, WEIGHTS),
    "subtopics": ("labels", SUBTOPICS, SPECIAL, None),
    "ids": ("ids", IDS, RECOMMENDED, WEIGHTS[:, 0]),
    "one relevant": ("catalog", abs(IDS[:, :1]), OF_ITEMS, None),
    "several relevant": ("catalog", EXCLUDED, OF_ITEMS, WEIGHTS[:, 0]),
}
NAMES = ["ndcg@10", "map@10", "mrr@10", "err@10", "opa"]
# Without a mask, `judged` warns that it counts no item as unjudged.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`judged` requires a mask"),
    pytest.mark.filterwarnings("ignore:`exclude` removes items from"),
    pytest.mark.filterwarnings("error:Explicitly requested dtype"),
]


@pytest.fixture
def in_32_bits(monkeypatch):
    monkeypatch.setenv("TFRANKMETRICS_JAX", "32bit")


@pytest.fixture
def as_tpu():
    """Lowers programs for a CPU as for a TPU."""
    mlir.register_lowering(tpu._operation, tpu._lowered_for_tpu, platform="cpu")
    yield
    mlir.register_lowering(tpu._operation, tpu._lowered, platform="cpu")


def close(expected):
    return pytest.approx(expected, rel=1e-5, abs=1e-5)


def state_of(metric):
    return [variable.value for variable in metric.variables]


def floats(results):
    return {name: float(value) for name, value in results.items()}


# Values


@pytest.mark.usefixtures("in_32_bits")
@pytest.mark.parametrize(
    ("name", "ties"),
    [
        *((name, "expected") for name in DATA),
        *(("ties", ties) for ties in ("stable", "best", "worst")),
    ],
)
def test_values(name, ties):
    inputs, y_true, y_pred, weights = DATA[name]
    metrics = [*metrics_with(inputs, ties, CUTOFFS, name == "subtopics")]
    metric = trm.RankingMetrics(metrics, inputs=inputs)
    metric.update_state(y_true, y_pred, weights)
    options = {"sample_weight": weights, "inputs": inputs}
    expected = trm.evaluate(y_true, y_pred, metrics, **options)
    assert len(expected) > (5 if name == "subtopics" else 40)
    assert results(metric) == close(expected)


@pytest.mark.usefixtures("in_32_bits")
def test_the_sums_of_many_updates():
    metric = trm.RankingMetrics(["mrr", "dcg"], num_queries=True)
    number = 10_000
    labels = RNG.integers(0, 4, (number, 1, 4)).astype("float32")
    scores = RNG.normal(size=labels.shape).astype("float32")
    weights = RNG.uniform(0, 1000, (number, 1)).astype("float32")

    def update(state, batch):
        return metric.stateless_update_state(state, *batch), None

    state, _ = jax.lax.scan(update, state_of(metric), (labels, scores, weights))
    sums = np.asarray(state[0], "float64").sum(axis=-1)
    assert sums[:3, 1] == pytest.approx(
        [math.fsum(weights[:, 0])] * 2 + [number], rel=1e-14
    )
    found = floats(metric.stateless_result(state))
    data = labels[:, 0], scores[:, 0], ["mrr", "dcg"]
    expected = trm.evaluate(*data, sample_weight=weights, num_queries=True)
    assert found == pytest.approx(expected, rel=1e-6)


# Programs


def step_of(metric):
    def step(state, *batch):
        state = metric.stateless_update_state(state, *batch)
        return state, metric.stateless_result(state)

    return step


@pytest.mark.usefixtures("in_32_bits")
@pytest.mark.parametrize("name", DATA)
def test_a_program_has_no_type_of_64_bits(name):
    inputs, *batch = DATA[name]
    names = ["alpha_dcg@10"] if name == "subtopics" else NAMES
    ties = ["expected", "best"] if name == "no ties" else ["expected"]
    for each in ties:
        some = names if inputs == "labels" else NAMES[:4]
        metric = trm.RankingMetrics(some, inputs=inputs, ties=each)
        program = str(jax.make_jaxpr(step_of(metric))(state_of(metric), *batch))
        assert "f32[" in program
        assert not {"f64[", "i64[", "u64["} & {p[-4:] + "[" for p in program.split("[")}


def lowered(metric, *platforms):
    traced = jax.jit(step_of(metric)).trace(state_of(metric), LABELS, SCORES)
    return traced.lower(lowering_platforms=platforms)


def test_only_a_program_for_a_tpu_is_traced_in_32_bits(declarations):
    is_exact = []

    def formula(lists, relevance):
        is_exact.append(jax.config.read("jax_enable_x64"))
        return lists.sum_to_cutoffs(lists.expected(relevance))

    @trm.metric(
        "counted_traces", formula=formula, gain=trm.BinaryGain, range=(0, math.inf)
    )
    class CountedTraces(trm.TopKMetric):
        relevance_threshold: float = 1.0

    metric = CountedTraces(name="counted_traces")
    metric.update_state(LABELS, SCORES)  # the first use checks the formula
    is_exact.clear()
    lowered(metric, "cpu")
    assert is_exact == [True]
    lowered(metric, "tpu")
    assert is_exact == [True, True, False]


@pytest.mark.usefixtures("as_tpu")
def test_updates_of_a_program_for_a_tpu():
    names = ["ndcg@10", "mrr@10"]
    metric = trm.RankingMetrics(names, num_queries=True)

    @jax.jit
    def update(state, labels, scores, mask, weights):
        scores = scores * 1
        keras.src.backend.set_keras_mask(scores, mask)
        return metric.stateless_update_state(state, labels, scores, weights)

    state = state_of(metric)
    for rows in (slice(0, 2), slice(2, 6)):
        batch = LABELS, SPECIAL, MASKED["mask"], WEIGHTS
        state = update(state, *(each[rows] for each in batch))
    exact = np.asarray(state[0], "float64").sum(axis=-1)
    options = {"sample_weight": WEIGHTS, "num_queries": True}
    expected = trm.evaluate(MASKED, SPECIAL, names, **options)
    assert floats(metric.stateless_result(state)) == close(expected)
    assert (exact != exact.astype("float32")).any()


@pytest.mark.parametrize("target", ["cpu", "tpu"])
def test_transformations_of_an_update(target, request):
    """Eager code, in which only the transformed arrays have no values."""
    if target == "tpu":
        request.getfixturevalue("as_tpu")
    metric = trm.RankingMetrics(["ndcg", "mrr"])

    def value(labels, scores):
        state = metric.stateless_update_state(state_of(metric), labels, scores)
        return metric.stateless_result(state)["ndcg"]

    labels, scores = LABELS[2:, np.newaxis, :9], SCORES[2:, np.newaxis, :9]
    pairs = zip(labels, scores, strict=True)
    expected = [trm.evaluate(*pair, ["ndcg"])["ndcg"] for pair in pairs]
    for transform in (jax.vmap, jax.pmap):
        assert transform(value)(labels, scores).tolist() == close(expected)
    # A metric is constant where no two items change places.
    assert not np.asarray(jax.grad(value, argnums=1)(labels[0], scores[0])).any()


# Accumulator


BATCHES = 4
OF_BATCHES = [
    np.concatenate([each] * 4).reshape(BATCHES, 6, *each.shape[1:])
    for each in (LABELS[:, :9], SCORES[:, :9], WEIGHTS[:, 0])
]
OF_BATCHES[1] = RNG.normal(size=OF_BATCHES[1].shape).astype("float32")


def in_scan(sums_of):
    """The sums of all batches, side by side, which add up without rounding."""
    return jax.lax.scan(lambda _, batch: (None, sums_of(*batch)), None, OF_BATCHES)[1]


def in_carry(sums_of):
    zeros = jax.numpy.zeros_like(sums_of(*[each[0] for each in OF_BATCHES]))

    def add(sums, batch):
        return sums + sums_of(*batch), None

    return jax.lax.scan(add, zeros, OF_BATCHES)[0]


def over_devices(sums_of):
    """The sums of four devices, each of which has a batch."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:BATCHES]), ("device",))
    split, same = jax.sharding.PartitionSpec("device"), jax.sharding.PartitionSpec()

    def total(*batch):
        return jax.lax.psum(sums_of(*batch), "device")

    whole = (each.reshape(-1, *each.shape[2:]) for each in OF_BATCHES)
    return jax.jit(jax.shard_map(total, mesh=mesh, in_specs=split, out_specs=same))(
        *whole
    )


def in_pmap(sums_of):
    def total(*batch):
        return jax.lax.psum(sums_of(*batch), "device")

    return jax.pmap(total, axis_name="device")(*OF_BATCHES)[0]


@pytest.mark.parametrize(
    ("add_up", "is_in_64_bits", "error"),
    [
        (in_scan, False, 1e-12),
        (in_carry, True, 1e-12),
        (in_pmap, True, 1e-12),
        (over_devices, False, 1e-6),
    ],
)
def test_sums_of_an_accumulator_add_up(add_up, is_in_64_bits, error):
    """In 32 bits, JAX rounds what it adds up, and `add_sums` does not."""
    accumulator = trm.Accumulator(["mrr"], num_queries=True)
    with jax.enable_x64(is_in_64_bits):
        sums = add_up(jax.jit(accumulator.batch_sums))
        accumulator.add_sums(sums)
    whole = [each.reshape(-1, *each.shape[2:]) for each in OF_BATCHES]
    labels, scores, weights = whole
    accumulator.update(labels, scores, weights)  # with NumPy
    expected = trm.evaluate(
        np.concatenate([labels, labels]),
        np.concatenate([scores, scores]),
        ["mrr"],
        sample_weight=np.concatenate([weights, weights]),
        num_queries=True,
    )
    assert accumulator.compute() == pytest.approx(expected, rel=error)


def test_an_accumulator_of_a_catalog_and_of_mistakes():
    options = {"metrics": ["mrr", "coverage@5"], "inputs": "catalog"}
    accumulator = trm.Accumulator(**options, num_items=20)
    ids, scores = np.abs(IDS[:, :1]) % 20, OF_ITEMS[:, :20]
    accumulator.add_sums(jax.jit(accumulator.batch_sums)(ids, scores))
    expected = trm.evaluate(ids, scores, **options)
    assert accumulator.compute() == pytest.approx(expected, rel=1e-12)
    with pytest.raises(ValueError, match="Pass num_items=V"):
        trm.Accumulator(**options).batch_sums(ids, scores)
    swapped = trm.Accumulator(["mrr"])
    swapped.add_sums(
        jax.jit(swapped.batch_sums)(RNG.random((6, 9)), abs(LABELS[:, :9]))
    )
    with pytest.warns(trm.RankingWarning, match="Labels come before scores"):
        swapped.compute()
    sums = np.full(jax.eval_shape(swapped.batch_sums, LABELS, SCORES).shape, np.nan)
    swapped.add_sums(sums)  # of invalid labels
    with pytest.raises(ValueError, match="must be finite"):
        swapped.compute()
