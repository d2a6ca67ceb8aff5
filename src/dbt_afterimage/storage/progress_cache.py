"""What all models had noted when a dbt command began, and what they have noted since.

One query per command, where each model asked by itself. What another command notes meanwhile is
for the next one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from threading import Lock

from dbt_common.invocation import get_invocation_id
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.spark.literals import text


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
    """

    recorded_at: str | None = None
    change_seq: str | None = None
    changed_at: str | None = None
    path: str | None = None
    batch: str | None = None
    raw_version: str | None = None


@dataclass(frozen=True)
class ProgressSince:
    """What a model has noted, for a reader of its table.

    Attributes:
        recorded_at: of its last publication; None before the first one.
        change_seq: likewise.
        changed_at: likewise.
        paths: the distinct ones of what it has published since the reader's last batch.
        is_continued: since that batch, all its publications followed one upon the other, so the
            table still has what the reader has applied. False where that is not known.
        profiles: of the batches since; None where one is not known.
        unknown_columns: see `batch_json`; of the last publication.
    """

    recorded_at: str | None
    change_seq: str | None
    changed_at: str | None
    paths: list[str]
    is_continued: bool
    profiles: list[str] | None
    unknown_columns: list[str] | None = None


@dataclass(frozen=True)
class _Model:
    """What is known of a model: its last publication when the command began, and those since."""

    at_start: Publication
    since: list[Publication] = field(default_factory=list)

    @property
    def last(self) -> Publication:
        # of two of one batch, the later one
        return max(
            [*reversed(self.since), self.at_start],
            key=lambda each: (each.recorded_at or "", each.change_seq or "", each.changed_at or ""),
        )


_lock = Lock()
_command = ("", "")
_models: dict[str, _Model] = {}


def batch_json(
    after: str | None,
    profile: str | None = None,
    unknown_columns: Sequence[str] | None = None,
) -> str:
    """The column `batch` of the progress table.

    Args:
        after: the batch that the table had before, as Spark casts it; None where it is a new table.
        profile: of a change log, what the batch holds.
        unknown_columns: of a history, columns that an open version may not know; None for any.
    """
    # of two texts, the later one is greater
    at = datetime.now(timezone.utc).isoformat(timespec="microseconds")
    return json.dumps(
        {"at": at, "after": after, "profile": profile, "unknown_columns": unknown_columns}
    )


def last_publication(session: SparkSession, progress: str, model: str) -> Publication | None:
    """What a model has noted last, as far as this command knows; None where it does not.

    Args:
        session: the live Spark session.
        progress: the table of progress.
        model: its name there.
    """
    with _lock:
        found = _known(session, progress).get(model)
        return None if found is None else found.last


def progress_since(
    session: SparkSession, progress: str, reader: str, models: Sequence[str]
) -> dict[str, ProgressSince]:
    """What models have noted since the last batch that a reader of their tables has noted.

    Without a query if the reader had applied everything when the command began.

    Args:
        session: the live Spark session.
        progress: the table of progress.
        reader: its name there.
        models: their names there, and maybe that of the reader.
    """
    with _lock:
        known = _known(session, progress)
        if reader in known and all(model in known for model in models):
            applied = known[reader].last.recorded_at
            if applied and all(
                (known[model].at_start.recorded_at or "") <= applied for model in models
            ):
                return {
                    model: seen_from(applied, known[model].last, known[model].since)
                    for model in models
                }
    return _read_since(session, progress, reader, models)


def remember_publication(progress: str, model: str, publication: Publication) -> None:
    """To be called whenever something is noted of a model."""
    with _lock:
        if _command == (get_invocation_id(), progress) and model in _models:
            _models[model].since.append(publication)


def forget_publications(model: str) -> None:
    """To be called whenever something that was noted of a model is removed."""
    with _lock:
        _models.pop(model, None)


def _known(session: SparkSession, progress: str) -> dict[str, _Model]:
    global _command  # noqa: PLW0603 - one per process, as dbt's command is
    command = (get_invocation_id(), progress)
    if command != _command:
        _models.clear()
        _models.update(_read(session, progress))
        _command = command
    return _models


def _read(session: SparkSession, progress: str) -> dict[str, _Model]:
    # the row as a whole, not the greatest of each column: a rebuilt log may end at another place
    last = F.max(F.struct("recorded_at", "change_seq", "changed_at", "raw_version", "batch"))
    rows = (
        session.table(progress)
        .groupBy("model")
        .agg(last.alias("last"))
        .selectExpr(
            "model",
            "cast(last.recorded_at as string)",
            "last.change_seq",
            "cast(last.changed_at as string)",
            "last.raw_version",
            "last.batch",
        )
    )
    return {
        row[0]: _Model(Publication(row[1], row[2], row[3], raw_version=row[4], batch=row[5]))
        for row in rows.collect()
    }


def _read_since(
    session: SparkSession, progress: str, reader: str, models: Sequence[str]
) -> dict[str, ProgressSince]:
    # `partition by 1` is all rows; Spark warns of a window without it
    rows = session.sql(
        f"""
        select
            model,
            cast(last.recorded_at as string),
            last.change_seq,
            cast(last.changed_at as string),
            last.batch,
            cast(applied as string),
            since
        from (
            select
                model,
                max(struct(recorded_at, change_seq, changed_at, batch)) as last,
                any_value(applied) as applied,
                collect_set(
                    case
                        when applied is null then struct('' as recorded_at, path, '' as batch)
                        when coalesce(recorded_at > applied, true)
                            then struct(cast(recorded_at as string) as recorded_at, path, batch)
                    end
                ) as since
            from (
                select
                    *,
                    max(if(model = {text(reader)}, recorded_at, null))
                        over (partition by 1) as applied
                from {progress}
                where model in ({", ".join(map(text, {reader, *models}))})
            ) as publications
            group by model
        ) as last_rows"""
    ).collect()
    found = {
        row[0]: seen_from(
            row[5],
            Publication(row[1], row[2], row[3], batch=row[4]),
            [Publication(each[0], path=each[1], batch=each[2]) for each in row[6]],
        )
        for row in rows
    }
    nothing = ProgressSince(None, None, None, [], is_continued=False, profiles=None)
    return {model: found.get(model, nothing) for model in models}


def seen_from(
    applied: str | None, last: Publication, publications: Iterable[Publication]
) -> ProgressSince:
    """What publications of a model tell a reader of its table.

    Args:
        applied: the newest batch that the reader has applied; None where it has none.
        last: the last publication.
        publications: all of those since the reader's batch; others do no harm.
    """
    since = sorted(
        (
            each
            for each in publications
            if not applied or not each.recorded_at or each.recorded_at > applied
        ),
        key=lambda each: (each.recorded_at or "", each.batch is None),
    )
    at, profiles, is_continued = applied, [], applied is not None
    for each in since:
        if each.recorded_at == at and not each.batch:
            continue  # noted again: newer marks of arrival, for example
        batch = json.loads(each.batch) if each.batch else {}
        is_continued = is_continued and batch.get("after") == at
        profiles.append(batch.get("profile"))
        at = each.recorded_at
    known = [profile for profile in profiles if profile is not None]
    return ProgressSince(
        last.recorded_at,
        last.change_seq,
        last.changed_at,
        list(dict.fromkeys(each.path for each in since if each.path)),
        is_continued,
        known if is_continued and len(known) == len(profiles) else None,
        json.loads(last.batch).get("unknown_columns") if last.batch else None,
    )
