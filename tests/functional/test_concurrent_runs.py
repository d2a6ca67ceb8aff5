"""Two runs at one time: the second one stops with a clear message, and nothing is doubled.

The moment at which they meet is set by hand: one run has computed its batch, another one runs as
a whole, then the first one writes.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.change_log.writing import log_writer
from dbt_afterimage.errors import ConcurrentRunError
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.sources.decoded_log import LogBatch, start_log, write_decoded_log
from dbt_afterimage.storage.append import append_once
from dbt_afterimage.storage.concurrency import check_unchanged
from dbt_afterimage.storage.create import table_writer
from dbt_afterimage.storage.formats import delta, format_named, iceberg
from dbt_afterimage.storage.local_relation import local_rows
from dbt_afterimage.storage.progress import (
    Progress,
    read_progress,
    reset_progress,
    write_progress,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.both_formats

TABLE = "concurrent.people_changes"
PROGRESS = "concurrent.progress"
# another number each time that it is computed; Spark's own functions draw the same ones again
DRAWN = "cast(conv(substr(reflect('java.util.UUID', 'randomUUID'), 1, 7), 16, 10) as int) as id"
FIRST, SECOND, THIRD = (f"2026-03-01T10:00:0{second}.000000" for second in (1, 2, 3))


@pytest.fixture
def table(spark: SparkSession, table_format: str) -> str:
    spark.sql("create schema if not exists concurrent")
    spark.sql(f"drop table if exists {TABLE}")
    spark.sql(f"create table {TABLE} (id int, recorded_at timestamp) using {table_format}")
    return TABLE


def batch(spark: SparkSession, recorded_at: str, *ids: int) -> DataFrame:
    """Columns in another order than the table has them."""
    rows = local_rows(spark, [(recorded_at, number) for number in ids], "at string, id int")
    return rows.selectExpr("cast(at as timestamp) as recorded_at", "id")


def ids(spark: SparkSession) -> list[int]:
    spark.sql(f"refresh table {TABLE}")
    return sorted(row[0] for row in spark.table(TABLE).select("id").collect())


def test_batches_are_appended_one_after_the_other(
    spark: SparkSession, table: str, table_format: str
) -> None:
    append_once(spark, table, batch(spark, FIRST, 1, 2), table_format, None)
    append_once(spark, table, batch(spark, SECOND, 3), table_format, FIRST)
    append_once(spark, table, batch(spark, THIRD, 4), table_format, SECOND)
    assert ids(spark) == [1, 2, 3, 4]


def test_the_time_of_a_batch_may_end_in_zeros(
    spark: SparkSession, table: str, table_format: str
) -> None:
    """Spark writes `10:00:01.5` for what was recorded as `10:00:01.500000`."""
    append_once(spark, table, batch(spark, "2026-03-01T10:00:01.500000", 1), table_format, None)
    append_once(spark, table, batch(spark, SECOND, 2), table_format, "2026-03-01 10:00:01.5")
    append_once(spark, table, batch(spark, THIRD, 3), table_format, "2026-03-01 10:00:02")
    assert ids(spark) == [1, 2, 3]


def test_a_batch_that_another_run_has_recorded_is_refused(
    spark: SparkSession, table: str, table_format: str
) -> None:
    append_once(spark, table, batch(spark, FIRST, 1), table_format, None)
    ours = batch(spark, THIRD, 2, 3)
    append_once(spark, table, batch(spark, SECOND, 2, 3), table_format, FIRST)
    with pytest.raises(ConcurrentRunError, match="another run wrote to it") as caught:
        append_once(spark, table, ours, table_format, FIRST)
    assert TABLE in str(caught.value)
    assert "Fix:" in str(caught.value)
    assert ids(spark) == [1, 2, 3]


def test_of_two_first_batches_one_is_refused(
    spark: SparkSession, table: str, table_format: str
) -> None:
    append_once(spark, table, batch(spark, FIRST, 1), table_format, None)
    with pytest.raises(ConcurrentRunError):
        append_once(spark, table, batch(spark, SECOND, 1), table_format, None)
    assert ids(spark) == [1]


def test_of_two_first_batches_at_one_moment_one_is_refused(
    spark: SparkSession, table: str, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our run has read the empty table when the other one comes."""

    def then_another_run(*given: Any) -> None:
        monkeypatch.undo()
        check_unchanged(*given)
        append_once(spark, table, batch(spark, FIRST, 1), table_format, None)

    module = {"iceberg": iceberg, "delta": delta}[table_format]
    monkeypatch.setattr(module, "check_unchanged", then_another_run)
    with pytest.raises(ConcurrentRunError):
        append_once(spark, table, batch(spark, SECOND, 1), table_format, None)
    assert ids(spark) == [1]


def test_a_batch_that_was_taken_back_can_be_appended_again(
    spark: SparkSession, table: str, table_format: str
) -> None:
    """An operator restores the table to an earlier state, and runs again."""
    append_once(spark, table, batch(spark, FIRST, 1), table_format, None)
    state = format_named(table_format).version(spark, table)
    append_once(spark, table, batch(spark, SECOND, 2), table_format, FIRST)
    take_back = {
        "iceberg": f"call system.rollback_to_snapshot('{table}', {state})",
        "delta": f"restore table {table} to version as of {state}",
    }
    spark.sql(take_back[table_format])
    append_once(spark, table, batch(spark, THIRD, 2, 3), table_format, FIRST)
    assert ids(spark) == [1, 2, 3]
    with pytest.raises(ConcurrentRunError):
        append_once(spark, table, batch(spark, THIRD, 2, 3), table_format, FIRST)
    assert ids(spark) == [1, 2, 3]


def test_an_append_writes_what_was_computed_before(
    spark: SparkSession, table: str, table_format: str
) -> None:
    """A batch that depends on its table is checkpointed; computing it again would cost twice."""
    append_once(spark, table, batch(spark, FIRST, 1), table_format, None)
    held = spark.table(table).selectExpr("max(recorded_at) as held")
    ours = batch(spark, SECOND, 2, 3).crossJoin(held).where("held < recorded_at")
    ours = ours.selectExpr("recorded_at", DRAWN).persist()
    expected = sorted(row["id"] for row in ours.collect())
    append_once(spark, table, ours, table_format, FIRST)
    ours.unpersist()
    assert ids(spark) == sorted([1, *expected])


def test_a_batch_is_refused_where_the_table_was_recreated(
    spark: SparkSession, table: str, table_format: str
) -> None:
    append_once(spark, table, batch(spark, FIRST, 1), table_format, None)
    ours = batch(spark, THIRD, 2)
    batch(spark, SECOND, 1, 2).writeTo(table).using(table_format).createOrReplace()
    with pytest.raises(ConcurrentRunError):
        append_once(spark, table, ours, table_format, FIRST)
    assert ids(spark) == [1, 2]


def test_a_decoded_log_is_not_recreated_over_another_run(
    spark: SparkSession, table: str, table_format: str
) -> None:
    context = log_context(spark, table_format)
    append_once(spark, table, batch(spark, FIRST, 1), table_format, None)
    run = start_log(spark, context)
    append_once(spark, table, batch(spark, SECOND, 2), table_format, FIRST)
    with pytest.raises(ConcurrentRunError, match="another run wrote to it"):
        write_decoded_log(spark, context, LogBatch(run, batch(spark, THIRD, 1), is_empty=False))
    assert ids(spark) == [1, 2]


def test_progress_of_another_run_while_a_decoded_log_is_recreated_is_removed(
    spark: SparkSession, table: str, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = log_context(spark, table_format)
    append_once(spark, table, batch(spark, FIRST, 1), table_format, None)
    write_progress(spark, PROGRESS, "people", Progress(FIRST, "1"))
    write_progress(spark, PROGRESS, "others", Progress(THIRD, "9"))
    run = start_log(spark, context)

    def meanwhile(*arguments: Any) -> Any:
        append_once(spark, table, batch(spark, SECOND, 2), table_format, FIRST)
        write_progress(spark, PROGRESS, "people", Progress(SECOND, "2"))
        return table_writer(*arguments)

    monkeypatch.setattr(log_writer, "table_writer", meanwhile)
    ours = LogBatch(run, batch(spark, THIRD, 1), is_empty=False, change_seq="1")
    with pytest.raises(ConcurrentRunError, match=r"rebuilt.*rebuild_changes: true"):
        write_decoded_log(spark, context, ours)
    assert ids(spark) == [1]
    assert read_progress(spark, PROGRESS, "people").change_seq == "1"
    assert read_progress(spark, PROGRESS, "others").change_seq == "9"


def test_progress_is_reset_while_other_models_record_theirs(
    spark: SparkSession, table_format: str
) -> None:
    log_context(spark, table_format)
    for model in ("people", "others"):
        write_progress(spark, PROGRESS, model, Progress(FIRST, "1"))

    def record() -> None:
        for _ in range(8):
            write_progress(spark, PROGRESS, "others", Progress(SECOND, "2"))

    def reset() -> None:
        for _ in range(4):
            write_progress(spark, PROGRESS, "people", Progress(SECOND, "2"))
            reset_progress(spark, PROGRESS, "people")

    with ThreadPoolExecutor(2) as threads:
        for run in [threads.submit(record), threads.submit(reset)]:
            run.result()
    models = [row["model"] for row in spark.table(PROGRESS).select("model").collect()]
    assert models == ["others"] * 9


def log_context(spark: SparkSession, table_format: str) -> RunContext:
    """Of a decoded log that is to be rebuilt, with an empty progress table."""
    spark.sql(f"drop table if exists {PROGRESS}")
    spark.sql(
        f"create table {PROGRESS} (model string, recorded_at timestamp, change_seq string, "
        "changed_at timestamp, path string, arrival string, raw_version string) "
        f"using {table_format}"
    )
    return RunContext("people", TABLE, PROGRESS, table_format, {}, rebuild_changes=True)
