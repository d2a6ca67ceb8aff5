"""`compact`: the same rows in fewer files, and files that are no longer needed are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.storage.compaction import Limits, compact, compact_at_end, compact_written
from dbt_afterimage.storage.formats.base import MANY_SMALL_FILES
from tests.functional.data_files import files_with
from tests.functional.merge_on_read import make_table
from tests.functional.people import TABLES, People

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "compacting.people"


@pytest.fixture
def table(spark: SparkSession, table_format: str) -> str:
    """Twelve files of rows, of which some are marked as deleted."""
    make_table(spark, TABLE, "id bigint, name string", table_format)
    for first in range(0, 120, 10):
        ids = f"range({first}, {first + 10}, 1, 1)"
        spark.sql(f"insert into {TABLE} select id, concat('n', id) from {ids}")
    spark.sql(f"delete from {TABLE} where id % 3 = 0")
    return TABLE


def rows_of(spark: SparkSession) -> list[tuple[Any, ...]]:
    spark.sql(f"refresh table {TABLE}")
    return sorted(map(tuple, spark.table(TABLE).collect()))


@pytest.mark.both_formats
def test_the_same_rows_are_in_fewer_files(
    spark: SparkSession, table: str, table_format: str
) -> None:
    before = rows_of(spark)
    assert len(before) == 80
    assert len(files_with(spark, TABLE, table_format, "true")) == 12
    done = compact(spark, table, table_format, Limits(max_files=1000, keep_days=7))
    assert rows_of(spark) == before
    assert len(files_with(spark, TABLE, table_format, "true")) == 1
    assert done.startswith("12 data files became 1")


@pytest.mark.nightly
@pytest.mark.both_formats
def test_nothing_is_done_twice(spark: SparkSession, table: str, table_format: str) -> None:
    limits = Limits(max_files=1000, keep_days=7)
    compact(spark, table, table_format, limits)
    assert compact(spark, table, table_format, limits).startswith("0 data files became 0")


@pytest.mark.delta_nightly
@pytest.mark.both_formats
def test_files_of_small_batches_stay_few(spark: SparkSession, table_format: str) -> None:
    """As a mart's table: each batch adds a file to a partition and deletes rows of earlier ones."""
    make_table(spark, TABLE, "id bigint, is_current boolean", table_format, "is_current")
    batches = MANY_SMALL_FILES + 2
    for first in range(0, 10 * batches, 10):
        spark.sql(f"insert into {TABLE} select id, true from range({first}, {first + 10}, 1, 1)")
        if first % 40 == 0:
            spark.sql(f"delete from {TABLE} where id = {first}")
        compact_at_end(TABLE, table_format)
        compact_written(spark)
    expected = [each for each in range(10 * batches) if each % 40]
    assert [row[0] for row in rows_of(spark)] == expected
    # one file of the first twenty batches, and one of each later batch
    assert len(files_with(spark, TABLE, table_format, "true")) == 3


def test_files_of_many_partitions_are_not_merged(spark: SparkSession, table_format: str) -> None:
    """A change log with one file per day: there is nothing to merge."""
    make_table(spark, TABLE, "id bigint, day bigint", table_format, "day")
    days = MANY_SMALL_FILES + 1
    spark.sql(f"insert into {TABLE} select id, id from range(0, {days}, 1, 1)")
    before = files_with(spark, TABLE, table_format, "true")
    assert len(before) == days
    compact_at_end(TABLE, table_format)
    compact_written(spark)
    assert files_with(spark, TABLE, table_format, "true") == before


@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        ("{keep_days: -1}", "`keep_days` is -1. Allowed: a whole number from 0"),
        ("{keep_days: week}", "`keep_days` is 'week'. Allowed: a whole number from 0"),
        ("{max_files: 0}", "`max_files` is 0. Allowed: a whole number from 1"),
    ],
)
def test_arguments_that_cannot_be_are_refused(people: People, arguments: str, allowed: str) -> None:
    with people.untouched():
        assert allowed in people.dbt.error_of("run-operation", "compact", "--args", arguments)


@pytest.mark.nightly
def test_the_command_names_every_table(people: People) -> None:
    before = {table: people.rows(table, "*", "1, 2") for table in TABLES}
    people.dbt("run-operation", "compact")
    assert {table: people.rows(table, "*", "1, 2") for table in TABLES} == before
    message = people.dbt.error_of("run-operation", "compact", "--args", "{models: [peple_history]}")
    assert "`peple_history`" in message
    assert "people_changes, people_current, people_field_changes, people_history" in message
    people.dbt("run")
