"""Values: from the bytes that the log holds to text that Spark casts without loss.

Text, because the log model holds the rows of all tables in one column, a map of name to value; the
staging view of a table casts each to the column's type. Every text reads back as the same value:
numbers with all their digits, times with nine digits of a second, binaries as hex.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

from dbt_afterimage.sources.soliddb import value_columns as types
from dbt_afterimage.sources.soliddb.value_columns import Column

Decode: TypeAlias = Callable[[bytes], str]

_YEAR_IS_SHIFTED = 0x8000
# year, month, day, hour, minute, second, nanoseconds; text, since a compiled one cannot be pickled
_MOMENT = ">HBBBBBI"
_MOMENT_BYTES = 11
# An exponent of at most three digits: a longer one would be written out as that many zeros.
_DECIMAL = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_NO_DATE = (0, 0, 0)
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class ValueFormatError(ValueError):
    """The bytes are not a value of their type; the text says why."""


class UnsupportedTypeError(ValueError):
    """The catalogue gives a type number that the manual does not list."""


def decoder_of(column: Column, encoding: str) -> Decode:
    """The function that turns the bytes of a column's values into text.

    Args:
        encoding: of CHAR values, a name that Python knows; the log does not contain it.

    Raises:
        UnsupportedTypeError: the column's type number is not documented.
    """
    if column.type_number == types.CHAR:
        return _char_in(encoding)
    if column.type_number == types.DATE:
        return _MOMENTS.get(column.sql_type, timestamp)
    if column.type_number not in _BY_TYPE_NUMBER:
        raise UnsupportedTypeError(
            f"column {column.name} has DATA_TYPE_NUMBER {column.type_number}; known: 0 to 8"
        )
    return _BY_TYPE_NUMBER[column.type_number]


def integer(value: bytes) -> str:
    """INTEGER: 4 bytes, most significant first, two's complement."""
    if len(value) != 4:
        raise ValueFormatError(f"an INTEGER has 4 bytes, not {len(value)}")
    return str(int.from_bytes(value, "big", signed=True))


def bigint(value: bytes) -> str:
    """BIGINT: 8 bytes, most significant first, two's complement."""
    if len(value) != 8:
        raise ValueFormatError(f"a BIGINT has 8 bytes, not {len(value)}")
    return str(int.from_bytes(value, "big", signed=True))


def double(value: bytes) -> str:
    """FLOAT and DOUBLE: 8 bytes IEEE 754, most significant first; the shortest text of it."""
    if len(value) != 8:
        raise ValueFormatError(f"a DOUBLE has 8 bytes, not {len(value)}")
    return repr(struct.unpack(">d", value)[0])


def decimal(value: bytes) -> str:
    """DFLOAT: a decimal number as text; returned without exponent, every digit kept."""
    text = value[:-1] if value.endswith(b"\0") else value
    text = text.strip()
    if not _DECIMAL.fullmatch(text):
        raise ValueFormatError(f"{text[:40]!r} is not a decimal number")
    return format(Decimal(text.decode("ascii")), "f")


def binary(value: bytes) -> str:
    """BINARY: the bytes as they are stored, as hex."""
    return value.hex().upper()


def unicode(value: bytes) -> str:
    """UNICODE: units of 2 bytes, most significant first, and one trailing NUL byte or none.

    An odd length shows the NUL: a text of even length may end with the unit of `Ā`, 0x0100.
    """
    if len(value) % 2:
        if value[-1]:
            raise ValueFormatError(f"{len(value)} bytes are not units of 2 bytes")
        value = value[:-1]
    try:
        return value.decode("utf-16-be")
    except UnicodeDecodeError as error:
        raise ValueFormatError(f"not UTF-16: {error.reason} at byte {error.start}") from error


def _char_in(encoding: str) -> Decode:
    def char(value: bytes) -> str:
        # one NUL only: further ones are the user's
        text = value[:-1] if value.endswith(b"\0") else value
        try:
            return text.decode(encoding)
        except UnicodeDecodeError as error:
            raise ValueFormatError(
                f"not {encoding}: {error.reason} at byte {error.start}; see `char_encoding`"
            ) from error

    return char


def timestamp(value: bytes) -> str:
    """TIMESTAMP: 11 bytes, with nine digits of a second."""
    date_parts, time_parts, fraction = _moment(value)
    return f"{_date(date_parts)} {_time(time_parts)}.{_fraction(fraction):09d}"


def date(value: bytes) -> str:
    """DATE: 11 bytes whose time of day is midnight."""
    date_parts, time_parts, fraction = _moment(value)
    if any(time_parts) or fraction:
        raise ValueFormatError(
            f"a DATE with the time {_time(time_parts)}.{_fraction(fraction):09d}"
        )
    return _date(date_parts)


def time(value: bytes) -> str:
    """TIME: 11 bytes without a date."""
    date_parts, time_parts, fraction = _moment(value)
    if date_parts != _NO_DATE:
        raise ValueFormatError(
            f"a TIME with the date {date_parts[0]}-{date_parts[1]}-{date_parts[2]}"
        )
    text = _time(time_parts)
    return f"{text}.{_fraction(fraction):09d}" if fraction else text


def _moment(value: bytes) -> tuple[tuple[int, int, int], tuple[int, int, int], int]:
    """(year, month, day), (hour, minute, second), nanoseconds; parts are not checked yet.

    The manual gives the year as it is. The engine stores dates with 0x8000 added to it; both forms
    are read, for no year that Spark can hold reaches 0x8000.
    """
    if len(value) != _MOMENT_BYTES:
        raise ValueFormatError(f"a date or time has {_MOMENT_BYTES} bytes, not {len(value)}")
    year, month, day, hour, minute, second, fraction = struct.unpack(_MOMENT, value)
    if year >= _YEAR_IS_SHIFTED:
        year -= _YEAR_IS_SHIFTED
    return (year, month, day), (hour, minute, second), fraction


def _date(parts: tuple[int, int, int]) -> str:
    year, month, day = parts
    # the calendar that Spark reckons with, for years before 1582 too
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    is_valid = 1 <= year <= 9999 and 1 <= month <= 12 and 1 <= day <= _DAYS[month - 1]
    if not is_valid or (month == 2 and day == 29 and not is_leap):
        raise ValueFormatError(f"there is no date {year}-{month}-{day}")
    return f"{year:04d}-{month:02d}-{day:02d}"


def _time(parts: tuple[int, int, int]) -> str:
    hour, minute, second = parts
    if hour > 23 or minute > 59 or second > 59:
        raise ValueFormatError(f"there is no time {hour}:{minute}:{second}")
    return f"{hour:02d}:{minute:02d}:{second:02d}"


def _fraction(nanoseconds: int) -> int:
    if nanoseconds > 999_999_999:
        raise ValueFormatError(f"a second has no {nanoseconds} nanoseconds")
    return nanoseconds


_MOMENTS: dict[str, Decode] = {"DATE": date, "TIME": time, "TIMESTAMP": timestamp}
_BY_TYPE_NUMBER: dict[int, Decode] = {
    types.INTEGER: integer,
    types.FLOAT: double,
    types.DOUBLE: double,
    types.DFLOAT: decimal,
    types.BINARY: binary,
    types.UNICODE: unicode,
    types.BIGINT: bigint,
}
