"""Keeps tables that many small batches are written to quick to read: what `compact` does.

The table formats' own procedures, called with a bound on their work, so that a call ends soon and
the next one goes on. A table that every run adds files to, and reads whole, is tended by the runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from pyspark.sql import SparkSession

from dbt_afterimage.errors import conflicts_explained, is_conflict
from dbt_afterimage.storage.publish import BRANCH_PREFIX

# What a killed run leaves behind is older than any run that goes on.
_ABANDONED_AFTER = timedelta(days=1)

MANY_FILES = 100
"""So many files `tend` leaves as they are."""


class CompactError(ValueError):
    """An argument of `compact` cannot be; the text is meant for the user."""


@dataclass(frozen=True)
class Limits:
    """How far a call goes.

    Attributes:
        max_files: so many data files of a table are rewritten at most (Iceberg).
        keep_days: states of the table stay readable so long (Iceberg).

    Raises:
        CompactError: one of them is no whole number, or too small.
    """

    max_files: int
    keep_days: int

    def __post_init__(self) -> None:
        for name, least in (("max_files", 1), ("keep_days", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise CompactError(
                    f"`compact`: `{name}` is {value!r}. Allowed: a whole number from {least}. "
                    "Nothing was done. Cure: correct the argument."
                )


def compact(session: SparkSession, table: str, table_format: str, limits: Limits) -> str:
    """Rewrite small files and files with many deleted rows, and forget old states of a table.

    Args:
        session: the live Spark session.
        table: an existing table.
        table_format: `iceberg` or `delta`.
        limits: how far to go.

    Returns:
        What was done, in words.

    Raises:
        ConcurrentRunError: a run wrote to the table meanwhile.
    """
    with conflicts_explained(table):
        if table_format == "iceberg":
            return _compact_iceberg(session, table, limits)
        return _compact_delta(session, table)


def tend(session: SparkSession, table: str, table_format: str) -> str | None:
    """Compact a table if it has more than `MANY_FILES`; states of it stay readable for a week.

    Args:
        session: the live Spark session.
        table: an existing table, small but for the number of its files.
        table_format: `iceberg` or `delta`.

    Returns:
        What was done, in words; None for nothing, also where another run wrote to it meanwhile.
    """
    if _files(session, table, table_format) <= MANY_FILES:
        return None
    try:
        if table_format == "iceberg":
            return _compact_iceberg(session, table, Limits(max_files=1000, keep_days=7))
        return _optimize(session, table)
    except Exception as error:
        # the next run will do
        if is_conflict(str(error)):
            return None
        raise


def _files(session: SparkSession, table: str, table_format: str) -> int:
    """How many data files a table has, as its newest commit says; no file is looked at."""
    if table_format == "iceberg":
        found = session.sql(
            f"select max_by(summary['total-data-files'], committed_at) from {table}.snapshots"
        )
    else:
        found = session.sql(f"describe detail {table}").select("numFiles")
    return int(found.collect()[0][0] or 0)


def _compact_iceberg(session: SparkSession, table: str, limits: Limits) -> str:
    now = datetime.now(timezone.utc)
    _drop_abandoned_branches(session, table, now - _ABANDONED_AFTER)
    # A file is rewritten when it is one of five small ones, or when deletes cover a fifth of it.
    files = session.sql(
        f"call system.rewrite_data_files(table => '{table}', options => map("
        f"'max-files-to-rewrite', '{limits.max_files}', 'delete-ratio-threshold', '0.2', "
        "'remove-dangling-deletes', 'true'))"
    ).collect()[0]
    deletes = session.sql(
        f"call system.rewrite_position_delete_files(table => '{table}', "
        "options => map('min-input-files', '5'))"
    ).collect()[0]
    before = now - timedelta(days=limits.keep_days)
    expired = session.sql(
        f"call system.expire_snapshots(table => '{table}', retain_last => 1, "
        f"older_than => timestamp '{before:%Y-%m-%d %H:%M:%S}')"
    ).collect()[0]
    return (
        f"{files['rewritten_data_files_count']:,} data files became "
        f"{files['added_data_files_count']:,}, "
        f"{deletes['rewritten_delete_files_count']:,} delete files "
        f"{deletes['added_delete_files_count']:,}; "
        f"{sum(expired.asDict().values()):,} files were removed"
    )


def _drop_abandoned_branches(session: SparkSession, table: str, before: datetime) -> None:
    rows = session.sql(
        f"select name from {table}.refs as refs join {table}.snapshots as snapshots "
        "on refs.snapshot_id = snapshots.snapshot_id "
        f"where name rlike '^{BRANCH_PREFIX}[0-9a-f]{{32}}$' "
        f"and committed_at < timestamp '{before:%Y-%m-%d %H:%M:%S}'"
    ).collect()
    for row in rows:
        session.sql(f"alter table {table} drop branch if exists {row['name']}")


def _compact_delta(session: SparkSession, table: str) -> str:
    told = _optimize(session, table)
    # Delta 4.3 looks at the table's own property; but for 0 hours it takes no notice of `retain`
    session.sql(f"vacuum {table}")
    return (
        f"{told}; files that were out of use for longer than `delta.deletedFileRetentionDuration` "
        "were removed"
    )


def _optimize(session: SparkSession, table: str) -> str:
    # small files, and files of which deletion vectors cover a part; large whole ones stay
    metrics = session.sql(f"optimize {table}").collect()[0]["metrics"]
    return f"{metrics['numFilesRemoved']:,} data files became {metrics['numFilesAdded']:,}"
