"""Keeps the progress table small: each publication adds a row and a file, each run reads them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.errors import explained, is_conflict
from dbt_afterimage.spark.literals import text
from dbt_afterimage.storage.compaction import MANY_FILES
from dbt_afterimage.storage.formats import format_named
from dbt_afterimage.storage.progress import delete_progress
from dbt_afterimage.storage.progress_cache import KEPT_DAYS, LAST, progress_rows

logger = AdapterLogger("afterimage")

_MANY_ROWS = 1000
"""Fewer old rows stay: a delete rewrites files."""

_AT = "try_cast(get_json_object({}, '$.at') as timestamp)"
_WRITTEN_AT = f"greatest(recorded_at, {_AT.format('batch')}, {_AT.format('raw_version')})"
"""A row without a batch, such as one of `change_activity`, has no `recorded_at`; a row that records
newer versions of the raw tables has that of an older batch."""


def maintain_progress(session: SparkSession, table: str, table_format: str) -> str | None:
    """Delete old rows and merge the files of a progress table that has over `MANY_FILES` files.

    Returns:
        What was done, in words; None for nothing, also where another run wrote to it meanwhile. A
        failure is a warning: no run depends on it.
    """
    table_kind = format_named(table_format)
    try:
        if table_kind.file_count(session, table) <= MANY_FILES:
            return None
        trim_progress(session, table, datetime.now(timezone.utc))
        return table_kind.compact_small(session, table)
    except Exception as error:
        # the next run will do
        if not is_conflict(str(error)):
            logger.warning(
                f"{table}: it could not be made smaller: {explained(str(error))} Fix: make sure "
                "that this user may rewrite the table and expire its snapshots."
            )
        return None


def trim_progress(session: SparkSession, table: str, now: datetime) -> None:
    """Delete rows that are older than `KEPT_DAYS`, once they are many.

    The rows of a model that has published nothing since then stay, its last one among them. Readers
    of a table take that into account (`ProgressSince`).
    """
    oldest = now.astimezone(timezone.utc) - timedelta(days=KEPT_DAYS)
    is_old = f"{_WRITTEN_AT} < timestamp '{oldest:%Y-%m-%d %H:%M:%S}'"
    is_last_old = F.max_by(F.expr(is_old), F.struct(*LAST))
    models = (
        progress_rows(session, table)
        .groupBy("model")
        .agg(
            F.count("*").alias("rows"),
            F.expr(f"count_if({is_old})").alias("old_rows"),
            is_last_old.alias("is_last_old"),
        )
        .collect()
    )
    active = [row for row in models if row["old_rows"] and row["is_last_old"] is False]
    many = max(_MANY_ROWS, sum(row["rows"] for row in models) / 10)
    if sum(row["old_rows"] for row in active) >= many:
        names = ", ".join(text(row["model"]) for row in active)
        delete_progress(session, table, f"model in ({names}) and {is_old}")
