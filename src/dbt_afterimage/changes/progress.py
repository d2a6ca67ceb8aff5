"""The table `afterimage_progress`: what each model has applied, one row per publication.

Written after the publication it speaks of. A run that is killed in between leaves it behind by
one batch, and applying that batch again changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

ISO_TIMESTAMP = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"


@dataclass(frozen=True)
class Progress:
    """The last publication of a model; times are ISO text in UTC."""

    recorded_at: str | None = None
    change_seq: str | None = None
    changed_at: str | None = None


def read_progress(session: SparkSession, table: str, model: str) -> Progress:
    """The last publication of ``model``; all None when it has none."""
    row = (
        session.table(table)
        .filter(F.col("model") == model)
        .agg(
            F.date_format(F.max("recorded_at"), ISO_TIMESTAMP),
            F.max("change_seq"),
            F.date_format(F.max("changed_at"), ISO_TIMESTAMP),
        )
        .first()
    )
    return Progress(*row) if row else Progress()


def write_progress(session: SparkSession, table: str, model: str, progress: Progress) -> None:
    """Append one row."""
    session.range(1).select(
        F.lit(model).alias("model"),
        F.lit(progress.recorded_at).cast("timestamp").alias("recorded_at"),
        F.lit(progress.change_seq).cast("string").alias("change_seq"),
        F.lit(progress.changed_at).cast("timestamp").alias("changed_at"),
        F.lit(None).cast("string").alias("path"),
    ).writeTo(table).append()
