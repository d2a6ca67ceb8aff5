"""What is noted of a landing in the table of progress: up to where each partition was landed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt_afterimage.changes.progress import Progress, write_progress
from dbt_afterimage.messages import offsets
from dbt_afterimage.messages.offsets import Offsets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def noted_offsets(
    session: SparkSession, progress: str, table: str, recorded_at: str | None
) -> dict[tuple[str, int], int]:
    """Up to where each partition was landed, by the notes of the last batch.

    There may be several: the batch's own, and where partitions begin that were met behind it.

    Args:
        session: the live Spark session.
        progress: name of the table of progress.
        table: name of the raw table.
        recorded_at: the last noted batch, ISO text in UTC; None before the first one.
    """
    notes = (
        session.table(progress)
        .filter(F.col("model") == table)
        .filter(F.col("recorded_at").eqNullSafe(F.lit(recorded_at).cast("timestamp")))
        .select("arrival")
        .collect()
    )
    return offsets.merged(*[offsets.from_text(row["arrival"]) for row in notes])


def note_beginnings(
    session: SparkSession, progress: str, table: str, recorded_at: str | None, landed: Offsets
) -> None:
    """Note where partitions begin, before a message of them is landed.

    It is noted beside the last batch, not as a batch of its own: of what another run has landed
    meanwhile and did not note, nothing may look noted.

    Args:
        session: the live Spark session.
        progress: name of the table of progress.
        table: name of the raw table.
        recorded_at: the last batch of the raw table, None before the first one.
        landed: up to where each partition counts as landed.
    """
    note = Progress(recorded_at, arrival=offsets.to_text(landed))
    write_progress(session, progress, table, note)
