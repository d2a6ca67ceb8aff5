"""How the messages of a registered schema write dates, times and decimals, by field.

Kafka Connect's converters keep the name of a field's type: Avro as `connect.name`, JSON Schema as
`title`. Spark decodes Avro's own logical types, except times of day.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dbt_afterimage.settings.change_feed import SCHEMA_ENCODINGS

_TEXT = "text"
_TIMES_OF_DAY = {"time-millis": "time_milliseconds", "time-micros": "time_microseconds"}
# Avro specification 1.12, "Logical Types"
_DECODED = ("date", "decimal", "timestamp-", "local-timestamp-")


def field_encodings(kind: str, schema: str) -> dict[str, str]:
    """Encodings by field name in lower case: of the row in an envelope, or of the message."""
    fields = avro_fields if kind == "AVRO" else _json_fields
    whole = dict(fields(json.loads(schema)))
    rows = [dict(fields(whole[name])) for name in ("before", "after") if name in whole]
    # the second of two records of one type has its name only
    row = next(filter(None, rows), whole)
    encoding = _of_avro if kind == "AVRO" else _of_json
    found = {name.lower(): encoding(of) for name, of in row.items()}
    return {name: of for name, of in found.items() if of is not None}


def branches(schema: Any, union: str | None = None) -> list[Mapping[str, Any]]:
    """The types of a union, or the one type, except for those that are a name only."""
    if union is not None and isinstance(schema, dict):
        schema = schema.get(union, schema)
    return [
        each for each in (schema if isinstance(schema, list) else [schema]) if type(each) is dict
    ]


def avro_fields(schema: Any) -> Iterator[tuple[str, Any]]:
    """Name and type of each field of a record, or of the records of a union."""
    for branch in branches(schema):
        for field in branch.get("fields", []):
            yield field["name"], field["type"]


def _json_fields(schema: Any) -> Iterator[tuple[str, Any]]:
    for branch in branches(schema, "oneOf"):
        yield from branch.get("properties", {}).items()


def _of_avro(field: Any) -> str | None:
    for branch in branches(field):
        logical = str(branch.get("logicalType", ""))
        if logical.startswith(_DECODED):
            return _TEXT
        if logical in _TIMES_OF_DAY:
            return _TIMES_OF_DAY[logical]
        if branch.get("connect.name") in SCHEMA_ENCODINGS:
            return SCHEMA_ENCODINGS[branch["connect.name"]]
    return None


def _of_json(field: Any) -> str | None:
    for branch in branches(field, "oneOf"):
        encoding = SCHEMA_ENCODINGS.get(str(branch.get("title")))
        if encoding is not None:
            # a converter may write decimals as numbers
            is_number = branch.get("type") == "number"
            return _TEXT if is_number and encoding.endswith("base64") else encoding
    return None
