"""Lands a generated batch in Spark tables, the way a replication task leaves its raw tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from afterimage_demo.generate import DemoBatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TableFormat = Literal["iceberg", "delta"]


class LandingError(ValueError):
    """The demo's data cannot be landed as requested; the text is meant for the user."""


def land(
    spark: SparkSession, batch: DemoBatch, schema: str, table_format: TableFormat = "iceberg"
) -> None:
    """Write a batch into the raw tables of a schema, in one commit per table.

    The first batch creates the schema, if need be, and creates or replaces the tables: landing it
    again restarts the demo. Later batches add their rows, except that the base tables kept up
    to date by the replication task are replaced as a whole.

    Args:
        spark: a session with time zone UTC whose current catalog has the table format.
        batch: an element of `DemoData.batches`; they must be landed in their order.
        schema: name of the schema, with or without its catalog.
        table_format: `iceberg` or `delta`.

    Raises:
        LandingError: another table format, or a session with another time zone.
    """
    from pyspark.sql import functions as F

    if table_format not in ("iceberg", "delta"):
        raise LandingError(f"`table_format` is {table_format!r}; allowed: iceberg, delta.")
    zone = spark.conf.get("spark.sql.session.timeZone")
    if zone != "UTC":
        # Spark would read the text timestamps of order_items, and show all others, in that zone.
        raise LandingError(
            f"The Spark session's time zone is {zone}; the demo's times are UTC. "
            "Fix: set spark.sql.session.timeZone to UTC in the profile."
        )
    spark.sql(f"create schema if not exists {schema}")
    for name, rows in batch.tables.items():
        # One task, hence one file per table: at this size more would only be slower to read.
        writer = spark.createDataFrame(rows).coalesce(1).writeTo(f"{schema}.{name}")
        if batch.number == 1:
            writer.using(table_format).createOrReplace()
        elif name in batch.replaced:
            writer.overwrite(F.lit(True))
        else:
            writer.append()
