"""Compares this library with TensorFlow Ranking on the same tensors."""

import json

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_recommenders as tfrs
from cases import make_metric
from conventions_document import (
    choice_examples,
    example_id,
    examples_in_batches,
    same_values,
)
from queries import (
    GRADES,
    LONG,
    LONG_CUTOFFS,
    SOME_ZERO,
    WEIGHTS,
    name_of,
    random_batch,
    subtopics_of,
)
from random_orders import TIED_LABELS, TIED_SCORES, mean_over_orders
from tf_ranking import METRICS, VALUES, cutoffs_of, groups, recorded_values, value

import tfrankmetrics as trm

BATCHES = 8


@pytest.mark.parametrize("weights", [*WEIGHTS, SOME_ZERO])
@pytest.mark.parametrize("grades", GRADES)
def test_equal_values(grades, weights, compare):
    rng = np.random.default_rng(1)
    ours = {
        of: trm.RankingMetrics(
            [
                make_metric(name, k, convention="tf_ranking")
                for name in names
                for k in cutoffs_of(name)
            ]
        )
        for of, names in groups(METRICS).items()
    }
    for _ in range(BATCHES):
        labels, *rest = random_batch(rng, grades, weights)
        y_true = {"labels": labels, "subtopics": subtopics_of(labels)}
        for of, names in groups(METRICS).items():
            ours[of].reset_state()
            ours[of].update_state(y_true[of], *rest)
            values = ours[of].result()
            for metric in names:
                compare(
                    "tensorflow-ranking",
                    "tf_ranking",
                    metric,
                    [float(values[name_of(metric, k)]) for k in cutoffs_of(metric)],
                    [value(metric, k, y_true[of], *rest) for k in cutoffs_of(metric)],
                    rtol=1e-5,
                    atol=1e-5,
                )


def test_equal_values_of_long_lists(compare):
    rng = np.random.default_rng(1)
    labels = np.maximum(rng.integers(-3, 5, (4, LONG)), 0)
    labels[0] *= rng.random(LONG) < 0.05  # few are relevant
    scores = rng.permuted(np.tile(np.arange(LONG), (4, 1)), axis=1) / 16
    y_true = {"labels": labels, "subtopics": subtopics_of(labels)}
    for of, names in groups(METRICS).items():
        for metric in names:
            for k in LONG_CUTOFFS if len(cutoffs_of(metric)) > 1 else (None,):
                theirs = value(metric, k, y_true[of], scores)
                made = [make_metric(metric, k, convention="tf_ranking")]
                (ours,) = trm.evaluate(y_true[of], scores, made).values()
                package = "tensorflow-ranking", "tf_ranking", f"{metric}, long"
                compare(*package, ours, theirs, rtol=1e-5)


@pytest.mark.parametrize("kind", ["untied", "tied"])
def test_top_k_accuracy_of_tensorflow_recommenders(kind, compare):
    """Scores of small whole numbers are often tied, and their products are exact."""
    rng = np.random.default_rng(0)
    shape = LONG, (2 if kind == "tied" else 1)
    items = rng.integers(-2, 3, shape) if kind == "tied" else np.arange(LONG)[:, None]
    queries = rng.integers(1, 4, (200, shape[1])).astype("f4")
    items, relevant = items.astype("f4"), rng.integers(0, LONG, 200)
    cutoffs = 1, 5, 10, 250
    theirs = tfrs.metrics.FactorizedTopK(
        tf.data.Dataset.from_tensor_slices(items).batch(16), ks=cutoffs
    )
    theirs.update_state(queries, items[relevant])
    ours = trm.evaluate(
        relevant,
        queries @ items.T,
        [f"hit_rate@{k}" for k in cutoffs],
        inputs="catalog",
        convention="tfrs",
    )
    compare(
        "tensorflow-recommenders",
        "tfrs",
        f"hit_rate, {kind}",
        [*ours.values()],
        [float(value) for value in theirs.result()],
        rtol=1e-6,
    )


# In OPA, TF-Ranking counts a tied pair as wrongly ordered, whatever order it draws.
ORDERED = [(name, k) for name in METRICS for k in cutoffs_of(name)[:3:2]]
ORDERED.remove(("opa", None))


@pytest.mark.parametrize(("metric", "k"), ORDERED)
def test_our_value_is_the_mean_of_random_orders(metric, k, compare):
    is_of_subtopics = metric in groups(METRICS)["subtopics"]
    y_true = subtopics_of(TIED_LABELS) if is_of_subtopics else TIED_LABELS
    tf.keras.utils.set_random_seed(0)
    mean, standard_error = mean_over_orders(
        lambda labels, scores: value(metric, k, labels, scores), y_true
    )
    name = name_of(metric, k)
    ours = trm.evaluate(y_true, TIED_SCORES, [name], convention="tf_ranking")
    compare(
        "tensorflow-ranking",
        "tf_ranking",
        f"{metric}, mean of random ties",
        ours[name],
        mean,
        rtol=1e-6,
        atol=4 * standard_error,
    )


def test_the_recorded_values_equal_the_live_tool():
    recorded = json.loads(VALUES.read_text(encoding="utf-8"))
    live = recorded_values()
    assert recorded["versions"] == live["versions"]
    for ours, theirs in zip(recorded["batches"], live["batches"], strict=True):
        for name in theirs:
            if name.startswith("values"):
                assert ours[name] == pytest.approx(theirs[name], rel=1e-6, abs=1e-7)
            else:
                assert ours[name] == theirs[name]


# Enough to see each of three equally likely orders.
REPETITIONS = 40


def values_seen(example, batches=1):
    """TF-Ranking's values for an example in the document, to four decimals."""
    options = dict(example.options)
    if "gain" in options:
        options["gain_fn"] = options.pop("gain")
    return {
        round(
            value(
                example.metric,
                example.k,
                example.labels,
                example.scores,
                example.sample_weight,
                batches,
                **options,
            ),
            4,
        )
        for _ in range(REPETITIONS)
    }


@pytest.mark.parametrize(("example", "rows"), choice_examples(), ids=example_id)
def test_values_in_the_document(example, rows):
    tf.keras.utils.set_random_seed(0)
    printed = [row.values for row in rows if "TF-Ranking" in row.tools]
    if example.lists_every_tool:
        assert len(printed) == (example.metric in METRICS)
    if printed:
        assert same_values(values_seen(example), *printed)


@pytest.mark.parametrize(
    ("example", "batches", "printed"),
    list(examples_in_batches(column=0)),
    ids=example_id,
)
def test_differences_in_the_document(example, batches, printed):
    tf.keras.utils.set_random_seed(0)
    assert same_values(values_seen(example, batches), printed)
