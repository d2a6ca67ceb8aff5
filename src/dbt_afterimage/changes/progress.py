"""The table `afterimage_progress`: what each model has applied, one row per publication.

Written after the publication it speaks of. A run that is killed in between leaves it behind by
one batch, and applying that batch again changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Progress:
    """The last publication of a model; times are ISO text in UTC."""

    recorded_at: str | None = None
    change_seq: str | None = None
    changed_at: str | None = None


def read_progress(session: SparkSession, table: str, model: str) -> Progress:
    """The last publication of ``model``; all None when it has none."""
    row = session.sql(
        f"""
        select
            date_format(max(recorded_at), "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"),
            max(change_seq),
            date_format(max(changed_at), "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
        from {table} where model = :model
        """,
        args={"model": model},
    ).first()
    return Progress(*row) if row else Progress()


def write_progress(session: SparkSession, table: str, model: str, progress: Progress) -> None:
    """Append one row."""
    session.sql(
        f"""
        insert into {table} (model, recorded_at, change_seq, changed_at)
        values (:model, cast(:recorded_at as timestamp), :change_seq, cast(:changed_at as timestamp))
        """,
        args={
            "model": model,
            "recorded_at": progress.recorded_at,
            "change_seq": progress.change_seq,
            "changed_at": progress.changed_at,
        },
    )
