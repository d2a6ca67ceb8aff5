"""Writes values and rows in the binary form of SYS_LOG's column DATA.

It follows the manual's description of the bytes and shares no code with the decoder, so that
encoding and decoding can be held against each other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from datetime import date, datetime, time
from decimal import Decimal
from typing import TypeAlias

Value: TypeAlias = int | float | str | bytes | Decimal | date | datetime | time | None


def encode_value(value: Value, type_number: int, *, shifted_year: bool = True) -> bytes | None:
    """The bytes of a value; None for NULL.

    Args:
        value: of the Python type that goes with the type number.
        type_number: DATA_TYPE_NUMBER of SYS_COLUMNS, 0 to 8.
        shifted_year: write dates as the engine stores them, with 0x8000 added to the year.
    """
    if value is None:
        return None
    if type_number == 0:
        return str(value).encode("utf-8") + b"\0"
    if type_number == 1:
        return struct.pack(">i", value)
    if type_number in (2, 3):
        return struct.pack(">d", value)
    if type_number == 4:
        return _encode_moment(value, 0x8000 if shifted_year else 0)
    if type_number == 5:
        return str(value).encode("ascii") + b"\0"
    if type_number == 6 and isinstance(value, bytes):
        return value
    if type_number == 7:
        return str(value).encode("utf-16-be") + b"\0"
    if type_number == 8:
        return struct.pack(">q", value)
    raise ValueError(f"no value {value!r} of type number {type_number}")


def _encode_moment(value: Value, added: int) -> bytes:
    day = value if isinstance(value, date) else None
    clock = value if isinstance(value, datetime | time) else time()
    return struct.pack(
        ">HBBBBBI",
        (day.year if day else 0) + added,
        day.month if day else 0,
        day.day if day else 0,
        clock.hour,
        clock.minute,
        clock.second,
        clock.microsecond * 1000,
    )


def frame_length_prefixed(values: Iterable[bytes | None]) -> bytes:
    """DATA with a 4-byte length before each value, most significant byte first; -1 is NULL."""
    return b"".join(
        b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value
        for value in values
    )


def frame_engine(values: Iterable[bytes | None]) -> bytes:
    """DATA as the engine stores rows: a length in one byte, or 0xFE and four, lowest first.

    A value without bytes cannot be told from NULL in this form.
    """
    return b"".join(map(_engine_value, values))


def _engine_value(value: bytes | None) -> bytes:
    if value is None:
        return b"\0"
    if len(value) < 0xFE:
        return bytes([len(value)]) + value
    return b"\xfe" + len(value).to_bytes(4, "little") + value
