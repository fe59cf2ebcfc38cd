"""Tests of `Accumulator` on arrays and rows; the expected values are `evaluate`'s.

`test_torch.py` and `test_jax.py` test it on tensors, and in several processes.
"""

import copy
import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tfrankmetrics as trm

RNG = np.random.default_rng(0)
QUERIES, ITEMS, CATALOG = 61, 12, 40
LABELS = RNG.integers(-1, 4, (QUERIES, ITEMS))
LABELS[0], LABELS[1] = -1, 0  # a list of padding, and one without a relevant item
SCORES = RNG.integers(0, 6, LABELS.shape).astype(float)
OF_QUERIES, OF_ITEMS = RNG.random(QUERIES), RNG.random(LABELS.shape)
MASK = RNG.random(LABELS.shape) < 0.8
RELEVANT = RNG.integers(0, CATALOG, (QUERIES, 3))
FOUND = np.array([RNG.permutation(CATALOG)[:10] for _ in range(QUERIES)])
LANGUAGES = RNG.choice(["de", "en", "fr"], QUERIES)
NAMES = ["ndcg@5", "mrr", "map@3", "opa", "auc", "err@5", "judged@5"]
NAMES_OF_ITEMS = ["ndcg@5", "coverage@5", "gini@5", "entropy@3"]
LABELED = LABELS, SCORES
CASES = {
    "labels": (LABELED, {}, {"metrics": NAMES[:-1]}),
    "weights of queries": (LABELED, {"sample_weight": OF_QUERIES}, {}),
    "weights of items": (LABELED, {"sample_weight": OF_ITEMS, "mask": MASK}, {}),
    "unjudged items": (LABELED, {"mask": MASK}, {"metrics": NAMES}),
    "subtopics": (
        (np.stack([LABELS, LABELS[:, ::-1]], axis=2), SCORES),
        {},
        {"metrics": ["alpha_dcg@5", "precision_ia@3"]},
    ),
    "the lowest first": (LABELED, {}, {"lower_is_better": True, "empty": "skip"}),
    "ids": (
        (RELEVANT, FOUND),
        {"sample_weight": OF_QUERIES},
        {"metrics": NAMES_OF_ITEMS, "inputs": "ids", "num_items": CATALOG},
    ),
    "text": (
        (RELEVANT.astype(str), FOUND.astype(str)),
        {},
        {"metrics": NAMES_OF_ITEMS, "inputs": "ids", "num_items": CATALOG + 1},
    ),
    "catalog": (
        (RELEVANT, RNG.random((QUERIES, CATALOG - 1))),
        {},
        {"metrics": NAMES_OF_ITEMS, "inputs": "catalog"},
    ),
}
CASES["catalog"][0][0][:] %= CATALOG - 1
pytestmark = pytest.mark.filterwarnings("ignore:`judged` requires a mask")


def split(sizes):
    """Queries in a random order, in batches of these sizes at most."""
    order, start = RNG.permutation(QUERIES), 0
    while start < QUERIES:
        size = int(RNG.choice(sizes))
        yield order[start : start + size]
        start += size


def parts_of(arguments, rows):
    return {name: each[rows] for name, each in arguments.items()}


def assert_close(found, expected):
    """The same metrics with the same values, also of each slice."""
    if isinstance(expected, trm.SlicedValues):
        assert found.by == expected.by
        assert found.num_queries == expected.num_queries
        assert [*found] == [*expected]
        for key in expected:
            assert_close(found[key], expected[key])
        found, expected = found.whole, expected.whole
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)
    assert [*found] == [*expected]
    assert {*map(type, found.values())} == {*map(type, expected.values())}


@pytest.mark.parametrize("sizes", [[QUERIES], [1], [5, 20]])
@pytest.mark.parametrize("by", [None, LANGUAGES])
@pytest.mark.parametrize("case", CASES)
def test_batches_in_any_order_have_the_value_of_all_data(case, by, sizes):
    data, arguments, options = CASES[case]
    options = {"metrics": NAMES[:-1], **options}
    if by is not None:
        arguments = {**arguments, "by": by}
    expected = trm.evaluate(*data, **arguments, **options)
    accumulator = trm.Accumulator(**options)
    for rows in split(sizes):
        accumulator.update(*(each[rows] for each in data), **parts_of(arguments, rows))
    assert_close(accumulator.compute(), expected)


def test_batches_of_rows_have_subtopics():
    names = ["subtopic_recall@2", "alpha_ndcg@3", "ndcg@3"]
    rows = {
        "query_ids": np.repeat(np.arange(12), 12),
        "item_ids": np.tile(np.repeat(np.arange(4), 3), 12),
        "subtopic": np.tile(np.arange(3), 48),
        "labels": RNG.integers(0, 2, 144),
        "scores": np.repeat(RNG.integers(0, 3, 48), 3),
    }
    accumulator = trm.Accumulator(names)
    for queries in ([3, 0, 7], [1, 2], range(4, 7), range(8, 12)):
        which = np.isin(rows["query_ids"], [*queries])
        accumulator.update_rows(**parts_of(rows, which))
    assert_close(accumulator.compute(), trm.evaluate_rows(**rows, metrics=names))


def test_batches_may_be_lists_of_any_width():
    accumulator = trm.Accumulator(["mrr", "ndcg@2"], num_queries=True)
    labels, scores = [[1, 0, 0], [0, 2], [1]], [[3, 1, 2], [1, 0], [1]]
    for each in zip(labels, scores, strict=True):
        accumulator.update(*([row] for row in each))
    accumulator.update([], [])
    expected = trm.evaluate(labels, scores, ["mrr", "ndcg@2"], num_queries=True)
    assert_close(accumulator.compute(), expected)


def test_slices_of_several_columns_with_missing_values():
    markets = np.array([None, "a", "b"], object)[RNG.integers(0, 3, QUERIES)]
    by = {"language": LANGUAGES, "market": markets}
    accumulator = trm.Accumulator(["mrr"])
    for rows in split([3]):
        accumulator.update(LABELS[rows], SCORES[rows], by=parts_of(by, rows))
    assert_close(accumulator.compute(), trm.evaluate(*LABELED, ["mrr"], by=by))


ROWS = {
    "query_ids": np.repeat(RNG.permutation(QUERIES), ITEMS),
    "labels": LABELS.ravel(),
    "scores": SCORES.ravel(),
}


@pytest.mark.parametrize("items", [None, int, str])
@pytest.mark.parametrize("options", [{}, {"lower_is_better": True}])
def test_rows_have_the_value_of_all_rows(items, options):
    rows = {**ROWS, "sample_weight": np.repeat(OF_QUERIES, ITEMS)}
    rows["by"] = np.repeat(LANGUAGES, ITEMS)
    metrics = NAMES
    if items is not None:
        found = [RNG.permutation(CATALOG)[:ITEMS] for _ in range(QUERIES)]
        rows["item_ids"] = np.ravel(found).astype(items)
        metrics = [*NAMES, *NAMES_OF_ITEMS[1:]]
        options = {**options, "num_items": CATALOG}
    expected = trm.evaluate_rows(**rows, metrics=metrics, **options)
    accumulator = trm.Accumulator(metrics, **options)
    for queries in split([1, 9]):
        which = np.isin(rows["query_ids"], queries)
        accumulator.update_rows(**parts_of(rows, which))
    assert_close(accumulator.compute(), expected)


def accumulated(rows, **options):
    found = trm.Accumulator(["mrr", "ndcg@3"], **options)
    found.update(LABELS[rows], SCORES[rows], by=LANGUAGES[rows])
    return found


def test_accumulators_add_up():
    expected = trm.evaluate(*LABELED, ["mrr", "ndcg@3"], by=LANGUAGES)
    parts = [accumulated(rows) for rows in split([4])]
    before = [part.compute() for part in parts]
    merged = trm.Accumulator(["mrr", "ndcg@3"])  # without any query
    merged.merge(*parts[1:], trm.Accumulator(["mrr", "ndcg@3"]))
    merged.merge(parts[0])
    assert_close(merged.compute(), expected)
    for part, value in zip(parts, before, strict=True):
        assert_close(part.compute(), value)


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        lambda each: pickle.loads(pickle.dumps(each)),
        lambda each: loaded(each.state_dict()),
        lambda each: loaded(json.loads(json.dumps(each.state_dict()))),
    ],
)
def test_a_copy_continues_by_itself(copied):
    first, second = np.arange(20), np.arange(20, QUERIES)
    original = accumulated(first)
    value = original.compute()
    other = copied(original)
    assert_close(other.compute(), value)
    other.update(LABELS[second], SCORES[second], by=LANGUAGES[second])
    assert_close(original.compute(), value)
    expected = trm.evaluate(*LABELED, ["mrr", "ndcg@3"], by=LANGUAGES)
    assert_close(other.compute(), expected)


def loaded(state):
    accumulator = trm.Accumulator(["mrr", "ndcg@3"])
    accumulator.load_state_dict(state)
    return accumulator


def test_without_any_query_values_are_nan():
    accumulator = trm.Accumulator(["mrr", "map@3"], num_queries=True)
    none = {"mrr": float("nan"), "map@3": float("nan"), "num_queries": 0}
    assert accumulator.compute() == pytest.approx(none, nan_ok=True)
    accumulator.update([[1, 0]], [[1, 2]])
    accumulator.reset()
    assert accumulator.compute() == pytest.approx(none, nan_ok=True)
    assert loaded(trm.Accumulator(["mrr", "ndcg@3"]).state_dict()).compute().keys()


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (lambda a: a.update(LABELS[:5], SCORES[:4]), "same shape"),
        (lambda a: a.update(LABELS[:5], SCORES[:5]), "same columns of slices"),
        (lambda a: a.update(LABELS[:5], SCORES[:5], by=LANGUAGES[:4]), "each query"),
        (
            lambda a: a.update(np.full((1, 3), np.nan), SCORES[:1, :3], by=["de"]),
            "Labels",
        ),
        (lambda a: a.update([[1, 2000]], [[1, 2]], by=["de"]), "other values"),
        (
            lambda a: a.update(LABELS[:1], SCORES[:1], [-1], by=["de"]),
            "`sample_weight`",
        ),
        (lambda a: a.update_rows([1, 1], [0, 1], [0.1]), "Received lengths"),
        (lambda a: a.update_rows([1, 1], [0, 1], [0.1, 0.2]), "columns of slices"),
        (lambda a: a.merge(accumulated([1]), trm.Accumulator(["mrr"])), "same metrics"),
        (lambda a: a.merge(accumulated([1], gain="linear")), "same metrics"),
        (lambda a: a.merge("text"), "same metrics"),
        (lambda a: a.add_sums(np.zeros((9, 2))), "number of rows|of shape"),
        (lambda a: a.load_state_dict({}), "the same metrics"),
        (
            lambda a: a.load_state_dict(trm.Accumulator(["mrr"]).state_dict()),
            "the same metrics",
        ),
    ],
)
def test_an_error_leaves_the_state_as_it_was(update, message):
    accumulator = accumulated(np.arange(20))
    state = accumulator.state_dict()
    with pytest.raises(ValueError, match=message):
        update(accumulator)
    assert accumulator.state_dict() == state


def test_items_have_one_type_and_fit_into_the_catalog():
    options = {"metrics": ["coverage@2"], "inputs": "ids", "num_items": 3}
    accumulator, other = trm.Accumulator(**options), trm.Accumulator(**options)
    accumulator.update([["a"]], [["a", "b"]])
    other.update([["c"]], [["b", "c"]])
    state = accumulator.state_dict()
    with pytest.raises(ValueError, match="of one type"):
        accumulator.update([[1]], [[1, 2]])
    with pytest.raises(ValueError, match="num_items=3, and 4 different items"):
        accumulator.update([["a"]], [["x", "y"]])
    assert accumulator.state_dict() == state
    accumulator.merge(other)
    assert accumulator.compute() == {"coverage@2": 1.0}
    with pytest.raises(ValueError, match="Pass num_items=V"):
        trm.Accumulator(["coverage@2"], inputs="ids")
    catalog = trm.Accumulator(["coverage@2"], inputs="catalog")
    catalog.update([[0]], [[0.1, 0.2, 0.3]])
    with pytest.raises(ValueError, match="4 items after 3"):
        catalog.update([[0]], [[0.1, 0.2, 0.3, 0.4]])
    with pytest.raises(ValueError, match="Rows contain labels"):
        catalog.update_rows([1], [1], [0.5])


@pytest.mark.parametrize("padding", [0, 3])
def test_swapped_arguments_are_noticed_when_all_queries_are_there(padding):
    labels = np.pad(np.abs(LABELS), [[0, 0], [0, padding]], constant_values=-1)
    scores = np.pad(RNG.random(LABELS.shape), [[0, 0], [0, padding]])
    accumulator = trm.Accumulator(["ndcg@5"])
    for rows in split([2]):
        accumulator.update(scores[rows], labels[rows])
    with pytest.warns(trm.RankingWarning, match="Labels come before scores") as found:
        accumulator.compute()
    assert len(found) == 1
    assert found[0].filename == __file__
    accumulator.compute()  # which does not warn again
    accumulator.reset()
    accumulator.update(labels, scores)
    accumulator.compute()


def test_a_batch_alone_shows_no_mistake_of_all_queries():
    """Each batch contains only relevant items, or only one label."""
    accumulator = trm.Accumulator(["mrr"])
    for label in (1, 2, 0):
        queries = np.repeat(np.arange(30), 2)
        accumulator.update(np.full((30, 2), label), RNG.random((30, 2)))
        accumulator.update_rows(queries, np.full(60, label), RNG.random(60))
    accumulator.update([[1, -1]], [[1, 2]])
    accumulator.compute()
    signed = trm.Accumulator(["mrr"])
    signed.update([[1, -1]], [[1, 2]])
    with pytest.raises(ValueError, match="must not be only -1 and 1"):
        signed.compute()


def test_sums_that_overflow_are_an_error():
    accumulator = trm.Accumulator(["mrr"])
    for _ in range(2):
        accumulator.update([[1, 0]], [[1, 2]], sample_weight=[1e308])
    with pytest.raises(ValueError, match="weights are too high"):
        accumulator.compute()


def test_it_does_not_import_keras():
    code = (
        "import sys, tfrankmetrics as trm\n"
        "accumulator = trm.Accumulator(['ndcg@10', 'P@5', 'coverage'], num_items=3)\n"
        "rows = ['q', 'q'], [0, 1], [0.1, 0.2]\n"
        "accumulator.update_rows(*rows, item_ids=[0, 1])\n"
        "accumulator.load_state_dict(accumulator.state_dict())\n"
        "accumulator.compute()\n"
        "assert not {'keras', 'tf_keras', 'tensorflow', 'jax'} & {*sys.modules}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["entropy@2", "gini@2", "coverage@2"])
def test_weights_that_differ_within_a_query_do_not_depend_on_the_parts(name):
    """Metrics of recommended items read one weight for each query, or none."""
    rows = {
        "query_ids": [1, 2, 2, 3],
        "labels": [1, 1, 0, 1],
        "scores": [1, 2, 1, 1],
        "item_ids": [0, 1, 2, 1],
        "sample_weight": [0.25, 0.5, 1.0, 4.0],
    }
    accumulator = trm.Accumulator([name], num_items=4)
    for part in (slice(0, 1), slice(1, 3), slice(3, 4)):
        accumulator.update_rows(**{n: column[part] for n, column in rows.items()})
    whole = trm.evaluate_rows(**rows, metrics=[name], num_items=4)
    assert accumulator.compute() == pytest.approx(whole, rel=1e-12)


def test_metrics_in_another_order_are_refused():
    first, second = trm.Accumulator(["mrr", "P@1"]), trm.Accumulator(["P@1", "mrr"])
    second.update([[0, 1]], [[2, 1]])
    with pytest.raises(ValueError, match="same order"):
        first.merge(second)
    with pytest.raises(ValueError, match="same metrics"):
        first.load_state_dict(second.state_dict())
    named_otherwise = trm.Accumulator(["precision@1", "RR"])
    named_otherwise.merge(second)
    assert named_otherwise.compute() == {"precision@1": 0.0, "RR": 0.5}


@pytest.mark.parametrize(
    "other",
    [{"num_items": 5}, {"lower_is_better": True}, {"ties": "stable"}],
    ids=str,
)
def test_the_state_of_other_options_is_refused(other):
    options = {"num_items": 4}
    rows = {"query_ids": [1], "labels": [1], "scores": [1], "item_ids": [0]}
    first = trm.Accumulator(["coverage@2"], **options)
    second = trm.Accumulator(["coverage@2"], **options | other)
    first.update_rows(**rows)
    second.update_rows(**rows)
    before = second.compute()
    for state in (first.state_dict(), {"metrics": []}, None, np.zeros((2, 2))):
        with pytest.raises(ValueError, match="same metrics"):
            second.load_state_dict(state)
    with pytest.raises(ValueError, match="shape"):
        second.load_state_dict({**second.state_dict(), "sums": [[[1.0, 2.0]]]})
    assert second.compute() == before
