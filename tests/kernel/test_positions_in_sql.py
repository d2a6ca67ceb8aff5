"""Positions in SQL: the look-back covers what it covers in Python, and 0 is a position."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from dbt_afterimage.change_log.reading.read import read
from dbt_afterimage.log_rows.columns import is_position
from dbt_afterimage.sequence import ChangeFeedSequence, QlikChangeSequence
from dbt_afterimage.settings import SourceSettings, positions
from dbt_afterimage.storage.local_relation import local_rows
from dbt_afterimage.storage.progress import Progress
from tests.run_contexts import run_context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEX = [f"{number:016X}" for number in (0, 1, 9, 10, 15, 16, 17, 255, 256, 4096, 2**40)]
DIGITS = [f"{number:019d}" for number in (1, 2, 99, 100, 101, 5000)]
EDGES = [edge * width for width in ChangeFeedSequence.widths for edge in "0F"]
TIMES = [f"20260302{time}".ljust(35, "0") for time in ("0800", "0944", "0945", "0946", "1000")]


@pytest.mark.parametrize(
    ("system", "look_back", "places"),
    [
        ("change_feed", 0, HEX),
        ("change_feed", 0, [first + second for first in HEX[:4] for second in HEX]),
        ("change_feed", 0, EDGES),
        ("openedge", 100, [*DIGITS, f"{2**63 - 1:019d}"]),
        ("qlik_change_table", "15 minutes", ["0" * 35, *TIMES]),
    ],
    ids=["feed", "feed_of_two_parts", "feed_at_its_edges", "openedge", "qlik"],
)
def test_the_look_back_in_sql(
    spark: SparkSession, system: str, look_back: int | str, places: list[str]
) -> None:
    sequence = positions({"system": system, "look_back": look_back})
    frame = local_rows(spark, [(place,) for place in places], "seq string")
    # a table has one width
    pairs = frame.crossJoin(frame.withColumnRenamed("seq", "other")).filter(
        "length(seq) = length(other)"
    )
    found = pairs.selectExpr("seq", "other", f"other > {sequence.before_look_back_sql('seq')}")
    covered = {(row[0], row[1]) for row in found.collect() if row[2]}
    expected = {
        (seq, other)
        for seq in places
        for other in places
        if len(seq) == len(other) and other > sequence.before_look_back(seq)
    }
    assert covered == expected


@pytest.mark.parametrize(
    ("system", "look_back", "places"),
    [
        ("change_feed", 0, EDGES),
        ("openedge", 100, DIGITS),
        ("soliddb", 0, ["0" * 40, "F" * 56]),
        ("qlik_change_table", "15 minutes", TIMES),
    ],
)
def test_a_change_seq_of_staging_is_a_position_unless_it_is_null(
    spark: SparkSession, system: str, look_back: int | str, places: list[str]
) -> None:
    sequence = positions({"system": system, "look_back": look_back})
    frame = local_rows(spark, [(place,) for place in [*places, None]], "change_seq string")
    found = frame.filter(is_position(sequence)).collect()
    assert [row[0] for row in found] == places


@pytest.mark.parametrize("width", ChangeFeedSequence.widths)
def test_a_feed_that_begins_at_0_is_not_read_again(spark: SparkSession, width: int) -> None:
    settings: SourceSettings = {"system": "change_feed", "look_back": 0, "arrival_look_back": 1}
    columns = "change_seq string, change_oper string, load_id string, arrival string"
    places = [f"{number:0{width}X}" for number in range(4)]
    rows = [(place, "I", None, None) for place in places]
    staged = local_rows(spark, [*rows, (None, "I", None, None)], columns)
    log = local_rows(spark, rows[:3], columns)
    done = Progress(change_seq=places[2])
    reading = read(
        run_context(settings=settings),
        positions(settings),
        staged,
        log,
        done,
        None,
        None,
        lambda floor: None,
    )
    assert [row[0] for row in reading.changes.collect()] == [*places[2:], None]
    assert reading.recorded is not None
    assert [row[0] for row in reading.recorded.collect()] == [places[2]]


def test_the_look_back_in_sql_follows_no_clock_that_is_ahead(spark: SparkSession) -> None:
    sequence = QlikChangeSequence("15 minutes")
    now = datetime.now(timezone.utc)
    ahead = sequence.of_time(now + timedelta(hours=23))
    text = f"'{ahead}'"
    ((floor,),) = spark.sql(f"select {sequence.before_look_back_sql(text)}").collect()
    assert sequence.of_time(now - timedelta(minutes=16)) < floor < sequence.of_time(now)
