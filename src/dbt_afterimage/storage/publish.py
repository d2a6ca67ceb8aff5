"""Publishes what a run changes of a mart: readers see all of a batch or nothing."""

from __future__ import annotations

from pyspark.sql import SparkSession

from dbt_afterimage.errors import conflicts_explained
from dbt_afterimage.storage.formats import format_named
from dbt_afterimage.storage.mart_batch import MartBatch

_seen: dict[str, str | None] = {}
"""By table, the last version that `current_version` has found."""


def seen_version(table: str) -> str | None:
    """The last result of `current_version`, for callers who know that nothing was written since."""
    return _seen.get(table)


def current_version(session: SparkSession, table: str, table_format: str) -> str | None:
    """A table's version, and from now on Spark reads the table no older than that.

    Returns:
        An Iceberg snapshot id or a Delta version number; None for an Iceberg table without rows.
    """
    session.sql(f"refresh table {table}")
    version = _seen[table] = format_named(table_format).version(session, table)
    return version


def publish(session: SparkSession, table: str, batch: MartBatch, table_format: str) -> None:
    """Write a batch, so that readers see it whole or not at all.

    Raises:
        ConcurrentRunError: another run has written to the table since. Nothing was written.
    """
    with conflicts_explained(table):
        format_named(table_format).publish(session, table, batch)
