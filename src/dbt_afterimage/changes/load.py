"""The full load: copied into the log once per load_id, with a marker row for its row count."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from dbt_afterimage.changes.pairing import (
    ACCEPTED,
    DUPLICATE,
    REJECTED,
    quoted,
    with_null_key_first,
)
from dbt_afterimage.changes.progress import Progress
from dbt_afterimage.positions import Positions

_IS_BAD = "_afterimage_is_bad"


def decide_load(rows: DataFrame, key: list[str], position: str) -> DataFrame:
    """Decide what becomes of each row of a full load.

    Args:
        rows: the staged `L` rows of one load.
        key: key columns; a row without one is rejected, of equal keys the first by content stays.
        position: the load's change_seq, for rows that have none.

    Returns:
        The rows without `raw_record`, plus `outcome` and `reject_reason`.
    """
    reason = with_null_key_first(F.col("reject_reason"), F.lit(True), key)
    rows = (
        rows.drop("raw_record")
        .withColumn("change_seq", F.coalesce("change_seq", F.lit(position)))
        .withColumn("reject_reason", reason)
    )
    is_bad = F.col("reject_reason").isNotNull()
    if not key:
        return rows.withColumn("outcome", F.when(is_bad, REJECTED).otherwise(ACCEPTED))

    by_key = Window.partitionBy(*[quoted(column) for column in key]).orderBy(_IS_BAD, "record_hash")
    is_copy = (F.lag("record_hash").over(by_key) == F.col("record_hash")) & (
        F.lag(_IS_BAD).over(by_key) == F.col(_IS_BAD)
    )
    is_first = F.row_number().over(by_key) == 1
    return (
        rows.withColumn(_IS_BAD, is_bad)
        .withColumn(
            "outcome",
            F.when(is_copy, DUPLICATE)
            .when(is_first & ~F.col(_IS_BAD), ACCEPTED)
            .otherwise(REJECTED),
        )
        .withColumn(
            "reject_reason",
            F.coalesce(
                "reject_reason",
                F.when(F.col("outcome") == REJECTED, F.lit("conflicting_duplicate")),
            ),
        )
        .drop(_IS_BAD)
    )


def marker(rows: DataFrame, position: str, loaded_at: str | None = None) -> DataFrame:
    """The marker row of a load: `L`, no key, its position, time and row count.

    An empty table is a load too, so the marker is there even when ``rows`` is empty.

    Args:
        rows: the accepted rows of one load, with `load_id` on each; may be empty.
        position: the load's change_seq.
        loaded_at: the load's time, UTC, which the rows of an empty load cannot tell.
    """
    return rows.agg(
        F.count(F.lit(1)).alias("load_rows"),
        F.coalesce(F.max("changed_at"), F.lit(loaded_at).cast("timestamp")).alias("changed_at"),
    ).withColumns(
        {
            "change_seq": F.lit(position),
            "change_oper": F.lit("L"),
            "outcome": F.lit(ACCEPTED),
        }
    )


def load_position(
    settings: dict[str, Any], log: DataFrame | None, where: Positions, done: Progress
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
