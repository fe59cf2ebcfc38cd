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

import numpy as np
from queries import CUTOFFS

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
    import lightgbm

    # Without trees, the model returns its initial scores.
    parameters = {"objective": "none", "metric": metric, "verbosity": -1}
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

    if not any(binary(labels)):
        return math.nan  # implicit skips such a query
    # Append irrelevant items, ranked last. implicit's AUC divides by their number, and
    # it reads past the end of a catalogue of fewer than k items.
    labels, scores = [*labels, *[0] * k], [*scores, *[-np.inf] * k]
    relevant = scipy.sparse.csr_matrix([binary(labels)])
    nothing_seen = scipy.sparse.csr_matrix(relevant.shape)
    values = implicit.evaluation.ranking_metrics_at_k(
        _Fixed([scores]), nothing_seen, relevant, K=k, show_progress=False
    )
    return values[metric]


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

    metric = metric.replace("r_precision", "r-precision")
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
    # Whether the input can say that an item was not retrieved.
    has_missed: bool = False
    # Whether the tool finds the relevant items itself, also for fractional labels.
    has_fractions: bool = False


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
        "trec_eval",
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
        },
        ties=("ndcg", "dcg", *BINARY, "hit_rate", "f1", "r_precision"),
        has_missed=True,
    ),
    Tool(
        "scikit-learn",
        "scikit-learn",
        "sklearn",
        scikit_learn,
        {"ndcg": CUTOFFS, "dcg": CUTOFFS, "map": (None,), "auc": (None,)},
        ties=("ndcg", "dcg", "auc"),
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
]
