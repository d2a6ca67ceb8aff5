"""The progress of models during a dbt command, in memory.

One query reads the progress of all models when a command begins, and one commit at its end adds
what its models have published (`end_command`). Where another command has written to the table in
between, which its version shows, or a reader needs older rows, the table is read again. A command
that is killed leaves its tables ahead of their progress, as between a publication and its row.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from threading import RLock
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.invocation import get_invocation_id
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dbt_afterimage.errors import explained
from dbt_afterimage.storage.formats import format_named
from dbt_afterimage.storage.local_relation import local_rows

logger = AdapterLogger("afterimage")


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
        arrival: the greatest mark of arrival that a log has read.
    """

    recorded_at: str | None = None
    change_seq: str | None = None
    changed_at: str | None = None
    path: str | None = None
    batch: str | None = None
    raw_version: str | None = None
    table_version: str | None = None
    arrival: str | None = None


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
        batches: `recorded_at` of the publications since; None where one is not known.
    """

    recorded_at: str | None
    change_seq: str | None
    changed_at: str | None
    paths: list[str]
    is_continued: bool
    profiles: list[str] | None
    unknown_columns: list[str] | None = None
    table_version: str | None = None
    batches: list[str] | None = None


LAST = ("recorded_at", "raw_version", "batch", "change_seq", "changed_at", "table_version")
"""Of two publications of a model, the later one is greater in these columns together.

A table that is rebuilt has applied the same batch again, and may end at another position: of the
other columns, only the two of JSON, which begin with the time, show which row is later.
"""
KEPT_DAYS = 7
"""Publications of this age are deleted, see `progress_maintenance.py`."""
UNKNOWN_PATH = "unknown"

_KEPT_SECONDS = 60
"""Publications are written once one of them is older: a killed command loses no more than that."""


@dataclass
class _Command:
    """The state of the progress table during a dbt command.

    Attributes:
        identity: of dbt's command, and the table.
        table_format: of the table.
        version: of the table, when `last` was read; None: to be read again.
        last: the last publication of each model that the table had then.
        published: those of the command since.
        unwritten: those of them that are not in the table, with the name of their model.
        since: when the first of `unwritten` was published, on a clock of this process.
    """

    identity: tuple[str, str]
    table_format: str
    version: str | None = None
    last: dict[str, Publication] = field(default_factory=dict)
    published: dict[str, list[Publication]] = field(default_factory=dict)
    unwritten: list[tuple[str, Publication]] = field(default_factory=list)
    since: float = 0.0


_lock = RLock()
_command: _Command | None = None


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


def begin_command(progress: str, table_format: str) -> None:
    """Keep progress in memory until `end_command`; other callers write and read the table."""
    global _command  # noqa: PLW0603 - one per process, as dbt's command is
    with _lock:
        _command = _Command((get_invocation_id(), progress), table_format)


def end_command(session: SparkSession) -> None:
    """Write what the command has published, in one commit; a failure is a warning."""
    global _command
    with _lock:
        command, _command = _command, None
    if command is None:
        return
    try:
        _write(session, command)
    except Exception as error:
        logger.warning(
            f"{command.identity[1]}: what this command has published could not be recorded: "
            f"{explained(str(error))} The tables are written. The next run finds that out from "
            "their rows, which takes longer. Fix: make sure that this user may write to the table."
        )


def last_publication(session: SparkSession, progress: str, model: str) -> Publication | None:
    """The last publication of a model; None when it has none."""
    with _lock:
        command = _current(session, progress)
        if command is None:
            return _read_last(session, progress, [model]).get(model)
        return _last_of(command, model)


def publish_progress(
    session: SparkSession, progress: str, model: str, publication: Publication
) -> None:
    """Add a publication of a model."""
    with _lock:
        command = _own(progress)
        if command is None:
            append_progress(session, progress, [(model, publication)])
            return
        if not command.unwritten:
            command.since = time.monotonic()
        command.published.setdefault(model, []).append(publication)
        command.unwritten.append((model, publication))
        if time.monotonic() - command.since > _KEPT_SECONDS:
            write_pending(session)


def write_pending(session: SparkSession) -> None:
    """Write what the command has published so far, for readers of the table."""
    with _lock:
        if _command is not None and _command.unwritten:
            own = _version(session, _command)
            is_known = own == _command.version
            _write(session, _command)
            _command.version = _version(session, _command) if is_known else None


def drop_cached_progress() -> None:
    """To be called whenever progress is removed: the table is read again."""
    with _lock:
        if _command is not None:
            _command.version = None


def append_progress(
    session: SparkSession, progress: str, publications: Sequence[tuple[str, Publication]]
) -> None:
    """Append publications to the progress table, each with the name of its model; one commit."""
    # a table of an earlier version gains columns only in the first `dbt run`
    names = session.table(progress).columns
    kinds = {"recorded_at": "timestamp", "changed_at": "timestamp"}
    rows = [{"model": model, **vars(publication)} for model, publication in publications]
    columns = ", ".join(f"{name} string" for name in names)
    local_rows(session, rows, columns).selectExpr(
        *(f"cast({name} as {kinds.get(name, 'string')}) as {name}" for name in names)
    ).coalesce(1).writeTo(progress).append()


def _write(session: SparkSession, command: _Command) -> None:
    if command.unwritten:
        append_progress(session, command.identity[1], command.unwritten)
        command.unwritten.clear()


def _version(session: SparkSession, command: _Command) -> str | None:
    return format_named(command.table_format).version(session, command.identity[1])


def _own(progress: str) -> _Command | None:
    """The command, if it is this one's and keeps this table; None outside of one."""
    is_own = _command is not None and _command.identity == (get_invocation_id(), progress)
    return _command if is_own else None


def _current(session: SparkSession, progress: str) -> _Command | None:
    """The command, with what the table has; None outside of one."""
    command = _own(progress)
    if command is None:
        return None
    if command.version is None or _version(session, command) != command.version:
        write_pending(session)
        # before the query: what is added meanwhile is read next time
        version = _version(session, command)
        command.published.clear()
        command.last = _read_last(session, progress)
        command.version = version
    return command


def _last_of(command: _Command, model: str) -> Publication | None:
    published = command.published.get(model)
    return published[-1] if published else command.last.get(model)


def progress_since(
    session: SparkSession, progress: str, reader: str, models: Sequence[str]
) -> dict[str, ProgressSince]:
    """The progress of models since the last batch that a reader of their tables has applied.

    Without a query if the reader had applied all batches of its inputs when the command began.

    Args:
        models: names of the models there, the reader among them.
    """
    models = list(dict.fromkeys(models))
    applied: str | None = None
    with _lock:
        command = _current(session, progress)
        if command is not None:
            own = _last_of(command, reader)
            applied = own.recorded_at if own else None
            at_start = [command.last.get(name, Publication()).recorded_at for name in models]
            if applied and all(batch and batch <= applied for batch in at_start):
                # what the reader has not applied is of this command
                return {
                    name: seen_from(
                        applied,
                        _last_of(command, name) or Publication(),
                        command.published.get(name, []),
                    )
                    for name in models
                }
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


def progress_rows(session: SparkSession, progress: str) -> DataFrame:
    """The progress table; one of an earlier version gains columns only in the first `dbt run`."""
    write_pending(session)
    rows = session.table(progress)
    absent = [name for name in ("batch", "table_version") if name not in rows.columns]
    added = {name: F.lit(None).cast("string") for name in absent}
    # Spark Connect refuses to add no columns
    return rows.withColumns(added) if added else rows


def _read_last(
    session: SparkSession, progress: str, models: Sequence[str] | None = None
) -> dict[str, Publication]:
    """The last publication of each model, or of all."""
    rows = progress_rows(session, progress)
    if models is not None:
        rows = rows.filter(F.col("model").isin(*models))
    last = F.max(F.struct(*LAST, "arrival"))
    found = (
        # of a few days: in one partition they need no shuffle, which is a job
        rows.coalesce(1)
        .groupBy("model")
        .agg(last.alias("last"))
        .selectExpr(
            "model",
            "cast(last.recorded_at as string)",
            "last.change_seq",
            "cast(last.changed_at as string)",
            "last.batch",
            "last.raw_version",
            "last.table_version",
            "last.arrival",
        )
    )
    return {row[0]: Publication(row[1], row[2], row[3], None, *row[4:]) for row in found.collect()}


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
            "arrival",
        )
    )
    found: dict[str, list[Publication]] = {}
    for row in rows.collect():
        found.setdefault(row[0], []).append(Publication(*row[1:]))
    return found


def row_count(publication: Publication) -> int:
    """How many rows the table had then, from the column `batch`; 0 where that is not known."""
    rows = _batch(publication).get("rows")
    return rows if isinstance(rows, int) else 0


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
    at, profiles, batches = applied, [], []
    is_continued = bool(applied and last.recorded_at and last.recorded_at >= applied)
    for each in since:
        # built when its input was empty, or recorded again: newer marks of arrival, for example
        if each.recorded_at is None or (each.recorded_at == at and not each.batch):
            continue
        batch = _batch(each)
        is_continued = is_continued and batch.get("after") == at
        profiles.append(batch.get("profile"))
        batches.append(each.recorded_at)
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
        batches if is_continued else None,
    )


def _batch(publication: Publication) -> dict[str, Any]:
    """The column `batch`; empty where it is NULL or cut off: what it would say is queried then."""
    try:
        given = json.loads(publication.batch or "{}")
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}
