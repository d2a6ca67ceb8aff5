"""`afterimage query`: SQL over the tables and views of the warehouse, in DuckDB."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dbt_afterimage.cli.frame import JsonOption, TargetOption, UsageProblem, command, printable
from dbt_afterimage.cli.support.warehouse import (
    Warehouse,
    WarehouseError,
    missing_extra,
    project_warehouse,
    similar,
)

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation


_MISSING = re.compile(r'Table with name "?(.+?)"? does not exist')
_PIPED_WIDTH = 200
_ALL = 1_000_000


class QueryError(WarehouseError):
    """DuckDB cannot run the query, or a table that it names does not exist."""


@command(
    "query",
    example='afterimage query "select status, count(*) from orders_current group by status"\n'
    "afterimage query          lists tables and views",
)
def query(
    sql: Annotated[str | None, typer.Argument(help="A query in DuckDB's SQL.")] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header.")] = False,
    as_json: JsonOption = False,
    target: TargetOption = None,
) -> None:
    """Query the tables and views of the warehouse with SQL.

    Names without a schema are those of the target's schema. Iceberg tables of the embedded target
    are read without Java, also while dbt writes to them; for views and other targets Spark starts.
    Only the columns that the query needs are read, of tables file by file.
    """
    if as_csv and as_json:
        raise UsageProblem("`query`: got --csv and --json. Fix: give one of the two.")
    warehouse, schema = project_warehouse(target)
    connection = connect()
    form = "csv" if as_csv else "json" if as_json else "table"
    if sql is None:
        _print(_list(connection, warehouse), form, max_rows=_ALL)
        return
    _check_reads(connection, sql)
    # it needs PyArrow; without DuckDB, which is installed with it, `connect` has said so
    from dbt_afterimage.cli.support.lazy_table import LazyTable

    _print(run(connection, warehouse, schema, sql, partial(LazyTable, warehouse)), form)


def _check_reads(connection: DuckDBPyConnection, sql: str) -> None:
    """Refuse all but one statement that reads: DuckDB would change its copies in memory."""
    import duckdb

    try:
        kinds = [statement.type.name for statement in connection.extract_statements(sql)]
    except duckdb.Error as error:
        raise QueryError(_of_duckdb(error, sql)) from error
    # a PIVOT is several statements to DuckDB
    if kinds not in (["SELECT"], ["EXPLAIN"], ["MULTI"]):
        raise QueryError(
            f"`query`: got {', '.join(kinds) or 'no statement'}. Allowed: one SELECT, DESCRIBE, "
            "SUMMARIZE, SHOW, PIVOT or EXPLAIN; `query` only reads. Fix: write with `afterimage "
            'spark-sql -e "..."`.'
        )


def _print(rows: DuckDBPyRelation, form: str, max_rows: int | None = None) -> None:
    """Print all rows as `csv` or `json`, or the first ones as a `table`."""
    import duckdb

    shown = io.StringIO()
    is_terminal = _is_terminal()
    try:
        if form == "csv":
            writer = csv.writer(shown, lineterminator="\n")
            writer.writerow(rows.columns)
            writer.writerows(rows.fetchall())
            # a file gets the values as they are
            sys.stdout.write(printable(shown.getvalue()) if is_terminal else shown.getvalue())
        elif form == "json":
            found = [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]
            typer.echo(printable(json.dumps(found, default=str, ensure_ascii=False, indent=2)))
        else:
            width = shutil.get_terminal_size().columns if is_terminal else _PIPED_WIDTH
            with redirect_stdout(shown):
                rows.show(max_width=width, max_rows=max_rows)
            typer.echo(printable(shown.getvalue()), nl=False)
    except duckdb.Error as error:  # a value that cannot be cast, for example
        raise QueryError(_of_duckdb(error)) from error


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def connect() -> DuckDBPyConnection:
    """A database in memory that shows times in UTC, and reads no file and no Python variable.

    Raises:
        WarehouseError: DuckDB is not installed.
    """
    try:
        import duckdb
    except ImportError as error:
        raise missing_extra("duckdb") from error
    connection = duckdb.connect(
        config={"enable_external_access": False, "python_enable_replacements": False}
    )
    connection.execute("set timezone = 'UTC'")
    return connection


def run(
    connection: DuckDBPyConnection,
    warehouse: Warehouse,
    schema: str,
    sql: str,
    read: Callable[[str, str], Any] | None = None,
) -> DuckDBPyRelation:
    """Run a query; the relations that it names are read when DuckDB first misses them.

    Args:
        schema: the schema of names without one.
        sql: one query in DuckDB's SQL.
        read: what DuckDB reads for a schema and a relation there; by default all its rows at once.

    Raises:
        QueryError: a relation does not exist, or DuckDB refuses the query.
    """
    import duckdb

    read = read or warehouse.arrow
    schemas = {schema, *warehouse.schemas()}
    for name in schemas:
        connection.execute(f"create schema if not exists {_quoted(name)}")
    path = _quoted(schema).replace("'", "''")
    connection.execute(f"set search_path = '{path}'")
    found: set[tuple[str, str]] = set()
    while True:
        try:
            return connection.sql(sql)
        except duckdb.CatalogException as error:
            missing = _MISSING.search(str(error))
            if not missing:
                raise QueryError(_of_duckdb(error, sql)) from error
            places = {
                (place, name)
                for place in schemas
                if place == schema or re.search(rf"\b{re.escape(place)}\b", sql, re.IGNORECASE)
                for name in warehouse.relations(place)
                if name.lower() == missing[1].lower()
            } - found
            if not places:
                raise _missing(warehouse, schema, missing[1], sql) from error
        except duckdb.Error as error:
            raise QueryError(_of_duckdb(error, sql)) from error
        for place, name in sorted(places):
            rows = f"rows of {place}.{name}"
            connection.register(rows, read(place, name))
            connection.execute(
                f"create view {_quoted(place)}.{_quoted(name)} as "
                f"select * from temp.main.{_quoted(rows)}"
            )
        found |= places


def _missing(warehouse: Warehouse, schema: str, name: str, sql: str) -> QueryError:
    """The error for a relation that the query names and no schema of it has."""
    place, _, only = name.rpartition(".")
    fix = "Fix: correct the name; `afterimage query` without a query lists all."
    if place:
        return QueryError(
            f"`query`: there is no schema {place}. "
            f"Schemas: {', '.join(warehouse.schemas()) or 'none'}. {fix}"
        )
    written = re.search(rf"(\w+)\.\W?{re.escape(only)}\b", sql, re.IGNORECASE)
    if written and written[1] in warehouse.schemas():
        schema = written[1]
    return QueryError(
        f"`query`: schema {schema} has no table or view {only}. "
        f"{similar(only, list(warehouse.relations(schema)))} {fix}"
    )


def _of_duckdb(error: Exception, sql: str = "") -> str:
    text = str(error).strip()
    fix = "correct the query; it is in DuckDB's SQL."
    if re.search(r"\{\{|\bas_of\(", sql):
        fix = "run it with `dbt show --inline`: macros such as `as_of` are dbt's."
    elif text.startswith("Permission Error"):
        fix = "query tables of the warehouse; `query` reads and writes no other file."
    return f"`query`: {text}\nFix: {fix}"


def _list(connection: DuckDBPyConnection, warehouse: Warehouse) -> DuckDBPyRelation:
    rows: list[Any] = [
        (schema, name, kind)
        for schema in warehouse.schemas()
        for name, kind in warehouse.relations(schema).items()
    ]
    connection.execute('create table relations ("schema" text, "name" text, "kind" text)')
    if rows:
        connection.executemany("insert into relations values (?, ?, ?)", rows)
    return connection.sql("select * from relations order by all")


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
