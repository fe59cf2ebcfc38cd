"""Tests metrics that users declare: graded RBP from the example, and a nonlinear one."""

import copy
import dataclasses
import itertools
import math
import pickle
import statistics

import numpy as np
import own_metric
import pytest
import tensorflow as tf
from helpers import XLA, run_as, update_function
from own_metric import GradedRBP

import tfrankmetrics as trm
from tfrankmetrics.testing import check_metric

NAMES = ["graded_rbp", "graded_rbp@2"]


def graded_rbp(labels, k=None, persistence=0.8, max_label=4.0):
    """Graded RBP of labels in ranked order, by definition."""
    terms = (
        label / max_label * persistence**above for above, label in enumerate(labels[:k])
    )
    return (1 - persistence) * sum(terms)


def mean_over_all_orders(labels, scores, k=None):
    """The mean over all orders of tied items."""
    values = []
    for order in itertools.permutations(range(len(labels))):
        ranked = [scores[item] for item in order]
        if ranked == sorted(ranked, reverse=True):
            values.append(graded_rbp([labels[item] for item in order], k))
    return statistics.fmean(values)


LABELS = [[4, 0, 2, 1], [0, 1, 3, 2], [0, 0, 0, 0]]
SCORES = [[0.9, 0.5, 0.5, 0.1], [0.7, 0.7, 0.7, 0.2], [0.4, 0.3, 0.2, 0.1]]
EXPECTED = {
    name: [mean_over_all_orders(*query, k) for query in zip(LABELS, SCORES)]
    for name, k in zip(NAMES, (None, 2))
}


def test_the_example(capsys):
    by_name, rows, logs = own_metric.main()
    expected = [graded_rbp([4, 0], 2, 0.5), (0.125 + 0.125 * 0.5) * 0.5]
    assert by_name["graded_rbp@2"] == pytest.approx(np.mean(expected))
    assert rows["query"].tolist() == ["a", "b"]
    assert logs[-1] > logs[0] + 0.05
    assert f"{logs[-1]:.3f}" in capsys.readouterr().out


def test_arrays_and_rows():
    values = trm.evaluate(LABELS, SCORES, NAMES, per_query=True)
    rows = trm.evaluate_rows(
        np.repeat([7, 8, 9], 4),
        np.ravel(LABELS),
        np.ravel(SCORES),
        NAMES,
        per_query=True,
    )
    for name in NAMES:
        np.testing.assert_allclose(values[name], EXPECTED[name], rtol=1e-12)
        np.testing.assert_array_equal(rows[name], values[name])
    options = {"persistence": 0.5, "max_label": 8, "empty": "skip", "ties": "stable"}
    (value,) = trm.evaluate(LABELS, SCORES, ["graded_rbp@3"], **options).values()
    in_order = ([4, 0, 2], [0, 1, 3])  # stable ties keep list order
    expected = [graded_rbp(labels, 3, 0.5, 8) for labels in in_order]
    assert value == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("way", ["eager", "graph", XLA])
def test_objects_and_names_in_eager_graph_and_xla(way):
    single = GradedRBP(k=2)
    many = trm.RankingMetrics([*NAMES, "ndcg@2"])
    for metric in (single, many):
        update = run_as(way, update_function(metric))
        update(tf.constant(LABELS), tf.constant(SCORES))
    for value in (single.result(), many.result()["graded_rbp@2"]):
        assert float(value) == pytest.approx(np.mean(EXPECTED["graded_rbp@2"]))
    assert single.name == "graded_rbp@2"
    assert (single.k, single.persistence, single.max_label) == (2, 0.8, 4.0)


def test_metrics_are_saved_with_a_model_and_copied(tmp_path):
    inputs = tf.keras.Input((4,))
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(4)(inputs))
    metrics = [
        GradedRBP(k=2, persistence=0.5),
        trm.RankingMetrics(["graded_rbp", GradedRBP(k=1)], max_label=8),
    ]
    model.compile(loss="mse", metrics=metrics)
    model.optimizer.build(model.trainable_variables)
    data = np.array(SCORES, "float32"), np.array(LABELS, "float32")
    before = model.evaluate(*data, verbose=0, return_dict=True)
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    assert loaded.evaluate(*data, verbose=0, return_dict=True) == pytest.approx(before)
    assert {"graded_rbp@2", "graded_rbp", "graded_rbp@1"} < set(before)
    for duplicate in (
        copy.deepcopy(metrics[0]),
        pickle.loads(pickle.dumps(metrics[0])),
    ):
        assert duplicate.get_config() == metrics[0].get_config()


@dataclasses.dataclass(frozen=True)
class RetrievedLabels(trm.ItemGain):
    """The label of an item, if it is a retrieved item and not padding."""

    increases_with_label = True

    def __call__(self, items):
        labels = tf.cast(items.labels, tf.float64)
        return tf.where(items.valid & items.retrieved, labels, 0)


def share_of_ideal(lists, gain):
    """The gains in the top k divided by the k largest gains."""
    ideal = lists.sum_to_cutoffs(lists.ideal(gain))
    return tf.math.divide_no_nan(lists.sum_to_cutoffs(lists.expected(gain)), ideal)


@trm.metric("share_of_ideal", formula=share_of_ideal, gain=RetrievedLabels)
class ShareOfIdeal(trm.TopKMetric):
    pass


def test_a_gain_that_reads_which_items_exist():
    values = trm.evaluate([0, 2, 1], [3, 2, 1], ["share_of_ideal@2"])
    assert values == {"share_of_ideal@2": pytest.approx((0 + 2) / (2 + 1))}


@pytest.mark.parametrize(
    ("empty", "of_empty"), [("zero", 0), ("one", 1), ("skip", math.nan)]
)
@pytest.mark.parametrize(
    ("gain", "label", "other"),
    [(lambda labels: labels, 0, 1), (lambda labels: 3 - labels, 3, 2)],
    ids=["rising", "falling"],
)
def test_empty_lists_with_a_function_as_gain(gain, label, other, empty, of_empty):
    """The gain of `label` is 0, and that of `other` is 1."""
    labels = [[label, label], [label, other]]
    ndcg = trm.NDCG(gain=gain, empty=empty)
    values = trm.evaluate(labels, [[2, 1], [2, 1]], [ndcg], per_query=True)
    expected = [of_empty, 1 / math.log2(3)]
    assert values["ndcg"] == pytest.approx(expected, nan_ok=True)


def declared(name, formula):
    class Own(trm.TopKMetric):
        """A metric of this test."""

        relevance_threshold: float = 1.0

    facts = {"gain": trm.BinaryGain, "range": (0, math.inf)}
    return trm.metric(name, formula=formula, **facts)(Own)


def hits(lists, relevance):
    return lists.sum_to_cutoffs(lists.expected(relevance))


@pytest.mark.usefixtures("declarations")
def test_only_tensorflow_computes_a_formula_that_needs_tensors():
    """Its lists become tensors, also if they are arrays or rows."""
    received = []

    def hits_of_tensors(lists, relevance):
        gains = lists.expected(relevance)
        received.append(type(gains))
        assert gains.shape.rank == 2  # an attribute of tensors
        return lists.sum_to_cutoffs(tf.stop_gradient(gains))

    cls = declared("hits_of_tensors", hits_of_tensors)
    check_metric(cls)
    assert cls.declaration.needs_tensors
    received.clear()
    found = trm.evaluate([[1, 0, 1]], [[3, 2, 1]], ["hits_of_tensors@3", "mrr"])
    assert found == {"hits_of_tensors@3": 2.0, "mrr": 1.0}
    rows = [5, 5], [0, 1], [0.2, 0.1]
    assert trm.evaluate_rows(*rows, [cls(k=2)]) == {"hits_of_tensors@2": 1.0}
    assert all(issubclass(kind, tf.Tensor) for kind in received)


@pytest.mark.usefixtures("declarations")
def test_both_libraries_check_a_formula():
    def of_numpy(lists, relevance):
        return lists.sum_to_cutoffs(lists.expected(relevance).clip(0, 1))

    with pytest.raises(TypeError, match=r"must compute the values.*'clip'"):
        check_metric(declared("of_numpy", of_numpy))

    def wrong_in_tensorflow(lists, relevance):
        factor = 1.0 if isinstance(lists.ranks, np.ndarray) else lists.num_retrieved[0]
        return hits(lists, relevance) * factor

    with pytest.raises(TypeError, match="the same in NumPy and in tensorflow"):
        check_metric(declared("wrong_in_tensorflow", wrong_in_tensorflow))


@pytest.mark.usefixtures("declarations")
def test_the_first_use_checks_a_metric_once():
    calls = []

    def counted_hits(lists, relevance):
        calls.append(lists.num_retrieved)
        return hits(lists, relevance)

    cls = declared("hits", counted_hits)
    assert not calls
    trm.evaluate([[1, 0]], [[2, 1]], ["hits@1"])
    assert len(calls) > 2
    calls.clear()
    trm.evaluate([[1, 0]], [[2, 1]], ["hits@1", cls(k=2)])
    assert len(calls) == 1
    with pytest.raises(TypeError, match=r"class that tfrankmetrics\.metric declares"):
        check_metric(trm.TopKMetric)


def gain_of(function):
    @dataclasses.dataclass(frozen=True)
    class Gain(trm.ItemGain):
        def __call__(self, items):
            return function(items.xp, items.labels)

    return Gain


# Gains with numbers of Python, of which TensorFlow by itself makes float32, or an error
# in a graph. The gain 0.3 has other digits in float32.
GAINS = {
    "where": lambda xp, labels: xp.where(labels >= 1, 1.0, 0.0),
    "where in where": lambda xp, labels: xp.where(
        labels >= 1, 1.0, xp.where(labels > 0, 0.3, 0.0)
    ),
    "a number first": lambda xp, labels: xp.minimum(0.3, xp.astype(labels, xp.float64)),
    "a table": lambda xp, labels: xp.take(
        xp.asarray([0.0, 0.3], like=labels), xp.astype(labels >= 0.5, xp.int32)
    ),
    "full": lambda xp, labels: xp.where(
        xp.greater(labels, 0), xp.full(labels.shape[1:], 0.3, like=labels), 0.0
    ),
    "power": lambda xp, labels: xp.pow(xp.astype(labels, xp.float64), 0.3),
}
DISCOUNTS = {
    "where": lambda xp, ranks: xp.where(ranks <= 2, 1.0, 0.3),
    "mixed numbers": lambda xp, ranks: xp.where(ranks <= 2, 1, 0.3),
    "sqrt": lambda xp, ranks: 1 / xp.sqrt(ranks),
    "log2": lambda xp, ranks: 1 / xp.log2(1 + ranks),
    "power of a number": lambda xp, ranks: xp.pow(0.3, ranks),
    "a number first": lambda xp, ranks: 1 / xp.maximum(2.0, ranks),
    "comparison": lambda xp, ranks: xp.where(xp.equal(1.0, ranks), 1.0, 0.3),
    "ones": lambda xp, ranks: xp.ones(ranks.shape, like=ranks) / ranks,
    "arange": lambda xp, ranks: 0.3 / (1.0 + xp.arange(0.0, 3.0, like=ranks)),
}


class PlainNumPy:
    """NumPy, with two names of the array API standard that NumPy 1 lacks."""

    pow = staticmethod(np.power)

    @staticmethod
    def astype(array, dtype):
        return np.asarray(array).astype(dtype)

    def __getattr__(self, name):
        return getattr(np, name)


def discounted(discount):
    def formula(lists, relevance):
        discounts = discount(lists.xp, lists.ranks[:3])
        return lists.xp.sum(lists.expected(relevance)[:, :3] * discounts, axis=1)

    return formula


@pytest.mark.usefixtures("declarations")
@pytest.mark.parametrize(
    ("gain", "discount"),
    [(gain, "sqrt") for gain in GAINS]
    + [("power", discount) for discount in DISCOUNTS],
)
@pytest.mark.parametrize("way", ["eager", "graph", XLA])
def test_numbers_of_python_are_float64_in_tensorflow(gain, discount, way):
    """Lists of three items, with labels of float32, as from Keras."""

    class Own(trm.WholeListMetric):
        """A metric of this test."""

    of_gain, of_ranks = gain_of(GAINS[gain]), discounted(DISCOUNTS[discount])
    facts = {"gain": of_gain, "range": (0, math.inf), "without_results": None}
    cls = trm.metric("own", formula=of_ranks, **facts)(Own)
    labels, scores = np.float32([[1, 0, 0.5], [0, 1, 1]]), np.float32([[3, 2, 1]] * 2)
    expected = trm.evaluate(labels, scores, [cls()])["own"]
    xp = PlainNumPy()
    gains = GAINS[gain](xp, labels.astype(float))
    by_hand = (gains * DISCOUNTS[discount](xp, np.array([1.0, 2, 3]))).sum(1)
    assert expected == pytest.approx(by_hand.mean(), rel=1e-14)
    metric = cls()
    run_as(way, update_function(metric))(tf.constant(labels), tf.constant(scores))
    # The state of a metric is float64; its result is float32.
    assert float(metric.result()) == pytest.approx(expected, rel=1e-6)
    tensors = trm.evaluate(tf.constant(labels), tf.constant(scores), [cls()])
    assert tensors["own"] == pytest.approx(expected, rel=1e-14)


@pytest.mark.usefixtures("declarations")
@pytest.mark.parametrize(
    "function",
    [
        lambda xp, labels: labels / 4,
        lambda xp, labels: xp.sqrt(labels),
        lambda xp, labels: xp.where(labels >= 1, labels, 0.0),
        lambda xp, labels: xp.divide_no_nan(labels, 3.0),
    ],
)
def test_a_gain_in_the_dtype_of_the_labels_is_an_error(function):
    """Labels of Keras are float32."""

    class Own(trm.TopKMetric):
        """A metric of this test."""

    facts = {"gain": gain_of(function), "range": (0, math.inf)}
    with pytest.raises(TypeError, match="float"):
        check_metric(trm.metric("own", formula=hits, **facts)(Own))


@pytest.mark.usefixtures("declarations")
def test_an_unknown_operation_is_named():
    cls = declared("own", lambda lists, gain: hits(lists, gain) / lists.xp.sqr(4.0))
    error = r"operations of `xp`. Received: 'sqr'. Did you mean 'sqrt'\?"
    with pytest.raises(TypeError, match=error):
        check_metric(cls)
