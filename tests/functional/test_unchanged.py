"""Raw tables that did not change since a run read them are not read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlparse

import pytest

from dbt_afterimage.storage.progress_cache import (
    Publication,
    begin_command,
    end_command,
    last_publication,
    publish_progress,
)
from tests.functional.dbt_project import DbtProject
from tests.functional.people import LATER, MODELS, PEOPLE, PEOPLE_LATER, People, seq, start
from tests.functional.project_files import write_files
from tests.tiers import nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.both_formats


def raw_table(people: People) -> str:
    return f"{people.dbt.schema}_raw.people__ct"


@contextmanager
def out_of_reach(people: People) -> Iterator[None]:
    """Whoever opens the data of the raw table finds no file."""
    described = people.spark.sql(f"describe table extended {raw_table(people)}")
    location = described.filter("col_name = 'Location'").collect()[0]["data_type"]
    files = list(Path(urlparse(location).path).rglob("*.parquet"))
    assert files
    hidden = {file: file.with_suffix(".hidden") for file in files}
    for file, name in hidden.items():
        file.rename(name)
    try:
        yield
    finally:
        for file, name in hidden.items():
            name.rename(file)


def publications(people: People) -> int:
    progress = people.spark.table(f"{people.dbt.schema}.afterimage_progress")
    return progress.filter("model = 'people_changes'").count()


def test_raw_tables_that_did_not_change_are_not_opened(people: People) -> None:
    people.dbt("run")
    with people.untouched(), out_of_reach(people):
        people.dbt("run")


def test_only_descriptions_that_differ_are_stored(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> None:
    described = start(make_dbt_project(tmp_path, schema="described"), spark, table_format, MODELS)
    described.land(PEOPLE, [(seq(1), "I", 1, "Ann", "first", 0.5, "1.25")])
    described.dbt("run")
    name = {"name": "name", "description": "The customer's *own* spelling,\nof any \\ length.\n"}
    history = {"name": "people_history", "description": "One row per version.", "columns": [name]}
    written = {"version": 2, "models": [history]}
    write_files(tmp_path, {"models/descriptions.yml": written})
    described.dbt("run")
    table = described.name("history")
    comment = spark.table(table).schema["name"].metadata["comment"]
    assert comment == "The customer's *own* spelling,\nof any \\ length."
    assert spark.catalog.getTable(table).description == "One row per version."
    with described.untouched():
        described.dbt("run")


@pytest.mark.nightly
def test_tables_without_a_row_are_left_as_they_are(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> None:
    project = make_dbt_project(tmp_path, schema="nobody")
    nobody = start(project, spark, table_format, MODELS)
    nobody.land(PEOPLE, [])
    nobody.dbt("run")
    with nobody.untouched():
        nobody.dbt("run")
    # a delete of a key that was never there leaves nothing in history, either
    nobody.land(PEOPLE, [(seq(1), "D", 1, "Ann", "first", 0.5, "1.25")])
    nobody.dbt("run")
    with nobody.untouched():
        nobody.dbt("run")
    nobody.land(PEOPLE, [(seq(2), "I", 2, "Bob", "second", 0.5, "1.25")])
    nobody.dbt("run")
    assert nobody.rows("current", "id, name", "id") == [(2, "Bob")]
    # a batch without a new version is recorded as applied by all tables, too
    nobody.land(PEOPLE, [(seq(3), "D", 3, "Cid", "third", 0.5, "1.25")])
    nobody.dbt("run")
    applied = spark.sql(
        f"select model, max(recorded_at) from {project.schema}.afterimage_progress group by model"
    )
    newest = {model: recorded_at for model, recorded_at in applied.collect()}
    assert newest["people_current"] == newest["people_history"] == newest["people_changes"]
    with nobody.untouched():
        nobody.dbt("run")


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["parquet", *nightly("view")])
def test_raw_tables_without_versions_are_read_in_each_run(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
    kind: str,
) -> None:
    """A view over the change table, which the README advises, and a table of another catalog."""
    project = make_dbt_project(tmp_path, schema=f"of_{kind}")
    start(project, spark, table_format, MODELS)
    schema, landed = f"of_{kind}_raw", f"of_{kind}_raw.people__ct"
    if kind == "parquet":
        schema, landed = f"spark_catalog.{schema}", f"spark_catalog.{landed}"
    meta = {"afterimage": {"system": "qlik_change_table", "key": ["id"]}}
    tables = [{"name": "people__ct", "config": {"meta": meta}}]
    raw = {"name": "raw", "schema": schema, "tables": tables}
    write_files(tmp_path, {"models/sources.yml": {"version": 2, "sources": [raw]}})
    columns = "header__change_seq string, header__change_oper string, id int, name string"
    spark.sql(f"create schema if not exists {schema}")
    if kind == "parquet":
        spark.sql(f"create table {landed} ({columns}) using parquet location '{tmp_path}/raw'")
    else:
        landed = f"{schema}.people_landed"
        spark.sql(f"create table {landed} ({columns}) using {table_format}")
        spark.sql(f"create view {schema}.people__ct as select * from {landed}")
    for number, name in enumerate(["Ann", "Bob", "Cid"], start=1):
        spark.sql(f"insert into {landed} values ('{seq(number)}', 'I', {number}, '{name}')")
        project("build")
        current = spark.sql(f"select count(*), max(name) from {project.schema}.people_current")
        assert tuple(current.collect()[0]) == (number, name)


@pytest.mark.nightly
def test_a_commit_without_new_rows_is_scanned_once(people: People) -> None:
    before = publications(people)
    rows = people.rows("changes", "*", "change_seq")
    people.spark.sql(f"insert into {raw_table(people)} select * from {raw_table(people)} limit 1")
    people.dbt("run")
    assert publications(people) == before + 1
    assert people.rows("changes", "*", "change_seq") == rows
    with people.untouched():
        people.dbt("run")


@pytest.mark.nightly
def test_other_settings_read_the_raw_table_again(people: People) -> None:
    before = publications(people)
    people.declare(look_back="2 days")
    people.dbt("run", "--select", "people_changes")
    assert publications(people) == before + 1
    people.declare()
    people.land(PEOPLE_LATER, LATER)
    people.dbt("run")


def test_progress_that_another_command_records_is_seen(people: People) -> None:
    people.dbt("run")
    progress = f"{people.dbt.schema}.afterimage_progress"
    begin_command(progress, people.table_format)

    def last() -> str | None:
        found = last_publication(people.spark, progress, "people_history")
        return found.recorded_at if found else None

    before = last()
    assert before is not None
    publish_progress(people.spark, progress, "others", Publication("2026-03-01 10:00:00"))
    people.spark.sql(
        f"insert into {progress} (model, recorded_at) "
        "values ('people_history', timestamp '2999-01-01 00:00:00')"
    )
    try:
        assert last() == "2999-01-01 00:00:00"
        # what the command itself has published was written before the table was read again
        assert people.spark.table(progress).filter("model = 'others'").count() == 1
    finally:
        end_command(people.spark)
        people.spark.sql(f"delete from {progress} where recorded_at = timestamp '2999-01-01'")


def test_current_as_a_view_shows_what_the_table_holds(people: People) -> None:
    view = "people_current_view"
    model = "{{ current(ref('people_history'), materialized='view') }}\n"
    write_files(people.dbt.path / "models", {f"{view}.sql": model})
    people.append(PEOPLE_LATER, [(seq(20), "U", 1, "Ann", 0.9, "1.25", "Pisa")])
    people.dbt("run")
    rows = people.rows("current", "*", "id")
    assert len(rows) == 2
    assert people.rows("current_view", "*", "id") == rows
    wrong = model.replace("view", "incremental")
    write_files(people.dbt.path / "models", {f"{view}.sql": wrong})
    assert "Allowed: 'table', 'view'. Fix: correct it." in people.dbt.error_of("parse")
    (people.dbt.path / f"models/{view}.sql").unlink()
