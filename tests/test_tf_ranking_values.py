"""TensorFlow Ranking's values, from the file that `validation/tf_ranking.py` wrote.

They are of tensorflow-ranking as published, which does not load beside a current
TensorFlow; `validation/test_tf_ranking.py` holds the file to the live tool.
"""

import json
import pathlib

import numpy as np
import pytest
from cases import spelled, with_cutoffs

import tfrankmetrics as tfr
from tfrankmetrics import CONVENTIONS

FILE = pathlib.Path(__file__).parent / "tf_ranking_values.json"
BATCHES = json.loads(FILE.read_text(encoding="utf-8"))["batches"]


def test_the_file_has_every_kind_of_case():
    metrics = CONVENTIONS["tf_ranking"].metrics
    names = {spelled(*pair) for pair in with_cutoffs(metrics, (None, 1, 3, 20))}
    weights = [np.shape(batch["weights"])[1:] for batch in BATCHES]
    assert len(BATCHES) == 6
    for batch in BATCHES:
        assert names <= {*batch["values of labels"], *batch["values of subtopics"]}
    assert {(), (1,)} < set(weights)


@pytest.mark.parametrize("of", ["labels", "subtopics"])
@pytest.mark.parametrize("batch", BATCHES)
def test_equal_to_tf_ranking(batch, of):
    expected = batch[f"values of {of}"]
    values = tfr.evaluate(
        batch[of],
        batch["scores"],
        list(expected),
        sample_weight=batch["weights"],
        convention="tf_ranking",
    )
    assert values == pytest.approx(expected, rel=1e-5, abs=1e-5)
