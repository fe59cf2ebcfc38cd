"""Runs the pages of `docs/moving/` beside the tools that they are about.

`test_moving_tf_ranking.py` does so for TF-Ranking and TensorFlow Recommenders.
"""

from unittest import mock

import keras_rs.metrics
import numpy as np
import pytest
import ranx
import sklearn.metrics
import torchmetrics.retrieval
from ir_measures import calc_aggregate, parse_measure
from moving_pages import assert_pairs_agree, assert_table_is_true, run_page
from recbole.evaluator import metrics_dict
from recommenders.evaluation import python_evaluation

import tfrankmetrics as tfr


# The value of a call in a table: by the tool, and by this library.
def of_keras_rs(call, page):
    metric = eval(call, {**vars(keras_rs.metrics)})
    metric.update_state(page["labels"], page["scores"])
    return metric.result()


def of_torchmetrics(call, page):
    metric = eval(call, {**vars(torchmetrics.retrieval)})
    target = page["target"] if "DCG" in call else page["target"] > 0
    return metric(page["preds"], target, indexes=page["indexes"])


def of_ranx(call, page):
    return ranx.evaluate(ranx.Qrels(page["qrels"]), ranx.Run(page["run"]), call)


def of_ir_measures(call, page):
    measure = parse_measure(call)
    return calc_aggregate([measure], page["qrels"], page["run"])[measure]


def of_scikit_learn(call, page):
    names = {"relevant": np.array(page["labels"]) > 0, "np": np}
    return eval(call, {**vars(sklearn.metrics), **page, **names})


def of_recommenders_or_recbole(call, page):
    if "(" in call:
        return eval(call, {**vars(python_evaluation), **page})
    metric = metrics_dict[call.lower()](page["config"])
    return next(iter(metric.calculate_metric(page["found"]).values()))


def arrays(metric, page, call, **options):
    return tfr.evaluate(page["labels"], page["scores"], [metric], **options)


def rows(metric, page, call, **options):
    columns = page["query"], page["labels"], page["scores"]
    return tfr.evaluate_rows(*columns, [metric], **options)


def tables(metric, page, call, **options):
    if call in ("ERR@3", "Judged@3"):
        options = {}  # not in the convention
    return tfr.evaluate_run(page["qrels"], page["run"], [metric], **options)


def frames_or_ids(metric, page, call, **options):
    if "(" in call:
        names = {**page["columns"], "score": "prediction"}
        return tfr.evaluate_run(
            page["true"], page["pred"], [metric], **names, **options
        )
    lists = page["relevant"], page["recommended"]
    return tfr.evaluate(*lists, [metric], inputs="ids", **options)


PAGES = {
    "keras-rs": (of_keras_rs, arrays, "keras_rs", 1e-6),
    "torchmetrics": (of_torchmetrics, rows, "torchmetrics", 1e-6),
    "ranx": (of_ranx, tables, "trec_eval", 1e-12),
    "ir-measures-pytrec-eval": (of_ir_measures, tables, "trec_eval", 1e-12),
    "scikit-learn": (of_scikit_learn, arrays, "sklearn", 1e-12),
    "recbole-recommenders": (
        of_recommenders_or_recbole,
        frames_or_ids,
        None,  # two tools
        1e-12,
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_page(name):
    theirs, ours, convention, tolerance = PAGES[name]
    with mock.patch.object(np, "float", float, create=True):  # RecBole needs NumPy 1
        namespace, pairs = run_page(f"moving/{name}")
        assert_pairs_agree(pairs, tolerance)

        def options(call):
            of_two = "recommenders" if "(" in call else "recbole"
            return {"convention": convention or of_two}

        assert_table_is_true(
            f"moving/{name}",
            lambda call: theirs(call, namespace),
            lambda metric, call, has_convention: ours(
                metric, namespace, call, **(options(call) if has_convention else {})
            ),
            tolerance,
        )


def test_page_of_gbdt():
    """The histories of the tools' own NDCG and of ours agree."""
    page, pairs = run_page("gbdt")
    for history in pairs:
        assert len({*history[0]}) == 5
    assert len(pairs) == 2
    assert_pairs_agree(pairs, 1e-5)
    labels, scores = [1, 0, 0, 1], [0.3, 0.2, 0.1, 0.4]
    assert page["eval_metric"](labels, scores, None, [2, 2]) == [("mrr", 1.0, True)]
