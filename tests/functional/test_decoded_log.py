"""A decoded log is a table that later versions of the package go on writing to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbt_afterimage.sources.decoded_log import start_log
from tests.run_contexts import run_context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG, PROGRESS = "afterimage.decoded", "afterimage.decoded_progress"


def test_a_table_of_an_earlier_version_gains_the_columns_that_are_new(
    spark: SparkSession, table_format: str
) -> None:
    spark.sql("create schema if not exists afterimage")
    spark.sql(f"drop table if exists {LOG}")
    spark.sql(f"drop table if exists {PROGRESS}")
    spark.sql(f"create table {LOG} (recorded_at timestamp, kind string) using {table_format}")
    spark.sql(f"insert into {LOG} values (timestamp '2026-03-01 08:00:00', 'change')")
    spark.sql(
        f"create table {PROGRESS} (model string, recorded_at timestamp, change_seq string, "
        "changed_at timestamp, path string, arrival string, raw_version string) "
        f"using {table_format}"
    )
    context = run_context(log=LOG, progress=PROGRESS, file_format=table_format)
    columns = {"kind": "string", "server_name": "string"}
    for _ in range(2):
        stored = start_log(spark, context, columns=columns).stored
        assert stored is not None
        assert [row.asDict()["server_name"] for row in stored.collect()] == [None]
    assert spark.table(LOG).columns == ["recorded_at", "kind", "server_name"]
