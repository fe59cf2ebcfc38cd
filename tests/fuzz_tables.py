"""Compares random tables and models with slow definitions, for `fuzz.py`.

`check_run` draws judgments and predictions with odd ids and large scores, passes them as
dicts, frames and files, and compares every query with the oracle. `check_compare`
compares means, intervals, tests and counts with SciPy.
"""

import math
import pathlib
import tempfile

import numpy as np
import oracle
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.stats

import tfrankmetrics as trm

METRICS = ("ndcg@3", "map", "mrr", "precision@2", "recall@3", "rbp", "bpref")
# Ids that files, frames and Python may treat in an odd way.
ODD_IDS = ["1", "01", "1.0", "NA", "nan", "#x", "a\u00a0b", "\u3000", "\x85", "é"]
ODD_IDS += ["e\u0301", "🙂", "'", '"', ",", "\\", "None", "-1", "a" * 300, "\u200b"]
LARGE = 2**60
KINDS = ("whole", "floats", "large", "mixed", "infinite")


def draw_scores(rng, number, kind):
    """Scores with ties: whole numbers, floats, large integers, or some of each."""
    whole = rng.integers(0, 4, number).tolist()
    kinds = {
        "whole": whole,
        "floats": [each / 7 for each in whole],
        "large": [LARGE + each for each in whole],
        "mixed": [LARGE + n if rng.random() < 0.5 else n / 7 for n in whole],
        "infinite": [-math.inf if n == 0 else math.inf if n == 3 else n for n in whole],
    }
    return kinds[kind]


def draw_tables(rng):
    """Judgments and predictions as dicts of dicts."""
    ids = [str(each) for each in rng.choice(ODD_IDS, 8, replace=False)]
    queries = [str(each) for each in rng.choice(ODD_IDS, 6, replace=False)]
    queries = [each for each in queries if not each.startswith("#")]  # a comment
    qrels, run = {}, {}
    one_kind = str(rng.choice(KINDS))
    for query in queries[:-1]:
        items = rng.choice(ids, rng.integers(1, 6), replace=False).tolist()
        qrels[query] = dict(zip(items, rng.integers(-1, 4, len(items)).tolist()))
    for query in queries[1:]:
        items = rng.choice(ids, rng.integers(1, 6), replace=False).tolist()
        kind = one_kind if rng.random() < 0.9 else str(rng.choice(KINDS))
        run[query] = dict(zip(items, draw_scores(rng, len(items), kind)))
    return qrels, run


def rows_of(table, value):
    rows = [(q, i, v) for q, of_query in table.items() for i, v in of_query.items()]
    names = ["query_id", "item_id", value]
    return dict(zip(names, map(list, zip(*rows)))) if rows else {n: [] for n in names}


def forms_of(qrels, run, folder):
    """The same tables in each form that holds their scores exactly."""
    yield "dicts", qrels, run
    judged, found = rows_of(qrels, "label"), rows_of(run, "score")
    kinds = {type(score) for score in found["score"]}
    if len(kinds) == 1:
        for name, frame in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
            yield name, frame(judged), frame(found)
        yield "Arrow", pa.table(judged), pa.table(found)
    paths = folder / "qrels", folder / "run"
    lines = [
        [f"{q} 0 {i} {v}" for q, i, v in zip(*judged.values())],
        [f"{q} Q0 {i} 1 {v!r} x" for q, i, v in zip(*found.values())],
    ]
    for path, of_path in zip(paths, lines):
        path.write_bytes("\n".join(of_path).encode())
    yield "files", *paths


def value_by_oracle(name, judged, found):
    """The value of a query: items that were not predicted have no rank."""
    metric, _, k = name.partition("@")
    distinct = sorted({*found.values()})  # Python compares large integers exactly
    labels, scores = [], []
    for item in {**judged, **found}:
        label = judged.get(item, -1)
        if metric == "bpref" and label < 0:
            continue
        labels.append(max(label, 0))
        score = found.get(item, -math.inf)
        scores.append(score if score == -math.inf else distinct.index(score) + 1)
    values, weight = oracle.of_orders(
        metric, labels, scores, mask=[True] * len(labels), k=int(k) if k else None
    ) or ([], 0)
    if not weight and metric == "bpref" and judged:
        return 0.0  # a query of negative judgments is counted, as by trec_eval
    return float(sum(values) / len(values)) if weight else math.nan


def check_run(rng, counts):
    """Compares `evaluate_run` with the oracle, query by query, in each form."""
    qrels, run = draw_tables(rng)
    run = {query: found for query, found in run.items() if found}
    if not {*qrels} & {*run}:
        return
    expected = {
        name: [
            value_by_oracle(name, judged, run.get(query, {}))
            for query, judged in qrels.items()
        ]
        for name in METRICS
    }
    with tempfile.TemporaryDirectory() as folder:
        for form, *tables in forms_of(qrels, run, pathlib.Path(folder)):
            values = trm.evaluate_run(*tables, METRICS, per_query=True)
            assert values["query"].tolist() == [*qrels], form
            for name in METRICS:
                np.testing.assert_allclose(
                    values[name], expected[name], rtol=1e-13, err_msg=f"{name}, {form}"
                )
            counts[f"queries of runs, {form}"] += len(qrels)


def interval_by_hand(values, low, high, weights=None):
    """The interval of a beta distribution with half a query at each end.

    It has the moments of the values and the two ends, and is widened as Student's
    distribution is compared with the normal one. Weighted values count as many queries
    as Kish's formula states.
    """
    weights = np.ones(len(values)) if weights is None else np.array(weights)
    shares, number = weights / weights.sum(), weights.sum() ** 2 / (weights**2).sum()
    mean = shares @ values
    center = (number * mean + 0.5 * (low + high)) / (number + 1)
    squares = (np.square(shares * (values - mean)).sum()) * number**2
    squares += number * (mean - center) ** 2
    squares += 0.5 * ((low - center) ** 2 + (high - center) ** 2)
    variance = squares / ((number + 1) * (number + 2))
    share, width = (center - low) / (high - low), high - low
    both = share * (1 - share) * width**2 / variance - 1
    shape = share * both, (1 - share) * both
    ends = scipy.stats.beta.ppf([0.025, 0.975], *shape, low, width)
    wider = scipy.stats.t.ppf(0.975, number - 1) / scipy.stats.norm.ppf(0.975)
    return np.clip(mean + (ends - mean) * wider, low, high)


def interval_of(changes):
    """The 95% interval of the mean of differences without a range."""
    spread = changes.max() - changes.min()
    if spread == 0:
        return [math.nan, math.nan]
    ends = changes.min() - spread / 3, changes.max() + spread / 3
    return interval_by_hand(changes, *ends)


def check_compare(rng, counts):
    """Compares `compare` with SciPy, of two models without weights."""
    number = int(rng.integers(2, 9))
    first, second = rng.integers(0, 5, (2, number)) / 4
    if rng.random() < 0.3:
        first = rng.random(number)
    models = {"a": {"x": first}, "b": {"x": second}}
    by_t, by_swaps = (
        trm.compare(models, test=test).differences[0] for test in ("t", "randomization")
    )
    changes = second - first
    assert by_t.wins == (changes > 0).sum()
    assert by_t.losses == (changes < 0).sum()
    np.testing.assert_allclose(by_t.difference, changes.mean(), rtol=1e-12, atol=1e-15)
    if changes.std() > 1e-12:
        expected = scipy.stats.ttest_rel(second, first)
        np.testing.assert_allclose(by_t.p, expected.pvalue, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(
        [by_t.low, by_t.high], interval_of(changes), rtol=1e-8, atol=1e-9
    )
    exact = scipy.stats.permutation_test(
        (second, first),
        lambda one, other, axis: (one - other).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    np.testing.assert_allclose(by_swaps.p, exact.pvalue, rtol=1e-9)
    counts["comparisons"] += 1

    ids = rng.permutation(number)
    shuffled = {
        name: {"query": ids[order], "x": model["x"][order]}
        for name, model in models.items()
        for order in [rng.permutation(number)]
    }
    by = {query: str(rng.integers(3)) for query in ids.tolist()}
    sliced = trm.compare(shuffled, by=by, test="t", correction=None)
    for each in sliced.differences:
        chosen = [each.slice is None or by[query] == each.slice[0] for query in ids]
        alone = {name: {"x": model["x"][chosen]} for name, model in models.items()}
        (expected,) = trm.compare(alone, test="t", correction=None).differences
        np.testing.assert_allclose(each[3:], expected[3:], rtol=1e-9, atol=1e-12)
    counts["slices of comparisons"] += len(sliced.differences)
