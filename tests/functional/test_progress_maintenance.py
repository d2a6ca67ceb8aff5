"""The progress table stays small: rows and files that no run needs are gone."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.storage.compaction import MANY_FILES
from dbt_afterimage.storage.progress import read_progress
from dbt_afterimage.storage.progress_cache import progress_since
from dbt_afterimage.storage.progress_maintenance import maintain_progress, trim_progress
from tests.functional.data_files import files_with
from tests.functional.merge_on_read import make_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "maintained.afterimage_progress"
COLUMNS = {
    "model": "string",
    "recorded_at": "timestamp",
    "change_seq": "string",
    "changed_at": "timestamp",
    "path": "string",
    "arrival": "string",
    "raw_version": "string",
    "batch": "string",
}
TODAY = datetime(2026, 6, 30, 12, tzinfo=timezone.utc)
YEAR = range(365, -1, -1)

Row = tuple[str | None, ...]


def publication(model: str, days_ago: int) -> Row:
    """As a mart records it: its batch, and when it was written."""
    at = (TODAY - timedelta(days=days_ago)).isoformat()
    batch = json.dumps({"at": at, "after": None})
    return (model, at, f"{1000 - days_ago:04}", at, None, None, None, batch)


def write(spark: SparkSession, table_format: str, rows: list[Row]) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    make_table(spark, TABLE, columns, table_format)
    texts = spark.createDataFrame(rows, ", ".join(f"{name} string" for name in COLUMNS))
    typed = [f"cast({name} as {kind}) as {name}" for name, kind in COLUMNS.items()]
    texts.coalesce(1).selectExpr(*typed).writeTo(TABLE).append()


def oldest(spark: SparkSession, model: str) -> tuple[int, str]:
    """Number of rows, and the least change_seq."""
    spark.sql(f"refresh table {TABLE}")
    found = spark.sql(f"select count(*), min(change_seq) from {TABLE} where model = '{model}'")
    return tuple(found.collect()[0])


@pytest.mark.both_formats
@pytest.mark.delta_nightly
def test_old_rows_of_models_that_publish_go(spark: SparkSession, table_format: str) -> None:
    rows = [
        publication(model, day) for day in YEAR for model in ("a_changes", "a_history", "a_b", "c")
    ]
    # nothing new for half a year
    rows += [publication("quiet", day) for day in YEAR if day > 180]
    # nor here, but newer versions of its raw tables were recorded
    raw = json.dumps({"at": (TODAY - timedelta(days=1)).isoformat(), "digest": "d"})
    rows += [publication("read", day) for day in YEAR if day > 180]
    rows += [(*publication("read", 181)[:6], raw, None)]
    # a mart of several inputs names no batch
    rows += [(row[0], None, *row[2:]) for row in (publication("activity", day) for day in YEAR)]
    write(spark, table_format, rows)
    before = {model: read_progress(spark, TABLE, model) for model in ("a_history", "quiet", "read")}

    trim_progress(spark, TABLE, TODAY)

    assert oldest(spark, "a_history") == oldest(spark, "a_changes") == (8, "0993")
    assert oldest(spark, "activity") == (8, "0993")
    assert oldest(spark, "quiet") == (185, "0635")
    assert oldest(spark, "read") == (1, "0819")
    assert {model: read_progress(spark, TABLE, model) for model in before} == before
    since = progress_since(spark, TABLE, "quiet", ["a_changes", "quiet"])
    assert since["a_changes"].change_seq == "1000"
    assert not since["a_changes"].is_continued


def test_few_old_rows_stay(spark: SparkSession, table_format: str) -> None:
    """A delete rewrites a file, so it is done for many rows only."""
    write(spark, table_format, [publication("a_changes", day) for day in YEAR])
    trim_progress(spark, TABLE, TODAY)
    assert oldest(spark, "a_changes") == (366, "0635")


@pytest.mark.nightly
@pytest.mark.parametrize(("files", "left"), [(MANY_FILES, MANY_FILES), (MANY_FILES + 1, 1)])
def test_many_files_are_merged(
    spark: SparkSession, table_format: str, files: int, left: int
) -> None:
    write(spark, table_format, [])
    rows = f"select 'm', cast(id as timestamp) as recorded_at from range(0, {files}, 1, {files})"
    spark.sql(f"insert into {TABLE} (model, recorded_at) {rows}")
    assert len(files_with(spark, TABLE, table_format, "true")) == files
    maintain_progress(spark, TABLE, table_format)
    assert len(files_with(spark, TABLE, table_format, "true")) == left
    assert spark.table(TABLE).count() == files
