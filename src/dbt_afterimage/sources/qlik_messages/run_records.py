"""Records of full loads besides the messages, and the loads derived from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from dbt_afterimage.change_log.rebuild import RebuildError
from dbt_afterimage.sequence import QlikChangeSequence
from dbt_afterimage.sources.qlik_messages.load_runs import (
    OPEN_END,
    FullLoad,
    Range,
    Recorded,
    Run,
    Table,
)
from dbt_afterimage.sources.qlik_messages.message_columns import (
    CHANGE,
    LOAD,
    LOAD_DONE,
    LOAD_PART,
    METADATA,
    POSITION,
    REJECTED,
    TOMBSTONE,
)
from dbt_afterimage.sources.qlik_messages.offsets import in_ranges

_PLACE = ("table_schema", "table_name", "topic", "partition")


def positions_of(messages: DataFrame) -> DataFrame:
    """Per table and partition: the greatest change_seq (`change_seq`), the first (`ended_by`)."""
    seq = F.col("change_seq")
    changes = messages.filter((F.col("kind") == CHANGE) & _is_position(seq))
    return changes.groupBy(*_PLACE).agg(
        F.lit(POSITION).alias("kind"),
        F.max(seq).alias("change_seq"),
        F.min_by(seq, "offset").alias("ended_by"),
        F.max("offset").alias("offset"),
    )


def parts_of(messages: DataFrame, stored: DataFrame | None) -> DataFrame:
    """Runs of REFRESH messages, as far as these messages have them.

    `change_seq` is the greatest one before the run, "" for none; `ended_by` that of the next change
    in the partition, NULL where these messages have none.
    """
    is_load = F.col("kind") == LOAD
    is_change = (F.col("kind") == CHANGE) & _is_position(F.col("change_seq"))
    events = messages.filter(is_load | is_change).select(
        *_PLACE,
        "offset",
        "produced_at",
        is_load.alias("is_load"),
        F.when(~is_load, F.col("change_seq")).alias("seq"),
    )
    in_order = Window.partitionBy(*_PLACE).orderBy("offset")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    behind = in_order.rowsBetween(1, Window.unboundedFollowing)
    events = events.withColumns(
        {
            "after": F.coalesce(F.max("seq").over(before), F.lit("")),
            "ended_by": F.first("seq", ignorenulls=True).over(behind),
        }
    ).filter("is_load")
    if stored is not None:
        known = (
            stored.filter(F.col("kind") == POSITION)
            .groupBy(*_PLACE)
            .agg(F.max("change_seq").alias("known_seq"))
        )
        events = _joined(events, known).withColumn(
            "after", F.greatest("after", F.coalesce("known_seq", F.lit("")))
        )
    return (
        events.groupBy(*_PLACE, "after", "ended_by")
        .agg(
            F.lit(LOAD_PART).alias("kind"),
            F.min("offset").alias("offset"),
            F.max("offset").alias("last_offset"),
            F.count(F.lit(1)).alias("message_count"),
            F.max("produced_at").alias("loaded_at"),
        )
        .withColumnRenamed("after", "change_seq")
    )


def late_load_rows(late: DataFrame, stored: DataFrame) -> DataFrame:
    """Rows of full loads at offsets that were read without them, as rejected messages.

    Which load they belong to can no longer be told. Those between the first and the last message
    of a part are left out: that part may have them.
    """
    parts = stored.filter(F.col("kind") == LOAD_PART)
    parts = parts.select(
        *[F.col(name).alias(f"of_{name}") for name in (*_PLACE, "offset", "last_offset")]
    )
    same: list[Column] = [F.col(name).eqNullSafe(F.col(f"of_{name}")) for name in _PLACE]
    in_part = F.col("offset").between(F.col("of_offset"), F.col("of_last_offset"))
    rows = late.filter(F.col("kind") == LOAD).join(
        F.broadcast(parts), [*same, in_part], "left_anti"
    )
    return rows.withColumns(
        {
            "kind": F.lit(REJECTED),
            "reject_reason": F.lit("unsupported_record"),
            "reject_detail": F.lit(
                "a row of a full load that was landed after later messages had been read; load the "
                "table again, or run once with --vars '{rebuild_changes: true}'"
            ),
        }
    )


def runs_by_table(parts: DataFrame, positions: DataFrame) -> dict[Table, list[Run]]:
    """The runs that parts of several batches form; redelivered messages are left out.

    Args:
        parts: of all batches, with `recorded_at`.
        positions: likewise.
    """
    place = [F.col(f"parts.{name}").eqNullSafe(F.col(f"positions.{name}")) for name in _PLACE]
    later = F.col("positions.recorded_at") > F.col("parts.recorded_at")
    open_parts, ended = parts.filter("ended_by is null"), parts.filter("ended_by is not null")
    own = [F.col(f"parts.{name}").alias(name) for name in parts.columns if name != "ended_by"]
    closed = (
        open_parts.alias("parts")
        .join(positions.alias("positions"), [*place, later], "left")
        .groupBy(*own)
        .agg(F.min_by("positions.ended_by", "positions.recorded_at").alias("ended_by"))
    )
    rows = (
        ended.unionByName(closed)
        .groupBy(*_PLACE, "change_seq", "ended_by")
        .agg(
            F.min("offset").alias("first_offset"),
            F.max("last_offset").alias("last_offset"),
            F.sum("message_count").alias("rows"),
            F.date_format(F.max("loaded_at"), "yyyy-MM-dd HH:mm:ss.SSSSSS").alias("loaded_at"),
        )
        .collect()
    )
    runs = defaultdict(list)
    for row in rows:
        run = Run(
            table=(row["table_schema"], row["table_name"]),
            topic=row["topic"],
            partition=row["partition"],
            first_offset=row["first_offset"],
            last_offset=row["last_offset"],
            rows=row["rows"],
            after=row["change_seq"],
            ended_by=row["ended_by"],
            loaded_at=row["loaded_at"],
        )
        if not run.is_redelivered:
            runs[run.table].append(run)
    return dict(runs)


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


def all_run_records(
    stored: DataFrame | None, parts: DataFrame | None, positions: DataFrame, recorded_at: str
) -> tuple[DataFrame | None, DataFrame, DataFrame | None]:
    """Parts of loads and positions, of this run and before; and records of complete loads.

    No parts if there never was a load.

    Args:
        parts: of this run, of `parts_of`.
        positions: of this run, of `positions_of`.
        recorded_at: the identity of this run's batch.
    """
    at = F.lit(recorded_at).cast("timestamp")
    positions = positions.withColumn("recorded_at", at)
    parts = None if parts is None else parts.withColumn("recorded_at", at)
    if stored is None:
        return parts, positions, None
    kind = F.col("kind")
    earlier = stored.filter(kind == LOAD_PART).select(*PART_COLUMNS, "recorded_at")
    if parts is None and earlier.isEmpty():
        return None, positions, None
    before = stored.filter(kind == POSITION).select(*positions.columns)
    return (
        earlier if parts is None else earlier.unionByName(parts),
        before.unionByName(positions),
        stored.filter(kind == LOAD_DONE),
    )


def done_rows(loads: Iterable[FullLoad]) -> list[tuple[object, ...]]:
    """Records of complete loads, one per run: the values of DONE_COLUMNS."""
    return [
        (
            LOAD_DONE,
            *load.table,
            run.topic,
            run.partition,
            run.first_offset,
            run.last_offset,
            load.load_id,
            load.position,
            load.until,
        )
        for load in loads
        for run in load.runs
    ]


def recorded_so_far(done: DataFrame | None) -> dict[Table, Recorded]:
    """Recorded loads of each table.

    Args:
        done: records of complete loads, of `all_run_records`.
    """
    if done is None:
        return {}
    place = ("topic", "partition", "offset", "last_offset")
    by_table = defaultdict(list)
    for row in done.select(*_PLACE[:2], *place, "change_seq", "ended_by").collect():
        by_table[row["table_schema"], row["table_name"]].append(row)
    return {
        table: Recorded(
            # an open end says nothing of the loads that came after it
            until=max([row["ended_by"] for row in rows if row["ended_by"] != OPEN_END], default=""),
            position=max(row["change_seq"] for row in rows),
            ranges=tuple(tuple(row[name] for name in place) for row in rows),
        )
        for table, rows in by_table.items()
    }


def recorded_names(stored: DataFrame) -> dict[Table, dict[str, list[Range]]]:
    """The names of the loads of each table, in their order, and where their rows are."""
    rows = (
        stored.filter(F.col("kind") == LOAD)
        .groupBy(*_PLACE, "load_id")
        .agg(
            F.min("change_seq").alias("position"),
            F.min("offset").alias("first_offset"),
            F.max("offset").alias("last_offset"),
        )
        .orderBy("position")
        .collect()
    )
    names: dict[Table, dict[str, list[Range]]] = {}
    for row in rows:
        of_table = names.setdefault((row["table_schema"], row["table_name"]), {})
        of_table.setdefault(row["load_id"], []).append(
            (row["topic"], row["partition"], row["first_offset"], row["last_offset"])
        )
    return names


PART_COLUMNS = (
    *_PLACE,
    "change_seq",
    "ended_by",
    "kind",
    "offset",
    "last_offset",
    "message_count",
    "loaded_at",
)

DONE_COLUMNS = (
    "kind string, table_schema string, table_name string, topic string, partition int, "
    "offset bigint, last_offset bigint, load_id string, change_seq string, ended_by string"
)


def _is_position(seq: Column) -> Column:
    """A position that staging accepts: one in the future would let later loads look old."""
    time = F.try_to_timestamp(F.substring(seq, 1, 14), F.lit("yyyyMMddHHmmss"))
    is_past = time <= F.current_timestamp() + F.expr("interval 1 day")
    return seq.rlike(QlikChangeSequence.pattern()) & F.coalesce(is_past, F.lit(False))


def _joined(events: DataFrame, known: DataFrame) -> DataFrame:
    same: list[Column] = [events[name].eqNullSafe(known[name]) for name in _PLACE]
    own = [events[name] for name in events.columns]
    return events.join(F.broadcast(known), same, "left").select(*own, known["known_seq"])
