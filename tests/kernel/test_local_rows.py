"""Rows that the driver holds become DataFrames with the types and values that were given."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING

from dbt_afterimage.storage.local_relation import local_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (
    "id bigint, name string, price decimal(9,2), at timestamp, data binary, is_new boolean, "
    "tags array<string>, scope map<string,string>, image struct<id: int, names: array<string>>"
)
TEXTS = (
    "id",
    "name",
    "cast(price as string)",
    "date_format(at, 'yyyy-MM-dd HH:mm:ss.SSSSSS')",
    "hex(data)",
    "is_new",
    "to_json(tags)",
    "to_json(scope)",
    "to_json(image)",
)
FULL = (
    7,
    "Ann",
    Decimal("1.50"),
    datetime(2026, 3, 2, 9, 0, 0, 1, tzinfo=timezone.utc),
    bytearray(b"\x00\xff"),
    True,
    ["a", None],
    {"city": "Rome"},
    (1, ["x"]),
)


def test_values_of_every_type_are_kept(spark: SparkSession) -> None:
    rows = local_rows(spark, [FULL, [None] * len(FULL)], COLUMNS)
    assert (
        rows.schema == spark.sql(f"select from_json('', '{COLUMNS}') as it").select("it.*").schema
    )
    assert [tuple(row) for row in rows.selectExpr(*TEXTS).collect()] == [
        (
            7,
            "Ann",
            "1.50",
            "2026-03-02 09:00:00.000001",
            "00FF",
            True,
            '["a",null]',
            '{"city":"Rome"}',
            '{"id":1,"names":["x"]}',
        ),
        (None,) * len(FULL),
    ]


def test_rows_by_name_may_lack_columns(spark: SparkSession) -> None:
    rows = local_rows(spark, [{"name": "Ann"}, {"id": 2}], "id int, name string")
    assert [tuple(row) for row in rows.collect()] == [(None, "Ann"), (2, None)]


def test_no_rows_have_columns(spark: SparkSession) -> None:
    rows = local_rows(spark, [], "id int, name string")
    assert (rows.columns, rows.count()) == (["id", "name"], 0)
