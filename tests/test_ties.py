"""Compares every formula for tied scores with the mean over all orders of the ties."""

import dataclasses
import math
import typing
from fractions import Fraction

import numpy as np
import oracle
import pytest
import tensorflow as tf
from cases import (
    CASES,
    LABEL_METRICS,
    METRICS,
    SUBTOPIC_METRICS,
    labels_for,
    random_lists,
    with_cutoffs,
)
from helpers import (
    EAGER_GRAPH_XLA,
    OBJECTS_BY_KIND,
    SWEEP,
    judged_without_mask,
    results,
    run_as,
    update_function,
)

import tfrankmetrics as trm
from tfrankmetrics import options
from tfrankmetrics.ranking.ties import TiePolicy

pytestmark = judged_without_mask


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "item-weights"])
def test_expected_ties_equal_the_mean_over_all_orders(case, weighted):
    labels, scores = random_lists(7, queries=12, size=4 if weighted else 5, ties=True)
    scores[:2] = 0.5  # all items tied, so that every cutoff is within the tie
    scores[2:4, 2:] = -np.inf
    scores[4:6, ::2] = np.nan
    weights = (
        np.random.default_rng(8).integers(1, 4, scores.shape) if weighted else None
    )
    if case.name in SUBTOPIC_METRICS:
        others = np.random.default_rng(9).permuted(labels, axis=1)
        labels = np.stack([labels, np.maximum(others, 0), labels - 1], axis=2)
    cutoffs = [k for _, k in with_cutoffs([case], (1, 2, 4, 6))]
    values = trm.evaluate(
        labels,
        scores,
        [case.metric(k) for k in cutoffs],
        sample_weight=weights,
        per_query=True,
    )
    for k, ours in zip(cutoffs, values.values()):
        for query, value in enumerate(ours):
            expected = oracle.evaluate(
                case.name,
                labels[query],
                scores[query],
                k=k,
                weights=None if weights is None else weights[query],
                **dict(case.options),
            )
            if expected is None or expected[1] == 0:
                assert np.isnan(value)
            else:
                np.testing.assert_allclose(value, expected[0], rtol=1e-10, atol=1e-12)


WITH_CUTOFF = [case for case in CASES if METRICS[case.name].has_cutoff]


def lists_with_a_cut_tie():
    """Lists of 13 items whose last 4 or 5 are tied.

    The cutoff 10 is inside the tie, and so is rank 11, the last that is ranked.
    """
    labels, _ = random_lists(5, queries=9, size=13)
    scores = np.tile(np.maximum(np.arange(13.0, 0.0, -1), 5), (9, 1))
    scores[3:6, 9:] = 4.0
    scores[6:, 12] = -np.inf
    order = np.random.default_rng(1).permuted(np.tile(np.arange(13), (9, 1)), axis=1)
    return (np.take_along_axis(each, order, axis=1) for each in (labels, scores))


@pytest.mark.parametrize("case", WITH_CUTOFF, ids=str)
def test_a_tie_that_goes_on_below_the_deepest_cutoff(case):
    labels, scores = lists_with_a_cut_tie()
    if case.name in SUBTOPIC_METRICS:
        labels = np.stack([labels, labels - 1], axis=2)
    found = trm.evaluate(labels, scores, [case.metric(10)], per_query=True)
    (values,) = found.values()
    for query, value in enumerate(values):
        expected = oracle.evaluate(
            case.name, labels[query], scores[query], k=10, **dict(case.options)
        )
        counts = expected is not None and expected[1] != 0
        expected = expected[0] if counts else math.nan
        assert value == pytest.approx(expected, rel=1e-10, abs=1e-12, nan_ok=True)


@SWEEP
@pytest.mark.parametrize("kind", [LABEL_METRICS, SUBTOPIC_METRICS])
def test_a_cut_tie_in_a_program_of_known_size(kind):
    labels, scores = lists_with_a_cut_tie()
    if kind is SUBTOPIC_METRICS:
        labels = np.stack([labels, labels - 1], axis=2)
    cases = [case for case in WITH_CUTOFF if case.name in kind]
    metrics = [case.metric(10, name=str(case)) for case in cases]
    metric = trm.RankingMetrics(metrics, dtype="float64")
    update = tf.function(update_function(metric), jit_compile=True)
    update(tf.constant(labels), tf.constant(scores))
    assert results(metric) == pytest.approx(trm.evaluate(labels, scores, metrics))


def exact_average_precision_over_hits(above, size, relevant, k):
    """AP@k with denominator "hits", in exact fractions.

    The list has `above` relevant items and then `size` tied items, `relevant` of them
    relevant. Rank k is within the tie.
    """
    slots = k - above
    expected = Fraction(0)
    for hits in range(max(0, slots - (size - relevant)), min(slots, relevant) + 1):
        probability = Fraction(
            math.comb(relevant, hits) * math.comb(size - relevant, slots - hits),
            math.comb(size, slots),
        )
        precisions = Fraction(above)  # precision is 1 at each rank above the tie
        for place in range(1, slots + 1):
            others = Fraction((place - 1) * (hits - 1), slots - 1) if slots > 1 else 0
            precision = Fraction(hits, slots)
            precisions += precision * (above + 1 + others) / (above + place)
        expected += probability * precisions / (above + hits) if above + hits else 0
    return float(expected)


@pytest.mark.parametrize("way", EAGER_GRAPH_XLA)
@pytest.mark.parametrize(
    ("above", "size", "relevant", "k"),
    [(0, 20, 1, 10), (0, 300, 5, 100), (3, 60, 7, 40), (0, 12, 12, 5), (2, 50, 1, 3)],
)
def test_average_precision_over_hits_in_long_lists(above, size, relevant, k, way):
    labels = [1.0] * above + [0.0] * (size - relevant) + [1.0] * relevant
    scores = [2.0] * above + [1.0] * size
    for place in range(above):
        scores[place] += above - place  # no ties above the tied group
    metric = trm.MeanAveragePrecision(k=k, denominator="hits")
    update = run_as(way, update_function(metric))
    update(tf.constant([labels]), tf.constant([scores]))
    expected = exact_average_precision_over_hits(above, size, relevant, k)
    assert float(metric.result()) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "name", ["mrr", "hit_rate", "completeness", "map", "ndcg", "recall"]
)
def test_constant_scores_in_a_long_list(name):
    size, relevant, k = 400, 3, 50
    labels = [0.0] * (size - relevant) + [1.0] * relevant
    # The probability that no relevant item is at this rank or above.
    none_above = [
        math.comb(size - rank, relevant) / math.comb(size, relevant)
        for rank in range(k + 1)
    ]
    ranks = range(1, k + 1)
    discounts = [1 / math.log2(1 + rank) for rank in ranks]
    others = (relevant - 1) / (size - 1)
    expected = {
        "mrr": sum((none_above[rank - 1] - none_above[rank]) / rank for rank in ranks),
        "hit_rate": 1 - none_above[k],
        "completeness": math.comb(k, relevant) / math.comb(size, relevant),
        "map": sum((1 + (rank - 1) * others) / rank for rank in ranks) / size,
        "ndcg": sum(discounts) * relevant / size / sum(discounts[:relevant]),
        "recall": k / size,
    }
    value = trm.evaluate(labels, [0.5] * size, [f"{name}@{k}"])[f"{name}@{k}"]
    assert value == pytest.approx(expected[name], rel=1e-9)


def test_completeness_of_items_tied_at_the_cutoff():
    """Two relevant items are among four tied ones, of which two or three fit."""
    labels, scores = [1, 0, 1, 0, 1, 0], [3, 2, 2, 2, 2, 1]
    names = ["completeness@3", "full_recall@4", "all_recall"]
    found = trm.evaluate(labels, scores, names)
    assert [*found.values()] == pytest.approx([1 / 6, 1 / 2, 1])
    missed = [*scores[:4], -np.inf, 1]
    assert trm.evaluate(labels, missed, ["full_recall"]) == {"full_recall": 0}


@pytest.mark.parametrize("metrics", OBJECTS_BY_KIND)
def test_ties_in_one_list_do_not_change_other_lists(metrics):
    labels, scores = random_lists(7, queries=40, size=12)
    labels = labels_for(metrics[0].declaration.name, labels)
    alone = trm.evaluate(labels, scores, metrics, per_query=True)
    scores[-1] = 0.0
    with_ties = trm.evaluate(labels, scores, metrics, per_query=True)
    for name in alone:
        np.testing.assert_array_equal(
            alone[name][:-1], with_ties[name][:-1], err_msg=name
        )


@pytest.mark.parametrize("ties", ["expected", "stable"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_in_one_list_does_not_change_other_lists(ties, dtype):
    """The first list has the two lowest numbers. Internally, NaN becomes the lowest."""
    lowest = np.finfo(dtype).min
    labels = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    scores = np.array(
        [[lowest, np.nextafter(lowest, np.array(0, dtype)), lowest], [np.nan, 1, 1]],
        dtype,
    )
    options = {"ties": ties}
    names = ["mrr", "ndcg@2", "map", "precision@2"]
    both = trm.evaluate(labels, scores, names, per_query=True, **options)
    alone = trm.evaluate(labels[:1], scores[:1], names, per_query=True, **options)
    assert alone["mrr"] == 1
    assert {name: values[:1] for name, values in both.items()} == alone
    # Within one list, NaN is below the lowest number.
    scores = np.array([[np.nan, lowest]], dtype)
    assert trm.evaluate([[1, 0]], scores, ["mrr"], **options) == {"mrr": 0.5}


@pytest.mark.parametrize("distinct", [40, 10**6], ids=["ties", "no ties"])
def test_pairs_of_a_long_list(distinct):
    rng = np.random.default_rng(1)
    labels, scores = rng.integers(0, 4, 100), rng.integers(0, distinct, 100)
    higher = labels[:, np.newaxis] > labels
    won = np.sign(scores[:, np.newaxis] - scores) / 2 + 0.5  # a tie counts one half
    (value,) = trm.evaluate(labels, scores, ["opa"]).values()
    assert value == pytest.approx(won[higher].mean(), rel=1e-12)


def test_a_long_tie_in_the_middle_of_a_list():
    """30 items share the ranks 3 to 32. One of them is relevant."""
    labels = [0, 0] + [0] * 29 + [1] + [0, 0]
    scores = [9, 8] + [5] * 30 + [2, 1]
    tensors = tf.constant([labels]), tf.constant([scores])
    # The first calls run op by op, and know the length of the list. A graph does not.
    eager, *_, compiled = (trm.evaluate(*tensors, ["mrr@10"]) for _ in range(10))
    expected = sum(1 / rank for rank in range(3, 11)) / 30
    assert compiled == eager == {"mrr@10": pytest.approx(expected)}
    assert trm.evaluate(labels, scores, ["mrr@10"]) == eager


def exact_err(*groups, k):
    """ERR@k of groups of tied items, from exact fractions.

    The mean product of (1 - p) over s of n items is the coefficient of z^s in the product
    of 1 + (1 - p) z, divided by the number of ways to choose s items.
    """
    value, reaches_group, above = Fraction(0), Fraction(1), 0
    for stops in groups:
        coefficients = [Fraction(1)]
        for p in stops:
            shifted = [Fraction(0), *((1 - p) * c for c in coefficients)]
            coefficients = [
                a + b for a, b in zip([*coefficients, Fraction(0)], shifted)
            ]
        n = len(stops)
        reached = [c / math.comb(n, s) for s, c in enumerate(coefficients)]
        for s in range(1, min(k - above, n) + 1):
            value += reaches_group * (reached[s - 1] - reached[s]) / (above + s)
        reaches_group, above = reaches_group * reached[n], above + n
    return float(value)


def one_tie(relevant):
    """A tie of 150 items, some of them relevant."""
    return [[1 + i % 4 for i in range(relevant)] + [0] * (150 - relevant)]


MIXED, HALF, SAME = [1] * 10 + [0] * 50, [1, 2, 3, 4] * 60, [4] * 80
# Lists as the labels of each group of tied items, cutoffs, and the relative error. The
# numbers of items, of relevant ones and of labels decide how the value is computed.
LONG_TIES = {
    "one": ([one_tie(n) for n in (1, 25, 40, 150)], (10, 70, 160, None), 1e-14),
    "three": ([[MIXED, HALF, SAME], [MIXED, SAME, HALF]], (200, 330, None), 1e-14),
    "below one": ([[[0], [4] * 60]], (1, 3, None), 1e-13),
    "below a tie": ([[[0, 0], [4] * 50, [1], [0]]], (1, 3, None), 1e-13),
    "below others": ([[[1], [0] * 9, [4] * 90]], (1, 3, None), 1e-13),
    "many labels": ([[[i / 40 for i in range(1, 161)]]], (70,), 1e-12),
}


@pytest.mark.parametrize("way", EAGER_GRAPH_XLA)
@pytest.mark.parametrize("k", LONG_TIES["one"][1])
def test_err_of_a_long_tie_is_exact(k, way):
    require_exact_err("one", k, way)


@pytest.mark.parametrize("way", EAGER_GRAPH_XLA[:2])
@pytest.mark.parametrize("name", [name for name in LONG_TIES if name != "one"])
def test_err_of_several_long_ties_is_exact(name, way):
    for k in LONG_TIES[name][1]:
        require_exact_err(name, k, way)


def require_exact_err(name, k, way):
    lists, _, error = LONG_TIES[name]
    metric = trm.ExpectedReciprocalRank(k=k, dtype="float64", name="err")
    update = run_as(way, update_function(metric))
    for groups in lists:
        sizes = [len(group) for group in groups]
        labels = np.concatenate(groups)[np.newaxis].astype(float)
        scores = -np.repeat(np.arange(len(groups)), sizes)[np.newaxis].astype(float)
        metric.reset_state()
        update(tf.constant(labels), tf.constant(scores))
        stops = [[Fraction(2.0**label - 1) / 16 for label in each] for each in groups]
        expected = exact_err(*stops, k=k or sum(sizes))
        for value in (
            float(metric.result()),
            *trm.evaluate(labels, scores, [metric]).values(),
        ):
            assert value == pytest.approx(expected, rel=error, abs=0)


def test_a_certain_stop_in_a_short_tie():
    """PFound of one list: the first tied item has the probability 1."""
    labels, scores = [0, 1, 1], [2.0, 1.0, 1.0]
    found = trm.evaluate(labels, scores, ["pfound@1", "pfound"], max_label=1)
    assert found == {"pfound@1": 0.0, "pfound": pytest.approx(0.85)}
    both = [labels, [1, 0, 0]], [scores, [1.0, 1.0, 1.0]]
    values = trm.evaluate(*both, ["pfound"], max_label=1, per_query=True)["pfound"]
    assert values[0] == pytest.approx(0.85)


@pytest.mark.parametrize(("size", "relevant"), [(12, 5), (1000, 300), (3000, 2)])
@pytest.mark.parametrize("k", [1, 7, 900])
def test_average_precision_over_hits_of_a_long_tie_is_exact(size, relevant, k):
    k = min(k, size)
    expected = exact_average_precision_over_hits(0, size, relevant, k)
    labels = np.arange(size) < relevant
    metric = trm.MeanAveragePrecision(k=k, denominator="hits")
    (value,) = trm.evaluate([labels], [np.zeros(size)], [metric]).values()
    assert value == pytest.approx(expected, rel=1e-14, abs=0)


def test_err_of_long_ties_with_few_and_with_many_labels_in_one_batch():
    few, many = np.tile([1.0, 2.0], 80), np.arange(1, 161) / 40
    labels = np.stack([few, many])
    found = trm.evaluate(labels, np.zeros((2, 160)), ["err@70"], per_query=True)
    stops = [[Fraction(2**label - 1) / 16 for label in row] for row in labels.tolist()]
    expected = [exact_err(row, k=70) for row in stops]
    assert found["err@70"] == pytest.approx(expected, rel=1e-12)


def test_each_choice_of_ties_has_a_policy():
    for choice in typing.get_args(options.Ties):
        assert trm.NDCG(k=2, ties=choice).measure.tie_breaking.policy.value == choice
    assert len(TiePolicy) == len(typing.get_args(options.Ties))
    unknown = dataclasses.replace(trm.NDCG(k=2).measure, options=(("ties", "first"),))
    with pytest.raises(ValueError, match="first"):
        _ = unknown.tie_breaking
