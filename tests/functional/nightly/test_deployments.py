"""How a project is deployed: two of them in one target, and what a run refuses before it writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.functional.dbt_project import DbtProject
from tests.functional.people import HEADERS, MODELS, People, start
from tests.functional.project_files import write_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MakeProject = Callable[..., DbtProject]
COLUMNS = {**HEADERS, "id": "int", "name": "string"}


@pytest.fixture
def make_people(
    make_dbt_project: MakeProject, spark: SparkSession, table_format: str, tmp_path: Path
) -> Callable[..., People]:
    """The small project in a folder of its own; `custom` is the schema of its models."""

    def make(schema: str, custom: str | None = None) -> People:
        folder = tmp_path / (custom or schema)
        people = start(make_dbt_project(folder, schema=schema), spark, table_format, MODELS)
        if custom is not None:
            file = folder / "dbt_project.yml"
            settings = yaml.safe_load(file.read_text(encoding="utf-8"))
            settings["models"]["+schema"] = custom
            write_files(folder, {"dbt_project.yml": settings})
        return people

    return make


def record(time: str, key: int, name: str) -> tuple[Any, ...]:
    return (f"20260301{time}00{'0' * 19}", "I", key, name)


def test_two_projects_with_schemas_of_their_own_share_a_target(
    make_people: Callable[..., People], spark: SparkSession
) -> None:
    """What one of them has read says nothing of the other, although their tables have one name."""
    crm, erp = make_people("shared", "crm"), make_people("shared", "erp")
    for people, source in ((crm, "crm_raw"), (erp, "erp_raw")):
        file = people.dbt.path / "models" / "sources.yml"
        text = file.read_text(encoding="utf-8").replace("shared_raw", source)
        file.write_text(text, encoding="utf-8")

    def land(source: str, rows: list[tuple[Any, ...]]) -> None:
        crm.land(COLUMNS, rows)
        spark.sql(f"create schema if not exists {source}")
        spark.sql(f"drop table if exists {source}.people__ct")
        spark.sql(
            f"create table {source}.people__ct using {crm.table_format} "
            "as select * from shared_raw.people__ct"
        )

    land("erp_raw", [record("080000", 1, "Eva")])
    erp.dbt("run")
    land("crm_raw", [record("200000", 1, "Cid")])
    crm.dbt("run")
    # far behind what the other project has read
    land("erp_raw", [record("080000", 1, "Eva"), record("090000", 2, "Fay")])
    erp.dbt("run")
    names = spark.sql("select name from shared_erp.people_current order by name").collect()
    assert [row["name"] for row in names] == ["Eva", "Fay"]
    names = spark.sql("select name from shared_crm.people_current").collect()
    assert [row["name"] for row in names] == ["Cid"]


def test_a_history_that_was_dropped_is_followed_when_it_is_recreated(
    make_people: Callable[..., People], spark: SparkSession
) -> None:
    people = make_people("dropped")
    people.land(COLUMNS, [record("080000", 1, "Ann")])
    people.dbt("run")
    people.land(COLUMNS, [record("080000", 1, "Ann"), record("090000", 2, "Bob")])
    people.dbt("run")
    spark.sql(f"drop table {people.name('history')}")
    people.dbt("run")
    columns = "id, name, recorded_at"
    assert people.rows("current", columns, "id") == people.rows("history", columns, "id")


def test_a_run_without_rows_is_refused(make_people: Callable[..., People]) -> None:
    people = make_people("no_rows")
    people.land(COLUMNS, [record("080000", 1, "Ann")])
    message = people.dbt.error_of("run", "--empty")
    assert "--empty is given" in message and "Fix: " in message


def test_a_schema_with_capital_letters_is_refused(make_people: Callable[..., People]) -> None:
    people = make_people("Capitals")
    message = people.dbt.error_of("run")
    assert "Capitals.people_" in message and "capital letters" in message and "Fix: " in message
