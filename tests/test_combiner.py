"""Tests what metrics on several workers share. `validation/` runs them on Beam."""

import copy
import importlib
import pickle
import random
import sys
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

import tfrankmetrics as trm
from tfrankmetrics.compute.combiner import exact_sums_of, means_and_number


def random_values(queries=200):
    """Values and weights of two metrics, with weights of very different sizes."""
    rng = np.random.default_rng(0)
    values = rng.random((2, queries))
    return values, 10.0 ** rng.integers(-30, 30, (2, queries))


def test_means_equal_fractions():
    values, weights = random_values()
    means, number = means_and_number(exact_sums_of(values, weights))
    assert number == 200
    for mean, v, w in zip(means, values, weights):
        exact = sum(map(Fraction, v * w)) / sum(map(Fraction, w))
        assert mean == pytest.approx(float(exact), rel=3e-16)


def test_the_order_of_queries_and_of_sums_changes_no_bit():
    values, weights = random_values()
    expected = means_and_number(exact_sums_of(values, weights))
    none = exact_sums_of(values[:, :0], weights[:, :0])
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(values.shape[1])
        ends = sorted(random.Random(seed).sample(range(200), 5))
        parts = [
            exact_sums_of(values[:, i], weights[:, i]) for i in np.split(order, ends)
        ]
        merged = sum(parts[:3], none) + sum(parts[4:], parts[3])
        assert means_and_number(merged) == expected
        # A few floats, whatever the queries.
        assert max(len(each.parts) for each in merged.ravel()) < 10


def test_queries_of_weight_0_do_not_count():
    values, weights = np.array([[0.5, 1.0, 0.0]]), np.array([[1.0, 0.0, 0.0]])
    assert means_and_number(exact_sums_of(values, weights)) == ([0.5], 1)
    (mean,), number = means_and_number(exact_sums_of(values[:, :0], weights[:, :0]))
    assert np.isnan(mean)
    assert number == 0


def test_sums_that_overflow_raise():
    with pytest.raises(ValueError, match=r"finite sums.*Divide the weights"):
        exact_sums_of(np.ones((1, 3)), np.full((1, 3), 1e308))
    with pytest.raises(ValueError, match="finite sums"):
        exact_sums_of(np.full((1, 2), 1e10), np.full((1, 2), 1e300))
    of_each = exact_sums_of(np.ones((1, 1)), np.full((1, 1), 1e308))
    with pytest.raises(ValueError, match="finite sums"):
        assert of_each + of_each


def test_copies_of_measures_are_equal():
    """Declarations are equal by identity, and workers receive pickled measures."""
    for metric in (trm.NDCG(k=10, gain="linear"), trm.MeanAveragePrecision()):
        measure = metric.measure
        assert copy.deepcopy(measure) == measure
        assert pickle.loads(pickle.dumps(measure)) == measure


def test_without_beam_the_import_says_what_to_install():
    with (
        mock.patch.dict(sys.modules, {"apache_beam": None}),
        pytest.raises(ImportError, match=r'pip install "\.\[beam\]"'),
    ):
        sys.modules.pop("tfrankmetrics.beam", None)
        importlib.import_module("tfrankmetrics.beam")
    assert not hasattr(trm, "beam")
