"""Rejected records: kept whole in `<table>_changes_rejected`, or a reason to stop."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.change_log.contract import data_columns
from dbt_afterimage.internal_columns import PREFIX
from dbt_afterimage.log_rows.columns import column_named
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.storage.checkpoint import checkpoint
from dbt_afterimage.storage.progress import ISO_TIMESTAMP, Progress, next_recorded_at

_BROADCAST_LIMIT = 100_000
"""Up to so many rejected records are sent to all tasks; more of them could fill the memory."""

_SHOWN_RECORDS = 3

_RAW = f"{PREFIX}raw"
_STAGED = f"{PREFIX}staged"

PURGED_NOTE = "purged from the raw table in the middle of a run; these are its columns in staging"
"""First value of `raw_record`, under the name `purged`, where the raw text is gone."""


class RejectedRecordsError(RuntimeError):
    """Records were rejected and the table's `on_reject` is `fail`."""


@dataclass(frozen=True)
class Rejects:
    """Rows for `<table>_changes_rejected`.

    Attributes:
        rows: the rows.
        count: how many they are.
        after: when its last ones were recorded, or None.
    """

    rows: DataFrame
    count: int
    after: str | None


def new_rejects(
    session: SparkSession,
    context: RunContext,
    rejected: DataFrame,
    read: DataFrame,
    recorded_at: str,
    hashed_after: str | None = None,
) -> Rejects | None:
    """Rejected records that `<table>_changes_rejected` lacks, whole, as they came.

    Rejected records are few and are read again in every run; only for new ones all that the run
    reads is read a second time, for the raw text that the pairing does not carry. A record that the
    raw table has lost in between keeps the columns that staging had made of it, with `PURGED_NOTE`.

    Args:
        rejected: records that were rejected, with their reasons.
        read: what they are some of, as staged: all records that this run reads.
        recorded_at: the batch's identity, ISO text in UTC.
        hashed_after: records that were rejected up to this time are known by their raw text, since
            their hashes are of an earlier form. None = there are none.
    """
    optional = [name for name in context.settings["optional_columns"] if name in read.columns]
    after = None
    if session.catalog.tableExists(context.rejected):
        # read first, so that the append detects a concurrent writer
        last = F.date_format(F.max("recorded_at"), ISO_TIMESTAMP)
        found = session.table(context.rejected).agg(last).first()
        after = found[0] if found else None
    if after is not None and after >= recorded_at:
        recorded_at = next_recorded_at(Progress(after))
    data = [column_named(name) for name in data_columns(read.columns, optional)]
    staged = F.to_json(F.struct(F.lit(PURGED_NOTE).alias("purged"), *data))
    new = rejected.select(
        "change_seq",
        "change_oper",
        record_key(context.settings["key"]).alias("record_key"),
        "reject_reason",
        "record_hash",
        *optional,
        staged.alias(_STAGED),
    ).distinct()
    if session.catalog.tableExists(context.rejected):
        known = session.table(context.rejected).select("record_hash").distinct()
        new = new.join(known, "record_hash", "left_anti")
    count = new.count()
    if not count:
        return None
    raw = read.select("record_hash", "raw_record").join(
        _sent_if_few(new.select("record_hash"), count), "record_hash", "left_semi"
    )
    raw = raw.groupBy("record_hash").agg(F.struct(F.min("raw_record").alias("text")).alias(_RAW))
    if hashed_after is not None and session.catalog.tableExists(context.rejected):
        is_earlier = F.col("recorded_at") <= F.lit(hashed_after).cast("timestamp")
        earlier = session.table(context.rejected).filter(is_earlier).select("raw_record").distinct()
        is_same = F.col(f"{_RAW}.text") == F.col("raw_record")
        raw = checkpoint(raw.join(earlier, is_same, "left_anti"))
        if raw.isEmpty():
            return None
        new = new.join(raw.select("record_hash"), "record_hash", "left_semi")
    rows = new.join(raw, "record_hash", "left").select(
        "change_seq",
        "change_oper",
        "record_key",
        "reject_reason",
        "record_hash",
        # the text may be NULL: that of an erased record
        F.when(F.col(_RAW).isNull(), F.col(_STAGED))
        .otherwise(F.col(f"{_RAW}.text"))
        .alias("raw_record"),
        F.lit(recorded_at).cast("timestamp").alias("recorded_at"),
        F.lit(None).cast("timestamp").alias("resolved_at"),
        *optional,
    )
    return Rejects(rows, count, after)


def repaired(session: SparkSession, context: RunContext, accepted: DataFrame) -> DataFrame | None:
    """`record_hash` of each unresolved reject whose identity this run accepts; None when none is.

    The identity is (change_seq, key, change_oper). What a rejected record lacks, a NULL key or an
    unknown operation, is not compared. The log already had a copy of a conflicting duplicate, so
    another one repairs nothing.
    """
    if not session.catalog.tableExists(context.rejected):
        return None
    unresolved = session.table(context.rejected).filter(
        F.col("resolved_at").isNull()
        & F.col("change_seq").isNotNull()
        & (F.col("reject_reason") != "conflicting_duplicate")
        # all rows of a load share their position, so that only the key distinguishes them
        & (F.col("record_key").isNotNull() | ~F.col("change_oper").eqNullSafe("L"))
    )
    # not of a `limit`: Spark numbers those, so it compiles each of them again
    count = unresolved.count()
    if not count:
        return None
    key = context.settings["key"]
    own = accepted.select("change_seq", "change_oper", record_key(key).alias("record_key"))
    images = accepted.filter(F.col("before").isNotNull()).select(
        "change_seq",
        F.lit("B").alias("change_oper"),
        record_key(key, "before").alias("record_key"),
    )
    records = own.union(images).alias("accepted")
    unresolved = _sent_if_few(
        unresolved.select("change_seq", "change_oper", "record_key", "record_hash"), count
    ).alias("unresolved")
    same = F.col("accepted.change_seq") == F.col("unresolved.change_seq")
    for name in ("change_oper", "record_key"):
        known = F.col(f"unresolved.{name}")
        same = same & (known.isNull() | (known == F.col(f"accepted.{name}")))
    found = records.join(unresolved, same).select("unresolved.record_hash").distinct()
    # Few rows, detached from the tables that they come from: Spark 4.1 cannot plan an Iceberg merge
    # from a view that reads the merge's own target.
    found = checkpoint(found)
    return None if found.isEmpty() else found


def _sent_if_few(rows: DataFrame, count: int) -> DataFrame:
    return F.broadcast(rows) if count <= _BROADCAST_LIMIT else rows


def record_key(key: list[str], of: str | None = None) -> Column:
    """The key as JSON, of a row or of its struct; NULL when a part of it is."""
    columns = [F.col(of)[name] if of else column_named(name) for name in key]
    is_whole = F.lit(bool(key))
    for column in columns:
        is_whole = is_whole & column.isNotNull()
    named = [column.alias(name) for column, name in zip(columns, key, strict=True)]
    return F.when(is_whole, F.to_json(F.struct(*named))) if key else F.lit(None).cast("string")


def reject_reasons(rejects: DataFrame) -> str:
    """How many rejected records there are of each reason."""
    counts = rejects.groupBy("reject_reason").count().orderBy("reject_reason").collect()
    return ", ".join(f"{row['reject_reason']} ({row['count']})" for row in counts)


def describe_rejects(context: RunContext, rejects: DataFrame) -> str:
    """The message of a run under `on_reject: fail`: how many for which reason, and the first ones.

    Of a record only its hash and its position: dbt writes the text to files that others may read.
    """
    reasons = reject_reasons(rejects)
    first = rejects.orderBy("change_seq", "record_hash").select("record_hash", "change_seq")
    records = first.limit(_SHOWN_RECORDS).collect()
    hashes = ", ".join(str(row["record_hash"]) for row in records)
    # a malformed one may hold anything
    named = [str(row["change_seq"]) for row in records if (row["change_seq"] or "").isalnum()]
    at = f" at the change_seq {', '.join(named)}" if named else ""
    staging = f" from {context.upstream[0]}" if context.upstream else ""
    return (
        f"{context.model}: new records are rejected, and the table's `on_reject` is `fail`: "
        f"{reasons}. Some record hashes: {hashes}{at}. "
        "Nothing was written. Fix: repair the records, which afterimage spark-sql -e "
        f"'select raw_record{staging} where record_hash in ({hashes})' prints; or set `on_reject: "
        "quarantine` to store them as rejected and continue: `afterimage rejects` shows them."
    )
