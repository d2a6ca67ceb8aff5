"""Executors in processes of their own: a standalone cluster of one worker, on this machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest
import yaml

ROOT = Path(__file__).parents[2]

# The profile names Iceberg in `spark.jars.packages`; Avro is what a command fetches.
READ_ON_EXECUTOR = """\
import json, sys

from dbt_afterimage.dbt_spark.jars import avro_jars, give_to_spark
from dbt_afterimage.dbt_spark.session import live_session

give_to_spark(avro_jars())
folder, parameters = sys.argv[1], json.loads(sys.argv[2])
session = live_session(parameters)
session.range(3).write.format("avro").save(f"{folder}/avro")
session.sql("create table lake.db.numbers (id bigint) using iceberg")
session.read.format("avro").load(f"{folder}/avro").writeTo("lake.db.numbers").append()
print("rows:", session.table("lake.db.numbers").count(), session.sparkContext.master)
session.stop()
"""


@contextmanager
def running(name: str, arguments: list[str], log: Path, started: str) -> Iterator[str]:
    """A process of the cluster, on a free port; yields what its log says once it has started."""
    program = Path(pyspark.__file__).parent / "bin" / "spark-class"
    ports = ["--port", "0", "--webui-port", "0"]
    command = [str(program), f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", *ports]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, *arguments], stdout=output, stderr=output, cwd=log.parent
        )
    try:
        yield awaited(process, log, started)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def awaited(process: subprocess.Popen[bytes], log: Path, started: str) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(started, log.read_text(errors="replace"))
        if found:
            return found[0]
        time.sleep(0.1)
    raise AssertionError(f"It did not start:\n{log.read_text(errors='replace')}")


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The address of a cluster with one worker."""
    of_worker = ["--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / "work")]
    with (
        running(
            "master.Master", [], tmp_path / "master.log", r"spark://127\.0\.0\.1:[1-9]\d*"
        ) as at,
        running("worker.Worker", [*of_worker, at], tmp_path / "worker.log", "registered with"),
    ):
        yield at


def test_executors_have_the_jars_of_the_profile_and_those_that_a_command_fetches(
    master: str, tmp_path: Path
) -> None:
    profile = yaml.safe_load((ROOT / "profiles.yml.example").read_text(encoding="utf-8"))
    packages = "spark.jars.packages"
    of_profile = profile["afterimage"]["outputs"]["iceberg"]["server_side_parameters"]
    parameters = {
        packages: of_profile[packages],
        "spark.master": master,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(tmp_path / "spark"),
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(tmp_path / "lake"),
    }
    done = subprocess.run(
        [sys.executable, "-c", READ_ON_EXECUTOR, str(tmp_path), json.dumps(parameters)],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "AFTERIMAGE_JARS"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert done.stdout.split() == ["rows:", "3", master]
