"""Feeds of four presets through dbt, in two batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.functional.dbt_project import DbtProject
from tests.functional.feed_project import reasons, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.both_formats

RAW = "feeds_raw"
DELTA = (
    "id int, name string, _change_type string, _commit_version bigint, _commit_timestamp timestamp"
)
DEBEZIUM = (
    "id int, name string, note string, __op string, __lsn bigint, __source_ts_ms bigint, "
    "__txId bigint"
)
SQL_SERVER = (
    "id int, name string, city string, `__$start_lsn` binary, `__$command_id` int, "
    "`__$seqval` binary, `__$operation` int, `__$update_mask` binary"
)
DMS = "id int, name string, Op string, change_seq string, commit_timestamp string"
BATCHES = [
    {
        "clients": """
            (1, 'Ann', 'Rome', x'01', 1, x'01', 2, x'07')""",
        "staff": """
            (1, 'Ann', 'I', '20260302120000000001', '2026-03-02 12:00:00'),
            (2, 'Bob', 'X', '20260302120000000002', '2026-03-02 12:00:00')""",
        "items": """
            (1, 'one', 'insert', 0, timestamp '2026-03-02 12:00:00'),
            (2, 'two', 'insert', 0, timestamp '2026-03-02 12:00:00')""",
        "people": """
            (1, 'Ann', 'long', 'r', 10, 1772452800000, null),
            (2, 'Bob', 'b', 'c', 11, 1772452801000, 5),
            (3, 'Cid', 'c', '?', 12, 1772452801000, 5)""",
    },
    {
        # the mask has the bit of the name alone
        "clients": """
            (1, 'Ann', 'Rome', x'02', 1, x'01', 3, x'02'),
            (1, 'Anna', 'Rome', x'02', 1, x'01', 4, x'02')""",
        "staff": """
            (1, 'Anna', 'U', '20260302120100000001', '2026-03-02 12:01:00')""",
        "items": """
            (2, 'zwei', 'update_postimage', 1, timestamp '2026-03-02 12:01:00'),
            (2, 'two', 'update_preimage', 1, timestamp '2026-03-02 12:01:00'),
            (1, 'one', 'delete', 2, timestamp '2026-03-02 12:02:00'),
            (1, 'again', 'insert', 2, timestamp '2026-03-02 12:02:00'),
            (9, 'nowhere', 'insert', null, timestamp '2026-03-02 12:02:00')""",
        "people": """
            (2, null, null, 'd', 14, 1772452803000, 7),
            (null, null, null, null, null, null, null),
            (1, 'Anna', '__debezium_unavailable_value', 'u', 13, 1772452802000, 6)""",
    },
]


@pytest.fixture(scope="module")
def feeds(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table_format: str,
) -> str:
    """The schema of four chains after two runs, each of one batch."""
    dbt = make_dbt_project(tmp_path_factory.mktemp("feeds"), schema="feeds")
    presets = {
        "items": "delta_change_feed",
        "people": "debezium_flat",
        "clients": "sql_server_cdc",
        "staff": "aws_dms",
    }
    columns = {"items": DELTA, "people": DEBEZIUM, "clients": SQL_SERVER, "staff": DMS}
    write_project(dbt.path, RAW, {name: ({"preset": of}, []) for name, of in presets.items()})
    spark.sql(f"create schema if not exists {RAW}")
    for table in presets:
        spark.sql(f"create table {RAW}.{table} ({columns[table]}) using {table_format}")
    for batch in BATCHES:
        for table, rows in batch.items():
            spark.sql(f"insert into {RAW}.{table} values {rows}")
        dbt("build")
    return dbt.schema


def test_history_of_a_feed_with_before_images(spark: SparkSession, feeds: str) -> None:
    found = spark.sql(
        f"select id, name, is_current, opened_by, closed_by from {feeds}.items_history "
        "order by id, valid_from_seq"
    ).collect()
    assert [tuple(row) for row in found] == [
        (1, "one", False, "I", "D"),
        (1, "again", True, "I", None),
        (2, "two", False, "I", "U"),
        (2, "zwei", True, "U", None),
    ]
    assert reasons(spark, feeds, "items") == [(9, "null_change_seq")]


def test_history_of_a_feed_without_before_images(spark: SparkSession, feeds: str) -> None:
    found = spark.sql(
        f"select id, name, note, is_current, opened_by, closed_by from {feeds}.people_history "
        "order by id, valid_from_seq"
    ).collect()
    assert [tuple(row) for row in found] == [
        (1, "Ann", "long", False, "I", "U"),
        # the update does not have the note: the last one holds
        (1, "Anna", "long", True, "U", None),
        (2, "Bob", "b", False, "I", "D"),
    ]
    assert reasons(spark, feeds, "people") == [(3, "unknown_operation")]


def test_history_of_change_tables_with_masks(spark: SparkSession, feeds: str) -> None:
    found = spark.sql(
        "select history.id, history.name, history.changed_columns, declared_changed_columns "
        f"from {feeds}.clients_history as history inner join {feeds}.clients_changes as changes "
        "on history.valid_from_seq = changes.change_seq order by history.valid_from_seq"
    ).collect()
    assert [tuple(row) for row in found] == [
        (1, "Ann", None, None),
        (1, "Anna", ["name"], ["name"]),
    ]


def test_history_of_records_with_new_values_alone(spark: SparkSession, feeds: str) -> None:
    found = spark.sql(
        f"select id, name, is_current from {feeds}.staff_history order by id, valid_from_seq"
    ).collect()
    assert [tuple(row) for row in found] == [(1, "Ann", False), (1, "Anna", True)]
    assert reasons(spark, feeds, "staff") == [(2, "unknown_operation")]
