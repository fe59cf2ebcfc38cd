"""Tests of the metrics of recommended items, by definitions that share no code."""

import collections
import itertools

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from cases import ITEM_METRICS

import tfrankmetrics as trm
from tfrankmetrics.options import ItemCategories, ItemNumbers, NumItems

ITEMS = 5
RNG = np.random.default_rng(0)
POPULARITY = RNG.uniform(0.05, 1, ITEMS)
VECTORS = RNG.normal(size=(ITEMS, 3))
CATEGORIES = ["a", "b", "a", "c", "b"]
TARGET = {"a": 0.5, "b": 0.3, "c": 0.2}
DATA = {"popularity": POPULARITY, "vectors": VECTORS, "num_items": ITEMS}
DATA |= {"categories": CATEGORIES, "target": TARGET}
BY_QUERY = ["mean_popularity", "novelty", "intra_list_diversity", "awrf"]
OVER_ALL = ["coverage", "gini", "entropy"]
# Scores with ties within and across each cutoff, NaN, and items that are not retrieved.
SCORES = [
    [1.0, 1.0, 0.0, 1.0, 0.0],
    [2.0, 1.0, 1.0, 1.0, 1.0],
    [0.0, np.nan, np.nan, 3.0, -np.inf],
    [5.0, 4.0, 3.0, 2.0, 1.0],
    [0.0] * 5,
    [-np.inf] * 5,
]


def at(names, k):
    return names if k is None else [f"{name}@{k}" for name in names]


def orders(scores):
    """All orders of the retrieved items in which no item is above a better one."""
    keys = [-1e9 if np.isnan(score) else score for score in scores]
    retrieved = [item for item, key in enumerate(keys) if key != -np.inf]
    for order in itertools.permutations(retrieved):
        if all(keys[one] >= keys[two] for one, two in itertools.pairwise(order)):
            yield [*order]


def by_definition(name, items):
    """The value of one list of items."""
    if name == "mean_popularity":
        return np.mean(POPULARITY[items])
    if name == "novelty":
        return np.mean(-np.log2(POPULARITY[items]))
    distances = [
        1 - u @ v / np.sqrt((u @ u) * (v @ v))
        for u, v in itertools.combinations(VECTORS[items], 2)
    ]
    return np.mean(distances) if distances else 0.0


def exposure_of(all_orders, k, attention=lambda rank: 1.0):
    """The mean exposure of each item over the orders of a list."""
    exposure = np.zeros(ITEMS)
    for order in all_orders:
        for rank, item in enumerate(order[:k], 1):
            exposure[item] += attention(rank) / len(all_orders)
    return exposure


def fairness(exposure):
    """1 minus the Jensen-Shannon divergence from the target, term by term."""
    shares, value = collections.Counter(), 1.0
    for category, amount in zip(CATEGORIES, exposure, strict=True):
        shares[category] += amount / exposure.sum()
    for category, wanted in TARGET.items():
        middle = (shares[category] + wanted) / 2
        for share in (shares[category], wanted):
            value -= share * np.log2(share / middle) / 2 if share else 0
    return value


@pytest.mark.parametrize("k", [1, 2, 3, 4, None])
def test_values_by_query_are_means_over_all_orders(k):
    found = trm.evaluate(
        [[0]] * len(SCORES),
        SCORES,
        at(BY_QUERY, k),
        inputs="catalog",
        per_query=True,
        **{o: value for o, value in DATA.items() if o != "num_items"},
    )
    for query, scores in enumerate(SCORES):
        all_orders = [*orders(scores)]
        for name, values in zip(BY_QUERY, found.values(), strict=True):
            if not all_orders[0]:
                assert np.isnan(values[query])
            elif name == "awrf":
                exposure = exposure_of(all_orders, k, lambda r: 1 / np.log2(1 + r))
                assert values[query] == pytest.approx(fairness(exposure), abs=1e-12)
            else:
                mean = np.mean([by_definition(name, each[:k]) for each in all_orders])
                assert values[query] == pytest.approx(mean, abs=1e-12)


def values_over_all(exposure):
    """Coverage, the Gini coefficient by pairs of items, and entropy."""
    shares = exposure / exposure.sum()
    pairs = np.abs(shares[:, np.newaxis] - shares).sum()
    shown = shares[shares > 0]
    entropy = -(shown * np.log2(shown)).sum()
    return [np.mean(exposure > 0), pairs / (2 * ITEMS), entropy]


@pytest.mark.parametrize("k", [1, 3, None])
@pytest.mark.parametrize(
    "weights", [None, [1, 2, 3, 0, 5, 6]], ids=["plain", "weights"]
)
def test_values_over_all_queries_come_from_the_mean_exposure(k, weights):
    factors = np.ones(len(SCORES)) if weights is None else weights
    exposures = np.array(
        [
            factor * exposure_of([*orders(scores)], k)
            for factor, scores in zip(factors, SCORES, strict=True)
        ]
    )
    slices = np.array(["x", "y", "x", "y", "x", "y"])
    found = trm.evaluate(
        [[0]] * len(SCORES),
        SCORES,
        at(OVER_ALL, k),
        inputs="catalog",
        sample_weight=weights,
        by=slices,
    )
    expected = values_over_all(exposures.sum(axis=0))
    assert [*found.whole.values()] == pytest.approx(expected, abs=1e-12)
    expected = values_over_all(exposures[slices == "x"].sum(axis=0))
    assert [*found["x"].values()] == pytest.approx(expected, abs=1e-12)


NAMES = at([*OVER_ALL, *BY_QUERY, "mrr"], 2)
RECOMMENDED = [[0, 1, 3], [1, 0, -1], [4, 2, 3]]


def test_ids_in_fit_equal_evaluate():
    """Also with the functions' other forms of the same data."""
    relevant = [[3], [0], [2]]
    expected = trm.evaluate(relevant, RECOMMENDED, NAMES, inputs="ids", **DATA)
    metric = trm.RankingMetrics(NAMES, inputs="ids", num_queries=True, **DATA)
    for start in (0, 1):
        metric.update_state(relevant[start::2], RECOMMENDED[start::2])
    found = {name: float(value) for name, value in metric.result().items()}
    assert found.pop("num_queries") == 3
    assert found == pytest.approx(expected, abs=1e-6)

    parts = [trm.RankingMetrics(NAMES, inputs="ids", **DATA) for _ in range(2)]
    for start, part in enumerate(parts):
        part.update_state(relevant[start::2], RECOMMENDED[start::2])
    parts[0].merge_state(parts[1:])
    merged = {name: float(value) for name, value in parts[0].result().items()}
    assert merged == pytest.approx(expected, abs=1e-6)

    names = "abcde"
    keyed = {
        option: dict(zip(names, value, strict=True)) if len(value) == ITEMS else value
        for option, value in DATA.items()
        if option != "num_items"
    }
    keyed["popularity"] = pd.Series(keyed["popularity"])[::-1]
    lists = [[names[item] for item in row if item >= 0] for row in RECOMMENDED]
    of_text = [[names[item] for item in row] for row in relevant]
    again = trm.evaluate(of_text, lists, NAMES, inputs="ids", num_items=ITEMS, **keyed)
    assert again == pytest.approx(expected, abs=1e-12)
    run = {f"q{number}": row for number, row in enumerate(lists)}
    qrels = {f"q{number}": row for number, row in enumerate(of_text)}
    run["unjudged"] = ["e", "d"]
    again = trm.evaluate_run(qrels, run, NAMES, num_items=ITEMS, **keyed)
    assert dict(again) == pytest.approx(expected, abs=1e-12)


def test_names_beside_objects_in_a_run_of_trec_eval():
    """Each counts every exposure once, with the ties of its own scores."""
    own = trm.ExposureGini(k=1, num_items=4, name="own")
    found = trm.evaluate_run(
        {"q": {"a": 1}, "r": {"a": 1}},
        {"q": {"a": 1.0, "b": 1.0}, "r": {"a": 1 + 1e-9, "b": 1.0}},
        ["mrr", "gini@1", own],
        convention="trec_eval",
        num_items=4,
    )
    # At rank 1, a and b have 1.5 and 0.5 queries in float64, and one each in float32.
    assert found["own"] == pytest.approx((1 * 0.5 + 3 * 1.5) / (4 * 2))
    assert found["gini@1"] == pytest.approx((1 * 1 + 3 * 1) / (4 * 2))
    assert found["mrr"] == (1 / 2 + 1 / 2) / 2


def test_rows_equal_lists():
    queries = np.repeat(np.arange(len(SCORES)), ITEMS)
    rows = {
        "query": queries,
        "label": queries % 2,
        "score": np.ravel(SCORES),
        "item": np.tile(np.arange(ITEMS), len(SCORES)),
    }
    shuffled = pd.DataFrame(rows).sample(frac=1, random_state=0)
    names = NAMES[:-1]
    found = trm.evaluate_rows(
        "query", "label", "score", names, data=shuffled, item_ids="item", **DATA
    )
    expected = trm.evaluate(
        [[0]] * len(SCORES), SCORES, names, inputs="catalog", **DATA
    )
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    "jit_compile",
    [False, pytest.param(True, marks=pytest.mark.slow("compiles a program with XLA"))],
)
def test_graphs_equal_eager_calls(jit_compile):
    metric = trm.RankingMetrics(NAMES, inputs="catalog", **DATA)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 1], tf.int64),
            tf.TensorSpec([None, ITEMS] if jit_compile else [None, None], tf.float32),
        ],
        jit_compile=jit_compile,
    )
    def step(relevant, scores):
        metric.update_state(relevant, scores)

    for rows in (slice(0, 2), slice(2, 6)):
        step([[0]] * len(SCORES[rows]), SCORES[rows])
    expected = trm.evaluate(
        [[0]] * len(SCORES), SCORES, NAMES, inputs="catalog", **DATA
    )
    found = {name: float(value) for name, value in metric.result().items()}
    assert found == pytest.approx(expected, abs=1e-6)


def test_an_unknown_item_in_a_graph_makes_the_result_nan():
    metric = trm.Novelty(popularity=[0.5, 0.5])

    @tf.function
    def step():
        metric.update_state([[0]], [[0, 2]])

    step()
    with pytest.warns(trm.RankingWarning):
        assert np.isnan(metric.result())


@pytest.mark.parametrize("name", ITEM_METRICS)
def test_a_config_keeps_the_data(name):
    cls = ITEM_METRICS[name].cls
    options = {o: v for o, v in DATA.items() if o in cls.fields}
    metric = cls(k=2, **options)
    again = cls.from_config(metric.get_config())
    for each in (metric, again):
        each.update_state([[3], [0], [2]], RECOMMENDED)
    assert float(metric.result()) == float(again.result())
    assert again.measure == metric.measure


@pytest.mark.parametrize("kind", [np.asarray, tf.constant])
@pytest.mark.parametrize("ties", ["expected", "stable"])
@pytest.mark.parametrize("chunk_size", [None, 7])
def test_retrieval_equals_the_scores_of_the_whole_catalog(kind, ties, chunk_size):
    """Whole numbers are often tied, also at a cutoff, and across chunks."""
    rng, size = np.random.default_rng(3), 40
    queries, candidates = (rng.integers(-1, 2, (n, 3)).astype("f") for n in (9, size))
    relevant = rng.integers(0, size, (9, 1))
    truth = {"ids": relevant, "exclude": (relevant + [1, 2, 3]) % size}
    options = {
        "popularity": rng.uniform(0.1, 1, size),
        "vectors": rng.normal(size=(size, 2)),
        "categories": rng.integers(0, 2, size),
        "target": {0: 0.5, 1: 0.5},
        "by": rng.integers(0, 2, 9),
        "sample_weight": rng.uniform(0, 1, 9),
        "ties": ties,
    }
    names = [*at([*OVER_ALL, *BY_QUERY], 4), "mrr", "coverage@1"]
    scores = queries @ candidates.T
    expected = trm.evaluate(truth, scores, names, inputs="catalog", **options)
    vectors, sizes = (kind(queries), kind(candidates)), {"chunk_size": chunk_size}
    found = trm.evaluate_retrieval(
        *vectors, truth, names, batch_size=4, **sizes, **options
    )
    assert found.whole == pytest.approx(expected.whole, abs=1e-12)
    for key in expected:
        assert found[key] == pytest.approx(expected[key], abs=1e-12)


def test_a_user_declares_a_metric_over_all_queries():
    def reciprocal(lists, *, power):
        return 1 / lists.ranks**power

    def largest_share(exposure):
        shown, xp = exposure.of_items, exposure.xp
        return xp.max(shown, axis=-1) / xp.sum(shown, axis=-1)

    @trm.metric("share_of_most_shown", formula=reciprocal, value=largest_share)
    class LargestShare(trm.ItemMetric):
        """The share of the most exposed item."""

        num_items: NumItems = None
        power: float = 1.0

    ids = [[0], [0]], [[0, 1], [0, 2]]
    squared = LargestShare(num_items=3, power=2.0, name="squared")
    found = trm.evaluate(
        *ids, ["share_of_most_shown", squared], inputs="ids", num_items=3
    )
    assert found == {
        "share_of_most_shown": pytest.approx(2 / 3),
        "squared": pytest.approx(2 / (2 + 2 / 4)),
    }
    metrics = trm.RankingMetrics(
        [LargestShare(num_items=3), squared], inputs="ids", dtype="float64"
    )
    metrics.update_state(*ids)
    assert metrics.result() == found


IDS = ([[1]], [[1, 2]])


def test_a_formula_may_compute_with_the_data():
    def share_below(lists, *, price, limit):
        is_cheap = trm.DataGain(price.values < limit)
        found = lists.sum_to_cutoffs(lists.expected(is_cheap))
        return lists.xp.divide_no_nan(found, lists.num_to_cutoffs)

    @trm.metric("cheap_share", formula=share_below)
    class CheapShare(trm.ItemMetric):
        """The share of the items that costs less than a limit."""

        price: ItemNumbers = None
        limit: float = 10.0

    price = {"tea": 5, "milk": 20, "rice": 8}
    found = trm.evaluate(
        [["tea"]],
        [["milk", "rice", "tea"]],
        ["cheap_share@2"],
        inputs="ids",
        price=price,
    )
    assert found == {"cheap_share@2": 0.5}
    metric = CheapShare(k=3, price=[5, 20, 8], limit=9.0, inputs="ids")

    @tf.function
    def update():
        metric.update_state(tf.constant([[0]]), tf.constant([[1, 2, 0]]))

    update()
    assert float(metric.result()) == pytest.approx(2 / 3)


def test_a_gain_may_be_a_vector():
    def largest_share(lists, *, categories):
        one_hot = np.eye(len(categories.names))[categories.values]
        counts = lists.sum_to_cutoffs(lists.expected(trm.DataGain(one_hot)))
        return lists.xp.max(counts, axis=2) / lists.num_to_cutoffs

    @trm.metric("largest_share_of_a_category", formula=largest_share)
    class LargestShareOfACategory(trm.ItemMetric):
        """The share of the category with the most items, in the mean."""

        categories: ItemCategories = None

    metric = LargestShareOfACategory(k=3, inputs="catalog", categories=list("abbca"))
    # One "a", and two thirds of the tied "b", "b" and "c".
    metric.update_state([[0]], [[2.0, 1.0, 1.0, 1.0, 0.0]])
    assert float(metric.result()) == pytest.approx(4 / 3 / 3)


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["coverage"], {}, "requires the number of items"),
        (["coverage"], {"num_items": 2}, r"has data for 2 items.*recommended id 2"),
        (["coverage"], {"num_items": 0}, "an int of at least 1"),
        (["novelty"], {}, "a number above 0 and at most 1"),
        (["novelty"], {"popularity": [0.5, 0, 1]}, "a number above 0 and at most 1"),
        (["novelty"], {"popularity": {1: 0.5}}, "each recommended item.*item 2"),
        (["mean_popularity"], {"popularity": [1, np.nan, 2]}, "a finite number"),
        (["intra_list_diversity"], {"vectors": [1, 2, 3]}, r"\[V, d\]"),
        (["awrf"], {"categories": "abc", "target": {"a": 1}}, "a category for each"),
        (["awrf"], {"categories": ["a", "b", "b"], "target": {"a": 0.5}}, "which add up to 1"),
        (["awrf"], {"categories": ["a", "b", "b"], "target": {"z": 1}}, "'z', which is not the category of any item"),
        (["coverage"], {"num_items": 3, "per_query": True}, "one value over all"),
        (["coverage"], {"num_items": 3, "ties": "best"}, "one of 'expected'"),
    ],
    ids=str,
)  # fmt: skip
def test_mistakes(names, options, message):
    with pytest.raises(ValueError, match=message):
        trm.evaluate(*IDS, names, inputs="ids", **options)


def test_metrics_of_items_need_items():
    with pytest.raises(ValueError, match="require item ids"):
        trm.evaluate([[1, 0]], [[2, 1]], ["coverage"], num_items=2)
    with pytest.raises(ValueError, match="require item ids"):
        trm.evaluate_rows([1, 1], [1, 0], [2, 1], ["coverage"], num_items=2)
    with pytest.raises(ValueError, match="must be by id"):
        run = {"q": ["a", "b"]}
        trm.evaluate_run({"q": ["a"]}, run, ["novelty"], popularity=[0.5, 0.5])
    with pytest.raises(ValueError, match="data for each item of the catalog"):
        scores = [[1.0, 2.0]]
        trm.evaluate([0], scores, ["novelty"], inputs="catalog", popularity=[1.0])
    with pytest.raises(ValueError, match="supports metrics of relevance only"):
        trm.explain(*IDS, "coverage", 0, inputs="ids", num_items=3)
    with pytest.raises(ValueError, match="Pass num_items=V"):
        trm.CatalogCoverage(k=3)


def test_labels_with_item_ids_equal_a_catalog():
    """The items of each list in another order, with padding among them."""
    rng = np.random.default_rng(1)
    ids = np.array([rng.permutation(ITEMS) for _ in SCORES])
    scores = np.take_along_axis(np.array(SCORES), ids, axis=1)
    labels = (ids == 3).astype(int)
    padded = {
        "labels": np.insert(labels, 2, -1, axis=1),
        "item_ids": np.insert(ids, 2, 0, axis=1),
    }
    with_padding = np.insert(scores, 2, 9.0, axis=1)
    truth = [[3]] * len(SCORES)
    expected = trm.evaluate(truth, SCORES, NAMES, inputs="catalog", **DATA)
    found = trm.evaluate(padded, with_padding, NAMES, **DATA)
    assert found == pytest.approx(expected, abs=1e-12)
    metric = trm.RankingMetrics(NAMES, **DATA)

    @tf.function
    def step(labels, ids, scores):
        metric.update_state({"labels": labels, "item_ids": ids}, scores)

    step(padded["labels"], padded["item_ids"], with_padding)
    logged = {name: float(value) for name, value in metric.result().items()}
    assert logged == pytest.approx(expected, abs=1e-6)
    with pytest.raises(ValueError, match="of the shape of the labels"):
        trm.evaluate({"labels": labels, "item_ids": ids[:, :2]}, scores, NAMES, **DATA)
    metric = trm.RankingMetrics(["coverage@2"], num_items=9)
    for evaluate in (
        metric.update_state,
        lambda *data: trm.evaluate(*data, ["coverage@2"], num_items=9),
    ):
        data = {"labels": [[0, 1, -1]], "item_ids": [[-1, 4, -1]]}
        with pytest.raises(ValueError, match=r"must be 0 to 8\. Received: .* -1\."):
            evaluate(data, [[3.0, 2, 1]])


def test_callbacks_report_the_values_of_functions():
    rng = np.random.default_rng(0)
    inputs, targets = rng.normal(size=(12, 3)).astype("float32"), np.arange(12) % ITEMS
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(ITEMS)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss)
    slices = ["a", "b"] * 6
    lists = trm.EvaluateLists(
        inputs, targets, NAMES, inputs="catalog", by=slices, **DATA
    )
    logs = model.fit(
        inputs, targets, batch_size=5, callbacks=[lists], verbose=0
    ).history
    scores = model.predict(inputs, verbose=0)
    expected = trm.evaluate(
        targets[:, np.newaxis], scores, NAMES, inputs="catalog", by=slices, **DATA
    )
    for name in NAMES:
        assert logs[f"val_{name}"][0] == pytest.approx(expected.whole[name], abs=1e-6)
        of_slice = logs[f"val_{name}/slice:b"][0]
        assert of_slice == pytest.approx(expected["b"][name], abs=1e-6)


def test_equal_data_under_other_names_are_other_data():
    """Their metrics share a ranking, and compiled calls, but no value."""
    metrics = [
        trm.AttentionWeightedRankFairness(
            k=1, categories=categories, target={"b": 1.0}, name="-".join(categories)
        )
        for categories in (["a", "b"], ["b", "c"])
    ]
    found = trm.evaluate([[0]], [[0]], metrics, inputs="ids")
    assert found == {"a-b": 0.0, "b-c": 1.0}


def test_lists_without_items_are_excluded():
    options = {"inputs": "ids", **DATA}
    found = trm.evaluate([[0], [1]], [[], []], NAMES[:-1], **options)
    np.testing.assert_array_equal([*found.values()], np.nan)
    metric = trm.RankingMetrics(NAMES[:-1], **options)
    metric.update_state([[0], [1]], np.zeros((2, 0), np.int64))
    assert np.isnan([*metric.result().values()]).all()


def test_data_by_id_and_in_order_are_not_mixed():
    with pytest.raises(ValueError, match="Received: both, a dict and an array"):
        trm.evaluate(
            *IDS,
            ["mean_popularity", "intra_list_diversity"],
            inputs="ids",
            popularity=[1, 2, 3],
            vectors={2: [1, 0], 1: [0, 1]},
        )
    metric = trm.MeanPopularity(popularity={1: 5, 2: 6})
    assert trm.evaluate(*IDS, [metric], inputs="ids") == {"mean_popularity": 5.5}
    with pytest.raises(ValueError, match="in the order of their ids"):
        metric.update_state(*IDS)
    with pytest.raises(ValueError, match="the same number of items"):
        trm.evaluate(
            *IDS,
            ["mean_popularity", "coverage"],
            inputs="ids",
            popularity=[1, 2, 3],
            num_items=4,
        )
    names = ["mean_popularity", "intra_list_diversity"]
    data = {"popularity": {1: 1, 2: 2}, "vectors": {0: [1], 1: [1], 2: [2]}}
    both = [
        trm.evaluate(*IDS, order, inputs="ids", **data)
        for order in (names, names[::-1])
    ]
    assert both[0] == both[1] == {"mean_popularity": 1.5, "intra_list_diversity": 0.0}


@pytest.mark.parametrize(
    ("items", "message"),
    [([0, -1], "at least 0"), (["a", None], "missing one in row 1")],
)
def test_item_ids_of_rows_are_ids(items, message):
    with pytest.raises(ValueError, match=message):
        trm.evaluate_rows(
            [0, 0], [1, 0], [2, 1], ["coverage"], item_ids=items, num_items=9
        )
