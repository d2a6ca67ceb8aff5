"""Raw tables that a source declares and that do not exist: what a run says of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.functional.dbt_project import DbtProject
from tests.functional.messages_project import MESSAGES_MODEL
from tests.functional.project_files import write_files, write_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RAW = "missing_raw"
QLIK = {"system": "qlik_change_table", "key": ["id"]}
OPENEDGE = {"system": "openedge", "key": ["id"], "table_number": 1}
SOLIDDB = {"system": "soliddb", "key": ["id"]}
MESSAGES = {"system": "qlik_messages"}

# of each declared table its settings; the change tables that exist are landed below
TABLES: dict[str, dict[str, Any]] = {
    "ordrs__ct": {**QLIK, "declared": ["id"]},
    "orders__ct": {**QLIK, "base": {"kind": "frozen"}},
    "order": {},
    "cdc_orders": OPENEDGE,
    "cdc_traking": {},
    "clients": SOLIDDB,
    "sys_tables": {"system": "soliddb"},
    "sys_columns": {"system": "soliddb"},
}
LANDED = {
    "orders__ct": "header__change_seq string, header__change_oper string, id int",
    "orders": "id int",
    "cdc_orders": "`_Change-Sequence` bigint, `_Operation` int, `_Time-Stamp` timestamp, id int",
    "cdc_tracking": "`_Change-Sequence` bigint, `_Operation` int, `_Time-Stamp` timestamp",
    "messages": "topic string",
}
MODELS = {
    "staging/stg_typo.sql": "{{ stage_qlik_change_table('raw', 'ordrs__ct') }}",
    "staging/stg_base.sql": "{{ stage_qlik_change_table('raw', 'orders__ct', base='order') }}",
    "staging/stg_tracking.sql": "{{ stage_openedge('raw', 'cdc_orders', tracking='cdc_traking') }}",
    "staging/stg_elsewhere.sql": "{{ stage_qlik_change_table('elsewhere', 'orders__ct') }}",
    "staging/stg_clients.sql": "{{ stage_soliddb_table('raw', 'clients', log=ref('log')) }}",
    "log.sql": "{{ config(materialized='table') }} select 1 as id",
    "decoded.py": MESSAGES_MODEL.format(source="topics").replace('"messages")', '"mesages")'),
}


def of(settings: dict[str, Any]) -> dict[str, Any]:
    return {"meta": {"afterimage": settings}}


@pytest.fixture(scope="module")
def errors(
    make_dbt_project: Callable[..., DbtProject],
    tmp_path_factory: pytest.TempPathFactory,
    spark: SparkSession,
    table_format: str,
) -> str:
    """What one run says."""
    folder = tmp_path_factory.mktemp("missing")
    write_settings(folder)
    tables = []
    for name, given in TABLES.items():
        settings = dict(given)
        columns = [{"name": column} for column in settings.pop("declared", [])]
        tables.append(
            {"name": name, "columns": columns, "config": of(settings) if settings else {}}
        )
    sources = [
        {"name": "raw", "schema": RAW, "tables": tables},
        {
            "name": "elsewhere",
            "schema": "missing_rwa",
            "tables": [{"name": "orders__ct", "config": of(QLIK)}],
        },
        {
            "name": "topics",
            "schema": RAW,
            "tables": [{"name": "mesages", "config": of(MESSAGES)}],
        },
    ]
    files = {"models/sources.yml": {"version": 2, "sources": sources}}
    write_files(folder, {**files, **{f"models/{name}": text for name, text in MODELS.items()}})
    spark.sql(f"create schema if not exists {RAW}")
    for name, columns_of in LANDED.items():
        spark.sql(f"create table {RAW}.{name} ({columns_of}) using {table_format}")
    return make_dbt_project(folder, schema="missing").error_of("run")


@pytest.mark.parametrize(
    ("macro", "missing", "similar"),
    [
        ("`stage_qlik_change_table`: ", "ordrs__ct", "orders__ct"),
        ("`stage_qlik_change_table`: ", "order", "orders"),
        ("`stage_openedge`: ", "cdc_traking", "cdc_tracking"),
        ("`stage_soliddb_table`: ", "sys_tables", ""),
        ("", "mesages", "messages"),
    ],
)
def test_a_relation_that_does_not_exist_is_named_with_what_is_there(
    errors: str, table_format: str, macro: str, missing: str, similar: str
) -> None:
    catalog = {"iceberg": "lake", "delta": "spark_catalog"}[table_format]
    said = f"{RAW}.{missing} does not exist: schema {RAW} of catalog {catalog} has no such table"
    (line,) = [line for line in errors.splitlines() if said in line]
    assert f"{macro}" in line
    assert similar in line.partition("names there: ")[2]
    assert "Fix: " in line


def test_a_schema_that_does_not_exist_is_named_with_similar_ones(errors: str) -> None:
    said = "missing_rwa.orders__ct does not exist: catalog "
    (line,) = [line for line in errors.splitlines() if said in line]
    assert "has no schema missing_rwa. Similar names there: missing_raw" in line


def test_nothing_is_said_of_columns_and_no_traceback_is_shown(errors: str) -> None:
    assert "has no column" not in errors
    assert "Traceback" not in errors
