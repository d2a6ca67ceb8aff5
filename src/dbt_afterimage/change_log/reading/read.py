"""Which raw records a run reads, and which rows of the log may hold the same ones.

By position: records behind the look-back of the log's greatest change_seq. Besides these, late
records: if the raw tables show which rows were added, those at any position; else, if staging
yields marks of arrival, all records of the last marks. Where added rows are shown, the look-back is
read again only from the first record on that is pending or rejected.

Where staging computes positions, no format can skip files by them. If the raw tables show which
rows were added, and these have marks of arrival, files are skipped by the marks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.change_log.reading.new_rows import NewRows
from dbt_afterimage.log_rows.columns import is_position
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.sequence import ChangeSequence
from dbt_afterimage.settings import has_own_loads, moment_kind
from dbt_afterimage.storage.progress import Progress

_MAX_POSITIONS_IN_FILTER = 100
"""A condition names up to this many texts that are not positions."""


class BackfillError(ValueError):
    """`backfill_from` names no moment; the text is meant for the user."""


@dataclass(frozen=True)
class ArrivalWindow:
    """The marks of arrival from which a run reads.

    Attributes:
        first: the mark at which it begins.
        has_last: the raw table still has the greatest mark that the log has read.
    """

    first: str
    has_last: bool


@dataclass(frozen=True)
class Reading:
    """The records that a run reads.

    Attributes:
        changes: raw records of changes, as staged.
        recorded: rows of the log that may hold the same records; None when there are none.
        marks: None when there are no marks, or when all records are read.
        floor: records up to this position are read only when they are late; None when all are.
        finds_all_late: so is each of them that is late.
        first_arrival: the mark of arrival from which changes are read; None for all.
    """

    changes: DataFrame
    recorded: DataFrame | None
    arrival_window: ArrivalWindow | None = None
    floor: str | None = None
    finds_all_late: bool = False
    first_arrival: str | None = None


def read(
    context: RunContext,
    sequence: ChangeSequence,
    staged: DataFrame,
    log: DataFrame | None,
    log_progress: Progress,
    next_arrival: str | None,
    next_seq: str | None,
    find_new: Callable[[str], NewRows | None],
) -> Reading:
    """Choose the records that earlier runs have not processed, and what to compare them with.

    Args:
        log: the change log, None before its first run.
        next_arrival: the mark of arrival from which earlier runs have left records to read; None
            where it is not known.
        next_seq: the position, likewise; only where `find_new` finds what was added.
        find_new: what was added since, and what of it lies at a position or before it; None where
            the raw tables do not show it.
    """
    is_change = ~F.col("change_oper").isin("L", "N") | F.col("change_oper").isNull()
    if has_own_loads(context.settings):
        # staging computes the letter, and no format can skip files by what it computes
        is_change = is_change & F.col("load_id").isNull()
    changes = staged.filter(is_change)
    if log is None:
        return Reading(changes, None)
    recorded = log.filter(F.col("change_oper") != "L")
    floor = _floor(context, sequence, changes, log_progress, next_seq)
    if floor is None or _is_first_by_partition(changes, log_progress):
        return Reading(changes, recorded)
    seq = F.col("change_seq")
    new = find_new(floor)
    first = _first_arrival(context, sequence, next_arrival, new)
    # what is read from there on shows a gap by its positions
    arrival_window = (
        _partitions_to_read(context.settings["arrival_look_back"], staged, changes, log_progress)
        if first is None
        else None
    )
    if new is not None:
        is_read = (seq > floor) | seq.isNull() | new.is_late
        if first is not None:
            is_read = is_read & (F.col("arrival") >= first)
        recorded = recorded.filter((seq > floor) | new.is_late)
        changes = changes.filter(is_read)
        return Reading(
            changes, recorded, arrival_window, floor, finds_all_late=True, first_arrival=first
        )
    by_position = _is_behind(floor, sequence, changes)
    if arrival_window is None:
        return Reading(changes.filter(by_position), recorded.filter(seq > floor), None, floor)

    changes = changes.filter(by_position | (F.col("arrival") >= arrival_window.first))
    # A late record is compared with the log at its own place, which may lie far behind the floor.
    found = changes.filter(is_position(sequence)).agg(F.min("change_seq")).first()
    lowest = found[0] if found and found[0] is not None else floor
    # Even later records wait for the next run, because the matching log rows were not read.
    changes = changes.filter((seq >= lowest) | ~is_position(sequence))
    return Reading(changes, recorded.filter(seq >= lowest), arrival_window, floor)


def pending_halves(
    sequence: ChangeSequence, staged: DataFrame, reading: Reading, change_seq: str | None
) -> tuple[str | None, bool]:
    """The least mark of arrival of pending parts of changes, which staging yields as `N`.

    Later, staging gives them up and rejects them, so a run has to read them then.

    Args:
        change_seq: up to where the log has read with this run.

    Returns:
        The mark, None if none are pending; whether some of them have no mark.
    """
    halves = staged_halves(sequence, staged, reading, change_seq)
    found = halves.agg(F.min("arrival"), F.count_if(F.col("arrival").isNull()))
    first, unmarked = found.collect()[0]
    return first, bool(unmarked)


def staged_halves(
    sequence: ChangeSequence, staged: DataFrame, reading: Reading, change_seq: str | None
) -> DataFrame:
    """The records that staging yields as `N`, as far as a later run may read them.

    Records that are not changes are among them, as long as they are within the look-back.
    """
    floor = sequence.not_read_again(change_seq) if change_seq else ""
    waits = (F.col("change_oper") == "N") & (F.col("change_seq") > floor)
    if reading.first_arrival is not None:
        waits = waits & (F.col("arrival") >= reading.first_arrival)
    return staged.filter(waits)


def _first_arrival(
    context: RunContext, sequence: ChangeSequence, next_arrival: str | None, new: NewRows | None
) -> str | None:
    """The mark of arrival before which nothing is left to read; None if marks cannot be used."""
    if (
        new is None
        or next_arrival is None
        or not new.is_marked
        or not sequence.is_made_by_staging
        or context.backfill_from is not None
    ):
        return None
    return min(next_arrival, new.first_arrival or next_arrival)


def _is_behind(floor: str, sequence: ChangeSequence, changes: DataFrame) -> Column:
    """True for records behind a position, and for those that have none.

    Formats skip files by the range of a column, but not by a pattern. So a first query, of that
    column alone, finds the texts in the range of processed positions that are not positions, and
    the condition names them.
    """
    seq = F.col("change_seq")
    if sequence.is_made_by_staging:
        return (seq > floor) | seq.isNull()
    unplaced = (
        changes.filter((seq <= floor) & ~is_position(sequence))
        .select("change_seq")
        .distinct()
        .limit(_MAX_POSITIONS_IN_FILTER + 1)
        .collect()
    )
    if len(unplaced) > _MAX_POSITIONS_IN_FILTER:
        return (seq > floor) | ~is_position(sequence)
    return (seq > floor) | seq.isNull() | seq.isin([row[0] for row in unplaced])


def _floor(
    context: RunContext,
    sequence: ChangeSequence,
    changes: DataFrame,
    log_progress: Progress,
    next_seq: str | None,
) -> str | None:
    """Records up to this position were processed by earlier runs; None = read everything."""
    if log_progress.change_seq is None:
        return None
    floor = sequence.not_read_again(log_progress.change_seq)
    if context.backfill_from is not None:
        # What the log has not reached yet must not be skipped.
        wanted = _before_backfill(context, sequence, changes)
        floor = floor if wanted is None else min(floor, wanted)
    elif next_seq is not None:
        newest = sequence.up_to_now(log_progress.change_seq)
        floor = max(floor, sequence.before(min(next_seq, newest)))
    return floor or None


def _before_backfill(
    context: RunContext, sequence: ChangeSequence, changes: DataFrame
) -> str | None:
    """The greatest position that `backfill_from` leaves out; None when it leaves nothing to read.

    "" where it leaves nothing out.

    If positions do not contain the time, the first record of that time or later decides.
    """
    given = str(context.backfill_from)
    kind = moment_kind(given, context.settings["system"])
    if kind is None:
        raise BackfillError(
            f"{context.model}: `backfill_from` is {given!r}. Allowed: a date or a time in UTC, "
            f"such as 2026-03-02 07:30:00, or a change_seq, {sequence.form()}, in quotes. Nothing "
            "was read. Fix: correct the var."
        )
    if kind == "change_seq":
        return sequence.before(given)
    wanted = sequence.of_time(datetime.fromisoformat(given.replace("Z", "+00:00")))
    if wanted is not None:
        return wanted
    at_that_time = is_position(sequence) & (F.col("changed_at") >= F.lit(given).cast("timestamp"))
    first = changes.filter(at_that_time).agg(F.min("change_seq")).first()
    return sequence.before(first[0]) if first and first[0] is not None else None


def _is_first_by_partition(changes: DataFrame, log_progress: Progress) -> bool:
    """No mark is recorded (the first run was killed, or the source had none), but now there are."""
    return (
        log_progress.arrival is None and not changes.filter(F.col("arrival").isNotNull()).isEmpty()
    )


def _partitions_to_read(
    look_back: int, staged: DataFrame, changes: DataFrame, log_progress: Progress
) -> ArrivalWindow | None:
    """The mark ``look_back`` marks before the last one that the log has read, or the oldest."""
    if log_progress.arrival is None:
        return None
    arrival = F.col("arrival")
    found = (
        changes.filter(arrival <= log_progress.arrival)
        .select("arrival")
        .distinct()
        .orderBy(arrival.desc())
        .limit(look_back + 1)
        .collect()
    )
    has_last = bool(found) and found[0]["arrival"] == log_progress.arrival
    if not has_last:
        # the log may have read nothing there but rows of a load; those of base tables have no mark
        is_load = F.col("change_oper") == "L"
        has_last = not staged.filter(is_load & (arrival == log_progress.arrival)).isEmpty()
    return ArrivalWindow(found[-1]["arrival"] if found else log_progress.arrival, has_last)
