"""A solidDB server's landed tables, decoded and staged without dbt: a table for each test."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from afterimage_demo.soliddb.log import SysLog, columns_snapshot, tables_snapshot
from afterimage_demo.soliddb.tables import BankColumn, BankTable
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.settings import parse_settings
from dbt_afterimage.soliddb import build_log
from dbt_afterimage.sources.decoded_log import write_decoded_log
from dbt_afterimage.storage.local_relation import local_rows
from tests.macro_renderer import MacroRenderer
from tests.soliddb_columns import SYS_COLUMNS, SYS_LOG, SYS_TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT = datetime(2026, 3, 2, 9)
SCHEMA = "soliddb_server"
_PROGRESS = (
    "model string, recorded_at timestamp, change_seq string, changed_at timestamp, path string, "
    "arrival string, raw_version string"
)


def table(name: str, relation_id: int, *columns: str) -> BankTable:
    """A table of integers; the first column is its key."""
    names = columns or ("ID",)
    kinds = tuple(BankColumn(column, 1, "INTEGER") for column in names)
    return BankTable(name, relation_id, names[0], kinds)


class Server:
    """What is landed so far, and the decoded log of the runs so far."""

    def __init__(self, spark: SparkSession, table_format: str, name: str) -> None:
        self.log = SysLog()
        self.tables: list[dict[str, Any]] = []
        self.columns: list[dict[str, Any]] = []
        self._spark = spark
        self._name = name
        self._context: dict[str, Any] = {
            "model": name,
            "log": f"{SCHEMA}.{name}",
            "progress": f"{SCHEMA}.{name}_progress",
            "file_format": table_format,
            "rebuild_changes": False,
            "accept_gap": False,
        }
        spark.sql(f"create schema if not exists {SCHEMA}")
        for made in (self._context["log"], self._context["progress"]):
            spark.sql(f"drop table if exists {made}")
        spark.sql(f"create table {self._context['progress']} ({_PROGRESS}) using {table_format}")

    def commit(self, *changes: tuple[Any, ...]) -> bytes:
        """A transaction: (table, row) is an insert, (code, name, id) is DDL; its COMMIT's place."""
        self.log.begin(AT)
        for change in changes:
            if isinstance(change[0], BankTable):
                of_table, *values = change
                row = dict(zip((c.name for c in of_table.columns), values, strict=True))
                self.log.insert(of_table, row)
            else:
                self.log.ddl(*change)
        self.log.commit()
        return self.log.address

    def snapshot(self, *tables: BankTable, at: bytes | None = None, schema: str = "") -> None:
        """Land the catalogue."""
        rows = tables_snapshot(tables, at)
        self.tables += [{**row, "table_schema": schema or row["table_schema"]} for row in rows]
        self.columns += columns_snapshot(tables, at)

    def run(self, **settings: Any) -> None:
        """Decode what is landed so far."""
        given = {"system": "soliddb", **settings}
        node = {"source_name": "raw", "name": "sys_log", "meta": {"afterimage": given}}
        context = {**self._context, "settings": parse_settings(node)}
        log, tables, columns = (
            local_rows(self._spark, rows, kind)
            for rows, kind in (
                (self.log.rows, SYS_LOG),
                (self.tables, SYS_TABLES),
                (self.columns, SYS_COLUMNS),
            )
        )
        if settings.get("framing") == "decoded":
            log = log.withColumn("data", log["data"].cast("string"))
        dbt = SimpleNamespace(config={"afterimage": context})
        write_decoded_log(
            self._spark, RunContext(**context), build_log(dbt, self._spark, log, tables, columns)
        )

    def decoded(self, columns: Iterable[str], where: str = "true") -> list[tuple[Any, ...]]:
        """Rows of the decoded log."""
        rows = self._spark.table(self._context["log"]).filter(where).orderBy("log_address")
        return [tuple(row) for row in rows.select(*columns).collect()]

    def staged(self, name: str, **settings: Any) -> list[tuple[Any, ...]]:
        """change_oper and key of what the staging view of a table yields."""
        view = f"{self._name}_sys_tables"
        local_rows(self._spark, self.tables, SYS_TABLES).createOrReplaceTempView(view)
        view_of_columns = f"{self._name}_sys_columns"
        local_rows(self._spark, self.columns, SYS_COLUMNS).createOrReplaceTempView(view_of_columns)
        given = {"system": "soliddb", "key": ["id"], **settings}
        node = {"source_name": "raw", "name": name, "meta": {"afterimage": given}, "columns": {}}
        names = {"sys_tables": view, "sys_columns": view_of_columns}
        render = MacroRenderer(
            source=lambda source, table: names.get(table, SimpleNamespace(identifier=table)),
            run_query=lambda sql: SimpleNamespace(rows=self._spark.sql(sql).collect()),
            _raw_columns=lambda relation: self._spark.table(str(relation)).columns,
            _settings=lambda source, table: parse_settings(node),
        )
        sql = str(render("stage_soliddb_table", "raw", name, log=self._context["log"]))
        rows = self._spark.sql(sql).orderBy("change_seq").select("change_oper", "id")
        return [tuple(row) for row in rows.collect()]
