"""Tests that time and memory grow with the data, and not with their square.

Each case doubles one size of the input of a function.
"""

import pathlib
from functools import partial

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from growth import require_growth_in_proportion, with_error

import tfrankmetrics as trm

pytestmark = pytest.mark.slow("measures time and memory")
NAMES = ["ndcg@10", "auc"]


def labels_and_scores(*shape):
    rng = np.random.default_rng(0)
    return rng.integers(0, 3, shape), rng.random(shape)


def lists(metrics, *shape):
    return partial(trm.evaluate, *labels_and_scores(*shape), metrics)


def ties_of_three_grades(n):
    """A user stops within the first of the five groups of tied items."""
    labels, scores = labels_and_scores(2, n)
    return partial(trm.evaluate, labels, np.floor(5 * scores), ["err", "pfound"])


def explained(metric, n, *subtopics):
    """A list with about 50 groups of tied items."""
    labels, scores = labels_and_scores(1, n, *subtopics)
    scores = scores if not subtopics else scores[:, :, 0]
    return partial(trm.explain, labels, np.floor(50 * scores), metric)


def a_category_for_each_item(n):
    recommended = np.random.default_rng(0).permutation(n)[np.newaxis, :100]
    data = {"categories": range(n), "target": {0: 0.5, 1: 0.5}}
    return partial(trm.evaluate, [[0]], recommended, ["awrf"], inputs="ids", **data)


def ids(n):
    return partial(
        trm.evaluate, [range(n)] * 4, [range(100)] * 4, ["map"], inputs="ids"
    )


def catalog(n):
    scores = np.random.default_rng(0).random((2, 40_000))
    relevant = np.arange(2 * n).reshape(2, n)
    return partial(trm.evaluate, relevant, scores, ["map@10"], inputs="catalog")


def columns(n, queries):
    query_ids = np.random.default_rng(1).integers(0, queries, n)
    return query_ids, *labels_and_scores(n)


def rows(n, queries, **options):
    return partial(trm.evaluate_rows, *columns(n, queries), NAMES, **options)


def rows_by_slice(n):
    data = columns(10 * n, n)
    return partial(trm.evaluate_rows, *data, ["ndcg@10"], by=data[0])


def run_of(n, items=20):
    scores = np.random.default_rng(0).random((n, items)).tolist()
    run = {
        f"q{q}": {f"d{i}": s for i, s in enumerate(row)} for q, row in enumerate(scores)
    }
    return {q: {d: 1 for d in [*row][: items // 2]} for q, row in run.items()}, run


def run_as_frame(n):
    pairs = pd.DataFrame({"query_id": np.arange(n) // 20, "item_id": np.arange(n) % 20})
    labels, scores = labels_and_scores(n)
    return pairs.assign(label=labels), pairs.assign(score=scores)


def tables(qrels, run, **options):
    return partial(trm.evaluate_run, qrels, run, ["ndcg@10"], **options)


def a_pair_twice(n):
    judged, run = run_as_frame(n)
    return with_error(tables(judged, pd.concat([run, run.tail(1)])))


def queries_without_predictions(n):
    qrels, run = run_of(n)
    run = dict([*run.items()][:1])
    return with_error(tables(qrels, run, missing_queries="error"))


def read_trec(n):
    qrels, run = run_of(n)
    judged = [f"{q} 0 {d} {v}" for q, row in qrels.items() for d, v in row.items()]
    found = [f"{q} Q0 {d} 1 {v} x" for q, row in run.items() for d, v in row.items()]
    paths = pathlib.Path("qrels"), pathlib.Path("run")
    for path, lines in zip(paths, (judged, found), strict=True):
        path.write_text("\n".join(lines))
    return partial(trm.read_trec, *paths)


def models(n, metrics=1):
    values = np.random.default_rng(0).random((2, metrics, n))
    return {
        f"model {m}": {"query": np.arange(n)}
        | {f"x{i}": v for i, v in enumerate(of_model)}
        for m, of_model in enumerate(values)
    }


def compared(models, **options):
    return partial(trm.compare, models, **options)


def compared_by_slice(n):
    by = dict(zip(range(5 * n), np.arange(5 * n) % n, strict=True))
    return compared(models(5 * n), by=by, test="t")


def compared_with_other_ids(query_ids):
    both = models(len(query_ids))
    both["model 1"]["query"] = query_ids
    return with_error(compared(both))


def printed(result):
    return lambda: (repr(result), result.to_markdown(), result._repr_html_())


def printed_slices(n):
    return printed(lists(["mrr"], n, 2)(by=np.arange(n)))


def printed_comparison(n):
    by = dict.fromkeys(range(n), "b") | {i: i for i in range(n // 2)}
    by = {query: str(value) for query, value in by.items()}
    return printed(compared(models(n), by=by, test="t")())


def retrieval(queries, candidates, relevant):
    vectors = np.random.default_rng(0).normal(size=(candidates, 8)).astype("float32")
    ids = np.arange(queries * relevant).reshape(queries, -1) % candidates
    of_queries = vectors[np.arange(queries) % len(vectors)]
    return partial(trm.evaluate_retrieval, of_queries, vectors, ids, ["map", "mrr@10"])


def update_state(n):
    metric = trm.RankingMetrics(["ndcg@10", "map", "opa"])
    return partial(metric.update_state, *map(tf.constant, labels_and_scores(200, n)))


def after_an_epoch(callback, model=None):
    """The call in which a callback evaluates a model."""
    model = model or tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    callback.set_model(model)
    callback.on_train_begin()
    return lambda: callback.on_epoch_end(0, {})


def callback_of_rows(n):
    query_ids, labels, scores = columns(n, n // 20)
    data = scores[:, None], labels, query_ids
    return after_an_epoch(trm.EvaluateRows(*data, NAMES, batch_size=10_000))


def callback_of_lists(n):
    labels, scores = labels_and_scores(n, 50)
    data = scores[..., None], labels
    return after_an_epoch(trm.EvaluateLists(*data, metrics=NAMES, batch_size=1000))


def callback_of_retrieval(n):
    vectors = np.random.default_rng(0).normal(size=(n, 8)).astype("float32")
    tower = tf.keras.Sequential([tf.keras.layers.Dense(8)])
    tower.build([None, 8])
    data = vectors[:100], vectors, np.arange(100)
    callback = trm.EvaluateRetrieval(*data, ["mrr"], query_tower=tower)
    return after_an_epoch(callback, tower)


CASES = {
    "queries": (lambda n: lists([*NAMES, "map"], n, 50), 20_000),
    "items": (lambda n: lists([*NAMES, "map"], 200, n), 4_000),
    "cutoffs": (lambda n: lists([f"ndcg@{k}" for k in range(1, n)], 2000, 50), 100),
    "ties of three grades": (ties_of_three_grades, 32_000),
    "categories": (a_category_for_each_item, 4_000),
    "explained pairs": (
        lambda n: partial(trm.explain, *labels_and_scores(1, n), "opa"),
        4_000,
    ),
    "explained stops": (lambda n: explained("err", n), 2_000),
    "explained stops of an impatient user": (lambda n: explained("pfound", n), 4_000),
    "explained novelty": (lambda n: explained("alpha_dcg", n, 3), 2_000),
    "explained subtopics": (lambda n: explained("precision_ia", n, 3), 2_000),
    "ids": (ids, 20_000),
    "catalog": (catalog, 6_000),
    "rows": (lambda n: rows(n, n // 20), 400_000),
    "rows of one query": (lambda n: rows(n, 1), 400_000),
    "rows by slice": (rows_by_slice, 10_000),
    "rows with two slices in a query": (
        lambda n: with_error(rows(n, n // 20, by=np.arange(n).astype(str))),
        400_000,
    ),
    "run": (lambda n: tables(*run_of(n)), 5_000),
    "run of one query": (lambda n: tables(*run_of(1, n)), 50_000),
    "frames": (lambda n: tables(*run_as_frame(n)), 400_000),
    "a pair twice": (a_pair_twice, 400_000),
    "queries without predictions": (queries_without_predictions, 5_000),
    "files": (read_trec, 5_000),
    "t-test": (lambda n: compared(models(n), test="t"), 200_000),
    "resampling": (lambda n: compared(models(n), resamples=500), 20_000),
    "compared metrics": (
        lambda n: compared(models(1000, metrics=n), resamples=200),
        100,
    ),
    "compared slices": (compared_by_slice, 500),
    "all swaps": (  # of as many queries as have n of them
        lambda n: compared(models(n.bit_length() - 1), resamples=n),
        2**20,
    ),
    "an id twice": (
        lambda n: compared_with_other_ids(np.append(np.arange(n - 1), 0)),
        200_000,
    ),
    "other queries": (lambda n: compared_with_other_ids(np.arange(n) + n), 200_000),
    "printed slices": (printed_slices, 20_000),
    "printed comparison": (printed_comparison, 2_000),
    "queries of retrieval": (lambda n: retrieval(n, 20_000, 2), 1_000),
    "candidates": (lambda n: retrieval(128, n, 2), 100_000),
    "relevant candidates": (lambda n: retrieval(4, 20_000, n), 2_000),
    "most candidates are relevant": (lambda n: retrieval(2, 20_000, n), 8_000),
    "a metric object": (update_state, 1_000),
    "callback of rows": (callback_of_rows, 100_000),
    "callback of lists": (callback_of_lists, 10_000),
    "callback of retrieval": (callback_of_retrieval, 100_000),
}


@pytest.mark.parametrize("case", CASES)
def test_twice_the_data_take_twice_the_time_and_memory(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    require_growth_in_proportion(*CASES[case])
