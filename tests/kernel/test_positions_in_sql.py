"""The look-back in SQL covers the positions that the look-back in Python covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.settings import positions
from dbt_afterimage.storage.local_relation import local_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEX = [f"{number:016X}" for number in (0, 1, 9, 10, 15, 16, 17, 255, 256, 4096, 2**40)]
DIGITS = [f"{number:019d}" for number in (1, 2, 99, 100, 101, 5000)]
TIMES = [f"20260302{time}".ljust(35, "0") for time in ("0800", "0944", "0945", "0946", "1000")]


@pytest.mark.parametrize(
    ("system", "look_back", "places"),
    [
        ("change_feed", 0, HEX),
        ("change_feed", 0, [first + second for first in HEX[:4] for second in HEX]),
        ("openedge", 100, DIGITS),
        ("qlik_change_table", "15 minutes", TIMES),
    ],
    ids=["feed", "feed_of_two_parts", "openedge", "qlik"],
)
def test_the_look_back_in_sql(
    spark: SparkSession, system: str, look_back: int | str, places: list[str]
) -> None:
    sequence = positions({"system": system, "look_back": look_back})
    frame = local_rows(spark, [(place,) for place in places], "seq string")
    pairs = frame.crossJoin(frame.withColumnRenamed("seq", "other"))
    found = pairs.selectExpr("seq", "other", f"other > {sequence.before_look_back_sql('seq')}")
    covered = {(row[0], row[1]) for row in found.collect() if row[2]}
    expected = {
        (seq, other) for seq in places for other in places if other > sequence.before_look_back(seq)
    }
    assert covered == expected
