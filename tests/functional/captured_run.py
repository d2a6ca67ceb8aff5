"""A program that lands and builds a demo of Debezium, so that a test can kill it at any moment.

    python -m tests.functional.captured_run land PROFILES TARGET SCRATCH SYSTEM BROKERS
    python -m tests.functional.captured_run build PROFILES TARGET SCRATCH SYSTEM
    python -m tests.functional.captured_run check PROFILES TARGET SCRATCH SYSTEM DATABASE

`check` runs dbt's tests against the database as it is. Each prints `started` when Spark is up.
Reads AFTERIMAGE_WAREHOUSE.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from afterimage_demo.mariadb.transport import MARIADB
from afterimage_demo.postgres.transport import POSTGRES
from dbt_afterimage.dbt_spark.jars import give_to_spark, kafka_jars
from tests.functional.dbt_project import DbtProject

RAW_SCHEMA = "demo_raw"
CAPTURES = {capture.system: capture for capture in (MARIADB, POSTGRES)}


def main(
    action: str, profiles: str, target: str, scratch: str, system: str, place: str = ""
) -> None:
    """Do what the command line says."""
    root = Path(__file__).parents[2]
    project = DbtProject(root, Path(profiles), target, "afterimage", Path(scratch), {}, system)
    capture = CAPTURES[system]
    give_to_spark(kafka_jars())
    project("run-operation", "check_session")
    print("started", flush=True)
    if action == "land":
        name, arguments = capture.landing(place)
        project("run-operation", name, "--args", json.dumps(arguments))
    elif action == "build":
        project("run")
    else:
        from pyspark.sql import SparkSession

        session = SparkSession.builder.getOrCreate()
        capture.save_state(session, place, RAW_SCHEMA, target)
        project("test")


if __name__ == "__main__":
    main(*sys.argv[1:])
