"""The body of every `<table>_changes` model: reads new records of staging and decides each one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.change_log.batch import ChangeBatch
from dbt_afterimage.change_log.contract import (
    LOG_COLUMNS,
    REJECTED_COLUMNS,
    data_columns,
    optional_columns,
)
from dbt_afterimage.change_log.erased_records import ErasedKeys
from dbt_afterimage.change_log.full_load import (
    decide_loads,
    find_loads,
    is_fresh,
    is_row_of,
    markers,
    read_up_to,
    rows_of,
    rows_too_late,
)
from dbt_afterimage.change_log.gaps import check_gap
from dbt_afterimage.change_log.log_schema import (
    conformed,
    data_columns_of_log,
    evolve_log_schema,
)
from dbt_afterimage.change_log.new_rows import NewRows, new_rows
from dbt_afterimage.change_log.pairing import (
    ACCEPTED,
    REJECTED,
    is_pending_too_long,
    pair,
)
from dbt_afterimage.change_log.processed_records import count_processed
from dbt_afterimage.change_log.quarantine import (
    RejectedRecordsError,
    describe_rejects,
    new_rejects,
    reject_reasons,
    repaired,
)
from dbt_afterimage.change_log.raw_version import RawVersion, raw_version
from dbt_afterimage.change_log.read import pending_halves, read
from dbt_afterimage.change_log.rebuild import check_rebuild
from dbt_afterimage.change_log.summary import columns_in_no_record, summarize
from dbt_afterimage.log_rows.profile import profiled
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.settings import positions
from dbt_afterimage.spark.identifiers import quoted
from dbt_afterimage.spark.literals import timestamp_as_text
from dbt_afterimage.storage.checkpoint import checkpoint
from dbt_afterimage.storage.contradictions import check_log
from dbt_afterimage.storage.local_relation import local_rows
from dbt_afterimage.storage.progress import (
    Progress,
    greatest,
    least,
    next_recorded_at,
    read_progress,
    recover_progress,
    rows_after_progress,
)

logger = AdapterLogger("afterimage")

_OLDEST_EXPECTED = "1980"
"""A first batch without any later time gets a warning."""


def build_changes(dbt: Any, session: SparkSession, staged: DataFrame) -> ChangeBatch | None:
    """What this run adds to the change log of one table.

    Args:
        dbt: the object that dbt gives a Python model.
        session: the live Spark session.
        staged: the staging model, ``dbt.ref("stg_...")``.

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
    context = RunContext(**dbt.config.get("afterimage"))
    settings = context.settings
    key = settings["key"]
    sequence = positions(settings)
    has_log = session.catalog.tableExists(context.log)
    is_rebuild = has_log and context.rebuild_changes
    log_version = check_log(session, context) if has_log and not is_rebuild else None
    hashed_after = evolve_log_schema(session, context, staged)
    version = raw_version(session, context, staged)
    log = session.table(context.log) if has_log else None
    progress = read_progress(session, context.progress, context.model) if log else Progress()
    seen = RawVersion.from_text(progress.raw_version)
    if log is not None and not is_rebuild and seen.digest and seen.digest == version.digest:
        return None
    is_change = F.col("change_oper") != "L"
    seq, at = (F.when(is_change, F.col(name)) for name in ("change_seq", "changed_at"))
    # else the log is as its last publication has left it
    is_ahead = log_version is None or log_version != progress.table_version
    done = recover_progress(log, progress, seq, at) if is_ahead else progress
    if log is not None and done != progress:
        loaded = rows_after_progress(log, progress).filter(F.col("load_rows").isNotNull())
        positions_loaded = [row["change_seq"] for row in loaded.select("change_seq").collect()]
        done = replace(done, change_seq=read_up_to(sequence, done.change_seq, positions_loaded))
    if log is not None and is_rebuild:
        check_rebuild(context, sequence, staged, log)
        # as in a first run, except for the batch's time: it is later than what the marts know
        log, done = None, Progress(recorded_at=done.recorded_at)

    def find_new(floor: str) -> NewRows | None:
        if version.tables is None or log is None:
            return None
        return new_rows(session, seen.tables, version.tables, log, floor)

    reading = read(context, sequence, staged, log, done, seen.next_arrival, find_new)
    data = data_columns(staged.columns, settings["optional_columns"])
    optional = optional_columns(staged.columns, settings["optional_columns"])
    erased = ErasedKeys.of_run(session, context)
    records = erased.removed_from_changes(reading.changes, sequence)
    decided = pair(
        records,
        reading.recorded,
        key,
        before_images=settings["pairs_before_images"],
        optional=optional,
        hashed_after=hashed_after,
        keeps_unread=False,
    )

    found_loads = find_loads(
        settings,
        staged,
        log,
        sequence,
        done,
        reads_all=reading.floor is None,
        pending_from=seen.next_arrival,
    )
    loads = found_loads.new
    if loads:
        of_loads = erased.removed_from_loads(rows_of(loads, staged))
        records = records.unionByName(of_loads)
        rows = decide_loads(of_loads, key)
        decided = decided.unionByName(rows, allowMissingColumns=True)
    if log is not None and found_loads.again:
        landed = rows_of(found_loads.again, staged.filter(is_fresh(done)))
        of_loads = erased.removed_from_loads(landed)
        records = records.unionByName(of_loads)
        rows = rows_too_late(found_loads.again, of_loads, log, key, hashed_after)
        decided = decided.unionByName(rows, allowMissingColumns=True)
    decided = checkpoint(decided)

    recorded_at = next_recorded_at(done)
    kinds = LOG_COLUMNS | optional

    def log_rows(rows: DataFrame) -> DataFrame:
        return _log_rows(rows, kinds, data, recorded_at, context.beginning_of_time)

    held = None
    # only history plans from it; where it finds a new log or a load, it reads the log in any case
    if key and log is not None and not loads:
        accepted = conformed(
            log_rows(decided.filter(F.col("outcome") == ACCEPTED)), log.schema, settings
        )
        beginning = f"timestamp '{context.beginning_of_time}'"
        held = profiled(accepted, key, data_columns_of_log(log.columns, settings), beginning)
    found = summarize(decided, sequence, held)
    if log is None and found.newest is not None and found.newest < _OLDEST_EXPECTED:
        logger.warning(
            f"{context.model}: all times of the first batch lie before {_OLDEST_EXPECTED}; the "
            f"newest is {found.newest}. A number that was taken for a time, or one in another "
            "unit, looks like that. Fix: if these times are wrong, correct the settings of "
            f"{settings['source_table']}, such as `changed_at` and `changed_at_unit` of a change "
            "feed, and run once with --vars '{rebuild_changes: true}'."
        )
    if log is None:
        _warn_of_columns_in_no_record(context, decided, data)
    if log is not None and not loads:
        check_gap(context, sequence, staged, log, done, reading.marks, found.first_seq)
    newest = greatest(found.seen_seq, done.change_seq) or sequence.first
    horizon = sequence.before_look_back(sequence.up_to_now(newest))
    accepted, rejected = _split(decided, horizon)
    late = found.late(decided, horizon)
    counts = found.counts(late, before_images=settings["before_images"])
    logged = accepted
    if loads:
        loaded = decided.filter(is_row_of(loads) & (F.col("outcome") == ACCEPTED))
        logged = logged.unionByName(markers(loaded, loads), allowMissingColumns=True)

    has_rows = bool(counts.accepted) or bool(loads)
    rejects = (
        new_rejects(session, context, rejected, records, recorded_at, hashed_after)
        if counts.rejected
        else None
    )
    # records that are read again are not new
    counts = replace(counts, rejected=rejects.count if rejects is not None else 0)
    if rejects is not None and settings["on_reject"] == "fail":
        raise RejectedRecordsError(describe_rejects(context, rejects.rows))
    if log is None and rejects is not None and counts.rejected > counts.accepted:
        logger.warning(
            f"{context.model}: of the first {counts.accepted + counts.rejected:,} records "
            f"{counts.rejected:,} are rejected: {reject_reasons(rejects.rows)}. So many are a "
            "wrong setting rather than wrong records. Fix: correct the settings of "
            f"{settings['source_table']} (for `uncastable_*` the `data_type` of the column, for "
            "masks the settings `mask_*`), and run again: `dbt build --select "
            f"{context.upstream[0] if context.upstream else context.selected_as}+`."
        )
    rows = log_rows(logged)
    rejected_kinds = REJECTED_COLUMNS | optional
    arrival = greatest(found.arrival, done.arrival)
    change_seq = read_up_to(
        sequence,
        greatest(found.accepted_seq, late.seq, done.change_seq),
        [load.position for load in loads],
    )
    if not reading.finds_all_late and (version.tables is None or reading.floor is not None):
        settled = count_processed(
            context, sequence, staged, reading, seen.settled, change_seq, arrival
        )
        # if the run records nothing else, an older count serves, and no progress is written
        is_kept = seen.settled is not None and not has_rows and arrival == done.arrival
        version = replace(version, settled=seen.settled if is_kept else settled)
    waiting, is_unmarked = None, bool(found.open_unmarked)
    if settings["has_halves"] and version.tables is not None and not is_unmarked:
        waiting, is_unmarked = pending_halves(sequence, staged, reading, change_seq)
    if not is_unmarked:
        first_open = least(found.open_arrival, waiting, found_loads.pending_from, arrival)
        version = replace(version, next_arrival=first_open)
    if found_loads.is_pending:
        # each run is to warn of it, also where nothing has landed
        version = replace(version, digest=None)
    is_version_recorded = version.digest is None and (version.tables, version.settled) == (
        seen.tables,
        seen.settled,
    )
    return ChangeBatch(
        accepted=rows if has_rows else None,
        rejected=rejects,
        repaired=repaired(session, context, accepted) if counts.accepted else None,
        empty_log=rows.limit(0),
        empty_rejected=local_rows(
            session, [], ", ".join(f"{name} {kind}" for name, kind in rejected_kinds.items())
        ),
        change_seq=change_seq,
        changed_at=greatest(found.accepted_at, late.changed_at, done.changed_at),
        arrival=arrival,
        recorded_at=recorded_at if has_rows or is_rebuild else done.recorded_at or recorded_at,
        recorded_after=done.recorded_at,
        base_version=None if is_ahead else log_version,
        is_rebuild=is_rebuild,
        is_progress_behind=done != progress or arrival != done.arrival or not is_version_recorded,
        raw_version=version.to_text(),
        days=found.days,
        counts=counts,
        profile=None if late.updates else found.profile,
        kept=decided,
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


def _log_rows(
    accepted: DataFrame,
    kinds: Mapping[str, str],
    data: list[str],
    recorded_at: str,
    beginning_of_time: str,
) -> DataFrame:
    beginning = F.lit(beginning_of_time).cast("timestamp")
    rows = accepted.withColumns(
        {
            "recorded_at": F.expr(timestamp_as_text(recorded_at, "change_oper")),
            "change_date": F.to_date(F.coalesce("changed_at", beginning)),
        }
    )
    if "load_rows" not in rows.columns:
        rows = rows.withColumn("load_rows", F.lit(None).cast("bigint"))
    return rows.selectExpr(
        *(f"cast({quoted(name)} as {kind}) as {quoted(name)}" for name, kind in kinds.items()),
        *map(quoted, data),
        "before",
    )
