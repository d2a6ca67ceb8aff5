"""The macro temporal_join on Spark, against an oracle; tests/unit has more streams, on DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.temporal_joins import JOINS, TABLES, Histories, assert_equals_oracle, random_histories

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def streams(spark: SparkSession) -> list[Histories]:
    streams = [random_histories(seed, number) for number, seed in enumerate(range(5000, 5060))]
    for table in TABLES:
        rows = pa.Table.from_pylist([row for one in streams for row in one[table]])
        spark.createDataFrame(rows).createOrReplaceTempView(f"{table}_history")
    return streams


@pytest.mark.parametrize("by", ["time", "change_seq"])
@pytest.mark.parametrize("name", JOINS)
def test_random_streams(spark: SparkSession, streams: list[Histories], name: str, by: str) -> None:
    assert assert_equals_oracle(streams, name, by, lambda sql: spark.sql(sql).collect())
