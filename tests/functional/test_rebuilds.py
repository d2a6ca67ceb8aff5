"""Rebuilds that are killed, and rebuilds that another run overlaps: no mart keeps the old rows.

An operator deletes a row of the log by hand, so that the marts before and after a rebuild differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.change_log.writing import log_writer
from dbt_afterimage.storage import create
from dbt_afterimage.storage.create import table_writer
from dbt_afterimage.storage.progress import read_progress, write_progress
from tests.functional.comparing import last_commits
from tests.functional.dbt_project import DbtProject
from tests.functional.people import PEOPLE, STAGING, People, record, start
from tests.functional.project_files import changes_model, history_model

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.both_formats, pytest.mark.delta_nightly]

MODELS = {
    **STAGING,
    **changes_model("people", "stg_people"),
    **history_model("people"),
    "people_current.sql": "{{ current(ref('people_history')) }}\n",
}
NAMES = ["Ann", "Bob"]


@pytest.fixture(scope="module")
def people(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> People:
    project = make_dbt_project(tmp_path_factory.mktemp("rebuilds"), schema="rebuilds")
    people = start(project, spark, table_format, MODELS)
    people.land(PEOPLE, [record(key, "I", key, name) for key, name in enumerate(NAMES, 1)])
    project("run")
    return people


def names(people: People) -> list[str]:
    people.spark.sql(f"refresh table {people.name('current')}")
    return [row[0] for row in people.rows("current", "name", "name")]


def delete_from_log(people: People, name: str) -> None:
    people.spark.sql(f"delete from {people.name('changes')} where name = '{name}'")


def test_a_run_after_a_rebuild_finds_nothing_new(people: People) -> None:
    people.dbt("run", rebuild_changes=True)
    progress = [f"{people.dbt.schema}.afterimage_progress"]
    before = last_commits(people.spark, progress, people.table_format)
    people.dbt("run")
    assert last_commits(people.spark, progress, people.table_format) == before


def test_a_rebuild_of_the_log_that_was_killed_is_known_to_the_next_run(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the raw table is the one that the log had read before."""
    delete_from_log(people, "Bob")
    people.dbt("run", "--full-refresh", "--select", "people_history", "people_current")
    assert names(people) == ["Ann"]

    def killed(*given: Any, **named: Any) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(log_writer, "write_progress", killed)
        people.dbt.error_of("run", rebuild_changes=True)
    assert names(people) == ["Ann"]
    people.dbt("run")
    assert names(people) == NAMES


def test_a_mart_built_while_its_history_is_replaced_is_rebuilt(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run builds it from the rows that are replaced a moment later."""
    progress = f"{people.dbt.schema}.afterimage_progress"
    delete_from_log(people, "Ann")

    def meanwhile(*given: Any, **named: Any) -> Any:
        applied = read_progress(people.spark, progress, "people_changes")
        write_progress(people.spark, progress, "people_current", applied, path="rebuild")
        return table_writer(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(create, "table_writer", meanwhile)
        people.dbt("run", "--full-refresh", "--select", "people_history")
    people.dbt("run", "--select", "people_current")
    assert names(people) == ["Bob"]
