"""Tables that an earlier version made are read on as they are, and nothing is rebuilt.

`tests/data/upgrade/before_0.1.0.tar.gz` has Delta tables, whose paths are relative: a raw table,
and what the project as it was on 2026-11-23 made of it in two runs. Its last record is the before
image of an update that had not landed.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.functional.dbt_project import DbtProject
from tests.functional.people import MODELS, People, seq, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.both_formats, pytest.mark.delta_only]

TABLES = Path(__file__).parents[1] / "data/upgrade/before_0.1.0.tar.gz"
# the update that was waited for, one that is late, and two on time
LANDED = [
    (seq(70), "U", 1, "Anne"),
    (seq(25), "I", 5, "Eve"),
    (seq(80), "D", 3, "Bob"),
    (seq(90), "I", 6, "Fay"),
]


@pytest.fixture
def people(
    make_dbt_project: Callable[..., DbtProject], spark: SparkSession, tmp_path: Path
) -> People:
    """The project, with the tables of the earlier version."""
    with tarfile.open(TABLES) as archive:
        # the argument `filter` came with Python 3.10.12 and 3.11.4
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path / "tables")
    for schema in (tmp_path / "tables").iterdir():
        spark.sql(f"create schema {schema.name}")
        for table in schema.iterdir():
            spark.sql(f"create table {schema.name}.{table.name} using delta location '{table}'")
    project = tmp_path / "project"
    return start(make_dbt_project(project, schema="upgraded"), spark, "delta", MODELS)


def test_an_upgrade_goes_on_with_the_tables(people: People, spark: SparkSession) -> None:
    unconcerned = "history where id in (2, 4)"
    columns = ", ".join(spark.table("upgraded.people_history").columns)
    assert "closed_by_transaction_id" not in columns
    before = people.rows(unconcerned, columns, "1")
    assert len(before) == 2
    people.dbt("build")
    values = ", ".join(map(str, LANDED))
    spark.sql(f"insert into upgraded_raw.people__ct values {values}")
    people.dbt("build")
    versions = people.rows(
        "history",
        "id, name, valid_from_seq, valid_to_seq, opened_by, closed_by",
        "id, valid_from_seq",
    )
    assert versions == [
        (1, "Ann", seq(10), seq(30), "I", "U"),
        (1, "Anna", seq(30), seq(70), "U", "U"),
        (1, "Anne", seq(70), None, "U", None),
        (2, "Bob", seq(20), seq(40), "I", "K"),
        (3, "Bob", seq(40), seq(80), "K", "D"),
        (4, "Dan", seq(50), seq(60), "I", "D"),
        (5, "Eve", seq(25), None, "I", None),
        (6, "Fay", seq(90), None, "I", None),
    ]
    assert people.rows(unconcerned, columns, "1") == before
    # a column that the earlier version did not have
    assert people.rows(unconcerned, "closed_by_transaction_id", "1") == [(None,), (None,)]
    assert people.rows("current", "id, name", "1") == [(1, "Anne"), (5, "Eve"), (6, "Fay")]
    assert people.rows("field_changes", "id, column_name, old_value, new_value", "change_seq") == [
        (1, "name", "Ann", "Anna"),
        (3, "id", "2", "3"),
        (1, "name", "Anna", "Anne"),
    ]
    assert people.rows("changes where change_oper = 'U'", "before.name, name", "change_seq") == [
        ("Ann", "Anna"),
        ("Bob", "Bob"),
        ("Anna", "Anne"),
    ]
    paths = spark.sql(
        "select distinct path from upgraded.afterimage_progress where recorded_at > "
        "(select max(recorded_at) from upgraded.people_history where id = 4) and path is not null"
    ).collect()
    assert {row["path"] for row in paths} == {"incremental", "replay"}
    assert people.rows("changes_rejected", "reject_reason", "1") == [("conflicting_duplicate",)]
