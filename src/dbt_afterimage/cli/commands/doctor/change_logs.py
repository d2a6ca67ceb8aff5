"""Checks of change logs: no record is in a log twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dbt_afterimage.cli.commands.doctor.check import Check
from dbt_afterimage.cli.support.runs import change_log_nodes, read_manifest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEAST_READ_ONCE = "0000000000000001"
"""Version 0.1 recorded changes at positions before this text again in every run."""


def change_log_checks(session: SparkSession, folder: Path) -> Iterator[Check]:
    """A line for each change log with records that an earlier version has recorded twice."""
    nodes = change_log_nodes(read_manifest(folder))
    for node in sorted(nodes, key=lambda each: str(each["unique_id"])):
        log = node.get("relation_name")
        if not (log and session.catalog.tableExists(log)):
            continue
        ((repeated,),) = session.sql(
            "select count(*) from ("
            f"select 1 from {log} where change_seq < '{_LEAST_READ_ONCE}' and change_oper <> 'L' "
            "group by change_seq, change_oper, record_hash having count(*) > 1)"
        ).collect()
        if repeated:
            yield Check(
                f"change log {log}",
                "failed",
                f"{repeated:,} records are in it more than once",
                f"run dbt run --select {node['name']}+ --vars '{{rebuild_changes: true}}'",
            )
