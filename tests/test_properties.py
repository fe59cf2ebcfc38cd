"""Tests properties of every metric on lists that Hypothesis generates.

Nothing is compiled, because a graph of all metrics takes seconds and more than a gigabyte.
`test_graph.py` tests that compiled calls return the same bits, and `fuzz.py` compares
random lists with the oracle in graphs and under XLA.
"""

import hypothesis.strategies as st
import numpy as np
import oracle
import pytest
from cases import (
    LABEL_METRICS,
    METRICS,
    SUBTOPIC_METRICS,
    labels_for,
    make_metric,
    random_lists,
)
from helpers import (
    CASES_AT_CUTOFFS,
    OBJECTS_BY_KIND,
    OBJECTS_WITHOUT_FLOAT_OPTIONS,
    SCORES,
    batches,
    few_examples,
    judged_without_mask,
)
from hypothesis import example, given
from hypothesis.extra import numpy as hnp

import tfrankmetrics as trm

pytestmark = [
    pytest.mark.usefixtures("run_eagerly"),
    judged_without_mask,
    # Random labels may all be below the threshold.
    pytest.mark.filterwarnings("ignore:An item is relevant if"),
]


def labels_by_kind(labels):
    """The labels for each of the two lists in `OBJECTS_BY_KIND`."""
    return labels, labels_for(SUBTOPIC_METRICS[0], labels)


# Every metric with its default options, for tests that would compile many graphs.
DEFAULTS_BY_KIND = [
    [make_metric(name, 3) for name in names]
    for names in (LABEL_METRICS, SUBTOPIC_METRICS)
]


def evaluate(
    labels,
    scores,
    *,
    metrics_by_kind=OBJECTS_WITHOUT_FLOAT_OPTIONS,
    per_query=True,
    **options,
):
    values = {}
    if np.isin(labels, (-1, 1)).all():  # without a mask these are an error
        options = {"mask": labels >= 0} | options
    for metrics, y_true in zip(metrics_by_kind, labels_by_kind(labels)):
        values |= trm.evaluate(y_true, scores, metrics, per_query=per_query, **options)
    return values


def assert_close(ours, theirs):
    for name, value in ours.items():
        np.testing.assert_allclose(
            value, theirs[name], rtol=1e-6, atol=1e-9, err_msg=name
        )


@st.composite
def weighted_batches(draw):
    """Draws labels, scores, and weights of items or None."""
    labels, scores = draw(batches(max_items=5, max_lists=9))
    weights = st.sampled_from([0.0, 0.5, 1.0, 3.0])
    weights = hnp.arrays(np.float64, labels.shape, elements=weights)
    return labels, scores, draw(st.none() | weights)


def weighted_lists():
    """Lists of many kinds, whatever Hypothesis draws."""
    labels, scores = random_lists(4, queries=20, size=5)
    scores[:5, :2] = -np.inf
    return labels, scores, np.random.default_rng(4).integers(0, 4, labels.shape) / 2


@few_examples
@given(weighted_batches())
@example(weighted_lists())
@example((np.array([[1.0, 0.0]]), np.array([[-np.inf, np.nan]]), None))
@pytest.mark.filterwarnings("ignore:A weight of 0 does not mask")
def test_values_equal_the_oracle(batch):
    labels, scores, weights = batch
    ours = evaluate(
        labels,
        scores,
        metrics_by_kind=OBJECTS_BY_KIND,
        sample_weight=weights,
        per_query=False,
    )
    for name, (case, k) in CASES_AT_CUTOFFS.items():
        expected = oracle.mean(
            case.name,
            labels_for(case.name, labels),
            scores,
            weights=weights,
            k=k,
            **dict(case.options),
        )
        np.testing.assert_allclose(
            ours[name], expected, rtol=1e-9, atol=1e-12, err_msg=name
        )


@few_examples
@given(batches())
def test_equal_inputs_give_bitwise_equal_values(batch):
    first, second = evaluate(*batch), evaluate(*batch)
    for name in first:
        assert first[name].tobytes() == second[name].tobytes()


@few_examples
@given(batches(max_items=30), st.randoms(use_true_random=False))
def test_item_order_does_not_matter(batch, random):
    labels, scores = (array.copy() for array in batch)
    before = evaluate(labels, scores)
    for row in range(len(labels)):
        order = list(range(labels.shape[1]))
        random.shuffle(order)
        labels[row], scores[row] = labels[row][order], scores[row][order]
    assert_close(before, evaluate(labels, scores))


@few_examples
@given(batches(max_items=30), st.integers(1, 9), SCORES)
def test_padding_does_not_matter(batch, width, score):
    labels, scores = batch
    padded = evaluate(
        np.pad(labels, [(0, 0), (0, width)], constant_values=-1.0),
        np.pad(scores, [(0, 0), (width, 0)], constant_values=score)[:, ::-1],
    )
    assert_close(evaluate(labels, scores[:, ::-1]), padded)


@few_examples
@given(batches(), st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_only_the_order_of_the_scores_matters(batch, factor, shift):
    labels, scores = batch
    # Any increasing function keeps order and ties. This one maps scores to ranks.
    finite = scores[np.isfinite(scores)]
    ranks = np.searchsorted(np.unique(finite), scores).astype(float)
    moved = np.where(np.isfinite(scores), ranks * factor + shift, scores)
    assert_close(evaluate(labels, scores), evaluate(labels, moved))


@few_examples
@given(batches(), st.data(), st.booleans())
@pytest.mark.filterwarnings("ignore:A weight of 0 does not mask an item")
def test_values_are_in_their_range(batch, data, weighted):
    weights = st.sampled_from([0.0, 0.1, 1.0, 2.0, 50.0])
    weights = data.draw(hnp.arrays(np.float64, batch[0].shape, elements=weights))
    weights = weights if weighted else None
    for name, value in evaluate(*batch, sample_weight=weights).items():
        case, _ = CASES_AT_CUTOFFS[name]
        lowest, highest = METRICS[case.name].range
        if case.name == "rbp" and ("graded", True) not in case.options:
            highest = 1
        counted = ~np.isnan(value)
        assert (value[counted] >= lowest - 1e-12).all(), name
        assert (value[counted] <= highest + 1e-12).all(), name
        if weighted:
            continue
        is_list = (batch[0] >= 0).any(axis=1)
        if METRICS[case.name].defaults["empty"] == "skip":
            assert not counted[~is_list].any(), name
        else:
            assert (counted == is_list).all(), name


@few_examples
@given(batches())
def test_a_perfect_ranking_gets_the_best_value(batch):
    labels, scores = batch
    # Items with score -inf were not retrieved, so the best ranking lacks them, too.
    found = scores != -np.inf
    best = evaluate(labels, np.where(found, labels, -np.inf))
    given_order = evaluate(labels, scores)
    for name in best:
        case, _ = CASES_AT_CUTOFFS[name]
        assert_not_worse(name, given_order[name], best[name])
        if case.name == "ndcg":
            full = (labels > 0).any(axis=1) & (found | (labels < 0)).all(axis=1)
            np.testing.assert_allclose(best[name][full], 1.0, rtol=1e-12)


def assert_not_worse(name, before, after):
    if METRICS[CASES_AT_CUTOFFS[name][0].name].lower_is_better:
        before, after = after, before
    assert (~(before > after + 1e-9)).all(), name


@few_examples
@given(batches(), st.sampled_from([0.25, 1.0, 8.0]))
def test_equal_weights_change_nothing(batch, weight):
    labels, scores = batch
    metrics = {"metrics_by_kind": DEFAULTS_BY_KIND}
    unweighted = evaluate(labels, scores, **metrics)
    for shape in ((), labels.shape[:1], (len(labels), 1), labels.shape):
        weights = np.full(shape, weight)
        assert_close(
            evaluate(labels, scores, sample_weight=weights, **metrics), unweighted
        )


@few_examples
@given(batches(), st.integers(3, 12))
def test_batch_size_does_not_matter(batch, size):
    labels, scores = batch
    if (labels < 0).all():
        return
    for metrics, y_true in zip(OBJECTS_WITHOUT_FLOAT_OPTIONS, labels_by_kind(labels)):
        whole, parts = (trm.RankingMetrics(metrics) for _ in range(2))
        whole.update_state(y_true, scores)
        for start in range(0, len(labels), size):
            part = slice(start, start + size)
            parts.update_state(y_true[part], scores[part])
        together = parts.result()
        for name, value in whole.result().items():
            np.testing.assert_allclose(together[name], value, rtol=1e-6, err_msg=name)
