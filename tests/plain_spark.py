"""The Spark session of tests that need neither dbt nor tables; one for a process of pytest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.dbt_spark.jars import avro_jars
from dbt_afterimage.spark.launch import private_settings
from tests.spark_settings import INTERPRETED, ONE_TASK, java_compiler
from tests.streams.selection import has_many_streams

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[SparkSession]:
    """Spark without a catalog of tables: these tests write none."""
    from pyspark.sql import SparkSession

    has_few_rows = not has_many_streams(pytestconfig)
    compiler = java_compiler(has_few_rows=has_few_rows)
    plans = {} if pytestconfig.getoption("--compiled") else INTERPRETED
    tasks = ONE_TASK if has_few_rows else {"spark.sql.shuffle.partitions": "4"}
    builder = SparkSession.builder.master("local[2]")
    for name, value in (plans | tasks | private_settings({})).items():
        builder = builder.config(name, value)
    session = (
        builder.config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.codegen.hugeMethodLimit", "8000")
        .config("spark.ui.enabled", "false")
        .config("spark.jars", ",".join(map(str, avro_jars())))
        .config("spark.driver.memory", "2g")
        .config(
            "spark.driver.extraJavaOptions",
            f"{compiler} -XX:ReservedCodeCacheSize=400m -XX:+UseParallelGC",
        )
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    yield session
    session.stop()
