"""Notices that the landed log was purged, or lost records, before it was read."""

from __future__ import annotations

from dbt.adapters.events.logging import AdapterLogger
from pyspark.sql import DataFrame

from dbt_afterimage.change_log.gaps import GapError
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.sources.soliddb.raw import is_at

logger = AdapterLogger("afterimage")

_FIXES = {
    "fail": "Nothing was written. Fix: land the missing records again from a copy; then, or where "
    "none are missing, run once with --vars '{accept_gap: true}'.",
    "warn": "What is landed into the gap from now on is not read. Fix: where changes are missing, "
    "land the log again from a copy and run once with --vars '{rebuild_changes: true}'; `on_gap: "
    "fail` stops before it comes to that.",
}


def check_log_gap(context: RunContext, log: DataFrame, last: str) -> None:
    """Warn, or stop, where the COMMIT up to which the log was read is gone from it.

    Args:
        context: tables, settings and vars of the run.
        log: the landed SYS_LOG, which has newer records.
        last: address of that COMMIT.

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
