"""dbt runs in a driver that spark-submit starts on a cluster, by the command of docs/spark.md."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tests.functional.dbt_project import DbtProject
from tests.functional.lake import Lake
from tests.functional.pages import section_of
from tests.functional.people import MODELS, PEOPLE, record, start
from tests.functional.standalone import (
    HOST,
    standalone_cluster,
    without_jars_of_tests,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]


def documented_command(given: Mapping[str, str]) -> list[str]:
    """spark-submit as the page has it, with other values of its options."""
    page = section_of("docs/spark.md", "## spark-submit, operators, containers")
    (shown,) = re.findall(r"^\$ (spark-submit .*?)^```", page, re.S | re.M)
    program, *words = shlex.split(shown.replace("\\\n", " "))
    for option, value in given.items():
        words[words.index(option) + 1] = value
    words[words.index("run_dbt.py")] = str(ROOT / "examples" / "deploy" / "run_dbt.py")
    settings = {"spark.driver.host": HOST, "spark.executor.memory": "900m"}
    confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    return [str(Path(sys.executable).with_name(program)), *confs, *words]


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
    # its target has another master, as that of a laptop has
    Lake(tmp_path, table_format).write_profile(profiles, {})
    with standalone_cluster(cluster_folder, workers=1) as cluster:
        command = documented_command(
            {
                "--master": cluster.master,
                "--packages": spark.conf.get("spark.jars.packages") or "",
                "--driver-memory": "1g",
                "--project-dir": str(project),
                "--profiles-dir": str(tmp_path),
                "--target": table_format,
            }
        )
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=without_jars_of_tests(AFTERIMAGE_TEST_SCHEMA="submitted"),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
        # its tasks ran there
        assert list(cluster_folder.glob("work1/app-*"))
    assert people.rows("history", "id, name, opened_by, closed_by", "id") == [(1, "Ann", "I", "D")]
