"""`rebuild_changes`: what decoded messages hold that can be read once more, or not."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.changes.rebuild import RebuildError
from dbt_afterimage.messages.columns import (
    CHANGE,
    LOAD_DONE,
    LOAD_PART,
    METADATA,
    POSITION,
    TOMBSTONE,
)
from dbt_afterimage.messages.loads import Recorded, full_loads, new_and_late
from dbt_afterimage.messages.notes import recorded_so_far, runs_by_table


def check_waiting_loads(model: str, stored: DataFrame, raw: DataFrame) -> None:
    """Stop unless the loads that wait are in the raw table: of their rows there are notes alone.

    Args:
        model: its name, for the message.
        stored: the table of decoded messages.
        raw: the landed messages.

    Raises:
        RebuildError: messages are gone; names tables and places.
    """
    kind = F.col("kind")
    runs_of = runs_by_table(stored.filter(kind == LOAD_PART), stored.filter(kind == POSITION))
    recorded = recorded_so_far(stored.filter(kind == LOAD_DONE))
    runs = {
        run
        for table, of_table in runs_of.items()
        for load in new_and_late(full_loads(of_table), recorded.get(table, Recorded()))[0]
        for run in load.runs
    }
    if not runs:
        return
    in_runs = reduce(
        lambda one, other: one | other,
        [
            (F.col("topic") == run.topic)
            & (F.col("partition") == run.partition)
            & F.col("offset").between(run.first_offset, run.last_offset)
            for run in runs
        ],
    )
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
                f"{wanted - there:,} messages of what waits to be whole: {places}. Nothing was "
                "written. Cure: run without `rebuild_changes`, or land the missing messages "
                "again from a copy."
            )
