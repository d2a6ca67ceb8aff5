"""A shop of two tables whose runs are published together, and the rows that its readers see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.people import seq
from tests.functional.project_files import (
    changes_model,
    history_model,
    write_files,
    write_settings,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("customers", "orders")
RECORD = "header__change_seq string, header__change_oper string, id int, amount int"
MODELS: dict[str, Any] = {
    "orders_current.sql": "{{ current(ref('orders_history')) }}\n",
    # a table that each run replaces
    "totals.sql": (
        "{{ config(materialized='table', file_format='iceberg') }}\n"
        "select count(*) as customers from {{ ref('customers_history') }}\n"
    ),
}
TEST = "select id, amount from {{ ref('orders_current') }} where amount < 0\n"
PUBLISHED = ("customers_history", "orders_history", "orders_current", "totals")


@dataclass(frozen=True)
class PublishedShop:
    """Each batch has a customer and an order of one id; an order of less than 0 fails a test."""

    dbt: DbtProject
    spark: SparkSession

    def write(self) -> None:
        """Its files, and empty raw tables."""
        self.spark.sql(f"create schema if not exists {self.dbt.schema}_raw")
        for table in TABLES:
            self.spark.sql(f"create table {self.raw(table)} ({RECORD})")
        write_project(self.dbt)

    def raw(self, table: str) -> str:
        return f"{self.dbt.schema}_raw.{table}__ct"

    def land(self, batch: int, amount: int, *tables: str) -> None:
        """A batch of both tables, or of some."""
        for table in tables or TABLES:
            rows = [(seq(batch * 10), "I", batch, amount if table == "orders" else 0)]
            local_rows(self.spark, rows, RECORD).writeTo(self.raw(table)).append()

    def correct(self, batch: int) -> None:
        """A change that sets the amount of an order to 1."""
        rows = [(seq(batch * 10 + 5), "U", batch, 1)]
        local_rows(self.spark, rows, RECORD).writeTo(self.raw("orders")).append()

    def seen(self) -> dict[str, list[Any]]:
        """What readers see in the views: ids, of `totals` the number of customers."""
        return self._ids(f"{self.dbt.schema}_readers")

    def written(self) -> dict[str, list[Any]]:
        """The same of the tables."""
        return self._ids(self.dbt.schema)

    def _ids(self, schema: str) -> dict[str, list[Any]]:
        found = {}
        for table in PUBLISHED:
            column = "customers" if table == "totals" else "id"
            self.spark.sql(f"refresh table {self.dbt.schema}.{table}")
            rows = self.spark.sql(f"select {column} from {schema}.{table} order by 1")
            found[table] = [row[0] for row in rows.collect()]
        return found


def write_project(dbt: DbtProject) -> None:
    """The files of the project."""
    meta = {"system": "qlik_change_table", "key": ["id"], "before_images": False}
    tables = [
        {"name": f"{table}__ct", "config": {"meta": {"afterimage": meta}}} for table in TABLES
    ]
    raw = {"name": "raw", "schema": f"{dbt.schema}_raw", "tables": tables}
    staging = {
        f"staging/stg_{table}.sql": f"{{{{ stage_qlik_change_table('raw', '{table}__ct') }}}}\n"
        for table in TABLES
    }
    chains = [{**changes_model(one, f"stg_{one}"), **history_model(one)} for one in TABLES]
    models = {**staging, **chains[0], **chains[1], **MODELS}
    write_settings(dbt.path)
    write_files(dbt.path / "models", {**models, "sources.yml": {"version": 2, "sources": [raw]}})
    write_files(dbt.path, {"tests/amounts_are_positive.sql": TEST})
