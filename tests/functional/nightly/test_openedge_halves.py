"""A half of an OpenEdge change whose other half never comes is rejected, in however many runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.project_files import changes_model, write_files, write_settings
from tests.openedge_staging import CHANGES, TABLE_NUMBER, TRACKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.both_formats

RAW = "openedge_halves_raw"
# a table whose columns are all key
COLUMNS = {
    "tracking": {**TRACKING, "_landed_at": "timestamp"},
    "orders": {**CHANGES, "id": "int", "_landed_at": "timestamp"},
}
# sequences of the two rows of inserts that each run finds
BATCHES: list[dict[str, list[int]]] = [
    {"tracking": [101, 102, 103], "orders": [101, 103, 104]},
    {"tracking": [105], "orders": [105]},
    # 104 gets its other half; with a look-back of 5, nothing waits for 102 any more
    {"tracking": [104, *range(106, 111)], "orders": [*range(106, 111)]},
    {"tracking": [111], "orders": [111]},
]


def test_a_half_that_waited_is_rejected_once(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path: Path,
    table_format: str,
) -> None:
    dbt = make_dbt_project(tmp_path, schema="openedge_halves")
    write_settings(tmp_path)
    meta = {"system": "openedge", "table_number": TABLE_NUMBER, "key": ["id"], "look_back": 5}
    orders = {"name": "orders", "config": {"meta": {"afterimage": meta}}}
    raw = {"name": "raw", "schema": RAW, "tables": [{"name": "tracking"}, orders]}
    files = {
        "sources.yml": {"version": 2, "sources": [raw]},
        "staging/stg_orders.sql": "{{ stage_openedge('raw', 'orders', tracking='tracking') }}\n",
        **changes_model("orders", "stg_orders"),
    }
    write_files(tmp_path, {f"models/{path}": content for path, content in files.items()})
    spark.sql(f"create schema if not exists {RAW}")
    for hour, batch in enumerate(BATCHES):
        for table, sequences in batch.items():
            kinds = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS[table].items())
            rows = [row(table, sequence, datetime(2026, 3, 2, hour)) for sequence in sequences]
            frame = local_rows(spark, rows, kinds)
            if hour:
                frame.writeTo(f"{RAW}.{table}").append()
            else:
                frame.writeTo(f"{RAW}.{table}").using(table_format).createOrReplace()
        # with the test that no record is lost
        dbt("build")
    logged = spark.sql("select id from openedge_halves.orders_changes order by id").collect()
    assert [found["id"] for found in logged] == [101, *range(103, 112)]
    rejected = spark.table("openedge_halves.orders_changes_rejected")
    assert [(int(found["change_seq"]), found["reject_reason"]) for found in rejected.collect()] == [
        (102, "incomplete_record")
    ]


def row(table: str, sequence: int, landed_at: datetime) -> dict[str, Any]:
    """A row of the tracking table or of the change table: an insert."""
    given: dict[str, Any] = {"_Change-Sequence": sequence, "_Operation": 1, "id": sequence}
    given |= {"_Source-Table-Number": TABLE_NUMBER, "_Time-Stamp": landed_at}
    given |= {"_Continuation-Position": 0, "_ArrayIndex": 0, "_Fragment": 0}
    given |= {"_landed_at": landed_at}
    return {name: value for name, value in given.items() if name in COLUMNS[table]}
