"""Tests that time and memory grow with the data, and not with their square.

Each case doubles one size of the input of a function.
"""

import pathlib

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf
from growth import require_growth_in_proportion, with_error

import tfrankmetrics as tfr

pytestmark = pytest.mark.slow("measures time and memory")


def labels_and_scores(*shape):
    rng = np.random.default_rng(0)
    return rng.integers(0, 3, shape), rng.random(shape)


def evaluate(n, *, queries=1, items=1, **options):
    labels, scores = labels_and_scores(queries(n), items(n))
    return lambda: tfr.evaluate(labels, scores, ["ndcg@10", "map", "auc"], **options)


def evaluate_ties_of_three_grades(n):
    """A user stops within the first of the five groups of tied items."""
    labels, scores = labels_and_scores(2, n)
    return lambda: tfr.evaluate(labels, np.floor(5 * scores), ["err", "pfound"])


def evaluate_a_category_for_each_item(n):
    recommended = np.random.default_rng(0).permutation(n)[np.newaxis, :100]
    target = {0: 0.5, 1: 0.5}
    return lambda: tfr.evaluate(
        [[0]], recommended, ["awrf"], inputs="ids", categories=range(n), target=target
    )


def explain_pairs(n):
    labels, scores = labels_and_scores(1, n)
    return lambda: tfr.explain(labels, scores, "opa")


def evaluate_cutoffs(n):
    labels, scores = labels_and_scores(2000, 50)
    return lambda: tfr.evaluate(labels, scores, [f"ndcg@{k}" for k in range(1, n)])


def evaluate_ids(n):
    relevant = [range(n)] * 4
    return lambda: tfr.evaluate(relevant, [range(100)] * 4, ["map"], inputs="ids")


def evaluate_catalogue(n):
    scores = np.random.default_rng(0).random((2, 40_000))
    relevant = np.arange(2 * n).reshape(2, n)
    return lambda: tfr.evaluate(relevant, scores, ["map@10"], inputs="catalogue")


def rows(n, queries):
    labels, scores = labels_and_scores(n)
    ids = np.random.default_rng(1).integers(0, queries, n)
    return ids, labels, scores


def evaluate_rows(n):
    columns = rows(n, n // 20)
    return lambda: tfr.evaluate_rows(*columns, ["ndcg@10", "auc"])


def evaluate_rows_of_one_query(n):
    columns = rows(n, 1)
    return lambda: tfr.evaluate_rows(*columns, ["ndcg@10", "auc"])


def evaluate_rows_by_slice(n):
    columns = rows(10 * n, n)
    return lambda: tfr.evaluate_rows(*columns, ["ndcg@10"], by=columns[0])


def rows_with_two_slices_in_a_query(n):
    columns = rows(n, n // 20)
    by = np.arange(n).astype(str)
    return with_error(lambda: tfr.evaluate_rows(*columns, ["ndcg@10"], by=by))


def run_of(n, items=20):
    scores = np.random.default_rng(0).random((n, items)).tolist()
    run = {
        f"q{q}": {f"d{i}": s for i, s in enumerate(row)} for q, row in enumerate(scores)
    }
    return {q: {d: 1 for d in [*row][: items // 2]} for q, row in run.items()}, run


def evaluate_run(n):
    qrels, run = run_of(n)
    return lambda: tfr.evaluate_run(qrels, run, ["ndcg@10"])


def evaluate_run_of_one_query(n):
    qrels, run = run_of(1, n)
    return lambda: tfr.evaluate_run(qrels, run, ["ndcg@10"])


def run_as_frame(n):
    pairs = pd.DataFrame({"query_id": np.arange(n) // 20, "item_id": np.arange(n) % 20})
    labels, scores = labels_and_scores(n)
    return pairs.assign(label=labels), pairs.assign(score=scores)


def evaluate_frames(n):
    tables = run_as_frame(n)
    return lambda: tfr.evaluate_run(*tables, ["ndcg@10"])


def a_pair_twice(n):
    judged, run = run_as_frame(n)
    run = pd.concat([run, run.tail(1)])
    return with_error(lambda: tfr.evaluate_run(judged, run, ["ndcg@10"]))


def queries_without_predictions(n):
    qrels, run = run_of(n)
    run = dict([*run.items()][:1])
    return with_error(
        lambda: tfr.evaluate_run(qrels, run, ["mrr"], missing_queries="error")
    )


def models(n, number=2, metrics=1):
    values = np.random.default_rng(0).random((number, metrics, n))
    ids = np.arange(n)
    return {
        f"model {m}": {"query": ids} | {f"x{i}": v for i, v in enumerate(of_model)}
        for m, of_model in enumerate(values)
    }


def compare(n):
    values = models(n)
    return lambda: tfr.compare(values, test="t")


def compare_by_resampling(n):
    values = models(n)
    return lambda: tfr.compare(values, resamples=500)


def compare_metrics(n):
    values = models(1000, metrics=n)
    return lambda: tfr.compare(values, resamples=200)


def compare_slices(n):
    values = models(5 * n)
    by = dict(zip(range(5 * n), np.arange(5 * n) % n, strict=True))
    return lambda: tfr.compare(values, by=by, test="t")


def compare_all_swaps(n):
    values = models(n.bit_length() - 1)  # with 2^(that number) swaps
    return lambda: tfr.compare(values, resamples=n)


def compare_with_an_id_twice(n):
    values = models(n)
    values["model 1"]["query"] = np.append(np.arange(n - 1), 0)
    return with_error(lambda: tfr.compare(values))


def compare_other_queries(n):
    values = models(n)
    values["model 1"]["query"] = np.arange(n) + n
    return with_error(lambda: tfr.compare(values))


def print_slices(n):
    labels, scores = labels_and_scores(n, 2)
    result = tfr.evaluate(labels, scores, ["mrr"], by=np.arange(n))
    return lambda: (repr(result), result.to_markdown(), result._repr_html_())


def print_comparison(n):
    by = dict.fromkeys(range(n), "b") | {i: i for i in range(n // 2)}
    by = {query: str(value) for query, value in by.items()}
    result = tfr.compare(models(n), by=by, test="t")
    return lambda: (repr(result), result.to_markdown(), result._repr_html_())


def evaluate_retrieval(n, *, queries, candidates, relevant):
    vectors = np.random.default_rng(0).normal(size=(candidates(n), 8)).astype("float32")
    ids = np.arange(queries(n) * relevant(n)).reshape(queries(n), -1) % candidates(n)
    of_queries = vectors[np.arange(queries(n)) % len(vectors)]
    return lambda: tfr.evaluate_retrieval(of_queries, vectors, ids, ["map", "mrr@10"])


def read_trec(n):
    qrels, run = run_of(n)
    folder = pathlib.Path("growth")
    folder.mkdir(exist_ok=True)
    judged = [f"{q} 0 {d} {v}" for q, row in qrels.items() for d, v in row.items()]
    found = [f"{q} Q0 {d} 1 {v} x" for q, row in run.items() for d, v in row.items()]
    paths = folder / "qrels", folder / "run"
    for path, lines in zip(paths, (judged, found), strict=True):
        path.write_text("\n".join(lines))
    return lambda: tfr.read_trec(*paths)


def update_state(n):
    labels, scores = map(tf.constant, labels_and_scores(200, n))
    metric = tfr.RankingMetrics(["ndcg@10", "map", "opa"])
    return lambda: metric.update_state(labels, scores)


def after_an_epoch(callback, model=None):
    """The call in which a callback evaluates a model."""
    model = model or tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    callback.set_model(model)
    callback.on_train_begin()
    return lambda: callback.on_epoch_end(0, {})


def callback_of_rows(n):
    ids, labels, scores = rows(n, n // 20)
    callback = tfr.EvaluateRows(
        scores[:, None], labels, ids, ["ndcg@10", "auc"], batch_size=10_000
    )
    return after_an_epoch(callback)


def callback_of_lists(n):
    labels, scores = labels_and_scores(n, 50)
    callback = tfr.EvaluateLists(
        scores[..., None], labels, metrics=["ndcg@10", "auc"], batch_size=1000
    )
    return after_an_epoch(callback)


def callback_of_retrieval(n):
    vectors = np.random.default_rng(0).normal(size=(n, 8)).astype("float32")
    tower = tf.keras.Sequential([tf.keras.layers.Dense(8)])
    tower.build([None, 8])
    callback = tfr.EvaluateRetrieval(
        vectors[:100], vectors, np.arange(100), ["mrr"], query_tower=tower
    )
    return after_an_epoch(callback, tower)


def same(number):
    return lambda n: number


def itself(n):
    return n


def case(make, n, name="", **sizes):
    build = (lambda size: make(size, **sizes)) if sizes else make
    return pytest.param(build, n, id=f"{make.__name__}-{name}".rstrip("-"))


@pytest.mark.parametrize(
    ("build", "n"),
    [
        case(evaluate, 20_000, "queries", queries=itself, items=same(50)),
        case(evaluate, 4_000, "items", queries=same(200), items=itself),
        case(evaluate_ties_of_three_grades, 32_000),
        case(evaluate_a_category_for_each_item, 4_000),
        case(explain_pairs, 4_000),
        case(evaluate_cutoffs, 100),
        case(evaluate_ids, 20_000),
        case(evaluate_catalogue, 6_000),
        case(evaluate_rows, 400_000),
        case(evaluate_rows_of_one_query, 400_000),
        case(evaluate_rows_by_slice, 10_000),
        case(rows_with_two_slices_in_a_query, 400_000),
        case(evaluate_run, 5_000),
        case(evaluate_run_of_one_query, 50_000),
        case(evaluate_frames, 400_000),
        case(a_pair_twice, 400_000),
        case(queries_without_predictions, 5_000),
        case(compare, 200_000),
        case(compare_by_resampling, 20_000),
        case(compare_metrics, 100),
        case(compare_slices, 500),
        case(compare_all_swaps, 2**20),
        case(compare_with_an_id_twice, 200_000),
        case(compare_other_queries, 200_000),
        case(print_slices, 20_000),
        case(print_comparison, 2_000),
        case(
            evaluate_retrieval,
            1_000,
            "queries",
            queries=itself,
            candidates=same(20_000),
            relevant=same(2),
        ),
        case(
            evaluate_retrieval,
            100_000,
            "candidates",
            queries=same(128),
            candidates=itself,
            relevant=same(2),
        ),
        case(
            evaluate_retrieval,
            2_000,
            "relevant",
            queries=same(4),
            candidates=same(20_000),
            relevant=itself,
        ),
        case(
            evaluate_retrieval,
            8_000,
            "most_are_relevant",
            queries=same(2),
            candidates=same(20_000),
            relevant=itself,
        ),
        case(read_trec, 5_000),
        case(update_state, 1_000),
        case(callback_of_rows, 100_000),
        case(callback_of_lists, 10_000),
        case(callback_of_retrieval, 100_000),
    ],
)
def test_twice_the_data_take_twice_the_time_and_memory(build, n, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    require_growth_in_proportion(build, n)
