"""The statement: from the rows to the lists, the ranks, the sums and the means.

The text is that of the dialect from the start. sqlglot names types, quotes names and
refuses what is no table.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfrankmetrics.compute.values import apply_empty
from tfrankmetrics.evaluation.join import LOWEST_SCORE
from tfrankmetrics.installation import require
from tfrankmetrics.metrics.measure import Measure
from tfrankmetrics.ranking.ties import TieBreaking, TiePolicy
from tfrankmetrics.sql.sql_columns import (
    FLOAT,
    INFINITY,
    LARGEST,
    NAN,
    Column,
    Steps,
    number,
)
from tfrankmetrics.sql.sql_lists import LISTED, SqlLists

# Steps of the statement, each with the comment above it.
Step = tuple[str, str, str]


@dataclasses.dataclass(frozen=True)
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
    skips_missing: bool

    def quoted(self, name: str) -> str:
        """The name of a column."""
        return require_sqlglot().exp.to_identifier(name, quoted=True).sql(self.dialect)

    def table_of(self, argument: str) -> str:
        """A table or a subquery. Raises ValueError for anything else."""
        sqlglot, text = require_sqlglot(), getattr(self, argument)
        try:
            found = sqlglot.parse_one(f"SELECT * FROM {text}", dialect=self.dialect)
        except sqlglot.ParseError:
            found = sqlglot.exp.Select()
        tables = found.args.get("from_")
        is_alone = set(filter(found.args.get, found.args)) == {"expressions", "from_"}
        kinds = sqlglot.exp.Table, sqlglot.exp.Subquery
        if not (tables and is_alone and isinstance(tables.this, kinds)):
            raise ValueError(
                f"`{argument}` must be a table, or a SELECT in parentheses, in the "
                f"dialect {self.dialect}. Received: {text!r}."
            )
        return tables.this.sql(self.dialect)

    @property
    def slices(self) -> list[str]:
        """The names of slices within the statement."""
        return [f"slice_{place}" for place, _ in enumerate(self.by, start=1)]

    def facts(self) -> list[str]:
        """The columns of weights and slices."""
        named = zip(self.slices, map(self.quoted, self.by), strict=True)
        columns = [f"{column} AS {name}" for name, column in named]
        if self.weight is not None:
            columns.append(f"CAST({self.quoted(self.weight)} AS {FLOAT}) AS weight")
        return columns

    def steps(self) -> list[Step]:
        """The rows, and the queries."""
        queries = "The queries. One with an invalid label, weight or id has a mark."
        labels = [
            f"{self.quoted(self.query)} AS query_id",
            f"CAST({self.quoted(self.label)} AS {FLOAT}) AS given_label",
            *self.facts(),
        ]
        score = self.quoted(self.score)
        if self.judgments is None:
            rows = [*labels, f"{_class(score)} AS found", f"{_key(score)} AS score"]
            table = f"SELECT {', '.join(rows)} FROM {self.table_of('table')}"
            return [
                ("tfr_rows", _ROWS, table),
                ("tfr_queries", queries, self._queries("tfr_rows")),
            ]
        assert self.item is not None
        item = f"{self.quoted(self.item)} AS item_id"
        judged = (
            f"SELECT {', '.join([*labels, item])} FROM {self.table_of('judgments')}"
        )
        if self.skips_missing:
            judged += (
                f" WHERE {self.quoted(self.query)} IN (SELECT {self.quoted(self.query)}"
                f" FROM {self.table_of('table')})"
            )
        predicted = (
            f"SELECT {self.quoted(self.query)} AS query_id, {item}, {score} AS score, "
            f"{_class(score)} AS found FROM {self.table_of('table')} "
            f"WHERE {self.quoted(self.query)} IN (SELECT query_id FROM tfr_judged)"
        )
        # A predicted item that was not judged has a label below 0.
        join = (
            "SELECT COALESCE(j.query_id, p.query_id) AS query_id, "
            "CASE WHEN j.query_id IS NULL THEN -1 ELSE j.given_label END AS given_label"
            ", COALESCE(j.item_id, p.item_id) AS item_id, "
            f"COALESCE(p.found, 0) AS found, {_key('p.score')} AS score, "
            "CASE WHEN p.found IS NULL THEN 0 ELSE 1 END AS is_predicted "
            "FROM tfr_judged AS j FULL OUTER JOIN tfr_predicted AS p "
            "ON j.query_id = p.query_id AND j.item_id = p.item_id"
        )
        return [
            ("tfr_judged", "The judgments.", judged),
            ("tfr_queries", queries, self._queries("tfr_judged")),
            ("tfr_predicted", "The predictions for judged queries.", predicted),
            ("tfr_rows", _ROWS, join),
        ]

    def _queries(self, table: str) -> str:
        """The facts of each query, which must be the same in all its rows."""
        is_valid = [f"ABS(given_label) <= {LARGEST}", "query_id IS NOT NULL"]
        same = [f"COUNT({each}) IN (0, COUNT(*))" for each in self.slices]
        names = [*self.slices]
        if self.weight is not None:
            is_valid.append(f"weight >= 0 AND weight <= {LARGEST}")
            names.append("weight")
        valid = f"MIN(CASE WHEN {' AND '.join(is_valid)} THEN 1 ELSE 0 END) = 1"
        same += [f"COALESCE(MIN({each}) = MAX({each}), TRUE)" for each in names]
        facts = [f"MIN({each}) AS {each}" for each in names]
        mark = f"CASE WHEN {' AND '.join([valid, *same])} THEN 0 ELSE 1 END"
        columns = ["query_id", *facts, f"{mark} AS is_invalid"]
        return f"SELECT {', '.join(columns)} FROM {table} GROUP BY query_id"


_ROWS = "The rows: found is 2 with a score, 1 with NaN or NULL, 0 if not retrieved."


def _class(score: str) -> str:
    """2 for a number, 1 for NaN and NULL, 0 for -inf. No dialect orders NaN alike."""
    retrieved = f"CASE WHEN {score} > -{INFINITY} THEN 2 ELSE 0 END"
    return f"CASE WHEN {score} <= {INFINITY} THEN {retrieved} ELSE 1 END"


def _key(score: str) -> str:
    """The score as given, of any type of numbers; 0 for -0, and for NaN and NULL."""
    is_number = f"{score} <= {INFINITY} AND {score} <> 0"
    return f"CASE WHEN {is_number} THEN {score} ELSE 0 END"


class Ranking(NamedTuple):
    """Metrics with the same ranking: what they leave out, and the order of ties."""

    drops_unjudged: bool
    tie_breaking: TieBreaking
    is_trec_eval: bool  # scores are rounded, and tied items ordered by id

    def value_and_weight(
        self, measure: Measure, source: Source
    ) -> tuple[Column, Column]:
        """A metric's value and weight of each query, from its formula."""
        is_run = source.judgments is not None
        lists = SqlLists.down_to(
            measure.k,
            has_ties=self.tie_breaking.is_exact,
            has_weights=source.weight is not None,
            is_run=is_run,
        )
        value, weight = apply_empty(measure, lists, measure.values(lists))
        if is_run and measure.declaration.without_results is None:
            predicted = Column("SUM({})", Column("is_predicted"), kind="sum")
            form = f"CASE WHEN {{}} = 0 THEN {NAN} ELSE {{}} END"
            weight = Column(form, predicted, weight)
        return value, weight

    def order(self, source: Source) -> str:
        """The order of the rows of a query."""
        order = "score_class DESC, score DESC"
        match self.tie_breaking.policy:
            case TiePolicy.EXPECTED:
                return order
            case TiePolicy.STABLE:  # of trec_eval
                collation = ' COLLATE "C"' * (source.dialect == "postgres")
                return f"{order}, CAST(item_id AS TEXT){collation} DESC"
            case TiePolicy.BEST | TiePolicy.WORST as policy:
                assert self.tie_breaking.gain is not None
                gain = self.tie_breaking.gain(LISTED)
                text, _ = gain.write(Steps(order))
                direction = "DESC" if policy is TiePolicy.BEST else "ASC"
                return f"{order}, {text} {direction}"

    def lists(self, source: Source) -> str:
        """The rows as lists: an item that is in no list has the class -1."""
        score, columns = "score", ["query_id"]
        if self.is_trec_eval:
            columns.append("item_id")
            score = _rounded(f"CAST(score AS {FLOAT})")
        if source.judgments is not None:
            columns.append("is_predicted")
        unlisted = "given_label < 0" + " AND found = 0" * (not self.drops_unjudged)
        columns += [
            "GREATEST(given_label, 0) AS label",
            "given_label >= 0 AS is_judged",
            f"CASE WHEN {unlisted} THEN -1 ELSE found END AS score_class",
            f"{score} AS score",
        ]
        return f"SELECT {', '.join(columns)} FROM tfr_rows"


def _rounded(score: str) -> str:
    """A score rounded to the 24 bits of float32, as `as_in_trec_eval` does.

    x * c - (x * c - x) with c = 2^29 + 1 keeps the first 24 bits, after Veltkamp:
    BigQuery and Snowflake have no float32.
    """
    limited = f"LEAST(GREATEST({score}, {number(LOWEST_SCORE)}), {number(2.0**128)})"
    return f"{limited} * 536870913 - ({limited} * 536870913 - {limited})"


def statement(
    source: Source,
    rankings: Mapping[Ranking, Mapping[str, tuple[Column, Column]]],
    names: Sequence[str],
    *,
    per_query: bool,
) -> str:
    """The SELECT, from the value and the weight of each metric in each ranking."""
    steps = source.steps()
    tables, columns = ["tfr_queries"], {}
    for place, (ranking, measures) in enumerate(rankings.items(), start=1):
        order = Steps(ranking.order(source), f"sum_{place}")
        for name, pair in measures.items():
            columns[name] = [each.write_of_query(order) for each in map(_column, pair)]
        steps += _of_ranking(place, ranking.lists(source), order)
        tables.append(f"LEFT JOIN tfr_sums_{place} USING (query_id)")
    values = ["query_id", *source.slices]
    for place, (value, weight) in enumerate(map(columns.get, names), start=1):
        values.append(f"{value} AS value_{place}")
        valid = f"CASE WHEN is_invalid = 0 THEN {weight} ELSE {NAN} END"
        values.append(f"{valid} AS weight_{place}")
    comment = "The value and the weight of each query. One of weight 0 is left out."
    text = f"SELECT {', '.join(values)} FROM {' '.join(tables)}"
    steps.append(("tfr_values", comment, text))
    if per_query:
        return _written(source, steps, _by_query(source, names))
    if source.by:
        steps.append(("tfr_means", "Means of slices, and of all.", _means(source, names)))
        return _written(source, steps, _by_slice(source, names))
    return _written(source, steps, _means(source, names))


def _column(value: Any) -> Column:
    return value if isinstance(value, Column) else Column("{}", value)


def _of_ranking(place: int, lists: str, order: Steps) -> list[Step]:
    """The steps from lists to the sums of each query."""
    previous = f"tfr_lists_{place}"
    steps = [(previous, "Lists. An item of the class -1 is in none.", lists)]
    for depth, windows in enumerate(order.windows, start=1):
        added = [f"{text} AS {name}" for text, name in windows.items()]
        comment = "Sums over the ranks above."
        if depth == 1:
            comment = "Ranks, and groups of tied scores."
        text = f"SELECT *, {', '.join(added)} FROM {previous}"
        previous = f"tfr_ranks_{place}_{depth}"
        steps.append((previous, comment, text))
    sums = [f"{text} AS {name}" for text, name in order.sums.items()]
    text = f"SELECT {', '.join(['query_id', *sums])} FROM {previous} GROUP BY query_id"
    comment = "Sums over the items of each query."
    return [*steps, (f"tfr_sums_{place}", comment, text)]


def _by_query(source: Source, names: Sequence[str]) -> str:
    columns = [f"query_id AS {source.quoted('query')}", *_sliced(source)]
    for place, name in enumerate(names, start=1):
        counts = f"weight_{place} > 0 AND weight_{place} <= {LARGEST}"
        value = f"CASE WHEN {counts} THEN value_{place} ELSE {NAN} END"
        columns.append(f"{value} AS {source.quoted(name)}")
    return f"SELECT {', '.join(columns)} FROM tfr_values"


def _sliced(source: Source) -> list[str]:
    named = zip(source.slices, source.by, strict=True)
    return [f"{each} AS {source.quoted(name)}" for each, name in named]


def _means(source: Source, names: Sequence[str]) -> str:
    """The weighted means: of all queries, or also of slices."""
    columns, weights = [], []
    for place, name in enumerate(names, start=1):
        weight, value = f"weight_{place}", f"value_{place}"
        weights.append(f"{weight} <> 0")
        mean = f"SUM({weight} * {value}) / SUM({weight})"
        is_empty = f"COALESCE(SUM({weight}), 0) = 0"
        mean = f"CASE WHEN {is_empty} THEN {NAN} ELSE {mean} END"
        columns.append(f"{mean} AS {source.quoted(name)}")
    if not source.by:
        return f"SELECT {', '.join(columns)} FROM tfr_values"
    number = f"SUM(CASE WHEN {' OR '.join(weights)} THEN 1 ELSE 0 END)"
    slices = ", ".join(source.slices)
    first = f"{slices}, GROUPING(slice_1) AS is_whole, COALESCE({number}, 0) AS queries"
    text = f"SELECT {first}, {', '.join(columns)} FROM tfr_values"
    return f"{text} GROUP BY GROUPING SETS (({slices}), ())"


def _by_slice(source: Source, names: Sequence[str]) -> str:
    columns = [*_sliced(source), "queries", *map(source.quoted, names)]
    order = ", ".join(["is_whole", *(f"{each} NULLS LAST" for each in source.slices)])
    return f"SELECT {', '.join(columns)} FROM tfr_means ORDER BY {order}"


def _written(source: Source, steps: Sequence[Step], last: str) -> str:
    """The statement with a comment above each step."""
    tables = ", ".join(f"{name} AS ({text})" for name, _, text in steps)
    dialect = source.dialect
    parsed = require_sqlglot().parse_one(f"WITH {tables} {last}", dialect=dialect)
    for table, (_, comment, _) in zip(parsed.ctes, steps, strict=True):
        table.this.add_comments([comment])
    text = parsed.sql(dialect, pretty=True)
    # The short form, which Snowflake has, too.
    return text.replace("RANGE BETWEEN CURRENT ROW AND CURRENT ROW", "RANGE CURRENT ROW")


def require_sqlglot() -> Any:
    """The module sqlglot. With it, `tfrankmetrics.arrays` looks for columns of SQL."""
    return require("sqlglot", "`as_sql`", "sql")
