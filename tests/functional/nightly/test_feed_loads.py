"""Full loads among the changes of a feed: snapshots of Debezium, and periodic extracts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.functional.dbt_project import DbtProject
from tests.functional.feed_project import reasons, write_project
from tests.functional.project_files import write_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.both_formats

RAW = "feed_loads_raw"
LANDED = (
    "topic string, partition int, offset bigint, value binary, "
    "headers array<struct<key: string, value: binary>>, landing_batch string"
)
PRICES = "id int, price int, load_date date"
LIST = "id int, price int, load_date string"
TYPES = {"id": "int", "name": "string", "note": "string", "score": "decimal(5,2)", "born": "date"}
# 1.50, days since 1970-01-01 up to 2000-01-01
SCORE, BORN = "AJY=", 10957


def person(number: int, name: str, note: str | None = "n") -> dict[str, Any]:
    return {"id": number, "name": name, "note": note, "score": SCORE, "born": BORN}


@dataclass(frozen=True)
class Event:
    """A message, and the name of its header."""

    value: str | None
    header: str | None = None


def event(
    op: str, lsn: int, before: Any, after: Any, snapshot: str = "false", header: str | None = None
) -> Event:
    source = {"lsn": lsn, "ts_ms": 1772452800000 + lsn, "txId": lsn, "snapshot": snapshot}
    message = {"op": op, "before": before, "after": after, "source": source}
    return Event(json.dumps(message), header)


ANN, BOB, CID, DAN = (person(*of) for of in [(1, "Ann"), (2, "Bob"), (3, "Cid"), (4, "Dan")])
ANNA = person(1, "Anna", "__debezium_unavailable_value")
MOVED = person(5, "Dan")
BATCHES: list[tuple[list[Event], list[tuple[int, int, str]]]] = [
    # the first row of a snapshot: it waits
    ([event("r", 100, None, ANN, "first")], [(1, 10, "2026-03-01"), (2, 20, "2026-03-01")]),
    (
        [
            event("r", 100, None, BOB, "last"),
            event("c", 120, None, CID),
            event("u", 130, ANN, ANNA),
            event("c", 145, None, DAN),
            # the landing ends between the two messages of a changed key
            event("d", 150, DAN, None, header="__debezium.newkey"),
        ],
        # a date that is mistyped is not a load, and hides none
        [(1, 11, "2026-03-02"), (3, 30, "2026-03-02"), (5, 50, "2206-03-02")],
    ),
    (
        [
            # too late for its snapshot
            event("r", 100, None, person(9, "Late"), "true"),
            event("c", 150, None, MOVED, header="__debezium.oldkey"),
            event("d", 140, BOB, None),
            Event(None),
            Event('{"op": "u", "bef'),
            # another snapshot: it lacks 3
            event("r", 300, None, person(1, "Anna"), "first"),
            event("r", 300, None, MOVED, "last"),
        ],
        # the same key twice in one extract; of an extract of the day before, a row that it lacked
        # and one that it had, with another price
        [
            (1, 12, "2026-03-03"),
            (1, 13, "2026-03-03"),
            (4, 40, "2026-03-02"),
            (3, 31, "2026-03-02"),
        ],
    ),
]
# dates as text that does not sort like the dates, and the last one out of order
LISTS = [
    "(1, 10, '2026-3-9'), (2, 20, '2026-3-9')",
    "(1, 12, '2026-3-11'), (3, 30, '2026-3-11')",
    "(1, 11, '2026-3-10'), (2, 20, '2026-3-10')",
]


@pytest.fixture(scope="module")
def feeds(
    make_dbt_project: Callable[..., DbtProject],
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    table_format: str,
) -> str:
    """The schema of three chains after three runs, each of one batch."""
    dbt = make_dbt_project(tmp_path_factory.mktemp("feed_loads"), schema="feed_loads")
    columns = [{"name": name, "data_type": kind} for name, kind in TYPES.items()]
    of_people = {"preset": "debezium", "filter": "topic = 'crm.people'"}
    write_project(
        dbt.path,
        RAW,
        {
            "people": (of_people, columns),
            "prices": ({"preset": "snapshots"}, []),
            "lists": ({"preset": "snapshots"}, []),
        },
    )
    fields = "{{ field_changes(ref('prices_changes'), history=ref('prices_history')) }}\n"
    write_files(dbt.path, {"models/prices_field_changes.sql": fields})
    spark.sql(f"create schema if not exists {RAW}")
    spark.sql(f"create table {RAW}.people ({LANDED}) using {table_format}")
    spark.sql(f"create table {RAW}.prices ({PRICES}) using {table_format}")
    spark.sql(f"create table {RAW}.lists ({LIST}) using {table_format}")
    offset = 0
    for number, (messages, prices) in enumerate(BATCHES):
        rows = []
        for message in messages:
            value = None if message.value is None else message.value.encode()
            headers = [(message.header, b"{}")] if message.header else None
            rows.append(("crm.people", 0, offset, value, headers, f"2026-03-0{number + 1}"))
            offset += 1
        spark.createDataFrame(rows, LANDED).writeTo(f"{RAW}.people").append()
        values = ", ".join(f"({id_}, {price}, date '{day}')" for id_, price, day in prices)
        spark.sql(f"insert into {RAW}.prices values {values}")
        spark.sql(f"insert into {RAW}.lists values {LISTS[number]}")
        dbt("build")
    return dbt.schema


def test_history_of_an_envelope_with_snapshots(spark: SparkSession, feeds: str) -> None:
    found = spark.sql(
        "select id, name, note, cast(score as string), cast(born as string), is_current, "
        f"opened_by, closed_by from {feeds}.people_history order by id, valid_from_seq"
    ).collect()
    rest = ("1.50", "2000-01-01")
    assert [tuple(row) for row in found] == [
        (1, "Ann", "n", *rest, False, "L", "U"),
        # the update does not have the note; the second snapshot has what is there
        (1, "Anna", "n", *rest, True, "U", None),
        (2, "Bob", "n", *rest, False, "L", "D"),
        (3, "Cid", "n", *rest, False, "I", "R"),
        (4, "Dan", "n", *rest, False, "I", "K"),
        (5, "Dan", "n", *rest, True, "K", None),
    ]


def test_rows_that_no_load_takes_are_rejected(spark: SparkSession, feeds: str) -> None:
    found = spark.sql(
        f"select reject_reason, raw_record from {feeds}.people_changes_rejected"
    ).collect()
    values = {row[0]: json.loads(row[1])["value"] for row in found}
    assert values == {
        "late_load_row": BATCHES[2][0][0].value,
        "malformed_message": BATCHES[2][0][4].value,
    }
    assert reasons(spark, feeds, "prices") == [
        (1, "conflicting_duplicate"),
        (3, "conflicting_duplicate"),
        (4, "late_load_row"),
        (5, "future_change_seq"),
    ]


def test_history_of_extracts(spark: SparkSession, feeds: str) -> None:
    found = spark.sql(
        "select id, price, cast(date(valid_from) as string), is_current, opened_by, closed_by "
        f"from {feeds}.prices_history order by id, valid_from_seq"
    ).collect()
    rows = [tuple(row) for row in found]
    # of the two rows of one key the first by content stays: either
    last = rows.pop(2)
    assert last[1] in (12, 13)
    assert (last[0], *last[2:]) == (1, "2026-03-03", True, "L", None)
    assert rows == [
        (1, 10, "2026-03-01", False, "L", "U"),
        (1, 11, "2026-03-02", False, "L", "U"),
        (2, 20, "2026-03-01", False, "L", "R"),
        (3, 30, "2026-03-02", False, "L", "R"),
    ]


def test_an_extract_that_comes_out_of_order_is_recorded_at_its_date(
    spark: SparkSession, feeds: str
) -> None:
    found = spark.sql(
        "select id, price, cast(date(valid_from) as string), cast(date(valid_to) as string), "
        f"opened_by, closed_by from {feeds}.lists_history order by id, valid_from_seq"
    ).collect()
    assert [tuple(row) for row in found] == [
        (1, 10, "2026-03-09", "2026-03-10", "L", "U"),
        (1, 11, "2026-03-10", "2026-03-11", "L", "U"),
        (1, 12, "2026-03-11", None, "L", None),
        (2, 20, "2026-03-09", "2026-03-11", "L", "R"),
        (3, 30, "2026-03-11", None, "L", None),
    ]


def test_field_changes_between_extracts(spark: SparkSession, feeds: str) -> None:
    """A row for each value that differs from the extract before, not for rows that come or go."""
    found = spark.sql(
        "select id, column_name, old_value, new_value, change_oper, derived_from, "
        f"cast(date(changed_at) as string) from {feeds}.prices_field_changes order by change_seq"
    ).collect()
    first, second = map(tuple, found)
    assert first == (1, "price", "10", "11", "L", "previous_version", "2026-03-02")
    assert second[3] in ("12", "13")
    assert (*second[:3], *second[4:]) == (1, "price", "11", "L", "previous_version", "2026-03-03")
