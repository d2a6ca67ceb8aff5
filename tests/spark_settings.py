"""Spark settings for tests on a few rows, for which a plan takes longer to compile than to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""Spark's defaults, which users run with."""
_DBT_COMPILES = "AFTERIMAGE_TEST_COMPILES"
INTERPRETED_BY_DBT = {
    name: f"{{{{ '{COMPILED[name]}' if env_var('{_DBT_COMPILES}', '') else '{value}' }}}}"
    for name, value in INTERPRETED.items()
}
"""For a profile, whose parameters each connection of dbt sets again: over `spark_settings`."""
ONE_TASK = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
ANSI = "spark.sql.ansi.enabled"


def java_compiler(*, has_few_rows: bool) -> str:
    """The option of Java for tests on few rows, or Java's default.

    Most code of tests runs a few times: Java's second compiler takes half of the processor's time.
    """
    return "-XX:TieredStopAtLevel=1" if has_few_rows else "-XX:TieredStopAtLevel=4"


@contextmanager
def spark_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Run with other settings of the session."""
    before = {name: spark.conf.get(name) or "" for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


@contextmanager
def dbt_compiles_plans(spark: SparkSession) -> Iterator[None]:
    """Let dbt run compiled plans, as a user's dbt does; checks that it has."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(_DBT_COMPILES, "1")
        yield
    assert {name: spark.conf.get(name) for name in COMPILED} == COMPILED
