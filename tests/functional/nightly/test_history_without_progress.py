"""History is published, but its run is killed before it records its progress: current sees it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.functional.dbt_project import DbtProject
from tests.functional.people import MODELS, PEOPLE, record, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TO_HISTORY = ("stg_people", "people_changes", "people_history")


def test_a_late_change_without_progress_does_not_replace_the_last_row(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path: Path,
    table_format: str,
) -> None:
    dbt = make_dbt_project(tmp_path, schema="history_without_progress")
    people = start(dbt, spark, table_format, MODELS)
    people.declare(keep_deleted=True)
    ann = [record(1, "I", 1, "Ann"), record(10, "B", 1, "Ann"), record(10, "U", 1, "Bea")]
    people.land(PEOPLE, ann)
    dbt("run")
    newer = record(11, "I", 2, "Dan")
    people.land(PEOPLE, [*ann, newer])
    dbt("run", "--select", *TO_HISTORY)
    late = [record(5, "B", 1, "Ann"), record(5, "U", 1, "Cleo")]
    people.land(PEOPLE, [*ann, newer, *late])
    dbt("run", "--select", *TO_HISTORY)
    progress = "history_without_progress.afterimage_progress"
    spark.sql(f"refresh table {progress}")
    of_history = f"select max(recorded_at) from {progress} where model = 'people_history'"
    killed = spark.sql(of_history).collect()[0][0]
    spark.sql(
        f"delete from {progress} where model = 'people_history' "
        f"and recorded_at = timestamp '{killed}'"
    )

    dbt("run", "--select", "people_current")
    assert people.rows("history", "name", "valid_from_seq") == [
        ("Ann",),
        ("Cleo",),
        ("Bea",),
        ("Dan",),
    ]
    assert people.rows("current", "id, name, is_deleted", "id") == [
        (1, "Bea", False),
        (2, "Dan", False),
    ]
