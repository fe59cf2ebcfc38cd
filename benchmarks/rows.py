"""Compares `evaluate_rows` with tools that evaluate runs and arrays.

The script computes five metrics for 100,000 queries of ten rows. The input of ranx and
pytrec_eval is converted before timing starts. pytrec_eval runs on all queries at once,
and on one query at a time. scikit-learn runs on one query at a time too, as lists of
unequal length require. All lists here have the same length, so scikit-learn also
computes NDCG for all of them in one call. Run it with:

    python benchmarks/rows.py
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's start-up messages

import numpy as np
import pytrec_eval
import ranx
import sklearn.metrics
from report import Target, publish
from timing import median_and_spread, ratio, timed

from tfrankmetrics import evaluate_rows

QUERIES, LENGTH = 100_000, 10
FEW = 2000  # queries for tools that are called once per query
KINDS = ["ndcg", "map", "mrr", "precision", "recall"]
NAMES = [f"{kind}@10" for kind in KINDS]


def data():
    """Grades and scores `[QUERIES, LENGTH]`. Every query has a relevant item."""
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 5, (QUERIES, LENGTH)) * (rng.random(LENGTH) < 0.5)
    grades[:, 0] = np.maximum(grades[:, 0], 1)
    return grades, rng.normal(size=grades.shape)


def as_dicts(values, kind):
    """The input of ranx and pytrec_eval: a dict of documents for each query."""
    return {
        f"q{query}": {f"d{item}": kind(value) for item, value in enumerate(row)}
        for query, row in enumerate(values.tolist())
    }


def by_ranx(grades, scores):
    """All five metrics by ranx. It is compiled before timing and uses all cores."""
    qrels = ranx.Qrels(as_dicts(grades, int))
    run = ranx.Run(as_dicts(scores, float))
    return lambda: ranx.evaluate(qrels, run, NAMES)


def by_pytrec_eval(grades, scores):
    """All five metrics by pytrec_eval, whose reciprocal rank has no cutoff."""
    names = {"ndcg_cut.10", "map_cut.10", "recip_rank", "P.10", "recall.10"}
    qrels, run = as_dicts(grades, int), as_dicts(scores, float)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, names)

    def mean(found):
        of_queries = found.values()
        return {"precision@10": np.mean([values["P_10"] for values in of_queries])}

    def one_by_one():
        for query in list(run)[:FEW]:
            one = pytrec_eval.RelevanceEvaluator({query: qrels[query]}, names)
            one.evaluate({query: run[query]})

    return lambda: mean(evaluator.evaluate(run)), one_by_one


def by_scikit_learn(grades, scores):
    """NDCG and average precision by scikit-learn, one query per call."""
    relevant = grades >= 1

    def one_by_one():
        for query in range(FEW):
            one = slice(query, query + 1)
            sklearn.metrics.ndcg_score(grades[one], scores[one], k=10)
            sklearn.metrics.average_precision_score(relevant[query], scores[query])

    return one_by_one


def main():
    """Measures all tools in turns and publishes the results."""
    grades, scores = data()
    order = np.random.default_rng(1).permutation(QUERIES * LENGTH)
    ids = np.repeat(np.arange(QUERIES), LENGTH)
    shuffled = [column.ravel()[order] for column in (ids, grades, scores)]
    sizes = np.full(QUERIES, LENGTH)
    all_at_once, one_by_one = by_pytrec_eval(grades, scores)
    sorted_rows = [None, grades.ravel(), scores.ravel()]
    of_all = {
        "ours, shuffled rows": lambda: evaluate_rows(*shuffled, NAMES),
        "ours, sorted rows": lambda: evaluate_rows(*sorted_rows, NAMES, groups=sizes),
        "ranx": by_ranx(grades, scores),
        "pytrec_eval, all queries": all_at_once,
    }
    # A tool that skips part of the work would return another value.
    values = [call()["precision@10"] for call in of_all.values()]
    np.testing.assert_allclose(values, np.mean(grades > 0))
    of_all["scikit-learn, all queries, NDCG only"] = lambda: sklearn.metrics.ndcg_score(
        grades, scores, k=10
    )
    of_few = {
        "pytrec_eval, one query per call": one_by_one,
        "scikit-learn, one query per call, two metrics": by_scikit_learn(
            grades, scores
        ),
    }
    times = timed({**of_all, **of_few}, seconds=60, least=7)
    times = {
        name: 1000 * of / (FEW if name in of_few else QUERIES)
        for name, of in times.items()
    }
    rows, targets = [], []
    anyhow, by_query, *_ = times
    for name in times:
        rows.append([name, median_and_spread(times[name])])
        rows[-1] += [f"{ratio(times, name, own):.3g}" for own in (anyhow, by_query)]
        print(*rows[-1], sep="  ", flush=True)
    for name, limit in (("ranx", 2), *((name, 20) for name in of_few)):
        what = f"1,000,000 rows, 100,000 queries: {name} / {anyhow}"
        targets.append(Target.at_least(limit, what, ratio(times, name, anyhow)))
    head = ["", "µs per query", f"/ {anyhow}", f"/ {by_query}"]
    publish(
        "rows",
        "Metrics on a million rows",
        ["tensorflow", "ranx", "pytrec-eval-terrier", "scikit-learn"],
        {"Five metrics, 100,000 queries": [head, *rows]},
        targets,
    )


if __name__ == "__main__":
    main()
