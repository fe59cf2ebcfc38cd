"""The statement: from the rows to the lists, the ranks, the sums and the means.

The text is of the dialect from the start; sqlglot names types, quotes names and formats
it. A query with an invalid label, weight or id is marked, and its value is NaN.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfrankmetrics.compute.values import apply_empty
from tfrankmetrics.evaluation.join import LOWEST_SCORE
from tfrankmetrics.installation import require
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.ranking.ties import TieBreaking, TiePolicy
from tfrankmetrics.rules import shortened
from tfrankmetrics.sql.sql_columns import (
    FLOAT,
    INFINITY,
    LARGEST,
    NAN,
    TINY,
    Column,
    NotInSQLError,
    Steps,
)
from tfrankmetrics.sql.sql_lists import LISTED, SqlLists

# The name of a step, the comment above it, and its SELECT.
Step = tuple[str, str, str]
_FOUND = "found: 2 for a number as the score, 1 for NaN and NULL, 0 for not retrieved."


@dataclasses.dataclass(frozen=True, kw_only=True)
class Source:
    """The tables and columns of a statement. `as_sql` describes them."""

    dialect: str
    table: str
    query: str
    label: str
    score: str
    by: Sequence[str]
    weight: str | None
    judgments: str | None
    item: str | None
    missing_queries: str

    def quoted(self, name: str) -> str:
        """The name of a column."""
        return require_sqlglot().exp.to_identifier(name, quoted=True).sql(self.dialect)

    def table_of(self, text: str) -> str:
        """A table or a subquery. Raises ValueError for anything else."""
        sqlglot = require_sqlglot()
        is_query = text.lstrip().startswith("(") and text.rstrip().endswith(")")
        kind = sqlglot.exp.Subquery if is_query else sqlglot.exp.Table
        found: Any = None
        try:
            into = {} if is_query else {"into": kind}
            found = sqlglot.parse_one(text, dialect=self.dialect, **into)
        except sqlglot.errors.SqlglotError:
            pass
        if not isinstance(found, kind):
            raise ValueError(
                "A table must be a name, or a SELECT in parentheses, in the dialect "
                f"{self.dialect!r}. Received: {shortened(text)}."
            )
        if is_query:
            found = found.as_("trm_given")  # which PostgreSQL requires
        return found.sql(self.dialect)

    @property
    def label_as_float(self) -> str:
        """The label of a row."""
        return f"CAST({self.quoted(self.label)} AS {FLOAT})"

    @property
    def slices(self) -> list[str]:
        """The names of slices within the statement."""
        return [f"slice_{place}" for place, _ in enumerate(self.by, start=1)]

    def steps(self) -> list[Step]:
        """The rows and the queries."""
        query, score = self.quoted(self.query), self.quoted(self.score)
        ids, table = f"{query} AS query_id", self.table_of(self.table)
        label = f"{self.label_as_float} AS given_label"
        retrieved = f"CASE WHEN {score} > -{INFINITY} THEN 2 ELSE 0 END"
        # No two dialects order NaN, NULL and -0 alike. Denormal numbers are 0.
        found = f"CASE WHEN {score} <= {INFINITY} THEN {retrieved} ELSE 1 END AS found"
        is_key = f"{score} <= {INFINITY} AND ({score} >= {TINY} OR {score} <= -{TINY})"
        scores = f"{found}, CASE WHEN {is_key} THEN {score} ELSE 0 END AS score"
        if self.judgments is None:
            rows = f"SELECT {ids}, {label}, {scores} FROM {table}"
            return [("trm_rows", _FOUND, rows), self._queries(table)]
        judged = self.table_of(self.judgments)
        if self.missing_queries == "skip":
            judged += f" WHERE {query} IN (SELECT {query} FROM {table})"
        ids += f", {self.quoted(self.item or '')} AS item_id"
        known = f"{query} IN (SELECT query_id FROM trm_judged)"
        pairs = "COALESCE(j.query_id, p.query_id) AS query_id"
        pairs += ", COALESCE(j.item_id, p.item_id) AS item_id"
        # A predicted item that was not judged has a label below 0.
        labels = "CASE WHEN j.query_id IS NULL THEN -1 ELSE given_label END"
        scores_of_pairs = "COALESCE(found, 0) AS found, COALESCE(score, 0) AS score"
        is_predicted = "CASE WHEN found IS NULL THEN 0 ELSE 1 END AS is_predicted"
        join = "trm_judged AS j FULL OUTER JOIN trm_predicted AS p"
        join += " ON j.query_id = p.query_id AND j.item_id = p.item_id"
        rows = f"SELECT {pairs}, {labels} AS given_label, {scores_of_pairs}"
        predicted = f"SELECT {ids}, {scores} FROM {table} WHERE {known}"
        return [
            ("trm_judged", "Judgments.", f"SELECT {ids}, {label} FROM {judged}"),
            ("trm_predicted", f"Predictions; {_FOUND}", predicted),
            ("trm_rows", "All items.", f"{rows}, {is_predicted} FROM {join}"),
            self._queries(judged),
        ]

    def _queries(self, table: str) -> Step:
        """The weight and the slices of each query, the same in all its rows."""
        query = self.quoted(self.query)
        facts = dict(zip(self.slices, map(self.quoted, self.by), strict=True))
        same = [f"COUNT({column}) IN (0, COUNT(*))" for column in facts.values()]
        valid = f"ABS({self.label_as_float}) <= {LARGEST} AND {query} IS NOT NULL"
        if self.weight is not None:
            facts["weight"] = weight = self.quoted(self.weight)
            valid += f" AND {weight} >= 0 AND {weight} <= {LARGEST}"
        same += [f"COALESCE(MIN({c}) = MAX({c}), TRUE)" for c in facts.values()]
        same.append(f"MIN(CASE WHEN {valid} THEN 1 ELSE 0 END) = 1")
        is_invalid = f"CASE WHEN {' AND '.join(same)} THEN 0 ELSE 1 END AS is_invalid"
        columns = [f"MIN({column}) AS {name}" for name, column in facts.items()]
        text = ", ".join([f"{query} AS query_id", *columns, is_invalid])
        return "trm_queries", "Queries.", f"SELECT {text} FROM {table} GROUP BY {query}"


class Ranking(NamedTuple):
    """Metrics with the same ranking: what they leave out, and the order of ties."""

    drops_unjudged: bool
    tie_breaking: TieBreaking
    is_trec_eval: bool  # scores are rounded, and tied items ordered by id

    def value_and_weight(self, measure: Measure, source: Source) -> list[Column]:
        """A metric's value and weight of each query, from its formula."""
        if measure.declaration.reads_items or measure.declaration.has_subtopics:
            raise NotInSQLError("data other than labels and scores")
        is_run = source.judgments is not None
        lists = SqlLists.down_to(
            measure.k,
            has_ties=self.tie_breaking.is_exact,
            has_weights=source.weight is not None,
            is_run=is_run,
        )
        value, weight = apply_empty(measure, lists, measure.values(lists))
        if is_run and measure.declaration.without_results is None:
            predicted = Column("SUM(is_predicted)", kind="sum")
            form = f"CASE WHEN {{}} = 0 THEN {NAN} ELSE {{}} END"
            weight = Column(form, predicted, weight)
        return [value, weight]

    def order(self, dialect: str) -> str:
        """The order of the rows of a query."""
        order = "score_class DESC, score DESC"
        match self.tie_breaking.policy:
            case TiePolicy.EXPECTED:
                return order
            case TiePolicy.STABLE:  # of trec_eval: by the bytes of the ids
                collation = ' COLLATE "C"' * (dialect == "postgres")
                return f"{order}, CAST(item_id AS TEXT){collation} DESC"
            case TiePolicy.BEST | TiePolicy.WORST as policy:
                assert self.tie_breaking.gain is not None
                gain, _ = self.tie_breaking.gain(LISTED).write(Steps(order))
                return (
                    f"{order}, {gain} {'DESC' if policy is TiePolicy.BEST else 'ASC'}"
                )

    def steps(self, name: str, is_run: bool, made: Steps) -> list[Step]:
        """The steps from the rows to the sums of each query."""
        unlisted = "given_label < 0" + " AND found = 0" * (not self.drops_unjudged)
        columns = [
            *["query_id", *["item_id", "is_predicted"] * is_run],
            *["GREATEST(given_label, 0) AS label", "given_label >= 0 AS is_judged"],
            f"CASE WHEN {unlisted} THEN -1 ELSE found END AS score_class",
            f"{_ROUNDED if self.is_trec_eval else 'score'} AS score",
        ]
        comment = "Lists: score_class is -1 for an item that is in none."
        table, text = f"trm_lists_{name}", f"SELECT {', '.join(columns)} FROM trm_rows"
        steps = [(table, comment, text)]
        for step, added in sorted(made.columns.items()):
            text = f"SELECT *, {_listed(added)} FROM {table}"
            kinds = dict.fromkeys(each.rpartition("_")[0] for each in added.values())
            comment, table = ", ".join(kinds), f"trm_items_{name}_{step}"
            steps.append((table, f"By item: {comment.replace('_', ' ')}.", text))
        text = f"SELECT query_id, {_listed(made.sums)} FROM {table} GROUP BY query_id"
        return [*steps, (f"trm_sums_{name}", "Sums over the items of a query.", text)]


# x * c - (x * c - x), for c = 2^29 + 1, has the first 24 bits of x, after Veltkamp:
# BigQuery and Snowflake have no float32. From 2^128 on, a float32 is infinite.
_LIMITED = f"LEAST(GREATEST(CAST(score AS {FLOAT}), {LOWEST_SCORE}), {2.0**128})"
_SHORTENED = f"{_LIMITED} * 536870913 - ({_LIMITED} * 536870913 - {_LIMITED})"
_IS_TINY = f"ABS(CAST(score AS {FLOAT})) < {float(np.finfo(np.float32).tiny)}"
_ROUNDED = f"CASE WHEN {_IS_TINY} THEN 0 ELSE {_SHORTENED} END"


def _listed(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{text} AS {name}" for text, name in columns.items())


def statement(
    source: Source,
    rankings: Mapping[Ranking, Mapping[str, list[Any]]],
    names: Sequence[str],
    *,
    per_query: bool,
) -> str:
    """The SELECT, from the value and the weight of each metric in each ranking."""
    steps, tables, written = source.steps(), "trm_queries", {}
    for place, (ranking, columns) in enumerate(rankings.items(), start=1):
        made = Steps(ranking.order(source.dialect), f"sum_{place}")
        for name, pair in columns.items():
            written[name] = [Column("{}", each).write_of_query(made) for each in pair]
        steps += ranking.steps(str(place), source.judgments is not None, made)
        tables += f" LEFT JOIN trm_sums_{place} USING (query_id)"
    values = ["query_id", *source.slices]
    for place, name in enumerate(names, start=1):
        value, weight = written[name]
        weight = f"CASE WHEN is_invalid = 0 THEN {weight} ELSE {NAN} END"
        values += [f"{value} AS value_{place}", f"{weight} AS weight_{place}"]
    text = f"SELECT {', '.join(values)} FROM {tables}"
    steps.append(("trm_values", "Values; a query of weight 0 is left out.", text))
    if per_query:
        last = _values_of_queries(source, names)
    elif not source.by:
        last = _weighted_means(source, names)
    else:
        means = _weighted_means(source, names)
        steps.append(("trm_means", "Means of each slice, and of all queries.", means))
        columns = ", ".join(map(source.quoted, [*source.by, "queries", *names]))
        slices = [f"{source.quoted(each)} NULLS LAST" for each in source.by]
        order = [source.quoted("trm_is_all"), *slices]
        last = f"SELECT {columns} FROM trm_means ORDER BY {', '.join(order)}"

    sqlglot, dialect = require_sqlglot(), source.dialect
    tables = ", ".join(f"{name} AS ({text})" for name, _, text in steps)
    parsed = sqlglot.parse_one(f"WITH {tables} {last}", dialect=dialect)
    for table, (_, comment, _) in zip(parsed.ctes, steps, strict=True):
        table.this.add_comments([comment])
    text = parsed.sql(dialect, pretty=True)
    # Snowflake has only this short form.
    return text.replace(
        "RANGE BETWEEN CURRENT ROW AND CURRENT ROW", "RANGE CURRENT ROW"
    )


def _values_of_queries(source: Source, names: Sequence[str]) -> str:
    columns = dict(
        zip(["query_id", *source.slices], ["query", *source.by], strict=True)
    )
    for place, name in enumerate(names, start=1):
        is_counted = f"weight_{place} > 0 AND weight_{place} <= {LARGEST}"
        columns[f"CASE WHEN {is_counted} THEN value_{place} ELSE {NAN} END"] = name
    quoted = {text: source.quoted(name) for text, name in columns.items()}
    return f"SELECT {_listed(quoted)} FROM trm_values"


def _weighted_means(source: Source, names: Sequence[str]) -> str:
    """The weighted means of all queries and, with slices, of each slice."""
    columns = dict(zip(source.slices, source.by, strict=True))
    if source.by:
        columns["GROUPING(slice_1)"] = "trm_is_all"
        weights = [f"weight_{place} <> 0" for place, _ in enumerate(names, start=1)]
        number = f"SUM(CASE WHEN {' OR '.join(weights)} THEN 1 ELSE 0 END)"
        columns[f"COALESCE({number}, 0)"] = "queries"
    for place, name in enumerate(names, start=1):
        value, weight = f"value_{place}", f"weight_{place}"
        mean = f"SUM({weight} * {value}) / SUM({weight})"
        is_empty = f"COALESCE(SUM({weight}), 0) = 0"
        columns[f"CASE WHEN {is_empty} THEN {NAN} ELSE {mean} END"] = name
    quoted = {text: source.quoted(name) for text, name in columns.items()}
    text = f"SELECT {_listed(quoted)} FROM trm_values"
    if source.by:
        text += f" GROUP BY GROUPING SETS (({', '.join(source.slices)}), ())"
    return text


def require_sqlglot() -> Any:
    """The module sqlglot. With it, `tfrankmetrics.arrays` looks for columns of SQL."""
    return require("sqlglot", "`as_sql`", "sql")
