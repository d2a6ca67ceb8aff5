"""The progress of models, cached per dbt command.

One query reads the progress of all models when a dbt command begins. The cache suffices to see that
a model has nothing to do. A model that has something to do reads the table again: another command
may have added rows, or removed them. For that query the cache only limits the rows to read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from threading import Lock
from typing import Any

from dbt_common.invocation import get_invocation_id
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


@dataclass(frozen=True)
class Publication:
    """A row of the progress table; times are text in UTC, as Spark casts them.

    Attributes:
        recorded_at: the newest batch that is applied; None for a model whose batches are those of
            several inputs.
        change_seq: the greatest position that is.
        changed_at: the greatest time that is.
        path: how the batch was applied; None for logs.
        batch: see `batch_json`.
        raw_version: what a log has read, as `change_log.raw_version` names it.
        table_version: the version of the table after the publication; None where it is not known.
    """

    recorded_at: str | None = None
    change_seq: str | None = None
    changed_at: str | None = None
    path: str | None = None
    batch: str | None = None
    raw_version: str | None = None
    table_version: str | None = None


@dataclass(frozen=True)
class ProgressSince:
    """The progress of a model, for a reader of its table.

    Attributes:
        recorded_at: of its last publication; None before the first one.
        change_seq: likewise.
        changed_at: likewise.
        paths: the distinct paths of its publications since the reader's last batch; UNKNOWN_PATH
            is among them where publications may have been deleted.
        is_continued: each of its publications since that batch followed the one before, so the
            table was not rebuilt meanwhile. False where that is not known.
        profiles: of the batches since; None where one is not known.
        unknown_columns: see `batch_json`; of the last publication.
        table_version: of the last publication; None where it is not known.
    """

    recorded_at: str | None
    change_seq: str | None
    changed_at: str | None
    paths: list[str]
    is_continued: bool
    profiles: list[str] | None
    unknown_columns: list[str] | None = None
    table_version: str | None = None


LAST = ("recorded_at", "raw_version", "batch", "change_seq", "changed_at", "table_version")
"""Of two publications of a model, the later one is greater in these columns together.

A table that is rebuilt has applied the same batch again, and may end at another position: of the
other columns, only the two of JSON, which begin with the time, show which row is later.
"""
KEPT_DAYS = 7
"""Publications of this age are deleted, see `progress_maintenance.py`."""
UNKNOWN_PATH = "unknown"

_lock = Lock()
_command = ("", "")
_at_start: dict[str, Publication] = {}
_changed: set[str] = set()
"""Models whose progress this command has recorded or removed."""


def batch_json(
    after: str | None,
    profile: str | None = None,
    unknown_columns: Sequence[str] | None = None,
) -> str:
    """The column `batch` of the progress table.

    Args:
        after: the batch that the table had before, as Spark casts it; None where all rows are new.
        profile: of a change log, what the batch holds.
        unknown_columns: of a history, all columns that some open version does not know, and maybe
            others; None where that is not known.
    """
    # of two texts, the later one is greater
    at = datetime.now(timezone.utc).isoformat(timespec="microseconds")
    return json.dumps(
        {"at": at, "after": after, "profile": profile, "unknown_columns": unknown_columns}
    )


def last_publication(session: SparkSession, progress: str, model: str) -> Publication | None:
    """The progress of a model when the command began; None if the command has changed it since.

    Args:
        session: the live Spark session.
        progress: the progress table.
        model: its name there.
    """
    with _lock:
        _read_once(session, progress)
        return None if model in _changed else _at_start.get(model)


def drop_cached_progress(model: str) -> None:
    """To be called whenever progress of a model is recorded or removed."""
    with _lock:
        _changed.add(model)


def progress_since(
    session: SparkSession, progress: str, reader: str, models: Sequence[str]
) -> dict[str, ProgressSince]:
    """The progress of models since the last batch that a reader of their tables has applied.

    Without a query if this command has not changed it, and the reader had applied all batches of
    its inputs when the command began.

    Args:
        session: the live Spark session.
        progress: the progress table.
        reader: its name there.
        models: names of the models there, the reader among them.
    """
    models = list(dict.fromkeys(models))
    with _lock:
        _read_once(session, progress)
        known = {model: _at_start[model] for model in models if model in _at_start}
        is_fresh = not _changed.intersection(models)
    applied = known[reader].recorded_at if reader in known else None
    if applied and is_fresh and len(known) == len(models) > 1:
        batches = [publication.recorded_at for publication in known.values()]
        if all(batch and batch <= applied for batch in batches):
            return {name: seen_from(applied, last, []) for name, last in known.items()}
    since = _read_from(session, progress, models, applied) if applied else {}
    if all(any(row.recorded_at for row in since.get(model, ())) for model in models):
        last = {name: max(rows, key=_place) for name, rows in since.items()}
        applied = last[reader].recorded_at
    else:
        last = _read_last(session, progress, models)
        applied = last[reader].recorded_at if reader in last else None
        since = _read_from(session, progress, models, applied) if applied else {}
    nothing = Publication()
    # a day less: clocks differ
    kept_since = datetime.now(timezone.utc) - timedelta(days=KEPT_DAYS - 1)
    complete_since = f"{kept_since:%Y-%m-%d %H:%M:%S}"
    return {
        name: seen_from(applied, last.get(name, nothing), since.get(name, []), complete_since)
        for name in models
    }


def _read_once(session: SparkSession, progress: str) -> None:
    global _command  # noqa: PLW0603 - one per process, as dbt's command is
    command = (get_invocation_id(), progress)
    if command != _command:
        _at_start.clear()
        _changed.clear()
        _at_start.update(_read_last(session, progress))
        _command = command


def progress_rows(session: SparkSession, progress: str) -> DataFrame:
    """The progress table; one of an earlier version gains columns only in the first `dbt run`."""
    rows = session.table(progress)
    absent = [name for name in ("batch", "table_version") if name not in rows.columns]
    return rows.withColumns({name: F.lit(None).cast("string") for name in absent})


def _read_last(
    session: SparkSession, progress: str, models: Sequence[str] | None = None
) -> dict[str, Publication]:
    """The last publication of each model, or of all."""
    rows = progress_rows(session, progress)
    if models is not None:
        rows = rows.filter(F.col("model").isin(*models))
    last = F.max(F.struct(*LAST))
    found = (
        rows.groupBy("model")
        .agg(last.alias("last"))
        .selectExpr(
            "model",
            "cast(last.recorded_at as string)",
            "last.change_seq",
            "cast(last.changed_at as string)",
            "last.batch",
            "last.raw_version",
            "last.table_version",
        )
    )
    return {
        row[0]: Publication(row[1], row[2], row[3], None, row[4], row[5], row[6])
        for row in found.collect()
    }


def _read_from(
    session: SparkSession, progress: str, models: Sequence[str], first: str
) -> dict[str, list[Publication]]:
    """The publications of a batch and of later ones, and those without a batch, by model."""
    is_later = F.col("recorded_at") >= F.lit(first).cast("timestamp")
    rows = (
        progress_rows(session, progress)
        .filter(F.col("model").isin(*models) & (is_later | F.col("recorded_at").isNull()))
        .select(
            "model",
            F.col("recorded_at").cast("string"),
            "change_seq",
            F.col("changed_at").cast("string"),
            "path",
            "batch",
            "raw_version",
            "table_version",
        )
    )
    found: dict[str, list[Publication]] = {}
    for row in rows.collect():
        found.setdefault(row[0], []).append(Publication(*row[1:]))
    return found


def _place(publication: Publication) -> tuple[str, ...]:
    """Of two publications of a model, the later one has the greater place."""
    return tuple(getattr(publication, name) or "" for name in LAST)


def seen_from(
    applied: str | None,
    last: Publication,
    publications: Iterable[Publication],
    complete_since: str = "",
) -> ProgressSince:
    """The progress of a model for a reader of its table, from its publications.

    Args:
        applied: the newest batch that the reader has applied; None where it has none.
        last: the last publication.
        publications: all of those since the reader's batch; earlier ones are left out.
        complete_since: older ones may have been deleted.
    """
    since = sorted(
        (
            each
            for each in publications
            if applied and (not each.recorded_at or each.recorded_at > applied)
        ),
        key=lambda each: (each.recorded_at or "", each.batch is None, each.batch or ""),
    )
    at, profiles = applied, []
    is_continued = bool(applied and last.recorded_at and last.recorded_at >= applied)
    for each in since:
        # built when its input was empty, or recorded again: newer marks of arrival, for example
        if each.recorded_at is None or (each.recorded_at == at and not each.batch):
            continue
        batch = _batch(each)
        is_continued = is_continued and batch.get("after") == at
        profiles.append(batch.get("profile"))
        at = each.recorded_at
    known = [profile for profile in profiles if profile is not None]
    paths = list(dict.fromkeys(each.path for each in since if each.path))
    if paths and not is_continued and str(applied) < complete_since:
        paths.append(UNKNOWN_PATH)
    return ProgressSince(
        last.recorded_at,
        last.change_seq,
        last.changed_at,
        paths,
        is_continued,
        known if is_continued and len(known) == len(profiles) else None,
        _batch(last).get("unknown_columns"),
        last.table_version,
    )


def _batch(publication: Publication) -> dict[str, Any]:
    """The column `batch`; empty where it is NULL or cut off: what it would say is queried then."""
    try:
        given = json.loads(publication.batch or "{}")
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}
