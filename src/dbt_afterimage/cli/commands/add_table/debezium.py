"""Proposes the tables whose changes are in landed messages of Debezium, from sampled messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from dbt_afterimage.cli.commands.add_table.message_tables import (
    MessageTable,
    json_object,
    table_name,
    values_by_column,
)
from dbt_afterimage.cli.commands.add_table.proposal import (
    KeyProposal,
    Proposal,
    SourceColumn,
    SourceTable,
)
from dbt_afterimage.errors import AfterimageError
from dbt_afterimage.settings.change_feed import SCHEMA_ENCODINGS, presets

SYSTEM = "change_feed"
_UNAVAILABLE = "__debezium_unavailable_value"

# Kafka Connect's name of a type -> Spark's
_TYPES = {
    "boolean": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "float32": "float",
    "double": "double",
    "float64": "double",
    "bytes": "binary",
}
_NAMED = {
    "io.debezium.time.ZonedTimestamp": "timestamp",
    "io.debezium.data.VariableScaleDecimal": "decimal(38,10)",
}
# by the encoding that the schema gives a column, and which staging takes from there
_ENCODED = {
    "days": "date",
    "milliseconds": "timestamp_ntz",
    "microseconds": "timestamp_ntz",
    "nanoseconds": "timestamp_ntz",
    "time_milliseconds": "string",
    "time_microseconds": "string",
}
# MongoDB Extended JSON
_EXTENDED = {
    "$numberInt": "int",
    "$numberLong": "bigint",
    "$numberDouble": "double",
    "$numberDecimal": "decimal(38,10)",
    "$date": "timestamp",
    "$binary": "binary",
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"

# nanoseconds; a number counts as a time if that is between 1990 and 2100
_UNITS = {"milliseconds": 10**6, "microseconds": 10**3, "nanoseconds": 1}
_PLAUSIBLE = (631_152_000_000_000, 4_102_444_800_000_000)


class UnreadableEventsError(AfterimageError):
    """Sampled messages do not show a table's columns, or no preset reads them."""


def is_of_debezium_itself(topic: str) -> bool:
    """Whether a topic holds no table: heartbeats and transaction metadata."""
    return topic.startswith("__debezium-heartbeat") or topic.endswith(".transaction")


def propose(table: MessageTable, schema: str, source: str) -> Proposal:
    """The proposal for a table.

    Raises:
        UnreadableEventsError: no sampled event has a row, or no preset reads their connector.
    """
    events = [event for value in table.data if (event := event_of(value)) is not None]
    where = f"{schema}.{table.messages.name}, topic {table.name}"
    connectors = sorted({str(event["source"].get("connector")) for event in events})
    known = {
        connector: name
        for name, preset in presets().items()
        if preset.recognition
        for connector in preset.recognition.connectors
    }
    if len(connectors) != 1 or connectors[0] not in known:
        raise UnreadableEventsError(
            f"{where}: its events are of the connector {', '.join(connectors)}; there are presets "
            f"for {', '.join(sorted(known))}. Fix: declare the table by hand, with the settings of "
            "docs/change_feed.md."
        )
    settings: dict[str, Any] = {
        "preset": known[connectors[0]],
        "filter": f"topic = '{table.name}'",
    }
    notes = [f"preset: {settings['preset']}, by its messages"]
    columns = _of_schema(table.data)
    if columns is None:
        values = values_by_column(image for event in events for image in _images(event))
        columns = tuple(
            SourceColumn(name, data_type=_type_of_values(found)) for name, found in values.items()
        )
        notes += [
            f"types are inferred from {len(events)} sampled messages without schemas: JSON has no "
            "dates, times and decimals, so check them",
            *_possible_times(values),
        ]
    if not columns:
        raise UnreadableEventsError(
            f"{where}: none of {len(events)} sampled events has a row. Fix: name another table, or "
            "declare this one by hand (docs/feeds/debezium.md)."
        )
    names = [column.name for column in columns]
    key, raw, entry = _key(table.keys, names), table.messages.name, table_name(table)
    text = f"Changes of {table.name}, in the messages that {raw} holds."
    has_before_images = _has_before_images(events, key.columns)
    if not has_before_images:
        settings["before_images"] = False
        notes.append(
            "before_images: false (no sampled event has a whole row before it; the source stores "
            "none: PostgreSQL with REPLICA IDENTITY FULL, MongoDB with pre-images)"
        )
    return Proposal(
        SYSTEM,
        schema,
        source,
        entry,
        SourceTable(entry, text, settings, columns, identifier=raw),
        key,
        names,
        notes,
        has_before_images=has_before_images,
    )


def event_of(value: str) -> dict[str, Any] | None:
    """An event of Debezium's, out of its schema if it has one; None for any other message."""
    found = _without_schema(value)
    if found is None or not isinstance(found.get("source"), dict) or "op" not in found:
        return None
    return found


def _without_schema(value: str) -> dict[str, Any] | None:
    """A JSON object, out of the one that wraps it with its schema; None for anything else."""
    found = json_object(value)
    if found is not None and isinstance(found.get("payload"), dict) and "schema" in found:
        payload: dict[str, Any] = found["payload"]
        return payload
    return found


def _of_schema(values: Iterable[str]) -> tuple[SourceColumn, ...] | None:
    """Columns as the newest message's schema names them; None without a schema."""
    for value in reversed(list(values)):
        schema = (json_object(value) or {}).get("schema")
        images = schema.get("fields") if isinstance(schema, dict) else None
        after: Mapping[str, Any] = next((f for f in images or [] if f.get("field") == "after"), {})
        if after.get("fields"):
            return tuple(
                SourceColumn(field["field"], data_type=_type_of(field)) for field in after["fields"]
            )
    return None


def _type_of(field: Mapping[str, Any]) -> str:
    """The Spark type of a field of Kafka Connect's schema."""
    name = str(field.get("name"))
    if name == _DECIMAL:
        given = field.get("parameters") or {}
        scale = int(given.get("scale", 0))
        return f"decimal({int(given.get('connect.decimal.precision', 38))},{scale})"
    encoded = _ENCODED.get(SCHEMA_ENCODINGS.get(name, ""))
    return _NAMED.get(name) or encoded or _TYPES.get(str(field.get("type")), "string")


def _images(event: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The rows of an event; those of MongoDB are JSON in a text."""
    for image in (event.get("after"), event.get("before")):
        found = (json_object(image) if isinstance(image, str) else image) or {}
        yield {n: None if value == _UNAVAILABLE else value for n, value in found.items()}


def _possible_times(by_column: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    """Asks whether a column's numbers are times, which only the user knows."""
    for name, values in by_column.items():
        number = next((value for value in values if type(value) is int), 0)
        times = {
            unit: datetime(1970, 1, 1) + timedelta(microseconds=number * factor // 1000)
            for unit, factor in _UNITS.items()
            if _PLAUSIBLE[0] <= number * factor // 1000 <= _PLAUSIBLE[1]
        }
        if times:
            read = ", ".join(f"{time:%Y-%m-%d %H:%M:%S} in {unit}" for unit, time in times.items())
            yield (
                f"{name}: bigint, or a time? {number} is {read}. If it is a time, declare "
                f"timestamp_ntz and `encodings: {{{name}: {next(iter(times))}}}`"
            )


def _type_of_values(values: Sequence[Any]) -> str:
    """Dates and times are numbers in these messages, and decimals text."""
    tags = {next(iter(value), "") if isinstance(value, dict) else "" for value in values}
    if len(tags) == 1 and (extended := _EXTENDED.get(tags.pop())):
        return extended
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return "bigint"
    return "double" if kinds and kinds <= {int, float} else "string"


def _key(keys: Iterable[str], columns: Sequence[str]) -> KeyProposal:
    for key in keys:
        found = _without_schema(key) or {}
        if [*found] == ["id"] and "_id" in columns:
            return KeyProposal(("_id",), "the key of MongoDB's documents", is_sure=True)
        names = tuple(name for name in columns if name in found)
        if names and len(names) == len(found):
            return KeyProposal(names, "the key of its messages", is_sure=True)
    return KeyProposal(tuple(columns[:1]), "its messages have no key", is_sure=False)


def _has_before_images(events: Iterable[Mapping[str, Any]], key: Sequence[str]) -> bool:
    """Whether an update or a delete has a row before it with more than its key."""
    return any(
        value is not None and name not in key
        for event in events
        if event["op"] in ("u", "d")
        for name, value in [*_images(event)][1].items()
    )
