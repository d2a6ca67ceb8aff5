"""dbt's configurations on models of our materializations: each works as dbt documents it.

Those that cannot work are refused: tests/unit/test_preflight.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from dbt_afterimage.cli import app
from tests.functional.dbt_project import DbtProject
from tests.functional.people import LATER, MODELS, PEOPLE_LATER, People, seq, start
from tests.functional.project_files import write_files
from tests.functional.soliddb_project import SolidDbProject, write_project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "configured"
HOOKED = f"{SCHEMA}.hooked"


def configured(name: str, **config: Any) -> dict[str, Any]:
    return {"name": name, "config": config}


LOG = configured("people_changes", alias="persons_changes", schema="logs")
MODELS_OF_PROJECT = {
    **MODELS,
    # with its data test
    "people_changes.yml": {
        "version": 2,
        "models": [{**MODELS["people_changes.yml"]["models"][0], **LOG}],
    },
    "change_activity.sql": "{{ change_activity() }}\n",
    "config.yml": {
        "version": 2,
        "models": [
            configured("stg_people", alias="persons", schema="staged", tags=["layer"]),
            configured("people_history", alias="persons_history", schema="logs", tags=["layer"]),
            configured("people_current", alias="persons_current", schema="logs"),
            configured("people_field_changes", enabled=False),
            configured("change_activity", tags=["layer"]),
        ],
    },
}
PLACES = {
    "stg_people": f"{SCHEMA}_staged.persons",
    "people_changes": f"{SCHEMA}_logs.persons_changes",
    "people_history": f"{SCHEMA}_logs.persons_history",
    "people_current": f"{SCHEMA}_logs.persons_current",
    "change_activity": f"{SCHEMA}.change_activity",
}


@pytest.fixture(scope="module")
def people(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> People:
    """Built twice: six records, then one more."""
    project = make_dbt_project(tmp_path_factory.mktemp(SCHEMA), schema=SCHEMA)
    people = start(project, spark, table_format, MODELS_OF_PROJECT)
    hook_all_models(project, spark, table_format)
    people.land(PEOPLE_LATER, LATER)
    project("build")
    people.append(PEOPLE_LATER, [(seq(6), "D", 1, "Ann", 0.1, "1.25", "Oslo")])
    project("build")
    return people


def hook_all_models(project: DbtProject, spark: SparkSession, table_format: str) -> None:
    """Let each model add itself to `HOOKED` before it is built, and with its rows afterwards."""
    file = project.path / "dbt_project.yml"
    hooks = {
        "+pre-hook": f"insert into {HOOKED} values ('{{{{ this }}}}', null)",
        "+post-hook": f"insert into {HOOKED} select '{{{{ this }}}}', count(*) from {{{{ this }}}}",
    }
    models = "".join(f"  {name}: {json.dumps(hook)}\n" for name, hook in hooks.items())
    text = file.read_text(encoding="utf-8")
    hooked = text.replace("models:\n", f"models:\n{models}", 1)
    write_files(project.path, {"dbt_project.yml": hooked})
    spark.sql(f"create schema if not exists {SCHEMA}")
    spark.sql(f"drop table if exists {HOOKED}")
    spark.sql(f"create table {HOOKED} (relation string, found bigint) using {table_format}")


def test_hooks_run_before_and_after_each_model(people: People) -> None:
    found = people.spark.table(HOOKED).collect()
    # records, changes, versions, rows and hours after each of the two runs
    after = {"persons": (6, 7), "persons_changes": (5, 6), "persons_history": (4, 4)}
    after |= {"persons_current": (2, 1), "change_activity": (1, 1)}
    assert sorted(map(tuple, found), key=str) == sorted(
        [(place, None) for place in PLACES.values() for _ in range(2)]
        + [(place, n) for place in PLACES.values() for n in after[place.partition(".")[2]]],
        key=str,
    )


def test_tables_are_in_the_schemas_and_under_the_names_that_are_configured(people: People) -> None:
    versions = people.spark.table(PLACES["people_history"]).filter("is_current").collect()
    assert [row["id"] for row in versions] == [3_000_000_000]
    assert people.spark.table(PLACES["people_history"]).columns[0] == "persons_history_id"
    progress = people.spark.table(f"{SCHEMA}.afterimage_progress").collect()
    logged = {f"{SCHEMA}_logs.persons_{kind}" for kind in ("changes", "history", "current")}
    assert {row["model"] for row in progress} - {"change_activity"} == logged
    assert {row["path"] for row in progress if row["model"].endswith("_history")} == {
        "rebuild",
        "incremental",
    }


def test_a_tag_selects_and_a_disabled_model_is_not_built(people: People) -> None:
    built = people.dbt("run", "--select", "tag:layer")
    names = {result.node.name for result in built.results if result.node.resource_type == "model"}
    assert names == {"stg_people", "people_history", "change_activity"}
    assert not [name for name in people.dbt("ls") if "field_changes" in name]
    for schema in (SCHEMA, f"{SCHEMA}_logs"):
        tables = people.spark.sql(f"show tables in {schema}").collect()
        assert not [row for row in tables if "field_changes" in row["tableName"]]


def test_status_and_rejects_find_tables_in_other_schemas(people: People) -> None:
    with people.dbt.environment():
        done = CliRunner().invoke(app, ["status", "--json"], catch_exceptions=False)
    (status,) = json.loads(done.stdout)["tables"]
    assert status["table"] == f"{SCHEMA}_logs.persons"
    assert (status["path"], status["behind"], status["failed"]) == ("incremental", 0, [])
    assert status["newest_change_seq"] == seq(6)
    assert status["files"] > 0


def test_a_decoded_log_has_them_too(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> None:
    write_project(tmp_path)
    log = configured("stg_soliddb__log_of_people", alias="log", schema="logs", tags=["decoded"])
    write_files(tmp_path / "models", {"config.yml": {"version": 2, "models": [log]}})
    project = make_dbt_project(tmp_path, schema=SCHEMA)
    hook_all_models(project, spark, table_format)
    landed = SolidDbProject(project, spark, table_format)
    landed.land_log("raw_people", [])
    landed.land_catalogue("raw_people", [], [])
    for _ in range(2):
        project("run", "--select", "tag:decoded")
    place = f"{SCHEMA}_logs.log"
    assert {"change_seq", "recorded_at"} < set(spark.table(place).columns)
    found = [tuple(row) for row in spark.table(HOOKED).collect()]
    assert sorted(found, key=str) == [(place, 0), (place, 0), (place, None), (place, None)]
