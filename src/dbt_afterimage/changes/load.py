"""The full load: copied into the log once per load_id, with a marker row that holds its row count."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from dbt_afterimage.changes.pairing import ACCEPTED, DUPLICATE, REJECTED


def decide_load(rows: DataFrame, key: list[str], position: str) -> DataFrame:
    """Decide what becomes of each row of a full load.

    Args:
        rows: the staged `L` rows of one load.
        key: key columns; a row without one is rejected, of equal keys the first by content stays.
        position: the load's change_seq, for rows that have none.

    Returns:
        The rows without `raw_record` and `arrival`, plus `outcome` and `reject_reason`.
    """
    no_key = F.lit(False)
    for column in key:
        no_key = no_key | F.col(column).isNull()
    by_key = Window.partitionBy(*key).orderBy("_is_bad", "record_hash")
    rows = (
        rows.drop("raw_record", "arrival")
        .withColumn("change_seq", F.coalesce("change_seq", F.lit(position)))
        .withColumn("reject_reason", F.coalesce("reject_reason", F.when(no_key, F.lit("null_key"))))
        .withColumn("_is_bad", F.col("reject_reason").isNotNull())
    )
    first = F.first("record_hash").over(by_key) if key else F.col("record_hash")
    order = F.row_number().over(by_key) if key else F.lit(1)
    same = (order > 1) & (first == F.col("record_hash"))
    return (
        rows.withColumn("_order", order)
        .withColumn("_same", same)
        .withColumn(
            "outcome",
            F.when(F.col("_is_bad"), REJECTED)
            .when(F.col("_same"), DUPLICATE)
            .when(F.col("_order") > 1, REJECTED)
            .otherwise(ACCEPTED),
        )
        .withColumn(
            "reject_reason",
            F.coalesce(
                "reject_reason",
                F.when(F.col("outcome") == REJECTED, F.lit("conflicting_duplicate")),
            ),
        )
        .drop("_is_bad", "_order", "_same")
    )


def marker(rows: DataFrame, position: str) -> DataFrame:
    """The marker row of a load: `L`, no key, its position, time and row count.

    An empty table is a load too, so the marker is there even when ``rows`` is empty.

    Args:
        rows: the accepted rows of one load, with `load_id` on each; may be empty.
        position: the load's change_seq.
    """
    return rows.agg(
        F.count(F.lit(1)).alias("load_rows"),
        F.max("changed_at").alias("changed_at"),
    ).withColumns(
        {
            "change_seq": F.lit(position),
            "change_oper": F.lit("L"),
            "outcome": F.lit(ACCEPTED),
        }
    )
