"""A program that lands and builds the demo of PostgreSQL, so that a test can kill it at any moment.

    python -m tests.functional.postgres_run land PROFILES TARGET SCRATCH BROKERS
    python -m tests.functional.postgres_run build PROFILES TARGET SCRATCH
    python -m tests.functional.postgres_run check PROFILES TARGET SCRATCH DATABASE

`check` runs dbt's tests against the database as it is. Each prints `started` when Spark is up.
Reads AFTERIMAGE_WAREHOUSE.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from afterimage_demo.postgres.server import Database
from afterimage_demo.postgres.transport import landing, save_state
from dbt_afterimage.dbt_spark.jars import give_to_spark, kafka_jars
from tests.functional.dbt_project import DbtProject

RAW_SCHEMA = "demo_raw"


def main(action: str, profiles: str, target: str, scratch: str, place: str = "") -> None:
    """Do what the command line says."""
    root = Path(__file__).parents[2]
    project = DbtProject(root, Path(profiles), target, "afterimage", Path(scratch), {}, "postgres")
    give_to_spark(kafka_jars())
    project("run-operation", "check_session")
    print("started", flush=True)
    if action == "land":
        name, arguments = landing(place)
        project("run-operation", name, "--args", json.dumps(arguments))
    elif action == "build":
        project("run")
    else:
        from pyspark.sql import SparkSession

        session = SparkSession.builder.getOrCreate()
        save_state(session, Database(place), RAW_SCHEMA, target)
        project("test")


if __name__ == "__main__":
    main(*sys.argv[1:])
