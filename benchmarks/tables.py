"""Compares `evaluate_rows` with the formula of NDCG@10 in Polars and in SQL.

The tables have 10^7 shuffled rows: a query, a grade and a score. Each tool reads them
in its own format, which is built before timing starts. In Polars and in SQL, the
formula is written in two ways, of which either may be the faster. The figures are CPU
seconds, added up over all cores, because other programs on the machine change them
least. In an environment with tfrankmetrics, Polars and DuckDB, run it with:

    python benchmarks/tables.py
"""

import time

import duckdb
import numpy as np
import polars as pl
from report import publish
from timing import median_and_spread, ratio, timed

from tfrankmetrics import evaluate_rows

ROWS = 10_000_000
LENGTHS = [10, 100]  # rows per query
OURS = "tfrankmetrics"
SQL = """
WITH ranked AS (
    SELECT query, 2.0 ** grade - 1 AS gain,
        row_number() OVER (PARTITION BY query ORDER BY score DESC) AS rank,
        row_number() OVER (PARTITION BY query ORDER BY grade DESC) AS ideal_rank
    FROM rows
), queries AS (
    SELECT query,
        sum(gain / log2(1 + rank)) FILTER (rank <= 10) AS dcg,
        sum(gain / log2(1 + ideal_rank)) FILTER (ideal_rank <= 10) AS ideal
    FROM ranked GROUP BY query
)
SELECT avg(CASE WHEN ideal > 0 THEN dcg / ideal ELSE 0 END) FROM queries
"""
# The same by aggregates that keep ten grades of each query.
SQL_OF_LISTS = """
WITH best AS (
    SELECT query, max_by(grade, score, 10) AS found, max(grade, 10) AS ideal
    FROM rows GROUP BY query
), queries AS (
    SELECT
        list_sum(list_transform(found, lambda g, i: (2.0 ** g - 1) / log2(1 + i)))
            AS dcg,
        list_sum(list_transform(ideal, lambda g, i: (2.0 ** g - 1) / log2(1 + i)))
            AS ideal
    FROM best
)
SELECT avg(CASE WHEN ideal > 0 THEN dcg / ideal ELSE 0 END) FROM queries
"""


def columns(length):
    """Query, grade and score of each row, in random order and without ties."""
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(ROWS // length), length)
    grade = rng.integers(0, 5, ROWS) * (rng.random(ROWS) < 0.3)
    order = rng.permutation(ROWS)
    return {"query": query[order], "grade": grade, "score": rng.random(ROWS)}


def mean_ndcg(dcg_and_ideal):
    """The mean over the queries; one without relevant items counts as 0."""
    ndcg = (pl.col("dcg") / pl.col("ideal")).fill_nan(0.0)
    return dcg_and_ideal.select(ndcg.mean()).collect().item()


def by_polars_windows(frame):
    """NDCG@10 by two window expressions, the ranks of the scores and of the grades."""

    def ranks(column):
        return pl.col(column).rank("ordinal", descending=True).over("query")

    def gains(rank):
        found = (2.0 ** pl.col("grade") - 1) / (1 + pl.col(rank)).log(2)
        return pl.when(pl.col(rank) <= 10).then(found).otherwise(0.0).sum()

    ranked = frame.lazy().with_columns(rank=ranks("score"), ideal_rank=ranks("grade"))
    sums = ranked.group_by("query").agg(dcg=gains("rank"), ideal=gains("ideal_rank"))
    return mean_ndcg(sums)


def by_polars_lists(frame):
    """NDCG@10 by sorting the rows of each query."""
    gain = 2.0 ** pl.col("grade") - 1
    ranks = pl.int_range(1, pl.len().clip(upper_bound=10) + 1)
    discount = (1 + ranks).log(2)
    found = gain.sort_by("score", descending=True).head(10)
    ideal = gain.sort(descending=True).head(10)
    queries = frame.lazy().group_by("query")
    sums = queries.agg(dcg=(found / discount).sum(), ideal=(ideal / discount).sum())
    return mean_ndcg(sums)


def calls(length):
    """What is timed, by tool."""
    table = columns(length)
    frame = pl.DataFrame(table)
    database = duckdb.connect()
    database.execute("SET enable_progress_bar = false")
    database.execute("CREATE TABLE rows AS SELECT * FROM frame")

    def ours():
        return evaluate_rows(*table.values(), ["ndcg@10"])["ndcg@10"]

    def by_duckdb(query):
        ((value,),) = database.execute(query).fetchall()
        return value

    return {
        OURS: ours,
        "Polars, window expressions": lambda: by_polars_windows(frame),
        "Polars, lists": lambda: by_polars_lists(frame),
        "DuckDB, window functions": lambda: by_duckdb(SQL),
        "DuckDB, lists": lambda: by_duckdb(SQL_OF_LISTS),
    }


def main():
    """Measures all tools in turns and publishes the results."""
    tables = {}
    for length in LENGTHS:
        functions = calls(length)
        values = [function() for function in functions.values()]
        np.testing.assert_allclose(values, values[0], rtol=1e-12)
        found = timed(functions, 0, least=3, clock=time.process_time, warm_ups=0)
        times = {name: of / 1000 for name, of in found.items()}
        rows = [["", "CPU seconds", f"/ {OURS}"]]
        for name, of in times.items():
            rows.append(
                [name, median_and_spread(of), f"{ratio(times, name, OURS):.3g}"]
            )
            print(length, *rows[-1], sep="  ", flush=True)
        tables[f"{ROWS // length:,} queries of {length} rows"] = rows
    publish(
        "tables",
        "NDCG@10 of a table of 10,000,000 rows, compared with Polars and DuckDB",
        ["numpy", "polars", "duckdb"],
        tables,
    )


if __name__ == "__main__":
    main()
