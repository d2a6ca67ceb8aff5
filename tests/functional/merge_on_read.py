"""Empty tables whose deletes are kept apart from their data files, as those of the marts are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROPERTIES = {
    "iceberg": "'format-version' = '2', 'write.delete.mode' = 'merge-on-read', "
    "'write.merge.mode' = 'merge-on-read'",
    "delta": "'delta.enableDeletionVectors' = 'true'",
}


def make_table(
    spark: SparkSession, table: str, columns: str, table_format: str, partition: str = ""
) -> None:
    """Drop and create a table `schema.name`, with columns as in SQL."""
    spark.sql(f"create schema if not exists {table.split('.', maxsplit=1)[0]}")
    spark.sql(f"drop table if exists {table}")
    spark.sql(
        f"create table {table} ({columns}) using {table_format} "
        + (f"partitioned by ({partition}) " if partition else "")
        + f"tblproperties ({PROPERTIES[table_format]})"
    )
