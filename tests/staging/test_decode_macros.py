"""The SQL of macros/decode, run by Spark, against a few lines of Python that read masks."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.storage.local_relation import local_rows
from tests.macro_renderer import MacroRenderer
from tests.spark_settings import ANSI, COMPILED, spark_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DDL_DETAILS = Path(__file__).parents[1] / "data/qlik_ddl_history/details.json"
TYPES = ("string", "binary")


@pytest.fixture(scope="module")
def render() -> MacroRenderer:
    return MacroRenderer()


def literal(mask: str | bytes | None) -> str:
    if mask is None:
        return "null"
    return f"x'{mask.hex()}'" if isinstance(mask, bytes) else f"'{mask}'"


def columns(count: int) -> list[str]:
    return [f"column_{number}" for number in range(1, count + 1)]


def stored(bits: set[int], width: int, byte_order: str, mask_type: str, form: int) -> str | bytes:
    """A mask with these bits, in one of the forms in which such a mask is stored."""
    size = (width + 7) // 8 + form % 3
    data = sum(1 << bit for bit in bits).to_bytes(size, "big")
    if byte_order == "lsb_first":
        data = data[::-1]
    if form % 2:
        data = data.lstrip(b"\0") if byte_order == "msb_first" else data.rstrip(b"\0")
    if mask_type == "binary":
        return data
    text = data.hex() if form % 4 < 2 else data.hex().upper()
    if form % 5 == 0 and text[:1] == "0" and byte_order == "msb_first":
        text = text[1:]  # odd length
    return ("0x" if form % 7 == 0 else "0X" if form % 7 == 1 else "") + text


def evaluate(spark: SparkSession, expressions: Sequence[str], masks: Sequence[str]) -> list[Any]:
    """Every expression over every mask, both SQL. Spark folds it, so that nothing is compiled."""
    named = ", ".join(f"{text} as e{number}" for number, text in enumerate(expressions))
    values = ", ".join(f"({number}, {mask})" for number, mask in enumerate(masks))
    rows = spark.sql(f"select id, {named} from values {values} as masks (id, mask)").collect()
    return [list(row[1:]) for row in sorted(rows, key=lambda row: row[0])]


@pytest.mark.parametrize(
    ("byte_order", "mask_type"), [("msb_first", "string"), ("lsb_first", "binary")]
)
def test_widths_around_whole_bytes_and_words(
    spark: SparkSession, render: MacroRenderer, byte_order: str, mask_type: str
) -> None:
    check_widths(spark, render, byte_order, mask_type, (1, 7, 8, 9, 63, 64, 65, 127, 128, 129))


@pytest.mark.nightly
@pytest.mark.parametrize("byte_order", ["msb_first", "lsb_first"])
@pytest.mark.parametrize("mask_type", TYPES)
def test_every_width_from_1_to_130(
    spark: SparkSession, render: MacroRenderer, byte_order: str, mask_type: str
) -> None:
    check_widths(spark, render, byte_order, mask_type, range(1, 131))


def check_widths(
    spark: SparkSession,
    render: MacroRenderer,
    byte_order: str,
    mask_type: str,
    counts: Iterable[int],
) -> None:
    """Masks of each number of columns, with random bits, are decoded to the names of their bits."""
    chance = random.Random(f"{byte_order} {mask_type}")
    for count in counts:
        names = columns(count)
        first = count % 8
        subsets = [set(), set(range(count)), {count - 1}]
        subsets += [set(chance.sample(range(count), chance.randint(1, count))) for _ in range(3)]
        headers = [set(chance.sample(range(first), chance.randint(0, first))) for _ in subsets]
        width = first + count
        masks = [
            stored({first + bit for bit in subset} | header, width, byte_order, mask_type, form)
            for form, (subset, header) in enumerate(zip(subsets, headers, strict=True), start=count)
        ]
        arguments = ("mask", names, byte_order, first, mask_type)
        expressions = [
            render("change_mask_columns", *arguments),
            render("change_mask_error", *arguments),
        ]
        found = evaluate(spark, expressions, [literal(mask) for mask in masks])
        expected = [[[names[bit] for bit in sorted(subset)], None] for subset in subsets]
        assert found == expected, (count, masks)


@pytest.mark.parametrize(
    ("mask", "count", "changed"),
    [
        ("008080", 16, [8, 16]),
        ("00", 3, []),
        ("05", 3, [1, 3]),
        ("02", 3, [2]),
        ("07", 3, [1, 2, 3]),
        # an INSERT that fills 81 of 117 columns, and has a byte for each eight of them
        (
            "1F903C3000003FFFFFFFFFFFFFFFFF",
            117,
            [bit + 1 for bit in range(117) if 0x1F903C3000003FFFFFFFFFFFFFFFFF >> bit & 1],
        ),
    ],
)
def test_masks_of_captured_messages(
    spark: SparkSession, render: MacroRenderer, mask: str, count: int, changed: list[int]
) -> None:
    names = columns(count)
    forms = [mask, mask.lower(), f"0x{mask}", f"0000{mask}", mask.lstrip("0")]
    found = evaluate(
        spark, [render("change_mask_columns", "mask", names)], [literal(form) for form in forms]
    )
    assert found == [[[f"column_{number}" for number in changed]]] * len(forms)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_null_empty_malformed_and_too_wide_masks(
    spark: SparkSession, render: MacroRenderer, ansi: str
) -> None:
    names = columns(10)
    expectations: dict[str, dict[str | bytes | None, tuple[list[str] | None, str | None]]] = {
        "string": {
            None: (None, None),
            "": ([], None),
            "0x": ([], None),
            "G0": (None, "malformed_mask"),
            "0x0x": (None, "malformed_mask"),
            " 01": (None, "malformed_mask"),
            "1FF8": (names, None),
            "2008": (["column_1"], "mask_too_wide"),
            "01" + "00" * 128: ([], "mask_too_wide"),
            "01" + "00" * 127: ([], "mask_too_wide"),
            "00" * 127 + "08": (["column_1"], None),
            "00" * 128 + "08": (["column_1"], "mask_too_wide"),
        },
        "binary": {
            None: (None, None),
            b"": ([], None),
            b"\x08": (["column_1"], None),
            b"\xff\x1f": (names, None),
            b"\x08\x20": (["column_1"], "mask_too_wide"),
            b"\x08" + b"\0" * 127: (["column_1"], None),
            b"\x08" + b"\0" * 128: (["column_1"], "mask_too_wide"),
            b"\x08" + b"\0" * 126 + b"\x01": (["column_1"], "mask_too_wide"),
        },
    }
    with spark_settings(spark, {ANSI: ansi}):
        for mask_type, expected in expectations.items():
            arguments = ("mask", names, "auto", 3, mask_type)
            expressions = [
                render("change_mask_columns", *arguments),
                render("change_mask_error", *arguments),
            ]
            masks = [f"cast({literal(mask)} as {mask_type})" for mask in expected]
            found = evaluate(spark, expressions, masks)
            assert dict(zip(expected, map(tuple, found), strict=True)) == expected


@pytest.mark.parametrize("mask_type", TYPES)
def test_1024_columns_in_compiled_code(
    spark: SparkSession, render: MacroRenderer, mask_type: str
) -> None:
    """Over stored rows Spark compiles the expressions: that many columns must not be too many."""
    names = columns(1024)
    chance = random.Random(mask_type)
    byte_order = "msb_first" if mask_type == "string" else "lsb_first"
    subsets = [set(), set(range(1024)), *(set(chance.sample(range(1024), 5)) for _ in range(20))]
    masks = [
        (number, stored(subset, 1024, byte_order, mask_type, 0))
        for number, subset in enumerate(subsets)
    ]
    arguments = ("mask", names, "auto", 0, mask_type)
    parts = render("change_mask_parts", *arguments)
    selected = ", ".join(f"{text} as {name}" for name, text in parts.items())
    changed = render("change_mask_columns", *arguments, has_parts=True)
    error = render("change_mask_error", *arguments, has_parts=True)
    rows = spark.createDataFrame(
        spark.sparkContext.parallelize(masks, 1), f"id int, mask {mask_type}"
    )
    rows.createOrReplaceTempView("wide_masks")
    with spark_settings(spark, COMPILED):
        found = spark.sql(
            f"select id, {changed} as changed, {error} as error "
            f"from (select *, {selected} from wide_masks)"
        ).collect()
    assert {row.id: row.changed for row in found} == {
        number: [names[bit] for bit in sorted(subset)] for number, subset in enumerate(subsets)
    }
    assert {row.error for row in found} == {None}


def test_places_without_a_data_column_yield_no_name(
    spark: SparkSession, render: MacroRenderer
) -> None:
    expression = render("change_mask_columns", "mask", ["a", None, "it's", None])
    assert evaluate(spark, [expression], ["'0f'", "'0a'"]) == [[["a", "it's"]], [[]]]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_change_seq_to_timestamp(spark: SparkSession, render: MacroRenderer, ansi: str) -> None:
    counter = f"{149:019d}"
    expected: dict[str, tuple[datetime | None, bool]] = {
        f"2019111109130413{counter}": (datetime(2019, 11, 11, 9, 13, 4, 130000), False),
        f"9999123123595999{counter}": (datetime(9999, 12, 31, 23, 59, 59, 990000), False),
        f"2024022900000000{counter}": (datetime(2024, 2, 29), False),
        # month 13, 30 February, hour 24, minute 60, second 60, year 0
        f"2026130108000000{counter}": (None, True),
        f"2026023008000000{counter}": (None, True),
        f"2026010124000000{counter}": (None, True),
        f"2026010123600000{counter}": (None, True),
        f"2026010123596000{counter}": (None, True),
        f"0000010100000000{counter}": (None, True),
        "": (None, True),
        "20191111": (None, True),
        "2019-11-11T09:13:04Z": (None, True),
        # the time is valid, the rest is not
        "2019111109130413": (datetime(2019, 11, 11, 9, 13, 4, 130000), True),
        f"2019111109130413{counter}0": (datetime(2019, 11, 11, 9, 13, 4, 130000), True),
        f"2019111109130413{counter[:-1]}x": (datetime(2019, 11, 11, 9, 13, 4, 130000), True),
        f"2019111109130413{counter[:-1]}\\n": (datetime(2019, 11, 11, 9, 13, 4, 130000), True),
        f"2019111109130413{counter}\\n": (datetime(2019, 11, 11, 9, 13, 4, 130000), True),
    }
    time = render("change_seq_to_timestamp", "mask")
    # as text: the session's and Python's time zones are none of this test's business
    expressions = [
        f"date_format({time}, 'yyyy-MM-dd HH:mm:ss.SSSSSS')",
        render("change_seq_is_malformed", "mask"),
    ]
    with spark_settings(spark, {ANSI: ansi}):
        found = evaluate(spark, expressions, [literal(seq) for seq in expected])
        assert evaluate(spark, expressions, ["cast(null as string)"]) == [[None, None]]
    texts = [
        [time and time.isoformat(" ", "microseconds"), malformed]
        for time, malformed in expected.values()
    ]
    assert found == texts


def test_operations(spark: SparkSession, render: MacroRenderer) -> None:
    pairs = {
        ("I", "INSERT"): "I",
        ("U", "UPDATE"): "U",
        ("B", "BEFOREIMAGE"): "B",
        ("D", "DELETE"): "D",
        ("D", "TRUNCATE"): "T",
        ("T", "TRUNCATE"): "T",
        ("T", "OTHER"): None,
        ("i", "INSERT"): None,
        ("X", "EXPIRE"): None,
    }
    rendered = render("qlik_change_operation", "mask.oper", "mask.operation")
    masks = [f"named_struct('oper', '{oper}', 'operation', '{word}')" for oper, word in pairs]
    assert evaluate(spark, [rendered], masks) == [[letter] for letter in pairs.values()]


def test_columns_of_a_ddl_statement(spark: SparkSession, render: MacroRenderer) -> None:
    details = DDL_DETAILS.read_text(encoding="utf-8")
    rows = local_rows(spark, [(details,), ("no JSON",), (None,)], "details string")
    found = [row[0] for row in rows.selectExpr(render("qlik_ddl_columns", "details")).collect()]
    assert [column.asDict() for column in found[0]] == [
        {
            "ordinal": 1,
            "column_name": "id",
            "new_name": None,
            "action": None,
            "type": "kAR_DATA_TYPE_NUMERIC",
            "length": 0,
            "precision": 9,
            "scale": 2,
            "primary_key_position": 1,
            "nullable": False,
        },
        {
            "ordinal": 2,
            "column_name": "status",
            "new_name": "state",
            "action": "rename",
            "type": "kAR_DATA_TYPE_STR",
            "length": 20,
            "precision": 0,
            "scale": 0,
            "primary_key_position": 0,
            "nullable": True,
        },
    ]
    assert found[1:] == [None, None]
