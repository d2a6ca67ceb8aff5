"""The body of every `<table>_changes` model: decides what becomes of each new record of staging.

Five stages, each made of the one before: `begin` (what the log has read), records, decided rows,
their summary, and the batch for the materialization to write.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.change_log.batch import BatchCounts, ChangeBatch
from dbt_afterimage.change_log.begin import Begun, begin
from dbt_afterimage.change_log.contract import LOG_COLUMNS, REJECTED_COLUMNS
from dbt_afterimage.change_log.deciding.full_load import (
    Loads,
    decide_loads,
    find_loads,
    is_fresh,
    is_row_of,
    markers,
    read_up_to,
    rows_of,
    rows_too_late,
)
from dbt_afterimage.change_log.deciding.gaps import check_gap
from dbt_afterimage.change_log.deciding.pairing import (
    ACCEPTED,
    PENDING,
    REJECTED,
    is_pending_too_long,
    pair,
)
from dbt_afterimage.change_log.deciding.quarantine import (
    RejectedRecordsError,
    Rejects,
    describe_rejects,
    new_rejects,
    reject_reasons,
    repaired,
)
from dbt_afterimage.change_log.deciding.summary import (
    Late,
    Summary,
    columns_in_no_record,
    summary_aggregates,
)
from dbt_afterimage.change_log.reading.new_rows import NewRows, new_rows
from dbt_afterimage.change_log.reading.processed_records import count_processed
from dbt_afterimage.change_log.reading.raw_version import RawVersion, is_same_staging
from dbt_afterimage.change_log.reading.read import (
    Reading,
    pending_halves,
    read,
    staged_halves,
)
from dbt_afterimage.change_log.writing.log_schema import (
    data_columns_of_log,
    united,
)
from dbt_afterimage.erased.erased_records import ErasedKeys
from dbt_afterimage.internal_columns import UNDECIDED
from dbt_afterimage.log_rows.profile import BatchProfile, profiled
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.spark.literals import text, timestamp_as_text
from dbt_afterimage.storage.checkpoint import checkpoint_observed
from dbt_afterimage.storage.local_relation import local_rows
from dbt_afterimage.storage.progress import greatest, least, next_recorded_at

logger = AdapterLogger("afterimage")

_OLDEST_EXPECTED = "1980"
"""A first batch without any later time gets a warning."""


def build_changes(dbt: Any, session: SparkSession, staged: DataFrame) -> ChangeBatch | None:
    """The batch that this run adds to the change log of one table.

    Returns:
        A batch for the materialization `change_log` to write, None where the raw tables are what
        they were. No row is written here.

    Raises:
        RejectedRecordsError: records are rejected and `on_reject` is `fail`.
        GapError: the raw table was purged before it was read, and `on_gap` is `fail`.
        RebuildError: `rebuild_changes` is set, and the raw tables lack what the log holds.
        LoadPositionError: `base.position` is in the future.
        ContradictionError: the log is not the one that its progress describes.
        SchemaContractError: the log cannot take what staging yields.
    """
    begun = begin(session, RunContext(**dbt.config.get("afterimage")), staged)
    if begun is None:
        return None
    return _batch(_summarize(_decide(_read(begun))))


@dataclass(frozen=True)
class Preview:
    """A change log after a run, as `preview_changes` finds it.

    Attributes:
        log: the stored rows, and those that the run would append.
        undecided: keys of records that it would leave out, with UNDECIDED.
        kept: rows to free afterwards.
    """

    log: DataFrame
    undecided: DataFrame
    kept: DataFrame


def preview_changes(session: SparkSession, context: RunContext, staged: DataFrame) -> Preview:
    """The log as it would be after a run now; nothing is written.

    Args:
        context: with `is_preview`; of a table that has a log.

    Raises:
        The same errors as `build_changes`.
    """
    begun = begin(session, context, staged)
    assert begun is not None
    assert begun.log is not None
    summarized = _summarize(_decide(_read(begun)))
    log = begun.log
    if summarized.has_rows:
        log = united(log, summarized.log_rows(), begun.settings)
    return Preview(log, _undecided(summarized), summarized.decided.rows)


def _undecided(summarized: _Summarized) -> DataFrame:
    records, begun = summarized.decided.records, summarized.decided.records.begun
    names = [*map(quoted, begun.key), UNDECIDED]
    keys = summarized.pending.withColumn(UNDECIDED, F.lit("pending")).select(*names)
    if begun.settings["has_halves"]:
        halves = staged_halves(begun.sequence, begun.staged, records.reading, summarized.change_seq)
        keys = keys.union(halves.withColumn(UNDECIDED, F.lit("pending")).select(*names))
    if summarized.rejects is not None:
        new = summarized.rejects.rows.select("record_hash").distinct()
        rejected = summarized.rejected.join(new, "record_hash", "left_semi")
        keys = keys.union(rejected.withColumn(UNDECIDED, F.lit("rejected")).select(*names))
    return keys


@dataclass(frozen=True)
class _Records:
    """Records that no run has processed, without those of erased rows.

    Attributes:
        changes: raw records of changes.
        loads: the full loads that were found.
        of_loads: records of those that are new.
        of_late_loads: records that came after their load was recorded.
    """

    begun: Begun
    reading: Reading
    changes: DataFrame
    loads: Loads
    of_loads: DataFrame | None
    of_late_loads: DataFrame | None

    def all(self) -> DataFrame:
        """All of them, as staged."""
        rows = self.changes
        for more in (self.of_loads, self.of_late_loads):
            rows = rows if more is None else rows.unionByName(more)
        return rows


def _read(begun: Begun) -> _Records:
    log, log_progress, staged = begun.log, begun.log_progress, begun.staged
    erased = ErasedKeys.of_run(begun.session, begun.context)

    def find_new(floor: str) -> NewRows | None:
        if begun.raw_version.tables is None or log is None:
            return None
        return new_rows(
            begun.session, begun.last_raw_version.tables, begun.raw_version.tables, log, floor
        )

    reading = read(
        begun.context,
        begun.sequence,
        staged,
        log,
        log_progress,
        begun.last_raw_version.next_arrival,
        _next_seq(begun),
        find_new,
    )
    loads = find_loads(
        begun.settings,
        staged,
        log,
        begun.sequence,
        log_progress,
        reads_all=reading.floor is None,
        pending_from=begun.last_raw_version.next_arrival,
    )
    of_loads, of_late_loads = None, None
    if loads.new:
        of_loads = erased.removed_from_loads(rows_of(loads.new, staged))
    if log is not None and loads.again:
        landed = rows_of(loads.again, staged.filter(is_fresh(log_progress)))
        of_late_loads = erased.removed_from_loads(landed)
    changes = erased.removed_from_changes(reading.changes, begun.sequence)
    return _Records(begun, reading, changes, loads, of_loads, of_late_loads)


def _next_seq(begun: Begun) -> str | None:
    """From where to read besides added rows; None if the raw tables do not show these."""
    read, now = begun.last_raw_version, begun.raw_version.tables
    if read.tables is None or now is None or not is_same_staging(read.tables, now):
        return None
    return read.next_seq


@dataclass(frozen=True)
class _Decided:
    """The outcome of each record.

    Attributes:
        rows: the records with their `outcome`, see `pairing.py`; checkpointed.
        summary: what they are.
        recorded_at: the batch.
    """

    records: _Records
    rows: DataFrame
    summary: Summary
    recorded_at: str

    def log_rows(self, rows: DataFrame) -> DataFrame:
        """Rows of the log, of accepted records."""
        begun = self.records.begun
        beginning = F.lit(begun.context.beginning_of_time).cast("timestamp")
        rows = rows.withColumns(
            {
                "recorded_at": F.expr(timestamp_as_text(self.recorded_at, "change_oper")),
                "change_date": F.to_date(F.coalesce("changed_at", beginning)),
            }
        )
        kinds = LOG_COLUMNS | begun.optional
        return rows.selectExpr(
            *(f"cast({quoted(name)} as {kind}) as {quoted(name)}" for name, kind in kinds.items()),
            *map(quoted, begun.data),
            "before",
        )


def _decide(records: _Records) -> _Decided:
    begun = records.begun
    rows = pair(
        records.changes,
        records.reading.recorded,
        begun.key,
        before_images=begun.settings["pairs_before_images"],
        optional=begun.optional,
        hashed_after=begun.hashed_after,
        keeps_unread=False,
    )
    if records.of_loads is not None:
        loaded = decide_loads(records.of_loads, begun.key)
        rows = rows.unionByName(loaded, allowMissingColumns=True)
    if begun.log is not None and records.of_late_loads is not None:
        late = rows_too_late(
            records.loads.again, records.of_late_loads, begun.log, begun.key, begun.hashed_after
        )
        rows = rows.unionByName(late, allowMissingColumns=True)
    if "load_rows" not in rows.columns:
        rows = rows.withColumn("load_rows", F.lit(None).cast("bigint"))
    recorded_at = next_recorded_at(begun.log_progress)
    aggregates = summary_aggregates(begun.sequence)
    columns, given = _profiled_columns(records, rows)
    if columns:
        time = timestamp_as_text(recorded_at, "change_oper")
        beginning = f"timestamp '{begun.context.beginning_of_time}'"
        aggregates["profile"] = F.expr(
            profiled(
                begun.key,
                columns,
                given,
                beginning,
                recorded_at=time,
                where=f"outcome = {text(ACCEPTED)}",
            )
        )
    kept, found = checkpoint_observed(rows, aggregates)
    profile = BatchProfile.of(found["profile"].asDict(), columns, given) if columns else None
    return _Decided(records, kept, Summary.of(found, profile), recorded_at)


def _profiled_columns(records: _Records, rows: DataFrame) -> tuple[list[str], list[str]]:
    """The data columns of the log, and those that the rows have; none where a profile is of no use.

    History plans from the profile. Where it finds a new log or a load, it reads the log in any
    case, and so it does where a column has changed its letters.
    """
    begun = records.begun
    if not begun.key or begun.log is None or records.loads.new:
        return [], []
    columns = data_columns_of_log(begun.log.columns, begun.settings)
    given = [name for name in columns if name in rows.columns]
    renamed = {name.lower() for name in columns if name not in given}
    if renamed.intersection(name.lower() for name in rows.columns):
        return [], []
    return columns, given


@dataclass(frozen=True)
class _Summarized:
    """The batch as a whole.

    Attributes:
        accepted: records for the log.
        rejected: records that are rejected.
        pending: pending records that the look-back has not passed.
        rejects: those of the rejected records that are new.
        change_seq: the greatest position that the log has read then.
        arrival: the greatest mark of arrival, likewise.
    """

    decided: _Decided
    late: Late
    counts: BatchCounts
    accepted: DataFrame
    rejected: DataFrame
    pending: DataFrame
    rejects: Rejects | None
    change_seq: str | None
    arrival: str | None

    @property
    def has_rows(self) -> bool:
        """Whether the log gets rows."""
        return bool(self.counts.accepted) or bool(self.decided.records.loads.new)

    def log_rows(self) -> DataFrame:
        """The rows that the log gets, with the markers of new loads."""
        logged, loads = self.accepted, self.decided.records.loads.new
        if loads:
            is_loaded = is_row_of(loads) & (F.col("outcome") == ACCEPTED)
            marked = markers(self.decided.rows.filter(is_loaded), loads)
            logged = logged.unionByName(marked, allowMissingColumns=True)
        return self.decided.log_rows(logged)


def _summarize(decided: _Decided) -> _Summarized:
    records, begun = decided.records, decided.records.begun
    log_progress, loads = begun.log_progress, records.loads.new
    summary = decided.summary
    if begun.log is None:
        _warn_of_old_times(begun.context, summary)
        _warn_of_columns_in_no_record(begun.context, decided.rows, begun.data)
    elif not loads:
        check_gap(
            begun.context,
            begun.sequence,
            begun.staged,
            begun.log,
            log_progress,
            records.reading.arrival_window,
            summary.first_seq,
        )
    newest = greatest(summary.seen_seq, log_progress.change_seq) or begun.sequence.first
    horizon = begun.sequence.before_look_back(begun.sequence.up_to_now(newest))
    accepted, rejected = _split(decided.rows, horizon)
    late = summary.late(decided.rows, horizon)
    counts = summary.counts(late, before_images=begun.settings["before_images"])
    rejects = None
    if counts.rejected:
        rejects = new_rejects(
            begun.session,
            begun.context,
            rejected,
            records.all(),
            decided.recorded_at,
            begun.hashed_after,
        )
    if rejects is not None and begun.settings["on_reject"] == "fail":
        raise RejectedRecordsError(describe_rejects(begun.context, rejects.rows))
    # records that are read again are not new
    counts = replace(counts, rejected=rejects.count if rejects is not None else 0)
    if begun.log is None and rejects is not None and counts.rejected > counts.accepted:
        _warn_of_rejects(begun.context, counts, rejects)
    return _Summarized(
        decided,
        late,
        counts,
        accepted,
        rejected,
        decided.rows.filter((F.col("outcome") == PENDING) & ~is_pending_too_long(horizon)),
        rejects,
        read_up_to(
            begun.sequence,
            greatest(summary.accepted_seq, late.seq, log_progress.change_seq),
            [load.position for load in loads],
        ),
        greatest(summary.arrival, log_progress.arrival),
    )


def _batch(summarized: _Summarized) -> ChangeBatch:
    decided, late = summarized.decided, summarized.late
    summary = decided.summary
    begun = decided.records.begun
    log_progress, session = begun.log_progress, begun.session
    rows = summarized.log_rows()
    version = _version_read(summarized)
    is_version_recorded = version.digest is None and (version.tables, version.processed) == (
        begun.last_raw_version.tables,
        begun.last_raw_version.processed,
    )
    kinds = ", ".join(
        f"{name} {kind}" for name, kind in (REJECTED_COLUMNS | begun.optional).items()
    )
    is_new_batch = summarized.has_rows or begun.is_rebuild
    return ChangeBatch(
        accepted=rows if summarized.has_rows else None,
        rejected=summarized.rejects,
        repaired=repaired(session, begun.context, summarized.accepted)
        if summarized.counts.accepted
        else None,
        empty_log=rows.limit(0),
        empty_rejected=local_rows(session, [], kinds),
        change_seq=summarized.change_seq,
        changed_at=greatest(summary.accepted_at, late.changed_at, log_progress.changed_at),
        arrival=summarized.arrival,
        recorded_at=decided.recorded_at
        if is_new_batch
        else log_progress.recorded_at or decided.recorded_at,
        recorded_after=log_progress.recorded_at,
        base_version=begun.base_version,
        is_rebuild=begun.is_rebuild,
        is_progress_behind=log_progress != begun.published
        or summarized.arrival != log_progress.arrival
        or not is_version_recorded,
        raw_version=version.to_text(),
        days=summary.days,
        counts=summarized.counts,
        profile=summary.profile.to_json() if summary.profile and not late.updates else None,
        kept=decided.rows,
    )


def _version_read(summarized: _Summarized) -> RawVersion:
    """The versions of the raw tables that the log has read then, and what later runs read again."""
    summary, records = summarized.decided.summary, summarized.decided.records
    begun, reading = records.begun, records.reading
    version, change_seq = begun.raw_version, summarized.change_seq
    if not reading.finds_all_late and (version.tables is None or reading.floor is not None):
        before = begun.last_raw_version.processed
        processed = count_processed(
            begun.context,
            begun.sequence,
            begun.staged,
            reading,
            before,
            change_seq,
            summarized.arrival,
        )
        # if the run records nothing else, an older count serves, and no progress is written
        is_same = not summarized.has_rows and summarized.arrival == begun.log_progress.arrival
        version = replace(
            version, processed=before if before is not None and is_same else processed
        )
    first_pending, has_unpartitioned = None, bool(summary.open_unmarked)
    if begun.settings["has_halves"] and version.tables is not None and not has_unpartitioned:
        first_pending, has_unpartitioned = pending_halves(
            begun.sequence, begun.staged, reading, change_seq
        )
    if not has_unpartitioned:
        pending_from = records.loads.pending_from
        first_open = least(summary.open_arrival, first_pending, pending_from, summarized.arrival)
        version = replace(version, next_arrival=first_open)
    if not begun.settings["has_halves"] and version.tables is not None:
        version = replace(version, next_seq=least(summary.open_seq, change_seq))
    # each run is to warn of a pending load, also where nothing has landed
    return replace(version, digest=None) if records.loads.is_pending else version


def _warn_of_rejects(context: RunContext, counts: BatchCounts, rejects: Rejects) -> None:
    logger.warning(
        f"{context.model}: of the first {counts.accepted + counts.rejected:,} records "
        f"{counts.rejected:,} are rejected: {reject_reasons(rejects.rows)}. So many are a "
        "wrong setting rather than wrong records. Fix: correct the settings of "
        f"{context.settings['source_table']} (for `uncastable_*` the `data_type` of the column, "
        "for masks the settings `mask_*`), and run again: `dbt build --select "
        f"{context.upstream[0] if context.upstream else context.selected_as}+`."
    )


def _warn_of_old_times(context: RunContext, summary: Summary) -> None:
    if summary.newest is not None and summary.newest < _OLDEST_EXPECTED:
        logger.warning(
            f"{context.model}: all times of the first batch lie before {_OLDEST_EXPECTED}; the "
            f"newest is {summary.newest}. A number that was taken for a time, or one in another "
            "unit, looks like that. Fix: if these times are wrong, correct the settings of "
            f"{context.settings['source_table']}, such as `changed_at` and `changed_at_unit` of a "
            "change feed, and run once with --vars '{rebuild_changes: true}'."
        )


def _warn_of_columns_in_no_record(context: RunContext, decided: DataFrame, data: list[str]) -> None:
    """Where records name their columns: a declared name that none of the first batch has."""
    settings = context.settings
    if not settings.get("json_text") and settings["system"] != "qlik_messages":
        return
    declared = {column["name"].lower() for column in settings["declared_columns"]}
    names = [name for name in data if name.lower() in declared]
    missing = columns_in_no_record(
        decided, names, counts_nulls=settings.get("absent", "unknown") == "unknown"
    )
    if missing:
        logger.warning(
            f"{context.model}: no record of the first batch has the declared columns "
            f"{', '.join(missing)} of {settings['source_table']}. Fix: if the records have them "
            "under other names, correct `columns`, and run once with --vars "
            "'{rebuild_changes: true}'."
        )


def _split(decided: DataFrame, horizon: str) -> tuple[DataFrame, DataFrame]:
    late = is_pending_too_long(horizon)
    accepted = decided.filter(
        (F.col("outcome") == ACCEPTED) | (late & (F.col("change_oper") == "U"))
    )
    orphan = late & (F.col("change_oper") == "B")
    rejected = decided.filter((F.col("outcome") == REJECTED) | orphan).withColumn(
        "reject_reason",
        F.when(orphan, F.lit("orphan_before_image")).otherwise(F.col("reject_reason")),
    )
    return accepted, rejected
