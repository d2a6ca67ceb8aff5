"""Each rule of history on a handful of changes, with versions computed by hand.

Logs and versions are texts (log_lines.py). Late changes and batches: test_r11_... and test_r12_...
in properties/test_batches.py; changed sources: test_r13_... in test_source_changes.py.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from dbt_afterimage.storage.local_relation import local_rows
from tests.history_versions import versions_of
from tests.log_lines import COLUMNS, MIDNIGHT, SCHEMA, brief, change
from tests.log_reader import read_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def versions(spark: SparkSession, lines: str, **settings: Any) -> list[str]:
    return [brief(row) for row in history(spark, lines, **settings)]


def history(spark: SparkSession, lines: str, **settings: Any) -> list[dict[str, Any]]:
    rows = [change(line.strip()) for line in lines.strip().splitlines()]
    is_partial = any(row[7] or row[8] for row in rows) or settings.get("base") is not None
    given = {
        "forward_filled": ("name", "city") if is_partial else (),
        "has_boundary_events": True,
        "truncate_scopes": ("city",),
        "has_key_changes": True,
        "has_incomplete_key_changes": is_partial,
        **settings,
    }
    found = read_rows(versions_of(local_rows(spark, rows, SCHEMA), COLUMNS, ["id"], **given))
    return sorted(found, key=lambda row: (row["id"], row["valid_from_seq"]))


def test_r1_at_one_change_seq_the_last_operation_counts(spark: SparkSession) -> None:
    log = """
        10 I 1 Ann Rome
        20 D 1
        20 U 1 Ann Oslo
        10 I 2 Bea Rome
        10 U 2 Bea Bari
    """
    assert versions(spark, log) == [
        "1 Ann Rome [10, 20) I D",
        "2 Bea Bari [10, ) I ",
    ]


def test_r2_the_first_upsert_opens_a_version(spark: SparkSession) -> None:
    log = """
        10 U 1 Ann Rome
        20 I 1 Ann Oslo
    """
    assert versions(spark, log) == ["1 Ann Rome [10, 20) U U", "1 Ann Oslo [20, ) I "]


def test_r3_a_version_ends_where_a_tracked_column_differs(spark: SparkSession) -> None:
    log = """
        10 I 1 Ann -
        20 U 1 Ann Rome
        30 U 1 Ann -
        40 U 1 Bea -
    """
    assert versions(spark, log, tracked=["city"]) == [
        "1 Ann - [10, 20) I U",
        "1 Ann Rome [20, 30) U U",
        # the name is not tracked: its last value is stored
        "1 Bea - [30, ) U ",
    ]


def test_r4_an_update_without_a_tracked_difference_opens_nothing(spark: SparkSession) -> None:
    log = """
        10 I 1 Ann Rome
        20 U 1 Ann Rome
        30 U 1 Eva Rome
        40 U 1 Eva Oslo
    """
    assert versions(spark, log, tracked=["city"]) == [
        "1 Eva Rome [10, 40) I U",
        "1 Eva Oslo [40, ) U ",
    ]


def test_r5_a_delete_closes_and_an_older_upsert_still_shows(spark: SparkSession) -> None:
    log = """
        10 D 1
        20 I 1 Ann Rome
        30 D 1
        40 D 1
        50 I 1 Ann Rome
    """
    assert versions(spark, log) == ["1 Ann Rome [20, 30) I D", "1 Ann Rome [50, ) I "]


def test_r6_a_truncate_closes_what_is_open(spark: SparkSession) -> None:
    log = """
        10 I 1 Ann Rome
        10 I 2 Bea Oslo
        20 D 2
        30 T
        40 I 2 Bea Oslo
    """
    assert versions(spark, log) == [
        "1 Ann Rome [10, 30) I T",
        "2 Bea Oslo [10, 20) I D",
        "2 Bea Oslo [40, ) I ",
    ]


def test_r6_a_truncate_with_a_scope_closes_only_rows_in_it(spark: SparkSession) -> None:
    log = """
        10 I 1 Ann Rome
        10 I 2 Bea Oslo
        20 U 2 Bea Rome
        30 T city=Rome
        40 T city=Oslo
        10 I 3 Eva Oslo
    """
    assert versions(spark, log) == [
        "1 Ann Rome [10, 30) I T",
        "2 Bea Oslo [10, 20) I U",
        "2 Bea Rome [20, 30) U T",
        "3 Eva Oslo [10, 40) I T",
    ]


@pytest.mark.parametrize("scopes", [(), ("city",)])
def test_r6_many_truncates_each_close_what_came_since_the_one_before(
    spark: SparkSession, scopes: tuple[str, ...]
) -> None:
    nights = range(1000, 1400, 10)
    log = [f"{night} T" for night in nights]
    # a row that each load brings again, one that comes once, one that comes every tenth time
    log += [f"{night + 1} I 1 Ann Rome" for night in nights]
    log += [f"{night + 2} I {night} Bea Oslo" for night in nights]
    log += [f"{night + 3} I 2 Eva Bari" for night in nights if night % 100 == 0]
    ended = [f"{night + 10}) I T" if night < 1390 else ") I " for night in nights]
    expected = [f"1 Ann Rome [{night + 1}, {end}" for night, end in zip(nights, ended, strict=True)]
    expected += [
        f"2 Eva Bari [{night + 3}, {end}"
        for night, end in zip(nights, ended, strict=True)
        if night % 100 == 0
    ]
    expected += [
        f"{night} Bea Oslo [{night + 2}, {end}" for night, end in zip(nights, ended, strict=True)
    ]
    assert versions(spark, "\n".join(log), truncate_scopes=scopes) == expected


def test_r7_a_key_change_closes_the_old_key_and_what_it_displaces(spark: SparkSession) -> None:
    log = """
        10 I 1 Ann Rome
        10 I 2 Ann Rome
        20 U 2 Ann Rome <- 1 Ann Rome
        30 U 3 Ann Rome <- 2 Ann Rome
    """
    assert versions(spark, log) == [
        "1 Ann Rome [10, 20) I K",
        "2 Ann Rome [10, 20) I K",
        "2 Ann Rome [20, 30) K K",
        "3 Ann Rome [30, ) K ",
    ]


@pytest.mark.parametrize("transaction", ["at 20 in swap", "at 20"])
def test_r7_two_keys_swap_in_one_transaction(spark: SparkSession, transaction: str) -> None:
    log = f"""
        10 I 1 Ann Rome
        10 I 2 Bea Oslo
        20 U 2 Ann Rome <- 1 Ann Rome {transaction}
        21 U 1 Bea Oslo <- 2 Bea Oslo {transaction}
    """
    assert versions(spark, log) == [
        "1 Ann Rome [10, 20) I K",
        "1 Bea Oslo [21, ) K ",
        "2 Bea Oslo [10, 20) I K",
        "2 Ann Rome [20, ) K ",
    ]


def test_r7_a_reinserted_row_is_displaced_by_an_equal_row(spark: SparkSession) -> None:
    log = """
        10 I 1 Ann Rome
        10 I 2 Ann Pisa
        20 D 1
        30 I 1 Ann Oslo
        35 U 1 Ann Pisa
        40 U 1 Ann Pisa <- 2 Ann Pisa in swap
        41 U 2 Ann Pisa <- 1 Ann Pisa in swap
    """
    assert versions(spark, log) == [
        "1 Ann Rome [10, 20) I D",
        "1 Ann Oslo [30, 35) I U",
        "1 Ann Pisa [35, 40) U K",
        "1 Ann Pisa [40, ) K ",
        "2 Ann Pisa [10, 40) I K",
        "2 Ann Pisa [41, ) K ",
    ]


def test_r7_add_one_to_every_key(spark: SparkSession) -> None:
    log = """
        10 I 1 Ann Rome
        10 I 2 Bea Oslo
        10 I 3 Eva Bari
        20 U 2 Ann Rome <- 1 Ann Rome in shift
        21 U 3 Bea Oslo <- 2 Bea Oslo in shift
        22 U 4 Eva Bari <- 3 Eva Bari in shift
        30 T
    """
    assert versions(spark, log) == [
        "1 Ann Rome [10, 20) I K",
        "2 Bea Oslo [10, 20) I K",
        "2 Ann Rome [20, 30) K T",
        "3 Eva Bari [10, 21) I K",
        "3 Bea Oslo [21, 30) K T",
        "4 Eva Bari [22, 30) K T",
    ]


def test_r7_rows_that_were_never_named_before_swap_keys(spark: SparkSession) -> None:
    log = """
        5 U 2 ash 3 <- 1 ash 3 in t1
        6 U 1 cedar 5 <- 2 cedar 5 in t1
    """
    assert versions(spark, log) == ["1 cedar 5 [6, ) K ", "2 ash 3 [5, ) K "]


def test_r7_rows_that_were_never_named_before_shift_through_several_keys(
    spark: SparkSession,
) -> None:
    log = """
        5 U 2 ash 3 <- 1 ash 3 in t1
        6 U 3 cedar 5 <- 2 cedar 5 in t1
        7 U 4 elm 7 <- 3 elm 7 in t1
        8 U 2 oak 9 in t2
    """
    assert versions(spark, log) == [
        "2 ash 3 [5, 8) K U",
        "2 oak 9 [8, ) U ",
        "3 cedar 5 [6, ) K ",
        "4 elm 7 [7, ) K ",
    ]


def test_r7_the_row_that_came_to_an_empty_key_moves_on(spark: SparkSession) -> None:
    log = """
        5 U 2 ash 3 <- 1 ash 3 in t1
        6 U 2 birch 3 in t1
        7 U 3 birch 3 <- 2 birch 3 in t1
        8 U 5 ash 3 <- 4 ash 3 in t2
        9 U 6 cedar 5 <- 5 cedar 5 in t3
    """
    assert versions(spark, log) == [
        "2 ash 3 [5, 6) K U",
        "2 birch 3 [6, 7) U K",
        "3 birch 3 [7, ) K ",
        # another transaction: whatever left the key, it is empty
        "5 ash 3 [8, 9) K K",
        "6 cedar 5 [9, ) K ",
    ]


def test_r8_a_load_is_compared_with_what_is_open(spark: SparkSession) -> None:
    log = """
        10 I 1 Ann Rome
        10 I 2 Bea Oslo
        10 I 3 Eva Bari
        20 L
        20 L 1 Ann Rome
        20 L 2 Bea Pisa
        20 L 4 Ida Pisa
        30 L
    """
    assert versions(spark, log) == [
        "1 Ann Rome [10, 30) I R",
        "2 Bea Oslo [10, 20) I U",
        "2 Bea Pisa [20, 30) L R",
        "3 Eva Bari [10, 20) I R",
        "4 Ida Pisa [20, 30) L R",
    ]


def test_r8_a_frozen_base_holds_rows_that_were_inserted_later(spark: SparkSession) -> None:
    log = """
        00 L
        00 L 1 Ann Rome
        00 L 2 Bea Oslo
        10 I 2 Bea Oslo
        20 U 1 Ann Oslo <- 1 Ann Rome
    """
    assert versions(spark, log, base="frozen") == [
        "1 Ann Rome [00, 20) L U",
        "1 Ann Oslo [20, ) U ",
        "2 Bea Oslo [10, ) I ",
    ]


def test_r8_a_live_base_is_taken_back_to_the_load(spark: SparkSession) -> None:
    # read after 30: 1 is in Oslo already, 2 came later, 3 was deleted, 4 was 5
    log = """
        00 L
        00 L 1 Ann Oslo
        00 L 2 Bea Oslo
        00 L 4 Ida Pisa
        00 L 6 Lea Rome
        10 I 2 Bea Oslo
        20 U 1 Ann Oslo <- 1 Ann Rome
        25 D 3 Eva Bari <- 3 Eva Bari
        30 U 4 Ida Pisa <- 5 Ida Pisa
    """
    assert versions(spark, log, base="live") == [
        "1 Ann Rome [00, 20) L U",
        "1 Ann Oslo [20, ) U ",
        "2 Bea Oslo [10, ) I ",
        "3 Eva Bari [00, 25) L D",
        "4 Ida Pisa [30, ) K ",
        "5 Ida Pisa [00, 30) L K",
        "6 Lea Rome [00, ) L ",
    ]


def test_r8_a_later_transaction_shows_that_a_live_base_held_an_equal_row(
    spark: SparkSession,
) -> None:
    # the rows that were 2, 4 and 1 are 3, 5 and 6 when the base is read; more left 2 than came
    log = """
        00 L
        00 L 3 Ann Rome
        00 L 5 Ann Rome
        00 L 6 Ann Rome
        10 U 2 Ann Rome <- 1 Ann Rome in first
        11 U 3 Ann Rome <- 2 Ann Rome in first
        20 U 2 Ann Rome <- 4 Ann Rome in second
        21 U 6 Ann Rome <- 2 Ann Rome in second
        22 U 5 Ann Rome <- 2 Ann Rome in second
    """
    assert versions(spark, log, base="live") == [
        "1 Ann Rome [00, 10) L K",
        "2 Ann Rome [00, 10) L K",
        "2 Ann Rome [10, 20) K K",
        "2 Ann Rome [20, 22) K K",
        "3 Ann Rome [11, ) K ",
        "4 Ann Rome [00, 20) L K",
        "5 Ann Rome [22, ) K ",
        "6 Ann Rome [21, ) K ",
    ]


def test_r8_a_row_that_a_live_base_lost_was_there_until_its_delete(spark: SparkSession) -> None:
    # read after 30: 1 and 3 are gone, and their deletes do not say what they were
    log = """
        00 L
        00 L 2 Bea Oslo
        10 D 1
        15 U 3 Eva Rome
        20 L
        20 L 2 Bea Oslo
        25 D 2
        30 D 3
    """
    assert versions(spark, log, base="live") == [
        "1 ? ? [00, 10) L D",
        "2 Bea Oslo [00, 25) L D",
        "3 Eva Rome [00, 30) L D",
    ]


def test_r9_what_is_not_known_stays_as_it_was_but_not_over_a_gap(spark: SparkSession) -> None:
    log = """
        10 I 1 Ann Rome
        20 U 1 Bea ?
        30 D 1
        40 U 1 Eva ?
        50 U 1 Eva Bari
    """
    assert versions(spark, log) == [
        "1 Ann Rome [10, 20) I U",
        "1 Bea Rome [20, 30) U D",
        # the city was not known at 40; at 50 it is, and fills the version
        "1 Eva Bari [40, ) U ",
    ]


def test_r9_unknown_values_follow_the_row_to_its_new_key(spark: SparkSession) -> None:
    log = """
        10 I 1 Ann Rome
        20 U 2 Ann ? <- 1 Ann ?
        30 U 3 Ann ? <- 2 Ann ?
        40 U 4 Eva ? <- 3 Ann Bari
        60 U 6 Ida ? <- 5 Ida ?
    """
    assert versions(spark, log) == [
        "1 Ann Rome [10, 20) I K",
        "2 Ann Rome [20, 30) K K",
        "3 Ann Rome [30, 40) K K",
        # the before image comes before the old key's version
        "4 Eva Bari [40, ) K ",
        "6 Ida ? [60, ) K ",
    ]


def test_r9_rows_that_swap_keys_take_their_own_values_along(spark: SparkSession) -> None:
    log = """
        10 I 1 Ann Rome
        10 I 2 Bea Oslo
        20 U 2 Ann ? <- 1 Ann ? in swap
        21 U 1 Bea ? <- 2 Bea ? in swap
    """
    assert versions(spark, log) == [
        "1 Ann Rome [10, 20) I K",
        "1 Bea Oslo [21, ) K ",
        "2 Bea Oslo [10, 20) I K",
        "2 Ann Rome [20, ) K ",
    ]


def test_r10_boundaries_never_run_back_though_clocks_do(spark: SparkSession) -> None:
    log = """
        10 I 1 Ann Rome at 50
        20 U 1 Ann Oslo at 40
        30 U 1 Ann Bari at 60
        40 D 1 at 45
    """
    times = [
        (row["valid_from_seq"], seconds(row["valid_from"]), seconds(row["valid_to"]))
        for row in history(spark, log)
    ]
    assert times == [("10", 50, 50), ("20", 50, 60), ("30", 60, 60)]


def seconds(moment: datetime) -> float:
    return (moment - MIDNIGHT).total_seconds()
