"""Tables that contradict the progress table: restored to an earlier version, or behind it.

A run adds to a table what came after the batch that its progress names. If the table lacks batches
up to that one, they would never be applied.
"""

from __future__ import annotations

import json

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.run_context import RunContext
from dbt_afterimage.storage.formats import format_named
from dbt_afterimage.storage.progress import Progress, read_progress
from dbt_afterimage.storage.progress_cache import last_publication, row_count
from dbt_afterimage.storage.publish import current_version

ERASURES = "afterimage_erasures"
"""The name of the table of erasures in the progress table."""

_RESTORE = {
    "iceberg": "call system.set_current_snapshot('{table}', {version})",
    "delta": "restore table {table} to version as of {version}",
}


_COUNTS_OF_RECORDS = dict.fromkeys(("change_seq", "before_arrival", "records"))


class ContradictionError(AfterimageError):
    """A table is not the one that its progress describes: records would be lost, or come back."""


def is_restored(
    session: SparkSession,
    table: str,
    table_format: str,
    version: str | None,
    published: str | None,
) -> bool:
    """Whether a table was restored to a version before its last publication, or replaced.

    Args:
        published: the version after its last publication; None where it is not known.
    """
    if published is None or version == published:
        return False
    return not format_named(table_format).follows(session, table, published)


def contradiction_of_mart(
    session: SparkSession,
    table: str,
    table_format: str,
    version: str | None,
    applied: Progress,
    source: str,
    published: str | None,
) -> str:
    """Why a mart has to be rebuilt, a sentence; "" if it is what its progress says.

    Args:
        applied: its progress, times as Spark casts them.
        source: the table whose batches it applies.
        published: the last batch in the progress of that table; None where it has none.
    """
    if is_restored(session, table, table_format, version, applied.table_version):
        return (
            f"{table} was restored to an earlier version, or replaced, since its last publication "
            f"(version {applied.table_version}), so it lacks batches that `afterimage_progress` "
            "has of it"
        )
    if applied.recorded_at is None or (published and applied.recorded_at <= published):
        return ""
    # a run of the source that was killed has recorded no progress, but a mart may apply its batch
    newest = session.table(source).agg(F.max("recorded_at").cast("string")).collect()[0][0]
    if newest and applied.recorded_at <= newest:
        return ""
    return (
        f"{table} has applied the batch {applied.recorded_at} according to `afterimage_progress`, "
        f"which is after the last batch of {source} ({published or newest or 'none'})"
    )


def check_log(session: SparkSession, context: RunContext) -> str | None:
    """Stop where a change log or decoded log is not the one that its progress describes.

    Returns:
        The log's version.

    Raises:
        ContradictionError: the log was restored or replaced, or its progress cannot be read.
    """
    last = read_progress(session, context.progress, context.model)
    if not _is_raw_version(last.raw_version):
        raise unreadable(context, "raw_version", last.recorded_at)
    version = current_version(session, context.log, context.file_format)
    if is_restored(session, context.log, context.file_format, version, last.table_version):
        restore = _RESTORE[context.file_format].format(
            table=context.log, version=last.table_version
        )
        raise ContradictionError(
            f"{context.log} was restored to an earlier version, or replaced, since its last batch "
            f"(version {last.table_version}). A run would not read the batches in between again. "
            f'Nothing was written. Fix: restore that version: afterimage spark-sql -e "{restore}"; '
            f"or rebuild the log from the raw tables: {_rebuild(context)}"
        )
    return version


def unreadable(context: RunContext, column: str, recorded_at: str | None) -> ContradictionError:
    """An error: a column of a log's progress does not say which records were read.

    Args:
        column: `raw_version` or `arrival`.
        recorded_at: of the row.
    """
    return ContradictionError(
        f"{context.progress}: `{column}` of the model {context.model} (recorded_at {recorded_at}) "
        "is not what a run writes there: it was cut off or changed, so a run cannot know which "
        f"records were read. Nothing was written. Fix: rebuild the log: {_rebuild(context)}"
    )


def _rebuild(context: RunContext) -> str:
    return f"dbt run --select {context.selected_as}+ --vars '{{rebuild_changes: true}}'"


def check_erasures(
    session: SparkSession, table: str, table_format: str, progress: str, rows: int
) -> None:
    """Stop where the table of erasures lacks rows that it had after the last erasure.

    Args:
        rows: how many rows the table has; 0 where it does not exist.

    Raises:
        ContradictionError: it has fewer rows than its progress says.
    """
    last = last_publication(session, progress, ERASURES)
    if last is None or rows >= row_count(last):
        return
    restore = _RESTORE[table_format].format(table=table, version=last.table_version)
    forget = f"delete from {progress} where model = '{ERASURES}'"
    raise ContradictionError(
        f"{table} has {rows:,} of the {row_count(last):,} rows that it had after the last "
        "erasure: it was restored to an earlier version, or rows were deleted. A run would bring "
        "back records that `afterimage erase` has erased. Nothing was written. Fix: restore the "
        f'last version: afterimage spark-sql -e "{restore}"; if it is gone, run afterimage '
        f'spark-sql -e "{forget}" and dbt build, which brings the records back, and erase them '
        "again"
    )


def _is_raw_version(text: str | None) -> bool:
    """Whether `RawVersion` can be read from a text, or there is none."""
    if not (text or "").startswith("{"):
        return True
    try:
        given = json.loads(text or "")
    except ValueError:
        return False
    tables, counts = given.get("tables") or {}, given.get("settled") or _COUNTS_OF_RECORDS
    return (
        isinstance(tables, dict)
        and all(isinstance(version, list) and version for version in tables.values())
        and isinstance(counts, dict)
        and counts.keys() == _COUNTS_OF_RECORDS.keys()
        and all(isinstance(given.get(name) or "", str) for name in ("digest", "next_arrival"))
    )
