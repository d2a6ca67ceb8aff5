"""Writes a change batch: rejected records and their repairs, the log, then the progress row.

Each is one commit and is safe to repeat: a run that is killed between two of them finds on the next
run what it has already recorded.
"""

from __future__ import annotations

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import DataFrame, SparkSession

from dbt_afterimage.change_log.batch import BatchCounts, ChangeBatch
from dbt_afterimage.change_log.contract import REJECTED_DESCRIPTIONS
from dbt_afterimage.change_log.reading.read_times import record_read
from dbt_afterimage.change_log.writing.log_schema import conformed, log_properties
from dbt_afterimage.change_log.writing.log_writer import LogRows, append_rows, write_log
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.storage.checkpoint import unpersist
from dbt_afterimage.storage.compaction import compact_at_end
from dbt_afterimage.storage.concurrency import check_unchanged
from dbt_afterimage.storage.progress import Progress, reset_progress
from dbt_afterimage.storage.temp_view import temporary_view

logger = AdapterLogger("afterimage")

_FEW_DAYS = 3
"""The log is partitioned by day: the rows of so few need not be gathered by day to be written."""


def write_batch(session: SparkSession, context: RunContext, batch: ChangeBatch | None) -> None:
    """Append a batch to the log and to the rejected table; without a batch nothing is written.

    Raises:
        ConcurrentRunError: another run has recorded a batch since this one was decided.
    """
    if batch is not None:
        try:
            _write(session, context, batch)
        finally:
            unpersist(batch.kept)
    record_read(context)


def _write(session: SparkSession, context: RunContext, batch: ChangeBatch) -> None:
    log = context.log
    if batch.is_rebuild:
        check_unchanged(session, log, batch.recorded_after)
        # A run that is killed from here on leaves no progress, so the next one does not take the
        # raw tables for read, and marts see that the log was rebuilt.
        reset_progress(session, context.progress, context.model)
        check_unchanged(session, log, batch.recorded_after)
    rejects, rejects_after = None, None
    if batch.rejected is not None:
        rejects, rejects_after = batch.rejected.rows, batch.rejected.after
    append_rows(
        session,
        context.rejected,
        context.file_format,
        LogRows(rejects, batch.empty_rejected, rejects_after, descriptions=REJECTED_DESCRIPTIONS),
    )
    # before the log: once their records are in it, a repeated run would not see them as new
    if batch.repaired is not None:
        _resolve(session, context.rejected, batch.repaired, batch.recorded_at)
    wrote = write_log(
        session,
        context,
        _log_rows(session, context, batch),
        Progress(
            batch.recorded_at, batch.change_seq, batch.changed_at, batch.arrival, batch.raw_version
        ),
        is_rebuild=batch.is_rebuild,
        only_with_rows=not batch.is_progress_behind,
        profile=batch.profile,
    )
    if wrote and context.settings["auto_compact"]:
        compact_at_end(log, context.file_format)
    if wrote or batch.rejected is not None:
        logger.info(f"{context.model}: {batch.counts}")
    if wrote and batch.counts.lacks_before_images:
        logger.warning(_before_images_are_missing(context, batch.counts))


def _log_rows(session: SparkSession, context: RunContext, batch: ChangeBatch) -> LogRows:
    rows = batch.accepted
    if rows is not None and not batch.is_rebuild and session.catalog.tableExists(context.log):
        rows = conformed(rows, session.table(context.log).schema, context.settings)
    return LogRows(
        rows,
        batch.empty_log,
        batch.recorded_after,
        ["change_date"],
        log_properties(context),
        gather=batch.is_rebuild or batch.days > _FEW_DAYS,
        base_version=batch.base_version,
    )


def _before_images_are_missing(context: RunContext, counts: BatchCounts) -> str:
    """The message of the generic test `before_images_arrive`, for a batch."""
    settings = context.settings
    return (
        f"{context.model}: {counts.without_before_image:,} of {counts.updates:,} updates of "
        f"{settings['source_table']} were recorded without before images, so their field changes "
        f"are unknown. Fix: set `{settings['without_before_images']}` in the table's "
        "`meta.afterimage` if the source stores none, or switch on before images at the source."
    )


def _resolve(session: SparkSession, table: str, repaired: DataFrame, recorded_at: str) -> None:
    """Mark rejected records whose repaired ones are accepted as resolved; one commit."""
    with temporary_view(repaired) as view:
        session.sql(
            f"merge into {table} as target using {view} as source "
            "on target.record_hash = source.record_hash and target.resolved_at is null "
            f"when matched then update set target.resolved_at = timestamp '{recorded_at}'"
        )
