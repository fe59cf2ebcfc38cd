"""Compares each metric on small lists with values that are written as arithmetic."""

import math
from math import log2

import numpy as np
import pytest
from cases import (
    CLASSES,
    JUDGMENT_METRICS,
    LABEL_METRICS,
    METRICS,
    empty_list_options,
    inverse_rank,
    labels_for,
    make_metric,
    plus_one,
)
from helpers import XLA, judged_without_mask, results, run_as, update_function, value

import tfrankmetrics as tfr

NAN, INF = float("nan"), float("inf")


def as_text(argument):
    """Shows lists and options in the id of a test, so that a failure names them."""
    if isinstance(argument, dict):
        return ",".join(f"{k}={getattr(v, '__name__', v)}" for k, v in argument.items())
    return str(argument)


@pytest.mark.parametrize(
    ("name", "k", "labels", "expected"),
    [
        ("ndcg", None, [1, 0, 2], (1 + 3 / log2(4)) / (3 + 1 / log2(3))),
        ("ndcg", 2, [1, 0, 2], 1 / (3 + 1 / log2(3))),
        ("ndcg", 9, [1, 0, 2], (1 + 3 / log2(4)) / (3 + 1 / log2(3))),
        ("ndcg", 2, [2, 1, 0], 1.0),
        ("ndcg", 1, [0, 1, 1], 0.0),
        ("ndcg", None, [0.5], 1.0),
        ("dcg", None, [1, 0, 2], 1 + 3 / log2(4)),
        ("dcg", 2, [0, 3, 3], 7 / log2(3)),
        ("dcg", 1, [0.5, 0], 2**0.5 - 1),
        ("map", None, [1, 0, 1], (1 / 1 + 2 / 3) / 2),
        ("map", 2, [1, 0, 1], (1 / 1) / 2),
        ("map", None, [0, 1, 1, 0, 1], (1 / 2 + 2 / 3 + 3 / 5) / 3),
        ("mrr", None, [0, 0, 1, 1], 1 / 3),
        ("mrr", 2, [0, 0, 1, 1], 0.0),
        ("mrr", 3, [0, 0, 1, 1], 1 / 3),
        ("precision", 2, [1, 0, 1], 1 / 2),
        ("precision", 9, [1, 0, 1], 2 / 3),  # min(k, items)
        ("precision", None, [1, 0, 1, 0], 2 / 4),
        ("recall", 2, [1, 0, 1, 1], 1 / 3),
        ("recall", None, [1, 0, 1, 1], 1.0),
        ("f1", 2, [1, 0, 1], 2 * 1 / (2 + 2)),
        ("f1", 3, [1, 0, 1, 1], 2 * (2 / 3) * (2 / 3) / (2 / 3 + 2 / 3)),
        ("f1", 9, [1, 0, 1], 2 * 2 / (3 + 2)),
        ("r_precision", None, [1, 0, 1, 1], 2 / 3),
        ("r_precision", 2, [1, 0, 1, 1], 1 / 3),
        ("r_precision", None, [0, 1], 0.0),
        ("rbp", None, [1, 0, 1], 0.2 * (1 + 0.8**2)),
        ("rbp", 2, [1, 0, 1], 0.2 * 1),
        ("err", None, [2, 0, 1], 3 / 16 + 1 / 3 * (13 / 16) * (1 / 16)),
        ("err", 2, [2, 0, 1], 3 / 16),
        ("hit_rate", 1, [0, 1, 1], 0.0),
        ("hit_rate", 2, [0, 1, 1], 1.0),
        ("hit_rate", None, [0, 0, 1], 1.0),
        ("arp", None, [2, 0, 1], (2 * 1 + 1 * 3) / (2 + 1)),
        ("opa", None, [2, 0, 1], 2 / 3),  # 0 ranks above 1
        ("opa", None, [0, 1, 1, 2], 0 / 5),
        ("auc", None, [1, 0, 2, 0], 3 / 4),
        ("bpref", None, [1, 0, -1, 1, 0], (1 + (1 - 1 / 2)) / 2),
        ("bpref", None, [0, 1, 1], ((1 - 1 / 1) + (1 - 1 / 1)) / 2),
        ("bpref", None, [1, 2], 1.0),  # no item is judged irrelevant
        # With two subtopics. The second one needs a label of at least 2.
        ("precision_ia", 2, [2, 0, 1], (2 + 0) / (2 * 2)),
        ("precision_ia", None, [2, 0, 1], (2 + 0 + 1) / (2 * 3)),
        ("precision_ia", None, [1, 0], 1 / (1 * 2)),  # only the first counts
        ("alpha_dcg", None, [2, 0, 1], (1 + 1) + (1 / 2 + 0) / log2(4)),
        ("alpha_dcg", 2, [1, 2], 1 + (1 / 2 + 1) / log2(3)),
    ],
    ids=as_text,
)
def test_labels_in_ranked_order(name, k, labels, expected):
    assert value(name, labels, k=k) == pytest.approx(expected, rel=1e-12)


RANKS = ["arp", "first_relevant_rank", "coverage_error"]  # undefined without an item


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("label", [1, 0])
@pytest.mark.usefixtures("run_eagerly")
@judged_without_mask
def test_lists_with_one_item(name, label):
    best = {"rbp": 0.2, "err": 1 / 16, "pfound": 1 / 4, "tied": 0.0}
    of_judgments = {"judged": 1.0, "hole": 0.0, "rbp_residual": 0.8}
    best = (best | {"opa": NAN, "auc": NAN, "gauc": NAN}).get(name, 1.0)
    always_skips = name in (*RANKS, "psp", "psndcg")
    expected = NAN if always_skips and label == 0 else best * label
    expected = of_judgments.get(name, expected)
    for k in (None, 1):
        assert value(name, [label], k=k) == pytest.approx(expected, nan_ok=True)


AUC_LISTS = [[1, 0], [0, 1, 0], [1, 1, 1, 0, 1, 0], [1, 1], [0, 0]]
AUCS = [1.0, 1 / 2, 7 / 8]  # of the first three, in the order of the lists


@pytest.mark.parametrize(
    ("average", "weights"), [("macro", [1, 1, 1]), ("items", [2, 3, 6]), ("relevant", [1, 1, 4]), ("micro", [1, 2, 8])]
)  # fmt: skip
def test_averages_of_auc(average, weights):
    scores = [[-float(rank) for rank in range(len(labels))] for labels in AUC_LISTS]
    given = {"average": average}
    expected = np.average(AUCS, weights=weights)
    found = tfr.evaluate(AUC_LISTS, scores, ["auc", "gauc"], **given)
    assert [*found.values()] == pytest.approx([expected] * 2, rel=1e-14)
    of_queries = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    weighted = tfr.evaluate(
        AUC_LISTS, scores, ["auc"], sample_weight=of_queries, **given
    )
    expected = np.average(AUCS, weights=weights * of_queries[:3])
    assert weighted["auc"] == pytest.approx(expected, rel=1e-14)


def test_gauc_weights_queries_by_their_items():
    """As Zhu et al. define it: by impressions, and not the plain mean."""
    scores = [[-float(rank) for rank in range(len(labels))] for labels in AUC_LISTS]
    expected = np.average(AUCS, weights=[2, 3, 6])
    metric = tfr.GroupAUC()
    for labels, of_list in zip(AUC_LISTS, scores):
        metric.update_state([labels], [of_list])
    assert float(metric.result()) == pytest.approx(expected, rel=1e-6)
    found = tfr.evaluate(AUC_LISTS, scores, ["gauc"])
    assert found == {"gauc": pytest.approx(expected, rel=1e-14)}


def test_averages_of_auc_in_a_catalogue():
    ids, scores = [[0, -1], [0, 2]], [[3.0, 2.0, 1.0, 0.0], [3.0, 2.0, 1.0, -np.inf]]
    relevant = [1, 2]
    # An item of the second query that is excluded is not in its list, and one with a
    # score of -inf is last in it, as in lists of labels.
    for y_true, aucs, items in (
        ({"ids": ids, "exclude": [[-1], [3]]}, [1.0, 1 / 2], [4, 3]),
        (ids, [1.0, 3 / 4], [4, 4]),
    ):
        for average, weights in (("items", items), ("relevant", relevant)):
            found = tfr.evaluate(
                y_true, scores, ["auc"], inputs="catalogue", average=average
            )
            assert found["auc"] == pytest.approx(np.average(aucs, weights=weights))


def test_lists_of_one_class_have_the_weight_of_their_items():
    found = tfr.evaluate(
        [[1, 0], [1, 1, 1]], [[2, 1], [3, 2, 1]], ["auc"], average="items", empty="zero"
    )
    assert found["auc"] == pytest.approx(2 / 5)
    with pytest.raises(ValueError, match="average='micro' requires empty='skip'"):
        tfr.PerQueryAUC(average="micro", empty="one")


def test_mrr_over_all_relevant_items():
    assert value("mrr", [0, 1, 0, 1], over="all") == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert value("mrr", [0, 1, 0, 1], k=3, over="all") == pytest.approx(1 / 2 / 2)
    tied = value("mrr", [1, 0, 1], [2.0, 1.0, 1.0], over="all")
    assert tied == pytest.approx((1 + (1 / 2 + 1 / 3) / 2) / 2)


def test_graded_rbp():
    expected = 0.2 * (0.5 + 0.8**2 * 1.0)
    assert value("rbp", [0.5, 0, 1.0], graded=True) == pytest.approx(expected)
    assert value("rbp", [0.5, 0, 1.0]) == pytest.approx(0.2 * 0.8**2)


def test_pfound():
    """The first user finds it with probability 1/4, the next one with 1/2 of the rest."""
    expected = 1 / 4 + 0.85 * (3 / 4) * (1 / 2)
    assert value("pfound", [1, 2]) == pytest.approx(expected)
    assert value("pfound", [1, 2], decay=0.0, k=1) == pytest.approx(1 / 4)
    assert value("pfound", [1, 1], max_label=1) == 1.0
    with pytest.raises(ValueError, match="at most `max_label`"):
        tfr.evaluate([1, 5], [2, 1], ["pfound"])


def test_micro_averages_weight_queries_by_labels_or_pairs():
    labels, scores = [[2, 0, 1], [0, 0, 1]], [[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]
    positions, weights = [(2 * 1 + 1 * 3) / 3, 3.0], [2 + 1, 1]
    accuracies, pairs = [2 / 3, 0.0], [3, 2]
    for name, values, micro_weights in (
        ("arp", positions, weights),
        ("opa", accuracies, pairs),
    ):
        micro = np.average(values, weights=micro_weights)
        assert value(name, labels, scores) == pytest.approx(micro)
        macro = value(name, labels, scores, average="macro")
        assert macro == pytest.approx(np.mean(values))
        both = np.multiply(micro_weights, [1, 5])  # sample weights multiply them
        weighted = value(name, labels, scores, sample_weight=[1.0, 5.0])
        assert weighted == pytest.approx(np.average(values, weights=both))


def test_items_that_were_not_retrieved_tie_at_the_last_ranks():
    labels, scores = [1, 0, 2, 0, 0], [2.0, 1.0, -INF, -INF, -INF]
    # The item with label 2 has rank 3, 4 or 5: rank 4 on average.
    assert value("arp", labels, scores) == pytest.approx((1 * 1 + 2 * 4) / 3)
    # It is below the item at rank 2, and tied with the other two at the end.
    assert value("auc", labels, scores) == pytest.approx((3 + 0 + 1 / 2 + 1 / 2) / 6)
    correct = 3 + 0 + 0 + 1 / 2 + 1 / 2  # the last four pairs contain label 2
    assert value("opa", labels, scores) == pytest.approx(correct / 7)
    # In BPref, an item that was not retrieved adds 0.
    assert value("bpref", labels, scores) == pytest.approx((1 + 0) / 2)


@pytest.mark.parametrize(
    ("name", "options", "labels", "expected"),
    [
        ("dcg", {"gain": "linear"}, [3, 2], 3 + 2 / log2(3)),
        ("dcg", {"gain": plus_one}, [1, 0], 2 + 1 / log2(3)),
        ("dcg", {"discount": "jarvelin"}, [1, 1, 1, 1], 1 + 1 + 1 / log2(3) + 1 / 2),
        ("dcg", {"discount": inverse_rank}, [1, 2, 1], 1 + 3 / 2 + 1 / 3),
        ("ndcg", {"gain": "linear"}, [0, 3], 1 / log2(3)),
        ("map", {"k": 2, "denominator": "relevant"}, [1, 0, 1, 1], 1 / 3),
        ("map", {"k": 2, "denominator": "min(k, relevant)"}, [1, 0, 1, 1], 1 / 2),
        ("map", {"k": 2, "denominator": "hits"}, [1, 0, 1, 1], 1 / 1),
        ("map", {"k": 2, "denominator": "hits"}, [0, 0, 1, 1], 0.0),
        ("precision", {"k": 4, "denominator": "list"}, [1, 0], 1 / 2),
        ("precision", {"k": 4, "denominator": "k"}, [1, 0], 1 / 4),
        ("precision", {"k": 3, "relevance_threshold": 2}, [1, 2, 3], 2 / 3),
        ("precision", {"k": 3, "relevance_threshold": 0.3}, [0.3, 0.2, 1], 2 / 3),
        ("mrr", {"relevance_threshold": 3}, [2, 1, 3], 1 / 3),
        ("f1", {"k": 4, "denominator": "k"}, [1, 0], 2 * 1 / (4 + 1)),
        ("rbp", {"persistence": 0.5}, [0, 1, 1], 0.5 * (0.5 + 0.25)),
        ("auc", {"relevance_threshold": 2}, [1, 2], 0.0),
        ("bpref", {"denominator": "relevant"}, [0, 1, 1], 2 * (1 - 1 / 2) / 2),
        ("precision_ia", {"k": 4, "denominator": "k"}, [2, 0], 2 / (2 * 4)),
        ("alpha_dcg", {"alpha": 1}, [1, 1, 2], 1 + 0 + 1 / log2(4)),
        ("alpha_dcg", {"alpha": 0.2}, [1, 1], 1 + 0.8 / log2(3)),
        ("alpha_dcg", {"discount": "jarvelin"}, [1, 1], 1 + 1 / 2),
    ],
    ids=as_text,
)
def test_options_change_the_value(name, options, labels, expected):
    assert value(name, labels, **options) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", [n for n in LABEL_METRICS if METRICS[n].has_cutoff])
@pytest.mark.usefixtures("run_eagerly")
@judged_without_mask
def test_a_cutoff_far_beyond_the_list(name):
    deep = 2**31 - 1  # the largest cutoff, at no extra cost
    labels = [0, 1, 0, 2]
    assert value(name, labels, k=deep) == pytest.approx(value(name, labels))
    names = [f"{name}@{k}" for k in (1, 4, 5, 1000, deep)]
    scores = [4.0, 3.0, 2.0, 1.0]
    together = tfr.evaluate(labels, scores, names)
    for metric in names:
        assert together[metric] == tfr.evaluate(labels, scores, [metric])[metric]


def test_precision_with_denominator_k_far_beyond_the_list():
    assert value("precision", [1, 0, 1], k=1000, denominator="k") == 2 / 1000


def test_ideal_order_of_retrieved_items():
    # A score of -inf means that the third relevant item was not retrieved.
    labels, scores = [1, 0, 1, 1], [3.0, 2.0, 1.0, -INF]
    dcg = 1 + 1 / log2(4)
    best_of_two, best_of_three = 1 + 1 / log2(3), 1 + 1 / log2(3) + 1 / log2(4)
    retrieved = value("ndcg", labels, scores, k=3, ideal="retrieved")
    judged = value("ndcg", labels, scores, k=3, ideal="judged")
    assert retrieved == pytest.approx(dcg / best_of_two)
    assert judged == pytest.approx(dcg / best_of_three)
    # An item whose score is NaN was retrieved, so the ideal order contains it.
    broken = value("ndcg", labels, [3.0, 2.0, 1.0, NAN], k=3, ideal="retrieved")
    assert broken == pytest.approx(dcg / best_of_three)


# The two tied items share ranks 1 and 2. Expected values average both orders.
@pytest.mark.parametrize(
    ("name", "k", "labels", "expected"),
    [
        ("ndcg", 1, [0, 1], (1 + 0) / 2),
        ("ndcg", None, [0, 1], (1 + 1 / log2(3)) / 2),
        ("dcg", 2, [2, 1], (4 + 4 / log2(3)) / 2),
        ("map", None, [0, 1], (1 / 1 + 1 / 2) / 2),
        ("mrr", None, [0, 1], (1 / 1 + 1 / 2) / 2),
        ("mrr", 1, [0, 1], (1 / 1 + 0) / 2),
        ("precision", 1, [0, 1], 1 / 2),
        ("recall", 1, [1, 1], 1 / 2),
        ("hit_rate", 1, [0, 1], 1 / 2),
        ("hit_rate", 2, [0, 1], 1.0),
        ("arp", None, [0, 1], (1 + 2) / 2),
        ("opa", None, [0, 1], 1 / 2),
        ("auc", None, [0, 1], 1 / 2),
        ("bpref", None, [0, 1], ((1 - 1 / 1) + 1) / 2),
        ("precision_ia", 1, [0, 1], 1 / 2),
        ("alpha_dcg", None, [1, 1], 1 + (1 / 2) / log2(3)),
        ("alpha_dcg", None, [1, 2], (1 + (0.5 + 1) / log2(3) + 2 + 0.5 / log2(3)) / 2),
    ],
)
def test_expected_ties_average_both_orders(name, k, labels, expected):
    assert value(name, labels, [7.0, 7.0], k=k) == pytest.approx(expected, rel=1e-12)


def test_stable_ties_keep_list_order():
    assert value("mrr", [0, 1, 1], [1.0, 1.0, 1.0], ties="stable") == 1 / 2
    assert value("mrr", [1, 0, 0], [1.0, 1.0, 1.0], ties="stable") == 1.0
    assert value("mrr", [0, 1, 1], [0.0, -0.0, 0.0], ties="stable") == 1 / 2


def test_random_ties_are_repeatable_and_average_to_the_expected_value():
    lists = 20_000
    labels = np.tile([1.0, 1.0, 0.0, 0.0, 0.0], (lists, 1))
    scores = np.tile([0.0, 1.0, 1.0, 1.0, 0.0], (lists, 1))
    names = ["ndcg@2", "map", "mrr", "recall@1"]
    random = tfr.evaluate(labels, scores, names, ties="random", seed=4, per_query=True)
    again = tfr.evaluate(labels, scores, names, ties="random", seed=4, per_query=True)
    other = tfr.evaluate(labels, scores, names, ties="random", seed=5, per_query=True)
    expected = tfr.evaluate(labels, scores, names)
    for name in names:
        assert np.array_equal(random[name], again[name])
        assert not np.array_equal(random[name], other[name])
        standard_error = random[name].std() / math.sqrt(lists)
        assert abs(random[name].mean() - expected[name]) < 4 * standard_error


def test_random_ties_do_not_depend_on_batch_size_or_padding():
    labels = np.tile([1.0, 0.0, 0.0, 2.0], (30, 1))
    scores = np.zeros_like(labels)
    whole = tfr.MeanReciprocalRank(ties="random", seed=1)
    whole.update_state(labels, scores)
    parts = tfr.MeanReciprocalRank(ties="random", seed=1)
    for start, stop in ((0, 7), (7, 8), (8, 30)):
        padded = np.pad(labels[start:stop], [(0, 0), (0, 3)], constant_values=-1)
        parts.update_state(padded, np.zeros_like(padded))
    assert float(whole.result()) == pytest.approx(float(parts.result()), rel=1e-6)
    assert 1 / 4 < float(whole.result()) < 1.0


# Both lists are judged, so neither is empty for metrics of judgments.
@pytest.mark.parametrize("name", [n for n in CLASSES if n not in JUDGMENT_METRICS])
@pytest.mark.usefixtures("run_eagerly")
def test_value_of_lists_without_relevant_items(name):
    labels, scores = [[0, 0], [1, 0]], [[2.0, 1.0], [2.0, 1.0]]
    full = value(name, labels[1], scores[1])
    expected = {"zero": (0 + full) / 2, "one": (1 + full) / 2, "skip": full}
    for options in empty_list_options(name):
        counted = value(name, labels, scores, **options)
        assert counted == pytest.approx(expected[options["empty"]])
    default = METRICS[name].defaults["empty"]
    assert value(name, labels, scores) == pytest.approx(expected[default])


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.usefixtures("run_eagerly")
@judged_without_mask
def test_lists_with_only_padding_do_not_count(name):
    labels = [[1, 0, -1], [-1, -1, -1], [0, 1, 0]]
    scores = [[1.0, 2.0, 9.0], [1.0, 2.0, 3.0], [1.0, 2.0, 0.0]]
    for options in empty_list_options(name):
        with_padding = value(name, labels, scores, **options)
        without = value(name, labels[::2], scores[::2], **options)
        assert with_padding == pytest.approx(without)
        assert math.isnan(value(name, labels[1:2], scores[1:2], **options))
    labels = labels_for(name, labels)
    per_query = tfr.evaluate(labels, scores, [name], per_query=True)[name]
    assert np.isnan(per_query).tolist() == [False, True, False]


@pytest.mark.parametrize("name", CLASSES)
@judged_without_mask
def test_result_without_any_items_is_nan(name):
    made = CLASSES[name]()
    assert np.isnan(made.result())
    no_query, no_item = np.zeros((0, 3)), np.zeros((2, 0))
    for scores in (no_query, no_item):
        labels = labels_for(name, scores)
        made.update_state(labels, scores)
        assert np.isnan(made.result())
        assert math.isnan(tfr.evaluate(labels, scores, [name])[name])
    made.update_state(labels_for(name, [[1, 0]]), [[0.5, 0.5]])
    assert np.isfinite(made.result())


def test_one_list_without_items():
    assert tfr.evaluate([], [], ["ndcg"], per_query=True)["ndcg"].shape == (1,)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_nan_and_infinite_scores(dtype):
    def rr(labels, scores):
        return value("mrr", labels, np.array(scores, dtype))

    assert rr([0, 0, 0, 1], [INF, 1.0, -INF, NAN]) == 1 / 3
    assert rr([0, 0, 1, 0], [INF, 1.0, -INF, NAN]) == 0.0  # -inf: not retrieved
    assert rr([0, 0, 1], [NAN, NAN, -1e4]) == 1.0
    assert rr([0, 1, -1], [1.0, NAN, INF]) == 1 / 2  # NaN ranks above padding
    assert rr([0, 1], [0.0, -0.0]) == 3 / 4  # a tie
    assert rr([0, 1], [NAN, NAN]) == 3 / 4
    assert rr([0, 1], [-INF, -INF]) == 0.0


@pytest.mark.parametrize(
    ("dtype", "higher", "lower"),
    [
        ("float64", 1.0 + 1e-9, 1.0),  # equal in float32
        ("int64", 2**53 + 1, 2**53),  # equal in float64
        ("int32", 2**24 + 1, 2**24),
        ("uint8", 255, 0),
        ("int8", 127, -128),
        ("float16", 1.001, 1.0),
        ("float32", 1e-30, 0.0),
    ],
)
def test_scores_are_compared_in_their_own_dtype(dtype, higher, lower):
    scores = np.array([[lower, higher]], dtype)
    assert tfr.evaluate([[0, 1]], scores, ["mrr"])["mrr"] == 1.0
    assert tfr.evaluate([[1, 0]], scores, ["mrr"])["mrr"] == 0.5


def test_large_integer_labels_are_not_rounded():
    labels = np.array([[2**24 + 1, 2**24]], "int32")  # equal in float32
    assert value("opa", labels, [[1.0, 2.0]]) == 0.0


def test_query_weights():
    labels, scores = [[1, 0], [0, 1]], [[2.0, 1.0], [2.0, 1.0]]  # RR 1 and 1/2
    for weights in ([3.0, 1.0], [[3.0], [1.0]], [3, 1]):
        weighted = value("mrr", labels, scores, sample_weight=weights)
        assert weighted == pytest.approx((3 * 1 + 1 * 0.5) / 4)
    assert value("mrr", labels, scores, sample_weight=2.0) == pytest.approx(3 / 4)
    # With two queries of two items, weights of shape [2] are query weights.
    assert value("mrr", labels, scores, sample_weight=[0.0, 1.0]) == 0.5


@pytest.mark.filterwarnings("ignore:A weight of 0 does not mask")
def test_item_weights():
    labels, scores, weights = [[2, 0, 1]], [[3.0, 2.0, 1.0]], [[1.0, 5.0, 4.0]]

    def weighted(name, labels=labels, weights=weights, **options):
        return value(name, labels, scores, sample_weight=weights, **options)

    dcg, ideal = 3 * 1 + 1 * 4 / log2(4), 4 * 1 + 3 * 1 / log2(3)
    assert weighted("ndcg") == pytest.approx(dcg / ideal)
    # DCG is divided by the query's weight, here (3*1 + 1*4) / (3 + 1).
    assert weighted("dcg") == pytest.approx(dcg / (7 / 4))
    assert weighted("map") == pytest.approx((1 * 1 + 2 / 3 * 4) / (1 + 4))
    assert weighted("precision", k=2) == 1 / 2  # uses only the query's weight
    # Items with weight 0 keep their ranks, so the relevant item has rank 3.
    assert weighted("mrr", labels=[[0, 0, 1]], weights=[[0.0, 0.0, 1.0]]) == 1 / 3


def test_query_weights_from_item_weights():
    labels = [[1, 0, 1, -1], [0, 0, -1, -1]]
    scores = [[4.0, 3.0, 2.0, 9.0], [4.0, 3.0, 2.0, 1.0]]
    weights = [[2.0, 9.0, 4.0, 50.0], [1.0, 4.0, 50.0, 50.0]]
    # First query: (2 + 4) / 2. Second, without relevant items: the mean of 1 and 4.
    expected = (3 * 1.0 + 2.5 * 0.0) / (3 + 2.5)
    assert value("mrr", labels, scores, sample_weight=weights) == pytest.approx(
        expected
    )
    # A list with weight 0 does not count.
    weights[1] = [0.0] * 4
    assert value("mrr", labels, scores, sample_weight=weights) == 1.0


def test_an_explicit_mask_overrides_negative_labels():
    labels, scores = [[-1, 0, 2, 5]], [[4.0, 3.0, 2.0, 1.0]]
    mask = [[True, False, True, False]]
    # The mask keeps the labels -1, which is not relevant, and 2.
    assert tfr.evaluate(labels, scores, ["mrr"], mask=mask)["mrr"] == 1 / 2
    dcg = tfr.evaluate(labels, scores, ["dcg"], mask=mask, gain="linear")["dcg"]
    assert dcg == pytest.approx(0 + 2 / log2(3))
    made = tfr.MeanReciprocalRank()
    made.update_state({"labels": labels, "mask": mask}, scores)
    assert float(made.result()) == 0.5


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_result_has_the_dtype_of_the_metric(dtype):
    single = tfr.NDCG(dtype=dtype)
    many = tfr.RankingMetrics(["ndcg"], dtype=dtype)
    for metric in (single, many):
        metric.update_state([[0.0, 1.0]], [[2.0, 1.0]])
    assert single.result().dtype == many.result()["ndcg"].dtype == dtype
    assert float(single.result()) == pytest.approx(1 / log2(3), rel=1e-3)


@pytest.mark.filterwarnings("ignore:The exponential gain")
@pytest.mark.parametrize("wrong", [NAN, INF, -INF])
def test_invalid_values_make_the_result_nan(wrong):
    # Graphs do not check values, so invalid values show up in the result.
    labels, scores = [[1.0, 0.0], [0.0, 1.0]], [[2.0, 1.0], [2.0, 1.0]]
    objects = [
        make_metric(name, 1, name=f"{name}-{options['empty']}", **options)
        for name in LABEL_METRICS
        for options in empty_list_options(name)
    ]
    for bad in ([[wrong, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, wrong]]):
        metrics = tfr.RankingMetrics(objects)
        metrics.update_state(bad, scores)
        is_padding = wrong == -INF
        if is_padding:
            assert not np.isnan([*results(metrics).values()]).all()
        else:
            with pytest.warns(tfr.RankingWarning, match="is NaN"):
                assert np.isnan([*results(metrics).values()]).all()
    for weights in ([1.0, wrong], [1.0, -1.0], [[1.0, 1.0], [1.0, -1.0]]):
        metric = tfr.MeanReciprocalRank()
        metric.update_state(labels, scores, sample_weight=weights)
        with pytest.warns(tfr.RankingWarning, match="is NaN"):
            assert np.isnan(metric.result())


@pytest.mark.parametrize(
    "options",
    [
        {"gain": lambda labels: labels - 1.0},  # negative for label 0
        {"discount": lambda ranks: ranks},  # increases with the rank
        {"discount": lambda ranks: -ranks},
        {"gain": lambda labels: labels / 0.0},
        {"gain": lambda labels: labels * (labels - 1) / labels},  # NaN for label 0
    ],
    ids=[
        "negative gain",
        "growing discount",
        "negative discount",
        "infinite gain",
        "NaN gain",
    ],
)
@pytest.mark.parametrize("way", ["eager", "graph", XLA])
def test_invalid_gain_and_discount_functions(options, way):
    tf = pytest.importorskip("tensorflow")
    labels, scores = tf.constant([[2.0, 0.0, 0.0]]), tf.constant([[3.0, 2.0, 1.0]])
    cutoffs = (1, 2) if "gain" in options else (2, None)
    metrics = [make(k, **options) for make in (tfr.NDCG, tfr.DCG) for k in cutoffs]
    together = tfr.RankingMetrics(metrics)
    run_as(way, update_function(together))(labels, scores)
    with pytest.warns(tfr.RankingWarning, match="is NaN"):
        assert np.isnan([*results(together).values()]).all()
    for metric in metrics:
        with pytest.raises(ValueError, match="Gains must be finite"):
            tfr.evaluate(labels, scores, [metric])


@pytest.mark.parametrize("names", [["dcg@1"], ["dcg@1", "dcg@2"], ["ndcg@1"]])
def test_an_overflowing_gain_raises_at_any_rank(names):
    for labels in ([[1.0, 2000.0]], [[2000.0, 1.0]]):
        with pytest.raises(ValueError, match="with a finite sum"):
            tfr.evaluate(labels, [[2.0, 1.0]], names)
        assert tfr.evaluate(labels, [[2.0, 1.0]], names, gain="linear")


def test_gain_functions_are_called_every_time():
    labels, scores, power = [[0.0, 1.0, 2.0, 3.0]], [[4.0, 3.0, 2.0, 1.0]], [1]
    metric = tfr.DCG(gain=lambda labels: labels ** power[0])
    for power[0] in (1, 2, 3):
        expected = sum(label ** power[0] / log2(2 + label) for label in (0, 1, 2, 3))
        assert tfr.evaluate(labels, scores, [metric])["dcg"] == pytest.approx(expected)
        metric.reset_state()
        metric.update_state(labels, scores)
        assert float(metric.result()) == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore:The exponential gain")
def test_ideal_order_of_very_large_and_very_small_gains():
    assert value("ndcg", [150.0, 200.0, 0.0], [1.0, 2.0, 0.0], k=1) == 1.0
    assert value("ndcg", [130.0, 255.0, 200.0], [1.0, 3.0, 2.0]) == pytest.approx(1.0)
    tiny = np.array([1e-50, 2e-50])
    assert value("ndcg", tiny, [1.0, 2.0], k=1, gain="linear") == 1.0


@pytest.mark.usefixtures("run_eagerly")
def test_seeds_are_independent():
    lists, seeds = 200, range(20)
    labels = np.tile([1.0] + [0.0] * 7, (lists, 1))
    scores = np.zeros_like(labels)
    means = [
        tfr.evaluate(labels, scores, ["mrr"], ties="random", seed=seed)["mrr"]
        for seed in seeds
    ]
    std_of_one_list = np.std([1 / rank for rank in range(1, 9)])
    assert 0.5 < np.std(means) / (std_of_one_list / math.sqrt(lists)) < 1.5


def test_without_a_seed_the_seed_is_0():
    labels, scores = np.eye(10), np.zeros((10, 10))
    values = [
        tfr.evaluate(labels, scores, ["mrr"], ties="random", seed=seed)["mrr"]
        for seed in (None, 0, 1)
    ]
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize("cutoffs", [(10, 3, 8), (100, 3, 80), (120, 119, 200)])
def test_cutoffs_in_any_order(cutoffs):
    names = [f"recall@{k}" for k in cutoffs]
    values = tfr.evaluate(np.ones(120), -np.arange(120.0), names)
    assert [*values.values()] == [min(k, 120) / 120 for k in cutoffs]
