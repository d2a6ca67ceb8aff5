"""Messages in the forms that Qlik writes: envelopes, wire format, metadata, and their schemas.

Sources: the vendor's page "Metadata and data messages", and captured messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from afterimage_demo.kafka.avro import encode

_ENVELOPE = {
    "type": "record",
    "name": "MessageEnvelope",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 5}},
        {"name": "type", "type": "string"},
        {"name": "headers", "type": ["null", {"type": "map", "values": "string"}]},
        {"name": "messageSchemaId", "type": ["null", "string"]},
        {"name": "messageSchema", "type": ["null", "string"]},
        {"name": "message", "type": "bytes"},
    ],
}
_HEADERS = {
    "operation": {
        "type": "enum",
        "name": "operation",
        "symbols": ["INSERT", "UPDATE", "DELETE", "REFRESH"],
    },
    "changeSequence": "string",
    "timestamp": "string",
    "streamPosition": "string",
    "transactionId": "string",
    "changeMask": ["null", "bytes"],
    "columnMask": ["null", "bytes"],
    "transactionEventCounter": ["null", "long"],
    "transactionLastEvent": ["null", "boolean"],
}


def json_bytes(value: Any) -> bytes:
    """JSON as a message has it."""
    return json.dumps(value, ensure_ascii=False).encode()


def json_envelope(message: Any, kind: str = "DT", schema_id: str | None = None) -> bytes:
    """A message as JSON in the Qlik envelope; kind: DT for data, MD for metadata."""
    envelope = {"magic": "atMSG", "type": kind, "headers": None}
    schema = {"messageSchemaId": schema_id, "messageSchema": None}
    return json_bytes({**envelope, **schema, "message": message})


def avro_envelope(
    message: bytes, kind: str = "DT", schema_id: str | None = None, schema: str | None = None
) -> bytes:
    """Avro bytes of a message in the Qlik envelope.

    schema_id, schema: of the bytes; the second is the schema itself, JSON text.
    """
    envelope = {"magic": b"atMSG", "type": kind, "headers": None, "message": message}
    return encode(_ENVELOPE, {**envelope, "messageSchemaId": schema_id, "messageSchema": schema})


def avro_registered(schema_id: int, message: bytes) -> bytes:
    """Avro bytes of a message in the wire format of schema registries."""
    return b"\x00" + schema_id.to_bytes(4, "big") + message


def data_schema(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The Avro schema of a table's data messages: column -> its Avro type."""
    return _record(
        "DataRecord",
        {
            "data": _record("Data", {name: ["null", kind] for name, kind in columns.items()}),
            "beforeData": ["null", "Data"],
            "headers": _record("Headers", _HEADERS),
        },
    )


def metadata_message(
    schema_id: str,
    lineage: Mapping[str, Any],
    columns: Mapping[str, str],
    key: Sequence[str],
    schema: Mapping[str, Any],
) -> dict[str, Any]:
    """What a metadata message says of a version of a table.

    lineage: schema, table, tableVersion and so on.
    columns: name -> Spark type, in the order of their ordinals.
    schema: the Avro schema of its data messages.
    """
    described = {
        name: {
            "ordinal": ordinal,
            **_qlik_type(kind),
            "primaryKeyPosition": key.index(name) + 1 if name in key else 0,
            "nullable": name not in key,
        }
        for ordinal, (name, kind) in enumerate(columns.items(), 1)
    }
    return {
        "schemaId": schema_id,
        "lineage": dict(lineage),
        "tableStructure": {"tableColumns": described},
        "dataSchema": json.dumps(schema),
    }


def _record(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": kind} for field, kind in fields.items()],
    }


def _qlik_type(kind: str) -> dict[str, Any]:
    name, _, digits = kind.rstrip(")").partition("(")
    precision, scale = map(int, digits.split(",")) if digits else (0, 0)
    names = {"bigint": "INT8", "int": "INT4", "decimal": "NUMERIC"}
    return {
        "type": names.get(name, name.upper()),
        "length": 0,
        "precision": precision,
        "scale": scale,
    }
