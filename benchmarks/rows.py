"""What metrics of flat rows cost, beside the tools that evaluate runs and arrays.

Five metrics of 100,000 queries of ten rows: `evaluate_rows`, ranx and pytrec_eval, the
latter two with data types of their own made beforehand; and scikit-learn, which has
functions of one query. Run it with:

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
OF_SCIKIT_LEARN = 2000  # as many queries as are measured of it
KINDS = ["ndcg", "map", "mrr", "precision", "recall"]


def data():
    """Grades and scores `[QUERIES, LENGTH]`; every query has something relevant."""
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 5, (QUERIES, LENGTH)) * (rng.random(LENGTH) < 0.5)
    grades[:, 0] = np.maximum(grades[:, 0], 1)
    return grades, rng.normal(size=grades.shape)


def as_dicts(values, kind):
    """What ranx and pytrec_eval are made of: a dict of dicts of documents."""
    return {
        f"q{query}": {f"d{item}": kind(value) for item, value in enumerate(row)}
        for query, row in enumerate(values.tolist())
    }


def by_ranx(grades, scores):
    """All five metrics by ranx, compiled beforehand and on all cores."""
    qrels = ranx.Qrels(as_dicts(grades, int))
    run = ranx.Run(as_dicts(scores, float))
    names = [f"{kind}@10" for kind in KINDS]
    return lambda: ranx.evaluate(qrels, run, names)


def by_pytrec_eval(grades, scores):
    """All five metrics by pytrec_eval; it has no cutoff for the reciprocal rank."""
    names = {"ndcg_cut.10", "map_cut.10", "recip_rank", "P.10", "recall.10"}
    evaluator = pytrec_eval.RelevanceEvaluator(as_dicts(grades, int), names)
    run = as_dicts(scores, float)
    return lambda: evaluator.evaluate(run)


def by_scikit_learn(grades, scores):
    """The two metrics of it that rank one query, a query after the other."""
    relevant = grades >= 1

    def evaluate():
        for query in range(OF_SCIKIT_LEARN):
            one = slice(query, query + 1)
            sklearn.metrics.ndcg_score(grades[one], scores[one], k=10)
            sklearn.metrics.average_precision_score(relevant[query], scores[query])

    return evaluate


def main():
    """Measures all of them, in turns."""
    grades, scores = data()
    order = np.random.default_rng(1).permutation(QUERIES * LENGTH)
    ids = np.repeat(np.arange(QUERIES), LENGTH)
    shuffled = [column.ravel()[order] for column in (ids, grades, scores)]
    flat = [None, grades.ravel(), scores.ravel()]
    sizes = np.full(QUERIES, LENGTH)
    names = [f"{kind}@10" for kind in KINDS]
    calls = {
        "ours, rows in any order": lambda: evaluate_rows(*shuffled, names),
        "ours, rows by query": lambda: evaluate_rows(*flat, names, groups=sizes),
        "ranx": by_ranx(grades, scores),
        "pytrec_eval": by_pytrec_eval(grades, scores),
        "scikit-learn, two metrics": by_scikit_learn(grades, scores),
    }
    times = timed(calls, seconds=60, least=7)
    queries = dict.fromkeys(calls, QUERIES)
    queries["scikit-learn, two metrics"] = OF_SCIKIT_LEARN
    times = {name: 1000 * of / queries[name] for name, of in times.items()}
    tables, targets = [], []
    anyhow, by_query, *others = times
    for name in times:
        tables.append([name, median_and_spread(times[name])])
        tables[-1] += [f"{ratio(times, name, own):.3g}" for own in (anyhow, by_query)]
        print(*tables[-1], sep="  ", flush=True)
    for name, limit in zip(others, (2, 20, 20), strict=True):
        for own in (anyhow, by_query):
            targets.append(
                Target.at_least(
                    limit,
                    f"1,000,000 rows, 100,000 queries: {name} / {own}",
                    ratio(times, name, own),
                )
            )
    head = ["", "µs a query", f"/ {anyhow}", f"/ {by_query}"]
    publish(
        "rows",
        "Metrics of a million rows",
        ["tensorflow", "ranx", "pytrec-eval-terrier", "scikit-learn"],
        {"Five metrics of 100,000 queries": [head, *tables]},
        targets,
    )


if __name__ == "__main__":
    main()
