"""What stops a run: the message, and that no table was written to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.functional.dbt_project import DbtProject
from tests.functional.people import HEADERS, LATER, PEOPLE_LATER, STAGING, People, seq, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_changed_key_stops_the_run(people: People) -> None:
    people.declare(key=["id", "name"])
    with people.untouched():
        of_log = people.dbt.error_of("run", "--select", "people_changes")
        of_mart = people.dbt.error_of("run", "--select", "people_current")
    people.declare()
    assert (
        "people.people_changes: the `key` of source table raw.people__ct is [id, name], and the "
        "table was built with [id]. Nothing was written. Fix: restore the setting, or rebuild the "
        "log: dbt run --vars '{rebuild_changes: true}' --select people_changes+."
    ) in of_log
    assert (
        "people.people_current: the `key` of source table raw.people__ct is [id, name], and the "
        "table was built with [id]. Nothing was written. Fix: restore the setting, or rebuild the "
        "table: dbt run --full-refresh --select people_current+."
    ) in of_mart


def test_a_rebuild_that_is_refused_leaves_the_key_as_it_was(people: People) -> None:
    people.declare(key=["id", "name"])
    people.land(PEOPLE_LATER, LATER[2:])
    with people.untouched():
        message = people.dbt.error_of("run", "--select", "people_changes", rebuild_changes=True)
    people.declare()
    people.land(PEOPLE_LATER, LATER)
    assert "the raw table lacks 2 records that the log was built from" in message


def test_changed_tracked_columns_stop_the_run(people: People) -> None:
    people.declare(ignore=["score"])
    with people.untouched():
        message = people.dbt.error_of("run", "--select", "people_history")
    people.declare()
    assert (
        "people.people_history: the columns that make a version changed. Source table "
        "raw.people__ct says `ignore: [score]`: [name, note, fee, city], and the table was built "
        "with neither `track` nor `ignore`: [name, note, score, fee, city]. Nothing was written."
    ) in message


def test_a_type_that_cannot_be_widened_stops_the_run(people: People) -> None:
    changed = PEOPLE_LATER | {"fee": "decimal(9,4)"}
    message = people.refusal_of(changed, [*LATER, (seq(9), "D", 1, *[None] * 4)])
    assert (
        "people.people_changes: the column `fee` is decimal(9,2) in the table and decimal(9,4) "
        "in staging."
    ) in message
    assert "Fix: give the column its old type as `data_type` in the source's `columns`" in message


def test_a_key_column_that_is_gone_stops_the_run(people: People) -> None:
    renamed = {"person" if name == "id" else name: kind for name, kind in PEOPLE_LATER.items()}
    message = people.refusal_of(renamed, LATER)
    assert (
        "people.people_changes: the `key` of source table raw.people__ct names `id`, which is "
        "none of its data columns: person, name, score, fee, city. Nothing was written."
    ) in message


@pytest.mark.nightly
def test_a_setting_that_names_no_column_stops_the_run(people: People) -> None:
    for setting, name in (("ignore", "scor"), ("track", "Score"), ("key", "ID")):
        people.declare(**{setting: [name]})
        with people.untouched():
            message = people.dbt.error_of("run", "--select", "people_changes")
        right = "id" if setting == "key" else "score"
        assert (
            f"people.people_changes: the `{setting}` of source table raw.people__ct names `{name}`,"
            " which is none of its data columns: id, name, score, fee, city"
        ) in message
        assert f"Did you mean `{right}`? Nothing was written. Fix: correct the name" in message
    # the source has no such column any more, but the log has it
    people.declare(ignore=["note"])
    people.dbt("run", "--select", "people_changes")
    people.declare()


def test_a_table_of_another_version_stops_the_run(people: People) -> None:
    name = people.name("current")
    people.spark.sql(f"alter table {name} set tblproperties ('afterimage.layout' = '99')")
    with people.untouched():
        message = people.dbt.error_of("run", "--select", "people_current")
    people.spark.sql(f"alter table {name} set tblproperties ('afterimage.layout' = '1')")
    assert (
        f"{name} was made by another version of this project: its layout is 99, and this version "
        "writes layout 1. Nothing was written. Fix: go back to the version that made it (pip "
        "install its wheel, then `dbt deps`), or rebuild the table: dbt run --full-refresh "
        "--select people_current+."
    ) in message


def test_a_session_that_is_not_in_utc_stops_the_run(people: People, tmp_path: Path) -> None:
    profiles = yaml.safe_load((people.dbt.profiles / "profiles.yml").read_text(encoding="utf-8"))
    parameters = profiles["afterimage"]["outputs"][people.table_format]["server_side_parameters"]
    parameters["spark.sql.session.timeZone"] = "Europe/Rome"
    (tmp_path / "profiles.yml").write_text(yaml.safe_dump(profiles), encoding="utf-8")
    with people.untouched():
        message = replace(people.dbt, profiles=tmp_path).error_of("run")
    people.spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert "the Spark session's time zone is Europe/Rome" in message
    assert "Set `spark.sql.session.timeZone: UTC`" in message


MASKED = {**HEADERS, "header__change_mask": "string", "id": "int", "name": "string"}


def test_a_renamed_column_of_a_table_with_masks_stops_the_run(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path: Path,
    table_format: str,
) -> None:
    """Behind three headers `id` is bit 3 and `name`, which becomes `title`, bit 4: hex 10."""
    dbt = make_dbt_project(tmp_path, schema="masked")
    people = start(dbt, spark, table_format, STAGING)
    people.land(MASKED, [(seq(1), "U", "10", 1, "Ann")])
    dbt("run")
    renamed = {"title" if name == "name" else name: kind for name, kind in MASKED.items()}
    people.land(renamed, [(seq(1), "U", "10", 1, "Ann")])
    properties = "show tblproperties masked.stg_people"
    before = spark.sql(properties).collect()
    message = dbt.error_of("run")
    assert spark.sql(properties).collect() == before
    assert (
        "The change masks of source table raw.people__ct no longer fit its columns: place 1 was "
        "`name` and is `title`."
    ) in message
    assert "If the bits stayed where they were: [id, title]." in message
    people.declare(mask_columns=["id", "title"])
    dbt("run")
    rows = spark.sql("select title, declared_changed_columns from masked.stg_people").collect()
    assert [tuple(row) for row in rows] == [("Ann", ["title"])]
