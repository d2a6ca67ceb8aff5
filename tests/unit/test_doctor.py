"""`afterimage doctor`: what each check says, without Spark."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from dbt_afterimage.cli.commands.doctor import shown, summary
from dbt_afterimage.cli.commands.doctor.check import Check, failed_by
from dbt_afterimage.cli.commands.doctor.machine import (
    java_check,
    machine_checks,
    packages_check,
    space_check,
)
from dbt_afterimage.cli.commands.doctor.project import project_checks, tables_of
from dbt_afterimage.cli.commands.doctor.raw_tables import clock_findings, key_findings
from dbt_afterimage.cli.commands.doctor.spark_session import (
    address_check,
    catalog_check,
    code_checks,
    time_zone_check,
)
from dbt_afterimage.cli.support.raw_schema.schema import (
    Column,
    RawSchema,
    RawTable,
)
from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.spark import java

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ('openjdk version "17.0.12" 2024-07-16\nOpenJDK Runtime', "ok"),
        ('openjdk version "21.0.1"', "ok"),
        ('java version "1.8.0_392"', "failed"),
        ('openjdk version "11.0.2"', "failed"),
        ("", "failed"),
        (None, "failed"),
    ],
)
def test_java(said: str | None, state: str) -> None:
    check = java_check(said)
    assert check.state == state
    assert ("JAVA_HOME" in check.fix) == (state == "failed")


@pytest.mark.parametrize(("is_client", "state"), [(True, "ok"), (False, "failed")])
def test_a_client_of_a_server_needs_no_java(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_client: bool, state: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    monkeypatch.setenv("AFTERIMAGE_WAREHOUSE", str(tmp_path))
    found = {check.name: check.state for check in machine_checks(is_client=is_client)}
    assert found["Java"] == state


def test_packages_and_space_of_this_machine(tmp_path: Path) -> None:
    assert packages_check().state == "ok"
    assert "GiB free" in space_check(tmp_path / "not" / "there").text


@pytest.mark.parametrize(("zone", "state"), [("UTC", "ok"), ("Europe/Oslo", "failed")])
def test_time_zone(zone: str, state: str) -> None:
    assert time_zone_check(zone).state == state


def test_methods_that_java_only_interprets_are_a_warning() -> None:
    assert list(code_checks(8000)) == []
    (check,) = code_checks(65535)
    assert check.state == "warning"
    assert "65,535" in check.text
    assert 'spark.sql.codegen.hugeMethodLimit: "8000"' in check.fix


@pytest.mark.parametrize(
    ("implementation", "is_cached", "state"),
    [
        ("org.apache.iceberg.spark.SparkCatalog", False, "ok"),
        ("org.apache.iceberg.spark.SparkCatalog", True, "warning"),
        ("org.apache.spark.sql.delta.catalog.DeltaCatalog", True, "ok"),
        ("", True, "failed"),
    ],
)
def test_catalog(implementation: str, is_cached: bool, state: str) -> None:
    check = catalog_check("lake", implementation, is_cached=is_cached)
    assert check.state == state
    assert ("spark.sql.catalog.lake.cache-enabled" in check.fix) == (state == "warning")


def test_an_error_keeps_its_own_fix() -> None:
    check = failed_by(AfterimageError("It is missing.\nFix: land it."), "table", "another")
    assert check == Check("table", "failed", "It is missing.", "land it.")


def test_settings_of_the_manifest(tmp_path: Path) -> None:
    def source(name: str, meta: dict[str, Any]) -> dict[str, Any]:
        return {
            "unique_id": f"source.shop.sales.{name}",
            "source_name": "sales",
            "name": name,
            "schema": "sales",
            "identifier": name,
            "meta": meta,
            "columns": {},
        }

    good = {"afterimage": {"system": "qlik_change_table", "key": ["id"]}}
    bad = {"afterimage": {"system": "qlik_change_table", "keys": ["id"]}}
    sources = [source("orders__ct", good), source("bills__ct", bad), source("others", {})]
    manifest = tmp_path / "manifest.json"
    manifest.write_text(
        json.dumps({"sources": {each["unique_id"]: each for each in sources}}), encoding="utf-8"
    )
    tables = tables_of(tmp_path)
    assert [(table.name, table.settings is None) for table in tables] == [
        ("sales.bills__ct", True),
        ("sales.orders__ct", False),
    ]
    first, second = project_checks(tables, "")
    assert (first.state, second.state) == ("ok", "failed")
    assert "keys" in second.text
    assert second.fix


def test_a_project_without_tables_and_one_that_dbt_cannot_parse() -> None:
    (empty,) = project_checks([], "")
    (broken,) = project_checks([], "no such macro")
    assert (empty.state, broken.state) == ("warning", "failed")


RAW = RawTable(
    "orders__ct",
    (
        Column("header__change_seq", "string"),
        Column("header__change_oper", "string"),
        Column("header__change_mask", "string"),
        Column("id", "int"),
        Column("name", "string"),
    ),
)


class Counts:
    """A session that counts the rows of a table, and the different keys among them."""

    def __init__(self, rows: int, keys: int) -> None:
        self._row = (rows, keys)

    def sql(self, statement: str) -> Counts:
        return self

    def first(self) -> tuple[int, int]:
        return self._row


@pytest.mark.parametrize(
    ("rows", "keys", "key", "said"),
    [
        (0, 0, "id", None),
        (1, 1, "ID", None),
        (9, 9, "id", None),
        (9, 8, "id", "`key: ['id']` is not unique in the base table sales.orders"),
        (1, 0, "id", "is not unique"),
        (
            9,
            9,
            "idd",
            "names idd, which the base table sales.orders does not have; it has id, name",
        ),
    ],
)
def test_a_key_is_checked_in_the_base_table(rows: int, keys: int, key: str, said: str) -> None:
    base = RawTable("orders", (Column("id", "int"), Column("name", "string")))
    schema = RawSchema.of("sales", [RAW, base])
    session: Any = Counts(rows, keys)
    found = list(key_findings(session, "erp.orders__ct", [key], schema, RAW))
    assert [check.state for check in found] == (["failed"] if said else [])
    assert all(said in check.text for check in found)


@pytest.mark.parametrize(
    ("newest", "warns"),
    [
        ("20260302115959000000000000000000001", False),
        ("20260302120400000000000000000000001", False),
        ("20260302130000000000000000000000001", True),
        (None, False),
    ],
)
def test_a_clock_that_is_ahead(newest: str | None, warns: bool) -> None:
    assert bool(list(clock_findings("sales.orders", newest, NOON))) == warns


def test_what_the_terminal_shows() -> None:
    checks = [Check("Java", "ok", "17"), Check("time zone", "failed", "it is CET", "set UTC")]
    assert [shown(check) for check in checks] == [
        "ok       Java: 17",
        "failed   time zone: it is CET\n         Fix: set UTC",
    ]
    assert summary(checks) == "2 checks: 1 ok, 0 warnings, 1 failed"


@pytest.mark.parametrize(
    ("master", "host", "state"),
    [
        ("local[2]", "127.0.0.1", "ok"),
        ("local[2]", "192.0.2.2", "warning"),
        ("local[*]", "spark.example.com", "warning"),
        ("spark://host:7077", "192.0.2.2", "ok"),
    ],
)
def test_spark_on_one_machine_that_others_reach_is_a_warning(
    master: str, host: str, state: str
) -> None:
    check = address_check(master, host)
    assert (check.state, bool(check.fix)) == (state, state != "ok")
