"""A dbt project over landed solidDB logs: two sources, each with its decoded log and its tables.

`raw_people` holds hand-written records of one table, `raw_streams` a random stream. The same stream
lies in a Qlik change table too, so that both systems' histories can be held against each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.project_files import changes_model, history_model, write_files, write_settings
from tests.soliddb_columns import SYS_COLUMNS, SYS_LOG, SYS_TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]

LOG_MODEL = """\
from dbt_afterimage.soliddb import build_log


def model(dbt, session):
    dbt.config(materialized="staging_log")
    return build_log(
        dbt,
        session,
        log=dbt.source("{source}", "sys_log"),
        tables=dbt.source("{source}", "sys_tables"),
        columns=dbt.source("{source}", "sys_columns"),
    )
"""


@dataclass(frozen=True)
class SolidDbProject:
    """The project and where its raw tables are."""

    dbt: DbtProject
    spark: SparkSession
    table_format: str

    def land(self, source: str, table: str, kind: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows to a raw table, which is made when it is not there yet."""
        name = f"{source}.{table}"
        self.spark.sql(f"create schema if not exists {source}")
        self.spark.sql(f"create table if not exists {name} ({kind}) using {self.table_format}")
        given = list(rows)
        if given:
            local_rows(self.spark, given, kind).coalesce(1).writeTo(name).append()

    def land_log(self, source: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Land records of SYS_LOG."""
        self.land(source, "sys_log", SYS_LOG, rows)

    def land_catalogue(
        self, source: str, tables: Iterable[Mapping[str, Any]], columns: Iterable[Mapping[str, Any]]
    ) -> None:
        """Land a snapshot of SYS_TABLES and SYS_COLUMNS."""
        self.land(source, "sys_tables", SYS_TABLES, tables)
        self.land(source, "sys_columns", SYS_COLUMNS, columns)

    def rows(self, table: str, columns: str, order: str = "1") -> list[tuple[Any, ...]]:
        """Rows of one of the project's tables."""
        query = f"select {columns} from {self.dbt.schema}.{table} order by {order}"
        return [tuple(row) for row in self.spark.sql(query).collect()]


def write_project(folder: Path) -> None:
    """Write the project's files."""
    qlik = {
        "name": "raw_qlik",
        "config": {"meta": {"afterimage": {"system": "qlik_change_table", "key": ["id"]}}},
        "tables": [{"name": "streams__ct"}],
    }
    sources = [
        _source("raw_people", "people", "length_prefixed"),
        _source("raw_streams", "streams", "engine"),
        qlik,
    ]
    files: dict[str, Any] = {
        "sources.yml": {"version": 2, "sources": sources},
        "staging/soliddb_ddl_events.sql": (
            "{{ soliddb_ddl_events('raw_people', log=ref('stg_soliddb__log_of_people')) }}\n"
        ),
        "staging/soliddb_log_activity.sql": "{{ soliddb_log_activity('raw_people') }}\n",
        "staging/stg_qlik__streams.sql": (
            "{{ stage_qlik_change_table('raw_qlik', 'streams__ct') }}\n"
        ),
        **_marts("qlik_streams", "stg_qlik__streams"),
    }
    for source, table in (("raw_people", "people"), ("raw_streams", "streams")):
        log, staging = f"stg_soliddb__log_of_{table}", f"stg_soliddb__{table}"
        files[f"{log}.py"] = LOG_MODEL.format(source=source)
        files[f"staging/{staging}.sql"] = (
            f"{{{{ stage_soliddb_table('{source}', '{table}', log=ref('{log}')) }}}}\n"
        )
        files |= _marts(table, staging)
    write_settings(folder)
    write_files(folder / "models", files)


def _source(name: str, table: str, framing: str) -> dict[str, Any]:
    own = {"key": ["id"]}
    return {
        "name": name,
        "config": {"meta": {"afterimage": {"system": "soliddb", "framing": framing}}},
        "tables": [
            {"name": "sys_log"},
            {"name": "sys_tables"},
            {"name": "sys_columns"},
            {"name": table, "config": {"meta": {"afterimage": own}}},
        ],
    }


def _marts(table: str, staging: str) -> dict[str, Any]:
    return {**changes_model(table, staging), **history_model(table)}
