"""`as_sql`: metrics as one SELECT, for tables that stay in their database."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tfrankmetrics.evaluation.evaluate_rows import drops_unjudged
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.options import Options, Separator
from tfrankmetrics.ranking.ties import TiePolicy
from tfrankmetrics.results.request import read_request
from tfrankmetrics.rules import check_option, shortened
from tfrankmetrics.sql.sql_columns import NotInSQLError
from tfrankmetrics.sql.statement import Ranking, Source, require_sqlglot, statement

if TYPE_CHECKING:
    from typing_extensions import Unpack

Dialect = Literal["duckdb", "spark", "bigquery", "snowflake", "postgres"]
MissingInSQL = Literal["zero", "skip"]
# Choices whose formulas no statement has.
_NOT_IN_SQL = {("denominator", "hits"), ("ideal", "retrieved")}


def as_sql(
    metrics: Sequence[str | MetricObject],
    table: str,
    *,
    query: str,
    label: str,
    score: str,
    by: str | Sequence[str] | None = None,
    weight: str | None = None,
    judgments: str | None = None,
    item: str | None = None,
    missing_queries: MissingInSQL = "zero",
    per_query: bool = False,
    dialect: Dialect = "duckdb",
    separator: Separator = "@",
    **options: Unpack[Options],
) -> str:
    """Writes metrics as one SQL statement, exact under ties.

    >>> names = dict(query="user", label="click", score="score")
    >>> sql = as_sql(["ndcg@10", "mrr"], "predictions", **names)  # for DuckDB
    >>> print(sql.splitlines()[0])
    WITH trm_rows AS (

    The statement returns the values of `evaluate_rows` or, for two tables, of
    `evaluate_run`. It only reads the table.

    Where these functions raise an error for a label, a weight or an id, the value of
    the statement is NaN. It does not find other mistakes in the data, such as an item
    that occurs twice in a query.

    Args:
        metrics: Names and metric objects, as in `evaluate_rows`.
        table: The table of the rows: its name, or a SELECT in parentheses, as the
            dialect writes them.
        query: The column of the query ids. Columns are quoted: pass each name as the
            database stores it, such as "QUERY" in Snowflake.
        label: The column of the labels.
        score: The column of the scores. NULL is like NaN.
        by: A column of slices, or a list of columns. The result has a row for each
            slice and a last one for all queries, in which these columns are NULL. It
            also has the column `queries`, the number of included queries.
        weight: The column of the weights of queries, the same in all rows of a query.
        judgments: A second table, with the labels; `table` then has the scores. Both
            have the columns `query` and `item`. `by` and `weight` are columns of the
            judgments.
        item: The column of the item ids, for two tables.
        missing_queries: How to treat judged queries without predictions: as "zero", an
            empty result (the default); or "skip".
        per_query: If True, the statement returns the values of the queries, unordered.
        dialect: The dialect of SQL: "duckdb" (the default), "spark", "bigquery",
            "snowflake" or "postgres".
        separator: "@" (the default): columns of values are named as passed; "_": names
            such as "ndcg_10", which BigQuery requires.
        **options: Options for the metrics passed by name, such as `gain="linear"`. See
            `tfrankmetrics.Options`.

    Returns:
        A SELECT. Its columns are named as the keys of `evaluate_rows`.

    Raises:
        ValueError: A metric or an option is not available in SQL, such as
            `ties="stable"`, since rows have no order there.
        ImportError: sqlglot, which the extra "sql" installs, is missing.
    """
    require_sqlglot()
    check_option("as_sql", "dialect", dialect, Dialect)
    check_option("as_sql", "missing_queries", missing_queries, MissingInSQL)
    columns = [by] if isinstance(by, str) else [*(by or ())]
    request = read_request(metrics, options, by=by, separator=separator)
    shaped = dataclasses.replace(request, per_query=per_query)
    shaped.require_free_keys([*columns, *["queries"] * bool(by)], has_ids=True)
    is_run = judgments is not None
    if is_run != (item is not None):
        raise ValueError(
            "Two tables need both `judgments` and `item`, the column of the item ids. "
            f"Received: judgments={shortened(judgments)}, item={shortened(item)}."
        )
    source = Source(
        dialect=dialect,
        table=table,
        query=query,
        label=label,
        score=score,
        by=columns,
        weight=weight,
        judgments=judgments,
        item=item,
        missing_queries=missing_queries,
    )
    rankings = _values_by_ranking(request.named, source)
    return statement(source, rankings, [*request.named], per_query=per_query)


def _values_by_ranking(
    named: Mapping[str, Measure], source: Source
) -> dict[Ranking, dict[str, Any]]:
    """The value and the weight of each metric, by the ranking that it reads."""
    is_run = source.judgments is not None
    rankings: dict[Ranking, dict[str, Any]] = {}
    for name, measure in named.items():
        _require_options(name, measure, is_run)
        drops = drops_unjudged(measure, not is_run)
        ranking = Ranking(drops, measure.tie_breaking, measure.is_trec_eval and is_run)
        try:
            values = ranking.value_and_weight(measure, source)
        except (NotInSQLError, AttributeError, TypeError) as error:
            raise ValueError(
                "A metric of `as_sql` must have a formula that SQL can compute. "
                f"Received: {name!r}, which needs {error}. Call "
                f"`{'evaluate_run' if is_run else 'evaluate_rows'}`."
            ) from error
        rankings.setdefault(ranking, {})[name] = values
    return rankings


def _require_options(name: str, measure: Measure, is_run: bool) -> None:
    """Raises ValueError for an option that no statement has."""
    for option, value in measure.options:
        is_stable = option == "ties" and value == TiePolicy.STABLE.value
        has_order = is_run and measure.is_trec_eval  # that of the ids
        is_refused = callable(value) or (option, value) in _NOT_IN_SQL
        if is_refused or (is_stable and not has_order):
            remedy = "ties='expected'" if is_stable else "another"
            raise ValueError(
                f"`{option}` must be a choice that SQL has, where rows have no order. "
                f"Received: {option}={shortened(value)} for {name!r}. Pass {remedy}, "
                "or call `evaluate_rows`."
            )
