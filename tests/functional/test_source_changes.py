"""New, removed and wider columns of a source, on the way through all tables (R13).

The change table is built, changes its columns, and is built again: see people.py. What the tables
must hold then is written out by hand.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.functional.people import BIG, People, seq

pytestmark = pytest.mark.both_formats

HISTORY = [
    (1, "Ann", "first", 0.5, Decimal("1.25"), None, None, None, seq(3)),
    # a removed column keeps its last value
    (1, "Ann", "first", 0.1, Decimal("1.25"), "Oslo", ["score", "city"], None, None),
    (2, "Bob", "second", 1.5, Decimal("2.50"), None, None, None, seq(5)),
    # and is unknown where there was none
    (BIG, "Cid", None, 2.5, Decimal("1234567.89"), "Rome", None, ["note"], None),
]
HISTORY_COLUMNS = "id, name, note, score, fee, city, changed_columns, unknown_columns, valid_to_seq"
WIDENED = {"id": "bigint", "score": "double", "fee": "decimal(9,2)", "city": "string"}


def test_r13_the_log_takes_new_removed_and_wider_columns(people: People) -> None:
    columns = "id, note, score, fee, city, known_columns, before.id, before.note, before.city"
    known = ["id", "name", "score", "fee", "city"]
    assert people.rows("changes", f"change_oper, {columns}", "change_seq") == [
        # as they were recorded: known_columns NULL is all columns of then
        ("I", 1, "first", 0.5, Decimal("1.25"), None, None, None, None, None),
        ("I", 2, "second", 1.5, Decimal("2.50"), None, None, None, None, None),
        ("U", 1, None, 0.1, Decimal("1.25"), "Oslo", known, 1, None, None),
        ("I", BIG, None, 2.5, Decimal("1234567.89"), "Rome", known, None, None, None),
        ("D", 2, None, 1.5, Decimal("2.50"), None, None, None, None, None),
    ]
    types = people.types("changes")
    assert types | WIDENED == types
    assert types["before"] == (
        "struct<id:bigint,name:string,note:string,score:double,fee:decimal(9,2),city:string>"
    )


def test_r13_records_read_again_are_no_conflicts(people: People) -> None:
    """The look-back covers the first two: they have other columns and types now, but are known."""
    assert people.spark.table(f"{people.name('changes')}_rejected").collect() == []


def test_r13_no_record_counts_as_lost(people: People) -> None:
    """The generic test `conserved`, on the records of before and after."""
    _, result, _ = people.dbt("test").results  # between the hooks
    assert (result.node.name[:9], result.status, result.failures) == ("conserved", "pass", 0)


def test_r13_history_current_and_field_changes_follow(people: People) -> None:
    assert people.rows("history", HISTORY_COLUMNS, "id, valid_from_seq") == HISTORY
    assert people.rows("current", "id, name, note, score, fee, city", "id") == [
        (1, "Ann", "first", 0.1, Decimal("1.25"), "Oslo"),
        (BIG, "Cid", None, 2.5, Decimal("1234567.89"), "Rome"),
    ]
    columns = "id, column_name, old_value, new_value"
    assert people.rows("field_changes", columns, "column_name") == [
        (1, "city", None, "Oslo"),
        (1, "score", "0.5", "0.1"),
    ]
    for table in ("history", "current"):
        types = people.types(table)
        assert types | WIDENED == types
    assert people.types("field_changes")["id"] == "bigint"
    assert people.types("field_changes")["previous_key"] == "struct<id:bigint>"


def test_tables_made_before_there_were_guards_are_taken_over(people: People) -> None:
    log = {"afterimage.layout": "1", "afterimage.key": '["id"]'}
    mart = {**log, "afterimage.tracked": "{}"}
    assert people.properties("changes") == {**log, "afterimage.hashed_after": ""}
    assert people.properties("history") == mart
    assert people.properties("current") == mart
    assert people.properties("field_changes") == log


def test_a_second_run_commits_nothing(people: People) -> None:
    # another test may have landed the same records again, which the next run reads once
    people.dbt("run")
    with people.untouched():
        people.dbt("run")


def test_r13_a_rebuild_gives_the_same_rows(people: People) -> None:
    columns = {"history": "people_history_id, id", "current": "id, note", "field_changes": "*"}
    before = {table: people.rows(table, given, "1, 2") for table, given in columns.items()}
    people.dbt("run", "--full-refresh", "--select", "people_changes+")
    assert people.rows("history", HISTORY_COLUMNS, "id, valid_from_seq") == HISTORY
    assert {table: people.rows(table, given, "1, 2") for table, given in columns.items()} == before
