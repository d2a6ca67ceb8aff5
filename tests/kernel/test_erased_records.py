"""Erased data on its way into a log: which records and values are removed, and which are kept."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dbt_afterimage.erased.erased_records import ErasedKeys
from dbt_afterimage.erased.erasures import Erasure
from dbt_afterimage.settings import positions
from dbt_afterimage.storage.local_relation import local_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOG = "people_changes"
COLUMNS = (
    "change_seq string, change_oper string, Id int, name string, city string, raw_record string"
)
WHERE = positions({"system": "qlik_change_table", "look_back": "1 hour"})


def seq(number: int) -> str:
    return f"2026030108000000{number:019d}"


def hash_of(key: int) -> str:
    return hashlib.sha256(f'{LOG}["{key}"]'.encode()).hexdigest()


def staged(spark: SparkSession) -> DataFrame:
    rows = [
        (seq(1), "I", 1, "Ann", "Oslo", "{Ann}"),
        (seq(2), "U", 1, "Ada", "Oslo", "{Ada}"),
        (seq(3), "U", 1, "Eva", "Oslo", "{Eva}"),
        (seq(1), "I", 2, "Bob", "Rome", "{Bob}"),
        (None, "I", 1, "Nil", "Oslo", "{Nil}"),
        ("0 malformed", "I", 1, "Mal", "Oslo", "{Mal}"),
        (seq(1), "T", None, None, None, "{}"),
    ]
    return local_rows(spark, rows, COLUMNS)


def names(rows: DataFrame) -> list[tuple[str | None, ...]]:
    found = rows.select("name", "city", "raw_record").collect()
    return [tuple(row) for row in found]


def erased(spark: SparkSession, *erasures: Erasure) -> ErasedKeys:
    return ErasedKeys(spark, LOG, ["id"], erasures)


def test_without_erasures_nothing_is_added(spark: SparkSession) -> None:
    rows = staged(spark)
    assert erased(spark).removed_from_changes(rows, WHERE) is rows
    assert erased(spark).removed_from_loads(rows) is rows


def test_records_up_to_the_erasure_are_removed(spark: SparkSession) -> None:
    """Those without a position are not: their time is not known."""
    # erased twice: the later one counts
    keys = erased(spark, *[Erasure(LOG, hash_of(1), None, seq(number)) for number in (2, 1)])
    kept = keys.removed_from_changes(staged(spark), WHERE)
    assert kept.columns == staged(spark).columns
    assert [row[0] for row in names(kept)] == ["Eva", "Bob", "Nil", "Mal", None]


def test_columns_up_to_the_erasure_are_null_and_so_is_the_raw_text(spark: SparkSession) -> None:
    keys = erased(
        spark,
        Erasure(LOG, hash_of(1), ("NAME",), seq(2)),
        Erasure(LOG, hash_of(1), ("city",), seq(1)),
    )
    assert names(keys.removed_from_changes(staged(spark), WHERE))[:4] == [
        (None, None, None),
        (None, "Oslo", None),
        ("Eva", "Oslo", "{Eva}"),
        ("Bob", "Rome", "{Bob}"),
    ]


def test_rows_of_a_load_count_at_its_position(spark: SparkSession) -> None:
    keys = erased(spark, Erasure(LOG, hash_of(1), None, seq(5)))
    for position, left in ((seq(5), 2), (seq(6), 7)):
        rows = staged(spark).withColumn("change_seq", F.lit(position))
        assert len(names(keys.removed_from_loads(rows))) == left
