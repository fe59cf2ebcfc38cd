"""Measures `compare`, `evaluate_run` and `by=`, beside ranx and pandas.

`compare` reads the values of 100,000 queries in ten metrics for two models. ranx
compares two runs of fewer queries with the same test, including the metrics of the
runs. `evaluate_run` joins a million judgments with a million predictions, and pandas
does the same before `evaluate_rows`. `by=` adds slices to a million rows. Run it with:

    python benchmarks/compare.py
"""

import os
import resource
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # TensorFlow's start-up messages

import numpy as np
import pandas as pd
import ranx
from report import Target, publish
from timing import median_and_spread, ratio, timed

from tfrankmetrics import compare, evaluate_rows, evaluate_run

METRICS = ["ndcg@10", "map", "mrr"]
TEN = [
    f"{kind}@{k}"
    for kind in ("ndcg", "map", "mrr", "precision", "recall")
    for k in (5, 10)
]
QUERIES, ITEMS, ROWS = 20_000, 200, 1_000_000
FEW, PERMUTATIONS = 1000, 10_000  # for ranx


def values_of_queries(number):
    """Values of two models in ten metrics."""
    rng = np.random.default_rng(0)
    return {
        model: {f"metric {i}": rng.random(number).round(2) for i in range(10)}
        for model in ("A", "B")
    }


def large_comparison():
    """The seconds, and the gigabytes that the process grows by, of each test."""
    values = values_of_queries(100_000)
    rows, worst = [["test", "seconds", "gigabytes"]], 0
    for test in ("randomization", "t", "bootstrap"):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.perf_counter()
        compare(values, test=test)
        seconds = time.perf_counter() - start
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        rows.append([test, f"{seconds:.3g}", f"{(after - before) / 2**20:.2g}"])
        worst = max(worst, seconds)
        print(*rows[-1], flush=True)
    return rows, Target.at_most(
        30, "compare, 100,000 queries, ten metrics: seconds", worst
    )


def tables(text_ids):
    """Judgments and predictions of pairs, half of which are the same."""
    found = []
    for seed, name in ((1, "label"), (2, "score")):
        rng = np.random.default_rng(seed)
        pairs = rng.choice(QUERIES * ITEMS, ROWS, replace=False)
        frame = pd.DataFrame({"query_id": pairs // ITEMS, "item_id": pairs % ITEMS})
        if text_ids:
            frame = "id" + frame.astype(str)
        frame[name] = rng.integers(0, 3, ROWS) if seed == 1 else rng.normal(size=ROWS)
        found.append(frame)
    return found


def joined_by_pandas(qrels, run):
    """The metrics after a join by pandas."""
    rows = qrels.merge(run, on=["query_id", "item_id"], how="outer")
    rows = rows[rows.query_id.isin(qrels.query_id.unique())]
    scores = rows.score.fillna(-np.inf)
    return evaluate_rows(rows.query_id, rows.label.fillna(0), scores, METRICS)


def by_slice():
    """Functions that evaluate a million rows without slices and by slice."""
    rng = np.random.default_rng(0)
    query = rng.permutation(np.repeat(np.arange(ROWS // 20), 20))
    frame = pd.DataFrame({"query": query, "label": rng.integers(0, 3, ROWS)})
    frame["score"] = rng.normal(size=ROWS)
    frame["language"] = np.array(["de", "en", "fr"])[query % 3]
    frame["category"] = frame.language.astype("category")

    def evaluate(by):
        return lambda: evaluate_rows("query", "label", "score", TEN, data=frame, by=by)

    return {
        "no slices": evaluate(None),
        "a category": evaluate("category"),
        "text": evaluate("language"),
    }


def beside_ranx():
    """Functions that compare two runs of `FEW` queries by a randomization test."""
    rng = np.random.default_rng(0)
    qrels = {
        f"q{q}": {f"d{i}": int(v) for i, v in enumerate(rng.integers(0, 3, 20))}
        for q in range(FEW)
    }
    runs = {
        name: {q: {d: float(rng.normal()) for d in of} for q, of in qrels.items()}
        for name in ("A", "B")
    }
    their_qrels = ranx.Qrels(qrels)
    their_runs = [ranx.Run(run, name=name) for name, run in runs.items()]

    def theirs():
        ranx.compare(
            their_qrels,
            their_runs,
            METRICS,
            stat_test="fisher",
            n_permutations=PERMUTATIONS,
        )

    def ours():
        values = {
            n: evaluate_run(qrels, r, METRICS, per_query=True) for n, r in runs.items()
        }
        compare(values, resamples=PERMUTATIONS)

    return {"ours": ours, "ranx": theirs}


def main():
    """Measures everything and publishes the results."""
    large, target = large_comparison()
    targets, shown = [target], {}
    times = timed(beside_ranx(), seconds=20, least=3)
    targets.append(
        Target.at_least(10, "compare: ranx / ours", ratio(times, "ranx", "ours"))
    )
    shown["two runs, 1,000 queries, randomization test"] = times
    for text_ids in (False, True):
        qrels, run = tables(text_ids)
        what = (
            f"two tables of a million rows, ids are {'text' if text_ids else 'numbers'}"
        )
        functions = {
            "evaluate_run": lambda q=qrels, r=run: evaluate_run(q, r, METRICS),
            "pandas and evaluate_rows": lambda q=qrels, r=run: joined_by_pandas(q, r),
        }
        shown[what] = times = timed(functions, least=5)
        share = ratio(times, "evaluate_run", "pandas and evaluate_rows")
        targets.append(Target.at_most(2, f"{what}: ours / pandas", share))
    shown["a million rows, ten metrics, by slice"] = times = timed(
        by_slice(), seconds=10
    )
    for name in ("a category", "text"):
        share = ratio(times, name, "no slices")
        targets.append(Target.at_most(1.1, f"by={name} / no slices", share))
    rows = [["", "", "milliseconds"]]
    for what, times in shown.items():
        rows += [[what, name, median_and_spread(of)] for name, of in times.items()]
    for row in rows:
        print(*row, sep="  ")
    publish(
        "compare",
        "Comparisons, two tables and slices",
        ["tensorflow", "ranx", "pandas", "scipy"],
        {
            "`compare` of 100,000 queries, ten metrics, two models": large,
            "Comparisons, joins and slices": rows,
        },
        targets,
    )


if __name__ == "__main__":
    main()
