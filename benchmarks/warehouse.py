"""Creates tables and restores their earlier states, so that all repeats start from one state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt_afterimage.storage.formats import format_named

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Warehouse:
    """The Spark session and the table format, `iceberg` or `delta`."""

    session: SparkSession
    table_format: str

    def state(self, table: str) -> str:
        """The table's current snapshot id (Iceberg) or version (Delta), for `restore`."""
        return str(format_named(self.table_format).version(self.session, table))

    def restore(self, table: str, state: str) -> None:
        """Restore the table to an earlier state."""
        if self.state(table) == state:
            return
        if self.table_format == "iceberg":
            self.session.sql(f"call lake.system.set_current_snapshot('{table}', {state})")
        else:
            self.session.sql(f"restore table {table} to version as of {state}")

    def create(self, table: str, query: str, like: str = "", partition: str = "") -> None:
        """Create or replace a table from a query, with the file properties of the table `like`."""
        properties = self._file_properties(like) if like else {}
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        self.session.sql(
            f"create or replace table {table} using {self.table_format}"
            + (f" partitioned by ({partition})" if partition else "")
            + (f" tblproperties ({listed})" if listed else "")
            + f" as {query}"
        )

    def _file_properties(self, table: str) -> dict[str, str]:
        """The table properties that decide how rows are written, for example merge-on-read."""
        rows = self.session.sql(f"show tblproperties {table}").collect()
        prefixes = ("write.", "format-version", "delta.enable", "delta.tuneFileSizes")
        return {row[0]: row[1] for row in rows if row[0].startswith(prefixes)}
