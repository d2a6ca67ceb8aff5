"""A staging model whose decoding needs Python: what a run adds to its table, and how it is written.

The materialization `staging_log` calls `write_log` with what the model returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import DataFrame, SparkSession

from dbt_afterimage.append import append_once
from dbt_afterimage.changes.progress import Progress, write_progress
from dbt_afterimage.spark_adapter.errors import conflicts_explained
from dbt_afterimage.table_writer import table_writer

logger = AdapterLogger("afterimage")


@dataclass(frozen=True)
class LogBatch:
    """One append to a decoded log, decided but not written yet.

    Attributes:
        rows: the rows, with all columns of the table; maybe none.
        partition_by: columns that the table is partitioned by.
        is_empty: there is nothing to read since the last run.
        change_seq: up to which position the raw table is read then, None before the first one, and
            where positions are no measure of it.
        arrival: the same as a mark of arrival, where that is the measure.
        recorded_at: the batch's identity, ISO text in UTC.
        recorded_after: the identity of the table's last batch, or None.
        is_rebuild: the rows replace the table's instead of being appended.
        is_progress_behind: a killed run did not note what it had written.
        cached: what to release once the batch is written.
    """

    rows: DataFrame
    partition_by: Sequence[str]
    is_empty: bool
    change_seq: str | None
    arrival: str | None
    recorded_at: str
    recorded_after: str | None
    is_rebuild: bool
    is_progress_behind: bool
    cached: Sequence[DataFrame]


def write_log(session: SparkSession, context: dict[str, Any], batch: LogBatch) -> None:
    """Append a batch to the decoded log, then the progress row; each is safe to repeat.

    Nothing is committed when nothing is new.

    Args:
        session: the live Spark session.
        context: names of the tables, table format and model, as the materialization gives them.
        batch: what to write.
    """
    log, table_format = context["log"], context["file_format"]
    rows = batch.rows.persist()
    count = 0 if batch.is_empty else rows.count()
    if not session.catalog.tableExists(log) or batch.is_rebuild:
        writer = table_writer(rows, log, table_format, batch.partition_by)
        with conflicts_explained(log):
            if batch.is_rebuild:
                writer.createOrReplace()
            else:
                writer.create()
    elif count:
        append_once(session, log, rows, table_format, batch.recorded_after)
    if not batch.is_empty or batch.is_progress_behind:
        progress = Progress(batch.recorded_at, batch.change_seq, arrival=batch.arrival)
        write_progress(session, context["progress"], context["model"], progress)
    if count:
        logger.info(f"{context['model']}: {count:,} records decoded")
    rows.unpersist()
    for frame in batch.cached:
        frame.unpersist()
