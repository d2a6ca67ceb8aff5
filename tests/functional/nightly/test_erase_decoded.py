"""`afterimage erase` of a table whose changes are read from decoded messages or records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from afterimage_demo.soliddb.log import SysLog, columns_snapshot, tables_snapshot
from dbt_afterimage.cli import app
from tests.functional import soliddb_project
from tests.functional.dbt_project import DbtProject
from tests.functional.messages_project import Message, MessagesProject, write_project
from tests.functional.nightly.test_soliddb import PEOPLE, START
from tests.functional.soliddb_project import SolidDbProject
from tests.qlik_messages import change, refresh

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = "erased_messages_raw"
COLUMNS = {"id": "int", "name": "string"}


def person(number: int, name: str | None) -> dict[str, Any]:
    return {"id": number, "name": name}


@pytest.fixture
def project(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> MessagesProject:
    people = (SOURCE, {"key": ["id"]}, COLUMNS)
    write_project(tmp_path, {SOURCE: {}}, {"people": people, "pets": people})
    dbt = make_dbt_project(tmp_path, schema="erased_messages")
    return MessagesProject(dbt, spark, table_format)


def test_decoded_messages_are_erased_and_do_not_come_back(
    project: MessagesProject, spark: SparkSession
) -> None:
    sent = [
        refresh(person(1, "Ann-load")),
        refresh(person(2, "Bob-load")),
        change("UPDATE", 11, person(1, "Ann-first"), person(1, "Ann-load")),
        change("UPDATE", 12, person(2, "Bob-first"), person(2, "Bob-load")),
        change("INSERT", 13, person(3, "Cid-first")),
        # rejected: what it holds is in the raw text too
        change("INSERT", 14, person(1, "Ann-mask"), columnMask="100F"),
    ]
    project.land(SOURCE, [Message(topic, each) for topic in ("people", "pets") for each in sent])
    project.dbt("build")

    def erase(*arguments: str) -> None:
        with project.dbt.environment():
            result = CliRunner().invoke(app, ["erase", "people", *arguments, "--yes"])
        assert result.exit_code == 0, result.output

    def texts(table: str, of: str = "true") -> str:
        spark.sql(f"refresh table erased_messages.{table}")
        return repr(spark.table(f"erased_messages.{table}").where(of).collect())

    def check() -> None:
        decoded = texts(f"{SOURCE}_messages", "table_name = 'people'")
        assert "Ann-" not in decoded
        assert "Bob-first" in decoded
        assert "Cid-" not in decoded
        for table in ("people_changes", "people_changes_rejected", "people_history"):
            assert "Ann-" not in texts(table)
            assert "Cid-" not in texts(table)
        assert "Ann-first" in texts(f"{SOURCE}_messages", "table_name = 'pets'")
        assert "Ann-first" in texts("pets_history")
        versions = project.rows("people_history", "id, name, is_current", "1, valid_from_seq")
        assert versions == [(1, None, True), (2, "Bob-load", False), (2, "Bob-first", True)]

    erase("--key", "1", "--columns", "name")
    erase("--key", "3", "--rows")
    check()
    project.dbt("build")
    check()
    project.dbt("build", "--full-refresh", rebuild_changes=True)
    check()
    # the same row in a later full load is new data
    project.land(SOURCE, [Message("people", refresh(person(3, "Cid-first")))], minutes=1)
    project.land(SOURCE, [Message("people", change("INSERT", 20, person(4, "Dan")))], minutes=2)
    project.dbt("build")
    assert "Cid-first" in texts("people_history")


def test_decoded_records_of_a_log_are_erased_and_do_not_come_back(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> None:
    """Of solidDB, with a transaction that a later delivery ends."""
    soliddb_project.write_project(tmp_path)
    dbt = make_dbt_project(tmp_path, schema="erased_log")
    project = SolidDbProject(dbt, spark, table_format)
    models = "stg_soliddb__log_of_people+"

    def row(number: int, name: str) -> dict[str, Any]:
        return {"ID": number, "NAME": name, "SEEN_AT": None, "FEE": None}

    def texts(table: str) -> str:
        spark.sql(f"refresh table erased_log.{table}")
        return repr(spark.table(f"erased_log.{table}").collect())

    def check() -> None:
        decoded = texts("stg_soliddb__log_of_people")
        assert "Ann-" not in decoded
        assert "Bob-first" in decoded
        for table in ("people_changes", "people_changes_rejected", "people_history"):
            assert "Ann-" not in texts(table)

    def versions() -> list[tuple[Any, ...]]:
        return project.rows("people_history", "id, name, is_current", "1, valid_from_seq")

    log = SysLog()
    log.begin(START)
    log.insert(PEOPLE, row(1, "Ann-first"))
    log.insert(PEOPLE, row(2, "Bob-first"))
    log.update(PEOPLE, row(1, "Ann-first"), row(1, "Ann-second"))
    log.commit()
    project.land_catalogue(
        "raw_people", tables_snapshot([PEOPLE], None), columns_snapshot([PEOPLE], None)
    )
    project.land_log("raw_people", log.rows)
    dbt("run", "--select", models)
    assert "Ann-" in texts("stg_soliddb__log_of_people")
    with dbt.environment():
        result = CliRunner().invoke(app, ["erase", "people", "--key", "1", "--rows", "--yes"])
    assert result.exit_code == 0, result.output
    check()
    assert versions() == [(2, "Bob-first", True)]

    log.rows = []
    log.begin(START)
    log.update(PEOPLE, row(2, "Bob-first"), row(2, "Bob-second"))
    log.commit()
    project.land_log("raw_people", log.rows)
    dbt("run", "--select", models)
    for more in ({}, {"rebuild_changes": True}):
        check()
        assert versions() == [(2, "Bob-first", False), (2, "Bob-second", True)]
        dbt("run", "--full-refresh", "--select", models, **more)
    check()
