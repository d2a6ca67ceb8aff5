"""The table `afterimage_progress`: what each model has applied, one row per publication.

Rows are written after their publications, those of a dbt command together (`progress_cache.py`). A
run that is killed in between leaves the table behind, and applying a batch again changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from threading import Lock

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.errors import is_conflict
from dbt_afterimage.spark.literals import text
from dbt_afterimage.storage.progress_cache import (
    Publication,
    drop_cached_progress,
    last_publication,
    publish_progress,
    write_pending,
)

_one_delete = Lock()
_TRIES = 10

ISO_TIMESTAMP = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"


@dataclass(frozen=True)
class Progress:
    """The progress of a model at its last publication; times are ISO text in UTC.

    `raw_version` is that of a change log: which versions of the raw tables it had read.
    `table_version` is that of the table itself; None where it is not known.
    """

    recorded_at: str | None = None
    change_seq: str | None = None
    changed_at: str | None = None
    arrival: str | None = None
    raw_version: str | None = None
    table_version: str | None = None


def read_progress(session: SparkSession, table: str, model: str) -> Progress:
    """The last publication of ``model``; all None when it has none."""
    last = last_publication(session, table, model)
    if last is None:
        return Progress()
    return Progress(
        _iso_text(last.recorded_at),
        last.change_seq,
        _iso_text(last.changed_at),
        last.arrival,
        last.raw_version,
        last.table_version,
    )


def write_progress(
    session: SparkSession,
    table: str,
    model: str,
    progress: Progress,
    *,
    path: str | None = None,
    batch: str | None = None,
) -> None:
    """Add a publication.

    Args:
        progress: what it has applied; times may also be text as Spark casts it.
        path: how a mart did so.
        batch: the batch, as `batch_json` gives it; None for a row without a batch.
    """
    publication = Publication(
        spark_text(progress.recorded_at),
        progress.change_seq,
        spark_text(progress.changed_at),
        path,
        batch,
        progress.raw_version,
        progress.table_version,
        progress.arrival,
    )
    publish_progress(session, table, model, publication)


def add_column(session: SparkSession, table: str, column: str, kind: str) -> None:
    """Add a column that a table of an earlier version lacks."""
    if column in session.table(table).columns:
        return
    try:
        session.sql(f"alter table {table} add columns ({column} {kind})")
    except Exception:
        # another run may have added it meanwhile
        session.sql(f"refresh table {table}")
        if column not in session.table(table).columns:
            raise


def _iso_text(moment: str | None) -> str | None:
    """A time as Spark casts it to text, as ISO text with microseconds."""
    if moment is None:
        return None
    seconds, _, fraction = moment.replace(" ", "T").partition(".")
    return f"{seconds}.{fraction:0<6}"


def spark_text(moment: str | None) -> str | None:
    """A time in UTC, ISO text, as Spark casts a timestamp to text."""
    if moment is None:
        return None
    seconds, _, fraction = moment.replace("T", " ").partition(".")
    fraction = fraction.rstrip("0")
    return f"{seconds}.{fraction}" if fraction else seconds


def reset_progress(session: SparkSession, table: str, *models: str) -> None:
    """Remove all progress of models, whose tables are to be rebuilt; one commit."""
    _remove(session, table, models, "true")


def reset_progress_after(session: SparkSession, table: str, model: str, after: str | None) -> bool:
    """Remove the progress of ``model`` after a batch; returns whether there was any.

    Args:
        after: the batch, ISO text in UTC; None = remove all.
    """
    later = "true" if after is None else f"recorded_at > timestamp '{after}'"
    return _remove(session, table, [model], later)


def _remove(session: SparkSession, table: str, models: Sequence[str], condition: str) -> bool:
    where = f"model in ({', '.join(map(text, models))}) and {condition}"
    # a delete commits even if it finds nothing, and may conflict with rows that other models write
    write_pending(session)
    if session.table(table).filter(where).isEmpty():
        return False
    delete_progress(session, table, where)
    return True


def delete_progress(session: SparkSession, table: str, where: str) -> None:
    """Delete rows, with retries: the formats refuse a delete that conflicts with an append."""
    write_pending(session)
    drop_cached_progress()
    with _one_delete:
        for left in reversed(range(_TRIES)):
            try:
                session.sql(f"delete from {table} where {where}")
            except Exception as error:
                # Spark wraps what it knows; what it does not is an error of py4j
                if not left or not is_conflict(str(error)):
                    raise
            else:
                return


def rows_after_progress(log: DataFrame, progress: Progress, mark: str = "recorded_at") -> DataFrame:
    """Rows that a killed run wrote to a log without progress; `mark` is the time of a batch."""
    if progress.recorded_at is None:
        return log
    return log.filter(F.col(mark) > F.lit(progress.recorded_at).cast("timestamp"))


def recover_progress(
    log: DataFrame | None,
    progress: Progress,
    change_seq: Column | None = None,
    changed_at: Column | None = None,
    mark: str = "recorded_at",
) -> Progress:
    """The progress of a log by its rows: more than recorded if a run was killed before it did so.

    Args:
        log: the table, None before its first run.
        change_seq: the position of a row of it; NULL where it has none that counts, None where
            positions do not show how far the log was read.
        changed_at: its time, likewise.
        mark: the column with the time of a batch.
    """
    if log is None:
        return progress
    nothing = F.lit(None)
    found = (
        rows_after_progress(log, progress, mark)
        .agg(
            F.date_format(F.max(mark), ISO_TIMESTAMP),
            F.max(nothing.cast("string") if change_seq is None else change_seq),
            F.date_format(
                F.max(nothing.cast("timestamp") if changed_at is None else changed_at),
                ISO_TIMESTAMP,
            ),
        )
        .first()
    )
    if found is None or found[0] is None:
        return progress
    return Progress(
        found[0],
        greatest(found[1], progress.change_seq),
        greatest(found[2], progress.changed_at),
        progress.arrival,
        progress.raw_version,
        progress.table_version,
    )


def next_recorded_at(done: Progress) -> str:
    """Now, in UTC, but later than the last batch even when the clock ran back."""
    now = datetime.now(timezone.utc).replace(tzinfo=None)
    if done.recorded_at is not None:
        now = max(now, datetime.fromisoformat(done.recorded_at) + timedelta(microseconds=1))
    return now.isoformat(timespec="microseconds")


def least(*values: str | None) -> str | None:
    """The least of the values that are there; None when none is."""
    return min((value for value in values if value is not None), default=None)


def greatest(*values: str | None) -> str | None:
    """The greatest of the values that are there; None when none is."""
    return max((value for value in values if value is not None), default=None)
