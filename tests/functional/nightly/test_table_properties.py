"""Properties of tables: those of the format, what they do, and those that a project gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.storage.create import table_writer
from tests.functional.data_files import delta_log
from tests.functional.dbt_project import DbtProject
from tests.functional.people import MODELS, PEOPLE, TABLES, People, record, seq, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# version 3 keeps what is deleted in other files, which not all readers know
GIVEN: dict[str, dict[str, int | str]] = {
    "iceberg": {"format-version": 3, "write.metadata.previous-versions-max": 7},
    "delta": {"delta.deletedFileRetentionDuration": "interval 30 days"},
}
DEFAULT = {
    "iceberg": {"format-version": "2", "write.merge.mode": "merge-on-read"},
    "delta": {"delta.enableDeletionVectors": "true"},
}
# the property that says whether rows are marked; what the change log has, and what marts have
MERGE_ON_READ = {
    "iceberg": ("write.delete.mode", None, "merge-on-read"),
    "delta": ("delta.enableDeletionVectors", "false", "true"),
}


@pytest.fixture(scope="module")
def people(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table_format: str,
) -> People:
    """Two runs; properties are given for the history, one of which is not a project's to give."""
    dbt = make_dbt_project(tmp_path_factory.mktemp("properties"), schema="properties")
    properties = {**GIVEN[table_format], "afterimage.key": "none"}
    given = {"name": "people_history", "config": {"tblproperties": properties}}
    models = {**MODELS, "people_history.yml": {"version": 2, "models": [given]}}
    people = start(dbt, spark, table_format, models)
    first = [record(1, "I", 1, "Ann"), record(2, "I", 2, "Bob")]
    people.land(PEOPLE, first)
    dbt("run")
    people.land(PEOPLE, [*first, record(3, "B", 1, "Ann"), record(3, "U", 1, "Anna")])
    dbt("run")
    return people


def test_a_mart_has_the_properties_that_its_model_gives(people: People) -> None:
    given = {name: str(value) for name, value in GIVEN[people.table_format].items()}
    assert given.items() <= people.properties("history", "").items()
    assert people.properties("history")["afterimage.key"] == '["id"]'


def test_a_mart_without_them_has_those_of_its_format(people: People) -> None:
    found = people.properties("current", "").items()
    assert DEFAULT[people.table_format].items() <= found
    assert not GIVEN[people.table_format].items() & found


def test_rows_come_and_go_in_tables_of_either_kind(people: People) -> None:
    """The first one was closed, and the current one replaced."""
    assert people.rows("history", "name, valid_to_seq", "valid_from_seq") == [
        ("Ann", seq(3)),
        ("Bob", None),
        ("Anna", None),
    ]
    assert people.rows("current", "name", "name") == [("Anna",), ("Bob",)]


def test_only_tables_whose_rows_go_can_mark_them_as_deleted(people: People) -> None:
    """With each statement Delta checks all files of a table that can have deletion vectors."""
    marks, of_the_log, of_marts = MERGE_ON_READ[people.table_format]
    found = {name: people.properties(name, "").get(marks) for name in TABLES}
    assert found.pop("changes") == of_the_log
    assert set(found.values()) == {of_marts}


def test_many_small_batches_leave_few_lists_of_files(
    spark: SparkSession, table_format: str
) -> None:
    """Each statement reads them all before it reads a row."""
    spark.sql("create schema if not exists properties")
    table = "properties.numbers"
    table_writer(spark.range(1), table, table_format).createOrReplace()
    for _ in range(25):
        spark.range(1).writeTo(table).append()
    assert lists_of_files(spark, table, table_format) <= 10
    assert spark.table(table).count() == 26


def lists_of_files(spark: SparkSession, table: str, table_format: str) -> int:
    """Manifests of Iceberg; commits of Delta after its last checkpoint."""
    if table_format == "iceberg":
        return spark.sql(f"select * from {table}.manifests").count()
    log = delta_log(spark, table)
    checkpoint = json.loads((log / "_last_checkpoint").read_text(encoding="utf-8"))
    newest = max(int(file.stem) for file in log.glob("*.json"))
    return newest - int(checkpoint["version"])
