"""`afterimage rejects` on real tables: records are resolved by hand once, or read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt_afterimage.cli.commands.rejects import outcome, run_again
from dbt_afterimage.cli.commands.resolve_reject import RESOLUTIONS, resolve_reject
from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.feed_project import write_project

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

    assert "is resolved;" in resolve_reject(spark, SCHEMA, "people", -7, "it's a test row")
    assert "already" in resolve_reject(spark, SCHEMA, "people", -7, "again")
    # killed between the two commits: the reason is there, the record is still open
    spark.sql(f"update {rejected} set resolved_at = null where record_hash = -7")
    assert "is resolved;" in resolve_reject(spark, SCHEMA, "people", -7, "it's a test row")

    open_records = spark.table(rejected).filter("resolved_at is null").select("record_hash")
    assert [row[0] for row in open_records.collect()] == [8]
    reasons = spark.table(f"{SCHEMA}.{RESOLUTIONS}").select("table_name", "record_hash", "why")
    assert [tuple(row) for row in reasons.collect()] == [("people", -7, "it's a test row")]
    record(spark, 9)


FEED = {
    "sequence": {"place": "number"},
    "operation": "op",
    "operations": {"i": "I"},
    "ignore_columns": ["place"],
}
REPLAYED = "replay_rejects"


def test_a_replay_reads_records_that_a_corrected_setting_makes_right(
    spark: SparkSession,
    make_dbt_project: Callable[..., DbtProject],
    tmp_path: Path,
    table_format: str,
) -> None:
    dbt = make_dbt_project(tmp_path / REPLAYED, schema=REPLAYED)
    raw = f"{REPLAYED}_raw"
    spark.sql(f"create schema if not exists {raw}")
    spark.sql(f"create table {raw}.parts (id int, op string, place bigint) using {table_format}")
    spark.sql(
        f"insert into {raw}.parts values (1, 'i', 1), (2, 'new', 2), (3, 'i', 3), (4, '?', 4)"
    )
    write_project(dbt.path, raw, {"parts": (FEED, [])})
    dbt("run")

    def rejected() -> list[dict[str, Any]]:
        rows = spark.table(f"{REPLAYED}.parts_changes_rejected").collect()
        return [row.asDict() for row in rows]

    before = rejected()
    assert {row["change_seq"][-1] for row in before} == {"2", "4"}
    corrected = {**FEED, "operations": {"i": "I", "new": "I"}}
    write_project(dbt.path, raw, {"parts": (corrected, [])})
    with dbt.environment():
        run_again(before, "parts", None)
    ids = spark.table(f"{REPLAYED}.parts_history").select("id").collect()
    assert sorted(row[0] for row in ids) == [1, 2, 3]
    assert outcome("parts", before, rejected()) == (
        "parts: 1 of 2 resolved, 1 unresolved: afterimage rejects parts"
    )
