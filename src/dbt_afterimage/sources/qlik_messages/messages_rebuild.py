"""`rebuild_changes`: what decoded messages hold that can be read once more, or not."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.change_log.rebuild import RebuildError
from dbt_afterimage.sources.qlik_messages.message_columns import (
    CHANGE,
    LOAD_PART,
    METADATA,
    POSITION,
    TOMBSTONE,
)
from dbt_afterimage.sources.qlik_messages.offsets import in_ranges
from dbt_afterimage.sources.qlik_messages.run_records import runs_by_table


def check_loads_still_there(model: str, stored: DataFrame, raw: DataFrame) -> None:
    """Stop unless all messages of full loads are in the raw table: of some only records are kept.

    That applies to loads that wait, and to those that were given up, of which a rebuild would make
    a load of what is left.

    Raises:
        RebuildError: messages are gone; names tables and places.
    """
    kind = F.col("kind")
    tables = runs_by_table(stored.filter(kind == LOAD_PART), stored.filter(kind == POSITION))
    runs = [run for of_table in tables.values() for run in of_table]
    if not runs:
        return
    in_runs = in_ranges(run.range for run in runs)
    place = ["topic", "partition", "offset"]
    others = stored.filter(kind.isin(CHANGE, TOMBSTONE, METADATA) & in_runs).select(*place)
    found = raw.filter(in_runs).select(*place).join(others, place, "left_anti")
    counts = {
        (row["topic"], row["partition"]): row["count"]
        for row in found.groupBy("topic", "partition").count().collect()
    }
    for partition in sorted({run.range[:2] for run in runs}):
        own = sorted(
            [run for run in runs if run.range[:2] == partition], key=lambda run: run.first_offset
        )
        wanted, there = sum(run.rows for run in own), counts.get(partition, 0)
        if there < wanted:
            places = ", ".join(
                f"of the full load of {run.table[1]}, {run.topic}-{run.partition} from "
                f"{run.first_offset} to {run.last_offset}"
                for run in own
            )
            raise RebuildError(
                f"{model}: `rebuild_changes` is set, and the raw table lacks "
                f"{wanted - there:,} messages that were decoded from it, {places}. Nothing was "
                "written. Fix: run without `rebuild_changes`, or land the missing messages "
                "again from a copy."
            )
