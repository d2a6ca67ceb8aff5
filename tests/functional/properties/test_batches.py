"""Random streams in four batches: the marts equal what the oracle makes of the whole log at once.

So neither the cut into batches, nor late changes, nor the path that a run took may show (R11), and
a batch that is applied again changes nothing (R12). A few of the shapes, which between them have
everything; `--all-shapes` for the others, `--streams 600` for more streams of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.properties.conftest import shapes_of_selected_tests
from tests.functional.properties.stream_project import write_stream_project
from tests.log_reader import read_rows
from tests.streams.comparison import assert_equal, by_stream
from tests.streams.selection import chosen_shapes, stream_count, stream_table
from tests.streams.shapes import Shape
from tests.streams.tables import BATCHES, COLUMNS, LOG_SCHEMA, StreamTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "streams"


@pytest.fixture(scope="module")
def tables(request: pytest.FixtureRequest) -> dict[str, StreamTable]:
    count = stream_count(request.config)
    selected = shapes_of_selected_tests(request, "shape")
    return {
        shape.name: stream_table(shape, count)
        for shape in chosen_shapes(request.config, few=True)
        if not selected or shape.name in selected
    }


@pytest.fixture(scope="module")
def project(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tables: dict[str, StreamTable],
    tmp_path_factory: pytest.TempPathFactory,
) -> DbtProject:
    """One change log and its marts for each shape, built batch by batch."""
    folder = tmp_path_factory.mktemp("streams")
    write_stream_project(folder, [table.shape for table in tables.values()])
    project = make_dbt_project(folder, schema=SCHEMA)
    spark.sql("create schema if not exists streams_logs")
    for batch in range(1, BATCHES + 1):
        for name, table in tables.items():
            append_batch(spark, table, batch, f"streams_logs.{name}", table_format)
        project("run")
    return project


def append_batch(
    spark: SparkSession, table: StreamTable, batch: int, log: str, table_format: str
) -> None:
    """Append a batch to a log, which gains its columns when the source does."""
    rows = local_rows(spark, table.rows(batch), LOG_SCHEMA).coalesce(1)
    gained = table.shape.gains
    if gained and batch < table.gained_with:
        left = [name for name in COLUMNS if name not in gained]
        before = ", ".join(f"'{name}', before.{name}" for name in left)
        rows = rows.drop(*gained).withColumn(
            "before", F.expr(f"if(before is null, null, named_struct({before}))")
        )
    if batch == 1:
        rows.writeTo(log).using(table_format).createOrReplace()
        return
    if gained and batch == table.gained_with:
        places = [name for name in gained] + [f"before.{name}" for name in gained]
        added = ", ".join(f"{place} int" for place in places)
        spark.sql(f"alter table {log} add columns ({added})")
    rows.writeTo(log).append()


@pytest.fixture
def table(tables: dict[str, StreamTable], shape: Shape, project: DbtProject) -> StreamTable:
    """The streams of the test's shape, after the marts are built of them."""
    return tables[shape.name]


def rows_of(spark: SparkSession, table: StreamTable, mart: str) -> list[dict[str, Any]]:
    return read_rows(spark.table(f"{SCHEMA}.{table.shape.name}_{mart}"))


def test_r11_history_is_what_it_would_be_in_one_batch(
    spark: SparkSession, table: StreamTable
) -> None:
    rows = rows_of(spark, table, "history")
    expected = [row for stream in table.streams for row in table.expected_history(stream)]
    identity = f"{table.shape.name}_history_id"
    assert_equal(table, by_stream(rows, identity, "recorded_at"), by_stream(expected))
    assert len({row[identity] for row in rows}) == len(rows)


def test_r11_current_is_the_open_rows_of_history(spark: SparkSession, table: StreamTable) -> None:
    rows = rows_of(spark, table, "current")
    expected = [row for stream in table.streams for row in table.expected_current(stream)]
    assert_equal(table, by_stream(rows, "recorded_at"), by_stream(expected))
    if table.shape.keep_deleted:
        return
    own = {name for row in rows[:1] for name in row}
    opened = [
        {column: row[column] for column in own}
        for row in rows_of(spark, table, "history")
        if row["is_current"]
    ]
    assert_equal(table, by_stream(rows), by_stream(opened))


def test_r11_field_changes_are_what_they_would_be_in_one_batch(
    spark: SparkSession, table: StreamTable
) -> None:
    rows = rows_of(spark, table, "field_changes")
    expected = [row for stream in table.streams for row in table.expected_field_changes(stream)]
    assert_equal(table, by_stream(rows, "recorded_at"), by_stream(expected))


def test_r12_a_batch_that_is_applied_again_changes_nothing(
    spark: SparkSession, project: DbtProject, tables: dict[str, StreamTable]
) -> None:
    """A run killed before it recorded its progress: the next one finds the batch again."""
    marts = [(table, mart) for table in tables.values() for mart in ("history", "field_changes")]
    before = [sorted(map(repr, rows_of(spark, table, mart))) for table, mart in marts]
    progress = f"{SCHEMA}.afterimage_progress"
    # Delta takes neither a subquery nor a parameter here
    [(newest,)] = spark.sql(f"select unix_micros(max(recorded_at)) from {progress}").collect()
    spark.sql(f"delete from {progress} where recorded_at = timestamp_micros({newest})")
    project("run")
    after = [sorted(map(repr, rows_of(spark, table, mart))) for table, mart in marts]
    assert after == before
