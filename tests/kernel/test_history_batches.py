"""Histories of small logs that come in batches (R11), with versions computed by hand."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.history.table import HistoryTable
from tests.history_batches import BatchedHistory
from tests.log_lines import COLUMNS, MIDNIGHT, SCHEMA, brief, change
from tests.log_reader import read_log
from tests.oracle.history import TableOptions, build_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def build(
    spark: SparkSession,
    batches: list[str],
    base: Any = None,
    beginning_of_time: str = "1900-01-01 00:00:00",
) -> BatchedHistory:
    """The history, and that of the reference implementation is the same."""
    table = HistoryTable(
        tuple(COLUMNS),
        ("id",),
        ("name", "city"),
        base=base,
        beginning_of_time=beginning_of_time,
        name="people",
    )
    history = BatchedHistory(spark, table, f"{SCHEMA}, recorded_at timestamp")
    for number, lines in enumerate(batches):
        recorded_at = MIDNIGHT + timedelta(hours=number)
        history.apply([(*change(line), recorded_at) for line in lines.splitlines()])
    options = TableOptions(
        table.key,
        table.columns,
        table.tracked,
        base_kind=base,
        beginning_of_time=datetime.fromisoformat(beginning_of_time),
    )
    expected = [version.as_row() for version in build_history(read_log(history.log), options)]
    assert texts(history) == [brief(row) for row in expected]
    assert times(history.rows) == times(expected)
    return history


def times(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The intervals in time."""
    ordered = sorted(rows, key=lambda row: (row["id"], row["valid_from_seq"]))
    return [(row["id"], row["valid_from"], row["valid_to"]) for row in ordered]


def texts(history: BatchedHistory) -> list[str]:
    rows = sorted(history.rows, key=lambda row: (row["id"], row["valid_from_seq"]))
    return [brief(row) for row in rows]


@pytest.mark.parametrize(
    ("late", "expected"),
    [
        ("15 U 1 Ann Rome", ["1 Ann Rome [10, 20) I U", "1 Ann Oslo [20, ) U "]),
        (
            "15 U 1 Eva Rome",
            ["1 Ann ? [10, 15) I U", "1 Eva Rome [15, 20) U U", "1 Ann Oslo [20, ) U "],
        ),
    ],
)
def test_a_value_that_a_later_change_has_filled_in_is_not_taken_for_an_earlier_time(
    spark: SparkSession, late: str, expected: list[str]
) -> None:
    history = build(spark, ["10 I 1 Ann ?", "20 U 1 Ann Oslo", late])
    assert texts(history) == expected
    assert "1 of 1 keys from the beginning" in history.plans[-1]


@pytest.mark.parametrize("base", [None, "frozen"])
def test_a_key_is_replayed_from_a_version_that_knew_all_of_its_values(
    spark: SparkSession, base: str | None
) -> None:
    """The change at 20 writes nothing, and so could not fill anything in."""
    first = "05 L at 5\n05 L 1 Ann Rome at 5" if base else "05 I 1 Ann Rome"
    history = build(spark, [first, "20 U 1 Ann Rome", "15 U 1 Eva Rome"], base=base)
    assert len(history.rows) == 3
    assert "read from change_seq 15 on" in history.plans[-1]


@pytest.mark.parametrize(
    ("base", "change", "expected"),
    [
        ("frozen", "60 I 1 Ann Rome", ["1 Ann Rome [10, 50) I R", "1 Ann Rome [60, ) I "]),
        (
            "live",
            "60 U 1 Ann Bari <- 1 Ann Oslo",
            ["1 Ann Rome [10, 50) I U", "1 Ann Oslo [50, 60) L U", "1 Ann Bari [60, ) U "],
        ),
    ],
)
def test_a_change_contradicts_a_load_that_a_version_outlived(
    spark: SparkSession, base: str, change: str, expected: list[str]
) -> None:
    load = "50 L at 50\n50 L 1 Ann Rome at 50"
    history = build(spark, ["10 I 1 Ann Rome", load, change], base=base)
    assert texts(history) == expected


def test_a_load_before_a_version_is_not_contradicted(spark: SparkSession) -> None:
    batches = ["05 L at 5\n10 I 1 Ann Rome", "20 I 1 Ann Rome\n30 I 1 Ann Oslo"]
    history = build(spark, batches, base="frozen")
    assert texts(history) == ["1 Ann Rome [10, 30) I U", "1 Ann Oslo [30, ) I "]
    assert history.plans[-1].startswith("incremental")


def test_of_changes_at_one_change_seq_the_insert_is_the_first(spark: SparkSession) -> None:
    """So it shows that a frozen base was ahead of the load (R1, R8)."""
    load = "00 L at 0\n00 L 7 Ann Rome at 0"
    batch = "20 U 7 Ann Oslo <- 7 Ann Rome\n20 I 7 Ann Rome"
    history = build(spark, [load, batch], base="frozen")
    assert texts(history) == ["7 Ann Oslo [20, ) I "]


@pytest.mark.parametrize("cuts", [1, 3])
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            ["10 I 1 Ann Rome", "20 D 1", "30 I 1 Bea ?", "40 T city=Rome"],
            ["1 Ann Rome [10, 20) I D", "1 Bea ? [30, ) I "],
            id="of a row that is gone",
        ),
        pytest.param(
            ["10 I 1 Ann Rome", "20 U 2 Ann ? <- 1 Ann Rome", "40 T city=Rome"],
            ["1 Ann Rome [10, 20) I K", "2 Ann Rome [20, 40) K T"],
            id="that a before image knows",
        ),
    ],
)
def test_a_scope_is_compared_with_a_value_of_the_row(
    spark: SparkSession, lines: list[str], expected: list[str], cuts: int
) -> None:
    batches = ["\n".join(lines[:cuts]), "\n".join(lines[cuts:])]
    history = build(spark, [batch for batch in batches if batch])
    assert texts(history) == expected


FIRST_LOAD = "10 L at 10\n10 L 1 Ann Rome at 10\n10 L 2 Bob Oslo at 10"


def test_a_load_without_a_base_table_is_compared_with_the_open_versions(
    spark: SparkSession,
) -> None:
    load = "20 L at 20\n20 L 1 Ann Bari at 20\n20 L 3 Cid Rome at 20"
    change_after = "30 U 3 Cid Oslo at 30"
    history = build(spark, [FIRST_LOAD, "15 D 2 at 15", f"{load}\n{change_after}"])
    assert texts(history) == [
        "1 Ann Rome [10, 20) L U",
        "1 Ann Bari [20, ) L ",
        "2 Bob Oslo [10, 15) L D",
        "3 Cid Rome [20, 30) L U",
        "3 Cid Oslo [30, ) U ",
    ]
    assert history.plans[-1].startswith("incremental")


@pytest.mark.parametrize("load", ["05 L at 20\n05 L 1 Eva Rome at 20", "20 L at 5"])
def test_a_load_that_is_late_or_whose_clock_ran_back_is_compared_with_the_whole_log(
    spark: SparkSession, load: str
) -> None:
    history = build(spark, [FIRST_LOAD, load])
    assert history.plans[-1].startswith("rebuild")


def test_a_load_of_unknown_time_has_the_clock_of_the_beginning_of_time(
    spark: SparkSession,
) -> None:
    """What comes later, with an earlier clock, begins where the version before ended (R10)."""
    later = "2026-03-02 01:00:00"
    batches = ["05 L at ?\n05 L 1 Ann Rome at ?", "10 D 1 at 10", "20 I 1 Ann Oslo at 20"]
    history = build(spark, batches, beginning_of_time=later)
    assert {str(row["valid_from"])[:19] for row in history.rows} == {later}
