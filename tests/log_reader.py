"""Reads what Spark holds into the oracle's plain rows: timestamps in UTC, binaries as bytes."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from tests.oracle.history import LogRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOG_COLUMNS = {
    "change_seq",
    "change_oper",
    "changed_at",
    "recorded_at",
    "change_date",
    "source_timestamp",
    "transaction_id",
    "transaction_event",
    "stream_position",
    "transaction_last_event",
    "source_user",
    "declared_changed_columns",
    "known_columns",
    "before_known_columns",
    "truncate_scope",
    "load_id",
    "load_rows",
    "record_hash",
    "before_record_hash",
    "before",
}


def read_rows(table: DataFrame) -> list[dict[str, Any]]:
    """All rows of a table as dicts of plain values, through Arrow, which keeps UTC as it is."""
    return [
        {name: plain(value) for name, value in row.items()} for row in table.toArrow().to_pylist()
    ]


def plain(value: Any) -> Any:
    """A value without a time zone: the session's is UTC, the oracle's timestamps have none."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).replace(tzinfo=None)
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return value


def read_log(table: DataFrame) -> list[LogRow]:
    """A change log as the oracle's rows."""
    data_columns = [name for name in table.columns if name not in LOG_COLUMNS]
    return [_log_row(row, data_columns) for row in read_rows(table)]


def _log_row(row: dict[str, Any], data_columns: list[str]) -> LogRow:
    has_data = row["change_oper"] != "T" and row["load_rows"] is None
    known, before_known = row["known_columns"], row["before_known_columns"]
    scope = row["truncate_scope"]
    return LogRow(
        change_seq=row["change_seq"],
        change_oper=row["change_oper"],
        data={name: row[name] for name in data_columns} if has_data else None,
        changed_at=row["changed_at"],
        transaction_id=row["transaction_id"],
        known_columns=None if known is None else set(known),
        before=row["before"],
        before_known_columns=None if before_known is None else set(before_known),
        truncate_scope=None if scope is None else dict(scope),
        load_id=row["load_id"],
        load_rows=row["load_rows"],
    )
