"""How values read in field changes: one text form for each type, in every mode of the session."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from tests.macro_renderer import MacroRenderer
from tests.spark_settings import ANSI, spark_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODES = ("true", "false")

# value as SQL, its type, its text
FORMS = [
    ("true", "boolean", "true"),
    ("cast(-7 as tinyint)", "tinyint", "-7"),
    ("-9223372036854775808", "bigint", "-9223372036854775808"),
    ("cast('-1E-10' as decimal(38,10))", "decimal(38,10)", "-0.0000000001"),
    ("cast(0 as decimal(38,10))", "decimal(38,10)", "0.0000000000"),
    ("cast('1.200E-7' as decimal(20,10))", "decimal(20,10)", "0.0000001200"),
    ("cast('1234567.5' as decimal(20,10))", "decimal(20,10)", "1234567.5000000000"),
    ("cast('1234567.5' as decimal(9,2))", "decimal(9,2)", "1234567.50"),
    ("cast('0' as decimal(9,6))", "decimal(9,6)", "0.000000"),
    ("float(0.1)", "float", "0.1"),
    ("double('1e-10')", "double", "1.0E-10"),
    ("float(16777217)", "float", "1.6777216E7"),
    ("float('-0.0')", "float", "0.0"),
    ("double('-0.0')", "double", "0.0"),
    ("array(double('-0.0'))", "array<double>", "[0.0]"),
    ("double('nan')", "double", "NaN"),
    ("double('-infinity')", "double", "-Infinity"),
    ("'a\"b'", "string", 'a"b'),
    ("x'00ff'", "binary", "00FF"),
    ("date'0001-01-31'", "date", "0001-01-31"),
    ("timestamp'2026-03-02 07:30:00'", "timestamp", "2026-03-02T07:30:00.000000Z"),
    ("timestamp'2026-03-02 07:30:00.5+02:00'", "timestamp", "2026-03-02T05:30:00.500000Z"),
    ("timestamp_ntz'2026-03-02 07:30:00.000001'", "timestamp_ntz", "2026-03-02T07:30:00.000001"),
    ("array('a', null, 'c\"d')", "array<string>", '["a",null,"c\\"d"]'),
    ("cast(array() as array<int>)", "array<int>", "[]"),
    ("array(array(1, null), null)", "array<array<int>>", "[[1,null],null]"),
    (
        "array(cast('1E-10' as decimal(38,10)), null)",
        "array<decimal(38,10)>",
        "[0.0000000001,null]",
    ),
    ("array(float(0.5), float('nan'))", "array<float>", '[0.5,"NaN"]'),
    (
        "named_struct('a b', cast(null as int), 'at', timestamp'2026-03-02 07:30:00', 'x', x'0a')",
        "struct<a b:int,at:timestamp,x:binary>",
        '{"a b":null,"at":"2026-03-02T07:30:00.000000Z","x":"0A"}',
    ),
    (
        "named_struct('p', cast(null as struct<a:int>), 'q', named_struct('a', cast(null as int)))",
        "struct<p:struct<a:int>,q:struct<a:int>>",
        '{"p":null,"q":{"a":null}}',
    ),
    (
        "array(named_struct('price', cast(0 as decimal(12,8)), 'tags', map('z', 1, 'a', null)))",
        "array<struct<price:decimal(12,8),tags:map<string,int>>>",
        '[{"price":0.00000000,"tags":{"a":null,"z":1}}]',
    ),
    ("map(date'2026-03-02', true)", "map<date,boolean>", '{"2026-03-02":true}'),
]


def texts(spark: SparkSession, values: list[tuple[str, str]]) -> list[str | None]:
    """The text of each value, given as SQL with its type."""
    render = MacroRenderer()
    named = ", ".join(
        f"{render('_as_text', f'v.c{number}', kind)} as t{number}"
        for number, (_, kind) in enumerate(values)
    )
    given = ", ".join(f"{value} as c{number}" for number, (value, _) in enumerate(values))
    row = spark.sql(f"select {named} from (select {given}) as v").collect()[0]
    return list(row)


@pytest.mark.parametrize("mode", MODES)
def test_every_type_has_one_text(spark: SparkSession, mode: str) -> None:
    with spark_settings(spark, {ANSI: mode}):
        found = texts(spark, [(value, kind) for value, kind, _ in FORMS])
    assert found == [text for *_, text in FORMS]


@pytest.mark.parametrize("mode", MODES)
def test_null_has_no_text(spark: SparkSession, mode: str) -> None:
    kinds = dict.fromkeys(kind for _, kind, _ in FORMS)
    sql = {"struct<a b:int,at:timestamp,x:binary>": "struct<`a b`:int,at:timestamp,x:binary>"}
    with spark_settings(spark, {ANSI: mode}):
        found = texts(spark, [(f"cast(null as {sql.get(kind, kind)})", kind) for kind in kinds])
    assert found == [None] * len(kinds)


@pytest.mark.parametrize("mode", MODES)
def test_a_decimal_shows_all_digits_of_its_scale_and_no_exponent(
    spark: SparkSession, mode: str
) -> None:
    chance = random.Random(mode)
    values, expected = [], []
    for scale in range(39):
        for digits in {1, 2, chance.randint(1, 38)}:
            unscaled = chance.choice((1, -1)) * chance.randrange(10**digits)
            number = format(Decimal(f"{unscaled}E-{scale}"), "f")
            values.append((f"cast('{number}' as decimal(38,{scale}))", f"decimal(38,{scale})"))
            expected.append(number.removeprefix("-") if not unscaled else number)
    with spark_settings(spark, {ANSI: mode}):
        assert texts(spark, values) == expected


def test_the_text_of_a_nested_value_is_json_that_others_read(spark: SparkSession) -> None:
    letters = 'ab"\\/\n\t€\U0001f600{}[],:\x01'
    values = ["".join(random.Random(seed).choices(letters, k=9)) for seed in range(40)]
    literals = ", ".join(
        "'" + value.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t") + "'"
        for value in values
    )
    (text,) = texts(spark, [(f"array({literals})", "array<string>")])
    assert text is not None
    assert json.loads(text) == values
