"""TensorFlow Ranking beside this library, on the same tensors."""

import json

import numpy as np
import pytest
import tensorflow as tf
from cases import CLASSES
from conventions_document import choices, id_of, in_batches, same
from queries import CUTOFFS, GRADES, WEIGHTS, name_of, random_batch
from random_orders import TIED_LABELS, TIED_SCORES, mean_over_orders
from tf_ranking import METRICS, VALUES, recorded_values, value

import tfrankmetrics as tfr

BATCHES = 8


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("grades", GRADES)
def test_equal_values(grades, weights, compare):
    rng = np.random.default_rng(1)
    ours = tfr.RankingMetrics(
        [
            CLASSES[name](k=k, convention="tf_ranking")
            for name in METRICS
            for k in CUTOFFS
        ]
    )
    for _ in range(BATCHES):
        batch = random_batch(rng, grades, weights)
        ours.reset_state()
        ours.update_state(*batch)
        values = ours.result()
        for metric in METRICS:
            compare(
                "tensorflow-ranking",
                "tf_ranking",
                metric,
                [float(values[name_of(metric, k)]) for k in CUTOFFS],
                [value(metric, k, *batch) for k in CUTOFFS],
                rtol=1e-5,
                atol=1e-5,
            )


@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("metric", METRICS)
def test_its_random_orders_have_our_value_as_their_mean(metric, k, compare):
    tf.keras.utils.set_random_seed(0)
    mean, standard_error = mean_over_orders(
        lambda labels, scores: value(metric, k, labels, scores)
    )
    name = name_of(metric, k)
    ours = tfr.evaluate(TIED_LABELS, TIED_SCORES, [name], convention="tf_ranking")
    compare(
        "tensorflow-ranking",
        "tf_ranking",
        f"{metric}, ties",
        ours[name],
        mean,
        rtol=1e-6,
        atol=4 * standard_error,
    )


def test_the_recorded_values_are_those_of_the_live_tool():
    recorded = json.loads(VALUES.read_text(encoding="utf-8"))
    live = recorded_values()
    assert recorded["versions"] == live["versions"]
    for ours, theirs in zip(recorded["batches"], live["batches"], strict=True):
        for inputs in ("labels", "scores", "weights"):
            assert ours[inputs] == theirs[inputs]
        assert ours["values"] == pytest.approx(theirs["values"], rel=1e-6, abs=1e-7)


# Enough for each of three equally likely orders to come up.
REPETITIONS = 40


def values_seen(example, batches=1):
    """What it gives for an example of the document, to four decimals."""
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


@pytest.mark.parametrize(("example", "rows"), choices(), ids=id_of)
def test_the_document_gives_its_values(example, rows):
    tf.keras.utils.set_random_seed(0)
    printed = [row.values for row in rows if "TF-Ranking" in row.tools]
    if example.is_of_all:
        assert len(printed) == (example.metric in METRICS)
    if printed:
        assert same(values_seen(example), *printed)


@pytest.mark.parametrize(
    ("example", "batches", "printed"), list(in_batches(column=0)), ids=id_of
)
def test_the_document_gives_its_differences(example, batches, printed):
    tf.keras.utils.set_random_seed(0)
    assert same(values_seen(example, batches), printed)
