"""A program that lands messages, so that a test can kill it at any moment.

    python -m tests.functional.killed_landing PROJECT PROFILES TARGET SCRATCH BROKERS TOPIC BATCH

Prints `started` when Spark is up and the landing begins. Reads AFTERIMAGE_WAREHOUSE.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dbt_afterimage.ingest.kafka import land as kafka
from tests.functional.dbt_project import DbtProject

SCHEMA = "landing"


def main(
    folder: str, profiles: str, target: str, scratch: str, brokers: str, topic: str, batch: str
) -> None:
    """Do what the command line says."""
    # so small that a kill falls between batches, and into one
    kafka.BATCH = int(batch)
    project = DbtProject(Path(folder), Path(profiles), target, SCHEMA, Path(scratch))
    project("run-operation", "check_session")
    print("started", flush=True)
    project("run-operation", "land_kafka", "--args", arguments(brokers, topics=[topic]))


def arguments(brokers: str, **request: object) -> str:
    """The arguments of the operation, as the command line makes them."""
    given = {
        "brokers": brokers,
        "topics": [],
        "pattern": None,
        "starting": "earliest",
        "options": {},
        "max_messages": None,
        "accept_gap": False,
        **request,
    }
    return json.dumps({"source_name": "raw_kafka", "request": given})


if __name__ == "__main__":
    main(*sys.argv[1:])
