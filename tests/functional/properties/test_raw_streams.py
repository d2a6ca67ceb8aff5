"""Random streams as raw records of change tables: all tables are what the oracle makes of them.

The other tests of this folder begin at the change log. Here dbt reads change tables, in four
batches, so records that are delivered again and halves of updates that come apart count as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.project_files import (
    changes_model,
    history_model,
    other_marts,
    write_files,
    write_settings,
)
from tests.functional.properties.conftest import shapes_of_selected_tests
from tests.functional.properties.raw_streams import RAW_SHAPES, RECORD, RawStreams
from tests.functional.properties.stream_project import table_settings
from tests.log_reader import read_rows
from tests.streams.comparison import assert_equal, by_stream
from tests.streams.selection import stream_count
from tests.streams.tables import BATCHES, COLUMNS
from tests.tiers import nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "raw_streams"
RAW = f"{SCHEMA}_raw"
NAMES = [shape.name for shape in RAW_SHAPES]


@pytest.fixture(scope="module")
def tables(request: pytest.FixtureRequest) -> dict[str, RawStreams]:
    count = stream_count(request.config)
    selected = shapes_of_selected_tests(request, "table")
    return {
        shape.name: RawStreams(shape, count, number)
        for number, shape in enumerate(RAW_SHAPES, start=1001)
        if not selected or shape.name in selected
    }


@pytest.fixture(scope="module")
def project(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tables: dict[str, RawStreams],
    tmp_path_factory: pytest.TempPathFactory,
) -> DbtProject:
    """Change tables and all downstream models, built batch by batch."""
    project = make_dbt_project(tmp_path_factory.mktemp("raw_streams"), schema=SCHEMA)
    write_project(project, tables)
    spark.sql(f"create schema if not exists {RAW}")
    for name, table in tables.items():
        if table.shape.base:
            columns = ", ".join(f"{column} int" for column in COLUMNS)
            base = local_rows(spark, table.base_rows(), columns)
            base.writeTo(f"{RAW}.{name}").using(table_format).createOrReplace()
    for batch in range(1, BATCHES + 1):
        for name, table in tables.items():
            deliver(spark, table, batch, f"{RAW}.{name}__ct", table_format)
        project("run")
    return project


def write_project(project: DbtProject, tables: dict[str, RawStreams]) -> None:
    sources, models = [], {}
    for name, table in tables.items():
        settings = table_settings(table.shape) | {"look_back": "2 days"}
        if table.shape.lobs:
            settings["lob_columns"] = list(table.shape.lobs)
        sources.append({"name": f"{name}__ct", "config": {"meta": {"afterimage": settings}}})
        base = ""
        if table.shape.base:
            sources.append({"name": name})
            base = f", base='{name}'"
        staging = f"{{{{ stage_qlik_change_table('raw', '{name}__ct'{base}) }}}}\n"
        models[f"staging/stg_{name}.sql"] = staging
        models |= changes_model(name, f"stg_{name}") | history_model(name) | other_marts(name)
    raw = {"name": "raw", "schema": RAW, "tables": sources}
    write_settings(project.path)
    write_files(project.path / "models", models)
    write_files(project.path / "models", {"sources.yml": {"version": 2, "sources": [raw]}})


def deliver(
    spark: SparkSession, table: RawStreams, batch: int, name: str, table_format: str
) -> None:
    """Append a batch, or make the change table with other columns when the source changes."""
    headers = [part.split()[0] for part in RECORD.split(", ")[:4]]
    columns = table.raw_columns(batch)
    if batch > 1 and columns == table.raw_columns(batch - 1):
        rows = local_rows(spark, table.delivered(batch), RECORD)
        rows.select(*headers, *columns).writeTo(name).append()
        return
    delivered = [row for one in range(1, batch + 1) for row in table.delivered(one)]
    rows = local_rows(spark, delivered, RECORD).select(*headers, *columns)
    rows.writeTo(name).using(table_format).createOrReplace()


@pytest.fixture(params=nightly(*NAMES))
def table(
    request: pytest.FixtureRequest, tables: dict[str, RawStreams], project: DbtProject
) -> RawStreams:
    return tables[request.param]


def rows_of(spark: SparkSession, table: RawStreams, kind: str) -> list[dict[str, Any]]:
    return read_rows(spark.table(f"{SCHEMA}.{table.shape.name}_{kind}"))


def test_history(spark: SparkSession, table: RawStreams) -> None:
    rows = rows_of(spark, table, "history")
    expected = [row for stream in table.streams for row in table.expected_history(stream)]
    identity = f"{table.shape.name}_history_id"
    assert_equal(table, by_stream(rows, identity, "recorded_at"), by_stream(expected))


def test_current(spark: SparkSession, table: RawStreams) -> None:
    rows = rows_of(spark, table, "current")
    expected = [row for stream in table.streams for row in table.expected_current(stream)]
    assert_equal(table, by_stream(rows, "recorded_at"), by_stream(expected))


def test_field_changes(spark: SparkSession, table: RawStreams) -> None:
    rows = rows_of(spark, table, "field_changes")
    expected = [row for stream in table.streams for row in table.expected_field_changes(stream)]
    assert_equal(table, by_stream(rows, "recorded_at"), by_stream(expected))


def test_nothing_is_rejected_and_nothing_lost(
    spark: SparkSession, table: RawStreams, project: DbtProject
) -> None:
    name = table.shape.name
    assert rows_of(spark, table, "changes_rejected") == []
    project("test", "--select", f"{name}_changes")
