"""Values of all nine types: computed vectors, then encode, decode, compare on random values."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterimage_demo.soliddb.encoding import encode_value
from dbt_afterimage.sources.soliddb import value_columns as types
from dbt_afterimage.sources.soliddb.value_columns import Column
from dbt_afterimage.sources.soliddb.values import UnsupportedTypeError, ValueFormatError, decoder_of

VECTORS = Path(__file__).parents[2] / "data" / "soliddb" / "value_vectors.csv"


def vectors() -> list[dict[str, str]]:
    with VECTORS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def decode(value: bytes, type_number: int, sql_type: str = "", encoding: str = "utf-8") -> str:
    return decoder_of(Column("C", type_number, sql_type), encoding)(value)


@pytest.mark.parametrize("vector", vectors(), ids=lambda vector: f"{vector['hex']}")
def test_vectors(vector: dict[str, str]) -> None:
    value = bytes.fromhex(vector["hex"])
    assert decode(value, int(vector["type_number"]), vector["sql_type"]) == vector["text"]


def test_every_type_has_a_vector() -> None:
    assert {int(vector["type_number"]) for vector in vectors()} == set(range(9))


AN_INTEGER = st.integers(-(2**31), 2**31 - 1)
A_BIGINT = st.integers(-(2**63), 2**63 - 1)
A_DECIMAL = st.decimals(allow_nan=False, allow_infinity=False, places=4) | st.integers(
    -(10**30), 10**30
).map(Decimal)


def plain(text: str) -> str:
    return text


READERS: list[tuple[int, str, st.SearchStrategy[Any], Callable[[str], Any]]] = [
    (types.CHAR, "VARCHAR", st.text(), plain),
    (types.INTEGER, "INTEGER", AN_INTEGER, int),
    (types.FLOAT, "REAL", st.floats(width=32, allow_nan=False), float),
    (types.DOUBLE, "DOUBLE PRECISION", st.floats(allow_nan=False), float),
    (types.DATE, "DATE", st.dates(), date.fromisoformat),
    (types.DATE, "TIMESTAMP", st.datetimes(), lambda text: datetime.fromisoformat(text[:-3])),
    (types.DATE, "TIME", st.times(), lambda text: time.fromisoformat(text[:15])),
    (types.DFLOAT, "DECIMAL", A_DECIMAL, Decimal),
    (types.BINARY, "VARBINARY", st.binary(), bytes.fromhex),
    (types.UNICODE, "WVARCHAR", st.text(), plain),
    (types.BIGINT, "BIGINT", A_BIGINT, int),
]


@pytest.mark.parametrize("shifted_year", [True, False])
@pytest.mark.parametrize(
    ("type_number", "sql_type", "strategy", "read"), READERS, ids=lambda part: str(part)[:12]
)
def test_what_is_encoded_is_decoded(
    type_number: int, sql_type: str, strategy: st.SearchStrategy[Any], read: Any, shifted_year: bool
) -> None:
    @given(value=strategy)
    def comes_back(value: Any) -> None:
        encoded = encode_value(value, type_number, shifted_year=shifted_year)
        assert encoded is not None
        assert read(decode(encoded, type_number, sql_type)) == value

    comes_back()


def test_numbers_that_are_none_keep_their_bits() -> None:
    assert math.isnan(float(decode(bytes.fromhex("7ff8000000000000"), types.DOUBLE)))
    assert decode(bytes.fromhex("fff0000000000000"), types.DOUBLE) == "-inf"
    assert decode(bytes.fromhex("8000000000000000"), types.DOUBLE) == "-0.0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("+1", "1"), (" 1.50 ", "1.50"), ("1.5E3", "1500"), (".5", "0.5"), ("-0.00", "-0.00")],
)
def test_decimals_keep_every_digit(text: str, expected: str) -> None:
    assert decode(text.encode(), types.DFLOAT) == expected


def test_char_values_are_read_in_the_encoding_that_the_setting_names() -> None:
    assert decode(b"\xe9\0", types.CHAR, encoding="latin-1") == "é"
    with pytest.raises(ValueFormatError, match="char_encoding"):
        decode(b"\xe9\0", types.CHAR)


def test_one_trailing_nul_is_taken_off_and_no_more() -> None:
    assert decode(b"a\0\0", types.CHAR) == "a\0"


@pytest.mark.parametrize(
    ("type_number", "sql_type", "hexadecimal"),
    [
        (types.INTEGER, "INTEGER", "000001"),
        (types.INTEGER, "INTEGER", ""),
        (types.BIGINT, "BIGINT", "00000001"),
        (types.DOUBLE, "DOUBLE PRECISION", "40490fdb"),
        (types.FLOAT, "REAL", "40490fdb"),
        (types.DATE, "DATE", "07db0511"),
        (types.DATE, "DATE", "07db05110d0000000000"),
        pytest.param(types.DATE, "DATE", "07db05110d000000000000", id="a date with a time"),
        pytest.param(types.DATE, "TIME", "07db05110d2d1e00000000", id="a time with a date"),
        pytest.param(types.DATE, "DATE", "07db021e00000000000000", id="30 February"),
        pytest.param(types.DATE, "DATE", "076c021d00000000000000", id="29 February 1900"),
        pytest.param(types.DATE, "DATE", "07db000100000000000000", id="month 0"),
        pytest.param(types.DATE, "DATE", "07db0d0100000000000000", id="month 13"),
        pytest.param(types.DATE, "DATE", "0000010100000000000000", id="year 0"),
        pytest.param(types.DATE, "DATE", "a710010100000000000000", id="year 10000"),
        pytest.param(types.DATE, "TIMESTAMP", "07db0511180000000000 00", id="hour 24"),
        pytest.param(types.DATE, "TIMESTAMP", "07db0511003c0000000000", id="minute 60"),
        pytest.param(types.DATE, "TIMESTAMP", "07db051100003b3b9aca00", id="a whole second more"),
        (types.DFLOAT, "DECIMAL", ""),
        (types.DFLOAT, "DECIMAL", b"NaN".hex()),
        (types.DFLOAT, "DECIMAL", b"1e9999".hex()),
        (types.DFLOAT, "DECIMAL", b"1,5".hex()),
        (types.DFLOAT, "DECIMAL", "٣".encode().hex()),
        (types.CHAR, "VARCHAR", "ff"),
        pytest.param(types.UNICODE, "WVARCHAR", "d83d", id="half of a pair"),
        pytest.param(types.UNICODE, "WVARCHAR", "006161", id="an odd length without NUL"),
    ],
)
def test_what_is_no_value_of_its_type_is_refused(
    type_number: int, sql_type: str, hexadecimal: str
) -> None:
    with pytest.raises(ValueFormatError):
        decode(bytes.fromhex(hexadecimal), type_number, sql_type)


def test_a_type_number_that_the_manual_does_not_list_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedTypeError, match="column C has DATA_TYPE_NUMBER 9"):
        decode(b"", 9)
