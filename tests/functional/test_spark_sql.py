"""`afterimage spark-sql`: a shell in the target's own catalog and schema, which can write."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.functional.dbt_project import DbtProject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


def test_statements_run_in_the_schema_of_the_target(
    make_dbt_project: Callable[..., DbtProject], spark: SparkSession
) -> None:
    spark.sql("create schema if not exists afterimage")
    project = make_dbt_project(ROOT)
    statements = (
        "create table of_the_shell (answer int); insert into of_the_shell values (42); "
        "select answer from of_the_shell"
    )
    with project.environment():
        done = subprocess.run(
            [sys.executable, "-m", "dbt_afterimage.cli", "spark-sql", "-e", statements],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "42"
    assert spark.table("afterimage.of_the_shell").count() == 1
    spark.sql("drop table afterimage.of_the_shell")
