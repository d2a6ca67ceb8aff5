"""`afterimage query` over relations that are Arrow tables: names, output, errors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from typer.testing import CliRunner

from dbt_afterimage.cli import app
from dbt_afterimage.cli.commands import query
from dbt_afterimage.cli.support.lazy_table import LazyTable
from dbt_afterimage.cli.support.warehouse import (
    TABLE,
    VIEW,
    IcebergWarehouse,
    SparkWarehouse,
    TableVersion,
    WarehouseError,
    similar,
    sqlite_warehouse,
)

ORDERS = pa.table({"id": [1, 2, 3], "status": ["open", "paid, late", None]})
CT = pa.table({"id": [1, 1]})


@dataclass
class Memory:
    """A warehouse in memory that remembers which columns were read."""

    read: list[tuple[str, set[str]]] = field(default_factory=list)

    def schemas(self) -> list[str]:
        return ["lake", "raw"]

    def relations(self, schema: str) -> dict[str, str]:
        found = {"lake": {"orders": TABLE, "Late Orders": VIEW}, "raw": {"orders": TABLE}}
        return found.get(schema, {})

    def arrow_schema(self, schema: str, name: str) -> pa.Schema:
        return self._rows(schema).schema

    def batches(self, schema: str, name: str, columns: Sequence[str]) -> pa.RecordBatchReader:
        self.read.append((f"{schema}.{name}", set(columns)))
        return self._rows(schema).select(list(columns)).to_reader()

    def arrow(
        self,
        schema: str,
        name: str,
        where: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        raise AssertionError("a query reads in batches")

    @staticmethod
    def _rows(schema: str) -> pa.Table:
        return CT if schema == "raw" else ORDERS

    def files(self, schema: str, name: str) -> tuple[int, int]:
        raise AssertionError("nothing here counts files")

    def versions(self, schema: str, name: str) -> list[TableVersion]:
        raise AssertionError("nothing here reads versions")


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    warehouse = Memory()
    monkeypatch.setattr(query, "project_warehouse", lambda target: (warehouse, "lake"))
    return warehouse


def output(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["query", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def error(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["query", *arguments])
    assert result.exit_code == 1
    return result.stderr


def test_csv_quotes_what_needs_it(memory: Memory) -> None:
    text = output("--csv", "select * from orders order by id")
    assert text == 'id,status\n1,open\n2,"paid, late"\n3,\n'


def test_json_is_a_list_of_objects(memory: Memory) -> None:
    found = json.loads(output("--json", "select id, timestamptz '2026-03-01 08:00Z' t from orders"))
    assert [row["id"] for row in found] == [1, 2, 3]
    assert found[0]["t"] == "2026-03-01 08:00:00+00:00"


def test_only_columns_of_the_query_are_read(memory: Memory) -> None:
    sql = "select count(*) from orders a join orders b using (id)"
    assert output("--csv", sql).splitlines()[1] == "3"
    assert memory.read == [("lake.orders", {"id"})] * 2


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ("status = 'open'", ["1"]),
        ("status is null and id > 1", ["3"]),
        ("status in ('open', 'paid, late')", ["1", "2"]),
        ("upper(status) = 'OPEN'", ["1"]),
    ],
)
def test_a_column_of_the_condition_alone_is_read_too(
    memory: Memory, condition: str, ids: list[str]
) -> None:
    assert output("--csv", f"select id from orders where {condition} order by id").split() == [
        "id",
        *ids,
    ]
    assert memory.read == [("lake.orders", {"id", "status"})]


def test_the_columns_of_a_table_are_enough_to_count_its_rows(memory: Memory) -> None:
    assert output("--csv", "select count(*) from orders").split() == ["count_star()", "3"]


def test_a_name_with_a_schema_and_a_view_with_a_space(memory: Memory) -> None:
    sql = 'select (select count(*) from raw.orders), (select count(*) from "late orders")'
    assert output("--csv", sql).splitlines()[1] == "2,3"
    assert {name for name, _ in memory.read} == {"raw.orders", "lake.Late Orders"}


def test_an_iceberg_table_is_read_with_its_own_names_and_types(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "Order ID": pa.array([1, 2], pa.int64()),
            "total.net": pa.array(["1.50", None]),
            "paid_at": pa.array([datetime(2026, 3, 1, tzinfo=timezone.utc), None]),
        }
    )
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = SqlCatalog("lake", uri=uri, warehouse=str(tmp_path))
    catalog.create_namespace("mart")
    catalog.create_table("mart.orders", schema=rows.schema).append(rows)
    warehouse = IcebergWarehouse("lake", tmp_path / "catalog.db", str(tmp_path), SparkWarehouse())
    connection = query.connect()

    def found(sql: str) -> list[tuple[Any, ...]]:
        return query.run(
            connection, warehouse, "mart", sql, partial(LazyTable, warehouse)
        ).fetchall()

    assert found("select * from orders where \"total.net\" = '1.50'") == [
        (1, "1.50", datetime(2026, 3, 1, tzinfo=timezone.utc))
    ]
    assert found('select "Order ID" from orders where paid_at is null') == [(2,)]
    assert found("select count(*) from orders") == [(2,)]


def test_without_a_query_all_relations_are_listed(memory: Memory) -> None:
    assert output("--csv").splitlines() == [
        "schema,name,kind",
        "lake,Late Orders,view",
        "lake,orders,table",
        "raw,orders,table",
    ]


def test_a_misspelt_table_is_one_line_with_similar_names(memory: Memory) -> None:
    text = error("select * from ordrs")
    assert text.splitlines() == [
        "`query`: schema lake has no table or view ordrs. Similar names: orders, Late Orders. "
        "Fix: correct the name; `afterimage query` without a query lists all."
    ]
    assert "schema raw has no table or view ordrs." in error("select * from raw.ordrs")
    assert "there is no schema rw. Schemas: lake, raw." in error("select * from rw.orders")


@pytest.mark.parametrize(
    "sql", ["selec", "select nothing from orders", "select status::int from orders"]
)
def test_what_duckdb_refuses_is_no_traceback(memory: Memory, sql: str) -> None:
    assert error(sql).rstrip().endswith("Fix: correct the query; it is in DuckDB's SQL.")


@pytest.mark.parametrize(
    "sql",
    ["select * from {{ as_of(ref('orders'), '2026-03-02') }}", "select * from as_of('orders')"],
)
def test_a_macro_in_a_query_belongs_to_dbt(memory: Memory, sql: str) -> None:
    assert "Fix: run it with `dbt show --inline`" in error(sql)


@pytest.mark.parametrize("name", ["run", "query", "schema", "name", "sql", "json", "csv"])
def test_a_table_may_be_called_as_a_variable_of_the_program(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    class OneTable(Memory):
        def relations(self, schema: str) -> dict[str, str]:
            return {name: TABLE} if schema == "lake" else {}

    monkeypatch.setattr(query, "project_warehouse", lambda target: (OneTable(), "lake"))
    assert output("--csv", f'select count(*) from "{name}"').splitlines()[1] == "3"


def test_a_variable_of_the_program_is_no_table(memory: Memory) -> None:
    assert "has no table or view connection." in error("select * from connection")


def test_a_schema_with_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = 'it\'s "raw"'

    class OneSchema(Memory):
        def schemas(self) -> list[str]:
            return [schema]

        def relations(self, name: str) -> dict[str, str]:
            return {"orders": TABLE} if name == schema else {}

    monkeypatch.setattr(query, "project_warehouse", lambda target: (OneSchema(), schema))
    assert output("--csv", "select count(*) from orders").splitlines()[1] == "3"


@pytest.mark.parametrize(
    "sql",
    [
        "create table copied as select * from orders",
        "copy (select 1) to '{file}'",
        "attach '{file}'",
        "install httpfs",
        "set python_enable_replacements = true",
        "delete from orders",
        "select 1; select 2",
        "/* nothing */",
    ],
)
def test_only_a_query_is_run(memory: Memory, tmp_path: Path, sql: str) -> None:
    file = tmp_path / "written"
    assert "Fix: write with `afterimage spark-sql -e" in error(sql.format(file=file))
    assert not file.exists()


@pytest.mark.parametrize(
    "sql", ["select * from read_text('{file}')", "explain analyze copy (select 1) to '{file}'"]
)
def test_no_file_is_read_or_written(memory: Memory, tmp_path: Path, sql: str) -> None:
    file = tmp_path / "private.csv"
    file.write_text("secret", encoding="utf-8")
    text = error(sql.format(file=file))
    assert "`query` reads and writes no other file" in text
    assert file.read_text(encoding="utf-8") == "secret"


def test_other_forms_of_a_query(memory: Memory) -> None:
    assert output("--csv", "describe orders").splitlines()[1].startswith("id,BIGINT")
    assert output("--csv", "pivot orders on id using count(*)").splitlines()[0] == "status,1,2,3"
    assert "3" in output("--csv", "summarize orders")


HOSTILE = "'a' || chr(27) || '[2J' || chr(155) || chr(8238)"


@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"]])
def test_control_characters_of_a_value_reach_no_terminal(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, form: list[str]
) -> None:
    monkeypatch.setattr(query, "_is_terminal", lambda: True)
    text = output(*form, f"select {HOSTILE} as value")
    assert "[2J\\u009b\\u202e" in text
    assert not {"\x1b", "\x9b", "\u202e"} & set(text)


def test_csv_for_a_file_has_the_values_as_they_are(memory: Memory) -> None:
    assert output("--csv", f"select {HOSTILE} as value").splitlines()[1] == "a\x1b[2J\x9b\u202e"


def test_control_characters_that_an_error_quotes_reach_no_terminal(memory: Memory) -> None:
    text = error(f"select cast({HOSTILE} as int)")
    assert "[2J" in text
    assert not {"\x1b", "\x9b", "\u202e"} & set(text)


def test_two_formats_are_wrong_usage(memory: Memory) -> None:
    assert CliRunner().invoke(app, ["query", "--csv", "--json", "select 1"]).exit_code == 2


def test_a_folder_without_a_warehouse_is_named_and_stays_empty(tmp_path: Path) -> None:
    parameters = {
        "spark.sql.defaultCatalog": "lake",
        "spark.sql.catalog.lake.uri": f"jdbc:sqlite:{tmp_path}/catalog.db?journal_mode=WAL",
        "spark.sql.catalog.lake.warehouse": str(tmp_path),
    }
    with pytest.raises(WarehouseError, match=f"There is no warehouse in {tmp_path}: catalog.db"):
        sqlite_warehouse(parameters, SparkWarehouse())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "region"), [({}, "eu-west-1"), ({"client.region": "us-east-2"}, "us-east-2")]
)
def test_tables_in_an_object_store_are_reached_as_spark_reaches_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], region: str
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    (tmp_path / "catalog.db").touch()
    given: dict[str, str] = {}
    monkeypatch.setattr("pyiceberg.catalog.sql.SqlCatalog", lambda _, **said: given.update(said))
    settings = {
        "uri": f"jdbc:sqlite:{tmp_path}/catalog.db",
        "warehouse": "s3://bucket/tables",
        "s3.endpoint": "http://store:9000",
        **settings,
    }
    parameters = {f"spark.sql.catalog.lake.{name}": settings[name] for name in settings}
    parameters |= {"spark.sql.defaultCatalog": "lake"}
    parameters |= {"spark.sql.catalog.other.s3.endpoint": "http://other"}
    sqlite_warehouse(parameters, SparkWarehouse())
    assert given == {
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": "s3://bucket/tables",
        "client.region": region,
        "s3.endpoint": "http://store:9000",
    }


def test_another_catalog_is_left_to_spark() -> None:
    rest = {"spark.sql.defaultCatalog": "lake", "spark.sql.catalog.lake.uri": "https://catalog"}
    assert sqlite_warehouse(rest, SparkWarehouse()) is None
    assert sqlite_warehouse({}, SparkWarehouse()) is None


def test_names_that_resemble_nothing() -> None:
    assert similar("zzz", ["a", "b", "c", "d"]) == "It has a, b, c, ..."
    assert similar("zzz", []) == "It is empty."
