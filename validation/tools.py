"""Calls every tool with one signature to get a metric's value for each query.

`value_of(metric, k, queries)` takes this library's name of the metric, the cutoff or
None, and pairs of labels and scores. It returns a list of numbers. The functions only
convert the input to what a tool expects, such as binary labels or names of items.
"""

import contextlib
import dataclasses
import io
import math
import warnings
from collections.abc import Callable
from unittest import mock

import numpy as np
import scipy.stats
import sklearn.metrics
from queries import CUTOFFS
from sklearn.exceptions import UndefinedMetricWarning
from spark_session import spark_session

GRADED = ("ndcg", "dcg")


def binary(labels):
    return [int(label >= 1) for label in labels]


def query_by_query(value_of_one):
    """Turns a function of one query into a function of many queries."""

    def value_of(metric, k, queries):
        return [float(value_of_one(metric, k, *query)) for query in queries]

    return value_of


KERAS_RS = {
    "ndcg": "NDCG",
    "dcg": "DCG",
    "map": "MeanAveragePrecision",
    "mrr": "MeanReciprocalRank",
    "precision": "PrecisionAtK",
    "recall": "RecallAtK",
}


def keras_rs_metric(metric, k, **options):
    import keras_rs.metrics

    return getattr(keras_rs.metrics, KERAS_RS[metric])(k=k, **options)


@query_by_query
def keras_rs(metric, k, labels, scores):
    theirs = keras_rs_metric(metric, k)
    theirs.update_state(np.array([labels]), np.array([scores]))
    return theirs.result()


@query_by_query
def rax(metric, k, labels, scores):
    import jax.numpy as jnp
    import rax

    name = {"map": "ap"}.get(metric, metric)
    function = getattr(rax, f"{name}_metric")
    cutoff = {} if metric == "opa" else {"topn": k}
    return function(jnp.array(scores), jnp.array(labels), **cutoff)


@query_by_query
def scikit_learn(metric, k, labels, scores):
    from sklearn import metrics

    if metric == "auc":
        with warnings.catch_warnings():  # NaN if all or no items are relevant
            warnings.simplefilter("ignore", UserWarning)
            return metrics.roc_auc_score(binary(labels), scores)
    if metric == "map":
        with warnings.catch_warnings():  # 0 if no item is relevant
            warnings.simplefilter("ignore", UserWarning)
            return metrics.average_precision_score(binary(labels), scores)
    if metric == "coverage_error":
        return metrics.coverage_error([binary(labels)], [scores])
    function = {"ndcg": metrics.ndcg_score, "dcg": metrics.dcg_score}[metric]
    return function([labels], [scores], k=k)


@query_by_query
def torchmetrics(metric, k, labels, scores):
    import torch
    from torchmetrics.functional import retrieval

    name = {
        "ndcg": "retrieval_normalized_dcg",
        "map": "retrieval_average_precision",
        "mrr": "retrieval_reciprocal_rank",
        "auc": "retrieval_auroc",
    }.get(metric, f"retrieval_{metric}")
    target = torch.tensor(labels if metric in GRADED else binary(labels))
    # A Python list would become float32.
    preds = torch.tensor(scores, dtype=torch.float64)
    cutoff = {} if metric in ("r_precision", "auc") else {"top_k": k}
    return getattr(retrieval, name)(preds, target, **cutoff)


@query_by_query
def lightgbm(metric, k, labels, scores):
    return lightgbm_value(metric, k, labels, scores)


def lightgbm_value(metric, k, labels, scores, **parameters):
    import lightgbm

    # Without trees, the model returns its initial scores.
    parameters |= {"objective": "none", "metric": metric, "verbosity": -1}
    data = lightgbm.Dataset(
        np.zeros((len(labels), 1)),
        label=[math.floor(label) for label in labels],  # integers only
        group=[len(labels)],
        init_score=np.asarray(scores, np.float64),
    )
    with contextlib.redirect_stdout(io.StringIO()):  # hides a warning about the feature
        model = lightgbm.Booster({**parameters, "eval_at": [k or len(labels)]}, data)
        ((_, _, value, _),) = model.eval_train()
    return value


class _Fixed:
    """A recommender with implicit's interface and fixed scores, one row per user."""

    def __init__(self, scores):
        self.scores = np.asarray(scores)

    def recommend(self, users, user_items, N, **_):  # noqa: N803
        order = np.argsort(-self.scores[users], axis=1, kind="stable")[:, :N]
        return order.astype(np.int32), np.take_along_axis(self.scores, order, axis=1)


@query_by_query
def implicit(metric, k, labels, scores):
    import implicit.evaluation
    import scipy.sparse

    # Append irrelevant items, ranked last. implicit's AUC divides by their number, and
    # it reads past the end of a catalog of fewer than k items.
    labels, scores = [*labels, *[0] * k], [*scores, *[-np.inf] * k]
    relevant = scipy.sparse.csr_matrix([binary(labels)])
    nothing_seen = scipy.sparse.csr_matrix(relevant.shape)
    try:
        values = implicit.evaluation.ranking_metrics_at_k(
            _Fixed([scores]), nothing_seen, relevant, K=k, show_progress=False
        )
    except ZeroDivisionError:  # it skips a query without relevant items
        return math.nan
    return values[metric]


@query_by_query
def xgboost(metric, k, labels, scores):
    name = {"precision": "pre"}.get(metric, metric)
    labels = labels if metric in GRADED else binary(labels)
    return xgboost_value(name if k is None else f"{name}@{k}", labels, scores)


def xgboost_value(name, labels, scores, **parameters):
    """The value of a metric by its name in XGBoost, such as `ndcg@5-`."""
    import xgboost

    # Without trees, the model returns its initial scores.
    data = xgboost.DMatrix(
        np.zeros((len(labels), 1)),
        label=labels,
        base_margin=scores,
        group=[len(labels)],
    )
    parameters |= {"objective": "rank:ndcg", "disable_default_eval_metric": 1}
    model = xgboost.train({**parameters, "eval_metric": name}, data, num_boost_round=0)
    return float(model.eval(data).rpartition(":")[2])


@query_by_query
def catboost(metric, k, labels, scores):
    name = {
        "ndcg": "NDCG",
        "dcg": "DCG",
        "map": "MAP",
        "mrr": "MRR",
        "precision": "PrecisionAt",
        "recall": "RecallAt",
        "pfound": "PFound",
        "auc": "QueryAUC",
    }[metric]
    if metric not in (*GRADED, "pfound"):
        labels = binary(labels)
    return catboost_value(name if k is None else f"{name}:top={k}", labels, scores)


def catboost_value(name, labels, scores):
    """The value of a metric by its name in CatBoost, such as `NDCG:type=Exp`."""
    from catboost.utils import eval_metric

    labels, scores = np.asarray(labels, float), np.asarray(scores, float)
    (value,) = eval_metric(labels, scores, name, group_id=[0] * len(labels))
    return value


def spark(metric, k, queries):
    """The mean over all queries. Each mean is a job of Spark, which takes a second."""
    # In Scala, since the class of PySpark drops the grades.
    java = spark_session().sparkContext._jvm
    rows = [_recommended_and_relevant(metric, *query) for query in queries]
    rows = [getattr(java.scala, f"Tuple{len(r)}")(*map(_java_list, r)) for r in rows]
    data = spark_session().sparkContext._jsc.parallelize(_java_list(rows), 1)
    theirs = java.org.apache.spark.mllib.evaluation.RankingMetrics.of(data)
    name = {
        "ndcg": "ndcgAt",
        "map": "meanAveragePrecisionAt",
        "precision": "precisionAt",
        "recall": "recallAt",
    }[metric]
    return [getattr(theirs, name)(k or max(len(labels) for labels, _ in queries))]


def _java_list(values):
    result = spark_session().sparkContext._jvm.java.util.ArrayList()
    for value in values:
        result.add(value)
    return result


def _recommended_and_relevant(metric, labels, scores):
    """The items by descending score, the relevant ones, and for NDCG their labels."""
    ranked = np.argsort(-np.asarray(scores), kind="stable")
    by_label = sorted(range(len(labels)), key=lambda i: -labels[i])
    relevant = [item for item in by_label if labels[item] >= 1]
    grades = [float(labels[item]) for item in relevant]
    lists = ranked.astype(float).tolist(), [float(item) for item in relevant]
    return (*lists, grades) if metric == "ndcg" else lists


@query_by_query
def recbole(metric, k, labels, scores):
    from recbole.evaluator import metrics

    name = {
        "ndcg": "NDCG",
        "map": "MAP",
        "mrr": "MRR",
        "precision": "Precision",
        "recall": "Recall",
        "hit_rate": "Hit",
        "auc": "GAUC",
    }[metric]
    theirs = object.__new__(getattr(metrics, name))  # without its configuration
    labels = np.array(binary(labels))
    if metric == "auc":
        ranks = scipy.stats.rankdata(-np.asarray(scores))
        sums = ranks[labels > 0].sum(), len(labels), labels.sum()
        with np.errstate(invalid="ignore"):  # 0 / 0 once it has removed the user
            return theirs.metric_info(*(np.array([each]) for each in sums))
    ranked = labels[np.argsort(-np.asarray(scores), kind="stable")][:k]
    ranked = np.pad(ranked, (0, k - len(ranked)))[np.newaxis]
    relevant = np.array([labels.sum()])
    if not relevant:  # its functions return 0, or NaN for recall
        return math.nan  # but every user of RecBole has a relevant item
    with mock.patch.object(np, "float", float, create=True):  # of NumPy 1
        has_relevant = metric in ("ndcg", "map", "recall")
        values = theirs.metric_info(ranked > 0, *[relevant] * has_relevant)
    return values[0, -1]


@query_by_query
def recommenders(metric, k, labels, scores):
    name = "map" if metric == "map" else f"{metric}_at_k"
    return _of_recommenders(name, k, labels, scores)


@query_by_query
def recommenders_map_at_k(metric, k, labels, scores):
    return _of_recommenders("map_at_k", k, labels, scores)


def _of_recommenders(name, k, labels, scores):
    import pandas as pd
    from recommenders.evaluation import python_evaluation

    rated = pd.DataFrame(
        {"userID": 0, "itemID": range(len(labels)), "rating": labels}
    ).query("rating >= 1")
    if rated.empty:  # for one user alone the functions return 0
        return math.nan  # but among others only users with ratings count
    predicted = pd.DataFrame(
        {"userID": 0, "itemID": range(len(scores)), "prediction": scores}
    )
    function = getattr(python_evaluation, name)
    more = {"score_type": "raw"} if name == "ndcg_at_k" else {}
    return function(rated, predicted, k=k or len(labels), **more)


@query_by_query
def lenskit(metric, k, labels, scores):
    from lenskit.data import ItemList
    from lenskit.metrics import ranking

    name = {
        "ndcg": "NDCG",
        "dcg": "DCG",
        "map": "AveragePrecision",
        "mrr": "RecipRank",
        "precision": "Precision",
        "recall": "Recall",
        "hit_rate": "Hit",
        "rbp": "RBP",
    }[metric]
    order = np.argsort(-np.asarray(scores), kind="stable")
    retrieved = [item for item in order if scores[item] != -math.inf]
    relevant = [item for item, label in enumerate(labels) if label >= 1]
    if metric == "dcg" and not relevant:  # version 2025 returned 0
        return math.nan
    recommended = ItemList(item_ids=retrieved, ordered=True)
    grades = [float(labels[item]) for item in relevant]
    test = ItemList(item_ids=relevant, rating=grades)
    graded = {"gain": "rating"} if metric in GRADED else {}
    with warnings.catch_warnings(), contextlib.suppress(ZeroDivisionError):
        warnings.simplefilter("ignore", RuntimeWarning)  # 0 / 0 in recall
        return getattr(ranking, name)(k, **graded).measure_list(recommended, test)
    return math.nan  # average precision without relevant items


@query_by_query
def mind(metric, k, labels, scores):
    """The evaluation of the MIND dataset, which recommenders has."""
    from recommenders.models.deeprec import deeprec_utils

    scores = np.asarray(scores)
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)  # of one class
        if metric == "ndcg":
            return deeprec_utils.ndcg_score(np.array(labels), scores, k or len(labels))
        labels = np.array(binary(labels))
        if metric == "mrr":
            return deeprec_utils.mrr_score(labels, scores)
        return sklearn.metrics.roc_auc_score(labels, scores)


def qrels_and_run(queries):
    """Makes qrels and a run for trec_eval.

    The names of the documents make trec_eval keep tied documents in list order.
    Documents with a score of -inf are judged, but not in the run.
    """
    qrels, run = {}, {}
    for query, (labels, scores) in enumerate(queries):
        names = [f"d{len(labels) - place:05d}" for place in range(len(labels))]
        grades = [math.floor(label) for label in labels]  # integers only
        qrels[f"{query:05d}"] = dict(zip(names, grades, strict=True))
        scored = zip(names, map(float, scores), strict=True)
        run[f"{query:05d}"] = {name: s for name, s in scored if s != -math.inf}
    return qrels, run


def trec_eval(metric, k, queries):
    import pytrec_eval

    name = {
        "ndcg": "ndcg",
        "map": "map",
        "mrr": "recip_rank",
        "precision": "P",
        "recall": "recall",
        "hit_rate": "success",
        "r_precision": "Rprec",
        "bpref": "bpref",
    }[metric]
    if k is not None:
        name = f"{name}_cut_{k}" if metric in ("ndcg", "map") else f"{name}_{k}"
    qrels, run = qrels_and_run(queries)
    values = pytrec_eval.RelevanceEvaluator(qrels, {_requested(name)}).evaluate(run)
    return [values[query][name] for query in qrels]


def _requested(name):
    """The name of a measure in a request: `P.5` for `P_5`."""
    stem, _, last = name.rpartition("_")
    return f"{stem}.{last}" if last.isdigit() else name


def ir_measures(metric, k, queries):
    import ir_measures

    name = {
        "ndcg": "nDCG",
        "map": "AP",
        "mrr": "RR",
        "precision": "P",
        "recall": "R",
        "hit_rate": "Success",
        "r_precision": "Rprec",
        "bpref": "Bpref",
        "err": "ERR",
    }[metric]
    measure = ir_measures.parse_measure(name if k is None else f"{name}@{k}")
    qrels, run = qrels_and_run(queries)
    results = ir_measures.iter_calc([measure], qrels, run)
    values = {result.query_id: result.value for result in results}
    return [values[query] for query in qrels]


def ranx(metric, k, queries):
    import numba
    import ranx

    metric = {"r_precision": "r-precision", "rbp": "rbp.80"}.get(metric, metric)
    qrels, run = qrels_and_run(queries)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", numba.NumbaTypeSafetyWarning)
        values = ranx.evaluate(
            ranx.Qrels(qrels),
            ranx.Run(run),
            metric if k is None else f"{metric}@{k}",
            return_mean=False,
        )
    return np.atleast_1d(values).tolist()


@dataclasses.dataclass(frozen=True)
class Tool:
    """The metrics of a tool and the convention that gives its values."""

    name: str
    package: str
    convention: str
    value_of: Callable
    # Our names of the tool's metrics, with the cutoffs of each.
    metrics: dict[str, tuple[int | None, ...]]
    # The metrics for which the convention breaks ties as the tool does.
    ties: tuple[str, ...]
    tolerance: float = 1e-12
    # Whether all labels are 0 or 1, also for NDCG.
    only_binary: bool = False
    # Whether `value_of` returns only the mean over the queries.
    only_mean: bool = False
    # Whether the input can say that an item was not retrieved.
    has_missed: bool = False
    # Whether the tool finds the relevant items itself, also for fractional labels.
    has_fractions: bool = False
    # The options of a metric in which the tool differs from the convention.
    options: dict[str, dict] = dataclasses.field(default_factory=dict)


GIVEN = CUTOFFS[1:]
BINARY = ("map", "mrr", "precision", "recall")

TOOLS = [
    Tool(
        "keras-rs",
        "keras-rs",
        "keras_rs",
        keras_rs,
        dict.fromkeys(("ndcg", "dcg", *BINARY), CUTOFFS),
        ties=(),  # at random
        tolerance=1e-6,
        has_fractions=True,
    ),
    Tool(
        "rax",
        "rax",
        "rax",
        rax,
        {**dict.fromkeys(("ndcg", "dcg", *BINARY), CUTOFFS), "opa": (None,)},
        ties=("ndcg", "dcg", *BINARY),
        tolerance=1e-6,
        has_missed=True,
        has_fractions=True,
    ),
    Tool(
        "trec_eval",
        "pytrec-eval-terrier",
        "trec_eval",
        trec_eval,
        {
            "ndcg": CUTOFFS,
            "map": CUTOFFS,
            "mrr": (None,),
            "precision": GIVEN,
            "recall": GIVEN,
            "hit_rate": GIVEN,
            "r_precision": (None,),
            "bpref": (None,),
        },
        ties=("ndcg", "map", "mrr", "precision", "recall", "hit_rate", "bpref"),
        has_missed=True,
    ),
    Tool(
        "ir_measures",
        "ir-measures",
        "ir_measures",
        ir_measures,
        {
            "ndcg": CUTOFFS,
            "map": CUTOFFS,
            "mrr": CUTOFFS,
            "precision": GIVEN,
            "recall": GIVEN,
            "hit_rate": GIVEN,
            "r_precision": (None,),
            "bpref": (None,),
        },
        # Without RR@k, which ir_measures computes with another program.
        ties=("ndcg", "map", "precision", "recall", "hit_rate", "bpref"),
        has_missed=True,
    ),
    Tool(
        "ranx",
        "ranx",
        "trec_eval",
        ranx,
        {
            **dict.fromkeys(("ndcg", "dcg", *BINARY, "hit_rate", "f1"), CUTOFFS),
            "r_precision": (None,),
            "rbp": (None,),
        },
        ties=("ndcg", "dcg", *BINARY, "hit_rate", "f1", "r_precision", "rbp"),
        has_missed=True,
        options={"rbp": {"graded": True, "persistence": 0.8}},
    ),
    Tool(
        "scikit-learn",
        "scikit-learn",
        "sklearn",
        scikit_learn,
        {
            **dict.fromkeys(("ndcg", "dcg"), CUTOFFS),
            **dict.fromkeys(("map", "auc", "coverage_error"), (None,)),
        },
        ties=("ndcg", "dcg", "auc", "coverage_error"),
    ),
    Tool(
        "torchmetrics",
        "torchmetrics",
        "torchmetrics",
        torchmetrics,
        {
            **dict.fromkeys(("ndcg", *BINARY, "hit_rate"), CUTOFFS),
            "r_precision": (None,),
            "auc": (None,),
        },
        ties=("ndcg", "auc"),  # others have no documented order
        tolerance=1e-6,
    ),
    Tool(
        "LightGBM",
        "lightgbm",
        "lightgbm",
        lightgbm,
        {"ndcg": CUTOFFS, "map": CUTOFFS},
        ties=("ndcg", "map"),
    ),
    Tool(
        "implicit",
        "implicit",
        "kaggle",
        implicit,
        {"map": GIVEN},
        ties=("map",),
    ),
    Tool(
        "XGBoost",
        "xgboost",
        "xgboost",
        xgboost,
        {"ndcg": CUTOFFS, "map": CUTOFFS, "precision": CUTOFFS},
        ties=("ndcg", "map", "precision"),
        tolerance=1e-12,
    ),
    Tool(
        "CatBoost",
        "catboost",
        "catboost",
        catboost,
        {
            **dict.fromkeys(("ndcg", "dcg", *BINARY), CUTOFFS),
            "auc": (None,),
        },
        ties=("ndcg", "dcg", *BINARY, "auc"),
    ),
    Tool(
        "Spark",
        "pyspark",
        "spark",
        spark,
        {"ndcg": CUTOFFS, "map": CUTOFFS, "precision": GIVEN, "recall": GIVEN},
        ties=("ndcg", "map", "precision", "recall"),  # it reads lists in their order
        only_mean=True,
    ),
    Tool(
        "RecBole",
        "recbole",
        "recbole",
        recbole,
        {
            **dict.fromkeys(("ndcg", *BINARY, "hit_rate"), GIVEN),
            "auc": (None,),
        },
        ties=("auc",),  # others follow PyTorch's top_k
        only_binary=True,
    ),
    Tool(
        "recommenders",
        "recommenders",
        "recommenders",
        recommenders,
        dict.fromkeys(("ndcg", "map", "precision", "recall"), CUTOFFS),
        ties=("ndcg", "map", "precision", "recall"),
    ),
    Tool(
        "recommenders' map_at_k",
        "recommenders",
        "recommenders_map_at_k",
        recommenders_map_at_k,
        {"map": CUTOFFS},
        ties=("map",),
    ),
    Tool(
        "LensKit",
        "lenskit",
        "lenskit",
        lenskit,
        {
            **dict.fromkeys(("ndcg", *BINARY, "hit_rate"), CUTOFFS),
            **dict.fromkeys(("dcg", "rbp"), CUTOFFS),
        },
        ties=("ndcg", "dcg", *BINARY, "hit_rate", "rbp"),
        has_missed=True,
    ),
    Tool(
        "MIND",
        "recommenders",
        "mind",
        mind,
        {"ndcg": CUTOFFS, "mrr": (None,), "auc": (None,)},
        ties=("auc",),  # others follow NumPy's unstable sort
    ),
]
