"""dbt runs in a driver that spark-submit starts on a cluster, by the command of docs/spark.md."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.functional.dbt_project import DbtProject
from tests.functional.lake import Lake
from tests.functional.pages import section_of
from tests.functional.people import MODELS, PEOPLE, record, start
from tests.functional.standalone import (
    HOST,
    parameters_of_cluster,
    standalone_cluster,
    without_jars_of_tests,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
MEMORY = "900m"


def documented_command(master: str, project: Path, packages: str) -> list[str]:
    """spark-submit as the page has it, with this cluster, project and packages, little memory."""
    page = section_of("docs/spark.md", "## spark-submit, operators, containers")
    (shown,) = re.findall(r"^\$ (spark-submit .*?)^```", page, re.S | re.M)
    given = shlex.split(shown.replace("\\\n", " "))
    replaced = {
        "spark-submit": str(Path(sys.executable).with_name("spark-submit")),
        "yarn": master,
        "run_dbt.py": str(ROOT / "examples" / "deploy" / "run_dbt.py"),
        "/opt/project": str(project),
        given[given.index("--packages") + 1]: packages,
    }
    assert replaced.keys() <= set(given)
    program, *rest = (replaced.get(word, word) for word in given)
    settings = {
        "spark.driver.host": HOST,
        "spark.driver.memory": "1g",
        "spark.executor.memory": MEMORY,
    }
    confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    return [program, *confs, *rest]


def test_dbt_builds_in_a_driver_that_spark_submit_starts(
    spark: SparkSession,
    make_dbt_project: Callable[..., DbtProject],
    profiles: Path,
    table_format: str,
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    people = start(make_dbt_project(project, schema="submitted"), spark, table_format, MODELS)
    people.land(PEOPLE, [record(1, "I", 1, "Ann"), record(2, "D", 1, "Ann")])
    cluster_folder = tmp_path / "cluster"
    cluster_folder.mkdir()
    with standalone_cluster(cluster_folder, workers=1) as cluster:
        # the profile of a user of that cluster
        given = parameters_of_cluster(cluster.master, MEMORY)
        Lake(tmp_path, table_format).write_profile(profiles, given)
        packages = spark.conf.get("spark.jars.packages") or ""
        done = subprocess.run(
            documented_command(cluster.master, project, packages),
            cwd=tmp_path,
            env=without_jars_of_tests(
                AFTERIMAGE_TEST_SCHEMA="submitted",
                DBT_PROFILES_DIR=str(tmp_path),
                DBT_TARGET=table_format,
            ),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
        # its tasks ran there
        assert list(cluster_folder.glob("work1/app-*"))
    assert people.rows("history", "id, name, opened_by, closed_by", "id") == [(1, "Ann", "I", "D")]
