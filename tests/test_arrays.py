"""Tests that all array libraries return the same values, and when each is used."""

import importlib.util

import numpy as np
import pytest
import tensorflow as tf
from cases import LABEL_METRICS, SUBTOPIC_METRICS, labels_for, random_lists
from helpers import metrics_with_formula_options, metrics_with_ties, run_eagerly

import tfrankmetrics as tfr
from tfrankmetrics import arrays as xp
from tfrankmetrics.arrays import numpy as of_numpy

NUMBERS = np.array([[3.0, 1.0, 2.0, 2.0], [0.5, -1.0, 0.0, 4.0]])
INTEGERS = np.array([[3, 1, 2, 2], [0, 1, 0, 3]])
SORTED = np.sort(NUMBERS, axis=1)
MANY = np.random.default_rng(0).integers(0, 12, (50, 100))  # of equal ones, the first
# Arguments and options of some calls of each operation.
CALLS = {
    "arange": [((4,), {"dtype": np.float64}), ((2, 7), {"dtype": np.int64})],
    "argmax": [((NUMBERS,), {"axis": 1})],
    "argsort": [
        ((NUMBERS,), {"axis": 1}),
        ((NUMBERS,), {"axis": 1, "descending": True}),
    ],
    "asarray": [(([1, 2], np.float64), {})],
    "astype": [((INTEGERS, np.float64), {}), ((True, np.float64), {})],
    "bitcast": [((INTEGERS.astype(np.uint32), np.int32), {})],
    "bitwise_right_shift": [((INTEGERS, 1), {})],
    "bitwise_xor": [((INTEGERS, INTEGERS + 1), {})],
    "broadcast_to": [((NUMBERS[..., np.newaxis], (2, 4, 3)), {})],
    "clip": [((NUMBERS, 0, 2), {})],
    "concat": [(([NUMBERS, SORTED],), {"axis": 1})],
    "cond": [((c, lambda: NUMBERS, lambda: SORTED), {}) for c in (True, False)],
    "cumulative_prod": [
        ((NUMBERS,), {"axis": axis, "exclusive": exclusive, "reverse": reverse})
        for axis in (1, -1)
        for exclusive in (False, True)
        for reverse in (False, True)
    ]
    + [((NUMBERS[:, :0],), {"axis": 1, "exclusive": True})],
    "cumulative_sum": [
        ((INTEGERS,), {"axis": 1, "exclusive": exclusive})
        for exclusive in (False, True)
    ],
    "count_nonzero": [((NUMBERS > 1,), {}), ((NUMBERS[:, :0] > 1,), {})],
    "divide_no_nan": [((NUMBERS, NUMBERS[:, ::-1]), {}), ((NUMBERS, 0.0), {})],
    "flip": [((NUMBERS,), {"axis": [1]})],
    "fold": [((lambda result, i: 2 * result, 3, NUMBERS), {})],
    "full": [(([2, 3], 1.5), {})],
    "gather": [((NUMBERS, INTEGERS), {}), ((NUMBERS[..., np.newaxis], INTEGERS), {})],
    "matmul": [((NUMBERS, SORTED.T), {})],
    "matrix_transpose": [((NUMBERS,), {})],
    "matvec": [((NUMBERS[:, np.newaxis], SORTED), {})],
    "max": [
        ((NUMBERS,), {"axis": 1, "keepdims": True}),
        ((NUMBERS[:, :0],), {"axis": 1}),
    ],
    "mean": [((NUMBERS,), {"axis": 0})],
    "min": [((INTEGERS,), {"axis": 1}), ((NUMBERS[:, :0],), {"axis": 1})],
    "pad": [
        ((NUMBERS, [[0, 0], [1, 2]]), {}),
        ((NUMBERS > 1, [[0, 0], [1, 0]]), {"constant_values": True}),
    ],
    "reshape": [((NUMBERS, [4, -1]), {})],
    "roll": [((NUMBERS, 1), {"axis": 1})],
    "scatter": [((NUMBERS, INTEGERS, 7.0), {})],
    "scatter_max": [((NUMBERS, INTEGERS, SORTED), {})],
    "searchsorted": [
        ((np.sort(keys, axis=1), keys), {"side": side})
        for keys in (NUMBERS, MANY, MANY[:0])
        for side in ("left", "right")
    ],
    "segment_sum": [((SORTED[0], INTEGERS[0], 9), {})],
    "sum_chosen": [
        ((NUMBERS > 1, SORTED.T), {}),
        ((NUMBERS > 1, SORTED[0]), {}),
        ((NUMBERS > 1, SORTED[0], INTEGERS), {}),
        ((NUMBERS > 1, SORTED.T, INTEGERS), {}),
    ],
    "select": [((NUMBERS > 1, NUMBERS, 0), {})],
    "sort": [((NUMBERS,), {"axis": 1})],
    "squeeze": [((NUMBERS[:, np.newaxis],), {"axis": 1})],
    "stack": [(([NUMBERS, SORTED],), {"axis": 1})],
    "take": [((NUMBERS, [2, 0]), {"axis": 1}), ((NUMBERS, [1]), {})],
    "tile": [((NUMBERS, [2, 1]), {})],
    "top_k": [
        ((rows, k), {})
        for rows in (NUMBERS, INTEGERS, MANY, MANY.astype(np.float32))
        for k in (0, 3, 4)
    ],
    "unfold": [
        (
            (lambda s, v: ((2 * v,), s * v), (NUMBERS[:, 0],), 3.0, 5, NUMBERS[:, 0]),
            {},
        )
    ],
    "unstack": [((NUMBERS,), {"axis": 1})],
    "where": [((NUMBERS > 1, NUMBERS, 0), {})],
    "while_loop": [
        ((lambda i, _: i < 3, lambda i, x: (i + 1, 2 * x), [0, NUMBERS]), {})
    ],
    "ones": [(([2], np.float64), {})],
    "zeros": [(([2], np.float64), {})],
}
ELEMENTWISE = ["ceil", "exp", "floor", "isfinite", "isnan", "log", "log1p", "round"]
ELEMENTWISE += ["tanh", "zeros_like", "ones_like"]
CALLS |= {name: [((SORTED,), {})] for name in ELEMENTWISE}
CALLS |= {
    name: [((NUMBERS, SORTED), {})]
    for name in ("equal", "maximum", "minimum", "not_equal")
}
CALLS |= {
    name: [((NUMBERS > 1,), {"axis": 1}), ((NUMBERS > -2,), {})]
    for name in ("all", "any")
}
CALLS["sum"] = [((NUMBERS,), {"axis": 1, "keepdims": True})]
# What an operation may tell of an array, which differs between libraries.
FACTS = {"dtype_of", "has_shape", "is_floating", "known_size", "lowest", "shape"}
FACTS |= {"size", "without_denormals"}
OTHERS = [
    "tensorflow",
    pytest.param(
        "jax",
        marks=pytest.mark.skipif(
            importlib.util.find_spec("jax") is None, reason="JAX is not installed"
        ),
    ),
]


def operations(module):
    """The names of the operations that a module defines."""
    others = {"Any", "Callable", "Sequence", "annotations", "current_graph", "quiet"}
    others |= {"Literal", "functools", "np", "tf", "jax", "jnp", "lax"}
    others |= {"contextlib", "exact", "limits", "new_scope"}
    return {name for name in vars(module) if not name.startswith("_")} - others


@pytest.mark.parametrize("library", OTHERS)
def test_all_libraries_have_all_operations(library):
    module = importlib.import_module(f"tfrankmetrics.arrays.{library}")
    assert operations(of_numpy) == operations(module) == CALLS.keys() | FACTS


@pytest.mark.parametrize("library", OTHERS)
@pytest.mark.parametrize("name", sorted(CALLS))
def test_an_operation_gives_the_same_in_all_libraries(name, library):
    for arguments, options in CALLS[name]:
        with xp.computing_in("numpy"):
            expected = getattr(xp, name)(*arguments, **options)
        with xp.computing_in(library):
            others = [
                xp.in_library(library, each) if isinstance(each, np.ndarray) else each
                for each in arguments
            ]
            like = xp.in_library(library, np.zeros(()))
            found = getattr(xp, name)(*others, like=like, **options)
        for one, other in zip(tf.nest.flatten(expected), tf.nest.flatten(found)):
            np.testing.assert_allclose(other, one, rtol=1e-15)
            assert xp.library_of(one) == "numpy"
            assert xp.library_of(other) in (library, "numpy")


def test_other_names_are_no_operations():
    with pytest.raises(AttributeError, match="no operation 'wheer'"):
        xp.wheer  # noqa: B018


def lists_with(kind, name):
    """Labels, scores and other arguments of lists with a kind of difficulty."""
    labels, scores = random_lists(5, queries=25, size=15, ties=kind != "no ties")
    labels, rng = labels_for(name, labels), np.random.default_rng(0)
    options = {}
    if kind == "NaN, infinity, masks":
        scores = scores.copy()
        odd = rng.random(scores.shape)
        scores[odd < 0.1], scores[odd > 0.95] = np.nan, -np.inf
        options["mask"] = rng.random(scores.shape) < 0.8
    if kind == "weights of items":
        options["sample_weight"] = rng.random(scores.shape)
    if kind == "weights of queries":
        options["sample_weight"] = rng.random(len(scores))
    return labels, scores, options


KINDS = ["no ties", "ties", "NaN, infinity, masks", "weights of items"]
KINDS += ["weights of queries"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("names", [LABEL_METRICS, SUBTOPIC_METRICS])
@pytest.mark.filterwarnings("ignore:`judged` requires a mask")
def test_numpy_and_tensorflow_give_the_same_values(names, kind):
    objects = metrics_with_formula_options(names)
    labels, scores, options = lists_with(kind, objects[0].declaration.name)
    with run_eagerly():
        found = tfr.evaluate(labels, scores, objects, per_query=True, **options)
        expected = tfr.evaluate(
            tf.constant(labels), tf.constant(scores), objects, per_query=True, **options
        )
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, 1e-13, err_msg=name)


def ids_and_catalogues():
    """Arguments of `evaluate` in these formats, with every difficulty they have."""
    rng = np.random.default_rng(3)
    relevant = np.argsort(rng.random((25, 12)), axis=1)[:, :4]
    relevant[rng.random(relevant.shape) < 0.3] = -1
    grades = rng.integers(0, 4, relevant.shape)
    recommended = np.argsort(rng.random((25, 12)), axis=1)[:, :6]
    recommended[5:9, 4] = recommended[5:9, 1]
    recommended[9:12, 4:] = -1
    scores = rng.integers(0, 5, (25, 12)).astype("float32")
    scores[3, 2:5], scores[7, 1], scores[8] = np.nan, -np.inf, np.nan
    weights = rng.random(25)
    graded = {"ids": relevant, "relevance": grades}
    exclude = rng.integers(-1, 12, (25, 3))
    steps = scores.reshape(5, 5, 12)
    yield "ids", (relevant, recommended, None)
    yield "ids", (graded, recommended, weights)
    yield "ids", ([[1], [2, 2, 3]], [[3, 1], [5, 2, 3]], None)
    yield "ids", ([1, 2], [3, 2], 2.0)
    yield "ids", (np.tile(np.arange(70), (2, 1)), [[3, 80, 69], [90, 90, 0]], None)
    yield "catalogue", (relevant, scores, weights)
    yield "catalogue", (relevant[:, :1], scores, weights[:, np.newaxis])
    yield "catalogue", (relevant[:, 0], np.nan_to_num(scores, neginf=0), None)
    yield (
        "catalogue",
        (relevant[:, 0], np.nan_to_num(scores, neginf=0).astype("int32"), 0.5),
    )
    yield "catalogue", ({**graded, "exclude": exclude}, scores, None)
    yield "catalogue", (relevant.reshape(5, 5, 4), steps, weights.reshape(5, 5))
    yield "catalogue", (relevant[:, 0].reshape(5, 5), steps, weights[:5])


@pytest.mark.filterwarnings("ignore:`exclude` removes items from")  # at random
@pytest.mark.parametrize(
    "options", [{}, {"ties": "stable"}, {"ties": "random"}], ids=str
)
@pytest.mark.parametrize("arguments", [*ids_and_catalogues()])
def test_numpy_and_tensorflow_agree_on_ids_and_catalogues(arguments, options):
    inputs, data = arguments
    names = ["ndcg@3", "ndcg", "mrr", "map@4", "recall@5", "hit_rate@1", "rbp"]
    names += ["arp", "auc"] if inputs == "catalogue" else []
    options = {**options, "inputs": inputs, "per_query": True}
    found = tfr.evaluate(data[0], data[1], names, sample_weight=data[2], **options)
    with run_eagerly():
        as_tensors = map(as_tensor, data)
        relevant, scores, weights = as_tensors
        expected = tfr.evaluate(
            relevant, scores, names, sample_weight=weights, **options
        )
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, 1e-13, err_msg=name)


def as_tensor(data):
    """The same data as tensors; lists of unequal length as ragged ones."""
    if data is None:
        return None
    if isinstance(data, dict):
        return {name: tf.constant(values) for name, values in data.items()}
    is_ragged = isinstance(data, list) and len({np.size(row) for row in data}) > 1
    return tf.ragged.constant(data) if is_ragged else tf.constant(data)


@pytest.mark.filterwarnings("ignore:`judged` requires a mask")
@pytest.mark.parametrize("ties", ["stable", "random", "best", "worst"])
def test_numpy_and_tensorflow_break_ties_alike(ties):
    labels, scores = random_lists(5, queries=25, size=15, ties=True)
    objects = metrics_with_ties(LABEL_METRICS, ties)
    with run_eagerly():
        found = tfr.evaluate(labels, scores, objects, per_query=True)
        labels = tf.constant(labels)
        expected = tfr.evaluate(labels, scores, objects, per_query=True)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, 1e-13, err_msg=name)


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float16", "float32", "float64", "int8", "int64", "uint32"]
)
def test_numpy_and_tensorflow_read_the_same_dtypes(dtype):
    dtype = tf.as_dtype(dtype)
    labels, scores = random_lists(0, queries=5, size=9, ties=True)
    labels = tf.cast(np.maximum(labels, 0), dtype)
    scores = tf.cast(9 * scores + 99, dtype)
    names = ["ndcg", "map@3", "tied@5", "arp"]
    found = tfr.evaluate(labels.numpy(), scores.numpy(), names)
    assert found == pytest.approx(tfr.evaluate(labels, scores, names), rel=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_denormal_numbers_are_zero_in_both_libraries(dtype):
    tiny = np.finfo(dtype).tiny
    labels = np.array([[0, tiny / 4, tiny, 1]], dtype)
    scores = np.array([[tiny, 0, tiny / 4, -tiny / 4]], dtype)
    names = ["dcg", "ndcg", "tied@4", "arp"]
    found = tfr.evaluate(labels, scores, names, gain="linear")
    expected = tfr.evaluate(tf.constant(labels), scores, names, gain="linear")
    assert found == pytest.approx(expected, rel=1e-13)
    assert found["tied@4"] == 1


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([[1.0, 0.0]], np.ndarray),
        (np.array([[1.0, 0.0]]), np.ndarray),
        ([[1.0, 0.0], [2.0]], np.ndarray),
        (tf.constant([[1.0, 0.0]]), tf.Tensor),
        (tf.ragged.constant([[1.0, 0.0], [2.0]]), tf.Tensor),
    ],
)
def test_the_arguments_decide_which_library_computes(labels, kind):
    received = []

    def gain(values):
        received.append(values)
        return values

    tfr.evaluate(labels, labels, ["dcg"], gain=gain)
    assert received
    assert all(isinstance(values, kind) for values in received)


@pytest.mark.parametrize(
    ("relevant", "other", "inputs"),
    [([[1]], [[3, 1]], "ids"), ([[1]], [[0.5, 0.2]], "catalogue")],
)
def test_numpy_computes_ids_and_catalogues(relevant, other, inputs):
    received = []

    def discount(ranks):
        received.append(type(ranks))
        return 1 / ranks

    for relevant_ids, kind in ((relevant, np.ndarray), (tf.constant(relevant), None)):
        received.clear()
        tfr.evaluate(relevant_ids, other, ["dcg"], inputs=inputs, discount=discount)
        assert all((each is np.ndarray) == (kind is not None) for each in received)


def test_a_table_is_computed_by_numpy_and_a_metric_object_by_tensorflow():
    received = []

    def gain(values):
        received.append(type(values))
        return values

    tfr.evaluate_rows([1, 1], [1, 0], [0.5, 0.2], ["dcg"], gain=gain)
    assert {*received} == {np.ndarray}
    received.clear()
    tfr.DCG(gain=gain).update_state([[1, 0]], [[0.5, 0.2]])
    assert all(issubclass(kind, tf.Tensor) for kind in received)
