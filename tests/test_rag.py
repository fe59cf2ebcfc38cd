"""Compares the options in the table of docs/guide/rag.md with the formulas of the tools.

The formulas come from ragas 0.4.3 (`metrics/_context_precision.py` and
`_context_recall.py`), LlamaIndex 0.14.25 (`core/evaluation/retrieval/metrics.py`),
Haystack 3.4.1 and 3.0.0 (`components/evaluators/`) and MLflow 3.17.2
(`metrics/metric_definitions.py`), for lists of distinct ids.
"""

import math
import pathlib

import numpy as np
import pytest

from tfrankmetrics import evaluate_run

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "guide" / "rag.md"


def precision(gold, retrieved):
    return len({*retrieved} & {*gold}) / len(retrieved)


def recall(gold, retrieved):
    return len({*retrieved} & {*gold}) / len(gold)


def hit_rate(gold, retrieved):
    return float(any(chunk in gold for chunk in retrieved))


def reciprocal_rank(gold, retrieved):
    ranks = (rank for rank, chunk in enumerate(retrieved, 1) if chunk in gold)
    return 1 / next(ranks, math.inf)


def sum_of_precisions(gold, retrieved):
    hits = [chunk in gold for chunk in retrieved]
    return sum(
        sum(hits[:rank]) / rank for rank in range(1, len(hits) + 1) if hits[rank - 1]
    )


def average_precision(gold, retrieved):
    return sum_of_precisions(gold, retrieved) / len(gold)


def context_precision(gold, retrieved):
    hits = sum(chunk in gold for chunk in retrieved)
    return sum_of_precisions(gold, retrieved) / (hits + 1e-10)


def dcg(gains):
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def ndcg(gold, retrieved):
    ideal = dcg(sorted(gold.values(), reverse=True))
    return dcg(gold.get(chunk, 0) for chunk in retrieved) / ideal


def ndcg_at_five_of_mlflow(gold, retrieved):
    retrieved = retrieved[:5]
    ideal = dcg([1] * min(len(retrieved), len(gold)))
    return dcg(chunk in gold for chunk in retrieved) / ideal


def random_questions():
    rng = np.random.default_rng(0)
    for _ in range(100):
        chunks, relevant, size = (
            rng.permutation(12),
            rng.integers(1, 6),
            rng.integers(1, 9),
        )
        gold = dict(zip(chunks.tolist(), rng.integers(1, 4, relevant).tolist()))
        yield gold, rng.permutation(12)[:size].tolist()


def values_of(gold, retrieved, *names):
    runs = (dict(enumerate(each)) for each in (gold, retrieved))
    return evaluate_run(*runs, names, per_query=True)


@pytest.mark.parametrize(
    ("formula", "name"),
    [
        (precision, "precision"),
        (recall, "recall"),
        (hit_rate, "hit_rate"),
        (reciprocal_rank, "mrr"),
        (average_precision, "map"),
        (context_precision, "map(denominator=hits)"),
        (ndcg, "ndcg(gain=linear)"),
    ],
)
def test_options_reproduce_the_tools(formula, name):
    assert f"`{name}`" in PAGE.read_text("utf-8")
    gold, retrieved = zip(*random_questions())
    found = values_of(gold, retrieved, name)[name]
    assert found == pytest.approx([*map(formula, gold, retrieved)], rel=1e-9)


def test_binary_ndcg_of_llama_index_and_mlflow():
    gold, retrieved = zip(*random_questions())
    gold = [dict.fromkeys(chunks, 1) for chunks in gold]
    at = [f"ndcg@{k}" for k in range(1, 6)]
    found = values_of(gold, retrieved, "ndcg", *at)
    assert found["ndcg"] == pytest.approx([*map(ndcg, gold, retrieved)])
    sizes = [min(5, len(chunks)) for chunks in retrieved]
    of_mlflow = [found[f"ndcg@{size}"][query] for query, size in enumerate(sizes)]
    assert of_mlflow == pytest.approx([*map(ndcg_at_five_of_mlflow, gold, retrieved)])
