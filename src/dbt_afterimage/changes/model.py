"""The body of every `<table>_changes` model: reads what is new in staging and decides its fate."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.changes.batch import BatchCounts, ChangeBatch
from dbt_afterimage.changes.contract import LOG_COLUMNS, REJECTED_COLUMNS, data_columns
from dbt_afterimage.changes.load import decide_load, marker
from dbt_afterimage.changes.log_table import fit_log
from dbt_afterimage.changes.pairing import (
    ACCEPTED,
    DUPLICATE,
    REJECTED,
    WAITING,
    is_waiting_too_long,
    pair,
)
from dbt_afterimage.changes.positions import QlikPositions, positions
from dbt_afterimage.changes.progress import ISO_TIMESTAMP, Progress, read_progress


class RejectedRecordsError(RuntimeError):
    """Records were rejected and the table's `on_reject` is `fail`."""


def build_changes(dbt: Any, session: SparkSession, staged: DataFrame) -> ChangeBatch:
    """What this run adds to the change log of one table.

    Args:
        dbt: the object that dbt gives a Python model.
        session: the live Spark session.
        staged: the staging model, ``dbt.ref("stg_...")``.

    Returns:
        A batch for the materialization `change_log` to write. No row is written here.

    Raises:
        RejectedRecordsError: records are rejected and `on_reject` is `fail`.
        GuardError: the log cannot take what staging yields.
    """
    context = dbt.config.get("afterimage")
    settings = context["settings"]
    key = settings["key"]
    where = positions(settings)
    fit_log(session, context, staged)
    log = session.table(context["log"]) if session.catalog.tableExists(context["log"]) else None
    noted = read_progress(session, context["progress"], context["model"]) if log else Progress()
    done = _really_done(log, noted)

    floor = _floor(context, where, done)
    changes = staged.filter(~F.col("change_oper").isin("L", "N") | F.col("change_oper").isNull())
    recorded = None
    if log is not None and floor is not None:
        changes = changes.filter(_is_new_or_malformed(floor, where))
        recorded = log.filter((F.col("change_seq") > floor) & (F.col("change_oper") != "L"))
    elif log is not None:
        recorded = log.filter(F.col("change_oper") != "L")
    decided = pair(changes, recorded, key, before_images=settings["before_images"])

    load_position = _load_position(settings, log, where, done)
    if load_position is not None:
        rows = decide_load(staged.filter(F.col("change_oper") == "L"), key, load_position)
        decided = decided.unionByName(rows, allowMissingColumns=True)
    decided = decided.persist()

    found = _look(decided)
    horizon = where.before_look_back(_greatest(found["seen_seq"], done.change_seq) or where.first)
    accepted, rejected = _split(decided, horizon)
    counts = _count(decided, horizon)
    if load_position is not None:
        loaded = decided.filter((F.col("change_oper") == "L") & (F.col("outcome") == ACCEPTED))
        mark = marker(loaded, load_position).withColumn(
            "load_id", F.lit(settings["base"]["load_id"])
        )
        accepted = accepted.unionByName(mark, allowMissingColumns=True)

    has_rows = bool(counts.accepted) or load_position is not None
    recorded_at = _next_recorded_at(done) if has_rows or counts.rejected else done.recorded_at or ""
    new_rejects = (
        _new_rejects(session, context, rejected, staged, recorded_at) if counts.rejected else None
    )
    if new_rejects is not None and settings["on_reject"] == "fail":
        raise RejectedRecordsError(_describe_rejects(context, new_rejects))
    rows = _log_rows(accepted, staged, recorded_at, context["beginning_of_time"])
    return ChangeBatch(
        accepted=rows if has_rows else None,
        rejected=new_rejects,
        empty_log=rows.limit(0),
        empty_rejected=session.createDataFrame(
            [], ", ".join(f"{name} {kind}" for name, kind in REJECTED_COLUMNS.items())
        ),
        change_seq=_greatest(found["accepted_seq"], done.change_seq, load_position),
        changed_at=_greatest(found["accepted_at"], done.changed_at),
        recorded_at=recorded_at if has_rows else done.recorded_at or recorded_at,
        is_progress_behind=done != noted,
        counts=counts,
        cached=decided,
    )


def _really_done(log: DataFrame | None, noted: Progress) -> Progress:
    """What the log holds: more than was noted when a run was killed before it could note it."""
    if log is None:
        return noted
    if noted.recorded_at is not None:
        log = log.filter(F.col("recorded_at") > F.lit(noted.recorded_at).cast("timestamp"))
    change = F.col("change_oper") != "L"
    found = log.agg(
        F.date_format(F.max("recorded_at"), ISO_TIMESTAMP),
        F.max(F.when(change, F.col("change_seq"))),
        F.date_format(F.max(F.when(change, F.col("changed_at"))), ISO_TIMESTAMP),
    ).first()
    if found is None or found[0] is None:
        return noted
    return Progress(
        found[0], _greatest(found[1], noted.change_seq), _greatest(found[2], noted.changed_at)
    )


def _floor(context: dict[str, Any], where: QlikPositions, done: Progress) -> str | None:
    """Records up to this position were settled by earlier runs; None = read everything."""
    given = context["backfill_from"]
    if given is not None:
        given = str(given)
        if len(given) == where.width and given.isdigit():
            return str(int(given) - 1).zfill(where.width)
        return where.of_time(datetime.fromisoformat(given))
    if done.change_seq is None or context["rebuild_changes"]:
        return None
    return where.before_look_back(done.change_seq) or None


def _is_new_or_malformed(floor: str, where: QlikPositions) -> Column:
    # A comparison would hide a NULL position, and a malformed one that happens to sort low.
    seq = F.col("change_seq")
    return (seq > floor) | seq.isNull() | ~seq.rlike(f"^[0-9]{{{where.width}}}$") | (seq < "1")


def _load_position(
    settings: dict[str, Any], log: DataFrame | None, where: QlikPositions, done: Progress
) -> str | None:
    """Where the table's full load goes in the log; None when there is none or it is in the log."""
    base = settings.get("base")
    if not base:
        return None
    loads = (
        []
        if log is None
        else log.filter((F.col("change_oper") == "L") & F.col("load_rows").isNotNull())
        .select("load_id")
        .collect()
    )
    if any(row["load_id"] == base["load_id"] for row in loads):
        return None
    if base["position"]:
        return str(base["position"])
    return where.after(done.change_seq) if loads and done.change_seq else where.first


def _look(decided: DataFrame) -> Row:
    ok = F.col("outcome").isin(ACCEPTED, WAITING, DUPLICATE)
    change = F.col("change_oper") != "L"
    row = decided.agg(
        F.max(F.when(ok & change, F.col("change_seq"))).alias("seen_seq"),
        F.max(F.when((F.col("outcome") == ACCEPTED) & change, F.col("change_seq"))).alias(
            "accepted_seq"
        ),
        F.date_format(
            F.max(F.when((F.col("outcome") == ACCEPTED) & change, F.col("changed_at"))),
            ISO_TIMESTAMP,
        ).alias("accepted_at"),
    ).first()
    assert row is not None  # an aggregate without keys has one row
    return row


def _split(decided: DataFrame, horizon: str) -> tuple[DataFrame, DataFrame]:
    late = is_waiting_too_long(horizon)
    accepted = decided.filter(
        (F.col("outcome") == ACCEPTED) | (late & (F.col("change_oper") == "U"))
    )
    orphan = late & (F.col("change_oper") == "B")
    rejected = decided.filter((F.col("outcome") == REJECTED) | orphan).withColumn(
        "reject_reason",
        F.when(orphan, F.lit("orphan_before_image")).otherwise(F.col("reject_reason")),
    )
    return accepted, rejected


def _count(decided: DataFrame, horizon: str) -> BatchCounts:
    late = is_waiting_too_long(horizon)
    rows = decided.groupBy("outcome", "change_oper", late.alias("is_late")).count().collect()

    def total(*outcomes: str, **match: Any) -> int:
        return sum(
            row["count"]
            for row in rows
            if row["outcome"] in outcomes
            and all(row[name] == value for name, value in match.items())
        )

    without = total(WAITING, change_oper="U", is_late=True)
    return BatchCounts(
        accepted=total(ACCEPTED) + without,
        rejected=total(REJECTED) + total(WAITING, change_oper="B", is_late=True),
        duplicates=total(DUPLICATE),
        pending=total(WAITING, is_late=False),
        without_before_image=without,
    )


def _log_rows(
    accepted: DataFrame, staged: DataFrame, recorded_at: str, beginning_of_time: str
) -> DataFrame:
    beginning = F.lit(beginning_of_time).cast("timestamp")
    data = data_columns(staged.columns)
    rows = accepted.withColumns(
        {
            "recorded_at": F.lit(recorded_at).cast("timestamp"),
            "change_date": F.to_date(F.coalesce("changed_at", beginning)),
        }
    )
    if "load_rows" not in rows.columns:
        rows = rows.withColumn("load_rows", F.lit(None).cast("bigint"))
    names = [F.col(name).cast(kind).alias(name) for name, kind in LOG_COLUMNS.items()]
    return rows.select(*names, *data, "before")


def _new_rejects(
    session: SparkSession,
    context: dict[str, Any],
    rejected: DataFrame,
    staged: DataFrame,
    recorded_at: str,
) -> DataFrame | None:
    """Rejected records that `<table>_changes_rejected` lacks, whole, as they came.

    Rejected records are few and are read again in every run; only for new ones staging is read a
    second time, for the raw text that the pairing does not carry.
    """
    new = rejected.select("change_seq", "change_oper", "reject_reason", "record_hash").distinct()
    if session.catalog.tableExists(context["rejected"]):
        known = session.table(context["rejected"]).select("record_hash").distinct()
        new = new.join(known, "record_hash", "left_anti")
    hashes = [row["record_hash"] for row in new.select("record_hash").distinct().limit(1).collect()]
    if not hashes:
        return None
    raw = staged.select("record_hash", "raw_record").join(
        F.broadcast(new.select("record_hash")), "record_hash", "left_semi"
    )
    raw = raw.groupBy("record_hash").agg(F.min("raw_record").alias("raw_record"))
    return new.join(raw, "record_hash", "left").select(
        "change_seq",
        "change_oper",
        "reject_reason",
        "record_hash",
        "raw_record",
        F.lit(recorded_at).cast("timestamp").alias("recorded_at"),
        F.lit(None).cast("timestamp").alias("resolved_at"),
    )


def _describe_rejects(context: dict[str, Any], rejects: DataFrame) -> str:
    counts = rejects.groupBy("reject_reason").count().orderBy("reject_reason").collect()
    reasons = ", ".join(f"{row['reject_reason']} ({row['count']})" for row in counts)
    example = rejects.select("raw_record").first()
    return (
        f"{context['model']}: new records are rejected, and the table's `on_reject` is `fail`: "
        f"{reasons}. One of them: {example['raw_record'] if example else None}. "
        "Nothing was written. Cure: repair the records, or set `on_reject: quarantine` to keep "
        "them aside and go on."
    )


def _next_recorded_at(done: Progress) -> str:
    """Now, in UTC, but later than the last batch even when the clock ran back."""
    now = datetime.now(timezone.utc).replace(tzinfo=None)
    if done.recorded_at is not None:
        now = max(now, datetime.fromisoformat(done.recorded_at) + timedelta(microseconds=1))
    return now.isoformat(timespec="microseconds")


def _greatest(*values: str | None) -> str | None:
    given = [value for value in values if value is not None]
    return reduce(max, given) if given else None
