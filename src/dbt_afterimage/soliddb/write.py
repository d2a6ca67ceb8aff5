"""Writes what a run decoded, then the progress row; each is one commit and safe to repeat."""

from __future__ import annotations

from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import SparkSession

from dbt_afterimage.append import append_once
from dbt_afterimage.changes.progress import Progress, write_progress
from dbt_afterimage.soliddb.batch import LogBatch
from dbt_afterimage.spark_adapter.errors import conflicts_explained
from dbt_afterimage.table_writer import table_writer

logger = AdapterLogger("afterimage")


def write_log(session: SparkSession, context: dict[str, Any], batch: LogBatch) -> None:
    """Append a batch to the decoded log; nothing is committed when nothing is new.

    Args:
        session: the live Spark session.
        context: names of the tables, table format and model, as the materialization gives them.
        batch: what to write.
    """
    log, table_format = context["log"], context["file_format"]
    rows = batch.rows.persist()
    count = 0 if batch.is_empty else rows.count()
    if not session.catalog.tableExists(log) or batch.is_rebuild:
        writer = table_writer(rows, log, table_format, ["is_ddl"])
        with conflicts_explained(log):
            if batch.is_rebuild:
                writer.createOrReplace()
            else:
                writer.create()
    elif count:
        append_once(session, log, rows, table_format, batch.recorded_after)
    if not batch.is_empty or batch.is_progress_behind:
        progress = Progress(batch.recorded_at, batch.last_commit)
        write_progress(session, context["progress"], context["model"], progress)
    if count:
        logger.info(f"{context['model']}: {count:,} records decoded")
    rows.unpersist()
    batch.cached.unpersist()
