"""Which files of a feed a run opens: staging computes positions, so marks of arrival decide."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

import pytest

from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.feed_project import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.both_formats

RAW = "feed_reading_raw"
FEED = {
    "sequence": {"place": "number"},
    "operation": "operation",
    "operations": {"I": "I", "U": "U", "B": "B", "D": "D"},
    "before": "rows",
    "arrival": "batch",
}
COLUMNS = "id int, name string, operation string, place bigint, batch string"
# rows of a run
BATCHES: dict[str, list[list[tuple[object, ...]]]] = {
    "settled": [
        [(1, "Ann", "I", 10, "b1")],
        [(2, "Bob", "I", 20, "b2")],
        [(1, "Ann", "B", 30, "b3"), (1, "Anna", "U", 30, "b3")],
    ],
    # the newest change has come before older ones, and its other half comes a run later
    "pending": [
        [(1, "Ann", "I", 10, "b1")],
        [(1, "Ann", "B", 100, "b2"), (2, "Bob", "I", 90, "b3")],
        [(1, "Anna", "U", 100, "b4")],
    ],
    "partitions": [
        [(1, "Ann", "I", 10, "b5")],
        [(2, "Bob", "I", 20, "b1")],
        [(3, "Cid", "I", 30, None), (4, "Dan", "I", 5, "b6")],
    ],
}


@pytest.fixture(scope="module")
def project(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table_format: str,
) -> DbtProject:
    """Three change logs after three runs; before the third, a file went missing."""
    dbt = make_dbt_project(tmp_path_factory.mktemp("feed_reading"), schema="feed_reading")
    write_project(dbt.path, RAW, {name: (FEED, []) for name in BATCHES})
    spark.sql(f"create schema if not exists {RAW}")
    for name in BATCHES:
        spark.sql(f"create table {RAW}.{name} ({COLUMNS}) using {table_format}")
    for number in range(3):
        if number == 2:
            remove_first_file(spark, f"{RAW}.settled")
        for name, batches in BATCHES.items():
            local_rows(spark, batches[number], COLUMNS).writeTo(f"{RAW}.{name}").append()
        dbt("run", "--select", "config.materialized:staging_view config.materialized:change_log")
    return dbt


def remove_first_file(spark: SparkSession, table: str) -> None:
    """Whoever opens the file of the first batch fails."""
    rows = spark.sql(f"select input_file_name() from {table} where batch = 'b1'").collect()
    ((path,),) = rows
    Path(unquote(urlparse(path).path)).unlink()


def logged(spark: SparkSession, schema: str, table: str) -> list[tuple[object, ...]]:
    found = spark.sql(f"select id, name, before.name from {schema}.{table}_changes order by 1, 2")
    return [tuple(row) for row in found.collect()]


def test_files_of_settled_batches_are_not_opened(spark: SparkSession, project: DbtProject) -> None:
    assert logged(spark, project.schema, "settled") == [
        (1, "Ann", None),
        (1, "Anna", "Ann"),
        (2, "Bob", None),
    ]


def test_a_before_image_waits_behind_newer_marks(spark: SparkSession, project: DbtProject) -> None:
    assert logged(spark, project.schema, "pending") == [
        (1, "Ann", None),
        (1, "Anna", "Ann"),
        (2, "Bob", None),
    ]
    assert spark.table(f"{project.schema}.pending_changes_rejected").isEmpty()


def test_rows_with_older_marks_or_none_are_read(spark: SparkSession, project: DbtProject) -> None:
    assert [row[0] for row in logged(spark, project.schema, "partitions")] == [1, 2, 3, 4]


def test_a_backfill_reads_all_marks(spark: SparkSession, project: DbtProject) -> None:
    spark.sql(f"delete from {project.schema}.partitions_changes where id in (1, 2)")
    project("run", "--select", "partitions_changes", backfill_from=f"{10:016X}")
    assert [row[0] for row in logged(spark, project.schema, "partitions")] == [1, 2, 3, 4]
