"""Marts of a handful of changes that come in batches, with expected rows computed by hand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.functional.dbt_project import DbtProject
from tests.functional.small_logs import FIRST_BATCH_AT, SmallLog, SmallLogs
from tests.log_lines import MIDNIGHT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {
    # the load is ahead of what the log had when it was recorded; its time does not count
    "ahead": SmallLog(
        [
            "400 I 1 Ann Rome",
            """
            500 L at 1
            500 L 1 Ann Rome at 1
            500 L 7 Bea Oslo at 1
            500 L 8 Ida Bari at 1
            500 L 9 Eva Bari at 1
            """,
            """
            450 I 7 Bea Oslo
            450 I 8 Ida Pisa
            500 U 9 Eva Rome
            """,
        ],
        {"base": {"kind": "frozen"}},
    ),
    # a load right behind the log, and in the base what the next change inserts
    "reloaded": SmallLog(
        [
            """
            100 I 1 Ann Rome
            101 L at 1
            101 L 1 Ann Rome at 1
            101 L 5 Bea Oslo at 1
            """,
            "101 I 5 Bea Oslo",
        ],
        {"base": {"kind": "live"}},
    ),
    "late_load": SmallLog(
        [
            "05 I 2 Cid Bari",
            """
            10 L at 20
            10 L 1 Ann Rome at 20
            10 L 2 Cid Bari at 20
            20 D 1 at 15
            """,
            "30 I 1 Bea Rome at 17",
        ],
    ),
    "emptied": SmallLog(
        [
            """
            10 I 1 Ann Rome
            20 L at 30
            """,
            "30 I 1 Ann Rome at 25",
        ],
    ),
    # no column beside the key: the tags of an order, for example
    "links": SmallLog(
        [
            """
            00 L
            00 L 1 red
            00 L 2 red
            10 I 2 tan
            20 D 1 red
            """,
            """
            30 I 1 red
            40 D 2 red
            """,
            """
            35 D 2 tan
            50 I 3 red
            """,
        ],
        {"base": {"kind": "frozen"}, "before_images": False},
        columns=("id", "name"),
        key=("id", "name"),
        marts=("history", "current", "field_changes"),
    ),
    # at 3 the late delete takes the insert back
    "kept": SmallLog(
        [
            """
            1 I 1 Ann Rome
            2 D 1 Ann Rome
            3 I 1 Bea Rome
            3 I 2 Cid Bari
            """,
            "3 D 1 Bea Rome",
        ],
        {"keep_deleted": True},
        marts=("history", "current"),
    ),
    # the same, but a key change has closed the version that the insert opened
    "kept_moved": SmallLog(
        [
            """
            1 I 1 Ann Rome
            2 D 1 Ann Rome
            3 I 1 Bea Rome
            4 U 5 Bea Rome <- 1 Bea Rome
            """,
            "3 D 1 Bea Rome",
        ],
        {"keep_deleted": True},
        marts=("history", "current"),
    ),
    # no version begins or ends in the second batch
    "unchanged": SmallLog(
        ["1 I 1 Ann Rome", "2 U 1 Ann Rome"],
        {"before_images": False},
        marts=("history", "current", "field_changes"),
    ),
    # the insert had taken the base row back; the update says that the row was there before
    "frozen_inserted": SmallLog(
        [
            """
            00 L
            00 L 1 Ann Rome
            00 L 2 Bea Oslo
            20 I 2 Bea Oslo
            """,
            "15 U 2 Cid Oslo <- 2 Bea Oslo",
        ],
        {"base": {"kind": "frozen"}},
    ),
    "frozen_ignoring": SmallLog(
        [
            """
            00 L
            00 L 1 Ann Rome
            10 U 1 Eva Rome <- 1 Ann Rome
            20 U 1 Ida Rome <- 1 Eva Rome
            """,
            "15 U 1 Eva Oslo <- 1 Eva Rome",
        ],
        {"base": {"kind": "frozen"}, "ignore": ["name"]},
    ),
    # read after 20
    "live_ignoring": SmallLog(
        [
            """
            00 L
            00 L 1 Ida Rome
            10 U 1 Eva Rome <- 1 Ann Rome
            20 U 1 Ida Rome <- 1 Eva Rome
            """,
            "15 U 1 Eva Oslo <- 1 Eva Rome",
        ],
        {"base": {"kind": "live"}, "ignore": ["name"]},
    ),
    "frozen_swapped": SmallLog(
        [
            """
            00 L
            00 L 1 Ann Rome
            00 L 2 Bea Oslo
            10 U 2 Ann Rome <- 1 Ann Rome in swap
            """,
            "11 U 1 Bea Oslo <- 2 Bea Oslo in swap",
        ],
        {"base": {"kind": "frozen"}},
    ),
    "sparse": SmallLog(
        [
            """
            10 U 1 Ann ?
            10 U 2 Cid ?
            """,
            """
            20 U 1 Bea Oslo
            20 U 2 Dan Oslo
            """,
            """
            15 U 1 Eva ?
            30 U 2 Dan Rome
            """,
        ],
        {"before_images": False},
        marts=("history", "field_changes"),
    ),
}


@pytest.fixture(scope="module")
def logs(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table_format: str,
) -> SmallLogs:
    """The marts after all batches."""
    dbt = make_dbt_project(tmp_path_factory.mktemp("small_logs"), schema="small_logs")
    logs = SmallLogs(dbt, spark, table_format, TABLES)
    logs.write_project()
    for batch in range(1, 1 + max(len(table.batches) for table in TABLES.values())):
        logs.run(batch)
    return logs


def test_r11_changes_before_a_load_that_is_ahead_of_the_log(logs: SmallLogs) -> None:
    assert logs.versions("ahead") == [
        "1 Ann Rome [400, ) I ",
        "7 Bea Oslo [450, ) I ",
        "8 Ida Pisa [450, 500) I U",
        "8 Ida Bari [500, ) L ",
        "9 Eva Rome [500, ) L ",
    ]


def test_r11_a_change_at_the_position_of_a_load(logs: SmallLogs) -> None:
    assert logs.versions("reloaded") == ["1 Ann Rome [100, ) I ", "5 Bea Oslo [101, ) I "]


def test_r11_a_late_update_before_the_insert_of_a_key_of_a_frozen_base(logs: SmallLogs) -> None:
    assert logs.versions("frozen_inserted") == [
        "1 Ann Rome [00, ) L ",
        "2 Bea Oslo [00, 15) L U",
        "2 Cid Oslo [15, 20) U U",
        "2 Bea Oslo [20, ) I ",
    ]


@pytest.mark.parametrize("table", ["frozen_ignoring", "live_ignoring"])
def test_r11_a_late_update_of_a_loaded_row_with_an_ignored_column(
    logs: SmallLogs, table: str
) -> None:
    assert logs.versions(table) == [
        "1 Eva Rome [00, 15) L U",
        "1 Eva Oslo [15, 20) U U",
        "1 Ida Rome [20, ) U ",
    ]


def test_r11_rows_of_a_frozen_base_swap_keys_in_two_batches(logs: SmallLogs) -> None:
    assert logs.versions("frozen_swapped") == [
        "1 Ann Rome [00, 10) L K",
        "1 Bea Oslo [11, ) K ",
        "2 Bea Oslo [00, 10) L K",
        "2 Ann Rome [10, ) K ",
    ]


def test_r10_no_time_before_that_of_a_load(logs: SmallLogs) -> None:
    assert times(logs.history("late_load")) == [
        (1, "10", 20, 20),
        (1, "30", 20, None),
        (2, "05", 5, None),
    ]
    assert times(logs.history("emptied")) == [(1, "10", 10, 30), (1, "30", 30, None)]


def test_r11_a_deleted_row_that_history_took_back_is_not_kept(logs: SmallLogs) -> None:
    assert logs.versions("kept") == ["1 Ann Rome [1, 2) I D", "2 Cid Bari [3, ) I "]
    found = {row["id"]: row for row in logs.rows("kept_current")}
    assert [
        (row["name"], row["valid_from_seq"], row["is_deleted"]) for _, row in sorted(found.items())
    ] == [("Ann", "1", True), ("Cid", "3", False)]


def test_a_deleted_row_is_kept_whose_later_version_history_took_back(logs: SmallLogs) -> None:
    assert logs.versions("kept_moved") == ["1 Ann Rome [1, 2) I D", "5 Bea Rome [4, ) K "]
    found = {row["id"]: (row["name"], row["is_deleted"]) for row in logs.rows("kept_moved_current")}
    assert found == {1: ("Ann", True), 5: ("Bea", False)}


def test_marts_record_a_batch_in_which_no_version_began(logs: SmallLogs) -> None:
    rows = logs.rows("afterimage_progress")
    newest = {
        mart: max(row["recorded_at"] for row in rows if row["model"] == f"unchanged_{mart}")
        for mart in ("history", "current", "field_changes")
    }
    assert set(newest.values()) == {FIRST_BATCH_AT + timedelta(hours=2)}


def test_r9_a_field_that_was_not_known_has_not_changed(logs: SmallLogs) -> None:
    found = [
        tuple(row[name] for name in ("id", "change_seq", "column_name", "old_value", "new_value"))
        for row in logs.rows("sparse_field_changes")
    ]
    assert sorted(found) == [
        (1, "15", "name", "Ann", "Eva"),
        (1, "20", "name", "Eva", "Bea"),
        (2, "20", "name", "Cid", "Dan"),
        (2, "30", "city", "Oslo", "Rome"),
    ]


def test_a_table_whose_columns_are_all_key(logs: SmallLogs) -> None:
    found = [
        tuple(row[name] for name in ("id", "name", "valid_from_seq", "valid_to_seq", "opened_by"))
        for row in logs.history("links")
    ]
    assert sorted(found) == [
        (1, "red", "00", "20", "L"),
        (1, "red", "30", None, "I"),
        (2, "red", "00", "40", "L"),
        (2, "tan", "10", "35", "I"),
        (3, "red", "50", None, "I"),
    ]
    current = {(row["id"], row["name"]) for row in logs.rows("links_current")}
    assert current == {(1, "red"), (3, "red")}
    assert logs.rows("links_field_changes") == []


def test_marts_of_a_history_that_is_rebuilt_are_rebuilt(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path: Path,
    table_format: str,
) -> None:
    """No batch is new, but times that are not known begin elsewhere."""
    lines = """
        00 L at ?
        00 L 1 Ann Rome at ?
        10 U 1 Eva Rome at ?
    """
    marts = ("history", "current", "field_changes")
    tables = {"loaded": SmallLog([lines], {"before_images": False}, marts=marts)}
    logs = SmallLogs(make_dbt_project(tmp_path, schema="rebuilt"), spark, table_format, tables)
    logs.write_project()
    logs.run(1)
    begins = datetime(2000, 1, 1)
    arguments = ("run", "--full-refresh", "--select", "loaded_history")
    logs.dbt(*arguments, beginning_of_time=str(begins))
    logs.dbt("run", "--exclude", "loaded_history", beginning_of_time=str(begins))
    assert [(row["name"], row["valid_from"]) for row in logs.rows("loaded_current")] == [
        ("Eva", begins)
    ]
    assert [row["changed_at"] for row in logs.rows("loaded_field_changes")] == [begins]


def times(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Key, change_seq, and the seconds of the interval in time."""
    return [
        (
            row["id"],
            row["valid_from_seq"],
            (row["valid_from"] - MIDNIGHT).total_seconds(),
            row["valid_to"] and (row["valid_to"] - MIDNIGHT).total_seconds(),
        )
        for row in rows
    ]
