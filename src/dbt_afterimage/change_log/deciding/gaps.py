"""Notices that the raw table was purged further than the log has read.

Nothing proves that changes were lost: the place where the log stopped is gone from the raw table,
and newer records are there. The same happens if a table was quiet for longer than its records are
retained; the vendor's pages do not say which partitions a table without changes has. Hence `on_gap`
is `warn` unless a table says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.change_log.reading.read import ArrivalWindow
from dbt_afterimage.log_rows.columns import is_position
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.sequence import ChangeSequence
from dbt_afterimage.storage.progress import Progress

logger = AdapterLogger("afterimage")


class GapError(RuntimeError):
    """The raw table was purged before it was read, as far as can be seen; `on_gap` is `fail`."""


@dataclass(frozen=True)
class Gap:
    """Changes between two places may be lost.

    Attributes:
        column: what the places are: `change_seq` or `arrival`.
        last: the last place that the log has read; it is gone.
        oldest: the oldest place after it that the raw table holds.
    """

    column: str
    last: str
    oldest: str


def check_gap(
    context: RunContext,
    sequence: ChangeSequence,
    staged: DataFrame,
    log: DataFrame,
    log_progress: Progress,
    arrival_window: ArrivalWindow | None,
    first_read: str | None,
) -> None:
    """Warn of a gap, or stop; once its records are read, the next run sees none.

    Args:
        arrival_window: where this run begins to read by arrival, if it does.
        first_read: the smallest position that this run has read.

    Raises:
        GapError: there is a gap, and `on_gap` is `fail`.
    """
    on_gap = context.settings["on_gap"]
    # A backfill already repairs the gap.
    if on_gap == "ignore" or context.accept_gap or context.backfill_from is not None:
        return
    gap = _gap(sequence, staged, log_progress, arrival_window, first_read)
    if gap is None or _ends_with_a_load(log, log_progress):
        return
    text = _describe(context.model, gap, on_gap, log_progress)
    if on_gap == "fail":
        raise GapError(text)
    logger.warning(text)


def _gap(
    sequence: ChangeSequence,
    staged: DataFrame,
    log_progress: Progress,
    arrival_window: ArrivalWindow | None,
    first_read: str | None,
) -> Gap | None:
    if log_progress.change_seq is None:
        return None
    if arrival_window is not None and arrival_window.has_last:
        return None
    if arrival_window is not None and log_progress.arrival is not None:
        newer = staged.filter(F.col("arrival") > log_progress.arrival).agg(F.min("arrival")).first()
        if newer and newer[0] is not None:
            return Gap("arrival", log_progress.arrival, newer[0])
    # The record at the log's last position is usually read again, which rules out a gap.
    if first_read is not None and first_read <= log_progress.change_seq:
        return None
    placed = staged.filter(
        is_position(sequence) & F.col("reject_reason").isNull() & (F.col("change_oper") != "L")
    )
    # stops at the first one, where the smallest position takes the reasons of all records
    if not placed.filter(F.col("change_seq") <= log_progress.change_seq).isEmpty():
        return None
    oldest = placed.agg(F.min("change_seq")).first()
    if oldest is None or oldest[0] is None:
        return None
    return Gap("change_seq", log_progress.change_seq, oldest[0])


def _ends_with_a_load(log: DataFrame, log_progress: Progress) -> bool:
    """Nothing was read since a full load: it holds whatever was purged before it."""
    last = log.filter(
        (F.col("change_seq") == log_progress.change_seq) & (F.col("change_oper") != "L")
    )
    return last.isEmpty()


def _describe(model: str, gap: Gap, on_gap: str, log_progress: Progress) -> str:
    stopped = " Nothing was written." if on_gap == "fail" else ""
    return (
        f"{model}: the raw table seems to have been purged before it was read. The log has read it "
        f"up to {gap.column} {gap.last}, which is gone; the oldest after it is {gap.oldest}. "
        "Changes between the two may be lost, unless the table was quiet for longer than its "
        f"records are kept. `on_gap` is {on_gap!r}; allowed: fail, warn, ignore.{stopped} Fix: "
        "where changes are missing, land them again from a copy and run once with --vars "
        f"'{{backfill_from: \"{log_progress.change_seq}\"}}', or reload the table and give its "
        "`base` another `load_id`; where none are, run once with --vars '{accept_gap: true}'."
    )
