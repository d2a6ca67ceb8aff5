"""The oracle's own tests: small streams whose history can be written down by hand.

Rules R1 to R10 are listed at the top of tests/oracle/history.py.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal
from zlib import crc32

import pytest

from tests.oracle.current import build_current, build_current_with_deleted
from tests.oracle.field_changes import FieldChange, build_field_changes
from tests.oracle.history import (
    LogRow,
    Row,
    TableOptions,
    Version,
    as_of,
    as_text,
    build_history,
)
from tests.oracle.pairing import Load, StagedRow, pair

COLUMNS = ["id", "name", "city"]
OPTIONS = TableOptions(key=["id"], columns=COLUMNS, tracked=COLUMNS)
START = datetime(2024, 3, 1, 12)
LONG_AGO = datetime(1900, 1, 1)


def clock(seq: str) -> datetime:
    """One second for each step of change_seq."""
    return START + timedelta(seconds=int(seq))


def person(values: tuple[Any, ...]) -> Row:
    return dict(zip(COLUMNS, values, strict=True))


def change(
    seq: str, oper: str, *values: Any, before: tuple[Any, ...] | None = None, **others: Any
) -> LogRow:
    """A change of (id, name, city), at `clock(seq)` unless `others` say when."""
    return LogRow(
        seq,
        oper,
        data=person(values) if values else None,
        before=None if before is None else person(before),
        **{"changed_at": clock(seq), **others},
    )


def load(seq: str, *rows: tuple[Any, ...], load_id: str = "initial", **others: Any) -> list[LogRow]:
    """A load with its marker row; its time is unknown unless `others` say when."""
    return [
        LogRow(seq, "L", load_id=load_id, load_rows=len(rows), **others),
        *(LogRow(seq, "L", data=person(row), load_id=load_id, **others) for row in rows),
    ]


def frozen_or_live(base_kind: Literal["frozen", "live"]) -> TableOptions:
    return replace(OPTIONS, base_kind=base_kind)


def brief(history: Iterable[Version]) -> list[str]:
    """Versions as text, `id name city [from, to) opened closed`, NULL as -, unknown as ?."""

    def shown(version: Version, column: str) -> str:
        if column in (version.unknown_columns or ()):
            return "?"
        value = version.data[column]
        return "-" if value is None else str(value)

    return [
        " ".join(shown(version, column) for column in COLUMNS)
        + f" [{version.valid_from_seq}, {version.valid_to_seq or ''})"
        + f" {version.opened_by} {version.closed_by or ''}".rstrip()
        for version in history
    ]


WORKED_EXAMPLE = [
    change("10", "I", 1, "Ann", "Rome"),
    change("20", "U", 1, "Ann", "Oslo", before=(1, "Ann", "Rome")),
    change("25", "U", 1, "Ann", "Oslo", before=(1, "Ann", "Oslo")),
    change("30", "U", 7, "Ann", "Oslo", before=(1, "Ann", "Oslo")),
    change("40", "D", 7, None, None, known_columns={"id"}),
    change("50", "I", 7, "Bea", "Rome"),
]
LATE_CHANGE = change("22", "U", 1, "Ann", "Bari")


# History --------------------------------------------------------------------------------------


def test_worked_example() -> None:
    history = build_history(WORKED_EXAMPLE, OPTIONS)
    assert brief(history) == [
        "1 Ann Rome [10, 20) I U",
        "1 Ann Oslo [20, 30) U K",
        "7 Ann Oslo [30, 40) K D",
        "7 Bea Rome [50, ) I",
    ]
    assert [version.changed_columns for version in history] == [None, ["city"], None, None]
    assert [version.is_current for version in history] == [False, False, False, True]


def test_worked_example_with_late_change() -> None:
    assert brief(build_history([*WORKED_EXAMPLE, LATE_CHANGE], OPTIONS)) == [
        "1 Ann Rome [10, 20) I U",
        "1 Ann Oslo [20, 22) U U",
        "1 Ann Bari [22, 25) U U",
        "1 Ann Oslo [25, 30) U K",
        "7 Ann Oslo [30, 40) K D",
        "7 Bea Rome [50, ) I",
    ]


def test_any_order_of_the_log_gives_the_same_history() -> None:
    log = [*load("00", (1, "Old", "Oslo"), (2, "Eve", "Bonn")), *WORKED_EXAMPLE, LATE_CHANGE]
    expected = build_history(log, OPTIONS)
    for seed in range(50):
        shuffled = random.Random(seed).sample(log, len(log))
        assert build_history(shuffled, OPTIONS) == expected


def test_row_of_the_history_has_all_columns() -> None:
    version = build_history(WORKED_EXAMPLE, OPTIONS)[1]
    assert version.as_row() == {
        "id": 1,
        "name": "Ann",
        "city": "Oslo",
        "valid_from": clock("20"),
        "valid_to": clock("30"),
        "valid_from_seq": "20",
        "valid_to_seq": "30",
        "is_current": False,
        "opened_by": "U",
        "closed_by": "K",
        "changed_columns": ["city"],
        "unknown_columns": None,
        "transaction_id": None,
        "closed_by_transaction_id": None,
    }


def test_r1_delete_wins_at_one_change_seq() -> None:
    log = [
        change("10", "I", 1, "Ann", "Rome"),
        change("20", "U", 1, "Ann", "Oslo"),
        change("20", "D", 1, "Ann", "Oslo"),
        change("30", "I", 2, "Bea", "Rome"),
        change("30", "D", 2, "Bea", "Rome"),
    ]
    assert brief(build_history(log, OPTIONS)) == ["1 Ann Rome [10, 20) I D"]


def test_r1_truncate_comes_first_at_one_change_seq() -> None:
    log = [
        change("10", "I", 1, "Ann", "Rome"),
        change("20", "I", 1, "Ann", "Oslo"),
        change("20", "T"),
    ]
    assert brief(build_history(log, OPTIONS)) == [
        "1 Ann Rome [10, 20) I T",
        "1 Ann Oslo [20, ) I",
    ]


def test_r1_update_corrects_insert_at_one_change_seq() -> None:
    log = [change("10", "I", 1, "Ann", "Rome"), change("10", "U", 1, "Ann", "Oslo")]
    assert brief(build_history(log, OPTIONS)) == ["1 Ann Oslo [10, ) I"]


def test_r1_update_takes_insert_back_at_one_change_seq() -> None:
    log = [
        change("10", "I", 1, "Ann", "Rome"),
        change("20", "I", 1, "Ann", "Oslo"),
        change("20", "U", 1, "Ann", "Rome"),
    ]
    assert brief(build_history(log, OPTIONS)) == ["1 Ann Rome [10, ) I"]


def test_r1_delete_after_key_change_at_one_change_seq() -> None:
    log = [
        change("10", "I", 1, "Ann", "Rome"),
        change("10", "I", 7, "Bea", "Rome"),
        change("20", "U", 7, "Ann", "Rome", before=(1, "Ann", "Rome")),
        change("20", "D", 7, "Ann", "Rome"),
    ]
    assert brief(build_history(log, OPTIONS)) == [
        "1 Ann Rome [10, 20) I K",
        "7 Bea Rome [10, 20) I D",
    ]


def test_r2_update_without_insert_opens() -> None:
    log = [change("10", "U", 1, "Ann", "Rome", before=(1, "Ann", "Oslo"), transaction_id="t1")]
    (version,) = build_history(log, OPTIONS)
    assert brief([version]) == ["1 Ann Rome [10, ) U"]
    assert (version.changed_columns, version.transaction_id) == (None, "t1")


def test_r3_comparison_is_null_safe() -> None:
    log = [
        change("10", "I", 1, None, "Rome"),
        change("20", "U", 1, None, "Rome"),
        change("30", "U", 1, "Ann", "Rome"),
        change("40", "U", 1, None, "Oslo"),
    ]
    history = build_history(log, OPTIONS)
    assert brief(history) == [
        "1 - Rome [10, 30) I U",
        "1 Ann Rome [30, 40) U U",
        "1 - Oslo [40, ) U",
    ]
    assert [version.changed_columns for version in history] == [None, ["name"], ["name", "city"]]


def test_r3_insert_on_open_version_is_an_upsert() -> None:
    log = [change("10", "I", 1, "Ann", "Rome"), change("20", "I", 1, "Ann", "Oslo")]
    assert brief(build_history(log, OPTIONS)) == [
        "1 Ann Rome [10, 20) I U",
        "1 Ann Oslo [20, ) I",
    ]


def test_r4_untracked_column_takes_the_last_value_of_the_interval() -> None:
    options = replace(OPTIONS, tracked=["name"])
    log = [
        change("10", "I", 1, "Ann", "Rome"),
        change("20", "U", 1, "Ann", "Oslo"),
        change("30", "U", 1, "Ann", "Bari", transaction_id="t3"),
        change("40", "U", 1, "Bea", "Bonn", transaction_id="t4"),
    ]
    history = build_history(log, options)
    assert brief(history) == ["1 Ann Bari [10, 40) I U", "1 Bea Bonn [40, ) U"]
    assert [version.changed_columns for version in history] == [None, ["name"]]
    assert [version.transaction_id for version in history] == [None, "t4"]


def test_r5_delete_of_unknown_key_shows_nothing_but_is_remembered() -> None:
    delete = change("20", "D", 1, None, None, known_columns={"id"})
    assert build_history([delete, replace(delete, change_seq="30")], OPTIONS) == []
    late = change("10", "I", 1, "Ann", "Rome")
    assert brief(build_history([delete, late], OPTIONS)) == ["1 Ann Rome [10, 20) I D"]


def test_r6_truncate_closes_every_open_version() -> None:
    log = [
        change("10", "I", 1, "Ann", "Rome"),
        change("11", "I", 2, "Bea", "Oslo"),
        change("12", "D", 2, "Bea", "Oslo"),
        change("13", "I", 3, "Eve", "Oslo"),
        change("20", "T"),
        change("30", "I", 1, "Ann", "Rome"),
    ]
    assert brief(build_history(log, OPTIONS)) == [
        "1 Ann Rome [10, 20) I T",
        "1 Ann Rome [30, ) I",
        "2 Bea Oslo [11, 12) I D",
        "3 Eve Oslo [13, 20) I T",
    ]


def test_r6_truncate_scope() -> None:
    log = [
        change("10", "I", 1, "Ann", "Rome"),
        change("11", "I", 2, "Bea", "Oslo"),
        change("12", "I", 3, "Eve", None, known_columns={"id", "name"}),
        change("20", "T", truncate_scope={"city": "Rome"}),
        change("30", "T", truncate_scope={"id": "3"}),
    ]
    assert brief(build_history(log, OPTIONS)) == [
        "1 Ann Rome [10, 20) I T",
        "2 Bea Oslo [11, ) I",
        "3 Eve ? [12, 30) I T",
    ]


THREE_ROWS = [
    change("01", "I", 1, "Ann", "Rome"),
    change("02", "I", 2, "Bea", "Oslo"),
    change("03", "I", 3, "Eve", "Bonn"),
]


@pytest.mark.parametrize("transaction_id", ["t1", None])
def test_r7_swap_of_two_keys_in_one_transaction(transaction_id: str | None) -> None:
    at = {"transaction_id": transaction_id, "changed_at": clock("10")}
    log = [
        *THREE_ROWS,
        change("10", "U", 2, "Ann", "Rome", before=(1, "Ann", "Rome"), **at),
        change("11", "U", 1, "Bea", "Oslo", before=(2, "Bea", "Oslo"), **at),
    ]
    history = build_history(log, OPTIONS)
    assert brief(history) == [
        "1 Ann Rome [01, 10) I K",
        "1 Bea Oslo [11, ) K",
        "2 Bea Oslo [02, 10) I K",
        "2 Ann Rome [10, ) K",
        "3 Eve Bonn [03, ) I",
    ]
    assert [version.changed_columns for version in history] == [
        None,
        None,
        None,
        ["name", "city"],
        None,
    ]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_r7_add_one_to_every_key(order: tuple[int, ...]) -> None:
    names = {1: ("Ann", "Rome"), 2: ("Bea", "Oslo"), 3: ("Eve", "Bonn")}
    log = [
        *THREE_ROWS,
        *(
            change(
                f"1{position}",
                "U",
                old + 1,
                *names[old],
                before=(old, *names[old]),
                transaction_id="t1",
            )
            for position, old in enumerate(order)
        ),
    ]
    now = as_of(build_history(log, OPTIONS), "99", OPTIONS)
    assert {key: row["name"] for key, row in now.items()} == {
        (2,): "Ann",
        (3,): "Bea",
        (4,): "Eve",
    }


def test_r7_add_one_to_every_key_intervals() -> None:
    at = {"transaction_id": "t1"}
    log = [
        *THREE_ROWS[:2],
        change("10", "U", 2, "Ann", "Rome", before=(1, "Ann", "Rome"), **at),
        change("11", "U", 3, "Bea", "Oslo", before=(2, "Bea", "Oslo"), **at),
    ]
    assert brief(build_history(log, OPTIONS)) == [
        "1 Ann Rome [01, 10) I K",
        "2 Bea Oslo [02, 10) I K",
        "2 Ann Rome [10, ) K",
        "3 Bea Oslo [11, ) K",
    ]


def test_r7_a_to_b_to_c() -> None:
    at = {"transaction_id": "t1"}
    log = [
        change("10", "I", 1, "Ann", "Rome"),
        change("20", "U", 2, "Ann", "Rome", before=(1, "Ann", "Rome"), **at),
        change("21", "U", 3, "Ann", "Rome", before=(2, "Ann", "Rome"), **at),
    ]
    assert brief(build_history(log, OPTIONS)) == [
        "1 Ann Rome [10, 20) I K",
        "2 Ann Rome [20, 21) K K",
        "3 Ann Rome [21, ) K",
    ]


def test_r7_move_onto_an_existing_key() -> None:
    log = [
        *THREE_ROWS[:2],
        change("10", "U", 2, "Ann", "Oslo", before=(1, "Ann", "Rome"), transaction_id="t1"),
        # another transaction: what leaves now is the row that came
        change("20", "U", 5, "Ann", "Oslo", before=(2, "Ann", "Oslo"), transaction_id="t2"),
    ]
    history = build_history(log, OPTIONS)
    assert brief(history) == [
        "1 Ann Rome [01, 10) I K",
        "2 Bea Oslo [02, 10) I K",
        "2 Ann Oslo [10, 20) K K",
        "5 Ann Oslo [20, ) K",
    ]
    assert history[2].changed_columns == ["name"]


def test_r7_move_onto_an_equal_row_opens_all_the_same() -> None:
    log = [
        change("01", "I", 1, "Ann", "Rome"),
        change("02", "I", 2, "Ann", "Rome"),
        change("10", "U", 2, "Ann", "Rome", before=(1, "Ann", "Rome")),
    ]
    history = build_history(log, OPTIONS)
    assert brief(history) == [
        "1 Ann Rome [01, 10) I K",
        "2 Ann Rome [02, 10) I K",
        "2 Ann Rome [10, ) K",
    ]
    assert history[2].changed_columns == []


@pytest.mark.parametrize(
    ("left_at", "arrived"),
    [(clock("10"), "2 Ann Rome [10, ) K"), (clock("11"), "2 Ann Rome [10, 12) K K")],
)
def test_r7_without_transaction_ids_key_changes_of_one_time_are_one_transaction(
    left_at: datetime, arrived: str
) -> None:
    log = [
        *THREE_ROWS[:2],
        change("10", "U", 2, "Ann", "Rome", before=(1, "Ann", "Rome")),
        # other changes in between make no difference
        change("11", "I", 9, "Zoe", "Bern", changed_at=clock("10")),
        change("12", "U", 1, "Bea", "Oslo", before=(2, "Bea", "Oslo"), changed_at=left_at),
    ]
    assert arrived in brief(build_history(log, OPTIONS))


def test_r7_key_change_of_an_unknown_key_opens_the_new_one() -> None:
    log = [change("10", "U", 2, "Ann", "Rome", before=(1, "Ann", "Rome"))]
    assert brief(build_history(log, OPTIONS)) == ["2 Ann Rome [10, ) K"]


def test_r7_before_image_without_its_key_is_no_key_change() -> None:
    row = change("10", "U", 2, "Ann", "Rome", before=(None, "Ann", "Oslo"))
    log = [replace(row, before_known_columns={"name", "city"})]
    assert brief(build_history(log, OPTIONS)) == ["2 Ann Rome [10, ) U"]


def test_r8_first_load_without_base_kind_is_taken_as_it_is() -> None:
    log = [
        *load("00", (1, "Ann", "Rome"), (2, "Bea", "Oslo")),
        change("10", "I", 2, "Bea", "Oslo"),
        change("20", "U", 1, "Ann", "Bari"),
    ]
    history = build_history(log, OPTIONS)
    assert brief(history) == [
        "1 Ann Rome [00, 20) L U",
        "1 Ann Bari [20, ) U",
        "2 Bea Oslo [00, ) L",
    ]
    assert {version.valid_from for version in history if version.opened_by == "L"} == {LONG_AGO}


def test_r8_load_rows_without_marker_are_refused() -> None:
    with pytest.raises(ValueError, match="no marker row"):
        build_history(load("00", (1, "Ann", "Rome"))[1:], OPTIONS)


def test_r8_frozen_first_load_leaves_out_later_inserts() -> None:
    log = [
        *load("00", (1, "Ann", "Rome"), (2, "Bea", "Oslo"), (3, "Eve", "Bonn"), (4, "Zoe", "Bern")),
        change("10", "I", 2, "Bea", "Oslo"),
        change("20", "D", 3, "Eve", "Bonn"),
        change("21", "I", 3, "Eve", "Bari"),
        change("30", "U", 5, "Zoe", "Bern", before=(4, "Zoe", "Bern")),
        change("31", "I", 4, "New", "Bern"),
    ]
    assert brief(build_history(log, frozen_or_live("frozen"))) == [
        "1 Ann Rome [00, ) L",
        "2 Bea Oslo [10, ) I",
        "3 Eve Bonn [00, 20) L D",
        "3 Eve Bari [21, ) I",
        "4 Zoe Bern [00, 30) L K",
        "4 New Bern [31, ) I",
        "5 Zoe Bern [30, ) K",
    ]


def test_r8_frozen_load_with_position_counts_changes_after_it_only() -> None:
    log = [
        change("05", "I", 1, "Ann", "Rome"),
        *load("10", (1, "Ann", "Rome"), (2, "Bea", "Oslo")),
        change("20", "I", 2, "Bea", "Oslo"),
    ]
    assert brief(build_history(log, frozen_or_live("frozen"))) == [
        "1 Ann Rome [05, ) I",
        "2 Bea Oslo [20, ) I",
    ]


def test_r8_live_first_load_is_load_image() -> None:
    log = [
        # the base table after all the changes below, except that 9 was deleted after it was read
        *load(
            "00",
            (1, "Ann", "Bari"),
            (2, "Bea", "Oslo"),
            (3, "Eve", "Bonn"),
            (6, "Zoe", "Bern"),
            (9, "Max", "Kiel"),
        ),
        change("10", "U", 1, "Ann", "Oslo", before=(1, "Ann", "Rome")),
        change("11", "U", 1, "Ann", "Bari", before=(1, "Ann", "Oslo")),
        change("12", "I", 2, "Bea", "Oslo"),
        change("13", "U", 6, "Zoe", "Bern", before=(5, "Zoe", "Genf")),
        change("14", "U", 7, "Tom", "Linz", before=(7, "Tom", "Graz")),
        change("15", "D", 7, "Tom", "Linz"),
        change("16", "D", 8, None, None, before=(8, "Kim", "Metz"), known_columns={"id"}),
        change("17", "D", 9, None, None, known_columns={"id"}),
        change("18", "D", 10, None, None, known_columns={"id"}),
    ]
    assert brief(build_history(log, frozen_or_live("live"))) == [
        "1 Ann Rome [00, 10) L U",
        "1 Ann Oslo [10, 11) U U",
        "1 Ann Bari [11, ) U",
        "2 Bea Oslo [12, ) I",
        "3 Eve Bonn [00, ) L",
        "5 Zoe Genf [00, 13) L K",
        "6 Zoe Bern [13, ) K",
        "7 Tom Graz [00, 14) L U",
        "7 Tom Linz [14, 15) U D",
        "8 Kim Metz [00, 16) L D",
        "9 Max Kiel [00, 17) L D",
        # the base has lost it, and its delete does not say what it was
        "10 ? ? [00, 18) L D",
    ]


def test_r8_live_first_change_without_before_image_leaves_columns_unknown() -> None:
    log = [
        *load("00", (1, "Ann", "Bari")),
        change("10", "U", 1, "Ann", "Oslo"),
        change("20", "U", 2, "Bea", "Oslo"),
    ]
    history = build_history(log, frozen_or_live("live"))
    # nothing differs that both sides know: filled in place
    assert brief(history) == ["1 Ann Oslo [00, ) L", "2 Bea Oslo [00, ) L"]


def test_r8_live_rewinds_with_a_partial_before_image() -> None:
    row = change("10", "U", 1, "Ann", "Oslo", before=(1, "Ann", None))
    log = [*load("00", (1, "Ann", "Oslo")), replace(row, before_known_columns={"id", "name"})]
    # the before image does not know the city: it is as it was loaded
    assert brief(build_history(log, frozen_or_live("live"))) == ["1 Ann Oslo [00, ) L"]
    log[2] = replace(log[2], data=person((1, "Bea", "Oslo")))
    assert brief(build_history(log, frozen_or_live("live"))) == [
        "1 Ann Oslo [00, 10) L U",
        "1 Bea Oslo [10, ) U",
    ]


@pytest.mark.parametrize("kind", ["live", "frozen"])
def test_r8_swap_of_keys_right_after_a_load(kind: Literal["frozen", "live"]) -> None:
    rows = [(1, "Bea", "Oslo"), (2, "Ann", "Rome")]
    if kind == "frozen":
        rows = [(1, "Ann", "Rome"), (2, "Bea", "Oslo")]
    log = [
        *load("00", *rows),
        change("10", "U", 2, "Ann", "Rome", before=(1, "Ann", "Rome"), transaction_id="t"),
        change("11", "U", 1, "Bea", "Oslo", before=(2, "Bea", "Oslo"), transaction_id="t"),
    ]
    # at the load each key held what left it, though 2 was arrived at before it was left
    assert brief(build_history(log, frozen_or_live(kind))) == [
        "1 Ann Rome [00, 10) L K",
        "1 Bea Oslo [11, ) K",
        "2 Bea Oslo [00, 10) L K",
        "2 Ann Rome [10, ) K",
    ]


@pytest.mark.parametrize("kind", ["live", "frozen"])
def test_r8_a_key_that_a_row_only_passes_was_empty_at_the_load(
    kind: Literal["frozen", "live"],
) -> None:
    log = [
        *load("00", (1, "Ann", "Rome")),
        change("10", "U", 2, "Ann", "Rome", before=(1, "Ann", "Rome"), transaction_id="t"),
        change("11", "U", 3, "Ann", "Rome", before=(2, "Ann", "Rome"), transaction_id="t"),
    ]
    assert brief(build_history(log, frozen_or_live(kind))) == [
        "1 Ann Rome [00, 10) L K",
        "2 Ann Rome [10, 11) K K",
        "3 Ann Rome [11, ) K",
    ]


def test_r8_later_load_is_a_comparison() -> None:
    log = [
        *load("00", (1, "Ann", "Rome"), (2, "Bea", "Oslo"), (3, "Eve", "Bonn")),
        change("10", "U", 2, "Bea", "Bari"),
        *load(
            "20",
            (1, "Ann", "Rome"),
            (2, "Bea", "Kiel"),
            (4, "Zoe", "Bern"),
            load_id="again",
            changed_at=clock("20"),
        ),
    ]
    history = build_history(log, OPTIONS)
    assert brief(history) == [
        "1 Ann Rome [00, ) L",
        "2 Bea Oslo [00, 10) L U",
        "2 Bea Bari [10, 20) U U",
        "2 Bea Kiel [20, ) L",
        "3 Eve Bonn [00, 20) L R",
        "4 Zoe Bern [20, ) L",
    ]
    assert [version.valid_from for version in history] == [
        LONG_AGO,
        LONG_AGO,
        clock("10"),
        clock("20"),
        LONG_AGO,
        clock("20"),
    ]


def test_r8_later_load_of_unknown_time_takes_the_clock_of_the_key() -> None:
    log = [
        change("10", "I", 1, "Ann", "Rome"),
        change("11", "I", 2, "Bea", "Oslo"),
        *load("20", (1, "Ann", "Oslo"), (3, "Eve", "Bonn"), load_id="again"),
    ]
    history = build_history(log, OPTIONS)
    assert brief(history) == [
        "1 Ann Rome [10, 20) I U",
        "1 Ann Oslo [20, ) L",
        "2 Bea Oslo [11, 20) I R",
        "3 Eve Bonn [20, ) L",
    ]
    assert (history[0].valid_to, history[1].valid_from) == (clock("10"), clock("10"))
    assert history[2].valid_to == clock("11")
    assert history[3].valid_from == LONG_AGO


@pytest.mark.parametrize(
    ("base_kind", "versions_of_1"),
    [
        ("frozen", ["1 Ann Rome [05, ) I"]),
        (
            "live",
            ["1 Ann Rome [05, 10) I U", "1 Ann Oslo [10, 21) L U", "1 Ann Rome [21, ) U"],
        ),
    ],
)
def test_r8_reload_is_put_back_to_its_own_position(
    base_kind: Literal["frozen", "live"], versions_of_1: list[str]
) -> None:
    log = [
        change("05", "I", 1, "Ann", "Rome"),
        change("05", "I", 2, "Bea", "Oslo"),
        # a delete of 2 and an update of 1 were lost here
        *load("10", (1, "Ann", "Rome"), (2, "Bea", "Kiel"), load_id="again"),
        change("20", "I", 2, "Bea", "Kiel"),
        change("21", "U", 1, "Ann", "Rome", before=(1, "Ann", "Oslo")),
    ]
    assert brief(build_history(log, frozen_or_live(base_kind))) == [
        *versions_of_1,
        "2 Bea Oslo [05, 10) I R",
        "2 Bea Kiel [20, ) I",
    ]


def test_r8_empty_load_closes_everything() -> None:
    log = [
        *load("00", (1, "Ann", "Rome")),
        change("10", "I", 2, "Bea", "Oslo"),
        *load("20", load_id="empty", changed_at=clock("20")),
    ]
    assert brief(build_history(log, OPTIONS)) == [
        "1 Ann Rome [00, 20) L R",
        "2 Bea Oslo [10, 20) I R",
    ]


def test_r9_unknown_column_takes_the_open_versions_value() -> None:
    log = [
        change("10", "I", 1, "Ann", "Rome"),
        change("20", "U", 1, "Bea", None, known_columns={"id", "name"}),
    ]
    history = build_history(log, OPTIONS)
    assert brief(history) == ["1 Ann Rome [10, 20) I U", "1 Bea Rome [20, ) U"]
    assert history[1].changed_columns == ["name"]


def test_r9_late_change_changes_what_is_carried_after_it() -> None:
    log = [
        change("10", "I", 1, "Ann", "Rome"),
        change("20", "U", 1, "Bea", None, known_columns={"id", "name"}),
        change("15", "U", 1, "Ann", "Oslo"),
    ]
    assert brief(build_history(log, OPTIONS))[-1] == "1 Bea Oslo [20, ) U"


def test_r9_unknown_without_open_version_stays_unknown_across_a_gap() -> None:
    log = [
        change("10", "I", 1, "Ann", "Rome"),
        change("20", "D", 1, "Ann", "Rome"),
        change("30", "I", 1, "Ann", None, known_columns={"id", "name"}),
    ]
    history = build_history(log, OPTIONS)
    assert brief(history) == ["1 Ann Rome [10, 20) I D", "1 Ann ? [30, ) I"]
    assert history[1].unknown_columns == ["city"]
    assert history[1].data["city"] is None


def test_r9_unknown_is_filled_in_place() -> None:
    partial = change("10", "I", 1, None, None, known_columns={"id"})
    log = [
        partial,
        change("20", "U", 1, None, "Rome", known_columns={"id", "city"}),
        change("30", "U", 1, None, "Rome"),
    ]
    assert brief(build_history(log[:2], OPTIONS)) == ["1 ? Rome [10, ) I"]
    (version,) = build_history(log, OPTIONS)
    assert brief([version]) == ["1 - Rome [10, ) I"]
    assert version.unknown_columns is None


def test_r9_unknown_becoming_known_beside_another_difference() -> None:
    log = [
        change("10", "I", 1, "Ann", None, known_columns={"id", "name"}),
        change("20", "U", 1, "Bea", "Rome"),
    ]
    history = build_history(log, OPTIONS)
    assert brief(history) == ["1 Ann ? [10, 20) I U", "1 Bea Rome [20, ) U"]
    assert history[1].changed_columns == ["name", "city"]
    history = build_history([log[0], change("20", "U", 1, "Bea", None)], OPTIONS)
    assert brief(history) == ["1 Ann ? [10, 20) I U", "1 Bea - [20, ) U"]
    assert history[1].changed_columns == ["name"]


def test_r9_changed_columns_are_decided_at_the_opening() -> None:
    log = [
        change("10", "I", 1, "Ann", None, known_columns={"id", "name"}),
        change("20", "U", 1, "Bea", None, known_columns={"id", "name"}),
        change("30", "U", 1, "Bea", "Rome"),
    ]
    history = build_history(log, OPTIONS)
    assert brief(history) == ["1 Ann ? [10, 20) I U", "1 Bea Rome [20, ) U"]
    assert history[1].changed_columns == ["name"]


@pytest.mark.parametrize(
    ("before_known_columns", "city"),
    [(None, "Oslo"), ({"id", "name"}, "Rome")],
)
def test_r9_key_change_takes_before_image_then_old_version(
    before_known_columns: set[str] | None, city: str
) -> None:
    move = change(
        "20", "U", 7, "Ann", None, before=(1, "Ann", "Oslo"), known_columns={"id", "name"}
    )
    log = [
        change("10", "I", 1, "Ann", "Rome"),
        change("11", "I", 7, "Old", "Bern"),
        replace(move, before_known_columns=before_known_columns),
    ]
    assert brief(build_history(log, OPTIONS)) == [
        "1 Ann Rome [10, 20) I K",
        "7 Old Bern [11, 20) I K",
        f"7 Ann {city} [20, ) K",
    ]


def test_r9_key_change_without_old_version_leaves_columns_unknown() -> None:
    move = change("20", "U", 7, "Ann", None, before=(1, "Ann", None), known_columns={"id", "name"})
    log = [replace(move, before_known_columns={"id", "name"})]
    assert brief(build_history(log, OPTIONS)) == ["7 Ann ? [20, ) K"]


def test_r9_displaced_row_carries_its_own_unknown_columns() -> None:
    known = {"id", "name"}
    at = {"transaction_id": "t1", "known_columns": known, "before_known_columns": known}
    log = [
        *THREE_ROWS[:2],
        change("10", "U", 2, "Ann", None, before=(1, "Ann", None), **at),
        change("11", "U", 1, "Bea", None, before=(2, "Bea", None), **at),
    ]
    assert brief(build_history(log, OPTIONS)) == [
        "1 Ann Rome [01, 10) I K",
        "1 Bea Oslo [11, ) K",
        "2 Bea Oslo [02, 10) I K",
        "2 Ann Rome [10, ) K",
    ]


def test_r10_delete_then_insert_with_clocks_running_back() -> None:
    log = [
        change("10", "I", 1, "Ann", "Rome", changed_at=clock("50")),
        change("20", "D", 1, "Ann", "Rome", changed_at=clock("40")),
        change("30", "I", 1, "Ann", "Rome", changed_at=clock("30")),
        change("40", "U", 1, "Ann", "Oslo", changed_at=clock("60")),
        change("41", "I", 2, "Bea", "Oslo", changed_at=clock("10")),
    ]
    history = build_history(log, OPTIONS)
    assert [(version.valid_from, version.valid_to) for version in history] == [
        (clock("50"), clock("50")),
        (clock("50"), clock("60")),
        (clock("60"), None),
        (clock("10"), None),
    ]


def test_r10_changes_that_open_and_close_nothing_do_not_move_the_clock() -> None:
    log = [
        change("10", "I", 1, "Ann", "Rome"),
        change("20", "U", 1, "Ann", "Rome", changed_at=clock("90")),
        change("21", "D", 2, "Bea", "Oslo", changed_at=clock("90")),
        change("30", "U", 1, "Ann", "Oslo"),
        change("31", "I", 2, "Bea", "Oslo"),
    ]
    history = build_history(log, OPTIONS)
    assert [version.valid_from for version in history] == [clock("10"), clock("30"), clock("31")]


def test_r10_unknown_time_takes_the_clock_of_the_key() -> None:
    log = [
        change("10", "I", 1, "Ann", "Rome", changed_at=None),
        change("20", "U", 1, "Ann", "Oslo"),
        change("30", "U", 1, "Ann", "Bari", changed_at=None),
    ]
    history = build_history(log, OPTIONS)
    assert [version.valid_from for version in history] == [LONG_AGO, clock("20"), clock("20")]


def test_composite_key() -> None:
    options = TableOptions(key=["id", "name"], columns=COLUMNS, tracked=COLUMNS)
    log = [
        change("10", "I", 1, "Ann", "Rome"),
        change("11", "I", 1, "Bea", "Rome"),
        change("20", "U", 1, "Eve", "Rome", before=(1, "Ann", "Rome")),
    ]
    assert brief(build_history(log, options)) == [
        "1 Ann Rome [10, 20) I K",
        "1 Bea Rome [11, ) I",
        "1 Eve Rome [20, ) K",
    ]


# Current and field changes --------------------------------------------------------------------


def test_current_is_the_open_rows() -> None:
    assert build_current(build_history(WORKED_EXAMPLE, OPTIONS)) == [
        {
            "id": 7,
            "name": "Bea",
            "city": "Rome",
            "valid_from": clock("50"),
            "valid_from_seq": "50",
            "transaction_id": None,
        }
    ]


def test_current_with_deleted_keeps_the_last_version_but_not_of_a_key_that_was_left() -> None:
    def kept(log: list[LogRow]) -> list[tuple[Any, ...]]:
        rows = build_current_with_deleted(build_history(log, OPTIONS), ["id"])
        return [(row["id"], row["name"], row["is_deleted"], row["deleted_at"]) for row in rows]

    # 1 became 7, which was deleted, and inserted again
    assert kept(WORKED_EXAMPLE[:3]) == [(1, "Ann", False, None)]
    assert kept(WORKED_EXAMPLE[:4]) == [(7, "Ann", False, None)]
    assert kept(WORKED_EXAMPLE[:5]) == [(7, "Ann", True, clock("40"))]
    assert kept(WORKED_EXAMPLE) == [(7, "Bea", False, None)]


def field_changes(log: list[LogRow], **settings: bool) -> list[tuple[Any, ...]]:
    rows = build_field_changes(log, build_history(log, OPTIONS), OPTIONS, **settings)
    return [
        (row.change_seq, row.column_name, row.old_value, row.new_value, row.derived_from)
        for row in rows
    ]


def test_field_changes_follow_the_before_images() -> None:
    log = [*WORKED_EXAMPLE, LATE_CHANGE]
    assert field_changes(log) == [
        ("20", "city", "Rome", "Oslo", "before_image"),
        ("30", "id", "1", "7", "before_image"),
    ]
    last = build_field_changes(log, build_history(log, OPTIONS), OPTIONS)[-1]
    assert last == FieldChange(
        key=(7,),
        previous_key=(1,),
        change_seq="30",
        changed_at=clock("30"),
        transaction_id=None,
        change_oper="U",
        column_name="id",
        old_value="1",
        new_value="7",
        derived_from="before_image",
    )


def test_field_changes_follow_history_where_before_images_are_off() -> None:
    options = replace(OPTIONS, before_images=False)
    log = [replace(row, before=None) for row in (*WORKED_EXAMPLE, LATE_CHANGE)]
    rows = build_field_changes(log, build_history(log, options), options)
    assert [(row.change_seq, row.old_value, row.new_value, row.derived_from) for row in rows] == [
        ("20", "Rome", "Oslo", "previous_version"),
        ("22", "Oslo", "Bari", "previous_version"),
        ("25", "Bari", "Oslo", "previous_version"),
    ]


def test_field_changes_between_two_full_loads() -> None:
    options = replace(OPTIONS, before_images=False)
    log = [
        *load("10", (1, "Ann", "Rome"), (2, "Bob", "Oslo")),
        *load("20", (1, "Ann", "Bari"), (2, "Bob", "Oslo"), (3, "Cid", "Rome"), load_id="later"),
    ]
    rows = build_field_changes(log, build_history(log, options), options)
    (change_of_city,) = rows
    assert change_of_city.key == (1,)
    assert (change_of_city.change_seq, change_of_city.change_oper) == ("20", "L")
    assert (change_of_city.old_value, change_of_city.new_value) == ("Rome", "Bari")
    assert field_changes(log) == []


def test_field_changes_compare_only_where_both_are_known() -> None:
    row = change("20", "U", 1, "Bea", None, before=(1, "Ann", "Rome"))
    log = [change("10", "I", 1, "Ann", "Rome"), replace(row, known_columns={"id", "name"})]
    assert field_changes(log) == [("20", "name", "Ann", "Bea", "before_image")]


def test_field_changes_of_inserts_and_deletes_on_request() -> None:
    log = [
        change("10", "I", 1, "Ann", None),
        change("20", "D", 1, None, None, known_columns={"id"}),
    ]
    assert field_changes(log) == []
    assert field_changes(log, inserts_and_deletes=True) == [
        ("10", "id", None, "1", None),
        ("10", "name", None, "Ann", None),
        ("20", "id", "1", None, "previous_version"),
        ("20", "name", "Ann", None, "previous_version"),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (b"\x00\xab", "00AB"),
        (Decimal("1.50"), "1.50"),
        (START.date(), "2024-03-01"),
        (START, "2024-03-01T12:00:00.000000Z"),
    ],
)
def test_values_as_text(value: object, text: str | None) -> None:
    assert as_text(value) == text


# Pairing --------------------------------------------------------------------------------------


def staged(
    seq: str | None, oper: str | None, *values: Any, record_hash: int = 0, **others: Any
) -> StagedRow:
    """A contract row of (id, name, city); its hash follows from its content unless given."""
    data = person(values or (None, None, None))
    content = repr((seq, oper, data, others.get("load_id"))).encode()
    return StagedRow(seq, oper, data, record_hash or crc32(content), **others)


def reasons(rejected: Iterable[tuple[StagedRow, str]]) -> list[tuple[str | None, str]]:
    return sorted((row.change_oper, reason) for row, reason in rejected)


def test_pairing_folds_the_before_image_into_the_update() -> None:
    paired = pair(
        [
            staged("10", "U", 1, "Ann", "Oslo", known_columns={"id", "city"}),
            staged("10", "B", 1, "Ann", "Rome", known_columns={"id"}),
        ],
        ["id"],
    )
    (row,) = paired.log
    assert (row.change_oper, row.data) == ("U", person((1, "Ann", "Oslo")))
    assert row.before == person((1, "Ann", "Rome"))
    assert (row.known_columns, row.before_known_columns) == ({"id", "city"}, {"id"})


def test_pairing_of_a_key_change_beside_another_update() -> None:
    paired = pair(
        [
            staged("10", "U", 1, "Ann", "Oslo"),
            staged("10", "B", 1, "Ann", "Rome"),
            staged("10", "U", 7, "Bea", "Oslo"),
            staged("10", "B", 2, "Bea", "Oslo"),
        ],
        ["id"],
    )
    moves = [((row.before or {})["id"], (row.data or {})["id"]) for row in paired.log]
    assert sorted(moves) == [(1, 1), (2, 7)]


def test_pairing_rejects_an_ambiguous_pair() -> None:
    rows = [
        staged("10", "U", 7, "Ann", "Oslo"),
        staged("10", "B", 1, "Ann", "Rome"),
        staged("10", "B", 2, "Bea", "Rome"),
    ]
    paired = pair(rows, ["id"])
    assert paired.log == []
    assert reasons(paired.rejected) == [
        ("B", "ambiguous_pair"),
        ("B", "ambiguous_pair"),
        ("U", "ambiguous_pair"),
    ]


def test_pairing_waits_for_partners_within_the_look_back() -> None:
    rows = [
        staged("10", "U", 1, "Ann", "Oslo"),
        staged("11", "B", 1, "Ann", "Oslo"),
        staged("20", "U", 1, "Ann", "Bari"),
        staged("21", "B", 1, "Ann", "Bari"),
    ]
    paired = pair(rows, ["id"], pending_from="20")
    assert [(row.change_seq, row.before) for row in paired.log] == [("10", None)]
    assert sorted(row.change_seq or "" for row in paired.pending) == ["20", "21"]
    assert reasons(paired.rejected) == [("B", "orphan_before_image")]
    assert paired.updates_without_before == 1


def test_pairing_with_before_images_off() -> None:
    rows = [staged("10", "U", 1, "Ann", "Oslo"), staged("10", "B", 1, "Ann", "Rome")]
    paired = pair(rows, ["id"], before_images=False, pending_from="00")
    assert [row.before for row in paired.log] == [None]
    assert reasons(paired.rejected) == [("B", "orphan_before_image")]
    assert (paired.pending, paired.updates_without_before) == ([], 0)


def test_pairing_keeps_a_before_image_of_the_record_itself() -> None:
    before = person((2, "Ann", "Rome"))
    row = staged("10", "U", 1, "Ann", None, known_columns={"id", "name"}, before=before)
    (logged,) = pair([row], ["id"], pending_from="00").log
    assert logged.before == before
    assert logged.before_known_columns == {"id", "name"}


def test_pairing_drops_duplicates_and_rejects_conflicts() -> None:
    rows = [
        staged("10", "I", 1, "Ann", "Rome", record_hash=7),
        staged("10", "I", 1, "Ann", "Oslo", record_hash=5),
        staged("10", "I", 1, "Ann", "Oslo", record_hash=5),
        staged("10", "I", 1, "Ann", "Rome", record_hash=7),
    ]
    paired = pair(rows, ["id"])
    assert [row.data for row in paired.log] == [person((1, "Ann", "Oslo"))]
    assert reasons(paired.rejected) == [("I", "conflicting_duplicate")]
    assert paired.duplicates == 2


def test_pairing_keeps_the_recorded_copy() -> None:
    paired = pair(
        [
            staged("10", "I", 1, "Ann", "Oslo", record_hash=5),
            staged("10", "I", 1, "Ann", "Rome", record_hash=7),
        ],
        ["id"],
        recorded=[staged("10", "I", 1, "Ann", "Rome", record_hash=7)],
    )
    assert paired.log == []
    assert reasons(paired.rejected) == [("I", "conflicting_duplicate")]
    assert paired.duplicates == 1


def test_pairing_rejects_and_counts() -> None:
    malformed = staged("10", "U", 1, "Ann", "Oslo", reject_reason="malformed_mask")
    rows = [
        malformed,
        malformed,
        staged("11", "I", None, "Ann", "Oslo", reject_reason="malformed_mask"),
        staged("12", "D", None, None, None),
        staged("13", "?", None, None, None, reject_reason="unknown_operation"),
        staged("14", "N"),
        staged("15", "T"),
    ]
    paired = pair(rows, ["id"])
    assert [(row.change_oper, row.data) for row in paired.log] == [("T", None)]
    assert reasons(paired.rejected) == [
        ("?", "unknown_operation"),
        ("D", "null_key"),
        ("I", "null_key"),
        ("U", "malformed_mask"),
    ]
    assert (paired.duplicates, paired.not_changes) == (1, 1)


def test_pairing_records_loads_whole_with_a_marker() -> None:
    rows = [
        staged(None, "L", 1, "Ann", "Rome", load_id="initial"),
        staged(None, "L", 2, "Bea", "Oslo", load_id="initial"),
        staged(None, "L", None, "Eve", "Oslo", load_id="initial"),
    ]
    paired = pair(
        rows,
        ["id"],
        loads=[Load("initial"), Load("empty", "20", clock("20"))],
        change_seq_width=2,
    )
    assert [(row.change_seq, row.load_id, row.load_rows) for row in paired.log] == [
        ("00", "initial", 2),
        ("00", "initial", None),
        ("00", "initial", None),
        ("20", "empty", 0),
    ]
    assert paired.log[-1].changed_at == clock("20")
    assert reasons(paired.rejected) == [("L", "null_key")]
    assert brief(build_history(paired.log, OPTIONS)) == [
        "1 Ann Rome [00, 20) L R",
        "2 Bea Oslo [00, 20) L R",
    ]


def test_pairing_reads_a_load_once() -> None:
    row = staged(None, "L", 1, "Ann", "Rome", load_id="initial")
    paired = pair(
        [row, staged(None, "L", 2, "Bea", "Oslo", load_id="initial")], ["id"], recorded=[row]
    )
    assert (paired.log, paired.rejected, paired.pending) == ([], [], [])


def test_pairing_needs_the_position_of_a_later_load() -> None:
    with pytest.raises(ValueError, match="give its position"):
        pair([], ["id"], loads=[Load("initial"), Load("again")])
