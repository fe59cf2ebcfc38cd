"""Tests that metric objects accumulate where Keras is not installed.

A process in which Keras cannot be imported runs `accumulate`, and this one compares
what it returns with `evaluate` and with the Keras metrics.
"""

import copy
import json
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tfrankmetrics as trm

FORMATS = ["labels", "ids", "catalog"]
NAMES = ["ndcg@3", "P@1(ties=worst)", "mrr"]
ITEMS = 6


def rng():
    return np.random.default_rng(0)


def batches(inputs):
    """Two batches of different widths, with padding, ties and weights of queries."""
    random = rng()
    for queries, width in [(7, 5), (4, ITEMS)]:
        weights = random.uniform(size=queries)
        if inputs == "labels":
            labels = random.integers(-1, 3, size=(queries, width))
            yield labels, random.integers(0, 4, size=labels.shape) / 4, weights
            continue
        relevant = np.array([random.permutation(ITEMS)[:2] for _ in range(queries)])
        relevant[0, 1] = -1
        scores = random.normal(size=(queries, ITEMS))
        if inputs == "catalog":
            yield relevant, scores, weights
        else:
            yield relevant, np.argsort(-scores, axis=1)[:, : width - 2], weights


def data_about_items(options):
    data = {
        "popularity": rng().uniform(0.1, 0.9, size=ITEMS),
        "vectors": rng().normal(size=(ITEMS, 3)),
        "categories": ["a", "b", "a", "a", "b", "b"],
        "target": {"a": 0.5, "b": 0.5},
        "num_items": ITEMS,
    }
    return {name: each for name, each in data.items() if name in options}


def metrics():
    """Metric objects of each class and input format, and the format of each."""
    from tfrankmetrics.metrics.measure import declarations

    for declaration in declarations().values():
        cls = declaration.cls
        is_public = getattr(trm, cls.__name__, None) is cls  # others are of tests
        if declaration.has_subtopics or not is_public:
            continue
        for inputs in FORMATS:
            if inputs not in declaration.inputs:
                continue
            if declaration.reads_items and inputs == "labels":
                continue  # with item ids
            cutoff = {"k": 3} if declaration.has_cutoff else {}
            yield (
                inputs,
                cls(inputs=inputs, **cutoff, **data_about_items(declaration.types)),
            )
    yield "labels", trm.NDCG(convention="trec_eval", dtype="float32")
    for inputs in FORMATS:
        names = NAMES if inputs == "labels" else NAMES[:1]
        yield inputs, trm.RankingMetrics(names, inputs=inputs, num_queries=True)


def results(metric):
    """The results as a list of floats."""
    found = metric.result()
    return [
        float(each) for each in (found.values() if isinstance(found, dict) else [found])
    ]


def accumulate():
    """The results of all metrics after two batches."""
    found = []
    for inputs, metric in metrics():
        for batch in batches(inputs):
            metric = pickle.loads(pickle.dumps(metric))
            metric.update_state(*batch)
        found.append(results(metric))
    return found


def run_without_keras(code):
    """The standard output of code in a process without Keras."""
    start = "import sys; sys.modules['tensorflow'] = sys.modules['keras'] = None\n"
    start += f"sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n"
    start += "import test_without_keras as here, tfrankmetrics as trm\n"
    done = subprocess.run(
        [sys.executable, "-c", start + code],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_results_are_those_of_the_keras_metrics():
    found = json.loads(
        run_without_keras("import json; print(json.dumps(here.accumulate()))")
    )
    expected = accumulate()
    assert len(found) == len(expected) > 50
    for (inputs, metric), without, with_keras in zip(
        metrics(), found, expected, strict=True
    ):
        assert without == pytest.approx(with_keras, rel=1e-6, abs=1e-6), (
            inputs,
            metric,
        )
        if not isinstance(metric, trm.RankingMetrics):
            assert np.isfinite(without).all(), (inputs, metric)


def copies(metric):
    """Copies of a metric, by each means of making one."""
    yield copy.copy(metric)
    yield copy.deepcopy(metric)
    yield pickle.loads(pickle.dumps(metric))


def check_methods():
    """Runs without Keras: state, merging, copies, configs and errors."""
    one, other = batches("labels")
    expected = trm.evaluate(*one[:2], NAMES, sample_weight=one[2])
    for metric in (trm.NDCG(k=3), trm.RankingMetrics(NAMES, prefix="x_")):
        assert np.isnan(results(metric)).all()
        metric.update_state(*one)
        assert results(metric) == [*expected.values()][: len(results(metric))]
        again = type(metric).from_config(metric.get_config())
        assert np.isnan(results(again)).all()
        metric.reset_state()
        again(*one)
        before = results(again)
        for each in copies(again):
            assert type(each) is type(again)
            each.update_state(*other)
            metric.merge_state([each])
            assert results(metric) == pytest.approx(results(each), rel=1e-12)
            metric.reset_state()
        assert results(again) == before
        with pytest.raises(ValueError, match=r"Pass merge_state\(\[metric\]\)"):
            metric.merge_state(again)
        with pytest.raises(ValueError, match="same order, with the same options"):
            metric.merge_state([trm.NDCG(k=4)])
    differently_named = trm.RankingMetrics(["NDCG@3", "precision@1(ties=worst)", "RR"])
    differently_named.merge_state([again])
    assert results(differently_named) == results(again)


def check_arguments():
    """Runs without Keras: what an update accepts, and the dtype of the result."""
    masked = {"labels": [[-1, 1, 0]], "mask": [[True, True, False]]}
    metric = trm.MeanReciprocalRank(dtype="float32")
    metric.update_state(masked, [[3, 2, 1]])
    assert metric.result() == 0.5
    assert metric.result().dtype == np.float32
    metric.update_state([[1, 0], [0, 1, 0]], [[2, 1], [1, 2, 3]], sample_weight=[1, 0])
    assert metric.result() == 0.75
    with pytest.raises(ValueError, match="numbers of at least 0"):
        metric.update_state([[1, 0]], [[2, 1]], sample_weight=[-1])
    assert metric.result() == 0.75
    recall = trm.RecallAtK(1, inputs="ids")
    recall.update_state([["tea"]], [["milk", "tea"]])
    assert recall.result() == 0
    dcg = trm.DCG(dtype="float16")
    dcg.update_state([[20, 1]], [[2, 1]])
    assert np.isnan(dcg.result())
    for dtype in ("int32", "text"):
        with pytest.raises(ValueError, match="must be a float"):
            trm.NDCG(dtype=dtype)
    # Only an update needs the number of items.
    coverage = trm.CatalogCoverage(k=1)
    with pytest.raises(ValueError, match="Pass num_items=V"):
        coverage.update_state([[0]], [[0]])


def check_custom_metrics():
    """Runs without Keras: a metric that a user declares, also a wrong one."""

    def hits(lists, relevance):
        return lists.sum_to_cutoffs(lists.expected(relevance))

    @trm.metric("hits", formula=hits, gain=trm.BinaryGain, range=(0, np.inf))
    class Hits(trm.TopKMetric):
        relevance_threshold: float = 1.0

    metric = Hits(k=2)
    metric.update_state([[1, 1, 1], [0, 1, 0]], [[3, 2, 1], [3, 2, 1]])
    assert metric.result() == 1.5

    @trm.metric("wrong", formula=lambda lists, gain: 0, gain=trm.BinaryGain)
    class Wrong(trm.TopKMetric):
        relevance_threshold: float = 1.0

    with pytest.raises(TypeError, match="must compute the values"):
        Wrong().update_state([[1]], [[1]])


@pytest.mark.parametrize(
    "check", [check_methods, check_arguments, check_custom_metrics]
)
def test_without_keras(check):
    run_without_keras(f"here.{check.__name__}()")


@pytest.mark.parametrize("name", ["update", "compute", "reset", "merge"])
def test_methods_of_other_libraries_are_named(name):
    metric = trm.NDCG(k=10)
    assert not hasattr(metric, name)
    with pytest.raises(
        AttributeError, match=f"'NDCG' object has no attribute '{name}'. Use `"
    ):
        getattr(metric, name)
    with pytest.raises(AttributeError, match=r"no attribute 'unknown'$"):
        metric.unknown  # noqa: B018


def test_an_error_in_a_property_names_what_is_missing():
    class Own(trm.NDCG):
        """A metric with a mistake."""

        @property
        def half(self):
            return self.value / 2

    with pytest.raises(AttributeError, match="no attribute 'value'"):
        Own().half  # noqa: B018


def value_of_tied_items(metric):
    """The value of two tied items, of which trec_eval ranks the later id first."""
    (found,) = trm.evaluate_run(
        {"q": {"a": 1}}, {"q": {"a": 0.5, "b": 0.5}}, [metric]
    ).values()
    return found


def check_order_of_trec_eval():
    """Objects order tied rows as names do."""
    for cls in (trm.MeanReciprocalRank, trm.NDCG, trm.PrecisionAtK):
        metric = cls(k=1, convention="trec_eval")
        for each in (metric, *copies(metric)):
            assert value_of_tied_items(each) == 0
        name = f"{cls.declaration.name}@1(convention=trec_eval)"
        assert value_of_tied_items(name) == 0
    listed = [trm.NDCG(k=1, convention="trec_eval")]
    data = [[1, 0]], [[0.5, 0.5]]
    by_name = trm.evaluate(*data, ["ndcg@1"], convention="trec_eval")
    assert trm.evaluate(*data, listed) == by_name
    metric = trm.RankingMetrics(listed)
    metric.update_state(*data)
    assert results(metric) == [*by_name.values()]


def test_order_of_trec_eval():
    check_order_of_trec_eval()
    run_without_keras("here.check_order_of_trec_eval()")
