"""Records of SYS_LOG that are landed after the log was read beyond them, by dbt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from afterimage_demo.soliddb.log import SysLog, columns_snapshot, tables_snapshot
from tests.functional.dbt_project import DbtProject
from tests.functional.soliddb_project import SolidDbProject, write_project
from tests.functional.soliddb_server import table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2026, 3, 2, 9)
PEOPLE = table("PEOPLE", 500, "ID")
MODELS = ("--select", "stg_soliddb__log_of_people", "stg_soliddb__people", "people_changes")


@pytest.fixture
def project(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    table_format: str,
    tmp_path: Path,
) -> Iterator[SolidDbProject]:
    dbt = make_dbt_project(tmp_path, schema="soliddb_late")
    write_project(tmp_path)

    def drop() -> None:
        for name in ("sys_log", "sys_tables", "sys_columns"):
            spark.sql(f"drop table if exists raw_people.{name}")

    drop()
    yield SolidDbProject(dbt, spark, table_format)
    drop()


@pytest.mark.both_formats
def test_a_hole_that_is_filled_later_is_reported_and_rebuilt(project: SolidDbProject) -> None:
    log = SysLog()
    deliveries = []
    for number in range(4):
        begun = len(log.rows)
        log.begin(START + timedelta(minutes=number))
        log.insert(PEOPLE, {"ID": number})
        log.commit()
        deliveries.append(log.rows[begun:])
    first, hole, second, third = deliveries
    project.land_catalogue(
        "raw_people", tables_snapshot([PEOPLE], None), columns_snapshot([PEOPLE], None)
    )
    project.land_log("raw_people", [*first, *second])
    project.dbt("build", *MODELS)
    project.land_log("raw_people", hole)
    # a run says so, and the data test does in each build from then on
    messages = project.dbt.error_of("build", *MODELS)
    assert "records at 1 addresses were landed in the raw table" in messages
    assert "conserved" in messages
    project.land_log("raw_people", third)
    messages = project.dbt.error_of("build", *MODELS)
    assert "conserved" in messages
    assert project.rows("people_changes", "id") == [(0,), (2,), (3,)]
    project.dbt("build", *MODELS, rebuild_changes=True)
    assert project.rows("people_changes", "id") == [(0,), (1,), (2,), (3,)]
