"""DATA of a record: framing, one value per column, and a reason for whatever is wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afterimage_demo.soliddb.encoding import (
    encode_value,
    frame_engine,
    frame_length_prefixed,
)
from dbt_afterimage.sources.soliddb.arrow import batch_decoder, pickle_by_value
from dbt_afterimage.sources.soliddb.framing import (
    FRAMINGS,
    FramingError,
    UnknownFramingError,
    engine,
    framing_of,
    length_prefixed,
)
from dbt_afterimage.sources.soliddb.records import Decoded, Layout
from dbt_afterimage.sources.soliddb.value_columns import (
    BINARY,
    CHAR,
    DATE,
    DDL_COLUMNS,
    INTEGER,
    Column,
)

FRAMES = {"length_prefixed": frame_length_prefixed, "engine": frame_engine}
COLUMNS = (Column("ID", INTEGER), Column("NAME", CHAR), Column("BORN", DATE, "DATE"))


def layout(framing: str = "length_prefixed", columns: Sequence[Column] = COLUMNS) -> Layout:
    return Layout(columns, framing_of(framing), "utf-8")


def lengths(framing: str) -> st.SearchStrategy[list[bytes | None]]:
    """Values of all lengths, those that take the long form of the engine among them."""
    # the engine's form cannot distinguish a value without bytes from NULL
    shortest = 1 if framing == "engine" else 0
    short = st.binary(min_size=shortest, max_size=12)
    long = st.integers(250, 70_000).map(lambda length: bytes(range(256)) * (length // 256 + 1))
    return st.lists(st.none() | short | long, max_size=9)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_what_is_framed_is_cut_into_the_same_values(framing: str) -> None:
    @given(values=lengths(framing))
    def comes_back(values: list[bytes | None]) -> None:
        assert FRAMINGS[framing](FRAMES[framing](values), ()) == values

    comes_back()


@pytest.mark.parametrize(
    ("framing", "hexadecimal", "values"),
    [
        (
            "length_prefixed",
            "00000004 0012d687 ffffffff 00000000",
            [b"\x00\x12\xd6\x87", None, b""],
        ),
        ("engine", "04 0012d687 00 01 00", [b"\x00\x12\xd6\x87", None, b"\x00"]),
        ("engine", "fd" + "61" * 253, [b"a" * 253]),
        ("engine", "fe fe000000" + "61" * 254, [b"a" * 254]),
        ("engine", "fe 01000000 61", [b"a"]),
    ],
)
def test_framings_written_by_hand(
    framing: str, hexadecimal: str, values: list[bytes | None]
) -> None:
    assert FRAMINGS[framing](bytes.fromhex(hexadecimal), ()) == values


@pytest.mark.parametrize("framing", FRAMINGS)
@given(data=st.binary(max_size=64))
def test_any_bytes_are_values_or_a_reason(framing: str, data: bytes) -> None:
    decoded = layout(framing).decode(data)
    if decoded.reject_reason is None:
        assert decoded.texts is not None
        assert len(decoded.texts) == len(COLUMNS)
    else:
        assert decoded.reject_detail


def row(framing: str, *values: Any) -> bytes:
    encoded = [
        value if isinstance(value, bytes) else encode_value(value, column.type_number)
        for value, column in zip(values, COLUMNS, strict=True)
    ]
    return FRAMES[framing](encoded)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_record_that_is_cut_or_has_more_than_its_columns_is_rejected(framing: str) -> None:
    whole = row(framing, 1, "Ann", None)
    assert layout(framing).decode(whole) == Decoded(["1", "Ann", None])
    for length in range(len(whole)):
        assert layout(framing).decode(whole[:length]).reject_reason == "malformed_message"
    for more in (b"\0", b"\1", whole):
        assert layout(framing).decode(whole + more).reject_reason == "malformed_message"


def test_the_detail_says_what_is_wrong() -> None:
    whole = row("length_prefixed", 1, "Ann", None)
    details = [
        layout().decode(data).reject_detail
        for data in (whole + b"\1\2", whole[:4], whole[:-4], whole + whole[:8], None)
    ]
    assert details == [
        "2 bytes left over at byte 20, a length has 4",
        "the length at byte 0 is 4, and 0 bytes follow",
        "2 values for 3 columns",
        "4 values for 3 columns",
        "DATA is NULL",
    ]


def test_a_negative_length_other_than_null_is_refused() -> None:
    with pytest.raises(FramingError, match="is -2"):
        length_prefixed(bytes.fromhex("fffffffe"), ())


def test_a_blob_reference_is_a_record_that_is_not_supported() -> None:
    decoded = layout("engine").decode(bytes.fromhex("0400000001 ff 00000000"))
    assert decoded.texts is None
    assert decoded.reject_reason == "unsupported_record"
    assert decoded.reject_detail == "value 2 is a reference to a blob, which the log does not hold"


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_value_of_the_wrong_length_is_rejected_by_its_column_and_the_key_stays(
    framing: str,
) -> None:
    decoded = layout(framing).decode(row(framing, 7, b"\xff\xff", b"\1\2"))
    assert decoded == Decoded(
        ["7", None, None],
        "uncastable_value:NAME",
        "NAME: not utf-8: invalid start byte at byte 0; see `char_encoding`; "
        "BORN: a date or time has 11 bytes, not 2",
    )


def test_a_column_of_an_unknown_type_rejects_the_records_of_its_table() -> None:
    decoded = layout(columns=[Column("ID", INTEGER), Column("X", 12)]).decode(b"")
    assert decoded.reject_reason == "unsupported_record"
    assert decoded.reject_detail == "column X has DATA_TYPE_NUMBER 12; known: 0 to 8"


def fixed_width(data: bytes, columns: Sequence[Column]) -> list[bytes | None]:
    """A framing of some site: 8 bytes a value."""
    if len(data) != 8 * len(columns):
        raise KeyError("width")
    return [data[8 * number : 8 * number + 8] for number in range(len(columns))]


def test_a_framing_of_the_site_may_raise_whatever_it_likes() -> None:
    own = framing_of(f"{__name__}.fixed_width")
    binaries = Layout([Column("A", BINARY), Column("B", BINARY)], own, "utf-8")
    assert binaries.decode(bytes(16)) == Decoded(["00" * 8, "00" * 8])
    assert binaries.decode(b"") == Decoded(None, "malformed_message", "'width'")


def text_for_bytes(data: bytes, columns: Sequence[Column]) -> list[Any]:
    return ["1"]


def nothing_at_all(data: bytes, columns: Sequence[Column]) -> Any:
    return None


@pytest.mark.parametrize(
    ("framing", "reason"),
    [("text_for_bytes", "uncastable_value:A"), ("nothing_at_all", "malformed_message")],
)
def test_a_framing_of_the_site_may_return_whatever_it_likes(framing: str, reason: str) -> None:
    own = framing_of(f"{__name__}.{framing}")
    for type_number in range(9):
        decoded = Layout([Column("A", type_number)], own, "utf-8").decode(b"")
        assert decoded.reject_reason == reason


@pytest.mark.parametrize(
    "name",
    ["engines", "no.such.module", "dbt_afterimage.sources.soliddb.framing.cut", "json.__name__"],
)
def test_a_framing_that_is_no_function_is_an_error_that_says_what_is_allowed(name: str) -> None:
    with pytest.raises(UnknownFramingError, match="Allowed: length_prefixed, engine, decoded, or"):
        framing_of(name)


def test_ddl_records_are_framed_like_rows() -> None:
    data = frame_engine([encode_value(22, INTEGER), encode_value("ACCOUNTS", CHAR)])
    assert Layout(DDL_COLUMNS, engine, "utf-8").decode(data).texts == ["22", "ACCOUNTS"]


def test_a_batch_is_decoded_by_the_layout_of_each_record() -> None:
    older = [Column("ID", INTEGER)]
    decode = batch_decoder({1: older, 2: COLUMNS}, "length_prefixed", "utf-8")
    data = [
        frame_length_prefixed([encode_value(5, INTEGER)]),
        row("length_prefixed", 6, None, None),
        b"\0",
        None,
        None,
        b"\0",
    ]
    found = decode(pa.array(data, pa.binary()), pa.array([1, 2, 2, 1, None, 3], pa.int32()))
    assert found.to_pylist() == [
        {"values": [("ID", "5")], "reject_reason": None, "reject_detail": None},
        {
            "values": [("ID", "6"), ("NAME", None), ("BORN", None)],
            "reject_reason": None,
            "reject_detail": None,
        },
        {
            "values": None,
            "reject_reason": "malformed_message",
            "reject_detail": "1 bytes left over at byte 0, a length has 4",
        },
        {"values": None, "reject_reason": "malformed_message", "reject_detail": "DATA is NULL"},
        {"values": None, "reject_reason": None, "reject_detail": None},
        {"values": None, "reject_reason": None, "reject_detail": None},
    ]


def test_an_empty_batch_is_decoded() -> None:
    decode = batch_decoder({}, "engine", "utf-8")
    assert len(decode(pa.array([], pa.binary()), pa.array([], pa.int32()))) == 0


def test_workers_need_no_package_of_ours() -> None:
    """What Spark sends to them holds the code itself: unpickled where the package is missing."""
    from pyspark import cloudpickle

    decode = batch_decoder({1: COLUMNS}, "engine", "utf-8")
    pickle_by_value()
    sent = cloudpickle.dumps(decode)  # type: ignore[no-untyped-call]
    program = f"""
import sys
sys.modules["dbt_afterimage"] = None
import pyarrow as pa
from pyspark import cloudpickle
decode = cloudpickle.loads(bytes.fromhex({sent.hex()!r}))
data = pa.array([bytes.fromhex({row("engine", 6, "Ann", None).hex()!r}), b"1"])
print(decode(data, pa.array([1, 1])).to_pylist()[0]["values"])
"""
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert shown.stdout == "[('ID', '6'), ('NAME', 'Ann'), ('BORN', None)]\n"
