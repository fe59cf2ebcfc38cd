"""Tests that an explanation adds up to the value, for every metric and input format."""

import itertools
import math
import typing
from typing import Literal

import numpy as np
import pytest
from cases import (
    CASES,
    METRICS,
    SUBTOPIC_METRICS,
    make_metric,
    metrics_supporting,
    random_lists,
    with_cutoffs,
)
from helpers import judged_without_mask

import tfrankmetrics as trm

pytestmark = judged_without_mask


def read(explanation, column):
    """What the formula reads, without the rows that have no rank above the cutoff."""
    values = explanation.columns[column]
    return values[~np.isnan(values)]


def assert_adds_up(explanation, value):
    """The value equals that of `evaluate`, and the contributions add up to it."""
    assert explanation.value == pytest.approx(value, rel=1e-14, abs=1e-14, nan_ok=True)
    running = read(explanation, "running value")
    if not math.isnan(value) and len(running):
        assert running[-1] == pytest.approx(value, rel=1e-12, abs=1e-13)
        contributions = read(explanation, "contribution")
        assert np.diff(running) == pytest.approx(contributions[1:], abs=1e-13)


def lists_for(name, **options):
    """Random lists with ties, with items that were not retrieved, and with NaN."""
    labels, scores = random_lists(7, queries=4, size=6, ties=True, **options)
    scores[0] = 0.5
    scores[1, 3:] = -np.inf
    scores[2, ::2] = np.nan
    if name in SUBTOPIC_METRICS:
        others = np.random.default_rng(9).permuted(labels, axis=1)
        labels = np.stack([labels, np.maximum(others, 0), labels - 1], axis=2)
    return labels, scores


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "item-weights"])
def test_every_value_is_explained(case, weighted):
    labels, scores = lists_for(case.name)
    weights = np.random.default_rng(8).integers(1, 4, scores.shape)
    sample_weight = weights if weighted else None
    for _, k in with_cutoffs([case], (4, None)):
        metric = case.metric(k)
        values = trm.evaluate(
            labels, scores, [metric], sample_weight=sample_weight, per_query=True
        )
        for query, value in enumerate(values[metric.name]):
            explanation = trm.explain(
                labels, scores, metric, query, sample_weight=sample_weight
            )
            assert_adds_up(explanation, value)
            weight = values.weights[metric.name][query]
            assert explanation.weight == pytest.approx(weight, rel=1e-14)


ORDERS = [
    (name, ties)
    for name in METRICS
    for ties in typing.get_args(METRICS[name].types["ties"])
    if ties != "expected"
]


@pytest.mark.parametrize(("name", "ties"), ORDERS)
def test_every_order_of_ties_is_explained(name, ties):
    metric = make_metric(name, 4, ties=ties)
    labels, scores = lists_for(name)
    values = trm.evaluate(labels, scores, [metric], per_query=True)[metric.name]
    for query, value in enumerate(values):
        explanation = trm.explain(labels, scores, metric, query)
        assert_adds_up(explanation, value)
        assert "tied ranks" not in explanation.columns


@pytest.mark.parametrize("name", metrics_supporting("ids"))
@pytest.mark.parametrize("duplicates", ["first", "all"])
def test_ids_are_explained(name, duplicates):
    relevant = [["a", "b"], ["x"], [], ["b", "c", "d"]]
    recommended = [["a", "c", "b", "a"], ["a", "b"], ["a"], ["d", "d", "z", "c"]]
    for _, k in with_cutoffs([name], (2, None)):
        metric, options = make_metric(name, k), {"duplicates": duplicates}
        values = trm.evaluate(
            relevant, recommended, [metric], inputs="ids", per_query=True, **options
        )[metric.name]
        for query, value in enumerate(values):
            explanation = trm.explain(
                relevant, recommended, metric, query, inputs="ids", **options
            )
            assert_adds_up(explanation, value)
    # The last query: its ranks, and the relevant item that was not recommended.
    items = explanation.columns["item"].tolist()
    assert items[: len(recommended[-1])] == recommended[-1]
    assert items[len(recommended[-1]) :] == ["b"]
    assert "score" not in explanation.columns


OF_CATALOGUES = [
    (name, ties)
    for name in metrics_supporting("catalog")
    for ties in typing.get_args(METRICS[name].types["ties"])
]


@pytest.mark.parametrize(("name", "ties"), OF_CATALOGUES)
def test_catalogs_and_retrieval_are_explained(name, ties):
    rng = np.random.default_rng(3)
    queries = rng.integers(-2, 3, (4, 3)).astype(float)
    candidates = rng.integers(-2, 3, (15, 3)).astype(float)
    relevant, exclude = [[1, 2], [14], [0, 5, 9], [7]], [[3], [], [5, 6], [14]]
    scores = queries @ candidates.T
    for _, k in with_cutoffs([name], (3, None)):
        metric = make_metric(name, k, ties=ties)
        truth = {"ids": relevant, "exclude": exclude}
        values = trm.evaluate(
            truth, scores, [metric], inputs="catalog", per_query=True
        )[metric.name]
        for query, value in enumerate(values):
            explanation = trm.explain(truth, scores, metric, query, inputs="catalog")
            assert_adds_up(explanation, value)
        arguments = queries, candidates, relevant
        found = trm.evaluate_retrieval(
            *arguments, [metric], exclude=exclude, per_query=True
        )[metric.name]
        for query, value in enumerate(found):
            explanation = trm.explain_retrieval(
                *arguments, metric, query, exclude=exclude
            )
            assert_adds_up(explanation, value)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_an_explanation_of_retrieval_counts_an_excluded_item_as_missed(dtype):
    """Also the last of the relevant items."""
    vectors = np.array([[3], [2], [1]], dtype)
    arguments, exclude = (vectors[2:], vectors, [[0, 2]]), [[2]]
    found = trm.evaluate_retrieval(*arguments, ["recall@3"], exclude=exclude)
    explained = trm.explain_retrieval(*arguments, "recall@3", exclude=exclude)
    assert explained.value == found["recall@3"] == 0.5


RANKED = ["ndcg", "dcg", "map", "mrr", "recall", "hit_rate", "err", "rbp"]
WHOLE_LIST = ["arp", "auc", "opa", "bpref"]  # only of all tied ranks together


@pytest.mark.parametrize("name", [*RANKED, *WHOLE_LIST])
def test_contributions_under_ties_are_means_over_the_orders(name):
    """Items 1 to 3 are tied. Each order of them is explained, with other scores."""
    labels = np.array([2.0, 0, 1, 3, 0, 1])
    metric = make_metric(name, 4)
    explanation = trm.explain(labels, np.array([9, 5, 5, 5, 2, 1]), metric)
    orders = []
    for order in itertools.permutations([1, 2, 3]):
        scores = np.array([9.0, 0, 0, 0, 2, 1])
        scores[[*order]] = [7, 6, 5]
        orders.append(read(trm.explain(labels, scores, metric), "contribution"))
    mean, ours = np.mean(orders, axis=0), read(explanation, "contribution")
    if name in WHOLE_LIST:
        mean, ours = (np.append(each[1:4].sum(), each[4:]) for each in (mean, ours))
    assert ours == pytest.approx(mean, rel=1e-12)
    assert explanation.columns["tied ranks"][:4].tolist() == ["", *["2-4"] * 3]


def test_ndcg_by_hand():
    """NDCG@3 with linear gains: 3 / 1 + 2 / log2(3) + 0 / 2, over the ideal DCG."""
    explanation = trm.explain([2, 3, 0, 1], [5, 9, 4, 1], "ndcg@3", gain="linear")
    ideal = 3 / math.log2(2) + 2 / math.log2(3) + 1 / math.log2(4)
    assert explanation.columns["item"].tolist() == [1, 0, 2, 3]
    assert explanation.columns["rank"].tolist() == [1, 2, 3, 4]
    assert explanation.columns["gain"].tolist() == [3, 2, 0, 1]
    discounts = [1 / math.log2(2), 1 / math.log2(3), 1 / math.log2(4), math.nan]
    assert explanation.columns["discount"] == pytest.approx(discounts, nan_ok=True)
    parts = [3 / ideal, 2 / math.log2(3) / ideal, 0, math.nan]
    assert explanation.columns["contribution"] == pytest.approx(parts, nan_ok=True)
    assert explanation.rules == {"ndcg@3": "contribution = gain * discount / 4.7619"}


def test_auc_and_opa_count_the_pairs_of_each_item():
    """Relevant at ranks 1 and 4 of 5: 3 + 1 of 6 pairs are in order."""
    labels, scores = [1, 0, 0, 1, 0], [5, 4, 3, 2, 1]
    for name in ("auc", "opa"):
        parts = trm.explain(labels, scores, name).columns["contribution"]
        assert parts == pytest.approx([3 / 6, 0, 0, 1 / 6, 0])


def test_arp_starts_with_what_was_not_retrieved():
    """Labels 1 and 1 at rank 1 and in the last place, rank 3: (1 + 3) / 2."""
    explanation = trm.explain([1, 0, 1], [3, 2, -math.inf], "arp")
    assert explanation.value == 2
    assert explanation.columns["contribution"] == pytest.approx(
        [0.5, 0, math.nan], nan_ok=True
    )
    assert np.isnan(explanation.columns["rank"][-1])
    assert "starts at 1.5000, the part of the items without a rank" in str(explanation)


def test_rows_are_explained():
    rng = np.random.default_rng(0)
    table = {
        "query": rng.integers(0, 4, 40).astype(str),
        "label": rng.integers(-1, 3, 40),
        "score": rng.integers(0, 5, 40),
        "weight": rng.integers(1, 3, 40),
        "product": [f"p{row}" for row in range(40)],
    }
    columns = "query", "label", "score"
    for metric in ("ndcg@3", "judged@5", "bpref", "map"):
        values = trm.evaluate_rows(
            *columns, [metric], data=table, sample_weight="weight", per_query=True
        )
        for query, value in zip(values["query"], values[metric]):
            explanation = trm.explain_rows(
                *columns,
                metric,
                query,
                data=table,
                sample_weight="weight",
                item_ids="product",
            )
            assert_adds_up(explanation, value)
    rows = [int(item[1:]) for item in explanation.columns["item"]]
    assert set(table["query"][rows]) == {query}
    groups = trm.explain_rows(None, [1, 0, 1], [3, 2, 1], "mrr", 1, groups=[1, 2])
    assert groups.columns["item"].tolist() == [1, 2]
    assert groups.value == 0.5
    number = trm.explain_rows(np.array([7]), [1], [1], "mrr", np.int64(7))
    assert "of query 7:" in str(number)


def test_runs_are_explained_in_the_order_of_trec_eval():
    qrels = {"q": {"a": 1, "c": 2, "d": 0}, "empty": {"x": 1}}
    run = {"q": {"a": 1.0, "b": 1.0, "c": 0.5, "e": 1.0 + 1e-9}}
    for options in ({}, {"convention": "trec_eval"}, {"unjudged": "drop"}):
        values = trm.evaluate_run(qrels, run, ["ndcg@3"], per_query=True, **options)
        for query, value in zip(values["query"], values["ndcg@3"]):
            explanation = trm.explain_run(qrels, run, "ndcg@3", query, **options)
            assert_adds_up(explanation, value)
    both = trm.explain_run(qrels, run, "ndcg@3", "q", versus="trec_eval")
    # In float32, e is tied with a and b; the later id is first.
    assert both.columns["item"].tolist() == ["e", "a", "b", "c"]
    assert both.columns["item (trec_eval)"].tolist() == ["e", "b", "a", "c"]
    trec = trm.explain_run(qrels, run, "ndcg@3", "q", convention="trec_eval")
    made = trm.NDCG(3, convention="trec_eval", name="ndcg@3 (trec_eval)")
    alone = trm.explain_run(qrels, run, made, "q")
    assert alone.columns["item"].tolist() == trec.columns["item"].tolist()
    assert alone.value == trec.value
    of_objects = trm.explain_run(qrels, run, trm.NDCG(3), "q", versus=made)
    assert of_objects.values == both.values
    assert both.values == {
        "ndcg@3": trm.explain_run(qrels, run, "ndcg@3", "q").value,
        "ndcg@3 (trec_eval)": trec.value,
    }
    label = trec.columns["label"]
    assert np.isnan(label[trec.columns["item"] == "e"]).all()
    assert "unjudged" in str(trec)
    lost = trm.explain_run(qrels, run, "ndcg@3", "empty")
    assert lost.value == 0
    assert lost.columns["item"].tolist() == ["x"]


def test_each_item_has_one_row_in_two_conventions():
    """trec_eval orders the items in another way: also those that are missing."""
    qrels = {"q": {"a": 1, "b": 0, "c": 2, "d": 1, "e": 3}}
    run = {"q": {"b": 9.5, "a": 8.1, "z": 0.3}}
    both = trm.explain_run(qrels, run, "ndcg", "q", versus="trec_eval")
    assert both.columns["item"].tolist() == ["b", "a", "z", "c", "d", "e"]
    assert np.isnan(both.columns["rank"][3:]).all()
    assert "item (trec_eval)" not in both.columns
    assert str(both).count("unjudged") == 1
    cutoffs = trm.explain([3, 0, 1], [3, 2, 1], trm.NDCG(k=1), versus=trm.NDCG(k=2))
    assert cutoffs.columns["label"].tolist() == [3, 0, 1]
    assert "They differ in cutoff (1 or 2)" in str(cutoffs)
    assert "unjudged" not in str(cutoffs)
    one, two = (trm.RecallAtK(k=k) for k in (1, 2))
    for labels, differ in (
        ([1, 0, 1], ""),
        ([1, 1, 0], "; the values differ from rank 2 on"),
    ):
        found = trm.explain(labels, [3, 2, 1], one, versus=two)
        assert f"They differ in cutoff (1 or 2){differ}." in str(found)
    metrics = trm.explain([3, 0, 1], [3, 2, 1], "mrr", versus=trm.DCG())
    assert "They are different metrics; the values differ from rank 1 on." in str(
        metrics
    )


def test_nan_is_tied_only_with_nan():
    untied = trm.explain([1, 0], [math.nan, 2.0], "ndcg@2")
    assert "tied ranks" not in untied.columns
    tied = trm.explain([0, 1, 0], [1.0, math.nan, math.nan], "mrr")
    assert tied.columns["tied ranks"].tolist() == ["", "2-3", "2-3"]
    infinite = trm.explain([0, 1], [math.inf, 1.0], "mrr")
    assert "tied ranks" not in infinite.columns


def test_the_running_value_of_an_empty_list_is_its_value():
    for empty, value in (("zero", 0.0), ("one", 1.0)):
        explanation = trm.explain([0, 0], [2, 1], "ndcg", empty=empty)
        assert explanation.value == value
        assert explanation.columns["running value"].tolist() == [value] * 2
    text = (
        '1.0000, the value of an empty list with empty="one". The running value starts'
    )
    assert text in str(explanation)


RULES = [
    ("err@3", [2, 2, 2], "contribution = stop * 1/rank"),
    ("err@2", [1, 2], "contribution = stop * 1/rank"),
    ("pfound@3", [1, 1], "contribution = stop * look"),
    ("mrr", [1, 1], "contribution = counted * 1/rank"),
    ("dcg", [1, 1], "contribution = gain * discount"),
    ("recall@1", [1, 1], "contribution = gain / 2"),
    ("opa", [1, 0], "contribution = pairs in order"),
]


@pytest.mark.parametrize(("metric", "labels", "rule"), RULES)
def test_rules_are_those_of_the_metric(metric, labels, rule):
    scores = -np.arange(len(labels), dtype=float)
    (found,) = trm.explain(labels, scores, metric).rules.values()
    assert found == rule


def test_two_conventions_side_by_side():
    labels, scores = [1, 3, 0, 2], [4, 3, 2, 1]
    both = trm.explain(labels, scores, "ndcg@2", versus="trec_eval")
    for options, suffix in (({}, ""), ({"convention": "trec_eval"}, " (trec_eval)")):
        alone = trm.explain(labels, scores, "ndcg@2", **options)
        assert both.values[f"ndcg@2{suffix}"] == alone.value
        shown = both.columns[f"contribution{suffix}"]
        np.testing.assert_array_equal(shown, alone.columns["contribution"])
    assert "discount (trec_eval)" not in both.columns  # the same in both
    assert "gain ('exponential' or 'linear')" in str(both)
    assert "differ from rank 1 on" in str(both)
    linear = trm.NDCG(k=3, gain="linear", name="linear")
    other = trm.explain(labels, scores, trm.NDCG(k=2), versus=linear)
    assert [*other.values] == ["ndcg@2", "linear"]
    assert len(other.columns["rank"]) == 4
    assert np.isnan(other.columns["contribution"][2])
    assert other.columns["contribution (linear)"][2] == 0


def test_metrics_of_users_are_explained():
    import tensorflow as tf

    def best_rank(lists, relevance):
        """1 / the rank of the best item: no sum over the ranks."""
        at_rank = lists.expected(relevance) / lists.ranks
        best = [tf.reduce_max(at_rank[:, :k], axis=1) for k in lists.cutoffs]
        return tf.maximum(tf.stack(best, axis=1), 0)

    @trm.metric("best_rank", formula=best_rank, gain=trm.BinaryGain)
    class BestRank(trm.TopKMetric):
        """The reciprocal of the best rank, in TensorFlow."""

        relevance_threshold: float = 1.0
        ties: Literal["stable"] = "stable"

    labels, scores = [[0, 1, 1], [1, 0, 0]], [[3, 2, 1], [3, 2, 1]]
    parts = trm.explain(labels, scores, "best_rank").columns["contribution"]
    assert parts.tolist() == [0, 0.5, 0]
    values = trm.evaluate(labels, scores, ["best_rank"], per_query=True)["best_rank"]
    for query, value in enumerate(values):
        assert_adds_up(trm.explain(labels, scores, "best_rank", query), value)


def test_a_long_list_with_many_relevant_items_takes_linear_memory():
    rng = np.random.default_rng(0)
    labels = (rng.random(20_000) < 0.005).astype(int)
    explanation = trm.explain(labels, rng.random(20_000), "map")
    assert len(explanation.columns["rank"]) == 20_000
    assert str(explanation).count("\n") < 70


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: trm.explain([1, 0], [2, 1], "mrr", 1), "number of a query, from 0 to 0"),
        (lambda: trm.explain([1, 0], [2, 1], "mrr", "q"), "`query`"),
        (lambda: trm.explain([1, 0], [2, 1], "ndgc"), "Did you mean 'ndcg'"),
        (lambda: trm.explain([1, 0], [2, 1], ["mrr"]), "`metric` must be one name"),
        (lambda: trm.explain([1, 0], [2, 1], trm.NDCG(), versus="trec_eval"), "if `metric` is a name"),
        (lambda: trm.explain([1, 0], [2, 1], "mrr", versus="trec"), "`versus` must be the name of a convention"),
        (lambda: trm.explain_rows([1, 2], [1, 0], [2, 1], "mrr", np.array([1])), "the id of an evaluated query"),
        (
            lambda: trm.explain_run({"q": {"a": 1}, "p": {"b": 1}}, {"q": {"a": 1.0}}, "arp", "p"),
            "has no value for a query without results",
        ),
        (lambda: trm.explain_run({"q": ["a"]}, {"q": ["a"]}, "mrr", "p"), "such as 'q'"),
        (lambda: trm.explain_rows([1, 1], [1, 0], [2, 1], "mrr", 2), "the id of an evaluated query, such as 1"),
        (lambda: trm.explain_rows([1, 1], [1, 0], [2, 1], "mrr", 1, item_ids=["a"]), "a value for each row"),
        (lambda: trm.explain_retrieval([[1.0]], [[1.0]], [[0]], "mrr", query=1), "number of a query, from 0 to 0"),
    ],
)  # fmt: skip
def test_mistakes(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_a_query_without_predictions_has_no_retrieved_items():
    qrels, run = {"a": {"x": 1}, "b": {"x": 1}}, {"b": {"x": 0.5}}
    note = "of query {!r}: {}. None of its items was retrieved."
    missing = str(trm.explain_run(qrels, run, "rr", "a"))
    assert note.format("a", "0.0000") in missing
    assert "None of its items" not in str(trm.explain_run(qrels, run, "rr", "b"))


LABELS, SCORES = [[1, 0], [1, 0]], [[2.0, 1.0]] * 2
IDS, RANKED = ["a", "a", "b", "b"], [2, 1, 2, 1]
RUN = {"a": {"x": 1}, "b": {"x": 1}}, {"a": {"x": 1.0}, "b": {"x": 1.0}}
VECTORS = [[1.0, 0.0]] * 2, [[1.0, 0.0], [0.0, 1.0]]
UNJUDGED, WEIGHT = "it has no judged items", "its weight is 0"
EMPTY, WITHOUT = 'the list is empty (empty="skip")', "it has no relevant items"
# The function, its data and options; and why it leaves out the second query.
LEFT_OUT = {
    "padding": ("", ([[1, 0], [-1, -1]], SCORES), {}, UNJUDGED),
    "padding, with a value of empty lists": ("", ([[1, 0], [-1, -1]], SCORES), {"empty": "one"}, UNJUDGED),
    "an empty list": ("", ([[1, 0], []], [[2.0, 1.0], []]), {}, UNJUDGED),
    "a mask": ("", (LABELS, SCORES), {"mask": np.array([[True] * 2, [False] * 2])}, UNJUDGED),
    "a weight": ("", (LABELS, SCORES), {"sample_weight": [1, 0]}, WEIGHT),
    "weights of items": ("", (LABELS, SCORES), {"sample_weight": [[1, 1], [0, 0]]}, WEIGHT),
    "empty": ("", ([[1, 0], [0, 0]], SCORES), {"empty": "skip"}, EMPTY),
    "ids": ("", ([[1], []], [[1], [1]]), {"inputs": "ids", "empty": "skip"}, EMPTY),
    "a catalog": ("", ([[0], [-1]], SCORES), {"inputs": "catalog"}, WITHOUT),
    "rows": ("_rows", (IDS, [1, 0, -1, -1], RANKED), {}, UNJUDGED),
    "no rows": ("_rows", (None, [1, 0], [2, 1]), {"groups": [2, 0]}, UNJUDGED),
    "weights of rows": ("_rows", (IDS, [1, 0, 1, 0], RANKED), {"sample_weight": [1, 1, 0, 0]}, WEIGHT),
    "empty rows": ("_rows", (IDS, [1, 0, 0, 0], RANKED), {"empty": "skip"}, EMPTY),
    "an empty query of a run": ("_run", ({"a": {"x": 1}, "b": {"x": 0}}, RUN[1]), {"empty": "skip"}, EMPTY),
    "a weight in a run": ("_run", RUN, {"sample_weight": {"a": 1, "b": 0}}, WEIGHT),
    "retrieval": ("_retrieval", (*VECTORS, [[0], []]), {}, WITHOUT),
    "a weight in retrieval": ("_retrieval", (*VECTORS, [[0], [0]]), {"sample_weight": [1, 0]}, WEIGHT),
}  # fmt: skip


@pytest.mark.parametrize("case", LEFT_OUT)
def test_a_query_that_is_left_out_has_no_value(case):
    function, data, options, cause = LEFT_OUT[case]
    evaluate = getattr(trm, f"evaluate{function}")
    found = evaluate(*data, ["ndcg"], per_query=True, **options)
    assert found["ndcg"].tolist() == pytest.approx([1, math.nan], nan_ok=True)
    for query, of_query in enumerate(found.get("query", np.arange(2)).tolist()):
        explained = getattr(trm, f"explain{function}")(
            *data, "ndcg", of_query, **options
        )
        assert explained.value == pytest.approx(found["ndcg"][query], nan_ok=True)
        assert explained.weight == found.weights["ndcg"][query]
        note = f"ndcg of query {of_query!r}: left out of the mean, since {cause}."
        assert (note in str(explained)) == (query == 1)
    assert "nan" not in str(explained)


def test_a_query_that_is_left_out_has_no_first_running_value():
    explained = str(trm.explain([0, 0], [2, 1], "first_relevant_rank"))
    assert explained.endswith(
        'left out of the mean, since the list is empty (empty="skip").'
    )


def test_a_query_without_predictions_is_left_out_on_request():
    qrels, run = {"a": {"x": 1}, "b": {"x": 1}}, {"b": {"x": 0.5}}
    for metric in ("ndcg", "arp"):  # ARP has no value without results
        skip = {"missing_queries": "skip"}
        found = trm.evaluate_run(qrels, run, [metric], per_query=True, **skip)
        assert found["query"].tolist() == ["b"]
        missing = trm.explain_run(qrels, run, metric, "a", **skip)
        assert math.isnan(missing.value)
        assert missing.weight == 0
        assert "left out of the mean, since it has no predictions." in str(missing)
        assert trm.explain_run(qrels, run, metric, "b", **skip).value == 1
    with pytest.raises(ValueError, match="none for the query 'a'"):
        trm.explain_run(qrels, run, "ndcg", "b", missing_queries="error")


def test_weights_of_queries_in_a_run_and_in_retrieval():
    weighted = trm.explain_run(*RUN, "ndcg", "b", sample_weight={"a": 1, "b": 3})
    assert (weighted.value, weighted.weight) == (1, 3)
    data = *VECTORS, [[0], [0]]
    weighted = trm.explain_retrieval(*data, "ndcg", 1, sample_weight=[1, 3])
    assert (weighted.value, weighted.weight) == (1, 3)


def test_a_label_that_evaluate_refuses_is_not_explained():
    labels, scores = [[1, 0], [7, 0]], [[2.0, 1.0]] * 2
    with pytest.raises(ValueError, match=r"at most `max_label`.*in query 1 for 'err'"):
        trm.explain(labels, scores, "err", 1)
