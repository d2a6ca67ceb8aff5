"""The full load: copied into the log once per load_id, with a marker row for its row count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from dbt_afterimage.change_log.deciding.pairing import (
    ACCEPTED,
    DUPLICATE,
    REJECTED,
    comparable_hash,
    with_null_key_first,
)
from dbt_afterimage.internal_columns import PREFIX
from dbt_afterimage.log_rows.columns import column_named
from dbt_afterimage.sequence import ChangeSequence
from dbt_afterimage.settings import SourceSettings, has_own_loads
from dbt_afterimage.storage.local_relation import local_rows
from dbt_afterimage.storage.progress import Progress, greatest, least

logger = AdapterLogger("afterimage")

_IS_BAD = f"{PREFIX}is_bad"
_IS_HELD = f"{PREFIX}is_held"
_HELD_HASH = f"{PREFIX}held_hash"
_POSITION = f"{PREFIX}position"
_LOADED_AT = f"{PREFIX}loaded_at"


class LoadPositionError(ValueError):
    """`base.position` cannot be that of a load; the text is meant for the user."""


@dataclass(frozen=True)
class Load:
    """A full load that is to be recorded.

    Attributes:
        load_id: its name.
        position: its change_seq.
        loaded_at: its time in UTC, where that is declared; rows may have it too.
    """

    load_id: str
    position: str
    loaded_at: str | None = None


@dataclass(frozen=True)
class Loads:
    """The full loads that a run finds.

    Attributes:
        new: those that are not in the log yet, in their order.
        again: those that are, and have rows among what the run reads.
        is_pending: there are others, whose last row has not come.
        pending_from: least mark of arrival of these, None if they have none.
    """

    new: list[Load]
    again: list[Load]
    is_pending: bool = False
    pending_from: str | None = None


@dataclass(frozen=True)
class _FoundLoad:
    """A load among the changes.

    Attributes:
        load: the load.
        is_whole: its last row is there; a later run reads all of its rows.
        rows: how many of them this run reads.
        arrival: least mark of arrival of these rows, None if they have none.
    """

    load: Load
    is_whole: bool
    rows: int
    arrival: str | None


def rows_of(loads: Sequence[Load], rows: DataFrame) -> DataFrame:
    """Staged rows of full loads, each at the position of its load.

    Args:
        loads: at least one.
    """
    found = rows.filter(is_row_of(loads))
    if len(loads) == 1:
        return found.withColumn("change_seq", F.lit(loads[0].position))
    given = [(load.load_id, load.position) for load in loads]
    positions = local_rows(rows.sparkSession, given, f"load_id string, {_POSITION} string")
    return (
        found.join(F.broadcast(positions), "load_id")
        .withColumn("change_seq", F.col(_POSITION))
        .select(*map(column_named, rows.columns))
    )


def is_row_of(loads: Sequence[Load]) -> Column:
    """True for the rows of some loads, as staged and as decided."""
    return (F.col("change_oper") == "L") & F.col("load_id").isin([load.load_id for load in loads])


def decide_loads(rows: DataFrame, key: list[str]) -> DataFrame:
    """Decide what becomes of each row of full loads.

    Args:
        rows: the staged rows, as `rows_of` gives them.
        key: key columns; a row without one is rejected, of equal keys in a load the first by
            content stays.

    Returns:
        The rows without `raw_record`, plus `outcome` and `reject_reason`.
    """
    reason = with_null_key_first(F.col("reject_reason"), F.lit(True), key)
    rows = rows.drop("raw_record").withColumn("reject_reason", reason)
    is_bad = F.col("reject_reason").isNotNull()
    if not key:
        return rows.withColumn("outcome", F.when(is_bad, REJECTED).otherwise(ACCEPTED))

    by_key = Window.partitionBy("load_id", *[column_named(column) for column in key]).orderBy(
        _IS_BAD, "record_hash"
    )
    is_copy = (F.lag("record_hash").over(by_key) == F.col("record_hash")) & (
        F.lag(_IS_BAD).over(by_key) == F.col(_IS_BAD)
    )
    is_first = F.row_number().over(by_key) == 1
    return (
        rows.withColumn(_IS_BAD, is_bad)
        .withColumn(
            "outcome",
            F.when(is_copy, DUPLICATE)
            .when(is_first & ~F.col(_IS_BAD), ACCEPTED)
            .otherwise(REJECTED),
        )
        .withColumn(
            "reject_reason",
            F.coalesce(
                "reject_reason",
                F.when(F.col("outcome") == REJECTED, F.lit("conflicting_duplicate")),
            ),
        )
        .drop(_IS_BAD)
    )


def markers(rows: DataFrame, loads: Sequence[Load]) -> DataFrame:
    """The marker row of each load: `L`, no key, its position, time and row count.

    An empty table is a load too, so its marker is there even if it has no rows.

    Args:
        loads: the loads; of one without rows that have a time, the declared time counts.
    """
    counted = rows.groupBy("load_id").agg(
        F.count(F.lit(1)).alias("load_rows"), F.max("changed_at").alias("changed_at")
    )
    given = [(load.load_id, load.position, load.loaded_at) for load in loads]
    declared = local_rows(
        rows.sparkSession, given, f"load_id string, change_seq string, {_LOADED_AT} string"
    )
    return declared.join(counted, "load_id", "left").select(
        F.coalesce("load_rows", F.lit(0)).cast("bigint").alias("load_rows"),
        F.coalesce("changed_at", F.col(_LOADED_AT).cast("timestamp")).alias("changed_at"),
        "change_seq",
        F.lit("L").alias("change_oper"),
        F.lit(ACCEPTED).alias("outcome"),
        "load_id",
    )


def find_loads(
    settings: SourceSettings,
    staged: DataFrame,
    log: DataFrame | None,
    sequence: ChangeSequence,
    log_progress: Progress,
    *,
    reads_all: bool = False,
    pending_from: str | None = None,
) -> Loads:
    """The full loads that are there.

    Args:
        log: the change log, None before its first run.
        reads_all: the run reads all changes, so it also finds loads whose marks of arrival are
            less than the last one: an extract out of order.
        pending_from: the mark of arrival from which earlier runs have left loads that wait.

    Raises:
        LoadPositionError: the declared position is more than a day ahead.
    """
    base = settings.get("base")
    if not base and not has_own_loads(settings):
        return Loads([], [])
    marked = (
        []
        if log is None
        else log.filter((F.col("change_oper") == "L") & F.col("load_rows").isNotNull())
        .select("load_id", "change_seq")
        .collect()
    )
    recorded = {row["load_id"] for row in marked}
    if not base:
        is_read = is_fresh(log_progress)
        if reads_all and log_progress.arrival is not None:
            is_read = is_read | ~F.col("load_id").isin(list(recorded))
        elif pending_from is not None:
            is_left = (F.col("arrival") >= pending_from) & ~F.col("load_id").isin(list(recorded))
            is_read = is_read | is_left
        staged_loads = _own_loads(staged, is_read)
        # the decoder of messages finds late rows itself
        has_load_ends = "ends_load" in staged.columns
        new = [found for found in staged_loads if found.load.load_id not in recorded]
        if new and has_load_ends and log_progress.arrival is not None:
            # their first rows, whose position is theirs, may have come before their last ones
            new = _own_loads(staged, F.col("load_id").isin([each.load.load_id for each in new]))
        pending = [found for found in new if not found.is_whole]
        for found in pending:
            logger.warning(
                f"{settings['source_table']}: {found.rows:,} rows of the full load "
                f"{found.load.load_id} wait for its last row, for which `load_end` is true. None "
                "of them is in the change log. Fix: if the load has all its rows, set `load_end: "
                "\"true\"` on the source table and run once with --vars '{rebuild_changes: true}'; "
                "else land the rest."
            )
        return Loads(
            [found.load for found in new if found.is_whole],
            [
                found.load
                for found in staged_loads
                if found.load.load_id in recorded and has_load_ends
            ],
            is_pending=bool(pending),
            pending_from=least(*[found.arrival for found in pending]),
        )
    if base["load_id"] in recorded:
        return Loads([], [])
    if base["position"]:
        position = str(base["position"])
        _check_not_in_future(settings, sequence)
    else:
        # also behind a load that was declared to lie beyond the changes
        last = greatest(log_progress.change_seq, *[row["change_seq"] for row in marked])
        position = sequence.after(last) if marked and last else sequence.first
    return Loads([Load(base["load_id"], position, base["loaded_at"])], [])


def rows_too_late(
    loads: Sequence[Load],
    rows: DataFrame,
    log: DataFrame,
    key: list[str],
    hashed_after: str | None,
) -> DataFrame:
    """Rows of loads that came after these were recorded, as `decide_loads` gives them: rejected.

    Args:
        loads: which the log has.
        rows: their staged rows, as `rows_of` gives them.
        key: key columns; without any, rows are identified by their content.
    """
    identity = ["load_id", *(key or ["record_hash"])]
    names = [column_named(column) for column in identity]
    recorded_rows = log.filter(is_row_of(loads) & F.col("load_rows").isNull()).select(
        *names,
        comparable_hash(log, rows.columns, hashed_after).alias(_HELD_HASH),
        F.lit(True).alias(_IS_HELD),
    )
    joined = rows.join(recorded_rows, identity, "left")
    is_other = F.col(_HELD_HASH).isNotNull() & (F.col(_HELD_HASH) != F.col("record_hash"))
    reason = with_null_key_first(F.col("reject_reason"), F.lit(True), key)
    late = F.when(F.col(_IS_HELD), F.lit("conflicting_duplicate")).otherwise("late_load_row")
    return (
        joined.filter(F.col(_IS_HELD).isNull() | is_other)
        .withColumn("outcome", F.lit(REJECTED))
        .withColumn("reject_reason", F.coalesce(reason, late))
        .select(*[column_named(name) for name in rows.columns if name != "raw_record"], "outcome")
    )


def _check_not_in_future(settings: SourceSettings, sequence: ChangeSequence) -> None:
    """A position of another century would be greater than that of any future change."""
    base = settings["base"]
    position = base and base["position"]
    limit = sequence.of_time(datetime.now(timezone.utc) + timedelta(days=1))
    if base and position and limit is not None and position > limit:
        raise LoadPositionError(
            f"Source table {settings['source_table']}: `base.position` of the load "
            f"{base['load_id']!r} is {position}, more than a day in the future. Allowed: "
            f"the change_seq up to which the load holds the changes, at most {limit}. Nothing was "
            "written. Fix: correct the position, or leave it out: a first load comes before all "
            "changes, a later one behind those that are there."
        )


def read_up_to(sequence: ChangeSequence, changes: str | None, loads: Iterable[str]) -> str | None:
    """Up to which position the log has read when it holds these changes and loads.

    A load counts as directly behind the changes that are there: its position may be declared, and
    lie beyond changes that have not landed yet.

    Args:
        changes: the greatest position of a change, None for no change.
        loads: the positions of full loads.
    """
    behind = sequence.after(changes) if changes else sequence.first
    return greatest(changes, *[min(position, behind) for position in loads])


def load_ids(settings: SourceSettings, staged: DataFrame) -> set[str]:
    """The full loads that can be read from the raw tables as they are."""
    if has_own_loads(settings):
        return {found.load.load_id for found in _own_loads(staged, F.lit(True)) if found.is_whole}
    base = settings.get("base")
    return {base["load_id"]} if base else set()


def is_fresh(log_progress: Progress) -> Column:
    """True for rows of loads that may have landed since; without marks of arrival, for all."""
    return F.lit(True) if log_progress.arrival is None else F.col("arrival") >= log_progress.arrival


def _own_loads(staged: DataFrame, condition: Column) -> list[_FoundLoad]:
    """Loads that come among the changes, in their order: staging says where each one belongs."""
    is_row = (F.col("change_oper") == "L") & F.col("load_id").isNotNull()
    rows = staged.filter(is_row & condition)
    is_whole = F.bool_or("ends_load") if "ends_load" in staged.columns else F.lit(True)
    found = rows.groupBy("load_id").agg(
        F.min("change_seq").alias("position"),
        is_whole.alias("is_whole"),
        F.count(F.lit(1)).alias("rows"),
        F.min("arrival").alias("arrival"),
    )
    loads = [
        _FoundLoad(
            Load(row["load_id"], row["position"]), row["is_whole"], row["rows"], row["arrival"]
        )
        for row in found.collect()
    ]
    return sorted(loads, key=lambda found: (found.load.position, found.load.load_id))
