"""`as_sql` returns the values of `evaluate_rows` and `evaluate_run`, run by DuckDB."""

import pathlib
import re

import duckdb
import numpy as np
import pandas as pd
import pytest
import sqlglot
from cases import METRICS as ALL_METRICS
from code_blocks import run_blocks
from sql_cases import (
    CHOICES,
    METRICS,
    OF_WHOLE_LISTS,
    assert_equal,
    random_rows,
    random_run,
)
from sqlglot import exp

import tfrankmetrics as trm
from tfrankmetrics.__main__ import main

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "guide" / "large-tables.md"
COLUMNS = {"query": "the query", "label": "label", "score": "score"}
ARRAYS = ("the query", "label", "score")
DIALECTS = ["duckdb", "spark", "bigquery", "snowflake", "postgres"]
# They need more than sums and window functions.
NOT_IN_SQL = {"opa", "err", "pfound", "completeness"}


def rows_of(statement, **tables):
    connection = duckdb.connect()
    for name, table in tables.items():
        connection.register(name, table)
    return connection.execute(statement).df()


def values_of_slices(column):
    return column.astype(object).where(column.notna(), None).tolist()


def value_of(metric, rows, **options):
    statement = trm.as_sql([metric], "rows", **COLUMNS, **options)
    return rows_of(statement, rows=rows)[metric].tolist()


def table(labels, scores, queries="a"):
    """A table of rows, with one letter for the query of each."""
    names = queries * len(labels) if len(queries) == 1 else queries
    return pd.DataFrame({"the query": [*names], "label": labels, "score": scores})


@pytest.fixture(scope="module")
def rows():
    return random_rows(3000)


@pytest.fixture(scope="module")
def run():
    return random_run(3000)


@pytest.mark.parametrize(
    ("metrics", "options"),
    [
        (METRICS, {}),
        ([*OF_WHOLE_LISTS, *METRICS[:6]], {"sample_weight": "weight"}),
        (CHOICES, {"empty": "skip"}),
        (["ndcg@2", "map", "mrr@2", "judged@2", "auc"], {"ties": "best"}),
        (["ndcg@2", "map", "mrr@2", "judged@2", "auc"], {"ties": "worst"}),
        (["ndcg", "map", "precision@2", "recall@2"], {"convention": "recbole"}),
    ],
    ids=["default", "weights", "choices", "best", "worst", "convention"],
)
def test_random_tables_have_the_values_of_evaluate_rows(rows, metrics, options):
    """Each of 3,000 tables is a slice."""
    metrics = [each for each in metrics if "empty" not in options or "(e" not in each]
    expected = trm.evaluate_rows(*ARRAYS, metrics, data=rows, by="table", **options)
    options = {{"sample_weight": "weight"}.get(o, o): v for o, v in options.items()}
    statement = trm.as_sql(metrics, "rows", **COLUMNS, by="table", **options)
    assert_equal(rows_of(statement, rows=rows), expected.to_dicts())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"convention": "trec_eval"},
        {"missing_queries": "skip", "sample_weight": "weight"},
    ],
    ids=["default", "trec_eval", "skip"],
)
def test_random_runs_have_the_values_of_evaluate_run(run, options):
    qrels, predicted = run
    metrics = METRICS + OF_WHOLE_LISTS * ("missing_queries" in options)
    names = {**COLUMNS, "item": "item", "by": "table"}
    expected = trm.evaluate_run(qrels, predicted, metrics, **names, **options)
    options = {{"sample_weight": "weight"}.get(o, o): v for o, v in options.items()}
    statement = trm.as_sql(metrics, "run", judgments="qrels", **names, **options)
    assert_equal(rows_of(statement, run=predicted, qrels=qrels), expected.to_dicts())


def test_integers_are_ordered_as_text_by_the_convention_of_trec_eval():
    qrels = pd.DataFrame({"the query": 1, "item": [10, 9, 100], "label": [1, 0, 0]})
    predicted = qrels.drop(columns="label").assign(score=[1.0, 1.0 + 1e-9, 1.0])
    names = {**COLUMNS, "item": "item", "convention": "trec_eval"}
    statement = trm.as_sql(["mrr"], "run", judgments="qrels", **names)
    found = rows_of(statement, run=predicted, qrels=qrels)["mrr"].tolist()
    assert found == [1 / 3]  # 9, 100, 10
    assert trm.evaluate_run(qrels, predicted, ["mrr"], **names) == {"mrr": 1 / 3}


@pytest.mark.parametrize("score", [1e-40, -1e-40, 1e-46, 3e-308])
def test_a_tiny_score_is_tied_with_0_by_the_convention_of_trec_eval(score):
    """In float32 it is denormal. The greater id ranks first."""
    qrels = pd.DataFrame({"the query": 1, "item": ["a", "b"], "label": [1, 0]})
    predicted = qrels.drop(columns="label").assign(score=[score, 0.0])
    names = {**COLUMNS, "item": "item", "convention": "trec_eval"}
    statement = trm.as_sql(["mrr"], "run", judgments="qrels", **names)
    found = rows_of(statement, run=predicted, qrels=qrels)["mrr"].tolist()
    assert found == [1 / 2]
    assert trm.evaluate_run(qrels, predicted, ["mrr"], **names) == {"mrr": 1 / 2}


def test_values_of_queries(rows):
    rows = rows[rows["table"] < 50]
    options = {"per_query": True, "by": ["market", "table"]}
    metrics = ["ndcg@3", "auc", "judged@2"]  # AUC leaves queries out
    expected = trm.evaluate_rows(*ARRAYS, metrics, data=rows, **options)
    statement = trm.as_sql(metrics, "rows", **COLUMNS, **options)
    found = rows_of(statement, rows=rows)
    assert [*found.columns] == [*expected]
    found = found.set_index("query").loc[expected["query"]]
    assert values_of_slices(found["market"]) == [*expected["market"]]
    for name in metrics:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-12)


def test_several_columns_of_slices(rows):
    rows = rows[rows["table"] < 50].assign(half=lambda frame: frame["table"] % 2)
    options = {"by": ["market", "half"]}
    expected = trm.evaluate_rows(*ARRAYS, ["ndcg@3"], data=rows, **options).to_dicts()
    found = rows_of(trm.as_sql(["ndcg@3"], "rows", **COLUMNS, **options), rows=rows)
    markets = values_of_slices(found["market"])
    assert markets == [*(row["market"] for row in expected[:-1]), None]
    assert found["queries"].tolist() == [row["queries"] for row in expected]
    np.testing.assert_allclose(found["ndcg@3"], [row["ndcg@3"] for row in expected])


def test_a_list_of_100000_tied_items():
    labels = np.zeros(100_000)
    labels[[3, 7, 50_000]] = 1, 3, 2
    rows = table(labels, np.zeros(100_000))
    metrics = ["ndcg@10", "ndcg", "mrr", "map", "map@10", "recall@10", "hit_rate@10"]
    expected = trm.evaluate_rows(*ARRAYS, metrics, data=rows)
    found = rows_of(trm.as_sql(metrics, "rows", **COLUMNS), rows=rows)
    for name in metrics:
        assert found[name][0] == pytest.approx(expected[name], rel=1e-12, abs=0)


@pytest.mark.parametrize("name", sorted(ALL_METRICS))
def test_a_metric_is_in_sql_or_an_error_names_it(name):
    declaration = ALL_METRICS[name]
    rows = random_rows(20)
    reads_others = declaration.reads_items or declaration.has_subtopics
    if reads_others or name in NOT_IN_SQL:
        with pytest.raises(ValueError, match=repr(name)):
            trm.as_sql([name], "rows", **COLUMNS)
        return
    statement = trm.as_sql([name], "rows", **COLUMNS)
    expected = trm.evaluate_rows(*ARRAYS, [name], data=rows)
    assert rows_of(statement, rows=rows)[name][0] == pytest.approx(expected[name])


def test_a_custom_metric_is_in_sql(declarations):
    def hits_for_sql(lists, relevance, *, decay):
        hits = lists.expected(relevance)
        return lists.sum_to_cutoffs(hits * decay**lists.ranks)

    @trm.metric("hits_for_sql", formula=hits_for_sql, gain=trm.BinaryGain)
    class HitsForSQL(trm.TopKMetric):
        """Hits that count less further down."""

        decay: float = 0.5
        relevance_threshold: float = 1.0

    assert value_of("hits_for_sql@3", table([1, 0, 1], [3, 2, 1])) == [0.625]


@pytest.mark.parametrize(
    ("metric", "options", "named"),
    [
        ("map(denominator=hits)", {}, "`denominator`"),
        ("ndcg(ideal=retrieved)", {}, "`ideal`"),
        (trm.NDCG(gain=lambda labels: labels), {}, "`gain`"),
        (trm.NDCG(discount=lambda ranks: 1 / ranks), {}, "`discount`"),
        ("coverage@3", {}, "'coverage@3', which needs data"),
        ("ndcg", {"ties": "stable"}, "ties='stable'"),
        ("ndcg", {"convention": "trec_eval"}, "ties='stable'"),
        ("ndcg", {"dialect": "oracle"}, "'oracle'"),
        ("ndcg", {"missing_queries": "error"}, "'error'"),
        ("ndcg", {"item": "item"}, "`judgments`"),
        ("ndcg", {"unjudged": "drop"}, "'unjudged'"),
        ("ndcg", {"by": "ndcg"}, "'ndcg'"),
    ],
)
def test_what_sql_lacks_is_an_error_that_names_it(metric, options, named):
    with pytest.raises(ValueError, match=named):
        trm.as_sql([metric], "rows", **COLUMNS, **options)


@pytest.mark.parametrize(
    "given",
    [
        "rows; DROP TABLE x",
        "rows, others",
        "rows WHERE TRUE",
        "SELECT 1",
        "(SELECT 1) LIMIT 1",
        "(SELECT 1) AS x",
        "",
        "(1)",
        "'",
    ],
)
def test_a_table_is_a_name_or_a_subquery(given):
    with pytest.raises(ValueError, match="SELECT in parentheses"):
        trm.as_sql(["ndcg"], given, **COLUMNS)


def test_a_subquery_is_read_like_a_table():
    rows = table([1, 0, 0, 1], [1, 2, 3, 4])
    subquery = "(SELECT * FROM rows WHERE score < 4)"
    statement = trm.as_sql(["mrr"], subquery, **COLUMNS)
    assert rows_of(statement, rows=rows)["mrr"][0] == pytest.approx(1 / 3)


def test_names_of_columns_are_quoted():
    names = {"query": 'q"; DROP', "label": "é'", "score": "select"}
    rows = pd.DataFrame(dict(zip(names.values(), [["a", "a"], [0, 1], [1, 2]])))
    statement = trm.as_sql(["mrr"], "rows", **names, by='q"; DROP', per_query=True)
    assert rows_of(statement, rows=rows).to_dict("list") == {
        "query": ["a"], 'q"; DROP': ["a"], "mrr": [1.0],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([np.nan, -1.0], 1 / 2),  # the first item is relevant
        ([np.nan, -np.inf], 1.0),
        ([None, -1.0], 1 / 2),
        ([None, np.nan], 3 / 4),
        ([-0.0, 0.0], 3 / 4),
        ([2**53 + 1, 2**53], 1.0),  # integers are not rounded
        ([-np.inf, 1.0], 0.0),
        ([5e-324, 0.0], 3 / 4),  # a denormal number is 0
        ([3e-308, -3e-308], 1.0),
    ],
)
def test_scores_that_databases_order_differently(scores, expected):
    assert value_of("mrr", table([1, 0], scores)) == [expected]


def test_labels_may_be_true_or_false():
    assert value_of("mrr", table([True, False], [1.0, 2.0])) == [1 / 2]


def test_decimals_are_compared_as_given():
    rows = "(SELECT 'a' AS q, l, CAST(s AS DECIMAL(38, 20)) AS s FROM (VALUES "
    rows += "(1, '1.00000000000000000002'), (0, '1.00000000000000000001')) AS t(l, s))"
    statement = trm.as_sql(["mrr"], rows, query="q", label="l", score="s")
    assert rows_of(statement)["mrr"][0] == 1


@pytest.mark.parametrize(
    "rows",
    [
        table([1, None], [2.0, 1.0]),
        table([1, np.inf], [2.0, 1.0]),
        table([1, 0], [2.0, 1.0], [None, None]),
        table([1, 0], [2.0, 1.0]).assign(weight=[1.0, 2.0]),
        table([1, 0], [2.0, 1.0]).assign(weight=[-1.0, -1.0]),
        table([1, 0], [2.0, 1.0]).assign(weight=[1.0, None]),
    ],
    ids=["NULL label", "infinite label", "NULL query", "weights", "negative", "NULL"],
)
def test_an_error_of_evaluate_rows_is_nan(rows):
    options = {"weight": "weight"} if "weight" in rows else {}
    assert np.isnan(value_of("mrr", rows, **options)).all()


def test_a_query_in_two_slices_is_nan():
    rows = table([1, 0, 1], [3.0, 2.0, 1.0], "aab").assign(market=["x", "y", "x"])
    assert value_of("mrr", rows, by="market") == pytest.approx(
        [np.nan, np.nan], nan_ok=True
    )


def test_a_table_without_queries():
    rows = table([1.0], [1.0])[:0]
    assert np.isnan(value_of("ndcg", rows)).all()
    assert value_of("ndcg", rows, per_query=True) == []
    assert len(value_of("ndcg", rows, by="the query")) == 1


# What DuckDB, Spark SQL, BigQuery, Snowflake and PostgreSQL have.
FUNCTIONS = {
    *("abs", "case", "cast", "coalesce", "count", "exp", "greatest", "least", "ln"),
    *("max", "min", "pow", "rank", "round", "rownumber", "sum", "tanh", "grouping"),
    *("and", "or", "if"),  # to sqlglot, they are functions
    *("collate", "trycast"),  # of PostgreSQL, and the cast of Spark
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("is_run", [False, True], ids=["rows", "run"])
def test_every_dialect_has_the_functions_of_the_statement(dialect, is_run):
    options = {"judgments": "qrels", "item": "item", "convention": "trec_eval"}
    metrics = [each for each in [*METRICS, *CHOICES] if "@" in each]
    statement = trm.as_sql(
        metrics, "rows", **COLUMNS, by="market", weight="weight", dialect=dialect,
        separator="_", **(options if is_run else {}),
    )  # fmt: skip
    (parsed,) = sqlglot.parse(statement, dialect=dialect)
    assert isinstance(parsed, exp.Select)
    names = {
        each.name.lower() if isinstance(each, exp.Anonymous) else each.key
        for each in parsed.find_all(exp.Func)
    }
    assert names <= FUNCTIONS
    for window in parsed.find_all(exp.Window):  # BigQuery: not by a float
        assert [each.sql() for each in window.args["partition_by"]] == ["query_id"]
    collations = [each.sql(dialect) for each in parsed.find_all(exp.Collate)]
    has_collation = dialect == "postgres" and is_run
    assert [each[-3:] for each in collations] == ['"C"'] * len(collations)
    assert bool(collations) == has_collation


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_command_prints_the_statement(capsys, dialect):
    columns = ["--query", "the query", "--by", "market", "--sql", dialect]
    options = {"by": "market", "dialect": dialect}
    options["separator"] = "_" if dialect == "bigquery" else "@"
    assert main(["rows", "-m", "ndcg@10", "--gain", "linear", *columns]) == 0
    expected = trm.as_sql(["ndcg@10"], "rows", **COLUMNS, **options, gain="linear")
    assert capsys.readouterr().out == f"{expected}\n"
    run = ["qrels", "run", "--item", "id", "--convention", "trec_eval", "-q"]
    assert main([*run, "-m", "mrr", *columns]) == 0
    options |= {"judgments": "qrels", "item": "id", "missing_queries": "skip"}
    options |= {"convention": "trec_eval", "per_query": True}
    expected = trm.as_sql(["mrr"], "run", **COLUMNS, **options)
    assert capsys.readouterr().out == f"{expected}\n"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["a", "b", "c", "-m", "mrr"], "several runs"),
        (["a", "-m", "mrr", "--lower-is-better"], "--lower-is-better"),
        (["a", "b", "-m", "mrr", "--people", "c"], "Received: --people. Omit"),
        (["a", "b", "-m", "mrr", "--worst", "3"], "Received: --worst. Omit"),
        (["a", "b", "-m", "mrr", "--explain", "q"], "Received: --explain. Omit"),
        (["a", "b", "c", "-m", "mrr", "--gate", "better"], "--gate, several runs."),
        (["a", "-m", "mrr(ties=stable)"], "ties='stable'"),
        (["a", "b", "-m", "mrr", "--missing-queries", "error"], "--missing-queries"),
    ],
)
def test_errors_of_the_command(capsys, arguments, error):
    assert main([*arguments, "--sql", "duckdb"]) == 2
    assert error in capsys.readouterr().err


def test_a_comment_explains_each_step():
    statement = trm.as_sql(["mrr"], "rows", **COLUMNS)
    assert len(re.findall(r" AS \(\n  /\* ", statement)) == statement.count(" AS (\n")


def test_the_page_prints_the_output_shown():
    run_blocks(PAGE, section="SQL where the rows are")
