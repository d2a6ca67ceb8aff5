"""`afterimage erase`: the data is gone from every table and file, and does not come back.

The raw tables keep it: they are what a later run would bring it back from.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from dbt_afterimage.cli import app
from dbt_afterimage.storage.local_relation import local_rows
from tests.functional.dbt_project import DbtProject
from tests.functional.people import HEADERS, seq
from tests.functional.project_files import (
    changes_model,
    history_model,
    other_marts,
    write_files,
    write_settings,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.both_formats

COLUMNS = {**HEADERS, "id": "int", "name": "string", "city": "string", "score": "int"}
BASE = [(1, "Ann-load", "Oslo", 1), (2, "Bob-load", "Rome", 1)]
RECORDS = [
    # one person, whose name alone differs between two versions
    (seq(1), "B", 1, "Ann-load", "Oslo", 1),
    (seq(1), "U", 1, "Ann-first", "Oslo", 1),
    (seq(2), "B", 1, "Ann-first", "Oslo", 1),
    (seq(2), "U", 1, "Ann-second", "Oslo", 1),
    (seq(3), "B", 1, "Ann-second", "Oslo", 1),
    (seq(3), "U", 1, "Ann-second", "Bergen", 2),
    (seq(4), "I", 3, "Cid-first", "Lyon", 1),
    # a row that changes its key
    (seq(5), "B", 3, "Cid-first", "Lyon", 1),
    (seq(5), "U", 4, "Cid-second", "Lyon", 1),
    (seq(6), "I", 5, "Dan-first", "Kiel", 1),
    # rejected: the same place and operation with other content, and a record without a place
    (seq(3), "U", 1, "Ann-rejected", "Bergen", 2),
    ("no place", "I", 1, "Ann-malformed", "Bergen", 2),
]
NAMES = """\
{{ config(materialized='table', file_format='FORMAT') }}
select name from {{ ref('people_current') }}
"""
TABLES = ("changes", "changes_rejected", "history", "current", "field_changes")
TESTS = {
    "people_history": [
        "neighbours_differ",
        "unique_version",
        "intervals_do_not_overlap",
    ],
    "people_current": [
        {"current_equals_open": {"arguments": {"history": "ref('people_history')"}}}
    ],
}


class Erased:
    """A project of one table, and the command."""

    def __init__(self, dbt: DbtProject, spark: SparkSession, table_format: str) -> None:
        self.dbt, self.spark, self.table_format = dbt, spark, table_format
        self.raw = f"{dbt.schema}_raw"

    def prepare(self) -> None:
        base = {"kind": "frozen", "loaded_at": "2026-03-01 07:00:00"}
        meta = {"system": "qlik_change_table", "key": ["id"], "base": base}
        table = {"name": "people__ct", "config": {"meta": {"afterimage": meta}}}
        raw = {"name": "raw", "schema": self.raw, "tables": [table, {"name": "people"}]}
        stage = "{{ stage_qlik_change_table('raw', 'people__ct', base='people') }}\n"
        tested = [{"name": name, "data_tests": tests} for name, tests in TESTS.items()]
        write_settings(self.dbt.path)
        write_files(
            self.dbt.path / "models",
            {
                "sources.yml": {"version": 2, "sources": [raw]},
                "staging/stg_people.sql": stage,
                "tests.yml": {"version": 2, "models": tested},
                "names.sql": NAMES.replace("FORMAT", self.table_format),
                **changes_model("people", "stg_people"),
                **history_model("people"),
                **other_marts("people"),
            },
        )
        self.spark.sql(f"create schema if not exists {self.raw}")
        for name, columns in (("people__ct", COLUMNS), ("people", dict(list(COLUMNS.items())[2:]))):
            kinds = ", ".join(f"{column} {kind}" for column, kind in columns.items())
            self.spark.sql(f"drop table if exists {self.raw}.{name}")
            self.spark.sql(f"create table {self.raw}.{name} ({kinds}) using {self.table_format}")
        for table_name in (*(f"people_{name}" for name in TABLES), "names", "afterimage_erasures"):
            self.spark.sql(f"drop table if exists {self.dbt.schema}.{table_name}")
        self.spark.sql(f"drop table if exists {self.dbt.schema}.afterimage_progress")
        self.land(BASE, "people")
        # in two batches, so that there are old states
        self.land(RECORDS[:4])
        self.dbt("run")
        self.land(RECORDS[4:])
        self.dbt("run")

    def land(self, rows: list[tuple[Any, ...]], table: str = "people__ct") -> None:
        names = list(COLUMNS)[0 if table == "people__ct" else 2 :]
        kinds = ", ".join(f"{name} {COLUMNS[name]}" for name in names)
        local_rows(self.spark, rows, kinds).writeTo(f"{self.raw}.{table}").append()

    def build(self, *arguments: str) -> None:
        """With all data tests."""
        self.dbt("build", "--exclude", "names", *arguments)

    def __call__(self, *arguments: str) -> Result:
        with self.dbt.environment():
            result = CliRunner().invoke(app, ["erase", "people", *arguments])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def rows(self, table: str, columns: str, order: str) -> list[tuple[Any, ...]]:
        name = f"{self.dbt.schema}.people_{table}"
        self.spark.sql(f"refresh table {name.split()[0]}")
        found = self.spark.sql(f"select {columns} from {name} order by {order}")
        return [tuple(row) for row in found.collect()]

    def versions(self, key: int) -> list[tuple[Any, ...]]:
        return self.rows(f"history where id = {key}", "name, city, is_current", "valid_from_seq")


@pytest.fixture
def erased(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> Erased:
    project = Erased(make_dbt_project(tmp_path, schema="erased"), spark, table_format)
    project.prepare()
    return project


def texts_in_files(warehouse: Path, text: str) -> list[str]:
    """Data files of our tables that hold a text, whichever state of a table they belong to."""
    found = []
    for file in warehouse.rglob("*.parquet"):
        where = file.relative_to(warehouse).as_posix()
        if "erased_raw" in where or "_delta_log" in where or "names" in where:
            continue
        if "erased" in where and text in repr(pq.read_table(file).to_pylist()):
            found.append(where)
    return found


def test_columns_are_erased(erased: Erased, warehouse: Path) -> None:
    assert texts_in_files(warehouse, "Ann-")
    assert [row[:2] for row in erased.versions(1)] == [
        ("Ann-load", "Oslo"),
        ("Ann-first", "Oslo"),
        ("Ann-second", "Oslo"),
        ("Ann-second", "Bergen"),
    ]
    result = erased("--key", "1", "--columns", "NAME", "--yes")
    assert result.exit_code == 0, result.output
    assert "people__ct" in result.output
    assert "names; rebuild them" in result.output
    assert texts_in_files(warehouse, "Ann-") == []
    assert texts_in_files(warehouse, "Bob-load")
    # versions that the name alone told apart are one
    expected = [(None, "Oslo", False), (None, "Bergen", True)]
    assert erased.versions(1) == expected
    assert erased.rows("field_changes where id = 1", "column_name", "1") == [("city",), ("score",)]
    before = erased.rows("history", "*", "1")
    erased.build()
    assert erased.rows("history", "*", "1") == before
    for more in ("{}", "{backfill_from: '2026-03-01'}", "{rebuild_changes: true}"):
        erased.build("--full-refresh", "--vars", more)
        assert erased.versions(1) == expected
        assert erased.versions(2) == [("Bob-load", "Rome", True)]
    assert texts_in_files(warehouse, "Ann-first") == []
    assert texts_in_files(warehouse, "Ann-load") == []
