"""Tables and progress that contradict each other: repaired, or refused with the command that does.

An operator restores a table to an earlier version, a clock ran ahead, a row of
`afterimage_progress` was cut off.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.storage.compaction import Limits, compact
from dbt_afterimage.storage.formats import format_named
from tests.functional.dbt_project import DbtProject
from tests.functional.people import MODELS, PEOPLE, TABLES, People, record, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.both_formats, pytest.mark.delta_nightly]

ACTIVITY = {"people_activity.sql": "{{ change_activity(['people']) }}\n"}
COLUMNS = {
    "changes": "change_seq, change_oper, id, name",
    "history": "id, name, valid_from_seq, valid_to_seq, closed_by",
    "current": "id, name, valid_from_seq",
    "field_changes": "change_seq, id, column_name, old_value, new_value",
    "activity": "table_name, changes, updates, deletes",
}
FIRST = [record(1, "I", 1, "Ann"), record(2, "I", 2, "Bob"), record(3, "I", 3, "Cid")]
SECOND = [record(4, "B", 1, "Ann"), record(4, "U", 1, "Eva"), record(5, "D", 2, "Bob")]
FIRST_VERSIONS: dict[str, str] = {}
"""Of each table, its version after the first batch."""
THIRD = [record(6, "B", 1, "Eva"), record(6, "U", 1, "Ida")]


@pytest.fixture
def people(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> People:
    """All tables after two batches."""
    project = make_dbt_project(tmp_path, schema="restored")
    people = start(project, spark, table_format, {**MODELS, **ACTIVITY})
    for table in (*TABLES, "changes_rejected", "activity"):
        spark.sql(f"drop table if exists {people.name(table)}")
    spark.sql(f"drop table if exists {project.schema}.afterimage_progress")
    people.land(PEOPLE, FIRST)
    project("run")
    FIRST_VERSIONS.update({table: version(people, table) for table in COLUMNS})
    people.append(PEOPLE, SECOND)
    project("run")
    return people


def version(people: People, table: str) -> str:
    found = format_named(people.table_format).version(people.spark, people.name(table))
    return str(found)


def restore(people: People, table: str) -> None:
    """The table as it was after the first batch."""
    name, to = people.name(table), FIRST_VERSIONS[table]
    statement = {
        "iceberg": f"call system.set_current_snapshot('{name}', {to})",
        "delta": f"restore table {name} to version as of {to}",
    }
    people.spark.sql(statement[people.table_format])


def contents(people: People) -> dict[str, list[tuple[Any, ...]]]:
    for table in COLUMNS:
        people.spark.sql(f"refresh table {people.name(table)}")
    return {table: people.rows(table, columns, columns) for table, columns in COLUMNS.items()}


def rebuilt(people: People) -> dict[str, list[tuple[Any, ...]]]:
    """What the tables hold if everything is built at once."""
    people.dbt("run", "--full-refresh", rebuild_changes=True)
    return contents(people)


def set_progress(people: People, change: str, model: str) -> None:
    table = f"{people.dbt.schema}.afterimage_progress"
    people.spark.sql(f"update {table} set {change} where model = 'people_{model}'")


@pytest.mark.parametrize("tables", [("history",), ("current", "field_changes", "activity")])
def test_a_mart_that_was_restored_to_an_earlier_version_gets_its_batches_back(
    people: People, tables: tuple[str, ...]
) -> None:
    """With the next run, whether that has a batch or not."""
    before = contents(people)
    for table in tables:
        restore(people, table)
    assert contents(people) != before
    people.dbt("run")
    assert contents(people) == before
    for table in tables:
        restore(people, table)
    people.append(PEOPLE, THIRD)
    people.dbt("run")
    with people.untouched():
        people.dbt("run")
    assert contents(people) == rebuilt(people)


def test_a_log_that_was_restored_to_an_earlier_version_stops_the_run(people: People) -> None:
    """A run would read what has landed since its last batch, and the batches before stay lost."""
    before = contents(people)
    restore(people, "changes")
    people.append(PEOPLE, THIRD)
    with people.untouched():
        message = people.dbt.error_of("run")
    assert f"{people.name('changes')} was restored to an earlier version, or replaced" in message
    command = re.search(r'Fix: restore that version: afterimage spark-sql -e "(.*?)"; or', message)
    assert command, message
    people.spark.sql(command[1])
    people.dbt("run")
    assert len(contents(people)["changes"]) == len(before["changes"]) + 1
    restore(people, "changes")
    assert "or rebuild the log from the raw tables: dbt run --select people_changes+" in message
    people.dbt("run", "--select", "people_changes+", rebuild_changes=True)
    assert contents(people) == rebuilt(people)


@pytest.mark.nightly
def test_a_restored_log_records_again_what_the_raw_tables_still_have(people: People) -> None:
    """As docs/operations.md says, where neither the lost version nor all raw records are left."""
    restore(people, "changes")
    progress = f"{people.dbt.schema}.afterimage_progress"
    people.spark.sql(f"delete from {progress} where model = 'people_changes'")
    people.append(PEOPLE, THIRD)
    marts = ("--full-refresh", "--select", "people_changes+")
    people.dbt("run", *marts, backfill_from="2026-03-01")
    assert contents(people) == rebuilt(people)


def test_tables_that_were_compacted_expired_or_rebuilt_are_as_their_progress_says(
    people: People,
) -> None:
    for table in COLUMNS:
        limits = Limits(max_files=1000, keep_days=0)
        compact(people.spark, people.name(table), people.table_format, limits)
    with people.untouched():
        people.dbt("run")
    people.dbt("run", "--full-refresh", "--select", "people_current", "people_field_changes")
    with people.untouched():
        people.dbt("run")


@pytest.mark.nightly
@pytest.mark.parametrize("models", [("history",), ("current", "field_changes")])
def test_progress_after_the_last_batch_of_the_input_stops_no_mart(
    people: People, models: tuple[str, ...]
) -> None:
    """Such as that of a run whose clock was ahead, over a log that was dropped and built again."""
    for model in models:
        set_progress(people, "recorded_at = recorded_at + interval 1 day", model)
    people.append(PEOPLE, THIRD)
    people.dbt("run")
    with people.untouched():
        people.dbt("run")
    assert contents(people) == rebuilt(people)


@pytest.mark.nightly
def test_batches_that_were_cut_off_are_queried(people: People) -> None:
    for model in ("changes", "history", "current", "field_changes"):
        set_progress(people, "batch = substr(batch, 1, 30)", model)
    people.append(PEOPLE, THIRD)
    people.dbt("run")
    assert contents(people) == rebuilt(people)


@pytest.mark.nightly
@pytest.mark.parametrize("text", ["substr(raw_version, 1, 30)", """'{"tables": [1]}'"""])
def test_a_raw_version_that_was_cut_off_stops_the_run(people: People, text: str) -> None:
    """Which records were read is not known, so late ones could be missed."""
    set_progress(people, f"raw_version = {text}", "changes")
    people.append(PEOPLE, THIRD)
    with people.untouched():
        message = people.dbt.error_of("run")
    assert "afterimage_progress: `raw_version` of the model people_changes" in message
    assert "it was cut off or changed" in message
    assert "Fix: rebuild the log: dbt run --select people_changes+ --vars '" in message
    people.dbt("run", "--select", "people_changes+", rebuild_changes=True)
    with people.untouched():
        people.dbt("run")
    assert contents(people) == rebuilt(people)
