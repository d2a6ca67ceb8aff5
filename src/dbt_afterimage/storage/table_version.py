"""What a table holds now, by the name that its format gives it."""

from __future__ import annotations

from pyspark.sql import SparkSession


def current_state(session: SparkSession, table: str, table_format: str) -> str | None:
    """A snapshot of Iceberg, a version of Delta; None for an Iceberg table without rows.

    Args:
        session: the live Spark session. What it cached of the table stays: no `refresh table`.
        table: an existing table.
        table_format: `iceberg` or `delta`.
    """
    if table_format == "iceberg":
        found = session.sql(f"select snapshot_id from {table}.refs where name = 'main'")
    else:
        found = session.sql(f"describe history {table} limit 1").select("version")
    row = found.first()
    return None if row is None else str(row[0])
