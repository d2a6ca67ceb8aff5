"""Transactions of the log: what lies between a start and its COMMIT, and pairs of images.

The log holds committed transactions only, each whole, in the order of their commits. Windows go by
TRXID and not over the whole log, so that they spread over tasks.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from dbt_afterimage.sources.soliddb.record_ids import COMMIT, IS_CAPTURE_OFF, START, UPDATE


def in_frames(records: DataFrame) -> DataFrame:
    """Give each record its transaction's COMMIT, and a before image the place of its after image.

    A TRXID may be used again: each start begins a new frame. A record that was landed twice is at
    one address twice, which changes nothing.

    Args:
        records: of `raw.normal_log`, in any order.

    Returns:
        The records, with

        - frame: counts the starts of this TRXID
        - commit_address: of the transaction; NULL where it has no COMMIT after this record
        - committed_at: when that COMMIT was landed
        - is_capture_off: the flag of the start
        - transaction_event: order inside the transaction, from 0, the start
        - pair_address: of the next after image of the same table, NULL where there is none
    """
    first, last = Window.unboundedPreceding, Window.unboundedFollowing
    of_id = Window.partitionBy("transaction_id").orderBy("log_address")
    record_id, address = F.col("record_id"), F.col("log_address")
    starts = F.count(F.when(record_id == START, 1)).over(
        of_id.rangeBetween(first, Window.currentRow)
    )
    of_frame = Window.partitionBy("transaction_id", "frame")
    in_order = of_frame.orderBy("log_address")
    rest = in_order.rangeBetween(Window.currentRow, last)
    rest_of_table = (
        Window.partitionBy("transaction_id", "frame", "raw_relation_id")
        .orderBy("log_address")
        .rangeBetween(Window.currentRow, last)
    )
    commit = F.min(F.when(record_id == COMMIT, F.struct("log_address", "landed_at"))).over(rest)
    has_flag = F.col("flags").bitwiseAND(F.lit(IS_CAPTURE_OFF)) != 0
    return (
        records.withColumn("frame", starts)
        .withColumn("commit", commit)
        .withColumns(
            {
                "commit_address": F.col("commit.log_address"),
                "committed_at": F.col("commit.landed_at"),
                "is_capture_off": F.coalesce(
                    F.max(F.when(record_id == START, has_flag)).over(of_frame), F.lit(False)
                ),
                "transaction_event": (F.dense_rank().over(in_order) - 1).cast("bigint"),
                "pair_address": F.min(F.when(record_id == UPDATE, address)).over(rest_of_table),
            }
        )
        .drop("commit")
    )
