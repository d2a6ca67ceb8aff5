"""Writes events as Qlik Replicate does: records of a change table, rows of a base table.

The rules are those of Qlik's page "Change Tables". Where it leaves a choice (which form masks
take, what a deleted row's record holds), the table decides: see `tables.Table`.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta, timezone
from decimal import Decimal

from afterimage_demo.database import Event
from afterimage_demo.masks import bits_of
from afterimage_demo.tables import Row, Table, Value

RawRow = dict[str, Value]
"""Raw column name to the value that lands, in the raw table's column order."""

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_OPERATIONS = {
    "I": "INSERT",
    "U": "UPDATE",
    "D": "DELETE",
    "B": "BEFOREIMAGE",
    # The page names no letter for it; `operation` identifies it.
    "T": "TRUNCATE",
}


def change_records(table: Table, event: Event, partition: str) -> list[RawRow]:
    """Return the records of one event: before image and update, or a single record.

    partition: the value of `header__partition_name`, for tables that store it.
    """
    if event.oper == "U" and table.before_images:
        return [
            _record(table, event, "B", event.before, partition),
            _record(table, event, "U", _without_unchanged_lobs(table, event), partition),
        ]
    if event.oper == "U":
        return [_record(table, event, "U", _without_unchanged_lobs(table, event), partition)]
    if event.oper == "D" and table.delete_image == "key":
        assert event.before is not None
        key_alone = {name: event.before[name] for name in table.key}
        return [_record(table, event, "D", key_alone, partition)]
    image = event.after if event.after is not None else event.before
    return [_record(table, event, event.oper, image, partition)]


def base_row(table: Table, row: Row) -> RawRow:
    """Return a row of the base table as it lands."""
    landed = {column.name: row[column.name] for column in table.columns}
    return _as_texts(landed) if table.landed_as_text else landed


def text(value: Value) -> str | None:
    """Return a value as loaders that land everything as text write it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S.%f}"
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value)


def _record(
    table: Table, event: Event, oper: str, image: Row | dict[str, Value] | None, partition: str
) -> RawRow:
    headers: RawRow = {
        "header__change_seq": event.change_seq,
        "header__change_oper": oper,
        "header__change_mask": _mask(table, event, oper),
        "header__stream_position": f"{event.counter:08x}.{event.transaction_number:08x}.0000",
        "header__operation": _OPERATIONS[oper],
        "header__transaction_id": f"{event.transaction_number:032X}",
        "header__timestamp": _timestamp(table, event),
        "header__partition_name": partition,
    }
    record = {name: headers[name] for name in table.header_columns}
    values = image or {}
    for column in table.columns:
        record[column.name] = values.get(column.name)
    return _as_texts(record) if table.landed_as_text else record


def _as_texts(row: RawRow) -> RawRow:
    return {name: text(value) for name, value in row.items()}


def _without_unchanged_lobs(table: Table, event: Event) -> dict[str, Value]:
    """Return the image after an update; it holds a LOB only where the update has changed it."""
    before, after = event.before, event.after
    assert before is not None and after is not None
    unchanged = {name for name in table.lob_columns if before[name] == after[name]}
    return {name: None if name in unchanged else value for name, value in after.items()}


def _mask(table: Table, event: Event, oper: str) -> Value:
    """Return the change mask; before images have no bit set, or no mask at all."""
    if oper == "T" or (oper == "B" and event.counter % 3 == 0):
        return None
    marked = _marked_columns(table, event, oper)
    first_data_ordinal = len(table.header_columns) + 1
    ordinals = (
        ordinal
        for ordinal, column in enumerate(table.columns, first_data_ordinal)
        if column.name in marked and column.name not in table.lob_columns
    )
    form = table.mask_forms[event.transaction_number % len(table.mask_forms)]
    return form(bits_of(ordinals), table.width)


def _marked_columns(table: Table, event: Event, oper: str) -> Collection[str]:
    if oper == "I":
        assert event.after is not None
        return {
            name
            for name, value in event.after.items()
            if value is not None or not table.masks_skip_nulls
        }
    if oper == "U":
        assert event.before is not None and event.after is not None
        return {name for name, value in event.after.items() if value != event.before[name]}
    return table.key if oper == "D" else ()


def _timestamp(table: Table, event: Event) -> datetime:
    """Return the time of the change: a little before the commit, or not known yet."""
    if table.epoch_timestamps and event.transaction_number % 4:
        return EPOCH
    return event.committed_at - timedelta(microseconds=1 + event.counter * 7919 % 400_000)
