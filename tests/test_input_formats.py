"""Compares ids and catalogs with the same queries as labels, and tests rows."""

import collections
import tracemalloc
import typing

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import tensorflow as tf
from cases import metrics_supporting
from helpers import few_examples, metric_objects
from hypothesis import assume, given
from hypothesis.extra import numpy as hnp

import tfrankmetrics as trm

INF = float("inf")
ID_OBJECTS = metric_objects(metrics_supporting("ids"), without_float_options=True)
CATALOGUE_OBJECTS = metric_objects(
    metrics_supporting("catalog"), without_float_options=True
)
IDS = st.integers(0, 7)
# For each format `y_true` and `y_pred`, and the same two lists as labels and scores.
EXAMPLES = {
    "labels": (
        [[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]],
        [[0.1, 0.2, 0.2], [0.9, 0.1, 0.5]],
        [[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]],
        [[0.1, 0.2, 0.2], [0.9, 0.1, 0.5]],
    ),
    "ids": (
        [[7, 4], [5, -1]],
        [[4, 1, 9], [2, 5, -1]],
        [[1, 0, 0, 1], [0, 1, -1, -1]],
        [[3, 2, 1, -INF], [2, 1, 0, 0]],
    ),
    "catalog": (
        [[1, 0], [2, -1]],
        [[0.1, 0.2, 0.2], [0.9, 0.1, 0.5]],
        [[1, 1, 0], [0, 0, 1]],
        [[0.1, 0.2, 0.2], [0.9, 0.1, 0.5]],
    ),
}


def test_each_format_is_known_everywhere():
    formats = {*typing.get_args(trm.options.Inputs)}
    assert {*EXAMPLES} == formats, "see `EXAMPLES`, and `read` in inputs/formats.py"


@pytest.mark.parametrize("inputs", EXAMPLES)
def test_each_format_has_explanations_and_a_rule_for_lower_is_better(inputs):
    y_true, y_pred, *_ = EXAMPLES[inputs]
    for query, value in enumerate(
        trm.evaluate(y_true, y_pred, ["mrr"], inputs=inputs, per_query=True)["mrr"]
    ):
        found = trm.explain(y_true, y_pred, "mrr", query=query, inputs=inputs)
        assert found.value == value, "see inputs/one_list.py"
    reverse = {"inputs": inputs, "lower_is_better": True}
    if inputs == "ids":
        with pytest.raises(ValueError, match="requires scores"):
            trm.evaluate(y_true, y_pred, ["mrr"], **reverse)
    else:
        opposite = (-np.array(y_pred)).tolist()
        found = trm.evaluate(y_true, opposite, ["mrr"], **reverse)
        assert found == trm.evaluate(y_true, y_pred, ["mrr"], inputs=inputs)


@pytest.mark.parametrize("inputs", typing.get_args(trm.options.Inputs))
def test_each_format_gives_the_values_of_labels_in_eager_code_and_in_graphs(inputs):
    y_true, y_pred, labels, scores = EXAMPLES[inputs]
    metrics = ["ndcg@2", "map", "mrr", "recall@1"]
    expected = trm.evaluate(labels, scores, metrics)
    found = trm.evaluate(y_true, y_pred, metrics, inputs=inputs)
    assert found == pytest.approx(expected, rel=1e-14)
    eager, compiled = (trm.RankingMetrics(metrics, inputs=inputs) for _ in range(2))
    tensors = tf.constant(y_true), tf.constant(y_pred)
    eager.update_state(*tensors)
    specs = [tf.TensorSpec([None, None], each.dtype) for each in tensors]

    @tf.function(input_signature=specs)
    def update(*arguments):
        compiled.update_state(*arguments)

    update(*tensors)
    for metric in (eager, compiled):
        values = {name: float(value) for name, value in metric.result().items()}
        assert values == pytest.approx(expected, rel=1e-6)


@st.composite
def id_queries(draw):
    """Draws relevant ids with grades, and recommended ids. Ids may repeat."""
    number = draw(st.integers(1, 12))
    relevant = [draw(st.lists(IDS, max_size=4)) for _ in range(number)]
    grades = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0])
    by_id = [{item: draw(grades) for item in ids} for ids in relevant]
    relevance = [[of[item] for item in ids] for of, ids in zip(by_id, relevant)]
    recommended = [draw(st.lists(IDS, max_size=6)) for _ in range(number)]
    return relevant, relevance, recommended


def as_labels(relevant, relevance, recommended, duplicates):
    """One query's ids as labels and scores. Items not recommended have score -inf."""
    grades = {}
    for item, grade in zip(relevant, relevance):
        grades.setdefault(item, grade)
    labels, seen = [], set()
    for item in recommended:
        counts = duplicates == "all" or item not in seen
        labels.append(grades.get(item, 0.0) if counts else 0.0)
        seen.add(item)
    not_recommended = [grade for item, grade in grades.items() if item not in seen]
    scores = [float(-place) for place in range(len(labels))]
    return labels + not_recommended, scores + [-INF] * len(not_recommended)


@pytest.mark.parametrize("duplicates", ["first", "all"])
@few_examples
@given(id_queries())
@pytest.mark.usefixtures("run_eagerly")
def test_ids_give_the_values_of_labels(duplicates, queries):
    relevant, relevance, recommended = queries
    ids = trm.evaluate(
        {"ids": relevant, "relevance": relevance},
        recommended,
        ID_OBJECTS,
        inputs="ids",
        duplicates=duplicates,
        per_query=True,
    )
    dense = [as_labels(*query, duplicates) for query in zip(*queries)]
    labels, scores = map(list, zip(*dense))
    expected = trm.evaluate(labels, scores, ID_OBJECTS, per_query=True)
    for name, value in ids.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("per_query", [1, 3])
@few_examples
@given(data=st.data())
@pytest.mark.usefixtures("run_eagerly")
@pytest.mark.filterwarnings("ignore:`exclude` removes items")
def test_a_catalog_gives_the_values_of_labels(per_query, data):
    shape = data.draw(st.tuples(st.integers(1, 12), st.integers(1, 9)))
    values = st.sampled_from([0.0, -0.0, 1.0, 2.5, np.nan, INF, -INF])
    scores = data.draw(hnp.arrays(np.float64, shape, elements=values))
    items = st.integers(0, shape[1] - 1)
    relevant = data.draw(hnp.arrays(np.int64, (shape[0], per_query), elements=items))
    # Zeros and ones in the shape of the scores raise an error: they look like labels.
    assume(shape[1] != 3 or per_query != 3 or relevant.max() > 1)
    exclude = data.draw(
        hnp.arrays(np.int64, (shape[0], 2), elements=items | st.just(-1))
    )
    catalog = trm.evaluate(
        {"ids": relevant, "exclude": exclude},
        scores,
        CATALOGUE_OBJECTS,
        inputs="catalog",
        per_query=True,
    )
    labels = np.zeros(shape)
    for query in range(shape[0]):
        excluded = exclude[query][exclude[query] >= 0]
        scores[query, excluded] = -INF
        labels[query, excluded] = -1.0  # not in the list, unless relevant: missed
        labels[query, relevant[query]] = 1.0
    mask = labels >= 0
    expected = trm.evaluate(
        labels, scores, CATALOGUE_OBJECTS, per_query=True, mask=mask
    )
    for name, value in catalog.items():
        np.testing.assert_allclose(
            value, expected[name], rtol=1e-9, atol=1e-12, err_msg=name
        )
    # In `fit`, a model can leave items out of its ranking with a score of -inf instead.
    names = ["ndcg@3", "map@3", "mrr@3", "recall@3"]
    catalog, model = (
        trm.evaluate(y_true, scores, names, inputs="catalog", per_query=True)
        for y_true in ({"ids": relevant, "exclude": exclude}, relevant)
    )
    for name in names:
        np.testing.assert_array_equal(catalog[name], model[name], err_msg=name)


def test_groups_and_query_ids_of_any_dtype():
    labels, scores = (
        np.array([0, 1, 1, 0, 2, 0]),
        np.array([3.0, 2.0, 1.0, 3.0, 2.0, 1.0]),
    )
    metrics = ["ndcg", "mrr", "precision@2"]
    expected = trm.evaluate([[0, 1, 1], [0, 2, 0]], scores.reshape(2, 3), metrics)
    by_groups = trm.evaluate_rows(None, labels, scores, metrics, groups=[3, 0, 3])
    for ids in (
        np.array([7, 7, 7, -2, -2, -2]),
        np.array([7.0, 7.0, 7.0, 2.0, 2.0, 2.0]),
        ["b", "b", "b", "a", "a", "a"],
        np.array(["b", "b", "b", "a", "a", "a"], object),
        pd.Series([(1, "b")] * 3 + [(1, "a")] * 3),
        np.array([np.int64(7), 7, 7, 2, 2, 2], object),
        np.array([b"b"] * 3 + [b"a"] * 3),
        np.array(["2026-01-02"] * 3 + ["2026-01-01"] * 3, "datetime64[D]"),
        pd.Series(["b"] * 3 + ["a"] * 3, dtype="category"),
        pd.Series(["b"] * 3 + ["a"] * 3, index=[9, 8, 7, 6, 5, 4]),
        [True] * 3 + [False] * 3,
        np.array([(1, "b")] * 3 + [(1, "a")] * 3, "i8, U1"),
    ):
        assert trm.evaluate_rows(ids, labels, scores, metrics) == pytest.approx(
            expected
        )
    assert by_groups == pytest.approx(expected)
    one_row = trm.evaluate_rows(None, [1], [1.0], ["mrr"], groups=[0, 1])
    assert one_row == {"mrr": 1}
    in_between = {"groups": [1, 0], "per_query": True}
    found = trm.evaluate_rows(None, [1], [2.0], ["mrr"], **in_between)["mrr"]
    np.testing.assert_array_equal(found, [1.0, np.nan])
    no_row = trm.evaluate_rows(np.zeros(0, int), [], [], ["mrr"])
    assert np.isnan(no_row["mrr"])


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (-128, 127, "int8"),
        (-(2**31), 2**31 - 1, "int32"),
        (70_000, 71_000, "int64"),
        (-(2**63), 2**63 - 1, "int64"),
        (2**63, 2**63 + 2**20, "uint64"),
        (0, 2**32, "int64"),
        (-(2**32), 0, "int64"),
        (0, 2**16, "int64"),
    ],
)
def test_query_ids_of_any_range_in_any_order(low, high, dtype):
    rng = np.random.default_rng(0)
    pool = rng.integers(low, high, 90, dtype, endpoint=True)
    pool[:2] = low, high
    ids, labels, scores = (
        rng.choice(pool, 400),
        rng.integers(0, 2, 400),
        rng.random(400),
    )
    ids[:3] = low, high, low
    found = trm.evaluate_rows(ids, labels, scores, ["mrr"], per_query=True)
    assert found["query"].tolist() == list(dict.fromkeys(ids.tolist()))
    for query, value in zip(*found.values(), strict=True):
        best_first = np.argsort(-scores[ids == query])
        hits = np.flatnonzero(labels[ids == query][best_first])
        assert value == (1 / (1 + hits[0]) if hits.size else 0)


@pytest.mark.parametrize(
    "query_ids",
    [
        [2**63 + 1, 5, 2**63 + 2],  # NumPy makes floats of them
        [2**53, 2**53 + 1, 1.5],
        ["a\0", "a", "b"],  # NumPy drops zeros at the end
        [(1, 2), (1, 3), (2, 2)],
    ],
)
def test_query_ids_in_a_list_stay_different(query_ids):
    found = trm.evaluate_rows(
        query_ids, [0, 1, 1], [0.9, 0.5, 0.1], ["mrr"], per_query=True
    )
    assert found["query"].tolist() == query_ids
    assert found["mrr"].tolist() == [0, 1, 1]


def test_many_rows_need_little_memory():
    """The lengths differ so much that one padded array would not fit in memory."""
    lengths = np.concatenate([np.full(20_000, 3), [400_000]])
    number = lengths.sum()
    labels = np.zeros(number)
    labels[np.cumsum(lengths) - lengths] = 1.0  # the first item of each query
    scores = np.concatenate([-np.arange(length, dtype="f4") for length in lengths])
    tracemalloc.start()
    values = trm.evaluate_rows(None, labels, scores, ["mrr", "P@2"], groups=lengths)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert values == {"mrr": 1.0, "P@2": 0.5}
    assert peak < 40 * number * 8  # one padded array would have 8 billion elements


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query_ids": [1, 1]}, "a value for each row"),
        ({"query_ids": None}, "either `query_ids`"),
        ({"query_ids": [1, "1", 2]}, "same type.*Received: 1 in row 0 and '1' in row 1"),
        ({"query_ids": [b"a", "a", "b"]}, "same type.*Received: b'a' in row 0 and 'a' in row 1"),
        ({"scores": [2**53 + 1, 0.5, 1]}, "integers that float64 rounds.*9007199254740993"),
        ({"query_ids": None, "groups": [2**62] * 4 + [3]}, "add up to the number of rows"),
        ({"groups": [3]}, "either `query_ids`"),
        ({"query_ids": None, "groups": [1, 1]}, "add up to the number of rows"),
        ({"query_ids": None, "groups": [4, -1]}, "integers of at least 0"),
        ({"query_ids": None, "groups": [1.5, 1.5]}, "integers of at least 0"),
        ({"query_ids": [1.0, float("nan"), 2.0]}, "query ids must not be missing.*in row 1"),
        ({"query_ids": ["a", None, "b"]}, "query ids must not be missing.*in row 1"),
        ({"query_ids": np.array(["a", 1, "b"], object)}, "'a' in row 0 and 1 in row 1"),
        ({"scores": [[1.0, 2.0]] * 3}, "`scores` must be one column"),
        ({"scores": np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0])}, "masked array"),
        ({"labels": [1.0, float("nan"), 0.0]}, "Received: nan in row 1"),
        ({"labels": [[1], [1, 0], [1]]}, r"must hold numbers.*Received: \[1\] in row 0"),
        ({"labels": None}, r"`labels` must be one column.*shape \(\)"),
        ({"labels": ["x", "y", "z"]}, "must hold numbers.*'x' in row 0"),
        ({"labels": ["1", "x", "2"]}, "must hold numbers.*'x' in row 1"),
        ({"labels": ["1", "0", "2"]}, "must hold numbers.*'1' in row 0"),
        ({"labels": np.array([1, None, 2])}, "Received: nan in row 1. Pass 0 for an item"),
        ({"labels": [1, 10**30, 2]}, f"of at most 64 bits. Received: {10**30} in row 1"),
        ({"scores": [-(10**30), 1, 2]}, f"of at most 64 bits. Received: -{10**30} in row 0"),
        ({"sample_weight": [1.0, 1.0, -1.0]}, "at least 0.*-1.0 in row 2"),
        ({"gian": "linear"}, "'gian'"),
    ],
)  # fmt: skip
def test_invalid_rows_raise(arguments, message):
    table = {"query_ids": [1, 1, 2], "labels": [1, 0, 1], "scores": [1.0, 2.0, 3.0]}
    with pytest.raises(ValueError, match=message):
        trm.evaluate_rows(metrics=["ndcg"], **{**table, **arguments})


def test_the_name_query_is_taken():
    metric = trm.MeanReciprocalRank(name="query")
    rows = [1, 1], [1, 0], [2.0, 1.0], [metric]
    assert trm.evaluate_rows(*rows) == {"query": 1}
    with pytest.raises(ValueError, match="the key of a column"):
        trm.evaluate_rows(*rows, per_query=True)


def test_lists_of_tensors_and_columns_are_read_like_arrays():
    """An infinite score makes the library look for integers that NumPy has rounded."""
    expected = trm.evaluate([[1, 0]], np.array([[2.0, -np.inf]]), ["mrr"])
    for scores in ([tf.constant([2.0, -np.inf])], [pd.Series([2.0, -np.inf])]):
        assert trm.evaluate([[1, 0]], scores, ["mrr"]) == expected
    with pytest.raises(ValueError, match="must not mix integers that float64 rounds"):
        trm.evaluate([[1, 0]], [[2**53 + 1, 0.5]], ["mrr"])


TWICE = {"ids": [[1, 0, 1]], "relevance": [[1, 2, 3]]}


def update_state(truth, inputs):
    """Updates a metric, which cannot raise an error for values."""
    metric = trm.NDCG(inputs=inputs)
    metric.update_state(truth, np.array([[0, 1]]))
    if np.isnan(metric.result()):
        raise ValueError("NaN for a second grade: one grade for each id of a query")


@pytest.mark.filterwarnings("ignore:The result of 'ndcg' is NaN")
@pytest.mark.parametrize(
    "call",
    [
        lambda truth: trm.evaluate(truth, [[0, 1]], ["ndcg"], inputs="ids"),
        lambda truth: trm.evaluate(truth, [[3, 2]], ["ndcg"], inputs="catalog"),
        lambda truth: trm.explain(truth, [[0, 1]], "ndcg", inputs="ids"),
        lambda truth: trm.evaluate_retrieval([[1.0]], [[1.0], [2.0]], truth, ["ndcg"]),
        lambda truth: update_state(truth, "ids"),
        lambda truth: update_state(truth, "catalog"),
    ],
)
def test_an_id_with_two_grades_is_an_error(call):
    with pytest.raises(ValueError, match="one grade for each id of a query"):
        call(TWICE)
    call({**TWICE, "relevance": [[3, 2, 3]]})  # the same grade twice is no mistake


class Sequence(collections.abc.Sequence):
    """A column of Hugging Face's datasets, for example."""

    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, number):
        return self.rows[number]

    def __len__(self):
        return len(self.rows)


LISTS_OF = {
    "Sequence": Sequence,
    "rows": lambda rows: [Sequence(row) for row in rows],
    "arrays": lambda rows: [*map(np.array, rows)],
    "deque": lambda rows: collections.deque(map(collections.deque, rows)),
    "objects": lambda rows: pd.Series(rows).to_numpy(),
    "Arrow": pa.array,
    "Arrow, chunked": lambda rows: pa.chunked_array([rows[:1], rows[1:]]),
    "polars": pl.Series,
    "pandas": pd.Series,
    "pandas, Arrow": lambda rows: pd.Series(
        rows, dtype=pd.ArrowDtype(pa.array(rows).type)
    ),
}


COLUMNS_OF_ONE_LENGTH = {
    "polars, fixed": lambda rows: pl.Series(
        rows, dtype=pl.Array(pl.Series(rows[0]).dtype, len(rows[0]))
    ),
    "Arrow, fixed": lambda rows: pa.array(
        rows, pa.list_(pa.array(rows[0]).type, len(rows[0]))
    ),
}


@pytest.mark.parametrize("name", [*LISTS_OF, *COLUMNS_OF_ONE_LENGTH])
def test_columns_of_lists_of_one_length_are_arrays(name):
    make = {**LISTS_OF, **COLUMNS_OF_ONE_LENGTH}[name]
    vectors = make([[1.0, 0.0], [0.0, 1.0]])
    text, found = make([["a", "x"], ["b", "x"]]), make([["y", "a"], ["b", "y"]])
    assert trm.evaluate(text, found, ["mrr"], inputs="ids") == {"mrr": 0.75}
    names = {"candidate_ids": ["a", "b"], "exclude": make([["b"], ["a"]])}
    for relevant in ([["a"], ["b"]], make([["a"], ["b"]])):
        found = trm.evaluate_retrieval(vectors, vectors, relevant, ["mrr"], **names)
        assert found == {"mrr": 1.0}
    # Weights of queries, and scores of labels with subtopics.
    weights, labels = make([[1.0], [3.0]]), np.array([[1, 0], [1, 0]])
    scores = make([[2.0, 1.0], [1.0, 2.0]])
    found = trm.evaluate(labels, scores, ["mrr"], sample_weight=weights)
    assert found == {"mrr": (1 + 3 / 2) / 4}
    labels = labels[..., np.newaxis] * np.ones(2)
    assert trm.evaluate(labels, scores, ["precision_ia@1"]) == {"precision_ia@1": 0.5}


@pytest.mark.parametrize(
    "make",
    [pa.array, lambda ids: pa.chunked_array([ids]), pl.Series, pd.Series, np.array],
)
@pytest.mark.parametrize("ids", [["a", "b"], [7, 9]])
def test_ids_of_candidates_in_any_column(make, ids):
    vectors, relevant = np.eye(2), [[ids[1]], [ids[1]]]
    options = {"candidate_ids": make(ids)}
    found = trm.evaluate_retrieval(vectors, vectors, relevant, ["mrr"], **options)
    assert found == {"mrr": 0.75}
    assert trm.retrieve(vectors, vectors, k=1, **options).ids.tolist() == [
        [each] for each in ids
    ]


@pytest.mark.parametrize("name", LISTS_OF)
@pytest.mark.parametrize("is_unequal", [False, True])
def test_lists_in_any_sequence(name, is_unequal):
    make = LISTS_OF[name]
    more = [["x"], [7], [0], [0.0]] if is_unequal else [[]] * 4
    relevant, found = [["a"], ["b"]], [["b", "a"], ["b", "c", *more[0]]]
    of_ints, found_ints = [[1], [2]], [[2, 1], [2, 3, *more[1]]]
    labels, scores = [[1, 0], [0, 1, *more[2]]], [[0.1, 0.2], [0.3, 0.4, *more[3]]]
    ids = {"inputs": "ids"}
    for y_true, y_pred, options in (
        (relevant, found, ids),
        (of_ints, found_ints, ids),
        (labels, scores, {}),
    ):
        value = trm.evaluate(make(y_true), make(y_pred), ["mrr"], **options)
        assert value == {"mrr": 0.75}  # 1 / 2 and 1
        columns = make(y_true), make(y_pred)
        assert trm.explain(*columns, "mrr", query=1, **options).value == 1.0


@pytest.mark.parametrize("inputs", ["ids", "labels", "ragged"])
@pytest.mark.parametrize("ties", ["expected", "stable"])
def test_one_long_list_among_many_short_ones(inputs, ties):
    """Padding all of them would take some 120 MB for each array. They are evaluated by length."""
    long, short = 10_000, 1500
    rng = np.random.default_rng(0)
    labels = [rng.integers(0, 2, 3).tolist() for _ in range(short)]
    scores = [rng.integers(0, 9, 3).astype(float).tolist() for _ in range(short)]
    labels.insert(700, rng.integers(0, 2, long).tolist())
    scores.insert(700, rng.random(long).tolist())
    names, options = ["mrr", "ndcg@5"], {"ties": ties, "per_query": True}
    queries = np.repeat(np.arange(short + 1), [*map(len, labels)])
    columns = np.concatenate(labels), np.concatenate(scores)
    expected = trm.evaluate_rows(queries, *columns, names, **options)
    arguments = labels, scores
    if inputs == "ragged":
        arguments = tf.ragged.constant(labels), tf.ragged.constant(scores)
    if inputs == "ids":
        items = [f"d{number}" for number in range(long)]
        arguments = (
            [[i for i, label in zip(items, of_query) if label] for of_query in labels],
            [
                [
                    items[number]
                    for number in np.argsort(-np.array(of_query), kind="stable")
                ]
                for of_query in scores
            ],
        )
        options = {"inputs": "ids", "per_query": True}
        stable = {"per_query": True, "ties": "stable"}
        expected = trm.evaluate_rows(queries, *columns, names, **stable)
    by = np.arange(short + 1) % 2
    tracemalloc.start()
    found = trm.evaluate(*arguments, names, **options)
    means = trm.evaluate(
        *arguments,
        names,
        by=by,
        sample_weight=1.0 + by,
        **{**options, "per_query": False},
    )
    query = 1000
    del options["per_query"]
    shown = trm.explain(*arguments, "ndcg@5", query, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6
    assert shown.value == pytest.approx(expected["ndcg@5"][query], rel=1e-12)
    for name in names:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12)
        of_slice = [np.mean(expected[name][by == number]) for number in (0, 1)]
        counts = [np.count_nonzero(by == number) for number in (0, 1)]
        assert [means[0][name], means[1][name]] == pytest.approx(of_slice)
        whole = np.average(of_slice, weights=[counts[0], 2 * counts[1]])
        assert means.whole[name] == pytest.approx(whole)


def test_ids_that_are_text_keep_their_numbers_over_parts():
    """Coverage counts an item once, whichever part recommends it."""
    found = [["a", "b"], *[["b", "a"]] * 3000, [*map(str, range(20_000))]]
    relevant = [["new"], *[["a"]] * 3000, ["b"]]
    value = trm.evaluate(relevant, found, ["coverage"], inputs="ids", num_items=40_004)
    assert value == {"coverage": 20_002 / 40_004}


def test_relevant_ids_outside_of_the_catalog_of_text():
    """A cold item cannot be recommended, and has no place among the items."""
    names = ["coverage@2", "gini@2", "entropy@2"]
    found = trm.evaluate([["new"]], [["a", "b"]], names, inputs="ids", num_items=2)
    assert found == {"coverage@2": 1.0, "gini@2": 0.0, "entropy@2": 1.0}
    with pytest.raises(ValueError, match=r"0 to 0\..*the recommended id 1"):
        trm.evaluate([["new"]], [["a", "b"]], names, inputs="ids", num_items=1)
