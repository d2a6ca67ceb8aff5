"""The demo of a bank branch: two batches of its log, and what the branch's tables hold then."""

from __future__ import annotations

from collections.abc import Callable
from datetime import time
from typing import TYPE_CHECKING, Any

import pytest

from afterimage_demo.soliddb.generate import BankData, generate_bank
from afterimage_demo.soliddb.tables import TABLES
from tests.functional.dbt_project import DbtProject
from tests.log_reader import read_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def data() -> BankData:
    return generate_bank()


@pytest.fixture(scope="module")
def demo(build_demo: Callable[[str], DbtProject]) -> DbtProject:
    """The demo after two batches, with a build after each."""
    return build_demo("soliddb")


@pytest.mark.parametrize("table", [name.lower() for name in TABLES])
def test_current_is_what_the_branch_holds(
    demo: DbtProject, spark: SparkSession, data: BankData, table: str
) -> None:
    key = TABLES[table.upper()].key.lower()
    rows = {row[key]: row for row in read_rows(spark.table(f"{demo.schema}.{table}_current"))}
    expected = {
        number: {name.lower(): as_spark(value) for name, value in row.items()}
        for number, row in data.truth[-1][table.upper()].items()
    }
    assert expected
    assert set(rows) == set(expected)
    for number, row in expected.items():
        assert {name: rows[number][name] for name in row} == row


def as_spark(value: Any) -> Any:
    return value.isoformat() if isinstance(value, time) else value


def test_malformed_records_are_rejected(
    demo: DbtProject, spark: SparkSession, data: BankData
) -> None:
    rows = spark.table(f"{demo.schema}.clients_changes_rejected").collect()
    assert {row["change_seq"]: row["reject_reason"] for row in rows} == data.rejected


def test_archived_transfers_stay(demo: DbtProject, spark: SparkSession) -> None:
    staged = spark.table(f"{demo.schema}.stg_soliddb__transfers").groupBy("change_oper").count()
    counts = {row["change_oper"]: row["count"] for row in staged.collect()}
    assert counts["N"] == 10
    assert "D" not in counts


def test_changed_numbers_are_a_delete_and_an_insert(demo: DbtProject, spark: SparkSession) -> None:
    query = f"select distinct opened_by, closed_by from {demo.schema}.accounts_history"
    found = {tuple(row) for row in spark.sql(query).collect()}
    assert {("I", "D"), ("I", None), ("U", "U")} <= found
    assert "K" not in {letter for pair in found for letter in pair}
