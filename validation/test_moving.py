"""Runs the pages of `docs/moving/` beside the tools that they are about.

`test_moving_tf_ranking.py` does so for TF-Ranking and TensorFlow Recommenders.
"""

from unittest import mock

import ir_measures
import keras_rs.metrics
import lightgbm
import numpy as np
import pytest
import pytrec_eval
import ranx
import sklearn.metrics
import torch
import torchmetrics.retrieval
import xgboost
from moving_pages import (
    assert_calls_are_true,
    assert_examples_are_true,
    assert_options_are_true,
    assert_pairs_agree,
    assert_weighted_values_are_true,
    flat,
    run_page,
)
from recbole.evaluator import DataStruct, metrics_dict
from recommenders.evaluation import python_evaluation

import tfrankmetrics as trm


# The value of a call in a table: by the tool, and by this library. An option may be
# shown with data of its own.
def of_keras_rs(call, page, tool):
    metric = eval(call, {**page, **vars(keras_rs.metrics)})
    metric.update_state(page["labels"], page["scores"])
    return metric.result()


def of_torchmetrics(call, page, tool):
    metric = eval(call, {**vars(torchmetrics.retrieval)})
    labels = page["unjudged" if "ignore_index" in call else "target"]
    if "DCG" not in call:
        labels = [min(label, 1) for label in labels]
    columns = page["query"], page["preds"], labels
    indexes, preds, target = map(torch.tensor, columns)
    return metric(preds, target, indexes=indexes)


def of_ranx_or_ir_measures_or_pytrec_eval(call, page, tool):
    of_tool = {"ranx": of_ranx, "ir_measures": of_ir_measures}
    return of_tool.get(tool, of_pytrec_eval)(call, page)


def of_ranx(call, page):
    if "(" in call:
        return eval(call, {**vars(ranx), **page})
    return ranx.evaluate(ranx.Qrels(page["qrels"]), ranx.Run(page["run"]), call)


def of_ir_measures(call, page):
    if call.startswith("["):
        return eval(call, {**vars(ir_measures), **page})
    measure = ir_measures.parse_measure(call)
    return ir_measures.calc_aggregate([measure], page["qrels"], page["run"])[measure]


def of_pytrec_eval(call, page):
    if "(" not in call:
        call = f"RelevanceEvaluator(qrels, {{{call!r}}})"
    evaluator = eval(call, {**vars(pytrec_eval), **page})
    return np.mean(flat(evaluator.evaluate(page["run"])))


def of_scikit_learn(call, page, tool):
    names = {"relevant": np.array(page["labels"]) > 0, "np": np}
    return eval(call, {**vars(sklearn.metrics), **page, **names})


def of_recommenders_or_recbole(call, page, tool):
    if "(" in call:
        return eval(call, {**vars(python_evaluation), **page})
    return of_recbole(call.lower(), page, metric_decimal_place=15)


def of_recbole(name, page, **options):
    """A metric by the class that RecBole's trainer calls."""
    found = DataStruct()
    pairs = zip(page["relevant"], page["recommended"], strict=True)
    rows = [[item in items for item in top] + [len(items)] for items, top in pairs]
    found.set("rec.topk", torch.tensor(rows))
    metric = metrics_dict[name]({"topk": [3], **options})
    (value,) = metric.calculate_metric(found).values()
    return value


def arrays(metric, page, call, **options):
    return trm.evaluate(page["labels"], page["scores"], [metric], **options)


def rows(metric, page, call, **options):
    columns = page["query"], page["target"], page["preds"]
    return trm.evaluate_rows(*columns, [metric], **options)


def tables(metric, page, call, **options):
    if call in ("ERR@3", "Judged@3"):
        options = {}  # not in the convention
    return trm.evaluate_run(page["qrels"], page["run"], [metric], **options)


def frames_or_ids(metric, page, call, **options):
    if "(" in call:
        return trm.evaluate_run(
            page["true"], page["pred"], [metric], **page["columns"], **options
        )
    lists = page["relevant"], page["recommended"]
    return trm.evaluate(*lists, [metric], inputs="ids", **options)


KERAS_RS = "moving/keras-rs-tfrs", "keras-rs"
TORCHMETRICS = "moving/torchmetrics-scikit-learn", "torchmetrics"
SCIKIT_LEARN = "moving/torchmetrics-scikit-learn", "scikit-learn"
RANX_AND_OTHERS = "moving/ranx-ir-measures-pytrec-eval", None
RECBOLE_AND_RECOMMENDERS = "moving/recbole-recommenders", None
GBDT = "guide/tracking", "LightGBM and XGBoost"

PAGES = {
    KERAS_RS: (of_keras_rs, arrays, "keras_rs", 1e-6),
    TORCHMETRICS: (of_torchmetrics, rows, "torchmetrics", 1e-6),
    SCIKIT_LEARN: (of_scikit_learn, arrays, "sklearn", 1e-12),
    RANX_AND_OTHERS: (
        of_ranx_or_ir_measures_or_pytrec_eval,
        tables,
        "trec_eval",
        1e-12,
    ),
    RECBOLE_AND_RECOMMENDERS: (
        of_recommenders_or_recbole,
        frames_or_ids,
        None,  # two tools
        1e-12,
    ),
}


def mrr_of_keras_rs(arguments):
    metric = keras_rs.metrics.MeanReciprocalRank()
    metric.update_state(*arguments)
    return metric.result()


def mrr_of_ours(arguments):
    metric = trm.MeanReciprocalRank(convention="keras_rs")
    metric.update_state(*arguments)
    return metric.result()


def weighted_of_keras_rs(call, labels, page, weights):
    metric = eval(call, {**page, **vars(keras_rs.metrics)})
    metric.update_state(*map(np.array, (labels, page["scores"], weights)))
    return metric.result()


def weighted_of_ours(metric, labels, page, weights, has_convention):
    options = {"convention": "keras_rs"} if has_convention else {}
    lists = labels, page["scores"], [metric]
    return trm.evaluate(*lists, sample_weight=weights, **options)


EXAMPLES = {KERAS_RS: (mrr_of_keras_rs, mrr_of_ours)}
WEIGHTED = {KERAS_RS: (weighted_of_keras_rs, weighted_of_ours)}


@pytest.mark.parametrize("part", PAGES, ids=lambda part: part[1] or part[0])
@mock.patch.object(np, "float", float, create=True)  # RecBole needs NumPy 1
def test_page(part):
    theirs, ours, convention, tolerance = PAGES[part]

    def options(call):
        of_two = "recommenders" if "(" in call else "recbole"
        return {"convention": convention or of_two}

    def of_us(metric, page, call, has_convention):
        return ours(metric, page, call, **(options(call) if has_convention else {}))

    page = run_page(*part)
    assert_pairs_agree(page.pairs, tolerance)
    assert_calls_are_true(page, theirs, of_us, tolerance)
    assert_options_are_true(page, theirs, of_us, tolerance)
    assert (part in EXAMPLES) == bool(page.examples)
    if page.examples:
        assert_examples_are_true(page, *EXAMPLES[part])
    assert (part in WEIGHTED) == bool(page.weighted)
    if page.weighted:
        assert_weighted_values_are_true(page, *WEIGHTED[part])


def test_keras_rs_shuffles_ties_in_any_case():
    values = set()
    for seed in range(20):
        metric = keras_rs.metrics.MeanReciprocalRank(shuffle_ties=False, seed=seed)
        metric.update_state([[0.0, 1.0]], [[0.5, 0.5]])
        values.add(float(metric.result()))
    assert values == {0.5, 1.0}


def test_torchmetrics_refuses_grades_but_in_ndcg():
    indexes, target = torch.tensor([0, 0]), torch.tensor([2, 0])
    preds = torch.tensor([0.9, 0.8])
    for name in ["MAP", "MRR", "Precision", "Recall", "HitRate", "RPrecision", "AUROC"]:
        metric = getattr(torchmetrics.retrieval, f"Retrieval{name}")()
        with pytest.raises(ValueError, match="binary"):
            metric(preds, target, indexes=indexes)
    ndcg = torchmetrics.retrieval.RetrievalNormalizedDCG()
    assert ndcg(preds, target, indexes=indexes) == 1


def test_torchmetrics_takes_the_lower_middle_value_of_an_even_number():
    median = torchmetrics.retrieval.RetrievalMRR(aggregation="median")
    indexes, target = torch.tensor([0, 0, 1, 1]), torch.tensor([1, 0, 0, 1])
    assert median(torch.tensor([0.9, 0.8, 0.9, 0.8]), target, indexes=indexes) == 0.5


def test_bpref_of_ranx_without_irrelevant_items():
    qrels, run = {"q": {"a": 1, "b": 1}}, {"q": {"a": 2.0, "b": 1.0}}
    theirs = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), "bpref")
    of_trec_eval = pytrec_eval.RelevanceEvaluator(qrels, {"bpref"}).evaluate(run)
    (ours,) = trm.evaluate_run(qrels, run, ["bpref"]).values()
    assert np.isnan(theirs)
    assert ours == of_trec_eval["q"]["bpref"]


def test_files_of_ranx(tmp_path):
    page = run_page(*RANX_AND_OTHERS).names
    qrels, run = ranx.Qrels(page["qrels"]), ranx.Run(page["run"], name="run")
    paths = tmp_path / "qrels.trec", tmp_path / "run.trec"
    qrels.save(paths[0], kind="trec")
    run.save(paths[1], kind="trec")
    read = [ranx.Qrels.from_file(str(paths[0])), ranx.Run.from_file(str(paths[1]))]
    theirs = ranx.evaluate(*read, ["map", "mrr"])
    assert trm.evaluate_run(*paths, ["map", "mrr"]) == pytest.approx(theirs)


def test_judged_queries_without_results():
    """ir_measures counts them, and pytrec_eval does not."""
    qrels, run = {"q1": {"a": 1}, "q2": {"a": 1}}, {"q1": {"a": 1.0}}
    ((_, theirs),) = ir_measures.calc_aggregate([ir_measures.AP], qrels, run).items()
    assert theirs == trm.evaluate_run(qrels, run, ["map"])["map"] == 0.5
    found = pytrec_eval.RelevanceEvaluator(qrels, {"map"}).evaluate(run)
    skipped = trm.evaluate_run(qrels, run, ["map"], missing_queries="skip")
    assert found == {"q1": skipped} == {"q1": {"map": 1.0}}


@pytest.mark.parametrize("relevant", ["a", "b"])
def test_tied_documents_in_ir_measures(relevant):
    """RR with a cutoff comes from another program, which orders them differently."""
    qrels, run = {"q": {relevant: 1}}, {"q": {"a": 1.0, "b": 1.0}}
    measures = [ir_measures.RR, ir_measures.RR @ 10]
    theirs = ir_measures.calc_aggregate(measures, qrels, run)
    values = [theirs[measure] for measure in measures]
    ours = trm.evaluate_run(qrels, run, ["mrr", "mrr@10"], convention="trec_eval")
    assert [*ours.values()] == [values[0]] * 2
    assert {*values} == {0.5, 1.0}


def test_auc_of_scikit_learn_without_relevant_items():
    with pytest.warns(sklearn.exceptions.UndefinedMetricWarning):
        assert np.isnan(sklearn.metrics.roc_auc_score([0, 0], [2, 1]))
    aucs = trm.evaluate([[1, 0], [0, 0]], [[2, 1], [2, 1]], ["auc"])
    assert aucs == {"auc": 1.0}


@mock.patch.object(np, "float", float, create=True)  # RecBole needs NumPy 1
def test_recbole_rounds():
    page = run_page(*RECBOLE_AND_RECOMMENDERS).names
    exact = of_recbole("ndcg", page, metric_decimal_place=15)
    rounded = of_recbole("ndcg", page, metric_decimal_place=4)
    assert rounded == round(float(exact), 4) != exact


def test_page_of_gbdt():
    """The histories of the tools' own NDCG and of ours agree."""
    page = run_page(*GBDT)
    for history in page.pairs:
        assert len({*history[0]}) == 5
    assert len(page.pairs) == 2
    assert_pairs_agree(page.pairs, 1e-5)
    labels, scores = [1, 0, 0, 1], [0.3, 0.2, 0.1, 0.4]
    eval_metric = page.names["eval_metric"]
    assert eval_metric(labels, scores, None, [2, 2]) == [("mrr", 1.0, True)]


@pytest.fixture(scope="module")
def gbdt():
    """The names of the page, whose last data and function are those for XGBoost."""
    return run_page(*GBDT).names


def lightgbm_data(gbdt, part, groups, **options):
    return lightgbm.Dataset(
        gbdt["x"][gbdt[part]], gbdt["y"][gbdt[part]], group=groups, **options
    )


def test_lightgbm_stops_on_the_first_metric_of_ours(gbdt):
    def feval(scores, data):
        values = trm.evaluate_rows(
            None, data.get_label(), scores, ["mrr", "err@5"], groups=data.get_group()
        )
        return [(name, value, True) for name, value in values.items()]

    training = lightgbm_data(gbdt, "train", gbdt["sizes"][:20])
    validation = lightgbm_data(gbdt, "dev", gbdt["sizes"][20:], reference=training)
    history, rounds = {}, 3
    booster = lightgbm.train(
        {"objective": "lambdarank", "metric": "None", "verbosity": -1},
        training,
        num_boost_round=60,
        valid_sets=[validation],
        feval=feval,
        callbacks=[
            lightgbm.early_stopping(rounds, first_metric_only=True, verbose=False),
            lightgbm.record_evaluation(history),
        ],
    )
    values = history["valid_0"]
    assert [*values] == ["mrr", "err@5"]
    assert booster.best_iteration == np.argmax(values["mrr"]) + 1
    assert len(values["mrr"]) == booster.best_iteration + rounds < 60


def test_lightgbm_passes_the_groups_to_eval_metric(gbdt):
    x, y, dev = gbdt["x"], gbdt["y"], gbdt["dev"]
    ranker = lightgbm.LGBMRanker(n_estimators=3, verbosity=-1)
    groups = gbdt["sizes"][20:]
    ranker.fit(
        x[gbdt["train"]],
        y[gbdt["train"]],
        group=gbdt["sizes"][:20],
        eval_X=x[dev],
        eval_y=y[dev],
        eval_group=[groups],
        eval_metric=gbdt["eval_metric"],
    )
    theirs = ranker.evals_result_["valid_0"]["mrr"]
    scores = ranker.predict(x[dev])
    ours = trm.evaluate_rows(None, y[dev], scores, ["mrr"], groups=groups)["mrr"]
    assert theirs[-1] == ours
    assert len({*theirs}) == 3


def test_xgboost_stops_on_a_metric_of_ours(gbdt):
    history, rounds = {}, 5
    booster = xgboost.train(
        {"objective": "rank:ndcg", "eval_metric": "ndcg@5"},
        gbdt["training"],
        num_boost_round=60,
        evals=[(gbdt["validation"], "dev")],
        custom_metric=gbdt["ranking_metrics"],
        evals_result=history,
        callbacks=[
            xgboost.callback.EarlyStopping(
                rounds=rounds, metric_name="mrr", maximize=True
            )
        ],
        verbose_eval=False,
    )
    values = history["dev"]["mrr"]
    assert booster.best_iteration == np.argmax(values)
    assert len(values) == booster.best_iteration + rounds + 1 < 60


def test_query_weights_of_lightgbm_and_xgboost(gbdt):
    """LightGBM has one weight per row, and XGBoost one per query."""
    x, y, train, dev = (gbdt[name] for name in ["x", "y", "train", "dev"])
    groups = gbdt["sizes"][20:]
    by_query = np.arange(1.0, 11)
    by_row = np.repeat(by_query, groups)
    plain = []  # without the weights

    def ndcg(labels, scores, weights, convention):
        metric, options = trm.NDCG(5, convention=convention), {"groups": groups}
        plain.extend(
            trm.evaluate_rows(None, labels, scores, [metric], **options).values()
        )
        (value,) = trm.evaluate_rows(
            None, labels, scores, [metric], sample_weight=weights, **options
        ).values()
        return value

    def of_lightgbm(scores, data):
        weights = data.get_weight()
        assert weights.shape == by_row.shape
        return "ours", ndcg(data.get_label(), scores, weights, "lightgbm"), True

    def of_xgboost(scores, data):
        weights = data.get_weight()
        assert weights.shape == by_query.shape
        weights = np.repeat(weights, groups)
        return "ours", ndcg(data.get_label(), scores, weights, "xgboost")

    training = lightgbm_data(gbdt, "train", gbdt["sizes"][:20])
    validation = lightgbm_data(gbdt, "dev", groups, weight=by_row, reference=training)
    histories = {}, {}
    lightgbm.train(
        {"objective": "lambdarank", "metric": "ndcg", "eval_at": [5], "verbosity": -1},
        training,
        num_boost_round=3,
        valid_sets=[validation],
        feval=of_lightgbm,
        callbacks=[lightgbm.record_evaluation(histories[0])],
    )
    xgboost.train(
        {"objective": "rank:ndcg", "eval_metric": "ndcg@5"},
        xgboost.DMatrix(x[train], y[train], group=gbdt["sizes"][:20]),
        num_boost_round=3,
        evals=[(xgboost.DMatrix(x[dev], y[dev], group=groups, weight=by_query), "dev")],
        custom_metric=of_xgboost,
        evals_result=histories[1],
        verbose_eval=False,
    )
    theirs = histories[0]["valid_0"]["ndcg@5"] + histories[1]["dev"]["ndcg@5"]
    ours = histories[0]["valid_0"]["ours"] + histories[1]["dev"]["ours"]
    assert ours == pytest.approx(theirs, rel=1e-5)
    assert len(ours) == len(plain) == 6
    assert np.all(np.abs(np.subtract(ours, plain)) > 1e-4)
