"""Tests ids and catalogs, also in graphs, and their errors."""

import itertools
import math
import resource
import tracemalloc
import uuid

import numpy as np
import pandas
import pytest
import tensorflow as tf
from cases import make_metric, metric_name, metrics_supporting, with_cutoffs
from helpers import (
    SWEEP,
    assert_same,
    results,
    run_as,
    run_eagerly,
    update_function,
)

import tfrankmetrics as trm

NAMES = ["ndcg@10", "hit_rate@10", "mrr@5", "recall@3"]


def test_a_query_with_ids_counts_whatever_was_retrieved():
    """Its value is 0, whether ids have the grade 0 or all items are excluded."""
    for relevance, scores in itertools.product((0, 1), ([1.0, -np.inf], [-np.inf] * 2)):
        y_true = {"ids": [[1]], "relevance": [[relevance]]}
        found = trm.evaluate(y_true, [scores], ["mrr", "ndcg"], inputs="catalog")
        assert found == {"mrr": 0.0, "ndcg": 0.0}
    padding = trm.evaluate([[-1]], [[1.0, 2.0]], ["mrr"], inputs="catalog")
    assert math.isnan(padding["mrr"])


def test_seen_items_are_excluded_by_ids_or_by_scores():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(5, 12)).astype("f4")
    relevant, seen = rng.integers(0, 12, (5, 1)), rng.integers(-1, 12, (5, 3))
    seen = np.where(seen == relevant, -1, seen)
    expected = trm.evaluate(
        {"ids": relevant, "exclude": seen}, scores, NAMES, inputs="catalog"
    )
    with_seen = trm.evaluate(relevant, scores, NAMES, inputs="catalog")
    by_dict = trm.RankingMetrics(NAMES, inputs="catalog")

    @tf.function
    def update(ids, exclude, scores):
        by_dict.update_state({"ids": ids, "exclude": exclude}, scores)

    update(tf.constant(relevant), tf.constant(seen), tf.constant(scores))
    assert_same(by_dict.result(), expected)
    for row, items in zip(scores, seen):
        row[items[items >= 0]] = -np.inf
    by_model = trm.evaluate(relevant, scores, NAMES, inputs="catalog")
    assert by_model == expected
    assert with_seen != expected


@pytest.mark.parametrize(
    ("way", "names"),
    [
        ("graph", ["ndcg", "map", "mrr", "auc", "recall"]),
        pytest.param("xla", metrics_supporting("catalog"), marks=SWEEP),
    ],
    ids=["five metrics in a graph", "all metrics under XLA"],
)
@pytest.mark.parametrize("relevant", [1, 3])
@pytest.mark.usefixtures("clear_caches_after_test")
def test_eager_graph_and_xla_agree(relevant, names, way):
    rng = np.random.default_rng(2)
    scores = rng.integers(0, 6, (7, 15)).astype("f4")
    ids = rng.integers(-1, 15, (7, relevant))
    metrics = [metric_name(*pair) for pair in with_cutoffs(names, (None, 4))]
    metrics += [
        make_metric(name, 4, ties=ties, name=f"{name}, {ties}")
        for name in ("ndcg", "mrr", "auc")
        for ties in ("stable", "best")
    ]
    metric = trm.RankingMetrics(metrics, inputs="catalog")
    run_as(way, update_function(metric))(tf.constant(ids), tf.constant(scores))
    with run_eagerly():
        eager = trm.evaluate(ids, scores, metrics, inputs="catalog")
    assert results(metric) == pytest.approx(eager, rel=1e-6)


def test_query_and_step_weights():
    scores = np.array([[[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]]] * 2)  # RR 1 and 1/3
    ids = [[0, 0], [0, 0]]

    def weighted(weights):
        (value,) = trm.evaluate(
            ids, scores, ["mrr"], inputs="catalog", sample_weight=weights
        ).values()
        return value

    assert weighted(None) == weighted([5, 5]) == pytest.approx((1 + 1 / 3) / 2)
    assert weighted([[1, 3], [1, 3]]) == pytest.approx((1 + 3 * 1 / 3) / 4)
    assert weighted([[2], [1]]) == pytest.approx((1 + 1 / 3) / 2)
    by_query = trm.evaluate(
        [[1], [2]], [[1, 3], [3, 2]], ["mrr"], inputs="ids", sample_weight=[3, 1]
    )
    assert by_query["mrr"] == pytest.approx((3 * 1 + 1 * 1 / 2) / 4)


IDS = {"inputs": "ids", "y_true": [[1, 2]], "y_pred": [[2, 3, 1]]}
CATALOGUE = {"inputs": "catalog", "y_true": [1], "y_pred": [[0.1, 0.2, 0.3]]}


@pytest.mark.parametrize(
    ("arguments", "rule", "received"),
    [
        ({**IDS, "y_pred": [[2, -2]]}, "at least 0, or -1", "-2 at index [0, 1]"),
        ({**IDS, "y_pred": [[2, -1, 3]]}, "padded at the end", "query 0"),
        ({**IDS, "y_pred": [[2.0, 3.0]]}, "must hold ids", "float64"),
        ({**IDS, "y_pred": [[2], [3]]}, "the same number of queries", "(1, 2)"),
        ({**IDS, "y_pred": [[[2, 3]]]}, "must be hashable", "type: 'list'"),
        ({**IDS, "y_true": [["a"]]}, "the same type", "'a' in `y_true` and 2 in `y_pred`"),
        ({**IDS, "y_true": [["a", None]], "y_pred": [["a"]]}, "must not be missing", "a missing one in `y_true`"),
        ({**IDS, "y_true": [[{}]], "y_pred": [[{}]]}, "must be hashable", "'dict'"),
        ({**IDS, "y_true": {"labels": [[1]]}}, "must contain the key 'ids'", "labels"),
        ({**IDS, "y_true": {"ids": [[1]], "relevance": [[1, 2]]}}, "shape of 'ids'", "(1, 2)"),
        ({**IDS, "y_true": {"ids": [[1]], "relevance": [[np.nan]]}}, "finite numbers", "nan"),
        ({**IDS, "y_true": {"ids": [[1, 2], [3]], "relevance": [[1], [3, 4]]}}, "as long as the rows of the ids", "in row 0, 2 ids and 1"),
        ({**IDS, "y_true": {"ids": [[1, 2], [3]], "relevance": [[1, 2], [3, 4]]}}, "as long as the rows of the ids", "in row 1, 1 ids and 2"),
        ({**IDS, "y_true": {"ids": [[1, 2], [3, 4]], "relevance": [[1], [3, 4]]}}, "needs ragged ids", "dense ids"),
        ({**IDS, "y_true": {"ids": [[1]], "relevance": [[True]]}}, "must hold real numbers", "bool"),
        ({**IDS, "y_true": {"ids": [[1, 2], [3]], "relevance": 1}}, "shape of 'ids'", "shape ()"),
        ({**IDS, "y_pred": [{2, 3}]}, "must be in order", "a set"),
        ({**IDS, "y_pred": [[2, 3], {2, 3}]}, "must be in order", "a set"),
        ({**IDS, "y_pred": pandas.Series([{2, 3}])}, "must be in order", "a set"),
        ({**IDS, "y_true": {"ids": [[1]], "exclude": [[1]]}}, "no other", "exclude"),
        ({**IDS, "sample_weight": [[1, 2]]}, "one weight per query", "(1, 2)"),
        ({**IDS, "sample_weight": [[[1]]]}, "one weight per query", "(1, 1, 1)"),
        ({**IDS, "sample_weight": [-1]}, "at least 0", "[0]"),
        ({**IDS, "mask": [[True, True]]}, "`mask` is for inputs='labels'", "'ids'"),
        ({**CATALOGUE, "y_true": [3]}, "from 0 to 2", "3 at index [0, 0]"),
        ({**CATALOGUE, "y_true": [[1, 3]]}, "from 0 to 2", "3 at index [0, 1]"),
        ({**CATALOGUE, "y_true": [-2]}, "from 0 to 2", "-2 at index [0, 0]"),
        ({**CATALOGUE, "y_true": [1.0]}, "must hold ids", "float64"),
        ({**CATALOGUE, "y_true": [1, 2]}, "the same number of queries", "(2,)"),
        ({**CATALOGUE, "y_true": [[[1]]]}, "must have shape [B, V]", "(1, 1, 1)"),
        ({**CATALOGUE, "y_true": {"ids": [1], "exclude": [1]}}, "'exclude' must have shape", "(1,)"),
        ({**CATALOGUE, "y_true": {"ids": [1], "exclude": [[7]]}}, "from 0 to 2", "7 at index [0, 0]"),
        ({**CATALOGUE, "y_true": [[0, 1, 0]]}, "not a 0 or 1 for each item", "in `y_true`"),
        ({**CATALOGUE, "y_true": {"ids": [1], "exclude": [[1, 0, 0]]}}, "not a 0 or 1 for each item", "in `exclude`"),
        ({**CATALOGUE, "y_true": [[1, 2]], "y_pred": np.zeros((1, 2, 3)), "sample_weight": [[1], [2]]}, "one weight per query", "(2, 1)"),
        ({**CATALOGUE, "y_true": [[1, 2]], "y_pred": np.zeros((1, 2, 3)), "sample_weight": [[1, 2, 3]]}, "[B, T] for sequences", "(1, 3)"),
        ({**CATALOGUE, "sample_weight": [-1]}, "at least 0", "[0]"),
        ({**CATALOGUE, "y_true": [-1], "y_pred": np.zeros((1, 0))}, "at least one item", "(1, 0)"),
        ({**CATALOGUE, "y_true": [[-1, -1]], "y_pred": np.zeros((1, 2, 0))}, "at least one item", "(1, 2, 0)"),
        ({**CATALOGUE, "y_true": [[0, 0], [0, 0]], "y_pred": np.zeros((2, 2, 3)), "sample_weight": [[1, 3], [1]]}, "rows of equal length", "[2 1]"),
        ({**IDS, "y_true": [[1], [2]], "y_pred": [[1], [2]], "sample_weight": [[1], []]}, "rows of equal length", "[1 0]"),
        ({**CATALOGUE, "y_pred": [[0.1], [0.2, 0.3]]}, "must be dense", "unequal length"),
        ({**CATALOGUE, "y_pred": [["a"]]}, "must hold real numbers of at most 64 bits", "U1"),
        ({**CATALOGUE, "duplicates": "all"}, "is for inputs='ids'", "'catalog'"),
        ({**IDS, "duplicates": "none"}, "'first', 'all'", "'none'"),
        ({**IDS, "inputs": "id"}, "'labels', 'ids', 'catalog'", "'id'"),
        ({**IDS, "metrics": [trm.NDCG(inputs="catalog")]}, "read the same data", "catalog"),
    ],
)  # fmt: skip
def test_invalid_arguments_raise(arguments, rule, received):
    with pytest.raises(ValueError, match="Received") as error:
        trm.evaluate(**{"metrics": ["ndcg@2", "mrr"], **arguments})
    assert rule in str(error.value)
    assert received in str(error.value)


def test_ids_in_columns_sets_and_tensors():
    relevant, recommended = [["a", "b"], ["c"]], [["b", "x"], ["y", "c"]]
    expected = trm.evaluate(relevant, recommended, NAMES, inputs="ids")
    numbers = [[1, 2], [3]], [[2, 8], [9, 3]]
    for ids, listed in (
        (pandas.Series(relevant), pandas.Series(recommended)),
        (pandas.Series(relevant), recommended),
        ([set(row) for row in relevant], recommended),
        (pandas.Series([set(row) for row in relevant]), recommended),
        (relevant, tf.constant(recommended)),
        (np.array([["a", "b"], ["c", "c"]]), np.array(recommended)),
        tuple(map(pandas.Series, numbers)),
        (tf.ragged.constant(numbers[0]), tf.constant(numbers[1])),
        ([set(row) for row in numbers[0]], numbers[1]),
    ):
        assert trm.evaluate(ids, listed, NAMES, inputs="ids") == expected


def test_ids_may_be_of_any_hashable_type():
    first, second = uuid.UUID(int=1), uuid.UUID(int=2)
    values = trm.evaluate([[first]], [[second, first]], ["mrr"], inputs="ids")
    assert values == {"mrr": 1 / 2}


@pytest.mark.parametrize("relevant", [[["a"]], tf.constant([["a"]])])
def test_keras_metrics_take_ids_that_are_integers(relevant):
    """A graph could not number other ids."""
    metric = trm.MeanReciprocalRank(inputs="ids")
    with pytest.raises(ValueError, match="must hold"):
        metric.update_state(relevant, relevant)


def test_ids_of_one_query_and_one_id_for_each_query():
    one = trm.evaluate([1, 2], [2, 3, 4], ["recall@3"], inputs="ids")
    assert one == {"recall@3": 1 / 2}
    recommended = [[2, 3, 1], [2, 3, 1]]
    two = trm.evaluate([1, 2], recommended, ["mrr"], inputs="ids", per_query=True)
    assert two["mrr"].tolist() == [1 / 3, 1]


IDS_OR_SCORES = [("ids", [[1, 2, 0]]), ("catalog", [[1.0, 3.0, 2.0]])]


@pytest.mark.parametrize(("inputs", "y_pred"), IDS_OR_SCORES)
def test_items_with_a_negative_grade_are_not_relevant(inputs, y_pred):
    """The items 1, 2 and 0 are ranked in this order."""
    y_true = {"ids": [[1, 2]], "relevance": [[-2, 1]]}
    values = trm.evaluate(y_true, y_pred, ["mrr", "dcg@1", "recall@2"], inputs=inputs)
    assert values == {"mrr": 1 / 2, "dcg@1": 0, "recall@2": 1}


@pytest.mark.parametrize(("inputs", "y_pred"), IDS_OR_SCORES)
@pytest.mark.parametrize(
    ("relevant", "dcg", "recall"), [([1, 1], 1, 1), ([1, 0], 1 + 1 / 2, 1 / 2)]
)
def test_two_relevant_ids_in_a_graph_that_knows_all_sizes(
    inputs, y_pred, relevant, dcg, recall
):
    """A repeated one counts once. The ranks are 1, and 3 with the discount 1 / 2."""
    metric = trm.RankingMetrics(["dcg", "recall@2"], inputs=inputs)
    tf.function(update_function(metric))(tf.constant([relevant]), tf.constant(y_pred))
    assert results(metric) == {"dcg": dcg, "recall@2": recall}


def test_catalogs_as_small_as_a_list_of_ids():
    """The ids are of the scores' shape, but not labels."""
    for ids, scores, recall in (
        ([[0, 1]], [[0.1, 0.2]], 1 / 2),
        ([[2, 0, -1]], [[0.1, 0.2, 0.3]], 1 / 2),
        ([[1]], [[0.1, 0.2]], 1),
        ([[0]], [[0.1]], 1),
    ):
        values = trm.evaluate(ids, scores, ["recall@1"], inputs="catalog")
        assert values == {"recall@1": recall}
    # Steps of a sequence, with a weight for the sequence, and a batch without queries.
    values = trm.evaluate(
        [[0, -1]], [[[0.1], [0.2]]], ["mrr"], inputs="catalog", sample_weight=[2.0]
    )
    assert values == {"mrr": 1}
    none = np.zeros((0, 1), int), np.zeros((0, 3))
    assert np.isnan(trm.evaluate(*none, ["mrr"], inputs="catalog")["mrr"])


TEN_SCORES = [[2.0, 3.0, 0.0, 1.0, *[0.0] * 6]]


@pytest.mark.parametrize(
    ("inputs", "y_pred", "megabytes"),
    [
        ("ids", [[1, 0, 3, *range(4, 9)]], 25),
        ("catalog", TEN_SCORES, 60),
        ("labels", TEN_SCORES, 80),
    ],
)
def test_queries_that_do_not_fit_in_memory_at_once(inputs, y_pred, megabytes):
    """Two relevant and eight recommended ids, or ten scores of a query.

    If all queries were ranked at once, it would take 51, 127 or 134 MB.
    """
    number = 20_000
    y_true = np.array([[1, 2], [0, 2], [3, 1], [3, 9], [1, 3]] * number)
    if inputs == "labels":
        y_true = np.eye(10)[y_true].sum(axis=1)
    y_pred = np.array(y_pred * len(y_true))
    tracemalloc.start()
    values = trm.evaluate(y_true, y_pred, ["mrr"], inputs=inputs, per_query=True)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert values["mrr"].tolist() == [1, 1 / 2, 1, 1 / 3, 1] * number
    assert most < megabytes * 1e6


def test_excluded_items_are_removed_unless_relevant():
    scores = [[0.5, 0.9, 0.1, 0.7]]
    for ids in ({"ids": [[0]]}, {"ids": [[0, 3]], "relevance": [[1, 0]]}):
        query = {**ids, "exclude": [[3]]}
        auc = trm.evaluate(query, scores, ["auc"], inputs="catalog")["auc"]
        assert auc == 1 / 2  # above item 2, below item 1


@pytest.mark.parametrize("size", [249, 250, 251, 1000, 70_001])
def test_ranks_in_catalogs_of_any_size(size):
    """Ranks are counted in blocks of 250 scores. The lists have known ranks."""
    scores = np.arange(size, 0, -1.0)[np.newaxis].repeat(4, axis=0)
    scores[2, :200] = scores[2, 100]  # 200 tied items at the top
    scores[3, -3:] = np.nan, -np.inf, np.nan
    relevant = [0, size - 1, 100, size - 1]
    values = trm.evaluate(
        relevant, scores, ["arp"], inputs="catalog", average="macro", per_query=True
    )
    assert values["arp"].tolist() == [1, size, 100.5, size - 1.5]
    hits = trm.evaluate(
        relevant, scores, ["hit_rate@100"], inputs="catalog", per_query=True
    )
    assert hits["hit_rate@100"] == pytest.approx([1, 0, 0.5, 0], rel=1e-12)


@pytest.mark.parametrize("relevant", [[0], [[0, -1]]])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_ranks_below_the_lowest_number(relevant, dtype):
    lowest = np.finfo(dtype).min
    scores = np.array([[lowest, np.nan, -np.inf]], dtype)
    values = trm.evaluate(relevant, scores, ["mrr", "auc"], inputs="catalog")
    assert values == {"mrr": 1, "auc": 1}
    assert trm.evaluate([[1, 0, 0]], scores, ["mrr", "auc"]) == values


def test_catalogs_with_many_relevant_items_need_little_memory():
    """A tensor of items times relevant items, [16, 20000, 500], would take 1.3 GB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    scores = np.random.default_rng(0).normal(size=(16, 20_000)).astype("f4")
    relevant = np.argsort(scores, axis=1)[:, -1000::2]
    values = trm.evaluate(relevant, scores, ["auc", "recall@1000"], inputs="catalog")
    assert values["recall@1000"] == 1.0
    # Relevant items have ranks 2, 4, ... 1000, so i others are above the i-th one.
    above = np.arange(1, 501)
    assert values["auc"] == pytest.approx(1 - above.mean() / 19_500, rel=1e-12)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 500_000  # kB


@pytest.mark.parametrize(
    ("inputs", "y_true", "y_pred"),
    [
        ("ids", [[1, -2]], [[1, 2]]),
        ("ids", [[1, 2]], [[1, -1, 2]]),
        ("catalog", [3], [[0.1, 0.2, 0.3]]),
        ("catalog", [-2], [[0.1, 0.2, 0.3]]),
        ("catalog", [[0, 3]], [[0.1, 0.2, 0.3]]),
        ("catalog", [1], [[0.1]]),
        ("catalog", {"ids": [1], "exclude": [[3]]}, [[0.1, 0.2, 0.3]]),
    ],
)
def test_invalid_ids_make_the_result_nan(inputs, y_true, y_pred):
    # Graphs do not check values, so invalid values show up in the result.
    metric = trm.MeanReciprocalRank(inputs=inputs)
    tf.function(update_function(metric))(
        {name: np.array(ids) for name, ids in y_true.items()}
        if isinstance(y_true, dict)
        else np.array(y_true),
        np.array(y_pred),
    )
    with pytest.warns(trm.RankingWarning, match="is NaN, since an update received"):
        assert np.isnan(metric.result())
    if inputs == "catalog":
        with pytest.raises(ValueError, match="Ids must be positions in the catalog"):
            metric.update_state(y_true, y_pred)


def test_text_in_tensors():
    relevant, recommended = [["thé"], ["b"]], [["café", "thé"], ["b", "c"]]
    expected = trm.evaluate(relevant, recommended, ["mrr"], inputs="ids")
    assert expected == {"mrr": 3 / 4}
    for make in (tf.constant, tf.ragged.constant):
        data = make(relevant), make(recommended)
        assert trm.evaluate(*data, ["mrr"], inputs="ids") == expected
