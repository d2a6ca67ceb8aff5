"""Avro's binary encoding (specification 1.12, "Binary Encoding"), as far as messages use it.

Shares no code with what reads them.
"""

from __future__ import annotations

import struct
from typing import Any


def encode(schema: Any, value: Any, named: dict[str, Any] | None = None) -> bytes:
    """A value by a schema, which is parsed JSON; bytes of logical types are given as they are."""
    named = {} if named is None else named
    if isinstance(schema, list):
        return _union(schema, value, named)
    if isinstance(schema, str):
        schema = named.get(schema, {"type": schema})
    kind = schema["type"]
    if isinstance(kind, dict | list) or (kind in named and "name" not in schema):
        return encode(kind, value, named)
    if "name" in schema:
        named[schema["name"]] = schema
    if kind == "record":
        return b"".join(
            encode(field["type"], value[field["name"]], named) for field in schema["fields"]
        )
    if kind == "enum":
        return _long(schema["symbols"].index(value))
    if kind == "fixed":
        return bytes(value)
    if kind == "map":
        pairs = [encode("string", key) + encode(schema["values"], of) for key, of in value.items()]
        return (_long(len(pairs)) + b"".join(pairs) if pairs else b"") + _long(0)
    return _primitive(kind, value)


def _primitive(kind: str, value: Any) -> bytes:
    if kind == "null":
        return b""
    if kind == "boolean":
        return b"\x01" if value else b"\x00"
    if kind in ("int", "long"):
        return _long(value)
    if kind == "double":
        return struct.pack("<d", value)
    data = value.encode() if kind == "string" else bytes(value)
    return _long(len(data)) + data


def _union(schema: list[Any], value: Any, named: dict[str, Any]) -> bytes:
    def is_null(branch: Any) -> bool:
        return branch == "null" or (isinstance(branch, dict) and branch["type"] == "null")

    place = next(i for i, branch in enumerate(schema) if is_null(branch) == (value is None))
    return _long(place) + encode(schema[place], value, named)


def _long(value: int) -> bytes:
    """Zig-zag, then seven bits a byte, the least significant ones first."""
    number = value << 1 if value >= 0 else ((-value) << 1) - 1
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    data.append(number)
    return bytes(data)
