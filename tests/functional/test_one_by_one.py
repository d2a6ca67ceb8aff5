"""One dbt command per model, as Airflow's Cosmos and many CI jobs run a project."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.functional.comparing import assert_same
from tests.functional.dbt_project import DbtProject
from tests.functional.one_by_one import commands_one_by_one
from tests.functional.people import LATER, MODELS, PEOPLE_LATER, TABLES, People, seq, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


BATCHES = [
    LATER,
    [
        (seq(6), "B", 1, "Ann", 0.1, "1.25", "Oslo"),
        (seq(6), "U", 1, "Anna", 0.1, "1.25", "Oslo"),
        (seq(7), "I", 2, "Bo", 3.5, "2.00", None),
        # malformed
        ("seven", "I", 3, "Eve", 3.5, "2.00", None),
    ],
    [],
]
OF_PROJECT = {
    **MODELS,
    "change_activity.sql": "{{ change_activity() }}\n",
    "cities.sql": "{{ config(materialized='table') }}\n"
    "select c.id, p.country from {{ ref('people_current') }} as c\n"
    "join {{ ref('countries') }} as p using (city)\n",
    "../seeds/countries.csv": "city,country\nOslo,Norway\nRome,Italy\n",
    "tests.yml": {
        "version": 2,
        "models": [
            {"name": "people_history", "data_tests": ["consistent_versions"]},
            {
                "name": "people_current",
                "data_tests": [
                    {"current_equals_open": {"arguments": {"history": "ref('people_history')"}}}
                ],
            },
        ],
    },
}
MEASURED = ("max_lag_seconds", "average_lag_seconds", "total_lag_seconds", "rejects_recorded_at")
"""Columns of change_activity that depend on when a run was."""


def test_one_command_per_model_gives_what_one_build_gives(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> None:
    def make(schema: str) -> People:
        project = make_dbt_project(tmp_path / schema, schema=schema)
        return start(project, spark, table_format, OF_PROJECT)

    together, one_by_one = make("together"), make("one_by_one")
    for number, rows in enumerate(BATCHES):
        for people in (together, one_by_one):
            if not number:
                people.land(PEOPLE_LATER, rows)
            else:
                people.append(PEOPLE_LATER, rows)
        together.dbt("build")
        one_by_one.dbt("parse")
        before = one_by_one.versions() if not rows else {}
        for command in commands_one_by_one(one_by_one.dbt.scratch / "target" / "manifest.json"):
            one_by_one.dbt(*command)
        if not rows:
            # nothing is written, or recorded, without new records
            assert one_by_one.versions() == before
        for table in (*(f"people_{name}" for name in TABLES), "change_activity", "cities"):
            found, expected = (rows_of(spark, each, table) for each in (one_by_one, together))
            assert_same(found, expected, *MEASURED)
        # each publication is recorded once, by the command that made it
        for columns in ("model, path", "model, change_seq, changed_at"):
            progress = f"select {columns} from {{}}.afterimage_progress"
            assert_same(
                asdicts(spark, progress.format("one_by_one")),
                asdicts(spark, progress.format("together")),
            )


def rows_of(spark: SparkSession, people: People, table: str) -> list[dict[str, Any]]:
    return asdicts(spark, f"select * from {people.dbt.schema}.{table}")


def asdicts(spark: SparkSession, query: str) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in spark.sql(query).collect()]
