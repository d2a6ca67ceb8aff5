"""The first stage of `build_changes`: what the log has read, and what the raw tables are now."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.change_log.contract import data_columns, optional_columns
from dbt_afterimage.change_log.deciding.full_load import read_up_to
from dbt_afterimage.change_log.reading.raw_version import RawVersion, raw_version
from dbt_afterimage.change_log.rebuild import check_rebuild
from dbt_afterimage.change_log.writing.log_schema import evolve_log_schema
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.sequence import ChangeSequence
from dbt_afterimage.settings import SourceSettings, positions
from dbt_afterimage.storage.contradictions import check_log
from dbt_afterimage.storage.progress import (
    Progress,
    read_progress,
    recover_progress,
    rows_after_progress,
)


@dataclass(frozen=True)
class Begun:
    """A run that has something to read.

    Attributes:
        session: the live Spark session.
        context: tables, settings and vars of the run.
        staged: the staging model.
        sequence: the change sequence of the source system.
        log: the change log; None in a first run and in a rebuild.
        is_rebuild: the rows replace those of an existing log.
        base_version: the log's version if it is the one that its last publication left, else None.
        hashed_after: of `evolve_log_schema`.
        published: the last publication.
        log_progress: what the log has read: more than `published` says if a run was killed.
        last_raw_version: the versions of the raw tables that were read then.
        raw_version: those that are there now.
    """

    session: SparkSession
    context: RunContext
    staged: DataFrame
    sequence: ChangeSequence
    log: DataFrame | None
    is_rebuild: bool
    base_version: str | None
    hashed_after: str | None
    published: Progress
    log_progress: Progress
    last_raw_version: RawVersion
    raw_version: RawVersion

    @property
    def settings(self) -> SourceSettings:
        """Those of the source table."""
        return self.context.settings

    @property
    def key(self) -> list[str]:
        """Its key columns."""
        return self.settings["key"]

    @cached_property
    def data(self) -> list[str]:
        """Data columns that staging yields."""
        return data_columns(self.staged.columns, self.settings["optional_columns"])

    @cached_property
    def optional(self) -> dict[str, str]:
        """Types of the optional columns that staging yields."""
        return optional_columns(self.staged.columns, self.settings["optional_columns"])


def begin(session: SparkSession, context: RunContext, staged: DataFrame) -> Begun | None:
    """Find out where a run continues; None where the raw tables are what they were.

    A preview is never None: it also names records that wait since an earlier run.

    Raises:
        ContradictionError, SchemaContractError, RebuildError: see `build_changes`.
    """
    has_log = session.catalog.tableExists(context.log)
    is_rebuild = has_log and context.rebuild_changes
    log_version = check_log(session, context) if has_log and not is_rebuild else None
    hashed_after = evolve_log_schema(session, context, staged)
    version = raw_version(session, context, staged)
    log = session.table(context.log) if has_log else None
    progress = read_progress(session, context.progress, context.model) if log else Progress()
    last_raw_version = RawVersion.from_text(progress.raw_version)
    if (
        has_log
        and not is_rebuild
        and not context.is_preview
        and last_raw_version.digest
        and last_raw_version.digest == version.digest
    ):
        return None
    sequence = positions(context.settings)
    is_as_published = log_version is not None and log_version == progress.table_version
    log_progress = progress
    if log is not None and not is_as_published:
        log_progress = _recovered(log, progress, sequence)
    if log is not None and is_rebuild:
        check_rebuild(context, sequence, staged, log)
        # as in a first run, except for the batch's time: it is later than what the marts know
        log, log_progress = None, Progress(recorded_at=log_progress.recorded_at)
    return Begun(
        session,
        context,
        staged,
        sequence,
        log,
        is_rebuild,
        log_version if is_as_published else None,
        hashed_after,
        progress,
        log_progress,
        last_raw_version,
        version,
    )


def _recovered(log: DataFrame, progress: Progress, sequence: ChangeSequence) -> Progress:
    is_change = F.col("change_oper") != "L"
    seq, at = (F.when(is_change, F.col(name)) for name in ("change_seq", "changed_at"))
    log_progress = recover_progress(log, progress, seq, at)
    if log_progress == progress:
        return log_progress
    loads = rows_after_progress(log, progress).filter(F.col("load_rows").isNotNull())
    loaded = [row["change_seq"] for row in loads.select("change_seq").collect()]
    return replace(log_progress, change_seq=read_up_to(sequence, log_progress.change_seq, loaded))
