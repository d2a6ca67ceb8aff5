"""`afterimage report` on real tables: a rejected record, a mart that is behind, a failed run.

Which figures table metadata has depends on the table format.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from dbt_afterimage.cli import app
from dbt_afterimage.cli.support.warehouse import TABLE, SparkWarehouse, project_warehouse
from tests.functional.dbt_project import DbtProject
from tests.functional.people import MODELS, PEOPLE, People, record, seq, start
from tests.html_page import Page

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.both_formats, pytest.mark.delta_nightly]

ACTIVITY = {"change_activity.sql": "{{ change_activity(['people']) }}\n"}
FIRST = [
    record(1, "I", 1, "Ann"),
    record(2, "I", 2, "Bob"),
    (seq(3), "I", None, "nobody", None, 0.5, "1.00"),
]
SECOND = [*FIRST, record(4, "I", 3, "Cid"), record(5, "I", 4, "Dan"), record(6, "D", 2, "Bob")]


@pytest.fixture(scope="module")
def project(
    make_dbt_project: Callable[..., DbtProject],
    tmp_path_factory: pytest.TempPathFactory,
    spark: SparkSession,
    table_format: str,
) -> People:
    """Two batches, of which the marts have the first; then the raw table is dropped."""
    folder = tmp_path_factory.mktemp("reported")
    dbt = make_dbt_project(folder, schema="reported")
    people = start(dbt, spark, table_format, {**MODELS, **ACTIVITY})
    people.land(PEOPLE, FIRST)
    dbt("run")
    people.land(PEOPLE, SECOND)
    dbt("run", "--select", "people_changes", "change_activity")
    spark.sql("drop table reported_raw.people__ct")
    dbt.error_of("run", "--select", "stg_people", "people_changes")
    return people


@pytest.fixture(scope="module")
def page(project: People, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of the command, which fails because of a condition."""
    file = tmp_path_factory.mktemp("report") / "report.html"
    arguments = ["report", "--output", str(file), "--fail-if", "unresolved > 0"]
    with project.dbt.environment():
        result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1, result.output
    assert result.stdout.splitlines()[1:] == ["failed: people: unresolved > 0 (unresolved is 1)"]
    return Page(file.read_text(encoding="utf-8"))


def test_what_needs_attention(page: Page) -> None:
    assert "people: its raw table reported_raw.people__ct does not exist." in page.text
    assert "model stg_people failed in dbt run --select stg_people people_changes of" in page.text
    assert "people: behind its change log: people_history (" in page.text
    assert "people: 1 unresolved rejected records. Fix: afterimage rejects people" in page.text


def test_rejected_records_by_reason_and_changes(page: Page) -> None:
    assert "null_key 1 0 people 1" in page.text
    assert "people, 5 changes" in page.text


def test_rows_and_sizes_from_metadata(page: Page, table_format: str) -> None:
    # Delta's metadata has no number of rows
    assert ("5 rows batch of" in page.text) is (table_format == "iceberg")
    assert ("2 rows behind by" in page.text) is (table_format == "iceberg")
    assert ("Iceberg records it, Delta does not" in page.text) is (table_format == "delta")


def test_batches_with_the_rows_that_each_added(page: Page) -> None:
    batches = page.text.partition("Last batches")[2]
    first, second = batches.split(" people ")[1:3]
    assert first.startswith("3 - not yet in people_history, people_current, people_field_changes")
    assert second.startswith("2 rebuild applied")


def test_spark_sees_the_commits_and_files_that_are_read_without_it(project: People) -> None:
    with project.dbt.environment():
        warehouse, schema = project_warehouse()
        by_spark = SparkWarehouse()
        found = {name: by_spark.versions(schema, name) for name in warehouse.relations(schema)}
        assert found == {name: warehouse.versions(schema, name) for name in found}
        tables = [name for name, kind in warehouse.relations(schema).items() if kind == TABLE]
        sizes = {name: by_spark.files(schema, name) for name in tables}
        assert sizes == {name: warehouse.files(schema, name) for name in tables}
    assert found["stg_people"] == []  # a view
    assert [version.added for version in found["people_changes"] if version.added] == [2, 3]


def test_runs_are_recorded_with_their_steps(project: People, page: Page) -> None:
    file = project.dbt.scratch / "target" / "afterimage_runs.jsonl"
    runs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert [run["command"] for run in runs] == ["run"] * 3
    statuses = [
        {
            step["node"].split(".")[2]: step["status"]
            for step in run["steps"]
            if "model" in step["node"]
        }
        for run in runs
    ]
    assert statuses[1:] == [
        {"people_changes": "success", "change_activity": "success"},
        {"stg_people": "error", "people_changes": "skipped"},
    ]
    assert len({run["id"] for run in runs}) == 3
    assert "The last 3 dbt commands" in page.text


def test_a_run_that_a_wrong_setting_stops_is_recorded(project: People) -> None:
    project.declare(look_back="no time")
    said = project.dbt.error_of("run")
    file: Path = project.dbt.scratch / "target" / "afterimage_runs.jsonl"
    run = json.loads(file.read_text(encoding="utf-8").splitlines()[-1])
    assert run["steps"] == []
    assert "look_back" in run["error"]
    assert run["error"].split("Fix:")[0] in said
