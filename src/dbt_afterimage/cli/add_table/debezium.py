"""Proposes the tables whose changes are in landed messages of Debezium, from sampled messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dbt_afterimage.cli.add_table.proposal import (
    KeyProposal,
    Proposal,
    SourceColumn,
    SourceTable,
)
from dbt_afterimage.cli.add_table.qlik_messages import MessageTable, json_object, table_name
from dbt_afterimage.errors import AfterimageError

_CONNECTOR = "postgresql"
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
# Source: Debezium documentation, page "Debezium connector for PostgreSQL", section on data types.
_NAMED: Mapping[str, tuple[str, str | None]] = {
    "io.debezium.time.Date": ("date", None),
    "org.apache.kafka.connect.data.Date": ("date", None),
    "io.debezium.time.MicroTimestamp": ("timestamp_ntz", None),
    "io.debezium.time.Timestamp": ("timestamp_ntz", "milliseconds"),
    "org.apache.kafka.connect.data.Timestamp": ("timestamp_ntz", "milliseconds"),
    "io.debezium.time.NanoTimestamp": ("timestamp_ntz", "nanoseconds"),
    "io.debezium.time.ZonedTimestamp": ("timestamp", None),
    "io.debezium.time.MicroTime": ("string", "time_microseconds"),
    "io.debezium.time.Time": ("string", "time_milliseconds"),
    "org.apache.kafka.connect.data.Time": ("string", "time_milliseconds"),
    "io.debezium.time.MicroDuration": ("bigint", None),
    "io.debezium.data.Bits": ("binary", None),
    "io.debezium.data.VariableScaleDecimal": ("decimal(38,10)", "scaled_base64"),
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"


class UnreadableEventsError(AfterimageError):
    """Sampled messages do not show a table's columns, or no preset reads them."""


def is_event(value: str) -> bool:
    """Whether a message is an event of Debezium's, with its schema or without."""
    return _event(value) is not None


def is_of_debezium_itself(topic: str) -> bool:
    """Whether a topic holds no table: heartbeats and transaction metadata."""
    return topic.startswith("__debezium-heartbeat") or topic.endswith(".transaction")


def propose(table: MessageTable, source: str, schema: str, prefix: str = "") -> Proposal:
    """What to write for a table.

    Raises:
        UnreadableEventsError: no sampled event has a row, or they are not PostgreSQL's.
    """
    events = [event for value in table.data if (event := _event(value)) is not None]
    where = f"{schema}.{table.messages.name}, topic {table.name}"
    connectors = sorted({str(event["source"].get("connector")) for event in events})
    if connectors != [_CONNECTOR]:
        raise UnreadableEventsError(
            f"{where}: its events are of the connector {', '.join(connectors)}; the preset "
            f"`debezium` reads {_CONNECTOR}. Fix: declare the table by hand, with the settings of "
            "docs/change_feed.md."
        )
    name = prefix + table_name(table)
    notes = ["preset: debezium, by its messages"]
    described = _of_schema(table.data)
    if described is None:
        described = _of_rows(events)
        notes.append(
            f"types are inferred from {len(events)} sampled messages without schemas: JSON has no "
            "dates, times and decimals, so check them"
        )
    columns, encodings = described
    if not columns:
        raise UnreadableEventsError(
            f"{where}: none of {len(events)} sampled events has a row. Fix: name another table, or "
            "declare this one by hand (docs/feeds/debezium.md)."
        )
    settings: dict[str, Any] = {"preset": "debezium", "filter": f"topic = '{table.name}'"}
    if encodings:
        settings["encodings"] = encodings
    key = _key(table.keys, [column.name for column in columns])
    has_before_images = _has_before_images(events, key.columns)
    if not has_before_images:
        settings["before_images"] = False
        notes.append(
            "before_images: false (no sampled event has a whole row before it; set REPLICA "
            "IDENTITY FULL at the source to get them)"
        )
    entry = table_name(table)
    return Proposal(
        table=name,
        schema=schema,
        source=source,
        source_settings={"system": "change_feed"},
        system="change_feed",
        tables=(
            SourceTable(
                entry,
                f"Changes of {table.name}, in the messages that {table.messages.name} holds.",
                settings,
                columns,
                identifier=table.messages.name,
            ),
        ),
        staging=f"stg_{source}__{name}",
        staging_macro="stage_change_feed",
        staging_arguments=(f"'{source}'", f"'{entry}'"),
        key=key,
        key_columns=tuple(column.name for column in columns),
        has_before_images=has_before_images,
        notes=tuple(notes),
    )


def _event(value: str) -> dict[str, Any] | None:
    """An event without its schema; None for anything else."""
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


def _of_schema(
    values: Iterable[str],
) -> tuple[tuple[SourceColumn, ...], dict[str, str]] | None:
    """Columns and encodings as the newest message's schema names them; None without a schema."""
    for value in reversed(list(values)):
        schema = (json_object(value) or {}).get("schema")
        images = schema.get("fields") if isinstance(schema, dict) else None
        after: Mapping[str, Any] = next((f for f in images or [] if f.get("field") == "after"), {})
        if not after.get("fields"):
            continue
        columns, encodings = [], {}
        for field in after["fields"]:
            kind, encoding = _type_of(field)
            columns.append(_column(field["field"], kind))
            if encoding:
                encodings[field["field"]] = encoding
        return tuple(columns), encodings
    return None


def _type_of(field: Mapping[str, Any]) -> tuple[str, str | None]:
    """(Spark type, encoding) of a field of Kafka Connect's schema."""
    name = str(field.get("name"))
    if name == _DECIMAL:
        given = field.get("parameters") or {}
        scale = int(given.get("scale", 0))
        return f"decimal({int(given.get('connect.decimal.precision', 38))},{scale})", None
    if name in _NAMED:
        return _NAMED[name]
    return _TYPES.get(str(field.get("type")), "string"), None


def _of_rows(
    events: Sequence[Mapping[str, Any]],
) -> tuple[tuple[SourceColumn, ...], dict[str, str]]:
    values: dict[str, list[Any]] = {}
    for event in events:
        for image in (event.get("after"), event.get("before")):
            for name, value in (image or {}).items():
                values.setdefault(name, []).append(None if value == _UNAVAILABLE else value)
    return tuple(_column(name, _type_of_values(found)) for name, found in values.items()), {}


def _type_of_values(values: Sequence[Any]) -> str:
    """Dates and times are numbers in these messages, and decimals text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return "bigint"
    return "double" if kinds and kinds <= {int, float} else "string"


def _column(name: str, kind: str) -> SourceColumn:
    return SourceColumn(name, f"Column {name} of the source.", kind)


def _key(keys: Iterable[str], columns: Sequence[str]) -> KeyProposal:
    for key in keys:
        found = _without_schema(key) or {}
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
        for name, value in (event.get("before") or {}).items()
    )
