"""`afterimage land files`: each file once, with types that lose nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from dbt_afterimage.cli import app
from tests.functional.dbt_project import DbtProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.both_formats


@pytest.fixture
def land(
    make_dbt_project: Callable[..., DbtProject], spark: SparkSession, request: pytest.FixtureRequest
) -> Callable[..., Result]:
    """Lands files into a table of this test, and returns what the command has said."""
    table = f"landed_files.{request.node.name.split('[')[0]}"
    spark.sql("create schema if not exists landed_files")
    spark.sql(f"drop table if exists {table}")
    project = make_dbt_project(ROOT)

    def run(*arguments: str | Path) -> Result:
        with project.environment():
            given = ["land", "files", *map(str, arguments), "--table", table]
            return CliRunner().invoke(app, given, catch_exceptions=False)

    return run


def rows_of(spark: SparkSession, name: str) -> list[tuple[object, ...]]:
    rows = spark.table(f"landed_files.{name}").drop("_landed_file", "_landed_bytes")
    return sorted(tuple(map(str, row)) for row in rows.collect())


def test_types_are_those_by_which_no_value_changes(
    land: Callable[..., Result], spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text(
        "id,code,amount,day,at,flag,note,header__change_mask,big,empty\n"
        '1,007,10.5,2026-03-01,2026-03-01T08:00:00Z,true,"a ""b"",\nc",10,12345678901234567890,\n'
        "-2,8,0.25,2026-02-28,2026-03-01 09:00:00.5,False,,20,1,\n"
    )
    done = land(tmp_path / "a.csv")
    assert done.exit_code == 0, done.output
    types = dict(spark.table("landed_files.test_types_are_those_by_which_no_value_changes").dtypes)
    assert types == {
        "id": "bigint",
        "code": "string",
        "amount": "decimal(18,2)",
        "day": "date",
        "at": "timestamp",
        "flag": "boolean",
        "note": "string",
        "header__change_mask": "string",
        "big": "string",
        "empty": "string",
        "_landed_file": "string",
        "_landed_bytes": "bigint",
    }
    # fmt: off
    assert rows_of(spark, "test_types_are_those_by_which_no_value_changes") == [
        ("-2", "8", "0.25", "2026-02-28", "2026-03-01 09:00:00.500000", "False", "None", "20", "1",
         "None"),
        ("1", "007", "10.50", "2026-03-01", "2026-03-01 08:00:00", "True", 'a "b",\nc', "10",
         "12345678901234567890", "None"),
    ]
    # fmt: on


def test_each_file_once(land: Callable[..., Result], spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "exports of March"
    folder.mkdir()
    (folder / "1.csv").write_text("id,name\n1,a\n")
    assert "1 rows of 1 files landed; 0 files" in land(folder).output
    assert "0 rows of 0 files landed; 1 files" in land(folder).output
    (folder / "below").mkdir()
    (folder / "below" / "2.csv").write_text("name,id,added\nb,2,x\n")
    (folder / "below" / "3.csv").write_text("name,id,added\nc,3,y\n")
    done = land(folder)
    assert done.exit_code == 0, done.output
    assert "2 rows of 2 files landed; 1 files" in done.output
    assert rows_of(spark, "test_each_file_once") == [
        ("1", "a", "None"),
        ("2", "b", "x"),
        ("3", "c", "y"),
    ]
    (folder / "1.csv").write_text("id,name\n1,a\n4,d\n")
    refused = land(folder)
    assert refused.exit_code == 1
    assert "1 files have changed since they were landed" in refused.output
    assert "1.csv (12 bytes then, 16 now)" in refused.output
    assert len(rows_of(spark, "test_each_file_once")) == 3


@pytest.mark.parametrize(
    ("kind", "written"),
    [("parquet", "1.50"), ("json", "1.5")],
)
def test_other_kinds(
    land: Callable[..., Result], spark: SparkSession, tmp_path: Path, kind: str, written: str
) -> None:
    rows = spark.sql("select 1L as id, cast(1.5 as decimal(9, 2)) as amount, 'x' as name")
    rows.write.format(kind).save(f"{tmp_path}/out")
    done = land(tmp_path / "out")
    assert done.exit_code == 0, done.output
    stored = spark.table("landed_files.test_other_kinds")
    assert sorted(tuple(map(str, r)) for r in stored.select("id", "amount", "name").collect()) == [
        ("1", written, "x")
    ]


def test_what_cannot_be_landed_is_named_and_nothing_is_landed(
    land: Callable[..., Result], spark: SparkSession, tmp_path: Path
) -> None:
    good, bad = tmp_path / "1.csv", tmp_path / "2.csv"
    good.write_text("id,amount\n1,10.25\n")
    assert land(good, "--type", "amount=decimal(9,2)").exit_code == 0
    for text, said in (
        ("id,amount\n2,ten\n", "2.csv has the value 'ten'"),
        # one that a cast would round
        ("id,amount\n2,10.255\n", "2.csv has the value '10.255'"),
        ("id,amount\n2\n", "Spark cannot read the files"),
    ):
        bad.write_text(text)
        refused = land(bad)
        assert refused.exit_code == 1
        assert said in refused.output
    (tmp_path / "3.csv").write_text("amount,id\n3,3\n")
    bad.write_text("id,amount\n2,1\n")
    assert "Spark cannot read the files" in land(bad, tmp_path / "3.csv").output
    bad.rename(tmp_path / "2.xls")
    assert "of an unknown kind. Allowed: names that end in .csv" in land(tmp_path / "2.xls").output
    assert "does not exist" in land(tmp_path / "nope.csv").output
    assert "--type names nope" in land(tmp_path / "3.csv", "--type", "nope=int").output
    name = "test_what_cannot_be_landed_is_named_and_nothing_is_landed"
    assert rows_of(spark, name) == [("1", "10.25")]
    spark.sql(f"create or replace table landed_files.{name} as select 1 as id")
    assert "something else lands it" in land(good).output
