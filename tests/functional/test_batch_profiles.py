"""A batch is recorded with its profile, and marts plan from that instead of reading the log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.history import run as history_run
from dbt_afterimage.storage import progress as storage_progress
from dbt_afterimage.storage import progress_cache
from tests.functional.dbt_project import DbtProject
from tests.functional.people import MODELS, PEOPLE, People, record, seq, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TO_LOG = ("stg_people", "people_changes")
MARTS = ("people_history", "people_current", "people_field_changes")


@pytest.fixture
def begun(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> People:
    """All tables, after a first batch."""
    people = start(make_dbt_project(tmp_path, schema="batch_profiles"), spark, table_format, MODELS)
    for table in ("changes", "changes_rejected", "history", "current", "field_changes"):
        spark.sql(f"drop table if exists {people.name(table)}")
    spark.sql(f"drop table if exists {people.dbt.schema}.afterimage_progress")
    people.land(PEOPLE, [record(1, "I", 1, "Ann"), record(2, "I", 2, "Bob")])
    people.dbt("run")
    return people


def recorded_batches(people: People, model: str) -> list[dict[str, Any]]:
    """The recorded batches of a model, in their order."""
    rows = people.spark.sql(
        f"select batch from {people.dbt.schema}.afterimage_progress "
        f"where model = '{model}' and batch is not null order by recorded_at"
    ).collect()
    return [json.loads(row["batch"]) for row in rows]


def batches(people: People) -> list[str]:
    rows = people.rows("changes", "distinct cast(recorded_at as string)", "1")
    return [row[0] for row in rows]


def read_no_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    def profiled(*_: Any) -> None:
        raise AssertionError("the log was scanned for its profile")

    monkeypatch.setattr(history_run, "profile_of", profiled)


def test_a_batch_is_recorded_with_its_profile(begun: People) -> None:
    begun.append(
        PEOPLE,
        [
            record(3, "I", 3, "Cid"),
            record(4, "B", 1, "Ann"),
            record(4, "U", 9, "Ann"),
            record(5, "D", 2, "Bob"),
            # its before image has not come, so it waits
            record(6, "U", 3, "Cyd"),
        ],
    )
    begun.dbt("run")
    first, second = recorded_batches(begun, "people_changes")
    assert (first["after"], first["profile"]) == (None, None)
    assert second["after"] == batches(begun)[0]
    assert json.loads(second["profile"]) == {
        "changes": 3,
        "recorded_at": batches(begun)[1],
        "first_seq": seq(3),
        "change_seq": seq(5),
        "first_changed_at": "2026-03-01 08:00:00",
        "changed_at": "2026-03-01 08:00:00",
        "inserts": 1,
        "truncates": 0,
        "loads": 0,
        "key_changes": 1,
        "incomplete_key_changes": 0,
        "scopes": [],
        "columns": 5,
    }


@pytest.mark.nightly
def test_a_column_that_the_source_has_no_longer_is_recorded_as_unknown(begun: People) -> None:
    fewer = {name: kind for name, kind in PEOPLE.items() if name != "note"}
    begun.land(fewer, [(seq(3), "I", 3, "Cid", 0.5, "1.00")])
    begun.dbt("run")
    profile = json.loads(recorded_batches(begun, "people_changes")[-1]["profile"])
    assert profile["known"] == ["fee", "id", "name", "score"]
    assert recorded_batches(begun, "people_history")[-1]["unknown_columns"] == ["note"]
    begun.append(
        fewer, [(seq(4), "B", 1, "Ann", 0.5, "1.00"), (seq(4), "U", 1, "Abe", 0.5, "1.00")]
    )
    begun.dbt("run")
    assert begun.rows("history", "name, unknown_columns", "valid_from_seq, id")[2:] == [
        ("Cid", ["note"]),
        ("Abe", None),
    ]


@pytest.mark.delta_nightly
@pytest.mark.both_formats
def test_marts_plan_from_the_recorded_profiles(
    begun: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the command that has recorded it, and in a later one that finds two batches."""
    read_no_profile(monkeypatch)
    begun.append(PEOPLE, [record(3, "I", 3, "Cid")])
    begun.dbt("run")
    begun.append(PEOPLE, [record(4, "B", 3, "Cid"), record(4, "U", 3, "Cyd")])
    begun.dbt("run", "--select", *TO_LOG)
    begun.append(PEOPLE, [record(5, "D", 1, "Ann")])
    begun.dbt("run", "--select", *TO_LOG)
    begun.dbt("run", "--select", *MARTS)
    assert begun.rows("history", "id, name, closed_by", "valid_from_seq") == [
        (1, "Ann", "D"),
        (2, "Bob", None),
        (3, "Cid", "U"),
        (3, "Cyd", None),
    ]
    assert begun.rows("current", "id, name", "id") == [(2, "Bob"), (3, "Cyd")]
    changes = begun.rows("field_changes", "id, column_name, old_value, new_value", "change_seq")
    assert (3, "name", "Cid", "Cyd") in changes
    paths = begun.spark.sql(
        f"select distinct path from {begun.dbt.schema}.afterimage_progress where path <> 'rebuild'"
    ).collect()
    assert [row[0] for row in paths] == ["incremental"]


@pytest.mark.delta_nightly
@pytest.mark.both_formats
def test_marts_that_have_not_run_for_long_compare_all_keys(
    begun: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile history has removed a row, and the progress that tells so is deleted."""
    progress = f"{begun.dbt.schema}.afterimage_progress"
    to_history = [*TO_LOG, "people_history"]
    for change_seq in (1, 3):
        # the first one is late: at its change_seq the delete counts, so nothing was ever there
        operation = "D" if change_seq == 1 else "I"
        begun.append(PEOPLE, [record(change_seq, operation, change_seq, "Ann")])
        begun.dbt("run", "--select", *to_history)
    begun.spark.sql(f"delete from {progress} where model = 'people_history' and path = 'replay'")
    monkeypatch.setattr(progress_cache, "KEPT_DAYS", 1)
    begun.dbt("run", "--select", "people_current", "people_field_changes")
    assert begun.rows("current", "id, name", "id") == [(2, "Bob"), (3, "Ann")]


@pytest.mark.nightly
def test_a_batch_without_a_recorded_profile_is_queried(begun: People) -> None:
    """As one of an earlier version, or of a killed run."""
    begun.append(PEOPLE, [record(3, "I", 3, "Cid")])
    begun.dbt("run", "--select", *TO_LOG)
    begun.spark.sql(
        f"update {begun.dbt.schema}.afterimage_progress set batch = null "
        "where model = 'people_changes'"
    )
    begun.append(PEOPLE, [record(4, "I", 4, "Dan")])
    begun.dbt("run", "--select", *TO_LOG)
    begun.dbt("run", "--select", *MARTS)
    assert begun.rows("current", "id, name", "id") == [
        (1, "Ann"),
        (2, "Bob"),
        (3, "Cid"),
        (4, "Dan"),
    ]


@pytest.mark.nightly
@pytest.mark.both_formats
def test_a_progress_table_without_the_batch_column_gets_it(begun: People) -> None:
    progress = f"{begun.dbt.schema}.afterimage_progress"
    if begun.table_format == "delta":
        begun.spark.sql(
            f"alter table {progress} set tblproperties ('delta.columnMapping.mode' = 'name')"
        )
    begun.spark.sql(f"alter table {progress} drop column batch")
    begun.append(PEOPLE, [record(3, "I", 3, "Cid")])
    begun.dbt("run")
    assert begun.rows("current", "id, name", "id") == [(1, "Ann"), (2, "Bob"), (3, "Cid")]
    assert recorded_batches(begun, "people_changes")[-1]["after"] == batches(begun)[0]


@pytest.mark.both_formats
def test_a_run_records_its_progress_together(
    begun: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of history at once: one that is ahead of its progress is rebuilt."""
    begun.append(PEOPLE, [record(3, "I", 3, "Cid")])
    commits = []
    append_progress = progress_cache.append_progress

    def recorded(session: SparkSession, progress: str, published: Any) -> None:
        commits.append([model for model, _ in published])
        append_progress(session, progress, published)

    monkeypatch.setattr(progress_cache, "append_progress", recorded)
    begun.dbt("run")
    assert [models[-1] for models in commits[:-1]] == ["people_history"]
    assert sorted(model for models in commits for model in models) == [
        "people_changes",
        "people_current",
        "people_field_changes",
        "people_history",
    ]
    with begun.untouched():
        begun.dbt("run")


def test_progress_that_another_run_removes_meanwhile_counts(
    begun: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run rebuilds the history while this one has begun: current must be rebuilt, too."""
    begun.append(PEOPLE, [record(3, "I", 3, "Cid")])
    progress = f"{begun.dbt.schema}.afterimage_progress"
    next_batch = history_run.next_batch

    def meanwhile(*arguments: Any, **options: Any) -> Any:
        begun.spark.sql(f"delete from {progress} where model = 'people_current'")
        return next_batch(*arguments, **options)

    monkeypatch.setattr(history_run, "next_batch", meanwhile)
    begun.dbt("run")
    paths = begun.spark.sql(f"select path from {progress} where model = 'people_current'").collect()
    assert [row[0] for row in paths] == ["rebuild"]


@pytest.mark.nightly
def test_a_history_whose_rebuild_was_killed_is_built_again(
    begun: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are of a batch that was already in its progress, so nothing else would show it."""
    with monkeypatch.context() as patch:

        def killed(*_: Any, **__: Any) -> None:
            raise RuntimeError("killed")

        patch.setattr(storage_progress, "write_progress", killed)
        begun.dbt.error_of("run", "--full-refresh", "--select", "people_history")
    begun.append(PEOPLE, [record(3, "I", 3, "Cid")])
    begun.dbt("run")
    last = begun.spark.sql(
        f"select max_by(path, recorded_at) from {begun.dbt.schema}.afterimage_progress "
        "where model = 'people_history'"
    )
    assert last.collect()[0][0] == "rebuild"
    assert begun.rows("current", "id, name", "id") == [(1, "Ann"), (2, "Bob"), (3, "Cid")]
