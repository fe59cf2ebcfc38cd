"""Tied scores: every closed form against all orders of the tied items."""

import numpy as np
import oracle
import pytest
from cases import CASES, random_lists

import tfrankmetrics as tfr


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "item-weights"])
def test_expected_ties_equal_the_mean_over_all_orders(case, weighted):
    labels, scores = random_lists(7, queries=40, size=6, ties=True)
    scores[:5] = 0.5  # whole lists tied, so that every cutoff cuts a group
    scores[5:8, 2:] = -np.inf
    scores[8:11, ::2] = np.nan
    weights = (
        np.random.default_rng(8).integers(1, 4, labels.shape) if weighted else None
    )
    cutoffs = range(1, 8)
    values = tfr.evaluate(
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
            if expected is None:
                assert np.isnan(value)
            else:
                np.testing.assert_allclose(value, expected[0], rtol=1e-10, atol=1e-12)
