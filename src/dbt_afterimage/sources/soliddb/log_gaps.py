"""Notices that the landed log was purged, or lost records, before it was read."""

from __future__ import annotations

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dbt_afterimage.change_log.deciding.gaps import GapError
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.sources.soliddb.raw import is_at
from dbt_afterimage.sources.soliddb.record_ids import DDL, ROW_IDS, SQL

logger = AdapterLogger("afterimage")

_FIXES = {
    "fail": "Nothing was written. Fix: land the missing records again from a copy; then, or where "
    "none are missing, run once with --vars '{accept_gap: true}'.",
    "warn": "What is landed into the gap from now on is not read. Fix: where changes are missing, "
    "land the log again from a copy and run once with --vars '{rebuild_changes: true}'; `on_gap: "
    "fail` stops before it comes to that.",
}


def check_late_records(
    context: RunContext, added: DataFrame, stored: DataFrame, table: str, last: str
) -> None:
    """Warn, or stop, where records were landed at addresses that were read without them.

    They are not decoded: without the rest of their transactions they cannot be told from records
    that have none, and a late ALTER changes how rows behind it are read.

    Raises:
        GapError: there are some, and `on_gap` is `fail`.
    """
    on_gap = context.settings["on_gap"]
    if on_gap == "ignore" or context.accept_gap:
        return
    address = F.col("log_address")
    decoded = F.col("record_id").isin(*ROW_IDS, SQL, DDL)
    late = added.filter(decoded & (address <= last)).select(address)
    first, end = late.agg(F.min(address), F.max(address)).collect()[0]
    if first is None:
        return
    logged = stored.filter(address.between(first, end)).select(address)
    found = late.join(logged, "log_address", "left_anti")
    count, first = found.agg(F.count_distinct(address), F.min(address)).collect()[0]
    if not count:
        return
    text = (
        f"{context.model}: records at {count:,} addresses were landed in the raw table {table} "
        f"after the log had been read beyond them, the first at LOGADDR {first}. They are not "
        "decoded. "
        f"`on_gap` is {on_gap!r}; allowed: fail, warn, ignore."
    )
    fix = "Fix: run once with --vars '{rebuild_changes: true}'"
    if on_gap == "fail":
        raise GapError(
            f"{text} Nothing was written. {fix}, or, to leave them out, with --vars "
            "'{accept_gap: true}'."
        )
    logger.warning(f"{text} {fix}.")


def check_log_gap(context: RunContext, log: DataFrame, last: str) -> None:
    """Warn, or stop, where the COMMIT up to which the log was read is gone from it.

    Raises:
        GapError: it is gone, and `on_gap` is `fail`.
    """
    on_gap = context.settings["on_gap"]
    if on_gap == "ignore" or context.accept_gap or not log.filter(is_at(log, last)).isEmpty():
        return
    text = (
        f"{context.model}: the raw table {context.settings['source_table']} seems to have "
        f"been purged before it was read. It was read up to LOGADDR {last}, which is gone. Changes "
        f"after it may be lost. `on_gap` is {on_gap!r}; allowed: fail, warn, ignore. "
        f"{_FIXES[on_gap]} Keep the last COMMIT that was read when you purge the raw table."
    )
    if on_gap == "fail":
        raise GapError(text)
    logger.warning(text)
