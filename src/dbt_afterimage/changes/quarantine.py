"""Rejected records: kept whole in `<table>_changes_rejected`, or a reason to stop."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


class RejectedRecordsError(RuntimeError):
    """Records were rejected and the table's `on_reject` is `fail`."""


def new_rejects(
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


def describe_rejects(context: dict[str, Any], rejects: DataFrame) -> str:
    """What a run under `on_reject: fail` says: how many of which reason, and one of them."""
    counts = rejects.groupBy("reject_reason").count().orderBy("reject_reason").collect()
    reasons = ", ".join(f"{row['reject_reason']} ({row['count']})" for row in counts)
    example = rejects.select("raw_record").first()
    return (
        f"{context['model']}: new records are rejected, and the table's `on_reject` is `fail`: "
        f"{reasons}. One of them: {example['raw_record'] if example else None}. "
        "Nothing was written. Cure: repair the records, or set `on_reject: quarantine` to keep "
        "them aside and go on."
    )
