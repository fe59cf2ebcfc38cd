"""Runs the pages for TF-Ranking and TensorFlow Recommenders beside these tools."""

import numpy as np
import tensorflow_ranking
from moving_pages import assert_pairs_agree, assert_table_is_true, run_page

import tfrankmetrics as tfr


def test_page_of_tf_ranking():
    page, pairs = run_page("moving/tf-ranking")
    assert_pairs_agree(pairs, 1e-6)
    labels, scores = page["labels"].numpy(), page["scores"].numpy()

    def labels_of(call):
        if call.startswith(("AlphaDCG", "PrecisionIA")):  # two subtopics
            return np.stack([labels > 0, labels > 1], axis=2).astype("f4")
        return labels

    def theirs(call):
        metric = eval(call, {**vars(tensorflow_ranking.keras.metrics)})
        metric.update_state(labels_of(call), scores)
        return metric.result()

    def ours(metric, call, has_convention):
        options = {"convention": "tf_ranking"} if has_convention else {}
        return tfr.evaluate(labels_of(call), scores, [metric], **options)

    assert_table_is_true("moving/tf-ranking", theirs, ours, 1e-6)


def test_page_of_tensorflow_recommenders():
    _, pairs = run_page("moving/tfrs")
    assert_pairs_agree(pairs, 1e-6)
