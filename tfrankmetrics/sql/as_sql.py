"""`as_sql`: metrics as one SELECT, for tables that stay in their database."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from tfrankmetrics.evaluation.evaluate_rows import drops_unjudged
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.metrics.names import MetricObject
from tfrankmetrics.options import Options, Separator
from tfrankmetrics.results.request import read_request
from tfrankmetrics.rules import check_option, shortened
from tfrankmetrics.sql.sql_columns import NotInSQLError
from tfrankmetrics.sql.statement import Ranking, Source, require_sqlglot, statement

if TYPE_CHECKING:
    from typing_extensions import Unpack

Dialect = Literal["duckdb", "spark", "bigquery", "snowflake", "postgres"]
MissingInSQL = Literal["zero", "skip"]
# Options whose formulas no statement has, or whose choice depends on the order of rows.
_NOT_IN_SQL = {"denominator": "hits", "ideal": "retrieved"}


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
    >>> print(sql.partition("(")[0])
    WITH tfr_rows AS

    The statement returns the values of `evaluate_rows` or, for two tables, of
    `evaluate_run`. It reads the table only, and creates nothing.

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
        per_query: If True, the statement returns the value of each query, in no order.
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
        ImportError: The extra `sql` is not installed.
    """
    require_sqlglot()
    check_option("as_sql", "dialect", dialect, Dialect)
    check_option("as_sql", "missing_queries", missing_queries, MissingInSQL)
    columns = [by] if isinstance(by, str) else [*(by or ())]
    request = read_request(metrics, options, by=by, separator=separator)
    shaped = dataclasses.replace(request, per_query=per_query)
    shaped.require_free_keys([*columns, *["queries"] * bool(by)], has_ids=True)
    if (judgments is None) != (item is None):
        raise ValueError(
            "Two tables need both `judgments` and `item`, the column of the item ids. "
            f"Received: judgments={shortened(judgments)}, item={shortened(item)}."
        )
    if dialect == "bigquery":
        _require_words([*request.named, *columns])
    is_run = judgments is not None
    source = Source(
        *(dialect, table, query, label, score, columns, weight, judgments, item),
        skips_missing=missing_queries == "skip",
    )
    rankings: dict[Ranking, dict[str, Any]] = {}
    for name, measure in request.named.items():
        _require_in_sql(name, measure, is_run)
        rounds = measure.is_trec_eval and is_run
        ranking = Ranking(
            drops_unjudged(measure, not is_run), measure.tie_breaking, rounds
        )
        try:
            values = ranking.value_and_weight(measure, source)
        except NotInSQLError as error:
            raise ValueError(
                f"`as_sql` must have the formula of each metric. Received: {name!r}, "
                f"which requires {error}. Pass `per_query` values of `evaluate_rows`."
            ) from None
        rankings.setdefault(ranking, {})[name] = values
    return statement(source, rankings, [*request.named], per_query=per_query)


def _require_in_sql(name: str, measure: Measure, is_run: bool) -> None:
    """Raises ValueError for a metric or an option that no statement has."""
    declaration, options = measure.declaration, measure.by_option
    refused = [o for o, v in options.items() if callable(v) or _NOT_IN_SQL.get(o) == v]
    if options["ties"] == "stable" and not (measure.is_trec_eval and is_run):
        refused.append("ties")
    if declaration.reads_items or declaration.has_subtopics:
        raise ValueError(
            "`as_sql` must have metrics of labels and scores. Received: "
            f"{name!r}, which reads other data. Call `evaluate_rows`."
        )
    for option in refused:
        raise ValueError(
            f"`{option}` must be a choice that SQL has. Received: "
            f"{option}={shortened(options[option])} for {name!r}. "
            + (
                "Rows have no order in SQL: pass ties='expected'."
                if option == "ties"
                else "Omit it, or call `evaluate_rows`."
            )
        )


def _require_words(names: Sequence[str]) -> None:
    for name in names:
        if not name.replace("_", "a").isalnum():
            raise ValueError(
                "BigQuery needs names of letters, digits and underscores. Received: "
                f"{shortened(name)}. Pass separator='_'."
            )
