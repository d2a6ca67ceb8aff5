"""What all models had noted when a dbt command began: one query, where each model asked by itself.

Enough to tell that a model has nothing to do. What another command notes meanwhile is for the next
one; what this command notes is forgotten here, so that whoever asks for it reads it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

from dbt_common.invocation import get_invocation_id
from pyspark.sql import SparkSession
from pyspark.sql import functions as F


@dataclass(frozen=True)
class CachedProgress:
    """Of a model's last publication.

    Attributes:
        recorded_at: the last batch that it has applied, ISO text in UTC; None for a model whose
            batches are those of several inputs.
        raw_version: what it has read, as `raw_version` names it; None where nothing names it.
    """

    recorded_at: str | None
    raw_version: str | None


_lock = Lock()
_command = ("", "")
_cached: dict[str, CachedProgress] = {}


def cached_progress(session: SparkSession, progress: str, model: str) -> CachedProgress | None:
    """What a model had noted, None where it had not, or has noted something since.

    Args:
        session: the live Spark session.
        progress: the table of progress.
        model: its name there.
    """
    global _command  # noqa: PLW0603 - one per process, as dbt's command is
    with _lock:
        command = (get_invocation_id(), progress)
        if command != _command:
            _cached.clear()
            _cached.update(_read(session, progress))
            _command = command
        return _cached.get(model)


def drop_cached_progress(model: str) -> None:
    """To be called whenever something is noted of a model, or taken back."""
    with _lock:
        _cached.pop(model, None)


def _read(session: SparkSession, progress: str) -> dict[str, CachedProgress]:
    rows = (
        session.table(progress)
        .groupBy("model")
        .agg(
            F.max("recorded_at").cast("string").alias("recorded_at"),
            F.max_by("raw_version", F.struct("recorded_at", "raw_version")).alias("raw_version"),
        )
        .collect()
    )
    return {row["model"]: CachedProgress(row["recorded_at"], row["raw_version"]) for row in rows}
