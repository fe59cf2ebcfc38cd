"""Compares this library with recorded values of TensorFlow Ranking.

`validation/tf_ranking.py` recorded them with the published tensorflow-ranking, which
does not run with a current TensorFlow. `validation/test_tf_ranking.py` compares the
recorded values with the tool itself.
"""

import json
import pathlib

import numpy as np
import pytest
from cases import metric_name, with_cutoffs

import tfrankmetrics as trm
from tfrankmetrics import CONVENTIONS

FILE = pathlib.Path(__file__).parent / "tf_ranking_values.json"
BATCHES = json.loads(FILE.read_text(encoding="utf-8"))["batches"]


def test_the_file_has_every_metric_and_kind_of_weights():
    metrics = CONVENTIONS["tf_ranking"].metrics
    names = {metric_name(*pair) for pair in with_cutoffs(metrics, (None, 1, 3, 20))}
    weights = [np.shape(batch["weights"])[1:] for batch in BATCHES]
    assert len(BATCHES) == 6
    for batch in BATCHES:
        assert names <= {*batch["values of labels"], *batch["values of subtopics"]}
    assert {(), (1,)} < set(weights)


@pytest.mark.parametrize("kind", ["labels", "subtopics"])
@pytest.mark.parametrize("batch", BATCHES)
def test_values_equal_tf_ranking(batch, kind):
    expected = batch[f"values of {kind}"]
    values = trm.evaluate(
        batch[kind],
        batch["scores"],
        list(expected),
        sample_weight=batch["weights"],
        convention="tf_ranking",
    )
    assert values == pytest.approx(expected, rel=1e-5, abs=1e-5)
