"""`afterimage rejects --resolve` on real tables: repeatable, and the next run can still write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_afterimage.cli.resolve_reject import RESOLUTIONS, resolve_in
from dbt_afterimage.storage.local_relation import local_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SCHEMA = "resolve_rejects"
COLUMNS = (
    "change_seq string, change_oper string, record_key string, reject_reason string, "
    "record_hash bigint, raw_record string, recorded_at timestamp, resolved_at timestamp"
)


def record(spark: SparkSession, record_hash: int) -> None:
    row = (None, "I", None, "null_key", record_hash, "{}", None, None)
    frame = local_rows(spark, [row], COLUMNS)
    frame.writeTo(f"{SCHEMA}.people_changes_rejected").append()


def test_a_record_is_resolved_once_and_the_reason_is_kept(
    spark: SparkSession, table_format: str
) -> None:
    rejected = f"{SCHEMA}.people_changes_rejected"
    spark.sql(f"create schema if not exists {SCHEMA}")
    spark.sql(f"create table {rejected} ({COLUMNS}) using {table_format}")
    record(spark, -7)
    record(spark, 8)

    assert "is resolved;" in resolve_in(spark, SCHEMA, "people", -7, "it's a test row")
    assert "already" in resolve_in(spark, SCHEMA, "people", -7, "again")
    # killed between the two commits: the reason is there, the record is still open
    spark.sql(f"update {rejected} set resolved_at = null where record_hash = -7")
    assert "is resolved;" in resolve_in(spark, SCHEMA, "people", -7, "it's a test row")

    open_records = spark.table(rejected).filter("resolved_at is null").select("record_hash")
    assert [row[0] for row in open_records.collect()] == [8]
    reasons = spark.table(f"{SCHEMA}.{RESOLUTIONS}").select("table_name", "record_hash", "why")
    assert [tuple(row) for row in reasons.collect()] == [("people", -7, "it's a test row")]
    record(spark, 9)
