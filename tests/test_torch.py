"""Tests of PyTorch's own computation, which tensors on an accelerator use.

    KERAS_BACKEND=torch python -m pytest tests/test_torch.py

They run on a GPU if PyTorch finds one. Otherwise, TFRANKMETRICS_TORCH=native lets it
compute on the CPU. The expected values come from the same calls with arrays of NumPy.
"""

import collections
import contextlib
import pickle
import subprocess
import sys

import keras
import numpy as np
import pytest
import torch
from cases import LABEL_METRICS, TIES, make_metric, metrics_with
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

import tfrankmetrics as trm

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
RNG = np.random.default_rng(0)
LABELS = RNG.integers(-1, 4, (40, 12)).astype("float32")
LABELS[0], LABELS[1] = -1, 0  # a list of padding, and one without a relevant item
SCORES = RNG.integers(0, 6, LABELS.shape).astype("float32")
TEN = ["ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map@10", "mrr@10", "recall@10"]
TEN += ["precision@1", "precision@5", "precision@10"]
# Their number of steps depends on values, as the documentation says.
WITH_LOOPS = {"err", "pfound", "alpha_dcg", "alpha_ndcg"}
SIMULATED = FakeTensorMode()  # one for all tests, which share constants
VIEWS = {"alias", "detach", "expand", "permute", "select", "slice", "squeeze", "t"}
VIEWS |= {"_unsafe_view", "transpose", "unbind", "unsqueeze", "view"}


@pytest.fixture(autouse=True)
def native(monkeypatch):
    monkeypatch.setenv("TFRANKMETRICS_TORCH", "native")


class Operations(TorchDispatchMode):
    """Counts the operations that a device would run."""

    def __init__(self):
        super().__init__()
        self.by_name = collections.Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "overloadpacket", function).__name__
        if name not in VIEWS | {"promote_types"}:
            self.by_name[name] += 1
        return function(*args, **(kwargs or {}))


@contextlib.contextmanager
def without_reads():
    """Makes every read of a tensor by the host an error."""

    def refuse(*_, **__):
        raise RuntimeError("The host reads a tensor.")

    names = ["item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__"]
    names.append("__array__")
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(torch.Tensor, name, refuse)
        if DEVICE == "cuda":
            torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            if DEVICE == "cuda":
                torch.cuda.set_sync_debug_mode("default")


def on_device(data):
    """Arrays as tensors, also in a dict or a list of arguments."""
    if isinstance(data, list):
        return [*map(on_device, data)]
    if isinstance(data, dict):
        return {name: on_device(each) for name, each in data.items()}
    return torch.tensor(data, device=DEVICE) if isinstance(data, np.ndarray) else data


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=name)


# Values


SPECIAL = SCORES + RNG.integers(0, 2, SCORES.shape) / 4
SPECIAL[2, 3], SPECIAL[3], SPECIAL[4, :5] = np.nan, -np.inf, -np.inf
SPECIAL[5, 1] = np.finfo(np.float32).min
IDS = RNG.integers(-1, 20, (40, 3))
EXCLUDED = RNG.integers(20, 30, (40, 4))
CATALOGUE = RNG.integers(0, 20, (40, 30)).astype("float32")
DATA = {
    "ties": (LABELS, SCORES, None, "labels"),
    "special scores": (LABELS, SPECIAL, None, "labels"),
    "integers": (LABELS.astype("int64"), SCORES.astype("int64"), None, "labels"),
    "weights": (LABELS, SPECIAL, RNG.random(40), "labels"),
    "weights of items": (LABELS, SPECIAL, RNG.random(LABELS.shape), "labels"),
    "mask": (
        {"labels": LABELS, "mask": RNG.random(LABELS.shape) < 0.7},
        SCORES,
        None,
        "labels",
    ),
    "ids": (IDS, np.argsort(CATALOGUE, axis=1)[:, :9], RNG.random(40), "ids"),
    "one relevant": (np.abs(IDS[:, :1]), CATALOGUE, None, "catalog"),
    "exclude": (
        {"ids": IDS, "relevance": IDS % 4 / 2, "exclude": EXCLUDED},
        CATALOGUE,
        None,
        "catalog",
    ),
}


@pytest.mark.filterwarnings("ignore:`judged` requires", "ignore:`exclude` removes")
@pytest.mark.filterwarnings("ignore:Recommended ids|Relevant and recommended")
@pytest.mark.parametrize(
    ("data", "ties"),
    [
        (data, ties)
        for data in DATA
        for ties in TIES
        # With a weight for each item, no order is the best one, which is an error.
        if data != "weights of items" or ties not in ("best", "worst")
    ],
)
def test_values_are_those_of_numpy(data, ties):
    y_true, y_pred, weights, inputs = DATA[data]
    metrics = [*metrics_with(inputs, ties, (3, None), num_items=30)]
    assert len(metrics) > 10
    of_queries = [each for each in metrics if each.declaration.value is None]
    for per_query, chosen in ((True, of_queries), (False, metrics)):
        form = {"inputs": inputs, "per_query": per_query}
        given = map(on_device, (y_true, y_pred))
        found = trm.evaluate(*given, chosen, sample_weight=on_device(weights), **form)
        expected = trm.evaluate(y_true, y_pred, chosen, sample_weight=weights, **form)
        assert_same(found, expected)


def test_subtopics():
    labels = np.stack([LABELS, np.where(LABELS < 0, -1, (LABELS + 1) % 3)], axis=2)
    names = ["alpha_dcg@5", "alpha_dcg", "precision_ia@3"]
    found = trm.evaluate(*map(on_device, (labels, SCORES)), names, per_query=True)
    assert_same(found, trm.evaluate(labels, SCORES, names, per_query=True))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("options", [{}, {"ties": "stable"}, {"exclude": EXCLUDED}])
def test_retrieval(dtype, options):
    queries, candidates = (
        np.round(RNG.normal(size=(number, 6)) * 2).astype(dtype) for number in (40, 300)
    )
    candidates[200:250] = candidates[:50]  # copies, which are tied
    names = ["ndcg@10", "mrr", "map", "recall@50", "coverage@5", "gini@5"]
    relevant = np.abs(IDS)
    sizes = {"batch_size": 16, "chunk_size": 100}
    vectors = queries, candidates
    of_torch = [*map(on_device, vectors)]
    found = trm.evaluate_retrieval(*of_torch, relevant, names, **options, **sizes)
    expected = trm.evaluate_retrieval(*vectors, relevant, names, **options, **sizes)
    assert_same(found, expected)
    found, expected = (
        trm.retrieve(*each, k=7, **sizes) for each in (of_torch, vectors)
    )
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("score", [None, lambda q, c: q @ c.T])
def test_products_of_half_precision_keep_their_digits(score, dtype):
    """1 + 2^-12 is above 1, but would be rounded to 1 in half precision."""
    vectors = [[1.0, 1.0]], [[1.0, 0.0], [1.0, 2**-12]]
    vectors = [torch.tensor(each, dtype=dtype, device=DEVICE) for each in vectors]
    found = trm.evaluate_retrieval(*vectors, [0], ["mrr"], score=score)
    assert found == {"mrr": 0.5}


def test_a_score_function_computes_on_the_device():
    queries, candidates = (RNG.normal(size=(number, 6)) for number in (40, 300))
    relevant, names = np.abs(IDS), ["ndcg@10", "mrr"]

    def distance(some, others):
        return -((some[:, None] - others[None]) ** 2).sum(-1)

    given = on_device(queries), on_device(candidates)
    found = trm.evaluate_retrieval(*given, relevant, names, score=distance)
    expected = trm.evaluate_retrieval(
        queries, candidates, relevant, names, score=distance
    )
    assert_same(found, expected)


# Updates


def update(metric, *data):
    metric.update_state(*map(on_device, data))
    return metric


@pytest.mark.parametrize(
    "name",
    LABEL_METRICS,
)
def test_an_update_reads_no_tensor(name):
    metric = make_metric(name, 10)
    lists = on_device([LABELS, SCORES])
    if name in WITH_LOOPS:
        message = r"reads a tensor|synchronizing"  # the second one is CUDA's
        with pytest.raises(RuntimeError, match=message), without_reads():
            metric.update_state(*lists)
        return
    special = on_device([LABELS, SPECIAL, RNG.random(40)])
    with without_reads():
        metric.update_state(*lists)
        metric.update_state(*special)


@pytest.mark.parametrize("data", ["ids", "exclude"])
def test_an_update_of_ids_and_of_a_catalog_reads_no_tensor(data):
    *arrays, inputs = DATA[data]
    metric = trm.RankingMetrics(["ndcg@5", "mrr", "recall@5"], inputs=inputs)
    arrays = on_device(arrays)
    with without_reads():
        metric.update_state(*arrays)


@pytest.mark.skipif(DEVICE == "cuda", reason="The tests above run on the GPU itself.")
@pytest.mark.parametrize("ties", ["expected", "stable"])
def test_an_update_stays_on_a_gpu(ties):
    """On a simulated GPU, which has no values, reads and mixed devices are errors."""
    with SIMULATED, keras.device("cuda:0"):
        data = torch.empty(LABELS.shape), torch.empty(LABELS.shape)
        data = [each.to("cuda") for each in data]
        metrics = metrics_with("labels", ties, (3, None))
        metric = trm.RankingMetrics(
            [each for each in metrics if each.declaration.name not in WITH_LOOPS]
        )
        for weights in (None, data[0][:, 0], data[0]):
            metric.update_state(*data, weights)
        assert {variable.value.device.type for variable in metric.variables} == {"cuda"}


def test_number_of_operations():
    """Each starts a kernel on an accelerator, which takes some 15 microseconds."""
    metric = update(trm.RankingMetrics(TEN), LABELS, SPECIAL)  # which makes constants
    data = [*map(on_device, (LABELS, SPECIAL))]
    with Operations() as operations:
        metric.update_state(*data)
    assert operations.by_name.total() <= 305
    assert operations.by_name["sort"] == 2  # of the scores, and of the labels


def objects():
    names = [name.split("@") for name in TEN]
    return [make_metric(name, int(k), name=f"{name}_{k}") for name, k in names]


def model(metrics):
    dense = keras.layers.Dense(1, kernel_initializer="ones", use_bias=False)
    layers = [keras.Input((12, 2)), dense, keras.layers.Reshape((12,))]
    model = keras.Sequential(layers)
    model.compile("sgd", "mse", metrics=metrics)
    return model


def test_the_metrics_of_a_model_rank_once():
    x = np.round(RNG.normal(size=(40, 12, 2))).astype("float32")
    separate, together = model(objects()), model([trm.RankingMetrics(TEN)])
    for each in (separate, together):
        each.fit(x, LABELS, batch_size=10, verbose=0)
    expected = together.evaluate(x, LABELS, verbose=0, return_dict=True)
    with Operations() as operations:
        found = separate.test_on_batch(x, LABELS, return_dict=True)
    assert operations.by_name["sort"] == 2
    for name in TEN:
        assert found[name.replace("@", "_")] == pytest.approx(expected[name], rel=1e-6)


def test_results_of_an_earlier_step_are_not_used():
    """A program may write new data to the same tensors."""
    labels, scores = on_device(LABELS), on_device(SCORES)
    first, second = trm.NDCG(), trm.NDCG()
    first.update_state(labels, scores)
    scores.data.mul_(-1)  # which does not count as a change
    second.update_state(labels, scores)
    assert float(second.result()) == pytest.approx(
        trm.evaluate(LABELS, -SCORES, ["ndcg"])["ndcg"], rel=1e-6
    )


def test_invalid_values_are_found_by_the_result():
    metric = trm.NDCG(inputs="catalog", name="found")
    update(metric, np.array([40]), CATALOGUE[:1])
    with pytest.warns(trm.RankingWarning, match="an id outside of the catalog"):
        assert np.isnan(float(metric.result()))
    with pytest.raises(ValueError, match="must be of the same shape"):
        update(trm.NDCG(), LABELS[:, 1:], SCORES)


@pytest.mark.skipif(DEVICE == "cpu", reason="A CUDA graph needs a GPU.")
def test_a_cuda_graph_updates_the_metric():
    expected, metric = trm.RankingMetrics(TEN), trm.RankingMetrics(TEN)
    labels, scores = on_device([LABELS, SCORES])
    metric.update_state(labels, scores)  # copies constants to the GPU
    metric.reset_state()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        metric.update_state(labels, scores)
    for batch in (SCORES, SPECIAL, -SCORES):
        scores.copy_(on_device(batch))
        graph.replay()
        update(expected, LABELS, batch)
    assert_same(
        *(
            {n: float(v) for n, v in each.result().items()}
            for each in (metric, expected)
        )
    )


def test_states_add_up_exactly():
    metric = trm.MeanReciprocalRank()
    for _ in range(300):
        update(metric, LABELS, SPECIAL, RNG.random(40) * 1e6)
    expected = float(metric.result())
    other = trm.MeanReciprocalRank()
    other.merge_state([metric])
    assert float(other.result()) == expected
    clone = trm.MeanReciprocalRank()
    for variable, state in zip(clone.variables, metric.variables, strict=True):
        variable.assign(state)
    assert float(clone.result()) == expected


@pytest.mark.skipif(DEVICE == "cuda", reason="Keras makes its variables on the GPU.")
def test_numpy_computes_on_a_cpu(monkeypatch):
    monkeypatch.delenv("TFRANKMETRICS_TORCH")
    metric, data = trm.RankingMetrics(TEN), [*map(on_device, (LABELS, SCORES))]
    with Operations() as operations:
        metric.update_state(*data)
        trm.evaluate(*data, TEN)
    assert operations.by_name["sort"] == 0


def test_a_list_may_mix_tensors_and_other_rows():
    rows = [torch.tensor([0.1, 0.2], requires_grad=True), [0.4, 0.3]]
    for order in (1, -1):
        labels, scores = [[1, 0], [0, 1]][::order], rows[::order]
        found = trm.evaluate(labels, scores, ["mrr"], per_query=True)
        assert found["mrr"].tolist() == [0.5, 0.5]


# Accumulator


OF_ITEMS = ["ndcg@3", "coverage@3", "gini@3", "novelty@3"]
LANGUAGES = RNG.choice(["de", "en", "fr"], 40)


def rows_of(data, rows):
    """Some queries of arrays, also in a dict; others stay as they are."""
    if isinstance(data, dict):
        return {name: rows_of(each, rows) for name, each in data.items()}
    return data[rows] if isinstance(data, np.ndarray) else data


@pytest.mark.filterwarnings("ignore:Relevant and recommended")
@pytest.mark.parametrize("by", [None, LANGUAGES])
@pytest.mark.parametrize("data", [*DATA, "subtopics"])
def test_an_accumulator_waits_for_the_device_only_to_compute(data, by):
    subtopics = np.stack([LABELS, LABELS[:, ::-1]], axis=2), SPECIAL, None, "labels"
    y_true, y_pred, weights, inputs = {**DATA, "subtopics": subtopics}[data]
    metrics = ["ndcg@5", "mrr", "recall@3"]
    options = {"inputs": inputs}
    if inputs != "labels":
        options |= {"num_items": 30, "popularity": (np.arange(30) + 1) / 30}
        metrics = [*metrics, *OF_ITEMS[1:]]
    if data == "subtopics":
        metrics = ["precision_ia@3"]
    accumulator = trm.Accumulator(metrics, num_queries=True, **options)
    batches = []
    for rows in np.split(RNG.permutation(40), [3, 20]):
        batch = [rows_of(each, rows) for each in (y_true, y_pred, weights)]
        batches.append((on_device(batch), None if by is None else by[rows]))
    accumulator.update(*batches[0][0], by=batches[0][1])  # copies constants
    with without_reads():
        for batch, slices in batches[1:]:
            accumulator.update(*batch, by=slices)
    assert all(each.device.type == DEVICE for each in accumulator._totals.sums.values())
    found = accumulator.compute()
    expected = trm.evaluate(
        *(y_true, y_pred, metrics), sample_weight=weights, by=by, num_queries=True, **options
    )  # fmt: skip
    if by is not None:
        assert found.num_queries == expected.num_queries
        for language in expected:
            assert_same(found[language], expected[language])
        found, expected = found.whole, expected.whole
    assert_same(found, expected)


def test_an_accumulator_adds_what_the_device_and_numpy_have_computed():
    found = trm.Accumulator(["mrr"])
    for rows, of in [([0, 2, 5], on_device), (range(6, 40), np.asarray)] * 2:
        found.update(of(LABELS[rows]), of(SCORES[rows]))
        found = pickle.loads(pickle.dumps(found))
    rows = [0, 2, 5, *range(6, 40)]
    assert_same(found.compute(), trm.evaluate(LABELS[rows], SCORES[rows], ["mrr"]))


def test_an_accumulator_reports_what_the_device_has_found():
    swapped = trm.Accumulator(["ndcg@3"])
    swapped.update(*on_device([RNG.random((9, 5)), np.abs(LABELS[:9, :5])]))
    with pytest.warns(trm.RankingWarning, match="Labels come before scores"):
        swapped.compute()
    for label, weight in ((np.nan, 1.0), (1.0, -1.0)):
        invalid = trm.Accumulator(["mrr"])
        data = np.array([[label, 0]]), np.array([[2.0, 1]]), np.array([weight])
        invalid.update(*on_device([*data]))
        with pytest.raises(ValueError, match="computed on a device"):
            invalid.compute()


PROCESSES = """
import sys

import numpy as np
import torch.distributed
import torch.multiprocessing

from tfrankmetrics import Accumulator, evaluate

RNG = np.random.default_rng(0)
LABELS, SCORES = RNG.integers(0, 3, (30, 8)), RNG.random((30, 8))
BY = np.repeat(["de", "en", "fr"], 10)  # each process lacks some
IDS = {str(id): [str(each) for each in RNG.permutation(20)[:4]] for id in range(12)}


def queries_of(rank, size):
    # The last process of four has no query.
    return range(rank, 30, min(size, 3)) if rank < 3 else range(0)


def check(rank, size, group):
    found, sliced = Accumulator(["mrr", "ndcg@5"]), Accumulator(["mrr", "ndcg@5"])
    for query in queries_of(rank, size):
        data = LABELS[[query]], SCORES[[query]]
        found.update(*data)
        if BY[query] == "de" or rank > 0 or size == 1:
            sliced.update(*data, by=BY[[query]])
    counted = [
        query
        for process in range(size)
        for query in queries_of(process, size)
        if BY[query] == "de" or process > 0 or size == 1
    ]
    found.all_reduce(group)
    assert_close(found.compute(), evaluate(LABELS, SCORES, ["mrr", "ndcg@5"]))
    sliced.all_reduce(group)
    data = LABELS[counted], SCORES[counted]
    expected = evaluate(*data, ["mrr", "ndcg@5"], by=BY[counted])
    assert [*sliced.compute()] == [*expected]
    for key in expected:
        assert_close(sliced.compute()[key], expected[key])
    options = {"metrics": ["coverage", "gini"], "inputs": "ids", "num_items": 20}
    items = Accumulator(**options)
    for query in queries_of(rank, size):
        if str(query) in IDS:
            items.update([["1"]], [IDS[str(query)]])
    items.all_reduce(group)
    assert_close(items.compute(), evaluate([["1"]] * 12, [*IDS.values()], **options))


def assert_close(found, expected):
    assert found.keys() == expected.keys()
    np.testing.assert_allclose([*found.values()], [*expected.values()], rtol=1e-12)


def work(rank, store):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=4
    )
    for size in (1, 2, 4):
        group = torch.distributed.new_group(range(size))
        if rank < size:
            check(rank, size, group)
    other = Accumulator(["mrr"] if rank else ["map"])
    try:
        other.all_reduce()
    except ValueError as error:
        assert "with the same metrics" in str(error)
        if rank == 0:
            print("All values are equal, and other metrics are refused")
    assert "keras" not in sys.modules


if __name__ == "__main__":
    torch.multiprocessing.start_processes(work, (sys.argv[1],), 4, start_method="fork")
"""


def test_accumulators_of_processes_add_up(tmp_path):
    script = tmp_path / "processes.py"
    script.write_text(PROCESSES)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "store")],
        capture_output=True,
        text=True,
    )
    expected = "All values are equal, and other metrics are refused\n"
    assert done.stdout == expected, done.stderr
    assert done.returncode == 0, done.stderr
