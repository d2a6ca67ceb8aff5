"""The change log gets a batch while history works on another one: that batch is for the next run.

The moment is set by hand: the rows of the later batch are put into the log when the run has
profiled it, and is about to read it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.history import run
from dbt_afterimage.history.versions import versions
from tests.functional.dbt_project import DbtProject
from tests.functional.people import MODELS, PEOPLE, record, seq, start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES = (
    [record(1, "I", 1, "Ann")],
    [record(2, "B", 1, "Ann"), record(2, "U", 1, "Bea")],
    [record(3, "B", 1, "Bea"), record(3, "U", 1, "Cleo")],
)


@pytest.mark.parametrize(
    ("schema", "options"),
    [
        ("moving", []),
        pytest.param("rebuilt", ["--full-refresh"]),
    ],
)
def test_what_is_appended_meanwhile_comes_with_the_next_run(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path: Path,
    table_format: str,
    monkeypatch: pytest.MonkeyPatch,
    schema: str,
    options: list[str],
) -> None:
    log, later = f"{schema}.people_changes", f"{schema}.later_batch"
    dbt = make_dbt_project(tmp_path, schema=schema)
    people = start(dbt, spark, table_format, MODELS)
    people.declare()
    first, second, third = BATCHES
    people.land(PEOPLE, first)
    dbt("run")
    for landed in ([*first, *second], [*first, *second, *third]):
        people.land(PEOPLE, landed)
        dbt("run", "--select", "stg_people", "people_changes")
    spark.sql(f"drop table if exists {later}")
    newest = f"recorded_at = timestamp '{_last_batch(spark, log)}'"
    spark.sql(f"create table {later} using {table_format} as select * from {log} where {newest}")
    spark.sql(f"delete from {log} where {newest}")

    moments: list[str] = []

    def meanwhile(*arguments: Any, **options: Any) -> Any:
        if not moments:
            moments.append("the log was profiled, and is not read yet")
            spark.sql(f"insert into {log} select * from {later}")
        return versions(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(run, "versions", meanwhile)
        dbt("run", "--select", "people_history", *options)
    assert moments
    expected = [("Ann", seq(1), seq(2), "I"), ("Bea", seq(2), None, "U")]
    columns, order = "name, valid_from_seq, valid_to_seq, opened_by", "valid_from_seq"
    assert people.rows("history", columns, order) == expected

    dbt("run", "--select", "people_history")
    assert people.rows("history", columns, order) == [
        ("Ann", seq(1), seq(2), "I"),
        ("Bea", seq(2), seq(3), "U"),
        ("Cleo", seq(3), None, "U"),
    ]


def _last_batch(spark: SparkSession, log: str) -> str:
    spark.sql(f"refresh table {log}")
    return str(spark.sql(f"select cast(max(recorded_at) as string) from {log}").collect()[0][0])
