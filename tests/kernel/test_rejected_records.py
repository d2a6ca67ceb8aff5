"""Rejected records: what is stored of them, and what a run that stops says of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dbt_afterimage.change_log.deciding.quarantine import PURGED_NOTE, describe_rejects, new_rejects
from dbt_afterimage.storage.local_relation import local_rows
from tests.run_contexts import run_context

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONTEXT = run_context(
    model="people_changes",
    settings={"key": ["id"], "optional_columns": {}},
    rejected="people_changes_rejected",
    upstream=["lake.stg_people", "raw.people__ct"],
)
STAGED = (
    "change_seq string, change_oper string, reject_reason string, record_hash bigint, "
    "id int, name string, raw_record string"
)
RECORDS = [
    ("0900", "I", "null_key", 11, None, "Ann", '{"name":"Ann"}'),
    ("0910", "I", "null_key", 12, None, "Bob", '{"name":"Bob"}'),
    ("it is", "D", "malformed_change_seq", 13, 3, "Cid", None),
]


def stored(spark: SparkSession, read: list[tuple[Any, ...]]) -> DataFrame:
    """The rows to store of RECORDS, of which the raw table still has `read`."""
    rejected = local_rows(spark, RECORDS, STAGED).drop("raw_record")
    found = new_rejects(
        spark, CONTEXT, rejected, local_rows(spark, read, STAGED), "2026-03-01T00:00:00.000000"
    )
    assert found is not None
    assert found.count == len(RECORDS)
    return found.rows


def texts(rows: DataFrame) -> dict[int, str | None]:
    return {row["record_hash"]: row["raw_record"] for row in rows.collect()}


def test_a_rejected_record_is_stored_as_it_came(spark: SparkSession) -> None:
    found = texts(stored(spark, RECORDS))
    assert found == {11: '{"name":"Ann"}', 12: '{"name":"Bob"}', 13: None}, "13 was erased"


def test_a_rejected_record_that_is_purged_meanwhile_keeps_its_columns(spark: SparkSession) -> None:
    found = texts(stored(spark, RECORDS[:1]))
    assert found[11] == '{"name":"Ann"}'
    assert json.loads(found[12] or "") == {"purged": PURGED_NOTE, "name": "Bob"}
    assert json.loads(found[13] or "") == {"purged": PURGED_NOTE, "id": 3, "name": "Cid"}


def test_a_run_that_stops_at_rejected_records_quotes_none_of_them(spark: SparkSession) -> None:
    message = describe_rejects(CONTEXT, stored(spark, RECORDS))
    assert "people_changes" in message
    assert "malformed_change_seq (1), null_key (2)" in message
    assert "Some record hashes: 11, 12, 13 at the change_seq 0900, 0910. Nothing" in message
    assert (
        "afterimage spark-sql -e 'select raw_record from lake.stg_people where record_hash in "
        "(11, 12, 13)'"
    ) in message
    assert not [text for text in ("Ann", "Bob", "Cid", "it is") if text in message]
