"""The batches that each model has applied, and when, from the progress table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dbt_afterimage.cli.commands.query import connect, run
from dbt_afterimage.cli.support.table_status import CHANGES, MARTS
from dbt_afterimage.cli.support.warehouse import PROGRESS, TableVersion, Warehouse

_SQL = f"""
    select distinct model, recorded_at, path from {PROGRESS}
    where recorded_at is not null order by recorded_at
"""


@dataclass(frozen=True)
class Applied:
    """A model applied a batch of its change log; `path` is None for the change log itself."""

    model: str
    recorded_at: datetime
    path: str | None


@dataclass(frozen=True)
class Batch:
    """A batch of a change log.

    Attributes:
        table: the table.
        recorded_at: when it was recorded, UTC.
        rows: changes and loaded rows that it added; None if the log's metadata does not show it.
        path: how history applied it; None if it has not, or not in a publication of its own.
        missing: marts that have not applied it yet, such as `_history`.
    """

    table: str
    recorded_at: datetime
    rows: int | None
    path: str | None
    missing: tuple[str, ...]


def read_applied(warehouse: Warehouse, schema: str) -> list[Applied]:
    """All rows of the progress table that name a batch, the oldest first."""
    found = run(connect(), warehouse, schema, _SQL)
    return [Applied(*row) for row in found.fetchall()]


def last_applied(applied: Iterable[Applied]) -> dict[str, Applied]:
    """The newest row of each model."""
    return {each.model: each for each in applied}


def batches(
    applied: Sequence[Applied],
    tables: Iterable[str],
    versions: Mapping[str, Sequence[TableVersion]],
) -> list[Batch]:
    """The batches of tables, the newest first.

    Args:
        tables: names of tables that have a change log.
        versions: commits by table name, the oldest first.
    """
    last = last_applied(applied)
    paths = {(each.model, each.recorded_at): each.path for each in applied}
    found = []
    for table in tables:
        log = table + CHANGES
        times = [each.recorded_at for each in applied if each.model == log]
        for time, following in zip(times, [*times[1:], None], strict=True):
            missing = tuple(
                mart
                for mart in MARTS
                if table + mart in last and last[table + mart].recorded_at < time
            )
            found.append(
                Batch(
                    table,
                    time,
                    _rows(versions.get(log, ()), time, following),
                    paths.get((f"{table}_history", time)),
                    missing,
                )
            )
    return sorted(found, key=lambda batch: (batch.recorded_at, batch.table), reverse=True)


def _rows(
    versions: Sequence[TableVersion], time: datetime, following: datetime | None
) -> int | None:
    """Rows of the first commit after a batch was begun and before the next one was."""
    for version in versions:
        if version.committed_at >= time and (following is None or version.committed_at < following):
            return version.added
    return None


def rows_between(found: Iterable[Batch], start: datetime, end: datetime) -> int | None:
    """Rows of the batches that were recorded in a span of time; None if one is not known."""
    rows: list[Any] = [each.rows for each in found if start <= each.recorded_at <= end]
    return None if None in rows else sum(rows)
