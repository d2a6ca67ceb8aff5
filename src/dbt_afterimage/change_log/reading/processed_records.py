"""Late records of raw tables that do not show which rows were added.

They are counted, and a run that does not read them warns.
"""

from __future__ import annotations

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.change_log.reading.raw_version import ProcessedCount
from dbt_afterimage.change_log.reading.read import Reading
from dbt_afterimage.log_rows.columns import is_position
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.sequence import ChangeSequence

logger = AdapterLogger("afterimage")


def count_processed(
    context: RunContext,
    sequence: ChangeSequence,
    staged: DataFrame,
    reading: Reading,
    before: ProcessedCount | None,
    change_seq: str | None,
    arrival: str | None,
) -> ProcessedCount | None:
    """Count the records that the next run will not read, and warn if this one missed some.

    Args:
        before: what an earlier run counted, None where none did.
        change_seq: up to which position the log has read after this run.
        arrival: the greatest mark of arrival that was read, None where there are no marks.
    """
    floor = sequence.not_read_again(change_seq) if change_seq else ""
    # with marks, records older than the marks that this run has read are never read
    first_mark = reading.arrival_window.first if reading.arrival_window else None
    is_counted = bool(floor) and (arrival is None or first_mark is not None)
    is_compared = (
        before is not None
        and reading.floor is not None
        and before.change_seq <= reading.floor
        and context.backfill_from is None
    )
    if not is_counted and not is_compared:
        return None
    is_before = (
        _is_processed(sequence, before.change_seq, before.before_arrival)
        if before
        else F.lit(False)
    )
    rows = (
        staged.filter(F.col("load_id").isNull())
        .agg(F.count_if(is_before), F.count_if(_is_processed(sequence, floor, first_mark)))
        .collect()[0]
    )
    if is_compared and before is not None and rows[0] > before.records:
        logger.warning(_describe(context, before, rows[0] - before.records))
    return ProcessedCount(floor, first_mark, rows[1]) if is_counted else None


def _is_processed(sequence: ChangeSequence, floor: str, before_arrival: str | None) -> Column:
    arrival = F.col("arrival")
    processed = (F.col("change_seq") <= floor) & is_position(sequence)
    return processed if before_arrival is None else processed & (arrival < before_arrival)


def _describe(context: RunContext, before: ProcessedCount, more: int) -> str:
    part = f"at or before change_seq {before.change_seq}"
    if before.before_arrival is not None:
        part += f" and in marks of arrival before {before.before_arrival}"
    return (
        f"{context.model}: the raw table has {more:,} more records {part} than the last run "
        "counted. They came too late for the look-back or are copies, and this run has not read "
        "them: a raw table that is neither Iceberg nor Delta does not show which rows are new. "
        "Fix: find them with the data test `conserved`, then run once with --vars "
        "'{backfill_from: \"...\"}', the change_seq or the time of the oldest one."
    )
