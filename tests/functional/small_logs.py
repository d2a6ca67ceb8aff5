"""Change logs of a handful of lines, and their marts, which dbt builds batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.project_files import write_files, write_settings
from tests.log_lines import SCHEMA, brief, change
from tests.log_reader import read_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_BATCH_AT = datetime(2026, 4, 1)


@dataclass(frozen=True)
class SmallLog:
    """A table of people, and the lines of its log (log_lines.py).

    Attributes:
        batches: the lines of each run.
        settings: of its source table, beside `system` and `key`.
        columns: those that its log has of the data columns of `log_lines`.
        key: some of them.
        marts: those that are built of it.
    """

    batches: Sequence[str]
    settings: Mapping[str, Any] = field(default_factory=dict)
    columns: Sequence[str] = ("id", "name", "city")
    key: Sequence[str] = ("id",)
    marts: Sequence[str] = ("history",)

    @property
    def source(self) -> dict[str, Any]:
        """What its source table says of it."""
        return {"system": "qlik_change_table", "key": list(self.key), **self.settings}

    def models(self, name: str) -> dict[str, str]:
        """The log as a view, and its marts."""
        changes, history = f"ref('{name}_changes')", f"ref('{name}_history')"
        by_versions = self.settings.get("before_images") is False
        given = f"{changes}, history={history}" if by_versions else changes
        bodies = {
            "history": f"history({changes})",
            "current": f"current({history})",
            "field_changes": f"field_changes({given})",
        }
        return {
            f"{name}_changes.sql": "{{ config(materialized='view') }}"
            f"select * from {{{{ source('logs', '{name}') }}}}\n",
            **{f"{name}_{mart}.sql": f"{{{{ {bodies[mart]} }}}}\n" for mart in self.marts},
        }


@dataclass(frozen=True)
class SmallLogs:
    """Some such tables in one dbt project."""

    dbt: DbtProject
    spark: SparkSession
    table_format: str
    tables: Mapping[str, SmallLog]

    def write_project(self) -> None:
        """Its files, and empty logs."""
        sources = [
            {"name": name, "config": {"meta": {"afterimage": table.source}}}
            for name, table in self.tables.items()
        ]
        logs = {"name": "logs", "schema": f"{self.dbt.schema}_logs", "tables": sources}
        files: dict[str, Any] = {"sources.yml": {"version": 2, "sources": [logs]}}
        for name, table in self.tables.items():
            files |= table.models(name)
        write_settings(self.dbt.path)
        write_files(self.dbt.path / "models", files)
        self.spark.sql(f"create schema if not exists {self.dbt.schema}_logs")
        for name in self.tables:
            self._rows(name, 0).writeTo(self._log(name)).using(self.table_format).createOrReplace()

    def run(self, batch: int) -> None:
        """Append the batch of that number, from 1, where a table has one, and build the marts."""
        for name, table in self.tables.items():
            if batch <= len(table.batches):
                self._rows(name, batch).writeTo(self._log(name)).append()
        self.dbt("run")

    def rows(self, name: str) -> list[dict[str, Any]]:
        """All columns of a mart."""
        return read_rows(self.spark.table(f"{self.dbt.schema}.{name}"))

    def history(self, name: str) -> list[dict[str, Any]]:
        """A table's versions."""
        rows = self.rows(f"{name}_history")
        return sorted(rows, key=lambda row: (row["id"], row["valid_from_seq"]))

    def versions(self, name: str) -> list[str]:
        """The same as texts."""
        return [brief(row) for row in self.history(name)]

    def _log(self, name: str) -> str:
        return f"{self.dbt.schema}_logs.{name}"

    def _rows(self, name: str, batch: int) -> Any:
        table = self.tables[name]
        lines = table.batches[batch - 1].strip().splitlines() if batch else []
        recorded_at = FIRST_BATCH_AT + timedelta(hours=batch)
        rows = [(*change(line.strip()), recorded_at) for line in lines]
        frame = local_rows(self.spark, rows, f"{SCHEMA}, recorded_at timestamp").coalesce(1)
        left_out = [column for column in ("name", "city") if column not in table.columns]
        if not left_out:
            return frame
        kept = ", ".join(f"'{column}', before.{column}" for column in table.columns)
        before = f"if(before is null, null, named_struct({kept})) as before"
        return frame.drop(*left_out).selectExpr("* except (before)", before)
