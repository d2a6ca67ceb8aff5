"""Feeds whose first positions are 0: a table version, an offset of a partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from dbt_afterimage.cli import app
from tests.functional.dbt_project import DbtProject
from tests.functional.feed_project import write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.both_formats

RAW = "zero_raw"
ITEMS = (
    "id int, name string, _change_type string, _commit_version bigint, _commit_timestamp timestamp"
)
EVENTS = "id int, name string, operation string, partition int, offset bigint"
OFFSETS = {
    "sequence": {"partition": "number", "offset": "number"},
    "operation": "operation",
    "operations": {"I": "I", "U": "U", "D": "D"},
    "ignore_columns": ["partition", "offset"],
    "on_gap": "fail",
}
NOON = "timestamp '2026-03-02 12:00:00'"
ITEM_BATCHES = [
    f"(1, 'one', 'insert', 0, {NOON}), (2, 'two', 'insert', 0, {NOON})",
    f"(1, 'one', 'update_preimage', 1, {NOON}), (1, 'uno', 'update_postimage', 1, {NOON})",
    f"(2, 'two', 'delete', 2, {NOON})",
    f"(1, 'uno', 'update_preimage', 3, {NOON}), (1, 'eins', 'update_postimage', 3, {NOON})",
]
EVENT_BATCHES = [
    "(1, 'Ann', 'I', 0, 0), (2, 'Bob', 'I', 0, 1)",
    "(1, 'Anna', 'U', 0, 2)",
    "(2, null, 'D', 0, 3)",
    "(1, 'Anne', 'U', 0, 4)",
]


@pytest.fixture(scope="module")
def project(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table_format: str,
) -> DbtProject:
    """Two feeds after a run for each batch."""
    dbt = make_dbt_project(tmp_path_factory.mktemp("zero"), schema="zero")
    write_project(
        dbt.path, RAW, {"items": ({"preset": "delta_change_feed"}, []), "events": (OFFSETS, [])}
    )
    spark.sql(f"create schema if not exists {RAW}")
    spark.sql(f"create table {RAW}.items ({ITEMS}) using {table_format}")
    spark.sql(f"create table {RAW}.events ({EVENTS}) using {table_format}")
    for items, events in zip(ITEM_BATCHES, EVENT_BATCHES, strict=True):
        spark.sql(f"insert into {RAW}.items values {items}")
        spark.sql(f"insert into {RAW}.events values {events}")
        dbt("run")
    return dbt


def logged(spark: SparkSession, dbt: DbtProject, table: str) -> list[tuple[int, str]]:
    """Keys and operations of a change log, in its order."""
    name = f"{dbt.schema}.{table}_changes"
    spark.sql(f"refresh table {name}")
    found = spark.sql(f"select id, change_oper from {name} order by change_seq, id, change_oper")
    return [tuple(row) for row in found.collect()]


def cli(dbt: DbtProject, *arguments: str) -> str:
    with dbt.environment():
        return CliRunner().invoke(app, [*arguments]).output


LOGGED = {
    "items": [(1, "I"), (2, "I"), (1, "U"), (2, "D"), (1, "U")],
    "events": [(1, "I"), (2, "I"), (1, "U"), (2, "D"), (1, "U")],
}


@pytest.mark.parametrize("table", LOGGED)
def test_each_change_is_recorded_once(spark: SparkSession, project: DbtProject, table: str) -> None:
    assert logged(spark, project, table) == LOGGED[table]


def test_a_log_with_records_twice_is_named_and_repaired(
    spark: SparkSession, project: DbtProject
) -> None:
    """As versions before this one wrote it."""
    log = f"{project.schema}.events_changes"
    spark.sql(f"insert into {log} by name select * from {log} where change_oper = 'I'")
    assert "conserved" in project.error_of("test")
    assert "rebuild_changes" in cli(project, "doctor")
    project("run", rebuild_changes=True)
    assert logged(spark, project, "events") == LOGGED["events"]
    project("test")
    assert "rebuild_changes" not in cli(project, "doctor")


def test_erased_rows_do_not_come_back(spark: SparkSession, project: DbtProject) -> None:
    erased = cli(project, "erase", "events", "--key", "1", "--rows", "--yes")
    assert "Erased" in erased
    spark.sql(f"insert into {RAW}.events values (3, 'Cid', 'I', 0, 5)")
    for more in ({}, {"rebuild_changes": True}):
        project("run", **more)
        assert logged(spark, project, "events") == [(2, "I"), (2, "D"), (3, "I")]
