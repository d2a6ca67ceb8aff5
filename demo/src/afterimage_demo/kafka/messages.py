"""Writes events and rows as Qlik writes messages: headers, masks, images, keys and partitions."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

from afterimage_demo.database import REPLICATION_DELAY, Event
from afterimage_demo.kafka.avro import encode
from afterimage_demo.kafka.forms import (
    avro_envelope,
    avro_registered,
    data_schema,
    json_bytes,
    json_envelope,
    metadata_message,
)
from afterimage_demo.kafka.tables import METADATA_TOPIC, SCHEMA, ShopTable
from afterimage_demo.masks import bits_of, message_hex
from afterimage_demo.qlik import EPOCH, text
from afterimage_demo.tables import Row, Value

PARTITIONS = 2
REGISTERED_ID = 1
SCHEMAS = Path(__file__).parent / "schemas"
"""The schema registry of the demo: a folder of `<id>.avsc` files."""

_OPERATIONS = {"I": "INSERT", "U": "UPDATE", "D": "DELETE"}
# Of a load: no position, no time, no masks.
_REFRESH: dict[str, Any] = {
    "operation": "REFRESH",
    **dict.fromkeys(("changeSequence", "timestamp", "streamPosition", "transactionId"), ""),
    **dict.fromkeys(("changeMask", "columnMask")),
    **dict.fromkeys(("transactionEventCounter", "transactionLastEvent")),
}
_AVRO_TYPES = {"bigint": "long", "int": "int", "boolean": "boolean"}
# every fifth update lacks a column that it leaves alone: it was not read from the log
_UNREAD, _UNREAD_EVERY = "email", 5


@dataclass(frozen=True)
class Message:
    """A message for Kafka; at: its time stamp, aware."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    at: datetime
    headers: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Place:
    """An event's place in its transaction: its number, from 1, and whether it is the last."""

    number: int
    is_last: bool


def refresh_message(table: ShopTable, row: Row, at: datetime, version: int = 1) -> Message:
    """A row of a full load."""
    return _message(table, table.image(row), None, _REFRESH, at, version)


def change_message(table: ShopTable, event: Event, place: Place, version: int) -> Message:
    """A change; version: of the table's columns by which it is written."""
    before = table.image(event.before) if event.before else None
    after = table.image(event.after) if event.after else None
    names = table.columns_of(version)
    unread: set[str] = set()
    if event.oper == "U" and _UNREAD in names and event.counter % _UNREAD_EVERY == 0:
        assert before is not None and after is not None
        if before[_UNREAD] == after[_UNREAD]:
            unread = {_UNREAD}
            before, after = {**before, _UNREAD: None}, {**after, _UNREAD: None}
    changed = _changed(table, event.oper, before, after)
    headers = {
        "operation": _OPERATIONS[event.oper],
        "changeSequence": event.change_seq,
        "timestamp": f"{event.committed_at:%Y-%m-%dT%H:%M:%S.%f}"[:-3],
        "streamPosition": f"{event.counter:08x}.{event.transaction_number:08x}.0000",
        "transactionId": f"{event.transaction_number:032X}",
        "changeMask": _mask(names, changed),
        "columnMask": _mask(names, set(names) - unread),
        "transactionEventCounter": place.number,
        "transactionLastEvent": place.is_last,
    }
    image = after
    if event.oper == "D":
        assert before is not None
        image, before = _deleted(table, before)
    elif not table.before_images:
        before = None
    at = event.committed_at + REPLICATION_DELAY
    key = after or table.image(event.before or {})
    return _message(table, image, before, headers, at, version, key=key)


def tombstone(message: Message) -> Message:
    """What follows a delete in a compacted topic."""
    at = message.at + timedelta(milliseconds=1)
    return Message(message.topic, message.partition, message.key, None, at)


def metadata(table: ShopTable, version: int, at: datetime) -> Message:
    """The metadata message of a version of a table."""
    lineage = {
        "server": "webshop.example.com",
        "task": "webshop-to-kafka",
        "schema": SCHEMA,
        "table": table.name,
        "tableVersion": version,
        "timestamp": f"{at:%Y-%m-%dT%H:%M:%S.000}",
    }
    types = {name: table.types[name] for name in table.columns_of(version)}
    schema_id = schema_id_of(table, version)
    content = metadata_message(schema_id, lineage, types, table.key, avro_schema(table, version))
    value = json_envelope(content, "MD", schema_id)
    return Message(METADATA_TOPIC, 0, None, value, at)


def schema_id_of(table: ShopTable, version: int) -> str:
    """The id of a version of a table in the Qlik envelope."""
    return f"{crc32(f'{SCHEMA}.{table.name}'.encode()):08X}-{version}"


def avro_schema(table: ShopTable, version: int) -> dict[str, Any]:
    """The schema that a table's Avro messages are written by."""
    if table.form == "avro_registry":
        return dict(_registered())
    kinds = {
        name: _AVRO_TYPES.get(table.types[name], "string") for name in table.columns_of(version)
    }
    return data_schema(kinds)


def written(table: ShopTable, content: Mapping[str, Any], version: int = 1) -> bytes:
    """A message in the form of its table; masks are given as bits, see `_mask`."""
    headers = dict(content["headers"])
    masks = ("changeMask", "columnMask")
    if table.form.startswith("json"):
        headers |= {name: headers[name] and message_hex(*headers[name]) for name in masks}
        body = {**{name: _texts(content[name]) for name in ("data", "beforeData")},
                "headers": headers}  # fmt: skip
        return json_bytes(body) if table.form == "json_bare" else json_envelope(body)
    headers |= {name: headers[name] and _bytes(*headers[name]) for name in masks}
    own = _texts if table.form == "avro_envelope" else _logical
    images = {name: own(content[name]) for name in ("data", "beforeData")}
    # in Avro there is always a record
    images["data"] = images["data"] or dict.fromkeys(table.columns)
    data = encode(avro_schema(table, version), {**images, "headers": headers})
    if table.form == "avro_registry":
        return avro_registered(REGISTERED_ID, data)
    return avro_envelope(data, schema_id=schema_id_of(table, version))


def _message(
    table: ShopTable,
    image: dict[str, Value] | None,
    before: dict[str, Value] | None,
    headers: Mapping[str, Any],
    at: datetime,
    version: int,
    key: Mapping[str, Value] | None = None,
) -> Message:
    named = {name: (key or image or {})[name] for name in table.key}
    data = json_bytes(_texts(named))
    names = table.columns_of(version)
    images = {
        label: {name: of.get(name) for name in names} if of is not None else None
        for label, of in (("data", image), ("beforeData", before))
    }
    value = written(table, {**images, "headers": headers}, version)
    return Message(table.topic, crc32(data) % PARTITIONS, data, value, at, headers)


def _deleted(
    table: ShopTable, row: dict[str, Value]
) -> tuple[dict[str, Value] | None, dict[str, Value] | None]:
    """Where a deleted row is: in `data`, in `beforeData`, or its key alone in `data`."""
    if not table.before_images:
        return {name: row[name] for name in table.key}, None
    return (row, None) if table.form == "json_envelope" else (None, row)


def _changed(
    table: ShopTable,
    oper: str,
    before: Mapping[str, Value] | None,
    after: Mapping[str, Value] | None,
) -> Collection[str]:
    if oper == "U":
        assert before is not None and after is not None
        return [name for name in after if after[name] != before[name]]
    return table.columns if oper == "I" else table.key


def _mask(names: list[str], marked: Collection[str]) -> tuple[int, int]:
    """The bits of a mask, data columns only, and how many columns it is over."""
    return bits_of(place for place, name in enumerate(names, 1) if name in marked), len(names)


def _bytes(bits: int, columns: int) -> bytes:
    """A mask in Avro: the least significant byte comes first."""
    return bits.to_bytes(columns // 8 + 1, "little")


def _texts(image: Mapping[str, Value] | None) -> dict[str, Any] | None:
    """Values without logical types: numbers with a scale, dates and times are text."""
    if image is None:
        return None
    plain = (bool, int, str)
    return {
        name: value if value is None or isinstance(value, plain) else text(value)
        for name, value in image.items()
    }


def _logical(image: Mapping[str, Value] | None) -> dict[str, Any] | None:
    """Values of Avro's logical types."""
    return None if image is None else {name: _of_type(value) for name, value in image.items()}


def _of_type(value: Value) -> Any:
    if isinstance(value, Decimal):
        digits = int(value.scaleb(-int(value.as_tuple().exponent)))
        return digits.to_bytes(digits.bit_length() // 8 + 1, "big", signed=True)
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (value - EPOCH.date()).days
    return value


@cache
def _registered() -> Any:
    return json.loads((SCHEMAS / f"{REGISTERED_ID}.avsc").read_text(encoding="utf-8"))
