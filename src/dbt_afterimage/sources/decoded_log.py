"""A staging model whose decoding needs Python: what a run adds to its table, and how it is written.

The model begins with `start_log`; the materialization `staging_log` calls `write_decoded_log` with
what it returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.change_log.reading.new_rows import added_rows
from dbt_afterimage.change_log.reading.raw_version import RawVersion
from dbt_afterimage.change_log.reading.read_times import record_read
from dbt_afterimage.change_log.writing.log_writer import LogRows, write_log
from dbt_afterimage.erased.erased_decoded import without_erased_data
from dbt_afterimage.erased.erasures import ErasuresTable, erasures_in_decoded_log
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.storage.checkpoint import unpersist
from dbt_afterimage.storage.concurrency import check_unchanged
from dbt_afterimage.storage.contradictions import check_log
from dbt_afterimage.storage.progress import (
    Progress,
    next_recorded_at,
    read_progress,
    recover_progress,
)
from dbt_afterimage.storage.schema_contract import Alterations
from dbt_afterimage.storage.schema_evolution import alter_table

logger = AdapterLogger("afterimage")


@dataclass(frozen=True)
class LogRun:
    """Where a run of a decoded log begins.

    Attributes:
        stored: the table as it is; None before its first run.
        progress: the recorded progress of earlier runs.
        done: what they did: more than their progress if one was killed before recording it.
        is_rebuild: `rebuild_changes` is set: the rows replace the table's, and are not appended.
        recorded_at: the identity of this run's batch, ISO text in UTC.
        seen: the version of the raw table that earlier runs have read; nothing where not known.
    """

    stored: DataFrame | None
    progress: Progress
    done: Progress
    is_rebuild: bool
    recorded_at: str
    seen: RawVersion
    version: RawVersion

    @property
    def is_progress_behind(self) -> bool:
        """A killed run did not record what it had written."""
        return self.done != self.progress

    def added(self, session: SparkSession, raw: DataFrame) -> DataFrame | None:
        """Rows of the raw table among which are all that were added since it was read.

        None if there are none, and if the table's format does not show it.
        """
        if self.stored is None or self.is_rebuild or not self.version.tables:
            return None
        ((name, now),) = self.version.tables.items()
        read = (self.seen.tables or {}).get(name)
        if now == read or now[0] == "absent":
            return None
        rows = added_rows(session, name, read, now)
        return raw if rows is None else rows


@dataclass(frozen=True)
class LogBatch:
    """One append to a decoded log, decided but not written yet.

    Attributes:
        rows: the rows, with all columns of the table; maybe none.
        is_empty: the raw table has no new records since the last run.
        change_seq: up to which position the raw table is read then, None before the first one, and
            where positions do not measure it.
        arrival: the same as a mark of arrival, where that is the measure.
        partition_by: columns that the table is partitioned by.
        is_read: nothing of what was added to the raw table is left to a later run, except behind
            what `change_seq` or `arrival` says.
        has_pending: records wait, for a schema for example, and are not in the log.
        kept: what to unpersist once the batch is written.
    """

    run: LogRun
    rows: DataFrame
    is_empty: bool
    change_seq: str | None = None
    arrival: str | None = None
    partition_by: Sequence[str] = ()
    is_read: bool = True
    has_pending: bool = False
    kept: DataFrame | None = None


def start_log(
    session: SparkSession,
    context: RunContext,
    position: Column | None = None,
    columns: Mapping[str, str] = MappingProxyType({}),
) -> LogRun:
    """Read what earlier runs have done, and add columns that the table lacks.

    Args:
        position: of a row of the log; None where positions do not show how far the log was read.
        columns: the columns of this version, with their types: a table of an earlier version gains
            those that are new.

    Raises:
        ContradictionError: the table is not the one that its progress describes.
    """
    stored, progress = None, Progress()
    if session.catalog.tableExists(context.log):
        if not context.rebuild_changes:
            check_log(session, context)
        present = session.table(context.log).columns
        added = {quoted(name): kind for name, kind in columns.items() if name not in present}
        alter_table(session, context.log, Alterations(added=added), context.file_format)
        stored = session.table(context.log)
        progress = read_progress(session, context.progress, context.model)
    done = recover_progress(stored, progress, position)
    is_rebuild = stored is not None and bool(context.rebuild_changes)
    versions = context.raw_tables or {}
    tables = {name: versions[name] for name in context.upstream[:1] if name in versions}
    seen = RawVersion.from_text(progress.raw_version)
    return LogRun(
        stored,
        progress,
        done,
        is_rebuild,
        next_recorded_at(done),
        seen,
        RawVersion(tables, read_at=context.started_at) if tables else seen,
    )


def write_decoded_log(session: SparkSession, context: RunContext, batch: LogBatch) -> None:
    """Append a batch to the decoded log, then the progress row; each is safe to repeat.

    Nothing is committed when nothing is new.

    Raises:
        ConcurrentRunError: another run has recorded a batch since `start_log`.
    """
    try:
        _write(session, context, batch)
    finally:
        if batch.kept is not None:
            unpersist(batch.kept)
    if not batch.has_pending:
        record_read(context)


def _write(session: SparkSession, context: RunContext, batch: LogBatch) -> None:
    run = batch.run
    if run.is_rebuild:
        check_unchanged(session, context.log, run.done.recorded_at)
    rows = None
    if run.is_rebuild or run.stored is None or not (batch.is_empty or batch.rows.isEmpty()):
        rows = batch.rows
        if context.erasures:
            table = ErasuresTable(context.erasures, context.file_format, context.progress)
            erasures = erasures_in_decoded_log(session, table, context.model)
            rows = without_erased_data(session, rows, erasures)
    is_new = run.is_rebuild or not batch.is_empty
    version = run.version if batch.is_read else run.seen
    if batch.has_pending:
        version = replace(version, read_at=None)
    is_version_behind = version.tables != run.seen.tables and run.done.recorded_at is not None
    progress = None
    if is_new or run.is_progress_behind or is_version_behind:
        progress = Progress(
            run.recorded_at if is_new else run.done.recorded_at,
            batch.change_seq,
            arrival=batch.arrival,
            raw_version=version.to_text() if version.tables else None,
        )
    write_log(
        session,
        context,
        LogRows(rows, batch.rows.limit(0), run.done.recorded_at, batch.partition_by),
        progress,
        is_rebuild=run.is_rebuild,
    )
    if not batch.is_empty:
        at = F.lit(run.recorded_at).cast("timestamp")
        count = session.table(context.log).filter(F.col("recorded_at") == at).count()
        if count:
            logger.info(f"{context.model}: {count:,} records decoded")
