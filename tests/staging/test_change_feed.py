"""stage_change_feed: the presets on records of the vendors' pages, against rows by hand.

A file of tests/data/feeds has raw records of the preset in its name, malformed ones among them, and
the columns of the contract that must come of them.
"""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from afterimage_demo.kafka.avro import encode
from afterimage_demo.kafka.forms import avro_registered
from dbt_afterimage.settings.change_feed import SEQUENCE_WIDTHS
from tests.change_feed_staging import settings_of, staged, staging_sql
from tests.macro_renderer import CompilationError
from tests.openedge_staging import create_views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FEEDS = sorted((Path(__file__).parents[1] / "data" / "feeds").glob("*.json"))


def raw_value(value: Any, kind: str) -> Any:
    """A value of a file of records as Spark takes it: JSON has neither binaries nor times."""
    if value is None:
        return None
    if kind == "hex":
        return bytes.fromhex(value)
    if kind == "utf8":
        return str(value).encode()
    if kind == "timestamp":
        return datetime.fromisoformat(value).replace(tzinfo=timezone.utc)
    return value


@pytest.mark.parametrize("file", FEEDS, ids=lambda file: file.stem)
def test_records_of_the_vendors_pages(spark: SparkSession, file: Path) -> None:
    feed = json.loads(file.read_text(encoding="utf-8"))
    kinds = feed["columns"]
    rows = [
        tuple(raw_value(*pair) for pair in zip(row, kinds.values(), strict=True))
        for row in feed["rows"]
    ]
    columns = {name: "binary" if kind in ("hex", "utf8") else kind for name, kind in kinds.items()}
    preset = file.stem.split(".")[0]
    settings = settings_of(preset, feed["settings"], feed.get("types"))
    found = staged(spark, settings, columns, rows, feed["expected"])
    key = repr
    as_text = [[str(v) if isinstance(v, Decimal | datetime) else v for v in row] for row in found]
    assert sorted(as_text, key=key) == sorted(feed["expected_rows"], key=key)


PARTS = [
    # type of the part, type of the column, values in ascending order, values that do not fit
    ("number", "bigint", [0, 9, 10, 2**63 - 1], [-1]),
    ("number", "string", ["0", "9", "10"], ["x", "-1"]),
    ("digits", "string", ["0", "9", "10", "9" * 18, "1" + "0" * 18, "9" * 36], ["", "1" * 37, "A"]),
    ("digits", "decimal(38,0)", [0, 9, 10, 10**18, 10**36 - 1], [10**36, -1]),
    (
        "long_digits", "string",
        ["0", "9", "10", "9" * 18, "9" * 36, "1" + "0" * 36, "9" * 40, "9" * 54], ["", "1" * 55],
    ),
    ("binary", "binary", [b"\x00", b"\x00\x01", b"\x01", b"\xff" * 16], [b"", b"\x01" * 17]),
    ("text", "string", ["a", "a1", "b", "é"], ["", "x" * 17]),
    ("timestamp", "string", ["1970-01-01", "2026-03-02 12:00:00.000001"], ["soon", "1969-12-31"]),
]  # fmt: skip


@pytest.mark.parametrize(("part", "kind", "values", "unfit"), PARTS)
def test_a_sequence_sorts_like_its_values(
    spark: SparkSession, part: str, kind: str, values: list[Any], unfit: list[Any]
) -> None:
    if kind.startswith("decimal"):
        kind, values, unfit = "string", [*map(str, values)], [*map(str, unfit)]
    given = {"key": ["id"], "sequence": {"place": part}, "ignore_columns": ["place"]}
    given |= {"operation": "op", "operations": {"i": "I"}}
    rows = [(number, "i", value) for number, value in enumerate([*values, *unfit])]
    columns = {"id": "int", "op": "string", "place": kind}
    found = staged(
        spark, settings_of(None, given), columns, rows, ["id", "change_seq", "reject_reason"]
    )
    by_id = sorted(found)
    places = [row[1] for row in by_id[: len(values)]]
    assert places == sorted(set(places))
    assert {len(place) for place in places} == {SEQUENCE_WIDTHS[part]}
    assert {row[1:] for row in by_id[len(values) :]} == {(None, "malformed_change_seq")}


@pytest.mark.parametrize("kind", ["int", "bigint", "double", "decimal(20,0)"])
@pytest.mark.parametrize(
    ("settings", "setting", "fix"),
    [
        ({"sequence": {"day": "timestamp"}}, "sequence", "`sequence: {day: number}`"),
        ({"sequence": {"id": "number"}, "changed_at": "day"}, "changed_at", "`changed_at_unit`"),
    ],
    ids=["sequence", "changed_at"],
)
def test_a_number_is_no_time(kind: str, settings: dict[str, Any], setting: str, fix: str) -> None:
    """20260301 would be a day of August 1970."""
    given = {"key": ["id"], "operation": "op", "operations": {"i": "I"}, **settings}
    columns = {"id": "int", "op": "string", "day": kind}
    with pytest.raises(CompilationError) as error:
        staging_sql(settings_of(None, given), columns)
    parts = ["shop.feed", f"`{setting}`", "`day`", kind, "Allowed: ", "Fix: ", fix]
    assert [part for part in parts if part not in str(error.value)] == []
    # with a unit, or as what it is
    given |= {"sequence": {"day": "number"}, "changed_at_unit": "seconds"}
    assert staging_sql(settings_of(None, given), columns)


def test_sql_that_gives_a_number_is_no_time(spark: SparkSession) -> None:
    given = {"key": ["id"], "sequence": {"record.at": "timestamp"}, "operation": "record.op"}
    given |= {"operations": {"c": "I"}, "after": "record.after", "json_text": "document"}
    columns = {"document": "string", "day": "int"}
    create_views(spark, {"feed": (columns, [])})
    types = {"id": "int"}
    for kind, is_refused in (("bigint", True), ("timestamp", False), ("string", False)):
        fields = f"op string, after map<string, string>, at {kind}"
        settings = settings_of(None, given | {"json_fields": fields}, types)
        if is_refused:
            with pytest.raises(
                CompilationError, match=r"`record\.at` for a time, and it is a number"
            ):
                staging_sql(settings, columns)
        else:
            assert staging_sql(settings, columns)
    rows = {
        "key": ["id"],
        "operation": "op",
        "operations": {"i": "I"},
        "sequence": {"id": "number"},
    }
    plain = settings_of(None, rows | {"changed_at": "day + 1"})
    with pytest.raises(CompilationError, match=r"`day \+ 1` for a time"):
        staging_sql(plain, {"id": "int", "op": "string", **columns})


def unscaled(number: int) -> str:
    """As Java's BigInteger.toByteArray, in base64."""
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return b64encode(number.to_bytes(size, "big", signed=True)).decode()


MOMENT = datetime(2026, 3, 2, 7, 30, 0, 123456, tzinfo=timezone.utc)
MICROS = (MOMENT - datetime(1970, 1, 1, tzinfo=timezone.utc)) // (date.resolution / 86_400_000_000)
LARGEST = 10**38 - 1
ENCODED = [
    # encoding, type, value of the document, value of the column; "!" for a rejected one
    ("days", "date", (date(2026, 3, 2) - date(1970, 1, 1)).days, "2026-03-02"),
    ("days", "date", -1, "1969-12-31"),
    ("days", "date", "soon", "!"),
    ("microseconds", "timestamp", MICROS, "2026-03-02 07:30:00.123456"),
    ("microseconds", "timestamp_ntz", MICROS, "2026-03-02 07:30:00.123456"),
    ("milliseconds", "timestamp", MICROS // 1000, "2026-03-02 07:30:00.123"),
    ("nanoseconds", "timestamp", MICROS * 1000, "2026-03-02 07:30:00.123456"),
    # beyond the range of times: of one unit more than the column's own
    ("milliseconds", "timestamp", 9_224_318_016_000_000, "!"),
    ("time_milliseconds", "string", "9224318016000000", "9224318016000000"),
    # a timestamp of Spark has no nanoseconds
    ("nanoseconds", "timestamp", MICROS * 1000 + 1, "!"),
    # a time with a zone comes as text whatever the encoding
    ("microseconds", "timestamp", "2026-03-02T07:30:00.123456Z", "2026-03-02 07:30:00.123456"),
    ("time_microseconds", "string", 27_000_123_456, "07:30:00.123456"),
    ("time_milliseconds", "string", 27_000_123, "07:30:00.123000"),
    # midnight at the end of a day (PostgreSQL), and durations in a column of times (MySQL)
    ("time_microseconds", "string", 86_400_000_000, "24:00:00.000000"),
    ("time_microseconds", "string", -3_600_000_001, "-01:00:00.000001"),
    ("time_milliseconds", "string", 3_020_399_000, "838:59:59.000000"),
    ("time_microseconds", "string", None, None),
    ("base64", "binary", b64encode(b"\x00\xffA").decode(), "00FF41"),
    ("base64", "binary", "", ""),
    ("base64", "binary", "no base64!", "!"),
    ("unscaled_base64", "decimal(10,2)", unscaled(12345), "123.45"),
    ("unscaled_base64", "decimal(10,2)", unscaled(-1), "-0.01"),
    ("unscaled_base64", "decimal(10,2)", unscaled(0), "0.00"),
    ("unscaled_base64", "decimal(10,0)", unscaled(-128), "-128"),
    ("unscaled_base64", "decimal(38,0)", unscaled(LARGEST), str(LARGEST)),
    ("unscaled_base64", "decimal(38,0)", unscaled(-LARGEST), str(-LARGEST)),
    ("unscaled_base64", "decimal(4,2)", unscaled(10**6), "!"),
    ("unscaled_base64", "decimal(10,2)", "no base64!", "!"),
    ("scaled_base64", "decimal(10,3)", {"scale": 3, "value": unscaled(12345)}, "12.345"),
    ("scaled_base64", "decimal(10,3)", {"scale": 0, "value": unscaled(-7)}, "-7.000"),
    ("scaled_base64", "decimal(10,3)", {"scale": 4, "value": unscaled(1)}, "!"),
    ("text", "decimal(10,2)", "123.45", "123.45"),
    ("text", "boolean", True, "true"),
    ("text", "double", 1.5, "1.5"),
    ("text", "string", {"a": [1, None]}, '{"a":[1,null]}'),
    # of what the number is one, nothing says
    ("by_schema", "timestamp", MICROS, "!"),
    ("by_schema", "timestamp_ntz", "2018", "!"),
    ("by_schema", "timestamp", "2026-03-02T07:30:00.123456Z", "2026-03-02 07:30:00.123456"),
    ("by_schema", "timestamp", None, None),
    ("extended_json", "string", {"$oid": "5f"}, "5f"),
    ("extended_json", "string", {"$oid": "5f", "b": 1}, '{"$oid":"5f","b":1}'),
    ("extended_json", "bigint", {"$numberLong": "7"}, "7"),
    ("extended_json", "int", 7, "7"),
    ("extended_json", "double", {"$numberDouble": "1.5"}, "1.5"),
    ("extended_json", "decimal(10,2)", {"$numberDecimal": "1.5"}, "1.50"),
    ("extended_json", "timestamp", {"$date": MICROS // 1000}, "2026-03-02 07:30:00.123"),
    ("extended_json", "timestamp_ntz", {"$date": {"$numberLong": "0"}}, "1970-01-01 00:00:00"),
    # a date would lose the time
    ("extended_json", "date", {"$date": "2026-03-02T07:30:00Z"}, "!"),
    ("extended_json", "timestamp", {"$timestamp": {"t": 1, "i": 2}}, "!"),
    ("extended_json", "binary", {"$binary": {"base64": "AP9B", "subType": "00"}}, "00FF41"),
    ("extended_json", "binary", {"$binary": "AP9B", "$type": "00"}, "00FF41"),
    ("extended_json", "string", None, None),
    ("days", "date", None, None),
    ("base64", "binary", None, None),
    ("unscaled_base64", "decimal(10,2)", None, None),
]


def test_values_that_a_document_encodes(spark: SparkSession) -> None:
    types = {f"c{number}": kind for number, (_, kind, _, _) in enumerate(ENCODED)}
    encodings = {f"c{number}": name for number, (name, _, _, _) in enumerate(ENCODED)}
    settings = settings_of(
        None,
        {
            "key": ["c0"],
            "sequence": {"place": "number"},
            "operation": "record.op",
            "operations": {"c": "I"},
            "json_text": "document",
            "json_fields": "op string, data map<string, string>",
            "after": "record.data",
            "encodings": encodings,
        },
        types,
    )
    rows = [
        (number, json.dumps({"op": "c", "data": {f"c{number}": value}}))
        for number, (_, _, value, _) in enumerate(ENCODED)
    ]
    wanted = ["change_seq", "reject_reason", *types]
    found = sorted(staged(spark, settings, {"place": "bigint", "document": "string"}, rows, wanted))
    for number, (encoding, kind, value, expected) in enumerate(ENCODED):
        row = found[number]
        if expected == "!":
            assert row["reject_reason"] == f"uncastable_value:c{number}", (encoding, kind, value)
            continue
        got = row[f"c{number}"]
        got = bytes(got).hex().upper() if isinstance(got, bytes | bytearray) else got
        text = str(got).lower() if isinstance(got, bool) else None if got is None else str(got)
        assert (text, row["reject_reason"]) == (expected, None), (encoding, kind, value)


def test_a_mask_has_the_bit_of_a_column_that_is_gone_and_none_of_a_loader_s(
    spark: SparkSession,
) -> None:
    settings = settings_of(
        None,
        {
            "key": ["id"],
            "sequence": {"place": "number"},
            "operation": "op",
            "operations": {"u": "U"},
            "changed_mask": "mask",
            "mask_columns": ["id", "gone", "name"],
            "ignore_columns": ["place"],
        },
    )
    columns = {
        "place": "bigint", "op": "string", "mask": "binary",
        "id": "int", "name": "string", "loader": "string",
    }  # fmt: skip
    rows = [(1, "u", b"\x04", 1, "Ann", "x"), (2, "u", b"\x02", 1, "Ann", "x")]
    found = staged(
        spark, settings, columns, rows, ["change_seq", "declared_changed_columns", "reject_reason"]
    )
    assert [tuple(row)[1:] for row in sorted(found)] == [(["name"], None), ([], None)]


@pytest.mark.parametrize("before_images", [True, False])
def test_a_condition_does_not_parse_documents_again(
    spark: SparkSession, before_images: bool
) -> None:
    """Spark would move it below the columns that it reads, and write each of them out there."""
    columns = {
        "topic": "string",
        "value": "binary",
        "headers": "array<struct<key: string, value: binary>>",
        "landing_batch": "string",
    }
    values = [
        f"cast(cast(id as string) as {kind})"
        if kind in ("string", "binary")
        else f"cast(null as {kind})"
        for kind in columns.values()
    ]
    raw = [f"{value} as {name}" for name, value in zip(columns, values, strict=True)]
    spark.range(1).selectExpr(*raw).createOrReplaceTempView("documents")
    settings = settings_of(
        "debezium", {"key": ["id"], "before_images": before_images}, {"id": "int"}
    )
    staging = spark.sql(staging_sql(settings, columns, "documents"))

    def parsed(rows: DataFrame) -> int:
        return str(rows._jdf.queryExecution().optimizedPlan()).count("from_json(StructField(")

    conditions = ("change_oper = 'L' and load_id is not null", "change_seq > '0'", "arrival > '0'")
    assert parsed(staging) > 0
    for condition in conditions:
        assert parsed(staging.filter(condition)) == parsed(staging), condition


def test_images_in_structs(spark: SparkSession) -> None:
    settings = {
        "key": ["id"],
        "sequence": {"place": "number"},
        "operation": "op",
        "operations": {"u": "U", "d": "D", "c": "I"},
        "after": "new",
        "before": "old",
    }
    columns = {"place": "bigint", "op": "string", "old": IMAGE, "new": IMAGE}
    rows = [
        (1, "u", (1, "a"), (1, "b")),
        (2, "d", (1, "b"), None),
        (3, "c", None, (1, "c")),
        (4, "u", None, (1, "d")),
    ]
    fields = [{"name": "id", "data_type": "int"}, {"name": "name", "data_type": "string"}]
    found = staged(spark, settings_of(None, settings), columns, rows, IN_STRUCTS, fields)
    assert sorted(map(tuple, found)) == [
        ("0000000000000001", "B", 1, "a", None),
        ("0000000000000001", "U", 1, "b", None),
        ("0000000000000002", "D", 1, "b", None),
        ("0000000000000003", "I", 1, "c", None),
        ("0000000000000004", "U", 1, "d", None),
    ]


IMAGE = "struct<id: int, name: string>"
IN_STRUCTS = ["change_seq", "change_oper", "id", "name", "known_columns"]


def test_before_images_in_columns_with_a_prefix(spark: SparkSession) -> None:
    settings = {
        "key": ["id"],
        "sequence": {"place": "number"},
        "operation": "op",
        "operations": {"u": "U", "d": "D"},
        "before": "old_*",
        "ignore_columns": ["place"],
    }
    columns = {
        "place": "bigint", "op": "string", "id": "int", "name": "string", "note": "string",
        "old_id": "int", "old_name": "string",
    }  # fmt: skip
    rows = [
        (1, "u", 1, "b", "n", 1, "a"),
        (2, "d", 1, "b", "n", None, None),
    ]
    found = staged(
        spark, settings_of(None, settings), columns, rows, [*IN_STRUCTS, "note", "reject_reason"]
    )
    assert sorted(map(tuple, found)) == [
        ("0000000000000001", "B", 1, "a", ["id", "name"], None, None),
        ("0000000000000001", "U", 1, "b", None, "n", None),
        ("0000000000000002", "D", 1, "b", None, "n", None),
    ]


PLACEHOLDER = "__debezium_unavailable_value"
UNAVAILABLE = {
    # what Debezium's PostgreSQL connector sends for an unchanged TOAST value, by type of column
    "text": PLACEHOLDER,
    "bytes": b64encode(PLACEHOLDER.encode()).decode(),
    "bytes_in_hex": PLACEHOLDER.encode().hex(),
    "texts": [PLACEHOLDER],
    "numbers": [*PLACEHOLDER.encode()],
    "byte_arrays": [b64encode(PLACEHOLDER.encode()).decode()],
    "uuids": ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"],
    "hstore": {PLACEHOLDER: PLACEHOLDER},
}


def document(
    op: str, after: Any, before: Any = None, lsn: int = 1, headers: Any = None
) -> tuple[Any, ...]:
    """A message of Debezium as the table of messages has it."""
    source = {"lsn": lsn, "ts_ms": 1772452800000, "txId": 1, "snapshot": "false"}
    message = {"op": op, "before": before, "after": after, "source": source}
    return (json.dumps(message).encode(), headers, "one")


MESSAGES = {
    "value": "binary",
    "headers": "array<struct<key: string, value: string>>",
    "landing_batch": "string",
}


def test_a_placeholder_in_any_spelling_is_an_unknown_value(spark: SparkSession) -> None:
    types = {"id": "int", "other": "string", **dict.fromkeys(UNAVAILABLE, "string")}
    settings = settings_of("debezium", {"key": ["id"], "before_images": False}, types)
    # declared as what it is; none of these texts is a date or a number
    types["bytes"] = "binary"
    typed = settings_of("debezium", {"key": ["id"], "before_images": False}, types)
    rows = [document("u", {"id": 1, "other": "[95,95]", **UNAVAILABLE})]
    wanted = ["change_oper", "known_columns", "reject_reason", *UNAVAILABLE]
    for each in (settings, typed):
        [found] = staged(spark, each, MESSAGES, rows, wanted)
        assert tuple(found) == ("U", ["id", "other"], None, *[None] * len(UNAVAILABLE))


def test_a_placeholder_in_flat_columns_of_any_type_is_an_unknown_value(
    spark: SparkSession,
) -> None:
    data = PLACEHOLDER.encode()
    values = {
        **{
            f"{name}_as_text": (
                "string",
                value if isinstance(value, str) else json.dumps(value, separators=(",", ":")),
            )
            for name, value in UNAVAILABLE.items()
        },
        "bytes": ("binary", data),
        "texts": ("array<string>", [PLACEHOLDER]),
        "uuids": ("array<string>", UNAVAILABLE["uuids"]),
        "ints": ("array<int>", [*data]),
        "bigints": ("array<bigint>", [*data]),
        "byte_arrays": ("array<binary>", [data]),
    }
    kinds = {name: kind for name, (kind, _) in values.items()}
    columns = {"id": "int", "other": "array<int>", **kinds}
    columns |= {"__op": "string", "__lsn": "bigint", "__source_ts_ms": "bigint"}
    columns |= {"__txId": "bigint", "__deleted": "string"}
    rows = [
        (1, [95], *[value for _, value in values.values()], "u", 1, 1772452800000, 1, "false"),
        (1, None, *[None] * len(values), "u", 2, 1772452800000, 1, "false"),
    ]
    settings = settings_of("debezium_flat", {"key": ["id"]})
    wanted = ["change_seq", "known_columns", "reject_reason", *values]
    first, second = sorted(staged(spark, settings, columns, rows, wanted))
    assert tuple(first)[1:] == (["id", "other"], None, *[None] * len(values))
    assert tuple(second)[1:] == (None, None, *[None] * len(values))


def test_of_a_before_image_that_the_source_does_not_store_the_key_alone_is_known(
    spark: SparkSession,
) -> None:
    """Debezium fills columns that are NOT NULL with '' and 0 under REPLICA IDENTITY DEFAULT."""
    types = {"id": "int", "title": "string", "body": "string", "size": "int"}
    settings = settings_of("debezium", {"key": ["id"], "before_images": False}, types)
    filled = {"id": 2, "title": "", "body": "", "size": 0}
    rows = [
        document("d", None, filled, 5, [("__debezium.newkey", '{"id":60}')]),
        document(
            "c",
            {"id": 60, "title": "Doc", "body": PLACEHOLDER, "size": 12},
            None,
            5,
            [("__debezium.oldkey", '{"id":2}')],
        ),
        document("d", None, {"id": 7, "title": "", "body": "", "size": 0}, 6),
    ]
    wanted = ["change_seq", "change_oper", "known_columns", *types]
    found = sorted(staged(spark, settings, MESSAGES, rows, wanted))
    assert [tuple(row)[1:] for row in found] == [
        ("B", ["id"], 2, None, None, None),
        ("U", ["id", "title", "size"], 60, "Doc", None, 12),
        ("D", None, 7, None, None, None),
    ]


DOCUMENTS = {
    "key": ["id"],
    "sequence": {"place": "number"},
    "operation": "record.type",
    "operations": {"insert": "I", "update": "U", "delete": "D"},
    "json_text": "document",
    "json_fields": "type string, data map<string, string>, old map<string, string>",
    "after": "record.data",
    "before": "record.old",
}


def staged_documents(
    spark: SparkSession,
    documents: list[dict[str, Any]],
    types: dict[str, str],
    **settings: Any,
) -> list[tuple[Any, ...]]:
    rows = [(place, json.dumps(each)) for place, each in enumerate(documents)]
    wanted = ["change_seq", "change_oper", "known_columns", "reject_reason", *types]
    given = settings_of(None, {**DOCUMENTS, **settings}, types)
    columns = {"place": "bigint", "document": "string"}
    return [tuple(row)[1:] for row in sorted(staged(spark, given, columns, rows, wanted))]


def test_a_before_image_with_the_changed_columns_alone_has_the_key_of_the_row(
    spark: SparkSession,
) -> None:
    """Maxwell's `old`, Canal's `old`."""
    documents = [
        {"type": "update", "data": {"id": 1, "a": "new", "b": "x"}, "old": {"a": "was"}},
        {"type": "update", "data": {"id": 2, "a": "new", "b": "x"}, "old": {"id": 1}},
    ]
    types = {"id": "int", "a": "string", "b": "string"}
    assert staged_documents(spark, documents, types) == [
        ("B", ["id", "a"], None, 1, "was", None),
        ("U", None, None, 1, "new", "x"),
        ("B", ["id"], None, 1, None, None),
        ("U", None, None, 2, "new", "x"),
    ]


def test_before_images_with_a_prefix_have_the_key_of_the_row(spark: SparkSession) -> None:
    settings = {
        "key": ["id", "line"],
        "sequence": {"place": "number"},
        "operation": "op",
        "operations": {"u": "U"},
        "before": "old_*",
        "ignore_columns": ["place"],
    }
    columns = {
        "place": "bigint", "op": "string", "id": "int", "line": "int", "name": "string",
        "old_id": "int", "old_name": "string",
    }  # fmt: skip
    rows = [(1, "u", 2, 5, "b", None, "a")]
    wanted = ["change_oper", "known_columns", "reject_reason", "id", "line", "name"]
    found = staged(spark, settings_of(None, settings), columns, rows, wanted)
    assert sorted(map(tuple, found)) == [
        ("B", None, None, 2, 5, "a"),
        ("U", None, None, 2, 5, "b"),
    ]


@pytest.mark.parametrize(
    ("absent", "known", "known_before"),
    [("unknown", ["id", "city"], ["id", "street2"]), (None, None, ["id", "street2"])],
    ids=["unknown", "null"],
)
def test_a_column_that_a_document_lacks_is_unknown_or_null(
    spark: SparkSession, absent: Any, known: Any, known_before: Any
) -> None:
    documents = [
        {"type": "insert", "data": {"id": 1, "street2": "Floor 2", "city": "Oslo"}},
        {
            "type": "update",
            "data": {"id": 1, "city": "Oslo"},
            # a before image leaves out what did not change
            "old": {"street2": "Floor 2"},
        },
    ]
    types = {"id": "int", "street2": "string", "city": "string"}
    assert staged_documents(spark, documents, types, absent=absent) == [
        ("I", None, None, 1, "Floor 2", "Oslo"),
        ("B", known_before, None, 1, "Floor 2", None),
        ("U", known, None, 1, None, "Oslo"),
    ]


def test_columns_of_documents_ignore_case(spark: SparkSession) -> None:
    documents = [
        {"type": "insert", "data": {"ID": 1, "name": "Ann", "other": 1, "OTHER": 2}},
        {"type": "update", "data": {"Id": 1, "NAME": "Bo"}, "old": {"name": "Ann"}},
    ]
    types = {"id": "int", "Name": "string"}
    assert staged_documents(spark, documents, types) == [
        ("I", None, None, 1, "Ann"),
        ("B", None, None, 1, "Ann"),
        ("U", None, None, 1, "Bo"),
    ]


def test_a_document_with_a_column_in_two_spellings_stops_the_run(spark: SparkSession) -> None:
    documents = [{"type": "insert", "data": {"id": 1, "name": "Ann", "NAME": "Bo"}}]
    with pytest.raises(Exception, match=r"Source table shop\.feed: .*NAME, name.*Fix: "):
        staged_documents(spark, documents, {"id": "int", "Name": "string"})


@pytest.mark.parametrize("sparse", [True, False])
def test_a_null_in_a_column_that_an_update_does_not_list_is_unknown(
    spark: SparkSession, sparse: bool
) -> None:
    settings = {
        "key": ["id"],
        "sequence": {"place": "number"},
        "operation": "op",
        "operations": {"i": "I", "u": "U"},
        "changed_columns": "changed",
        "ignore_columns": ["place"],
        **({} if sparse else {"sparse_updates": False}),
    }
    columns = {
        "place": "bigint", "op": "string", "changed": "array<string>",
        "id": "int", "a": "string", "b": "string",
    }  # fmt: skip
    rows = [
        (1, "i", None, 1, "x", None),
        # the name in another case; the source cleared `a`
        (2, "u", ["A"], 1, None, None),
        (3, "u", ["b"], 1, "kept", "y"),
        (4, "u", None, 1, None, "y"),
    ]
    wanted = ["change_seq", "known_columns", "declared_changed_columns", "a", "b"]
    found = sorted(staged(spark, settings_of(None, settings), columns, rows, wanted))
    assert [tuple(row)[1:] for row in found] == [
        (None, None, "x", None),
        (["id", "a"] if sparse else None, ["a"], None, None),
        (None, ["b"], "kept", "y"),
        # it does not say what changed
        (None, None, None, "y"),
    ]


def test_what_a_record_says_that_it_knows(spark: SparkSession) -> None:
    """Whatever the value of another column is; a record that says nothing knows all."""
    given = {
        "key": ["id"],
        "sequence": {"place": "number"},
        "operation": "op",
        "operations": {"i": "I", "u": "U"},
        "ignore_columns": ["place"],
        "known_columns": "known",
        "unchanged_columns": "unchanged",
    }
    columns = {
        "place": "bigint", "op": "string", "known": "array<string>", "unchanged": "array<string>",
        "id": "int", "a": "string", "b": "string",
    }  # fmt: skip
    rows = [
        (1, "i", ["A"], None, 1, "x", "junk"),
        (2, "u", ["b", "no_column"], ["a"], 1, "junk", None),
        (3, "u", None, ["B"], 1, "y", "junk"),
        (4, "u", None, None, 1, None, "z"),
        # an insert changes all
        (5, "i", None, ["b"], 1, "x", "y"),
    ]
    settings = settings_of(None, given)
    wanted = ["change_seq", "known_columns", "reject_reason", "a", "b"]
    found = sorted(staged(spark, settings, columns, rows, wanted))
    assert [tuple(row)[1:] for row in found] == [
        (["id", "a"], None, "x", None),
        (["id", "b"], None, None, None),
        (["id", "a"], None, "y", None),
        (None, None, None, "z"),
        (None, None, "x", "y"),
    ]


def test_a_null_is_unknown_in_updates_alone(spark: SparkSession) -> None:
    given = {
        "key": ["id"],
        "sequence": {"place": "number"},
        "operation": "op",
        "operations": {"i": "I", "u": "U"},
        "ignore_columns": ["place"],
        "unknown_if_null": ["A"],
    }
    columns = {"place": "bigint", "op": "string", "id": "int", "a": "string", "b": "string"}
    rows = [(1, "i", 1, None, None), (2, "u", 1, None, None)]
    settings = settings_of(None, given)
    found = sorted(staged(spark, settings, columns, rows, ["change_seq", "known_columns"]))
    assert [row["known_columns"] for row in found] == [None, ["id", "b"]]
    with pytest.raises(CompilationError, match=r"`unknown_if_null`.*no_column"):
        staging_sql(settings_of(None, given | {"unknown_if_null": ["no_column"]}), columns)


def avro_type(kind: str, name: str | None = None, **more: Any) -> Any:
    return ["null", {"type": kind, **({"connect.name": name} if name else {}), **more}]


CONNECT = "org.apache.kafka.connect.data"
REGISTERED = {
    # column: its type, in Avro, in JSON Schema, the value in Avro, in JSON
    "made": (
        "timestamp", avro_type("long", "io.debezium.time.Timestamp"),
        {"type": "integer", "title": "io.debezium.time.Timestamp"}, MICROS // 1000, MICROS // 1000,
    ),
    "exact": (
        "timestamp_ntz", avro_type("long", "io.debezium.time.MicroTimestamp"),
        {"oneOf": [
            {"type": "null"}, {"type": "integer", "title": "io.debezium.time.MicroTimestamp"},
        ]},
        MICROS, MICROS,
    ),
    "sent": (
        "timestamp", avro_type("long", f"{CONNECT}.Timestamp", logicalType="timestamp-micros"),
        {"type": "integer", "title": f"{CONNECT}.Timestamp"}, MICROS, MICROS // 1000,
    ),
    "day": (
        "date", avro_type("int", f"{CONNECT}.Date", logicalType="date"),
        {"type": "integer", "title": f"{CONNECT}.Date"}, 20514, 20514,
    ),
    "at": (
        "string", avro_type("int", f"{CONNECT}.Time", logicalType="time-millis"),
        {"type": "integer", "title": "io.debezium.time.MicroTime"}, 27_000_000, 27_000_000_000,
    ),
    "price": (
        "decimal(10,2)",
        avro_type("bytes", f"{CONNECT}.Decimal", logicalType="decimal", precision=10, scale=2),
        {"type": "number", "title": f"{CONNECT}.Decimal"}, b"\x00\xfa", 2.5,
    ),
    "photo": ("binary", avro_type("bytes"), {"type": "string"}, b"\x00A", "AEE="),
    "name": ("string", avro_type("string"), {"type": "string"}, "Ann", "Ann"),
}  # fmt: skip


def test_the_schemas_of_a_registry_say_how_values_are_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In Avro, in a version with another column, in JSON Schema, by an unknown schema, in none."""
    source = {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": "long"}]}

    def envelope(columns: dict[str, Any]) -> dict[str, Any]:
        fields = [{"name": name, "type": kind} for name, kind in columns.items()]
        row = {"type": "record", "name": "Value", "fields": fields}
        parts = {"before": ["null", row], "after": ["null", "Value"], "op": "string"}
        fields = [
            {"name": name, "type": kind} for name, kind in {**parts, "source": source}.items()
        ]
        return {"type": "record", "name": "Envelope", "fields": fields}

    def message(row: dict[str, Any], lsn: int) -> dict[str, Any]:
        return {"op": "c", "before": None, "after": row, "source": {"lsn": lsn}}

    def row_of(schema: dict[str, Any]) -> dict[str, Any]:
        return {"Value": schema["fields"][0]["type"][1]}

    in_avro = {name: kind for name, (_, kind, *_) in REGISTERED.items()}
    first = envelope({"id": "int", **in_avro})
    second = envelope({"id": "int", "name": ["null", "string"]})
    properties = {name: kind for name, (_, _, kind, *_) in REGISTERED.items()}
    row = {"type": "object", "properties": {"id": {"type": "integer"}, **properties}}
    schema = {"properties": {"after": {"oneOf": [{"type": "null"}, row]}, "op": {"type": "string"}}}
    files = {"1.avsc": first, "7.avsc": second, "300.json": schema}
    for name, text in files.items():
        (tmp_path / name).write_text(json.dumps(text), encoding="utf-8")
    values = {"id": 1, **{name: value for name, (_, _, _, value, _) in REGISTERED.items()}}
    documents = {"id": 1, **{name: value for name, (*_, value) in REGISTERED.items()}}
    rows = [
        avro_registered(1, encode(first, message(values, 1), row_of(first))),
        avro_registered(7, encode(second, message({"id": 1, "name": None}, 2), row_of(second))),
        avro_registered(300, json.dumps(message(documents, 3)).encode()),
        json.dumps(message({"id": 1, "name": "Bob"}, 4)).encode(),
        avro_registered(8, b"later"),
        avro_registered(1, b"\x02"),
    ]
    types = {"id": "int", **{name: kind for name, (kind, *_) in REGISTERED.items()}}
    given = {"key": ["id"], "schema_registry": str(tmp_path)}
    settings = settings_of("debezium", given, types)
    wanted = ["change_seq", "reject_reason", "known_columns", *types]
    raw = [(value, None, "one") for value in rows]
    found = staged(spark, settings, MESSAGES, raw, wanted)
    by_lsn = {int(each[0][16:], 16): each for each in found if each[0] is not None}
    noon = datetime(2026, 3, 2, 7, 30, 0, 123456)
    for lsn in (1, 3):
        made, sent = by_lsn[lsn]["made"], by_lsn[lsn]["sent"]
        assert (made, sent[:23]) == ("2026-03-02 07:30:00.123", "2026-03-02 07:30:00.123")
        assert by_lsn[lsn]["exact"] == noon and by_lsn[lsn]["day"] == "2026-03-02"
        assert by_lsn[lsn]["price"] == Decimal("2.50") and by_lsn[lsn]["at"] == "07:30:00.000000"
        assert bytes(by_lsn[lsn]["photo"]) == b"\x00A" and by_lsn[lsn]["name"] == "Ann"
        assert by_lsn[lsn]["reject_reason"] is None and by_lsn[lsn]["known_columns"] is None
    assert by_lsn[2]["known_columns"] == ["id", "name"] and by_lsn[2]["name"] is None
    assert by_lsn[4]["known_columns"] == ["id", "name"] and by_lsn[4]["name"] == "Bob"
    others = sorted(each["reject_reason"] for each in found if each[0] is None)
    assert others == ["null_change_seq", "unknown_schema"]


FLAT = {
    "made": "io.debezium.time.Timestamp",
    "exact": "io.debezium.time.MicroTimestamp",
    "price": "org.apache.kafka.connect.data.Decimal",
}


def test_flattened_messages_with_their_schema_and_without(spark: SparkSession) -> None:
    types = {"id": "int", "made": "timestamp", "exact": "timestamp", "price": "decimal(10,2)"}
    settings = settings_of("debezium_flat_messages", {"key": ["id"]}, types)
    row = {"id": 1, "MADE": MICROS // 1000, "exact": MICROS, "price": unscaled(250)}
    own = {"__op": "u", "__deleted": "false", "__lsn": 7, "__source_ts_ms": 1772452800000}
    fields = [{"field": name, "type": "int64", "name": kind} for name, kind in FLAT.items()]
    message = {**row, **own, "__txId": 5}
    documents = [
        json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": message}),
        json.dumps({**message, "__op": "c", "__lsn": 8}),
        json.dumps({"id": 1, **own, "__op": "d", "__deleted": "true", "__lsn": 9}),
        None,
        '{"schema":null,"payload":null}',
        '{"id": 1, "__op',
    ]
    rows = [(value and value.encode(), None, "one") for value in documents]
    wanted = ["change_seq", "change_oper", "reject_reason", *types]
    found = sorted(map(tuple, staged(spark, settings, MESSAGES, rows, wanted)), key=repr)
    assert found == [
        (f"{7:016X}", "U", None, 1, "2026-03-02 07:30:00.123", "2026-03-02 07:30:00.123456",
         Decimal("2.50")),
        (f"{8:016X}", "I", "uncastable_value:made", 1, None, None, Decimal("2.50")),
        (f"{9:016X}", "D", None, 1, None, None, None),
        (None, "N", None, None, None, None, None),
        (None, "N", None, None, None, None, None),
        (None, None, "malformed_message", None, None, None, None),
    ]  # fmt: skip


def test_a_null_in_a_column_whose_bit_is_clear_is_unknown(spark: SparkSession) -> None:
    settings = {
        "key": ["id"],
        "sequence": {"place": "number"},
        "operation": "op",
        "operations": {"u": "U"},
        "changed_mask": "mask",
        "ignore_columns": ["place"],
    }
    columns = {
        "place": "bigint", "op": "string", "mask": "binary",
        "id": "int", "a": "string", "b": "string",
    }  # fmt: skip
    rows = [(1, "u", b"\x02", 1, None, None)]
    wanted = ["change_oper", "known_columns", "declared_changed_columns", "reject_reason"]
    [found] = staged(spark, settings_of(None, settings), columns, rows, wanted)
    assert tuple(found) == ("U", ["id", "a"], ["a"], None)


def test_a_tombstone_with_its_schema_is_no_change(spark: SparkSession) -> None:
    settings = settings_of("debezium", {"key": ["id"]}, {"id": "int"})
    rows = [
        (b'{"schema":null,"payload":null}', None, "one"),
        (b'{"schema":null,"payload":{"id":1}}', None, "one"),
        (b'{"id":1}', None, "one"),
    ]
    found = staged(spark, settings, MESSAGES, rows, ["change_oper", "reject_reason"])
    assert sorted(map(tuple, found), key=str) == [
        ("N", None),
        (None, "null_change_seq"),
        (None, "null_change_seq"),
    ]


@pytest.mark.parametrize(
    ("preset", "lacking", "setting"),
    [
        ("debezium_flat", "__lsn", "sequence"),
        ("debezium_flat", "__txId", "transaction_id"),
        ("sql_server_cdc", "__$command_id", "sequence"),
    ],
)
def test_a_column_of_a_preset_that_the_table_lacks_is_named(
    preset: str, lacking: str, setting: str
) -> None:
    path = Path(__file__).parents[1] / "data" / "feeds" / f"{preset}.json"
    kinds = json.loads(path.read_text(encoding="utf-8"))["columns"]
    columns = {name: "string" for name in kinds if name != lacking}
    with pytest.raises(CompilationError) as error:
        staging_sql(settings_of(preset, {"key": ["id"]}), columns)
    message = str(error.value)
    assert f"`{setting}` of the preset {preset} reads the column `{lacking}`" in message
    assert "shop.feed" in message and "Fix: " in message


def test_before_images_of_aws_dms(spark: SparkSession) -> None:
    settings = settings_of("aws_dms", {"key": ["id"], "before": "BI_*"})
    columns = {
        "Op": "string", "commit_timestamp": "string", "change_seq": "string",
        "id": "int", "name": "string", "BI_id": "int", "BI_name": "string",
    }  # fmt: skip
    at, seq = "2017-06-05 08:00:00.000000", "20170605080000000000000000000000001"
    rows = [("U", at, seq, 1, "b", 1, "a"), ("I", at, seq[:-1] + "2", 2, "c", None, None)]
    wanted = ["change_oper", "known_columns", "reject_reason", "id", "name"]
    assert sorted(map(tuple, staged(spark, settings, columns, rows, wanted))) == [
        ("B", None, None, 1, "a"),
        ("I", None, None, 2, "c"),
        ("U", None, None, 1, "b"),
    ]
