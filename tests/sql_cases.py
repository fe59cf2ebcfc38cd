"""Random tables for statements of SQL, many in one: each table is a slice."""

import collections

import numpy as np
import pandas as pd

import tfrankmetrics as trm

NAMES = ["q'1", 'q"2', "é", "日本", "a", "B", "😀", "10"]
ITEMS = ["a", "B", "é", "日", "10", "9", "i'", "z", "😀", "\uffff"]
SCORES = [0.0, -0.0, 0.5, 1.0, 1 / 3, -1.0, 2.0, np.inf, -np.inf, np.nan]
METRICS = [
    *("ndcg@3", "ndcg", "dcg@2", "map@3", "map", "mrr@2", "mrr", "precision@3"),
    *("recall@2", "capped_recall@2", "hit_rate@2", "f1@3", "r_precision", "judged@2"),
    *("tied@2", "tied", "bpref", "rbp@3", "hole@2"),
]
OF_WHOLE_LISTS = ["auc", "gauc", "arp", "first_relevant_rank", "coverage_error"]
# Each choice of an option that a formula reads.
CHOICES = [
    "ndcg@3(gain=linear)",
    "ndcg@3(gain=[0.5, 1, 0, 7])",
    "dcg@2(gain={0: 0, 1: 0.1, 2: 3, 3: 1})",
    "ndcg@3(discount=jarvelin)",
    "dcg@3(gain=linear, empty=skip)",
    "map@3(denominator=min(k, relevant))",
    "map@2(denominator=min(retrieved, relevant))",
    "mrr@3(over=all, empty=one)",
    "precision@3(denominator=k, empty=skip)",
    "recall@2(denominator=min(k, relevant), empty=one)",
    "f1@3(denominator=k, relevance_threshold=2)",
    "r_precision@2(empty=skip)",
    "hit_rate@1(relevance_threshold=1.5)",
    "rbp@3(graded=relative)",
]


def random_rows(tables, seed=0):
    """Rows of tables with ties, padding, NULL, and queries with one item or no labels."""
    rng, columns = np.random.default_rng(seed), collections.defaultdict(list)
    for table in range(tables):
        for name in NAMES[: rng.integers(1, len(NAMES))]:
            number = rng.integers(1, 10)
            labels = rng.choice([-1, 0, 0, 1, 2, 3], number)
            columns["label"] += [*np.minimum(labels, rng.choice([-1, 0, 3, 3, 3, 3]))]
            columns["score"] += [*rng.choice(SCORES, number)]
            columns["item"] += [*rng.permutation(ITEMS)[:number]]
            columns["the query"] += [f"{table} {name}"] * number
            columns["table"] += [table] * number
            columns["weight"] += [rng.choice([0, 1, 2.5])] * number
            columns["market"] += [str(table % 3) if table % 3 else None] * number
    return pd.DataFrame(columns).sample(frac=1, random_state=seed)


def random_run(tables, seed=0):
    """Judgments and predictions, each of which lacks queries and items of the other."""
    rng = np.random.default_rng(seed + 1)
    rows = random_rows(tables, seed)
    lacks = rng.random(len(rows)) < 0.3, rng.random(len(rows)) < 0.3
    queries = rows["the query"].unique()
    for lack in lacks:
        lack |= rows["the query"].isin(rng.choice(queries, len(queries) // 8))
    run = rows[~lacks[1]][["the query", "item", "score"]].copy()
    run["score"] += rng.choice([0, 1e-9], len(run))  # equal in float32
    return rows[~lacks[0]].drop(columns="score"), run


def assert_equal(found, expected):
    """The rows of a statement equal `to_dicts`, except for the label of the last."""
    assert [*found.columns] == [*expected[0]]
    slices = expected[0].keys() - found.select_dtypes("number").columns
    for name in expected[0].keys() - slices:
        numbers = [row[name] for row in expected]
        if name == "table":
            numbers[-1] = np.nan
        given = found[name].astype(float)
        np.testing.assert_allclose(given, numbers, rtol=1e-12, atol=1e-12, err_msg=name)


def assert_statements(dialect, register, rows_of):
    """Statements for 100 tables and 100 runs return the values of this library.

    `register` makes a table of the database, and `rows_of` returns those of a statement.
    """
    rows, (qrels, run) = random_rows(100), random_run(100)
    for name, table in {"table_of_rows": rows, "qrels": qrels, "run": run}.items():
        register(name, table)
    names = {"query": "the query", "label": "label", "score": "score", "by": "table"}
    of_dialect = {**names, "dialect": dialect}
    arrays = [*names.values()][:3]
    for metrics, options in [
        (METRICS + OF_WHOLE_LISTS, {}),
        (CHOICES, {}),
        (["ndcg@2", "map", "mrr@2", "judged@2", "auc"], {"ties": "worst"}),
    ]:
        statement = trm.as_sql(metrics, "table_of_rows", **of_dialect, **options)
        expected = trm.evaluate_rows(*arrays, metrics, data=rows, by="table", **options)
        assert_equal(rows_of(statement), expected.to_dicts())
    for options in [{}, {"convention": "trec_eval", "missing_queries": "skip"}]:
        of_run = {"judgments": "qrels", "item": "item", **options}
        statement = trm.as_sql(METRICS, "run", **of_dialect, **of_run)
        expected = trm.evaluate_run(
            qrels, run, METRICS, **names, item="item", **options
        )
        assert_equal(rows_of(statement), expected.to_dicts())
