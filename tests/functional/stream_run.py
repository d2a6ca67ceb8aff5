"""A program that builds batches of random streams: wherever its target has Spark.

    python -m tests.functional.stream_run SHAPE STREAMS PROJECT PROFILES TARGET SCRATCH BATCHES

`BATCHES` are numbers, joined by commas. Before it ends it prints a line with Spark's master.
"""

from __future__ import annotations

import sys
from pathlib import Path

from dbt_afterimage.spark.session import current, is_remote, stop
from tests.functional.dbt_project import DbtProject
from tests.functional.properties.test_batches import append_batch
from tests.streams.selection import stream_table
from tests.streams.tables import StreamTable


def build(project: DbtProject, table: StreamTable, batches: list[int]) -> None:
    """Append batches to the log of the streams and build after each."""
    project("run-operation", "check_session")
    session = current()
    session.sql("create schema if not exists streams_logs")
    for batch in batches:
        log = f"streams_logs.{table.shape.name}"
        append_batch(session, table, batch, log, "iceberg")
        project("run")


def main(
    shape: str, streams: str, folder: str, profiles: str, target: str, scratch: str, batches: str
) -> None:
    """Do what the command line says."""
    project = DbtProject(Path(folder), Path(profiles), target, "anywhere", Path(scratch))
    build(project, stream_table(shape, int(streams)), [int(each) for each in batches.split(",")])
    session = current()
    where = "connect" if is_remote(session) else session.conf.get("spark.master")
    print("ran on", where, flush=True)
    stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
