"""Compaction: tables that receive many small batches stay fast to read.

`compact` calls the table format's own procedures with a bound on their work, so that a call ends
soon and the next one continues. A run compacts the tables that it has written to by itself, once
they have many small files: after its rows and its progress are committed, so that a run that is
killed meanwhile, or conflicts with another run, has lost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import SparkSession

from dbt_afterimage.errors import conflicts_explained, explained, is_conflict
from dbt_afterimage.storage.formats import format_named
from dbt_afterimage.storage.formats.base import MANY_SMALL_FILES

logger = AdapterLogger("afterimage")

MANY_FILES = 100
"""A table with more files than this is to be compacted: reports say so."""
MAX_FILES_AFTER_RUN = 100
"""`compact_after_run` rewrites up to this many data files of an Iceberg table."""


class CompactError(ValueError):
    """An argument of `compact` cannot be; the text is meant for the user."""


@dataclass(frozen=True)
class Limits:
    """How far a call goes.

    Attributes:
        max_files: rewrite up to this many data files of a table (Iceberg).
        keep_days: snapshots younger than this stay readable (Iceberg).

    Raises:
        CompactError: one of them is no whole number, or too small.
    """

    max_files: int
    keep_days: int

    def __post_init__(self) -> None:
        for name, least in (("max_files", 1), ("keep_days", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise CompactError(
                    f"`compact`: `{name}` is {value!r}. Allowed: a whole number from {least}. "
                    "Nothing was done. Fix: correct the argument."
                )


def compact(session: SparkSession, table: str, table_format: str, limits: Limits) -> str:
    """Rewrite small files and files with many deleted rows, and expire old snapshots of a table.

    Args:
        session: the live Spark session.
        table: an existing table.
        table_format: `iceberg` or `delta`.
        limits: how far to go.

    Returns:
        What was done, in words.

    Raises:
        ConcurrentRunError: a run wrote to the table meanwhile.
    """
    with conflicts_explained(table):
        return format_named(table_format).compact(
            session, table, limits.max_files, limits.keep_days
        )


def compact_after_run(session: SparkSession, table: str, table_format: str) -> None:
    """Merge the small files of a table that a run has just written to, if there are many.

    No snapshot is expired and no file removed: only `compact` does that. The run's rows are
    committed, so a failure is a warning, and a conflict with another run is left to that run.

    Args:
        session: the live Spark session.
        table: an existing table.
        table_format: `iceberg` or `delta`.
    """
    table_kind = format_named(table_format)
    try:
        if table_kind.small_file_count(session, table) < MANY_SMALL_FILES:
            return
        done = table_kind.merge_small_files(session, table, MAX_FILES_AFTER_RUN)
    except Exception as error:
        if not is_conflict(str(error)):
            logger.warning(
                f"{table}: its rows are written, but its small files could not be merged: "
                f"{explained(str(error))} Fix: run dbt run-operation compact, or, unless it is a "
                "change_activity, set `auto_compact: false` in the `meta.afterimage` of its source "
                "table."
            )
    else:
        logger.info(f"{table}: {done}")
