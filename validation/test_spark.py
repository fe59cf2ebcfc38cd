"""Runs the recipe and the statements for Spark, and compares their values."""

import pathlib

import numpy as np
import pandas as pd
import pytest
from code_blocks import run_blocks
from spark_session import spark_session
from sql_cases import assert_statements

import tfrankmetrics as trm

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "guide" / "large-tables.md"
SCHEMA = "metric string, v double, w double"
METRICS = ["ndcg@10", "mrr", "opa", "bpref"]


@pytest.fixture(scope="module")
def recipe():
    """The names that the page defines. Its blocks find the session made here."""
    spark_session()
    return run_blocks(PAGE, section="Tables on Spark")


def make_rows(queries):
    """Shuffled rows with ties, unjudged items, and queries that do not count."""
    rng = np.random.default_rng(1)
    query = np.repeat(np.arange(queries), rng.integers(1, 20, queries))
    rows = pd.DataFrame({"query": [f"query {number}" for number in query]})
    rows["label"] = rng.integers(-1, 4, len(query)) * (query % 5 > 0)
    rows.loc[query % 7 == 0, "label"] = -1
    rows["score"] = rng.normal(size=len(query)).round(1)
    return rows.sample(frac=1, random_state=0)


def test_the_page_prints_the_output_shown(recipe):
    assert recipe["totals"]


@pytest.mark.parametrize("partitions", [1, 3, 40])
def test_sums_of_partitions_give_the_value_of_the_whole_table(recipe, partitions):
    """Of forty partitions of thirty queries, some are empty."""
    rows = make_rows(30)
    recipe["METRICS"][:] = METRICS
    table = spark_session().createDataFrame(rows).repartition(partitions, "query")
    totals = table.mapInPandas(recipe["sums"], SCHEMA).groupBy("metric").sum("v", "w")
    found = {name: value / weight for name, value, weight in totals.collect()}
    expected = trm.evaluate_rows("query", "label", "score", METRICS, data=rows)
    assert found == pytest.approx(dict(expected), rel=1e-12)


def test_a_table_of_split_queries_has_other_values(recipe):
    """So the recipe needs its `repartition`."""
    rows = make_rows(300)
    recipe["METRICS"][:] = ["ndcg@10"]
    table = spark_session().createDataFrame(rows)
    totals = table.repartition(8).mapInPandas(recipe["sums"], SCHEMA).collect()
    found = sum(row["v"] for row in totals) / sum(row["w"] for row in totals)
    expected = trm.evaluate_rows("query", "label", "score", ["ndcg@10"], data=rows)
    assert abs(found - expected["ndcg@10"]) > 0.05


def test_statements_have_the_values_of_this_library():
    session = spark_session()

    def register(name, table):
        session.createDataFrame(table).createOrReplaceTempView(name)

    assert_statements("spark", register, lambda sql: session.sql(sql).toPandas())
