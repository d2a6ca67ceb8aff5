"""Up to when a change log or decoded log has read what had landed, for cuts (docs/decisions/0106).

A run without new records writes nothing, so that it has read is known in its process only. Another
process sees it from the versions of the raw tables, where they have versions.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from dbt_common.invocation import get_invocation_id
from pyspark.sql import SparkSession

from dbt_afterimage.change_log.reading.raw_version import RawVersion, raw_tables
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.sequence import duration_seconds
from dbt_afterimage.storage.progress import read_progress

_read: dict[str, str] = {}
"""Log -> the dbt command that has last read all that had landed when it began."""


def record_read(context: RunContext) -> None:
    """The log has all that had landed when the command began."""
    _read[context.log] = get_invocation_id()


def read_up_to(session: SparkSession, context: RunContext) -> str | None:
    """The log has read all that had landed by this time, ISO text in UTC; None if unknown."""
    if _read.get(context.log) == get_invocation_id():
        return context.started_at
    read = RawVersion.from_text(read_progress(session, context.progress, context.model).raw_version)
    if read.read_at is None or read.tables is None:
        return read.read_at
    is_same = raw_tables(session, context) == read.tables
    return context.started_at if is_same else read.read_at


def complete_until(read_at: str, landing_delay: str) -> str:
    """Every change before this time had landed by ``read_at``; both in UTC, the result for SQL."""
    until = datetime.fromisoformat(read_at) - timedelta(seconds=duration_seconds(landing_delay))
    return f"{until:%Y-%m-%d %H:%M:%S.%f}"
