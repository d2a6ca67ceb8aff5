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
from dbt_afterimage.storage.publish import current_version

_RESTORE = {
    "iceberg": "call system.set_current_snapshot('{table}', {version})",
    "delta": "restore table {table} to version as of {version}",
}


class ContradictionError(AfterimageError):
    """A log is not the one that its progress describes: records would be lost."""


def is_restored(
    session: SparkSession,
    table: str,
    table_format: str,
    version: str | None,
    published: str | None,
) -> bool:
    """Whether a table was restored to a version before its last publication, or replaced.

    Args:
        session: the live Spark session.
        table: its name.
        table_format: `iceberg` or `delta`.
        version: its version.
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
        session: the live Spark session.
        table: the mart.
        table_format: `iceberg` or `delta`.
        version: its version.
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

    Args:
        session: the live Spark session.
        context: tables, settings and vars of the run; its log exists.

    Returns:
        The log's version.

    Raises:
        ContradictionError: the log was restored or replaced, or its progress cannot be read.
    """
    last = read_progress(session, context.progress, context.model)
    again = f"dbt run --select {context.selected_as}+ --vars '{{rebuild_changes: true}}'"
    if not _is_json(last.raw_version):
        raise ContradictionError(
            f"{context.progress}: `raw_version` of the model {context.model} (recorded_at "
            f"{last.recorded_at}) is no JSON: it was cut off or changed, so a run cannot know "
            f"which records were read. Nothing was written. Fix: rebuild the log: {again}"
        )
    version = current_version(session, context.log, context.file_format)
    if is_restored(session, context.log, context.file_format, version, last.table_version):
        restore = _RESTORE[context.file_format].format(
            table=context.log, version=last.table_version
        )
        raise ContradictionError(
            f"{context.log} was restored to an earlier version, or replaced, since its last batch "
            f"(version {last.table_version}). A run would not read the batches in between again. "
            f'Nothing was written. Fix: restore that version: afterimage spark-sql -e "{restore}"; '
            f"or rebuild the log from the raw tables: {again}"
        )
    return version


def _is_json(text: str | None) -> bool:
    if not (text or "").startswith("{"):
        return True
    try:
        json.loads(text or "")
    except ValueError:
        return False
    return True
