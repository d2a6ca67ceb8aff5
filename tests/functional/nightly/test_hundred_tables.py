"""A hundred raw tables, added in one call and built in one run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.functional.dbt_project import DbtProject
from tests.functional.people import seq
from tests.functional.project_files import write_settings
from tests.functional.test_add_table import add_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RAW = "hundred_raw"
TABLES = 100


def land(spark: SparkSession, table_format: str) -> None:
    """Tables of Qlik with one to five data columns; row 1 is updated, row 2 deleted."""
    spark.sql(f"create schema if not exists {RAW}")
    for number in range(TABLES):
        columns = [f"column_{place}" for place in range(1, number % 5 + 2)]
        kinds = ", ".join(f"{name} string" for name in columns)
        spark.sql(
            f"create table {RAW}.table_{number}__ct (header__change_seq string, "
            f"header__change_oper string, table_{number}_id int, {kinds}) using {table_format}"
        )
        records = [(1, "I", 1, "a"), (2, "I", 2, "a"), (3, "B", 1, "a"), (3, "U", 1, "b")]
        rows = [
            f"('{seq(place)}', '{oper}', {key}, {', '.join([repr(value)] * len(columns))})"
            for place, oper, key, value in [*records, (4, "D", 2, "a")]
        ]
        spark.sql(f"insert into {RAW}.table_{number}__ct values {', '.join(rows)}")


def test_a_hundred_tables_are_added_and_built(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> None:
    land(spark, table_format)
    write_settings(tmp_path)
    project = make_dbt_project(tmp_path, schema="hundred")
    keys = [
        argument
        for number in range(TABLES)
        for argument in ("--key", f"table_{number}=table_{number}_id")
    ]
    printed = add_table(project, "--all", RAW, *keys)
    assert printed.count("files written") == TABLES
    project("build")
    for number in range(TABLES):
        found = spark.sql(
            f"select table_{number}_id, column_1, opened_by, closed_by "
            f"from hundred.table_{number}_history order by 1, 2"
        ).collect()
        assert [tuple(row) for row in found] == [
            (1, "a", "I", "U"),
            (1, "b", "U", None),
            (2, "a", "I", "D"),
        ]
